package pki

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCertificatesAreMadeOnceAndRenewedNearTheirEnd(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	ca, err := EnsureCA(filepath.Join(folder, "ca"), "test-ca", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EnsureCA(filepath.Join(folder, "ca"), "test-ca", now)
	if err != nil || string(again.PEM) != string(ca.PEM) {
		t.Fatalf("the CA was made anew: %v", err)
	}
	request := Request{Path: filepath.Join(folder, "sub", "server"), CommonName: "x", Server: true, Hosts: []string{"localhost", "127.0.0.1"}}
	steps := []struct {
		what    string
		at      time.Time
		hosts   []string
		renewed bool
	}{
		{"first start", now, request.Hosts, true},
		{"next start", now.Add(time.Hour), request.Hosts, false},
		{"91 days before the end", now.Add(certLife - 91*24*time.Hour), request.Hosts, false},
		{"a host more", now.Add(time.Hour), append(request.Hosts, "10.0.0.1"), true},
		{"89 days before the end", now.Add(certLife - 89*24*time.Hour), request.Hosts, true},
	}
	for _, step := range steps {
		request.Hosts = step.hosts
		renewed, err := ca.Ensure(request, step.at)
		if err != nil || renewed != step.renewed {
			t.Errorf("%s: renewed %v, %v", step.what, renewed, err)
		}
	}
	raw, err := os.ReadFile(request.Path + ".crt")
	if err != nil {
		t.Fatal(err)
	}
	chain, err := Parse(raw)
	if err != nil || len(chain) != 2 || !chain[1].IsCA || chain[0].CheckSignatureFrom(chain[1]) != nil {
		t.Errorf("chain of %d: %v", len(chain), err)
	}
	info, err := os.Stat(request.Path + ".key")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v %v", info, err)
	}
}

func TestCertificateOfAnotherCAIsReplaced(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	request := Request{Path: filepath.Join(folder, "client"), CommonName: "system:admin", Organization: []string{"system:masters"}, Client: true}
	for _, name := range []string{"one", "two"} {
		ca, err := EnsureCA(filepath.Join(folder, name), name, now)
		if err != nil {
			t.Fatal(err)
		}
		if made, err := ca.Ensure(request, now); err != nil || !made {
			t.Errorf("%s: %v %v", name, made, err)
		}
	}
}
