// Package chart draws charts as SVG, for a page with its own colors or as a separate file, and writes numbers for
// people.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Line is one curve of a plot. Points that are not finite break the curve.
type Line struct {
	Name string // empty: not in the legend
	X, Y []float64
	SD   []float64 // of each point: bars, or a band if there are many points; may be nil
}

// A Plot is a line plot. Its y axis begins at 0, or with Tight near the smallest value; negative values are not drawn.
type Plot struct {
	ID, Title, Desc string // ID is unique on the page; Desc describes the plot in words
	XLabel, YLabel  string
	LogX            bool
	Shares          bool     // axes are of shares, and their ticks in percent: logarithmic ones
	LogY            bool     // the y axis has decades; values up to 0 are not drawn
	Tight           bool     // the y axis does not begin at 0
	Counts          bool     // x counts something: its ticks are whole numbers
	Categories      []string // the names of x = 0, 1, …: points without lines
	Lines           []Line
	Level           *float64 // a horizontal Line across the plot, with its name
	LevelName       string
	Mark            *[2]float64 // a point that stands out, with its name
	MarkName        string

	of *Panels // whose ranges, styles and legend it has; nil: its own
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
	f(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, p.ID, html.EscapeString(p.Title), p.ID,
		html.EscapeString(p.Desc))
	for i, e := range entries {
		b.WriteString(e.draw(padL, float64(padT+legendH*i)))
	}
	for _, v := range ys.ticks {
		y, label := ys.tick(v)
		f(`<path d="M%d %.1fH%d" class="grid"/>`, padL, py(y), plotW-padR)
		text(padL-8, py(y)+5, "ylab", label)
	}
	for i, v := range xs.ticks {
		x, label := xs.tick(v)
		if p.Categories != nil {
			label = p.Categories[i]
		}
		f(`<path d="M%.1f %.0fv6" class="axis"/>`, px(x), plotH-pd)
		within := plotW - 4.8*float64(utf8.RuneCountInString(label)) // half of a centered label
		text(math.Min(px(x), within), plotH-pd+22, "xlab", label)
	}
	f(`<path d="M%d %.1fV%.0fH%d" class="axis"/>`, padL, top, plotH-pd, plotW-padR)
	text((padL+plotW-padR)/2, plotH-6, "xlab", p.XLabel)
	f(`<text transform="translate(15 %.1f) rotate(-90)" class="xlab">%s</text>`, (top+plotH-pd)/2,
		html.EscapeString(p.YLabel))
	if p.Level != nil {
		f(`<path d="M%d %.1fH%d" class="rule"/>`, padL, py(*p.Level), plotW-padR)
	}
	for i, l := range p.Lines {
		class := p.class(i)
		at := px
		if p.Categories != nil { // beside each other
			at = func(x float64) float64 { return px(x) + 9*(float64(i)-float64(len(p.Lines)-1)/2) }
		}
		b.WriteString(spread(l, class, at, func(y float64) float64 {
			return math.Max(top, math.Min(plotH-pd, py(math.Max(y, 0))))
		}))
		d, points := path(l, at, py)
		if d != "" && p.Categories == nil {
			f(`<path d="%s" class="%s"/>`, d, class)
		}
		if p.Categories != nil || p.of != nil && len(points) <= few {
			for _, q := range points {
				f(`<circle cx="%.1f" cy="%.1f" r="3.5" class="%s dot"/>`, q[0], q[1], class)
			}
		}
	}
	if p.Mark != nil {
		f(`<circle cx="%.1f" cy="%.1f" r="5" class="mark"/>`, px(p.Mark[0]), py(p.Mark[1]))
	}
	b.WriteString(`</svg>`)
	return b.String()
}

type entry struct{ class, name string }

// draw draws an entry of a legend.
func (e entry) draw(x, y float64) string {
	sample := fmt.Sprintf(`<path d="M%.0f %.1fh26" class="%s"/>`, x, y, e.class)
	if e.class == "mark" {
		sample = fmt.Sprintf(`<circle cx="%.0f" cy="%.1f" r="5" class="mark"/>`, x+13, y)
	}
	return sample + fmt.Sprintf(`<text x="%.1f" y="%.1f" class="legend">%s</text>`, x+34, y+5, html.EscapeString(e.name))
}

// class is the style of a line.
func (p *Plot) class(i int) string {
	if p.of != nil && p.Lines[i].Name != "" {
		return p.of.classes[p.Lines[i].Name]
	}
	return fmt.Sprintf("l%d", i)
}

// legend lists the named elements; it is empty under the legend of a figure.
func (p *Plot) legend() []entry {
	if p.of != nil {
		return nil
	}
	return p.named()
}

func (p *Plot) named() []entry {
	var list []entry
	for i, l := range p.Lines {
		if l.Name != "" {
			list = append(list, entry{p.class(i), l.Name})
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
func path(l Line, px, py func(float64) float64) (d string, points [][2]float64) {
	var b strings.Builder
	pen := "M"
	for i := range l.X {
		if !finite(l.X[i]) || !finite(py(l.Y[i])) || l.Y[i] < 0 {
			pen = "M"
			continue
		}
		x, y := px(l.X[i]), py(l.Y[i])
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, x, y)
		points, pen = append(points, [2]float64{x, y}), "L"
	}
	if len(points) == 1 {
		b.WriteString("h3")
	}
	return b.String(), points
}

// few is the most points with a dot and an error bar of their own.
const few = 12

// spread draws a standard deviation up and down: a bar at each of few points, a band along many.
func spread(l Line, class string, px, py func(float64) float64) string {
	var up, down, bars strings.Builder
	for i, sd := range l.SD {
		if !finite(l.X[i]) || !finite(l.Y[i]) || !finite(sd) {
			continue
		}
		x, high, low := px(l.X[i]), py(l.Y[i]+sd), py(l.Y[i]-sd)
		fmt.Fprintf(&bars, "M%.1f %.1fV%.1fm-3 0h6M%.1f %.1fh6", x, high, low, x-3, high)
		fmt.Fprintf(&up, "L%.1f %.1f", x, high)
		back := fmt.Sprintf("L%.1f %.1f", x, low) + down.String()
		down.Reset()
		down.WriteString(back)
	}
	switch {
	case bars.Len() == 0:
		return ""
	case len(l.SD) <= few:
		return fmt.Sprintf(`<path d="%s" class="%s bar"/>`, bars.String(), class)
	}
	return fmt.Sprintf(`<path d="M%sZ" class="%s band"/>`, up.String()[1:]+down.String(), class)
}

// A scale is the range of an axis and its ticks, as exponents of ten if the axis is logarithmic.
type scale struct {
	lo, hi float64
	ticks  []float64
	log    bool
	share  bool // ticks are in percent
}

// tick is the value and the label of a tick.
func (s scale) tick(v float64) (at float64, label string) {
	if !s.log {
		return v, Number(v, 3)
	}
	if at = math.Pow(10, v); s.share {
		return at, Number(100*at, 3) + " %"
	} else if s.hi-s.lo <= narrow {
		return at, Number(at, 1)
	}
	return at, "10" + superscript(int(v))
}

// ranges of the plot: those with the same label in its figure share an axis.
func (p *Plot) ranges() (x, y scale) {
	plots := []Plot{*p}
	if p.of != nil {
		plots = p.of.Plots
	}
	xlo, xhi, ylo, yhi := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0
	seeX := func(v float64) { xlo, xhi = math.Min(xlo, v), math.Max(xhi, v) }
	seeY := func(v float64) {
		if yhi = math.Max(yhi, v); v > 0 {
			ylo = math.Min(ylo, v)
		}
	}
	for _, q := range plots {
		sameX := q.XLabel == p.XLabel && q.LogX == p.LogX
		sameY := q.YLabel == p.YLabel && q.LogY == p.LogY && q.Tight == p.Tight
		q.points(func(x, y, sd float64) {
			if sameX {
				seeX(x)
			}
			if sameY {
				seeY(y)
			}
			if sameY && finite(sd) {
				seeY(y + sd)
				if !p.LogY {
					seeY(y - sd)
				}
			}
		})
		if sameY && q.Level != nil {
			if yhi = math.Max(yhi, *q.Level); p.Tight && *q.Level > 0 {
				ylo = math.Min(ylo, *q.Level)
			}
		}
	}
	x, y = p.xScale(xlo, xhi), p.yScale(ylo, yhi)
	x.share, y.share = p.Shares, p.Shares
	return x, y
}

// points calls see with each point that is drawn, and its spread.
func (p *Plot) points(see func(x, y, sd float64)) {
	for _, l := range p.Lines {
		for i := range l.X {
			sd := 0.0
			if l.SD != nil {
				sd = l.SD[i]
			}
			if finite(l.X[i]) && finite(l.Y[i]) {
				see(l.X[i], l.Y[i], sd)
			}
		}
	}
	if p.Mark != nil && finite(p.Mark[0]) && finite(p.Mark[1]) {
		see(p.Mark[0], p.Mark[1], 0)
	}
}

// xScale is the scale of x from lo to hi; there is no value if lo is above hi.
func (p *Plot) xScale(lo, hi float64) scale {
	if p.Categories != nil {
		x := scale{lo: -0.5, hi: float64(len(p.Categories)) - 0.5}
		for i := range p.Categories {
			x.ticks = append(x.ticks, float64(i))
		}
		return x
	}
	if lo > hi {
		lo, hi = 0, 1
		if p.LogX {
			lo = 0.1
		}
	}
	if p.LogX {
		return decades(lo, hi)
	}
	s := linear(lo, hi, 6)
	if p.Counts {
		s.ticks = slices.DeleteFunc(s.ticks, func(v float64) bool { return v != math.Trunc(v) })
	}
	return s
}

// yScale is the scale of y, whose positive values are from lo to hi.
func (p *Plot) yScale(lo, hi float64) scale {
	switch {
	case p.LogY && lo <= hi:
		return decades(lo, hi)
	case p.LogY:
		return decades(0.1, 1)
	case p.Tight && lo <= hi:
		return linear(lo, hi, 8)
	}
	return linear(0, hi, 5)
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

// narrow is the most decades that have ticks between them.
const narrow = 2.5

// decades spans powers of ten, every one, second, … labeled; of few, it spans 1, 2 and 5 times them.
func decades(lo, hi float64) scale {
	s := scale{log: true, lo: math.Floor(math.Log10(lo) + 1e-9), hi: math.Ceil(math.Log10(hi) - 1e-9)}
	if s.hi <= s.lo {
		s.hi = s.lo + 1
	}
	if hi > 1.01*lo && math.Log10(hi/lo) < narrow-0.7 {
		from, to := s.lo, s.hi
		s.lo, s.hi = math.Inf(-1), math.Inf(1)
		for v := from; v <= to; v++ {
			for _, at := range []float64{v, v + math.Log10(2), v + math.Log10(5)} {
				if at <= math.Log10(lo)+1e-9 {
					s.lo, s.ticks = at, nil
				}
				if s.ticks = append(s.ticks, at); at >= math.Log10(hi)-1e-9 {
					s.hi = at
					return s
				}
			}
		}
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
