package gossip

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// graphs are one of each form, of n nodes.
func graphs(n int) map[string]Graph {
	return map[string]Graph{"ring": Ring(n), "path": Path(n), "complete": Complete(n), "grid": Grid(n), "random": Random(n, 0.6, 3)}
}

// TestManyNodes: the number of nodes in a file takes no memory.
func TestManyNodes(t *testing.T) {
	if err := (Graph{N: math.MaxInt, Edges: []Edge{{0, 1}}}).Validate(); err == nil || !strings.Contains(err.Error(), "no path from node 0 to node 2;") {
		t.Error(err)
	}
}

func TestGraphs(t *testing.T) {
	for n := 2; n < 30; n++ {
		for name, g := range graphs(n) {
			if name != "random" {
				if err := g.Validate(); err != nil {
					t.Errorf("%s of %d: %v", name, n, err)
				}
			}
			if !slices.IsSortedFunc(g.Edges, func(a, b Edge) int { return slices.Compare(a[:], b[:]) }) || len(slices.Compact(slices.Clone(g.Edges))) != len(g.Edges) {
				t.Errorf("%s of %d: edges %v", name, n, g.Edges)
			}
		}
	}
	for name, want := range map[string]int{"ring": 9, "path": 8, "complete": 36, "grid": 12} {
		if got := len(graphs(9)[name].Edges); got != want {
			t.Errorf("%s of 9: %d edges, want %d", name, got, want)
		}
	}
	if reflect.DeepEqual(Random(20, 0.5, 1), Random(20, 0.5, 2)) || !reflect.DeepEqual(Random(20, 0.5, 1), Random(20, 0.5, 1)) {
		t.Error("a random graph is not a function of its seed")
	}
	// 4,950 coins of 0.3: beyond six standard deviations once in 5e8.
	if n := float64(len(Random(100, 0.3, 4).Edges)); math.Abs(n-1485) > 6*math.Sqrt(4950*0.3*0.7) {
		t.Errorf("%v edges of 4950 at probability 0.3", n)
	}
	g, err := ReadGraph(strings.NewReader("# a triangle\n2 1\n\n0 1 # twice\n1 0\n0 2\n"), 3)
	if err != nil || !reflect.DeepEqual(g, Complete(3)) {
		t.Errorf("found %v, %v", g, err)
	}
	for text, want := range map[string]string{"0 3": "line 1: found \"3\"; write a node number, 0 to 2", "\n0": "line 2: found 1 words", "1 1": "twice", "a 1": "node number"} {
		if _, err := ReadGraph(strings.NewReader(text), 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := (Graph{N: 4, Edges: []Edge{{0, 1}, {2, 3}}}).Validate(); err == nil {
		t.Error("a graph in two parts passes")
	}
}

// draw a schedule.
func schedules(t *rapid.T) *Schedule {
	n := rapid.IntRange(2, 12).Draw(t, "nodes")
	g := graphs(n)[rapid.SampledFrom([]string{"ring", "path", "complete", "grid"}).Draw(t, "graph")]
	s := &Schedule{Graph: g, Kind: rapid.SampledFrom([]string{Matching, Edges, All}).Draw(t, "kind"), Rounds: rapid.IntRange(1, 30).Draw(t, "rounds"), Seed: rapid.Uint64().Draw(t, "seed")}
	switch s.Kind {
	case Matching:
		s.Count = rapid.IntRange(1, min(n/2, len(g.Edges))).Draw(t, "count")
	case Edges:
		s.Count = rapid.IntRange(1, len(g.Edges)).Draw(t, "count")
	}
	return s
}

func TestSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedules(t)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		activations := make([]int, s.Graph.N)
		seen := map[string]int{}
		for i := range activations {
			for act := range s.Activations(i) {
				activations[i]++
				for k, p := range act.Peers {
					seen[fmt.Sprint(act.T, min(i, p), max(i, p), act.Weight[k])]++
				}
			}
		}
		if !reflect.DeepEqual(activations, s.Counts()) {
			t.Fatalf("iterated %v, counted %v", activations, s.Counts())
		}
		rounds := 0
		for round, edges := range s.All() {
			if round != rounds {
				t.Fatalf("round %d is called %d", rounds, round)
			}
			rounds++
			if s.Kind == Edges && len(edges) != s.Count || s.Kind == Matching && (len(edges) > s.Count || len(edges) == 0) {
				t.Fatalf("%d edges", len(edges))
			}
			if s.Kind == Matching && len(edges) < s.Count { // none is left that meets no other
				busy := map[int]bool{}
				for _, e := range edges {
					busy[e[0]], busy[e[1]] = true, true
				}
				for _, e := range s.Graph.Edges {
					if !busy[e[0]] && !busy[e[1]] {
						t.Fatalf("%v is left out of %v", e, edges)
					}
				}
			}
			for k, w := range Weights(edges) {
				if s.Kind == Matching && w != 0.5 {
					t.Fatalf("weight %v in a matching", w)
				}
				key := fmt.Sprint(round, edges[k][0], edges[k][1], w)
				if seen[key] != 2 {
					t.Fatalf("%s is known to %d nodes", key, seen[key])
				}
				delete(seen, key)
			}
		}
		if rounds != s.Rounds || len(seen) != 0 {
			t.Fatalf("%d rounds, left over %v", rounds, seen)
		}
	})
}

// The schedule of a seed is part of what owners agree on: it never changes.
func TestScheduleGolden(t *testing.T) {
	s := &Schedule{Graph: Complete(20), Kind: Matching, Count: 2, Rounds: 3, Seed: 7}
	var got []string
	for _, edges := range s.All() {
		got = append(got, fmt.Sprint(edges))
	}
	want := []string{"[[2 7] [4 13]]", "[[6 19] [12 15]]", "[[1 17] [0 13]]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// On a complete graph each edge is drawn equally often: chi-square of 190 cells and 19,000
// rounds, beyond the limit once in 1e8.
func TestScheduleIsFair(t *testing.T) {
	s := &Schedule{Graph: Complete(20), Kind: Matching, Count: 3, Rounds: 19000, Seed: 1}
	count := map[Edge]float64{}
	for _, edges := range s.All() {
		if len(edges) != 3 {
			t.Fatalf("%d edges", len(edges))
		}
		for _, e := range edges {
			count[e]++
		}
	}
	chi, expected := 0.0, 3*19000/190.
	for _, e := range s.Graph.Edges {
		chi += (count[e] - expected) * (count[e] - expected) / expected
	}
	// Edges of one round are not independent, which makes χ² smaller.
	if chi > 189+2*math.Sqrt(18.4*189)+2*18.4 {
		t.Errorf("χ² = %v of 189 degrees of freedom", chi)
	}
}

func TestScheduleErrors(t *testing.T) {
	for want, s := range map[string]*Schedule{
		"of 1 nodes":          {Graph: Path(1), Kind: All, Rounds: 1},
		"of 0 rounds":         {Graph: Path(2), Kind: All},
		"beside \"all\"":      {Graph: Path(2), Kind: All, Rounds: 1, Count: 1},
		"schedule \"some\"":   {Graph: Path(2), Kind: "some", Rounds: 1},
		"found 2 edges":       {Graph: Path(2), Kind: Edges, Rounds: 1, Count: 2},
		"of which no two":     {Graph: Complete(3), Kind: Matching, Rounds: 1, Count: 2},
		"the graph's":         {Graph: Path(2), Kind: All, Rounds: 1, Epoch: graphEpoch},
		"the lower one first": {Graph: Graph{N: 2, Edges: []Edge{{1, 0}}}, Kind: All, Rounds: 1},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v", want, err)
		}
	}
}

// Whatever exchanges fail, the sum over all nodes is that of what they put in.
func TestMassIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedules(t)
		const dim = 3
		local := NewLocal(s.Graph)
		odds := rapid.Uint64Range(0, 10).Draw(t, "odds")
		local.Fails = func(round int, e Edge) bool {
			return newDraw(s.Seed, uint64(round), uint64(e[0]*100+e[1])).Uint64()%10 < odds
		}
		z, in := make([][]float64, s.Graph.N), make([][]float64, s.Graph.N)
		errs := make(chan error, s.Graph.N)
		for i := range z {
			z[i], in[i] = make([]float64, dim), make([]float64, dim)
			go func() {
				src := noise.NewSeeded(s.Seed, "z", uint64(i))
				var err error
				for act := range s.Activations(i) {
					for j := range dim {
						v := float64(act.T+1) * (src.Float64() - 0.5)
						z[i][j] += v
						in[i][j] += v
					}
					if err = local.Mix(t.Context(), i, act, z[i]); err != nil {
						break
					}
				}
				errs <- err
			}()
		}
		for range z {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		for j := range dim {
			mean, want := Mean(z)[j], Mean(in)[j]
			if math.Abs(mean-want) > 1e-9 {
				t.Fatalf("the mean is %v, put in was %v", mean, want)
			}
		}
	})
}

// The mixer does what the matrix says.
func TestMixIsMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedules(t)
		s.Rounds = 1
		z, want := make([]float64, s.Graph.N), make([]float64, s.Graph.N)
		for i := range z {
			z[i] = float64(i*i) - 3
		}
		for _, edges := range s.All() {
			w := Matrix(s.Graph.N, edges)
			for i := range z {
				for j := range z {
					want[i] += w.At(i, j) * z[j]
				}
			}
		}
		local := NewLocal(s.Graph)
		done := make(chan error, len(z))
		for i := range z {
			go func() {
				var err error
				for act := range s.Activations(i) {
					v := []float64{z[i]}
					err = errors.Join(err, local.Mix(t.Context(), i, act, v))
					z[i] = v[0]
				}
				done <- err
			}()
		}
		for range z {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		for i := range z {
			if math.Abs(z[i]-want[i]) > 1e-10 {
				t.Fatalf("node %d has %v, the matrix says %v", i, z[i], want[i])
			}
		}
	})
}

// An owner that fails stops all.
func TestTrainStops(t *testing.T) {
	s := &Schedule{Graph: Ring(5), Kind: All, Rounds: 50}
	owners := newOwners(t, 5, 40, 3, "logistic")
	owners.meters[2].left = 7
	_, err := owners.train(t, s, DDA{Rows: Rows{Noise: 1}}, method.Objective{Reg: reg.L2{Lambda: 0.1}}, 1)
	if !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("found %v", err)
	}
}

// A counter pays for that many activations and keeps what it paid for.
type counter struct {
	left int
	paid []privacy.Event
}

func (c *counter) Adjacency() privacy.Adjacency { return privacy.AddRemove }
func (c *counter) Charge(e privacy.Event) error {
	if c.left--; c.left < 0 {
		return privacy.ErrExhausted
	}
	c.paid = append(c.paid, e)
	return nil
}

type silent struct{}

func (silent) Charge(privacy.Event) error { return nil }
func (silent) Release([][]float64) error  { return nil }

// owners have a table each, drawn with one truth but another mean.
type owners struct {
	tables []*data.Table
	facts  oracle.Public
	model  model.Model
	meters []*counter
}

func newOwners(t testing.TB, n, rows, dim int, name string) *owners {
	const unit = 0x1p-20
	m, err := model.New(name, model.Options{Dim: dim, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	o := &owners{model: m, facts: oracle.Public{Dim: dim, Rows: rows, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1,
		Lipschitz: oracle.Bound(m.Facts().Lipschitz), Smooth: oracle.Bound(m.Facts().Smooth)}}
	for i := range n {
		src := noise.NewSeeded(1, "table", uint64(i))
		b := &data.Block{N: rows, Dim: dim}
		for range rows {
			square, z := 0.0, 0.0
			for j := range dim {
				v := (2*src.Float64() - 1 + 0.3*math.Sin(float64(i+j))) / 2 / math.Sqrt(float64(dim))
				v = math.Trunc(v/unit) * unit
				b.X = append(b.X, float32(v))
				square += v * v
				z += 8 * v * float64(j%3-1)
			}
			b.Norm = append(b.Norm, math.Nextafter32(float32(math.Sqrt(square)), 2))
			y := float32(0)
			if z+src.Float64()-0.5 > 0 {
				y = 1
			}
			b.Y = append(b.Y, y)
		}
		o.tables = append(o.tables, &data.Table{Dim: dim, Classes: 2, NormBound: 1, Unit: unit, Labeled: true, Blocks: []*data.Block{b}})
		o.meters = append(o.meters, &counter{left: math.MaxInt})
	}
	return o
}

func (o *owners) train(t *testing.T, s *Schedule, m Method, obj method.Objective, seed uint64) ([][]float64, error) {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	accountant, _ := account.ByName("best")
	var methods []Method
	var oracles []oracle.Oracle
	for i, activations := range s.Counts() {
		off := reflect.ValueOf(m).FieldByName("Noise").Float() == 0
		fitted, err := m.Configure(o.facts, obj, s, activations, method.Terms{Off: off, Accountant: accountant, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}})
		if err != nil {
			t.Fatal(err)
		}
		asked, err := private.New(private.Config{Table: o.tables[i], Model: o.model, Facts: o.facts, Meter: o.meters[i], Journal: silent{}, Streams: noise.SeededStreams(seed + uint64(i)<<32)})
		if err != nil {
			t.Fatal(err)
		}
		defer asked.Close()
		methods, oracles = append(methods, fitted), append(oracles, asked)
	}
	return Train(t.Context(), s, NewLocal(s.Graph), methods, oracles, obj, nil)
}

// Each owner pays for its activations in the public schedule, one sampled release each: exactly its plan.
func TestOwnersPayTheirPlan(t *testing.T) {
	s := &Schedule{Graph: Path(5), Kind: Matching, Count: 1, Rounds: 60, Seed: 2}
	activations := s.Counts()
	tried := map[reflect.Type]bool{}
	for _, c := range []struct {
		m Method
		r reg.Regularizer
	}{
		{DDA{Rows: Rows{Batch: 8, Noise: 1}}, reg.L2{Lambda: 0.1}}, {DDA{Rows: Rows{Noise: 3}, Refresh: true}, reg.L1{Lambda: 0.01}}, {DDA{Rows: Rows{Noise: 3}, Ball: 2}, nil},
		{DGD{Rows: Rows{Batch: 8, Noise: 1}}, reg.L2{Lambda: 0.1}}, {LaplaceDGD{Noise: 2}, nil},
	} {
		tried[reflect.TypeOf(c.m)] = true
		owners := newOwners(t, 5, 40, 3, "svm")
		nodes, err := owners.train(t, s, c.m, method.Objective{Reg: c.r}, 1)
		if err != nil {
			t.Fatalf("%T%+v does not train five owners: %v", c.m, c.m, err)
		}
		again, err := newOwners(t, 5, 40, 3, "svm").train(t, s, c.m, method.Objective{Reg: c.r}, 1)
		if err != nil || !reflect.DeepEqual(nodes, again) {
			t.Errorf("%T%+v: a second run of the same seed differs (%v); parameters follow from releases and messages alone, "+
				"without random numbers, time or maps' order", c.m, c.m, err)
		}
		for i, meter := range owners.meters {
			_, err := c.m.Configure(owners.facts, method.Objective{Reg: c.r}, s, activations[i], method.Terms{})
			if _, pure := c.m.(LaplaceDGD); err == nil && !pure {
				t.Errorf("%T%+v: Configure takes terms without a δ; refuse them, as privacy.delta, if the noise is Gaussian", c.m,
					c.m)
			}
			fitted, err := c.m.Configure(owners.facts, method.Objective{Reg: c.r}, s, activations[i], method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := fitted.Plan(owners.facts, activations[i])
			if err != nil {
				t.Fatal(err)
			}
			rdp, _ := account.ByName("rdp")
			if _, ok := c.m.(LaplaceDGD); ok {
				rdp, _ = account.ByName("pure")
			}
			pays, err := account.NewMeter(plan, rdp, privacy.Budget{Epsilon: 1e5, Delta: 1e-5, Adjacency: privacy.AddRemove})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range meter.paid {
				if err := pays.Charge(e); err != nil {
					t.Fatalf("%T%+v: owner %d asks for what its Plan does not have next: %v; Plan lists the event of "+
						"every activation", c.m, c.m, i, err)
				}
			}
			if len(meter.paid) != activations[i] || pays.Charge(meter.paid[0]) == nil {
				t.Errorf("%T%+v: owner %d was charged %d times in %d activations, and its Plan may have more; Plan and Run have "+
					"one query for each activation", c.m, c.m, i, len(meter.paid), activations[i])
			}
		}
		for _, x := range nodes {
			for _, v := range x {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%T%+v ends with parameters %v; each must be finite", c.m, c.m, x)
				}
			}
			if d, ok := c.m.(DDA); ok && d.Ball > 0 && math.Hypot(math.Hypot(x[0], x[1]), x[2]) > d.Ball*(1+1e-9) {
				t.Errorf("%v lies outside the ball", x)
			}
		}
	}
	for _, e := range Registry() {
		if !tried[reflect.TypeOf(e.Method)] {
			t.Errorf("network method %s has no case; add one to TestOwnersPayTheirPlan, gossip/gossip_test.go", e.Name)
		}
	}
}

// The costs of Laplace noise on geometric steps add up to the budget.
func TestLaplaceBudget(t *testing.T) {
	owners := newOwners(t, 2, 40, 3, "svm")
	s := &Schedule{Graph: Path(2), Kind: All, Rounds: 300}
	b := privacy.Budget{Epsilon: 0.7, Adjacency: privacy.AddRemove}
	m, err := LaplaceDGD{}.Configure(owners.facts, method.Objective{}, s, 300, method.Terms{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := m.Plan(owners.facts, 300)
	if err != nil {
		t.Fatal(err)
	}
	loss, err := account.Pure{}.Loss(plan, privacy.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	if e := loss.Epsilon(0); e > 0.7 || e < 0.7*(1-1e-9) {
		t.Errorf("the plan costs %v of 0.7", e)
	}
}

// The baselines come near the optimum without noise: gradient descent by its slow steps, with geometric
// ones as far as these lead.
func TestBaselines(t *testing.T) {
	race.Skip(t)
	owners := newOwners(t, 6, 20, 4, "logistic")
	r := reg.L2{Lambda: 0.1}
	least := owners.least(r)
	for _, c := range []struct {
		m   Method
		gap float64
	}{{DGD{}, 1e-3}, {LaplaceDGD{Rate: 2, Decay: 0.98}, 1e-2}} {
		nodes, err := owners.train(t, &Schedule{Graph: Complete(6), Kind: All, Rounds: 500}, c.m, method.Objective{Reg: r}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if gap := owners.value(Mean(nodes), r) - least; !(gap < c.gap) {
			t.Errorf("%T: %.3g above the optimum", c.m, gap)
		}
	}
}

// At (1, 1e-5) for each owner the model is much better than none.
func TestPrivate(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	owners := newOwners(t, 4, 4000, 4, "logistic")
	r := reg.L2{Lambda: 0.01}
	s := &Schedule{Graph: Ring(4), Kind: Matching, Count: 1, Rounds: 200, Seed: 5}
	accountant, _ := account.ByName("gdp")
	m, err := DDA{}.Configure(owners.facts, method.Objective{Reg: r}, s, slices.Max(s.Counts()), method.Terms{Accountant: accountant, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := owners.train(t, s, m, method.Objective{Reg: r}, 1)
	if err != nil {
		t.Fatal(err)
	}
	least := owners.least(r)
	if gap := owners.value(Mean(nodes), r) - least; gap > 0.2*(math.Ln2-least) {
		t.Errorf("%.3g above the optimum, %.3g, noise %v", gap, least, m.NoiseMultiplier())
	}
}

// refusals: what a method or a mistake in its fields is told.
func TestRefusals(t *testing.T) {
	owners := newOwners(t, 4, 40, 4, "logistic")
	s := &Schedule{Graph: Ring(4), Kind: All, Rounds: 10}
	l2 := method.Objective{Reg: reg.L2{Lambda: 0.01}}
	for want, c := range map[string]struct {
		m   Method
		obj method.Objective
	}{
		"weights: found linear": {DDA{Weights: Linear}, method.Objective{}}, `weights: found "x"`: {DDA{Weights: "x"}, l2},
		"gamma: found -1": {DDA{Gamma: -1}, l2}, "ball: found it beside": {DDA{Ball: 1}, method.Objective{Reg: reg.L1{Lambda: 1}}},
		"nonconvex": {DDA{}, method.Objective{Reg: reg.NonConvex{Lambda: 1}}}, "batch: found 41": {DDA{Rows: Rows{Batch: 41}}, l2},
		"rate: found -1": {DGD{Rate: -1}, l2}, "decay: found 1": {LaplaceDGD{Decay: 1}, l2}, "noise_decay: found 0.1": {LaplaceDGD{NoiseDecay: 0.1}, l2},
	} {
		_, err := c.m.Configure(owners.facts, c.obj, s, 10, method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v", want, err)
		}
	}
	if _, err := (DDA{}).Configure(owners.facts, l2, s, 0, method.Terms{Off: true}); err == nil || !strings.HasPrefix(err.Error(), "rounds: ") {
		t.Errorf("an owner without an activation: %v", err)
	}
	if _, err := Lookup("nothing"); err == nil || !strings.Contains(err.Error(), "dda, dgd, laplace-dgd") {
		t.Errorf("found %v", err)
	}
}

// value is F at w.
func (o *owners) value(w []float64, r reg.Regularizer) float64 {
	var ws model.Workspace
	sum := 0.0
	for _, t := range o.tables {
		loss := make([]float64, t.Blocks[0].N)
		o.model.Eval(w, data.View{Block: t.Blocks[0], To: len(loss)}, &ws).Loss(loss)
		for _, l := range loss {
			sum += l / float64(len(loss)) / float64(len(o.tables))
		}
	}
	return sum + r.Value(w)
}

// least is the minimum of F, by accelerated gradient descent on all rows.
func (o *owners) least(r reg.Regularizer) float64 {
	var ws model.Workspace
	dim := o.facts.Dim
	w, v, g := make([]float64, dim), make([]float64, dim), make([]float64, dim)
	best := math.Inf(1)
	for t := range 20000 {
		clear(g)
		for _, table := range o.tables {
			n := table.Blocks[0].N
			c := make([]float64, n)
			for i := range c {
				c[i] = 1 / float64(n) / float64(len(o.tables))
			}
			o.model.Eval(v, data.View{Block: table.Blocks[0], To: n}, &ws).AddGrad(g, c, 0)
		}
		r.AddGrad(g, v)
		for j := range w {
			next := v[j] - g[j]
			v[j] = next + float64(t)/float64(t+3)*(next-w[j])
			w[j] = next
		}
		if t%500 == 499 {
			best = min(best, o.value(w, r))
		}
	}
	return best
}

// Without noise, dual averaging reaches the optimum of all rows together on every graph, for
// random matchings, random edges and all edges.
func TestReachesTheOptimum(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	owners := newOwners(t, 6, 20, 4, "logistic")
	r := reg.L2{Lambda: 0.1}
	least := owners.least(r)
	for name, g := range graphs(6) {
		for _, s := range []*Schedule{
			{Graph: g, Kind: All, Rounds: 6000}, {Graph: g, Kind: Matching, Count: 2, Rounds: 20000}, {Graph: g, Kind: Edges, Count: 3, Rounds: 20000},
		} {
			for _, refresh := range []bool{false, true} {
				nodes, err := owners.train(t, s, DDA{Refresh: refresh}, method.Objective{Reg: r}, 1)
				if err != nil {
					t.Fatal(err)
				}
				if gap := owners.value(Mean(nodes), r) - least; !(gap < 1e-6 && gap > -1e-9) {
					t.Errorf("%s, %s, refresh %v: %.3g above the optimum", name, s.Kind, refresh, gap)
				}
			}
		}
	}
}

// A program of another module adds a method before the registry is read, under a name that is free.
func TestRegister(t *testing.T) {
	if e, err := Lookup("registered"); err != nil || e.About != "from outside" {
		t.Errorf("found %+v, %v", e, err)
	}
	if _, err := Lookup("dances"); err == nil || !strings.Contains(err.Error(), "choose dda, dgd, laplace-dgd, registered") {
		t.Error(err)
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "after the registry was read") {
			t.Errorf("found %v", r)
		}
	}()
	Register(Entry{Name: "late", Method: DGD{}})
}

func init() { Register(Entry{Name: "registered", About: "from outside", Method: DGD{}}) }
