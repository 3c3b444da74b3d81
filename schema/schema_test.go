package schema

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"encoding/json"
	"errors"
	"io/fs"

	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema/schematest"
)

const (
	small     = schematest.Small
	unitSmall = schematest.UnitSmall
	svm       = schematest.SVM
	pictures  = schematest.Pictures
)

func mustParse(t testing.TB, src string) *Schema {
	t.Helper()
	s, err := Parse("schema.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := mustParse(t, small)
	want := &Schema{
		Dataset: "clinic", Unit: "record", Rows: 100,
		Format:  Format{Kind: "csv", Delimiter: ",", Header: true, Missing: []string{"", "?"}},
		RowNorm: 1, RowScaling: "scale", Intercept: true, OnBadRow: "stop",
		Columns: []Column{
			{Name: "age", Type: "numeric", Bounds: &Bounds{0, 100}, Transform: "none", Missing: "zero", Free: true},
			{Name: "colour", Type: "categorical", Levels: []string{"red", "green", "1.0"}, Unknown: "zero", Missing: "green"},
			{Name: "id", Type: "ignore"},
			{Name: "gain", Type: "numeric", Bounds: &Bounds{0, 1000}, Transform: "log1p", Missing: "10", Free: true},
			{Name: "sick", Type: "label", Classes: []string{"no", "yes"}, Strip: "."},
		},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	names := []string{"age", "colour=red", "colour=green", "colour=1.0", "gain", "(intercept)"}
	if got := s.FeatureNames(); !slices.Equal(got, names) || s.Dim() != len(names) {
		t.Errorf("features %q, dim %d; want %q", got, s.Dim(), names)
	}
	if s.Classes() != 2 || s.LabelName() != "sick" || !slices.Equal(s.ClassNames(), []string{"no", "yes"}) || s.LabelBounds() != nil {
		t.Errorf("label %q, classes %q", s.LabelName(), s.ClassNames())
	}

	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := FromJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.WithHats(0), back); d != "" {
		t.Error(d)
	}
	again, _ := back.Marshal()
	if string(again) != string(b) {
		t.Errorf("JSON is not canonical:\n%s\n%s", b, again)
	}
	var in struct{ Schema *Schema }
	if err := json.Unmarshal([]byte(`{"Schema": `+string(b)+`}`), &in); err != nil || in.Schema.Fingerprint() != s.Fingerprint() {
		t.Errorf("within a document: %v", err)
	}
}

func TestAssumptions(t *testing.T) {
	all := strings.Join(mustParse(t, small).Assumptions(), "\n")
	for _, want := range []string{`one row of the dataset "clinic"`, "nominal number of rows is 100", `"age" is clamped to [0, 100]`, "log1p", `"colour" has 3 public levels`,
		`counts as "green"`, `"id" is never looked at`, "classes no, yes", "scaled to the L2 norm 1"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	all = strings.Join(mustParse(t, "other_columns: ignore\n"+small).Assumptions(), "\n")
	if !strings.Contains(all, "Columns that the schema does not name are never looked at.") {
		t.Errorf("nothing of other columns in\n%s", all)
	}
	one := mustParse(t, strings.Replace(small, "rows: 100", "norm: l1", 1))
	if all := strings.Join(one.Assumptions(), "\n"); !strings.Contains(all, "scaled to the L1 norm 1") || one.L1Bound() != 1 {
		t.Errorf("L1 bound %v in\n%s", one.L1Bound(), all)
	}
	all = strings.Join(mustParse(t, "dataset: d\nformat: {kind: libsvm}\nfeatures: 7\non_bad_row: drop\ncolumns: [{name: y, type: label, min: 0, max: 5}]").Assumptions(), "\n")
	for _, want := range []string{"7 features", "clamped to [-1, 1]", `"y" is a number clamped to [0, 5]`, "scaled down", "left out"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// TestUnitOfSchema: whom a schema protects stands in what it assumes, survives JSON, and
// is nothing that a model depends on.
func TestUnitOfSchema(t *testing.T) {
	s := mustParse(t, unitSmall)
	if s.Unit != "patient" || s.UnitRows != 8 || s.Rows != 100 || s.UnitColumn() != "id" {
		t.Errorf("unit %q of %d rows, %d of them, by column %q", s.Unit, s.UnitRows, s.Rows, s.UnitColumn())
	}
	all := strings.Join(s.Assumptions(), "\n")
	for _, want := range []string{`protects one patient: all rows of the dataset "clinic" with one value in the column "id"`, "at most 8 rows", "nominal number of units is 100"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := FromJSON(b); err != nil || cmp.Diff(s.WithHats(0), back) != "" {
		t.Errorf("JSON: %v\n%s", err, cmp.Diff(s.WithHats(0), back))
	}
	plain := mustParse(t, small)
	if s.Fingerprint() != plain.Fingerprint() || !slices.Equal(s.FeatureNames(), plain.FeatureNames()) || plain.UnitColumn() != "" {
		t.Error("the unit changes what a model sees")
	}
	if _, err := s.WithLabel("id"); err == nil {
		t.Error("the unit becomes a label")
	}
	svmUnit := strings.Replace(svm, "dataset", "unit: {name: patient, rows: 2}\ndataset", 1)
	if _, err := Parse("s", []byte(svmUnit)); err == nil || !strings.Contains(err.Error(), "unit: found a unit of several rows for libsvm") {
		t.Errorf("libsvm: %v", err)
	}
}

func TestFingerprint(t *testing.T) {
	base := mustParse(t, small).Fingerprint()
	for change, same := range map[string]bool{
		"dataset: clinic→dataset: other":       true,
		"rows: 100→rows: 101":                  true,
		"format: {→format: {delimiter: \";\",": true,
		"name: id→name: nr":                    true,
		"max: 100,→max: 101,":                  false,
		"max: 100,→max: 100, encode: linear,":  true,
		"max: 100,→max: 100, encode: hats,":    false,
		"max: 100,→max: 100, hats: 5,":         false,
		"red, green→green, red":                false,
		"unknown: zero→unknown: red":           false,
		"rows: 100→row_norm: 2":                false,
		"rows: 100→norm: l2":                   true,
		"rows: 100→norm: l1":                   false,
		"rows: 100→intercept: false":           false,
		"rows: 100→row_scaling: project":       false,
		"rows: 100→author: A. Example":         true,
		"rows: 100→source: a form":             true,
		"max: 100,→max: 100, source: a form,":  true,
	} {
		from, to, _ := strings.Cut(change, "→")
		if got := mustParse(t, strings.Replace(small, from, to, 1)).Fingerprint(); (got == base) != same {
			t.Errorf("%s: same fingerprint %v, want %v", change, got == base, same)
		}
	}
}

// TestHats: a column with bumps has one feature for each of them behind its own.
func TestHats(t *testing.T) {
	plain := mustParse(t, small)
	for text, hats := range map[string]int{"encode: hats,": 8, "hats: 3,": 3, "hats: 64, encode: hats,": 64, "encode: linear,": 0} {
		s := mustParse(t, strings.Replace(small, "max: 100,", "max: 100, "+text, 1))
		names := s.FeatureNames()
		if s.Columns[0].Hats != hats || s.Dim() != plain.Dim()+hats || len(names) != s.Dim() {
			t.Errorf("%s: %d bumps, %d features, %d names", text, s.Columns[0].Hats, s.Dim(), len(names))
		}
		if hats > 0 && (names[0] != "age" || names[1] != "age hat 1" || names[hats] != fmt.Sprintf("age hat %d", hats) || names[hats+1] != plain.FeatureNames()[1]) {
			t.Errorf("%s: %q", text, names)
		}
		if first, levels := s.Levels("colour"); len(levels) != 3 || names[first] != "colour=red" || names[first+2] != "colour=1.0" {
			t.Errorf("%s: levels %q from feature %d on", text, levels, first)
		}
		if _, levels := s.Levels("age"); levels != nil {
			t.Errorf("%s: age has the levels %q", text, levels)
		}
		if said := strings.Join(s.Assumptions(), " "); strings.Contains(said, "bumps at equal distances") != (hats > 0) {
			t.Errorf("%s: %s", text, said)
		}
		b, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := FromJSON(b); err != nil || back.Fingerprint() != s.Fingerprint() {
			t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(string(b), "hats") != (hats > 0) { // models and tables of earlier builds have no such field
			t.Errorf("%s: %s", text, b)
		}
	}
	b, err := plain.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, hats := range []string{"1", "-3", "65"} {
		text := strings.Replace(string(b), `"transform":"log1p"`, `"transform":"log1p","hats":`+hats, 1)
		if _, err := FromJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), "columns[3].hats: found "+hats) {
			t.Errorf("%s bumps: %v", hats, err)
		}
	}
	text := strings.Replace(string(b), `"levels":`, `"hats":8,"levels":`, 1)
	if _, err := FromJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), "columns[1].hats: found a field that a column of type categorical") {
		t.Errorf("bumps of levels: %v", err)
	}
}

// TestWaves: a column with waves has one feature for each of them behind its own; a column has bumps or waves, not both.
func TestWaves(t *testing.T) {
	plain := mustParse(t, small)
	for text, waves := range map[string]int{"encode: waves,": 3, "waves: 1,": 1, "waves: 6, encode: waves,": 6} {
		s := mustParse(t, strings.Replace(small, "max: 100,", "max: 100, "+text, 1))
		names := s.FeatureNames()
		if s.Columns[0].Waves != waves || s.Columns[0].Free || s.Dim() != plain.Dim()+waves || len(names) != s.Dim() ||
			names[1] != "age wave 1" || names[waves+1] != plain.FeatureNames()[1] {
			t.Errorf("%s: %d waves, %d features, names %q", text, s.Columns[0].Waves, s.Dim(), names)
		}
		b, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := FromJSON(b); err != nil || back.Fingerprint() != s.Fingerprint() || s.Fingerprint() == plain.Fingerprint() {
			t.Errorf("%s: %v", text, err)
		}
		if !strings.Contains(strings.Join(s.Assumptions(), " "), fmt.Sprintf("one linear feature and %d waves", waves)) {
			t.Errorf("%s: %q", text, s.Assumptions())
		}
	}
	for text, want := range map[string]string{
		"waves: 7,":                 "columns[0].waves: found 7; write a whole number from 1 to 6",
		"waves: 0,":                 "columns[0].waves: found 0; write a whole number from 1 to 6",
		"waves: 2, hats: 4,":        "columns[0].waves: found waves beside bumps; expected hats or waves",
		"waves: 2, encode: linear,": "columns[0].waves: found waves with encode: linear; expected encode: waves, or no waves",
		"hats: 8, encode: waves,":   "columns[0].hats: found bumps with encode: waves; expected encode: hats, or no hats",
		"waves: 3, encode: hats,":   "columns[0].waves: found waves with encode: hats; expected encode: waves, or no waves",
	} {
		_, err := Parse("s.yaml", []byte(strings.Replace(small, "max: 100,", "max: 100, "+text, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestWave: waves are orthogonal to each other, to a constant and to a line at the centers of bumps, each has 0.7 of the
// height of the one before, and between centers they are linear.
func TestWave(t *testing.T) {
	at := func(wave int) []float64 {
		v := make([]float64, waveBumps)
		for j := range v {
			v[j] = Wave(wave, 2*float64(j)/(waveBumps-1)-1)
		}
		return v
	}
	dot := func(a, b []float64) (sum float64) {
		for j := range a {
			sum += a[j] * b[j]
		}
		return sum
	}
	one, line := make([]float64, waveBumps), make([]float64, waveBumps)
	for j := range one {
		one[j], line[j] = 1, float64(j)
	}
	for a := range maxWaves {
		if d := math.Abs(dot(at(a), one)) + math.Abs(dot(at(a), line)); d > 1e-12 {
			t.Errorf("wave %d has %v of a constant or a line", a+1, d)
		}
		for b := range a {
			if d := dot(at(a), at(b)); math.Abs(d) > 1e-12 {
				t.Errorf("waves %d and %d: %v", a+1, b+1, d)
			}
		}
		if size, want := dot(at(a), at(a)), waveBumps/2*math.Pow(waveFall, 2*float64(a+1)); math.Abs(size/want-1) > 1e-12 {
			t.Errorf("wave %d has the square %v, want %v", a+1, size, want)
		}
		if mid := Wave(a, 1./7); math.Abs(mid-at(a)[4]) > 1e-12 || math.Abs(Wave(a, 0)-(at(a)[3]+at(a)[4])/2) > 1e-12 {
			t.Errorf("wave %d is not linear between centers", a+1)
		}
	}
}

// TestHatsSum: bumps are from 0 to 1, at most two are not 0, and they sum to 1, wherever a value is; each is 1 at its center.
func TestHatsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hats := rapid.IntRange(minHats, maxHats).Draw(t, "hats")
		x := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{-1, 1, 0, math.Nextafter(1, 0), math.Nextafter(-1, 0)})).Draw(t, "x")
		j, left, right := Bumps(hats, x)
		if j < 0 || j > hats-2 || left < 0 || left > 1 || right < 0 || right > 1 || math.Abs(left+right-1) > 0x1p-50 {
			t.Fatalf("bump %d of %d is %v, the next %v", j+1, hats, left, right)
		}
		center := rapid.IntRange(0, hats-1).Draw(t, "center")
		j, left, right = Bumps(hats, 2*float64(center)/float64(hats-1)-1)
		if at := []float64{left, right}; j > center || j < center-1 || math.Abs(at[center-j]-1) > 1e-12 {
			t.Fatalf("at center %d of %d bump %d is %v, the next %v", center+1, hats, j+1, left, right)
		}
	})
}

// TestFirst: the first columns that features come from stay as they are, the others are ignored; label and unit are no such columns.
func TestFirst(t *testing.T) {
	s, err := Parse("t.yaml", []byte(`
dataset: t
unit: {name: person, rows: 2}
columns:
  - {name: sick, type: label, classes: ["no", "yes"]}
  - {name: id, type: unit}
  - {name: age, type: numeric, min: 0, max: 99, hats: 4}
  - {name: note, type: ignore}
  - {name: ward, type: categorical, levels: [a, b, c]}
  - {name: pulse, type: numeric, min: 0, max: 200}
`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{6, 9, 10}, s.Dims()); d != "" || s.Dim() != 10 || s.Predictors() != 3 {
		t.Errorf("%d features; dims: %s", s.Dim(), d)
	}
	for i, want := range []string{"age", "age ward", "age ward pulse"} {
		n := i + 1
		f := s.First(n)
		var used []string
		for i, c := range f.Columns {
			if k := s.Columns[i]; c.features() > 0 {
				used = append(used, c.Name)
			} else if c.Name != k.Name || k.features() == 0 && c.Type != k.Type {
				t.Errorf("first %d: %+v of %+v", n, c, k)
			}
		}
		if got := strings.Join(used, " "); got != want || f.Predictors() != n {
			t.Errorf("first %d: %q, want %q", n, got, want)
		}
		b, err := f.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := FromJSON(b); err != nil || cmp.Diff(f.WithHats(0), back) != "" {
			t.Errorf("first %d: JSON: %v", n, err)
		}
	}
	if s.Predictors() != 3 {
		t.Error("the schema itself changed")
	}
}

// TestFree: columns that name no encoding are free, and WithHats gives bumps to these alone. JSON has no free columns.
func TestFree(t *testing.T) {
	s := mustParse(t, small)
	named := mustParse(t, strings.Replace(small, "max: 100,", "max: 100, encode: linear,", 1))
	if s.Free() != 2 || named.Free() != 1 || mustParse(t, svm).Free() != 0 {
		t.Errorf("%d, %d free columns", s.Free(), named.Free())
	}
	set := named.WithHats(8)
	if set.Free() != 0 || set.Columns[0].Hats != 0 || set.Columns[3].Hats != 8 || set.Dim() != named.Dim()+8 || named.Free() != 1 || named.Columns[3].Hats != 0 {
		t.Errorf("%+v of %+v", set, named)
	}
	fixed := mustParse(t, strings.Replace(strings.Replace(small, "max: 100,", "max: 100, encode: linear,", 1), "max: 1000, transform", "max: 1000, hats: 8, transform", 1))
	if d := cmp.Diff(fixed, set); d != "" {
		t.Error(d)
	}
	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := FromJSON(b); err != nil || back.Free() != 0 || back.Fingerprint() != s.Fingerprint() {
		t.Errorf("%v, %v", back, err)
	}
}

// TestSchemaErrors changes one place of a good schema and wants the error to
// name the line and say what is wrong.
func TestSchemaErrors(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"dataset: clinic\n", "", "s.yaml:1:1: dataset is missing; write the name of the dataset"},
		{"dataset: clinic", "dataset: [a]", "s.yaml:1:10: dataset: found a list; expected text"},
		{"dataset: clinic", "dataset:", "s.yaml:1:1: dataset is missing; write text"},
		{"rows: 100", "rwos: 100", "s.yaml:2:1: unknown field \"rwos\"; the fields are dataset, unit, rows"},
		{"rows: 100", "rows: 0", "s.yaml:2:7: rows: found 0; write a whole number"},
		{"rows: 100", "rows: 1.5", "s.yaml:2:7: rows: found 1.5"},
		{"rows: 100", "rows: many", `s.yaml:2:7: rows: found "many"; write a whole number`},
		{"rows: 100", "rows: 9e99", "s.yaml:2:7: rows"},
		{"rows: 100", "rows: 100\nrows: 200", "s.yaml:3:1: "},
		{"rows: 100", "unit: person", `s.yaml:2:7: unit: found "person"`},
		{"rows: 100", "units: 100", "s.yaml:2:8: units: found a number of units; expected rows"},
		{"rows: 100", "rows: 100\nunit: {name: patient, rows: 8}", "s.yaml:2:7: rows: found a number of rows; expected units"},
		{"rows: 100", "unit: {name: patient, rows: 8}", "s.yaml:4:1: columns: found no column of type unit"},
		{"rows: 100", "unit: {name: patient}", "s.yaml:2:7: unit.rows is missing; write the most rows"},
		{"rows: 100", "unit: {name: patient, rows: 0}", "s.yaml:2:29: unit.rows: found 0; write a whole number from 1 to 65536"},
		{"rows: 100", "unit: {name: patient, rows: 70000}", "s.yaml:2:29: unit.rows: found 70000; write a whole number from 1 to 65536"},
		{"rows: 100", "unit: {rows: 8}", "s.yaml:2:7: unit.name is missing"},
		{"rows: 100", "unit: {name: record, rows: 8}", `s.yaml:2:14: unit.name: found "record"; write another name`},
		{"rows: 100", "unit: [patient]", "s.yaml:2:7: unit: found a list"},
		{"type: ignore", "type: unit", "s.yaml:11:22: columns[2].type: found unit, where each row is a unit"},
		{"rows: 100", "norm: l3", `s.yaml:2:7: norm: found "l3"; write l1 or l2`},
		{"rows: 100", "row_norm: -1", "s.yaml:2:11: row_norm: found -1"},
		{"rows: 100", "row_norm: .inf", "s.yaml:2:11: row_norm: found .inf"},
		{"rows: 100", "row_norm: .nan", "s.yaml:2:11: row_norm: found .nan"},
		{"rows: 100", "row_scaling: stretch", "s.yaml:2:14: row_scaling"},
		{"rows: 100", "intercept: 1", "s.yaml:2:12: intercept: found 1; write true or false"},
		{"rows: 100", "on_bad_row: ignore", "s.yaml:2:13: on_bad_row"},
		{"rows: 100", "other_columns: ignore", "ok"},
		{"rows: 100", "other_columns: drop", `s.yaml:2:16: other_columns: found "drop"; write ignore`},
		{"rows: 100\nformat: {", "other_columns: ignore\nformat: {header: false, ", "s.yaml:2:16: other_columns: found ignore for a table without names"},
		{"rows: 100", "features: 7", "s.yaml:2:11: features: found a field for libsvm"},
		{"format: {", "format: {kind: parquet, ", "s.yaml:3:"},
		{"format: {", "format: {delimiter: '::', ", "s.yaml:3:21: format.delimiter"},
		{"format: {", "format: {delimiter: \"\\t\", trim: true, ", "s.yaml:3:"},
		{"format: {", "format: {colour: red, ", "s.yaml:3:10: unknown field \"colour\"; the fields of format are"},
		{`["", "?"]`, `["?", "?"]`, `s.yaml:3:25: format.missing[1]: found "?" a second time`},
		{"min: 0, max: 100,", "max: 100,", "s.yaml:5:5: columns[0].min is missing; write a public bound"},
		{"min: 0, max: 100,", "min: 0, max: ,", "s.yaml:5:"},
		{"min: 0, max: 100,", "min: 100, max: 0,", "s.yaml:5:47: columns[0].max: found 0; write a number above min"},
		{"min: 0, max: 100,", "min: 0, max: .inf,", "s.yaml:5:45: columns[0].max: found .inf"},
		{"min: 0, max: 100,", "min: 0, max: 1e999,", "s.yaml:5:45: columns[0].max: \"1e999\" is beyond the range of numbers"},
		{"min: 0, max: 100,", "min: -1.7e308, max: 1.7e308,", "s.yaml:5:52: columns[0].max: found bounds whose distance"},
		{"min: 0, max: 100,", "min: 0, max: 100, levels: [a],", "s.yaml:5:50: unknown field \"levels\"; the fields of columns[0] are name, type, min"},
		{"missing: zero}", "missing: 101}", `s.yaml:5:59: columns[0].missing: found "101"; write error, zero or a number from min to max`},
		{"    levels: [red, green, 1.0]\n", "", "s.yaml:6:5: columns[1].levels is missing; write a list"},
		{"  - name: colour\n    type", "  -\n    type", "s.yaml:7:5: columns[1].name is missing"},
		{"format: {", "format: {trim: true, ", "ok"},
		{"format: {", "format: {encoding: windows-1252, ", "ok"},
		{"format: {", "format: {encoding: latin1, ", `s.yaml:3:20: format.encoding: found "latin1"; write utf-8, utf-16, latin-1 or windows-1252`},
		{"[red, green, 1.0]", "[red, ' red', green]", "ok"},
		{"name: id", "name: ''", "ok"},
		{"name: age", "name: ''", "s.yaml:5:12: columns[0].name is missing"},
		{"[red, green, 1.0]", "[]", "s.yaml:8:13: columns[1].levels: found 0 of them"},
		{"[red, green, 1.0]", "[red, red]", `s.yaml:8:19: columns[1].levels[1]: found "red" a second time`},
		{"[red, green, 1.0]", "[red, [green]]", "s.yaml:8:19: columns[1].levels[1]: found a list"},
		{"[red, green, 1.0]", "red", `s.yaml:8:13: columns[1].levels: found "red"; write a list`},
		{"unknown: zero", "unknown: blue", `s.yaml:9:14: columns[1].unknown: found "blue"; write error, zero or one of the levels`},
		{"type: ignore", "type: skip", `s.yaml:11:22: columns[2].type: found "skip"`},
		{"type: ignore", "type: label, classes: [a, b]", "s.yaml:13:24: columns[4].type: found a second label"},
		{"name: id", "name: age", `s.yaml:11:12: columns[2].name: found "age" a second time`},
		{"min: 0, max: 1000", "min: -1, max: 1000", "s.yaml:12:64: columns[3].transform: found log1p with a min below 0"},
		{"min: 0, max: 100,", "min: 0, max: 100, encode: bins,", `s.yaml:5:58: columns[0].encode: found "bins"; write linear, hats or waves`},
		{"min: 0, max: 100,", "min: 0, max: 100, hats: 1,", "s.yaml:5:56: columns[0].hats: found 1; write a whole number from 2 to 64"},
		{"min: 0, max: 100,", "min: 0, max: 100, encode: hats, hats: 0,", "s.yaml:5:70: columns[0].hats: found 0; write a whole number from 2 to 64"},
		{"min: 0, max: 100,", "min: 0, max: 100, hats: 65,", "s.yaml:5:56: columns[0].hats: found 65"},
		{"min: 0, max: 100,", "min: 0, max: 100, hats: 2.5,", "s.yaml:5:56: columns[0].hats: found 2.5"},
		{"min: 0, max: 100,", "min: 0, max: 100, encode: linear, hats: 8,", "s.yaml:5:72: columns[0].hats: found bumps with encode: linear; expected encode: hats, or no hats"},
		{"unknown: zero", "hats: 8", "s.yaml:9:5: unknown field \"hats\"; the fields of columns[1] are name, type, levels"},
		{"transform: log1p", "transform: sqrt", `s.yaml:12:63: columns[3].transform: found "sqrt"`},
		{`["no", "yes"]`, `["no"]`, "s.yaml:13:40: columns[4].classes: found 1 of them"},
		{`["no", "yes"]`, `["1", "+1.0"]`, `s.yaml:13:46: columns[4].classes[1]: found "+1.0", equal to another class`},
		{`classes: ["no", "yes"], strip: "."`, ``, "s.yaml:13:5: columns[4]: found a label with both classes and bounds, or with neither"},
		{"type: label, classes: [\"no\", \"yes\"], strip: \".\"", "type: ignore", "s.yaml:4:1: columns: found no column of type label"},
		{"dataset: clinic", "dataset: &a clinic", "s.yaml:1:10: dataset: found a YAML anchor, alias or tag"},
		{"dataset: clinic", "dataset: !!str clinic", "s.yaml:1:10: dataset: found a YAML anchor, alias or tag"},
		{"dataset: clinic", "- a\n- b\ndataset: clinic", "s.yaml:"},
		{"dataset: clinic", "dataset: 'clinic", "s.yaml:1:10: found text that is not YAML"},
		{"dataset: clinic", "dataset: \x00", "s.yaml: the file is binary, not a schema; if it is a table"},
	} {
		src := strings.Replace(small, c.from, c.to, 1)
		if src == small {
			t.Fatalf("nothing changed for %q", c.from)
		}
		_, err := Parse("s.yaml", []byte(src))
		var e *config.Error
		if c.want == "ok" {
			if err != nil {
				t.Errorf("%q → %q: %v", c.from, c.to, err)
			}
			continue
		}
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q → %q:\n got %v\nwant %s", c.from, c.to, err, c.want)
		}
	}
	spaced := strings.NewReplacer("format: {", "format: {trim: true, ", "[red, green, 1.0]", "[red, green, '1.0 ']").Replace(small)
	if _, err := Parse("s.yaml", []byte(spaced)); err == nil || !strings.Contains(err.Error(), "columns[1].levels[2]") {
		t.Errorf("a level that trimming hides: %v", err)
	}
	for _, src := range []string{"", "# nothing\n", "a: 1\n---\nb: 2\n", "[]", "7", strings.Repeat("#", MaxFile+1)} {
		if _, err := Parse("s.yaml", []byte(src)); err == nil {
			t.Errorf("%.20q: no error", src)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestLIBSVMSchemaErrors(t *testing.T) {
	for src, want := range map[string]string{
		"format: {kind: libsvm}\ncolumns: [{name: y, type: label, classes: [0, 1]}]":                                                        "features is missing",
		"format: {kind: libsvm}\nfeatures: 0\ncolumns: [{name: y, type: label, classes: [0, 1]}]":                                           "features: found 0",
		"format: {kind: libsvm}\nfeatures: 5\nmin: 1\nmax: 2\ncolumns: [{name: y, type: label, classes: [0, 1]}]":                           "min: found bounds without 0",
		"format: {kind: libsvm, header: true}\nfeatures: 5\ncolumns: [{name: y, type: label, classes: [0, 1]}]":                             "format.header: found a field for csv",
		"format: {kind: libsvm}\nfeatures: 5\ncolumns: [{name: y, type: label, classes: [0, 1]}, {name: x, type: numeric, min: 0, max: 1}]": "columns: found columns that are no label",
	} {
		_, err := Parse("s.yaml", []byte("dataset: d\n"+src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFromJSONIsStrict(t *testing.T) {
	b, _ := mustParse(t, small).Marshal()
	good := string(b)
	for name, bad := range map[string]string{
		"unknown field":  strings.Replace(good, `"unit"`, `"unti"`, 1),
		"text after":     good + "{}",
		"no label":       strings.Replace(good, `"type":"label"`, `"type":"ignore"`, 1),
		"no bounds":      strings.Replace(good, `"bounds":{"min":0,"max":100},`, ``, 1),
		"bad row norm":   strings.Replace(good, `"row_norm":1`, `"row_norm":0`, 1),
		"wrong type":     strings.Replace(good, `"row_norm":1`, `"row_norm":"1"`, 1),
		"alien field":    strings.Replace(good, `"type":"ignore"`, `"type":"ignore","levels":["a"]`, 1),
		"nothing":        "",
		"other document": "{}",
	} {
		if bad == good {
			t.Fatalf("%s: nothing changed", name)
		}
		if _, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestImageSchema(t *testing.T) {
	for change, want := range map[string]string{
		"image: {shape: [2, 3], center: 100, scale: 50}|": `image is missing`,
		"shape: [2, 3], |": "image.shape is missing",
		"[2, 3]|[2, 0]":    "image.shape: found a size that is no number of pixels",
		"[2, 3]|[2, 1.5]":  "image.shape[1]: found 1.5; write a whole number",
		"[2, 3]|[]":        "image.shape is missing",
		"[2, 3]|[16777216, 16777216, 16777216, 16777216, 16777216]": "image.shape: found a shape without pixels, or of too many",
		"center: 100|center: [1, 2]":                                "image.center: found 2 numbers; expected one number, or one for each of the 6 pixels",
		"center: 100|center: many":                                  `image.center: found "many"`,
		"center: 100|center: [1, x, 3, 4, 5, 6]":                    `image.center[1]: found "x"`,
		"scale: 50|scale: 0":                                        "image.scale: found 0; write a number from 1e-09 to 1e9",
		"scale: 50|scale: [1, 1, 1, 1, -1, 1]":                      "image.scale[4]: found -1",
		"scale: 50|min: 3":                                          `unknown field "min"; the fields of image are shape, encode, center, scale`,
		"rows: 3|features: 6":                                       "features: found a field for libsvm; expected no features, since kind is idx",
		`"7", "3"|a, b`:                                             `columns[0].classes[0]: found "a"; write a whole number from 0 to 255`,
		`"7", "3"|"256", "3"`:                                       `columns[0].classes[0]: found "256"`,
		`"7", "3"|"07", "3"`:                                        `columns[0].classes[0]: found "07"`,
		`classes: ["7", "3"]|min: 0, max: 1`:                        "columns[0]: found a label with bounds",
		`columns: [|columns: [{name: a, type: ignore}, `:            "columns: found columns that are no label",
		"{kind: idx}|{kind: idx, header: true}":                     "format.header: found a field for csv; expected no header, since kind is idx",
		`{kind: idx}|{kind: idx, comment: "#"}`:                     "format.comment: found a field for text",
		"format: {kind: idx}|format: {kind: libsvm}\nfeatures: 3":   "image: found a field for idx; expected no image, since kind is libsvm",
		"format: {kind: idx}|format: {kind: csv}":                   "image: found a field for idx; expected no image, since kind is csv",
	} {
		from, to, _ := strings.Cut(change, "|")
		if !strings.Contains(pictures, from) {
			t.Fatal(from)
		}
		_, err := Parse("s", []byte(strings.Replace(pictures, from, to, 1)))
		if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	s := mustParse(t, pictures)
	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := FromJSON(b)
	if err != nil || back.Fingerprint() != s.Fingerprint() {
		t.Error(err)
	}
	if text := strings.Join(s.Assumptions(), "\n"); !strings.Contains(text, "An image has 6 pixels of one byte each; a pixel v becomes (v − c)/s with a public center c of 100 and a public scale s of 50.") {
		t.Error(text)
	}
}

func TestScattering(t *testing.T) {
	text := strings.Replace(pictures, "shape: [2, 3], center: 100, scale: 50", "shape: [28, 30, 3], encode: scattering", 1)
	s := mustParse(t, text)
	names := s.FeatureNames()
	if s.Dim() != 7*7*243+1 || len(names) != s.Dim() || names[0] != "map 1 at 1 1" || names[243] != "map 1 at 1 2" || names[7*7*243-1] != "map 243 at 7 7" {
		t.Errorf("%d features: %q …", s.Dim(), names[:3])
	}
	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := FromJSON(b); err != nil || !reflect.DeepEqual(back, s) {
		t.Error(err)
	}
	pixels := mustParse(t, strings.Replace(text, "scattering", "pixels", 1))
	if b, err := pixels.Marshal(); err != nil || bytes.Contains(b, []byte("encode")) || pixels.Dim() != 28*30*3+1 || pixels.Fingerprint() == s.Fingerprint() {
		t.Errorf("%v, %s", err, b)
	}
	if text := strings.Join(s.Assumptions(), "\n"); !strings.Contains(text, "An image has 2520 pixels of one byte each; its features are 11907 scattering coefficients with fixed wavelets, normalized within the image.") {
		t.Error(text)
	}
	for change, want := range map[string]string{
		"[28, 30, 3]|[28]":                  "image.shape: found a shape without scattering coefficients; expected rows and columns from 8 to 64, and up to 3 channels, with encode: scattering",
		"[28, 30, 3]|[28, 7]":               "image.shape: found a shape without",
		"[28, 30, 3]|[65, 28]":              "image.shape: found a shape without",
		"[28, 30, 3]|[28, 28, 4]":           "image.shape: found a shape without",
		"[28, 30, 3]|[28, 28, 3, 1]":        "image.shape: found a shape without",
		"scattering|waves":                  `image.encode: found "waves"; write pixels or scattering`,
		"scattering|scattering, center: 0":  "image.center: found a field for pixels; expected none with encode: scattering",
		"scattering|scattering, scale: 255": "image.scale: found a field for pixels; expected none with encode: scattering",
	} {
		from, to, _ := strings.Cut(change, "|")
		if _, err := Parse("s", []byte(strings.Replace(text, from, to, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	for change, want := range map[string]string{`"center":[0]|"center":[1]`: "image.center", `"features":11907|"features":2520`: "features"} {
		from, to, _ := strings.Cut(change, "|")
		if _, err := FromJSON(bytes.Replace(b, []byte(from), []byte(to), 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}

func TestUnit(t *testing.T) {
	for norm, want := range map[float64]float64{1: 0x1p-20, 2: 0x1p-19, 1.5: 0x1p-19, 0.5: 0x1p-21, 0.6: 0x1p-20, 0.1: 0x1p-23, 1e9: 0x1p10, 1e-9: 0x1p-49} {
		s := &Schema{RowNorm: norm}
		if got := s.unit(); got != want {
			t.Errorf("norm %v: unit 2^%v, want 2^%v", norm, math.Log2(got), math.Log2(want))
		}
	}
}
