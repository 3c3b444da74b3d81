package onnx

import (
	pb "github.com/sottodp/sotto/internal/onnx/onnxpb"
	"github.com/sottodp/sotto/model"
)

// stage adds one stage of the model; false for one of another kind.
func (g *graph) stage(s model.Stage, x string) (string, bool) {
	switch s.Kind {
	case "scale":
		x = g.op("Mul", x, g.number(s.W[0]))
	case "dense":
		x = g.op("MatMul", x, g.numbers(s.W, s.In, s.Out))
		if s.B != nil {
			x = g.op("Add", x, g.numbers(s.B, 1, s.Out))
		}
	case "relu":
		x = g.op("Relu", x)
	case "tanh":
		x = g.op("Tanh", x)
	case "exp":
		x = g.op("Exp", x)
	case "conv":
		x = g.onImage(s, x, "Conv", g.singles(filters(s), s.Out, s.Image[2], s.Window[0], s.Window[1]), g.singles(s.B, s.Out))
	case "max":
		x = g.onImage(s, x, "MaxPool")
	case "mean":
		x = g.onImage(s, x, "AveragePool")
	case "group":
		x = g.group(s, x)
	default:
		return "", false
	}
	return x, true
}

// filters are the windows of a convolution channel by channel.
func filters(s model.Stage) []float64 {
	channels, pixels := s.Image[2], s.Window[0]*s.Window[1]
	w := make([]float64, len(s.W))
	for f := range s.Out {
		for p := range pixels {
			for c := range channels {
				w[(f*channels+c)*pixels+p] = s.W[(f*pixels+p)*channels+c]
			}
		}
	}
	return w
}

// onImage applies an operator to windows of images. Such operators take channels first, and runtimes have them for
// float32 only; Sotto computes them in float32, too.
func (g *graph) onImage(s model.Stage, x, kind string, more ...string) string {
	x = g.op("Reshape", x, g.whole(-1, int64(s.Image[0]), int64(s.Image[1]), int64(s.Image[2])))
	x = g.with("Transpose", integers("perm", 0, 3, 1, 2), g.cast(x, pb.TensorProto_FLOAT))
	how := integers("kernel_shape", int64(s.Window[0]), int64(s.Window[1]))
	how = append(how, integers("strides", int64(s.Stride[0]), int64(s.Stride[1]))...)
	how = append(how, integers("pads", int64(s.Pad[0]), int64(s.Pad[1]), int64(s.Pad[0]), int64(s.Pad[1]))...)
	x = g.with(kind, how, append([]string{x}, more...)...)
	x = g.with("Transpose", integers("perm", 0, 2, 3, 1), g.cast(x, pb.TensorProto_DOUBLE))
	return g.with("Flatten", integer("axis", 1), x)
}

// group normalizes the channels of each group over all pixels.
func (g *graph) group(s model.Stage, x string) string {
	pixels, channels := int64(s.Image[0]*s.Image[1]), int64(s.Image[2])
	x = g.op("Reshape", x, g.whole(-1, pixels, int64(s.Groups), channels/int64(s.Groups)))
	mean := func(x string) string { return g.with("ReduceMean", integer("keepdims", 1), x, g.whole(1, 3)) }
	x = g.op("Sub", x, mean(x))
	x = g.op("Div", x, g.op("Sqrt", g.op("Add", mean(g.op("Mul", x, x)), g.number(1e-5))))
	x = g.op("Reshape", x, g.whole(-1, pixels, channels))
	x = g.op("Add", g.op("Mul", x, g.numbers(s.W, 1, 1, s.Image[2])), g.numbers(s.B, 1, 1, s.Image[2]))
	return g.with("Flatten", integer("axis", 1), x)
}
