// Package chart draws line charts as SVG, for a page with its own colors or as a separate file.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// A Line is one curve of a plot. Points that are not finite break the curve.
type Line struct {
	Name string // empty: not in the legend
	X, Y []float64
}

// A Plot is a line plot. Its y axis begins at 0, or with Tight near the smallest value; negative values are not drawn.
type Plot struct {
	ID, Title, Desc string // ID is unique on the page; Desc describes the plot in words
	XLabel, YLabel  string
	LogX            bool
	LogY            bool // the y axis has decades; values up to 0 are not drawn
	Tight           bool // the y axis does not begin at 0
	Lines           []Line
	Level           *float64 // a horizontal Line across the plot, with its name
	LevelName       string
	Mark            *[2]float64 // a point that stands out, with its name
	MarkName        string
}

// Size of a plot and of the margins of its field, in its own units.
const (
	plotW, plotH         = 480, 300
	padL, padR, padT, pd = 72, 16, 14, 50
	legendH              = 22
)

// usual is the longest legend with which a plot keeps its height.
const usual = 5

// height of the plot: a long legend adds to it.
func (p *Plot) height() int {
	if n := len(p.legend()); n > usual {
		return plotH + legendH*(n-2)
	}
	return plotH
}

// SVG draws the plot for a page whose style has the colors: classes l0, l1, … are the lines,
// rule the level, mark the point, and axis, grid, xlab, ylab, legend the rest.
func (p *Plot) SVG() template.HTML { return template.HTML(p.draw("")) }

// draw draws the plot; attributes are added to those of its element.
func (p *Plot) draw(attributes string) string {
	entries, plotH := p.legend(), float64(p.height())
	top := float64(padT + legendH*len(entries))
	xs, ys := p.ranges()
	px := func(x float64) float64 {
		if p.LogX {
			x = math.Log10(x)
		}
		return padL + (x-xs.lo)/(xs.hi-xs.lo)*(plotW-padL-padR)
	}
	py := func(y float64) float64 {
		if p.LogY {
			y = math.Log10(y)
		}
		return plotH - pd - (y-ys.lo)/(ys.hi-ys.lo)*(plotH-pd-top)
	}
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	text := func(x, y float64, class, s string) {
		f(`<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class, html.EscapeString(s))
	}
	f(`<svg%s viewBox="0 0 %d %.0f" role="img" aria-labelledby="%s-t %s-d">`, attributes, plotW, plotH, p.ID, p.ID)
	f(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, p.ID, html.EscapeString(p.Title), p.ID, html.EscapeString(p.Desc))
	for i, e := range entries {
		y := float64(padT + legendH*i)
		if e.class == "mark" {
			f(`<circle cx="%d" cy="%.1f" r="5" class="mark"/>`, padL+13, y)
		} else {
			f(`<path d="M%d %.1fh26" class="%s"/>`, padL, y, e.class)
		}
		text(padL+34, y+5, "legend", e.name)
	}
	for _, v := range ys.ticks {
		y, label := tick(v, p.LogY)
		f(`<path d="M%d %.1fH%d" class="grid"/>`, padL, py(y), plotW-padR)
		text(padL-8, py(y)+5, "ylab", label)
	}
	for _, v := range xs.ticks {
		x, label := tick(v, p.LogX)
		f(`<path d="M%.1f %.0fv6" class="axis"/>`, px(x), plotH-pd)
		within := plotW - 4.8*float64(utf8.RuneCountInString(label)) // half of a centered label
		text(math.Min(px(x), within), plotH-pd+22, "xlab", label)
	}
	f(`<path d="M%d %.1fV%.0fH%d" class="axis"/>`, padL, top, plotH-pd, plotW-padR)
	text((padL+plotW-padR)/2, plotH-6, "xlab", p.XLabel)
	f(`<text transform="translate(15 %.1f) rotate(-90)" class="xlab">%s</text>`, (top+plotH-pd)/2, html.EscapeString(p.YLabel))
	if p.Level != nil {
		f(`<path d="M%d %.1fH%d" class="rule"/>`, padL, py(*p.Level), plotW-padR)
	}
	for i, l := range p.Lines {
		if d := path(l, px, py); d != "" {
			f(`<path d="%s" class="l%d"/>`, d, i)
		}
	}
	if p.Mark != nil {
		f(`<circle cx="%.1f" cy="%.1f" r="5" class="mark"/>`, px(p.Mark[0]), py(p.Mark[1]))
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// style colors a separate file, on white.
const style = Style + `.head{font-size:16px;font-weight:600}`

// Style colors plots on a white page.
const Style = `text{font:14px system-ui,sans-serif;fill:#1b1f24}` +
	`.xlab{text-anchor:middle}.ylab{text-anchor:end}path{fill:none;stroke-width:1.5}.axis{stroke:#1b1f24}.grid{stroke:#d0d7de}` +
	`.rule{stroke:#b3261e;stroke-dasharray:8 5}.mark{fill:#b3261e;stroke:#fff;stroke-width:1.5}` +
	`.l0{stroke:#0a58ca;stroke-width:2.5}.l1{stroke:#b35900;stroke-width:2.5;stroke-dasharray:3 4}` +
	`.l2{stroke:#1a7f37;stroke-width:2.5;stroke-dasharray:9 4}.l3{stroke:#7b3fa0;stroke-width:2.5;stroke-dasharray:1 3}` +
	`.l4{stroke:#00798c;stroke-width:2.5;stroke-dasharray:14 4 2 4}.l5{stroke:#c2185b;stroke-width:2.5;stroke-dasharray:5 2}` +
	`.l6{stroke:#5d4037;stroke-width:1.5}.l7{stroke:#546e7a;stroke-width:1.5;stroke-dasharray:3 4}` +
	`.l8{stroke:#827717;stroke-width:1.5;stroke-dasharray:9 4}.l9{stroke:#000;stroke-width:1.5;stroke-dasharray:1 3}` +
	`.l10{stroke:#e64a19;stroke-width:1.5;stroke-dasharray:14 4 2 4}.l11{stroke:#3949ab;stroke-width:1.5;stroke-dasharray:5 2}`

// Figure draws plots one below the other, each under its title, as a complete SVG file. The note
// follows the title of the figure.
func Figure(title, note string, plots ...Plot) string {
	const head, top = 34, 52 // height of a plot's title, and of the head of the figure
	var b strings.Builder
	width, height := plotW, top
	for i := range plots {
		height += head + plots[i].height()
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(title))
	fmt.Fprintf(&b, "<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", style)
	fmt.Fprintf(&b, "<text x=\"16\" y=\"22\" class=\"head\">%s</text>\n", html.EscapeString(title))
	fmt.Fprintf(&b, "<text x=\"16\" y=\"43\">%s</text>\n", html.EscapeString(note))
	y := top
	for i := range plots {
		fmt.Fprintf(&b, "<text x=\"16\" y=\"%d\">%s</text>\n", y+24, html.EscapeString(plots[i].Title))
		b.WriteString(plots[i].draw(fmt.Sprintf(` y="%d" width="%d" height="%d"`, y+head, plotW, plots[i].height())))
		b.WriteByte('\n')
		y += head + plots[i].height()
	}
	b.WriteString("</svg>\n")
	return b.String()
}

type entry struct{ class, name string }

// legend lists the named elements.
func (p *Plot) legend() []entry {
	var list []entry
	for i, l := range p.Lines {
		if l.Name != "" {
			list = append(list, entry{fmt.Sprintf("l%d", i), l.Name})
		}
	}
	if p.Level != nil {
		list = append(list, entry{"rule", p.LevelName})
	}
	if p.Mark != nil {
		list = append(list, entry{"mark", p.MarkName})
	}
	return list
}

// path draws a line; a single point becomes a short visible dash.
func path(l Line, px, py func(float64) float64) string {
	var b strings.Builder
	drawn, pen := 0, "M"
	for i := range l.X {
		if !finite(l.X[i]) || !finite(py(l.Y[i])) || l.Y[i] < 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, px(l.X[i]), py(l.Y[i]))
		drawn, pen = drawn+1, "L"
	}
	if drawn == 1 {
		b.WriteString("h3")
	}
	return b.String()
}

// A scale is the range of an axis and its ticks, as exponents of ten if the axis is logarithmic.
type scale struct {
	lo, hi float64
	ticks  []float64
}

func (p *Plot) ranges() (x, y scale) {
	xlo, xhi, ylo, yhi := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0
	see := func(vx, vy float64) {
		if finite(vx) && finite(vy) {
			xlo, xhi, yhi = math.Min(xlo, vx), math.Max(xhi, vx), math.Max(yhi, vy)
			if vy > 0 {
				ylo = math.Min(ylo, vy)
			}
		}
	}
	for _, l := range p.Lines {
		for i := range l.X {
			see(l.X[i], l.Y[i])
		}
	}
	if p.Mark != nil {
		see(p.Mark[0], p.Mark[1])
	}
	if p.Level != nil {
		yhi = math.Max(yhi, *p.Level)
	}
	y = linear(0, yhi, 5)
	if p.Tight && ylo <= yhi {
		if p.Level != nil && *p.Level > 0 {
			ylo = math.Min(ylo, *p.Level)
		}
		y = linear(ylo, yhi, 8)
	}
	if p.LogY && ylo <= yhi {
		y = decades(ylo, yhi)
	} else if p.LogY {
		y = decades(0.1, 1)
	}
	if xlo > xhi {
		xlo, xhi = 0, 1
		if p.LogX {
			xlo = 0.1
		}
	}
	if p.LogX {
		return decades(xlo, xhi), y
	}
	return linear(xlo, xhi, 6), y
}

// linear makes about n round ticks; the upper end of the range is one of them
// when the lower end is 0.
func linear(lo, hi float64, n int) scale {
	if !(hi-lo > 1e-300) {
		hi = lo + math.Max(1, math.Abs(lo)/8)
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, m := range []float64{2, 2.5, 2} { // 2, 5, 10 times
		if (hi-lo)/step <= float64(n)*1.001 {
			break
		}
		step *= m
	}
	if lo == 0 {
		hi = step * math.Ceil(hi/step-1e-9)
	}
	s := scale{lo: lo, hi: hi}
	first := math.Ceil(lo/step - 1e-9)
	for i := range 2 * n {
		if v := (first + float64(i)) * step; v <= hi+step*1e-9 {
			s.ticks = append(s.ticks, v)
		}
	}
	return s
}

// decades spans powers of ten, every one, second, … labeled.
func decades(lo, hi float64) scale {
	s := scale{lo: math.Floor(math.Log10(lo) + 1e-9), hi: math.Ceil(math.Log10(hi) - 1e-9)}
	if s.hi <= s.lo {
		s.hi = s.lo + 1
	}
	every := math.Ceil((s.hi - s.lo) / 7)
	for v := math.Ceil(s.lo/every) * every; v <= s.hi; v += every {
		s.ticks = append(s.ticks, v)
	}
	return s
}

// columns of a plot's field, in its own units.
const columns = plotW - padL - padR

// Thin keeps the smallest and the largest point of a curve in each column of a plot, so a spike of a long run stays
// visible. The points are evenly spaced in x.
func Thin(x, y []float64) (tx, ty []float64) {
	if len(x) <= 2*columns {
		return x, y
	}
	for s := range columns {
		from, to := s*len(x)/columns, (s+1)*len(x)/columns
		least, most := from, from
		for i := from + 1; i < to; i++ {
			if y[i] < y[least] {
				least = i
			}
			if y[i] > y[most] {
				most = i
			}
		}
		a, b := min(least, most), max(least, most)
		tx, ty = append(tx, x[a]), append(ty, y[a])
		if b != a {
			tx, ty = append(tx, x[b]), append(ty, y[b])
		}
	}
	return tx, ty
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// tick returns the value and the label of a tick; on a logarithmic axis v is an exponent of ten.
func tick(v float64, log bool) (at float64, label string) {
	if log {
		return math.Pow(10, v), "10" + superscript(int(v))
	}
	return v, Number(v, 3)
}
