package page

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/record"
)

// mostEffects bounds the columns that are drawn.
const mostEffects = 30

// effects are those of a record, drawn.
type effects struct {
	*record.Effects
	Curves []curve
	Maps   []heatMap
	First  figures
	More   *figures // folded; nil: none
	Rest   int      // columns that are not drawn
}

// A ranking is the line of a column in the table of effects.
type ranking struct {
	record.Effect
	Step, By, Ratio string
}

// none fills cells of a column whose effect is not a straight line.
const none = "–"

// Ranked are the drawn columns and pairs, those first that move the margin furthest.
func (e *effects) Ranked() (lines []ranking) {
	ranked := slices.Clone(e.Columns[:len(e.Columns)-e.Rest])
	for _, p := range e.Pairs {
		ranked = append(ranked, record.Effect{Name: p.Name, Span: p.Span})
	}
	slices.SortStableFunc(ranked, func(a, b record.Effect) int { return cmp.Compare(b.Span, a.Span) })
	for _, k := range ranked {
		l := ranking{k, "no one step: see its figure", none, none}
		if k.Slope != nil {
			l.Step = k.Slope.Step
			l.By, l.Ratio = number(k.Slope.By), number(k.Slope.Ratio)
			if k.Half != nil {
				l.By += " ± " + number(k.Slope.Half)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// A curve is a picture of an effect: a plot of a number, or bars of levels.
type curve struct {
	Name   string
	span   float64
	Plot   template.HTML
	Levels []level
}

// A heatMap is a picture of the effect of a pair.
type heatMap struct {
	record.PairEffect
	*chart.Heat
}

// A level is a bar: its value, and its width in percent of the widest of the page. Noise is the width of its noise,
// which begins at From; 0: not known.
type level struct {
	Name, Value        string
	Width, From, Noise int
	Zero               int // where bars begin, which leaves room for noise below 0
}

// Points reports whether a band narrows to a point.
func (e *effects) Points() bool {
	return slices.ContainsFunc(e.Columns[:len(e.Columns)-e.Rest], func(k record.Effect) bool {
		return k.X != nil && slices.Contains(k.Half, 0)
	})
}

// figures are some of the pictures.
type figures struct {
	Curves []curve
	Maps   []heatMap
}

// firstEffects are as many columns as the page draws unfolded: those that move the margin furthest.
const firstEffects = 4

// split divides the pictures in those that the page shows and those that it folds, if any.
func (e *effects) split() {
	if e.First = (figures{e.Curves, e.Maps}); len(e.Curves)+len(e.Maps) > firstEffects+1 {
		ranked := slices.Clone(e.Curves)
		slices.SortStableFunc(ranked, func(a, b curve) int { return cmp.Compare(b.span, a.span) })
		n := min(firstEffects, len(ranked))
		e.First, e.More = figures{Curves: ranked[:n]}, &figures{ranked[n:], e.Maps}
	}
}

// drawn makes the curves of the first columns; nil where there are none.
func drawn(of *record.Effects) *effects {
	if of == nil {
		return nil
	}
	e := &effects{Effects: of, Rest: max(0, len(of.Columns)-mostEffects)}
	shown := e.Columns[:len(e.Columns)-e.Rest]
	var plots []chart.Plot
	widest := 0.0
	for _, k := range shown {
		widest = math.Max(widest, k.Span)
	}
	for _, p := range of.Pairs {
		widest = math.Max(widest, p.Span)
	}
	zero := 0.0 // how far the noise of a bar goes below 0
	for _, k := range shown {
		for j, half := range k.Half {
			if k.X == nil {
				zero = math.Max(zero, half-k.Above[j])
			}
		}
	}
	wide := zero + widest + of.Noise // of the highest bar
	for _, p := range of.Pairs {
		e.Maps = append(e.Maps, heatMap{p, chart.NewHeat(p.OfA, p.OfB, p.Above, widest)})
	}
	for i, k := range shown {
		if k.X == nil {
			bars := curve{Name: k.Name, span: k.Span}
			for j, name := range k.Names {
				l := level{Name: name, Value: number(k.Above[j]), Width: chart.Share(k.Above[j], wide),
					Zero: chart.Share(zero, wide)}
				if k.Half != nil && k.Half[j] > 0 {
					l.Value = chart.Within(k.Above[j], k.Half[j])
					l.From = chart.Share(zero+k.Above[j]-k.Half[j], wide)
					l.Noise = max(1, chart.Share(zero+k.Above[j]+k.Half[j], wide)-l.From)
				}
				bars.Levels = append(bars.Levels, l)
			}
			e.Curves = append(e.Curves, bars)
			continue
		}
		p := chart.Plot{ID: fmt.Sprintf("effect%d", i), Title: "Effect of " + k.Name, XLabel: k.Axis, YLabel: e.What,
			Desc: fmt.Sprintf("How the %s moves with %s: by %s between its lowest and its highest point.", e.What, k.Name,
				number(k.Span)), Lines: []chart.Line{{X: k.X, Y: k.Above, SD: k.Half}}}
		if k.LogX {
			p.LogX, p.XLabel = true, "1 + "+k.Name
		}
		plots = append(plots, p)
		e.Curves = append(e.Curves, curve{Name: k.Name, span: k.Span})
	}
	panels := chart.NewPanels(plots)
	next := 0
	for i := range e.Curves {
		if e.Curves[i].Levels == nil {
			e.Curves[i].Plot = panels.Plots[next].SVG()
			next++
		}
	}
	e.split()
	return e
}

// WriteEffects writes the effects of the columns in the text of a model file as CSV: a line for each slope, point,
// level and cell of a pair. It fails where the model has none to show.
func WriteEffects(w io.Writer, model []byte) error {
	e, err := record.EffectsOf(model)
	if err != nil {
		return err
	}
	if e == nil {
		return errors.New("the model has several margins, or features without names; effects need a model of two classes or of a number over the columns of a table")
	}
	out := csv.NewWriter(w)
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	line := func(column, kind, value string, effect, half float64, known bool) {
		low, high, ratio := "", "", ""
		if known {
			low, high = text(effect-half), text(effect+half)
		}
		if e.Ratio != "" {
			ratio = text(math.Exp(effect))
		}
		out.Write([]string{column, kind, value, text(effect), low, high, ratio}) // Flush keeps the error
	}
	out.Write([]string{"column", "kind", "value", "effect", "low", "high", "ratio"})
	for _, k := range e.Columns {
		known := k.Half != nil
		if k.Slope != nil {
			line(k.Name, "slope", k.Slope.Step, k.Slope.By, k.Slope.Half, known)
			continue
		}
		for i, y := range k.Y {
			half := 0.0
			if known {
				half = k.Half[i]
			}
			switch {
			case k.X == nil:
				line(k.Name, "level", k.Names[i], y, half, known)
			case i%k.Kinks == 0: // between these the effect is straight
				x := k.X[i]
				if k.LogX {
					x--
				}
				line(k.Name, "point", text(x), y, half, known)
			}
		}
	}
	for _, p := range e.Pairs {
		for i, a := range p.OfA {
			for j, b := range p.OfB {
				line(p.Name, "cell", text(a)+" × "+text(b), p.Y[i][j], 2*p.Noise, p.Noise > 0)
			}
		}
	}
	out.Flush()
	return out.Error()
}
