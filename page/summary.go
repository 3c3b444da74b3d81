package page

import (
	"fmt"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/record"
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

// summarize makes the first sheet from what the rest of the page shows: a picture and the first lines, then the others.
func (v *view) summarize() {
	to := &v.Lines
	add := func(name, at string, text ...string) {
		*to = append(*to, summaryRow{Name: name, Text: strings.Join(text, " "), At: at})
	}
	add("What was trained", "rests", v.trained())
	add("Who is protected", "rests", fmt.Sprintf("Each %s in the dataset %q.", v.Protection.Each(), v.Run.Dataset))
	add("This run", "guarantee", v.thisRun())
	v.summarizeQuality()
	if v.Lifetime == nil {
		add("The dataset’s whole life", "",
			"Not on this page, as no ledger was at hand. “sotto report” with the ledger adds it.")
	} else {
		text := []string{v.lifetime(), v.Lifetime.Lasts}
		if n := v.Lifetime.AllUnprotected(); n > 0 {
			text = append(text, fmt.Sprintf("%s recorded without protection.", plural(n, "access is", "accesses are")))
		}
		add("The dataset’s whole life", "life", text...)
	}
	if n := len(v.Run.Warnings); n > 0 {
		add("Warnings", "warnings", fmt.Sprintf("%s to read before the model is used.", plural(n, "warning", "warnings")))
	}
	if v.Run.Private() && len(v.Alarms) == 0 {
		v.people()
	}

	to = &v.Summary
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
}

// lifetime says what all runs of the dataset cost together.
func (v *view) lifetime() string {
	l := v.Lifetime
	if l.Total != nil && l.Currency == ledger.InCaps {
		return fmt.Sprintf("ε = %s and δ = %s over %s.", exact(l.Total.Epsilon), exact(l.Total.Delta),
			plural(l.AllRuns(), "run", "runs"))
	}
	return l.Words
}

// trained says what was trained, on what and for whom.
func (v *view) trained() string {
	model := "A model"
	if v.Run.Model != "" {
		model = fmt.Sprintf("A model of the kind %q", v.Run.Model)
	}
	if t := v.Public.Table; t.Label != "" {
		model += fmt.Sprintf(" that predicts %q", t.Label)
		if n := len(t.Classes); n == 2 {
			model += fmt.Sprintf(" (%s or %s)", t.Classes[0], t.Classes[1])
		} else if n > 2 {
			model += fmt.Sprintf(" (one of %s classes)", integer(n))
		}
	}
	text := fmt.Sprintf("%s, by the method %q", model, v.Run.Method)
	of := "records"
	if v.Protection.UnitRows > 0 {
		of = fmt.Sprintf("units (%s)", v.Protection.Unit)
	}
	switch n := v.Public.Table.Rows; {
	case n > 0 && v.Replace():
		text += fmt.Sprintf(", on %s %s of %q", integer(n), of, v.Run.Dataset)
	case n > 0:
		text += fmt.Sprintf(", on about %s %s of %q (declared, not counted)", integer(n), of, v.Run.Dataset)
	default:
		text += fmt.Sprintf(", on the records of %q", v.Run.Dataset)
	}
	if v.Run.HeldOut > 0 {
		text += fmt.Sprintf("; a share of %s was held out to score it", exact(v.Run.HeldOut))
	}
	if d := v.Statements; d != nil && d.Purpose != "" {
		text += ". Purpose: " + strings.TrimSuffix(d.Purpose, ".")
	}
	return text + "."
}

// thisRun says what the run guarantees.
func (v *view) thisRun() string {
	if !v.Run.Private() {
		return "There is no guarantee: it is a lab run."
	}
	g := v.Guarantee
	caps := fmt.Sprintf("ε = %s and δ = %s", exact(g.Epsilon), exact(g.Delta))
	if len(v.Alarms) > 0 {
		return caps + " are claimed, and the log does not support it." + v.sharedWords()
	}
	before := "thinks it 50 % likely that a record was used"
	if v.Replace() {
		before = "thinks two versions of a record equally likely"
	}
	text := fmt.Sprintf("%s limit how much one record can change what the run released; smaller values protect more. An attacker who %s is right at most %s of the time afterward", caps, before, v.Guess)
	if v.GuessPair != "" {
		text += fmt.Sprintf(", by the noise of this run (%s by ε and δ alone)", v.GuessPair)
	}
	return text + "." + v.sharedWords()
}

// people draws for how many of 100 people an attacker's guess is right: by chance, and at most with the run.
func (v *view) people() {
	g := v.Guarantee
	guess := g.Guess
	if g.PlanGuess != nil {
		guess = min(guess, *g.PlanGuess)
	}
	v.People = chart.People(guess)
	who := "Of 100 people of whom an attacker cannot tell whether they are in the table, a guess is right for 50."
	if v.Replace() {
		who = "Of 100 people of whom an attacker cannot tell which of two versions is in the table, a guess is right for 50."
	}
	v.PeopleWords = fmt.Sprintf("%s After all that this run released, it is right for at most %s of them on average (red: what the run adds).",
		who, v.Guess)
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
	name, inWords := "Model quality", chart.FigureWords()
	if v.Private != nil {
		var figures []string
		for _, r := range privateRows(v.Quality.Private) {
			figures = append(figures, inWords(r.Name, r.Value, r.Interval))
		}
		text := strings.Join(figures, ", ") + "."
		if words := privateConstantWords(v.Quality.Private); words != "" {
			text += " One answer for all rows, by the same noisy counts: " + words + "."
		}
		v.Lines = append(v.Lines, summaryRow{name, text, "private", "quality"})
		name = "Other figures"
	}
	switch {
	case len(v.Scores) > 0:
		text := testWords(v.Quality.Test, inWords) + " Computed from the test rows without noise."
		v.Lines = append(v.Lines, summaryRow{name, text, "not private", "quality"})
	case v.Private == nil:
		v.Lines = append(v.Lines, summaryRow{name, "The run scored no rows.", "", "quality"})
	}
	if d := v.Statements; d != nil && d.WithoutPrivacy != "" {
		v.Lines = append(v.Lines, summaryRow{"Without privacy", d.WithoutPrivacy, "stated by a person", "quality"})
	}
}

// constantScores are those of the best constant, by name.
func constantScores(s *runlog.Scores) map[string]string {
	all := map[string]string{}
	if c := record.ConstantOf(s); c != nil {
		for _, f := range scoresOf(c.Scores()) {
			all[f.Name] = f.Value
		}
	}
	return all
}

// testWords is a sentence of the scores of a test, each beside that of the best constant.
func testWords(s *runlog.Scores, inWords func(name, value, beside string) string) string {
	constant := constantScores(s)
	var figures []string
	for _, f := range scoresOf(s) {
		beside := ""
		if c := constant[f.Name]; c != "" {
			beside = "one answer for all rows: " + c
		}
		figures = append(figures, inWords(f.Name, f.Value, beside))
	}
	text := fmt.Sprintf("On %s", plural(s.Rows, "test row", "test rows"))
	if len(figures) == 0 {
		return text + ": no scores."
	}
	return text + ": " + strings.Join(figures, ", ") + "."
}

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
