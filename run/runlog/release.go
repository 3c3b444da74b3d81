package runlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
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
	length := 12
	for _, a := range answers {
		length += 4 + 8*len(a)
	}
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(length))
	dst = le.AppendUint64(dst, uint64(batch))
	dst = le.AppendUint32(dst, uint32(len(answers)))
	for _, a := range answers {
		dst = appendVector(dst, a)
	}
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendVector writes a vector as releases and journals hold it.
func appendVector(dst []byte, v []float64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// wholeRelease says whether b begins with a record that is all there, whatever
// length it claims: its answers end within b. A write that was cut is no such.
func wholeRelease(b []byte) bool {
	le := binary.LittleEndian
	if len(b) < 16 {
		return false
	}
	n := int64(le.Uint32(b[12:]))
	b = b[16:]
	for ; n > 0; n-- {
		if len(b) < 4 || (int64(len(b))-4)/8 < int64(le.Uint32(b)) {
			return false
		}
		b = b[4+8*int(le.Uint32(b)):]
	}
	return len(b) >= 4
}

// parse checks a record's body, and keeps its answers, in the memory of those that were there, if answers says so.
func (rel *Release) parse(b []byte, answers bool) error {
	le := binary.LittleEndian
	short := errors.New("is shorter than it says")
	if len(b) < 12 {
		return short
	}
	rel.Batch = int(le.Uint64(b))
	n := int(le.Uint32(b[8:]))
	b = b[12:]
	kept := rel.Answers
	rel.Answers = rel.Answers[:0]
	for i := range n {
		if len(b) < 4 || (len(b)-4)/8 < int(le.Uint32(b)) {
			return short
		}
		size := int(le.Uint32(b))
		b = b[4:]
		if answers {
			var a []float64
			if i < len(kept) {
				a = kept[i][:0]
			}
			for j := range size {
				a = append(a, math.Float64frombits(le.Uint64(b[8*j:])))
			}
			rel.Answers = append(rel.Answers, a)
		}
		b = b[8*size:]
	}
	if len(b) != 0 {
		return errors.New("is longer than it says")
	}
	return nil
}
