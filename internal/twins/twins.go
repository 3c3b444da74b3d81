// Package twins tells the rows of one person in two tables from equal rows of two people (ADR 63). It compares
// keyed hashes of rows, and knows nothing else of them.
package twins

import (
	"maps"
	"math"
	"slices"
)

const (
	share  = 0.05 // of a table's rows that occur once, as far as chance does not explain them
	chance = 1e-9 // at most, of taking two independent tables for one

	// Enough is the number of rows that occur once from which on a copy of a table can be told from an independent table.
	Enough = 38 // 2³⁸/144 > 10⁹
)

// A Sketch holds the least distinct hashes of a table's rows: all of them up to Last. So it is a uniform sample of the
// distinct rows.
type Sketch struct {
	Rows  []uint64 // ascending
	Times []uint32 // how often the table has each
	Last  uint64   // the last hash of which the sketch speaks
}

// Of makes a sketch of all rows. Their hashes are ascending.
func Of(rows []uint64) Sketch {
	distinct := 0
	for left := rows; len(left) > 0; distinct++ {
		left = left[run(left):]
	}
	s := Sketch{make([]uint64, 0, distinct), make([]uint32, 0, distinct), math.MaxUint64}
	for len(rows) > 0 {
		n := run(rows)
		s.Rows, s.Times = append(s.Rows, rows[0]), append(s.Times, uint32(min(n, math.MaxUint32)))
		rows = rows[n:]
	}
	return s
}

// Least is the sketch of the same table with at most n distinct rows.
func (s Sketch) Least(n int) Sketch {
	if len(s.Rows) <= n {
		return s
	}
	return Sketch{s.Rows[:n], s.Times[:n], s.Rows[n-1]}
}

// run is the number of equal hashes at the beginning.
func run(rows []uint64) int {
	n := 1
	for n < len(rows) && rows[n] == rows[0] {
		n++
	}
	return n
}

// Upto is the sketch of the same table that speaks of hashes up to last only.
func (s Sketch) Upto(last uint64) Sketch {
	if last >= s.Last {
		return s
	}
	n, found := slices.BinarySearch(s.Rows, last)
	if found {
		n++
	}
	return Sketch{s.Rows[:n], s.Times[:n], last}
}

// Once is the number of rows that the table has once.
func (s Sketch) Once() (n int) {
	for _, t := range s.Times {
		if t == 1 {
			n++
		}
	}
	return n
}

// A Tally counts the rows that two tables have exactly twice together, among those of which both sketches speak.
type Tally struct {
	Both        int // each table has it once
	First, Last int // the first table has it twice, or the last one
}

// Compare tallies two tables.
func Compare(first, last Sketch) (t Tally) {
	end := min(first.Last, last.Last)
	first, last = first.Upto(end), last.Upto(end)
	i, j := 0, 0
	for i < len(first.Rows) || j < len(last.Rows) {
		a, b := uint32(0), uint32(0)
		switch {
		case j == len(last.Rows) || i < len(first.Rows) && first.Rows[i] < last.Rows[j]:
			a = first.Times[i]
			i++
		case i == len(first.Rows) || last.Rows[j] < first.Rows[i]:
			b = last.Times[j]
			j++
		default:
			a, b = first.Times[i], last.Times[j]
			i, j = i+1, j+1
		}
		switch {
		case a == 1 && b == 1:
			t.Both++
		case a == 2 && b == 0:
			t.First++
		case a == 0 && b == 2:
			t.Last++
		}
	}
	return t
}

// ByChance estimates Both for two independent tables, from above on average.
func (t Tally) ByChance() float64 { return 2 * math.Sqrt(float64(t.First)*float64(t.Last)) }

// Overlap says whether the tables share more rows than independent ones would: above a share of the rows that one of
// them has once, of which there are once.
func (t Tally) Overlap(once int) bool {
	return float64(t.Both)-t.ByChance() > share*float64(once) && t.evidence() > -math.Log(chance)
}

// never is the logarithm of 0 in sums.
const never = -math.MaxFloat64

// evidence is the logarithm of a number that is at most 1 on average, if the rows of both tables are independent: a
// mean of products over the rows that both have twice together, of 1 + √(xy) for one that each has once, and 1 − x and
// 1 − y for one that the first or the last has twice.
func (t Tally) evidence() float64 {
	most, all := never, make([]float64, 0, 12*12)
	times := func(n int, log float64) float64 {
		if n == 0 {
			return 0 // also of −∞
		}
		return float64(n) * log
	}
	for x := 1.0; x >= 0x1p-11; x /= 2 {
		for y := 1.0; y >= 0x1p-11; y /= 2 {
			e := max(never,
				times(t.Both, math.Log1p(math.Sqrt(x*y)))+times(t.First, math.Log1p(-x))+times(t.Last, math.Log1p(-y)))
			most, all = max(most, e), append(all, e)
		}
	}
	sum := 0.0
	for _, e := range all {
		sum += math.Exp(e - most)
	}
	return most + math.Log(sum/float64(len(all)))
}

// Least collects the least distinct hashes of a table's rows, whose order does not matter. It keeps at most twice Most.
type Least struct {
	Most  int
	times map[uint64]uint32
	last  uint64 // greater hashes are no longer kept
	full  bool

	sorted []uint64 // room for all of times
}

// Add adds a row.
func (l *Least) Add(h uint64) {
	if l.full && h > l.last {
		return
	}
	if l.times == nil {
		l.times = map[uint64]uint32{}
	}
	if n := l.times[h]; n < math.MaxUint32 {
		l.times[h] = n + 1
	}
	if len(l.times) > 2*l.Most {
		l.sorted = slices.AppendSeq(l.sorted[:0], maps.Keys(l.times))
		slices.Sort(l.sorted)
		for _, h := range l.sorted[l.Most:] {
			delete(l.times, h)
		}
		l.last, l.full = l.sorted[l.Most-1], true
	}
}

// Sketch returns the sketch of the rows that were added.
func (l *Least) Sketch() *Sketch {
	s := Sketch{Rows: slices.Sorted(maps.Keys(l.times)), Last: math.MaxUint64}
	for _, h := range s.Rows {
		s.Times = append(s.Times, l.times[h])
	}
	if l.full {
		s.Last = l.last
	}
	s = s.Least(l.Most)
	return &s
}
