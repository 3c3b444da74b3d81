package onnx

import (
	pb "github.com/sottodp/sotto/internal/onnx/onnxpb"
	"github.com/sottodp/sotto/internal/scatter"
)

// A scatterer adds the transform of package scatter, in float64: tensors of images × channels, planes, rows, columns.
type scatterer struct {
	*graph
	down, across scatter.Side
}

// A plane is a real or complex tensor: im is "" for a real one.
type plane struct{ re, im string }

// scattering encodes images as normalized scattering coefficients.
func (e *encoder) scattering() string {
	m := e.schema.Image
	height, width, channels := m.Shape[0], m.Shape[1], m.Channels()
	s := scatterer{e.graph, scatter.NewSide(height), scatter.NewSide(width)}
	x := e.cast(e.input("image", "pixels, 0 to 255", pb.TensorProto_UINT8, m.Shape...), pb.TensorProto_DOUBLE)
	x = e.op("Reshape", x, e.whole(-1, int64(height), int64(width), int64(channels)))
	x = e.op("Reshape", e.with("Transpose", integers("perm", 0, 3, 1, 2), x), e.whole(-1, 1, int64(height), int64(width)))
	x = e.op("Div", x, e.number(255))

	rows, cols := s.down.Padded, s.across.Padded
	first, second := scatter.Wavelets(rows, cols, 0), scatter.Wavelets(rows, cols, 1)
	spectrum := s.product(s.down.Image, rows, plane{re: x}, s.across.Image, cols)
	fine := s.moduli(s.times(spectrum, first, 1), s.down.Back, rows, s.across.Back, cols)
	half := s.moduli(s.folded(s.times(spectrum, second, 1), scatter.Angles), s.down.BackHalf, rows/2, s.across.BackHalf,
		cols/2)
	again := s.product(s.down.Whole, rows, plane{re: fine}, s.across.Whole, cols)
	both := s.moduli(s.folded(s.times(again, second, scatter.Angles), scatter.Angles*scatter.Angles), s.down.BackHalf,
		rows/2, s.across.BackHalf, cols/2)
	maps := e.join(s.average(s.down.Low, x, s.across.Low), s.average(s.down.LowWhole, fine, s.across.LowWhole),
		s.average(s.down.LowHalf, half, s.across.LowHalf), s.average(s.down.LowHalf, both, s.across.LowHalf))

	out, places := []int64{int64(s.down.Out), int64(s.across.Out)}, int64(s.down.Out*s.across.Out)
	x = e.op("Reshape", maps, e.whole(-1, scatter.Maps/scatter.Group, scatter.Group*places))
	mean := func(x string) string { return e.with("ReduceMean", integer("keepdims", 1), x, e.whole(2)) }
	x = e.op("Sub", x, mean(x))
	x = e.op("Div", x, e.op("Sqrt", e.op("Add", mean(e.op("Mul", x, x)), e.number(scatter.Least))))
	x = e.op("Reshape", x, e.whole(-1, int64(channels)*scatter.Maps, out[0], out[1]))
	return e.with("Flatten", integer("axis", 1), e.with("Transpose", integers("perm", 0, 2, 3, 1), x))
}

// product is left·x·right′; a side of x is as long as the rows of the matrix, which has that many rows.
func (s scatterer) product(left scatter.Complex, leftRows int, x plane, right scatter.Complex, rightRows int) plane {
	re := func(m []float64, rows int) string { return s.numbers(m, rows, len(m)/rows) }
	turned := func(m []float64, rows int) string {
		return s.with("Transpose", integers("perm", 1, 0), re(m, rows))
	}
	x = s.complex(x, plane{turned(right.Re, rightRows), turned(right.Im, rightRows)}, func(x, m string) string {
		return s.op("MatMul", x, m)
	})
	return s.complex(x, plane{re(left.Re, leftRows), re(left.Im, leftRows)}, func(x, m string) string {
		return s.op("MatMul", m, x)
	})
}

// complex is the product of complex matrices by that of real ones.
func (s scatterer) complex(x, m plane, product func(x, m string) string) plane {
	if x.im == "" {
		return plane{product(x.re, m.re), product(x.re, m.im)}
	}
	return plane{
		s.op("Sub", product(x.re, m.re), product(x.im, m.im)),
		s.op("Add", product(x.re, m.im), product(x.im, m.re)),
	}
}

// times multiplies each of the planes by the transforms of the wavelets.
func (s scatterer) times(x plane, wavelets []float32, planes int) plane {
	rows, cols := s.down.Padded, s.across.Padded
	w := make([]float64, len(wavelets))
	for i, v := range wavelets {
		w[i] = float64(v)
	}
	filter := s.numbers(w, 1, 1, scatter.Angles, rows, cols)
	each := func(x string) string {
		x = s.op("Mul", s.op("Reshape", x, s.whole(-1, int64(planes), 1, int64(rows), int64(cols))), filter)
		return s.op("Reshape", x, s.whole(-1, int64(planes*scatter.Angles), int64(rows), int64(cols)))
	}
	return plane{each(x.re), each(x.im)}
}

// folded is the transform at every other place.
func (s scatterer) folded(x plane, planes int) plane {
	each := func(x string) string {
		x = s.op("Reshape", x, s.whole(-1, int64(planes), 2, int64(s.down.Padded/2), 2, int64(s.across.Padded/2)))
		return s.with("ReduceMean", integer("keepdims", 0), x, s.whole(2, 4))
	}
	return plane{each(x.re), each(x.im)}
}

// moduli are those of the inverse transform.
func (s scatterer) moduli(x plane, down scatter.Complex, downRows int, across scatter.Complex, acrossRows int) string {
	x = s.product(down, downRows, x, across, acrossRows)
	return s.op("Sqrt", s.op("Add", s.op("Mul", x.re, x.re), s.op("Mul", x.im, x.im)))
}

// average averages planes.
func (s scatterer) average(down []float64, x string, across []float64) string {
	right := s.with("Transpose", integers("perm", 1, 0), s.numbers(across, s.across.Out, len(across)/s.across.Out))
	return s.op("MatMul", s.numbers(down, s.down.Out, len(down)/s.down.Out), s.op("MatMul", x, right))
}
