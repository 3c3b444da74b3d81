package private

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// randomShare: a batch of less than one row in this many leaves most pages of a
// table alone, so that reading ahead would gain nothing.
const randomShare = 16

// requestRows is how many rows of a list are requested at once from a table on disk: the system takes some hundred
// requests before it lets the process wait.
const requestRows = 1024

// netTile is how many rows of a network, whose products of matrices want many, are evaluated at once.
const netTile = 256

// Workers share a pass over a batch of at least so many rows. Dense rows of a model with many parameters, and rows of
// networks, are shared from as few as parallelLeast on, where a batch is so many products.
const (
	parallelRows     = 4096
	parallelLeast    = 64
	parallelProducts = 1 << 18
)

// splitOf is the number of rows of a batch from which workers share a pass.
func splitOf(t *data.Table, m model.Model, network bool) int {
	most := parallelRows
	switch {
	case network:
		most = 2 * netTile
	// sparse rows have few products, and every worker sums all parameters
	case len(t.Blocks) == 0 || t.Blocks[0].Sparse():
		return most
	}
	return min(most, max(parallelLeast, parallelProducts/m.Dim()))
}

// Local sums over the rows of a table in this process. It holds what its workers need, so that a pass over gradients
// allocates nothing. It is for one goroutine.
type Local struct {
	scale
	table   *data.Table
	model   model.Model
	shifted model.Model // the same, with the shift of the gradients that are summed
	facts   oracle.Public
	tile    int       // rows evaluated at once, so that they stay in the cache
	fetches bool      // the model fetches the dense rows that come next while it computes
	split   int       // rows of a batch from which workers share a pass
	shares  []float64 // of a row in its unit, at most 1 for each unit together (PROOFS.md#units); nil: rows are units
	copier  data.Copier
	workers []*worker
	jobs    chan *worker
	done    sync.WaitGroup

	// The sample.
	sampling noise.Source
	places   sample.Places // of the epoch of random allocation last drawn
	epoch    noise.Key     // the epoch's
	drawn    []int32       // records; none where all are drawn
	spread   []int32       // their rows, where those are others
	listed   []int32       // rows of the sample, where not all are: drawn, or spread
	whole    bool          // all are
	batch    int           // its number
	counts   []int64       // the last sum; nil: the workers hold it

	// one pass
	w        []float64
	rule     clip.Rule
	unit     float64   // of a coefficient; 0: plain sums
	sums     float64   // unit of the sums
	views    [][]int32 // orders of an image's numbers; none: the image itself
	ofRows   bool      // rows are summed instead of gradients
	centered bool      // center is taken from the rows
	center   model.Center
	taken    []int64 // of centered rows: the sum of all coefficients, in unit, for each margin

	apart     []float64 // ‖x − m‖ of each row, as the last pass with this center found it; 0: none has. nil: not kept
	apartFrom []float64 // that center

	tally tally // what is summed instead of gradients; nil: gradients
	rows  []int32
	all   bool
	kept  [2][]float64 // margins of the sample along the line that was last searched
	users int          // workers that share the pass
	next  atomic.Int64 // block to take next
}

// A tally sums whole numbers over the rows into u.fall, or where nothing is clipped, lab only,
// numbers into u.plain; a Hessian's into u.hess.
type tally interface {
	add(u *worker, v data.View) // the rows of one tile
}

// worker is one goroutine's memory.
type worker struct {
	s       *Local
	index   int
	ws      model.Workspace
	acc     []float64 // exact sum of up to data.BlockRows rows, in data units
	filled  int       // rows in acc; while there are none, acc is 0
	counts  []int64   // the sum of the rows before, in units of s.sums, if
	flushed bool      // there are any
	center  model.Center
	taken   []int64   // of centered rows: the sums of the coefficients so far, in units of s.unit
	sums    []float64 // those of a tile
	plain   []float64 // the sum so far when there is no unit
	norm    []float64
	c       []float64
	at      int     // number of the tile's first row in the sample
	fall    []int64 // of a tally: the sums so far, in its unit
	losses  [][]float64
	classes []float64 // probabilities of two classes
	hess    hessSum
	falls   model.Falls
	// of the row of a first release
	lines   []line
	stage   data.Block  // rows of a list, one after the other
	staged  []float64   // their shares
	parts   []float64   // shares of the rows of the current block; nil: rows are units
	next    [][]float32 // rows of the tile that follows
	viewed  data.Block  // views of rows, one after the other
	numbers data.Block  // rows of bytes or 16-bit numbers as float32
	widener data.Widener
	row     []float32 // with its zeros, of which a view is taken
}

var errOtherRows = errors.New("private: table and run do not speak of the same form of rows: bytes, 16-bit numbers or float32")

// fitsCoding refuses a run over rows of other numbers than the table's, and what has no proof for rows that are not
// float32. Scores by levels refuse those rows, too (fitsScore).
func fitsCoding(t *data.Table, m model.Model, facts oracle.Public) error {
	switch {
	case facts.Coding != oracle.Coding(t.Coding()):
		return errOtherRows
	case !facts.Coded():
		return nil
	case !m.Facts().Coded:
		return fmt.Errorf("private: the model %s takes no rows of bytes or 16-bit numbers", m.Name())
	case facts.Centered:
		return notCentered(m)
	case facts.Totals:
		return errTotals
	}
	return nil
}

func notCentered(m model.Model) error {
	return fmt.Errorf("private: the run says that rows are centered, which the model %s, or rows of bytes or 16-bit numbers, are not",
		m.Name())
}

// NewLocal opens a table's rows. The facts are those of the run, of which the table may hold a part.
func NewLocal(t *data.Table, m model.Model, facts oracle.Public, workers int) (*Local, error) {
	if _, err := kern.Level(); err != nil {
		return nil, err
	}
	switch units := facts.UnitRows > 0; {
	case t == nil || m == nil:
		return nil, errors.New("private: a table and a model are required")
	case m.Dim() != facts.Dim:
		return nil, fmt.Errorf("private: the model has %d parameters, the run says %d", m.Dim(), facts.Dim)
	case (t.Shares() != nil) != units:
		return nil, errors.New("private: of table and run one speaks of units of several rows, the other of rows")
	case facts.Calibrated && !model.Calibrates(m):
		return nil, errNotCalibrated
	case units && len(t.Shares()) != t.Rows():
		return nil, errors.New("private: a table has rows without a unit")
	case units && t.MostUnitRows() > facts.UnitRows:
		return nil, errors.New("private: the table has a unit of more rows than the run says")
	}
	if err := fitsCoding(t, m, facts); err != nil {
		return nil, err
	}
	s := &Local{facts: facts}
	s.open(t, m, max(1, workers))
	return s, nil
}

func (s *Local) open(t *data.Table, m model.Model, workers int) {
	s.table, s.model, s.shifted, s.scale = t, m, m, scaleOf(t, m)
	// Rows and what follows them (kern.Axpy) share the first-level cache; many
	// parameters for each feature, as of classes, want to be used for more rows.
	least := 8
	if m.Dim() > t.Dim {
		least, s.fetches = 32, true
	}
	s.tile = min(data.BlockRows, max(least, 24<<10/(4*max(1, t.Dim))&^3))
	s.split, s.shares = splitOf(t, m, s.network), t.Shares()
	if s.network {
		s.tile, s.fetches = netTile, false
	}
	if tile := t.Tile(); tile > 0 {
		s.tile, s.fetches = tile, false
	}
	if tile := m.Facts().Tile; tile > 0 {
		s.tile = min(data.BlockRows, tile)
	}
	s.copier = data.NewCopier(t)
	for i := range workers {
		s.workers = append(s.workers, &worker{
			s: s, index: i, acc: kern.Aligned(m.Dim()), counts: make([]int64, m.Dim()),
			norm: make([]float64, s.tile), c: make([]float64, s.tile),
			stage: data.Block{Dim: t.Dim},
		})
	}
	if workers > 1 {
		s.jobs = make(chan *worker)
		for range workers {
			go func() {
				for w := range s.jobs {
					w.pass()
					s.done.Done()
				}
			}()
		}
	}
}

// Format prints no more than what it is: the rows are private.
func (s *Local) Format(f fmt.State, _ rune) { io.WriteString(f, "private.Local") }

// Rows is the number of the table's units of privacy, each one row or more.
func (s *Local) Rows() int { return s.table.Units() }

// Draw implements Summer.
func (s *Local) Draw(_ context.Context, d sum.Draw) error {
	s.table.Random(d.Sampler.Size(s.facts.Rows)*randomShare < float64(s.facts.Rows))
	if a, ok := d.Sampler.(sample.Allocation); ok {
		if a.Batch == 0 || d.Key != s.epoch {
			d.Key.Reset(&s.sampling)
			s.places.Draw(a, d.Total, &s.sampling)
			s.epoch = d.Key
		}
		s.drawn, s.whole = s.places.Rows(s.drawn, a.Batch), false
	} else {
		s.drawn, s.whole = d.Own(s.drawn, d.From, s.Rows(), &s.sampling)
	}
	s.listed, s.batch = s.drawn, d.Batch
	if !s.whole && s.shares != nil {
		s.spread = s.rowsOf(s.spread[:0], s.drawn)
		s.listed = s.spread
	}
	return nil
}

// rowsOf appends the rows of the units to dst: a unit is drawn with all of its rows (PROOFS.md#units).
func (s *Local) rowsOf(dst, units []int32) []int32 {
	for _, u := range units {
		dst = s.table.UnitRows(dst, int(u))
	}
	return dst
}

// Sum implements Summer.
func (s *Local) Sum(_ context.Context, q *sum.Sum) (err error) {
	if err := checkSum(q, &s.scale, s.facts); err != nil {
		return err
	}
	switch q.Of {
	case sum.Gradients, sum.Rows:
		s.counts = nil // Take adds up the workers' own
		err = s.clippedOf(q)
	case sum.Hessians:
		s.counts = s.hessian(&curvature{w: q.W, clip: q.Clip, unit: q.Unit}, s.listed, s.whole)
	case sum.Wrong, sum.Answers:
		if !twoClasses(s.model) {
			return fmt.Errorf("found 0-1 losses of the model %s", s.model.Name())
		}
		with, err := model.WithOffset(s.model, q.Offset)
		if err != nil {
			return err
		}
		s.count(s.tallied(&losses{w: q.W, bound: q.Bound, unit: q.Unit, wrong: with, signed: q.Of == sum.Answers}, q.Len(),
			q.Unit, s.listed, s.whole))
	default:
		s.count(s.added(q))
	}
	return err
}

// count keeps sums of figures of rows for Take.
func (s *Local) count(sums []decrease) {
	s.counts = make([]int64, len(sums))
	for k, sum := range sums {
		s.counts[k] = sum.count
	}
}

// clippedOf adds up gradients, which Take hands out.
func (s *Local) clippedOf(q *sum.Sum) (err error) {
	if s.views, err = q.Augmentation.Of(s.facts.Image, s.batch); err != nil {
		return err
	}
	if err := s.setCenter(q.Center, q.W); err != nil {
		return err
	}
	shifted, err := model.WithOffset(s.model, q.Shift)
	if err != nil {
		return err
	}
	s.shifted = shifted
	s.ofRows = q.Of == sum.Rows
	defer func() { s.views, s.ofRows, s.shifted = nil, false, s.model }() // of this sum alone
	_, err = s.clipped(q.W, q.Clip, s.facts, s.listed, s.whole)
	return err
}

// added are the sums of figures of rows, plain float64s where there is no unit.
func (s *Local) added(q *sum.Sum) []decrease {
	var t tally
	switch q.Of {
	case sum.Decreases:
		return s.decrease(oracle.Line{From: q.W, Along: q.Along}, q.Steps, q.Bound, s.listed, s.whole, q.Again)
	case sum.Neighbors:
		t = &neighbors{from: q.W, step: q.Step, bound: q.Bound, unit: q.Unit}
	case sum.Losses, sum.Labels, sum.Squares:
		t = &losses{w: q.W, bound: q.Bound, unit: q.Unit, labels: q.Of == sum.Labels, squares: q.Of == sum.Squares,
			from: q.Offset}
	case sum.Within:
		t = &losses{w: q.W, bound: q.Bound, unit: q.Unit, signed: true, within: q.Clip.Bound()}
	case sum.Margins:
		t = newMargins(q, s.model, s.facts)
	case sum.Classes:
		t = classes{q.Classes, int64(1 / q.Unit)}
	case sum.Scores:
		t = newScoring(q, s.model)
	case sum.CellTotals:
		t = newTotaling(q, &s.scale, s.facts)
	}
	return s.tallied(t, q.Len(), q.Unit, s.listed, s.whole)
}

// Take implements Summer.
func (s *Local) Take(dst []int64, from int) {
	if s.counts != nil {
		copy(dst, s.counts[from:])
		return
	}
	for i, u := range s.workers[:s.users] {
		switch {
		case i > 0 && u.flushed:
			for j, v := range u.counts[from : from+len(dst)] {
				dst[j] += v
			}
		case u.flushed:
			copy(dst, u.counts[from:])
		case i == 0 && u.filled > 0: // usually all there is
			kern.Move(dst, u.acc[from:from+len(dst)], 1/s.sums)
			continue
		case i == 0:
			clear(dst)
		}
		if u.filled > 0 {
			u.spill(dst, from)
		}
	}
	if from+len(dst) == len(s.workers[0].counts) {
		for _, u := range s.workers[:s.users] {
			u.filled = 0
		}
	}
	s.lessCenter(dst, from)
}

// Close stops the workers.
func (s *Local) Close() {
	if s.jobs != nil {
		close(s.jobs)
	}
}

// clipped makes the clipped sum over the named rows in counts of unit, a power
// of two that depends on public facts alone. Take hands them out.
func (s *Local) clipped(w []float64, rule clip.Rule, facts oracle.Public, rows []int32,
	all bool) (unit float64, err error) {
	unit, err = s.unitOf(rule.Bound(), facts.Rows)
	if err != nil {
		return 0, err
	}
	s.w, s.rule, s.unit, s.sums, s.tally, s.rows, s.all = w, rule, unit/s.rowUnit, unit, nil, rows, all
	s.taken = append(s.taken[:0], make([]int64, len(s.center.Margins))...)
	for _, u := range s.run() {
		for k, taken := range u.taken {
			s.taken[k] += taken
		}
	}
	return s.sums, nil
}

// run lets the workers that the batch is worth share it, and returns them.
func (s *Local) run() []*worker {
	s.next.Store(0)
	if s.all {
		s.table.BeginPass()
	}
	users := s.workers[:1]
	if s.all || len(s.rows) >= s.split {
		users = s.workers
	}
	s.users = len(users)
	if len(users) == 1 {
		users[0].pass()
		return users
	}
	s.done.Add(len(users))
	for _, u := range users {
		s.jobs <- u
	}
	s.done.Wait()
	return users
}

// plain sets dst to the sum of gradients without a clip bound: lab only. It adds
// in the order of the rows, on one worker.
func (s *Local) plain(dst, w []float64, rule clip.Rule, rows []int32, all bool) {
	s.w, s.rule, s.unit, s.sums, s.tally, s.rows, s.all = w, rule, 0, 0, nil, rows, all
	s.centered = false
	s.next.Store(0)
	s.users = 1
	clear(dst)
	s.workers[0].plain = dst
	s.workers[0].pass()
	s.workers[0].flush()
}

// plainMean sets dst to the mean gradient of the sample without a clip bound: lab only.
func (s *Local) plainMean(dst, w []float64, q oracle.Grad, size float64) (err error) {
	if s.views, err = q.Augmentation.Of(s.facts.Image, s.batch); err != nil {
		return err
	}
	shifted, err := model.WithOffset(s.model, q.Shift)
	if err != nil {
		return err
	}
	s.shifted = shifted
	defer func() { s.views, s.shifted = nil, s.model }()
	s.plain(dst, w, q.Clip, s.listed, s.whole)
	for j := range dst {
		dst[j] /= size
	}
	return nil
}

// pass adds this worker's share of the batch: a part of the list of rows, or
// blocks until none is left.
func (u *worker) pass() {
	s := u.s
	if s.tally == nil {
		u.ws.Hold(s.w)
		defer u.ws.Release()
	}
	if u.filled > 0 { // what was broken off, or not taken
		clear(u.acc)
	}
	u.filled, u.flushed, u.taken = 0, false, u.taken[:0]
	if u.ws.Center = nil; s.centered && s.tally == nil {
		margins := len(s.center.Margins) // a worker keeps the sums of its own coefficients
		u.taken, u.sums = append(u.taken, make([]int64, margins)...), append(u.sums[:0], make([]float64, margins)...)
		u.center = s.center
		u.center.Taken = u.sums
		u.ws.Center = &u.center
		defer func() { u.ws.Center = nil }()
	}
	if !s.all {
		n, k := len(s.rows), s.users
		u.at = u.index * n / k
		u.addListed(s.rows[u.at : (u.index+1)*n/k])
		return
	}
	for {
		i := int(s.next.Add(1)) - 1
		if i >= len(s.table.Blocks) {
			break
		}
		b := s.table.Blocks[i]
		s.table.Reach(b)
		first := s.copier.Start[i]
		for from := 0; from < b.N; from += s.tile {
			to := min(b.N, from+s.tile)
			u.next, u.at = u.next[:0], first+from
			v := u.widener.View(b, from, to)
			u.share(first+from-v.From, v.N)
			for k := to; s.fetches && k < min(b.N, to+s.tile); k++ {
				u.fetch(b, k)
			}
			v.Next = u.next
			u.add(v)
		}
	}
}

// fetch lists row i of b as one that is read soon, if it is dense.
func (u *worker) fetch(b *data.Block, i int) {
	if x := b.Run(i, i+1); x != nil {
		u.next = append(u.next, x)
	}
}

// share sets the shares of the n rows of the table from one on, which are those of the next views' block.
func (u *worker) share(first, n int) {
	if u.parts = nil; u.s.shares != nil {
		u.parts = u.s.shares[first:][:n]
	}
}

// addListed adds the rows of a list. Few of them lie in one block, so they
// are copied one behind the other first, as many as make a tile: every later step then
// works on a dense run of rows.
func (u *worker) addListed(rows []int32) {
	u.next = u.next[:0]
	later := rows // those that are not requested yet
	for len(rows) > 0 {
		if len(later) > 0 && len(rows)-len(later) < requestRows/2 {
			k := min(len(later), requestRows)
			u.s.copier.Request(later[:k])
			later = later[k:]
		}
		n := min(len(rows), u.s.tile)
		u.s.copier.Copy(&u.stage, rows, n, len(u.next))
		u.parts = nil
		if u.s.shares != nil {
			u.staged = u.staged[:0]
			for _, row := range rows[:n] {
				u.staged = append(u.staged, u.s.shares[row])
			}
			u.parts = u.staged
		}
		rows = rows[n:]
		u.next = u.next[:0]
		if u.s.fetches {
			for _, row := range rows[:min(len(rows), u.s.tile)] {
				u.fetch(u.s.copier.Locate(int(row)))
			}
		}
		v := u.widener.View(&u.stage, 0, n)
		v.Next = u.next
		u.add(v)
		u.at += n
	}
}

// add clips and adds the rows of one tile.
func (u *worker) add(v data.View) {
	n := v.Len()
	if n == 0 {
		return
	}
	if u.s.tally != nil {
		u.s.tally.add(u, v)
		return
	}
	if u.s.unit == 0 { // sums without a unit are of numbers
		v = v.Floats(&u.numbers)
	}
	if u.filled+n > data.BlockRows {
		u.flush()
	}
	u.filled += n
	if len(u.s.views) > 0 {
		u.addViews(v)
		return
	}
	if u.s.ofRows {
		u.addRow(v)
		return
	}
	parts := max(1, perLayer(u.s.rule))
	u.norm, u.c = grow(u.norm, parts*n), grow(u.c, parts*n)
	norm, c := u.norm, u.c
	if u.center.Known = nil; u.s.all && u.s.apart != nil {
		u.center.Known = u.s.apart[u.at:][:n]
	}
	pass := u.s.shifted.Eval(u.s.w, v, &u.ws)
	switch u.s.rule.(type) {
	case clip.Value:
		pass.(model.BoundedPass).GradBound(norm)
	case clip.PerLayer:
		pass.(model.LayeredPass).LayerNorms(norm)
	case clip.None:
		if u.s.network {
			pass.Loss(norm) // its norms cost more than it takes to see whether a row's figures are finite
		} else {
			pass.GradNorm(norm, 2)
		}
	default:
		pass.GradNorm(norm, u.s.rule.Norm())
	}
	u.weigh(v)
	if parts > 1 {
		pass.(model.LayeredPass).AddLayers(u.acc, c, u.s.unit)
		return
	}
	pass.AddGrad(u.acc, c, u.s.unit)
	if c := u.ws.Center; c != nil {
		for k, sum := range c.Taken {
			u.taken[k] += int64(sum / u.s.unit)
		}
		clear(c.Taken)
	}
}

// weigh sets the clip weights of the rows of v, part after part, from their norms.
func (u *worker) weigh(v data.View) {
	u.s.rule.Weights(u.c, u.norm, nil)
	if v.Drop != nil {
		for i, n := 0, v.Len(); i < n; i++ {
			for k := i; v.Drop[v.Row(i)] && k < len(u.c); k += n {
				u.c[k] = 0 // keeps its place, weighs nothing (R9)
			}
		}
	}
	u.scale(u.c, v)
}

// scale multiplies the figures of the rows of v, part after part, by their shares in their units.
func (u *worker) scale(c []float64, v data.View) {
	parts := u.sharesOf(v)
	for len(parts) > 0 && len(c) > 0 {
		for i, share := range parts {
			c[i] *= share
		}
		c = c[len(parts):]
	}
}

// sharesOf are the shares of the rows of v, a range of the current block; nil where rows are units.
func (u *worker) sharesOf(v data.View) []float64 {
	if u.parts == nil {
		return nil
	}
	return u.parts[v.From:v.To]
}

// perLayer is the number of a contribution's parts that a rule clips by themselves, 0 of other rules.
func perLayer(r clip.Rule) int {
	p, _ := r.(clip.PerLayer)
	return p.Layers
}

// grow is s with n elements of any content, reallocated only if it must be.
func grow(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}

// flush moves the exact partial sum from acc to counts.
func (u *worker) flush() {
	if u.filled == 0 {
		return
	}
	if u.s.unit == 0 {
		for j, v := range u.acc {
			u.plain[j] += v
		}
		clear(u.acc)
	} else {
		if !u.flushed {
			clear(u.counts)
		}
		u.spill(u.counts, 0)
		u.flushed = true
	}
	u.filled = 0
}

// spill adds the exact partial sums from number from on to counts, and sets them to 0. Counts may wrap around: see
// noisySum.
func (u *worker) spill(counts []int64, from int) {
	kern.Spill(counts, u.acc[from:from+len(counts)], 1/u.s.sums) // a power of two: exact
}
