package method

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
)

// Output says which combination of iterates becomes the model. All iterates are
// covered by the guarantee, so each choice is free post-processing.
type Output string

const (
	Last        Output = "last"         // w_T
	TailAverage Output = "tail-average" // the mean of w_t over the last half of the steps
	Average     Output = "average"      // the mean of w_1 … w_T
	Random      Output = "random"       // one of w_0 … w_T, uniformly (P0 Algorithm 1)
	EMA         Output = "ema"          // Σ D^(T−t) w_t / Σ D^(T−t), t = 1 … T; its decay D may follow, as in "ema 0.99"
)

// emaMemory is what "ema" alone remembers of a run: D = 1 − emaMemory/T.
const emaMemory = 10

// Outputs lists the choices; the first is the default.
var Outputs = []Output{TailAverage, Last, Average, Random, EMA}

// ParseOutput reads one of Outputs; "" is the default.
func ParseOutput(s string) (Output, error) {
	if s == "" {
		return Outputs[0], nil
	}
	if decay, ok := strings.CutPrefix(s, string(EMA)+" "); ok {
		if d, err := strconv.ParseFloat(decay, 64); err != nil || !(d > 0 && d < 1) {
			return "", fmt.Errorf("output: found %q; write a decay above 0 and below 1, as in \"%s 0.99\"", s, EMA)
		}
		return Output(s), nil
	}
	if !slices.Contains(Outputs, Output(s)) {
		names := make([]string, len(Outputs))
		for i, o := range Outputs {
			names[i] = string(o)
		}
		return "", fmt.Errorf("output: found %q; choose %s", s, strings.Join(names, ", "))
	}
	return Output(s), nil
}

// An Averager turns a run's steps into its output, one step at a time.
type Averager struct {
	output   Output
	maxSteps int
	decay    float64 // EMA: D
	AveragerState
}

// An AveragerState is where an Averager stands: all that comes of later steps depends on it.
type AveragerState struct {
	Out  []float64 `json:"-"`    // the output so far
	N    int       `json:"n"`    // iterates in the mean
	T    int       `json:"t"`    // steps seen
	Pick int       `json:"pick"` // Random: the iterate to keep
}

// Averager starts the average of a run of at most maxSteps steps over dim parameters.
func (o Output) Averager(maxSteps, dim int) *Averager {
	f := &Averager{output: o, maxSteps: maxSteps, AveragerState: AveragerState{Out: make([]float64, dim)}}
	if name, decay, _ := strings.Cut(string(o), " "); Output(name) == EMA {
		f.output = EMA
		if f.decay, _ = strconv.ParseFloat(decay, 64); f.decay == 0 {
			f.decay = math.Max(0, 1-emaMemory/float64(maxSteps))
		}
	}
	return f
}

// Add takes the next step. Steps that bring no new iterate are passed over. What a run
// converged to is its output whatever was chosen: its claim is about that iterate alone.
func (f *Averager) Add(s Step) {
	if s.Status == Converged {
		copy(f.Out, s.W)
		f.T = s.T
		return
	}
	if s.T <= f.T {
		return
	}
	f.T = s.T
	switch f.output {
	case Average:
		f.N++
		f.mean(s.W, float64(f.N))
	case EMA:
		f.N++
		f.mean(s.W, (1-math.Pow(f.decay, float64(f.N)))/(1-f.decay))
	case TailAverage:
		if 2*s.T > f.maxSteps {
			f.N++
			f.mean(s.W, float64(f.N))
		} else {
			copy(f.Out, s.W) // what a run that stops early returns
		}
	case Random:
		if s.T == 1 {
			f.Pick = pick(s.W, f.maxSteps+1)
		}
		if s.T <= f.Pick {
			copy(f.Out, s.W)
		}
	default:
		copy(f.Out, s.W)
	}
}

// W is the output so far; before the first step it is w_0 = 0.
func (f *Averager) W() []float64 { return f.Out }

// mean moves the mean toward w by the inverse of the weight of all, in units of that of w.
func (f *Averager) mean(w []float64, all float64) {
	if all == 1 {
		copy(f.Out, w)
		return
	}
	kern.Approach(f.Out, w, all)
}

// pick chooses one of n by the bits of the first noisy iterate: fresh noise in a
// real run, the same again when the run is replayed.
func pick(w []float64, n int) int {
	h := sha256.New()
	for _, v := range w {
		binary.Write(h, binary.LittleEndian, math.Float64bits(v))
	}
	return int(binary.LittleEndian.Uint64(h.Sum(nil)) % uint64(n))
}
