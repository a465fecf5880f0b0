package server

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// ensureEncryption makes the key with which secrets are stored, once, in k3s's file and form.
func (s *Server) ensureEncryption() (string, error) {
	path := s.dir("cred", "encryption-config.json")
	if _, err := os.Stat(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	provider := s.Options.Text("secrets-encryption-provider")
	if provider != "aescbc" && provider != "secretbox" {
		return "", fmt.Errorf("unsupported encryption key type %s: aescbc or secretbox is expected", provider)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	keys := map[string]any{"keys": []any{map[string]string{"name": provider + "key", "secret": base64.StdEncoding.EncodeToString(key)}}}
	raw, err := json.Marshal(map[string]any{
		"kind":       "EncryptionConfiguration",
		"apiVersion": "apiserver.config.k8s.io/v1",
		"resources": []any{map[string]any{
			"resources": []string{"secrets"},
			"providers": []any{map[string]any{provider: keys}, map[string]any{"identity": map[string]any{}}},
		}},
	})
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, raw, 0o600)
}
