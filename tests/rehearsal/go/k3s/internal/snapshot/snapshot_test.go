package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// gateway answers like etcd's: the blob in messages of JSON, the digest behind the database.
func gateway(t *testing.T, database []byte, cut bool) *httptest.Server {
	t.Helper()
	sum := sha256.Sum256(database)
	whole := append(append([]byte{}, database...), sum[:]...)
	if cut {
		whole = whole[:len(whole)-600]
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for len(whole) > 0 {
			n := min(len(whole), 700)
			fmt.Fprintf(w, "{\"result\":{\"remaining_bytes\":\"%d\",\"blob\":%q}}\n", len(whole)-n, base64.StdEncoding.EncodeToString(whole[:n]))
			whole = whole[n:]
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestSaveAndCheck(t *testing.T) {
	folder := t.TempDir()
	server := gateway(t, make([]byte, 4096), false)
	path, err := Save(context.Background(), server.Client(), server.URL, folder, "on-demand-x-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err != nil {
		t.Error(err)
	}
}

func TestBrokenOffStreamLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	server := gateway(t, make([]byte, 4096), true)
	if _, err := Save(context.Background(), server.Client(), server.URL, folder, "x"); err == nil {
		t.Error("accepted")
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestPruneKeepsTheNewest(t *testing.T) {
	folder := t.TempDir()
	for i, name := range []string{"on-demand-a-1", "on-demand-a-2", "other-1", "on-demand-a-3"} {
		path := filepath.Join(folder, name)
		os.WriteFile(path, nil, 0o600)
		when := time.Now().Add(time.Duration(i-10) * time.Minute)
		os.Chtimes(path, when, when)
	}
	removed, err := Prune(folder, "on-demand", 2)
	if err != nil || len(removed) != 1 || removed[0] != "on-demand-a-1" {
		t.Errorf("%v %v", removed, err)
	}
	if err := Delete(folder, []string{"../x"}); err == nil {
		t.Error("a path was accepted")
	}
}
