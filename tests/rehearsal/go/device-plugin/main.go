// Command nvidia-device-plugin is the rehearsal's stand-in for NVIDIA's Kubernetes device plugin: it reads the same
// configuration, speaks the real kubelet API and asks the real NVML interface, whoever provides libnvidia-ml.so.1.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// answersFor is the release whose behaviour is kept.
const answersFor = "v0.19.3"

// retryAfter is how long the plugin waits before it asks an absent kubelet again.
const retryAfter = 30 * time.Second

func main() {
	options, err := parseOptions(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	klog.InfoS("STAND-IN for the NVIDIA Device Plugin (gpunode rehearsal)", "answersFor", answersFor)
	klog.InfoS("Starting NVIDIA Device Plugin", "version", answersFor+"-rehearsal")
	if err := run(options); err != nil {
		klog.Error(err)
		klog.Flush()
		os.Exit(1)
	}
}

// run serves until a signal ends it.
func run(options *options) error {
	klog.Infof("Starting FS watcher for %s", filepath.Clean(pluginapi.DevicePluginPath))
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("failed to create FS watcher: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(pluginapi.DevicePluginPath); err != nil {
		return fmt.Errorf("failed to create FS watcher for %s: %w", pluginapi.DevicePluginPath, err)
	}
	klog.Info("Starting OS watcher.")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)

	for {
		plugin, err := start(options)
		var retry <-chan time.Time
		switch {
		case errors.Is(err, errNoKubelet):
			klog.Errorf("Failed to start plugin: %v", err)
			klog.Error("Could not contact Kubelet. Did you enable the device plugin feature gate?")
			retry = time.After(retryAfter)
		case err != nil:
			return fmt.Errorf("error starting plugins: %w", err)
		}
		again, err := wait(watcher, signals, retry)
		if plugin != nil {
			klog.Info("Stopping plugins.")
			plugin.stop()
		}
		if err != nil || !again {
			return err
		}
	}
}

// wait returns true when the plugin has to start anew.
func wait(watcher *fsnotify.Watcher, signals <-chan os.Signal, retry <-chan time.Time) (bool, error) {
	for {
		select {
		case <-retry:
			return true, nil
		case event := <-watcher.Events:
			if filepath.Clean(event.Name) == filepath.Clean(pluginapi.KubeletSocket) && event.Has(fsnotify.Create) {
				klog.Infof("inotify: %s created, restarting.", pluginapi.KubeletSocket)
				return true, nil
			}
		case err := <-watcher.Errors:
			klog.Errorf("inotify: %v", err)
		case received := <-signals:
			if received == syscall.SIGHUP {
				klog.Info("Received SIGHUP, restarting.")
				return true, nil
			}
			klog.Infof("Received signal %q, shutting down.", received)
			return false, nil
		}
	}
}

// start loads the configuration and serves it; the plugin is nil when there is nothing to serve.
func start(options *options) (*plugin, error) {
	klog.Info("Starting Plugins.")
	klog.Info("Loading configuration.")
	config, err := loadConfig(options)
	if err != nil {
		return nil, fmt.Errorf("unable to load config: %w", err)
	}
	if err := config.unsupported(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("failed to marshal config to JSON: %w", err)
	}
	klog.Infof("\nRunning with config:\n%s", text)
	klog.Info("Retrieving plugins.")
	devices, err := findDevices(config)
	if err != nil {
		return nil, fmt.Errorf("error getting plugins: unable to create plugins: %w", err)
	}
	if len(devices) == 0 {
		klog.Info("No devices found. Waiting indefinitely.")
		return nil, nil
	}
	plugin := newPlugin(config, devices)
	if err := plugin.start(); err != nil {
		plugin.stop()
		return nil, err
	}
	return plugin, nil
}
