package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/node"
)

// markNode gives this server's node the labels and annotations that k3s's controllers give it.
func (s *Server) markNode(ctx context.Context) error {
	return s.client.Merge(ctx, "/api/v1/nodes/"+s.Name, map[string]any{"metadata": map[string]any{
		"labels": map[string]string{"node-role.kubernetes.io/control-plane": "true"},
		"annotations": map[string]string{
			"k3s.io/hostname":    s.Name,
			"k3s.io/internal-ip": s.IP,
		},
	}})
}

// publishAgentConfig leaves what a joining agent has to know. k3s hands it out on its supervisor's port.
func (s *Server) publishAgentConfig(ctx context.Context) error {
	clientCA, err := os.ReadFile(s.tls("client-ca.crt"))
	if err != nil {
		return err
	}
	return s.client.Apply(ctx, kube.Object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": kube.Object{"name": "k3s-agent-config", "namespace": "kube-system"},
		"data": kube.Object{
			"client-ca":               string(clientCA),
			"cluster-cidr":            s.ClusterCIDR,
			"service-cidr":            s.ServiceCIDR,
			"service-node-port-range": s.NodePortRange,
			"cluster-dns":             s.ClusterDNS,
			"cluster-domain":          s.ClusterDomain,
			"flannel":                 fmt.Sprint(!s.NoFlannel),
			"kube-proxy":              fmt.Sprint(s.KubeProxy),
			"network-policy":          fmt.Sprint(s.NetworkPolicy),
		},
	}, "k3s")
}

// serveNodes does what k3s's node controllers do: names of nodes for CoreDNS, and certificates for joined kubelets.
func (s *Server) serveNodes(ctx context.Context) {
	lastHosts := ""
	for {
		if err := s.nodeHosts(ctx, &lastHosts); err != nil && ctx.Err() == nil && !kube.IsNotFound(err) {
			log.Warn("Failed to update NodeHosts of CoreDNS: %v", err)
		}
		if err := s.approveServing(ctx); err != nil && ctx.Err() == nil {
			log.Warn("Failed to approve kubelet serving certificates: %v", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
	}
}

func (s *Server) nodeHosts(ctx context.Context, last *string) error {
	nodes, err := node.ListNodes(ctx, s.client)
	if err != nil {
		return err
	}
	lines := make([]string, 0, len(nodes))
	for _, n := range nodes {
		lines = append(lines, n.IP+" "+n.Name+"\n")
	}
	sort.Strings(lines)
	hosts := strings.Join(lines, "")
	if hosts == *last {
		return nil
	}
	err = s.client.Merge(ctx, "/api/v1/namespaces/kube-system/configmaps/coredns", map[string]any{"data": map[string]string{"NodeHosts": hosts}})
	if err == nil {
		*last = hosts
	}
	return err
}

// approveServing lets a kubelet have a serving certificate for itself. Kubernetes leaves that decision to others.
func (s *Server) approveServing(ctx context.Context) error {
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	var list struct {
		Items []kube.Object `json:"items"`
	}
	if err := s.client.Get(ctx, path+"?fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving", &list); err != nil {
		return err
	}
	for _, request := range list.Items {
		spec, _ := request["spec"].(kube.Object)
		status, _ := request["status"].(kube.Object)
		user, _ := spec["username"].(string)
		if len(status) > 0 || !strings.HasPrefix(user, "system:node:") {
			continue
		}
		meta, _ := request["metadata"].(kube.Object)
		request["status"] = kube.Object{"conditions": []any{kube.Object{
			"type": "Approved", "status": "True", "reason": "K3sAutoApprove", "message": "a node asks for its own serving certificate",
		}}}
		raw, err := json.Marshal(request)
		if err != nil {
			return err
		}
		if _, err := s.client.Do(ctx, http.MethodPut, fmt.Sprintf("%s/%v/approval", path, meta["name"]), "application/json", raw); err != nil {
			return err
		}
	}
	return nil
}
