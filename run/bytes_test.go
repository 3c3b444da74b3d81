package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// TestImagesAsBytes: run.json says how a run sums images, as bytes, as numbers or as numbers of 16 bits. A run that was stopped goes on in the same way, as one of an earlier
// build does with numbers: both end as unbroken ones.
func TestImagesAsBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "schema.yaml")
	text := "dataset: lines\nrows: 300\nformat: {kind: idx}\nimage: {shape: [4, 5], center: 100, scale: 50}\nrow_norm: 4\nrow_scaling: scale\ncolumns: [{name: where, type: label, classes: [\"0\", \"1\"]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	images, packed := imageFiles(t, dir, "train", 200), filepath.Join(dir, "lines.packed")
	s, err := schema.Parse("s", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	gate := access.Gate{Unprotected: true}
	short := filepath.Join(dir, "short.packed")
	for path, opt := range map[string]data.Options{packed: {}, short: {Coding: data.Coding{Short: true}}} {
		if _, err := gate.Pack(t.Context(), s, images, path, opt); err != nil {
			t.Fatal(err)
		}
	}
	fit := func(ctx context.Context, name, table, method string, env Env) (string, error) {
		t.Helper()
		out, spec := filepath.Join(dir, name), filepath.Join(dir, name+".yaml")
		text := fmt.Sprintf("data: %s\nschema: %s\nmodel: {name: softmax}\n%s\nledger: %s\nout: %s\nlab: true\nseed: 7\nprivacy: {epsilon: 8, delta: 1e-5, adjacency: add-or-remove}\n",
			table, file, method, filepath.Join(dir, "ledger.db"), out)
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadSpec(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(loaded)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Fit(ctx, job, env)
		return out, err
	}
	facts := func(dir string) (f oracle.Public) {
		t.Helper()
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(info.Public, &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	parameters := func(dir string) []float64 {
		t.Helper()
		f, err := model.Read(filepath.Join(dir, runlog.ModelFile))
		if err != nil {
			t.Fatal(err)
		}
		return f.W
	}
	var ends [][]float64
	for _, c := range []struct {
		name, table, other string // other: the same rows in another form; those of an earlier build's run are images, summed as numbers
		bytes, short       bool
		refused            string
	}{
		{"bytes", images, packed, true, false, "use the file of images"},
		{"short", short, packed, false, true, "use the packed table that the run began with"},
		{"numbers", packed, images, false, false, ""},
	} {
		whole, err := fit(t.Context(), c.name+"-whole", c.table, poisson(1), Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := facts(whole); got.Bytes != c.bytes || got.Short != c.short {
			t.Fatalf("%s: public.bytes is %v, public.short %v", c.name, got.Bytes, got.Short)
		}
		if found, err := Verify(t.Context(), whole, nil); err != nil || !allHold(found) {
			t.Fatalf("%s: %v, %v", c.name, found, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		out, err := fit(ctx, c.name+"-broken", c.table, poisson(1), stopAt(1, stop))
		wantErr(t, err, ErrInterrupted)
		info, err := runlog.ReadInfo(out)
		if err != nil {
			t.Fatal(err)
		}
		info.Data = c.other
		if err := runlog.WriteInfo(out, info); err != nil {
			t.Fatal(err)
		}
		_, err = Resume(t.Context(), out, Env{Workers: 1})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Fatalf("%s: a run goes on over rows of another form: %v", c.name, err)
			}
			info.Data = c.table
			if err := runlog.WriteInfo(out, info); err != nil {
				t.Fatal(err)
			}
			_, err = Resume(t.Context(), out, Env{Workers: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := facts(out); got.Bytes != c.bytes || got.Short != c.short || !slices.Equal(parameters(out), parameters(whole)) {
			t.Errorf("%s: the broken run ended otherwise than the unbroken one; public.bytes is %v", c.name, got.Bytes)
		}
		ends = append(ends, parameters(whole))
	}
	if slices.Equal(ends[0], ends[1]) || slices.Equal(ends[1], ends[2]) {
		t.Error("rows of two forms gave the same parameters, so that nothing was compared")
	}

	// Solvers, and what is summed without noise, are over numbers.
	for _, more := range []string{"method: {name: outpert-sgd}\nprivacy: {epsilon: 8, delta: 1e-5, adjacency: replace-one}", "privacy: none"} {
		spec := filepath.Join(dir, "other.yaml")
		if err := os.WriteFile(spec, fmt.Appendf(nil, "schema: %s\nmodel: {name: logistic, l2: 0.1}\nlab: true\n%s\n", file, more), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadSpec(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(loaded)
		if err != nil {
			t.Fatal(err)
		}
		if job.Coding().Coded() {
			t.Errorf("bytes or 16-bit numbers with %s", more)
		}
	}
}
