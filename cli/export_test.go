package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/schema"
)

// A tensor is an input of a model, its numbers as text.
type tensor struct {
	Type  string   `json:"type"`
	Shape []int    `json:"shape"`
	Data  []string `json:"data"`
}

// every has each rule of a schema for CSV, out of order, and names that a graph's values have, too.
const every = `
dataset: every
rows: 100
format: {kind: csv, header: true, delimiter: ";", trim: true, missing: ["", "?"]}
row_norm: %s
row_scaling: %s
norm: %s
intercept: %s
on_bad_row: drop
columns:
  - {name: kind, type: categorical, levels: [a, b, "?"], unknown: zero, missing: zero}
  - {name: label, type: numeric, min: -3, max: 5}
  - {name: Cast, type: numeric, min: 0, max: 1000000, transform: log1p, missing: zero, hats: 4}
  - {name: skipped, type: ignore}
  - {name: place, type: categorical, levels: [x, "y y"], unknown: "y y", missing: error}
  - {name: change, type: numeric, min: -10, max: 1000, transform: signed_log1p, missing: "7.5", encode: hats}
  - {name: length, type: numeric, min: 0, max: 9, missing: zero, waves: 4}
  - {name: width, type: numeric, min: 0, max: 2, missing: 1, encode: waves}
  - {name: colour, type: categorical, levels: [red, green, blue], unknown: error, missing: green}
  - {name: one, type: categorical, levels: [only], unknown: only}
  - {name: stage, type: ordinal, levels: [I, II, III, IV], unknown: zero, missing: III}
  - {name: smoker, type: boolean, missing: zero}
  - {name: seen, type: date, min: 2020-01-01, max: 2024-12-31T12:00, cycles: [day, week, year], missing: zero}
  - {name: born, type: date, origin: 2000-01-01, min: 1950-06-01, max: 2010-01-01, missing: 1980-01-01}
  - {name: note, type: text, dimension: 7, missing: zero}
  - {name: target, type: label, %s}
pairs: [[Cast, label], [change, Cast]]
`

// everyRows are rows for that schema, each cell from a list with ordinary values and odd ones.
func everyRows(n int, draw *rand.Rand) string {
	columns := []struct {
		name  string
		cells []string
	}{
		{"kind", []string{"a", "b", "?", "", "c"}},
		{"label", []string{"0", "4.25", "-3", " 5 ", "1e9", "-1e300", "1e-310", "2", "3", "?"}},
		{"Cast", []string{"0", "12", "1e6", "2e6", "-5", "?", "1e-12", ""}},
		{"skipped", []string{"text"}},
		{"place", []string{"x", " y y", "x", "z", "y y", "x", "X", "?"}},
		{"change", []string{"0", "-10", "-0.001", "999.5", "", "1e5"}},
		{"length", []string{"0", "9", "4.5", "-1", "10", "?", "3.3", "1e-9", ""}},
		{"width", []string{"0", "2", "1", "1.999", "?", "7"}},
		{"colour", []string{"red", "green", "blue", "red", "green", "blue", "?", "mauve"}},
		{"one", []string{"only", "other", "?"}},
		{"stage", []string{"I", "II", "III", "IV", "V", "?", ""}},
		{"smoker", []string{"true", "false", "?", "true", "false"}},
		{"seen", []string{"2020-01-01", "2022-03-04T05:06:07", "2024-02-29T23:30", "1999-12-31", "9999-12-31", "?", "2023-08-17T14:05"}},
		{"born", []string{"1975-02-28", "2001-01-01", "0000-01-01", ""}},
		{"note", []string{"Cough and fever", "fever, FEVER!", "...", "?", "a b c d e f g h"}},
	}
	var b strings.Builder
	for i := range n + 1 {
		var line []string
		for _, c := range columns {
			cell := c.name
			if i > 0 {
				cell = c.cells[draw.IntN(len(c.cells))]
			}
			line = append(line, cell)
		}
		b.WriteString(strings.Join(line, ";") + "\n")
	}
	return b.String()
}

// tensors are the inputs for the CSV rows, as a program without Sotto would make them.
func tensors(t *testing.T, s *schema.Schema, text string) map[string]tensor {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.TrimLeadingSpace = rune(s.Format.Delimiter[0]), s.Format.Trim
	if s.Format.Comment != "" {
		r.Comment = rune(s.Format.Comment[0])
	}
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var header []string
	if s.Format.Header {
		header, rows = rows[0], rows[1:]
	} else {
		for _, c := range s.Columns {
			header = append(header, c.Name)
		}
	}
	inputs := map[string]tensor{}
	for _, c := range s.Columns {
		in := tensor{Type: "double", Shape: []int{len(rows), 1}}
		switch c.Type {
		case schema.TypeLabel, schema.TypeIgnore:
			continue
		case schema.TypeCategorical, schema.TypeOrdinal, schema.TypeBoolean:
			in.Type = "string"
		case schema.TypeText:
			in.Shape[1] = c.Dimension
		}
		at := slices.Index(header, c.Name)
		for _, row := range rows {
			cell := row[at]
			if s.Format.Trim {
				cell = strings.TrimSpace(cell)
			}
			missing := slices.Contains(s.Format.Missing, cell)
			switch {
			case c.Type == schema.TypeText:
				in.Data = append(in.Data, wordsInput(cell, c.Dimension, missing)...)
				continue
			case in.Type == "double" && missing:
				cell = "nan"
			case c.Type == schema.TypeDate:
				cell = daysInput(t, cell, c.Origin)
			}
			in.Data = append(in.Data, cell)
		}
		inputs[c.Name] = in
	}
	return inputs
}

// daysInput is a date in days since the origin.
func daysInput(t *testing.T, cell, origin string) string {
	var at [2]time.Time
	for i, text := range []string{cell, origin} {
		layout := "2006-01-02T15:04:05"[:len(text)]
		var err error
		if at[i], err = time.Parse(layout, text); err != nil {
			t.Fatal(err)
		}
	}
	return strconv.FormatFloat(float64(at[0].Unix()-at[1].Unix())/86400, 'g', -1, 64)
}

// wordsInput says for each feature of a text whether a word is hashed to it.
func wordsInput(cell string, dimension int, missing bool) []string {
	there := make([]string, dimension)
	for i := range there {
		if there[i] = "0"; missing {
			there[i] = "nan"
		}
	}
	for _, word := range regexp.MustCompile("[a-z]+").FindAllString(strings.ToLower(cell), -1) {
		h := fnv.New64a()
		io.WriteString(h, word)
		there[h.Sum64()%uint64(dimension)] = "1"
	}
	return there
}

// configOf is a configuration of the model of that name.
func configOf(s *schema.Schema, name string, layers []string) model.Config {
	switch name {
	case "huber-svm":
		return model.HuberSVM{Width: 0.25}
	case "mlp":
		return model.MLP{Layers: layers, InputScale: 1.3}
	case "cnn":
		return model.CNN{Layers: layers, InputScale: 1.3, Shape: s.Image.Shape}
	}
	e, _ := model.Lookup(name)
	return e.Small
}

// randomModel is a model file with parameters of that size.
func randomModel(t *testing.T, s *schema.Schema, name string, layers []string, size float64, draw *rand.Rand) *model.File {
	schema, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f := &model.File{Format: model.FileFormat, Model: name, Dim: s.Dim(), NormBound: s.RowNorm, Config: configOf(s, name, layers), Classes: s.ClassNames(), Schema: schema,
		Guarantee: json.RawMessage(`{"budget":{"epsilon":0.5,"delta":1e-6,"adjacency":"replace-one"},"unit":"record","dataset":"` + s.Dataset + `","run":"r","plan":null}`)}
	m, err := model.New(name, model.Options{Dim: f.Dim, Classes: len(f.Classes), NormBound: f.NormBound, Config: f.Config})
	if err != nil {
		t.Fatal(err)
	}
	f.W = make([]float64, m.Dim())
	for i := range f.W {
		f.W[i] = size * draw.NormFloat64()
	}
	return f
}

// An exported is a model file, rows, and the same rows as inputs.
type exported struct {
	name, model, rows string
	inputs            map[string]tensor
}

// compareONNX exports the models, runs them in onnxruntime, and compares labels and probabilities,
// to 1e-5, with what predict gives for the same rows. It returns the metadata of each.
func compareONNX(t *testing.T, cases []exported) []map[string]string {
	python := needs.ONNXRuntime(t)
	type question struct {
		Model  string            `json:"model"`
		Inputs map[string]tensor `json:"inputs"`
	}
	var ask []question
	for i, c := range cases {
		out := filepath.Join(t.TempDir(), fmt.Sprint(i)+".onnx")
		if b, err := sotto(t, "export", c.model, "--to", "onnx", "--out", out).Output(); err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, b)
		}
		ask = append(ask, question{out, c.inputs})
	}
	in, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(python, filepath.Join("testdata", "onnx.py"))
	run.Stdin, run.Stderr = bytes.NewReader(in), os.Stderr
	b, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []map[string][][]string
	if err := json.Unmarshal(b, &answers); err != nil {
		t.Fatal(err)
	}
	var facts []map[string]string
	for i, c := range cases {
		b, err := sotto(t, "predict", "--model", c.model, "--data", c.rows).Output()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, c.name, answers[i], want[1:])
		fact := map[string]string{}
		for _, pair := range answers[i][""] {
			fact[pair[0]] = pair[1]
		}
		facts = append(facts, fact)
	}
	return facts
}

func checkSame(t *testing.T, name string, got map[string][][]string, want [][]string) {
	labels, probabilities := got["label"], got["probabilities"]
	if got["label_2"] != nil {
		labels = got["label_2"] // where a column has the name
	}
	if len(labels) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d rows, want %d", name, len(labels), len(want))
	}
	// within says that two numbers agree; the empty field of a bad row is NaN.
	within := func(got, want string) bool {
		g, err := strconv.ParseFloat(got, 64)
		if want == "" {
			return err == nil && math.IsNaN(g)
		}
		w, err2 := strconv.ParseFloat(want, 64)
		return err == nil && err2 == nil && math.Abs(g-w) <= 1e-5*max(1, math.Abs(w))
	}
	bad, odd := 0, 0
	for i, line := range want {
		if line[len(line)-1] == "" {
			bad++
		}
		ok := true
		if probabilities == nil {
			ok = within(labels[i][0], line[0])
		} else {
			ok = labels[i][0] == line[0] || probabilitiesTie(line[1:])
			for k, p := range line[1:] {
				ok = ok && within(probabilities[i][k], p)
			}
		}
		if !ok {
			if odd++; odd < 5 {
				t.Errorf("%s: row %d: found %v %v, want %v", name, i, labels[i], append(slices.Clone(probabilities), nil)[min(i, len(probabilities))], line)
			}
		}
	}
	t.Logf("%s: %d rows, %d of them bad", name, len(want), bad)
}

// probabilitiesTie says whether the two largest are too near for a label to be certain.
func probabilitiesTie(p []string) bool {
	var v []float64
	for _, text := range p {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return false
		}
		v = append(v, x)
	}
	slices.Sort(v)
	return v[len(v)-1]-v[len(v)-2] < 2e-5
}

func mustParse(t *testing.T, text string) *schema.Schema {
	s, err := schema.Parse("schema.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func writeText(t *testing.T, dir, name, text string) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every model, each rule of a schema, large and small parameters.
func TestExportONNX(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	const two, three, number, count = "classes: [no, yes]", "classes: [u, v, w]", "min: -1, max: 1", "min: 0, max: 9"
	var cases []exported
	add := func(s *schema.Schema, rows string, inputs map[string]tensor, name string, layers []string, size float64) {
		f := randomModel(t, s, name, layers, size, draw)
		if name == "logistic" {
			f.MarginFactor = 0.6
		}
		if len(f.Classes) == 2 && (name == "logistic" || name == "mlp") {
			f.Threshold = map[string]float64{f.Classes[len(cases)%2]: 0.3}
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.json", len(cases)))
		if err := model.Write(path, f); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, exported{s.Dataset + " " + name, path, rows, inputs})
	}
	deep := []string{"7 relu", "5 tanh", "4 linear", "6 relu"}
	for i, c := range []struct {
		norm, scaling, kind, intercept, label, model string
		layers                                       []string
		size                                         float64
	}{
		{"1", "scale", "l2", "true", two, "logistic", nil, 2},
		{"2.5", "project", "l2", "true", two, "logistic", nil, 300},
		{"1", "project", "l1", "false", two, "svm", nil, 1},
		{"0.3", "scale", "l1", "true", two, "huber-svm", nil, 10},
		{"1", "scale", "l2", "false", number, "linear", nil, 3},
		{"1", "scale", "l2", "false", number, "huber", nil, 3},
		{"1", "scale", "l2", "true", count, "poisson", nil, 1},
		{"1000", "project", "l2", "true", three, "softmax", nil, 1},
		{"1", "scale", "l2", "true", three, "softmax", nil, 50},
		{"3", "project", "l2", "true", two, "mlp", deep, 0.7},
		{"1", "scale", "l2", "false", three, "mlp", []string{"20"}, 2},
		{"1", "scale", "l1", "true", number, "mlp", deep, 0.5},
	} {
		of := every
		if i%3 == 2 { // without bumps and pairs
			of = strings.NewReplacer(", hats: 4", "", ", encode: hats", "", ", waves: 4", "", ", encode: waves", "", "pairs: [[Cast, label], [change, Cast]]", "").Replace(every)
		}
		s := mustParse(t, fmt.Sprintf(of, c.norm, c.scaling, c.kind, c.intercept, c.label))
		text := everyRows(300, draw)
		add(s, writeText(t, dir, fmt.Sprintf("%d.csv", i), text), tensors(t, s, text), c.model, c.layers, c.size)
	}

	// LIBSVM, one row of zeros among them, and images.
	s := mustParse(t, "{dataset: sparse, rows: 9, format: {kind: libsvm}, features: 6, min: -1, max: 2, row_norm: 1, columns: [{name: y, type: label, classes: ['-1', '1']}]}")
	add(s, writeText(t, dir, "rows.svm", "1 1:0.5 4:-7\n1 2:3 3:0 6:1e-9\n-1\n"), map[string]tensor{"features": {"double", []int{3, 6},
		strings.Fields("0.5 0 0 -7 0 0  0 3 0 0 0 1e-9  0 0 0 0 0 0")}}, "logistic", nil, 5)
	s = mustParse(t, "{dataset: dots, rows: 9, format: {kind: idx}, image: {shape: [2, 3], center: [0, 1, 2, 3, 4, 255], scale: 100}, columns: [{name: y, type: label, classes: ['3', '8']}]}")
	add(s, writeText(t, dir, "dots-idx3-ubyte", "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x03\x00\x01\x02\x03\x04\xff\xff\x00\x00\x80\x07\x00"),
		map[string]tensor{"image": {"uint8", []int{2, 2, 3}, strings.Fields("0 1 2 3 4 255  255 0 0 128 7 0")}}, "mlp", deep, 1)

	s = mustParse(t, "{dataset: blots, rows: 9, format: {kind: idx}, image: {shape: [8, 9, 2], center: 100, scale: 50}, intercept: false, row_norm: 12, columns: [{name: y, type: label, classes: ['0', '1', '2']}]}")
	const n = 60
	images, pixels := []byte("\x00\x00\x08\x04\x00\x00\x00\x3c\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00\x02"), tensor{Type: "uint8", Shape: []int{n, 8, 9, 2}}
	for range n * 8 * 9 * 2 {
		v := byte(draw.IntN(256))
		images, pixels.Data = append(images, v), append(pixels.Data, strconv.Itoa(int(v)))
	}
	blots := writeText(t, dir, "blots-idx4-ubyte", string(images))
	for _, layers := range [][]string{{"conv 4 3x2 stride 2x1 pad 1 tanh", "group 2 relu", "max 2 stride 1", "conv 3 2 linear", "mean 2x1", "5 relu"},
		{"group 1", "mean 3x2 stride 1x2", "conv 6 2 stride 1", "group 6 tanh", "max 2x1"}} {
		add(s, blots, map[string]tensor{"image": pixels}, "cnn", layers, 0.4)
	}

	// Scattering coefficients, which Sotto computes in float32 and the graph in float64.
	s = mustParse(t, "{dataset: waves, rows: 9, format: {kind: idx}, image: {shape: [9, 12, 2], encode: scattering}, row_norm: 3, columns: [{name: y, type: label, classes: ['0', '1', '2']}]}")
	images, pixels = []byte("\x00\x00\x08\x04\x00\x00\x00\x14\x00\x00\x00\x09\x00\x00\x00\x0c\x00\x00\x00\x02"), tensor{Type: "uint8", Shape: []int{20, 9, 12, 2}}
	for range 20 * 9 * 12 * 2 {
		v := byte(draw.IntN(256))
		images, pixels.Data = append(images, v), append(pixels.Data, strconv.Itoa(int(v)))
	}
	waves := writeText(t, dir, "waves-idx4-ubyte", string(images))
	add(s, waves, map[string]tensor{"image": pixels}, "softmax", nil, 0.5)
	add(s, waves, map[string]tensor{"image": pixels}, "mlp", []string{"8 tanh"}, 0.3)

	for _, name := range model.Names() {
		if !slices.ContainsFunc(cases, func(c exported) bool { return strings.HasSuffix(c.name, " "+name) }) {
			t.Errorf("no case exports a %s model; add one to cases in TestExportONNX, cli/export_test.go", name)
		}
	}
	facts := compareONNX(t, cases)
	want := map[string]string{"sotto.epsilon": "0.5", "sotto.delta": "1e-06", "sotto.adjacency": "replace-one", "sotto.dataset": "every", "sotto.model": "logistic",
		"sotto.guarantee": "(0.5, 1e-06)-differentially private, neighbours replace-one"}
	for key, value := range want {
		if facts[0][key] != value {
			t.Errorf("metadata %s is %q, want %q", key, facts[0][key], value)
		}
	}
}

// The examples: clinic as a run, with rows that have what its schema provides for; slices of Adult and of MNIST.
func TestExportONNXExamples(t *testing.T) {
	needs.ONNXRuntime(t)
	dir, draw := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	out := filepath.Join(dir, "clinic")
	if b, err := sotto(t, "fit", "../examples/clinic/sotto.yaml", "--out", out, "--ledger", filepath.Join(dir, "l.db"), "--quiet").Output(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	b, err := os.ReadFile("../examples/clinic/heldout.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(string(b), "\n", 402)
	text := strings.Join(lines[:401], "") + "44,,120,5,0,,general,public,no\n1e3,22.5,-120,5e5,99,former,spa,,yes\n"
	clinic, err := data.LoadSchema("../examples/clinic/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases := []exported{{"clinic logistic", out, writeText(t, dir, "clinic.csv", text), tensors(t, clinic, text)}}

	folder := needs.Data(t)
	add := func(s *schema.Schema, rows string, inputs map[string]tensor, name string, layers []string, size float64) {
		path := filepath.Join(dir, fmt.Sprintf("%d.json", len(cases)))
		if err := model.Write(path, randomModel(t, s, name, layers, size, draw)); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, exported{s.Dataset + " " + name, path, rows, inputs})
	}
	adult, err := data.LoadSchema("../examples/adult/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Join(strings.SplitAfterN(string(unzip(t, filepath.Join(folder, "adult", "adult.test.gz"), 1<<16)), "\n", 402)[:401], "")
	rows := writeText(t, dir, "adult.csv", text)
	add(adult, rows, tensors(t, adult, text), "logistic", nil, 10)
	add(adult, rows, tensors(t, adult, text), "mlp", []string{"16"}, 1)

	mnist, err := data.LoadSchema("../examples/mnist/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const n = 200
	images := unzip(t, filepath.Join(folder, "mnist", "t10k-images-idx3-ubyte.gz"), 16+n*784)
	binary.BigEndian.PutUint32(images[4:], n)
	pixels := tensor{Type: "uint8", Shape: []int{n, 28, 28}}
	for _, v := range images[16:] {
		pixels.Data = append(pixels.Data, strconv.Itoa(int(v)))
	}
	rows = writeText(t, dir, "t10k-images-idx3-ubyte", string(images))
	add(mnist, rows, map[string]tensor{"image": pixels}, "softmax", nil, 5)
	add(mnist, rows, map[string]tensor{"image": pixels}, "mlp", []string{"128 relu"}, 0.5)
	add(mnist, rows, map[string]tensor{"image": pixels}, "cnn", []string{"conv 16 8x8 stride 2 pad 3", "max 2 stride 1", "conv 32 4x4 stride 2", "max 2 stride 1", "32"}, 0.2)

	facts := compareONNX(t, cases)
	if got := facts[0]["sotto.guarantee"]; got != "(1, 1e-05)-differentially private, neighbours add-or-remove" {
		t.Errorf("clinic's guarantee is %q", got)
	}
}

// unzip is the beginning of a gzip file.
func unzip(t *testing.T, path string, n int) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return b
}
