// Package compare trains many models on the same tables and shows their figures side by side: methods × ε
// × seeds × tables. It is a tool of the lab. Nothing that it writes is private: each cell shows the
// result of a run under that budget, but the comparison itself is an access without charge (R3).
package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// NoNoise is the ε of cells that train without noise.
const NoNoise = "none"

// Options say what to compare.
type Options struct {
	File   string         // spec that all cells share; "" if flags give everything
	Flags  []run.Override // beat the file in all cells
	Data   []string       // flags too: files read as one table
	Label  string         // column to predict, where it is not the schema's label
	Varied job.Comparison // the block `compare`, as flags have changed it
}

// A Plan is a comparison with everything that follows from public facts.
type Plan struct {
	Varied job.Comparison
	Cells  []*Cell // table by table, method by method, ε by ε
	Runs   int     // trainings in all

	// Watch returns the journal of a training, which records each charge and each release. Trainings
	// run at the same time. May be nil.
	Watch func(*Cell, Result) oracle.Journal
	// Notice receives what only the owner of the rows may see. May be nil.
	Notice func(string)

	tables []*table
	parts  []*part
	opened bool // OpenTables was called

	mu sync.Mutex // guards the rows of tables and parts while trainings run
}

// A Cell is a method at an ε on a table, with one training for each seed and fold.
type Cell struct {
	Table, Method string
	Epsilon       string
	Spec          *run.Spec
	Refused       string // why it cannot run: no such guarantee, or a field that does not fit; "" if it can
	Results       []Result

	table *table
	jobs  map[int]*run.Job // by rows to train on
	err   error            // of Prepare
}

// A table is what all cells on one table share.
type table struct {
	name      string
	spec      *run.Spec // of its first cell
	schema    *schema.Schema
	files     []string
	rows      int // declared, of all files together
	adjacency privacy.Adjacency
	cells     []*Cell

	opened []*access.Opened // the files, then the test rows, until they are taken
	from   []*data.Table    // the files, while parts need them
	whole  *data.Table      // all of them
	test   *data.Table
	parts  int // number of parts that still need the rows
	hashes map[int][]uint64
}

// A part is what one seed and fold train on, and are scored on.
type part struct {
	table       *table
	seed, fold  int
	rows        int // declared rows to train on
	runs        int // trainings that still need it
	train, test *data.Table
}

// New settles a comparison. It opens spec and schemas and no data.
func New(o Options) (*Plan, error) {
	v := &o.Varied
	switch {
	case v.Seeds < 0:
		return nil, fail("seeds: found %d; write a whole number of 1 or more", v.Seeds)
	case v.Split != 0 && !(v.Split > 0 && v.Split < 1):
		return nil, fail("split: found %v; write a share of the rows, above 0 and below 1, as in 0.8", v.Split)
	case v.Folds != 0 && v.Folds < 2:
		return nil, fail("folds: found %d; write a whole number of 2 or more", v.Folds)
	case v.Split != 0 && v.Folds != 0:
		return nil, fail("split: found it beside folds; give one of them")
	case v.Rows < 0:
		return nil, fail("rows: found %d; write a whole number of 1 or more", v.Rows)
	case (v.Split != 0 || v.Folds != 0) && slices.ContainsFunc(o.Flags, func(f run.Override) bool {
		return f.Path == "test"
	}):
		return nil, fail("--test: found it beside a split or folds, which score on rows of the data; give one of them")
	case len(o.Data) > 0 && len(v.Tables) > 0:
		return nil, fail("--data: found it beside compare.tables of the spec; give one of them")
	}
	v.Seeds = max(1, v.Seeds)
	if len(v.Tables) == 0 {
		v.Tables = []job.TableSpec{{Data: o.Data}}
	}
	if len(v.Methods) == 0 {
		v.Methods = []job.Settings{nil}
	}
	if len(v.Epsilon) == 0 {
		v.Epsilon = []string{""}
	}
	p := &Plan{}
	for _, spec := range v.Tables {
		t, err := p.addTable(o, spec)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.tables[:len(p.tables)-1], func(u *table) bool { return u.name == t.name }) {
			return nil, fail("tables: found two of the name %q; give each a name of its own", t.name)
		}
	}
	p.Varied = o.Varied
	for _, t := range p.tables {
		for seed := range v.Seeds {
			for fold := range max(1, v.Folds) {
				q := &part{table: t, seed: seed, fold: fold, rows: t.trainRows(*v, fold)}
				if q.rows < 1 {
					return nil, fail("split: leaves no row of the %d of table %s to train on", t.rows, t.name)
				}
				p.parts = append(p.parts, q)
			}
		}
	}
	p.Runs = len(p.Cells) * p.perCell()
	return p, nil
}

// perCell is the number of trainings of a cell.
func (p *Plan) perCell() int { return p.Varied.Seeds * max(1, p.Varied.Folds) }

// open reports whether the cell has trainings left.
func (p *Plan) open(c *Cell) bool { return c.Refused == "" && len(c.Results) < p.perCell() }

func fail(format string, args ...any) error { return &run.InputError{Err: fmt.Errorf(format, args...)} }

// addTable settles a table and its cells.
func (p *Plan) addTable(o Options, spec job.TableSpec) (*table, error) {
	v := o.Varied
	t := &table{name: spec.Name, files: spec.Data, hashes: map[int][]uint64{}, rows: spec.Rows}
	p.tables = append(p.tables, t)
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) } // a JSON string is a YAML string
	first := slices.Concat(spec.Data, []string{""})[0]
	var of []run.Override
	for _, f := range []struct{ path, given, value string }{
		{"schema", spec.Schema, quote(spec.Schema)}, {"labels", spec.Labels, quote(spec.Labels)},
		{"test", spec.Test, quote(spec.Test)}, {"test_labels", spec.TestLabels, quote(spec.TestLabels)},
		{"privacy.delta", spec.Delta, spec.Delta}, {"data", first, quote(first)},
	} {
		if f.given != "" {
			of = append(of, run.Override{Path: f.path, Value: f.value, From: cmp.Or(o.File, "flags")})
		}
	}
	of = append(of, prefixed("model.", spec.Model)...)
	labels := map[string]bool{}
	for _, m := range v.Methods {
		m = slices.Clone(m)
		label, _ := m.Take("label")
		for _, epsilon := range v.Epsilon {
			over := slices.Concat(of, prefixed("method.", m), o.Flags,
				[]run.Override{{Path: "lab", Value: "true", From: "sotto compare"}})
			switch epsilon {
			case "":
			case NoNoise:
				over = append(over, run.Override{Path: "privacy", Value: NoNoise, From: "epsilon"})
			default:
				over = append(over, run.Override{Path: "privacy.epsilon", Value: epsilon, From: "epsilon"})
			}
			s, err := run.LoadSpec(o.File, over)
			if err != nil {
				return nil, err
			}
			if err := s.Allows(job.InComparison); err != nil {
				return nil, err
			}
			s.Label = o.Label
			c := &Cell{Method: cmp.Or(label, s.MethodName), Epsilon: NoNoise, Spec: s, table: t, jobs: map[int]*run.Job{}}
			if !s.Privacy.Off {
				c.Epsilon = strconv.FormatFloat(s.Privacy.Epsilon, 'g', -1, 64)
				t.adjacency = s.Privacy.Adjacency
			}
			key := c.Method + "\x00" + c.Epsilon
			if labels[key] {
				return nil, fail("methods: found %s at ε = %s twice; give each a label of its own, as in {label: fast, name: %s, …}", c.Method, c.Epsilon, s.MethodName)
			}
			labels[key] = true
			if t.spec == nil {
				if err := t.settle(s, v); err != nil {
					return nil, err
				}
			}
			c.Table = t.name
			t.cells = append(t.cells, c)
		}
	}
	t.adjacency = cmp.Or(t.adjacency, privacy.AddRemove) // cells without noise need some value
	p.Cells = append(p.Cells, t.cells...)
	return t, nil
}

// prefixed are the settings of a block as those of the spec, its name first.
func prefixed(block string, s job.Settings) []run.Override {
	var out []run.Override
	for _, o := range s {
		o.Path = block + o.Path
		if o.Path == block+"name" {
			out = slices.Insert(out, 0, o)
		} else {
			out = append(out, o)
		}
	}
	return out
}

// settle takes the facts of the table from the spec of its first cell.
func (t *table) settle(s *run.Spec, v job.Comparison) error {
	t.spec = s
	var err error
	if t.schema, err = s.LoadSchema(); err != nil {
		return err
	}
	if t.name == "" {
		t.name = t.schema.Dataset
	}
	if len(t.files) == 0 {
		t.files = []string{s.Data}
	}
	if t.rows == 0 {
		t.rows = v.Rows
	}
	divided := v.Split != 0 || v.Folds != 0
	if divided {
		s.Test, s.TestLabels = "", "" // a split replaces the spec's test table
	}
	switch {
	case t.files[0] == "":
		return fail("field %q of table %s is missing: the rows to train on; or --data FILE", "data", t.name)
	case len(t.files) > 1 && t.schema.UnitRows > 0:
		return fail("data: found %d files of table %s; give one, since the rows of one %s may stand in several", len(t.files),
			t.name, t.schema.Unit)
	case !divided && s.Test == "":
		return fail("field %q of table %s is missing: the rows to score on; or --test FILE, or a share of the data by --split 0.8 or --folds 10", "test", t.name)
	case t.rows == 0 && len(t.files) > 1:
		return fail("field %q of table %s is missing: the public row count of its %d files together; or --rows N", "rows",
			t.name, len(t.files))
	case t.rows == 0:
		t.rows = t.schema.Rows
	}
	if t.rows < 1 {
		return fail("field %q of table %s is missing: training divides by that public number, which a person writes; or --rows N", t.schema.Counted(), t.name)
	}
	return nil
}

// trainRows is the public number of rows that a fold trains on.
func (t *table) trainRows(v job.Comparison, fold int) int {
	switch {
	case v.Split != 0:
		return int(math.Round(v.Split * float64(t.rows)))
	case v.Folds != 0 && t.adjacency == privacy.ReplaceOne:
		from, to := window(t.rows, v.Folds, fold)
		return t.rows - (to - from)
	case v.Folds != 0:
		return int(math.Round(float64(t.rows) * float64(v.Folds-1) / float64(v.Folds)))
	}
	return t.rows
}

// window returns the ranks of n that form a fold.
func window(n, folds, fold int) (from, to int) { return fold * n / folds, (fold + 1) * n / folds }

// Prepare calibrates the cells that have trainings left. A cell whose method refuses has no figures and
// says why. If all cells of a method or of a table are refused, Prepare returns the error.
func (p *Plan) Prepare(jobs int) error {
	each(jobs, len(p.Cells), func(i int) {
		c := p.Cells[i]
		for _, q := range p.parts {
			if q.table == c.table && c.jobs[q.rows] == nil && c.err == nil && len(c.Results) < p.perCell() {
				c.err = c.prepare(q.rows)
			}
		}
	})
	can, first := map[string]bool{}, map[string]error{}
	for _, c := range p.Cells {
		var input *run.InputError
		switch {
		case c.err == nil:
			can["m"+c.Method], can["t"+c.Table] = true, true
			continue
		case errors.Is(c.err, job.ErrLargeDelta):
			return c.err
		case !errors.As(c.err, &input) && !errors.Is(c.err, privacy.ErrExhausted):
			return c.err
		}
		c.Refused = c.err.Error()
		for _, key := range []string{"m" + c.Method, "t" + c.Table} {
			if first[key] == nil {
				first[key] = fmt.Errorf("method %s on table %s at ε = %s: %w", c.Method, c.Table, c.Epsilon, c.err)
			}
		}
	}
	for _, c := range p.Cells {
		for _, key := range []string{"m" + c.Method, "t" + c.Table} {
			if !can[key] {
				return first[key]
			}
		}
	}
	return nil
}

// prepare calibrates the cell for that many rows.
func (c *Cell) prepare(rows int) error {
	schema := *c.table.schema
	schema.Rows = rows
	job, err := job.PrepareOn(c.Spec, &schema)
	if err != nil {
		return err
	}
	if _, err := job.Meter(); err != nil {
		return err
	}
	c.jobs[rows] = job
	return nil
}

// each calls f with 0 to n-1, the given number at a time; 0: one for each core.
func each(jobs, n int, f func(i int)) {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// Warnings lists what a person should know before the comparison.
func (p *Plan) Warnings() []string {
	var out []string
	for _, t := range p.tables {
		if warning, _ := t.spec.CheckDelta(oracle.Public{Rows: t.rows, UnitRows: t.schema.UnitRows},
			" of table "+t.name); warning != "" {
			out = append(out, warning)
		}
	}
	for _, c := range p.Cells {
		if c.Refused != "" {
			out = append(out, fmt.Sprintf("no figures for %s on %s at ε = %s: %s", c.Method, c.Table, c.Epsilon, c.Refused))
		}
	}
	return out
}

// terms says under which δ and relation a table's cells claim their ε.
func (t *table) terms() string {
	var deltas []string
	for _, c := range t.cells {
		if d := c.Spec.Privacy.Delta; d != nil && !c.Spec.Privacy.Off {
			if text := chart.Full(*d); !slices.Contains(deltas, text) {
				deltas = append(deltas, text)
			}
		}
	}
	if len(deltas) == 0 {
		return "without noise"
	}
	return fmt.Sprintf("δ = %s, %v, for any %s", strings.Join(deltas, " or "), t.adjacency,
		text.Whom(t.schema.Unit, t.schema.UnitRows))
}
