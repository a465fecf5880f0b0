// Package kube is the little of a Kubernetes client that the supervisor needs, on net/http: the real client libraries
// would make the stand-in as slow to compile as a component.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Object is a Kubernetes object as it came.
type Object = map[string]any

// Client talks to one API server.
type Client struct {
	Server string
	http   *http.Client
	bearer string

	mu        sync.Mutex
	resources map[string]map[string]resource
}

type resource struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// StatusError is an answer of the API server that is not a success.
type StatusError struct {
	Code   int
	Method string
	Path   string
	Body   string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: HTTP %d: %s", e.Method, e.Path, e.Code, e.Body)
}

// IsNotFound tells whether the API server said that there is no such object.
func IsNotFound(err error) bool {
	status, ok := err.(*StatusError)
	return ok && status.Code == http.StatusNotFound
}

// New makes a client that shows a certificate.
func New(server, caFile, certFile, keyFile string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	client := build(server, ca)
	client.http.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	return client, nil
}

// NewBearer makes a client that shows a token.
func NewBearer(server string, ca []byte, token string) *Client {
	client := build(server, ca)
	client.bearer = token
	return client
}

func build(server string, ca []byte) *Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	return &Client{Server: server, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}, resources: map[string]map[string]resource{}}
}

// Do sends one request and returns the answer's body; an answer of 400 and above is a *StatusError.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 400 {
		return nil, &StatusError{Code: answer.StatusCode, Method: method, Path: path, Body: message(raw)}
	}
	return raw, nil
}

func message(raw []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &status) == nil && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(string(raw))
}

// Get reads an object or list.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	raw, err := c.Do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Merge changes an object by a merge patch.
func (c *Client) Merge(ctx context.Context, path string, patch any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodPatch, path, "application/merge-patch+json", raw)
	return err
}

// Apply applies an object server-side in the name of manager.
func (c *Client) Apply(ctx context.Context, object Object, manager string) error {
	path, err := c.path(ctx, object)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	query := url.Values{"fieldManager": {manager}, "force": {"true"}}
	_, err = c.Do(ctx, http.MethodPatch, path+"?"+query.Encode(), "application/apply-patch+yaml", raw)
	return err
}

// Delete removes an object; that it is not there is no error.
func (c *Client) Delete(ctx context.Context, object Object) error {
	path, err := c.path(ctx, object)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodDelete, path, "application/json", []byte(`{"propagationPolicy":"Background"}`))
	if IsNotFound(err) {
		return nil
	}
	return err
}

// path finds the address of an object by asking the API server what the object's kind is called.
func (c *Client) path(ctx context.Context, object Object) (string, error) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	meta, _ := object["metadata"].(Object)
	name, _ := meta["name"].(string)
	if version == "" || kind == "" || name == "" {
		return "", fmt.Errorf("object without apiVersion, kind or metadata.name: %v", object)
	}
	root := "/apis/" + version
	if !strings.Contains(version, "/") {
		root = "/api/" + version
	}
	found, err := c.lookup(ctx, root, kind)
	if err != nil {
		return "", err
	}
	if !found.Namespaced {
		return root + "/" + found.Name + "/" + name, nil
	}
	namespace, _ := meta["namespace"].(string)
	if namespace == "" {
		namespace = "default"
	}
	return root + "/namespaces/" + namespace + "/" + found.Name + "/" + name, nil
}

func (c *Client) lookup(ctx context.Context, root, kind string) (resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.resources[root][kind]; ok {
		return found, nil
	}
	var list struct {
		Resources []resource `json:"resources"`
	}
	if err := c.Get(ctx, root, &list); err != nil {
		return resource{}, err
	}
	kinds := map[string]resource{}
	for _, r := range list.Resources {
		if !strings.Contains(r.Name, "/") {
			kinds[r.Kind] = r
		}
	}
	c.resources[root] = kinds
	if found, ok := kinds[kind]; ok {
		return found, nil
	}
	return resource{}, fmt.Errorf("the API server knows no %s in %s", kind, strings.TrimPrefix(strings.TrimPrefix(root, "/apis/"), "/api/"))
}

// Wait asks until ready says yes or the context ends; the last refusal is part of the error.
func Wait(ctx context.Context, what string, every time.Duration, ready func(context.Context) error) error {
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last seen: %v", what, context.Cause(ctx), last)
		case <-time.After(every):
		}
	}
}
