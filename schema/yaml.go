package schema

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/yamltree"
)

// Parse parses a schema file. The name is only for error texts. Unknown,
// missing and repeated fields, values of another type and values that are not
// allowed are an [*config.Error] with line and column. The defaults of what is left
// out:
//
//	unit: record           row_norm: 1          on_bad_row: stop
//	norm: l2               row_scaling: scale for csv and idx, project for libsvm
//	intercept: true
//	format: {kind: csv, delimiter: ",", header: true, trim: false, missing: [""]}
//	numeric columns:       transform: none, missing: error
//	categorical columns:   unknown: error, missing: as unknown
//	libsvm:                min: -1, max: 1
//	image (idx):           center: 0, scale: 255
//
// dataset, columns and every bound, level and class must be given; rows may be
// left out where nothing is trained. A unit of several rows is a name and the most
// rows of one unit, as in unit: {name: patient, rows: 8}; it asks for a column of type
// unit, and for units, their nominal number, in the place of rows.
func Parse(name string, src []byte) (*Schema, error) {
	if len(src) > maxSchema {
		return nil, &config.Error{File: name, Found: "a file above 4 MiB", Allowed: "a schema"}
	}
	if !utf8.Valid(src) || slices.Contains(src, 0) {
		return nil, &config.Error{File: name, Found: "bytes that are not text (a binary file?)", Allowed: "a schema in YAML"}
	}
	w := &walker{at: map[string]*token.Position{}}
	s := w.schema(src)
	if w.err == nil {
		w.err = s.check()
		if w.err != nil {
			w.place(w.err)
		}
	}
	if w.err != nil {
		w.err.File = name
		return nil, w.err
	}
	return s, nil
}

// A walker goes through the syntax tree of a schema. It keeps the first error
// and where each value stands, by its path.
type walker struct {
	err *config.Error
	at  map[string]*token.Position
}

// place finds line and column of e.Field, or of the nearest value around it.
func (w *walker) place(e *config.Error) {
	for path := e.Field; ; {
		if p := w.at[path]; p != nil {
			e.Line, e.Column = p.Line, p.Column
			return
		}
		if path == "" {
			return
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// fail keeps the error if it is the first.
func (w *walker) fail(path, found, allowed string) {
	if w.err == nil {
		w.err = &config.Error{Field: path, Found: found, Allowed: allowed}
		w.place(w.err)
	}
}

func (w *walker) schema(src []byte) *Schema {
	file, err := yamltree.Parse(src)
	if err != nil {
		var refused *yamltree.Error
		if errors.As(err, &refused) {
			w.err = &config.Error{Line: refused.Line, Column: refused.Column, Found: refused.Found, Allowed: refused.Allowed, Err: err}
			return nil
		}
		w.err = &config.Error{Found: "text that is not YAML (" + err.Error() + ")", Allowed: "a schema in YAML", Err: err}
		var y yaml.Error
		if errors.As(err, &y) {
			w.err.Found = "text that is not YAML (" + y.GetMessage() + ")"
			if t := y.GetToken(); t != nil && t.Position != nil {
				w.err.Line, w.err.Column = t.Position.Line, t.Position.Column
			}
		}
		return nil
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d != nil && d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) != 1 {
		w.err = &config.Error{Line: 1, Column: 1, Found: strconv.Itoa(len(bodies)) + " YAML documents", Allowed: "one, the schema"}
		return nil
	}

	s := &Schema{}
	m := w.fields(bodies[0], "", "dataset", "unit", "rows", "units", "format", "row_norm", "norm", "row_scaling", "intercept", "on_bad_row", "features", "min", "max", "image", "columns")
	w.format(m["format"], &s.Format)
	s.Dataset = w.need(m, "", "dataset", "the name of the dataset")
	w.unit(m, s)
	s.RowNorm = w.number(m, "", "row_norm", 1)
	if s.Norm = w.text(m, "", "norm", "l2"); s.Norm == "l2" {
		s.Norm = "" // as it was before there was a choice
	}
	scaling := RowScale
	if s.Format.Kind == KindLIBSVM {
		scaling = RowProject
	}
	s.RowScaling = w.text(m, "", "row_scaling", scaling)
	s.Intercept = w.truth(m, "", "intercept", true)
	s.OnBadRow = w.text(m, "", "on_bad_row", BadRowStop)
	if s.Format.Kind == KindIDX {
		s.Image = w.image(m["image"])
		s.Features = s.Image.Pixels()
	} else if m["image"] != nil {
		w.fail("image", "a field for idx", "no image, since kind is "+s.Format.Kind)
	}
	if s.Format.Kind == KindLIBSVM {
		if m["features"] == nil {
			w.fail("features", "nothing", "the public number of features, since kind is libsvm")
		}
		s.Features = w.count(m, "", "features", maxRows)
		s.Values = &Bounds{Min: w.number(m, "", "min", -1), Max: w.number(m, "", "max", 1)}
	} else {
		for _, f := range []string{"features", "min", "max"} {
			if m[f] != nil {
				w.fail(f, "a field for libsvm", "no "+f+", since kind is "+s.Format.Kind)
			}
		}
	}
	if m["columns"] == nil {
		w.fail("columns", "nothing", "a list with the columns of the table, a label among them")
		return s
	}
	for i, n := range w.list(m["columns"], "columns") {
		s.Columns = append(s.Columns, w.column(n, fmt.Sprintf("columns[%d]", i)))
		if w.err != nil {
			break
		}
	}
	return s
}

// columnTypes are the types of a column, in words.
const columnTypes = "numeric, categorical, label, unit or ignore"

// unit is whom the guarantee protects, and how many of them there are.
func (w *walker) unit(m map[string]ast.Node, s *Schema) {
	count, other := "rows", "units"
	switch m["unit"].(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		u := w.fields(m["unit"], "unit", "name", "rows")
		s.Unit = w.need(u, "unit", "name", "what the column of type unit identifies, in one word, as patient")
		if u["rows"] == nil {
			w.fail("unit.rows", "nothing", "the most rows of one unit that are used, a public number")
		}
		s.UnitRows = w.count(u, "unit", "rows", MaxUnitRows)
		count, other = other, count
	default:
		s.Unit = w.text(m, "", "unit", UnitRecord)
		if s.Unit != UnitRecord {
			w.fail("unit", config.Quote(s.Unit), "record, each row by itself, or a name and the most rows of one unit, as in {name: patient, rows: 8}")
		}
	}
	if m[other] != nil {
		w.fail(other, "a number of "+other, count+", since that is what the guarantee protects")
	}
	s.Rows = w.count(m, "", count, maxRows)
}

func (w *walker) format(n ast.Node, f *Format) {
	m := map[string]ast.Node{}
	if n != nil {
		m = w.fields(n, "format", "kind", "delimiter", "header", "comment", "trim", "missing")
	}
	f.Kind = w.text(m, "format", "kind", KindCSV)
	f.Comment = w.text(m, "format", "comment", "")
	if f.Kind != KindCSV {
		for _, k := range []string{"delimiter", "header", "trim", "missing"} {
			if m[k] != nil {
				w.fail("format."+k, "a field for csv", "no "+k+", since kind is "+f.Kind)
			}
		}
		return
	}
	f.Delimiter = w.text(m, "format", "delimiter", ",")
	f.Header = w.truth(m, "format", "header", true)
	f.Trim = w.truth(m, "format", "trim", false)
	f.Missing = []string{""}
	if m["missing"] != nil {
		f.Missing = w.texts(m["missing"], "format.missing")
	}
}

// image is the block of that name. Sizes that are too large stay as they are
// without a product that wraps around: check refuses them.
func (w *walker) image(n ast.Node) *Image {
	i := &Image{Center: []float64{0}, Scale: []float64{255}}
	if n == nil {
		w.fail("image", "nothing", "the block image with the shape of an image, since kind is idx")
		return i
	}
	m := w.fields(n, "image", "shape", "center", "scale")
	if m["shape"] == nil {
		w.fail("image.shape", "nothing", "the public shape of an image, as in [28, 28]")
		return i
	}
	for k, v := range w.numbers(m["shape"], "image.shape") {
		if v != math.Trunc(v) || v < 1 || v > maxDim || k > 7 {
			w.fail("image.shape", "a size that is no number of pixels", "one to eight whole numbers from 1, as in [28, 28]")
			return i
		}
		i.Shape = append(i.Shape, int(v))
	}
	if m["center"] != nil {
		i.Center = w.numbers(m["center"], "image.center")
	}
	if m["scale"] != nil {
		i.Scale = w.numbers(m["scale"], "image.scale")
	}
	return i
}

// numbers is a number, or a list of them.
func (w *walker) numbers(n ast.Node, path string) []float64 {
	nodes := []ast.Node{n}
	at := func(int) string { return path }
	if _, ok := n.(*ast.SequenceNode); ok {
		nodes = w.list(n, path)
		at = func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	}
	out := make([]float64, 0, len(nodes))
	for i, n := range nodes {
		out = append(out, w.number(map[string]ast.Node{at(i): n}, "", at(i), 0))
	}
	return out
}

func (w *walker) column(n ast.Node, path string) Column {
	m := w.fields(n, path) // any field; which are allowed, the type says
	c := Column{Name: w.need(m, path, "name", "the name of the column"), Type: w.need(m, path, "type", columnTypes)}
	if w.err != nil {
		return c
	}
	allowed := []string{"name", "type"}
	switch c.Type {
	case TypeNumeric:
		allowed = append(allowed, "min", "max", "transform", "missing")
	case TypeCategorical:
		allowed = append(allowed, "levels", "unknown", "missing")
	case TypeLabel:
		allowed = append(allowed, "classes", "strip", "min", "max")
	case TypeIgnore, TypeUnit:
	default:
		w.fail(path+".type", config.Quote(c.Type), columnTypes)
		return c
	}
	w.fields(n, path, allowed...)

	switch c.Type {
	case TypeNumeric:
		c.Bounds = w.bounds(m, path)
		c.Transform = w.text(m, path, "transform", TransformNone)
		c.Missing = w.text(m, path, "missing", RuleError)
	case TypeCategorical:
		if m["levels"] == nil {
			w.fail(path+".levels", "nothing", "a list of the public levels")
			return c
		}
		c.Levels = w.texts(m["levels"], path+".levels")
		c.Unknown = w.text(m, path, "unknown", RuleError)
		c.Missing = w.text(m, path, "missing", c.Unknown)
	case TypeLabel:
		c.Strip = w.text(m, path, "strip", "")
		if m["classes"] != nil {
			c.Classes = w.texts(m["classes"], path+".classes")
		}
		if m["min"] != nil || m["max"] != nil {
			c.Bounds = w.bounds(m, path)
		}
	}
	return c
}

func (w *walker) bounds(m map[string]ast.Node, path string) *Bounds {
	for _, f := range []string{"min", "max"} {
		if m[f] == nil {
			w.fail(path+"."+f, "nothing", "a public bound: a finite number")
		}
	}
	return &Bounds{Min: w.number(m, path, "min", 0), Max: w.number(m, path, "max", 0)}
}

// fields are the values of the mapping n by name. Where allowed is not empty, a
// name that is not in it is an error; so is a name that occurs twice.
func (w *walker) fields(n ast.Node, path string, allowed ...string) map[string]ast.Node {
	w.mark(path, n)
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	case *ast.StringNode:
		if path == "" { // perhaps a data file: what stands in it is not for a message
			w.fail(path, "text that is no schema (a data file?)", "a schema in YAML, a mapping: name: value")
			return nil
		}
		w.fail(path, kind(n), "a mapping: name: value")
		return nil
	default:
		w.fail(path, kind(n), "a mapping: name: value")
		return nil
	}
	m := make(map[string]ast.Node, len(pairs))
	for _, p := range pairs {
		if p == nil || p.Key == nil {
			continue
		}
		key, ok := scalar(p.Key)
		at := join(path, key)
		w.mark(at, p.Key)
		switch {
		case !ok:
			w.fail(path, kind(p.Key)+" as the name of a field", "a field name")
		case len(allowed) > 0 && !slices.Contains(allowed, key):
			w.fail(at, "an unknown field", strings.Join(allowed, ", "))
		case m[key] != nil && len(allowed) > 0:
			w.fail(at, "the field a second time", "each field once")
		}
		if p.Value == nil {
			w.fail(at, "nothing", "a value")
			return nil
		}
		if _, null := p.Value.(*ast.NullNode); !null {
			w.mark(at, p.Value)
		}
		m[key] = p.Value
	}
	return m
}

// mark notes where n stands. A block of lines stands where its name does, if
// that is known, or else where its first entry does.
func (w *walker) mark(path string, n ast.Node) {
	switch b := n.(type) {
	case *ast.MappingNode:
		if !b.IsFlowStyle && len(b.Values) > 0 && b.Values[0] != nil && b.Values[0].Key != nil {
			n = b.Values[0].Key
			if w.at[path] != nil {
				return
			}
		}
	case *ast.SequenceNode:
		if !b.IsFlowStyle && w.at[path] != nil {
			return
		}
	}
	if n == nil {
		return
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		w.at[path] = t.Position
	}
}

func (w *walker) need(m map[string]ast.Node, path, field, what string) string {
	if m[field] == nil {
		w.fail(join(path, field), "nothing", what)
		return ""
	}
	return w.text(m, path, field, "")
}

// text is a field that is text; numbers and truth values count as their text.
func (w *walker) text(m map[string]ast.Node, path, field, def string) string {
	n := m[field]
	if n == nil {
		return def
	}
	s, ok := scalar(n)
	if !ok {
		w.fail(join(path, field), kind(n), "text")
	}
	return s
}

func (w *walker) truth(m map[string]ast.Node, path, field string, def bool) bool {
	n := m[field]
	if n == nil {
		return def
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		w.fail(join(path, field), kind(n), "true or false")
		return def
	}
	return b.Value
}

func (w *walker) number(m map[string]ast.Node, path, field string, def float64) float64 {
	n := m[field]
	if n == nil {
		return def
	}
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		text, _ := scalar(n)
		if v, fault := config.ParseNumber(strings.ReplaceAll(text, "_", "")); fault == "" {
			return v
		}
		w.fail(join(path, field), config.Quote(text), "a finite number in decimal digits")
	default:
		w.fail(join(path, field), kind(n), "a finite number")
	}
	return def
}

// count is a whole number from 1 to most, or 0 where the field is not there.
func (w *walker) count(m map[string]ast.Node, path, field string, most int) int {
	if m[field] == nil {
		return 0
	}
	whole := "a whole number from 1 to " + strconv.Itoa(most)
	switch m[field].(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	default:
		w.fail(join(path, field), kind(m[field]), whole)
		return 0
	}
	v := w.number(m, path, field, 1)
	if v != math.Trunc(v) || v < 1 || v > float64(most) {
		w.fail(join(path, field), num(v), whole)
		return 0
	}
	return int(v)
}

func (w *walker) list(n ast.Node, path string) []ast.Node {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		w.fail(path, kind(n), "a list")
		return nil
	}
	for i, v := range s.Values {
		if v == nil {
			w.fail(path, "a list with an empty entry", "entries with a value")
			return nil
		}
		w.mark(fmt.Sprintf("%s[%d]", path, i), v)
	}
	return s.Values
}

func (w *walker) texts(n ast.Node, path string) []string {
	nodes := w.list(n, path)
	out := make([]string, 0, len(nodes))
	for i, n := range nodes {
		s, ok := scalar(n)
		if !ok {
			w.fail(fmt.Sprintf("%s[%d]", path, i), kind(n), "text")
		}
		out = append(out, s)
	}
	return out
}

// scalar is the text of n as it is written (1.0 stays 1.0), and whether n has one.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value != nil {
			return n.Value.Value, true
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		if t := n.GetToken(); t != nil {
			return t.Value, true
		}
	}
	return "", false
}

// kind says in words what n is.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return "text (" + config.Quote(n.Value) + ")"
	case *ast.BoolNode:
		return strconv.FormatBool(n.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	case *ast.InfinityNode:
		return "an infinite number"
	case *ast.NanNode:
		return "NaN"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "a YAML anchor, alias or tag"
	}
	return "something else"
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
