package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
)

var asNetwork = []Override{{Path: "model.name", Value: "mlp", From: "test"}, {Path: "model.layers", Value: "[8 relu, 4 tanh]", From: "test"}}

// Methods that take networks train one, leave a record that verify finds to hold and a model file that can be used;
// the others refuse it by name, before anything is read.
func TestNetworks(t *testing.T) {
	t.Parallel()
	for _, e := range method.Registry() {
		dir := t.TempDir()
		if !slices.Contains(method.Networks(), e.Name) {
			file, _ := clinicSpec(t, dir, e.Name, fmt.Sprintf("method: {name: %s}", e.Name))
			spec, err := LoadSpec(file, append(slices.Clone(asNetwork), onlyUnder[e.Name]...))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Prepare(spec)
			wantInput(t, err, "for a network choose "+strings.Join(method.Networks(), ", "))
			continue
		}
		for _, more := range []string{"", ", batch: 100", ", clipping: value"} {
			clips := slices.ContainsFunc(e.Fields(), func(f method.Field) bool { return f.Name == "clipping" })
			if strings.Contains(more, "clipping") && !clips {
				continue
			}
			l := openLedger(t, dir)
			defer l.Close()
			over := asNetwork
			if strings.Contains(more, "value") { // as P0 has it
				over = append(slices.Clone(over), Override{Path: "model.bias_free", Value: "true", From: "test"}, Override{Path: "model.start", Value: "pytorch", From: "test"})
			}
			job, out := begin(t, dir, e.Name+fmt.Sprint(len(more)), fmt.Sprintf("method: {name: %s, steps: 9%s}", e.Name, more), over...)
			if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
				t.Fatalf("method %s%s does not train a network: %v; it says that it does by Networks in its Entry, "+
					"method/registry.go", e.Name, more, err)
			}
			found, err := Verify(t.Context(), out, l)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if !f.Holds {
					t.Errorf("%s%s: %s does not hold: %s", e.Name, more, f.What, f.Detail)
				}
			}
			m, err := LoadModel(out)
			if err != nil {
				t.Fatal(err)
			}
			if want := job.Facts.Start(); m.Model.Name() != "mlp" || len(m.File.W) != len(want) || slices.Equal(m.File.W, want) {
				t.Errorf("%s%s: a model %s of %d parameters, of %d expected", e.Name, more, m.Model.Name(), len(m.File.W), len(want))
			}
			net := m.File.Config.(model.MLP)
			net.Layers = net.Layers[1:]
			m.File.Config = net
			if _, err := m.File.New(); err == nil {
				t.Error("a model file with a layer less than its parameters was accepted")
			}
		}
	}
}

// Layers belong to networks.
func TestLayersOfOtherModels(t *testing.T) {
	file, _ := clinicSpec(t, t.TempDir(), "run", "method: {name: sgd}")
	_, err := LoadSpec(file, asNetwork[1:])
	wantInput(t, err, "model.layers: logistic has no such field; mlp and cnn have it")
	_, err = LoadSpec(file, []Override{{Path: "model.bias_free", Value: "true", From: "test"}})
	wantInput(t, err, "model.bias_free: logistic has no such field; mlp has it")
	_, err = LoadSpec(file, []Override{asNetwork[0], {Path: "model.input_scale", Value: "0", From: "test"}})
	wantInput(t, err, "model.input_scale: found 0; write another number, or leave the field out")
	for _, layers := range []string{"[]", "[8 gelu]", "{relu: 8}"} {
		spec, err := LoadSpec(file, []Override{asNetwork[0], {Path: "model.layers", Value: layers, From: "test"}})
		if err == nil {
			_, err = Prepare(spec)
		}
		wantInput(t, err, "layers")
	}
}

// A network starts at public numbers that do not change: a record is replayed from them.
func TestStart(t *testing.T) {
	job, _ := begin(t, t.TempDir(), "run", "method: {name: sgd}", asNetwork...)
	w := job.Facts.Start()
	if again := job.Facts.Start(); !slices.Equal(w, again) || len(w) != job.Model.Dim() {
		t.Errorf("%d numbers, then others", len(w))
	}
	at := 0
	for k, s := range job.Model.(model.Starter).Start() {
		for _, v := range w[at : at+s.Count] {
			if !(v >= -s.Bound && v <= s.Bound) || s.Bound > 0 && v == 0 {
				t.Errorf("span %d: %v, beyond ±%v", k, v, s.Bound)
			}
		}
		at += s.Count
	}
	if bound := job.Model.(model.Starter).Start()[0].Bound; w[0]/bound != 0.7666216164272852 {
		t.Errorf("the first number is %v of its bound", w[0]/bound)
	}
}

// A run of a network that is stopped goes on from where it was: its seeded form ends where the unbroken one does.
func TestNetworkIsResumed(t *testing.T) {
	t.Parallel()
	more := fmt.Sprintf("method: {name: adam, steps: %d, batch: 64, clipping: value}\nlab: true\nseed: 5", 12000/slowdown())
	run := func(dir string, broken bool) []float64 {
		job, out := begin(t, dir, "run", more, asNetwork...)
		if broken {
			ctx, stop := context.WithCancel(t.Context())
			_, _, err := Fit(ctx, job, stopAt(1, stop))
			wantErr(t, err, ErrInterrupted)
			if _, err := Resume(t.Context(), out, Env{}); err != nil {
				t.Fatal(err)
			}
		} else if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		m, err := LoadModel(out)
		if err != nil {
			t.Fatal(err)
		}
		return m.File.W
	}
	if !slices.Equal(run(t.TempDir(), false), run(t.TempDir(), true)) {
		t.Error("a resumed run ends elsewhere")
	}
}

// A network on images trains, is verified and predicts; its shape is the spec's where the schema says none.
func TestImageNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, _ := clinicSpec(t, dir, "run", "method: {name: sgd, steps: 5}")
	spec, err := LoadSpec(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := spec.LoadSchema()
	if err != nil {
		t.Fatal(err)
	}
	over := []Override{
		{Path: "model.name", Value: "cnn", From: "test"}, {Path: "model.layers", Value: "[conv 3 1x2 pad 0 tanh, max 1x2 stride 1, group 3, 4 relu]", From: "test"},
		{Path: "model.shape", Value: fmt.Sprintf("[1, %d]", schema.Dim()), From: "test"},
	}
	l := openLedger(t, dir)
	defer l.Close()
	job, out := begin(t, dir, "images", "method: {name: sgd, steps: 5, clipping: value}", over...)
	if _, _, err := Fit(t.Context(), job, Env{Workers: 2}); err != nil {
		t.Fatal(err)
	}
	found, err := Verify(t.Context(), out, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !f.Holds {
			t.Errorf("%s does not hold: %s", f.What, f.Detail)
		}
	}
	m, err := LoadModel(out)
	if err != nil {
		t.Fatal(err)
	}
	if m.Model.Name() != "cnn" || m.Model.Dim() != job.Model.Dim() || !slices.Equal(m.File.Shape, []int{1, schema.Dim()}) {
		t.Errorf("a model %s of %d parameters and shape %v", m.Model.Name(), m.Model.Dim(), m.File.Shape)
	}
	for _, wrong := range [][]Override{over[:2], {over[0], over[1], {Path: "model.shape", Value: "[2, 2]", From: "test"}}, {over[2]}} {
		spec, err := LoadSpec(file, wrong)
		if err == nil {
			_, err = Prepare(spec)
		}
		want := "cnn takes images"
		if len(wrong) == 1 {
			want = "model.shape: logistic has no such field; cnn has it"
		}
		wantInput(t, err, want)
	}
}
