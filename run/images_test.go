package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run/runlog"
)

// imageFiles writes n images of 4×5 pixels, of class i mod 2: a bright line above, or below.
func imageFiles(t *testing.T, dir, name string, n int) string {
	t.Helper()
	images := []byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, 4, 0, 0, 0, 5}
	labels := []byte{0, 0, 8, 1, 0, 0, 0, byte(n)}
	for i := range n {
		var pixels [20]byte
		for k := range 5 {
			pixels[15*(i%2)+k] = byte(200 + i%7*8)
		}
		pixels[7+i%6] = byte(40 * (i % 5))
		images, labels = append(images, pixels[:]...), append(labels, byte(i%2))
	}
	file := filepath.Join(dir, name+"-images-idx3-ubyte")
	for path, b := range map[string][]byte{file: images, filepath.Join(dir, name+"-labels-idx1-ubyte"): labels} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// A run on images keeps examples of its test file, and the report draws them; of rows that it was trained on it keeps none.
func TestImageExamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	schema := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(schema, []byte("dataset: lines\nrows: 100\nformat: {kind: idx}\nimage: {shape: [4, 5], center: 100, scale: 50}\nrow_norm: 4\nrow_scaling: scale\nintercept: false\ncolumns: [{name: where, type: label, classes: [\"0\", \"1\"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, test := imageFiles(t, dir, "train", 100), imageFiles(t, dir, "t10k", 30)
	fit := func(name, test, lab string) (*runlog.Info, string) {
		out := filepath.Join(dir, name)
		file := filepath.Join(dir, name+".yaml")
		text := fmt.Sprintf("data: %s\ntest: %s\nschema: %s\nmodel: {name: cnn, layers: [conv 4 2x3 tanh, max 2 stride 1]}\nmethod: {name: sgd, steps: 20, rate: 2, clip: 1}\nledger: %s\nout: %s\nprivacy: {epsilon: 8, delta: 1e-5, adjacency: add-or-remove}\n%s",
			data, test, schema, filepath.Join(dir, "ledger.db"), out, lab)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, err := LoadSpec(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec.Void = spec.Lab // lines are protected by then
		job, err := Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return info, out
	}
	info, out := fit("apart", test, "") // lines are few, so many are equal
	scores := info.Result.Test
	if a := *scores.Accuracy; a < 0.9 {
		t.Errorf("accuracy %v on lines above and below", a)
	}
	if n := len(scores.Examples); n < 8 || n > 16 {
		t.Fatalf("%d examples", n)
	}
	for i, e := range scores.Examples[:8] {
		if e.Class != fmt.Sprint(i%2) || e.Width != 5 || len(e.Pixels) != 20 || e.Pixels[15*(i%2)] != 255 || e.Pixels[15-15*(i%2)] != 0 || !(e.Confidence >= 0.5 && e.Confidence <= 1) {
			t.Errorf("example %d: %+v", i, e)
		}
	}
	if err := page.Write(out, nil); err != nil {
		t.Error(err)
	}
	if info, _ = fit("same", data, "lab: true\nseed: 1"); info.Result.Test == nil || info.Result.Test.Examples != nil {
		t.Errorf("a run on its own rows shows %+v", info.Result.Test)
	}
}
