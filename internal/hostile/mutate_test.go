//go:build linux

package hostile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// maxInput limits what repeated mutations make of a file of the corpus, which may itself be larger.
const maxInput = 1 << 18

// numbers replace those of a text.
var numbers = []string{
	"0", "-0", "-1", "1", "0.5", "2147483647", "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551616",
	"1e18", "1e308", "-1e308", "1e999", "5e-324", "1e-400", "NaN", "Inf", "-Infinity", "0x7fffffffffffffff", "1_000", "null", "\"1\"",
	strings.Repeat("9", 400), "0." + strings.Repeat("0", 400) + "1",
}

// tokens mean something to a reader.
var tokens = []string{
	"\x00", "\n", "\r", "\r\n", "\"", "\"\"", ",", ";", "\t", " ", "#", "'", "\\", "\\u0000", "\ufeff", "\xff", "\xff\xfe", "\xfe\xff", "\u202e",
	"{", "}", "[", "]", ":", "&a ", "*a", "<<: ", "!!binary ", "? ", "- ", "|", "---\n", "null", "true", "{}", "[]", "\"a\":", "PK\x03\x04", "\x1f\x8b", "ARROW1", "PAR1",
	"../../etc/passwd", "%s%d", "<script>",
}

var digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?`)

// mutate returns b after one to eight changes; other is another file of the corpus. It leaves both as they are.
func mutate(r *rand.Rand, b, other []byte) []byte {
	b = bytes.Clone(b)
	for more := true; more; more = r.IntN(2) == 0 {
		b = mutateOnce(r, b, other)
		if len(b) > maxInput {
			b = b[:min(len(b), max(maxInput, len(other)))]
		}
	}
	return b
}

func mutateOnce(r *rand.Rand, b, other []byte) []byte {
	from, to := span(r, len(b))
	switch r.IntN(13) {
	case 0: // a bit
		if len(b) > 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	case 1: // some bytes
		for range r.IntN(8) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
		}
	case 2: // truncation
		b = b[:from]
	case 3: // cut
		b = slices.Delete(b, from, to)
	case 4: // a part again and again
		times := 1 + r.IntN(1<<r.IntN(14))
		if times *= to - from; times > maxInput {
			times = maxInput
		}
		if to > from {
			b = slices.Insert(b, to, bytes.Repeat(b[from:to], 1+times/(to-from))...)
		}
	case 5: // a splice of two files
		at := r.IntN(len(other) + 1)
		b = append(b[:from:from], other[at:]...)
	case 6: // a part of another file
		f, t := span(r, len(other))
		b = slices.Replace(b, from, to, other[f:t]...)
	case 7, 8: // a number of a text
		if all := digits.FindAllIndex(b, 5000); len(all) > 0 {
			at := all[r.IntN(len(all))]
			b = slices.Replace(b, at[0], at[1], []byte(numbers[r.IntN(len(numbers))])...)
		}
	case 9, 10: // a length of a binary file, more often near its beginning or its end
		b = setLength(r, b)
	case 11: // a token, perhaps many
		token := tokens[r.IntN(len(tokens))]
		times := 1
		if r.IntN(4) == 0 {
			times = 1 + r.IntN(1<<r.IntN(16))
		}
		b = slices.Insert(b, from, []byte(strings.Repeat(token, min(times, maxInput/len(token))))...)
	case 12: // two lines change places
		lines := bytes.SplitAfter(b, []byte("\n"))
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		b = bytes.Join(lines, nil)
	}
	return b
}

// span is a part of n bytes, most often a short one.
func span(r *rand.Rand, n int) (from, to int) {
	from = r.IntN(n + 1)
	return from, from + r.IntN(min(n-from, 1<<r.IntN(16))+1)
}

// setLength sets 1, 2, 4 or 8 bytes to an extreme number in either byte order.
func setLength(r *rand.Rand, b []byte) []byte {
	size := 1 << r.IntN(4)
	if len(b) < size {
		return b
	}
	at := r.IntN(len(b) - size + 1)
	switch r.IntN(4) {
	case 0:
		at = min(at, r.IntN(128))
	case 1:
		at = max(at, len(b)-size-r.IntN(min(128, len(b)-size+1)))
	}
	v := []uint64{0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1, uint64(len(b)), uint64(r.IntN(1 << 20))}[r.IntN(16)]
	full := make([]byte, 8)
	if r.IntN(2) == 0 {
		binary.LittleEndian.PutUint64(full, v)
		full = full[:size]
	} else {
		binary.BigEndian.PutUint64(full, v)
		full = full[8-size:]
	}
	copy(b[at:], full)
	return b
}
