package main

import (
	"os"
	"path/filepath"

	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/node"
)

// runKubectl uses k3s's kubeconfig unless the user says otherwise.
func runKubectl(args []string) error {
	if os.Getenv("KUBECONFIG") != "" {
		return become("kubectl", args)
	}
	path := os.Getenv("K3S_KUBECONFIG_OUTPUT")
	if path == "" {
		path = "/etc/rancher/k3s/k3s.yaml"
	}
	if _, err := os.Stat(path); err != nil {
		log.Warn("Unable to read %s, please start server with --write-kubeconfig-mode or --write-kubeconfig-group to modify kube config permissions: %v", path, err)
	}
	return become("kubectl", args, "KUBECONFIG="+path)
}

// runCtr talks to k3s's containerd, in the namespace that kubelet uses.
func runCtr(args []string) error {
	env := []string{}
	if os.Getenv("CONTAINERD_NAMESPACE") == "" {
		env = append(env, "CONTAINERD_NAMESPACE=k8s.io")
	}
	if os.Getenv("CONTAINERD_ADDRESS") == "" {
		env = append(env, "CONTAINERD_ADDRESS="+node.Address)
	}
	return become("ctr", args, env...)
}

func runCrictl(args []string) error {
	if os.Getenv("CRI_CONFIG_FILE") != "" || os.Getenv("CONTAINER_RUNTIME_ENDPOINT") != "" {
		return become("crictl", args)
	}
	return become("crictl", args, "CRI_CONFIG_FILE="+filepath.Join(defaultDataDir, "agent", "etc", "crictl.yaml"))
}
