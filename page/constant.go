package page

import (
	"strings"

	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// worse marks a figure that a constant would beat.
const worse = " (worse than a constant)"

// widest is the width of the interval of a figure from 0 to 1 from which on the page omits the figure.
const widest = 0.4

// beaten reports whether the constant is better in that score.
func beaten(s *runlog.Scores, constant *record.Constant, f scoreForm) bool {
	if constant == nil {
		return false
	}
	v, c := f.value(s), f.value(constant.Scores())
	return v != nil && c != nil && (f.more && *v < *c || !f.more && *v > *c)
}

// Beaten names the scores of a test in which a constant would be better, as a line of text names them.
func Beaten(s *runlog.Scores) (names []string) {
	if s == nil {
		return nil
	}
	constant := record.ConstantOf(s)
	for _, f := range scoreForms {
		if beaten(s, constant, f) {
			names = append(names, f.name)
		}
	}
	return names
}

// BeatenPrivately names the private figures in which a constant would be better, by the same noisy counts.
func BeatenPrivately(p *runlog.Private) (names []string) {
	if p == nil {
		return nil
	}
	for _, r := range privateRows(p) {
		if r.Beaten {
			names = append(names, r.Name)
		}
	}
	return names
}

// constantWords is what the best constant reaches, in words.
func constantWords(c *record.Constant) string { return factWords(scoresOf(c.Scores())) }

func factWords(facts []fact) string {
	var parts []string
	for _, f := range facts {
		parts = append(parts, f.Name+" "+f.Value)
	}
	return strings.Join(parts, ", ")
}
