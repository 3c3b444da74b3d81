package plan

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// Numbers describe steps of Gaussian noise, each on a sample. A nil number is not given: of Epsilon,
// NoiseMultiplier and Steps one may be left out, and Plan solves for it; with all three, it may be the
// sampling rate of a named sampler.
type Numbers struct {
	Sampler         string   // poisson, fixed or full; empty: poisson where a sample is smaller than the table, else full
	SamplingRate    *float64 // probability of a record to be in a sample, or its share
	Batch           *int     // instead of a rate: the sample's size, for a Poisson sample its mean
	Rows            *int
	NoiseMultiplier *float64
	Steps           *int
	Epsilon         *float64

	Delta      float64
	Adjacency  privacy.Adjacency
	Accountant account.Accountant
}

// MaxSteps is the most steps of a plan from numbers.
const MaxSteps = 1 << 30

// A release is what numbers stand for.
type release struct {
	sampler     string
	rate, noise float64
	batch, rows int // batch is the size of a fixed sample
	steps       int
	adjacency   privacy.Adjacency
}

func (r release) event() privacy.Event {
	var s sample.Sampler = sample.Full{}
	switch r.sampler {
	case "fixed":
		s = sample.Fixed{M: r.batch, N: r.rows}
	case "poisson":
		s = sample.Poisson{Rate: r.rate}
	}
	step := oracle.Public{Adjacency: r.adjacency, Presence: true}.Cost(s,
		[]oracle.Query{oracle.Grad{Noise: mech.Gaussian{Sigma: r.noise}}})
	return privacy.Repeated{Count: r.steps, Of: step}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Plan solves for the number that is left out. Its errors name the numbers as the flags of
// `sotto plan` do.
func (n Numbers) Plan() (*Plan, error) {
	missing, err := n.missing()
	if err != nil {
		return nil, err
	}
	p := &Plan{Delta: n.Delta, Adjacency: n.Adjacency, Solved: missing, Budget: n.Epsilon, accountant: n.Accountant}
	r, warning, err := n.sampled(missing == "sampling-rate")
	if err != nil {
		return nil, err
	}
	if warning != "" {
		p.Warnings = append(p.Warnings, warning)
	}
	if r.sampler == "fixed" && n.Adjacency != privacy.ReplaceOne {
		return nil, fmt.Errorf("--sampler: found fixed under %v, where the number of records is private; choose poisson or full, or --adjacency %v", n.Adjacency, privacy.ReplaceOne)
	}
	r.noise, r.steps = value(n.NoiseMultiplier), value(n.Steps)
	if r, err = n.solve(r, missing); err != nil {
		return nil, err
	}
	p.event = r.event()
	p.Sampler, p.SamplingRate, p.Rows, p.NoiseMultiplier, p.Steps = r.sampler, r.rate, r.rows, r.noise, r.steps
	if r.sampler == "fixed" {
		p.Batch = r.batch
	}
	return p, p.solve()
}

// missing names the number to solve for.
func (n Numbers) missing() (string, error) {
	given, found := 0, "none"
	for _, f := range []struct {
		name string
		have bool
	}{{"--noise-multiplier", n.NoiseMultiplier != nil}, {"--epsilon", n.Epsilon != nil}, {"--steps", n.Steps != nil}} {
		if f.have {
			given, found = given+1, f.name+" alone"
		}
	}
	noise := value(n.NoiseMultiplier)
	switch {
	case n.Steps != nil && (*n.Steps < 1 || *n.Steps > MaxSteps):
		return "", fmt.Errorf("--steps: found %d; write a whole number from 1 to %d", *n.Steps, MaxSteps)
	case n.NoiseMultiplier != nil && (!(noise > 0) || math.IsInf(noise, 1)):
		return "", fmt.Errorf("--noise-multiplier: found %v; choose a number above 0", noise)
	case n.Delta == 0:
		return "", errors.New("--delta: found 0; Gaussian noise has no guarantee without a δ above 0, such as 1e-5")
	case given < 2:
		return "", fmt.Errorf("of --noise-multiplier, --epsilon and --steps found %s; give any two of them, and plan solves for the third, or all three", found)
	case given == 3 && n.SamplingRate == nil && n.Batch == nil && (n.Sampler == "poisson" || n.Sampler == "fixed"):
		return "sampling-rate", nil
	case n.NoiseMultiplier == nil:
		return "noise-multiplier", nil
	case n.Steps == nil:
		return "steps", nil
	case n.Epsilon == nil:
		return "epsilon", nil
	}
	return "", nil
}

// checkSample refuses numbers of a sample that are out of range, missing, or contradict each other.
func (n Numbers) checkSample(open bool) error {
	rate, batch, rows := value(n.SamplingRate), value(n.Batch), value(n.Rows)
	haveRate, haveBatch := n.SamplingRate != nil, n.Batch != nil
	switch {
	case n.Sampler != "" && n.Sampler != "poisson" && n.Sampler != "fixed" && n.Sampler != "full":
		return fmt.Errorf("--sampler: found %q; choose poisson, fixed or full", n.Sampler)
	case haveRate && !(rate > 0 && rate <= 1):
		return fmt.Errorf("--sampling-rate: found %v; choose a number above 0 and up to 1", rate)
	case n.Rows != nil && (rows < 1 || rows > math.MaxInt32):
		return fmt.Errorf("--rows: found %d; write a whole number from 1 to %d", rows, math.MaxInt32)
	case haveRate && haveBatch:
		return fmt.Errorf("--batch: found beside --sampling-rate; give one of them")
	case haveBatch && n.Rows == nil:
		return fmt.Errorf("--rows is missing: give the number of records that --batch is drawn from")
	case haveBatch && (batch < 1 || batch > rows):
		return fmt.Errorf("--batch: found %d; write a whole number from 1 to the %d of --rows", batch, rows)
	case n.Sampler == "fixed" && n.Rows == nil:
		return fmt.Errorf("--rows is missing: give the number of records that a fixed sample is drawn from")
	case n.Sampler == "full" && (haveBatch && batch < rows || haveRate && rate < 1):
		return fmt.Errorf("--sampler: found full beside a sampling rate below 1; choose poisson or fixed")
	case (n.Sampler == "poisson" || n.Sampler == "fixed") && !haveRate && !haveBatch && !open:
		return fmt.Errorf("--sampling-rate or --batch is missing: --sampler %s needs one, or --epsilon, --noise-multiplier and --steps to find it", n.Sampler)
	}
	return nil
}

// sampled settles the sampler, its rate and its size; open says that the rate is solved for.
func (n Numbers) sampled(open bool) (r release, warning string, err error) {
	r = release{sampler: n.Sampler, rate: 1, rows: value(n.Rows), batch: value(n.Batch), adjacency: n.Adjacency}
	if n.SamplingRate != nil {
		r.rate = *n.SamplingRate
	}
	if err := n.checkSample(open); err != nil {
		return r, "", err
	}
	if n.Batch != nil {
		r.rate = float64(r.batch) / float64(r.rows)
	}
	if r.sampler == "" {
		if r.sampler = "full"; r.rate < 1 {
			r.sampler = "poisson"
		}
	}
	if r.sampler == "fixed" && !open {
		asked := r.rate
		if n.Batch == nil {
			r.batch = max(1, int(math.Round(asked*float64(r.rows))))
		}
		r.rate = float64(r.batch) / float64(r.rows)
		if math.Abs(r.rate-asked) > 1e-9*asked {
			warning = fmt.Sprintf("%v of %s records is %.9g; planned is a sample of %s, which is a rate of %.9g",
				asked, chart.Integer(r.rows), asked*float64(r.rows), chart.Integer(r.batch), r.rate)
		}
	}
	return r, warning, nil
}

// solve sets the number that is missing.
func (n Numbers) solve(r release, missing string) (release, error) {
	b := privacy.Budget{Epsilon: value(n.Epsilon), Delta: n.Delta, Adjacency: n.Adjacency}
	a, try, lowest := n.Accountant, r, 1.0
	var err error
	switch {
	case missing == "noise-multiplier":
		r.noise, err = account.Calibrate(a, b, func(noise float64) privacy.Event {
			try.noise = noise
			return try.event()
		})
	case missing == "steps":
		r.steps, err = account.CalibrateCount(a, b, MaxSteps, func(steps int) privacy.Event {
			try.steps = steps
			return try.event()
		})
	case missing == "sampling-rate" && r.sampler == "fixed":
		r.batch, err = account.CalibrateCount(a, b, r.rows, func(batch int) privacy.Event {
			try.batch = batch
			return try.event()
		})
		r.rate = float64(r.batch) / float64(r.rows)
	case missing == "sampling-rate":
		r.rate, err = account.CalibrateMost(a, b, 1, func(rate float64) privacy.Event {
			try.rate = rate
			lowest = min(lowest, rate)
			return try.event()
		})
	}
	if errors.Is(err, privacy.ErrExhausted) && missing != "noise-multiplier" {
		least := "a single step"
		if try = r; missing == "steps" {
			try.steps = 1
		} else if least = "the smallest sample"; r.sampler == "fixed" {
			try.batch = 1
		} else {
			try.rate = lowest
		}
		return r, fmt.Errorf("--epsilon: %s costs %s by accountant %v, above the ε = %s of the budget; raise --epsilon, --delta or --noise-multiplier%s", least, costOf(try.event(), a, b), a, chart.Full(b.Epsilon),
			map[string]string{"steps": ", or lower --sampling-rate", "sampling-rate": ", or lower --steps"}[missing])
	}
	return r, err
}

// costOf is the cost of an event in words.
func costOf(e privacy.Event, a account.Accountant, b privacy.Budget) string {
	if l, err := a.Loss(e, b.Adjacency); err == nil {
		if epsilon := l.Epsilon(b.Delta); !math.IsInf(epsilon, 0) {
			return fmt.Sprintf("ε = %s at δ = %s", chart.Upper(epsilon), chart.Full(b.Delta))
		}
	}
	return fmt.Sprintf("more than any ε at δ = %s", chart.Full(b.Delta))
}
