package replay_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// next is an oracle that follows a record, and keeps the choices that it is told.
type next struct {
	oracle.Oracle
	told []oracle.Choice
	fail error
}

func (n *next) Refine(_ context.Context, c oracle.Choice) error {
	n.told = append(n.told, c)
	return n.fail
}

func (n *next) Batch(context.Context, sample.Sampler, ...oracle.Query) (oracle.Batch, error) {
	return nil, nil
}

// TestFirstRelease: a first release comes from the record, of as many numbers as it has. A choice is checked as the private oracle
// checks it, and the oracle that follows is told once, before its first batch.
func TestFirstRelease(t *testing.T) {
	facts := oracle.Public{Dim: 9 + 25, Rows: 50, Classes: 2, OneMargin: true, NormBound: 1, Totals: true, Slots: 1,
		Numeric: []oracle.Numeric{{At: 0, Bumps: 2}, {At: 3, Bumps: 2}, {At: 6, Bumps: 2}}}
	q := oracle.Totals{Cells: 2, Count: 1, Pairs: 1, Noise: mech.Gaussian{Sigma: 2}}
	record := func(n int) func() (replay.Released, error) {
		sums := make([]float64, n)
		sums[n-1] = 7
		return replay.Each([]replay.Released{{Event: facts.Cost(sample.Full{}, []oracle.Query{q}), Answers: [][]float64{sums}}})
	}
	chosen, then := oracle.Choice{Pairs: [][2]int{{0, 1}}}, &next{}
	o := &replay.Oracle{Facts: facts, Next: record(2 * (1 + 34 + 3)), Then: then}
	b, err := o.Batch(t.Context(), sample.Full{}, q)
	if err != nil {
		t.Fatal(err)
	}
	if sums, err := b.Totals(q); err != nil || len(sums) != 76 || sums[75] != 7 {
		t.Fatalf("%v, %v", sums, err)
	}
	if err := o.Refine(t.Context(), oracle.Choice{Pairs: [][2]int{{0, 1}, {1, 2}}}); err == nil || !strings.Contains(err.Error(), "places for 1") {
		t.Errorf("more pairs than places: %v", err)
	}
	if err := o.Refine(t.Context(), chosen); err != nil {
		t.Fatal(err)
	}
	if err := o.Refine(t.Context(), chosen); err == nil || !strings.Contains(err.Error(), "refined once") {
		t.Errorf("a second choice: %v", err)
	}
	then.fail = errors.New("disk full")
	if _, err := o.Batch(t.Context(), sample.Full{}, q); !errors.Is(err, then.fail) {
		t.Errorf("the choice failed, the batch gives %v", err)
	}
	then.told, then.fail = nil, nil
	for range 3 {
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err != nil {
			t.Fatal(err)
		}
	}
	if len(then.told) != 1 || !slices.Equal(then.told[0].Pairs, chosen.Pairs) {
		t.Errorf("told %v", then.told)
	}

	for _, n := range []int{75, 77} {
		o := &replay.Oracle{Facts: facts, Next: record(n)}
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		if sums, err := b.Totals(q); err == nil {
			t.Errorf("%v of a record of %d numbers", sums, n)
		}
	}
	// A choice without curves is told as it is, and pairs need curves.
	then = &next{}
	o = &replay.Oracle{Facts: facts, Next: replay.Each(nil), Then: then}
	if err := o.Refine(t.Context(), oracle.Choice{Lines: true, Pairs: chosen.Pairs}); err == nil {
		t.Error("pairs of columns without bumps")
	}
	if err := o.Refine(t.Context(), oracle.Choice{Lines: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Batch(t.Context(), sample.Full{}, q); err != nil || len(then.told) != 1 || !then.told[0].Lines {
		t.Errorf("told %v, %v", then.told, err)
	}
	// Behind a record, the same is asked of the oracle that follows at once.
	then = &next{}
	o = &replay.Oracle{Facts: facts, Next: replay.Each(nil), Then: then}
	for k := range 3 {
		if k == 1 {
			if err := o.Refine(t.Context(), chosen); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.EqualFunc(then.told, []oracle.Choice{chosen}, func(a, b oracle.Choice) bool { return slices.Equal(a.Pairs, b.Pairs) }) {
		t.Errorf("told %v", then.told)
	}
}
