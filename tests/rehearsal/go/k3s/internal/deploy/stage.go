// Package deploy puts k3s's own manifests into server/manifests and applies whatever lies there, as k3s's deploy
// controller does: files can be added at any time, and a file taken away leaves its objects.
package deploy

import (
	"embed"
	"os"
	"path/filepath"
	"strings"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// Packaged are the components that k3s brings, by the name that `disable` takes, and the stand-in's file of it.
// Those without a file are not carried here.
var Packaged = map[string]string{
	"coredns":        "coredns.yaml",
	"runtimes":       "runtimes.yaml",
	"rolebindings":   "rolebindings.yaml",
	"servicelb":      "",
	"traefik":        "",
	"local-storage":  "",
	"metrics-server": "",
}

// Stage writes the manifests of all components that are not disabled or skipped, and removes those of disabled ones.
//
// values replaces %{NAME}% in them.
func Stage(folder string, disabled []string, values map[string]string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	off := map[string]bool{}
	for _, name := range disabled {
		off[strings.TrimSpace(name)] = true
	}
	for name, file := range Packaged {
		if file == "" {
			continue
		}
		path := filepath.Join(folder, file)
		if off[name] {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			continue
		}
		if skipped(path) {
			continue
		}
		raw, err := manifests.ReadFile("manifests/" + file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(fill(string(raw), values)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func skipped(path string) bool {
	_, err := os.Stat(path + ".skip")
	return err == nil
}

func fill(text string, values map[string]string) string {
	for name, value := range values {
		text = strings.ReplaceAll(text, "%{"+name+"}%", value)
	}
	return text
}
