package private

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// viewedSum is the clipped sum of the mean gradients of views, in counts of the unit.
func viewedSum(t interface{ Fatal(...any) }, m model.Model, tab *data.Table, w []float64, c float64, views [][]int32, rows []int32, workers int) (unit float64, counts []int64) {
	var s Local
	s.open(tab, m, workers)
	defer s.Close()
	s.views = views
	unit, err := s.clipped(w, clip.Norm{C: c}, oracle.Public{Rows: 60000}, rows, rows == nil)
	if err != nil {
		t.Fatal(err)
	}
	counts = make([]int64, m.Dim())
	s.Take(counts, 0)
	return unit, counts
}

// imageNetwork is a network of images of 3×4 pixels and three classes.
func imageNetwork(t interface{ Fatal(...any) }, compute string, layers ...string) model.Model {
	opt := model.Options{Dim: 12, Classes: 3, NormBound: 1, Config: model.MLP{Layers: layers, Compute: compute}}
	name := "mlp"
	if strings.HasPrefix(layers[0], "conv") {
		name, opt.Config = "cnn", model.CNN{Layers: layers, Compute: compute, Shape: []int{3, 4}}
	}
	m, err := model.New(name, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestViewsOfImages: each view is an order of the image's own numbers, the first the image itself; a number moves with its neighbors, and
// views of one batch and of the next differ.
func TestViewsOfImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := []int{rapid.IntRange(2, 6).Draw(t, "height"), rapid.IntRange(2, 6).Draw(t, "width"), rapid.IntRange(1, 3).Draw(t, "channels")}
		v := oracle.Augmentation{Count: rapid.IntRange(2, 5).Draw(t, "count"), Shift: rapid.IntRange(0, min(shape[0], shape[1])-1).Draw(t, "shift"), Flip: rapid.Bool().Draw(t, "flip")}
		if v.Shift == 0 {
			v.Flip = true
		}
		size := shape[0] * shape[1] * shape[2]
		views, err := v.Of(shape, rapid.IntRange(0, 1000).Draw(t, "batch"))
		if err != nil || len(views) != v.Count {
			t.Fatal(len(views), err)
		}
		for k, order := range views {
			seen := slices.Clone(order)
			slices.Sort(seen)
			for j := range size {
				if seen[j] != int32(j) || k == 0 && order[j] != int32(j) {
					t.Fatalf("view %d of %v is %v", k, shape, order)
				}
			}
			// The channel stays, and the shift is that of the first number, to each side Shift at most.
			row, column := int(order[0])/shape[2]/shape[1], int(order[0])/shape[2]%shape[1]
			if !v.Flip && (min(row, shape[0]-row) > v.Shift || min(column, shape[1]-column) > v.Shift) {
				t.Fatalf("view %d is shifted by %d and %d, more than %d", k, row, column, v.Shift)
			}
			for j, from := range order {
				if j%shape[2] != int(from)%shape[2] || (int(from)/shape[2]/shape[1]-j/shape[2]/shape[1]-row)%shape[0] != 0 {
					t.Fatalf("view %d of %v tears the image: %v", k, shape, order)
				}
			}
		}
	})
	v := oracle.Augmentation{Count: 3, Shift: 2, Flip: true}
	seen := map[string]bool{}
	for batch := range 20 {
		views, err := v.Of([]int{9, 9}, batch)
		if err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprint(views)] = true
	}
	if len(seen) < 19 { // 50² pairs of views: two of 20 alike with a chance of 1 in 13, fixed by the stream
		t.Errorf("20 batches have %d different views", len(seen))
	}
}

// A record's mean gradient is within the clip norm in exact arithmetic, whatever its views; sums do not depend on order, workers or
// form, and neighbors differ by no more than the sensitivity.
func TestViewsStayWithinTheClipNorm(t *testing.T) {
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		layers := rapid.SampledFrom([][]string{{"5 relu"}, {"4 tanh", "3 relu"}, {"2 linear"}, {"conv 3 2x2 relu", "group 3", "max 2 stride 1", "4 tanh"}}).Draw(t, "layers")
		m := imageNetwork(t, rapid.SampledFrom([]string{"", "float64"}).Draw(t, "compute"), layers...)
		w := make([]float64, m.Dim())
		scale := math.Pow(10, rapid.Float64Range(-3, 3).Draw(t, "scale"))
		for j := range w {
			w[j] = rnd.NormFloat64() * scale
		}
		if rapid.IntRange(0, 4).Draw(t, "wild") == 0 {
			w[rnd.IntN(len(w))] = []float64{1e300, -1e30, 1e-300}[rnd.IntN(3)]
		}
		c := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "c"), rapid.IntRange(-30, 8).Draw(t, "exp"))
		views, err := oracle.Augmentation{Count: rapid.IntRange(2, 5).Draw(t, "views"), Shift: 2, Flip: rapid.Bool().Draw(t, "flip")}.Of([]int{3, 4}, rapid.IntRange(0, 9).Draw(t, "batch"))
		if err != nil {
			t.Fatal(err)
		}
		rows := randomRows(rnd, rapid.IntRange(2, 300).Draw(t, "n"), 12)
		for i := range rows {
			rows[i].y = float32(rnd.IntN(3))
		}
		sparse := rapid.Bool().Draw(t, "sparse")
		unit, counts := viewedSum(t, m, table(rows[:1], 3, sparse), w, c, views, nil, 1)
		norm := sizeOf(counts, unit, 2)
		if norm.Cmp(big.NewFloat(c)) > 0 {
			t.Fatalf("a record's part has norm %v, the bound is %v", norm, c)
		}
		_, all := viewedSum(t, m, table(rows, 3, sparse), w, c, views, nil, 1)
		other := slices.Clone(rows)
		slices.Reverse(other)
		listed := make([]int32, len(rows))
		for i := range listed {
			listed[i] = int32(i)
		}
		if _, got := viewedSum(t, m, table(other, 3, !sparse), w, c, views, listed, 2); !slices.Equal(got, all) {
			t.Fatal("the sum depends on the order of the rows, their form, or the workers")
		}
		_, less := viewedSum(t, m, table(rows[1:], 3, sparse), w, c, views, nil, 1)
		for j := range less {
			if all[j]-less[j] != counts[j] {
				t.Fatal("one record more adds something else than its own part")
			}
		}
	})
}

// The sum is that of mean gradients of views, made one by one and clipped.
func TestViewsEqualBruteForce(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(3, 1))
	rows := randomRows(rnd, 300, 12)
	tab := table(rows, 3, false)
	views, err := oracle.Augmentation{Count: 3, Shift: 1, Flip: true}.Of([]int{3, 4}, 7)
	if err != nil {
		t.Fatal(err)
	}
	nets := []model.Model{imageNetwork(t, "", "20 relu", "7 tanh"), imageNetwork(t, "", "conv 3 2x2 relu", "group 3", "max 2 stride 1", "4 tanh")}
	for k, c := range []float64{0.1, 100, 0.1, 100} {
		m := nets[k/2]
		w := oracle.Public{Dim: m.Dim(), Initial: spans(m)}.Start()
		want := make([]float64, m.Dim())
		var ws model.Workspace
		for _, r := range rows {
			g := make([]float64, m.Dim())
			for _, order := range views {
				x := make([]float32, len(order))
				for j, from := range order {
					x[j] = r.x[from]
				}
				one := table([]row{{x, r.y}}, 3, false)
				m.Eval(w, data.View{Block: one.Blocks[0], To: 1}, &ws).AddGrad(g, []float64{1. / 3}, 0)
			}
			norm := 0.0
			for _, v := range g {
				norm = math.Hypot(norm, v)
			}
			for j, v := range g {
				want[j] += v * math.Min(1, c/norm)
			}
		}
		unit, counts := viewedSum(t, m, tab, w, c, views, nil, 1)
		far, size := 0.0, 0.0
		for j, v := range counts {
			d := float64(v)*unit - want[j]
			far, size = far+d*d, size+want[j]*want[j]
		}
		if far = math.Sqrt(far / size); far > 1e-5*max(1, c) || size == 0 {
			t.Errorf("clip norm %v: the sum is off by %v of itself", c, far)
		}
	}
}

// The oracle draws the views of each batch afresh, the same from the same number on, and refuses before it charges where there are none.
func TestViewsAtTheOracle(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(3, 1)), 60, 12), 2, false)
	m := network(t, 12, 2, "6 relu")
	open := func(first int, image ...int) (*Oracle, *free) {
		c := config(t, tab, privacy.AddRemove, 60)
		c.Model, c.Facts.Dim, c.Facts.Image, c.Facts.Initial, c.First, c.Streams = m, m.Dim(), image, spans(m), first, noise.SeededStreams(1)
		return openOracle(t, c), c.Meter.(*free)
	}
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.None{}, Augmentation: oracle.Augmentation{Count: 2, Shift: 2}}
	ask := func(o *Oracle) []float64 {
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grad(q, o.Public().Start())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(g)
	}
	o, _ := open(0, 3, 4)
	first, second := ask(o), ask(o)
	later, _ := open(1, 3, 4)
	if slices.Equal(first, second) || !slices.Equal(second, ask(later)) {
		t.Error("the views of a batch do not follow from its number")
	}
	for _, c := range []struct {
		image []int
		q     oracle.Grad
	}{
		{nil, q},
		{[]int{12}, q},
		{[]int{4, 4}, q},
		{[]int{2, 6}, q},
		{[]int{3, 4}, oracle.Grad{Clip: clip.Value{C: 1}, Noise: mech.Gaussian{Sigma: 1}, Augmentation: q.Augmentation}},
		{[]int{3, 4}, oracle.Grad{Clip: clip.Norm{C: 1, P: 1}, Noise: mech.Laplace{Scale: 1}, Augmentation: q.Augmentation}},
		{[]int{3, 4}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}, Augmentation: oracle.Augmentation{Count: 65, Shift: 1}}},
		{[]int{3, 4}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}, Augmentation: oracle.Augmentation{Shift: 1}}},
	} {
		o, meter := open(0, c.image...)
		if _, err := o.Batch(t.Context(), sample.Full{}, c.q); err == nil || meter.charges > 0 {
			t.Errorf("images %v, %+v: %v, %d charges", c.image, c.q, err, meter.charges)
		}
	}
}
