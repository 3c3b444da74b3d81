package access

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/twins"
)

// hashes are what the gate compares of a table: a keyed hash of each row, or the least of them.
type hashes struct {
	rows data.Hashes   // of a table that is here, one for each row
	away *twins.Sketch // of a table elsewhere, or without names: the least, instead
	n    int           // rows of the table
	all  *twins.Sketch // of rows, once it was asked for
}

// sketch returns the distinct rows with how often the table has each. If all occur a multiple of the same number of
// times, as in a table that was appended to itself, they count as that often fewer.
func (h *hashes) sketch() twins.Sketch {
	switch {
	case h.away != nil:
		return *h.away
	case h.all != nil:
		return *h.all
	}
	rows := slices.Concat(h.rows...)
	slices.Sort(rows)
	s := twins.Of(rows)
	divisor := commonDivisor(s.Times)
	for i := range s.Times {
		s.Times[i] /= uint32(max(divisor, 1))
	}
	h.all = &s
	return s
}

// least is sketch().Least(n). Of many rows it looks at the lowest hashes alone, which are uniform: a table of which
// some rows have counts without a common divisor has none, and nothing is divided.
func (h *hashes) least(n int) twins.Sketch {
	if rows := h.rows.Len(); h.away == nil && h.all == nil && rows > 64*n {
		var low []uint64
		limit := math.MaxUint64 / uint64(rows) * uint64(4*n)
		for _, piece := range h.rows {
			for _, r := range piece {
				if r <= limit {
					low = append(low, r)
				}
			}
		}
		slices.Sort(low)
		if s := twins.Of(low); len(s.Rows) > n && commonDivisor(s.Times) == 1 {
			return s.Least(n)
		}
	}
	return h.sketch().Least(n)
}

// commonDivisor is the greatest one of some counts; 0 of none.
func commonDivisor(counts []uint32) (divisor int) {
	for i := 0; i < len(counts) && divisor != 1; i++ {
		divisor = gcd(divisor, int(counts[i]))
	}
	return divisor
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// times sets for each key of found how often the table has it, as far as its hashes reach. It returns the last hash
// that they reach.
func (h *hashes) times(found map[uint64]int) (last uint64) {
	if h.away == nil {
		for _, piece := range h.rows {
			for _, r := range piece {
				if n, ok := found[r]; ok {
					found[r] = n + 1
				}
			}
		}
		return math.MaxUint64
	}
	for i, r := range h.away.Rows {
		if _, ok := found[r]; ok {
			found[r] = int(h.away.Times[i])
		}
	}
	return h.away.Last
}

// Sizes of what a worker sends for the comparison.
const (
	sentRows = 8192                   // distinct rows of a sketch
	sentSize = 8 + 8 + sentRows*(8+4) // the number of rows, the last hash, hashes, and how often
	unknown  = math.MaxUint64         // instead of the number of rows
)

// appendTo writes a table's hashes in sentSize bytes, however many there are.
func (h *hashes) appendTo(dst []byte) []byte {
	end, n, s := len(dst)+sentSize, uint64(unknown), twins.Sketch{}
	if h != nil {
		n, s = uint64(h.n), h.least(sentRows)
	}
	dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, n), s.Last)
	for i, r := range s.Rows {
		dst = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(dst, r), s.Times[i])
	}
	return append(dst, make([]byte, end-len(dst))...)
}

// sentHashes reads what appendTo has written; nil for what was not known.
func sentHashes(b []byte) *hashes {
	n := binary.LittleEndian.Uint64(b)
	if n == unknown {
		return nil
	}
	h := &hashes{n: int(n), away: &twins.Sketch{Last: binary.LittleEndian.Uint64(b[8:])}}
	for b = b[16:sentSize]; len(b) > 0 && binary.LittleEndian.Uint32(b[8:]) > 0; b = b[8+4:] {
		h.away.Rows, h.away.Times = append(h.away.Rows, binary.LittleEndian.Uint64(b)),
			append(h.away.Times, binary.LittleEndian.Uint32(b[8:]))
	}
	return h
}

// union is one table of several: the sketch ends where the first of theirs does. It is nil if the hashes of one are not
// known.
func union(parts ...*hashes) *hashes {
	all, times := &hashes{away: &twins.Sketch{Last: math.MaxUint64}}, map[uint64]uint32{}
	for _, p := range parts {
		if p == nil {
			return nil
		}
		s := p.sketch()
		all.n += p.n
		all.away.Last = min(all.away.Last, s.Last)
		for i, r := range s.Rows {
			times[r] += s.Times[i]
		}
	}
	for _, r := range slices.Sorted(maps.Keys(times)) {
		if r <= all.away.Last {
			all.away.Rows, all.away.Times = append(all.away.Rows, r), append(all.away.Times, times[r])
		}
	}
	return all
}

// A likeness is what a comparison of two tables that are at hand together finds.
type likeness int

const (
	apart   likeness = iota
	untold           // too few rows occur once to tell
	alike            // more rows are in both than chance explains
	theSame          // the same rows
)

// compare tells the training rows from test rows of other people: by whole multisets, and by the rows that the two
// tables have twice together (ADR 63), as a share of either.
func compare(train, test *hashes) likeness {
	if train.n == 0 || test.n == 0 {
		return apart // no rows
	}
	a, b := train.sketch(), test.sketch()
	end := min(a.Last, b.Last)
	a, b = a.Upto(end), b.Upto(end)
	if slices.Equal(a.Rows, b.Rows) && slices.Equal(a.Times, b.Times) && len(a.Rows) > 0 {
		return theSame
	}
	t := twins.Compare(a, b)
	switch {
	case t.Overlap(a.Once()) || t.Overlap(b.Once()):
		return alike
	case min(a.Once(), b.Once()) < twins.Enough:
		return untold
	}
	return apart
}
