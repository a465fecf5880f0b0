package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// restore replaces the datastore by a snapshot when cluster-reset-restore-path asks for it.
func (s *Server) restore() error {
	snapshot := s.Options.Text("cluster-reset-restore-path")
	if !s.Options.Is("cluster-reset") {
		if snapshot != "" {
			return errors.New("invalid flag use; --cluster-reset required with --cluster-reset-restore-path")
		}
		return nil
	}
	flag := s.dir("db", "reset-flag")
	if _, err := os.Stat(flag); err == nil {
		return fmt.Errorf("cluster-reset was already done: remove --cluster-reset and start k3s normally (%s says so; it is removed by that start)", flag)
	}
	if snapshot != "" {
		if err := s.restoreSnapshot(snapshot); err != nil {
			return err
		}
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		return err
	}
	return ErrReset
}

// ErrReset ends a start with --cluster-reset after the work: the next start has to be without it.
var ErrReset = errors.New("Managed etcd cluster membership has been reset, restart without --cluster-reset flag now")

func (s *Server) restoreSnapshot(snapshot string) error {
	if _, err := os.Stat(snapshot); err != nil {
		return fmt.Errorf("etcd: snapshot path does not exist: %s", snapshot)
	}
	fresh := s.etcdDir() + "-restored"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	output, err := exec.Command(s.Bin("etcdutl"), "snapshot", "restore", snapshot, "--data-dir="+fresh, "--name="+s.Name,
		"--initial-cluster="+s.Name+"=https://127.0.0.1:2380", "--initial-advertise-peer-urls=https://127.0.0.1:2380").CombinedOutput()
	if err != nil {
		os.RemoveAll(fresh)
		return fmt.Errorf("restoring %s: %w: %s", snapshot, err, strings.TrimSpace(string(output)))
	}
	if _, err := os.Stat(s.etcdDir()); err == nil {
		if err := os.Rename(s.etcdDir(), fmt.Sprintf("%s-old-%d", s.etcdDir(), time.Now().Unix())); err != nil {
			return err
		}
	}
	return os.Rename(fresh, s.etcdDir())
}
