package data

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/scatter"
	"github.com/sottodp/sotto/schema"
)

// An encoder encodes rows one at a time. Its state is scratch space: its output depends only on the row
// and the schema.
type encoder struct {
	dim     int
	cols    []encColumn // columns that are read, in schema order, with the label
	label   encColumn   // the label
	rule    rowRule
	image   *schema.Image // IDX
	shades  *[256]float64 // the value of each byte, if it is the same for all pixels
	bytes   *Pixels       // images stay bytes
	scatter *scatter.Transform
	waves   *scatter.Workspace // of scatter
	ones    bool               // there is an intercept
	lo, hi  float64
	missing []string
	trim    bool
	isText  bool             // cells are those of a text file, whose format says how numbers are written
	numbers *schema.Notation // how they are; nil: with a point
	pairs   []encPair
	unit    int    // which of cols says whose row it is; −1: none does
	idKey   []byte // of hashes of ids; nil: that of this process
	tally   *Tally // counts the cells; nil: nobody asked

	// The current row.
	col     []int32   // ascending
	val     []float64 // beside col; multiples of the unit after finish
	y       float32
	norm    float32
	image8  []byte  // of a row of bytes
	factor  float64 // likewise
	whose   unitID
	clamped []int // entries of cols (or −1 for LIBSVM), for each value that was clamped
	tallied bool  // the row's faults are in the tally
	faults  []int // entries of cols: those of cells that make it a bad row
	absent  []int // lines that are absent
	words   []int32
	line    []float64 // beside cols: the linear feature, NaN where the column has none; nil: there are no pairs
	tables  []cellTable
	at      []int // beside cols: the cell in a table of two columns; nil: there are no tables
}

// An encPair is a pair of columns, by their entries of cols, with the position of its first feature.
type encPair struct{ a, b, first int }

// A cellTable is a table of two columns, by their entries of cols, with the position of its first cell and the cells of
// the second column.
type cellTable struct{ a, b, first, width int }

// An encColumn is a column of the schema, prepared for encoding.
type encColumn struct {
	name   string
	offset int // its first feature
	min    float64
	max    float64

	// A column that features come from.
	form   *schema.Form
	read   func(cell string) (v float64, fault string) // nil: the cell is the number, or words
	plain  bool                                        // the cell is the number
	bare   bool                                        // which gives one feature between bounds, by no transform
	line   bool                                        // a feature between bounds
	t      func(float64) float64                       // nil: none
	tmin   float64
	width  float64 // t(max) − t(min)
	hats   int     // bumps after the first feature
	waves  int     // or waves
	marked bool    // where the rule of a missing value is 0, the line is absent instead
	cycles []schema.Cycle

	// The label.
	label   bool
	class   func(cell string) (index int, ok bool) // nil: a label that is a number
	numbers map[float64]int                        // class as a number → index; nil where a class is no number
	strip   string
	lo, hi  float32 // a label that is a number
}

func newEncoder(s *schema.Schema) *encoder {
	e := &encoder{dim: s.Dim(), ones: s.Intercept, missing: s.Format.Missing, trim: s.Format.Trim, unit: -1}
	e.rule = ruleOf(s)
	if s.Values != nil {
		e.lo, e.hi = s.Values.Min, s.Values.Max
	}
	if s.Image != nil {
		e.image = s.Image
		if s.Image.Encode == schema.EncodeScattering {
			e.scatter, e.waves = scatter.New(s.Image.Shape[0], s.Image.Shape[1], s.Image.Channels()), new(scatter.Workspace)
		} else if len(s.Image.Center) == 1 && len(s.Image.Scale) == 1 {
			e.shades = new([256]float64)
			for v := range e.shades {
				e.shades[v] = (float64(v) - s.Image.Center[0]) / s.Image.Scale[0]
			}
		}
	}
	offset := s.Features
	for _, c := range s.Columns {
		k := encColumn{name: c.Name, offset: offset, strip: c.Strip}
		switch k.form = c.Form(); {
		case k.form != nil:
			k.prepare()
			offset += k.form.Features()
		case c.Type == schema.TypeIgnore:
			continue
		case c.Type == schema.TypeLabel:
			k.label = true
			if c.Bounds != nil {
				k.min, k.max = c.Bounds.Min, c.Bounds.Max
				k.lo, k.hi = c.Bounds.Inward()
			} else {
				k.class, k.numbers = schema.FindText(c.Classes), c.NumericClasses()
			}
			e.label = k
		case c.Type == schema.TypeUnit:
			e.unit = len(e.cols)
		}
		e.cols = append(e.cols, k)
	}
	for first, p := range s.PairPlaces() {
		if p.Open() {
			continue
		}
		at := func(name string) int {
			return slices.IndexFunc(e.cols, func(k encColumn) bool { return k.name == name })
		}
		e.pairs = append(e.pairs, encPair{at(p.A), at(p.B), first})
	}
	e.newTables(s)
	e.newLine()
	return e
}

// newTables sets the tables of two columns.
func (e *encoder) newTables(s *schema.Schema) {
	for first, t := range s.CellTables() {
		at := func(column int) int {
			return slices.IndexFunc(e.cols, func(k encColumn) bool { return k.name == s.Columns[column].Name })
		}
		b := at(t[1])
		e.tables = append(e.tables, cellTable{at(t[0]), b, first, e.cols[b].form.PairCells()})
	}
}

// newLine makes the row's linear features, where pairs need them.
func (e *encoder) newLine() {
	if e.line = nil; len(e.pairs) > 0 {
		e.line = slices.Repeat([]float64{math.NaN()}, len(e.cols))
	}
	if e.at = nil; len(e.tables) > 0 {
		e.at = make([]int, len(e.cols))
	}
}

// prepare sets what the form says.
func (k *encColumn) prepare() {
	k.read, k.hats, k.waves, k.cycles = k.form.Reader(), k.form.Bumps, k.form.Waves, k.form.Cycles
	k.plain = k.read == nil && k.form.Words == 0
	if line := k.form.Line; line != nil {
		k.line, k.min, k.max, k.t = true, line.Min, line.Max, schema.Transform(line.Transform)
		k.tmin = k.t(k.min)
		k.width = k.t(k.max) - k.tmin
		if line.Transform == schema.TransformNone {
			k.t = nil
		}
	}
	k.bare = k.plain && k.line && k.t == nil && k.hats+k.waves+len(k.cycles)+k.form.Cells == 0 && !k.form.Grid
}

// reads sets how the file writes numbers.
func (e *encoder) reads(n *schema.Notation) {
	e.isText, e.numbers = true, n
	for i := range e.cols {
		if k := &e.cols[i]; n != nil && k.form != nil {
			k.read = n.Reader(k.form, k.read)
			k.plain = k.plain && k.read == nil
			k.bare = k.bare && k.plain
		}
	}
}

// clone returns an encoder for another goroutine.
func (e *encoder) clone() *encoder {
	c := *e
	c.col, c.val, c.clamped, c.image8, c.words, c.faults, c.absent = nil, nil, nil, nil, nil, nil, nil
	c.newLine()
	if c.scatter != nil {
		c.waves = new(scatter.Workspace)
	}
	return &c
}

// begin clears the current row.
func (e *encoder) begin() {
	e.col, e.val, e.clamped, e.faults = e.col[:0], e.val[:0], e.clamped[:0], e.faults[:0]
	e.absent = e.absent[:0]
	e.y, e.norm, e.whose, e.image8, e.factor, e.tallied = 0, 0, unitID{}, e.image8[:0], 0, false
	for i := range e.line {
		e.line[i] = math.NaN()
	}
}

// feature adds the value v of feature j. Features come in ascending order.
func (e *encoder) feature(j int, v float64) {
	if v != 0 {
		e.col = append(e.col, int32(j))
		e.val = append(e.val, v)
	}
}

// pixels adds the features of an image.
func (e *encoder) pixels(image []byte) {
	if e.bytes != nil {
		e.image8 = append(e.image8, image...)
		return
	}
	if e.scatter != nil {
		e.coefficients(image)
		return
	}
	e.col, e.val = slices.Grow(e.col[:0], len(image)+1), slices.Grow(e.val[:0], len(image)+1) // one more for the intercept
	col, val := e.col[:len(image)], e.val[:len(image)]
	n := 0
	for j, b := range image {
		var v float64
		if e.shades != nil {
			v = e.shades[b]
		} else {
			center, scale := e.image.Center, e.image.Scale // one number, or one for each pixel
			v = (float64(b) - center[min(j, len(center)-1)]) / scale[min(j, len(scale)-1)]
		}
		col[n], val[n] = int32(j), v
		if v != 0 {
			n++
		}
	}
	e.col, e.val = col[:n], val[:n]
}

// coefficients adds the features of an image that are scattering coefficients.
func (e *encoder) coefficients(image []byte) {
	n := e.dim
	if e.ones {
		n--
	}
	e.col, e.val = slices.Grow(e.col[:0], n+1)[:n], slices.Grow(e.val[:0], n+1)[:n]
	for j := range e.col {
		e.col[j] = int32(j)
	}
	e.scatter.Coefficients(e.val, image, e.waves)
}

// products adds the features of the pairs.
func (e *encoder) products() {
	for _, p := range e.pairs {
		at, of := pairOf(e.line[p.a], e.line[p.b])
		for k, v := range of {
			e.feature(p.first+at[k], v)
		}
	}
}

// pairOf are the features of a pair of lines that may differ from 0, ascending: the products of at most two bumps of
// either. They are 0 where one of the lines is none.
func pairOf(a, b float64) (at [4]int, of [4]float64) {
	if a != a || b != b {
		return at, of
	}
	const k = schema.PairBumps
	i, left, right := schema.Bumps(k, a)
	j, low, high := schema.Bumps(k, b)
	first := k*i + j
	at = [4]int{first, first + 1, first + k, first + k + 1}
	return at, [4]float64{left * low, left * high, right * low, right * high}
}

// finish adds the features of pairs and the intercept, and applies the row rule: then val and norm are final.
func (e *encoder) finish() {
	if e.bytes != nil {
		e.factor, e.norm = e.bytes.factor(e.image8)
		return
	}
	e.products()
	for _, t := range e.tables {
		e.feature(t.first+e.at[t.a]*t.width+e.at[t.b], 1)
	}
	if e.ones {
		e.feature(e.dim-1, 1)
	}
	e.norm = e.rule.apply(e.val)
	for _, j := range e.absent {
		e.col, e.val = append(e.col, int32(j)), append(e.val, float64(absent))
	}
}

// mark makes the lines of those columns absent where a cell has no value and counts as 0.
func (e *encoder) mark(columns []string) {
	for i := range e.cols {
		e.cols[i].marked = slices.Contains(columns, e.cols[i].name)
	}
}

// cells takes a row of cells; place says which cell belongs to each of e.cols, −1 for a label or a unit that is not
// read. A cell for which null is true has no value, whatever the missing marks are; null may be nil. known are the
// numbers of the cells as [config.ParseNumber] has them, NaN where one is not known; it may be nil.
func (e *encoder) cells(cells []string, null []bool, known []float64, place []int) (first Fault) {
	if e.unit >= 0 && place[e.unit] >= 0 { // first, since a bad row has a unit too
		at := place[e.unit]
		if f := e.setUnit(cells[at], null != nil && null[at]); f.Found != "" {
			f.Cell = at + 1
			e.fault(&first, e.unit, f)
		}
	}
	for i := range e.cols {
		k := &e.cols[i]
		if place[i] < 0 || i == e.unit {
			continue
		}
		s, none := cells[place[i]], null != nil && null[place[i]]
		if k.plain && !none {
			v := math.NaN()
			if known != nil {
				v = known[place[i]]
			}
			if e.parsed(k, i, s, v) {
				continue
			}
		}
		if f := e.cell(k, i, s, none); f.Found != "" {
			f.Cell = place[i] + 1
			e.fault(&first, i, f)
		}
	}
	return first
}

// fault takes the fault f of a cell of column i; first is the first of the row.
func (e *encoder) fault(first *Fault, i int, f Fault) {
	f.Column = e.cols[i].name
	if e.tally != nil {
		e.tally.fault(f)
		e.tallied = true
	}
	if e.faults = append(e.faults, i); len(e.faults) == 1 {
		*first = f
	}
}

// values is cells for values with types.
func (e *encoder) values(values []Value, place []int) (first Fault) {
	if e.unit >= 0 && place[e.unit] >= 0 {
		at := place[e.unit]
		if f := e.setUnit(values[at].Text, values[at].Is == Null); f.Found != "" {
			f.Cell = at + 1
			e.fault(&first, e.unit, f)
		}
	}
	for i := range e.cols {
		k := &e.cols[i]
		if place[i] < 0 || i == e.unit {
			continue
		}
		v := &values[place[i]]
		text := v.Text
		if v.Is == Number {
			switch finite := v.Number-v.Number == 0; {
			case finite && k.bare && e.tally == nil && e.line == nil && v.Number >= k.min && v.Number <= k.max:
				e.feature(k.offset, k.within(v.Number))
				continue
			case finite && k.plain:
				e.number(k, i, v.Number)
				continue
			}
			text = strconv.FormatFloat(v.Number, 'g', -1, 64) // NaN, infinite, or to be read as text
		}
		if f := e.cell(k, i, text, v.Is == Null); f.Found != "" {
			f.Cell = place[i] + 1
			e.fault(&first, i, f)
		}
	}
	return first
}

// parsed takes the cell s of the numeric column i if it is a number, as nearly all are, and otherwise
// returns false. v is that number, or NaN. A Fault, even an empty one, takes longer than the number.
func (e *encoder) parsed(k *encColumn, i int, s string, v float64) bool {
	if e.trim {
		s = strings.TrimSpace(s)
	}
	if e.isMissing(s) {
		return false
	}
	if v == v {
		e.number(k, i, v)
		return true
	}
	v, bad := config.ParseNumber(s)
	if bad == "" {
		e.number(k, i, v)
	}
	return bad == ""
}

// cell takes the cell s of column i.
func (e *encoder) cell(k *encColumn, i int, s string, none bool) Fault {
	if e.trim {
		s = strings.TrimSpace(s)
	}
	if e.tally != nil && (none || e.isMissing(s)) {
		e.tally.columns[i].missing.Add(1)
	}
	switch {
	case !k.label:
		return e.features(k, i, s, none)
	case none:
		return Fault{Found: "a missing value", Allowed: "a label"}
	}
	return e.setLabel(k, i, s)
}

func (e *encoder) isMissing(s string) bool {
	for _, m := range e.missing {
		if s == m {
			return true
		}
	}
	return false
}

// features adds the features of a cell. A level may look like a missing mark; then it is the level.
func (e *encoder) features(k *encColumn, i int, s string, none bool) Fault {
	none = none || k.form.Levels == nil && e.isMissing(s)
	rule, found, allowed := k.form.Missing, "a missing value", k.form.Wanted()
	if !none && k.form.Words > 0 {
		e.text(k, s)
		return Fault{}
	}
	if !none {
		read := k.read
		if read == nil {
			read = config.ParseNumber
		}
		v, fault := read(s)
		if fault == "" {
			e.number(k, i, v)
			return Fault{}
		}
		if k.form.Levels == nil || !e.isMissing(s) {
			if k.form.Cells > 0 {
				e.counted(k, i, k.form.Cells+1, k.form.PairCells()-1)
				return Fault{}
			}
			rule, found, allowed = k.form.Unknown, fault, k.form.Allowed()
			if k.form.Number() {
				const missing = "say with missing: of the column what it counts as"
				found, allowed = e.numbers.NumberFault(s, fault, allowed, missing, e.isText)
			}
			if e.tally != nil && !rule.Bad {
				e.tally.columns[i].unknown.Add(1)
			}
		}
	}
	switch {
	case k.form.Cells > 0:
		e.counted(k, i, k.form.Cells, k.form.PairCells()-1)
	case rule.Bad:
		return Fault{Found: found, Allowed: allowed}
	case !rule.Zero:
		e.scaled(k, i, rule.Value)
	case k.marked:
		e.absent = append(e.absent, k.offset)
	}
	return Fault{}
}

// counted adds the indicator of a cell of column i, and notes its cell in tables of two columns.
func (e *encoder) counted(k *encColumn, i, cell, inPair int) {
	e.feature(k.offset+cell, 1)
	if e.at != nil {
		e.at[i] = inPair
	}
}

// text adds the features of a text: their norm is 1, or 0 without words.
func (e *encoder) text(k *encColumn, s string) {
	e.words = schema.Buckets(s, k.form.Words, e.words)
	v := 1 / math.Sqrt(float64(len(e.words)))
	for _, j := range e.words {
		e.feature(k.offset+int(j), v)
	}
}

// number takes the number v of column i.
func (e *encoder) number(k *encColumn, i int, v float64) {
	switch {
	case k.form.Grid:
		e.feature(k.offset+schema.GridBin(v), 1)
		return
	case k.form.Cells > 0:
		e.counted(k, i, k.form.CellOf(v, k.form.Cells), k.form.CellOf(v, k.form.PairCells()-1))
		return
	}
	if e.tally != nil && k.form.Levels == nil {
		e.tally.columns[i].number(v, k.min, k.max)
	}
	e.scaled(k, i, v)
}

// within is a number between bounds, after its transform, as a feature.
func (k *encColumn) within(v float64) float64 {
	x := float64(2*((v-k.tmin)/k.width)) - 1
	if x > 1 {
		return 1
	} else if x < -1 {
		return -1
	}
	return x
}

// scaled adds the features of the number v of column i, clamped to its bounds.
func (e *encoder) scaled(k *encColumn, i int, v float64) {
	if !k.line {
		e.feature(k.offset+int(v), 1) // one for each level
		return
	}
	if v < k.min {
		v = k.min
		e.clamped = append(e.clamped, i)
	} else if v > k.max {
		v = k.max
		e.clamped = append(e.clamped, i)
	}
	at := v
	if k.t != nil {
		v = k.t(v)
	}
	x := k.within(v)
	e.feature(k.offset, x)
	if e.line != nil {
		e.line[i] = x
	}
	if k.hats > 0 {
		j, left, right := schema.Bumps(k.hats, x)
		e.feature(k.offset+1+j, left)
		e.feature(k.offset+2+j, right)
	}
	for t := range k.waves {
		e.feature(k.offset+1+t, schema.Wave(t, x))
	}
	for n, c := range k.cycles {
		sine, cosine := c.At(at)
		e.feature(k.offset+1+k.hats+k.waves+2*n, sine)
		e.feature(k.offset+2+k.hats+k.waves+2*n, cosine)
	}
}

func (e *encoder) setLabel(k *encColumn, i int, s string) Fault {
	if k.class == nil {
		v, bad := e.numbers.Parse(s)
		if bad != "" {
			return e.labelFault(s, bad)
		}
		if e.tally != nil {
			e.tally.columns[i].number(v, k.min, k.max)
		}
		if v < k.min || v > k.max {
			e.clamped = append(e.clamped, i)
			v = max(k.min, min(k.max, v))
		}
		e.y = max(k.lo, min(k.hi, float32(v)))
		return Fault{}
	}
	if k.strip != "" {
		s = strings.TrimSuffix(s, k.strip)
	}
	class, ok := k.class(s)
	if !ok && e.numbers != nil {
		if plain, number := e.numbers.Plain(nil, s); number {
			class, ok = k.class(string(plain))
		}
	}
	if !ok && k.numbers != nil {
		if v, bad := e.numbers.Parse(s); bad == "" {
			class, ok = k.numbers[v]
		}
	}
	if !ok {
		return Fault{Found: "a label that is none of the classes", Allowed: "one of the classes in the schema"}
	}
	e.y = float32(class)
	return Fault{}
}

const withoutLabel = "leave out rows without a label, as on_bad_row: drop does"

// labelFault is the fault of a label that is no number. A missing one has no rule.
func (e *encoder) labelFault(s, bad string) Fault {
	if e.isMissing(s) {
		return Fault{Found: "a missing value", Allowed: "a label; " + withoutLabel}
	}
	found, allowed := e.numbers.NumberFault(s, bad, "a finite number; a label out of bounds is clamped", withoutLabel,
		e.isText)
	return Fault{Found: found, Allowed: allowed}
}

// setUnit assigns the row to the unit with that id, without the spaces around it.
func (e *encoder) setUnit(s string, none bool) Fault {
	id := strings.TrimSpace(s)
	if none || id == "" || e.isMissing(s) || e.isMissing(id) {
		return Fault{Found: "a missing value", Allowed: "an id: it says whose row it is"}
	}
	e.whose = unitID{hashID(e.idKey, id), true}
	return Fault{}
}

// A rowRule keeps rows within the norm bound and at multiples of the unit.
type rowRule struct {
	bound float64 // a float32 number
	unit  float64 // a power of two, at least 2⁻²⁰·bound
	limit float64 // (bound/unit)², exact in 48 bits; bound/unit where one is set
	scale bool    // bring every non-zero row to the bound
	one   bool    // the bound is on ‖x‖₁, not ‖x‖₂
}

// ruleOf is the rule of a schema.
func ruleOf(s *schema.Schema) rowRule {
	bound, unit := s.RowRule()
	return newRowRule(bound, unit, s.RowScaling == schema.RowScale, s.Norm == schema.NormL1)
}

func newRowRule(bound, unit float64, scale, one bool) rowRule {
	b := bound / unit
	limit := b * b
	if one {
		limit = b
	}
	return rowRule{bound: bound, unit: unit, limit: limit, scale: scale, one: one}
}

// apply rescales v where the rule says so, rounds every value toward zero to a
// multiple of the unit, and returns the ℓ2 norm of the result, rounded up to
// float32. It is never above the bound.
//
// In units, values are whole numbers k with Σk² ≤ 2⁴⁰, so Σk² and its comparison with the limit are
// exact, and so are those of Σ|k| ≤ 2²⁰.
func (r rowRule) apply(v []float64) float32 {
	var most uint64 // bits of the largest absolute value
	for _, x := range v {
		most = max(most, math.Float64bits(x)&^(1<<63))
	}
	m := math.Float64frombits(most)
	if m == 0 {
		clear(v) // no negative zero
		return 0
	}
	var s float64 // ‖v/m‖², or ‖v/m‖₁
	for i, x := range v {
		q := x / m
		if r.scale {
			v[i] = q
		}
		s = r.with(s, q)
	}
	root := r.root(s)
	if !r.scale && m*root <= r.bound {
		if norm, ok := r.fits(v, 1/r.unit); ok {
			r.round(v, 1/r.unit)
			return norm
		}
	}
	if !r.scale {
		for i, x := range v {
			v[i] = x / m
		}
	}
	f, norm := r.shrink(v, root)
	r.round(v, f)
	return norm
}

// factor says, of values whose largest is 1, what apply multiplies them by before it rounds them, and returns their
// norm.
func (r rowRule) factor(v []float64) (f float64, norm float32) {
	var s float64
	for _, x := range v {
		s = r.with(s, x)
	}
	root := r.root(s)
	if !r.scale && root <= r.bound {
		if norm, ok := r.fits(v, 1/r.unit); ok {
			return 1 / r.unit, norm
		}
	}
	return r.shrink(v, root)
}

// with is a sum of squares, or of absolute values, with x; root is the norm that such a sum gives.
func (r rowRule) with(sum, x float64) float64 {
	if r.one {
		return sum + math.Abs(x)
	}
	return sum + float64(x*x)
}

func (r rowRule) root(sum float64) float64 {
	if r.one {
		return sum
	}
	return math.Sqrt(sum)
}

// shrink says what values of that norm, the largest of which is 1, are multiplied by so that their norm is just within
// the bound, and returns it.
func (r rowRule) shrink(v []float64, root float64) (f float64, norm float32) {
	f = (1 - 0x1p-40) * (r.bound / r.unit) / root // v·f has a norm just below the bound, in units
	for {
		if norm, ok := r.fits(v, f); ok {
			return f, norm
		}
		f *= 1 - 0x1p-20
	}
}

// round sets v to v·f, rounded toward zero to whole numbers, times the unit. |v·f| is at most 2²¹.
func (r rowRule) round(v []float64, f float64) {
	for i, x := range v {
		v[i] = float64(int64(x*f)) * r.unit // no negative zero
	}
}

// fits returns the norm of v·f after round, and whether it is within the bound.
func (r rowRule) fits(v []float64, f float64) (norm float32, ok bool) {
	var sum, size int64
	for _, x := range v {
		k := int64(x * f)
		sum += k * k
		size += max(k, -k)
	}
	if !r.one {
		size = sum
	}
	if float64(size) > r.limit {
		return 0, false
	}
	return r.normUp(float64(sum)), true
}

// normUp is unit·√sum, rounded up to float32; sum is a whole number below 2⁴⁹.
func (r rowRule) normUp(sum float64) float32 {
	n := float32(math.Sqrt(sum) * r.unit)
	if k := float64(n) / r.unit; k*k < sum { // k has 24 bits, so k² is exact
		n = math.Nextafter32(n, float32(math.Inf(1)))
	}
	return n
}
