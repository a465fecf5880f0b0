// Package token handles the shared secret of a cluster in the form K10<hash of the server's CA>::<user>:<password>.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const prefix = "K10"

// Token is a parsed token. A short token (the password alone) has no Hash, and its server cannot be checked.
type Token struct {
	Hash     string
	User     string
	Password string
}

// Hash returns the digest of a CA file that a token carries.
func Hash(caPEM []byte) string {
	sum := sha256.Sum256(caPEM)
	return hex.EncodeToString(sum[:])
}

// Format writes the full form of a token.
func Format(caPEM []byte, user, password string) string {
	return prefix + Hash(caPEM) + "::" + user + ":" + password
}

// Parse reads either form.
func Parse(text string) (Token, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Token{}, errors.New("token is empty")
	}
	if !strings.HasPrefix(text, prefix) {
		return Token{User: "node", Password: text}, nil
	}
	hash, credentials, ok := strings.Cut(strings.TrimPrefix(text, prefix), "::")
	if !ok || len(hash) != sha256.Size*2 {
		return Token{}, errors.New("invalid token format: K10<64 hex digits>::<user>:<password> is expected")
	}
	user, password, ok := strings.Cut(credentials, ":")
	if !ok {
		// Since k3s 1.20 the user may be left out.
		user, password = "node", credentials
	}
	return Token{Hash: hash, User: user, Password: password}, nil
}

// FromOptions returns what --token or --token-file gave, "" when neither did.
func FromOptions(text, file string) (string, error) {
	if text != "" || file == "" {
		return text, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	if text = strings.TrimSpace(string(raw)); text == "" {
		return "", fmt.Errorf("token file %s is empty", file)
	}
	return text, nil
}

// Password settles the cluster's password: what was given, else what an earlier start kept, else a new one.
//
// A password that differs from the kept one is refused as k3s refuses it: the datastore belongs to the first.
func Password(given, kept string) (string, error) {
	var want, have Token
	var err error
	if given != "" {
		if want, err = Parse(given); err != nil {
			return "", err
		}
	}
	if kept != "" {
		if have, err = Parse(kept); err != nil {
			return "", err
		}
	}
	switch {
	case want.Password == "" && have.Password == "":
		return Random()
	case want.Password == "":
		return have.Password, nil
	case have.Password != "" && have.Password != want.Password:
		return "", errors.New("bootstrap data already found and encrypted with different token: " +
			"give the token of server/token, or remove the data folder to begin a new cluster")
	}
	return want.Password, nil
}

// Random makes a password of 32 hex digits.
func Random() (string, error) {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	return hex.EncodeToString(raw), nil
}

// Write keeps the tokens in the server's folder: token, its old name node-token, and agent-token.
func Write(folder string, caPEM []byte, password, agentPassword string) error {
	path := filepath.Join(folder, "token")
	if err := os.WriteFile(path, []byte(Format(caPEM, "server", password)+"\n"), 0o600); err != nil {
		return err
	}
	if err := relink(path, filepath.Join(folder, "node-token")); err != nil {
		return err
	}
	agent := filepath.Join(folder, "agent-token")
	if agentPassword == "" || agentPassword == password {
		return relink(path, agent)
	}
	os.Remove(agent)
	return os.WriteFile(agent, []byte(Format(caPEM, "node", agentPassword)+"\n"), 0o600)
}

func relink(target, link string) error {
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(target, link)
}
