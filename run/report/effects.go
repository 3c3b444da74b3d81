package report

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/model/margin"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// mostEffects bounds the columns that are drawn.
const mostEffects = 30

// effects are what each column adds to the margin of a row, computed from the released model alone.
type effects struct {
	What  string // that the curves move
	Ratio string // what e to the power of a difference is; "": nothing
	// by which a row's features are multiplied: of a row of middle size, of the largest, of the smallest
	Factor, Least, Most string
	Projected           bool // rows within the norm bound keep their features
	Norm, Bound         string
	Noise               string   // half of the width of a level's band; "": not known
	Columns             []effect // in the order of the schema
	Curves              []curve
	Rest                int // columns that are not drawn
}

// A ranking is the line of a column in the table of effects.
type ranking struct{ Name, Span, Step, By, Ratio string }

// Ranked are the drawn columns, those first that move the margin furthest.
func (e *effects) Ranked() (lines []ranking) {
	ranked := slices.Clone(e.Columns[:len(e.Columns)-e.Rest])
	slices.SortStableFunc(ranked, func(a, b effect) int { return cmp.Compare(b.Span, a.Span) })
	for _, k := range ranked {
		l := ranking{Name: k.Name, Span: number(k.Span)}
		if k.Slope != nil {
			l.Step, l.By, l.Ratio = k.Slope.Step, number(k.Slope.By), number(math.Exp(k.Slope.By))
			if k.Half != nil {
				l.By += " ± " + number(k.Slope.Half)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// An effect is that of one column on a row of middle size.
type effect struct {
	Name  string
	X     []float64 // values, in the column's units, or 1 + them where the axis has decades; nil: levels
	Y     []float64 // what each value, or level, adds to the margin; only differences mean something
	Half  []float64 // half of the width of the band around each; nil: not known
	Span  float64   // between the lowest and the highest
	Slope *slope    // of a straight line
	Axis  string    // what X counts
	LogX  bool
	Kinks int      // points between two centers of bumps; 0: none
	Names []string // of levels
}

// A slope is what a step of a numeric column adds, wherever it begins.
type slope struct {
	Step string // 1, or a doubling
	By   float64
	Half float64 // as of an effect
}

// A curve is a picture of an effect: a plot of a number, or bars of levels.
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

// bandWidth is half of the width of a band, in standard deviations of the noise.
const bandWidth = 2

// effectsIn are those of the model in a run directory, drawn; nil where it has none.
func effectsIn(dir string) (*effects, error) {
	text, err := readfile.All(filepath.Join(dir, runlog.ModelFile), readfile.JSON)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", runlog.ModelFile, err)
	}
	e, err := effectsOf(text)
	if e != nil {
		e.draw()
	}
	return e, err
}

// effectsOf are those of a model file; nil where its model has not one margin over named columns.
func effectsOf(text []byte) (*effects, error) {
	var m struct {
		Model   string          `json:"model"`
		Classes []string        `json:"classes"`
		W       []float64       `json:"w"`
		Factor  float64         `json:"margin_factor"`
		Noise   float64         `json:"noise"`
		Schema  json.RawMessage `json:"schema"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
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
	e := &effects{Norm: "L2", Bound: number(s.RowNorm), Projected: s.RowScaling == schema.RowProject}
	words := margin.Of(m.Model, m.Classes)
	e.What, e.Ratio = words.What, words.Ratio
	if strings.Contains(e.What, "%q") {
		return nil, fmt.Errorf("%s: found %d classes; a model %s has 2", runlog.ModelFile, len(m.Classes), m.Model)
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
	e.add(s, m.W, bandWidth*m.Noise)
	return e, nil
}

// add computes the effects. noise is half of the width of the band of a parameter; 0: there are no bands.
func (e *effects) add(s *schema.Schema, w []float64, noise float64) {
	least, factor, most := factors(s)
	e.Least, e.Factor, e.Most = number(least), number(factor), "more"
	if !math.IsInf(most, 1) {
		e.Most = number(most)
	}
	if noise > 0 {
		e.Noise = number(noise * factor)
	}
	for at, c := range s.Places() {
		f := c.Form()
		for _, k := range columnEffects(c.Name, f, w[at:at+f.Features()]) {
			for i := range k.Y {
				k.Y[i] *= factor
				k.Half[i] *= noise * factor
			}
			k.Span = slices.Max(k.Y) - slices.Min(k.Y)
			if k.Slope != nil {
				*k.Slope = newSlope(f, k.Y[len(k.Y)-1]-k.Y[0], 2*noise*factor)
			}
			if noise == 0 {
				k.Half = nil
			}
			e.Columns = append(e.Columns, k)
		}
	}
}

// columnEffects are the effects of a column with these parameters, for features of their full size: of its number or
// its levels, and of each cycle over one period. Features of words have none: each stands for many words.
func columnEffects(name string, f *schema.Form, w []float64) (all []effect) {
	k := effect{Name: name, Axis: name}
	if f.Counts != "" {
		k.Axis = name + ", in " + f.Counts
	}
	switch {
	case f.Levels != nil:
		k.Names = f.Levels
		for i := range f.Levels {
			if f.OneHot {
				k.Y, k.Half = append(k.Y, w[i]), append(k.Half, 1)
				continue
			}
			x := 2*float64(i)/float64(len(f.Levels)-1) - 1
			k.Y, k.Half = append(k.Y, w[0]*x), append(k.Half, math.Abs(x))
		}
		if len(k.Y) == 1 { // against all other levels, which are 0
			k.Y, k.Half, k.Names = append(k.Y, 0), append(k.Half, 0), append(slices.Clone(k.Names), "any other")
		}
		all = append(all, k)
	case f.Line != nil:
		k.X, k.Y, k.Half = numericEffect(f, w[:1+f.Bumps])
		k.LogX = f.Line.Transform == schema.TransformLog1p
		if f.Bumps == 0 {
			k.Slope = new(slope)
		} else {
			k.Kinks = pieces(f.Bumps)
		}
		all = append(all, k)
	}
	for i, c := range f.Cycles {
		first := 1 + f.Bumps + 2*i
		all = append(all, cycleEffect(name, c, w[first], w[first+1]))
	}
	return all
}

// cycleEffect is the effect of a cycle over one period, at so many points.
func cycleEffect(name string, c schema.Cycle, sine, cosine float64) effect {
	const points = 28
	k := effect{Name: name + " within the " + c.Name, Axis: "days from the beginning of the " + c.Name, Kinks: 1}
	for i := range points + 1 {
		at := c.Period * float64(i) / points
		a, b := c.At(c.Zero + at)
		k.X, k.Y, k.Half = append(k.X, at), append(k.Y, sine*a+cosine*b), append(k.Half, 1)
	}
	return k
}

// newSlope is the slope of a column without bumps whose effect changes by so much from its lower to its upper bound.
func newSlope(f *schema.Form, change, half float64) slope {
	t := schema.Transform(f.Line.Transform)
	step, share := cmp.Or(f.Step, "1"), 1/(t(f.Line.Max)-t(f.Line.Min))
	if f.Line.Transform != schema.TransformNone {
		step, share = "a doubling of 1 + the value", share*math.Ln2
		if f.Line.Transform == schema.TransformSignedLog1p {
			step = "a doubling of 1 + the size of the value"
		}
	}
	return slope{Step: step, By: change * share, Half: half * share}
}

// draw makes the curves of the first columns.
func (e *effects) draw() {
	e.Rest = max(0, len(e.Columns)-mostEffects)
	drawn := e.Columns[:len(e.Columns)-e.Rest]
	var plots []chart.Plot
	widest := 0.0
	for _, k := range drawn {
		widest = math.Max(widest, k.Span)
	}
	for i, k := range drawn {
		low := slices.Min(k.Y)
		if k.X == nil {
			bars := curve{Name: k.Name}
			for j, name := range k.Names {
				l := level{Name: name, Value: number(k.Y[j] - low)}
				if widest > 0 {
					l.Width = int(100 * (k.Y[j] - low) / widest)
				}
				bars.Levels = append(bars.Levels, l)
			}
			e.Curves = append(e.Curves, bars)
			continue
		}
		for j := range k.Half {
			low = math.Min(low, k.Y[j]-k.Half[j])
		}
		y := make([]float64, len(k.Y))
		for j := range y {
			y[j] = k.Y[j] - low
		}
		p := chart.Plot{ID: fmt.Sprintf("effect%d", i), Title: "Effect of " + k.Name, XLabel: k.Axis, YLabel: e.What,
			Desc: fmt.Sprintf("How the %s moves with %s: by %s between its lowest and its highest point.", e.What, k.Name,
				number(k.Span)), Lines: []chart.Line{{X: k.X, Y: y, SD: k.Half}}}
		if k.LogX {
			p.LogX, p.XLabel = true, "1 + "+k.Name
		}
		plots = append(plots, p)
		e.Curves = append(e.Curves, curve{Name: k.Name})
	}
	panels := chart.NewPanels(plots)
	next := 0
	for i := range e.Curves {
		if e.Curves[i].Levels == nil {
			e.Curves[i].Plot = panels.Plots[next].SVG()
			next++
		}
	}
}

// WriteEffects writes the effects of the columns in the text of a model file as CSV: a line for each slope, point and
// level. It fails where the model has none to show.
func WriteEffects(w io.Writer, model []byte) error {
	e, err := effectsOf(model)
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
	out.Flush()
	return out.Error()
}

// pieces is how many points of a curve are between two centers of bumps.
func pieces(hats int) int { return 1 + 64/hats }

// numericEffect is the effect of a numeric column at values from its lower to its upper bound, in its own units, or 1 +
// them where the axis has decades. w are its parameters, those of the bumps behind the first. length is the root of the
// sum of the squares of the features, by which noise in the parameters reaches the effect.
func numericEffect(f *schema.Form, w []float64) (x, y, length []float64) {
	t, inverse := schema.Transform(f.Line.Transform), func(v float64) float64 { return v }
	switch f.Line.Transform {
	case schema.TransformLog1p:
		inverse = math.Exp // 1 + the value
	case schema.TransformSignedLog1p:
		inverse = func(v float64) float64 { return math.Copysign(math.Expm1(math.Abs(v)), v) }
	}
	lo, hi := t(f.Line.Min), t(f.Line.Max)
	points := 64
	if f.Bumps > 0 { // each kink is a point
		points = (f.Bumps - 1) * pieces(f.Bumps)
	}
	for i := range points + 1 {
		share := float64(i) / float64(points)
		linear := 2*share - 1
		v, square := w[0]*linear, linear*linear
		if f.Bumps > 0 {
			j, left, right := schema.Bumps(f.Bumps, linear)
			v += w[1+j]*left + w[2+j]*right
			square += left*left + right*right
		}
		x, y, length = append(x, inverse(lo+share*(hi-lo))), append(y, v), append(length, math.Sqrt(square))
	}
	return x, y, length
}

// factors are the numbers by which the row rule multiplies the features of the largest possible row, of one between,
// and of the smallest; they are public.
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
	for _, c := range s.Places() {
		f := c.Form()
		small, large := math.Inf(1), 0.0
		sized := func(v float64) { small, large = math.Min(small, v), math.Max(large, v) }
		switch {
		case f.Words > 0: // from no word to one for each feature
			sized(0)
			sized(size(1/math.Sqrt(float64(f.Words))) * float64(f.Words))
		case f.OneHot:
			sized(1)
		default:
			points := 256
			if f.Levels != nil {
				points = len(f.Levels) - 1
			}
			for i := range points + 1 {
				x := 2*float64(i)/float64(points) - 1
				v := size(x)
				if f.Bumps > 0 {
					_, left, right := schema.Bumps(f.Bumps, x)
					v += size(left) + size(right)
				}
				sized(v)
			}
			for range f.Cycles { // by the angle
				small, large = small+1, large+2*size(math.Sqrt2/2)
			}
		}
		if f.Unknown.Zero || f.Missing.Zero {
			small = 0
		}
		add(small, large)
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
