package node

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
)

// Peer is another node with its range of Pod addresses.
type Peer struct {
	IP      string
	PodCIDR string
}

// Routes keeps a route to every other node's range, like flannel's backend host-gw, until the context ends.
func (n *Node) Routes(ctx context.Context, client *kube.Client) {
	known := map[string]string{}
	for {
		peers, err := n.peers(ctx, client)
		if err != nil && ctx.Err() == nil {
			log.Warn("Failed to list nodes for routes: %v", err)
		}
		for _, peer := range peers {
			if known[peer.PodCIDR] == peer.IP {
				continue
			}
			output, err := exec.Command("ip", "route", "replace", peer.PodCIDR, "via", peer.IP).CombinedOutput()
			if err != nil {
				log.Warn("Failed to add a route to %s via %s: %s", peer.PodCIDR, peer.IP, strings.TrimSpace(string(output)))
				continue
			}
			known[peer.PodCIDR] = peer.IP
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
	}
}

func (n *Node) peers(ctx context.Context, client *kube.Client) ([]Peer, error) {
	nodes, err := ListNodes(ctx, client)
	if err != nil {
		return nil, err
	}
	var peers []Peer
	for _, node := range nodes {
		if node.Name != n.Name && node.PodCIDR != "" && net.ParseIP(node.IP) != nil {
			peers = append(peers, Peer{node.IP, node.PodCIDR})
		}
	}
	return peers, nil
}

// Listed is what is needed of a node in a list.
type Listed struct {
	Name, IP, PodCIDR string
}

// ListNodes returns the cluster's nodes.
func ListNodes(ctx context.Context, client *kube.Client) ([]Listed, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				PodCIDR string `json:"podCIDR"`
			} `json:"spec"`
			Status struct {
				Addresses []struct {
					Type    string `json:"type"`
					Address string `json:"address"`
				} `json:"addresses"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := client.Get(ctx, "/api/v1/nodes", &list); err != nil {
		return nil, err
	}
	var nodes []Listed
	for _, item := range list.Items {
		node := Listed{Name: item.Metadata.Name, PodCIDR: item.Spec.PodCIDR}
		for _, address := range item.Status.Addresses {
			if address.Type == "InternalIP" {
				node.IP = address.Address
			}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}
