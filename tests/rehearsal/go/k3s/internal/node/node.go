// Package node runs the half of k3s that every node has: containerd, kubelet, kube-proxy, Pod network, NetworkPolicies.
package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/proc"
)

// Address of containerd's socket; the same in every k3s.
const (
	State   = "/run/k3s/containerd"
	Address = State + "/containerd.sock"
)

// Node is what its parts need to know.
type Node struct {
	Name    string
	IP      string
	DataDir string
	BinDir  string
	Options *flags.Options
	Group   *proc.Group

	// APIServer is the address that this node's clients talk to.
	APIServer     string
	ClusterCIDR   string
	ServiceCIDR   string
	NodePortRange string
	ClusterDNS    string
	ClusterDomain string
	PauseImage    string
	// NoFlannel: the user brings a Pod network.
	NoFlannel     bool
	NetworkPolicy bool
	KubeProxy     bool

	// Kubeconfigs of the parts.
	KubeletConfig string
	ProxyConfig   string
	PolicyConfig  string
	// Bootstrap is the kubeconfig with which kubelet asks for its certificate; "" when it has one.
	Bootstrap string
	// ServingCert and ServingKey of kubelet; "" lets kubelet ask the cluster for one.
	ServingCert string
	ServingKey  string

	systemdCgroup bool
}

// Agent returns a path in the agent's folder.
func (n *Node) Agent(parts ...string) string {
	return filepath.Join(append([]string{n.DataDir, "agent"}, parts...)...)
}

// Bin returns the path of a component.
func (n *Node) Bin(name string) string { return filepath.Join(n.BinDir, name) }

// HostName is the node's name when none is given.
func HostName(options *flags.Options) (string, error) {
	if name := options.Text("node-name"); name != "" {
		return strings.ToLower(name), nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	return strings.ToLower(strings.TrimSpace(name)), nil
}

// HostIP is the node's address: node-ip, else the one that this host would reach others from.
func HostIP(options *flags.Options) (string, error) {
	if given := options.List("node-ip"); len(given) > 0 {
		if ip := net.ParseIP(given[0]); ip == nil || ip.To4() == nil {
			return "", fmt.Errorf("node-ip %q is no IPv4 address; IPv6 is not supported by the rehearsal's stand-in for k3s", given[0])
		}
		return given[0], nil
	}
	// Nothing is sent: connecting a UDP socket only asks the routing table.
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return "", errors.New("no default routes found in \"/proc/net/route\": give node-ip")
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String(), nil
}

// SystemdCgroup tells which cgroup driver is used. k3s takes systemd's when systemd started it; on cgroup v1 inside a
// container systemd's hierarchy is not the controllers' one, so there it is cgroupfs.
func SystemdCgroup() bool {
	if os.Getenv("INVOCATION_ID") == "" {
		return false
	}
	controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	return err == nil && strings.Contains(string(controllers), "cpuset")
}

// mayLowerOOMScore tells whether this process has CAP_SYS_RESOURCE (bit 24 of its effective set).
func mayLowerOOMScore() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			var set uint64
			if _, err := fmt.Sscanf(strings.TrimSpace(text), "%x", &set); err == nil {
				return set&(1<<24) != 0
			}
		}
	}
	return false
}
