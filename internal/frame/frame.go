// Package frame is how journals hold their records: append-only files of frames, of which a crash may tear the last.
// A frame is, little-endian:
//
//	length of the body  4 bytes
//	CRC-32C             4 bytes, of the length
//	CRC-32C             4 bytes, of the body
//	body
//
// The length has a checksum of its own. Without it, a damaged length in the middle of a file would read as a torn
// end, and what follows would be lost.
package frame

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Head is the length of a frame's head in bytes.
const Head = 12

var (
	// ErrTorn says that the frame is not whole and nothing follows it: its writer was killed.
	ErrTorn = errors.New("the last frame is not whole")
	// ErrDamaged says that the frame was whole once.
	ErrDamaged = errors.New("the frame is damaged")
	// ErrLong says that the frame is longer than allowed.
	ErrLong = errors.New("the frame is too long")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Begin appends the head of a frame to b, which Seal fills. The body follows.
func Begin(b []byte) []byte { return append(b, make([]byte, Head)...) }

// Seal fills the head of a frame, which is all of b.
func Seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-Head))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[:4], castagnoli))
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[Head:], castagnoli))
	return b
}

// length is that of a body by its frame's head; false: the head is damaged.
func length(head []byte) (int64, bool) {
	return int64(binary.LittleEndian.Uint32(head)), crc32.Checksum(head[:4],
		castagnoli) == binary.LittleEndian.Uint32(head[4:])
}

// Read returns the body of the frame at a byte of a file of that size, of at most so many bytes. A frame that is not
// whole is ErrTorn at the end of the file, and ErrDamaged before it.
func Read(r io.ReaderAt, at, size, most int64) ([]byte, error) {
	var head [Head]byte
	rest := size - at
	if rest < Head {
		return nil, ErrTorn
	}
	if err := readAt(r, head[:], at); err != nil {
		return nil, err
	}
	n, ok := length(head[:])
	switch {
	case !ok: // the end is torn, unless a whole frame follows
		whole, err := wholeAfter(r, at+1, size)
		if err == nil && whole {
			err = ErrDamaged
		}
		if err == nil {
			err = ErrTorn
		}
		return nil, err
	case n < 1 || n > rest-Head:
		return nil, ErrTorn
	case n > most:
		return nil, ErrLong
	}
	body := make([]byte, n)
	if err := readAt(r, body, at+Head); err != nil {
		return nil, err
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		if n == rest-Head {
			return nil, ErrTorn
		}
		return nil, ErrDamaged
	}
	return body, nil
}

// readAt fills b; the end of the file may follow it.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	return err
}

// wholeAfter reports whether an intact frame begins at that byte or after it.
func wholeAfter(r io.ReaderAt, at, size int64) (bool, error) {
	rest := make([]byte, size-at)
	if err := readAt(r, rest, at); err != nil {
		return false, err
	}
	for b := rest; len(b) > Head; b = b[1:] {
		n, ok := length(b)
		if ok && n > 0 && n <= int64(len(b)-Head) &&
			crc32.Checksum(b[Head:Head+n], castagnoli) == binary.LittleEndian.Uint32(b[8:]) {
			return true, nil
		}
	}
	return false, nil
}
