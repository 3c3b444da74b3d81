package onnx

import (
	"fmt"
	"math"
	"slices"

	pb "github.com/sottodp/sotto/internal/onnx/onnxpb"
	"github.com/sottodp/sotto/schema"
)

// An encoder makes the nodes that encode records as package data does, in float64, with the
// same figures except for the last bits.
type encoder struct {
	*graph
	schema *schema.Schema
	bad    []string // of N×1 numbers: above 0 in rows that package data calls bad
}

// rows adds the inputs and returns the encoded rows.
func (e *encoder) rows() string {
	var x string
	switch s := e.schema; s.Format.Kind {
	case schema.KindIDX:
		x = e.image()
	case schema.KindLIBSVM:
		in := e.input("features", fmt.Sprintf("%d values; one that a record leaves out is 0", s.Features),
			pb.TensorProto_DOUBLE, s.Features)
		none := e.indicator("IsNaN", in)
		e.badCells(none)
		e.badCells(e.indicator("IsInf", in))
		x = e.between(e.op("Where", e.op("IsNaN", in), e.number(0), in), e.number(s.Values.Min), e.number(s.Values.Max))
	default:
		x = e.columns()
	}
	if e.schema.Intercept {
		x = e.op("Pad", x, e.whole(0, 0, 0, 1), e.number(1))
	}
	return e.rule(x)
}

func (e *encoder) input(name, what string, t pb.TensorProto_DataType, shape ...int) string {
	e.Input = append(e.Input, value(name, what, t, shape...))
	return name
}

// indicator is 1 where a test of x holds, 0 elsewhere.
func (e *encoder) indicator(test string, x ...string) string {
	return e.cast(e.op(test, x...), pb.TensorProto_DOUBLE)
}

// badCells marks the rows in which a cell is above 0.
func (e *encoder) badCells(cells string) {
	e.bad = append(e.bad, e.over("ReduceMax", cells))
}

// over reduces each row to one number.
func (e *encoder) over(kind, x string) string {
	return e.with(kind, integer("keepdims", 1), x, e.axis())
}

// between clamps x.
func (e *encoder) between(x, least, most string) string {
	return e.op("Max", e.op("Min", x, most), least)
}

// image encodes pixels as (v − center)/scale, or as scattering coefficients.
func (e *encoder) image() string {
	m := e.schema.Image
	if m.Encode == schema.EncodeScattering {
		return e.scattering()
	}
	in := e.input("image", "pixels, 0 to 255", pb.TensorProto_UINT8, m.Shape...)
	x := e.with("Flatten", integer("axis", 1), e.cast(in, pb.TensorProto_DOUBLE))
	return e.op("Div", e.op("Sub", x, e.numbers(m.Center, 1, len(m.Center))), e.numbers(m.Scale, 1, len(m.Scale)))
}

// A column is one that features come from.
type column struct {
	*schema.Form
	name string
}

// columns encodes the columns of numbers side by side, then the others, and puts their features into the schema's
// order.
func (e *encoder) columns() string {
	var numbers, others []column
	var lines, bumps, curves, cycles, products, rest []int64 // their features in the schema's order
	// The inputs in the schema's order, before any other node.
	for at, c := range e.schema.Places() {
		k := column{c.Form(), c.Name}
		next := func(to *[]int64, n int) {
			for range n {
				*to = append(*to, int64(at))
				at++
			}
		}
		switch {
		case k.Words > 0:
			e.input(c.Name,
				fmt.Sprintf("of each of %d features, 1 where a word of the text is hashed to it, else 0; without a value: NaN",
					k.Words), pb.TensorProto_DOUBLE, k.Words)
			others = append(others, k)
			next(&rest, k.Words)
		case k.Levels != nil:
			e.input(c.Name, fmt.Sprintf("one of %d levels", len(k.Levels)), pb.TensorProto_STRING, 1)
			others = append(others, k)
			next(&rest, k.Features())
		default:
			what := "a number"
			if k.Counts != "" {
				what = k.Counts + ", a number"
			}
			e.input(c.Name, fmt.Sprintf("%s, clamped to [%v, %v]; without a value: NaN", what, k.Line.Min, k.Line.Max),
				pb.TensorProto_DOUBLE, 1)
			numbers = append(numbers, k)
			next(&lines, 1)
			next(&bumps, k.Bumps)
			next(&curves, k.Waves)
			next(&cycles, 2*len(k.Cycles))
		}
	}
	var parts []string
	if len(numbers) > 0 {
		parts = append(parts, e.numeric(numbers)...)
	}
	for _, c := range others {
		if c.Words > 0 {
			parts = append(parts, e.words(c))
		} else {
			parts = append(parts, e.levels(c))
		}
	}
	x := e.join(parts...)
	for at := range e.schema.PairPlaces() {
		for i := range schema.PairFeatures {
			products = append(products, int64(at+i))
		}
	}
	all := slices.Concat(lines, bumps, curves, cycles, products, rest)
	order := make([]int64, len(all))
	for i, j := range all {
		order[j] = int64(i)
	}
	if slices.IsSorted(order) {
		return x
	}
	return e.with("Gather", integer("axis", 1), x, e.whole(order...))
}

// numeric encodes columns of numbers: missing rule, clamping, transform, and onto [−1, 1]. The bumps of all
// columns, if there are any, are a second matrix; waves, cycles and products of pairs follow.
func (e *encoder) numeric(columns []column) []string {
	n := len(columns)
	names := make([]string, n)
	least, most, first, width := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	instead, refuse, middle, log := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, c := range columns {
		names[i], least[i], most[i] = c.name, c.Line.Min, c.Line.Max
		first[i], width[i] = least[i], most[i]-least[i]
		if c.Line.Transform != schema.TransformNone {
			log[i], first[i] = 1, signedLog(least[i])
			width[i] = signedLog(most[i]) - first[i]
		}
		instead[i] = least[i] // any number, where the row is bad or the cell becomes 0
		switch {
		case c.Missing.Bad:
			refuse[i] = 1
		case c.Missing.Zero:
			middle[i] = 1
		default:
			instead[i] = c.Missing.Value
		}
	}
	row := func(v []float64) string { return e.numbers(v, 1, n) }
	raw := e.join(names...)
	none := e.op("IsNaN", raw)
	missing := e.cast(none, pb.TensorProto_DOUBLE)
	e.badCells(e.indicator("IsInf", raw))
	if slices.Contains(refuse, 1) {
		e.badCells(e.op("Mul", missing, row(refuse)))
	}
	clamped := e.between(e.op("Where", none, row(instead), raw), row(least), row(most))
	v := clamped
	if slices.Contains(log, 1) {
		t := e.op("Mul", e.op("Sign", v), e.op("Log", e.op("Add", e.op("Abs", v), e.number(1))))
		v = e.op("Where", e.op("Greater", row(log), e.number(0)), t, v)
	}
	v = e.op("Div", e.op("Sub", v, row(first)), row(width))
	v = e.op("Sub", e.op("Mul", v, e.number(2)), e.number(1))
	v = e.between(v, e.number(-1), e.number(1))
	zero := ""
	if slices.Contains(middle, 1) {
		zero = e.op("Greater", e.op("Mul", missing, row(middle)), e.number(0))
	}
	// ruled are features of columns of numbers, 0 where the rule for a missing one says so.
	ruled := func(x string, of []int64) string {
		if zero != "" {
			x = e.op("Where", e.gather(zero, of), e.number(0), x)
		}
		return x
	}
	var parts []string
	add := func(x string, of []int64) { parts = append(parts, ruled(x, of)) }
	lines, cycles := []int64{}, []int64{} // of each feature: its column
	var bumps, tents bumpFeatures
	var waves []int64 // of each wave: its column; each follows from the tents
	period, begin, phase := []float64{}, []float64{}, []float64{}
	for i, c := range columns {
		lines = append(lines, int64(i))
		bumps.add(i, c.Bumps)
		if c.Waves > 0 {
			tents.add(i, c.Kinks())
		}
		for range c.Waves {
			waves = append(waves, int64(i))
		}
		for _, w := range c.Cycles {
			for _, p := range []float64{0, math.Pi / 2} { // a cosine is a sine a quarter of a turn ahead
				cycles, period, begin, phase = append(cycles, int64(i)), append(period, w.Period), append(begin, w.Zero),
					append(phase, p)
			}
		}
	}
	add(v, lines)
	if len(bumps.of) > 0 {
		add(e.bumps(v, bumps), bumps.of)
	}
	if len(waves) > 0 {
		add(e.op("MatMul", e.bumps(v, tents), e.numbers(waveMatrix(columns, len(waves)), len(tents.of), len(waves))), waves)
	}
	if len(cycles) > 0 {
		k := len(cycles)
		u := e.op("Div", e.op("Sub", e.gather(clamped, cycles), e.numbers(begin, 1, k)), e.numbers(period, 1, k))
		u = e.op("Sub", u, e.op("Floor", u))
		add(e.op("Sin", e.op("Add", e.op("Mul", u, e.number(2*math.Pi)), e.numbers(phase, 1, k))), cycles)
	}
	if len(e.schema.Pairs) > 0 {
		a, b := e.products(names)
		add(ruled(e.op("Mul", e.bumps(v, a), e.bumps(v, b)), a.of), b.of)
	}
	return parts
}

// products are the bumps of the first and of the second column, among those names, that each feature of a pair
// multiplies.
func (e *encoder) products(names []string) (first, second bumpFeatures) {
	for _, p := range e.schema.Pairs {
		a, b := slices.Index(names, p.A), slices.Index(names, p.B)
		for i := range schema.PairBumps {
			for j := range schema.PairBumps {
				first.one(a, i, schema.PairBumps)
				second.one(b, j, schema.PairBumps)
			}
		}
	}
	return first, second
}

// bumpFeatures are bumps of columns: of each its column, its center, and half the number of steps between centers.
type bumpFeatures struct {
	of           []int64
	half, center []float64
}

// add adds the bumps of a column.
func (b *bumpFeatures) add(column, bumps int) {
	for j := range bumps {
		b.one(column, j, bumps)
	}
}

// one adds bump j of the bumps of a column.
func (b *bumpFeatures) one(column, j, bumps int) {
	b.of, b.half, b.center = append(b.of, int64(column)), append(b.half, float64(bumps-1)/2), append(b.center, float64(j))
}

// bumps are the values of bumps of columns of v.
func (e *encoder) bumps(v string, b bumpFeatures) string {
	u := e.op("Mul", e.op("Add", e.gather(v, b.of), e.number(1)), e.numbers(b.half, 1, len(b.half)))
	u = e.op("Abs", e.op("Sub", u, e.numbers(b.center, 1, len(b.center))))
	return e.op("Max", e.op("Sub", e.number(1), u), e.number(0))
}

// waveMatrix makes the waves of columns, of which there are waves in all, from the bumps that they are linear between.
func waveMatrix(columns []column, waves int) (m []float64) {
	first := 0
	for _, c := range columns {
		if c.Waves == 0 {
			continue
		}
		for j := range c.Kinks() {
			row := make([]float64, waves)
			for t := range c.Waves {
				row[first+t] = schema.WaveBumps(t)[j]
			}
			m = append(m, row...)
		}
		first += c.Waves
	}
	return m
}

// gather is a matrix of these columns of x.
func (e *encoder) gather(x string, columns []int64) string {
	return e.with("Gather", integer("axis", 1), x, e.whole(columns...))
}

// words brings the features of a text to the norm 1.
func (e *encoder) words(c column) string {
	none := e.op("IsNaN", c.name)
	if c.Missing.Bad {
		e.badCells(e.cast(none, pb.TensorProto_DOUBLE))
	}
	there := e.indicator("Greater", e.op("Where", none, e.number(0), c.name), e.number(0))
	return e.op("Div", there, e.op("Sqrt", e.op("Max", e.over("ReduceSum", there), e.number(1))))
}

// signedLog is the transform signed_log1p, and so log1p, which has no v below 0.
func signedLog(v float64) float64 { return math.Copysign(math.Log1p(math.Abs(v)), v) }

// levels encodes a column of levels. A value that is no level is missing if it is a missing mark
// of the format, and unknown otherwise.
func (e *encoder) levels(c column) string {
	n := len(c.Levels)
	hot := e.indicator("Equal", c.name, e.texts(c.Levels, 1, n))
	marks := e.schema.Format.Missing
	switch {
	case c.Missing.Zero && c.Unknown.Zero:
	case c.Missing == c.Unknown || len(marks) == 0:
		hot = e.replace(hot, e.noLevel(hot), c.Unknown, n)
	default:
		unknown := e.noLevel(hot)
		marked := e.over("ReduceMax", e.indicator("Equal", c.name, e.texts(marks, 1, len(marks))))
		missing := e.op("Mul", unknown, marked)
		hot = e.replace(hot, missing, c.Missing, n)
		hot = e.replace(hot, e.op("Sub", unknown, missing), c.Unknown, n)
	}
	if c.OneHot {
		return hot
	}
	at := make([]float64, n)
	for i := range at {
		at[i] = 2*float64(i)/float64(n-1) - 1
	}
	return e.over("ReduceSum", e.op("Mul", hot, e.numbers(at, 1, n)))
}

// noLevel is 1 in the rows whose value is no level.
func (e *encoder) noLevel(hot string) string {
	return e.op("Sub", e.number(1), e.over("ReduceSum", hot))
}

// replace follows a rule in the rows where which is 1.
func (e *encoder) replace(hot, which string, rule schema.Rule, levels int) string {
	switch {
	case rule.Bad:
		e.bad = append(e.bad, which)
		return hot
	case rule.Zero:
		return hot
	}
	one := make([]float64, levels)
	one[int(rule.Value)] = 1
	return e.op("Add", hot, e.op("Mul", which, e.numbers(one, 1, levels)))
}

// rule is the row rule: rows at or within the norm bound, whole numbers of the unit. Package
// data checks the bound once more, without rounding, and shortens a row that rounding left
// beyond it by 2⁻²⁰; the graph does not repeat this.
func (e *encoder) rule(x string) string {
	s := e.schema
	bound, unit := s.RowRule()
	size := e.op("Abs", x)
	most := e.over("ReduceMax", size)
	none := e.op("Equal", most, e.number(0)) // a row of zeros stays one
	part := e.op("Div", size, e.op("Where", none, e.number(1), most))
	var norm string // of x over its largest entry: at least 1
	if s.Norm == schema.NormL1 {
		norm = e.over("ReduceSum", part)
	} else {
		norm = e.op("Sqrt", e.over("ReduceSum", e.op("Mul", part, part)))
	}
	norm = e.op("Max", norm, e.number(1))
	units := e.op("Mul", e.op("Div", e.op("Mul", part, e.op("Sign", x)), norm), e.number((1-0x1p-40)*(bound/unit)))
	if s.RowScaling == schema.RowProject {
		beyond := e.op("Greater", e.op("Mul", most, norm), e.number(bound))
		// Ends of columns are whole numbers of units; the last bit of a logarithm must not make them less.
		units = e.op("Where", beyond, units, e.op("Mul", x, e.number((1+0x1p-47)/unit)))
	}
	whole := e.cast(e.cast(units, pb.TensorProto_INT64), pb.TensorProto_DOUBLE) // toward zero
	return e.op("Mul", whole, e.number(unit))
}
