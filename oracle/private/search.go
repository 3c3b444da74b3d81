package private

import (
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
)

// together is how many steps of a line share the first pass over the rows, in which most
// searches end, and later how many share a later one.
const together, later = 3, 6

// abreast is how many steps share a pass where all of them are asked about.
const abreast = 12

// decreases is what a search sums in a pass over the rows.
type decreases struct {
	from, along []float64
	steps       []float64 // 0, then the steps that are tried in this pass
	bound, unit float64   // bound 0: nothing is clipped, lab only
	width       int       // of what is kept of a row from the first pass to the next; 0 for nothing
	known       bool      // this is not the first pass
}

// mostKept is how many numbers are kept, for each end of a line: larger samples are computed again.
const mostKept = 1 << 23

// Search answers a charged search: P2 Algorithm 1 over clipped decreases. The line where private
// becomes public is the call of Ask; one number is released, whatever it finds.
func (b *batch) Search(q oracle.Search, along oracle.Line) (int, error) {
	o := b.o
	if err := along.Check(q, o.cfg.Facts.Dim); err != nil {
		return 0, err
	}
	if err := b.take(q); err != nil {
		return 0, err
	}
	k, err := b.search(q, along)
	if err != nil {
		return 0, err
	}
	return k, b.answeredOne(oracle.Found(k))
}

func (b *batch) search(q oracle.Search, along oracle.Line) (int, error) {
	o := b.o
	// ask compares one sum with what it must reach at least.
	ask := func(sum decrease, least float64) (bool, error) { return sum.plain >= least*b.size, nil }
	if !q.Off {
		r, err := o.figures("search", q.Bound)
		if err != nil {
			return 0, err
		}
		search, err := q.Noise.Start(0, r.grid, r.sens, &o.noise)
		if err != nil {
			return 0, err
		}
		ask = func(sum decrease, least float64) (bool, error) {
			return search.Ask(sum.count - counted(least*b.size/r.unit))
		}
	}
	for k, end := 0, together; k < len(along.Steps); k, end = end, end+later {
		end = min(end, len(along.Steps))
		sums, err := b.decreases(along, along.Steps[k:end], q.Bound, k > 0)
		if err != nil {
			return 0, err
		}
		for i, sum := range sums {
			reached, err := ask(sum, along.Least[k+i])
			if err != nil {
				return 0, err
			}
			if reached {
				return k + i, nil
			}
		}
	}
	return -1, nil
}

// decreases sums for each of the steps. again says that the last sum of the batch was along the same line.
func (b *batch) decreases(along oracle.Line, steps []float64, bound float64, again bool) ([]decrease, error) {
	return b.sums(sum.Sum{Of: sum.Decreases, Unit: unitFor(bound), Bound: bound, W: along.From, Along: along.Along,
		Steps: steps, Again: again})
}

// sums are those of s over the sample: whole numbers, but where s has no unit, in the lab.
func (b *batch) sums(s sum.Sum) ([]decrease, error) {
	o := b.o
	o.sum = s
	if s.Unit == 0 {
		return o.local.added(&o.sum), nil
	}
	counts, err := o.take(&o.sum)
	sums := make([]decrease, len(counts))
	for k, v := range counts {
		sums[k] = decrease{v, float64(v) * s.Unit}
	}
	return sums, err
}

// take returns the counts of a sum that gets its noise as a whole. They are valid until the next.
func (o *Oracle) take(s *sum.Sum) ([]int64, error) {
	if err := o.summer.Sum(o.batch.ctx, s); err != nil {
		return nil, err
	}
	n := s.Len()
	if cap(o.many) < n {
		o.many = make([]int64, n)
	}
	o.many = o.many[:n]
	o.summer.Take(o.many, 0)
	return o.many, nil
}

// counted rounds a public number of units up. Beyond ±2⁶¹ it counts as that, so that the
// difference from a sum fits an int64.
func counted(units float64) int64 {
	const most = 1 << 61
	return int64(math.Ceil(math.Min(math.Max(units, -most), most)))
}

// A decrease is a sum over the sample: in units, or as it is where nothing is clipped.
type decrease struct {
	count int64
	plain float64
}

// decrease sums the records' clipped decreases for each of the steps, in one pass over the
// rows. With bound 0 sums are plain float64s, in the order of the rows on one worker. again says that
// the last call was of the same line and rows, whose margins are then known.
func (s *Local) decrease(along oracle.Line, steps []float64, bound float64, rows []int32, all, again bool) []decrease {
	d := &decreases{from: along.From, along: along.Along, steps: append([]float64{0}, steps...), bound: bound}
	n := len(rows)
	if all {
		n = s.table.Rows()
	}
	if width := model.LineWidth(s.model); n*width <= mostKept {
		d.width, d.known = width, again
		for i := range s.kept {
			if len(s.kept[i]) < n*width {
				s.kept[i] = make([]float64, n*width)
			}
		}
	}
	if bound > 0 {
		d.unit = fallUnit(bound)
	}
	return s.tallied(d, len(steps), d.unit, rows, all)
}

// tallied returns n sums of t. With unit 0 they are plain float64s, in the order of the rows on one worker.
func (s *Local) tallied(t tally, n int, unit float64, rows []int32, all bool) []decrease {
	s.tally, s.rows, s.all = t, rows, all
	for _, u := range s.workers {
		u.fall = append(u.fall[:0], make([]int64, n)...)
		u.plain = nil
	}
	sums := make([]decrease, n)
	if unit == 0 {
		u := s.workers[0]
		u.plain = make([]float64, n)
		s.users = 1
		s.next.Store(0)
		u.pass()
		for k, v := range u.plain {
			sums[k].plain = v
		}
		return sums
	}
	for _, u := range s.run() {
		for k, v := range u.fall {
			sums[k].count += v
		}
	}
	for k := range sums {
		sums[k].plain = float64(sums[k].count) * unit
	}
	return sums
}

func (d *decreases) add(u *worker, v data.View) {
	n := v.Len()
	u.losses = grown(u.losses, len(d.steps), u.s.tile)
	losses := make([][]float64, 0, 1+abreast)
	for k := range d.steps {
		losses = append(losses, u.losses[k][:n])
	}
	var kept *model.Margins
	if d.width > 0 {
		from, to := u.at*d.width, (u.at+n)*d.width
		kept = &model.Margins{From: u.s.kept[0][from:to], Along: u.s.kept[1][from:to], Known: d.known}
	}
	model.LineLoss(u.s.model, losses, d.from, d.along, d.steps, v, &u.ws, kept)
	dropped(losses[0], v)
	parts := u.sharesOf(v)
	for k, after := range losses[1:] {
		if d.bound > 0 {
			u.fall[k] += fallen(losses[0], after, d.bound, d.unit, parts)
			continue
		}
		for i, before := range losses[0] {
			if fall := before - after[i]; fall == fall {
				u.plain[k] += fall * part(parts, i)
			}
		}
	}
}

// grown is s with n slices of that size at least.
func grown(s [][]float64, n, size int) [][]float64 {
	for len(s) < n {
		s = append(s, make([]float64, size))
	}
	return s
}

// dropped makes the figures of rows that keep their place and weigh nothing no numbers (R9).
func dropped(figures []float64, v data.View) {
	if v.Drop == nil {
		return
	}
	for i := range figures {
		if v.Drop[v.Row(i)] {
			figures[i] = math.NaN()
		}
	}
}

// fallen sums the decreases from before to after, in units; see clipped and shared.
func fallen(before, after []float64, bound, unit float64, parts []float64) (sum int64) {
	scale := 1 / unit
	most := int64(bound * scale)
	for i, b := range before {
		sum += shared(clipped(b-after[i], scale, most), parts, i)
	}
	return sum
}

// clipped is a figure times scale, truncated toward zero to a whole number, but within ±most.
// Scaling by a power of two is exact. What is no number weighs nothing.
func clipped(figure, scale float64, most int64) int64 {
	switch v := figure * scale; {
	case v < float64(most) && v > -float64(most):
		return int64(v)
	case v > 0:
		return most
	case v < 0:
		return -most
	}
	return 0
}

// shared is row i's share of a whole number below 2⁵³, toward zero (PROOFS.md#units): the number itself where rows are
// units.
func shared(figure int64, parts []float64, i int) int64 {
	if parts == nil {
		return figure
	}
	return int64(float64(figure) * parts[i])
}

// part is the share of row i: 1 where rows are units.
func part(parts []float64, i int) float64 {
	if parts == nil {
		return 1
	}
	return parts[i]
}
