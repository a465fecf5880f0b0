package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
)

// StartNetwork waits for the node's range of Pod addresses, then sets up what stands where k3s has flannel: the CNI
// plugin bridge on cni0 with host-local addresses, masquerading, and routes to the other nodes' ranges.
func (n *Node) StartNetwork(ctx context.Context, client *kube.Client) error {
	if err := n.startProxy(); err != nil {
		return err
	}
	podCIDR, err := n.podCIDR(ctx, client)
	if err != nil {
		return err
	}
	if !n.NoFlannel {
		if err := forwarding(); err != nil {
			return err
		}
		if err := n.masquerade(); err != nil {
			return err
		}
		if err := n.writeCNI(podCIDR); err != nil {
			return err
		}
	}
	return n.startPolicies()
}

func (n *Node) podCIDR(ctx context.Context, client *kube.Client) (string, error) {
	limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var cidr string
	err := kube.Wait(limit, "node "+n.Name+" to register and get its range of Pod addresses", 200*time.Millisecond, func(ctx context.Context) error {
		var node struct {
			Spec struct {
				PodCIDR string `json:"podCIDR"`
			} `json:"spec"`
		}
		if err := client.Get(ctx, "/api/v1/nodes/"+n.Name, &node); err != nil {
			return err
		}
		if cidr = node.Spec.PodCIDR; cidr == "" {
			return fmt.Errorf("spec.podCIDR of the node is empty")
		}
		return nil
	})
	return cidr, err
}

func forwarding() error {
	for _, path := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/bridge/bridge-nf-call-iptables"} {
		// br_netfilter may be missing, or belong to a host that does not let a container write it.
		if err := os.WriteFile(path, []byte("1"), 0o644); err != nil && strings.HasSuffix(path, "ip_forward") {
			return err
		}
	}
	return nil
}

// masquerade lets Pods reach the world, and lets the host forward their packets. The comment holds the word by which
// k3s-killall.sh finds the rules of k3s's Pod network.
func (n *Node) masquerade() error {
	const comment = "flannel stand-in"
	rules := [][]string{
		{"nat", "POSTROUTING", "-s", n.ClusterCIDR, "!", "-d", n.ClusterCIDR, "-m", "comment", "--comment", comment, "-j", "MASQUERADE"},
		{"filter", "FORWARD", "-s", n.ClusterCIDR, "-m", "comment", "--comment", comment, "-j", "ACCEPT"},
		{"filter", "FORWARD", "-d", n.ClusterCIDR, "-m", "comment", "--comment", comment, "-j", "ACCEPT"},
	}
	for _, rule := range rules {
		spec := append([]string{"-w", "5", "-t", rule[0], "-C", rule[1]}, rule[2:]...)
		if exec.Command("iptables", spec...).Run() == nil {
			continue
		}
		spec[4] = "-A"
		if output, err := exec.Command("iptables", spec...).CombinedOutput(); err != nil {
			return fmt.Errorf("iptables %s: %w: %s", strings.Join(spec, " "), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

func (n *Node) writeCNI(podCIDR string) error {
	network := map[string]any{
		"name":       "cbr0",
		"cniVersion": "1.0.0",
		"plugins": []any{
			map[string]any{
				"type":             "bridge",
				"bridge":           "cni0",
				"hairpinMode":      true,
				"isDefaultGateway": true,
				"forceAddress":     true,
				"ipMasq":           false,
				"ipam": map[string]any{
					"type":   "host-local",
					"ranges": []any{[]any{map[string]string{"subnet": podCIDR}}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}},
		},
	}
	raw, err := json.MarshalIndent(network, "", "  ")
	if err != nil {
		return err
	}
	folder := n.Agent("etc", "cni", "net.d")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "10-flannel.conflist"), append(raw, '\n'), 0o600)
}
