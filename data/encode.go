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
	unit    int    // which of cols says whose row it is; −1: none does
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
}

// An encColumn is a column of the schema, prepared for encoding.
type encColumn struct {
	name    string
	typ     string
	offset  int // its first feature
	min     float64
	max     float64
	t       func(float64) float64 // nil: none
	tmin    float64
	width   float64         // t(max) − t(min)
	hats    int             // bumps after the first feature
	grid    bool            // one indicator for each bin of the public grid
	levels  map[string]int  // level or class → index
	numbers map[float64]int // class as a number → index; nil where a class is no number
	strip   string          // label
	lo, hi  float32         // numeric label
	unknown replacement     // categorical
	missing replacement     // numeric, categorical
}

// A replacement is the value of a cell that is missing or unknown.
type replacement struct {
	bad   bool
	zero  bool
	level int
	value float64
}

func newEncoder(s *schema.Schema) *encoder {
	e := &encoder{dim: s.Dim(), ones: s.Intercept, missing: s.Format.Missing, trim: s.Format.Trim, unit: -1}
	bound, unit := s.RowRule()
	e.rule = newRowRule(bound, unit, s.RowScaling == schema.RowScale, s.Norm == schema.NormL1)
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
		k := encColumn{name: c.Name, typ: c.Type, offset: offset, strip: c.Strip}
		switch c.Type {
		case schema.TypeIgnore:
			continue
		case schema.TypeNumeric:
			k.missing = ruleOf(c.Missing, nil)
			if c.Bounds == nil {
				k.grid = true
				offset += schema.GridBins()
				break
			}
			k.min, k.max, k.t = c.Bounds.Min, c.Bounds.Max, schema.Transform(c.Transform)
			k.tmin = k.t(k.min)
			k.width = k.t(k.max) - k.tmin
			if c.Transform == schema.TransformNone {
				k.t = nil
			}
			k.hats = c.Hats
			offset += 1 + c.Hats
		case schema.TypeCategorical:
			k.levels = indexOf(c.Levels)
			k.unknown, k.missing = ruleOf(c.Unknown, k.levels), ruleOf(c.Missing, k.levels)
			offset += len(c.Levels)
		case schema.TypeLabel:
			if c.Bounds != nil {
				k.min, k.max = c.Bounds.Min, c.Bounds.Max
				k.lo, k.hi = c.Bounds.Inward()
			} else {
				k.levels, k.numbers = indexOf(c.Classes), c.NumericClasses()
			}
			e.label = k
		case schema.TypeUnit:
			e.unit = len(e.cols)
		}
		e.cols = append(e.cols, k)
	}
	return e
}

// clone returns an encoder for another goroutine.
func (e *encoder) clone() *encoder {
	c := *e
	c.col, c.val, c.clamped, c.image8 = nil, nil, nil, nil
	if c.scatter != nil {
		c.waves = new(scatter.Workspace)
	}
	return &c
}

func indexOf(names []string) map[string]int {
	m := make(map[string]int, len(names))
	for i, n := range names {
		m[n] = i
	}
	return m
}

func ruleOf(rule string, levels map[string]int) replacement {
	switch rule {
	case schema.RuleError:
		return replacement{bad: true}
	case schema.RuleZero:
		return replacement{zero: true}
	}
	if levels != nil {
		return replacement{level: levels[rule]}
	}
	v, _ := config.ParseNumber(rule) // checked with the schema
	return replacement{value: v}
}

// begin clears the current row.
func (e *encoder) begin() {
	e.col, e.val, e.clamped = e.col[:0], e.val[:0], e.clamped[:0]
	e.y, e.norm, e.whose, e.image8, e.factor, e.tallied = 0, 0, unitID{}, e.image8[:0], 0, false
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

// finish adds the intercept and applies the row rule: then val and norm are final.
func (e *encoder) finish() {
	if e.bytes != nil {
		e.factor, e.norm = e.bytes.factor(e.image8)
		return
	}
	if e.ones {
		e.feature(e.dim-1, 1)
	}
	e.norm = e.rule.apply(e.val)
}

// cells takes a row of cells; place says which cell belongs to each of e.cols, −1 for a label or a unit
// that is not read. A cell for which null is true has no value, whatever the missing marks are; null may
// be nil. known are the numbers of the cells as [config.ParseNumber] has them, NaN where one is not known; it may be nil.
func (e *encoder) cells(cells []string, null []bool, known []float64, place []int) (first Fault) {
	if e.unit >= 0 && place[e.unit] >= 0 { // first, since a bad row has a unit too
		at := place[e.unit]
		if f := e.setUnit(cells[at], null != nil && null[at]); f.Found != "" {
			f.Cell, f.Column = at+1, e.cols[e.unit].name
			if e.ends(&first, f) {
				return f
			}
		}
	}
	for i := range e.cols {
		k := &e.cols[i]
		if place[i] < 0 || i == e.unit {
			continue
		}
		s, none := cells[place[i]], null != nil && null[place[i]]
		if k.typ == schema.TypeNumeric && !none {
			v := math.NaN()
			if known != nil {
				v = known[place[i]]
			}
			if e.parsed(k, i, s, v) {
				continue
			}
		}
		if f := e.cell(k, i, s, none); f.Found != "" {
			f.Cell, f.Column = place[i]+1, k.name
			if e.ends(&first, f) {
				return f
			}
		}
	}
	return first
}

// ends says that a row ends at its fault f. Where cells are counted it goes on, and first is its first fault.
func (e *encoder) ends(first *Fault, f Fault) bool {
	if e.tally == nil {
		return true
	}
	e.tally.fault(f)
	if !e.tallied {
		*first, e.tallied = f, true
	}
	return false
}

// values is cells for values with types.
func (e *encoder) values(values []Value, place []int) (first Fault) {
	if e.unit >= 0 && place[e.unit] >= 0 {
		at := place[e.unit]
		if f := e.setUnit(values[at].Text, values[at].Is == Null); f.Found != "" {
			f.Cell, f.Column = at+1, e.cols[e.unit].name
			if e.ends(&first, f) {
				return f
			}
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
			if v.Number-v.Number == 0 {
				e.number(k, i, v.Number)
				continue
			}
			text = strconv.FormatFloat(v.Number, 'g', -1, 64) // NaN, or infinite
		}
		if f := e.cell(k, i, text, v.Is == Null); f.Found != "" {
			f.Cell, f.Column = place[i]+1, k.name
			if e.ends(&first, f) {
				return f
			}
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
	case k.typ == schema.TypeNumeric:
		return e.numeric(k, i, s, none)
	case k.typ == schema.TypeCategorical:
		return e.categorical(k, i, s, none)
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

func (e *encoder) numeric(k *encColumn, i int, s string, none bool) Fault {
	if none || e.isMissing(s) {
		switch r := k.missing; {
		case r.bad:
			return Fault{Found: "a missing value", Allowed: "a number, or a missing rule for this column in the schema"}
		case r.zero:
			return Fault{}
		}
		e.scaled(k, i, k.missing.value)
		return Fault{}
	}
	v, bad := config.ParseNumber(s)
	if bad != "" {
		return Fault{Found: bad, Allowed: "a finite number; values out of bounds are clamped"}
	}
	e.number(k, i, v)
	return Fault{}
}

// number takes the number v of column i.
func (e *encoder) number(k *encColumn, i int, v float64) {
	if k.grid {
		e.feature(k.offset+schema.GridBin(v), 1)
		return
	}
	if e.tally != nil {
		e.tally.columns[i].number(v, k.min, k.max)
	}
	e.scaled(k, i, v)
}

// scaled adds the features of the number v of column i, clamped to its bounds.
func (e *encoder) scaled(k *encColumn, i int, v float64) {
	if v < k.min {
		v = k.min
		e.clamped = append(e.clamped, i)
	} else if v > k.max {
		v = k.max
		e.clamped = append(e.clamped, i)
	}
	if k.t != nil {
		v = k.t(v)
	}
	x := float64(2*((v-k.tmin)/k.width)) - 1
	if x > 1 {
		x = 1
	} else if x < -1 {
		x = -1
	}
	e.feature(k.offset, x)
	if k.hats > 0 {
		j, left, right := schema.Bumps(k.hats, x)
		e.feature(k.offset+1+j, left)
		e.feature(k.offset+2+j, right)
	}
}

func (e *encoder) categorical(k *encColumn, i int, s string, none bool) Fault {
	level, ok := k.levels[s]
	if none || !ok {
		r, what := k.unknown, "a level that the schema does not list"
		if none || e.isMissing(s) {
			r, what = k.missing, "a missing value"
		}
		if e.tally != nil && !r.bad && !none && !e.isMissing(s) {
			e.tally.columns[i].unknown.Add(1)
		}
		switch {
		case r.bad:
			return Fault{Found: what, Allowed: "one of the levels in the schema, or an unknown or missing rule for this column"}
		case r.zero:
			return Fault{}
		}
		level = r.level
	}
	e.feature(k.offset+level, 1)
	return Fault{}
}

func (e *encoder) setLabel(k *encColumn, i int, s string) Fault {
	if k.levels == nil {
		v, bad := config.ParseNumber(s)
		if bad != "" {
			return Fault{Found: bad, Allowed: "a finite number; a label out of bounds is clamped"}
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
	class, ok := k.levels[s]
	if !ok && k.numbers != nil {
		if v, bad := config.ParseNumber(s); bad == "" {
			class, ok = k.numbers[v]
		}
	}
	if !ok {
		return Fault{Found: "a label that is none of the classes", Allowed: "one of the classes in the schema"}
	}
	e.y = float32(class)
	return Fault{}
}

// setUnit assigns the row to the unit with that id, without the spaces around it.
func (e *encoder) setUnit(s string, none bool) Fault {
	id := strings.TrimSpace(s)
	if none || id == "" || e.isMissing(s) || e.isMissing(id) {
		return Fault{Found: "a missing value", Allowed: "an id: it says whose row it is"}
	}
	e.whose = unitID{hashID(id), true}
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
		if r.one {
			s += math.Abs(q)
		} else {
			s += float64(q * q)
		}
	}
	root := math.Sqrt(s)
	if r.one {
		root = s
	}
	if !r.scale && m*root <= r.bound {
		if norm, ok := r.round(v, 1/r.unit); ok {
			return norm
		}
	}
	if !r.scale {
		for i, x := range v {
			v[i] = x / m
		}
	}
	f := (1 - 0x1p-40) * (r.bound / r.unit) / root // v/m·f has a norm just below the bound, in units
	for {
		if norm, ok := r.round(v, f); ok {
			return norm
		}
		f *= 1 - 0x1p-20
	}
}

// round sets v to v·f, rounded toward zero to whole numbers, times the unit, and returns its norm. It
// leaves v as it is and returns false if the norm would be above the bound. |v·f| is at most 2²¹.
func (r rowRule) round(v []float64, f float64) (norm float32, ok bool) {
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
	for i, x := range v {
		v[i] = float64(int64(x*f)) * r.unit // no negative zero
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
