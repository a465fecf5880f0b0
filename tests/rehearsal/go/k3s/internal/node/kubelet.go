package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/proc"
	"gpunode.example/rehearsal/k3s/internal/resolv"
)

// StartKubelet writes kubelet's defaults, which files added to agent/etc/kubelet.conf.d and kubelet-arg override.
func (n *Node) StartKubelet() error {
	resolvConf, err := resolv.Choose(n.Options.Text("resolv-conf"), n.DataDir, resolv.Candidates)
	if err != nil {
		return err
	}
	log.Info("Pods get their nameservers from %s", resolvConf)
	dropIns := n.Agent("etc", "kubelet.conf.d")
	config, err := n.kubeletConfig(resolvConf)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	for _, folder := range []string{dropIns, n.Agent("pod-manifests"), n.Agent("images"), "/var/lib/kubelet"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	// JSON is YAML: kubelet reads it as such.
	if err := os.WriteFile(filepath.Join(dropIns, "00-k3s-defaults.conf"), append(raw, '\n'), 0o600); err != nil {
		return err
	}
	args := []string{
		"--config-dir=" + dropIns,
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.IP,
		"--kubeconfig=" + n.KubeletConfig,
		"--read-only-port=0",
		"--v=" + n.Options.Text("v"),
		// Like k3s's cloud controller: the node says that it is k3s's. Labels count when the node registers only.
		"--provider-id=k3s://" + n.Name,
		"--node-labels=" + strings.Join(append([]string{"node.kubernetes.io/instance-type=k3s"}, n.Options.List("node-label")...), ","),
	}
	if n.Bootstrap != "" {
		args = append(args, "--bootstrap-kubeconfig="+n.Bootstrap, "--cert-dir="+n.Agent("pki"))
	}
	if provider := n.Options.Text("image-credential-provider-config"); exists(provider) {
		args = append(args, "--image-credential-provider-config="+provider,
			"--image-credential-provider-bin-dir="+n.Options.Text("image-credential-provider-bin-dir"))
	}
	return n.Group.Start(proc.Child{
		Name: "kubelet",
		Path: n.Bin("kubelet"),
		Args: Override(args, n.Options.List("kubelet-arg")),
		Env:  withoutNotify(),
	})
}

// WaitKubelet waits until kubelet answers. The node object may still be the one of an earlier run, and says nothing.
func (n *Node) WaitKubelet(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	const address = "http://127.0.0.1:10248/healthz"
	return kube.Wait(limit, "kubelet at "+address, 100*time.Millisecond, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("HTTP %d", answer.StatusCode)
		}
		return nil
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (n *Node) kubeletConfig(resolvConf string) (map[string]any, error) {
	taints, err := Taints(n.Options.List("node-taint"))
	if err != nil {
		return nil, err
	}
	driver := "cgroupfs"
	if n.systemdCgroup {
		driver = "systemd"
	}
	config := map[string]any{
		"apiVersion":    "kubelet.config.k8s.io/v1beta1",
		"kind":          "KubeletConfiguration",
		"address":       "0.0.0.0",
		"staticPodPath": n.Agent("pod-manifests"),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true, "cacheTTL": "2m0s"},
			"x509":      map[string]any{"clientCAFile": n.Agent("client-ca.crt")},
		},
		"authorization": map[string]any{
			"mode":    "Webhook",
			"webhook": map[string]any{"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
		},
		"cgroupDriver":             driver,
		"clusterDNS":               []string{n.ClusterDNS},
		"clusterDomain":            n.ClusterDomain,
		"containerRuntimeEndpoint": "unix://" + Address,
		"resolvConf":               resolvConf,
		"healthzBindAddress":       "127.0.0.1",
		"serializeImagePulls":      false,
		"failSwapOn":               false,
		// The host of a rehearsal may be a cgroup v1 one, which kubelet 1.35 and later refuses unless told so.
		"failCgroupV1": false,
		// k3s's own limits: percentages of the disk, no limit on memory.
		"evictionHard":           map[string]string{"imagefs.available": "5%", "nodefs.available": "5%"},
		"evictionMinimumReclaim": map[string]string{"imagefs.available": "10%", "nodefs.available": "10%"},
		"protectKernelDefaults":  n.Options.Is("protect-kernel-defaults"),
		"rotateCertificates":     n.Bootstrap != "",
	}
	if n.ServingCert != "" {
		config["tlsCertFile"], config["tlsPrivateKeyFile"] = n.ServingCert, n.ServingKey
	} else {
		config["serverTLSBootstrap"] = true
	}
	if len(taints) > 0 {
		config["registerWithTaints"] = taints
	}
	return config, nil
}

// Taint is one taint with which a node registers.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Taints reads key=value:Effect and key:Effect.
func Taints(texts []string) ([]Taint, error) {
	var taints []Taint
	for _, text := range texts {
		rest, effect, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("invalid taint %q: key=value:Effect is expected", text)
		}
		switch effect {
		case "NoSchedule", "PreferNoSchedule", "NoExecute":
		default:
			return nil, fmt.Errorf("invalid taint %q: %q is no effect (NoSchedule, PreferNoSchedule, NoExecute)", text, effect)
		}
		key, value, _ := strings.Cut(rest, "=")
		taints = append(taints, Taint{key, value, effect})
	}
	return taints, nil
}
