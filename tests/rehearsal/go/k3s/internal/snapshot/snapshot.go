// Package snapshot saves, lists and removes snapshots of etcd.
package snapshot

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Snapshot is one file.
type Snapshot struct {
	Name    string
	Path    string
	Size    int64
	Created time.Time
}

// Save asks etcd for a snapshot through its JSON gateway, and keeps it as folder/name.
func Save(ctx context.Context, client *http.Client, etcd, folder, name string) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, etcd+"/v3/maintenance/snapshot", strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking etcd at %s for a snapshot: %w: is k3s running?", etcd, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking etcd at %s for a snapshot: HTTP %d", etcd, answer.StatusCode)
	}
	path := filepath.Join(folder, name)
	partial := path + ".part"
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	err = errors.Join(receive(answer.Body, file), file.Sync(), file.Close())
	if err == nil {
		err = Check(partial)
	}
	if err != nil {
		os.Remove(partial)
		return "", fmt.Errorf("saving snapshot %s: %w", path, err)
	}
	return path, os.Rename(partial, path)
}

// part is one message of the stream; the blob is base64 in JSON.
type part struct {
	Result *struct {
		Blob []byte `json:"blob"`
	} `json:"result"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func receive(stream io.Reader, file io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(stream, 1<<20))
	for {
		var p part
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.Error != nil {
			return errors.New(p.Error.Message)
		}
		if p.Result == nil {
			return errors.New("etcd sent a message without a result")
		}
		if _, err := file.Write(p.Result.Blob); err != nil {
			return err
		}
	}
}

// Check compares a snapshot with the sha256 that etcd puts behind it: a stream that broke off is found here.
func Check(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	// A database is whole pages of 512 bytes at least; the digest stands behind them.
	if info.Size()%512 != sha256.Size {
		return fmt.Errorf("%d bytes are no whole snapshot: it carries no checksum", info.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, file, info.Size()-sha256.Size); err != nil {
		return err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(file, want); err != nil {
		return err
	}
	if string(sum.Sum(nil)) != string(want) {
		return errors.New("checksum of the snapshot does not match")
	}
	return nil
}

// List returns the snapshots of a folder, oldest first.
func List(folder string) ([]Snapshot, error) {
	listing, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Snapshot
	for _, entry := range listing {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasSuffix(entry.Name(), ".part") {
			continue
		}
		found = append(found, Snapshot{entry.Name(), filepath.Join(folder, entry.Name()), info.Size(), info.ModTime()})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Created.Before(found[j].Created) })
	return found, nil
}

// Delete removes snapshots by name.
func Delete(folder string, names []string) error {
	for _, name := range names {
		if filepath.Base(name) != name {
			return fmt.Errorf("%q is a path: give the name that `k3s etcd-snapshot ls` shows", name)
		}
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// Prune keeps the newest snapshots whose names begin with base, and returns what it removed.
func Prune(folder, base string, keep int) ([]string, error) {
	all, err := List(folder)
	if err != nil || keep < 1 {
		return nil, err
	}
	var matching []Snapshot
	for _, s := range all {
		if strings.HasPrefix(s.Name, base+"-") {
			matching = append(matching, s)
		}
	}
	var removed []string
	for len(matching) > keep {
		if err := os.Remove(matching[0].Path); err != nil {
			return removed, err
		}
		removed = append(removed, matching[0].Name)
		matching = matching[1:]
	}
	return removed, nil
}
