package resolv

import (
	"os"
	"path/filepath"
	"testing"
)

func TestServes(t *testing.T) {
	for text, want := range map[string]bool{
		"nameserver 10.0.0.2\n":                            true,
		"search x\nnameserver 8.8.4.4\nnameserver 1.1.1.1": true,
		"nameserver 127.0.0.53\n":                          false,
		"nameserver 169.254.169.254\n":                     false,
		"nameserver 10.0.0.2\nnameserver 127.0.0.1\n":      false,
		"nameserver fe80::1\n":                             false,
		"nameserver\n":                                     false,
		"# nameserver 8.8.8.8\n":                           false,
		"":                                                 false,
	} {
		if got := Serves(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestChoose(t *testing.T) {
	folder := t.TempDir()
	loopback, good := filepath.Join(folder, "loopback"), filepath.Join(folder, "good")
	os.WriteFile(loopback, []byte("nameserver 127.0.0.53\n"), 0o644)
	os.WriteFile(good, []byte("nameserver 10.1.1.1\n"), 0o644)
	if got, err := Choose("", folder, []string{loopback, good}); err != nil || got != good {
		t.Errorf("second file: %q %v", got, err)
	}
	if got, err := Choose("/run/mine", folder, []string{loopback}); err != nil || got != "/run/mine" {
		t.Errorf("option: %q %v", got, err)
	}
	got, err := Choose("", folder, []string{loopback, filepath.Join(folder, "none")})
	raw, _ := os.ReadFile(got)
	if err != nil || got != filepath.Join(folder, "agent/etc/resolv.conf") || string(raw) != "nameserver 8.8.8.8\n" {
		t.Errorf("fallback: %q %q %v", got, raw, err)
	}
}
