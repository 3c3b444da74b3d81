package data

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/schema"
)

// Curves says how the curves of a row, the bumps, waves and pairs of its numeric columns, follow from its stored
// numbers: those of the row that the schema without curves gives ([schema.Schema.Lines]), after the row rule. All of it
// is public.
//
// A stored row is v = (lines, levels, …, one), where one is what the row rule made of its intercept. So v_j/one, within
// ±1, are its features, the curves are functions of those, and the row rule is applied once more to all of them, the
// intercept as 1. Nothing else of the row has a part, so rows are the same bits in whatever form of file they came, and
// wherever they are.
type Curves struct {
	lines, dim int // features of a stored row, and of one with curves
	rule       rowRule
	columns    []curve
	others     []span // features that are no lines of those
	pairs      []curvedPair
	bumps      []bumpRun      // of columns, those with bumps
	bare       []curve        // the others
	products   *kern.Products // of pairs
	rest       []span         // features of a row with curves that are no lines and bumps of those runs
	places     []place        // of all features of such a row, ascending
}

// A bumpRun is n columns with bumps whose lines are one behind the other from a stored row.
type bumpRun struct {
	from, n int
	cuts    *kern.Cuts
}

// A place is where a line of a run has its features, or, with a run of −1, so many others.
type place struct {
	run, line int
	rest      span
}

// A curve is a numeric column: its line is from a stored row, and in the row with curves at a feature that so many
// bumps, or waves, follow.
type curve struct{ from, at, hats, waves int }

// A span is n features from a stored row, and where they are in the row with curves, or of such a row.
type span struct{ from, to, n int }

// A curvedPair is a pair of lines in a stored row, with the position of its first product.
type curvedPair struct{ a, b, first int }

// curvesOf says how rows of s follow from those of the schema lines, without curves.
func curvesOf(s, lines *schema.Schema) *Curves {
	c := &Curves{lines: lines.Dim(), dim: s.Dim(), rule: ruleOf(s)}
	from, to := 0, 0
	other := func(n int) {
		if last := len(c.others) - 1; last >= 0 && c.others[last].from+c.others[last].n == from &&
			c.others[last].to+c.others[last].n == to {
			c.others[last].n += n
		} else if n > 0 {
			c.others = append(c.others, span{from, to, n})
		}
		from, to = from+n, to+n
	}
	line := map[string]int{}
	for _, k := range s.Places() {
		n := k.Form().Features()
		line[k.Name] = from
		if k.Hats+k.Waves == 0 {
			other(n)
			continue
		}
		c.columns = append(c.columns, curve{from, to, k.Hats, k.Waves})
		from, to = from+1, to+n
	}
	for _, p := range s.Pairs {
		switch {
		case p.Open():
			to += schema.PairFeatures
		case slices.Contains(lines.Pairs, p):
			other(schema.PairFeatures)
		default:
			c.pairs = append(c.pairs, curvedPair{line[p.A], line[p.B], to})
			to += schema.PairFeatures
		}
	}
	c.setBumps()
	return c
}

// setBumps sets bumps, bare, products and rest from columns and pairs.
func (c *Curves) setBumps() {
	var run bumpRun
	var at, hats []int
	end := func() {
		if run.n > 0 {
			run.cuts = kern.NewCuts(at, hats)
			c.bumps = append(c.bumps, run)
		}
		run, at, hats = bumpRun{}, nil, nil
	}
	next := 0 // feature after those of the columns before
	rest := func(at int) {
		if at > next {
			c.rest = append(c.rest, span{from: next, n: at - next})
			c.places = append(c.places, place{run: -1, rest: c.rest[len(c.rest)-1]})
		}
	}
	for _, k := range c.columns {
		if k.hats == 0 {
			c.bare = append(c.bare, k)
			continue
		}
		if run.n > 0 && run.from+run.n != k.from {
			end()
		}
		if run.n == 0 {
			run.from = k.from
		}
		rest(k.at)
		c.places = append(c.places, place{run: len(c.bumps), line: run.n})
		run.n++
		at, hats = append(at, k.at), append(hats, k.hats)
		next = k.at + 1 + k.hats
	}
	end()
	rest(c.dim)
	var a, b, first []int
	for _, p := range c.pairs {
		a, b, first = append(a, p.a), append(b, p.b), append(first, p.first)
	}
	c.products = kern.NewProducts(a, b, first, schema.PairBumps)
}

// snapped is the schema by which the table at path is read, and how rows of s follow from those: by no curves if s does
// not say that they do, or if the table was packed with its curves.
func snapped(s *schema.Schema, path string, opt *Options) (*schema.Schema, *Curves) {
	lines, ok := s.Lines()
	if !ok || !s.Snapped || packedUnder(s, path) {
		return s, nil
	}
	opt.curved = s.Curved()
	if bare := lines.WithPairs(); len(lines.Pairs) > 0 && packedUnder(bare, path) { // the run chose the pairs
		lines = bare
	}
	return lines, curvesOf(s, lines)
}

// refined says how rows follow that are encoded as r says.
func (c *Curves) refined(r Refinement) *Curves {
	to, dim := r.places(c.dim)
	out := &Curves{lines: c.lines, dim: dim, rule: c.rule}
	for _, k := range c.columns {
		if to[k.at+1] < 0 {
			k.hats, k.waves = 0, 0
		}
		k.at = int(to[k.at])
		out.columns = append(out.columns, k)
	}
	for _, s := range c.others {
		s.to = int(to[s.to])
		out.others = append(out.others, s)
	}
	line := func(column int) int {
		at := r.Columns[column].At
		return c.columns[slices.IndexFunc(c.columns, func(k curve) bool { return k.at == at })].from
	}
	for n, p := range r.Pairs {
		out.pairs = append(out.pairs, curvedPair{line(p[0]), line(p[1]), int(to[r.First+schema.PairFeatures*n])})
	}
	out.setBumps()
	return out
}

// absent is what a stored line is in a row whose column has no value; like 0 in every sum.
var absent = float32(math.Copysign(0, -1))

// inverse is 1/one, rounded so that one times it is not below 1.
func inverse(one float64) float64 {
	inv := 1 / one
	if one*inv < 1 {
		inv = math.Nextafter(inv, math.Inf(1))
	}
	return inv
}

// isAbsent says whether a stored line is absent.
func isAbsent(v float32) bool { return math.Float32bits(v) == math.Float32bits(absent) }

// within is a number of a stored row as a feature.
func within(v float32, inv float64) float64 { return max(-1, min(1, float64(v)*inv)) + 0 }

// lineOf is a line of a stored row, NaN where its column has no value.
func lineOf(v float32, inv float64) float64 {
	if isAbsent(v) {
		return math.NaN()
	}
	return within(v, inv)
}

// features appends to dst the features of a stored row that may differ from 0, before the row rule: within ±1, that of
// the intercept 1. A row without an intercept has none.
func (c *Curves) features(dst []float64, x []float32) []float64 {
	one := float64(x[c.lines-1])
	if !(one > 0) {
		return dst
	}
	inv := inverse(one)
	for _, k := range c.columns {
		v := within(x[k.from], inv)
		if dst = append(dst, v); isAbsent(x[k.from]) {
			continue
		}
		if k.hats > 0 {
			_, left, right := schema.Bumps(k.hats, v)
			dst = append(dst, left, right)
		}
		for t := range k.waves {
			dst = append(dst, schema.Wave(t, v))
		}
	}
	for _, s := range c.others {
		for _, v := range x[s.from:][:s.n] {
			if v != 0 {
				dst = append(dst, within(v, inv))
			}
		}
	}
	for _, p := range c.pairs {
		_, of := pairOf(lineOf(x[p.a], inv), lineOf(x[p.b], inv))
		dst = append(dst, of[:]...)
	}
	return append(dst, 1)
}

// expandRows is how many rows are made at a time where they are kept.
const expandRows = 64

// expand sets rows from … end−1 of a block, which are 0 in x, to their features, multiplied by the rows' factors and
// rounded toward zero to multiples of the unit. They are those of features. A dropped row has a factor of 0.
func (c *Curves) expand(x []float32, b *Block, from, end int) {
	tile := c.newTile(min(expandRows, end-from))
	for ; from < end; from += expandRows {
		n := min(end-from, expandRows)
		tile.expand(x[:n*c.dim], b, from, from+n)
		x = x[n*c.dim:]
		for i, r := range c.bumps {
			r.cuts.Reset(tile.cuts[i])
		}
	}
}

// A curveTile is memory of rows that are made at a time.
type curveTile struct {
	*Curves
	cuts []*kern.CutTile // of each run of bumps
	inv  []float64       // 1 over what the row rule made of each row's intercept

	part []float64
	col  []int32 // of a row without most of its zeros
	val  []float32
}

func (c *Curves) newTile(rows int) *curveTile {
	t := &curveTile{Curves: c, inv: make([]float64, rows), part: make([]float64, rows)}
	for _, r := range c.bumps {
		t.cuts = append(t.cuts, r.cuts.Tile(rows))
	}
	return t
}

// expand is Curves.expand of rows that are 0, or that an earlier call made with t.
func (t *curveTile) expand(x []float32, b *Block, from, end int) {
	c := t.Curves
	lines, factors := b.Lines[from*c.lines:end*c.lines], b.Factors[from:end]
	inv := t.inv[:len(factors)]
	for i, f := range factors {
		if inv[i] = 0; f > 0 {
			inv[i] = inverse(float64(lines[(i+1)*c.lines-1]))
		}
	}
	for i, r := range c.bumps {
		r.cuts.Cut(x, c.dim, lines[r.from:], c.lines, inv, factors, c.rule.unit, t.cuts[i])
	}
	for i, f := range factors {
		row := x[i*c.dim:][:c.dim]
		for _, s := range c.rest {
			if row[s.from] = 0; s.n > 1 {
				clear(row[s.from+1:][:s.n-1])
			}
		}
		if f > 0 {
			c.expandRest(row, lines[i*c.lines:][:c.lines], inv[i], f)
		}
	}
	c.products.Put(x, c.dim, lines, c.lines, inv, factors, c.rule.unit)
}

// expandRest makes the features that no bumps and products follow from.
func (c *Curves) expandRest(row, x []float32, inv, f float64) {
	unit := c.rule.unit
	for _, k := range c.bare {
		v := within(x[k.from], inv)
		if row[k.at] = kern.Snap(v, f, unit); isAbsent(x[k.from]) {
			continue
		}
		for t := range k.waves {
			row[k.at+1+t] = kern.Snap(schema.Wave(t, v), f, unit)
		}
	}
	for _, s := range c.others {
		for k, v := range x[s.from:][:s.n] {
			if v != 0 {
				row[s.to+k] = kern.Snap(within(v, inv), f, unit)
			}
		}
	}
	row[c.dim-1] = kern.Snap(1, f, unit)
}

// A widener makes rows with curves. It is one goroutine's memory.
type widener struct {
	*Curves
	val []float64
}

// factor says what the features of a stored row are multiplied by, and their norm after that: 0 of a row that is 0.
func (w *widener) factor(x []float32) (f float64, norm float32) {
	if w.val = w.features(w.val[:0], x); len(w.val) == 0 {
		return 0, 0
	}
	return w.rule.factor(w.val)
}

// curve returns the table, of stored rows or with other curves, with rows that follow by c: wide with X, otherwise
// narrow. It shares the stored rows, labels and units. The pass ends with ctx.
func (t *Table) curve(ctx context.Context, c *Curves, wide bool, workers int) (*Table, error) {
	out := *t
	out.Dim, out.Curves, out.rule = c.dim, c, c.rule
	out.Blocks = make([]*Block, len(t.Blocks))
	t.BeginPass()
	if wide { // rows are read from memory alone
		out.pages = nil
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range max(1, workers) {
		all.Go(func() {
			w, memory := widener{Curves: c}, Arena{}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(t.Blocks) {
					return
				}
				t.Reach(t.Blocks[i])
				out.Blocks[i] = w.block(t.Blocks[i], wide, &memory)
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &out, nil
}

// block is a block of stored rows, or with other curves, with these.
func (w *widener) block(b *Block, wide bool, memory *Arena) *Block {
	k := *b
	if k.Dim, k.Curves = w.dim, w.Curves; b.Curves == nil {
		k.Lines = b.X
	}
	k.X, k.Norm, k.Factors = nil, memory.Floats(b.N), make([]float64, b.N)
	for i := range b.N {
		if b.Drop == nil || !b.Drop[i] {
			k.Factors[i], k.Norm[i] = w.factor(k.stored(i))
		}
	}
	if wide {
		k.X = memory.Floats(b.N * k.Dim)
		k.Curves.expand(k.X, &k, 0, b.N)
	}
	return &k
}

// Narrow says that the block has its rows as they are stored, without their curves.
func (b *Block) Narrow() bool { return b.Curves != nil && len(b.X) == 0 }

// stored is row i as it is stored.
func (b *Block) stored(i int) []float32 { return b.Lines[i*b.Curves.lines:][:b.Curves.lines] }

// appendStored appends the text of row i: curves follow from the rest.
func (b *Block) appendStored(dst []byte, i int) []byte {
	for j, v := range b.stored(i) {
		if isAbsent(v) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(j))
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
		dst = appendValue(dst, int32(j), v)
	}
	return dst
}

// wideRows are dense rows beside the stored ones that their curves follow from.
type wideRows struct{ denseRows }

func (r wideRows) appendText(dst []byte, i int) []byte { return r.appendStored(dst, i) }

// narrowRows are stored rows alone: Lines, with Factors. Models are given those of a [Widener].
type narrowRows struct{ base }

func (r narrowRows) appendText(dst []byte, i int) []byte { return r.appendStored(dst, i) }

func (r narrowRows) size() int { return 4 * r.Curves.lines }

func (r narrowRows) fill(x []float32, i int) { r.fillAll(x, i, i+1) }

func (r narrowRows) fillAll(x []float32, from, end int) { r.Curves.expand(x, r.Block, from, end) }

func (r narrowRows) memory(i int) [2][]byte {
	return [2][]byte{asBytes(r.stored(i)), asBytes(r.Factors[i : i+1])}
}

func (r narrowRows) copyTo(to *Block, i int) {
	to.Lines = append(to.Lines, r.stored(i)...)
	to.Factors, to.Curves = append(to.Factors, r.Factors[i]), r.Curves
}

// plain is the table with its rows and their curves in memory, from which those follow no longer.
func (t *Table) plain() *Table {
	if t.Curves == nil {
		return t
	}
	out := t.Dense()
	out.Curves, out.pages = nil, nil
	for i, b := range out.Blocks {
		k := *b
		k.Lines, k.Factors, k.Curves = nil, nil, nil
		out.Blocks[i] = &k
	}
	return out
}

// flat is the table of the rows as they are stored. Their norms are those with curves.
func (t *Table) flat() *Table {
	out := *t
	out.Dim, out.Curves, out.pages, out.unmap = t.Curves.lines, nil, nil, nil
	out.Blocks = make([]*Block, len(t.Blocks))
	for i, b := range t.Blocks {
		out.Blocks[i] = &Block{N: b.N, Dim: out.Dim, X: b.Lines, Y: b.Y, Norm: b.Norm, Drop: b.Drop}
	}
	return &out
}

// wide says whether the rows of a table with curves have them in memory.
func (t *Table) wide() bool { return len(t.Blocks) > 0 && !t.Blocks[0].Narrow() }

// wideValues is the most numbers of a table, by the declared rows, up to which rows with curves are kept whole: they
// are read somewhat faster.
const wideValues = 1 << 27

// Narrows says whether the rows of a schema are kept without their curves, which every pass then makes; sums have the
// same bits. It follows from the declared rows alone. Waves are fewer than bumps and take longer to make, so rows keep
// them.
func Narrows(s *schema.Schema) bool {
	waves := slices.ContainsFunc(s.Columns, func(c schema.Column) bool { return c.Waves > 0 })
	return s.Snapped && !waves && float64(s.Rows)*float64(s.Dim()) > wideValues
}

// A Widener makes rows of narrow blocks as wide ones have them, bit for bit. It is one goroutine's memory, which it
// keeps for the next rows.
type Widener struct {
	rows Block
	x    []float32 // the rows, of which some are those of an earlier call
}

// View is the rows of a block from one on up to another, with their curves. It is valid until the next call.
func (w *Widener) View(b *Block, from, end int) View {
	if !b.Narrow() {
		return View{Block: b, From: from, To: end}
	}
	n, t := end-from, w.rows.Made
	if t == nil || t.Curves != b.Curves || len(t.inv) < n {
		t = b.Curves.newTile(n)
		w.x = make([]float32, n*b.Dim)
	}
	x := w.x[:n*b.Dim]
	kern.Prefetch(b.Lines[end*b.Curves.lines : min(b.N, end+n)*b.Curves.lines]) // most often the next call's
	t.expand(x, b, from, end)
	b.part(&w.rows, x, from, end)
	w.rows.Made = t
	return View{Block: &w.rows, To: n}
}

// cutRows are wide rows of a Widener, which has their lines and bumps without the zeros between them, too.
type cutRows struct{ denseRows }

// values leaves out those zeros. They are valid until the next call.
func (r cutRows) values(i int, _ *[]float32) (col []int32, val []float32) {
	t := r.Made
	t.col, t.val = slices.Grow(t.col[:0], r.Dim)[:r.Dim], slices.Grow(t.val[:0], r.Dim)[:r.Dim]
	col, val = t.col, t.val
	n := 0
	for _, p := range t.places {
		if p.run >= 0 {
			at, first, x := t.cuts[p.run].Line(i, p.line)
			c, v := col[n:n+3], val[n:n+3]
			c[0], c[1], c[2] = at, first, first+1
			v[0], v[1], v[2] = x[0], x[1], x[2]
			n += 3
			continue
		}
		for k, v := range r.X[i*r.Dim+p.rest.from:][:p.rest.n] {
			if v != 0 {
				col[n], val[n] = int32(p.rest.from+k), v
				n++
			}
		}
	}
	return col[:n], val[:n]
}

// exact skips those zeros.
func (r cutRows) exact(z, w []float64, v View, s *Space) {
	if v.Rows != nil || v.From != 0 {
		r.margins(z, w, 1, v, s)
		return
	}
	clear(z)
	for i, b := range r.Made.bumps {
		b.cuts.Dot(z, w, r.Made.cuts[i])
	}
	part := r.Made.part[:len(z)]
	for _, s := range r.Made.rest {
		if s.n > 1 {
			kern.Dot(part, r.X[s.from:], r.Dim, nil, w[s.from:][:s.n])
			for i, v := range part {
				z[i] += v
			}
			continue
		}
		for i := range z { // most often the intercept
			z[i] += float64(float64(r.X[i*r.Dim+s.from]) * w[s.from])
		}
	}
}

// add skips those zeros, which changes no exact sum.
func (r cutRows) add(dst, a []float64, k int, v View, unit float64, s *Space) {
	if unit == 0 || k > 1 || v.Rows != nil || v.From != 0 {
		r.denseRows.add(dst, a, k, v, unit, s)
		return
	}
	for i, b := range r.Made.bumps {
		b.cuts.Add(dst, a, r.Made.cuts[i])
	}
	for _, s := range r.Made.rest {
		if s.n > 1 {
			kern.Axpy(dst[s.from:][:s.n], a, r.X[s.from:], r.Dim, nil)
			continue
		}
		for i, ai := range a { // most often the intercept
			dst[s.from] += float64(ai * float64(r.X[i*r.Dim+s.from]))
		}
	}
}
