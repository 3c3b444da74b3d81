// Package onnx writes models as ONNX files, for programs other than Sotto.
//
// The file takes records as the schema has them and does the rest by standard operators:
// missing and unknown values, clamping, transforms, levels, the row rule, the model, the
// names of classes. It computes in float64, as Sotto does, since the rounding of rows to
// the unit and large weights make a float32 differ visibly.
//
// Inputs, each for N records:
//
//	CSV     one of shape [N, 1] for each column that is looked at, under the column's name:
//	        float64 for a number, NaN where there is none; string for a category, without
//	        spaces around it, a missing mark of the schema where there is none
//	LIBSVM  features, float64 [N, D]
//	IDX     image, uint8 [N, rows, columns, …]
//
// Outputs: label [N, 1], the class as a string or the value as a float64, and for classes
// probabilities, float64 [N, K] in the schema's order. A record that Sotto calls bad gets
// the label "" or NaN, and NaN for probabilities.
package onnx

import (
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "github.com/sottodp/sotto/internal/onnx/onnxpb"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/schema"
)

// The operators are those of opset 19, the first whose Equal compares strings; files of
// format version 9 have them.
const (
	formatVersion = 9
	opset         = 19
)

// Write writes the model m at f.Weights(), for records under the schema. facts are keys and values of metadata.
func Write(w io.Writer, f *model.File, m model.Model, s *schema.Schema, facts [][2]string) error {
	staged, ok := m.(model.Staged)
	if !ok {
		return fmt.Errorf("found a model %s; ONNX takes those of layers", f.Model)
	}
	g := newGraph()
	for _, c := range s.Columns {
		g.taken[c.Name] = true // a column that is an input keeps its name, whatever it is
	}
	e := &encoder{graph: g, schema: s}
	x := e.rows()
	margins := 0
	for _, stage := range staged.Stages(f.Weights()) {
		if x, ok = e.stage(stage, x); !ok {
			return fmt.Errorf("found a layer of %s that no ONNX operator is chosen for", f.Model)
		}
		if stage.Kind == "dense" {
			margins = stage.Out
		}
	}
	e.outputs(x, margins, f.Classes, f.Threshold)
	g.Name = proto.String(f.Model)

	file := &pb.ModelProto{
		IrVersion:    proto.Int64(formatVersion),
		OpsetImport:  []*pb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
		ProducerName: proto.String("sotto"),
		Graph:        &g.GraphProto,
	}
	for _, fact := range facts {
		file.MetadataProps = append(file.MetadataProps, &pb.StringStringEntryProto{Key: &fact[0], Value: &fact[1]})
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(file)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// outputs adds what Predict computes from the margins z, and the label.
func (e *encoder) outputs(z string, margins int, classes []string, threshold map[string]float64) {
	bad := ""
	if len(e.bad) > 0 {
		bad = e.op("Greater", e.op("Sum", e.bad...), e.number(0))
	}
	label, probabilities := e.name("label"), e.name("probabilities")
	// end names the last value; bad rows get the value of instead.
	end := func(x string, instead func() string, name string) {
		node := &pb.NodeProto{OpType: proto.String("Identity"), Name: &name, Input: []string{x}, Output: []string{name}}
		if bad != "" {
			node.OpType, node.Input = proto.String("Where"), []string{bad, instead(), x}
		}
		e.Node = append(e.Node, node)
	}
	nan := func() string { return e.number(math.NaN()) }
	if len(classes) == 0 {
		end(z, nan, label)
		e.Output = []*pb.ValueInfoProto{value(label, "the predicted value", pb.TensorProto_DOUBLE, 1)}
		return
	}
	p := ""
	if margins == 1 {
		p = e.join(e.op("Sigmoid", e.op("Neg", z)), e.op("Sigmoid", z))
	} else {
		p = e.with("Softmax", integer("axis", 1), z)
	}
	best := e.with("ArgMax", append(integer("axis", 1), integer("keepdims", 1)...), p) // the first among equals
	what := "the most probable class"
	for name, at := range threshold { // there is one at most
		what = fmt.Sprintf("%s, where its probability is at least %v, else the other class", name, at)
		k := slices.Index(classes, name)
		decision := "GreaterOrEqual" // of class 1
		if k == 0 {
			decision = "Less"
		}
		best = e.cast(e.op(decision, e.with("Gather", integer("axis", 1), p, e.whole(int64(k))), e.number(at)),
			pb.TensorProto_INT64)
	}
	end(e.op("Gather", e.texts(classes, len(classes)), best), func() string { return e.texts([]string{""}) }, label)
	end(p, nan, probabilities)
	e.Output = []*pb.ValueInfoProto{
		value(label, what, pb.TensorProto_STRING, 1),
		value(probabilities, "of each class, in the order of the schema", pb.TensorProto_DOUBLE, len(classes)),
	}
}
