package private

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/canary"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// Canaries are drawn like rows, and what is released holds the rows' sum and those canaries that were drawn and take part, to the grid: of all rows, and of a Poisson sample
// on average over many.
func TestCanaries(t *testing.T) {
	rows := []row{{x: []float32{1, 0.5}, y: 1}, {x: []float32{-1, 0.25}, y: 0}}
	ask := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: 1e-3}}
	along := func(s sample.Sampler, seed uint64) (in, out float64) {
		set := &canary.Set{In: []bool{true, false, true, true}, Key: 3, Dim: 2}
		cfg := config(t, table(rows, 2, false), privacy.AddRemove, 6)
		cfg.Streams, cfg.Canaries, cfg.Journal = noise.SeededStreams(seed), set, nowhere{}
		o := openDoor(t, cfg)
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
				rest[j] = g[j]*s.Size(6) - set.Others()[j]
			}
			for i := range set.In { // each direction is (±1, ±1): what others add along it cancels on average
				d := set.Direction(i, 2)
				part := d.Dot(rest) / math.Sqrt2 / set.Length() / looks
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

// Under replace-one canaries count as rows; a minimisation has no place for them.
func TestCanariesAreRows(t *testing.T) {
	rows := []row{{x: []float32{1}, y: 1}, {x: []float32{-1}, y: 0}}
	for declared, want := range map[int]string{2: "the table has 5 rows, the schema declares 2", 5: ""} {
		cfg := config(t, table(rows, 2, false), privacy.ReplaceOne, declared)
		cfg.Canaries, cfg.Journal = &canary.Set{In: make([]bool, 3), Pull: true, Dim: 1}, nowhere{}
		o, err := New(cfg)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d declared: %v", declared, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Batch(context.Background(), sample.Full{}, oracle.Minimize{How: oracle.Exact{}}); err == nil || !strings.Contains(err.Error(), "canaries") {
			t.Errorf("a minimisation with canaries: %v", err)
		}
		o.Close()
	}
}
