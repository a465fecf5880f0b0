package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/containerd"
	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/proc"
)

// StartRuntime writes containerd's configuration, starts it, and imports the archives in agent/images.
func (n *Node) StartRuntime(ctx context.Context) error {
	folder := n.Agent("etc", "containerd")
	config, err := n.runtimeConfig(folder)
	if err != nil {
		return err
	}
	files, err := config.PrivateRegistryConfig.Hosts(n.Options.Is("disable-default-registry-endpoint"))
	if err != nil {
		return err
	}
	if err := containerd.WriteHosts(filepath.Join(folder, "certs.d"), files); err != nil {
		return err
	}
	if err := containerd.Write(folder, config); err != nil {
		return err
	}
	crictl := fmt.Sprintf("runtime-endpoint: unix://%s\n", Address)
	if err := os.WriteFile(n.Agent("etc", "crictl.yaml"), []byte(crictl), 0o600); err != nil {
		return err
	}
	if err := n.startContainerd(folder); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = kube.Wait(limit, "containerd to answer at "+Address, 100*time.Millisecond, func(context.Context) error {
		conn, err := net.Dial("unix", Address)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	return n.importImages()
}

func (n *Node) runtimeConfig(folder string) (containerd.Config, error) {
	registries, err := containerd.ReadRegistries(n.Options.Text("private-registry"))
	if err != nil {
		return containerd.Config{}, err
	}
	config := containerd.Config{
		SystemdCgroup:         n.systemdCgroup,
		EnableUnprivileged:    true,
		ExtraRuntimes:         containerd.FindRuntimes(),
		PrivateRegistryConfig: registries,
		Program:               "k3s",
		RestrictOOMScoreAdj:   !mayLowerOOMScore(),
	}
	config.NodeConfig.Containerd.Root = n.Agent("containerd")
	config.NodeConfig.Containerd.State = State
	config.NodeConfig.Containerd.Address = Address
	config.NodeConfig.Containerd.Opt = n.Agent("containerd")
	config.NodeConfig.Containerd.Config = filepath.Join(folder, "config-v3.toml")
	config.NodeConfig.Containerd.Template = filepath.Join(folder, "config-v3.toml.tmpl")
	config.NodeConfig.Containerd.Registry = filepath.Join(folder, "certs.d")
	config.NodeConfig.SELinux = n.Options.Is("selinux")
	config.NodeConfig.NoFlannel = n.NoFlannel
	config.NodeConfig.DefaultRuntime = n.Options.Text("default-runtime")
	config.NodeConfig.NonrootDevices = n.Options.Is("nonroot-devices")
	config.NodeConfig.AgentConfig.PauseImage = n.PauseImage
	config.NodeConfig.AgentConfig.Snapshotter = n.Options.Text("snapshotter")
	config.NodeConfig.AgentConfig.CNIBinDir = filepath.Join(n.DataDir, "data", "current", "bin")
	config.NodeConfig.AgentConfig.CNIConfDir = n.Agent("etc", "cni", "net.d")
	config.NodeConfig.AgentConfig.Systemd = n.systemdCgroup
	handlers := make([]string, 0, len(config.ExtraRuntimes))
	for handler := range config.ExtraRuntimes {
		handlers = append(handlers, handler)
	}
	sort.Strings(handlers)
	for _, handler := range handlers {
		log.Info("Found %s container runtime at %s", handler, config.ExtraRuntimes[handler].BinaryName)
	}
	return config, nil
}

// startContainerd sends containerd's log to a file of its own, where k3s has it.
func (n *Node) startContainerd(folder string) error {
	if err := os.MkdirAll(n.Agent("containerd"), 0o711); err != nil {
		return err
	}
	path := n.Agent("containerd", "containerd.log")
	logFile, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	log.Info("Logging containerd to %s", path)
	return n.Group.Start(proc.Child{
		Name: "containerd",
		Path: n.Bin("containerd"),
		Args: []string{"--config", filepath.Join(folder, "config.toml")},
		Env:  withoutNotify(),
		Log:  logFile,
	})
}

// withoutNotify keeps containerd from telling systemd that k3s is ready.
func withoutNotify() []string { return []string{"NOTIFY_SOCKET="} }

func (n *Node) importImages() error {
	archives, err := containerd.Archives(n.Agent("images"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		// k3s goes on without an image that cannot be read, and so does this.
		if err := containerd.Import(n.Bin("ctr"), Address, archive); err != nil {
			log.Warn("Unable to process image file: %s", strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
	return nil
}
