package method_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/method"
)

// TestEMA: the fold is the closed form of the weighted mean, whatever the number of steps that a run gets to.
func TestEMA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxSteps := rapid.IntRange(1, 60).Draw(t, "maxSteps")
		decay := rapid.Float64Range(0.01, 0.999).Draw(t, "decay")
		text := fmt.Sprintf("ema %v", decay)
		if rapid.Bool().Draw(t, "default") {
			text, decay = "ema", math.Max(0, 1-10/float64(maxSteps))
		}
		output, err := method.ParseOutput(text)
		if err != nil {
			t.Fatal(err)
		}
		steps := rapid.IntRange(1, maxSteps).Draw(t, "steps")
		fold := output.Averager(maxSteps, 1)
		sum, weights := 0.0, 0.0
		for k := 1; k <= steps; k++ {
			w := rapid.Float64Range(-5, 5).Draw(t, "w")
			fold.Add(method.Step{T: k, W: []float64{w}})
			weight := math.Pow(decay, float64(steps-k))
			sum, weights = sum+weight*w, weights+weight
		}
		if got, want := fold.W()[0], sum/weights; math.Abs(got-want) > 1e-12 {
			t.Fatalf("%s of %d steps: %v, want %v", text, steps, got, want)
		}
	})
	for _, wrong := range []string{"ema 1", "ema 0", "ema -0.5", "ema NaN", "ema x", "ema ", "ema0.9", "mean"} {
		if _, err := method.ParseOutput(wrong); err == nil || !strings.HasPrefix(err.Error(), "output: found ") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
