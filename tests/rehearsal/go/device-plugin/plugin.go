package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	visibleDevices = "NVIDIA_VISIBLE_DEVICES"
	// A mount below this folder asks the toolkit for the device of that name.
	deviceMounts = "/var/run/nvidia-container-devices"
	dialTimeout  = 5 * time.Second
)

var errNoKubelet = errors.New("the kubelet does not answer")

// plugin serves one resource.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	config   *config
	resource string
	socket   string
	devices  []device
	server   *grpc.Server
	stopped  chan struct{}

	mutex     sync.Mutex
	unhealthy map[string]bool
	changed   chan struct{} // closed, and replaced, on every change of health
}

func newPlugin(config *config, devices []device) *plugin {
	resource := config.resourceName()
	return &plugin{
		config:    config,
		resource:  resource,
		socket:    filepath.Join(pluginapi.DevicePluginPath, socketName(resource)),
		devices:   devices,
		server:    grpc.NewServer(),
		stopped:   make(chan struct{}),
		unhealthy: map[string]bool{},
		changed:   make(chan struct{}),
	}
}

func (p *plugin) start() error {
	klog.Infof("Starting GRPC server for '%s'", p.resource)
	if err := os.Remove(p.socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		return err
	}
	pluginapi.RegisterDevicePluginServer(p.server, p)
	go func() {
		if err := p.server.Serve(listener); err != nil {
			klog.Errorf("GRPC server for '%s' ended: %v", p.resource, err)
		}
	}()
	klog.Infof("Starting to serve '%s' on %s", p.resource, p.socket)
	if err := p.register(); err != nil {
		return fmt.Errorf("%w: %w", errNoKubelet, err)
	}
	klog.Infof("Registered device plugin for '%s' with Kubelet", p.resource)
	go p.watchHealth()
	return nil
}

func (p *plugin) stop() {
	klog.Infof("Stopping to serve '%s' on %s", p.resource, p.socket)
	close(p.stopped)
	p.server.Stop()
	os.Remove(p.socket)
}

func (p *plugin) register() error {
	connection, err := grpc.NewClient("unix://"+pluginapi.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(connection).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     path.Base(p.socket),
		ResourceName: p.resource,
		Options:      pluginOptions(),
	}, grpc.WaitForReady(true)) // its socket appears a moment before it answers
	return err
}

func pluginOptions() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}
}

// GetDevicePluginOptions says what the kubelet may ask.
func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return pluginOptions(), nil
}

// ListAndWatch sends the devices now and again whenever the health of one has changed.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	for {
		list, changed := p.snapshot()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-p.stopped:
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *plugin) snapshot() ([]*pluginapi.Device, <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var list []*pluginapi.Device
	for _, device := range p.devices {
		health := pluginapi.Healthy
		if p.unhealthy[device.id] {
			health = pluginapi.Unhealthy
		}
		list = append(list, &pluginapi.Device{ID: device.id, Health: health})
	}
	return list, p.changed
}

// markUnhealthy has no way back: the real plugin has none either, short of a restart.
func (p *plugin) markUnhealthy(id string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	klog.Infof("'%s' device marked unhealthy: %s", p.resource, id)
	p.unhealthy[id] = true
	close(p.changed)
	p.changed = make(chan struct{})
}

// GetPreferredAllocation proposes the devices that must be there and then the first that are free.
func (p *plugin) GetPreferredAllocation(_ context.Context, request *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		chosen := slices.Clone(container.MustIncludeDeviceIDs)
		for _, id := range container.AvailableDeviceIDs {
			if len(chosen) >= int(container.AllocationSize) {
				break
			}
			if !slices.Contains(chosen, id) {
				chosen = append(chosen, id)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: chosen})
	}
	return response, nil
}

// Allocate tells the kubelet how a container asks the toolkit for its devices.
func (p *plugin) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		devices, err := p.requested(container.DevicesIds)
		if err != nil {
			return nil, fmt.Errorf("invalid allocation request for %q: %w", p.resource, err)
		}
		response.ContainerResponses = append(response.ContainerResponses, p.answer(devices))
	}
	return response, nil
}

func (p *plugin) requested(ids []string) ([]device, error) {
	if sharing := p.config.Sharing.TimeSlicing; p.config.replicated() != nil && sharing.FailRequestsGreaterThanOne && len(ids) > 1 {
		return nil, fmt.Errorf("invalid request: maximum request size for shared resources is 1; found %d", len(ids))
	}
	var devices []device
	for _, id := range ids {
		at := slices.IndexFunc(p.devices, func(known device) bool { return known.id == id })
		if at < 0 {
			return nil, fmt.Errorf("unknown device: %s", id)
		}
		devices = append(devices, p.devices[at])
	}
	return devices, nil
}

func (p *plugin) answer(devices []device) *pluginapi.ContainerAllocateResponse {
	flags := p.config.Flags.Plugin
	ids := uniqueIDs(devices, flags.DeviceIDStrategy == "index")
	answer := &pluginapi.ContainerAllocateResponse{}
	if slices.Contains(flags.DeviceListStrategy, strategyEnvvar) {
		answer.Envs = map[string]string{visibleDevices: strings.Join(ids, ",")}
	}
	if slices.Contains(flags.DeviceListStrategy, strategyMounts) {
		answer.Envs = map[string]string{visibleDevices: deviceMounts}
		for _, id := range ids {
			answer.Mounts = append(answer.Mounts, &pluginapi.Mount{HostPath: "/dev/null", ContainerPath: path.Join(deviceMounts, id)})
		}
	}
	return answer
}

// PreStartContainer is not announced, so the kubelet does not call it.
func (p *plugin) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}
