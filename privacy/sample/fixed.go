package sample

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Fixed takes exactly M of a table's N records, every set of that size equally likely. N is
// the physical row count, which the owner declares and which is public under replace-one
// (R9). 1 ≤ M ≤ N; at M = N Fixed is Full in every respect. The zero value is invalid.
type Fixed struct{ M, N int }

// Event is privacy.FixedSampled of the same M and N, or inner if they are equal.
func (f Fixed) Event(inner privacy.Event) privacy.Event {
	if f.M == f.N {
		return inner
	}
	return privacy.FixedSampled{M: f.M, N: f.N, Of: inner}
}

// sparse is from how many records for each one taken a set is sorted rather than marked in
// a bitmap.
const sparse = 512

// Draw draws M distinct numbers below n. n must be N, for which the event speaks: another
// number panics. The cost is in proportion to M (a sort's logarithm apart, if M is below
// n/512), and dst is long enough for all scratch memory if it was made by an earlier Draw.
//
// Law. Numbers are drawn independently and uniformly (noise.Source.Below, exact) until k
// distinct ones have been seen. The law of that sequence does not change when the numbers
// below n are renamed, so neither does that of the set: every set of k is equally
// likely. For M ≤ n/2 the batch is such a set of k = M; else it is what such a set of
// k = n − M leaves out.
func (f Fixed) Draw(dst []int32, n int, src *noise.Source) (rows []int32, all bool) {
	if err := f.validate(); err != nil {
		panic(err.Error())
	}
	checkRows(n)
	if n != f.N {
		panic("sample: a fixed batch of another table than the declared one")
	}
	switch {
	case f.M == n:
		return nil, true
	case f.M < n/sparse:
		return drawSorted(dst, f.M, uint64(n), src), false
	default:
		return drawMarked(dst, f.M, n, src), false
	}
}

// drawSorted draws as many numbers as are missing, sorts and drops what came twice, until
// none is missing. It never draws a number after the m-th distinct one.
func drawSorted(dst []int32, m int, n uint64, src *noise.Source) []int32 {
	rows := slices.Grow(dst[:0], m)
	for len(rows) < m {
		for len(rows) < m {
			rows = append(rows, int32(src.Below(n)))
		}
		slices.Sort(rows)
		rows = slices.Compact(rows)
	}
	return rows
}

// drawMarked marks numbers in a bitmap behind the room for the batch, then lists those
// that are marked, or that are not.
func drawMarked(dst []int32, m, n int, src *noise.Source) []int32 {
	words := (n + 31) / 32
	dst = slices.Grow(dst[:0], m+words)[:m+words]
	marks := dst[m:]
	clear(marks)
	var flip int32
	k := m
	if m > n/2 {
		k, flip = n-m, -1
	}
	for k > 0 {
		i := src.Below(uint64(n))
		if bit := int32(1) << (i % 32); marks[i/32]&bit == 0 {
			marks[i/32] |= bit
			k--
		}
	}
	at := 0
	for w, mark := range marks {
		for left := uint32(mark ^ flip); left != 0 && at < m; left &= left - 1 {
			dst[at] = int32(32*w + bits.TrailingZeros32(left))
			at++
		}
	}
	return dst[:m]
}

// Size is M, whatever rows is.
func (f Fixed) Size(int) float64 { return float64(f.M) }

// Check accepts replace-one. Under add-or-remove the row count is private: N is
// not public, and there is no theorem.
func (f Fixed) Check(adj privacy.Adjacency) error {
	if err := f.validate(); err != nil {
		return err
	}
	if err := checkAdjacency(adj); err != nil {
		return err
	}
	if adj != privacy.ReplaceOne {
		return fmt.Errorf("fixed: a batch of a fixed size has no theorem under %q, where the row count is private; choose %q",
			adj, privacy.ReplaceOne)
	}
	return nil
}

func (f Fixed) validate() error {
	if f.M < 1 || f.M > f.N || f.N > maxRows {
		return fmt.Errorf("fixed: m is %d of n = %d; choose 1 to n, and n up to %d", f.M, f.N, maxRows)
	}
	return nil
}
