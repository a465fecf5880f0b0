package main

import (
	"context"
	"strings"
	"testing"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const uuid = "GPU-4c4c4c4c-0000-4000-8000-000000000001"

func sharedPlugin(t *testing.T) *plugin {
	c := parsed(t, shared)
	return newPlugin(c, replicate([]device{{id: uuid, uuid: uuid}}, c.replicated()))
}

func allocate(p *plugin, ids ...string) (*pluginapi.ContainerAllocateResponse, error) {
	response, err := p.Allocate(context.Background(), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, err
	}
	return response.ContainerResponses[0], nil
}

func TestReplicasAndSocket(t *testing.T) {
	p := sharedPlugin(t)
	if len(p.devices) != 4 || p.devices[3].id != uuid+"::3" {
		t.Errorf("devices %v", p.devices)
	}
	if !strings.HasSuffix(p.socket, "/nvidia-gpu.shared.sock") {
		t.Errorf("socket %s", p.socket)
	}
}

func TestAllocateEnvvar(t *testing.T) {
	answer, err := allocate(sharedPlugin(t), uuid+"::2")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Envs[visibleDevices] != uuid || len(answer.Mounts) != 0 {
		t.Errorf("%v", answer)
	}
}

func TestAllocateVolumeMounts(t *testing.T) {
	p := sharedPlugin(t)
	p.config.Flags.Plugin.DeviceListStrategy = wordList{strategyMounts}
	answer, err := allocate(p, uuid+"::0")
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Mounts) != 1 || answer.Mounts[0].ContainerPath != deviceMounts+"/"+uuid || answer.Mounts[0].HostPath != "/dev/null" {
		t.Errorf("%v", answer.Mounts)
	}
}

// The text that kubelet shows in the Pod's status, as captured from the real plugin.
func TestTwoOfASharedGPUAreRefused(t *testing.T) {
	_, err := allocate(sharedPlugin(t), uuid+"::0", uuid+"::1")
	want := `invalid allocation request for "nvidia.com/gpu.shared": invalid request: maximum request size for shared resources is 1; found 2`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestUnknownDeviceIsRefused(t *testing.T) {
	if _, err := allocate(sharedPlugin(t), "GPU-other::0"); err == nil || !strings.Contains(err.Error(), "unknown device") {
		t.Errorf("got %v", err)
	}
}

func TestOneReplicaTurnsUnhealthy(t *testing.T) {
	p := sharedPlugin(t)
	_, changed := p.snapshot()
	p.markUnhealthy(uuid + "::3")
	<-changed
	list, _ := p.snapshot()
	sick := 0
	for _, device := range list {
		if device.Health == pluginapi.Unhealthy {
			sick++
		}
	}
	if sick != 1 {
		t.Errorf("%d unhealthy", sick)
	}
}

func TestPreferredAllocation(t *testing.T) {
	response, err := sharedPlugin(t).GetPreferredAllocation(context.Background(), &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs:   []string{"a", "b", "c"},
			MustIncludeDeviceIDs: []string{"c"},
			AllocationSize:       2,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := response.ContainerResponses[0].DeviceIDs; len(got) != 2 || got[0] != "c" || got[1] != "a" {
		t.Errorf("%v", got)
	}
}
