package transport

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// ErrForged says that a message does not fit its key, or that its owner did not sign it.
var ErrForged = errors.New("the message is damaged, from another run, or not signed by its sender")

// A Config is the hash of everything that the owners of a run agreed on. It is part of every signed text.
type Config [sha256.Size]byte

// A vector travels as messages of a header, up to chunkFloats numbers and a signature, all with the lowest byte first:
//
//	 0  magic     4     24  from    4     40  dim      8
//	 4  version   1     28  to      4     48  CRC-32C  4, of the numbers
//	 5  number    1     32  chunk   4     52  zero
//	 8  run       8     36  chunks  4     64  numbers, float64
//	16  round     8
//
// The run is the head of the config. The signature is Ed25519's of the SHA-256 of config, header and numbers.
const (
	vectorMagic  = "STTV"
	vectorFormat = 1
	float64s     = 1
	headerBytes  = 64
	chunkFloats  = 512 << 10 / 8
)

// toAll stands for the receiver of what every owner may read.
const toAll = math.MaxUint32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func chunksOf(dim int) int { return max(1, (dim+chunkFloats-1)/chunkFloats) }

// header returns the beginning of a chunk of that vector, without the checksum.
func header(config Config, round, from, to, chunk, dim int) []byte {
	h := append(make([]byte, 0, headerBytes), vectorMagic...)
	h = append(h, vectorFormat, float64s, 0, 0)
	h = append(h, config[:8]...)
	h = binary.LittleEndian.AppendUint64(h, uint64(round))
	for _, v := range []int{from, to, chunk, chunksOf(dim)} {
		h = binary.LittleEndian.AppendUint32(h, uint32(v))
	}
	h = binary.LittleEndian.AppendUint64(h, uint64(dim))
	return append(h, make([]byte, headerBytes-len(h))...)
}

const checksumAt = 48

// encode returns one chunk of v as a message.
func encode(config Config, key ed25519.PrivateKey, round, from, to, chunk int, v []float64) []byte {
	part := v[chunk*chunkFloats : min(len(v), (chunk+1)*chunkFloats)]
	b := make([]byte, headerBytes, headerBytes+8*len(part)+ed25519.SignatureSize)
	copy(b, header(config, round, from, to, chunk, len(v)))
	for _, x := range part {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	binary.LittleEndian.PutUint32(b[checksumAt:], crc32.Checksum(b[headerBytes:], castagnoli))
	return sign(config, key, b)
}

// decode sets the chunk of v that the message b holds.
func decode(config Config, key ed25519.PublicKey, round, from, to, chunk int, v []float64, b []byte) error {
	part := v[chunk*chunkFloats : min(len(v), (chunk+1)*chunkFloats)]
	b, err := signed(config, key, b)
	if err != nil {
		return err
	}
	want := header(config, round, from, to, chunk, len(v))
	if len(b) != headerBytes+8*len(part) {
		return fmt.Errorf("found %d bytes: %w", len(b), ErrForged)
	}
	copy(want[checksumAt:], b[checksumAt:checksumAt+4])
	if !bytes.Equal(b[:headerBytes], want) ||
		crc32.Checksum(b[headerBytes:], castagnoli) != binary.LittleEndian.Uint32(b[checksumAt:]) {
		return fmt.Errorf("found another header: %w", ErrForged)
	}
	for i := range part {
		part[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[headerBytes+8*i:]))
	}
	return nil
}

func digest(config Config, text []byte) []byte {
	h := sha256.New()
	h.Write(config[:])
	h.Write(text)
	return h.Sum(nil)
}

// sign appends a signature to the text.
func sign(config Config, key ed25519.PrivateKey, text []byte) []byte {
	return append(text, ed25519.Sign(key, digest(config, text))...)
}

// signed returns the text of a message with its signature.
func signed(config Config, key ed25519.PublicKey, b []byte) ([]byte, error) {
	n := len(b) - ed25519.SignatureSize
	if n < 0 || !ed25519.Verify(key, digest(config, b[:n]), b[n:]) {
		return nil, ErrForged
	}
	return b[:n], nil
}
