package server

import (
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/pki"
	"gpunode.example/rehearsal/k3s/internal/token"
)

// newServer makes a server in a folder of its own, on any free port.
func newServer(t *testing.T, words ...string) *Server {
	t.Helper()
	folder := t.TempDir()
	args := append([]string{"--data-dir=" + folder, "--https-listen-port=0", "--node-name=Node1", "--node-ip=10.0.0.9"}, words...)
	options, err := flags.Parse(flags.Server, args, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(options, folder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := pki.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

func TestPrepareLeavesWhatK3sLeavesAndChangesNothingTheSecondTime(t *testing.T) {
	s := newServer(t, "--tls-san=gpu.example,192.0.2.7")
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	api := certificate(t, s.tls("serving-kube-apiserver.crt"))
	for _, host := range []string{"kubernetes.default.svc", "127.0.0.1", "10.43.0.1", "node1", "10.0.0.9", "gpu.example", "192.0.2.7"} {
		if err := api.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	admin := certificate(t, s.tls("client-admin.crt"))
	if admin.Subject.CommonName != "system:admin" || !slices.Equal(admin.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("admin is %v", admin.Subject)
	}
	before := api.SerialNumber
	kept, err := os.ReadFile(s.dir("token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	if certificate(t, s.tls("serving-kube-apiserver.crt")).SerialNumber.Cmp(before) != 0 {
		t.Error("the certificate was made anew")
	}
	if again, _ := os.ReadFile(s.dir("token")); string(again) != string(kept) {
		t.Error("the token changed")
	}
}

func TestTokenHoldsTheHashOfTheServersCA(t *testing.T) {
	s := newServer(t, "--token=secret", "--agent-token=other")
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	ca, _ := os.ReadFile(s.tls("server-ca.crt"))
	raw, _ := os.ReadFile(s.dir("token"))
	parsed, err := token.Parse(string(raw))
	if err != nil || parsed.Hash != token.Hash(ca) || parsed.Password != "secret" {
		t.Errorf("%+v %v", parsed, err)
	}
	users, _ := os.ReadFile(s.dir("cred", "agents.csv"))
	if !strings.HasPrefix(string(users), "other,") || !strings.Contains(string(users), "\nsecret,") {
		t.Errorf("who may join: %s", users)
	}
}

func TestEncryptionKeyIsMadeOnce(t *testing.T) {
	s := newServer(t, "--secrets-encryption")
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	path, err := s.ensureEncryption()
	if err != nil || filepath.Base(path) != "encryption-config.json" {
		t.Fatalf("%s %v", path, err)
	}
	first, _ := os.ReadFile(path)
	if _, err := s.ensureEncryption(); err != nil {
		t.Fatal(err)
	}
	second, _ := os.ReadFile(path)
	if string(first) != string(second) || !json.Valid(first) || !strings.Contains(string(first), `"aescbc"`) {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestAServerThatJoinsAnotherIsRefused(t *testing.T) {
	options, err := flags.Parse(flags.Server, []string{"--server=https://10.0.0.1:6443"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(options, ""); err == nil || !strings.Contains(err.Error(), "agents can join") {
		t.Error(err)
	}
}

func TestRestoreNeedsBothOptionsAndASnapshot(t *testing.T) {
	if err := newServer(t, "--cluster-reset-restore-path=/none").restore(); err == nil || !strings.Contains(err.Error(), "--cluster-reset required") {
		t.Error(err)
	}
	if err := newServer(t, "--cluster-reset", "--cluster-reset-restore-path=/none").restore(); err == nil || !strings.Contains(err.Error(), "does not exist: /none") {
		t.Error(err)
	}
}
