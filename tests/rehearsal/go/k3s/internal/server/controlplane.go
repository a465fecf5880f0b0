package server

import (
	"context"
	"net/http"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/node"
	"gpunode.example/rehearsal/k3s/internal/proc"
)

func (s *Server) startControlPlane(ctx context.Context) error {
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
