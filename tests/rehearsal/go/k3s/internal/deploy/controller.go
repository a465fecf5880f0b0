package deploy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"gpunode.example/rehearsal/k3s/internal/kube"
	"gpunode.example/rehearsal/k3s/internal/log"
)

// Every is the pause between two looks at the folder.
const Every = 15 * time.Second

// Controller applies the files of a folder.
type Controller struct {
	Client   *kube.Client
	Folder   string
	Node     string
	Disabled []string

	applied map[string]string
}

// Run looks at the folder until the context ends.
func (c *Controller) Run(ctx context.Context) {
	c.applied = map[string]string{}
	if err := c.removeDisabled(ctx); err != nil {
		log.Warn("Failed to delete disabled components: %v", err)
	}
	for {
		c.Once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(Every):
		}
	}
}

// Once applies every file that is new or changed since the last look. A file that fails is tried again next time.
func (c *Controller) Once(ctx context.Context) {
	files, err := Files(c.Folder)
	if err != nil {
		log.Warn("Failed to list manifests in %s: %v", c.Folder, err)
		return
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			log.Warn("Failed to read manifest %s: %v", file, err)
			continue
		}
		sum := sha256.Sum256(raw)
		digest := hex.EncodeToString(sum[:])
		if c.applied[file] == digest {
			continue
		}
		if err := c.apply(ctx, file, raw, digest); err != nil {
			if ctx.Err() == nil {
				log.Warn("Failed to process config %s: %v", file, err)
			}
			continue
		}
		c.applied[file] = digest
		log.Info("Applied manifest %s", file)
	}
}

func (c *Controller) apply(ctx context.Context, file string, raw []byte, digest string) error {
	objects, err := Decode(raw)
	if err != nil {
		return err
	}
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	var failed []error
	for _, object := range objects {
		mark(object, name, digest[:40])
		if err := c.Client.Apply(ctx, object, "deploy@"+c.Node); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// mark gives an object the label and annotations by which k3s shows where it came from.
func mark(object kube.Object, name, hash string) {
	meta, ok := object["metadata"].(kube.Object)
	if !ok {
		return
	}
	add(meta, "labels", kube.Object{"objectset.rio.cattle.io/hash": hash})
	add(meta, "annotations", kube.Object{
		"objectset.rio.cattle.io/id":              "",
		"objectset.rio.cattle.io/owner-gvk":       "k3s.cattle.io/v1, Kind=Addon",
		"objectset.rio.cattle.io/owner-name":      name,
		"objectset.rio.cattle.io/owner-namespace": "kube-system",
	})
}

func add(meta kube.Object, field string, more kube.Object) {
	current, ok := meta[field].(kube.Object)
	if !ok {
		current = kube.Object{}
		meta[field] = current
	}
	for key, value := range more {
		current[key] = value
	}
}

func (c *Controller) removeDisabled(ctx context.Context) error {
	var failed []error
	for _, name := range c.Disabled {
		file := Packaged[strings.TrimSpace(name)]
		if file == "" {
			continue
		}
		raw, err := manifests.ReadFile("manifests/" + file)
		if err != nil {
			return err
		}
		objects, err := Decode(raw)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := c.Client.Delete(ctx, object); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// Files lists the manifests of a folder and its subfolders, without those that a file of the same name with .skip
// behind it turns off.
func Files(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
			if !entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && !skipped(path) {
				files = append(files, path)
			}
		}
		return nil
	})
	sort.Strings(files)
	return files, err
}

// Decode reads the objects of a manifest; a List is taken apart.
func Decode(raw []byte) ([]kube.Object, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var objects []kube.Object
	for {
		var object kube.Object
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object) == 0 {
			continue
		}
		if items, ok := object["items"].([]any); ok {
			for _, item := range items {
				part, ok := item.(kube.Object)
				if !ok {
					return nil, fmt.Errorf("list holds something that is no object: %v", item)
				}
				objects = append(objects, part)
			}
			continue
		}
		objects = append(objects, object)
	}
}
