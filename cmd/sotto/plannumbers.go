package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// numbers are a plan that stands on the command line: steps of Gaussian noise, each
// on a sample.
type numbers struct {
	sampler     string // poisson, fixed or full
	rate, noise float64
	batch, rows int // batch is the size of a fixed sample
	steps       int
}

// numberFlags are the flags that a plan from numbers has and a spec has not.
var numberFlags = []string{"sampling-rate", "noise-multiplier", "steps", "sampler", "batch", "rows"}

// givenFlags are those of the flags that stand on the command line.
func givenFlags(f *pflag.FlagSet, flags []string) []string {
	var given []string
	for _, name := range flags {
		if f.Changed(name) {
			given = append(given, name)
		}
	}
	return given
}

// solvedFor says what the number that was left out has become.
var solvedFor = map[string]string{
	"noise-multiplier": "the noise multiplier: the least that the budget allows",
	"steps":            "the steps: the most that the budget allows",
	"sampling-rate":    "the sampling rate: the largest that the budget allows",
}

// mostSteps is the end of the search for steps.
const mostSteps = 1 << 30

// plan reads the numbers and solves for the one that was left out.
func (n *numbers) plan(f *pflag.FlagSet) (*planned, error) {
	b, haveEpsilon, a, err := budgetFlags(f)
	if err != nil {
		return nil, err
	}
	haveRate := f.Changed("sampling-rate") || f.Changed("batch")
	three := givenFlags(f, []string{"noise-multiplier", "epsilon", "steps"})
	missing := ""
	switch {
	case f.Changed("steps") && (n.steps < 1 || n.steps > mostSteps):
		return nil, usageError("--steps: found %d; allowed is 1 to %d", n.steps, mostSteps)
	case f.Changed("noise-multiplier") && (!(n.noise > 0) || math.IsInf(n.noise, 1)):
		return nil, usageError("--noise-multiplier: found %v; allowed is any number above 0", n.noise)
	case len(three) < 2:
		found := "none"
		if len(three) == 1 {
			found = "--" + three[0] + " alone"
		}
		return nil, usageError("of --noise-multiplier, --epsilon and --steps found %s; allowed is any two of them, and plan solves for the third, or all three", found)
	case len(three) == 3 && !haveRate && (n.sampler == "poisson" || n.sampler == "fixed"):
		missing = "sampling-rate"
	case !f.Changed("noise-multiplier"):
		missing = "noise-multiplier"
	case !f.Changed("steps"):
		missing = "steps"
	case !haveEpsilon:
		missing = "epsilon"
	}
	p := &planned{Delta: b.Delta, Adjacency: b.Adjacency, Solved: missing, accountant: a}
	if err := n.readSampler(f, missing == "sampling-rate", p); err != nil {
		return nil, err
	}
	if n.sampler == "fixed" && b.Adjacency != privacy.ReplaceOne {
		return nil, usageError("--sampler: found fixed under %v, where the number of records is private; allowed are poisson and full, or --adjacency %v", b.Adjacency, privacy.ReplaceOne)
	}
	if haveEpsilon {
		p.Budget = &b.Epsilon
	}
	if *n, err = n.solve(missing, a, b); err != nil {
		return nil, err
	}
	p.event = n.event()
	p.Sampler, p.SamplingRate, p.Rows = n.sampler, n.rate, n.rows
	if n.sampler == "fixed" {
		p.Batch = n.batch
	}
	p.NoiseMultiplier, p.Steps = n.noise, n.steps
	if n.rows > 0 {
		spec := run.Spec{Privacy: run.PrivacySpec{Delta: &b.Delta}}
		spec.AcceptDelta, _ = f.GetBool("accept-delta")
		warning, err := spec.CheckDelta(oracle.Public{Rows: n.rows}, "")
		if err != nil {
			return nil, err
		}
		if warning != "" {
			p.Warnings = append(p.Warnings, warning)
		}
	}
	return p, nil
}

// budgetFlags reads what stands in the fields of a spec too: budget and accountant.
// Without --epsilon the budget's ε is 1.
func budgetFlags(f *pflag.FlagSet) (b privacy.Budget, haveEpsilon bool, a account.Accountant, err error) {
	fail := func(format string, args ...any) (privacy.Budget, bool, account.Accountant, error) {
		return privacy.Budget{}, false, nil, usageError(format, args...)
	}
	ofSpecs := []string{"label", "lab", "set", "accept-dropped"}
	for _, s := range specFlags {
		if !slices.Contains([]string{"epsilon", "delta", "adjacency", "accountant"}, s.flag) {
			ofSpecs = append(ofSpecs, s.flag)
		}
	}
	for _, name := range ofSpecs {
		if f.Changed(name) {
			return fail("--%s: found beside numbers; allowed is beside a spec", name)
		}
	}
	b.Epsilon = 1
	for i, name := range []string{"epsilon", "delta"} {
		if f.Changed(name) {
			text, _ := f.GetString(name)
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fail("--%s: found %q; allowed is a number", name, text)
			}
			*[]*float64{&b.Epsilon, &b.Delta}[i] = v
		}
	}
	adjacency, _ := f.GetString("adjacency")
	switch {
	case !f.Changed("delta"):
		return fail("--delta is missing: Sotto has no default for it")
	case adjacency == "":
		return fail("--adjacency is missing: add-or-remove or replace-one")
	}
	if b.Adjacency, err = privacy.ParseAdjacency(adjacency); err != nil {
		return fail("--%v", err)
	}
	if err := b.Validate(); err != nil {
		return fail("--%v", err)
	}
	name, _ := f.GetString("accountant")
	if name == "" {
		name = "best"
	}
	if a, err = account.ByName(name); err != nil {
		return fail("--%v", err)
	}
	return b, f.Changed("epsilon"), a, nil
}

// readSampler settles the sampler, its rate and its size.
func (n *numbers) readSampler(f *pflag.FlagSet, open bool, p *planned) error {
	haveRate, haveBatch, haveRows := f.Changed("sampling-rate"), f.Changed("batch"), f.Changed("rows")
	switch {
	case n.sampler == "" && f.Changed("sampler"), !strings.Contains(" poisson fixed full ", " "+n.sampler+" ") && n.sampler != "":
		return usageError("--sampler: found %q; allowed are poisson, fixed and full", n.sampler)
	case haveRate && !(n.rate > 0 && n.rate <= 1):
		return usageError("--sampling-rate: found %v; allowed is above 0 and at most 1", n.rate)
	case haveRows && (n.rows < 1 || n.rows > math.MaxInt32):
		return usageError("--rows: found %d; allowed is 1 to %d", n.rows, math.MaxInt32)
	case haveRate && haveBatch:
		return usageError("--batch: found beside --sampling-rate; allowed is one of the two")
	case haveBatch && !haveRows:
		return usageError("--rows is missing: --batch is a number of records out of so many")
	case haveBatch && (n.batch < 1 || n.batch > n.rows):
		return usageError("--batch: found %d; allowed is 1 to the %d of --rows", n.batch, n.rows)
	case n.sampler == "fixed" && !haveRows:
		return usageError("--rows is missing: a fixed sample is so many records out of so many")
	case n.sampler == "full" && (haveBatch && n.batch < n.rows || haveRate && n.rate < 1):
		return usageError("--sampler: found full beside a sampling rate below 1; allowed are poisson and fixed")
	case (n.sampler == "poisson" || n.sampler == "fixed") && !haveRate && !haveBatch && !open:
		return usageError("--sampling-rate or --batch is missing: --sampler %s needs one, or --epsilon, --noise-multiplier and --steps to find it", n.sampler)
	}
	if haveBatch {
		n.rate = float64(n.batch) / float64(n.rows)
	}
	if n.sampler == "" {
		if n.sampler = "full"; n.rate < 1 {
			n.sampler = "poisson"
		}
	}
	if n.sampler == "fixed" && !open {
		asked := n.rate
		if !haveBatch {
			n.batch = max(1, int(math.Round(asked*float64(n.rows))))
		}
		n.rate = float64(n.batch) / float64(n.rows)
		if math.Abs(n.rate-asked) > 1e-9*asked {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%v of %s records is %.9g; planned is a sample of %s, which is a rate of %.9g",
				asked, count(n.rows), asked*float64(n.rows), count(n.batch), n.rate))
		}
	}
	return nil
}

// event is what the numbers release.
func (n *numbers) event() privacy.Event {
	var s sample.Sampler = sample.Full{}
	switch n.sampler {
	case "fixed":
		s = sample.Fixed{M: n.batch, N: n.rows}
	case "poisson":
		s = sample.Poisson{Rate: n.rate}
	}
	return privacy.Repeated{Count: n.steps, Of: s.Event(privacy.Gaussian{Sigma: n.noise})}
}

// solve sets the number that is missing.
func (n numbers) solve(missing string, a account.Accountant, b privacy.Budget) (numbers, error) {
	var err error
	try := n
	switch {
	case missing == "noise-multiplier":
		n.noise, err = account.Calibrate(a, b, func(noise float64) privacy.Event {
			try.noise = noise
			return try.event()
		})
	case missing == "steps":
		n.steps, err = account.CalibrateCount(a, b, mostSteps, func(steps int) privacy.Event {
			try.steps = steps
			return try.event()
		})
	case missing == "sampling-rate" && n.sampler == "fixed":
		n.batch, err = account.CalibrateCount(a, b, n.rows, func(batch int) privacy.Event {
			try.batch = batch
			return try.event()
		})
		n.rate = float64(n.batch) / float64(n.rows)
	case missing == "sampling-rate":
		n.rate, err = account.CalibrateMost(a, b, 1, func(rate float64) privacy.Event {
			try.rate = rate
			return try.event()
		})
	}
	if errors.Is(err, privacy.ErrExhausted) && missing != "noise-multiplier" {
		least := map[string]string{"steps": "a single step", "sampling-rate": "the smallest sample"}[missing]
		return n, usageError("--epsilon: found %v; %s costs more by accountant %v", b.Epsilon, least, a)
	}
	if err != nil {
		return n, unprovable(err)
	}
	return n, nil
}
