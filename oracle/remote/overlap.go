package remote

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Rows that two shards share count twice, and so do units with rows in two shards. Sketches find the rows, lists of all ids' hashes the
// units: see ADR 63.

const (
	sketchRows = 2048  // distinct rows of a sketch
	sketchSize = 9     // bytes of each: its hash, and how often the shard has it
	tallySize  = 3 * 4 // of a tally, as bytes
	mostShared = 0.05  // of a shard's rows, as far as chance does not explain them
	chance     = 1e-9  // at most, of refusing two shards whose rows are independent
	never      = -math.MaxFloat64
)

// A Refused error says which shards may not be used together, and why.
type Refused struct {
	Shards []int // from 0
	Why    string
}

func (r *Refused) Error() string { return r.Why }

// refuse makes a Refused error of one shard, or of two.
func refuse(of int, why string, shards ...int) *Refused {
	slices.Sort(shards)
	who := fmt.Sprintf("shard %d of %d", shards[0]+1, of)
	if len(shards) == 2 {
		who = fmt.Sprintf("shards %d and %d of %d", shards[0]+1, shards[1]+1, of)
	}
	return &Refused{shards, who + ": " + why}
}

const (
	sameRows  = "found the same rows in both; allowed is each row in one"
	manyRows  = "found more than 5 % of the rows of one in the other; allowed is each row in one. If equal rows are different people, divide the table at random and not in turns"
	sameUnit  = "found rows of one unit in both; allowed are all rows of a unit in one shard. Divide the table by the column of the unit"
	manyUnits = "found many more units than its part of those in the schema; allowed are up to eight times its part, and up to twice them all. Divide the table more evenly, or correct units in the schema"
)

// A sketch has the least distinct hashes of a shard's rows under a key of the session: a uniform sample of them.
type sketch struct {
	rows  []uint64 // ascending
	times []byte   // that the shard has the row: 1, 2, or 3 for more
}

// sketchOf makes a sketch of the ascending hashes of rows.
func sketchOf(rows []uint64) (s sketch) {
	for len(rows) > 0 && len(s.rows) < sketchRows {
		n := run(rows)
		s.rows, s.times = append(s.rows, rows[0]), append(s.times, byte(min(n, 3)))
		rows = rows[n:]
	}
	return s
}

// run is the number of equal hashes at the beginning.
func run(rows []uint64) int {
	n := 1
	for n < len(rows) && rows[n] == rows[0] {
		n++
	}
	return n
}

// append writes a sketch in the same number of bytes, however many rows there are.
func (s sketch) append(dst []byte) []byte {
	for i, h := range s.rows {
		dst = append(binary.LittleEndian.AppendUint64(dst, h), s.times[i])
	}
	return append(dst, make([]byte, (sketchRows-len(s.rows))*sketchSize)...)
}

// readSketch is the reverse, of sketchRows·sketchSize bytes.
func readSketch(b []byte) (s sketch) {
	for ; len(b) >= sketchSize && b[sketchSize-1] > 0; b = b[sketchSize:] {
		s.rows, s.times = append(s.rows, binary.LittleEndian.Uint64(b)), append(s.times, b[sketchSize-1])
	}
	return s
}

// end is the last hash of which the sketch speaks.
func (s sketch) end() uint64 {
	if len(s.rows) < sketchRows {
		return math.MaxUint64
	}
	return s.rows[len(s.rows)-1]
}

// once is the number of its rows that the shard has once.
func (s sketch) once() (n int) {
	for _, t := range s.times {
		if t == 1 {
			n++
		}
	}
	return n
}

// A tally counts rows that two shards have twice together, among those of which one's sketch speaks.
type tally struct {
	both         int // each has it once
	theirs, ours int // the one that the sketch is of has it twice; the other has
}

// with compares a sketch with the ascending hashes of another shard's rows.
func (s sketch) with(rows []uint64) (t tally) {
	end, i := s.end(), 0
	for i < len(s.rows) || len(rows) > 0 {
		theirs, ours := 0, 0
		switch {
		case len(rows) == 0 || i < len(s.rows) && s.rows[i] < rows[0]:
			theirs = int(s.times[i])
			i++
		case rows[0] > end:
			return t
		default:
			ours = run(rows)
			if i < len(s.rows) && s.rows[i] == rows[0] {
				theirs = int(s.times[i])
				i++
			}
			rows = rows[ours:]
		}
		switch {
		case theirs == 1 && ours == 1:
			t.both++
		case theirs == 2 && ours == 0:
			t.theirs++
		case theirs == 0 && ours == 2:
			t.ours++
		}
	}
	return t
}

func (t tally) append(dst []byte) []byte {
	for _, v := range []int{t.both, t.theirs, t.ours} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return dst
}

// readTally is the reverse, of tallySize bytes.
func readTally(b []byte) tally {
	at := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	return tally{at(0), at(1), at(2)}
}

// overlap says whether more rows are in both shards than independent ones would share. Once is the number of rows of the sketch that its
// shard has once.
func (t tally) overlap(once int) bool {
	expected := 2 * math.Sqrt(float64(t.theirs)*float64(t.ours))
	return float64(t.both)-expected > mostShared*float64(once) && t.evidence() > -math.Log(chance)
}

// evidence is the logarithm of a number that is at most 1 on average, if the rows of both shards are independent: a mean of products
// over the rows that both have twice together, of 1 + √(xy) for one that each has once, and 1 − x and 1 − y for one that the one or the
// other has twice.
func (t tally) evidence() float64 {
	most, all := never, make([]float64, 0, 12*12)
	times := func(n int, log float64) float64 {
		if n == 0 {
			return 0 // also of −∞
		}
		return float64(n) * log
	}
	for x := 1.0; x >= 0x1p-11; x /= 2 {
		for y := 1.0; y >= 0x1p-11; y /= 2 {
			e := max(never, times(t.both, math.Log1p(math.Sqrt(x*y)))+times(t.theirs, math.Log1p(-x))+times(t.ours, math.Log1p(-y)))
			most, all = max(most, e), append(all, e)
		}
	}
	sum := 0.0
	for _, e := range all {
		sum += math.Exp(e - most)
	}
	return most + math.Log(sum/float64(len(all)))
}

// twice returns the first two shards, in their order, of which one has many rows of the other: tallies[i][j] are those of sketch i at
// shard j.
func twice(sketches []sketch, tallies [][]tally) (first, second int, found bool) {
	for j := range sketches {
		for i := range j {
			if tallies[i][j].overlap(sketches[i].once()) || tallies[j][i].overlap(sketches[j].once()) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}
