package describe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// BoundsOptions say how bounds of numeric columns are estimated.
type BoundsOptions struct {
	Schema    string   // the schema file; the columns in question say bounds: unknown
	Data      string   // the table
	Columns   []string // some of those columns; none: all of them
	Ledger    string
	Epsilon   float64 // of all columns together
	Delta     float64 // 0: Laplace noise; above: Gaussian noise
	Adjacency string  // "": the dataset's, which the ledger knows

	AcceptDropped bool
	Notice        func(string)

	streams noise.Streams // tests
}

// Bounds are proposed bounds of numeric columns. All of it is public: it follows from noisy counts and the schema.
type Bounds struct {
	Run       string         `json:"run"` // under which the ledger has the charge
	Dataset   string         `json:"dataset"`
	Budget    privacy.Budget `json:"budget"`
	Deviation float64        `json:"noise_deviation"` // of one count, in the schema's records
	Least     float64        `json:"least_count"`     // a bin counts as occupied from this noisy count on
	Sampler   float64        `json:"sampler_delta"`   // what the sampler's distance from the ideal adds to δ, at most
	Columns   []ColumnBounds `json:"columns"`
	Schema    []byte         `json:"-"` // the schema file with the bounds
}

// ColumnBounds are the bounds of a column; nil where no bin, or that of 0 alone, stands out of the noise.
type ColumnBounds struct {
	Name   string         `json:"name"`
	Bounds *schema.Bounds `json:"bounds"`
}

// EstimateBounds proposes bounds for the columns of a schema whose bounds nobody knows, by noisy counts on a public
// grid. It charges the dataset before the access. oracle/private/PROOFS.md#grid-counts.
func EstimateBounds(ctx context.Context, o BoundsOptions) (*Bounds, error) {
	src, err := readfile.All(o.Schema, schema.MaxFile)
	if err != nil {
		return nil, config.FileError(o.Schema, err)
	}
	s, err := schema.ParseOpen(o.Schema, src)
	if err != nil {
		return nil, err
	}
	columns, err := o.columns(s)
	if err != nil {
		return nil, err
	}
	if err := writable(src, columns); err != nil {
		return nil, err
	}
	budget := privacy.Budget{Epsilon: o.Epsilon, Delta: o.Delta}
	if budget.Adjacency, err = adjacencyOf(ctx, o.Ledger, s.Dataset, o.Adjacency); err != nil {
		return nil, err
	}
	if err := budget.Validate(); err != nil {
		return nil, inputError("", "%v", err)
	}
	grid := s.OnGrid(columns)
	q, counts, err := gridQuery(grid, budget, len(columns))
	if err != nil {
		return nil, err
	}
	q.Data, q.Ledger, q.AcceptDropped, q.Notice = o.Data, o.Ledger, o.AcceptDropped, o.Notice
	q.Streams = o.streams
	out := &Bounds{Dataset: s.Dataset, Budget: budget}
	out.Sampler = job.SamplerDelta(len(columns)*schema.GridBins(), 1, budget.Epsilon)
	out.Deviation, out.Least = counts.deviation(), math.Ceil(counts.least(1))
	out.Run, err = q.Ask(ctx, func(b oracle.Batch) error {
		mean, err := b.Mean(q.Queries[0].(oracle.Mean))
		if err != nil {
			return err
		}
		for i, name := range columns {
			noisy := slices.Clone(mean[i*schema.GridBins():][:schema.GridBins()])
			for k := range noisy {
				noisy[k] *= float64(s.Rows)
			}
			out.Columns = append(out.Columns, ColumnBounds{name, counts.read(noisy, s.Rows, s.Column(name))})
		}
		return nil
	})
	var unsupported *account.UnsupportedError
	if errors.As(err, &unsupported) && budget.Delta == 0 {
		return nil, inputError("", "%w. With --delta above 0 the noise is Gaussian, which every currency counts", err)
	}
	if err != nil {
		return nil, err
	}
	source := "private estimate, ε = " + chart.Full(budget.Epsilon)
	if budget.Delta > 0 {
		source += ", δ = " + chart.Full(budget.Delta)
	}
	if len(columns) > 1 {
		source += fmt.Sprintf(" for %d columns together", len(columns))
	}
	out.Schema, err = schema.SetBounds(src, out.found(), source+", run "+out.Run)
	return out, err
}

// found are the bounds that were found, by their columns.
func (b *Bounds) found() map[string]schema.Bounds {
	found := map[string]schema.Bounds{}
	for _, c := range b.Columns {
		if c.Bounds != nil {
			found[c.Name] = *c.Bounds
		}
	}
	return found
}

// writable checks that the schema file can take bounds, so that a file that cannot costs nothing.
func writable(src []byte, columns []string) error {
	some := map[string]schema.Bounds{}
	for _, name := range columns {
		some[name] = schema.Bounds{Min: 0, Max: 1}
	}
	_, err := schema.SetBounds(src, some, "")
	return err
}

// columns are those to estimate, in the order of the schema.
func (o *BoundsOptions) columns(s *schema.Schema) ([]string, error) {
	unknown := s.Unbounded()
	if s.Format.Kind != schema.KindCSV {
		return nil, inputError(o.Schema,
			"format.kind: found %s; use csv, as only tables of named columns have bounds of columns", s.Format.Kind)
	}
	if s.Rows == 0 {
		return nil, inputError(o.Schema, "%s is missing; write about how many %s the table has (a public number)",
			s.Counted(), s.Counted())
	}
	if len(unknown) == 0 {
		return nil, inputError(o.Schema,
			"found no column whose bounds are unknown; write bounds: unknown in place of min and max of a numeric column")
	}
	for _, name := range o.Columns {
		if !slices.Contains(unknown, name) {
			return nil, inputError("", "--columns: found %q; name numeric columns with bounds: unknown, which are %s", name,
				strings.Join(unknown, ", "))
		}
	}
	if len(o.Columns) == 0 {
		return unknown, nil
	}
	return slices.DeleteFunc(unknown, func(name string) bool { return !slices.Contains(o.Columns, name) }), nil
}

// adjacencyOf is the relation of a dataset: the one that a person names, or "" that of the ledger, if it knows the
// dataset.
func adjacencyOf(ctx context.Context, where, dataset, named string) (a privacy.Adjacency, err error) {
	if named != "" {
		if a, err = privacy.ParseAdjacency(named); err != nil {
			return a, inputError("", "--%v", err)
		}
		return a, nil
	}
	g, err := run.Gate(ctx, where, true, nil)
	if err != nil {
		return a, err
	}
	defer g.Close()
	if g.Ledger != nil {
		d, err := g.Ledger.Dataset(ctx, dataset)
		if err == nil && d.Adjacency.Valid() {
			return d.Adjacency, nil
		}
		if err != nil && !errors.Is(err, ledger.ErrUnknownDataset) {
			return a, err
		}
	}
	return a, inputError("",
		"--adjacency is missing: the ledger does not know the dataset %q yet, and its first charge fixes the relation; write add-or-remove or replace-one", dataset)
}

// gridQuery is the question for the counts of all bins of a table on the grid, with noise for the budget.
func gridQuery(grid *schema.Schema, b privacy.Budget, columns int) (*run.Inquiry, *gridCounts, error) {
	pub := oracle.Public{Dim: grid.Dim(), Rows: grid.Rows, Adjacency: b.Adjacency, UnitRows: grid.UnitRows,
		NormBound: grid.RowNorm, L1Bound: float64(columns), Centered: true}
	m, err := model.New("linear", model.Options{Dim: pub.Dim, NormBound: grid.RowNorm})
	if err != nil {
		return nil, nil, err
	}
	counts := &gridCounts{columns: columns}
	// A little above a row's norm, so that the margin of clipping (clip.Norm) leaves every row whole.
	const above = 1 + 0x1p-19
	query := oracle.Mean{Clip: grid.RowNorm * above}
	add := func(x float64) mech.Additive { return mech.Gaussian{Sigma: x} }
	if b.Delta == 0 {
		query.Clip = float64(columns) * above
		add = func(x float64) mech.Additive { return mech.Laplace{Scale: x} }
	}
	x, err := account.Calibrate(account.Best{}, b, func(x float64) privacy.Event {
		return privacy.Repeated{Count: 1, Of: add(x).Event()}
	})
	if err != nil {
		return nil, nil, err
	}
	query.Noise = add(x)
	counts.scale, counts.gaussian = x*query.Clip, b.Delta > 0
	if b.Adjacency == privacy.ReplaceOne {
		counts.scale *= 2
	}
	why := fmt.Sprintf("bounds of %d columns by `sotto schema bounds`", columns)
	return &run.Inquiry{Schema: grid, Options: data.Options{Unlabeled: true}, Budget: b, Why: why, Model: m, Facts: pub,
		Queries: []oracle.Query{query}}, counts, nil
}

// gridCounts is the law of the noise in counts on the grid, up to the slack of rounding.
type gridCounts struct {
	columns  int
	gaussian bool
	scale    float64 // its deviation, or of Laplace noise its scale
}

func (g *gridCounts) deviation() float64 {
	if g.gaussian {
		return g.scale
	}
	return g.scale * math.Sqrt2
}

// Reading the bounds from the counts. Noise alone makes a window of any column count as occupied with a probability of
// at most falseWindow. A bound leaves at most leastShare of the nominal records outside, besides what the noise hides.
const (
	falseWindow = 0.01
	leastShare  = 0.001
	widest      = 16 // bins of a window
)

// least is how much the noise of w counts together exceeds with a probability of at most falseWindow over all windows
// and columns: of one Laplace count exactly, else by the Chernoff bound, of Gaussian noise in closed form.
func (g *gridCounts) least(w int) float64 {
	windows := 5 * float64(g.columns*schema.GridBins()) // of 1, 2, 4, 8 and 16 bins
	l := math.Log(windows / falseWindow)
	if g.gaussian {
		return g.scale * math.Sqrt(2*float64(w)*l)
	}
	if w == 1 {
		return g.scale * (l - math.Ln2)
	}
	best := math.Inf(1) // of (l − w·log(1 − t²))/t in units of the scale: log E exp(t·X) = −log(1 − t²) for one count
	for t := 0.001; t < 1; t += 0.001 {
		best = math.Min(best, (l-float64(w)*math.Log1p(-t*t))/t)
	}
	return g.scale * best
}

// read is what the noisy counts of one column say of its bounds. Windows of 1, 2, 4, 8 and 16 bins are occupied where
// their count is above both the noise and the least share of the records; a wide one only where no narrower one within
// it is. The bounds are those of all occupied windows together.
func (g *gridCounts) read(noisy []float64, rows int, c *schema.Column) *schema.Bounds {
	occupied := make([]bool, len(noisy))
	from, to := len(noisy), -1
	for w := 1; w <= widest; w *= 2 {
		least := math.Max(g.least(w), leastShare*float64(rows))
		found := slices.Clone(occupied)
		for i := 0; i+w <= len(noisy); i++ {
			sum := 0.0
			for _, n := range noisy[i : i+w] {
				sum += n
			}
			if sum > least && !slices.Contains(occupied[i:i+w], true) {
				for k := i; k < i+w; k++ {
					found[k] = true
				}
				from, to = min(from, i), max(to, i+w-1)
			}
		}
		occupied = found
	}
	if to < 0 {
		return nil
	}
	b := schema.GridBounds(from, to)
	if c.Transform == schema.TransformLog1p { // of values from 0 on
		b.Min = math.Max(b.Min, 0)
	}
	if v, fault := config.ParseNumber(c.Missing); fault == "" { // what stands for a missing value is within the bounds
		b.Min, b.Max = math.Min(b.Min, v), math.Max(b.Max, v)
	}
	if !(b.Min < b.Max) {
		return nil
	}
	return &b
}
