package data

import (
	"sync"
	"sync/atomic"

	"github.com/sottodp/sotto/schema"
)

// A Tally counts what the cells of a table hold, while the table is read. Its counts are exact: a person who sees them
// has accessed the rows. Dropped rows are counted, too. Its zero value is ready for one reading.
type Tally struct {
	columns  []columnTally // as the encoder's
	features columnTally   // of LIBSVM
	mu       sync.Mutex
	bad      map[string]map[string]int // cells by column and kind; "" of rows as a whole
}

type columnTally struct{ missing, unknown, below, least, greatest, above atomic.Int64 }

// ColumnCounts are the counts of one column. A cell that makes its row bad is in Bad alone, but for a missing one.
type ColumnCounts struct {
	Name    string         `json:"name"`
	Type    string         `json:"type"`
	Missing int64          `json:"missing"`           // cells without a value, whatever the schema puts in their place
	Unknown int64          `json:"unknown,omitempty"` // cells with a level that the schema does not list, and replaces
	Below   int64          `json:"below,omitempty"`   // numbers below min
	AtLeast int64          `json:"at_min,omitempty"`  // equal to it
	AtMost  int64          `json:"at_max,omitempty"`  // equal to max
	Above   int64          `json:"above,omitempty"`   // above it
	Bad     map[string]int `json:"bad,omitempty"`     // cells that make their row bad, by kind
}

// number counts a number beside its bounds.
func (c *columnTally) number(v, least, greatest float64) {
	switch {
	case v < least:
		c.below.Add(1)
	case v > greatest:
		c.above.Add(1)
	case v == least:
		c.least.Add(1)
	case v == greatest:
		c.greatest.Add(1)
	}
}

// fault counts a cell, or a row, that does not parse.
func (t *Tally) fault(f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bad == nil {
		t.bad = map[string]map[string]int{}
	}
	if t.bad[f.Column] == nil {
		t.bad[f.Column] = map[string]int{}
	}
	t.bad[f.Column][f.Found]++
}

// Counts are the counts of the columns that were read, in the order of the schema; of rows as a whole, and of the
// features of a LIBSVM table, they come first.
func (t *Tally) Counts(s *schema.Schema) (all []ColumnCounts) {
	if bad := t.bad[""]; bad != nil {
		all = append(all, ColumnCounts{Type: "row", Bad: bad})
	}
	if s.Format.Kind == schema.KindLIBSVM {
		all = append(all, t.features.counts("features", schema.TypeNumeric, nil))
	}
	i := 0
	for _, c := range s.Columns {
		if c.Type != schema.TypeIgnore && i < len(t.columns) {
			all = append(all, t.columns[i].counts(c.Name, c.Type, t.bad[c.Name]))
			i++
		}
	}
	return all
}

func (c *columnTally) counts(name, typ string, bad map[string]int) ColumnCounts {
	return ColumnCounts{
		Name: name, Type: typ, Missing: c.missing.Load(), Unknown: c.unknown.Load(),
		Below: c.below.Load(), AtLeast: c.least.Load(), AtMost: c.greatest.Load(), Above: c.above.Load(), Bad: bad,
	}
}
