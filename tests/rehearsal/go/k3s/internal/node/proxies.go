package node

import "gpunode.example/rehearsal/k3s/internal/proc"

func (n *Node) startProxy() error {
	if !n.KubeProxy {
		return nil
	}
	args := []string{
		"--proxy-mode=iptables",
		"--healthz-bind-address=127.0.0.1",
		"--kubeconfig=" + n.ProxyConfig,
		"--cluster-cidr=" + n.ClusterCIDR,
		"--hostname-override=" + n.Name,
		// The host's limits are the host's business, and in a container they cannot be written.
		"--conntrack-max-per-core=0",
		"--conntrack-min=0",
		"--conntrack-tcp-timeout-established=0s",
		"--conntrack-tcp-timeout-close-wait=0s",
		"--v=" + n.Options.Text("v"),
	}
	return n.Group.Start(proc.Child{
		Name: "kube-proxy",
		Path: n.Bin("kube-proxy"),
		Args: Override(args, n.Options.List("kube-proxy-arg")),
		Env:  withoutNotify(),
	})
}

// startPolicies runs the NetworkPolicy controller that k3s embeds (kube-router) as a process.
func (n *Node) startPolicies() error {
	if !n.NetworkPolicy {
		return nil
	}
	return n.Group.Start(proc.Child{
		Name: "kube-router",
		Path: n.Bin("kube-router"),
		Args: []string{
			"--run-firewall=true",
			"--run-router=false",
			"--run-service-proxy=false",
			"--run-loadbalancer=false",
			"--kubeconfig=" + n.PolicyConfig,
			"--hostname-override=" + n.Name,
			"--service-cluster-ip-range=" + n.ServiceCIDR,
			"--service-node-port-range=" + n.NodePortRange,
			"--health-port=0",
			"--metrics-port=0",
		},
		Env: withoutNotify(),
	})
}
