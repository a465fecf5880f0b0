package main

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"k8s.io/klog/v2"
)

// device is one thing that the kubelet can give out: a GPU, or one of its replicas.
type device struct {
	id    string // "GPU-<uuid>" or "GPU-<uuid>::<replica>"
	uuid  string
	index int
}

// findDevices asks NVML for the GPUs. An NVML that does not start is an error, or, with failOnInitError=false, no device.
func findDevices(config *config) ([]device, error) {
	describePlatform()
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		reason := nvml.ErrorString(ret)
		klog.Errorf("Failed to initialize NVML: %s.", reason)
		klog.Error("If this is a GPU node, did you set the docker default runtime to `nvidia`?")
		klog.Error("You can check the prerequisites at: https://github.com/NVIDIA/k8s-device-plugin#prerequisites")
		klog.Error("You can learn how to set the runtime at: https://github.com/NVIDIA/k8s-device-plugin#quick-start")
		klog.Error("If this is not a GPU node, you should set up a toleration or nodeSelector to only deploy this plugin on GPU nodes")
		if !config.Flags.FailOnInitError {
			return nil, nil
		}
		return nil, fmt.Errorf("failed to construct resource managers: nvml init failed: %s", reason)
	}
	defer nvml.Shutdown()
	gpus, err := listGPUs()
	if err != nil {
		return nil, fmt.Errorf("failed to construct resource managers: error building device map: %w", err)
	}
	return replicate(gpus, config.replicated()), nil
}

// describePlatform writes the lines by which the real plugin's log is read.
func describePlatform() {
	library := dl.New("libnvidia-ml.so.1", dl.RTLD_LAZY)
	if err := library.Open(); err != nil {
		klog.Info("Detected platform: unknown")
		klog.Warning("Unsupported platform detected; defaulting to nvml")
	} else {
		klog.Info("Detected platform: nvml")
		library.Close()
	}
	klog.Info("Using device discovery strategy: nvml")
}

func listGPUs() ([]device, error) {
	count, ret := nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("error getting device count: %s", nvml.ErrorString(ret))
	}
	var gpus []device
	for index := range count {
		handle, ret := nvml.DeviceGetHandleByIndex(index)
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("error getting device handle for index '%d': %s", index, nvml.ErrorString(ret))
		}
		uuid, ret := handle.GetUUID()
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("error getting UUID: %s", nvml.ErrorString(ret))
		}
		gpus = append(gpus, device{id: uuid, uuid: uuid, index: index})
	}
	return gpus, nil
}

func replicate(gpus []device, shared *replicatedResource) []device {
	if shared == nil {
		return gpus
	}
	var replicas []device
	for _, gpu := range gpus {
		for number := range shared.Replicas {
			replicas = append(replicas, device{id: fmt.Sprintf("%s::%d", gpu.uuid, number), uuid: gpu.uuid, index: gpu.index})
		}
	}
	return replicas
}

// uniqueIDs names each GPU behind the requested devices once, as the container toolkit wants it.
func uniqueIDs(devices []device, byIndex bool) []string {
	var ids []string
	seen := map[string]bool{}
	for _, device := range devices {
		if seen[device.uuid] {
			continue
		}
		seen[device.uuid] = true
		if byIndex {
			ids = append(ids, fmt.Sprint(device.index))
		} else {
			ids = append(ids, device.uuid)
		}
	}
	return ids
}

// socketName is the file of a resource's socket: nvidia-gpu.shared.sock for nvidia.com/gpu.shared.
func socketName(resource string) string {
	return "nvidia-" + strings.TrimPrefix(resource, resourcePrefix) + ".sock"
}
