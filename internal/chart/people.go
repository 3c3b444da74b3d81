package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// People draws for how many of 100 people a guess is right: for 50 by chance, and at most with that probability.
func People(guess float64) template.HTML {
	const all, chance, across, size = 100, 50, 25, 18
	right := min(all, int(math.Ceil(all*guess-1e-9)))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-labelledby="people-desc"><desc id="people-desc">%s</desc>`,
		across*size, all/across*(size+8), "100 people; a guess is right for 50 of them by chance.")
	for i := range all {
		class := "none"
		switch {
		case i < chance:
			class = "base"
		case i < right:
			class = "more"
		}
		x, y := i%across*size+size/2, i/across*(size+8)
		fmt.Fprintf(&b, `<circle class="%s" cx="%d" cy="%d" r="3.5"/><path class="%s" d="M%d %dv-5a6 6 0 0 1 12 0v5z"/>`, class, x,
			y+5, class, x-6, y+21)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
