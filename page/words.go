package page

import (
	"fmt"
	"strings"

	"github.com/sottodp/sotto/record"
)

// Batches says how many batches a run charged and how many steps it planned, and explains a surplus
// of batches. atMost means that the steps were chosen during the run.
func Batches(c *record.Course, atMost bool) string {
	was, planned := "batches were", ""
	if c.Charged == 1 {
		was = "batch was"
	}
	if atMost {
		planned = "at most "
	}
	text := fmt.Sprintf("%s %s charged; %s%s planned.", integer(c.Charged), was, planned,
		plural(c.Planned, "step was", "steps were"))
	switch more := c.Charged - c.Lost - c.Steps; {
	case c.Steps == 0 || more <= 0: // not known how many steps there were, or each batch was one
	case more == 1:
		text += " One batch more than the steps is a query before, within or after them; its cost is part of ε."
	default:
		text += fmt.Sprintf(" The %s batches beside the steps are queries before, within or after them; the cost of each is part of ε.",
			integer(more))
	}
	return text
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
func cite(r *record.Record) (plain, bib string) {
	what := "lab run, not private"
	if g := r.Guarantee; g != nil && r.Run.Private() {
		what = fmt.Sprintf("ε = %s, δ = %s, %s", exact(g.Epsilon), exact(g.Delta), g.Relation)
		if s := g.Shares; s != nil {
			what += fmt.Sprintf(", against %s (%s against %s)", s.Against, proven(s.EpsilonAlone), s.AgainstAll)
		}
	}
	plain = fmt.Sprintf("Sotto, version %s (github.com/sottodp/sotto). Run %s on %s: %s.", r.Run.Version, r.Run.ID,
		r.Run.Dataset, what)
	bib = fmt.Sprintf("@misc{sotto,\n  title = {Sotto: differentially private learning in Go},\n  howpublished = {github.com/sottodp/sotto},\n  note = {version %s, run %s, %s},\n  year = {%d}\n}",
		braces.Replace(r.Run.Version), braces.Replace(r.Run.ID), what, r.Run.Started.UTC().Year())
	if p, ok := papers[r.Run.Method]; ok {
		plain += fmt.Sprintf(" Method: %s. %s. %s, %s.", p.authors, p.title, p.venue, p.year)
		bib += fmt.Sprintf("\n\n@inproceedings{%s,\n  title = {%s},\n  author = {%s},\n  booktitle = {%s},\n  year = {%s}\n}",
			p.key, p.title, strings.NewReplacer(", ", " and ").Replace(p.authors), p.venue, p.year)
	}
	return plain, bib
}

// braces removes what would end a field of the bibliography.
var braces = strings.NewReplacer("{", "", "}", "", "\\", "")
