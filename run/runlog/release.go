package runlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
)

// A file of releases: a first line, then records of
//
//	uint32 length of what follows up to the checksum | uint64 batch | uint32 answers |
//	for each answer: uint32 values, values as float64 | uint32 CRC-32C of all before
//
// all little-endian.
var (
	magic      = []byte("sotto releases 1\n")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// A Release is the answers of one batch.
type Release struct {
	Batch   int
	Answers [][]float64
}

// ReleaseBytes is the size of a batch that answers one vector of n numbers.
func ReleaseBytes(n int) int { return 24 + 8*n }

func appendRelease(dst []byte, batch int, answers [][]float64) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = append(dst, 0, 0, 0, 0) // the length, below
	dst = le.AppendUint64(dst, uint64(batch))
	dst = le.AppendUint32(dst, uint32(len(answers)))
	for _, a := range answers {
		dst = appendVector(dst, a)
	}
	le.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendVector appends a vector as releases and journals hold it.
func appendVector(dst []byte, v []float64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// wholeRelease reports whether b begins with all answers of a record, whatever length the record
// claims. It does not if a write was cut.
func wholeRelease(b []byte) bool {
	f := fields{rest: b}
	f.take(4 + 8) // length and batch
	for range f.count(4) {
		f.take(8 * f.count(8))
	}
	f.take(4) // checksum
	return !f.bad
}

// parse checks a record's body. If keep is set, it keeps the answers, in the memory of those before.
func (rel *Release) parse(b []byte, keep bool) error {
	f := fields{rest: b}
	rel.Batch = int(binary.LittleEndian.Uint64(f.take(8)))
	before := rel.Answers
	rel.Answers = rel.Answers[:0]
	for i := range f.count(4) {
		switch {
		case !keep:
			f.take(8 * f.count(8))
		case i < len(before):
			rel.Answers = append(rel.Answers, f.vector(before[i][:0]))
		default:
			rel.Answers = append(rel.Answers, f.vector(nil))
		}
	}
	switch {
	case f.bad:
		return errors.New("is shorter than it says")
	case len(f.rest) != 0:
		return errors.New("is longer than it says")
	}
	return nil
}

// fields reads numbers and vectors from bytes. A missing field is 0 and sets bad.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n < 0 || n > len(f.rest) {
		f.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) byte() byte { return f.take(1)[0] }

func (f *fields) number64() int {
	v := binary.LittleEndian.Uint64(f.take(8))
	if v > math.MaxInt32 {
		f.bad = true
		return 0
	}
	return int(v)
}

// count reads a number of items of at least size bytes each.
func (f *fields) count(size int) int {
	v := int(binary.LittleEndian.Uint32(f.take(4)))
	if v > len(f.rest)/size {
		f.bad = true
		return 0
	}
	return v
}

// vector appends a vector to dst.
func (f *fields) vector(dst []float64) []float64 {
	b := f.take(8 * f.count(8))
	dst = slices.Grow(dst, len(b)/8)
	for ; len(b) >= 8; b = b[8:] {
		dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return dst
}
