package data

import (
	"math"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// An encoder encodes rows one at a time. Its state is scratch space: its output depends only on the row
// and the schema.
type encoder struct {
	dim     int
	cols    []encColumn // columns that are read, in schema order, with the label
	label   encColumn   // the label
	rule    rowRule
	center  []float64 // IDX: one number, or one for each pixel
	scale   []float64
	ones    bool // there is an intercept
	lo, hi  float64
	missing []string
	trim    bool
	unit    int // which of cols says whose row it is; −1: none does

	// The current row.
	col     []int32   // ascending
	val     []float64 // beside col; multiples of the unit after finish
	y       float32
	norm    float32
	whose   [16]byte // the unit's hashed id
	known   bool     // there is one
	clamped []int    // entries of cols (or 0 for LIBSVM), for each value that was clamped
}

// An encColumn is a column of the schema, prepared for encoding.
type encColumn struct {
	name    string
	typ     string
	offset  int // its first feature
	min     float64
	max     float64
	t       func(float64) float64
	tmin    float64
	width   float64         // t(max) − t(min)
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
		e.center, e.scale = s.Image.Center, s.Image.Scale
	}
	offset := s.Features
	for _, c := range s.Columns {
		k := encColumn{name: c.Name, typ: c.Type, offset: offset, strip: c.Strip}
		switch c.Type {
		case schema.TypeIgnore:
			continue
		case schema.TypeNumeric:
			k.min, k.max, k.t = c.Bounds.Min, c.Bounds.Max, schema.Transform(c.Transform)
			k.tmin = k.t(k.min)
			k.width = k.t(k.max) - k.tmin
			k.missing = ruleOf(c.Missing, nil)
			offset++
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
	e.y, e.norm, e.known = 0, 0, false
}

// feature adds the value v of feature j. Features come in ascending order.
func (e *encoder) feature(j int, v float64) {
	if v != 0 {
		e.col = append(e.col, int32(j))
		e.val = append(e.val, v)
	}
}

// finish adds the intercept and applies the row rule: then val and norm are final.
func (e *encoder) finish() {
	if e.ones {
		e.feature(e.dim-1, 1)
	}
	e.norm = e.rule.apply(e.val)
}

// cells takes a row of cells; place says which cell belongs to each of e.cols, −1 for a label or a unit
// that is not read. A cell for which null is true has no value, whatever the missing marks are; null may
// be nil.
func (e *encoder) cells(cells []string, null []bool, place []int) Fault {
	if e.unit >= 0 && place[e.unit] >= 0 { // first, since a bad row has a unit too
		at := place[e.unit]
		if f := e.setUnit(cells[at], null != nil && null[at]); f.Found != "" {
			f.Cell, f.Column = at+1, e.cols[e.unit].name
			return f
		}
	}
	for i := range e.cols {
		k := &e.cols[i]
		if place[i] < 0 || i == e.unit {
			continue
		}
		s := cells[place[i]]
		if e.trim {
			s = strings.TrimSpace(s)
		}
		none := null != nil && null[place[i]]
		var f Fault
		switch {
		case k.typ == schema.TypeNumeric:
			f = e.numeric(k, i, s, none)
		case k.typ == schema.TypeCategorical:
			f = e.categorical(k, s, none)
		case none:
			f = Fault{Found: "a missing value", Allowed: "a label"}
		default:
			f = e.setLabel(k, i, s)
		}
		if f.Found != "" {
			f.Cell, f.Column = place[i]+1, k.name
			return f
		}
	}
	return Fault{}
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
	var v float64
	if none || e.isMissing(s) {
		switch r := k.missing; {
		case r.bad:
			return Fault{Found: "a missing value", Allowed: "a number, or a missing rule for this column in the schema"}
		case r.zero:
			return Fault{}
		default:
			v = r.value
		}
	} else {
		var bad string
		if v, bad = config.ParseNumber(s); bad != "" {
			return Fault{Found: bad, Allowed: "a finite number; values out of bounds are clamped"}
		}
	}
	if v < k.min {
		v = k.min
		e.clamped = append(e.clamped, i)
	} else if v > k.max {
		v = k.max
		e.clamped = append(e.clamped, i)
	}
	e.feature(k.offset, max(-1, min(1, float64(2*((k.t(v)-k.tmin)/k.width))-1)))
	return Fault{}
}

func (e *encoder) categorical(k *encColumn, s string, none bool) Fault {
	level, ok := k.levels[s]
	if none || !ok {
		r, what := k.unknown, "a level that the schema does not list"
		if none || e.isMissing(s) {
			r, what = k.missing, "a missing value"
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
	e.whose, e.known = hashID(id), true
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
	var m float64
	for _, x := range v {
		m = max(m, math.Abs(x))
	}
	if m == 0 {
		clear(v) // no negative zero
		return 0
	}
	var s float64 // ‖v/m‖², or ‖v/m‖₁
	for _, x := range v {
		if r.one {
			s += math.Abs(x / m)
		} else {
			s += float64((x / m) * (x / m))
		}
	}
	root := math.Sqrt(s)
	if r.one {
		root = s
	}
	shrink := r.scale || m*root > r.bound
	f := (1 - 0x1p-40) * (r.bound / r.unit) / root // v/m·f has a norm just below the bound, in units
	for {
		var sum, size float64
		for _, x := range v {
			k := x / r.unit
			if shrink {
				k = x / m * f
			}
			k = math.Trunc(k)
			sum += k * k
			size += math.Abs(k)
		}
		if !r.one {
			size = sum
		}
		if size <= r.limit {
			for i, x := range v {
				k := x / r.unit
				if shrink {
					k = x / m * f
				}
				v[i] = math.Trunc(k)*r.unit + 0 // + 0: no negative zero
			}
			return r.normUp(sum)
		}
		if shrink {
			f *= 1 - 0x1p-20
		}
		shrink = true
	}
}

// normUp is unit·√sum, rounded up to float32; sum is a whole number below 2⁴⁹.
func (r rowRule) normUp(sum float64) float32 {
	n := float32(math.Sqrt(sum) * r.unit)
	if k := float64(n) / r.unit; k*k < sum { // k has 24 bits, so k² is exact
		n = math.Nextafter32(n, float32(math.Inf(1)))
	}
	return n
}
