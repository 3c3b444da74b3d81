package page

import (
	"fmt"
	"strings"

	"github.com/sottodp/sotto/run/runlog"
)

// A summaryRow is a line of the page's first sheet.
type summaryRow struct {
	Name string
	Text string
	Tag  string // what it is marked as
	At   string // the section that says more
}

// Power is what the guarantee grants an attacker. Masks hold against those who cannot break their ciphers.
func (v *view) Power() string {
	if v.Shared() != nil {
		return "any amount of computing time, short of breaking the masks"
	}
	return "any amount of computing time"
}

// summarize makes the first sheet from what the rest of the page shows.
func (v *view) summarize() {
	add := func(name, at string, text ...string) {
		v.Summary = append(v.Summary, summaryRow{Name: name, Text: strings.Join(text, " "), At: at})
	}
	add("Who is protected", "rests", fmt.Sprintf("Each %s in the dataset %q.", v.Protection.Each(), v.Run.Dataset))
	add("Against whom", "guarantee",
		"Anyone who sees "+seen(v.Run.Search != nil)+", knows every other record, and has "+v.Power()+".")
	if s := v.Shared(); s != nil {
		add("Whom to trust", "owners", s.Trusted)
	}
	relation := "The run says nearly the same whether or not the record is in the table. The number of records is private (add-or-remove)."
	if v.Replace() {
		relation = "The run says nearly the same if another record stands in its place. The number of records is public (replace-one)."
	}
	add("What that means", "guarantee", relation)
	switch {
	case !v.Run.Private():
		add("This run", "guarantee", "There is no guarantee: it is a lab run.")
	case len(v.Alarms) > 0:
		add("This run", "guarantee",
			fmt.Sprintf("ε = %s and δ = %s are claimed, and the log does not support it.", exact(v.Guarantee.Epsilon), exact(v.Guarantee.Delta))+v.sharedWords())
	default:
		before := "thinks it 50 % likely that a record was used"
		if v.Replace() {
			before = "thinks two versions of a record equally likely"
		}
		add("This run", "guarantee",
			fmt.Sprintf("ε = %s and δ = %s. An attacker who %s is right at most %s of the time afterward.", exact(v.Guarantee.Epsilon), exact(v.Guarantee.Delta),
				before, v.Guess)+v.sharedWords())
	}
	if v.Lifetime == nil {
		add("The dataset’s whole life", "",
			"Not on this page, as no ledger was at hand. “sotto report” with the ledger adds it.")
	} else {
		text := []string{v.Lifetime.Words}
		if n := v.Lifetime.EarlierUnprotected + len(v.Lifetime.Unprotected); n > 0 {
			text = append(text, fmt.Sprintf("%s recorded without protection.", plural(n, "access is", "accesses are")))
		}
		add("The dataset’s whole life", "life", text...)
	}
	v.summarizeQuality()
	var not []string
	for _, f := range v.NotCovered {
		not = append(not, f.What)
	}
	add("What is not covered", "not", strings.Join(not, "; ")+".")
	if n := len(v.Public.Assumptions); n > 0 {
		text := []string{fmt.Sprintf("%s that people wrote, taken as public and true.", plural(n, "fact", "facts"))}
		if n := len(v.Public.Asserted); n > 0 {
			text = append(text, fmt.Sprintf("%s that people made beyond them.", plural(n, "assertion", "assertions")))
		}
		add("What it rests on", "rests", text...)
	}
	if d := v.Statements; d != nil {
		for _, said := range []runlog.Statement{{Title: "Purpose", Text: d.Purpose},
			{Title: "Recipients", Text: d.Recipients}, {Title: "Operator", Text: d.Operator},
			{Title: "Reviewer", Text: d.Reviewer}} {
			if said.Text != "" {
				add(said.Title, "", said.Text)
			}
		}
	}
	if n := len(v.Run.Warnings); n > 0 {
		add("Warnings", "warnings", fmt.Sprintf("%s to read before the model is used.", plural(n, "warning", "warnings")))
	}
}

// sharedWords says against whom the guarantee is; nothing where no owners share the noise.
func (v *view) sharedWords() string {
	s := v.Shared()
	if s == nil {
		return ""
	}
	return fmt.Sprintf(" This is against %s, while masks hold. Against %s: %s at the same δ.", s.Against, s.AgainstAll,
		proven(s.EpsilonAlone))
}

// summarizeQuality lists quality figures, and says of them whether they are private.
func (v *view) summarizeQuality() {
	name := "Model quality"
	if v.Private != nil {
		var figures []string
		for _, r := range v.Private.Rows[:min(mostFigures, len(v.Private.Rows))] {
			if r.Interval != "" {
				r.Value += " (" + r.Interval + ")"
			}
			figures = append(figures, r.Name+" "+r.Value)
		}
		v.Summary = append(v.Summary, summaryRow{name, strings.Join(figures, "; ") + ".", "private", "quality"})
		name = "Other figures"
	}
	switch {
	case len(v.Scores) > 0:
		var figures []string
		for _, s := range v.Scores {
			figures = append(figures, s.Name+" "+s.Value)
		}
		v.Summary = append(v.Summary,
			summaryRow{name, strings.Join(figures, "; ") + ": computed from the test rows without noise.", "not private",
				"quality"})
	case v.Private == nil:
		v.Summary = append(v.Summary, summaryRow{name, "The run scored no rows.", "", "quality"})
	}
}

// mostFigures bounds the private figures on the first sheet.
const mostFigures = 8

// seen is what a run lets everybody see.
func seen(search bool) string {
	if search {
		return "what the search released, the best training alone"
	}
	return "all that the run released, every step included"
}

func plural(n int, one, more string) string {
	if n == 1 {
		return integer(n) + " " + one
	}
	return integer(n) + " " + more
}
