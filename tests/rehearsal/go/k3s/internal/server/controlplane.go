package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/node"
	"gpunode.example/rehearsal/k3s/internal/proc"
)

// EtcdURL is where etcd answers its clients, on this machine only.
const EtcdURL = "https://127.0.0.1:2379"

// cipherSuites are those that k3s allows.
const cipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384," +
	"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

func (s *Server) startControlPlane(ctx context.Context) error {
	if err := s.restore(); err != nil {
		return err
	}
	if err := s.startEtcd(); err != nil {
		return err
	}
	if err := s.waitEtcd(ctx); err != nil {
		return err
	}
	if err := s.startAPIServer(); err != nil {
		return err
	}
	client, err := kube.New(s.local(), s.tls("server-ca.crt"), s.tls("client-admin.crt"), s.tls("client-admin.key"))
	if err != nil {
		return err
	}
	s.client = client
	limit, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err = kube.Wait(limit, "the API server to be ready at "+s.local(), 100*time.Millisecond, func(ctx context.Context) error {
		_, err := client.Do(ctx, http.MethodGet, "/readyz", "", nil)
		return err
	})
	if err != nil {
		return err
	}
	log.Info("Kube API server is now running")
	if err := s.startController(); err != nil {
		return err
	}
	if err := s.startScheduler(); err != nil {
		return err
	}
	return s.writeUserKubeconfig()
}

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

func (s *Server) startAPIServer() error {
	// A normal start after a reset takes its mark away.
	if err := os.Remove(s.dir("db", "reset-flag")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	issuer := "https://kubernetes.default.svc." + s.ClusterDomain
	advertised := s.Options.Text("advertise-address")
	if advertised == "" {
		advertised = s.IP
	}
	args := []string{
		"--advertise-address=" + advertised,
		"--allow-privileged=true",
		"--anonymous-auth=false",
		"--api-audiences=" + issuer + ",k3s",
		"--authorization-mode=Node,RBAC",
		"--bind-address=" + s.Options.Text("bind-address"),
		"--cert-dir=" + s.tls("temporary-certs"),
		"--client-ca-file=" + s.tls("client-ca.crt"),
		"--enable-admission-plugins=NodeRestriction",
		"--enable-aggregator-routing=true",
		"--enable-bootstrap-token-auth=true",
		"--etcd-cafile=" + s.tls("etcd/server-ca.crt"),
		"--etcd-certfile=" + s.tls("etcd/client.crt"),
		"--etcd-keyfile=" + s.tls("etcd/client.key"),
		"--etcd-servers=" + EtcdURL,
		"--kubelet-certificate-authority=" + s.tls("server-ca.crt"),
		"--kubelet-client-certificate=" + s.tls("client-kube-apiserver.crt"),
		"--kubelet-client-key=" + s.tls("client-kube-apiserver.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--profiling=false",
		"--proxy-client-cert-file=" + s.tls("client-auth-proxy.crt"),
		"--proxy-client-key-file=" + s.tls("client-auth-proxy.key"),
		"--requestheader-allowed-names=system:auth-proxy",
		"--requestheader-client-ca-file=" + s.tls("request-header-ca.crt"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--secure-port=" + s.Options.Text("https-listen-port"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + s.tls("service.key"),
		"--service-account-signing-key-file=" + s.tls("service.current.key"),
		"--service-cluster-ip-range=" + s.ServiceCIDR,
		"--service-node-port-range=" + s.NodePortRange,
		"--storage-backend=etcd3",
		"--tls-cert-file=" + s.tls("serving-kube-apiserver.crt"),
		"--tls-cipher-suites=" + cipherSuites,
		"--tls-private-key-file=" + s.tls("serving-kube-apiserver.key"),
		"--token-auth-file=" + s.dir("cred", "agents.csv"),
		"--v=" + s.Options.Text("v"),
	}
	if s.Options.Is("secrets-encryption") {
		path, err := s.ensureEncryption()
		if err != nil {
			return err
		}
		args = append(args, "--encryption-provider-config="+path, "--encryption-provider-config-automatic-reload=true")
	}
	return s.Group.Start(proc.Child{
		Name: "kube-apiserver", Path: s.Bin("kube-apiserver"),
		Args: node.Override(args, s.Options.List("kube-apiserver-arg")), Env: []string{"NOTIFY_SOCKET="},
	})
}

func (s *Server) startController() error {
	config := s.dir("cred", "controller.kubeconfig")
	args := []string{
		"--allocate-node-cidrs=true",
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--cluster-cidr=" + s.ClusterCIDR,
		"--cluster-signing-kube-apiserver-client-cert-file=" + s.tls("client-ca.nochain.crt"),
		"--cluster-signing-kube-apiserver-client-key-file=" + s.tls("client-ca.key"),
		"--cluster-signing-kubelet-client-cert-file=" + s.tls("client-ca.nochain.crt"),
		"--cluster-signing-kubelet-client-key-file=" + s.tls("client-ca.key"),
		"--cluster-signing-kubelet-serving-cert-file=" + s.tls("server-ca.nochain.crt"),
		"--cluster-signing-kubelet-serving-key-file=" + s.tls("server-ca.key"),
		"--cluster-signing-legacy-unknown-cert-file=" + s.tls("server-ca.nochain.crt"),
		"--cluster-signing-legacy-unknown-key-file=" + s.tls("server-ca.key"),
		"--configure-cloud-routes=false",
		"--controllers=*,tokencleaner",
		"--kubeconfig=" + config,
		// One server: waiting for a lease that its last run still holds would only cost time.
		"--leader-elect=false",
		"--profiling=false",
		"--root-ca-file=" + s.tls("server-ca.crt"),
		"--secure-port=10257",
		"--service-account-private-key-file=" + s.tls("service.current.key"),
		"--service-cluster-ip-range=" + s.ServiceCIDR,
		"--tls-cert-file=" + s.tls("kube-controller-manager/kube-controller-manager.crt"),
		"--tls-private-key-file=" + s.tls("kube-controller-manager/kube-controller-manager.key"),
		"--use-service-account-credentials=true",
		"--v=" + s.Options.Text("v"),
	}
	return s.Group.Start(proc.Child{
		Name: "kube-controller-manager", Path: s.Bin("kube-controller-manager"),
		Args: node.Override(args, s.Options.List("kube-controller-manager-arg")), Env: []string{"NOTIFY_SOCKET="},
	})
}

func (s *Server) startScheduler() error {
	if s.Options.Is("disable-scheduler") {
		return nil
	}
	config := s.dir("cred", "scheduler.kubeconfig")
	args := []string{
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--kubeconfig=" + config,
		"--leader-elect=false",
		"--profiling=false",
		"--secure-port=10259",
		"--tls-cert-file=" + s.tls("kube-scheduler/kube-scheduler.crt"),
		"--tls-private-key-file=" + s.tls("kube-scheduler/kube-scheduler.key"),
		"--v=" + s.Options.Text("v"),
	}
	return s.Group.Start(proc.Child{
		Name: "kube-scheduler", Path: s.Bin("kube-scheduler"),
		Args: node.Override(args, s.Options.List("kube-scheduler-arg")), Env: []string{"NOTIFY_SOCKET="},
	})
}
