package kube

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

// Kubeconfig describes a client's configuration file.
type Kubeconfig struct {
	Server   string
	CAFile   string
	CertFile string
	KeyFile  string
	// Embed puts the files' content into the configuration instead of their paths.
	Embed bool
}

// Write writes the file with the given mode.
func (k Kubeconfig) Write(path string, mode os.FileMode) error {
	ca, cert, key := "certificate-authority: "+k.CAFile, "client-certificate: "+k.CertFile, "client-key: "+k.KeyFile
	if k.Embed {
		var err error
		if ca, err = embed("certificate-authority-data", k.CAFile); err != nil {
			return err
		}
		if cert, err = embed("client-certificate-data", k.CertFile); err != nil {
			return err
		}
		if key, err = embed("client-key-data", k.KeyFile); err != nil {
			return err
		}
	}
	text := fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    %s
    server: %s
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
users:
- name: default
  user:
    %s
    %s
`, ca, k.Server, cert, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := path + ".tmp"
	if err := os.WriteFile(fresh, []byte(text), mode); err != nil {
		return err
	}
	if err := os.Chmod(fresh, mode); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

func embed(field, path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return field + ": " + base64.StdEncoding.EncodeToString(raw), nil
}
