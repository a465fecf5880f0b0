package server

import (
	"errors"
	"os"

	"gpunode.example/rehearsal/k3s/internal/node"
	"gpunode.example/rehearsal/k3s/internal/proc"
)

// cipherSuites are those that k3s allows.
const cipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384," +
	"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

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
