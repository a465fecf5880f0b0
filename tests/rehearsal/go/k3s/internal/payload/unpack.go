package payload

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// Ensure unpacks the archive of program below data (…/k3s/data) unless it is there, and returns its bin folder.
//
// A folder gets its final name only when every file is written, synced and the archive's checksum was right, so a
// process that is killed or a disk that is full leaves nothing that the next start would trust.
func Ensure(program, data string) (string, error) {
	file, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer file.Close()
	trailer, err := Read(file)
	if err != nil {
		return "", err
	}
	final := filepath.Join(data, trailer.Hash())
	if _, err := os.Stat(final); err == nil {
		return filepath.Join(final, "bin"), point(data, trailer.Hash())
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(data, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(final); err == nil {
		return filepath.Join(final, "bin"), point(data, trailer.Hash())
	}
	partial := final + "-tmp"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := unpack(file, trailer, partial); err != nil {
		os.RemoveAll(partial)
		return "", fmt.Errorf("unpacking the components of %s to %s: %w", program, final, err)
	}
	if err := os.Rename(partial, final); err != nil {
		return "", err
	}
	return filepath.Join(final, "bin"), point(data, trailer.Hash())
}

func lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

func unpack(file *os.File, trailer Trailer, target string) error {
	sum := sha256.New()
	archive := io.TeeReader(io.NewSectionReader(file, trailer.start, trailer.Length), sum)
	decoder, err := zstd.NewReader(archive)
	if err != nil {
		return err
	}
	defer decoder.Close()
	if err := untar(tar.NewReader(decoder), target); err != nil {
		return err
	}
	// The decoder stops at the end of the archive's last frame; what is behind it belongs to the checksum too.
	if _, err := io.Copy(io.Discard, archive); err != nil {
		return err
	}
	if [sha256.Size]byte(sum.Sum(nil)) != trailer.Sum {
		return errors.New("checksum of the archive does not match its trailer: the file is damaged, download it again")
	}
	return nil
}

func untar(archive *tar.Reader, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("archive holds the name %q, which leads out of its folder", header.Name)
		}
		path := filepath.Join(target, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeReg:
			err = write(path, archive, os.FileMode(header.Mode).Perm())
		case tar.TypeSymlink:
			if strings.Contains(header.Linkname, "/") {
				return fmt.Errorf("archive holds the link %q to %q: only links to a neighbour are expected", header.Name, header.Linkname)
			}
			err = os.Symlink(header.Linkname, path)
		default:
			err = fmt.Errorf("archive holds %q of unexpected type %q", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, content io.Reader, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		file.Close()
		return err
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// point moves the links current and previous, as k3s does: current is what runs, previous what ran before it.
func point(data, hash string) error {
	current := filepath.Join(data, "current")
	old, err := os.Readlink(current)
	if err == nil && filepath.Base(old) == hash {
		return nil
	}
	if os.Geteuid() != 0 && err == nil {
		return nil
	}
	if err == nil {
		if err := relink(old, filepath.Join(data, "previous")); err != nil {
			return err
		}
	}
	return relink(hash, current)
}

func relink(target, link string) error {
	fresh := link + "-tmp"
	os.Remove(fresh)
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, link)
}
