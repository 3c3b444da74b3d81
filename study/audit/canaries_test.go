package audit

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// free admits every charge.
type free struct{ adjacency privacy.Adjacency }

func (f free) Adjacency() privacy.Adjacency { return f.adjacency }
func (free) Charge(privacy.Event) error     { return nil }

// open makes an oracle over a table of such rows, of alternating classes, with canaries beside them.
func open(t *testing.T, adjacency privacy.Adjacency, declared int, seed uint64, set *canarySet, rows ...[]float32) (*private.Oracle, error) {
	t.Helper()
	dim := len(rows[0])
	tab := &data.Table{Dim: dim, Classes: 2, NormBound: 1, Unit: 0x1p-20, Labeled: true}
	empty := *tab
	b := &data.Block{N: len(rows), Dim: dim}
	for i, x := range rows {
		b.X, b.Y, b.Norm = append(b.X, x...), append(b.Y, float32(1-i%2)), append(b.Norm, 1.125)
	}
	tab.Blocks = []*data.Block{b}
	m, err := model.New("logistic", model.Options{Dim: dim, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	facts := oracle.Public{Dim: dim, Rows: declared, Classes: 2, Adjacency: adjacency, NormBound: 1, Lipschitz: 1, Smooth: 0.25, Curved: true}
	local, err := private.NewLocal(tab, m, facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	return private.New(private.Config{Table: &empty, Model: m, Facts: facts, Meter: free{adjacency}, Journal: run.NopJournal{},
		Streams: noise.SeededStreams(seed), Summer: &canaries{Summer: local, set: set}})
}

// Canaries are drawn like rows, and what is released holds the rows' sum and those canaries that were drawn and take part, to the grid: of all rows, and of a Poisson sample
// on average over many.
func TestCanaries(t *testing.T) {
	ask := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: 1e-3}}
	along := func(s sample.Sampler, seed uint64) (in, out float64) {
		set := &canarySet{In: []bool{true, false, true, true}, Key: 3, Dim: 2}
		o, err := open(t, privacy.AddRemove, 6, seed, set, []float32{1, 0.5}, []float32{-1, 0.25})
		if err != nil {
			t.Fatal(err)
		}
		const looks = 400
		for range looks {
			b, err := o.Batch(context.Background(), s, ask)
			if err != nil {
				t.Fatal(err)
			}
			g, err := b.Grad(ask, []float64{0, 0})
			if err != nil {
				t.Fatal(err)
			}
			rest := make([]float64, 2)
			for j := range rest {
				rest[j] = g[j]*s.Size(6) - set.others[j]
			}
			for i := range set.In { // each direction is (±1, ±1): what others add along it cancels on average
				d := set.Direction(i, 2)
				part := d.Dot(rest) / math.Sqrt2 / set.length / looks
				if set.In[i] {
					in += part / 3
				} else {
					out += part
				}
			}
		}
		return in, out
	}
	// Others' part along a direction has a standard deviation of at most √1.5 at each look, so 0.06 over 400; the seeds are fixed.
	for want, s := range map[float64]sample.Sampler{1: sample.Full{}, 0.25: sample.Poisson{Rate: 0.25}} {
		if in, out := along(s, 1); math.Abs(in-want) > 0.2 || math.Abs(out) > 0.3 {
			t.Errorf("%T: canaries that take part show with weight %v, the other with %v; want %v and 0", s, in, out, want)
		}
	}
}

// Under replace-one canaries count as rows; an oracle with a Summer refuses a minimization.
func TestCanariesAreRows(t *testing.T) {
	for declared, want := range map[int]string{2: "the table has 5 rows, the schema declares 2", 5: ""} {
		o, err := open(t, privacy.ReplaceOne, declared, 1, &canarySet{In: make([]bool, 3), Pull: true, Dim: 1}, []float32{1}, []float32{-1})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d declared: %v", declared, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Batch(context.Background(), sample.Full{}, oracle.Minimize{How: oracle.Exact{}}); err == nil || !strings.Contains(err.Error(), "oracle.Minimize") {
			t.Errorf("a minimization with canaries: %v", err)
		}
		o.Close()
	}
}
