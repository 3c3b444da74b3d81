package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// Numbers within words are as pages write them.
var (
	number, exact, upward = chart.Short, chart.Full, chart.Upper
	integer               = chart.Integer
	downward              = func(v float64) string { return chart.NumberDown(v, 4) }
)

// Proven writes an ε, rounded up, or that there is none.
func Proven(epsilon *float64) string {
	if epsilon == nil {
		return "no finite ε is proven"
	}
	return "ε = " + upward(*epsilon)
}

// mostEvents bounds the lines of events on the page, however long the run is.
const mostEvents = 50

// released lists the first lines of what was charged, and counts the others.
func released(log *runlog.Record) (lines []Release, more int) {
	list, many := log.Event().(privacy.Composed)
	if !many {
		list = privacy.Composed{log.Event()}
	}
	first := 0
	for _, e := range list[:min(mostEvents, len(list))] {
		batches := e.(privacy.Repeated)
		l := Release{First: first, Times: batches.Count, What: words(batches.Of)}
		l.Event, _ = privacy.MarshalEvent(batches.Of) // it was read from one
		lines, first = append(lines, l), first+batches.Count
	}
	return lines, max(len(list)-mostEvents, 0)
}

// words says what one batch released.
func words(e privacy.Event) string { return privacy.Fold(e, phrase) }

// phrase says what was released, given the words for the events inside e.
func phrase(e privacy.Event, inside []string) string {
	switch e := e.(type) {
	case privacy.Gaussian:
		return fmt.Sprintf("a sum over the records with Gaussian noise, whose standard deviation is %s times the most that one record can change the sum", number(e.Sigma))
	case privacy.GaussianSum:
		return fmt.Sprintf("a sum over the records with Gaussian noise, whose standard deviation is %s times the most that replacing one record can change the sum, and %s times the most that its presence can", number(e.Replacement), number(e.Presence))
	case privacy.Laplace:
		return fmt.Sprintf("a sum over the records with Laplace noise, whose scale is %s times the most that one record can change the sum", number(e.Scale))
	case privacy.PureDP:
		return fmt.Sprintf("a release that is private at ε = %s, δ = 0", number(e.Epsilon))
	case privacy.AboveThreshold:
		return fmt.Sprintf("the number of the first of at most %s sums over the records that reaches a noisy threshold; the threshold has Laplace noise of scale %s, each sum of scale %s, times the most that one record can change a sum", integer(e.Max), number(e.Threshold), number(e.Query))
	case privacy.Select:
		return fmt.Sprintf("a noisy choice among candidates, whose odds one record changes by a factor of at most e^%s",
			number(e.Epsilon))
	case privacy.ApproxDP:
		return fmt.Sprintf("a release that is private at ε = %s, δ = %s", number(e.Epsilon), number(e.Delta))
	case privacy.FixedSampled:
		return fmt.Sprintf("on a secret random batch of %s of the %s records: %s", integer(e.M), integer(e.N), inside[0])
	case privacy.PoissonSampled:
		return fmt.Sprintf("on a secret random batch that holds each record independently with probability %s: %s",
			number(e.Rate), inside[0])
	case privacy.Allocated:
		return fmt.Sprintf("in an epoch whose %s secret batches hold each record once, at random, on each batch: %s",
			integer(e.Batches), inside[0])
	case privacy.Parallel:
		return fmt.Sprintf("on the part %q of the records: %s", e.Name(), inside[0])
	case privacy.Shared:
		return fmt.Sprintf("%s, of which each of %s owners added a share, and of which %s owners may know theirs", inside[0],
			integer(e.Owners), integer(e.Colluders))
	case privacy.Retried:
		return fmt.Sprintf("%s; and up to %s of these batches once more, where an owner was missing", inside[0],
			integer(e.Retries))
	case privacy.Repeated:
		return fmt.Sprintf("%s times %s", integer(e.Count), inside[0])
	case privacy.Composed:
		if len(inside) == 0 {
			return "nothing"
		}
		return strings.Join(inside, "; and ")
	case privacy.Filtered:
		unit := map[privacy.Currency]string{privacy.InPure: "pure ε", privacy.InZCDP: "zCDP",
			privacy.InGDP: "Gaussian differential privacy",
			privacy.InRDP: fmt.Sprintf("Rényi divergence of order %s", number(e.Order))}[e.Currency]
		return fmt.Sprintf("releases whose noise and number were chosen during the run, each charged before it was made, within one budget of ε = %s, δ = %s counted in %s", number(e.Epsilon), number(e.Delta), unit)
	case privacy.Tuned:
		return fmt.Sprintf("the best of a secret, random number of releases, %s on average, each of which is one of these: %s", number(e.Mean()), strings.Join(inside, "; and "))
	case privacy.NonPrivate:
		return "an access to the records without noise: " + e.Why
	}
	return e.String()
}

// terms says which noise a plan has (R8) and which records its steps use.
func terms(plan privacy.Event) (noise, sampling string) {
	var noises, samplings []string
	note := func(list *[]string, s string) {
		if len(*list) < 2 && !slices.Contains(*list, s) { // more than one is said in other words
			*list = append(*list, s)
		}
	}
	noisy := func(e privacy.Event) bool {
		switch e := e.(type) {
		case privacy.Gaussian:
			note(&noises, chart.Number(e.Sigma, 6))
		case privacy.GaussianSum:
			note(&noises, chart.Number(e.Replacement, 6))
		case privacy.Laplace:
			note(&noises, "Laplace, "+chart.Number(e.Scale, 6))
		case privacy.Tuned: // as a whole: its candidates are secret
			note(&noises, e.String())
			return false
		default:
			if privacy.Single(e) {
				note(&noises, e.String())
			}
		}
		return true
	}
	privacy.Walk(plan, func(e privacy.Event) bool {
		switch e := e.(type) {
		case privacy.Parallel:
			return !runlog.InHoldout(e) // whose score is no step
		case privacy.PoissonSampled:
			note(&samplings, fmt.Sprintf("Poisson: each record enters a step with probability %s", number(e.Rate)))
			privacy.Walk(e.Of, noisy)
			return false
		case privacy.FixedSampled:
			note(&samplings, fmt.Sprintf("fixed size: each step draws %s of the %s records", integer(e.M), integer(e.N)))
			privacy.Walk(e.Of, noisy)
			return false
		case privacy.Allocated:
			note(&samplings,
				fmt.Sprintf("random allocation: each record is in one of the %s batches of an epoch", integer(e.Batches)))
			privacy.Walk(e.Of, noisy)
			return false
		}
		down := noisy(e)
		if privacy.Single(e) || !down {
			note(&samplings, "none: every step uses all records")
		}
		return down
	})
	one := func(list []string) string {
		switch len(list) {
		case 0:
			return "none"
		case 1:
			return list[0]
		}
		return "differs from step to step: see “What was released”"
	}
	return one(noises), one(samplings)
}

// TestScores names the note on exact figures of test rows.
const TestScores = "Scores on test rows"

// notCovered lists what the guarantee does not cover (rules.md: R9, R11, R15,
// R22, R23). Runs differ only in what they have.
func notCovered(info *runlog.Info, s *account.Shares) []Note {
	list := []Note{
		{"Messages while loading",
			"Errors in the data file are shown on its owner's terminal with line and column, so that the file can be corrected. Keep that terminal, and whether loading went through, to the owner."},
		{"Time, memory and pace",
			"How long the run took, how much memory it used, how fast its progress went and when it began and ended may depend on the records. The times on this page are of that kind."},
		{"Crashes that the data cause",
			"If a particular record can make the program fail, the failure reveals it. A run that ended because its budget was used up, or that a person stopped, is covered."},
	}
	if slices.Contains(info.Assertions, runlog.MetricsTimings) {
		list = append(list,
			Note{"Metrics with timings",
				"Durations, processor time, memory and counts of batches were served as metrics while the run went (--metrics-timings). They may depend on the records, as the time of the run does: keep what was collected to the owner of the data."})
	}
	if info.Result != nil && info.Result.Test != nil {
		list = append(list,
			Note{TestScores,
				"The scores on this page are exact figures of the test rows. They protect nobody in the test file and are not part of ε; leave them out where those people need protection."})
	}
	if info.Seed != nil {
		list = append(list,
			Note{"The seed",
				"The guarantee needs noise that nobody can predict. The noise of this run came from a seed that is written down."})
	}
	list = append(list, numerics(info),
		Note{"Choices made by looking at the data",
			"Bounds, levels, norm bounds, the row count, the model and its settings are taken as public. If any was chosen by looking at these records, or this run was picked as the best of several, that access is not counted here. Every run that was tried has to be charged."},
		Note{"Predictions for the own records",
			"A person who has the records and the model can compute its predictions for these records, and figures from them. Such predictions are no charged access and no entry of the ledger; they are not part of this guarantee."},
		Note{"The same people elsewhere",
			"Each dataset and each run has its own guarantee. Where one person is in several, the losses add up; the ledger adds them for one dataset only."},
		Note{"A person with several records", several(info)},
		Note{"What is true of everybody",
			"A model learns facts about the population, and such a fact may let others infer something about a person who was never in the data. Differential privacy limits what taking part adds; it does not hide what would be learned anyway."},
	)
	if s != nil {
		list = append(list,
			Note{"Owners who tell what they know",
				fmt.Sprintf("The guarantee is against %s, while masks hold. %s Against %s: %s at the same δ.",
					text.Against(s.Colluders), text.Trust(s.Owners, s.Colluders), text.AgainstAll, Proven(s.Alone))})
	}
	if info.Budget.Adjacency == privacy.ReplaceOne {
		list = append(list, Note{"The number of records", "Under replace-one the number of records is public."})
	}
	if info.Budget.Delta == 0 && !info.Off {
		list = append(list,
			Note{"δ = 0 on a real machine",
				"Numbers in a computer are finite, so the tails of the noise end. On a machine δ = 0 means a tiny δ above 0."})
	}
	return list
}

// several says what the guarantee leaves of a person who is more than one unit.
func several(info *runlog.Info) string {
	text := fmt.Sprintf("The unit here is: %s. A person with several of them is protected less, by a factor in ε that is their number.", info.Whom())
	if info.UnitRows > 0 {
		text += " Units are told apart by a column of the table: a person who stands there under two ids is two of them. Scores on test rows count rows, not units."
	}
	return text
}

// numerics states what arithmetic on a machine leaves of the theorem.
func numerics(info *runlog.Info) Note {
	text := "Every released number is a multiple of a public power of two: the clipped sum is rounded to that grid, the noise is rounded to the same grid, and both are added exactly, so the last digits of a released number tell nothing. What rounding the sum can add is part of the sensitivity. The sampler of the noise is not ideal: its distance from the exact distribution, times coordinates, times steps, comes on top of δ."
	if info.Result != nil && info.Result.SampleBound != "" {
		text += " Of this run: " + info.Result.SampleBound
	} else {
		text += " This record does not hold the figure yet."
	}
	if info.Off {
		text = "This run has no noise, so there is nothing for rounding to spoil."
	}
	return Note{"Floating point", text}
}

// asserted says in words what a person asserted by those names.
func asserted(names []string) []string {
	words := map[string]string{
		runlog.AcceptDelta:    "δ may be 1/rows or more. A mechanism that publishes one whole record at random would satisfy such a δ.",
		runlog.TestOverlaps:   "Test rows that equal training rows are other people's. If they are the same people's, the test scores show protected rows without noise.",
		runlog.Void:           "Protected rows may be accessed without charge, for test scores or in the lab, which ends the guarantee of their dataset. The ledger says whether any were.",
		runlog.MetricsTimings: "Times, memory and counts of batches may be served as metrics, which may depend on the records.",
		runlog.AcceptDropped:  "More than one row in a hundred may be dropped for not fitting the schema. How many were is private and stands in no file.",
	}
	var out []string
	for _, name := range names {
		text, ok := words[name]
		if !ok {
			text = name
		}
		out = append(out, text)
	}
	return out
}
