package server

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/pki"
)

// authorities are the CAs of a server, by the path below server/tls.
var authorities = map[string]string{
	"server-ca":         "k3s-server-ca",
	"client-ca":         "k3s-client-ca",
	"request-header-ca": "k3s-request-header-ca",
	"etcd/server-ca":    "etcd-server-ca",
	"etcd/peer-ca":      "etcd-peer-ca",
}

// signed are the certificates below each CA. The names are k3s's.
func (s *Server) signed() map[string][]pki.Request {
	client := func(name, user string, groups ...string) pki.Request {
		return pki.Request{Path: s.tls("client-" + name), CommonName: user, Organization: groups, Client: true}
	}
	local := []string{"localhost", "127.0.0.1"}
	return map[string][]pki.Request{
		"client-ca": {
			client("admin", "system:admin", "system:masters"),
			client("controller", "system:kube-controller-manager"),
			client("scheduler", "system:kube-scheduler"),
			client("kube-apiserver", "system:apiserver", "system:masters"),
			client("kube-proxy", "system:kube-proxy"),
			client("k3s-controller", "system:k3s-controller"),
			client("supervisor", "system:k3s-supervisor", "system:masters"),
			{Path: s.agent("client-kubelet"), CommonName: "system:node:" + s.Name, Organization: []string{"system:nodes"}, Client: true},
			{Path: s.agent("client-kube-proxy"), CommonName: "system:kube-proxy", Client: true},
			{Path: s.agent("client-k3s-controller"), CommonName: "system:k3s-controller", Client: true},
		},
		"server-ca": {
			{Path: s.tls("serving-kube-apiserver"), CommonName: "kube-apiserver", Server: true, Hosts: s.apiHosts()},
			{Path: s.tls("kube-controller-manager/kube-controller-manager"), CommonName: "kube-controller-manager", Server: true, Hosts: local},
			{Path: s.tls("kube-scheduler/kube-scheduler"), CommonName: "kube-scheduler", Server: true, Hosts: local},
			{Path: s.agent("serving-kubelet"), CommonName: s.Name, Server: true, Hosts: append([]string{s.Name, s.IP}, local...)},
		},
		"request-header-ca": {client("auth-proxy", "system:auth-proxy")},
		"etcd/server-ca": {
			{Path: s.tls("etcd/server-client"), CommonName: "etcd-server", Server: true, Client: true, Hosts: append([]string{s.Name, s.IP}, local...)},
			{Path: s.tls("etcd/client"), CommonName: "etcd-client", Client: true},
		},
		"etcd/peer-ca": {
			{Path: s.tls("etcd/peer-server-client"), CommonName: "etcd-peer", Server: true, Client: true, Hosts: append([]string{s.Name, s.IP}, local...)},
		},
	}
}

// apiHosts are the names by which the API server is called from inside, from this host, and from where tls-san says.
func (s *Server) apiHosts() []string {
	hosts := []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + s.ClusterDomain,
		"localhost", "127.0.0.1", s.Name, s.IP, s.serviceIP().String(),
	}
	if advertised := s.Options.Text("advertise-address"); advertised != "" {
		hosts = append(hosts, advertised)
	}
	return append(hosts, s.Options.List("tls-san")...)
}

// serviceIP is the first address of the Services' range: the Service kubernetes.
func (s *Server) serviceIP() net.IP {
	base, _, err := net.ParseCIDR(s.ServiceCIDR)
	if err != nil {
		return net.IPv4zero
	}
	ip := base.To4()
	return net.IPv4(ip[0], ip[1], ip[2], ip[3]+1)
}

// ensureCertificates makes what is missing or near its end, and hands the agent's folder its copies.
func (s *Server) ensureCertificates() error {
	now := time.Now()
	for path, requests := range s.signed() {
		ca, err := pki.EnsureCA(s.tls(path), authorities[path], now)
		if err != nil {
			return err
		}
		for _, request := range requests {
			made, err := ca.Ensure(request, now)
			if err != nil {
				return fmt.Errorf("certificate %s: %w", request.Path, err)
			}
			if made {
				log.Info("certificate CN=%s signed by CN=%s: notAfter=%s", request.CommonName, ca.Cert.Subject.CommonName, now.AddDate(0, 0, 365).UTC().Format(time.RFC3339))
			}
		}
	}
	for _, name := range []string{"client-ca.crt", "server-ca.crt"} {
		if err := copyFile(s.tls(name), s.agent(name)); err != nil {
			return err
		}
	}
	// controller-manager signs for kubelets with the bare CA; the names are k3s's.
	for _, name := range []string{"client-ca", "server-ca"} {
		if err := copyFile(s.tls(name+".crt"), s.tls(name+".nochain.crt")); err != nil {
			return err
		}
	}
	if err := pki.EnsureServiceKey(s.tls("service.key")); err != nil {
		return err
	}
	if _, err := os.Stat(s.tls("service.current.key")); err == nil {
		return nil
	}
	return copyFile(s.tls("service.key"), s.tls("service.current.key"))
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
