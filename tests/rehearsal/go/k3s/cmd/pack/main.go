// pack makes the packed k3s: the compiled program, an archive of the components, and the trailer.
//
//	pack -program PROGRAM -out FILE DIR...
//
// What k3s runs is taken from the folders and becomes bin/<name>; a link to a neighbour stays a link, and what it leads
// to comes along. The archive is the same for the same files: no times, no owners, sorted by name.
package main

import (
	"archive/tar"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"

	"gpunode.example/rehearsal/k3s/internal/payload"
)

// required are the names that k3s starts or that its subcommands run.
var required = []string{
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
	"etcd", "etcdutl", "containerd", "containerd-shim-runc-v2", "ctr", "crictl", "runc",
	"bridge", "host-local", "portmap", "loopback", "kube-router",
}

func main() {
	program := flag.String("program", "", "compiled k3s")
	out := flag.String("out", "", "packed k3s")
	flag.Parse()
	if err := run(*program, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(program, out string, folders []string) error {
	entries, err := collect(folders)
	if err != nil {
		return err
	}
	source, err := os.Open(program)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(archive(writer, entries)) }()
	return errors.Join(payload.Append(target, source, reader), target.Close())
}

// collect finds the required names and the neighbours that they are links to.
func collect(folders []string) (map[string]string, error) {
	entries := map[string]string{}
	var missing []string
	for _, name := range required {
		path, ok := find(folders, name)
		if !ok {
			missing = append(missing, name)
			continue
		}
		entries[name] = path
		if neighbour := linkTo(path); neighbour != "" {
			entries[neighbour] = filepath.Join(filepath.Dir(path), neighbour)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no %s in %s: the components are not complete", strings.Join(missing, ", "), strings.Join(folders, ", "))
	}
	return entries, nil
}

func find(folders []string, name string) (string, bool) {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
	}
	return "", false
}

// linkTo returns the neighbour that a link leads to. A link that leaves its folder would dangle after unpacking and is
// carried as the file that it leads to.
func linkTo(path string) string {
	link, err := os.Readlink(path)
	if err != nil || strings.Contains(link, "/") {
		return ""
	}
	return link
}

func archive(out io.Writer, entries map[string]string) error {
	// Fast is right here: it is unpacked once from a loopback mirror, and built far more often than it is kept.
	encoder, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Strings(names)
	writer := tar.NewWriter(encoder)
	for _, name := range names {
		if err := add(writer, name, entries[name]); err != nil {
			return err
		}
	}
	return errors.Join(writer.Close(), encoder.Close())
}

func add(writer *tar.Writer, name, path string) error {
	header := &tar.Header{Name: "bin/" + name, Mode: 0o755, Format: tar.FormatPAX}
	if link := linkTo(path); link != "" {
		header.Typeflag, header.Linkname = tar.TypeSymlink, link
		return writer.WriteHeader(header)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(writer, file)
	return err
}
