package remote

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/twins"
)

// Rows that two shards share count twice, and so do units with rows in two shards. Sketches find the rows, lists of all
// ids' hashes the units: see ADR 63.

const (
	sketchRows = 2048  // distinct rows of a sketch
	sketchSize = 9     // bytes of each: its hash, and how often the shard has it, 3 for more
	tallySize  = 3 * 4 // of a tally, as bytes
)

// A Refused error says which shards may not be used together, and why.
type Refused struct {
	Shards    []int // from 0
	Why       string
	Protected bool // the ledger of a worker's machine protects its rows
}

func (r *Refused) Error() string { return r.Why }

// refuse makes a Refused error of one shard, or of two.
func refuse(of int, why string, shards ...int) *Refused {
	slices.Sort(shards)
	who := fmt.Sprintf("shard %d of %d", shards[0]+1, of)
	if len(shards) == 2 {
		who = fmt.Sprintf("shards %d and %d of %d", shards[0]+1, shards[1]+1, of)
	}
	return &Refused{Shards: shards, Why: who + ": " + why}
}

const (
	sameRows  = "found the same rows in both; put each row into one"
	manyRows  = "found more than 5 % of the rows of one in the other; put each row into one. If equal rows are different people, divide the table at random and not in turns"
	sameUnit  = "found rows of one unit in both; put all rows of a unit into one shard. Divide the table by the column of the unit"
	manyUnits = "found many more units than its part of those in the schema; a shard may have up to eight times its part, and up to twice them all. Divide the table more evenly, or correct units in the schema"
)

// appendSketch writes a sketch in the same number of bytes, however many rows there are.
func appendSketch(dst []byte, s twins.Sketch) []byte {
	for i, h := range s.Rows {
		dst = append(binary.LittleEndian.AppendUint64(dst, h), byte(min(s.Times[i], 3)))
	}
	return append(dst, make([]byte, (sketchRows-len(s.Rows))*sketchSize)...)
}

// readSketch is the reverse, of sketchRows·sketchSize bytes.
func readSketch(b []byte) twins.Sketch {
	s := twins.Sketch{Last: math.MaxUint64}
	for ; len(b) >= sketchSize && b[sketchSize-1] > 0; b = b[sketchSize:] {
		s.Rows, s.Times = append(s.Rows, binary.LittleEndian.Uint64(b)), append(s.Times, uint32(b[sketchSize-1]))
	}
	if len(s.Rows) == sketchRows {
		s.Last = s.Rows[sketchRows-1]
	}
	return s
}

func appendTally(dst []byte, t twins.Tally) []byte {
	for _, v := range []int{t.Both, t.First, t.Last} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return dst
}

// readTally is the reverse, of tallySize bytes.
func readTally(b []byte) twins.Tally {
	at := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	return twins.Tally{Both: at(0), First: at(1), Last: at(2)}
}

// twice returns the first two shards, in their order, of which one has many rows of the other: tallies[i][j] are those
// of sketch i at shard j.
func twice(sketches []twins.Sketch, tallies [][]twins.Tally) (first, second int, found bool) {
	for j := range sketches {
		for i := range j {
			if tallies[i][j].Overlap(sketches[i].Once()) || tallies[j][i].Overlap(sketches[j].Once()) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}
