package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var ca = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

func TestFullTokenCarriesTheHashOfTheCAFile(t *testing.T) {
	text := Format(ca, "server", "secret")
	parsed, err := Parse(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if parsed != (Token{Hash: Hash(ca), User: "server", Password: "secret"}) {
		t.Errorf("%+v", parsed)
	}
	if !strings.HasPrefix(text, "K10") || len(text) != 3+64+len("::server:secret") {
		t.Errorf("form: %s", text)
	}
}

func TestShortToken(t *testing.T) {
	parsed, err := Parse("secret")
	if err != nil || parsed.Hash != "" || parsed.Password != "secret" {
		t.Errorf("%+v %v", parsed, err)
	}
}

func TestBrokenTokens(t *testing.T) {
	for _, text := range []string{"", "  \n", "K10abc::server:x", "K10" + strings.Repeat("a", 64)} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestPasswordIsKeptAndAnotherRefused(t *testing.T) {
	kept := Format(ca, "server", "first")
	if got, err := Password("", kept); err != nil || got != "first" {
		t.Errorf("kept: %q %v", got, err)
	}
	if got, err := Password("first", kept); err != nil || got != "first" {
		t.Errorf("same: %q %v", got, err)
	}
	if _, err := Password("second", kept); err == nil || !strings.Contains(err.Error(), "different token") {
		t.Errorf("other: %v", err)
	}
	if got, err := Password("", ""); err != nil || len(got) != 32 {
		t.Errorf("new: %q %v", got, err)
	}
}

func TestFiles(t *testing.T) {
	folder := t.TempDir()
	if err := Write(folder, ca, "secret", ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"token", "node-token", "agent-token"} {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || strings.TrimSpace(string(raw)) != Format(ca, "server", "secret") {
			t.Errorf("%s: %q %v", name, raw, err)
		}
	}
	info, err := os.Stat(filepath.Join(folder, "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if err := Write(folder, ca, "secret", "other"); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(filepath.Join(folder, "agent-token"))
	if strings.TrimSpace(string(raw)) != Format(ca, "node", "other") {
		t.Errorf("agent-token: %q", raw)
	}
}
