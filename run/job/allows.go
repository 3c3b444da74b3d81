package job

import (
	"fmt"
	"slices"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
)

// A Setting is where the rows of a run are, and what it is part of.
type Setting string

// The settings of a job's run. Owners whose network has mode gossip have no job of a method.
const (
	OnOneTable   Setting = "a table in one process"
	OnWorkers    Setting = "--workers"
	OfOwners     Setting = "network.mode: sum"
	InSearch     Setting = "a search"
	InComparison Setting = "a comparison"
	OnResume     Setting = "--resume" // of a run in any other setting
)

// A Crossing is a pair of properties that a run may not combine.
type Crossing struct {
	In    []Setting // settings that refuse the pair; nil: all
	Field string    // where a person wrote it
	meets func(j *Job) bool
	says  func(j *Job, in Setting) string // what is wrong, and what to do
	With  string                          // the other property
	Why   string                          // the theorem or rule that is missing
}

// crossings lists all refused pairs of properties. Apart from this list, only a method, a model or the schema
// refuses a combination, and only of its own fields. Pairs that depend on the plan are checked once there is
// one.
var crossings = []Crossing{
	{nil, "seed", func(j *Job) bool { return j.Spec.Seed != nil && !j.Spec.Lab },
		always("seed: seeded noise protects nobody; leave it out, or write `lab: true`"), "no `lab: true`",
		"R6: a seed is a key that everyone can know"},
	{nil, "privacy", func(j *Job) bool { return j.Spec.Privacy.Off && !j.Spec.Lab },
		always("privacy: `none` needs `lab: true`; write a budget, or both"), "`none`, and no `lab: true`",
		"R3: an access without a cost is for the lab"},

	{nil, "holdout", func(j *Job) bool { return j.holds() && j.Spec.Privacy.Off },
		always("holdout: found it beside privacy: none; write a budget, which the score on the rows held out needs, or name a test table"), "`privacy: none`", "the score is charged within the budget (PROOFS.md#parallel)"},
	{nil, "holdout", func(j *Job) bool {
		return j.holds() && j.Spec.Privacy.Delta != nil && *j.Spec.Privacy.Delta == 0
	}, always("holdout: found it beside delta: 0; write a δ above 0, as the score has Gaussian noise"), "`delta: 0`",
		"Gaussian noise has no finite ε at δ = 0"},
	{nil, "holdout", func(j *Job) bool { return j.holds() && planned[privacy.Filtered](j) },
		func(j *Job, _ Setting) string {
			return fmt.Sprintf("holdout: found it beside method %s, whose costs depend on what it releases; choose a method whose plan is fixed beforehand", j.Spec.MethodName)
		}, "a filter: `agd` and other methods whose costs depend on what they release",
		"PROOFS.md#parallel is for plans that are fixed beforehand"},
	{[]Setting{OnWorkers, InSearch, InComparison}, "holdout", (*Job).holds,
		func(_ *Job, in Setting) string {
			return fmt.Sprintf("holdout: found it for %s; use `sotto fit` on a table in one process", in)
		}, "any share", "a worker divides no rows; a search scores its candidates, a comparison its cells"},

	{[]Setting{OnWorkers}, "method.name", func(j *Job) bool { return j.Method != nil && method.Solves(j.Method) },
		func(j *Job, _ Setting) string {
			return fmt.Sprintf("method.name: found %s; with --workers choose a method that asks for sums, as a minimizer is computed where all rows are", j.Spec.MethodName)
		}, "a solver: `amp`, `outpert` and the like", "a minimizer is no sum"},
	{[]Setting{OnWorkers}, "method.sampling", planned[privacy.Allocated],
		always("method.sampling: found allocation; with --workers write poisson or fixed, or use all rows"), "`allocation`",
		"an allocation is drawn over all rows at once"},
	{[]Setting{OnWorkers}, "method.center", func(j *Job) bool { return j.Method != nil && centers(j.Method) },
		always("method.center: found mean; with --workers write none, as shards take no center from their rows"), "`mean`",
		"a shard adds up rows as they are"},
	{[]Setting{OnWorkers}, "method.name", func(j *Job) bool { return j.Method != nil && shifts(j.Method) },
		func(j *Job, _ Setting) string {
			return fmt.Sprintf("method.name: found %s, which asks for the mean label; shards sum no labels", j.Spec.MethodName)
		}, "a method that asks for the mean label: `adassp`, `auto` with a number", "a shard adds up no labels"},
	{[]Setting{OnWorkers}, "columns", func(j *Job) bool { return j.Spec.Columns == AutoColumns },
		always("columns: found auto; with --workers write all or a number, as workers read their rows before a method chooses"), "`auto`", "how rows are encoded is fixed before they are read"},
	{[]Setting{OnWorkers}, "privacy", func(j *Job) bool { return j.Spec.Privacy.Off },
		always("privacy: found none; with --workers write a budget: without a bound on a row's part a sum depends on where it is added"), "`none`", "exact sums need bounded parts (oracle/private)"},

	{[]Setting{OfOwners}, "privacy", func(j *Job) bool { return j.Spec.Privacy.Off },
		always("privacy: found none beside network.mode: sum; write a budget, as owners share its noise"), "`none`",
		"ADR 66: what is shared is noise"},
	{[]Setting{OfOwners}, "privacy.delta", func(j *Job) bool {
		return j.Spec.Privacy.Delta != nil && *j.Spec.Privacy.Delta == 0
	},
		always("privacy.delta: found 0 beside network.mode: sum; write a δ above 0: owners share Gaussian noise, which has no finite ε at δ = 0"), "0", "the proof of shares is for Gaussian noise (ADR 66)"},
	{[]Setting{OfOwners}, "schema", func(j *Job) bool {
		return j.Schema != nil && j.Schema.Unit != "" && j.Facts.UnitRows > 0
	},
		always("unit: found several rows to a unit beside network.mode: sum; use a table with one row to a unit, as one unit may have rows at several owners"), "units of several rows", "no owner can bound what a unit has elsewhere"},

	{[]Setting{InSearch}, "lab", func(j *Job) bool { return j.Spec.Lab || j.Spec.Seed != nil || j.Spec.Privacy.Off },
		always("lab: found it for a search, which is charged; leave it out, or use `sotto compare`, which is for the lab"),
		"a lab run", "R21: the number of trainings is secret"},

	{[]Setting{OnResume}, "seed", func(j *Job) bool { return j.Spec.Seed != nil && planned[privacy.Allocated](j) },
		always("a seeded run with random allocation cannot resume: an interrupted epoch is never continued, so the run would end differently than without the interruption; run its spec again"),
		"`sampling: allocation`", "an interrupted epoch is charged and never continued"},
}

// Crossings lists what is refused, for the reference.
func Crossings() []Crossing { return slices.Clone(crossings) }

// Allows says why a run of the job is refused in a setting.
func (j *Job) Allows(in Setting) error {
	for _, c := range crossings {
		if (c.In == nil || slices.Contains(c.In, in)) && c.meets(j) {
			return inputError(j.Spec.Place(c.Field), "%s", c.says(j, in))
		}
	}
	return nil
}

// Allows is Job.Allows before there is a job: by what the spec says.
func (s *Spec) Allows(in Setting) error { return (&Job{Spec: s}).Allows(in) }

func always(text string) func(*Job, Setting) string {
	return func(*Job, Setting) string { return text }
}

// holds says whether records are held out.
func (j *Job) holds() bool { return j.Spec.Holdout != 0 }

// planned says whether the job has a plan with such an event.
func planned[E privacy.Event](j *Job) bool { return j.Plan != nil && privacy.Contains[E](j.Plan) }
