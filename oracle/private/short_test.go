package private

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// shortRows make tables of 16-bit numbers for a drawn model.
type shortRows struct {
	m     model.Model
	dim   int
	bound float64
	unit  float64
}

type shortRow struct {
	x []float32
	y float32
}

func drawShortRows(t testing.TB, rnd *rand.Rand) *shortRows {
	t.Helper()
	p := &shortRows{dim: 1 + rnd.IntN(70), bound: math.Exp2(rnd.Float64()*16 - 8)}
	p.bound = float64(float32(p.bound))
	_, exp := math.Frexp(p.bound)
	p.unit = math.Ldexp(1, exp-20) // as schema.RowRule has it: the bound is from 2¹⁹ to 2²⁰ units
	name, classes := []string{"softmax", "logistic", "svm", "huber-svm"}[rnd.IntN(4)], 2
	if name == "softmax" {
		classes = 2 + rnd.IntN(6)
	}
	var err error
	if p.m, err = model.New(name, model.Options{Dim: p.dim, Classes: classes, NormBound: p.bound}); err != nil {
		t.Fatal(err)
	}
	return p
}

// draw is a row of any size up to the bound: of many numbers or one that counts, or of no more than a few units.
func (p *shortRows) draw(rnd *rand.Rand) shortRow {
	x, square := make([]float64, p.dim), 0.0
	small := math.Exp2(-20 * rnd.Float64() * float64(rnd.IntN(2)))
	for j := range x {
		if x[j] = rnd.NormFloat64(); rnd.IntN(p.dim) > 0 {
			x[j] *= small
		}
		square += x[j] * x[j]
	}
	size := p.bound / math.Sqrt(square) * (1 - 0x1p-30)
	if rnd.IntN(3) == 0 {
		size *= math.Exp2(-20 * rnd.Float64())
	}
	r := shortRow{y: float32(rnd.IntN(p.m.Outputs()))}
	for _, v := range x {
		r.x = append(r.x, float32(math.Trunc(v*size/p.unit)*p.unit))
	}
	return r
}

func (p *shortRows) table(rows []shortRow) *data.Table {
	t := &data.Table{Dim: p.dim, Classes: p.m.Outputs(), NormBound: p.bound, Unit: p.unit, Labeled: true}
	for some := range slices.Chunk(rows, data.BlockRows) {
		b := &data.Block{N: len(some), Dim: p.dim, Norm: make([]float32, len(some))}
		for _, r := range some {
			b.X, b.Y = append(b.X, r.x...), append(b.Y, r.y)
		}
		t.Blocks = append(t.Blocks, b)
	}
	return t.Shorten()
}

func (p *shortRows) parameters(rnd *rand.Rand) []float64 {
	return (&pictures{m: p.m, s: &schema.Schema{RowNorm: p.bound}}).parameters(rnd)
}

func (p *shortRows) rule(rnd *rand.Rand) clip.Rule { return (&pictures{m: p.m}).rule(rnd) }

func (p *shortRows) sum(t testing.TB, tab *data.Table, w []float64, rule clip.Rule, workers int) (float64, []int64) {
	t.Helper()
	var s Local
	s.open(tab, p.m, workers)
	defer s.Close()
	unit, counts, err := s.sum(w, rule, oracle.Public{Rows: 100}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return unit, counts
}

// TestShortRowIsWithinTheBound: what one record adds is, for each class, a whole number times its row of 16-bit numbers, and its
// norm, in exact arithmetic, is at most the bound of the rule.
func TestShortRowIsWithinTheBound(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(50, 1))
	worst, large := 0.0, 0
	for range 6000 {
		p := drawShortRows(t, rnd)
		w, rule, tab := p.parameters(rnd), p.rule(rnd), p.table([]shortRow{p.draw(rnd)})
		unit, counts := p.sum(t, tab, w, rule, 1)
		row := tab.Blocks[0].Shorts[:p.dim]
		square, sum := new(big.Int), new(big.Int)
		for k := 0; k < len(counts); k += p.dim {
			some, a := slices.IndexFunc(row, func(v int16) bool { return v != 0 }), int64(0)
			if some >= 0 {
				a = counts[k+some] / int64(row[some])
			}
			if max(a, -a) > kern.ShortMost {
				large++
			}
			for j, v := range row {
				got := counts[k+j]
				if got != a*int64(v) {
					t.Fatalf("%s: feature %d of class %d is %d, not %d times %d", p.m.Name(), j, k/p.dim, got, a, v)
				}
				square.Add(square, new(big.Int).Mul(big.NewInt(got), big.NewInt(got)))
				sum.Add(sum, big.NewInt(max(got, -got)))
			}
		}
		bound := new(big.Float).SetPrec(300).Quo(big.NewFloat(rule.Bound()), big.NewFloat(unit)) // unit is a power of two
		size := new(big.Float).SetPrec(300).SetInt(square)
		if size.Sqrt(size); rule.Norm() == 1 {
			size.SetInt(sum)
		}
		if size.Cmp(bound) > 0 {
			t.Fatalf("%s, %#v: a record adds %v units, the bound is %v", p.m.Name(), rule, size, bound)
		}
		part, _ := new(big.Float).Quo(size, bound).Float64()
		worst = max(worst, part)
	}
	if worst < 0.999 {
		t.Errorf("no record came near the bound, the worst was at %v of it: the test has no force", worst)
	}
	if large < 50 {
		t.Errorf("%d coefficients had more than 15 digits: the test has no force for those", large)
	}
}

// TestSensitivityOfShorts: sums over neighboring tables differ by at most the sensitivity that the noise is scaled to, of units of
// several rows, too.
func TestSensitivityOfShorts(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(50, 2))
	worst := 0.0
	for round := range 600 {
		p := drawShortRows(t, rnd)
		w, rule := p.parameters(rnd), p.rule(rnd)
		most := 1 + round%2*2 // rows of a unit
		units := make([][]shortRow, 1+rnd.IntN(40))
		unit := func() (rows []shortRow) {
			for range 1 + rnd.IntN(most) {
				rows = append(rows, p.draw(rnd))
			}
			return rows
		}
		for i := range units {
			units[i] = unit()
		}
		grid := 0.0
		rounded := func(units [][]shortRow) []int64 {
			var of []int32
			for u, rows := range units {
				for range rows {
					of = append(of, int32(u))
				}
			}
			tab := p.table(slices.Concat(units...))
			if most > 1 {
				tab.SetUnits(of)
			}
			one, counts := p.sum(t, tab, w, rule, 1+rnd.IntN(2))
			grid = gridOf(one, rule.Bound(), len(w), rule.Norm())
			mech.RoundShift(counts, shiftOf(one, grid))
			return counts
		}
		check := func(adj privacy.Adjacency, a, b []int64) {
			sens, err := sensitivity(rule, adj, grid, len(w))
			if err != nil {
				t.Fatal(err)
			}
			d := 0.0
			for j := range a {
				if x := math.Abs(float64(a[j]-b[j])) * grid; rule.Norm() == 1 {
					d += x
				} else {
					d = math.Hypot(d, x)
				}
			}
			if worst = max(worst, d/sens); d > sens {
				t.Fatalf("%s, %#v, %v: sums differ by %v, the sensitivity is %v", p.m.Name(), rule, adj, d, sens)
			}
		}
		full, i := rounded(units), rnd.IntN(len(units))
		check(privacy.AddRemove, full, rounded(slices.Delete(slices.Clone(units), i, i+1)))
		other := slices.Clone(units)
		if other[i] = unit(); rnd.IntN(2) == 0 { // the negative
			other[i] = nil
			for _, r := range units[i] {
				r.x = slices.Clone(r.x)
				for j := range r.x {
					r.x[j] = 0 - r.x[j]
				}
				other[i] = append(other[i], r)
			}
		}
		check(privacy.ReplaceOne, full, rounded(other))
	}
	if worst < 0.9 {
		t.Errorf("no pair of neighbors came near the sensitivity, the worst was at %v of it: the test has no force", worst)
	}
}

// TestShortSumIsExact: the sum is that of its rows, one at a time, whatever their order, the number of workers and how a batch
// lists them; and it is close to the sum over the same rows as float32.
func TestShortSumIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(50, 3))
	for range 12 {
		p := drawShortRows(t, rnd)
		w, rule := make([]float64, p.m.Dim()), p.rule(rnd)
		for j := range w {
			w[j] = rnd.NormFloat64() / p.bound
		}
		rows, few := make([]shortRow, 1500+rnd.IntN(1500)), make([]shortRow, 7)
		for i := range few {
			few[i] = p.draw(rnd)
		}
		want, numbers := make([]int64, len(w)), make([]float64, len(w))
		times := make([]int64, len(few))
		for i := range rows {
			k := rnd.IntN(len(few))
			rows[i] = few[k]
			times[k]++
		}
		tab := p.table(rows)
		unit, whole := p.sum(t, tab, w, rule, 1)
		for k, f := range few {
			one := p.table([]shortRow{f})
			_, counts := p.sum(t, one, w, rule, 1)
			for j, v := range counts {
				want[j] += times[k] * v
			}
			float := *one
			float.Short, float.Blocks = nil, []*data.Block{new(data.Block)}
			one.Blocks[0].Numbers(float.Blocks[0], 0, 1)
			u, counts := p.sum(t, &float, w, rule, 1)
			for j, v := range counts {
				numbers[j] += float64(times[k]*v) * u
			}
		}
		if !slices.Equal(whole, want) {
			t.Fatalf("%s: the sum is not that of its rows", p.m.Name())
		}
		list := make([]int32, len(rows))
		for i := range list {
			list[i] = int32(i)
		}
		for _, workers := range []int{1, 2} {
			var s Local
			s.open(tab, p.m, workers)
			for _, all := range []bool{true, false} {
				if _, got, err := s.sum(w, rule, oracle.Public{Rows: 100}, list, all); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s: another sum with %d workers, all rows %v, %v", p.m.Name(), workers, all, err)
				}
			}
			s.Close()
		}
		slices.Reverse(rows)
		if _, got := p.sum(t, p.table(rows), w, rule, 2); !slices.Equal(got, want) {
			t.Fatalf("%s: rows in reverse have another sum", p.m.Name())
		}
		// A hinge's slope can jump with the rounding of a margin.
		if p.m.Name() == "svm" || rule.Norm() != 2 {
			continue
		}
		miss := 0.0
		for j, v := range numbers {
			miss = math.Hypot(miss, v-float64(whole[j])*unit)
		}
		slack := rule.Bound()*math.Sqrt(float64(p.m.Outputs()))*0x1p-11 + p.m.Facts().Lipschitz*0x1p-11
		if miss > float64(len(rows))*slack {
			t.Errorf("%s, %#v: the sum is %v from that of float32, of %d records", p.m.Name(), rule, miss, len(rows))
		}
	}
}

// TestOracleOverShorts: an oracle over 16-bit numbers answers all that one over the same rows as float32 does, close to it, and
// both refuse the other's facts.
func TestOracleOverShorts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(50, 4))
	p := drawShortRows(t, rnd)
	for p.m.Name() != "logistic" || p.dim < 3 {
		p = drawShortRows(t, rnd)
	}
	rows := make([]shortRow, 300)
	for i := range rows {
		rows[i] = p.draw(rnd)
	}
	of := p.table(rows)
	float := *of
	float.Short, float.Blocks = nil, nil
	for _, b := range of.Blocks {
		c := new(data.Block)
		b.Numbers(c, 0, b.N)
		float.Blocks = append(float.Blocks, c)
	}
	facts := p.m.Facts()
	answers := func(tab *data.Table) (all []float64) {
		cfg := config(t, tab, privacy.AddRemove, len(rows))
		cfg.Model = p.m
		cfg.Facts.NormBound, cfg.Facts.Lipschitz, cfg.Facts.Smooth = facts.NormBound, oracle.Bound(facts.Lipschitz), oracle.Bound(facts.Smooth)
		cfg.Facts.Calibrated, cfg.Facts.OneMargin = true, true
		cfg.Facts.Short = tab.Short == nil
		if _, err := New(cfg); err == nil {
			t.Error("an oracle opens with facts of other rows")
		}
		if _, err := NewLocal(tab, p.m, cfg.Facts, 1); err == nil {
			t.Error("rows open with facts of other rows")
		}
		cfg.Facts.Short = tab.Short != nil
		if cfg.Facts.Centered = true; tab.Short != nil {
			if _, err := New(cfg); err == nil {
				t.Error("a center is taken from 16-bit numbers")
			}
		}
		cfg.Facts.Centered = false
		o := openOracle(t, cfg)
		w := make([]float64, p.dim)
		for j := range w {
			w[j] = math.Sin(float64(j)) / facts.NormBound
		}
		grad := oracle.Grad{Clip: clip.Norm{C: facts.Lipschitz / 2}, Noise: mech.None{}}
		raw := oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
		hess := oracle.Hess{Clip: facts.Smooth, Off: true}
		loss := oracle.Loss{Bound: 4, Noise: mech.None{}}
		look := oracle.Margins{Bound: 6, Weight: 0.5, Noise: mech.None{}}
		b, err := o.Batch(context.Background(), sample.Full{}, grad, raw, hess, loss, look)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []oracle.Grad{grad, raw} {
			g, err := b.Grad(q, w)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range g {
				all = append(all, v/facts.Lipschitz)
			}
		}
		h, err := b.Hess(hess, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range h {
			all = append(all, v/facts.Smooth)
		}
		l, err := b.Loss(loss, w)
		if err != nil {
			t.Fatal(err)
		}
		sums, err := b.Margins(look, append(slices.Clone(w), 0.25, 1, -0.5))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range sums {
			all = append(all, v/float64(len(rows)))
		}
		return append(all, l)
	}
	got, want := answers(of), answers(&float)
	for j, v := range got {
		if math.Abs(v-want[j]) > 0x1p-11 {
			t.Errorf("answer %d is %v over 16-bit numbers, %v over float32", j, v, want[j])
		}
	}
}

// TestShortSumsAreTheSameOnAllMachines: bits that do not depend on kernels; SOTTO_KERN forces others.
func TestShortSumsAreTheSameOnAllMachines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(50, 5))
	sum := sha256.New()
	for range 60 {
		p := drawShortRows(t, rnd)
		w, rule, rows := p.parameters(rnd), p.rule(rnd), make([]shortRow, 1+rnd.IntN(300))
		for i := range rows {
			rows[i] = p.draw(rnd)
		}
		unit, counts := p.sum(t, p.table(rows), w, rule, 1)
		fmt.Fprintln(sum, unit, counts)
	}
	const want = "134d75741ef99c78"
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != want {
		t.Errorf("the sums have the digest %s, not %s", got, want)
	}
}

// Nor does a step over 16-bit numbers allocate.
func TestStepOverShortsAllocatesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(50, 6))
	p := drawShortRows(t, rnd)
	rows := make([]shortRow, 3000)
	for i := range rows {
		rows[i] = p.draw(rnd)
	}
	cfg := config(t, p.table(rows), privacy.AddRemove, len(rows))
	cfg.Model, cfg.Journal = p.m, nowhere{}
	cfg.Facts.Dim, cfg.Facts.Short = p.m.Dim(), true
	for _, size := range []int{0, 500} {
		next, stop := pull(method.SGD{Steps: 1 << 30, Rate: 1, Gradient: method.Gradient{Clip: 0.5, Noise: 1, Batch: size}}, openOracle(t, cfg))
		for range 50 {
			next()
		}
		if n := testing.AllocsPerRun(100, next); n > 0 {
			t.Errorf("a step of %d rows allocates %v times", size, n)
		}
		stop()
	}
}
