// Package private is the only package that reads private rows: Sotto's privacy contract, written to be
// read line by line. Oracle.Batch and the batch that it returns keep one order:
//
//  1. Charge. The cost of the queries follows from public values; the meter refuses what is over the budget.
//  2. Durable. The journal takes the charge, and writes it before any release of the batch.
//  3. Sample. The Summer draws, from a fresh key.
//  4. Compute. The Summer adds up exact, clipped contributions; what it returns is private.
//  5. Noise. The line where private becomes public is the one call, in each query's file, of Noise.Add,
//     Ask, Choose or publish.
//  6. Release. The journal takes the answers once all that was charged is asked.
//
// What fails ends the batch there, and releases nothing. private.go keeps this order; sensitivity.go has
// every unit, grid and sensitivity; summer.go says what is added up, and local.go adds it up over a table.
// Grad is in private.go, every other query in its own file.
//
// # What is exact
//
// A clipped sum is an integer. Every stored feature is a multiple of the table's
// unit, every coefficient (clip weight times loss derivative) is truncated
// toward zero to a multiple of another power of two, so every product is a
// multiple of both together. Sums of up to data.BlockRows such products fit a
// float64 without rounding, and the sums over blocks are kept as int64. Hence the
// sum does not depend on the order of rows, on blocks or on the number of
// workers, and its sensitivity is the clip norm itself: no rounding slack that
// grows with the number of rows is needed (rules.md, R14).
//
// The sum is then rounded to a coarser public power-of-two grid, noise that is a
// multiple of the same grid is added exactly, and only the result becomes a
// float64 again (R15). Rounding moves two neighbors' sums apart by at most one
// grid step a coordinate: that slack is part of the sensitivity.
package private

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// Config is what an Oracle is made of. Every field but Part, First, Workers, Summer, Pool and Own is required.
type Config struct {
	Table   *data.Table
	Model   model.Model
	Facts   oracle.Public  // what is public of both
	Part    string         // the part of a divided table that Table is, whose name each charge has; "": a whole table
	Meter   account.Meter  // is charged
	Streams noise.Streams  // randomness of samples and noise, fresh for each batch (R6)
	Journal oracle.Journal // the durable log of charges and releases
	First   int            // number of the first batch; above 0 after a resume
	Workers int            // goroutines of a large pass; 0 means 1
	Summer  sum.Summer     // sums over rows that are not in Table; Table then has only their public facts
	Pool    sum.Pool       // of the other owners, where the facts name several; nil: this oracle releases its own sums
	Own     int            // nominal rows of this owner, beside a Pool: Facts.Rows are those of all
}

// Oracle answers queries about private rows. It is for one goroutine.
type Oracle struct {
	cfg    Config
	summer sum.Summer
	local  *Local // the same, where the rows are in the table; else nil
	scale  scale
	units  int // records; private
	batch  batch
	count  int // number of the next batch

	draw        sum.Draw
	sum         sum.Sum
	counts      [chunk]int64
	many        []int64 // counts of a sum that gets its noise as a whole
	noise       noise.Source
	lastSampler sample.Sampler // the last charge and its cost, so that a
	lastQueries []oracle.Query // loop that asks the same again allocates nothing
	lastCost    privacy.Event
	epoch       int // batches that are left of the epoch of random allocation that was charged last
	refined     bool
	closed      bool
}

// New opens an oracle. A missing meter or journal is an error, as are kernels of SOTTO_KERN that this machine lacks.
func New(cfg Config) (*Oracle, error) {
	switch {
	case cfg.Table == nil || cfg.Model == nil:
		return nil, errors.New("private: a table and a model are required")
	case cfg.Meter == nil:
		return nil, errors.New("private: Config.Meter is required")
	case cfg.Journal == nil:
		return nil, errors.New("private: Config.Journal is required")
	case cfg.Meter.Adjacency() != cfg.Facts.Adjacency:
		return nil, fmt.Errorf("private: the meter's adjacency is %v, the run's is %v", cfg.Meter.Adjacency(),
			cfg.Facts.Adjacency)
	case cfg.Facts.Rows < 1:
		return nil, errors.New("private: the nominal row count is required")
	case cfg.Model.Dim() != cfg.Facts.Dim:
		return nil, fmt.Errorf("private: the model has %d parameters, the run says %d", cfg.Model.Dim(), cfg.Facts.Dim)
	case cfg.Facts.Centered && !cfg.Model.Facts().Centered:
		return nil, notCentered(cfg.Model)
	case cfg.Facts.Shifted && !cfg.Model.Facts().Shifted:
		return nil, fmt.Errorf("private: the run says that margins are shifted, which those of the model %s are not",
			cfg.Model.Name())
	case cfg.Facts.Calibrated && !model.Calibrates(cfg.Model):
		return nil, errNotCalibrated
	case cfg.Summer != nil && cfg.Table.Rows() > 0:
		return nil, errors.New("private: a table with rows beside a Summer")
	}
	if err := fitsCoding(cfg.Table, cfg.Model, cfg.Facts); err != nil {
		return nil, err
	}
	if err := cfg.checkPool(); err != nil {
		return nil, err
	}
	if err := cfg.checkTotals(); err != nil {
		return nil, err
	}
	o := &Oracle{cfg: cfg, summer: cfg.Summer, scale: scaleOf(cfg.Table, cfg.Model), count: cfg.First}
	if o.summer == nil {
		local, err := NewLocal(cfg.Table, cfg.Model, cfg.Facts, cfg.Workers)
		if err != nil {
			return nil, err
		}
		o.summer, o.local = local, local
	}
	o.units = o.summer.Rows()
	declared := cfg.Facts.Rows
	if cfg.Pool != nil {
		declared = cfg.Own
	}
	if cfg.Facts.Adjacency == privacy.ReplaceOne && o.units != declared {
		// Public under replace-one (R9).
		o.Close()
		return nil, fmt.Errorf("private: the table has %d %s, the schema declares %d; under replace-one they must agree",
			o.units, cfg.Facts.Counted(), declared)
	}
	o.batch.o = o
	return o, nil
}

// Public returns the facts given to New.
func (o *Oracle) Public() oracle.Public { return o.cfg.Facts }

// Batches is the number of the next batch: how many there were, with those before First.
func (o *Oracle) Batches() int { return o.count }

// Close releases what a half-asked batch has answered and stops the workers.
func (o *Oracle) Close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	if o.local != nil {
		o.local.Close()
	}
	return o.batch.release()
}

// Batch charges, then samples: see oracle.Oracle, and steps 1 to 3 above.
func (o *Oracle) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.batch.release(); err != nil {
		return nil, err
	}
	// 1. Charge.
	if !o.asksAgain(s, queries) {
		o.epoch = 0 // what is left of it is forgone
	}
	cost, err := o.cost(s, queries)
	if err != nil {
		return nil, err
	}
	if err := o.attempt(ctx, s, cost); err != nil {
		return nil, err
	}
	b := &o.batch
	b.ctx, b.sampler, b.size, b.both = ctx, s, s.Size(o.cfg.Facts.Rows), o.cfg.Facts.BothMoves(s)
	b.open = append(b.open[:0], queries...)
	b.answers = b.answers[:0]
	return b, nil
}

// attempt charges a batch and draws its sample: steps 1 to 3 above. Owners of a network meet before, and may need
// several attempts.
func (o *Oracle) attempt(ctx context.Context, s sample.Sampler, cost privacy.Event) error {
	epoch, allocated := s.(sample.Allocation)
	if o.epoch > 0 {
		cost = privacy.Continued{} // charged with the first batch
	}
	if o.cfg.Pool != nil {
		o.batch.held = true // no part is made before its sample is drawn
		if held, err := o.cfg.Pool.Meet(ctx); held || err != nil {
			return err // held: charged and drawn by an earlier process
		}
	}
	if err := o.cfg.Meter.Charge(cost); err != nil {
		return err
	}
	// 2. Durable.
	if err := o.cfg.Journal.Charge(cost); err != nil {
		o.epoch = 0
		return err
	}
	if allocated && o.epoch == 0 {
		o.epoch = epoch.Batches
	}
	// 3. Sample.
	if err := o.cfg.Streams.Reset(&o.noise, "noise", o.count); err != nil {
		return err
	}
	o.draw.Sampler = s
	if allocated { // the places of an epoch are drawn from one stream, and each batch once
		epoch.Batch = epoch.Batches - o.epoch
		o.draw.Sampler = epoch
	}
	if epoch.Batch == 0 {
		if err := o.cfg.Streams.Key(&o.draw.Key, "sample", o.count); err != nil {
			return err
		}
	}
	if allocated {
		o.epoch--
	}
	o.draw.Batch, o.draw.Total = o.count, o.units
	if err := o.summer.Draw(ctx, o.draw); err != nil {
		return err
	}
	o.count++
	o.batch.held = false
	return nil
}

// asksAgain says whether the same is asked as for the batch before.
func (o *Oracle) asksAgain(s sample.Sampler, queries []oracle.Query) bool {
	return o.lastCost != nil && s == o.lastSampler && slices.Equal(queries, o.lastQueries)
}

// cost checks what is asked, from public values alone, and says what it costs.
func (o *Oracle) cost(s sample.Sampler, queries []oracle.Query) (privacy.Event, error) {
	if o.asksAgain(s, queries) {
		return o.lastCost, nil
	}
	if len(queries) == 0 {
		return nil, errors.New("private: a batch needs at least one query")
	}
	if err := known(s, queries); err != nil {
		return nil, err
	}
	if err := s.Check(o.cfg.Facts.Adjacency); err != nil {
		return nil, err
	}
	if f, ok := s.(sample.Fixed); ok && f.N != o.cfg.Facts.Rows {
		// Under replace-one, which Check has seen to, both are public and the table's own (R9).
		return nil, fmt.Errorf("private: a batch of fixed size speaks of %d rows, the run of %d", f.N, o.cfg.Facts.Rows)
	}
	if a, ok := s.(sample.Allocation); ok && (o.local == nil || a.Batch != 0) {
		return nil, errors.New("private: random allocation needs the rows in this process, and an epoch begins with batch 0")
	}
	if size := s.Size(o.cfg.Facts.Rows); !(size > 0) {
		return nil, fmt.Errorf("private: the sampler's public size is %v; it must be above 0", size)
	}
	for _, q := range queries {
		if err := q.Validate(); err != nil {
			return nil, err
		}
		if o.local == nil && !whole(q) {
			return nil, fmt.Errorf("private: %T: a minimization, or a sum without a bound, needs the rows in this process; others sum whole numbers", q)
		}
		if err := o.fits(q, o.cfg.Facts.BothMoves(s)); err != nil {
			return nil, err
		}
	}
	if o.cfg.Pool != nil {
		switch s.(type) {
		case sample.Full, sample.Poisson:
		default:
			return nil, fmt.Errorf("private: owners who add up their sums draw by themselves: found %T; use all rows or Poisson samples", s)
		}
	}
	cost := privacy.InPart(o.cfg.Part, o.cfg.Facts.Cost(s, queries))
	if err := cost.Validate(); err != nil {
		return nil, err
	}
	o.lastSampler, o.lastQueries, o.lastCost = s, append(o.lastQueries[:0], queries...), cost
	return cost, nil
}

// whole says whether q is answered from sums of whole numbers.
func whole(q oracle.Query) bool {
	switch q := q.(type) {
	case oracle.Minimize:
		return false
	case oracle.Grad:
		return q.Clip != clip.None{}
	case oracle.Loss:
		return q.Bound > 0
	case oracle.Search:
		return q.Bound > 0
	case oracle.Select:
		return q.Bound > 0 || !q.Off
	}
	return true
}

// known refuses concrete types that are not Sotto's own. Only of those is what was charged also what is
// asked: a pointer could change in between, and a rule, noise or sampler from elsewhere would see rows.
func known(s sample.Sampler, queries []oracle.Query) error {
	switch s.(type) {
	case sample.Full, sample.Poisson, sample.Fixed, sample.Allocation:
	default:
		return fmt.Errorf("private: unknown sampler %T", s)
	}
	for _, q := range queries {
		var noise mech.Additive = mech.None{}
		switch q := q.(type) {
		case oracle.Search, oracle.Select, oracle.Hess:
		case oracle.Margins:
			noise = q.Noise
			if s != (sample.Full{}) {
				return errors.New("private: sums over margins are over all rows")
			}
		case oracle.Score:
			if s != (sample.Full{}) {
				return errors.New("private: a score is over all rows")
			}
		case oracle.Totals:
			noise = q.Noise
			if s != (sample.Full{}) {
				return errors.New("private: a first release is over all rows")
			}
		case oracle.Loss:
			noise = q.Noise
		case oracle.Mean:
			noise = q.Noise
		case oracle.Grad:
			noise = q.Noise
			switch q.Clip.(type) {
			case clip.Norm, clip.Value, clip.Automatic, clip.PerLayer, clip.Lipschitz, clip.None:
			default:
				return fmt.Errorf("private: unknown clip rule %T", q.Clip)
			}
		case oracle.Minimize:
			switch how := q.How.(type) {
			case oracle.Objective, oracle.Exact:
			case oracle.Descent:
				if _, laplace := how.Noise.(mech.Laplace); laplace {
					return errors.New("private: a descent takes Gaussian noise")
				}
				noise = how.Noise
			default:
				return fmt.Errorf("private: unknown minimization %T", q.How)
			}
			if s != (sample.Full{}) {
				return errors.New("private: a minimization is over all rows; no sample of them has a theorem")
			}
		default:
			return fmt.Errorf("private: unknown query %T", q)
		}
		switch noise.(type) {
		case mech.Gaussian, mech.Laplace, mech.None:
		default:
			return fmt.Errorf("private: unknown noise %T", noise)
		}
	}
	return nil
}

// fits checks, from public values alone, that the model answers a query, and that its units, its grid
// and its noise, or beside a Pool its share, are numbers that a float64 and an int64 hold.
func (o *Oracle) fits(query oracle.Query, both bool) error {
	type checker interface {
		Check(grid, sens float64) error
	}
	var adds, part checker
	if o.cfg.Pool != nil {
		var err error
		if part, err = o.shareOf(query); err != nil {
			return err
		}
	}
	var r release
	var err error
	switch q := query.(type) {
	case oracle.Minimize:
		return o.fitsMinimize(q)
	case oracle.Grad:
		if err := o.fitsGrad(q); err != nil || math.IsInf(q.Clip.Bound(), 1) {
			return err
		}
		adds = q.Noise
		r, err = o.gradients(q, both)
	case oracle.Mean:
		if !o.cfg.Facts.Centered {
			return errNotCentered
		}
		adds = q.Noise
		r, err = o.gradients(q.Grad(), both)
	case oracle.Totals:
		if err := q.Fits(o.cfg.Facts); err != nil {
			return err
		}
		adds = q.Noise
		r, err = o.totals(q)
	case oracle.Hess:
		if err := o.fitsHess(); err != nil {
			return err
		}
		if !q.Off {
			adds = q.Noise
		}
		r, err = o.hessians(q.Clip, both)
	case oracle.Loss:
		if err := o.fitsLoss(q); err != nil || q.Bound == 0 {
			return err
		}
		adds = q.Noise
		r, err = o.losses(q)
	case oracle.Score:
		adds = q.Noise
		r, err = o.fitsScore(q)
	case oracle.Margins:
		if !o.cfg.Facts.Calibrated {
			return errNotCalibrated
		}
		adds = q.Noise
		r = o.margins(q)
	case oracle.Search:
		if q.Bound == 0 {
			return nil
		}
		if !q.Off {
			adds = q.Noise
		}
		r, err = o.figures("search", q.Bound)
	case oracle.Select:
		var monotone bool
		if r, monotone, err = o.scores(q); err == nil && !q.Off {
			adds = q.Chooser(monotone)
		}
	}
	if err != nil || adds == nil {
		return err
	}
	if part != nil {
		adds = part
	}
	return adds.Check(r.grid, r.sens)
}

// fitsGrad checks that the model has gradients as q asks for them.
func (o *Oracle) fitsGrad(q oracle.Grad) error {
	f, name := o.cfg.Model.Facts(), o.cfg.Model.Name()
	if _, value := q.Clip.(clip.Value); value && !f.Bounded {
		return fmt.Errorf("private: losses of %s do not bound its gradients: value clipping needs a model of which they do",
			name)
	}
	if layers := perLayer(q.Clip); layers > 0 && layers != f.Layers {
		return fmt.Errorf("private: per-layer clipping of %d layers; the model %s has %d", layers, name, f.Layers)
	}
	if err := o.fitsViews(q); err != nil {
		return err
	}
	if q.Centered && !o.cfg.Facts.Centered {
		return errNotCentered
	}
	if q.Shift != 0 && !o.cfg.Facts.Shifts() {
		return errNotShifted
	}
	return nil
}

// fitsHess checks that the model has Hessians, and not too large ones.
func (o *Oracle) fitsHess() error {
	if !o.cfg.Model.Facts().Curved {
		return fmt.Errorf("private: the model %s has no Hessians of rank one and without kinks, which is what a Hessian query needs", o.cfg.Model.Name())
	}
	if dim := o.cfg.Facts.Dim; dim > oracle.MaxHess {
		return fmt.Errorf("private: a Hessian of %d parameters; at most %d fit", dim, oracle.MaxHess)
	}
	return nil
}

// fitsLoss checks that the model has losses as q asks for them.
func (o *Oracle) fitsLoss(q oracle.Loss) error {
	if q.Wrong && !twoClasses(o.cfg.Model) {
		return fmt.Errorf("private: 0-1 losses are of two classes by one margin, which the model %s does not have",
			o.cfg.Model.Name())
	}
	if q.Labels && !o.cfg.Facts.Shifted {
		return errNotShifted
	}
	return nil
}

// Format prints no more than what it is: the fields are private.
func (o *Oracle) Format(f fmt.State, _ rune) { io.WriteString(f, "private.Oracle") }

// Format prints no more than what it is: the rows that were drawn are private.
func (b *batch) Format(f fmt.State, _ rune) { io.WriteString(f, "private.batch") }

// batch is the last sample, with the queries that were charged for it.
type batch struct {
	o       *Oracle
	ctx     context.Context // of Oracle.Batch: long work ends with it
	open    []oracle.Query  // charged and not yet asked
	sampler sample.Sampler
	held    bool    // of a Pool: an earlier process drew the sample
	size    float64 // public divisor
	both    bool    // whether events of sums state both moves
	answers [][]float64
	store   [][]float64 // memory of the answers, reused
}

// take marks q as asked.
func (b *batch) take(q oracle.Query) error {
	for i, p := range b.open {
		if p == q {
			b.open = append(b.open[:i], b.open[i+1:]...)
			return nil
		}
	}
	return oracle.ErrNotCharged
}

// takeAt marks q as asked at w.
func (b *batch) takeAt(q oracle.Query, w []float64) error {
	if dim := b.o.cfg.Facts.Dim; len(w) != dim {
		return fmt.Errorf("private: found %d parameters; the model has %d", len(w), dim)
	}
	return b.take(q)
}

// memory returns n numbers for the next answer. They are an answer once answered is given them: if
// the work on it panics, Close records none of it.
func (b *batch) memory(n int) []float64 {
	i := len(b.answers)
	for len(b.store) <= i {
		b.store = append(b.store, nil)
	}
	if cap(b.store[i]) < n {
		b.store[i] = make([]float64, n)
	}
	b.store[i] = b.store[i][:n]
	return b.store[i]
}

// release hands the answers of a batch to the journal, once.
func (b *batch) release() error {
	if len(b.answers) == 0 {
		return nil
	}
	err := b.o.cfg.Journal.Release(b.answers)
	b.answers, b.open = b.answers[:0], b.open[:0]
	return err
}

// Grad answers a charged gradient query: P0 Algorithm 1, lines 4 to 6.
func (b *batch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	o := b.o
	w, center, err := o.splitCenter(q, w)
	if err != nil {
		return nil, err
	}
	if err := b.takeAt(q, w); err != nil {
		return nil, err
	}
	g := b.memory(len(w))
	if math.IsInf(q.Clip.Bound(), 1) {
		if err := o.local.plainMean(g, w, q, b.size); err != nil {
			return nil, err
		}
	} else {
		o.sum = sum.Sum{Of: sum.Gradients, Clip: q.Clip, Augmentation: q.Augmentation, W: w, Center: center, Shift: q.Shift}
		if err := o.noisySum(g, q, b.size); err != nil {
			return nil, err
		}
	}
	return g, b.answered(g)
}

// answeredOne takes an answer of one number.
func (b *batch) answeredOne(v float64) error {
	a := b.memory(1)
	a[0] = v
	return b.answered(a)
}

// answered takes a finished answer. Once all that was charged is asked, the record is complete and goes to the
// journal. Answers stay valid until the next Batch.
func (b *batch) answered(answer []float64) error {
	b.answers = append(b.answers, answer)
	if len(b.open) > 0 {
		return nil
	}
	return b.release()
}

// chunk is how many numbers of a sum get their noise at a time, so that they stay in the nearest cache: a whole number
// of times the words that package noise draws at once.
const chunk = 992

// noisySum sets g to the clipped sum o.sum, which moves as q says, plus noise, over size.
func (o *Oracle) noisySum(g []float64, q oracle.Grad, size float64) error {
	r, err := o.gradients(q, o.batch.both)
	if err != nil {
		return err
	}
	o.sum.Unit = r.unit
	if o.cfg.Pool != nil {
		return o.totalSum(g, q, r, size)
	}
	return o.released(g, q.Noise, r, size)
}

// released sets g to the sum o.sum plus noise, over size. The line where private becomes public is the call of
// law.Add.
func (o *Oracle) released(g []float64, law mech.Additive, r release, size float64) error {
	if err := o.summer.Sum(o.batch.ctx, &o.sum); err != nil {
		return err
	}
	for from := 0; from < len(g); from += chunk {
		to := g[from:min(from+chunk, len(g))]
		counts := o.counts[:len(to)]
		o.summer.Take(counts, from)
		mech.RoundShift(counts, r.shift)
		if err := law.Add(counts, r.grid, r.sens, &o.noise); err != nil {
			return err
		}
		// The exact sum wrapped around modulo 2⁶⁴ units, so this is modulo
		// 2^(64−shift) steps of the grid: a function of sum plus noise alone.
		kern.Release(to, counts, r.shift, r.grid, size)
	}
	return nil
}

// totalSum is noisySum of all owners.
func (o *Oracle) totalSum(g []float64, q oracle.Grad, r release, size float64) error {
	total, err := o.batch.total(q, r, len(g), func() ([]int64, error) {
		counts, err := o.take(&o.sum)
		if err == nil {
			mech.RoundShift(counts, r.shift)
		}
		return counts, err
	})
	if err == nil {
		kern.Release(g, total, r.shift, r.grid, size)
	}
	return err
}
