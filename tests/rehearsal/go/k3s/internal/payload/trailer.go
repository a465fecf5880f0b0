// Package payload carries the components in the same file as the command, as k3s does: a compressed archive
// stands behind the program, and a trailer of fixed length behind the archive says where it begins.
package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

const magic = "\x00k3s-payload-v1\x00"

// trailerSize is sha256 (32) + length (8) + magic (16).
const trailerSize = sha256.Size + 8 + len(magic)

// ErrNone says that a program carries no archive (it was compiled but not packed).
var ErrNone = errors.New("this k3s carries no components: it was compiled but not packed (see k3s_release.py)")

// Trailer describes the archive inside a packed program.
type Trailer struct {
	Sum    [sha256.Size]byte
	Length int64
	start  int64
}

// Hash names the folder in which the archive is unpacked.
func (t Trailer) Hash() string { return hex.EncodeToString(t.Sum[:]) }

// Read finds the trailer of a packed program.
func Read(program *os.File) (Trailer, error) {
	info, err := program.Stat()
	if err != nil {
		return Trailer{}, err
	}
	if info.Size() < int64(trailerSize) {
		return Trailer{}, ErrNone
	}
	raw := make([]byte, trailerSize)
	if _, err := program.ReadAt(raw, info.Size()-int64(trailerSize)); err != nil {
		return Trailer{}, err
	}
	if !bytes.HasSuffix(raw, []byte(magic)) {
		return Trailer{}, ErrNone
	}
	var t Trailer
	copy(t.Sum[:], raw)
	t.Length = int64(binary.BigEndian.Uint64(raw[sha256.Size:]))
	t.start = info.Size() - int64(trailerSize) - t.Length
	if t.Length <= 0 || t.start < 0 {
		return Trailer{}, fmt.Errorf("%s: the trailer speaks of %d bytes, the file has %d: download it again", program.Name(), t.Length, info.Size())
	}
	return t, nil
}

// Append writes program, archive and trailer to out.
func Append(out io.Writer, program, archive io.Reader) error {
	if _, err := io.Copy(out, program); err != nil {
		return err
	}
	sum := sha256.New()
	length, err := io.Copy(io.MultiWriter(out, sum), archive)
	if err != nil {
		return err
	}
	raw := binary.BigEndian.AppendUint64(sum.Sum(nil), uint64(length))
	_, err = out.Write(append(raw, magic...))
	return err
}
