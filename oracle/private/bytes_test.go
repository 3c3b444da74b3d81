package private

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// pictures are images as bytes under a drawn schema, with a model for them.
type pictures struct {
	s      *schema.Schema
	m      model.Model
	px     *data.Pixels
	pixels int
}

func drawPictures(t testing.TB, rnd *rand.Rand) *pictures {
	t.Helper()
	side, classes := 1+rnd.IntN(9), 2+rnd.IntN(6)
	name := []string{"softmax", "logistic", "svm", "huber-svm"}[rnd.IntN(4)]
	if name != "softmax" {
		classes = 2
	}
	names := make([]string, classes)
	for k := range names {
		names[k] = fmt.Sprintf("%q", fmt.Sprint(k))
	}
	center, scale := rnd.Float64()*255, 1+rnd.Float64()*254
	text := fmt.Sprintf(`
dataset: pictures
rows: 100
row_norm: %v
row_scaling: %s
intercept: %v
format: {kind: idx}
image: {shape: [%d, %d], center: %v, scale: %v}
columns:
  - {name: digit, type: label, classes: [%s]}
`, float32(math.Exp2(rnd.Float64()*16-8)), []string{"scale", "project"}[rnd.IntN(2)], rnd.IntN(2) == 0, side, side, center, scale, strings.Join(names, ", "))
	s, err := schema.Parse("s", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(name, model.Options{Dim: s.Dim(), Classes: classes, NormBound: s.RowNorm})
	if err != nil {
		t.Fatal(err)
	}
	p := &pictures{s: s, m: m, px: data.PixelsOf(s), pixels: side * side}
	if p.px == nil {
		t.Fatalf("no bytes for %s", text)
	}
	return p
}

// A picture is random, or hostile: of one color, at the center of the range, or with one point.
type picture struct {
	image []byte
	y     float32
}

func (p *pictures) draw(rnd *rand.Rand) picture {
	x := make([]byte, p.pixels)
	color := []byte{0, 255, byte(math.Round(p.px.Center)), byte(rnd.Uint32())}[rnd.IntN(4)]
	for j := range x {
		x[j] = color
	}
	switch rnd.IntN(3) {
	case 0:
		for j := range x {
			x[j] = byte(rnd.Uint32())
		}
	case 1:
		x[rnd.IntN(len(x))] = byte(rnd.Uint32())
	}
	return picture{x, float32(rnd.IntN(p.m.Outputs()))}
}

func (p *pictures) table(rows []picture) *data.Table {
	var images [][]byte
	var labels []float32
	for _, r := range rows {
		images, labels = append(images, r.image), append(labels, r.y)
	}
	return data.OfImages(p.s, images, labels)
}

// parameters are of any size, wild ones too.
func (p *pictures) parameters(rnd *rand.Rand) []float64 {
	w := make([]float64, p.m.Dim())
	size := math.Exp2(float64(rnd.IntN(50)-30)) / p.s.RowNorm
	for j := range w {
		w[j] = rnd.NormFloat64() * size
	}
	if rnd.IntN(8) == 0 {
		w[rnd.IntN(len(w))] = []float64{1e300, -1e300, math.Inf(1), math.NaN()}[rnd.IntN(4)]
	}
	return w
}

// rule has a bound from far below what records have to far above it.
func (p *pictures) rule(rnd *rand.Rand) clip.Rule {
	f := p.m.Facts()
	c := f.Lipschitz * math.Exp2(rnd.Float64()*30-25)
	switch k := rnd.IntN(5); {
	case k == 0:
		return clip.Lipschitz{L: f.Lipschitz}
	case k == 1 && f.Bounded:
		return clip.Value{C: c}
	case k == 2:
		return clip.Norm{C: c, P: 1}
	}
	return clip.Norm{C: c}
}

func (p *pictures) sum(t testing.TB, rows []picture, w []float64, rule clip.Rule, workers int) (float64, []int64) {
	t.Helper()
	var s Local
	s.open(p.table(rows), p.m, workers)
	defer s.Close()
	unit, counts, err := s.sum(w, rule, oracle.Public{Rows: 100}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return unit, counts
}

// TestByteRowIsWithinTheBound: what one record adds is, for each class, a whole number times the whole-number row that
// its bytes say, and its norm, in exact arithmetic, is at most the bound of the rule.
func TestByteRowIsWithinTheBound(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(43, 1))
	const byStep = 1 / data.ByteStep
	worst := 0.0
	for range 4000 {
		p := drawPictures(t, rnd)
		r, w, rule := p.draw(rnd), p.parameters(rnd), p.rule(rnd)
		unit, counts := p.sum(t, []picture{r}, w, rule, 1)
		row := make([]int64, 0, p.s.Dim())
		for _, v := range r.image {
			row = append(row, int64(v)*byStep-int64(p.px.Center*byStep))
		}
		if p.px.One > 0 {
			row = append(row, int64(p.px.One*byStep))
		}
		square, sum := new(big.Int), new(big.Int)
		for k := 0; k < len(counts); k += len(row) {
			some, a := slices.IndexFunc(row, func(v int64) bool { return v != 0 }), int64(0)
			if some >= 0 {
				a = counts[k+some] / row[some]
			}
			for j, v := range row {
				got := counts[k+j]
				if got != a*v {
					t.Fatalf("%s: feature %d of class %d is %d, not %d times %d", p.m.Name(), j, k/len(row), got, a, v)
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
}

// TestSensitivityOfBytes: sums over neighboring tables differ by at most the sensitivity that the noise is scaled to.
func TestSensitivityOfBytes(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(43, 2))
	worst := 0.0
	for range 600 {
		p := drawPictures(t, rnd)
		w, rule := p.parameters(rnd), p.rule(rnd)
		rows := make([]picture, 1+rnd.IntN(40))
		for i := range rows {
			rows[i] = p.draw(rnd)
		}
		grid := 0.0
		rounded := func(rows []picture) []int64 {
			unit, counts := p.sum(t, rows, w, rule, 1+rnd.IntN(2))
			grid = gridOf(unit, rule.Bound(), len(w), rule.Norm())
			mech.RoundShift(counts, shiftOf(unit, grid))
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
		full, i := rounded(rows), rnd.IntN(len(rows))
		check(privacy.AddRemove, full, rounded(slices.Delete(slices.Clone(rows), i, i+1)))
		other := slices.Clone(rows)
		if other[i] = p.draw(rnd); rnd.IntN(2) == 0 { // the negative
			other[i] = picture{slices.Clone(rows[i].image), rows[i].y}
			for j, v := range other[i].image {
				other[i].image[j] = 255 - v
			}
		}
		check(privacy.ReplaceOne, full, rounded(other))
	}
	if worst < 0.9 {
		t.Errorf("no pair of neighbors came near the sensitivity, the worst was at %v of it: the test has no force", worst)
	}
}

// TestByteSumIsExact: the sum is that of its rows, one at a time, whatever their order, the number of workers and how
// a batch lists them; and it is close to the sum over the same rows as numbers.
func TestByteSumIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 3))
	for range 12 {
		p := drawPictures(t, rnd)
		w, rule := make([]float64, p.m.Dim()), p.rule(rnd)
		for j := range w {
			w[j] = rnd.NormFloat64() / p.s.RowNorm
		}
		rows := make([]picture, 1500+rnd.IntN(1500))
		few := make([]picture, 7)
		for i := range few {
			few[i] = p.draw(rnd)
		}
		for i := range rows {
			rows[i] = few[rnd.IntN(len(few))]
		}
		unit, whole := p.sum(t, rows, w, rule, 1)
		want := make([]int64, len(w))
		for _, f := range few {
			_, one := p.sum(t, []picture{f}, w, rule, 1)
			n := int64(0)
			for _, r := range rows {
				if &r.image[0] == &f.image[0] {
					n++
				}
			}
			for j, v := range one {
				want[j] += n * v
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
			s.open(p.table(rows), p.m, workers)
			for _, all := range []bool{true, false} {
				if _, got, err := s.sum(w, rule, oracle.Public{Rows: 100}, list, all); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s: another sum with %d workers, all rows %v, %v", p.m.Name(), workers, all, err)
				}
			}
			s.Close()
		}
		slices.Reverse(rows)
		if _, got := p.sum(t, rows, w, rule, 2); !slices.Equal(got, want) {
			t.Fatalf("%s: rows in reverse have another sum", p.m.Name())
		}

		// The same rows as numbers, one record at a time. A hinge's slope can jump with the rounding of a margin.
		if p.m.Name() == "svm" || rule.Norm() != 2 {
			continue
		}
		if _, ok := rule.(clip.Norm); !ok {
			continue
		}
		var views []data.View
		for _, b := range p.table(rows).Blocks {
			var numbers data.Block
			b.Numbers(&numbers, 0, b.N)
			views = append(views, data.View{Block: &numbers, To: b.N})
		}
		numbers := modeltest.MicroBatch(p.m, w, views, rule.Bound(), 2)
		var miss, slack float64
		for j, v := range numbers {
			miss = math.Hypot(miss, v-float64(whole[j])*unit)
		}
		slack = float64(len(rows)) * rule.Bound() * math.Sqrt(float64(p.m.Outputs())) * 0x1p-9
		if f := p.m.Facts(); miss > slack+float64(len(rows))*f.Lipschitz*0x1p-11 {
			t.Errorf("%s, %#v: the sum is %v from that of numbers, of %d records", p.m.Name(), rule, miss, len(rows))
		}
	}
}

// TestOracleOverBytes: an oracle over bytes answers all that one over numbers does, close to it, and both refuse the
// other's facts.
func TestOracleOverBytes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 4))
	p := drawPictures(t, rnd)
	for p.m.Name() != "logistic" {
		p = drawPictures(t, rnd)
	}
	rows := make([]picture, 300)
	for i := range rows {
		rows[i] = p.draw(rnd)
	}
	of := p.table(rows)
	numbers := *of
	numbers.Pixels, numbers.Blocks = nil, nil
	for _, b := range of.Blocks {
		c := new(data.Block)
		b.Numbers(c, 0, b.N)
		numbers.Blocks = append(numbers.Blocks, c)
	}
	facts := p.m.Facts()
	answers := func(tab *data.Table) (all []float64) {
		cfg := config(t, tab, privacy.AddRemove, len(rows))
		cfg.Model = p.m
		cfg.Facts.NormBound, cfg.Facts.Lipschitz, cfg.Facts.Smooth = facts.NormBound, oracle.Bound(facts.Lipschitz), oracle.Bound(facts.Smooth)
		cfg.Facts.Calibrated, cfg.Facts.OneMargin = true, true
		cfg.Facts.Bytes = tab.Pixels == nil
		if _, err := New(cfg); err == nil {
			t.Error("an oracle opens with facts of other rows")
		}
		cfg.Facts.Bytes = tab.Pixels != nil
		o := openOracle(t, cfg)
		c, w := facts.Lipschitz/2, p.parameters(rand.New(rand.NewPCG(1, 1)))
		for j := range w {
			w[j] = math.Sin(float64(j)) / facts.NormBound
		}
		grad := oracle.Grad{Clip: clip.Norm{C: c}, Noise: mech.None{}}
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
	got, want := answers(of), answers(&numbers)
	for j, v := range got {
		if math.Abs(v-want[j]) > 0x1p-9 {
			t.Errorf("answer %d is %v over bytes, %v over numbers", j, v, want[j])
		}
	}
}

// TestByteSumsAreTheSameOnAllMachines: bits that do not depend on kernels; SOTTO_KERN forces others.
func TestByteSumsAreTheSameOnAllMachines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 5))
	sum := sha256.New()
	for range 60 {
		p := drawPictures(t, rnd)
		w, rule, rows := p.parameters(rnd), p.rule(rnd), make([]picture, 1+rnd.IntN(300))
		for i := range rows {
			rows[i] = p.draw(rnd)
		}
		unit, counts := p.sum(t, rows, w, rule, 1)
		fmt.Fprintln(sum, unit, counts)
	}
	const want = "8a4cc9e7f4527c3d"
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != want {
		t.Errorf("the sums have the digest %s, not %s", got, want)
	}
}

// Nor does a step over bytes allocate.
func TestStepOverBytesAllocatesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 6))
	p := drawPictures(t, rnd)
	rows := make([]picture, 3000)
	for i := range rows {
		rows[i] = p.draw(rnd)
	}
	cfg := config(t, p.table(rows), privacy.AddRemove, len(rows))
	cfg.Model, cfg.Journal = p.m, nowhere{}
	cfg.Facts.Dim, cfg.Facts.Bytes = p.m.Dim(), true
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
