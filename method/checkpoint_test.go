package method

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
)

// An output goes on from where its fold stood, whichever it is.
func TestFoldGoesOn(t *testing.T) {
	const maxSteps = 10
	step := func(i int) Step { return Step{T: i, W: []float64{math.Sqrt(float64(i)), 1 / float64(i)}} }
	for _, output := range Outputs {
		for cut := range maxSteps {
			whole, first, second := output.Averager(maxSteps, 2), output.Averager(maxSteps, 2), output.Averager(maxSteps, 2)
			for i := 1; i <= maxSteps; i++ {
				whole.Add(step(i))
				if i <= cut {
					first.Add(step(i))
				}
			}
			b, err := json.Marshal(first.AveragerState)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &second.AveragerState); err != nil {
				t.Fatal(err)
			}
			copy(second.Out, first.Out)
			for i := cut + 1; i <= maxSteps; i++ {
				second.Add(step(i))
			}
			if !slices.Equal(whole.W(), second.W()) {
				t.Errorf("%s, cut after %d of %d: %v, want %v", output, cut, maxSteps, second.W(), whole.W())
			}
		}
	}
}

// A state of another form is refused, and nothing is bought.
func TestStateOfAnotherForm(t *testing.T) {
	o := &replay.Oracle{Facts: oracle.Public{Dim: 2}}
	for _, s := range []Checkpoint{{T: 1}, {T: 1, Vectors: [][]float64{{1}}}, {T: 1, Vectors: [][]float64{{1, 2}, {3, 4}}}} {
		for _, err := range (SGD{Steps: 3}).RunFrom(t.Context(), o, Objective{}, &s) {
			if err == nil || err == replay.ErrEnd {
				t.Errorf("%v: %v", s.Vectors, err)
			}
		}
	}
}
