package chart

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// Bars are a histogram: a bar for each bin of the same width, with its interval.
type Bars struct {
	ID, Title, Desc string // ID is unique on the page; Desc describes the plot in words
	YLabel          string
	Value           []float64 // of 0 or more
	Low, High       []float64 // of each interval
	Ends            [3]string // the value at the left end, in the middle and at the right end
}

// Height of a histogram, and of what is above its bars, in units of a plot: the name of the axis, over its numbers.
const barsH, barsT = 242, 36

// SVG draws the histogram for a page whose style has the colors, as a [Plot] does.
func (b *Bars) SVG() template.HTML {
	most := 0.0
	for i := range b.Value {
		most = max(most, b.Value[i], b.High[i])
	}
	ys := linear(0, most, 4)
	const bottom = barsH - 30
	py := func(y float64) float64 { return bottom - (y-ys.lo)/(ys.hi-ys.lo)*(bottom-barsT) }
	wide := float64(plotW-padL-padR) / float64(max(1, len(b.Value)))
	var s strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&s, format, args...) }
	f(`<svg viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d">`, plotW, barsH, b.ID, b.ID)
	f(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, b.ID, html.EscapeString(b.Title), b.ID,
		html.EscapeString(b.Desc))
	for _, v := range ys.ticks {
		y, label := ys.tick(v)
		f(`<path d="M%d %.1fH%d" class="grid"/><text x="%d" y="%.1f" class="ylab">%s</text>`, padL, py(y), plotW-padR,
			padL-8, py(y)+5, html.EscapeString(label))
	}
	gap := min(1, wide/8)
	var whiskers strings.Builder
	for i, v := range b.Value {
		x := padL + wide*float64(i)
		f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="bin"/>`, x+gap, py(v), wide-2*gap, bottom-py(v))
		fmt.Fprintf(&whiskers, "M%.1f %.1fV%.1f", x+wide/2, py(b.High[i]), py(b.Low[i]))
	}
	f(`<path d="%s" class="axis"/>`, whiskers.String())
	f(`<path d="M%d %dV%dH%d" class="axis"/>`, padL, barsT, bottom, plotW-padR)
	for i, class := range []string{"first", "xlab", "ylab"} {
		x := padL + float64(i)*float64(plotW-padL-padR)/2
		if class == "first" {
			class = "legend"
		}
		f(`<text x="%.1f" y="%d" class="%s">%s</text>`, x, bottom+22, class, html.EscapeString(b.Ends[i]))
	}
	f(`<text x="%d" y="%d" class="ylab">%s</text></svg>`, padL-8, barsT-18, html.EscapeString(b.YLabel))
	return template.HTML(s.String())
}
