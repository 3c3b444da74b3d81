package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// mostEffects bounds the columns that are drawn.
const mostEffects = 30

// effects are what each column adds to the margin of a row, computed from the released model alone.
type effects struct {
	What                string // that the curves move
	Factor, Least, Most string // by which a row's features are multiplied: of a row of middle size, of the largest, of the smallest
	Projected           bool   // rows within the norm bound keep their features
	Norm, Bound         string
	Noise               string // half of the width of a level's band; "": not known
	Curves              []curve
	Rest                []fact // columns that are not drawn, and how far they move the margin
}

// A curve is the effect of one column: a plot of a number, or bars of levels.
type curve struct {
	Name   string
	Plot   template.HTML
	Levels []level
}

// A level is a bar: its value, and its width in percent of the widest of the page.
type level struct {
	Name, Value string
	Width       int
}

// effectsOf reads the model in dir; nil where there is none with one margin over named columns.
func effectsOf(dir string) (*effects, error) {
	text, err := readfile.All(filepath.Join(dir, runlog.ModelFile), readfile.JSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var m struct {
		Model   string          `json:"model"`
		Classes []string        `json:"classes"`
		W       []float64       `json:"w"`
		Factor  float64         `json:"margin_factor"`
		Noise   float64         `json:"noise"`
		Schema  json.RawMessage `json:"schema"`
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", runlog.ModelFile, err)
	}
	if len(m.Schema) == 0 {
		return nil, nil
	}
	s, err := schema.FromJSON(m.Schema)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", runlog.ModelFile, err)
	}
	if s.Format.Kind != schema.KindCSV || len(m.W) != s.Dim() || len(m.Classes) > 2 {
		return nil, nil
	}
	e := &effects{What: "margin w·x", Norm: "L2", Bound: number(s.RowNorm), Projected: s.RowScaling == schema.RowProject}
	switch m.Model {
	case "logistic":
		e.What = fmt.Sprintf("log-odds of the class %q", m.Classes[1])
	case "linear":
		e.What = "prediction"
	case "poisson":
		e.What = "logarithm of the expected count"
	}
	if s.Norm == schema.NormL1 {
		e.Norm = "L1"
	}
	if m.Factor > 0 {
		for j := range m.W {
			m.W[j] *= m.Factor
		}
		m.Noise *= m.Factor
	}
	e.draw(s, m.W, bandWidth*m.Noise)
	return e, nil
}

// bandWidth is half of the width of a band, in standard deviations of the noise.
const bandWidth = 2

// draw makes the curves. noise is half of the width of the band of a parameter; 0: there are no bands.
func (e *effects) draw(s *schema.Schema, w []float64, noise float64) {
	least, factor, most := factors(s)
	e.Least, e.Factor, e.Most = number(least), number(factor), "more"
	if !math.IsInf(most, 1) {
		e.Most = number(most)
	}
	if noise > 0 {
		e.Noise = number(noise * factor)
	}
	var plots []chart.Plot
	var widest float64
	at := 0
	values := map[int][]float64{} // of curves with levels
	for _, c := range s.Columns {
		var x, y, band []float64
		switch c.Type {
		case schema.TypeNumeric:
			x, y, band = numericEffect(c, w[at:at+1+c.Hats])
			at += 1 + c.Hats
		case schema.TypeCategorical:
			y = slices.Clone(w[at : at+len(c.Levels)])
			if len(y) == 1 { // against all other levels, which are 0
				y = append(y, 0)
			}
			at += len(c.Levels)
		default:
			continue
		}
		low := slices.Min(y)
		for i := range y {
			y[i] = (y[i] - low) * factor
		}
		span := slices.Max(y)
		if noise == 0 {
			band = nil
		}
		lowest := 0.0 // of the band
		for i := range band {
			band[i] *= noise * factor
			lowest = math.Min(lowest, y[i]-band[i])
		}
		for i := range band {
			y[i] -= lowest
		}
		if len(e.Curves) == mostEffects {
			e.Rest = append(e.Rest, fact{c.Name, number(span)})
			continue
		}
		widest = math.Max(widest, span)
		if x == nil {
			values[len(e.Curves)] = y
		} else {
			p := chart.Plot{ID: fmt.Sprintf("effect%d", len(e.Curves)), Title: "Effect of " + c.Name, XLabel: c.Name, YLabel: e.What,
				Desc: fmt.Sprintf("How the %s moves with %s: by %s between its lowest and its highest point.", e.What, c.Name, number(span)), Lines: []chart.Line{{X: x, Y: y, SD: band}}}
			if c.Transform == schema.TransformLog1p {
				p.LogX, p.XLabel = true, "1 + "+c.Name
			}
			plots = append(plots, p)
		}
		k := curve{Name: c.Name}
		for _, l := range c.Levels {
			k.Levels = append(k.Levels, level{Name: l})
		}
		if x == nil && len(c.Levels) == 1 {
			k.Levels = append(k.Levels, level{Name: "any other"})
		}
		e.Curves = append(e.Curves, k)
	}
	panels := chart.NewPanels(plots)
	next := 0
	for i := range e.Curves {
		k := &e.Curves[i]
		if k.Levels == nil {
			k.Plot = panels.Plots[next].SVG()
			next++
			continue
		}
		for j, v := range values[i] {
			k.Levels[j].Value = number(v)
			if widest > 0 {
				k.Levels[j].Width = int(100 * v / widest)
			}
		}
	}
}

// numericEffect is the effect of a numeric column at values from its lower to its upper bound, in its own units, or 1 +
// them where the axis has decades. w are its parameters, those of the bumps behind the first. length is the root of the sum of the
// squares of the features, by which noise in the parameters reaches the effect.
func numericEffect(c schema.Column, w []float64) (x, y, length []float64) {
	t, inverse := schema.Transform(c.Transform), func(v float64) float64 { return v }
	switch c.Transform {
	case schema.TransformLog1p:
		inverse = math.Exp // 1 + the value
	case schema.TransformSignedLog1p:
		inverse = func(v float64) float64 { return math.Copysign(math.Expm1(math.Abs(v)), v) }
	}
	lo, hi := t(c.Bounds.Min), t(c.Bounds.Max)
	points := 64
	if c.Hats > 0 { // each kink is a point
		points = (c.Hats - 1) * (1 + 64/c.Hats)
	}
	for i := range points + 1 {
		share := float64(i) / float64(points)
		linear := 2*share - 1
		v, square := w[0]*linear, linear*linear
		if c.Hats > 0 {
			j, left, right := schema.Bumps(c.Hats, linear)
			v += w[1+j]*left + w[2+j]*right
			square += left*left + right*right
		}
		x, y, length = append(x, inverse(lo+share*(hi-lo))), append(y, v), append(length, math.Sqrt(square))
	}
	return x, y, length
}

// factors are the numbers by which the row rule multiplies the features of the largest possible row, of one between, and
// of the smallest; they are public.
func factors(s *schema.Schema) (least, middle, most float64) {
	size := func(v float64) float64 { return v * v }
	if s.Norm == schema.NormL1 {
		size = math.Abs
	}
	lo, hi := 0.0, 0.0
	add := func(least, most float64) { lo, hi = lo+least, hi+most }
	if s.Intercept {
		add(1, 1)
	}
	for _, c := range s.Columns {
		switch c.Type {
		case schema.TypeCategorical:
			if c.Unknown == schema.RuleZero || c.Missing == schema.RuleZero {
				add(0, 1)
			} else {
				add(1, 1)
			}
		case schema.TypeNumeric:
			small, large := math.Inf(1), 0.0
			for i := range 257 {
				x := float64(i)/128 - 1
				v := size(x)
				if c.Hats > 0 {
					_, left, right := schema.Bumps(c.Hats, x)
					v += size(left) + size(right)
				}
				small, large = math.Min(small, v), math.Max(large, v)
			}
			if c.Missing == schema.RuleZero {
				small = 0
			}
			add(small, large)
		}
	}
	factor := func(size float64) float64 {
		if s.Norm != schema.NormL1 {
			size = math.Sqrt(size)
		}
		f := s.RowNorm / size
		if s.RowScaling == schema.RowProject {
			f = math.Min(1, f)
		}
		return f
	}
	return factor(hi), factor((lo + hi) / 2), factor(lo)
}
