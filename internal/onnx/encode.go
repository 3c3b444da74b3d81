package onnx

import (
	"fmt"
	"math"
	"slices"
	"strconv"

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
		in := e.input("features", fmt.Sprintf("%d values; one that a record leaves out is 0", s.Features), pb.TensorProto_DOUBLE, s.Features)
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

// columns encodes the numeric columns side by side, then the categorical ones, and puts them
// into the schema's order.
func (e *encoder) columns() string {
	var numeric, levels []schema.Column
	var numericAt, hatsAt, levelsAt []int64 // their features in the schema's order
	at := int64(0)
	for _, c := range e.schema.Columns {
		switch c.Type {
		case schema.TypeNumeric:
			numeric, numericAt = append(numeric, c), append(numericAt, at)
			at++
			for range c.Hats {
				hatsAt = append(hatsAt, at)
				at++
			}
		case schema.TypeCategorical:
			levels = append(levels, c)
			for range c.Levels {
				levelsAt = append(levelsAt, at)
				at++
			}
		}
	}
	var parts []string
	// The inputs in the schema's order, before any other node.
	for _, c := range e.schema.Columns {
		switch c.Type {
		case schema.TypeNumeric:
			e.input(c.Name, fmt.Sprintf("a number, clamped to [%v, %v]; without a value: NaN", c.Bounds.Min, c.Bounds.Max), pb.TensorProto_DOUBLE, 1)
		case schema.TypeCategorical:
			e.input(c.Name, fmt.Sprintf("one of %d levels", len(c.Levels)), pb.TensorProto_STRING, 1)
		}
	}
	if len(numeric) > 0 {
		parts = append(parts, e.numeric(numeric)...)
	}
	for _, c := range levels {
		parts = append(parts, e.levels(c))
	}
	x := e.join(parts...)
	order := make([]int64, at)
	for i, j := range slices.Concat(numericAt, hatsAt, levelsAt) {
		order[j] = int64(i)
	}
	if slices.IsSorted(order) {
		return x
	}
	return e.with("Gather", integer("axis", 1), x, e.whole(order...))
}

// numeric encodes numeric columns: missing rule, clamping, transform, and onto [−1, 1]. The bumps of all
// columns, if there are any, are a second matrix.
func (e *encoder) numeric(columns []schema.Column) []string {
	n := len(columns)
	names := make([]string, n)
	least, most, first, width := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	instead, refuse, middle, log := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, c := range columns {
		names[i], least[i], most[i] = c.Name, c.Bounds.Min, c.Bounds.Max
		first[i], width[i] = least[i], most[i]-least[i]
		if c.Transform != schema.TransformNone {
			log[i], first[i] = 1, signedLog(least[i])
			width[i] = signedLog(most[i]) - first[i]
		}
		instead[i] = least[i] // any number, where the row is bad or the cell becomes 0
		switch c.Missing {
		case schema.RuleError:
			refuse[i] = 1
		case schema.RuleZero:
			middle[i] = 1
		default:
			instead[i], _ = strconv.ParseFloat(c.Missing, 64) // checked with the schema
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
	v := e.between(e.op("Where", none, row(instead), raw), row(least), row(most))
	if slices.Contains(log, 1) {
		t := e.op("Mul", e.op("Sign", v), e.op("Log", e.op("Add", e.op("Abs", v), e.number(1))))
		v = e.op("Where", e.op("Greater", row(log), e.number(0)), t, v)
	}
	v = e.op("Div", e.op("Sub", v, row(first)), row(width))
	v = e.op("Sub", e.op("Mul", v, e.number(2)), e.number(1))
	v = e.between(v, e.number(-1), e.number(1))
	parts := []string{v}
	of, half, center := []int64{}, []float64{}, []float64{} // for each bump
	for i, c := range columns {
		for j := range c.Hats {
			of, half, center = append(of, int64(i)), append(half, float64(c.Hats-1)/2), append(center, float64(j))
		}
	}
	if len(of) > 0 {
		u := e.op("Mul", e.op("Add", e.with("Gather", integer("axis", 1), v, e.whole(of...)), e.number(1)), e.numbers(half, 1, len(of)))
		u = e.op("Abs", e.op("Sub", u, e.numbers(center, 1, len(of))))
		parts = append(parts, e.op("Max", e.op("Sub", e.number(1), u), e.number(0)))
	}
	if slices.Contains(middle, 1) {
		zero := e.op("Greater", e.op("Mul", missing, row(middle)), e.number(0))
		parts[0] = e.op("Where", zero, e.number(0), v)
		if len(of) > 0 {
			parts[1] = e.op("Where", e.with("Gather", integer("axis", 1), zero, e.whole(of...)), e.number(0), parts[1])
		}
	}
	return parts
}

// signedLog is the transform signed_log1p, and so log1p, which has no v below 0.
func signedLog(v float64) float64 { return math.Copysign(math.Log1p(math.Abs(v)), v) }

// levels encodes a categorical column. A value that is no level is missing if it is a missing mark
// of the format, and unknown otherwise.
func (e *encoder) levels(c schema.Column) string {
	hot := e.indicator("Equal", c.Name, e.texts(c.Levels, 1, len(c.Levels)))
	if c.Missing == schema.RuleZero && c.Unknown == schema.RuleZero {
		return hot
	}
	unknown := e.op("Sub", e.number(1), e.over("ReduceSum", hot))
	marks := e.schema.Format.Missing
	if c.Missing == c.Unknown || len(marks) == 0 {
		return e.replace(hot, unknown, c.Unknown, c)
	}
	marked := e.over("ReduceMax", e.indicator("Equal", c.Name, e.texts(marks, 1, len(marks))))
	missing := e.op("Mul", unknown, marked)
	hot = e.replace(hot, missing, c.Missing, c)
	return e.replace(hot, e.op("Sub", unknown, missing), c.Unknown, c)
}

// replace follows a rule in the rows where which is 1.
func (e *encoder) replace(hot, which, rule string, c schema.Column) string {
	switch rule {
	case schema.RuleError:
		e.bad = append(e.bad, which)
		return hot
	case schema.RuleZero:
		return hot
	}
	one := make([]float64, len(c.Levels))
	one[slices.Index(c.Levels, rule)] = 1
	return e.op("Add", hot, e.op("Mul", which, e.numbers(one, 1, len(one))))
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
