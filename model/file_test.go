package model_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/model"
)

func sampleFile() *model.File {
	return &model.File{
		Format: model.FileFormat, Model: "softmax", Config: model.Softmax{}, Dim: 2, NormBound: 1,
		Classes: []string{"<low>", "mid", "high"}, Features: []string{"age", "intercept"},
		W:      []float64{0.1, -1e-300, math.MaxFloat64, 5e-324, 1.0 / 3, math.Copysign(0, -1)},
		Schema: json.RawMessage(`{"label":"risk"}`), Guarantee: json.RawMessage(`{"epsilon":1}`),
		Created: "2026-11-20T15:00:00Z", Run: "r1",
	}
}

func TestFileRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.json")
	want := sampleFile()
	for range 2 { // the second replaces the first
		if err := model.Write(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := model.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for i := range want.W {
		if math.Float64bits(want.W[i]) != math.Float64bits(got.W[i]) {
			t.Errorf("w[%d] = %v, want %v bit for bit", i, got.W[i], want.W[i])
		}
	}
	if m, err := got.New(); err != nil || m.Name() != "softmax" || m.Dim() != 6 {
		t.Errorf("New: %v, %v", m, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v; want the model alone", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestFileChecks: Write refuses what does not hold together and leaves the old
// file, Read refuses the same.
func TestFileChecks(t *testing.T) {
	for want, change := range map[string]func(f *model.File){
		`format is "x"`:                    func(f *model.File) { f.Format = "x" },
		"unknown model":                    func(f *model.File) { f.Model = "tree" },
		"w has 5 parameters":               func(f *model.File) { f.W = f.W[:5] },
		"w has 6 parameters":               func(f *model.File) { f.Dim = math.MaxInt/3 + 3; f.Features = nil },
		"w[1] is NaN":                      func(f *model.File) { f.W[1] = math.NaN() },
		"w[2] is -Inf":                     func(f *model.File) { f.W[2] = math.Inf(-1) },
		"features has 1 names, want 2":     func(f *model.File) { f.Features = f.Features[:1] },
		`classes names "mid" twice`:        func(f *model.File) { f.Classes[2] = "mid" },
		`created is "yesterday"`:           func(f *model.File) { f.Created = "yesterday" },
		"norm bound 0":                     func(f *model.File) { f.NormBound = 0 },
		"0 features":                       func(f *model.File) { f.Dim = 0 },
		"1 classes":                        func(f *model.File) { f.Classes = f.Classes[:1] },
		"the label has 3; use softmax":     func(f *model.File) { f.Model, f.Config = "svm", nil },
		"margin_factor is 0.5 for softmax": func(f *model.File) { f.MarginFactor = 0.5 },
		"the label is numeric; use linear": func(f *model.File) { f.Classes = nil },
	} {
		path := filepath.Join(t.TempDir(), "model.json")
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		f := sampleFile()
		change(f)
		if err := model.Write(path, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Write: %v, want %q", err, want)
		}
		if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
			t.Errorf("%s: the old file became %q, %v", want, old, err)
		}
		raw, err := json.Marshal(f)
		if err != nil {
			continue // JSON has no NaN and no Inf
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := model.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read: %v, want %q", err, want)
		}
	}
}

func TestReadForeign(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.json")
	if err := model.Write(path, sampleFile()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "the file is empty"},
		{"blank", " \n", "the file is empty"},
		{"half", string(good[:len(good)/2]), "ends too early"},
		{"nearly all", string(good[:len(good)-2]), "ends too early"},
		{"CSV", "a,b\n1,2\n", "not a model file"},
		{"binary", "\x1f\x8b\x00\x01", "not a model file"},
		{"array", "[1,2]", "a JSON array where an object should be"},
		{"number", "7", "a JSON number where an object should be"},
		{"another kind", `{"format":"sotto-run/1","steps":3}`, `format is "sotto-run/1", want "sotto-model/1"`},
		{"no format", `{"model":"logistic"}`, `format is ""`},
		{"trailing", string(good) + "{}", "not a model file"},
		{"unknown field", strings.Replace(string(good), `"dim"`, `"dims"`, 1), `unknown field "dims"`},
		{"wrong type", strings.Replace(string(good), `"dim":2`, `"dim":"two"`, 1), `field "dim": a JSON string where a int should be`},
		{"no number", strings.Replace(string(good), "0.1", "null", 1), "w: found null; write a number for each parameter"},
		{"no class", strings.Replace(string(good), `"mid"`, "null", 1), "classes: found null; write a name for each class"},
		{"huge number", strings.Replace(string(good), "0.1", "1e999", 1), `field "w`},
	} {
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := model.Read(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := model.Read(filepath.Join(dir, "none.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.Truncate(path, model.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := model.Read(path); err == nil || !strings.Contains(err.Error(), "more than 512 MiB") {
		t.Errorf("oversized file: %v", err)
	}
}

func TestWriteNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "model.json")
	if err := model.Write(path, sampleFile()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("Write into no directory: %v", err)
	}
	if err := model.Write(t.TempDir(), sampleFile()); err == nil {
		t.Error("Write onto a directory succeeded")
	}
}

// FuzzRead: whatever the bytes, Read answers with an error or with a model that
// survives being written and read.
func FuzzRead(f *testing.F) {
	raw, err := json.Marshal(sampleFile())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"format":"sotto-model/1","model":"linear","dim":1,"norm_bound":1,"w":[2]}`))
	f.Add([]byte(`{"format":"sotto-model/1","model":"softmax","dim":9223372036854775807,"norm_bound":1,"classes":["a","b"],"w":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "model.json")
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := model.Read(path)
		if err != nil {
			return
		}
		if err := model.Write(path, file); err != nil {
			t.Fatal(err)
		}
		again, err := model.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		a, errA := json.Marshal(file)
		b, errB := json.Marshal(again)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("%s became %s (%v, %v)", a, b, errA, errB)
		}
	})
}
