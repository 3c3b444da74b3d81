package describe

import (
	"cmp"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Intervals are for the noise alone, whose law is known: they hold the figure of the records that were counted. Each
// holds by itself with a probability of level, or more where it is widened.
//
// A record is in one cell of each histogram, so the cells of all of them have one total N. S_j is the sum of the k_j
// noisy counts c of histogram j, each of deviation s. Then N = Σ(S_j/k_j)/Σ(1/k_j) has the least variance,
// s²/Σ(1/k_j), and c + (N − S_j)/k_j are the counts of least squares with that total. c − S_j/k_j is independent of all
// sums, so a figure Σa·c of adjusted counts has the variance s²·(Σa² − (Σa)²/k_j) + (Σa/k_j)²·Var N.
const (
	level = 0.95
	z     = 1.959963984540054
)

// fewest is how many standard deviations of its noise a number of records must be for a figure of those records.
const fewest = 3

// shares are those of the quantiles.
var shares = []float64{0.05, 0.25, 0.5, 0.75, 0.95}

// A histogram is that of a column, or the table of two.
type histogram struct {
	adjusted []float64
	likely   []float64 // the nearest counts to them that are not negative and have the total
	s        float64   // deviation of the noise in a count
	rest     float64   // Var N / (k·s²): how much of the variance of its own sum the total has
}

// v is the covariance of Σa·adjusted and Σb·adjusted, by Σa·b, Σa and Σb.
func (h *histogram) v(ab, a, b float64) float64 {
	return h.s * h.s * max(0, ab-(1-h.rest)*a*b/float64(len(h.adjusted)))
}

// Figures are what follows from the noisy counts.
func (p Plan) Figures(answer []float64) *runlog.Figures {
	s := p.deviation()
	f := &runlog.Figures{Level: level, Deviation: runlog.Rounded(s),
		Sampler: runlog.Rounded(job.SamplerDelta(p.Facts.Dim, 1, p.Epsilon))}
	var parts [][]float64
	for first, c := range p.Cells.Histograms() {
		parts = append(parts, answer[first:][:c.Form().Features()])
	}
	columns := len(parts)
	for first, t := range p.Cells.CellTables() {
		a, b := &p.Cells.Columns[t[0]], &p.Cells.Columns[t[1]]
		parts = append(parts, answer[first:][:a.Form().PairCells()*b.Form().PairCells()])
	}
	total, weight := 0.0, 0.0
	for _, part := range parts {
		k := float64(len(part))
		total, weight = total+sumOf(part)/k, weight+1/k
	}
	total /= weight
	most := math.Inf(1)
	if p.Facts.Adjacency == privacy.ReplaceOne {
		most = float64(p.Facts.Rows)
	}
	whole := math.Round(min(most, max(0, total)))
	f.Records = count(whole, total, s/math.Sqrt(weight), most)
	var all []*histogram
	for _, part := range parts {
		k := float64(len(part))
		h := &histogram{s: s, rest: 1 / (k * weight), adjusted: slices.Clone(part)}
		for i := range h.adjusted {
			h.adjusted[i] += (total - sumOf(part)) / k
		}
		h.likely = nearest(h.adjusted, whole)
		all = append(all, h)
	}
	i := 0
	for _, c := range p.Cells.Histograms() {
		f.Columns = append(f.Columns, all[i].column(c, p.Full.Column(c.Name), most))
		i++
	}
	for _, t := range p.Cells.CellTables() {
		f.Pairs = append(f.Pairs, all[columns].table(&p.Cells.Columns[t[0]], &p.Cells.Columns[t[1]], most))
		columns++
	}
	return f
}

func sumOf(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// count is the figure of a number of records whose noisy number is at, from 0 to most. Numbers of records are whole, so
// the interval ends at the outermost whole numbers within it. It holds the likely value in any case.
func count(likely, at, deviation, most float64) runlog.Figure {
	in := func(v float64) float64 { return min(most, max(0, v)) }
	low, high := in(at-z*deviation), in(at+z*deviation)
	if l, h := math.Ceil(low), math.Floor(high); l <= h {
		low, high = l, h
	} else {
		low, high = math.Floor(low), math.Ceil(high)
	}
	return runlog.Figure{Value: &likely, Low: min(low, likely), High: max(high, likely)}
}

// nearest are the numbers of 0 or more that sum to total and are nearest to v in the sum of squares, rounded to whole
// numbers with that sum, those that lose most first.
func nearest(v []float64, total float64) []float64 {
	sorted := slices.Clone(v)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	sum, shift := 0.0, 0.0
	for i, x := range sorted {
		sum += x
		if t := (sum - total) / float64(i+1); x-t > 0 || i == 0 {
			shift = t
		}
	}
	out, order, left := make([]float64, len(v)), make([]int, len(v)), total
	part := make([]float64, len(v))
	for i, x := range v {
		x = max(0, x-shift)
		out[i], order[i] = math.Floor(x), i
		part[i], left = x-out[i], left-out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(part[b], part[a]) })
	for _, i := range order {
		if left < 1 {
			break
		}
		out[i]++
		left--
	}
	return out
}

// cell is the figure of cell i.
func (h *histogram) cell(i int, most float64) runlog.Figure {
	return count(h.likely[i], h.adjusted[i], math.Sqrt(h.v(1, 1, 1)), most)
}

// column are the figures of a counted column; full is the column as a person wrote it.
func (h *histogram) column(c schema.Column, full *schema.Column, most float64) runlog.ColumnFigures {
	form := c.Form()
	f := runlog.ColumnFigures{Name: c.Name, Type: full.Type, Label: full.Type == schema.TypeLabel, Counts: form.Counts}
	for i := range form.Cells {
		cell := runlog.Cell{Name: cellName(form, i, form.Cells), Records: h.cell(i, most)}
		if form.Line != nil {
			from, to := form.Edge(i, form.Cells), form.Edge(i+1, form.Cells)
			cell.From, cell.To = &from, &to
		}
		f.Cells = append(f.Cells, cell)
	}
	f.Missing, f.Other = h.cell(form.Cells, most), h.cell(form.Cells+1, most)
	if form.Line != nil {
		f.Mean = h.mean(form)
		for _, share := range shares {
			f.Points = append(f.Points, runlog.Quantile{Share: share, Value: h.quantile(form, share)})
		}
	}
	return f
}

// cellName names a level, or a bin of so many by its edges.
func cellName(form *schema.Form, i, cells int) string {
	switch {
	case form.Levels != nil:
		return form.Levels[i]
	case form.Line == nil:
		return "any text"
	}
	return valueOf(form, form.Edge(i, cells)) + " to " + valueOf(form, form.Edge(i+1, cells))
}

// valueOf writes a value of a column for people.
func valueOf(form *schema.Form, v float64) string {
	if form.Write != nil {
		return form.Write(v)
	}
	return chart.Short(v)
}

// number is the figure t, a place between the bounds from 0 to 1 with an interval, as a value of the column.
func number(form *schema.Form, t *float64, low, high float64) runlog.Figure {
	at := func(t float64) float64 {
		return runlog.Rounded(form.Line.Min + max(0, min(1, t))*(form.Line.Max-form.Line.Min))
	}
	f := runlog.Figure{Low: at(low), High: at(high), TooFew: t == nil}
	if t != nil {
		v := at(max(low, min(high, *t)))
		f.Value = &v
	}
	return f
}

// mean is the mean of the column's numbers, each clamped to the bounds. That of the middles of their bins is a ratio of
// two noisy sums, whose interval holds each m at which Σ(middle − m)·count is no further from 0 than z of its
// deviations (Fieller). A number is at most half a bin away from the middle of its own.
func (h *histogram) mean(form *schema.Form) *runlog.Figure {
	n := form.Cells
	var a, b, sum, rows, middles, squares float64
	for i := range n {
		middle := (float64(i) + 0.5) / float64(n)
		a, b = a+middle*h.adjusted[i], b+h.adjusted[i]
		sum, rows = sum+middle*h.likely[i], rows+h.likely[i]
		middles, squares = middles+middle, squares+middle*middle
	}
	cells := float64(n)
	vaa, vab, vbb := h.v(squares, middles, middles), h.v(middles, middles, cells), h.v(cells, cells, cells)
	if q := b*b - z*z*vbb; b > fewest*math.Sqrt(vbb) && q > 0 && rows > 0 {
		p, r := a*b-z*z*vab, a*a-z*z*vaa
		root := math.Sqrt(max(0, p*p-q*r))
		half, t := 0.5/float64(n), sum/rows
		f := number(form, &t, min(t, (p-root)/q-half), max(t, (p+root)/q+half))
		return &f
	}
	f := number(form, nil, 0, 1)
	return &f
}

// quantile is the least number of the column that at least a share of them is not above. Bin m holds it if the numbers
// up to bin m are that share or more, and those before bin m are less. So it is, but for probabilities of (1 − level)/2
// each, in no bin before the first that is not clearly below the share, and in none behind the last before which they
// are not clearly above.
func (h *histogram) quantile(form *schema.Form, share float64) runlog.Figure {
	n, cells := form.Cells, float64(form.Cells)
	rows, noisy := sumOf(h.likely[:n]), sumOf(h.adjusted[:n])
	if noisy <= fewest*math.Sqrt(h.v(cells, cells, cells)) || rows == 0 {
		return number(form, nil, 0, 1)
	}
	// Σa·count is how far the numbers up to bin i are above the share: a is 1 − share up to it, and −share behind it.
	above, a, aa := -share*noisy, -share*cells, share*share*cells
	first, last := n-1, 0
	t, before := 1.0, 0.0
	found := false
	for i := range n {
		above, a, aa = above+h.adjusted[i], a+1, aa+1-2*share
		noise := z * math.Sqrt(h.v(aa, a, a))
		if above >= -noise {
			first = min(first, i)
		}
		if above <= noise {
			last = min(n-1, i+1)
		}
		if here := h.likely[i]; !found && here > 0 && before+here >= share*rows {
			t, found = (float64(i)+(share*rows-before)/here)/float64(n), true
		}
		before += h.likely[i]
	}
	last = max(first, last)
	return number(form, &t, float64(first)/float64(n), float64(last+1)/float64(n))
}

// table are the counts of two columns together.
func (h *histogram) table(a, b *schema.Column, most float64) runlog.TwoColumnCounts {
	names := func(form *schema.Form) (names []string) {
		for i := range form.PairCells() - 1 {
			names = append(names, cellName(form, i, form.PairCells()-1))
		}
		return append(names, "")
	}
	t := runlog.TwoColumnCounts{A: a.Name, B: b.Name, Rows: names(a.Form()), Columns: names(b.Form())}
	for i := range t.Rows {
		var row []runlog.Figure
		for j := range t.Columns {
			row = append(row, h.cell(i*len(t.Columns)+j, most))
		}
		t.Records = append(t.Records, row)
	}
	return t
}
