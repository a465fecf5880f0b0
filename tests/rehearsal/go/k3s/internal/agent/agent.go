// Package agent runs `k3s agent`: a node that joins a server by its token.
package agent

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/node"
	"gpunode.example/rehearsal/k3s/internal/proc"
	"gpunode.example/rehearsal/k3s/internal/token"
)

// Agent is a node without a control plane.
type Agent struct {
	node.Node
	token token.Token
}

// New reads the options into an agent.
func New(options *flags.Options, binDir string) (*Agent, error) {
	text, err := token.FromOptions(options.Text("token"), options.Text("token-file"))
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, errors.New("--token is required")
	}
	parsed, err := token.Parse(text)
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(options.Text("server"), "/")
	if address == "" {
		return nil, errors.New("--server is required")
	}
	if parsedURL, err := url.Parse(address); err != nil || parsedURL.Scheme != "https" || parsedURL.Host == "" {
		return nil, fmt.Errorf("invalid server %q: https://<host>:6443 is expected", address)
	}
	name, err := node.HostName(options)
	if err != nil {
		return nil, err
	}
	ip, err := node.HostIP(options)
	if err != nil {
		return nil, err
	}
	a := &Agent{token: parsed}
	a.Node = node.Node{
		Name: name, IP: ip, DataDir: options.Text("data-dir"), BinDir: binDir, Options: options, Group: proc.NewGroup(),
		APIServer: address, PauseImage: options.Text("pause-image"),
	}
	// One identity serves all parts of the node: the certificate that kubelet asks for.
	a.KubeletConfig = a.Agent("kubelet.kubeconfig")
	a.ProxyConfig, a.PolicyConfig = a.KubeletConfig, a.KubeletConfig
	a.Bootstrap = a.Agent("bootstrap.kubeconfig")
	return a, nil
}

// Run joins and stays until the context or a component ends.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer a.Group.Stop()
	failed := make(chan error, 1)
	go func() {
		if err := a.bringUp(ctx); err != nil && ctx.Err() == nil {
			failed <- err
		}
	}()
	select {
	case err := <-a.Group.Ended():
		cancel(err)
		return err
	case err := <-failed:
		return err
	case <-ctx.Done():
		log.Info("Stopping: containers keep running")
		return nil
	}
}

func (a *Agent) bringUp(ctx context.Context) error {
	for _, folder := range []string{a.Agent("etc"), a.Agent("images"), a.Agent("pki")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	ca, err := a.fetchCA(ctx)
	if err != nil {
		return err
	}
	settings, err := a.settings(ctx, ca)
	if err != nil {
		return err
	}
	a.ClusterCIDR, a.ServiceCIDR, a.NodePortRange = settings["cluster-cidr"], settings["service-cidr"], settings["service-node-port-range"]
	a.ClusterDNS, a.ClusterDomain = settings["cluster-dns"], settings["cluster-domain"]
	a.NoFlannel, a.KubeProxy, a.NetworkPolicy = settings["flannel"] != "true", settings["kube-proxy"] == "true", settings["network-policy"] == "true"
	if err := os.WriteFile(a.Agent("client-ca.crt"), []byte(settings["client-ca"]), 0o644); err != nil {
		return err
	}
	if err := a.writeBootstrap(); err != nil {
		return err
	}
	if err := a.StartRuntime(ctx); err != nil {
		return err
	}
	if err := a.StartKubelet(); err != nil {
		return err
	}
	client, err := a.ownClient(ctx)
	if err != nil {
		return err
	}
	if err := a.StartNetwork(ctx, client); err != nil {
		return err
	}
	if err := a.WaitKubelet(ctx); err != nil {
		return err
	}
	go a.Routes(ctx, client)
	log.Info("k3s agent is up and running")
	if err := proc.Notify("READY=1\n"); err != nil {
		log.Warn("Failed to notify systemd: %v", err)
	}
	return nil
}

// fetchCA takes the CA that the server shows along with its certificate, and believes it if the token carries its hash.
func (a *Agent) fetchCA(ctx context.Context) ([]byte, error) {
	address, err := url.Parse(a.APIServer)
	if err != nil {
		return nil, err
	}
	var ca []byte
	limit, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err = kube.Wait(limit, "the server at "+a.APIServer, 2*time.Second, func(ctx context.Context) error {
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(ctx, "tcp", address.Host)
		if err != nil {
			log.Warn("Failed to reach the server: %v", err)
			return err
		}
		defer conn.Close()
		chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
		last := chain[len(chain)-1]
		if len(chain) < 2 || !last.IsCA {
			return fmt.Errorf("the server shows no CA along with its certificate")
		}
		ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last.Raw})
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(ca)
	switch {
	case a.token.Hash == "":
		log.Warn("Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash. Use the full token from the server's node-token file to enable Cluster CA validation.")
	case hex.EncodeToString(sum[:]) != a.token.Hash:
		return nil, fmt.Errorf("token CA hash does not match the Cluster CA certificate hash: %s != %s: take the token of this server (%s/server/token)", a.token.Hash, hex.EncodeToString(sum[:]), a.DataDir)
	}
	return ca, os.WriteFile(a.Agent("server-ca.crt"), ca, 0o644)
}

// settings asks the server what every node of the cluster has in common.
func (a *Agent) settings(ctx context.Context, ca []byte) (map[string]string, error) {
	client := kube.NewBearer(a.APIServer, ca, a.token.Password)
	var found struct {
		Data map[string]string `json:"data"`
	}
	limit, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var refused error
	err := kube.Wait(limit, "the cluster's settings from "+a.APIServer, 2*time.Second, func(ctx context.Context) error {
		err := client.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/k3s-agent-config", &found)
		var status *kube.StatusError
		if errors.As(err, &status) && status.Code == http.StatusUnauthorized {
			refused = err
			return nil
		}
		return err
	})
	if refused != nil {
		return nil, fmt.Errorf("the server refused the token: %w: take the token from server/token or server/agent-token of the server", refused)
	}
	return found.Data, err
}

func (a *Agent) writeBootstrap() error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: default
  cluster:
    server: %s
    certificate-authority: %s
users:
- name: default
  user:
    token: %q
contexts:
- name: default
  context:
    cluster: default
    user: default
current-context: default
`, a.APIServer, a.Agent("server-ca.crt"), a.token.Password)
	return os.WriteFile(a.Bootstrap, []byte(text), 0o600)
}

// ownClient waits for the certificate that kubelet asks for.
func (a *Agent) ownClient(ctx context.Context) (*kube.Client, error) {
	pair := a.Agent("pki", "kubelet-client-current.pem")
	var client *kube.Client
	limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err := kube.Wait(limit, "the node's certificate "+pair, 200*time.Millisecond, func(context.Context) error {
		var err error
		client, err = kube.New(a.APIServer, a.Agent("server-ca.crt"), pair, pair)
		return err
	})
	return client, err
}
