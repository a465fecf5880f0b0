package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/node"
	"gpunode.example/rehearsal/k3s/internal/proc"
)

// EtcdURL is where etcd answers its clients, on this machine only.
const EtcdURL = "https://127.0.0.1:2379"

func (s *Server) etcdDir() string { return s.dir("db", "etcd") }

func (s *Server) startEtcd() error {
	if err := os.MkdirAll(s.etcdDir(), 0o700); err != nil {
		return err
	}
	metrics := "http://127.0.0.1:2381"
	if s.Options.Is("etcd-expose-metrics") {
		metrics += ",http://" + s.IP + ":2381"
	}
	args := []string{
		"--name=" + s.Name,
		"--data-dir=" + s.etcdDir(),
		"--listen-client-urls=" + EtcdURL,
		"--advertise-client-urls=" + EtcdURL,
		"--listen-peer-urls=https://127.0.0.1:2380",
		"--initial-advertise-peer-urls=https://127.0.0.1:2380",
		"--initial-cluster=" + s.Name + "=https://127.0.0.1:2380",
		"--listen-metrics-urls=" + metrics,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + s.tls("etcd/server-ca.crt"),
		"--cert-file=" + s.tls("etcd/server-client.crt"),
		"--key-file=" + s.tls("etcd/server-client.key"),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + s.tls("etcd/peer-ca.crt"),
		"--peer-cert-file=" + s.tls("etcd/peer-server-client.crt"),
		"--peer-key-file=" + s.tls("etcd/peer-server-client.key"),
		"--log-level=warn",
		"--snapshot-count=10000",
	}
	return s.Group.Start(proc.Child{
		Name: "etcd", Path: s.Bin("etcd"), Args: node.Override(args, s.Options.List("etcd-arg")), Env: []string{"NOTIFY_SOCKET="},
	})
}

func (s *Server) waitEtcd(ctx context.Context) error {
	client, err := s.etcdHTTP()
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return kube.Wait(limit, "etcd to answer at "+EtcdURL, 50*time.Millisecond, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, EtcdURL+"/health", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("health: HTTP %d", answer.StatusCode)
		}
		return nil
	})
}

func (s *Server) etcdHTTP() (*http.Client, error) {
	return EtcdHTTP(s.dir("tls", "etcd"))
}

// EtcdHTTP returns a client that etcd lets in.
func EtcdHTTP(folder string) (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(folder+"/client.crt", folder+"/client.key")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(folder + "/server-ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}
