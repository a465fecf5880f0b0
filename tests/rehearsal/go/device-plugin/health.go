package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"k8s.io/klog/v2"
)

const (
	disableHealthChecks = "DP_DISABLE_HEALTHCHECKS"
	eventWaitMillis     = 5000
	healthEvents        = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeSingleBitEccError
)

// applicationXids are errors of a program, not of the GPU.
func applicationXids() map[uint64]bool {
	ignored := map[uint64]bool{13: true, 31: true, 43: true, 45: true, 68: true, 109: true}
	for _, word := range strings.Split(os.Getenv(disableHealthChecks), ",") {
		if xid, err := strconv.ParseUint(strings.TrimSpace(word), 10, 64); err == nil {
			ignored[xid] = true
		}
	}
	return ignored
}

// watchHealth marks a device unhealthy on a critical XID, until the plugin stops.
func (p *plugin) watchHealth() {
	switch strings.ToLower(os.Getenv(disableHealthChecks)) {
	case "all", "xids":
		return
	}
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		klog.Errorf("Failed to start health check: failed to initialize NVML: %s", nvml.ErrorString(ret))
		return
	}
	defer nvml.Shutdown()
	ignored := applicationXids()
	klog.Infof("Ignoring the following XIDs for health checks: %v", ignored)
	events, ret := nvml.EventSetCreate()
	if ret != nvml.SUCCESS {
		klog.Errorf("Failed to start health check: failed to create event set: %s", nvml.ErrorString(ret))
		return
	}
	defer events.Free()
	p.registerEvents(events)
	for !p.isStopped() {
		event, ret := events.Wait(eventWaitMillis)
		switch {
		case ret == nvml.ERROR_TIMEOUT:
		case ret != nvml.SUCCESS:
			klog.Infof("Error waiting for event: %s; Marking all devices as unhealthy", nvml.ErrorString(ret))
			for _, device := range p.devices {
				p.markUnhealthy(device.id)
			}
			return
		case event.EventType == nvml.EventTypeXidCriticalError && !ignored[event.EventData]:
			klog.Infof("Processing event %+v", event)
			p.handleXid(event)
		}
	}
}

func (p *plugin) registerEvents(events nvml.EventSet) {
	done := map[string]bool{}
	for _, device := range p.devices {
		if done[device.uuid] {
			continue
		}
		done[device.uuid] = true
		handle, ret := nvml.DeviceGetHandleByUUID(device.uuid)
		if ret == nvml.SUCCESS {
			ret = handle.RegisterEvents(healthEvents, events)
		}
		if ret != nvml.SUCCESS {
			klog.Infof("Marking device %s as unhealthy: %s", device.id, nvml.ErrorString(ret))
			p.markUnhealthy(device.id)
		}
	}
}

// handleXid marks one device of the GPU: of several replicas the real plugin knows the last one by the GPU's UUID.
func (p *plugin) handleXid(event nvml.EventData) {
	uuid, ret := event.Device.GetUUID()
	if ret != nvml.SUCCESS {
		klog.Infof("Failed to determine uuid for event %v: %s; Marking all devices as unhealthy.", event, nvml.ErrorString(ret))
		for _, device := range p.devices {
			p.markUnhealthy(device.id)
		}
		return
	}
	for i := len(p.devices) - 1; i >= 0; i-- {
		if p.devices[i].uuid == uuid {
			klog.Infof("XidCriticalError: Xid=%d on Device=%s; marking device as unhealthy.", event.EventData, p.devices[i].id)
			p.markUnhealthy(p.devices[i].id)
			return
		}
	}
	klog.Infof("Ignoring event for unexpected device: %s", uuid)
}

func (p *plugin) isStopped() bool {
	select {
	case <-p.stopped:
		return true
	default:
		return false
	}
}
