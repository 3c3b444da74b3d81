package onnx

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	pb "github.com/sottodp/sotto/internal/onnx/onnxpb"
)

// A graph is under construction. Values are identified by name.
type graph struct {
	pb.GraphProto
	taken   map[string]bool   // names of values
	scalars map[uint64]string // constants by their bits, each there once
	columns string            // the constant [1], once it is there
}

func newGraph() *graph {
	return &graph{taken: map[string]bool{}, scalars: map[uint64]string{}}
}

// name is a new name for a value: base, or base and a number.
func (g *graph) name(base string) string {
	n := base
	for i := 2; g.taken[n]; i++ {
		n = base + "_" + strconv.Itoa(i)
	}
	g.taken[n] = true
	return n
}

// op adds a node with one output, and returns the output's name.
func (g *graph) op(kind string, in ...string) string { return g.with(kind, nil, in...) }

// with is op for a node with attributes.
func (g *graph) with(kind string, attributes []*pb.AttributeProto, in ...string) string {
	out := g.name(kind)
	g.Node = append(g.Node,
		&pb.NodeProto{OpType: &kind, Name: &out, Input: in, Output: []string{out}, Attribute: attributes})
	return out
}

func integer(name string, v int64) []*pb.AttributeProto {
	return []*pb.AttributeProto{{Name: &name, Type: pb.AttributeProto_INT.Enum(), I: &v}}
}

func integers(name string, v ...int64) []*pb.AttributeProto {
	return []*pb.AttributeProto{{Name: &name, Type: pb.AttributeProto_INTS.Enum(), Ints: v}}
}

// cast converts x to another type.
func (g *graph) cast(x string, to pb.TensorProto_DataType) string {
	return g.with("Cast", integer("to", int64(to)), x)
}

// join puts matrices of as many rows side by side.
func (g *graph) join(parts ...string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return g.with("Concat", integer("axis", 1), parts...)
}

// numbers adds a constant of that shape.
func (g *graph) numbers(v []float64, shape ...int) string {
	raw := make([]byte, 0, 8*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(x))
	}
	return g.constant(&pb.TensorProto{DataType: code(pb.TensorProto_DOUBLE), RawData: raw}, shape)
}

// singles is numbers in float32.
func (g *graph) singles(v []float64, shape ...int) string {
	t := &pb.TensorProto{DataType: code(pb.TensorProto_FLOAT)}
	for _, x := range v {
		t.FloatData = append(t.FloatData, float32(x))
	}
	return g.constant(t, shape)
}

// number is a scalar constant.
func (g *graph) number(v float64) string {
	bits := math.Float64bits(v)
	if g.scalars[bits] == "" {
		g.scalars[bits] = g.numbers([]float64{v})
	}
	return g.scalars[bits]
}

// axis is the constant that says along a row.
func (g *graph) axis() string {
	if g.columns == "" {
		g.columns = g.whole(1)
	}
	return g.columns
}

// whole adds a list of whole numbers.
func (g *graph) whole(v ...int64) string {
	return g.constant(&pb.TensorProto{DataType: code(pb.TensorProto_INT64), Int64Data: v}, []int{len(v)})
}

// texts adds a constant of that shape.
func (g *graph) texts(v []string, shape ...int) string {
	t := &pb.TensorProto{DataType: code(pb.TensorProto_STRING)}
	for _, s := range v {
		t.StringData = append(t.StringData, []byte(s))
	}
	return g.constant(t, shape)
}

func (g *graph) constant(t *pb.TensorProto, shape []int) string {
	t.Name = proto.String(g.name("constant"))
	for _, n := range shape {
		t.Dims = append(t.Dims, int64(n))
	}
	g.Initializer = append(g.Initializer, t)
	return *t.Name
}

func code(t pb.TensorProto_DataType) *int32 { return proto.Int32(int32(t)) }

// value describes an input or output of N rows of that shape.
func value(name, what string, t pb.TensorProto_DataType, shape ...int) *pb.ValueInfoProto {
	dims := []*pb.TensorShapeProto_Dimension{{Value: &pb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}}}
	for _, n := range shape {
		dims = append(dims,
			&pb.TensorShapeProto_Dimension{Value: &pb.TensorShapeProto_Dimension_DimValue{DimValue: int64(n)}})
	}
	return &pb.ValueInfoProto{Name: &name, DocString: &what, Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{
		TensorType: &pb.TypeProto_Tensor{ElemType: code(t), Shape: &pb.TensorShapeProto{Dim: dims}},
	}}}
}
