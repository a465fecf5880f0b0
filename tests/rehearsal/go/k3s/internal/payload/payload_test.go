package payload

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	writer := tar.NewWriter(encoder)
	for _, header := range headers {
		body := []byte("content of " + header.Name)
		if header.Typeflag == tar.TypeReg {
			header.Size, header.Mode = int64(len(body)), 0o755
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := writer.Write(body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(writer.Close(), encoder.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }

// pack writes a packed program and lets change spoil it.
func pack(t *testing.T, content []byte, change func([]byte) []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := Append(&out, strings.NewReader("\x7fELF program"), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	raw := out.Bytes()
	if change != nil {
		raw = change(raw)
	}
	path := filepath.Join(t.TempDir(), "k3s")
	if err := os.WriteFile(path, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnpackOnceWithLinks(t *testing.T) {
	program := pack(t, archive(t, file("bin/etcd"), tar.Header{Name: "bin/etcdutl", Typeflag: tar.TypeSymlink, Linkname: "etcd"}), nil)
	data := t.TempDir()
	bin, err := Ensure(program, data)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(bin, "etcdutl"))
	if err != nil || string(raw) != "content of bin/etcd" {
		t.Fatalf("%q %v", raw, err)
	}
	if link, err := os.Readlink(filepath.Join(data, "current")); err != nil || link != filepath.Base(filepath.Dir(bin)) {
		t.Errorf("current -> %q %v", link, err)
	}
	if again, err := Ensure(program, data); err != nil || again != bin {
		t.Errorf("second start: %q %v", again, err)
	}
}

func TestNewProgramMovesCurrentAndKeepsPrevious(t *testing.T) {
	data := t.TempDir()
	first, err := Ensure(pack(t, archive(t, file("bin/a")), nil), data)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Ensure(pack(t, archive(t, file("bin/b")), nil), data)
	if err != nil {
		t.Fatal(err)
	}
	current, _ := os.Readlink(filepath.Join(data, "current"))
	previous, _ := os.Readlink(filepath.Join(data, "previous"))
	if current != filepath.Base(filepath.Dir(second)) || previous != filepath.Base(filepath.Dir(first)) {
		t.Errorf("current %q previous %q", current, previous)
	}
}

func TestDamagedArchiveLeavesNothing(t *testing.T) {
	content := archive(t, file("bin/etcd"))
	damaged := map[string]func([]byte) []byte{
		"a flipped bit":                 func(raw []byte) []byte { raw[len("\x7fELF program")+len(content)/2] ^= 1; return raw },
		"a flipped bit in the checksum": func(raw []byte) []byte { raw[len(raw)-trailerSize] ^= 1; return raw },
	}
	for name, change := range damaged {
		data := t.TempDir()
		if _, err := Ensure(pack(t, content, change), data); err == nil {
			t.Errorf("%s was accepted", name)
		}
		left, _ := filepath.Glob(filepath.Join(data, "[^.]*"))
		if len(left) != 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

func TestCutFileIsFoundAtItsTrailer(t *testing.T) {
	cut := pack(t, archive(t, file("bin/etcd")), func(raw []byte) []byte { return raw[:len(raw)-5] })
	if _, err := Ensure(cut, t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("end cut off: %v", err)
	}
	short := pack(t, archive(t, file("bin/etcd")), func(raw []byte) []byte { return raw[60:] })
	if _, err := Ensure(short, t.TempDir()); err == nil || !strings.Contains(err.Error(), "download it again") {
		t.Errorf("beginning cut off: %v", err)
	}
}

func TestHalfUnpackedFolderIsNotTrusted(t *testing.T) {
	program := pack(t, archive(t, file("bin/etcd")), nil)
	data := t.TempDir()
	bin, err := Ensure(program, data)
	if err != nil {
		t.Fatal(err)
	}
	final := filepath.Dir(bin)
	// What a killed first start leaves: the temporary folder with a part of the files.
	if err := os.Rename(final, final+"-tmp"); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(final+"-tmp", "bin", "etcd"))
	if _, err := Ensure(program, data); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "etcd")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(final + "-tmp"); err == nil {
		t.Error("the temporary folder is still there")
	}
}

func TestNamesThatLeadOutAreRefused(t *testing.T) {
	for _, header := range []tar.Header{file("../evil"), {Name: "bin/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}} {
		if _, err := Ensure(pack(t, archive(t, header), nil), t.TempDir()); err == nil {
			t.Errorf("%s was accepted", header.Name)
		}
	}
}
