package main

import (
	_ "github.com/NVIDIA/go-nvml/pkg/nvml"
	_ "github.com/fsnotify/fsnotify"
	_ "google.golang.org/grpc"
	_ "k8s.io/klog/v2"
	_ "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	_ "sigs.k8s.io/yaml"
)

func main() {}
