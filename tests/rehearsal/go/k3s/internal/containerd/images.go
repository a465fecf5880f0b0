package containerd

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"gpunode.example/rehearsal/k3s/internal/log"
)

var archiveEndings = []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"}

// Archives lists the image archives of a folder in the order of their names.
func Archives(folder string) ([]string, error) {
	listing, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range listing {
		for _, ending := range archiveEndings {
			if !entry.IsDir() && strings.HasSuffix(entry.Name(), ending) {
				found = append(found, filepath.Join(folder, entry.Name()))
				break
			}
		}
	}
	return found, nil
}

// Import loads one archive into the namespace that kubelet uses, and pins its images, as k3s does: kubelet's image
// garbage collection leaves them alone.
func Import(ctr, address, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := decompress(archive, file)
	if err != nil {
		return fmt.Errorf("importing %s: %w", archive, err)
	}
	var output bytes.Buffer
	cmd := exec.Command(ctr, "--address", address, "--namespace", "k8s.io", "images", "import", "--local",
		"--label", "io.cattle.k3s.pinned=pinned", "--label", "io.cri-containerd.pinned=pinned", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = plain, &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("importing %s: %w: %s", archive, err, strings.TrimSpace(output.String()))
	}
	log.Info("Imported images from %s", archive)
	return nil
}

// decompress undoes what the name's ending says: ctr reads plain archives only.
func decompress(name string, file io.Reader) (io.Reader, error) {
	switch filepath.Ext(name) {
	case ".zst", ".tzst":
		return zstd.NewReader(file)
	case ".gz", ".tgz":
		return gzip.NewReader(file)
	}
	return file, nil
}
