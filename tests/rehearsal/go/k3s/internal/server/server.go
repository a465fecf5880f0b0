// Package server runs `k3s server`: the control plane, and the node half on the same machine.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"gpunode.example/rehearsal/k3s/internal/deploy"
	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/node"
	"gpunode.example/rehearsal/k3s/internal/proc"
	"gpunode.example/rehearsal/k3s/internal/token"
)

// Server is a running server with its node.
type Server struct {
	node.Node
	client *kube.Client
}

func (s *Server) dir(parts ...string) string {
	return filepath.Join(append([]string{s.DataDir, "server"}, parts...)...)
}
func (s *Server) tls(name string) string   { return s.dir("tls", name) }
func (s *Server) agent(name string) string { return s.Agent(name) }
func (s *Server) local() string {
	return "https://127.0.0.1:" + s.Options.Text("https-listen-port")
}

// New reads the options into a server; nothing is written yet.
func New(options *flags.Options, binDir string) (*Server, error) {
	if options.Text("server") != "" {
		return nil, errors.New("joining a second server is not supported by the rehearsal's stand-in for k3s: agents can join (`k3s agent`)")
	}
	name, err := node.HostName(options)
	if err != nil {
		return nil, err
	}
	ip, err := node.HostIP(options)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.Node = node.Node{
		Name:          name,
		IP:            ip,
		DataDir:       options.Text("data-dir"),
		BinDir:        binDir,
		Options:       options,
		Group:         proc.NewGroup(),
		ClusterCIDR:   options.Text("cluster-cidr"),
		ServiceCIDR:   options.Text("service-cidr"),
		NodePortRange: options.Text("service-node-port-range"),
		ClusterDNS:    options.Text("cluster-dns"),
		ClusterDomain: options.Text("cluster-domain"),
		PauseImage:    registry(options) + options.Text("pause-image"),
		NoFlannel:     options.Text("flannel-backend") == "none",
		NetworkPolicy: !options.Is("disable-network-policy"),
		KubeProxy:     !options.Is("disable-kube-proxy"),
	}
	s.APIServer = s.local()
	s.KubeletConfig, s.ProxyConfig, s.PolicyConfig = s.agent("kubelet.kubeconfig"), s.agent("kubeproxy.kubeconfig"), s.agent("k3scontroller.kubeconfig")
	s.ServingCert, s.ServingKey = s.agent("serving-kubelet.crt"), s.agent("serving-kubelet.key")
	return s, nil
}

// registry is the prefix of system images.
func registry(options *flags.Options) string {
	if prefix := options.Text("system-default-registry"); prefix != "" {
		return strings.TrimSuffix(prefix, "/") + "/"
	}
	return ""
}

// Run brings everything up and stays until the context ends (then all but the containers is stopped) or a component
// ends (then so does the server, with an error).
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.Group.Stop()
	failed := make(chan error, 1)
	go func() {
		if err := s.bringUp(ctx); err != nil && ctx.Err() == nil {
			failed <- err
		}
	}()
	select {
	case err := <-s.Group.Ended():
		cancel(err)
		return err
	case err := <-failed:
		return err
	case <-ctx.Done():
		log.Info("Stopping: containers keep running")
		return nil
	}
}

func (s *Server) bringUp(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.restore(); err != nil {
		return err
	}
	runtime := make(chan error, 1)
	go func() { runtime <- s.StartRuntime(ctx) }()
	if err := s.startControlPlane(ctx); err != nil {
		return err
	}
	if err := <-runtime; err != nil {
		return err
	}
	if err := s.StartKubelet(); err != nil {
		return err
	}
	controller := &deploy.Controller{Client: s.client, Folder: s.dir("manifests"), Node: s.Name, Disabled: s.Options.List("disable")}
	go controller.Run(ctx)
	if err := s.publishAgentConfig(ctx); err != nil {
		return err
	}
	if err := s.StartNetwork(ctx, s.client); err != nil {
		return err
	}
	if err := s.WaitKubelet(ctx); err != nil {
		return err
	}
	if err := s.markNode(ctx); err != nil {
		return err
	}
	go s.Routes(ctx, s.client)
	go s.serveNodes(ctx)
	log.Info("k3s is up and running")
	if err := proc.Notify("READY=1\n"); err != nil {
		log.Warn("Failed to notify systemd: %v", err)
	}
	return nil
}

// checkPort says at once what would otherwise be found late, and in the API server's words.
func (s *Server) checkPort() error {
	address := net.JoinHostPort(s.Options.Text("bind-address"), s.Options.Text("https-listen-port"))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("starting kubernetes: preparing server: init cluster datastore and https: %w", err)
	}
	return listener.Close()
}

// prepare writes the files that the components read.
func (s *Server) prepare() error {
	if err := s.checkPort(); err != nil {
		return err
	}
	for _, folder := range []string{s.dir("tls"), s.dir("cred"), s.dir("manifests"), s.Agent("etc"), s.Agent("images")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	if err := s.ensureCertificates(); err != nil {
		return err
	}
	if err := s.ensureTokens(); err != nil {
		return err
	}
	if err := s.writeKubeconfigs(); err != nil {
		return err
	}
	return deploy.Stage(s.dir("manifests"), s.Options.List("disable"), map[string]string{
		"CLUSTER_DNS":             s.ClusterDNS,
		"CLUSTER_DOMAIN":          s.ClusterDomain,
		"SYSTEM_DEFAULT_REGISTRY": registry(s.Options),
	})
}

func (s *Server) ensureTokens() error {
	given, err := token.FromOptions(s.Options.Text("token"), s.Options.Text("token-file"))
	if err != nil {
		return err
	}
	kept, err := os.ReadFile(s.dir("token"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	password, err := token.Password(given, string(kept))
	if err != nil {
		return err
	}
	agentPassword, err := token.FromOptions(s.Options.Text("agent-token"), s.Options.Text("agent-token-file"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(s.tls("server-ca.crt"))
	if err != nil {
		return err
	}
	if agentPassword == "" {
		agentPassword = password
	}
	// An agent shows its password to the API server itself (k3s has a supervisor port in between), which lets it ask
	// for a node certificate and nothing else.
	users := fmt.Sprintf("%s,system:bootstrap:k3s-agent,k3s-agent,\"system:bootstrappers\"\n", agentPassword)
	if agentPassword != password {
		users += fmt.Sprintf("%s,system:bootstrap:k3s-server,k3s-server,\"system:bootstrappers\"\n", password)
	}
	if err := os.WriteFile(s.dir("cred", "agents.csv"), []byte(users), 0o600); err != nil {
		return err
	}
	return token.Write(s.dir(), ca, password, agentPassword)
}

func (s *Server) writeKubeconfigs() error {
	caFile := s.tls("server-ca.crt")
	write := func(path, pair string) error {
		config := kube.Kubeconfig{Server: s.local(), CAFile: caFile, CertFile: pair + ".crt", KeyFile: pair + ".key"}
		return config.Write(path, 0o600)
	}
	for path, pair := range map[string]string{
		s.dir("cred", "admin.kubeconfig"):      s.tls("client-admin"),
		s.dir("cred", "controller.kubeconfig"): s.tls("client-controller"),
		s.dir("cred", "scheduler.kubeconfig"):  s.tls("client-scheduler"),
		s.KubeletConfig:                        s.agent("client-kubelet"),
		s.ProxyConfig:                          s.agent("client-kube-proxy"),
		s.PolicyConfig:                         s.agent("client-k3s-controller"),
	} {
		if err := write(path, pair); err != nil {
			return err
		}
	}
	return nil
}

// writeUserKubeconfig writes k3s.yaml for people; it comes last, since it is taken as a sign that the API answers.
func (s *Server) writeUserKubeconfig() error {
	mode, err := strconv.ParseUint(s.Options.Text("write-kubeconfig-mode"), 8, 32)
	if err != nil {
		return fmt.Errorf("write-kubeconfig-mode %q is no octal mode", s.Options.Text("write-kubeconfig-mode"))
	}
	path := s.Options.Text("write-kubeconfig")
	config := kube.Kubeconfig{Server: s.local(), CAFile: s.tls("server-ca.crt"), CertFile: s.tls("client-admin.crt"), KeyFile: s.tls("client-admin.key"), Embed: true}
	if err := config.Write(path, os.FileMode(mode)); err != nil {
		return err
	}
	log.Info("Wrote kubeconfig %s", path)
	group := s.Options.Text("write-kubeconfig-group")
	if group == "" {
		return nil
	}
	id, err := strconv.Atoi(group)
	if err != nil {
		found, err := user.LookupGroup(group)
		if err != nil {
			return err
		}
		if id, err = strconv.Atoi(found.Gid); err != nil {
			return err
		}
	}
	return os.Chown(path, 0, id)
}
