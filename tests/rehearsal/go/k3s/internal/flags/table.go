// Package flags knows the options of k3s, and what the stand-in does with each.
package flags

// Kind is the type of an option's value.
type Kind int

// The types of values that k3s has.
const (
	Text Kind = iota
	Switch
	List
	Number
	Duration
)

// Care is what the stand-in does with an option.
type Care int

const (
	// Honoured options do what they do in k3s.
	Honoured Care = iota
	// Ignored options are accepted with a warning, since what they tune is not in the stand-in.
	Ignored
	// Refused options end the start: going on would pretend something that is not so.
	Refused
)

// Command says which subcommand knows an option.
type Command int

// An option may belong to more than one subcommand.
const (
	Server Command = 1 << iota
	Agent
)

// Flag is one option.
type Flag struct {
	Name    string
	Short   string
	Env     string
	Kind    Kind
	Default string
	On      Command
	Care    Care
	// Note explains Ignored and Refused.
	Note string
}

const both = Server | Agent

// Table holds the options of `k3s server` and `k3s agent` of the release that the stand-in answers for.
var Table = []Flag{
	{Name: "config", Short: "c", Env: "K3S_CONFIG_FILE", Default: "/etc/rancher/k3s/config.yaml", On: both},
	{Name: "data-dir", Short: "d", Env: "K3S_DATA_DIR", Default: "/var/lib/rancher/k3s", On: both},
	{Name: "token", Short: "t", Env: "K3S_TOKEN", On: both},
	{Name: "token-file", Env: "K3S_TOKEN_FILE", On: both},
	{Name: "agent-token", Env: "K3S_AGENT_TOKEN", On: Server},
	{Name: "agent-token-file", Env: "K3S_AGENT_TOKEN_FILE", On: Server},
	{Name: "server", Short: "s", Env: "K3S_URL", On: both},

	// listener
	{Name: "bind-address", Default: "0.0.0.0", On: both},
	{Name: "https-listen-port", Kind: Number, Default: "6443", On: Server},
	{Name: "advertise-address", On: Server},
	{Name: "advertise-port", Kind: Number, On: Server},
	{Name: "tls-san", Kind: List, On: Server},
	{Name: "tls-san-security", Kind: Switch, Default: "true", On: Server, Care: Ignored, Note: "names are never added to the certificate at run time"},

	// networking
	{Name: "cluster-cidr", Kind: List, Default: "10.42.0.0/16", On: Server},
	{Name: "service-cidr", Kind: List, Default: "10.43.0.0/16", On: Server},
	{Name: "service-node-port-range", Default: "30000-32767", On: Server},
	{Name: "cluster-dns", Kind: List, Default: "10.43.0.10", On: Server},
	{Name: "cluster-domain", Default: "cluster.local", On: Server},
	{Name: "flannel-backend", Default: "vxlan", On: Server},
	{Name: "flannel-ipv6-masq", Kind: Switch, On: Server, Care: Refused, Note: "IPv4 only"},
	{Name: "flannel-external-ip", Kind: Switch, On: Server, Care: Refused, Note: "there is no flannel: nodes route to each other's internal address"},
	{Name: "flannel-iface", On: both, Care: Ignored, Note: "there is no flannel: routes follow the node address"},
	{Name: "flannel-conf", On: both, Care: Refused, Note: "there is no flannel"},
	{Name: "flannel-cni-conf", On: both, Care: Refused, Note: "there is no flannel"},
	{Name: "egress-selector-mode", Default: "agent", On: Server, Care: Ignored, Note: "the API server reaches kubelets directly"},
	{Name: "servicelb-namespace", Default: "kube-system", On: Server, Care: Ignored, Note: "servicelb is not carried"},
	{Name: "vpn-auth", Env: "K3S_VPN_AUTH", On: both, Care: Refused, Note: "there is no flannel"},
	{Name: "vpn-auth-file", Env: "K3S_VPN_AUTH_FILE", On: both, Care: Refused, Note: "there is no flannel"},

	// client
	{Name: "write-kubeconfig", Short: "o", Env: "K3S_KUBECONFIG_OUTPUT", Default: "/etc/rancher/k3s/k3s.yaml", On: Server},
	{Name: "write-kubeconfig-mode", Env: "K3S_KUBECONFIG_MODE", Default: "0600", On: Server},
	{Name: "write-kubeconfig-group", Env: "K3S_KUBECONFIG_GROUP", On: Server},

	// components' own flags
	{Name: "kube-apiserver-arg", Kind: List, On: Server},
	{Name: "etcd-arg", Kind: List, On: Server},
	{Name: "kube-controller-manager-arg", Kind: List, On: Server},
	{Name: "kube-scheduler-arg", Kind: List, On: Server},
	{Name: "kube-cloud-controller-manager-arg", Kind: List, On: Server, Care: Ignored, Note: "no cloud controller is carried"},
	{Name: "kubelet-arg", Kind: List, On: both},
	{Name: "kube-proxy-arg", Kind: List, On: both},

	// datastore
	{Name: "cluster-init", Env: "K3S_CLUSTER_INIT", Kind: Switch, On: Server, Care: Honoured},
	{Name: "cluster-reset", Env: "K3S_CLUSTER_RESET", Kind: Switch, On: Server},
	{Name: "cluster-reset-restore-path", On: Server},
	{Name: "datastore-endpoint", Env: "K3S_DATASTORE_ENDPOINT", On: Server, Care: Refused, Note: "the datastore is the etcd that is carried"},
	{Name: "datastore-cafile", Env: "K3S_DATASTORE_CAFILE", On: Server, Care: Refused, Note: "the datastore is the etcd that is carried"},
	{Name: "datastore-certfile", Env: "K3S_DATASTORE_CERTFILE", On: Server, Care: Refused, Note: "the datastore is the etcd that is carried"},
	{Name: "datastore-keyfile", Env: "K3S_DATASTORE_KEYFILE", On: Server, Care: Refused, Note: "the datastore is the etcd that is carried"},
	{Name: "etcd-expose-metrics", Kind: Switch, On: Server},
	{Name: "etcd-disable-snapshots", Kind: Switch, On: Server, Care: Honoured},
	{Name: "etcd-snapshot-name", Default: "etcd-snapshot", On: Server},
	{Name: "etcd-snapshot-schedule-cron", Default: "0 */12 * * *", On: Server, Care: Ignored, Note: "snapshots are taken by `k3s etcd-snapshot save` only"},
	{Name: "etcd-snapshot-retention", Kind: Number, Default: "5", On: Server},
	{Name: "etcd-snapshot-dir", On: Server},
	{Name: "etcd-snapshot-compress", Kind: Switch, On: Server, Care: Refused, Note: "snapshots are not compressed"},
	{Name: "etcd-s3", Kind: Switch, On: Server, Care: Refused, Note: "snapshots stay on the node"},

	// components
	{Name: "default-local-storage-path", On: Server, Care: Ignored, Note: "local-storage is not carried"},
	{Name: "helm-job-image", On: Server, Care: Ignored, Note: "the helm controller is not carried"},
	{Name: "disable", Kind: List, On: Server},
	{Name: "disable-scheduler", Kind: Switch, On: Server},
	{Name: "disable-cloud-controller", Kind: Switch, On: Server, Care: Honoured},
	{Name: "disable-kube-proxy", Kind: Switch, On: Server},
	{Name: "disable-network-policy", Kind: Switch, On: Server},
	{Name: "disable-helm-controller", Kind: Switch, On: Server, Care: Honoured},
	{Name: "disable-apiserver", Kind: Switch, On: Server, Care: Refused, Note: "one server holds the whole control plane"},
	{Name: "disable-controller-manager", Kind: Switch, On: Server, Care: Refused, Note: "one server holds the whole control plane"},
	{Name: "disable-etcd", Kind: Switch, On: Server, Care: Refused, Note: "one server holds the whole control plane"},
	{Name: "disable-agent", Kind: Switch, On: Server, Care: Refused, Note: "the server is a node too"},
	{Name: "embedded-registry", Kind: Switch, On: Server, Care: Refused, Note: "the distributed registry is not carried"},
	{Name: "supervisor-metrics", Kind: Switch, On: Server, Care: Ignored, Note: "the supervisor has no metrics"},
	{Name: "secrets-encryption", Env: "K3S_SECRETS_ENCRYPTION", Kind: Switch, On: Server},
	{Name: "secrets-encryption-provider", Default: "aescbc", On: Server},
	{Name: "enable-pprof", Kind: Switch, On: both, Care: Ignored, Note: "the supervisor has no port"},

	// node
	{Name: "node-name", Env: "K3S_NODE_NAME", On: both},
	{Name: "with-node-id", Kind: Switch, On: both, Care: Refused, Note: "the node is named by node-name or its host name"},
	{Name: "node-label", Kind: List, On: both},
	{Name: "node-taint", Kind: List, On: both},
	{Name: "node-ip", Short: "i", Kind: List, On: both},
	{Name: "node-external-ip", Kind: List, On: both, Care: Ignored, Note: "no cloud controller is carried that would publish it"},
	{Name: "node-internal-dns", Kind: List, On: both, Care: Ignored, Note: "no cloud controller is carried that would publish it"},
	{Name: "node-external-dns", Kind: List, On: both, Care: Ignored, Note: "no cloud controller is carried that would publish it"},
	{Name: "resolv-conf", Env: "K3S_RESOLV_CONF", On: both},
	{Name: "protect-kernel-defaults", Kind: Switch, On: both},
	{Name: "selinux", Env: "K3S_SELINUX", Kind: Switch, On: both},
	{Name: "lb-server-port", Env: "K3S_LB_SERVER_PORT", Kind: Number, Default: "6444", On: both, Care: Ignored, Note: "an agent talks to its server directly"},
	{Name: "image-credential-provider-bin-dir", Default: "/var/lib/rancher/credentialprovider/bin", On: both},
	{Name: "image-credential-provider-config", Default: "/var/lib/rancher/credentialprovider/config.yaml", On: both},

	// runtime
	{Name: "docker", Kind: Switch, On: both, Care: Refused, Note: "containerd is the only runtime"},
	{Name: "container-runtime-endpoint", On: both, Care: Refused, Note: "containerd is the only runtime"},
	{Name: "image-service-endpoint", On: both, Care: Refused, Note: "containerd is the only image service"},
	{Name: "default-runtime", On: both},
	{Name: "nonroot-devices", Kind: Switch, On: both},
	{Name: "disable-default-registry-endpoint", Kind: Switch, On: both},
	{Name: "pause-image", Default: "rancher/mirrored-pause:3.6", On: both},
	{Name: "snapshotter", Default: "overlayfs", On: both},
	{Name: "private-registry", Default: "/etc/rancher/k3s/registries.yaml", On: both},
	{Name: "system-default-registry", Env: "K3S_SYSTEM_DEFAULT_REGISTRY", On: Server},
	{Name: "airgap-extra-registry", Kind: List, On: both, Care: Ignored, Note: "imported images keep their names"},
	{Name: "disable-apiserver-lb", Kind: Switch, On: Agent, Care: Ignored, Note: "an agent talks to its server directly"},
	{Name: "prefer-bundled-bin", Kind: Switch, On: both, Care: Ignored, Note: "the host's iptables, ipset and conntrack are used"},
	{Name: "rootless", Kind: Switch, On: both, Care: Refused, Note: "k3s runs as root here"},

	// logging
	{Name: "debug", Env: "K3S_DEBUG", Kind: Switch, On: both, Care: Ignored, Note: "use v"},
	{Name: "v", Kind: Number, Default: "0", On: both},
	{Name: "vmodule", On: both, Care: Ignored, Note: "use v"},
	{Name: "log", Short: "l", On: both, Care: Ignored, Note: "logs go to the journal"},
	{Name: "alsologtostderr", Kind: Switch, On: both, Care: Ignored, Note: "logs go to the journal"},
}

func find(name string, on Command) (Flag, bool) {
	for _, flag := range Table {
		if flag.On&on != 0 && (flag.Name == name || (flag.Short != "" && flag.Short == name)) {
			return flag, true
		}
	}
	return Flag{}, false
}
