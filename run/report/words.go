package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// notCovered lists what the guarantee does not cover (rules.md: R9, R11, R15,
// R22, R23). Runs differ only in what they have.
func notCovered(info *runlog.Info) []fact {
	list := []fact{
		{"Messages while loading",
			"Errors in the data file are shown on its owner's terminal with line and column, so that the file can be corrected. Keep that terminal, and whether loading went through, to the owner."},
		{"Time, memory and pace",
			"How long the run took, how much memory it used, how fast its progress went and when it began and ended may depend on the records. The times on this page are of that kind."},
		{"Crashes that the data cause",
			"If a particular record can make the program fail, the failure reveals it. A run that ended because its budget was used up, or that a person stopped, is covered."},
	}
	if slices.Contains(info.Assertions, runlog.MetricsTimings) {
		list = append(list,
			fact{"Metrics with timings",
				"Durations, processor time, memory and counts of batches were served as metrics while the run went (--metrics-timings). They may depend on the records, as the time of the run does: keep what was collected to the owner of the data."})
	}
	if info.Result != nil && info.Result.Test != nil {
		list = append(list,
			fact{"Scores on test rows",
				"The scores on this page are exact figures of the test rows. They protect nobody in the test file and are not part of ε; leave them out where those people need protection."})
	}
	if info.Seed != nil {
		list = append(list,
			fact{"The seed",
				"The guarantee needs noise that nobody can predict. The noise of this run came from a seed that is written down."})
	}
	list = append(list, numerics(info),
		fact{"Choices made by looking at the data",
			"Bounds, levels, norm bounds, the row count, the model and its settings are taken as public. If any was chosen by looking at these records, or this run was picked as the best of several, that access is not counted here. Every run that was tried has to be charged."},
		fact{"Predictions for the own records",
			"A person who has the records and the model can compute its predictions for these records, and figures from them. Such predictions are no charged access and no entry of the ledger; they are not part of this guarantee."},
		fact{"The same people elsewhere",
			"Each dataset and each run has its own guarantee. Where one person is in several, the losses add up; the ledger adds them for one dataset only."},
		fact{"A person with several records", several(info)},
		fact{"What is true of everybody",
			"A model learns facts about the population, and such a fact may let others infer something about a person who was never in the data. Differential privacy limits what taking part adds; it does not hide what would be learned anyway."},
	)
	if s := info.Shares(); s != nil {
		list = append(list,
			fact{"Owners who tell what they know",
				fmt.Sprintf("The guarantee is against %s, while masks hold. %s Against %s: %s at the same δ.",
					text.Against(s.Colluders), text.Trust(s.Owners, s.Colluders), text.AgainstAll, proven(s.Alone))})
	}
	if info.Budget.Adjacency == privacy.ReplaceOne {
		list = append(list, fact{"The number of records", "Under replace-one the number of records is public."})
	}
	if info.Budget.Delta == 0 && !info.Off {
		list = append(list,
			fact{"δ = 0 on a real machine",
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
func numerics(info *runlog.Info) fact {
	text := "Every released number is a multiple of a public power of two: the clipped sum is rounded to that grid, the noise is rounded to the same grid, and both are added exactly, so the last digits of a released number tell nothing. What rounding the sum can add is part of the sensitivity. The sampler of the noise is not ideal: its distance from the exact distribution, times coordinates, times steps, comes on top of δ."
	if info.Result != nil && info.Result.SampleBound != "" {
		text += " Of this run: " + info.Result.SampleBound
	} else {
		text += " This record does not hold the figure yet."
	}
	if info.Off {
		text = "This run has no noise, so there is nothing for rounding to spoil."
	}
	return fact{"Floating point", text}
}

// paper is the publication of a method.
type paper struct{ key, authors, title, venue, year string }

// papers holds the publications of the methods that have one.
var papers = map[string]paper{
	"sgd": {"fang2023improved", "Huang Fang, Xiaoyun Li, Chenglin Fan and Ping Li",
		"Improved Convergence of Differential Private SGD with Gradient Clipping",
		"International Conference on Learning Representations (ICLR)", "2023"},
}

// cite returns the citation of a run as text and as BibTeX.
func cite(info *runlog.Info) (plain, bib string) {
	what := fmt.Sprintf("ε = %s, δ = %s, %s", exact(info.Budget.Epsilon), exact(info.Budget.Delta), info.Budget.Adjacency)
	if s := info.Shares(); s != nil {
		what += fmt.Sprintf(", against %s (%s against %s)", text.Against(s.Colluders), proven(s.Alone), text.AgainstAll)
	}
	if len(labWords(info)) > 0 {
		what = "lab run, not private"
	}
	plain = fmt.Sprintf("Sotto, version %s (github.com/sottodp/sotto). Run %s on %s: %s.", info.Version, info.ID,
		info.Dataset, what)
	bib = fmt.Sprintf("@misc{sotto,\n  title = {Sotto: differentially private learning in Go},\n  howpublished = {github.com/sottodp/sotto},\n  note = {version %s, run %s, %s},\n  year = {%d}\n}",
		braces.Replace(info.Version), braces.Replace(info.ID), what, info.Started.UTC().Year())
	if p, ok := papers[info.Method]; ok {
		plain += fmt.Sprintf(" Method: %s. %s. %s, %s.", p.authors, p.title, p.venue, p.year)
		bib += fmt.Sprintf("\n\n@inproceedings{%s,\n  title = {%s},\n  author = {%s},\n  booktitle = {%s},\n  year = {%s}\n}",
			p.key, p.title, strings.NewReplacer(", ", " and ").Replace(p.authors), p.venue, p.year)
	}
	return plain, bib
}

// braces removes what would end a field of the bibliography.
var braces = strings.NewReplacer("{", "", "}", "", "\\", "")

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
