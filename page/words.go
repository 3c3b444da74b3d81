package page

import (
	"fmt"
	"strings"

	"github.com/sottodp/sotto/record"
)

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
