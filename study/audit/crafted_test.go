package audit

import (
	"context"
	"errors"
	"flag"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
)

var long = flag.Bool("long", false, "audit 1,120 correct runs, and faults with more seeds: some minutes")

// seeds is how many seeds a test has: few, or all with -long.
func seeds(few, all int) int {
	if *long {
		return all
	}
	return few
}

func craft(t *testing.T, job *run.Job, seed int, fault Fault, runs int) *Result {
	t.Helper()
	r, err := Craft(context.Background(), job, synthetic(t, job.Schema, layoutOf(job).rows), Options{Streams: noise.SeededStreams(uint64(seed)), fault: fault.planted(), runs: runs, quick: runs > 0})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// On clinic and adult with `auto`, without the first release that canaries have no part in, the bound is 85 % of the claim or more; of
// adult with it, which takes a tenth of the budget, 80 %. An alarm is none.
func TestCraftedIsTight(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for name, epsilons := range map[string][]string{"clinic": {"1", "4", "8"}, "adult": {"1", "8"}} {
		for _, epsilon := range epsilons {
			r := craft(t, example(t, name, epsilon, run.Override{Path: "pairs", Value: "none", From: "test"}), 1, "", 0)
			t.Logf("%s, ε = %s: at least %.3f, %.3f of any mechanism, %d runs, noise %.4f to %.4f", name, epsilon, r.Bound, r.Plain, r.Runs, r.Scale[0], r.Scale[1])
			if r.Refuted() || r.Bound < 0.85*r.Epsilon || r.Scale[0] < 0.96 || r.Scale[1] > 1.04 {
				t.Errorf("%s, ε = %s: at least %.3f, noise %v, alarms %v", name, epsilon, r.Bound, *r.Scale, r.Alarms)
			}
		}
	}
	job := example(t, "adult", "1")
	if r := craft(t, job, 1, "", 0); job.Facts.Slots == 0 || r.Refuted() || r.Bound < 0.8*r.Epsilon {
		t.Errorf("adult with a first release: at least %.3f, alarms %v", r.Bound, r.Alarms)
	}
}

// One run tells the scale of its noise to ±4 %, with 95 % confidence, from 1,201 residuals on: parameters times releases, which
// are the steps and the mean row. Clinic has 1,216 at ε = 1, and more
// at larger ε. That is a fact of the chi-square law, and not of the seed. The scale is within 11 % of what is charged: it is not in one seed of a million.
func TestScaleOfOneRun(t *testing.T) {
	width := func(lo, hi float64) float64 { return (hi - lo) / (hi + lo) } // half of it, over the middle
	for _, name := range []string{"clinic", "adult"} {
		for _, epsilon := range []string{"1", "4", "8"} {
			job := example(t, name, epsilon)
			releases := method.MaxSteps(job.Method)
			if auto, ok := job.Method.(method.Auto); ok && auto.Center == method.CenterMean {
				releases++
			}
			residuals := job.Facts.Dim * releases
			r := craft(t, job, 1, "", 1)
			if got := width(r.Scale[0], r.Scale[1]); residuals < 1201 || got > 0.04 || math.Abs((r.Scale[0]+r.Scale[1])/2-1) > 0.11 {
				t.Errorf("%s, ε = %s: %d residuals, the scale is known to ±%.4f: %v", name, epsilon, residuals, got, *r.Scale)
			} else {
				t.Logf("%s, ε = %s: %d residuals, ±%.2f %%, %.4f to %.4f", name, epsilon, residuals, 100*got, r.Scale[0], r.Scale[1])
			}
		}
	}
	for degrees, want := range map[int]bool{1200: false, 1201: true} {
		r := residuals{square: 1, degrees: degrees}
		if got := width(r.between(Failure)); got <= 0.04 != want {
			t.Errorf("%d residuals: ±%v", degrees, got)
		}
	}
	if r := craft(t, example(t, "clinic", "1"), 1, FaultNoise, 1); !slices.Contains(r.Alarms, "noise: scale") {
		t.Errorf("one run with less noise: alarms %v", r.Alarms)
	}
}

// Ways to release that crafted canaries audit: noise and sample of each kind.
func craftedJobs(t *testing.T) map[string]*run.Job {
	t.Helper()
	schema, err := smallSchema(200, 7)
	if err != nil {
		t.Fatal(err)
	}
	batch := method.SGD{Steps: 8, Gradient: method.Gradient{Batch: 60}}
	jobs := map[string]*run.Job{
		"all rows":               jobOf(t, schema, method.SGD{Steps: 8}, 4, privacy.AddRemove, "gdp"),
		"all rows, replace-one":  jobOf(t, schema, method.SGD{Steps: 8}, 4, privacy.ReplaceOne, "gdp"),
		"Poisson":                jobOf(t, schema, batch, 4, privacy.AddRemove, ""),
		"Poisson, replace-one":   jobOf(t, schema, batch, 4, privacy.ReplaceOne, ""),
		"fixed size":             jobOf(t, schema, method.SGD{Steps: 8, Gradient: method.Gradient{Batch: 60, Sampling: method.Fixed}}, 4, privacy.ReplaceOne, ""),
		"value clipping":         jobOf(t, schema, method.SGD{Steps: 8, Gradient: method.Gradient{Clipping: method.ByValue}}, 4, privacy.AddRemove, "gdp"),
		"Laplace noise, ε alone": nil,
	}
	zero := 0.0
	job, err := job.PrepareOn(&run.Spec{MethodName: "gd", Method: method.GD{}, Model: run.ModelSpec{Name: "logistic"}, Output: method.Last,
		Privacy: run.PrivacySpec{Epsilon: 4, Delta: &zero, Adjacency: privacy.AddRemove}}, schema)
	if err != nil {
		t.Fatal(err)
	}
	jobs["Laplace noise, ε alone"] = job
	for name, m := range map[string]string{"Hessians": "newton", "choices": "agd"} {
		if jobs[name], err = small(m, 4, 200, 7); err != nil {
			t.Fatal(err)
		}
	}
	for name, adj := range map[string]privacy.Adjacency{"holdout": privacy.AddRemove, "holdout, replace-one": privacy.ReplaceOne} {
		jobs[name] = heldOut(t, "classes: [no, yes]", "logistic", adj)
	}
	for name, adj := range map[string]privacy.Adjacency{"center of classes": privacy.AddRemove, "center of classes, replace-one": privacy.ReplaceOne} {
		jobs[name] = centered(t, adj)
	}
	return jobs
}

// heldOut is a job with a holdout that is as large as what it trains on.
func heldOut(t *testing.T, label, model string, adj privacy.Adjacency) *run.Job {
	t.Helper()
	schema, err := labeledSchema(400, 7, label)
	if err != nil {
		t.Fatal(err)
	}
	delta := 1e-5
	job, err := job.PrepareOn(&run.Spec{MethodName: "sgd", Method: method.SGD{Steps: 8}, Model: run.ModelSpec{Name: model}, Output: method.Last, Holdout: 0.5,
		Privacy: run.PrivacySpec{Epsilon: 4, Delta: &delta, Adjacency: adj, Accountant: "gdp"}}, schema)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// centered is a job whose mean row, which it releases, is shorter than its gradients.
func centered(t *testing.T, adj privacy.Adjacency) *run.Job {
	t.Helper()
	schema, err := labeledSchema(400, 7, "classes: [a, b, c]")
	if err != nil {
		t.Fatal(err)
	}
	delta := 1e-5
	job, err := job.PrepareOn(&run.Spec{MethodName: "auto", Method: method.Auto{Center: method.CenterMean, Steps: 8}, Model: run.ModelSpec{Name: "softmax"}, Output: method.Last,
		Privacy: run.PrivacySpec{Epsilon: 4, Delta: &delta, Adjacency: adj, Accountant: "gdp"}}, schema)
	if err != nil {
		t.Fatal(err)
	}
	if !job.Facts.Centered || job.Facts.Features() == job.Facts.Dim {
		t.Fatalf("the facts are %+v", job.Facts)
	}
	return job
}

// TestAuditOfCenters: an audit looks for records in a mean row as in gradients, which have other numbers of coordinates: in one run and in many.
func TestAuditOfCenters(t *testing.T) {
	race.Skip(t)
	job := centered(t, privacy.AddRemove)
	r := craft(t, job, 1, "", 300)
	t.Logf("at least %.3f; μ at least %.3f of %.3f", r.Bound, r.Mu, r.Charged)
	if r.Refuted() || r.Bound < 0.85*r.Epsilon {
		t.Errorf("at least %.3f of ε = %v, alarms %v", r.Bound, r.Epsilon, r.Alarms)
	}
	for fault, alarm := range map[Fault]string{FaultNoise: "noise: scale", FaultTwice: "canaries"} {
		if r := craft(t, job, 1, fault, 150); !slices.Contains(r.Alarms, alarm) {
			t.Errorf("%s is not found: alarms %v", fault, r.Alarms)
		}
	}
	r, err := One(t.Context(), job, synthetic(t, job.Schema, 300), Options{Canaries: 100, Streams: noise.SeededStreams(1)})
	if err != nil || r.Refuted() || r.Bound <= 0 {
		t.Errorf("one run: %+v, %v", r, err)
	}
}

// TestAuditOfParts: of a run with a holdout the bound is below the claim, and near it: each canary is looked for in its own part, by all that
// the part releases, or under replace-one in both. One that is in both parts shows in the other one, whatever the label.
func TestAuditOfParts(t *testing.T) {
	for _, c := range []struct{ label, model string }{{"classes: [no, yes]", "logistic"}, {"min: 0, max: 1", "linear"}} {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			job := heldOut(t, c.label, c.model, adj)
			r := craft(t, job, 1, "", 2000)
			t.Logf("%s, %v: at least %.3f; μ at least %.3f of %.3f", c.model, adj, r.Bound, r.Mu, r.Charged)
			if r.Refuted() || r.Bound > r.Epsilon || r.Bound < 0.75*r.Epsilon { // of one to four canaries a run
				t.Errorf("%s, %v: at least %.3f of ε = %v, alarms %v", c.model, adj, r.Bound, r.Epsilon, r.Alarms)
			}
		}
		if r := craft(t, heldOut(t, c.label, c.model, privacy.AddRemove), 1, FaultParts, 500); !slices.Contains(r.Alarms, "canaries in the other part") {
			t.Errorf("%s: records in both parts are not found: %v", c.model, r.Alarms)
		}
	}
}

// No alarm arises in audits of correct runs: 20 or 4 of each kind, 200 or 20 with -long, which makes 1,120. Their level is 1e-4, so with random seeds this test
// would fail once in 70 times at most, and -long once in 9. The bound at 95 % is above the claim in few.
func TestNoFalseAlarm(t *testing.T) {
	for name, job := range craftedJobs(t) {
		above, audits := 0, 20
		switch {
		case *long && job.Accountant.String() == "gdp":
			audits = 200
		case *long:
		case race.Enabled && job.Accountant.String() != "gdp": // their claims take a second each
			continue
		case race.Enabled || job.Accountant.String() != "gdp":
			audits = 4
		}
		for seed := range audits {
			r := craft(t, job, seed, "", 60)
			if r.Refuted() {
				t.Errorf("%s, seed %d: alarms %v; %+v", name, seed, r.Alarms, r.Tests)
			}
			if r.Bound > r.Epsilon {
				above++
			}
			if seed == 0 {
				t.Logf("%s: at least %.2f, %.2f of any mechanism, %d runs", name, r.Bound, r.Plain, r.Runs)
			}
		}
		if float64(above) > 0.05*float64(audits)+5*math.Sqrt(0.05*float64(audits)) {
			t.Errorf("%s: the bound is above the claim in %d audits of %d", name, above, audits)
		}
	}
}

// Each planted fault is found, by the tests that docs/how-to/audit.md says.
func TestPlantedFaultsAreFound(t *testing.T) {
	jobs := craftedJobs(t)
	for _, c := range []struct {
		fault Fault
		on    string
		by    []string
	}{
		{FaultNoise, "all rows", []string{"canaries", "noise: scale", "noise: law"}},
		{FaultNoise, "Laplace noise, ε alone", []string{"noise: scale", "noise: law"}},
		{FaultNoise, "Hessians", []string{"noise: scale", "noise of Hessians: scale", "noise of Hessians: law"}},
		{FaultClip, "all rows", []string{"canaries"}},
		{FaultClip, "value clipping", []string{"canaries"}},
		{FaultClip, "Poisson", []string{"canaries"}},
		{FaultSample, "Poisson", []string{"sample: independent of steps"}},
		{FaultSample, "fixed size", []string{"sample: independent of steps"}},
		{FaultSample, "Poisson, replace-one", []string{"sample: independent of steps", "sample: size"}},
		{FaultDivisor, "all rows", []string{"noise: scale", "noise: law", "noise: independent of sums"}},
		{FaultDivisor, "Poisson", []string{"noise: scale"}},
		{FaultTwice, "all rows", []string{"canaries"}},
		{FaultTwice, "all rows, replace-one", []string{"canaries"}},
		{FaultParts, "holdout", []string{"canaries in the other part"}},
	} {
		if race.Enabled && jobs[c.on].Accountant.String() != "gdp" {
			continue
		}
		r := craft(t, jobs[c.on], 1, c.fault, 150)
		for _, name := range c.by {
			if !slices.Contains(r.Alarms, name) {
				t.Errorf("%s, %s: no alarm %q; alarms %v", c.fault, c.on, name, r.Alarms)
			}
		}
		t.Logf("%s, %s: %s", c.fault, c.on, strings.Join(r.Alarms, "; "))
	}
}

// Choices by Gumbel noise of the right scale pass; with 30 % less noise their law shows. Seeds are fixed; with others the former would fail once
// in 10⁴ times at most for each of its tests.
func TestResidualsOfChoices(t *testing.T) {
	coins, err := noise.SeededStreams(1).Stream("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, less := range []float64{1, 0.7} {
		var r residuals
		for n := range 4000 {
			var counts []int64
			var scores []float64
			for range 2 + n%7 {
				counts = append(counts, int64(coins.Below(600)))
				scores = append(scores, float64(counts[len(counts)-1])/200)
			}
			k, err := mech.Select{Epsilon: 0.01 / less}.Choose(counts, 1, 1, coins)
			if err != nil {
				t.Fatal(err)
			}
			r.choice(k, scores, (float64(coins.Below(1<<40))+0.5)*0x1p-40)
		}
		for _, test := range r.tests() {
			far := less < 1 && strings.HasSuffix(test.Name, "law")
			if far && test.P > 1e-6 || less == 1 && test.P < 1e-4 {
				t.Errorf("%v times the noise, %s: %v", less, test.Name, test.P)
			}
		}
	}
}

// Crafted canaries of one run share no coordinate.
func TestCraftedDirections(t *testing.T) {
	for _, dim := range []int{1, 5, 64, 1000} {
		for _, norm := range []int{1, 2} {
			s := &canarySet{In: make([]bool, min(dim, 40)), Key: 1, Dim: dim, Apart: true}
			covered := map[int]bool{}
			for s.sums = range 200 {
				seen := map[int]bool{}
				for i := range s.In {
					d := s.Direction(i, norm)
					for j := d.At; j < d.At+d.Width; j++ {
						if j >= dim || seen[j] {
							t.Fatalf("of %d: coordinate %d twice, or none", dim, j)
						}
						seen[j], covered[j] = true, true
					}
				}
			}
			if len(covered) != dim {
				t.Errorf("of %d: %d coordinates are tried", dim, len(covered))
			}
		}
	}
}

// The samples of a correct run are noted, and one that repeats shows.
func TestDrawing(t *testing.T) {
	streams := noise.SeededStreams(1)
	var right, wrong drawing
	for k := range 400 {
		var d sum.Draw
		if err := streams.Key(&d.Key, "sample", k); err != nil {
			t.Fatal(err)
		}
		d.Sampler, d.Total = sample.Poisson{Rate: 0.1}, 50
		right.note(&d)
		if err := streams.Key(&d.Key, "sample", k/2); err != nil {
			t.Fatal(err)
		}
		wrong.note(&d)
	}
	for _, test := range right.tests() {
		if test.P < 1e-3 {
			t.Errorf("%s: %v", test.Name, test.P)
		}
	}
	if p := wrong.tests()[0].P; p > 1e-6 {
		t.Errorf("samples that repeat: %v", p)
	}
	if n := common([]int32{1, 3, 4, 9}, []int32{0, 3, 9, 12}); n != 2 {
		t.Errorf("in common: %d", n)
	}
}

// A method without noisy gradients has no place for crafted canaries either.
func TestCraftedBlind(t *testing.T) {
	for _, name := range []string{"amp", "majority"} {
		job, err := small(name, 4, 100, 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Craft(t.Context(), job, synthetic(t, job.Schema, layoutOf(job).rows), Options{Streams: noise.SeededStreams(1)}); !errors.Is(err, ErrBlind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// odd is noise of which the audit knows no law.
type odd struct{ mech.Gaussian }

func (odd) Event() privacy.Event { return privacy.PureDP{Epsilon: 1} }

// An audit does not pass over noise that it does not know: it notes a gradient whose noise has no law here.
func TestUnknownNoise(t *testing.T) {
	facts := oracle.Public{Dim: 2, Rows: 10, Adjacency: privacy.AddRemove}
	set := &canarySet{Dim: 2, unit: 0x1p-20, sum: make([]int64, 2), others: make([]float64, 2)}
	for want, n := range map[bool]mech.Additive{false: mech.Gaussian{Sigma: 1}, true: odd{mech.Gaussian{Sigma: 1}}} {
		p := &probe{set: set, facts: &facts, residuals: &residuals{}}
		p.hear(make([]float64, 2), oracle.Grad{Clip: clip.Norm{C: 1}, Noise: n}, sample.Full{})
		if p.unknown != want || (p.heard == 1) == want {
			t.Errorf("%T: unknown is %v, heard %d", n, p.unknown, p.heard)
		}
	}
}
