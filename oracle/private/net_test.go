package private

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

func network(t interface{ Fatal(...any) }, dim, classes int, layers ...string) model.Model {
	m, err := model.New("mlp", model.Options{Dim: dim, Classes: classes, NormBound: 1, Config: model.MLP{Layers: layers}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// imageNetworks are networks on images of 3×2×2 numbers.
var imageNetworks = [][]string{
	{"conv 2 2 pad 1 tanh", "max 2 stride 1", "3"},
	{"conv 4 2x1 linear", "group 2 relu", "mean 2x1 stride 1"},
	{"max 2x1 stride 1", "conv 3 1x2 stride 2 relu", "group 3", "conv 2 2 pad 1 relu"},
}

// netSum is the clipped sum over a table as counts of the unit.
func netSum(t interface{ Fatal(...any) }, m model.Model, tab *data.Table, w []float64, rule clip.Rule, nominal, workers int) (float64, []int64) {
	var s Local
	s.open(tab, m, workers)
	defer s.Close()
	unit, counts, err := s.sum(w, rule, oracle.Public{Rows: nominal}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return unit, counts
}

// sum is the whole clipped sum.
func (s *Local) sum(w []float64, rule clip.Rule, facts oracle.Public, rows []int32, all bool) (float64, []int64, error) {
	unit, err := s.clipped(w, rule, facts, rows, all)
	counts := make([]int64, s.model.Dim())
	if err == nil {
		s.Take(counts, 0)
	}
	return unit, counts, err
}

// A draw of a network, its parameters, wild ones too, a clip rule and rows.
func drawNetwork(t *rapid.T) (m model.Model, w []float64, rule clip.Rule, rows []row) {
	dim := rapid.IntRange(1, 6).Draw(t, "dim")
	layers := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "3 relu", "4 tanh", "2 linear"}), 1, 3).Draw(t, "layers")
	classes := rapid.IntRange(2, 4).Draw(t, "classes")
	m = network(t, dim, classes, layers...)
	if rapid.Bool().Draw(t, "bare") {
		var err error
		if m, err = model.New("mlp", model.Options{Dim: dim, Classes: classes, NormBound: 1, Config: model.MLP{Layers: layers, BiasFree: true}}); err != nil {
			t.Fatal(err)
		}
	}
	var weights []float64
	if rapid.Bool().Draw(t, "weights") {
		weights = []float64{3, 0.7, 1, 1e-3}[:classes]
		var err error
		scale := rapid.SampledFrom([]float64{1, 0.01, 2.6}).Draw(t, "input scale")
		if m, err = model.New("mlp", model.Options{Dim: dim, Classes: classes, NormBound: 1, Weights: weights, Config: model.MLP{Layers: layers, InputScale: scale}}); err != nil {
			t.Fatal(err)
		}
	}
	if image := rapid.IntRange(-2, len(imageNetworks)-1).Draw(t, "image"); image >= 0 {
		dim = 12
		var err error
		compute := rapid.SampledFrom([]string{"float32", "float64"}).Draw(t, "compute")
		if m, err = model.New("cnn", model.Options{Dim: dim, Shape: []int{3, 2, 2}, Classes: classes, NormBound: 1, Weights: weights, Config: model.CNN{Layers: imageNetworks[image], Compute: compute}}); err != nil {
			t.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
	scale := math.Pow(10, rapid.Float64Range(-3, 3).Draw(t, "scale"))
	for range m.Dim() {
		w = append(w, rnd.NormFloat64()*scale)
	}
	if rapid.IntRange(0, 4).Draw(t, "wild") == 0 {
		w[rnd.IntN(len(w))] = []float64{1e300, -1e200, 1e-300}[rnd.IntN(3)]
	}
	c := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "c"), rapid.IntRange(-30, 8).Draw(t, "exp"))
	rule = clip.Norm{C: c}
	switch rapid.IntRange(0, 2).Draw(t, "by") {
	case 1:
		rule = clip.Value{C: c}
	case 2:
		rule = clip.PerLayer{C: c, Layers: m.Facts().Layers}
	}
	rows = randomRows(rnd, rapid.IntRange(2, 40).Draw(t, "n"), dim)
	for i := range rows {
		rows[i].y = float32(rnd.IntN(m.Outputs()))
		for j := range rows[i].x {
			if rnd.IntN(3) == 0 {
				rows[i].x[j] = 0
			}
		}
	}
	return m, w, rule, rows
}

// No row of a network moves the sum by more than the clip norm, in exact arithmetic: no slack for rounding is
// needed. With gradient clipping a row beyond the norm uses up nearly all of it.
func TestNetworkRowIsWithinTheClipNorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w, rule, rows := drawNetwork(t)
		tab := table(rows[:1], m.Outputs(), rapid.Bool().Draw(t, "sparse"))
		unit, counts := netSum(t, m, tab, w, rule, 60000, 1)
		norm := sizeOf(counts, unit, 2)
		if norm.Cmp(big.NewFloat(rule.Bound())) > 0 {
			t.Fatalf("a row's part has norm %v, the bound is %v", norm, rule.Bound())
		}
		var ws model.Workspace
		size := make([]float64, 1)
		m.Eval(w, data.View{Block: tab.Blocks[0], To: 1}, &ws).GradNorm(size, 2)
		bare := m.Name() == "mlp" && m.(model.Staged).Stages(w)[0].B == nil // small inputs keep fewer digits
		if _, own := rule.(clip.Norm); own && !bare && size[0] > rule.Bound() && size[0] < 1e100 && norm.Cmp(big.NewFloat(rule.Bound()*(1-1e-3))) < 0 {
			t.Fatalf("a row beyond the bound has norm %v, the bound is %v", norm, rule.Bound())
		}
	})
}

// Workers share small batches of networks and of models with many parameters, and the sums are those of one worker.
func TestSmallBatches(t *testing.T) {
	const dim = 72
	rnd := rand.New(rand.NewPCG(8, 8))
	rows := randomRows(rnd, 400, dim)
	for i := range rows {
		rows[i].y = float32(i % 10)
	}
	tab := table(rows, 10, false)
	var list []int32
	for i := 0; i < len(rows); i += 1 + rnd.IntN(3) {
		list = append(list, int32(i))
	}
	for _, m := range []model.Model{
		newModel(t, "mlp", model.Options{Dim: dim, Classes: 10, NormBound: 1, Config: model.MLP{Layers: []string{"60 relu", "20 tanh"}}}),
		newModel(t, "cnn", model.Options{Dim: dim, Shape: []int{6, 6, 2}, Classes: 10, NormBound: 1, Config: model.CNN{Layers: []string{"conv 8 3 pad 1", "max 2", "40"}}}),
		newModel(t, "cnn", model.Options{Dim: dim, Shape: []int{6, 6, 2}, Classes: 10, NormBound: 1, Config: model.CNN{Layers: []string{"conv 8 3 pad 1", "40"}, Compute: "float64"}}),
		newModel(t, "softmax", model.Options{Dim: dim, Classes: 10, NormBound: 1}),
	} {
		w := make([]float64, m.Dim())
		for j := range w {
			w[j] = rnd.NormFloat64() / 4
		}
		var want []int64
		for _, workers := range []int{1, 2, 3, 7} {
			var s Local
			s.open(tab, m, workers)
			if split := splitOf(tab, m, s.network); s.network && split > len(list) || s.split != split {
				t.Errorf("%s: batches are shared from %d rows on", m.Name(), s.split)
			}
			s.split = parallelLeast
			_, got, err := s.sum(w, clip.Norm{C: 0.3}, oracle.Public{Rows: 400}, list, false)
			if err != nil {
				t.Fatal(err)
			}
			if s.users != workers {
				t.Errorf("%s: %d of %d workers share a batch of %d rows", m.Name(), s.users, workers, len(list))
			}
			if s.Close(); workers == 1 {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d workers: another sum", m.Name(), workers)
			}
		}
	}
}

// newModel is the model of that name.
func newModel(t *testing.T, name string, o model.Options) model.Model {
	m, err := model.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Sums over neighbors differ by at most the sensitivity, and do not depend on order, form or workers.
func TestNetworkNeighbors(t *testing.T) {
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		m, w, rule, rows := drawNetwork(t)
		var grid float64
		rounded := func(rows []row, workers int) []int64 {
			unit, counts := netSum(t, m, table(rows, m.Outputs(), rapid.Bool().Draw(t, "sparse")), w, rule, 40, workers)
			grid = gridOf(unit, rule.Bound(), m.Dim(), 2)
			counts = slices.Clone(counts)
			mech.RoundShift(counts, shiftOf(unit, grid))
			return counts
		}
		check := func(adj privacy.Adjacency, a, b []int64) {
			within(t, rule, adj, grid, a, b)
		}
		full := rounded(rows, 1)
		other := slices.Clone(rows)
		slices.Reverse(other)
		if got := rounded(other, 2); !slices.Equal(got, full) {
			t.Fatal("the sum depends on the order of the rows or on the workers")
		}
		check(privacy.AddRemove, full, rounded(rows[1:], 1))
		other = slices.Clone(rows)
		other[0] = row{other[1].x, float32(int(other[0].y+1) % m.Outputs())}
		check(privacy.ReplaceOne, full, rounded(other, 1))
	})
}

// The sum is that of rows clipped one by one.
func TestNetworkSumEqualsMicroBatch(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(3, 1))
	rows := randomRows(rnd, 700, 9)
	tab := table(rows, 2, false)
	m := network(t, 9, 2, "20 relu", "7 tanh")
	w := oracle.Public{Dim: m.Dim(), Initial: spans(m)}.Start()
	for _, c := range []float64{0.1, 100} {
		want := modeltest.MicroBatch(m, w, []data.View{{Block: tab.Blocks[0], To: tab.Blocks[0].N}}, c, 2)
		unit, counts := netSum(t, m, tab, w, clip.Norm{C: c}, 700, 1)
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

// A batch of any size is a sum over tiles: the result is that of one tile, to the bit, and the memory is that of a
// small batch.
func TestNetworkMicroBatches(t *testing.T) {
	race.Skip(t) // the race detector empties the pools that products of matrices live on
	rnd := rand.New(rand.NewPCG(3, 2))
	tab := table(randomRows(rnd, 4096, 20), 2, false)
	m := network(t, 20, 2, "33 relu", "9 tanh")
	w := oracle.Public{Dim: m.Dim(), Initial: spans(m)}.Start()
	rows := make([]int32, 4096)
	for i := range rows {
		rows[i] = int32(i)
	}
	var s, one Local
	s.open(tab, m, 1)
	defer s.Close()
	one.open(tab, m, 1)
	defer one.Close()
	one.tile = 1024 // rows of a block: the sum of more leaves float64
	facts, counts := oracle.Public{Rows: 60000}, make([]int64, m.Dim())
	pass := func(s *Local, rows []int32) {
		if _, err := s.clipped(w, clip.Norm{C: 0.1}, facts, rows, false); err != nil {
			t.Fatal(err)
		}
		s.Take(counts, 0)
	}
	pass(&s, rows[:s.tile])
	least := math.Inf(1) // what a pass allocates, it allocates each time; what else is counted is the runtime's, for its threads
	for range 10 {
		least = min(least, testing.AllocsPerRun(1, func() { pass(&s, rows) }))
	}
	if least > 0 {
		t.Errorf("a batch of %d rows allocates %v times after one of %d", len(rows), least, s.tile)
	}
	small := slices.Clone(counts)
	pass(&one, rows)
	if !slices.Equal(small, counts) {
		t.Errorf("tiles of %d rows and of %d give different sums", s.tile, one.tile)
	}
}

// Full blocks of the same row, all pulling one way, add up exactly.
func TestNetworkSumIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	one := randomRows(rnd, 1, 5)
	m := network(t, 5, 2, "8 relu")
	w := oracle.Public{Dim: m.Dim(), Initial: spans(m)}.Start()
	_, counts := netSum(t, m, table(one, 2, false), w, clip.Norm{C: 1e-3}, 5000, 1)
	counts = slices.Clone(counts)
	_, many := netSum(t, m, table(slices.Repeat(one, 2500), 2, false), w, clip.Norm{C: 1e-3}, 5000, 2)
	for j, c := range counts {
		if many[j] != 2500*c {
			t.Fatalf("coordinate %d: %d, 2,500 times a row's is %d", j, many[j], 2500*c)
		}
	}
}

func spans(m model.Model) []oracle.Span {
	var out []oracle.Span
	for _, s := range m.(model.Starter).Start() {
		out = append(out, oracle.Span(s))
	}
	return out
}

// Errors below the normal numbers, beside activations that make up for it, are no way around the clip norm: figures
// there round by as much as they are.
func TestNetworkTinyErrors(t *testing.T) {
	m := network(t, 1, 0, "1 linear", "64 linear")
	w := make([]float64, m.Dim())
	w[0] = 0x1p1020 // a_1, where x = 1; a_2 = 0
	last := w[2+2*64:]
	for i := range last {
		last[i] = 0x1.8p-1014
	}
	last[64] = 0x1p-60 // the residual
	for _, rule := range []clip.Rule{clip.Norm{C: 0x1.1p-52}, clip.Norm{C: 0x1.1p-50, P: 1}, clip.Value{C: 0x1.9p-51}} {
		unit, counts := netSum(t, m, table([]row{{[]float32{1}, 0}}, 0, false), w, rule, 40, 1)
		norm := 0.0
		for _, c := range counts {
			v := math.Abs(float64(c) * unit)
			if rule.Norm() == 1 {
				norm += v
			} else {
				norm = math.Hypot(norm, v)
			}
		}
		if norm > rule.Bound() {
			t.Errorf("%T: a row's part has norm %v, the bound is %v", rule, norm, rule.Bound())
		}
	}
}

// With per-layer clipping the sum is that of rows whose layers are clipped one by one, to C/√L each, and a rule for other
// layers than the model's is refused before anything is charged.
func TestPerLayerSumEqualsBruteForce(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(5, 1))
	rows := randomRows(rnd, 300, 9)
	tab := table(rows, 2, false)
	m := network(t, 9, 2, "20 relu", "7 tanh")
	w := oracle.Public{Dim: m.Dim(), Initial: spans(m)}.Start()
	var ends []int // of the layers' parameters
	for i, s := range spans(m) {
		if ends = append(ends, s.Count); i > 0 {
			ends[i] += ends[i-1]
		}
	}
	ends = []int{ends[1], ends[3], ends[5]} // weights and biases are a layer
	for _, c := range []float64{0.1, 1, 100} {
		want := make([]float64, m.Dim())
		var ws model.Workspace
		for i := range rows {
			g := make([]float64, m.Dim())
			m.Eval(w, data.View{Block: tab.Blocks[0], From: i, To: i + 1}, &ws).AddGrad(g, []float64{1}, 0)
			from := 0
			for _, to := range ends {
				norm := 0.0
				for _, v := range g[from:to] {
					norm = math.Hypot(norm, v)
				}
				for j := from; j < to; j++ {
					want[j] += g[j] * math.Min(1, c/math.Sqrt(3)/norm)
				}
				from = to
			}
		}
		unit, counts := netSum(t, m, tab, w, clip.PerLayer{C: c, Layers: 3}, 300, 2)
		far, size := 0.0, 0.0
		for j, v := range counts {
			d := float64(v)*unit - want[j]
			far, size = far+d*d, size+want[j]*want[j]
		}
		if far = math.Sqrt(far / size); far > 1e-5*max(1, c) || size == 0 {
			t.Errorf("clip norm %v: the sum is off by %v of itself", c, far)
		}
	}
	c := config(t, tab, privacy.AddRemove, 300)
	meter := c.Meter.(*free)
	c.Model, c.Facts.Dim = m, m.Dim()
	o := openOracle(t, c)
	for layers, ok := range map[int]bool{0: false, 2: false, 3: true} {
		_, err := o.Batch(t.Context(), sample.Full{}, oracle.Grad{Clip: clip.PerLayer{C: 1, Layers: layers}, Noise: mech.Gaussian{Sigma: 1}})
		if (err == nil) != ok || ok != (meter.charges == 1) {
			t.Errorf("a rule for %d layers of a model with three: %v, %d charges", layers, err, meter.charges)
		}
		meter.charges = 0
	}
}

// A search along a line sums what the rows' losses fall by, also where margins are not linear in w: the same counts as row by row.
func TestNetworkDecreases(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(6, 1))
	rows := randomRows(rnd, 700, 9)
	tab := table(rows, 2, false)
	m := network(t, 9, 2, "20 relu", "7 tanh")
	line := oracle.Line{From: oracle.Public{Dim: m.Dim(), Initial: spans(m)}.Start(), Along: make([]float64, m.Dim())}
	for j := range line.Along {
		line.Along[j] = rnd.NormFloat64()
	}
	steps := []float64{1, 0.1, 0.01, -0.1}
	const bound = 0.3
	unit := fallUnit(bound)
	want := make([]int64, len(steps))
	var ws model.Workspace
	for i := range rows {
		v, loss := data.View{Block: tab.Blocks[i/data.BlockRows], From: i % data.BlockRows, To: i%data.BlockRows + 1}, []float64{0}
		m.Eval(line.From, v, &ws).Loss(loss)
		before := loss[0]
		for k, eta := range steps {
			w := slices.Clone(line.From)
			for j, a := range line.Along {
				w[j] -= eta * a
			}
			m.Eval(w, v, &ws).Loss(loss)
			want[k] += clipped(before-loss[0], 1/unit, int64(bound/unit))
		}
	}
	var s Local
	s.open(tab, m, 2)
	defer s.Close()
	for k, sum := range s.decrease(line, steps, bound, nil, true, false) {
		if sum.count != want[k] || want[k] == 0 {
			t.Errorf("step %v: %d units, row by row %d", steps[k], sum.count, want[k])
		}
	}
}
