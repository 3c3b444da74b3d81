package method

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// totaling answers a first release of rows by arithmetic of its own, and gradients of ones.
type totaling struct {
	facts  oracle.Public
	rows   [][]float64 // encoded
	labels []float64
	noise  *rand.Rand
	choice oracle.Choice
}

func (o *totaling) Public() oracle.Public { return o.facts }

func (o *totaling) Batch(context.Context, sample.Sampler, ...oracle.Query) (oracle.Batch, error) {
	return totalingBatch{totaling: o}, nil
}

type totalingBatch struct {
	oracle.Batch
	*totaling
}

func (o *totaling) Refine(_ context.Context, c oracle.Choice) error {
	o.choice = c
	return c.Check(o.facts)
}

func (o totalingBatch) Grad(oracle.Grad, []float64) ([]float64, error) {
	return slices.Repeat([]float64{1}, o.facts.Dim), nil
}

func (o totalingBatch) Totals(q oracle.Totals) ([]float64, error) {
	of := o.facts.Paired()
	n := q.Len(o.facts) / q.Cells
	sums := make([]float64, q.Len(o.facts))
	for i, x := range o.rows {
		for c := range q.Cells {
			h := 0.0
			if at := (o.labels[i] - o.facts.LabelMin) / o.facts.LabelSpan * float64(q.Cells-1); o.facts.Classes == 0 {
				h = math.Max(0, 1-math.Abs(at-float64(c)))
			} else if int(o.labels[i]) == c {
				h = 1
			}
			if h == 0 {
				continue
			}
			cell := sums[c*n:][:n]
			cell[0] += h
			length, k := 0.0, 1+len(x)
			for j, v := range x {
				cell[1+j] += h * v
			}
			for _, a := range of {
				length += x[a] * x[a]
			}
			for i, a := range of {
				for _, b := range of[i+1:] {
					cell[k] += h * x[a] * x[b] / math.Sqrt(length)
					k++
				}
			}
		}
	}
	sd := q.Noise.(mech.Gaussian).Sigma * q.Sensitivity(o.facts)
	for k := range sums {
		weight := 1.0
		if k%n == 0 {
			weight = q.Count
		} else if k%n > len(o.rows[0]) {
			weight = q.Pairs
		}
		sums[k] += sd / weight * o.noise.NormFloat64()
	}
	return sums, nil
}

// newTotaling is of n rows with that number of columns, each a line and two waves, whose labels are those of label, of a row's lines; classes
// is 0 for a number from −4 to 4.
func newTotaling(rnd *rand.Rand, n, columns, classes int, label func(x []float64) float64) *totaling {
	dim := 3*columns + 2*schema.PairFeatures + 1
	o := &totaling{noise: rnd, facts: oracle.Public{Dim: dim * max(1, classes), Rows: n, Classes: classes, NormBound: 1, Intercept: dim,
		Slots: 2, Totals: true, Adjacency: privacy.AddRemove, LabelMin: -4, LabelSpan: 8}}
	if classes <= 2 {
		o.facts.Dim, o.facts.OneMargin = dim, true
	}
	for c := range columns {
		o.facts.Numeric = append(o.facts.Numeric, oracle.Numeric{At: 3 * c, Waves: 2})
	}
	for range n {
		x, lines, square := make([]float64, dim), make([]float64, columns), 0.0
		x[dim-1] = 1
		for c := range columns {
			lines[c] = 2*rnd.Float64() - 1
			x[3*c], x[3*c+1], x[3*c+2] = lines[c], schema.Wave(0, lines[c]), schema.Wave(1, lines[c])
		}
		for _, v := range x {
			square += v * v
		}
		for j := range x {
			x[j] /= math.Sqrt(square)
		}
		o.rows, o.labels = append(o.rows, x), append(o.labels, label(lines))
	}
	return o
}

// TestFirstPairs: a first release finds the columns that decide the label together, the clearer pair first, beside columns that decide it
// alone, and finds none where there are none: also by the bend of a column with the line of another, where the label is a number.
func TestFirstPairs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 43))
	class := func(margin float64) float64 {
		if margin+0.5*rnd.NormFloat64() > 0 {
			return 1
		}
		return 0
	}
	for _, c := range []struct {
		name    string
		classes int
		noise   float64
		label   func(x []float64) float64
		want    [][2]int
	}{
		{"alone", 2, 10, func(x []float64) float64 { return class(x[0] + 2*x[1]*x[1] - 0.7) }, nil},
		{"together", 2, 40, func(x []float64) float64 { return class(2*x[3]*x[1] + x[0]) }, [][2]int{{1, 3}}},
		{"two pairs", 2, 10, func(x []float64) float64 { return class(3*x[4]*x[5] + 1.5*x[0]*x[2]) }, [][2]int{{4, 5}, {0, 2}}},
		{"classes", 3, 10, func(x []float64) float64 { return class(3*x[1]*x[2]) + class(x[0]) }, [][2]int{{1, 2}}},
		{"a number alone", 0, 10, func(x []float64) float64 { return x[0] + 2*x[1]*x[1] + 0.3*rnd.NormFloat64() }, nil},
		{"a number", 0, 20, func(x []float64) float64 { return x[0] + x[2]*x[5] + 0.3*rnd.NormFloat64() }, [][2]int{{2, 5}}},
		{"a bend", 0, 10, func(x []float64) float64 { return x[0]*(3*x[2]*x[2]-1) + 0.3*rnd.NormFloat64() }, [][2]int{{0, 2}}},
	} {
		o := newTotaling(rnd, 20000, 6, c.classes, c.label)
		m := Auto{FirstNoise: c.noise}
		f, with, choice, err := m.begin(t.Context(), o)
		if err != nil || !slices.Equal(o.choice.Pairs, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, o.choice.Pairs, err, c.want)
			continue
		}
		n, mean := len(choice.Pairs), 0.0
		for _, y := range o.labels {
			mean += y / float64(len(o.labels))
		}
		if c.classes == 0 && math.Abs(f.label-mean) > 0.1 {
			t.Errorf("%s: the mean label is %v, want %v", c.name, f.label, mean)
		}
		g := gradient(t, with)
		for j, v := range g {
			j %= o.facts.Features()
			if open := j >= 18+25*n && j < 68; (v == 0) != open {
				t.Fatalf("%s: with %d pairs, the gradient of feature %d is %v", c.name, n, j, v)
			}
		}
	}
}

// TestFirstDoubt: a product beside what one of its columns brings by its mean counts as seen if it is some deviations of the doubt above that;
// a run that records no doubt has the doubt of earlier ones.
func TestFirstDoubt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 45))
	o := newTotaling(rnd, 20000, 6, 0, func(x []float64) float64 { return x[0]*(3*x[2]*x[2]-1) + x[0] + 0.3*rnd.NormFloat64() })
	excess := map[float64]float64{}
	for _, doubt := range []float64{0, firstDoubt, firstDoubted, 2} {
		f, err := Auto{FirstNoise: 0.01, FirstDoubt: doubt}.askFirst(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		features, length := f.paired()
		f.weigh(len(features), length)
		k := 0
		for i, a := range features {
			for _, b := range features[i+1:] {
				if a.at == 0 && b.at == 7 { // the line of one, the first wave of the other
					excess[doubt] = f.excess(f.contrast[0], a, b, k, length)
				}
				k++
			}
		}
	}
	if !(excess[firstDoubt] > excess[firstDoubted] && excess[firstDoubted] > excess[2]) ||
		math.Abs(excess[0]/excess[firstDoubted]-1) > 0.05 {
		t.Errorf("by doubt: %v", excess)
	}
}

// gradient asks for one over all rows.
func gradient(t *testing.T, o oracle.Oracle) []float64 {
	t.Helper()
	b, err := o.Batch(t.Context(), sample.Full{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grad(oracle.Grad{Clip: clip.Norm{C: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFirstCenter: the center is near the mean row, without its intercept and places of pairs, and shorter where rows get pairs.
func TestFirstCenter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 44))
	o := newTotaling(rnd, 20000, 6, 2, func([]float64) float64 { return float64(rnd.IntN(2)) })
	f, _, _, err := Auto{FirstNoise: 5}.begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	alone, paired := f.center(0), f.center(2)
	for j, v := range alone {
		mean := 0.0
		for _, x := range o.rows {
			mean += x[j] / float64(len(o.rows))
		}
		switch {
		case j >= 18:
			if v != 0 || paired[j] != 0 {
				t.Errorf("feature %d has the center %v", j, v)
			}
		case math.Abs(v-mean) > 0.01 || math.Abs(paired[j]) > math.Abs(v):
			t.Errorf("feature %d: %v, with pairs %v; the mean is %v", j, v, paired[j], mean)
		}
	}
}

// TestRareClass: where one class is rare beside the noise, columns keep their lines alone, rows are not centered, and clip norm and
// momentum are those of so many features; where classes are alike, or with less noise, or where the rule is not asked, nothing changes.
func TestRareClass(t *testing.T) {
	rnd := rand.New(rand.NewPCG(83, 1))
	for _, c := range []struct {
		name  string
		share float64
		noise float64 // of each of the steps
		limit float64
		want  bool
	}{
		{"rare", 0.02, 300, rareWaves, true}, {"alike", 0.4, 300, rareWaves, false}, {"calm", 0.02, 30, rareWaves, false},
		{"not asked", 0.02, 300, 0, false},
	} {
		o := newTotaling(rnd, 20000, 6, 2, func([]float64) float64 {
			if rnd.Float64() < c.share {
				return 1
			}
			return 0
		})
		o.facts.Smooth, o.facts.Lipschitz = 0.25, 1
		m := Auto{FirstNoise: 5, Rare: c.limit, Center: CenterMean, Steps: 80, Rate: 12, Momentum: 0.5,
			Gradient: Gradient{Clip: 0.2, Noise: c.noise}}
		at, err := m.ask(t.Context(), o)
		if err != nil || at.choice.Lines != c.want || o.choice.Lines != c.want || (at.center == nil) != c.want {
			t.Errorf("%s: %+v, center %v, %v", c.name, at.choice, at.center, err)
		}
		if !c.want {
			continue
		}
		g := gradient(t, at.Oracle)
		for j, v := range g {
			if line := j < 18 && j%3 == 0 || j == o.facts.Dim-1; (v != 0) != line {
				t.Errorf("the gradient of feature %d is %v", j, v)
			}
		}
		chosen := o.facts.Chosen(at.choice)
		if chosen.Dim != 7 || len(o.facts.Narrow(g, at.choice)) != 7 {
			t.Errorf("%d features, want 6 lines and the intercept", chosen.Dim)
		}
		// As the rule chooses for a table of lines with that noise, the steps as planned.
		s := m.straight(chosen, Objective{})
		nu := c.noise / 20000 / math.Sqrt(80)
		clip := min(autoMaxClip, autoClip*math.Pow(nu*math.Sqrt(7), -autoClipPower))
		momentum := max(0, min(1-10./80, 1-12*80*nu*clip/autoNoise))
		if s.Steps != 80 || s.Rate != 12 || math.Abs(s.Gradient.Clip-clip) > 1e-12 || math.Abs(s.Momentum-momentum) > 1e-12 {
			t.Errorf("%+v; want clip norm %v and momentum %v", s, clip, momentum)
		}
	}
}

// TestNarrowAllocatesNothing: the oracle that leaves places out allocates nothing in a step.
func TestNarrowAllocatesNothing(t *testing.T) {
	g := make([]float64, 2*60)
	o := &narrow{Oracle: still{&stillBatch{g: g}}, features: 60, gone: [][2]int{{20, 50}}}
	ctx := t.Context()
	var q oracle.Grad
	if n := testing.AllocsPerRun(100, func() {
		b, _ := o.Batch(ctx, sample.Full{})
		if _, err := b.Grad(q, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// still answers with the same gradient each time.
type still struct{ b *stillBatch }

type stillBatch struct {
	oracle.Batch
	g []float64
}

func (o still) Public() oracle.Public { return oracle.Public{} }

func (o still) Batch(context.Context, sample.Sampler, ...oracle.Query) (oracle.Batch, error) {
	return o.b, nil
}

func (b *stillBatch) Grad(oracle.Grad, []float64) ([]float64, error) { return b.g, nil }
