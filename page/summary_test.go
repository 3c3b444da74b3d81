package page

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// first is the first sheet of the page of a run.
func first(t *testing.T, dir string, life *ledger.History) string {
	t.Helper()
	b, err := makePage(dir, "verified", life)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b)
	_, sheet, ok := strings.Cut(string(b), `<section id="summary">`)
	if !ok {
		t.Fatal("the page has no summary")
	}
	sheet, _, _ = strings.Cut(sheet, "</section>")
	for _, part := range strings.Split(sheet, `href="#`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		if !strings.Contains(string(b), fmt.Sprintf("<section id=%q", id)) {
			t.Errorf("the summary points to #%s, which is not on the page", id)
		}
	}
	return html.UnescapeString(strings.NewReplacer("</dt>", " ", "</span>", " ").Replace(sheet))
}

// The first sheet says who is protected and how much, for this run and the dataset's life, and marks every figure of quality.
func TestSummary(t *testing.T) {
	info := asked(t)
	info.Assumptions = []string{"one", "two"}
	info.Disclosure = &runlog.Statements{Purpose: "To find out.", Reviewer: "A. Person"}
	accuracy := 0.75
	info.Result.Test = &runlog.Scores{Rows: 7, Accuracy: &accuracy}
	info.Warnings = nil
	dir := ran(t, info, 3, privacy.Gaussian{Sigma: sigma})
	page := first(t, dir, nil)
	wants(t, page,
		"Who is protected", fmt.Sprintf("Each %s in the dataset %q.", info.Whom(), info.Dataset),
		"Against whom", "Anyone who sees all that the run released, every step included, knows every other record, and has any amount of computing time.",
		"whether or not the record is in the table. The number of records is private (add-or-remove).",
		"Of 100 people of whom an attacker cannot tell whether they are in the table, a guess is right for 50.", "it is right for at most 54.7 % of them on average",
		"What was trained", "A model of the kind \"logistic\" that predicts \"income\" (no or yes), by the method \"sgd\", on about 32,561 records of \"adult\" (declared, not counted). Purpose: To find out.",
		"This run", "An attacker who thinks it 50 % likely that a record was used is right at most ",
		"Not on this page, as no ledger was at hand.",
		"Model quality not private On 7 test rows: accuracy 0.7500. Computed from the test rows without noise.",
		"Messages while loading; Time, memory and pace;",
		"2 facts that people wrote, taken as public and true.",
		"Purpose To find out.", "Reviewer A. Person")
	lacks(t, page, "Warnings", "Operator", "Other figures")

	low := 0.8
	info.Result.Private = &runlog.Private{On: "holdout", Level: 0.95, Accuracy: &runlog.Figure{Value: &low, Low: 0.75, High: 0.85}, AUC: &runlog.Figure{}}
	info.Warnings = []string{"Take care."}
	at := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	life := &ledger.History{
		Facts: ledger.Dataset{Unit: "record", Currency: ledger.InCaps, Created: at}, Total: &ledger.Caps{Epsilon: 6, Delta: 1e-6},
		Unprotected: []ledger.Access{{Since: at, Why: "a lab run"}}, Earlier: 1,
	}
	page = first(t, ran(t, info, 3, privacy.Gaussian{Sigma: sigma}), life)
	wants(t, page,
		"ε = 6 and δ = 0.000001 over 0 runs. No lifetime budget is set", "1 access is recorded without protection.",
		"Model quality private accuracy 0.8000 (0.7500 to 0.8500), AUC (area under the ROC curve) too few records for the noise.",
		"Other figures not private On 7 test rows: accuracy 0.7500.",
		"1 warning to read before the model is used.")

	info.Result.Private, info.Result.Test = nil, nil
	info.Budget.Adjacency = privacy.ReplaceOne
	page = first(t, ran(t, info, 3, privacy.Gaussian{Sigma: sigma}), nil)
	wants(t, page, "if another record stands in its place. The number of records is public (replace-one).", "thinks two versions of a record equally likely", "The run scored no rows.")

	info.Lab = true
	page = first(t, ran(t, info, 3, privacy.Gaussian{Sigma: sigma}), nil)
	wants(t, page, "There is no guarantee: it is a lab run.")
	lacks(t, page, "is right at most")
	info.Lab, info.Budget.Epsilon = false, 1e-3
	page = first(t, ran(t, info, 3, privacy.Gaussian{Sigma: sigma}), nil)
	wants(t, page, "are claimed, and the log does not support it.")
}
