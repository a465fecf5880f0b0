package proc

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, group *Group, name, script string, log *bytes.Buffer) {
	t.Helper()
	if err := group.Start(Child{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Log: log}); err != nil {
		t.Fatal(err)
	}
}

func TestAChildThatEndsIsReported(t *testing.T) {
	group, log := NewGroup(), &bytes.Buffer{}
	start(t, group, "kubelet", "echo broken; exit 3", log)
	err := <-group.Ended()
	if !strings.Contains(err.Error(), "kubelet exited: exit status 3") || log.String() != "broken\n" {
		t.Errorf("%v; log %q", err, log)
	}
	group.Stop()
}

func TestStopKillsAChildThatWillNotEnd(t *testing.T) {
	group := NewGroup()
	start(t, group, "etcd", "exec sleep 60", &bytes.Buffer{})
	start(t, group, "kube-apiserver", "trap '' TERM; while :; do sleep 1; done", &bytes.Buffer{})
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	group.Stop()
	if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
		t.Errorf("stopping took %v", took)
	}
	select {
	case err := <-group.Ended():
		t.Errorf("an asked end was reported: %v", err)
	default:
	}
}

func TestAMissingComponentIsNamed(t *testing.T) {
	err := NewGroup().Start(Child{Name: "etcd", Path: "/nowhere/etcd"})
	if err == nil || !strings.Contains(err.Error(), "starting etcd") {
		t.Error(err)
	}
}
