package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/perturb"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// Sensitivities says how far records moved the exact sums of a method's queries, on synthetic tables.
type Sensitivities struct {
	Method  string   `json:"method"`
	Models  []string `json:"models"`            // that the method supports
	Queries []string `json:"queries"`           // what was summed
	Pairs   int      `json:"pairs"`             // of neighboring tables whose sums were compared
	Most    float64  `json:"most"`              // the largest move, over the bound that is charged
	Missing string   `json:"missing,omitempty"` // why nothing was compared
	Alarms  []string `json:"alarms,omitempty"`  // of moves above the bound: model and query
}

// Of the tables of a test of sensitivity.
const (
	twinRows   = 10 // of the table that all neighbors share
	twinOthers = 8  // records, each of which is beside those rows in one of as many neighbors
	twinWidth  = 9  // features
	twinSums   = 12 // that are compared in a run
)

// errTwins ends a run of which enough sums were compared.
var errTwins = errors.New("audit: enough sums")

// sense runs a method, of that name in the registry, with each model that it supports on so many synthetic tables,
// random and adversarial ones, and compares its exact sums with those of neighboring tables.
func sense(ctx context.Context, name string, m method.Method, tables int, opt Options, fault Fault) (*Sensitivities, error) {
	found := &Sensitivities{Method: name}
	src, err := opt.Streams.Stream("sensitivity", 0)
	if err != nil {
		return nil, err
	}
	for _, model := range model.Names() {
		job, err := twinJob(name, m, model, false)
		if err != nil {
			return nil, err
		}
		if job == nil {
			continue
		}
		found.Models = append(found.Models, model)
		for number := range tables {
			if err := found.run(ctx, job, number, src.Uint64(), fault); err != nil {
				return nil, fmt.Errorf("method %s, model %s: %w", name, model, err)
			}
		}
		images, err := twinJob(name, m, model, true)
		if err != nil {
			return nil, err
		}
		for number := 0; images != nil && number < tables; number++ {
			if err := found.run(ctx, images, number, src.Uint64(), fault); err != nil {
				return nil, fmt.Errorf("method %s, model %s, images: %w", name, model, err)
			}
		}
	}
	if len(found.Models) == 0 {
		return nil, fmt.Errorf("method %s: no model to compare sums with", name)
	}
	if found.Pairs == 0 {
		found.Missing = "its privacy is no bound on a sum"
	}
	return found, nil
}

// twinJob is a job of the method and the model on a small table, nil if the method does not support the model; or on
// one of images, nil if a run would not keep them as bytes.
func twinJob(name string, m method.Method, modelName string, images bool) (*run.Job, error) {
	entry, err := model.Lookup(modelName)
	if err != nil {
		return nil, err
	}
	label := map[model.Label]string{model.TwoClasses: "classes: [no, yes]",
		model.SomeClasses: "classes: [one, two, three]",
		model.Number:      "min: 0, max: 9", model.Count: "min: 0, max: 9"}[entry.Label]
	var b strings.Builder
	fmt.Fprintf(&b, "dataset: synthetic\nrows: %d\nformat: {kind: csv, header: true}\nintercept: %t\ncolumns:\n", twinRows,
		!entry.Net)
	for k := range twinWidth {
		fmt.Fprintf(&b, "  - {name: x%d, type: numeric, min: -1, max: 1}\n", k)
	}
	fmt.Fprintf(&b, "  - {name: label, type: label, %s}\n", label)
	if images {
		classes := `["0", "1"]`
		if entry.Label == model.SomeClasses {
			classes = `["0", "1", "2"]`
		}
		b.Reset()
		fmt.Fprintf(&b,
			"dataset: synthetic\nrows: %d\nformat: {kind: idx}\nrow_norm: 1\nimage: {shape: [3, %d], center: 100, scale: 255}\ncolumns:\n  - {name: label, type: label, classes: %s}\n",
			twinRows, twinWidth/3, classes)
	}
	s, err := schema.Parse("", []byte(b.String()))
	if err != nil {
		return nil, err
	}
	spec := run.ModelSpec{Name: modelName, Config: entry.Small}
	for _, l2 := range []float64{0, 0.05} { // some methods need curvature
		for _, delta := range []float64{1e-5, 0} {
			for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
				spec.L2 = l2
				job, err := job.PrepareOn(&run.Spec{MethodName: name, Method: m, Model: spec, Output: method.Last,
					Privacy: run.PrivacySpec{Epsilon: allEpsilon, Delta: &delta, Adjacency: adj}}, s)
				if err == nil && images && !job.Coding().Bytes {
					return nil, nil
				}
				if err == nil {
					job.Facts.Bytes = images
					return job, nil
				}
			}
		}
	}
	return nil, nil
}

// run runs the job on one table.
func (f *Sensitivities) run(ctx context.Context, job *run.Job, number int, seed uint64, fault Fault) error {
	t, err := newTwins(ctx, job, number, seed, fault == FaultTwice)
	if err != nil {
		return err
	}
	t.found = f
	none := data.Empty(job.Schema)
	if job.Facts.Bytes {
		none = data.OfImages(job.Schema, nil, nil)
	}
	trainer := run.Trainer{Job: job, Table: none, Summer: t, Meter: unmetered{job.Facts.Adjacency},
		Streams: noise.SeededStreams(seed), Journal: run.NopJournal{}, Workers: 1}
	_, _, err = trainer.Train(ctx, func(o *private.Oracle) oracle.Oracle {
		t.Oracle = o
		if fault != "" {
			t.Oracle = &faulty{Oracle: o, fault: fault, meter: trainer.Meter, drawn: &drawing{}}
		}
		return t
	})
	if errors.Is(err, errTwins) {
		return nil
	}
	return err
}

// twins is the Summer of a table, and the oracle that a method asks. For each sum it also adds up that of tables with
// one record more.
type twins struct {
	sum.Summer
	oracle.Oracle
	job   *run.Job
	coins *noise.Source
	table *data.Table   // the rows that all have
	more  []*data.Table // with a record more
	base  *private.Local
	other []*private.Local
	asked oracle.Query
	wild  bool // answers are far off, so that the parameters are
	bias  float32
	sums  int
	found *Sensitivities
}

// newTwins makes the tables of that number. Every second one is of adversarial rows alone. Twice puts each record in
// its table twice: a fault.
func newTwins(ctx context.Context, job *run.Job, number int, seed uint64, twice bool) (*twins, error) {
	coins, err := noise.SeededStreams(seed).Stream("records", 0)
	if err != nil {
		return nil, err
	}
	t := &twins{job: job, coins: coins, wild: number%4 >= 2}
	var table *data.Table
	if job.Facts.Bytes {
		table = t.images(twinRows + twinOthers)
	} else if table, err = Synthetic(ctx, job.Schema, twinRows+twinOthers, seed); err != nil {
		return nil, err
	}
	table = table.Dense()
	rows := func(from, n int) *data.Table {
		return data.Subset([]*data.Table{table}, func(row int) bool { return row >= from && row < from+n })
	}
	t.table = rows(0, twinRows)
	if job.Facts.Intercept > 0 && !job.Facts.Bytes {
		t.bias = t.table.Blocks[0].X[t.table.Dim-1]
	}
	if number%2 == 1 {
		t.table = rows(0, 0)
		for range twinRows {
			t.table = t.table.Append(t.record())
		}
	}
	for k := range twinOthers {
		next := rows(twinRows+k, 1).Blocks[0]
		if k >= twinOthers/2 {
			next = t.record()
		}
		more := t.table.Append(next)
		if twice {
			more = more.Append(next)
		}
		t.more = append(t.more, more)
	}
	open := func(table *data.Table) (*private.Local, error) {
		return private.NewLocal(table, job.Model, job.Facts, 1)
	}
	own, err := open(t.table)
	if err != nil {
		return nil, err
	}
	t.Summer = own
	if t.base, err = open(t.table); err != nil {
		return nil, err
	}
	for _, table := range t.more {
		local, err := open(table)
		if err != nil {
			return nil, err
		}
		t.other = append(t.other, local)
	}
	return t, t.draw(ctx, seed, number%3 == 0 && !twice)
}

// draw draws the sample of the compared sums: all rows, or one that has the record.
func (t *twins) draw(ctx context.Context, seed uint64, sampled bool) error {
	d := sum.Draw{Sampler: sample.Full{}, Total: twinRows}
	streams := noise.SeededStreams(seed)
	for k := 0; sampled; k++ {
		d.Sampler = sample.Poisson{Rate: 0.7}
		if err := streams.Key(&d.Key, "twins", k); err != nil {
			return err
		}
		d.Total = twinRows + 1
		var src noise.Source
		if rows, _ := d.Own(nil, twinRows, 1, &src); len(rows) == 1 {
			break
		}
	}
	d.Total = twinRows // coins are drawn row after row: those of the others are the same
	if err := t.base.Draw(ctx, d); err != nil {
		return err
	}
	for _, o := range t.other {
		d.Total = o.Rows()
		if err := o.Draw(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// below is a number from 0 to n − 1.
func (t *twins) below(n int) int { return int(t.coins.Below(uint64(n))) }

// images are random ones, or of one color with another point.
func (t *twins) images(n int) *data.Table {
	images, labels := make([][]byte, n), make([]float32, n)
	for i := range images {
		images[i], labels[i] = make([]byte, twinWidth), float32(t.below(t.job.Facts.Classes))
		color := []int{0, 100, 255}[t.below(3)]
		random, point := t.below(2) == 0, t.below(twinWidth)
		for j := range images[i] {
			images[i][j] = byte(color)
			if random || j == point {
				images[i][j] = byte(t.below(256))
			}
		}
	}
	return data.OfImages(t.job.Schema, images, labels)
}

// record is as long as the schema allows, or 0, in a random direction or along one feature, with a label at an end or
// between.
func (t *twins) record() *data.Block {
	table, facts := t.table, t.job.Facts
	if facts.Bytes {
		return t.images(1).Blocks[0]
	}
	x, features := make([]float32, table.Dim), table.Dim
	size, square := table.NormBound, 0.0
	if facts.Intercept > 0 {
		features--
		x[features] = t.bias
		size = math.Sqrt(size*size - float64(t.bias)*float64(t.bias))
	}
	along, length, one := make([]float64, features), 0.0, t.below(features)
	kind := t.below(4)
	for j := range along {
		switch {
		case kind == 0 || kind == 1 && j == one:
			along[j] = 1 - 2*float64(t.below(2))
		case kind == 2:
			along[j] = audit.Normal(uniform(t.coins))
		}
		length += along[j] * along[j]
	}
	for j, v := range along {
		if length > 0 {
			x[j] = float32(math.Trunc(v/math.Sqrt(length)*size*(1-0x1p-20)/table.Unit) * table.Unit)
		}
	}
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	b := &data.Block{N: 1, Dim: table.Dim, X: x,
		Norm: []float32{float32(min(table.NormBound, math.Sqrt(square)*(1+0x1p-20)))}}
	if table.Labeled {
		y := float32(t.below(max(2, facts.Classes)))
		if l := t.job.Schema.LabelBounds(); l != nil {
			y = float32(l.Min + (l.Max-l.Min)*float64(t.below(3))/2)
		}
		b.Y = []float32{y}
	}
	return b
}

// Public implements oracle.Oracle.
func (t *twins) Public() oracle.Public { return t.job.Facts }

// Batch implements oracle.Oracle.
func (t *twins) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	for _, q := range queries {
		if q, ok := q.(oracle.Minimize); ok {
			if err := t.minimize(ctx, q); err != nil {
				return nil, err
			}
			return nil, errTwins
		}
	}
	b, err := t.Oracle.Batch(ctx, s, queries...)
	return twinsBatch{b, t}, err
}

// A twinsBatch notes what is charged for each sum.
type twinsBatch struct {
	oracle.Batch
	t *twins
}

// Grad implements oracle.Batch.
func (b twinsBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	b.t.asked = q
	g, err := b.Batch.Grad(q, w)
	b.t.spoil(g, err)
	return g, err
}

// Mean implements oracle.Batch.
func (b twinsBatch) Mean(q oracle.Mean) ([]float64, error) {
	b.t.asked = q
	m, err := b.Batch.Mean(q)
	b.t.spoil(m, err)
	return m, err
}

// Totals implements oracle.Batch.
func (b twinsBatch) Totals(q oracle.Totals) ([]float64, error) {
	b.t.asked = q
	sums, err := b.Batch.Totals(q)
	b.t.spoil(sums, err)
	return sums, err
}

// Refine implements oracle.Refiner: all tables have the encoding that was chosen.
func (t *twins) Refine(ctx context.Context, c oracle.Choice) error {
	for _, r := range append(t.other, t.base, t.Summer.(*private.Local)) {
		if err := r.Refine(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// spoil makes an answer one that is far off, where the answers are.
func (t *twins) spoil(answer []float64, err error) {
	if t.wild && err == nil {
		far := math.Pow(10, 8*uniform(t.coins)-2)
		for j := range answer {
			answer[j] *= far
		}
	}
}

// Hess implements oracle.Batch.
func (b twinsBatch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	b.t.asked = q
	return b.Batch.Hess(q, w)
}

// Loss implements oracle.Batch.
func (b twinsBatch) Loss(q oracle.Loss, w []float64) (float64, error) {
	b.t.asked = q
	return b.Batch.Loss(q, w)
}

// Score implements oracle.Batch.
func (b twinsBatch) Score(q oracle.Score, w []float64) ([]float64, error) {
	b.t.asked = q
	return b.Batch.Score(q, w)
}

// Margins implements oracle.Batch.
func (b twinsBatch) Margins(q oracle.Margins, at []float64) ([]float64, error) {
	b.t.asked = q
	return b.Batch.Margins(q, at)
}

// Search implements oracle.Batch.
func (b twinsBatch) Search(q oracle.Search, along oracle.Line) (int, error) {
	b.t.asked = q
	return b.Batch.Search(q, along)
}

// Select implements oracle.Batch.
func (b twinsBatch) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	b.t.asked = q
	return b.Batch.Select(q, among)
}

// bounds are how far a record's presence and its replacement may move the sum of a charged query: all of it in the ℓ1
// or ℓ2 norm, or each number, for norm 0.
func bounds(q oracle.Query, facts oracle.Public) (presence, replacement float64, norm int) {
	switch q := q.(type) {
	case oracle.Mean:
		return q.Clip, 2 * q.Clip, 2
	case oracle.Grad:
		return q.Clip.Bound(), 2 * q.Clip.Bound(), q.Clip.Norm()
	case oracle.Totals:
		facts.Adjacency = privacy.ReplaceOne
		return q.Bound(facts), q.Sensitivity(facts), 2
	case oracle.Hess:
		return q.Clip, math.Sqrt2 * q.Clip, 2
	case oracle.Loss:
		return q.Sensitivity(privacy.AddRemove), q.Sensitivity(privacy.ReplaceOne), 0
	case oracle.Score:
		return q.Sensitivity(facts.Classes, privacy.AddRemove), q.Sensitivity(facts.Classes, privacy.ReplaceOne), 2
	case oracle.Margins:
		facts.Adjacency = privacy.AddRemove
		bound := q.Sensitivity(facts)
		return bound, 2 * bound, 2
	case oracle.Search:
		return q.Bound, 2 * q.Bound, 0
	case oracle.Select:
		if q.Bound == 0 {
			return 1, 1, 0 // a count
		}
		return q.Bound, 2 * q.Bound, 0
	}
	return 0, 0, 0
}

// Sum implements sum.Summer.
func (t *twins) Sum(ctx context.Context, s *sum.Sum) error {
	if err := t.Summer.Sum(ctx, s); err != nil {
		return err
	}
	if t.sums == twinSums {
		return errTwins
	}
	t.sums++
	take := func(l *private.Local) ([]int64, error) {
		counts := make([]int64, s.Len())
		if err := l.Sum(ctx, s); err != nil {
			return nil, err
		}
		l.Take(counts, 0)
		return counts, nil
	}
	base, err := take(t.base)
	if err != nil {
		return err
	}
	presence, replacement, norm := bounds(t.asked, t.job.Facts)
	unit := s.Unit
	if s.Of == sum.Hessians {
		unit *= s.Unit
	}
	var all [][]int64
	for _, o := range t.other {
		counts, err := take(o)
		if err != nil {
			return err
		}
		t.note(string(s.Of), moved(s, counts, base, norm)*unit/presence)
		for _, another := range all {
			t.note(string(s.Of), moved(s, counts, another, norm)*unit/replacement)
		}
		all = append(all, counts)
	}
	return nil
}

// note notes a pair whose sums are so many times the bound apart.
func (t *twins) note(of string, times float64) {
	f := t.found
	if f.Pairs++; !slices.Contains(f.Queries, of) {
		f.Queries = append(f.Queries, of)
	}
	if f.Most = max(f.Most, times); times <= 1 {
		return
	}
	alarm := fmt.Sprintf("sensitivity of %s, model %s: %s", f.Method, t.job.Spec.Model.Name, of)
	if !slices.Contains(f.Alarms, alarm) {
		f.Alarms = append(f.Alarms, alarm)
	}
}

// moved is how far two sums are apart, in their unit; of Hessians, in the Frobenius norm of whole matrices.
func moved(s *sum.Sum, a, b []int64, norm int) float64 {
	far, row, column := 0.0, 0, 0
	for j := range a {
		d := math.Abs(float64(a[j] - b[j]))
		switch norm {
		case 0:
			far = max(far, d)
		case 1:
			far += d
		case 2:
			if d *= d; s.Of == sum.Hessians && row != column {
				d *= 2
			}
			far += d
		}
		if column++; column == len(s.W) { // of the upper triangle
			row++
			column = row
		}
	}
	if norm == 2 {
		return math.Sqrt(far)
	}
	return far
}

// minimize compares the minimizers of tables in which one record is replaced. Only a descent's are within a bound:
// objective perturbation hides a record by the linear term that it draws.
func (t *twins) minimize(ctx context.Context, q oracle.Minimize) error {
	how, ok := q.How.(oracle.Descent)
	if !ok || t.job.Facts.Adjacency != privacy.ReplaceOne {
		return nil
	}
	facts, m, table := t.job.Facts, t.job.Model.Facts(), t.table
	release, err := perturb.Problem{
		Model: t.job.Model.Name(), Adjacency: facts.Adjacency, Records: facts.Rows, UnitRows: facts.UnitRows, Dim: facts.Dim,
		Features: table.Dim, Outputs: t.job.Model.Outputs(), Block: data.BlockRows, RowNorm: table.NormBound,
		NormBound: m.NormBound,
		Lipschitz: m.Lipschitz, Smooth: m.Smooth, Convex: m.Convex, OneMargin: m.OneMargin,
	}.Release(q)
	if err != nil {
		return err
	}
	how.Noise = mech.None{}
	q.How = how
	var all [][]float64
	for _, table := range t.more {
		surplus := table.Rows() - twinRows // the record takes the place of a row
		same := data.Subset([]*data.Table{table}, func(row int) bool { return row >= surplus })
		trainer := run.Trainer{Job: t.job, Table: same, Meter: unmetered{facts.Adjacency}, Streams: noise.SeededStreams(1),
			Journal: run.NopJournal{}, Workers: 1}
		o, err := trainer.Open()
		if err != nil {
			return err
		}
		b, err := o.Batch(ctx, sample.Full{}, q)
		if err != nil {
			return errors.Join(err, o.Close())
		}
		w, err := b.Minimize(q)
		w = slices.Clone(w)
		if err = errors.Join(err, o.Close()); err != nil {
			return err
		}
		for _, v := range all {
			square := 0.0
			for j := range w {
				square += (w[j] - v[j]) * (w[j] - v[j])
			}
			t.note("minimizers", math.Sqrt(square)/release.Sensitivity)
		}
		all = append(all, w)
	}
	return nil
}
