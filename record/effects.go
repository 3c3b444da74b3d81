package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/model/margin"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Effects are what each column adds to the margin of a row, computed from the released model alone.
type Effects struct {
	What  string `json:"what"`            // that the curves move
	Ratio string `json:"ratio,omitempty"` // what e to the power of a difference is; empty: nothing
	// by which a row's features are multiplied: of a row of middle size, of the largest, of the smallest
	Factor    float64      `json:"factor" unit:"1"`
	Least     float64      `json:"least_factor" unit:"1"`
	Most      Bound        `json:"most_factor" unit:"1"`
	Projected bool         `json:"projected"` // rows within the norm bound keep their features
	Norm      string       `json:"norm"`
	Bound     float64      `json:"norm_bound" unit:"norm"`
	Noise     float64      `json:"noise,omitempty" unit:"margin"` // half of the width of a level's band; 0: not known
	Columns   []Effect     `json:"columns"`                       // in the order of the schema
	Pairs     []PairEffect `json:"pairs,omitempty"`               // in the order of the schema
}

// An Effect is that of one column on a row of middle size.
type Effect struct {
	Name string `json:"name"`
	// values, or 1 + them where the axis has decades; null: levels
	X     []float64 `json:"x,omitempty" unit:"column"`
	Y     []float64 `json:"y" unit:"margin"`            // what each value, or level, adds to the margin
	Above []float64 `json:"above_lowest" unit:"margin"` // Y less the lowest point, or that of its band
	// half of the width of the band around each; null: not known
	Half  []float64 `json:"half_band,omitempty" unit:"margin"`
	Span  float64   `json:"span" unit:"margin"` // between the lowest and the highest
	Slope *Slope    `json:"slope,omitempty"`    // of a straight line
	Axis  string    `json:"axis"`               // what X counts
	LogX  bool      `json:"decades,omitempty"`
	Kinks int       `json:"points_between_kinks,omitempty" unit:"points"` // between two centers of bumps; 0: none
	Names []string  `json:"levels,omitempty"`
}

// A Slope is what a step of a numeric column adds, wherever it begins.
type Slope struct {
	Step  string  `json:"step"` // 1, or a doubling
	By    float64 `json:"by" unit:"margin"`
	Half  float64 `json:"half_band" unit:"margin"` // as of an effect
	Ratio float64 `json:"ratio" unit:"1"`          // e to the power of By
}

// bandWidth is half of the width of a band, in standard deviations of the noise.
const bandWidth = 2

// effectsIn are those of the model in a run directory; nil where it has none.
func effectsIn(dir string) (*Effects, error) {
	text, err := readfile.All(filepath.Join(dir, runlog.ModelFile), readfile.JSON)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", runlog.ModelFile, err)
	}
	return EffectsOf(text)
}

// EffectsOf are those of a model file; nil where its model has not one margin over named columns.
func EffectsOf(text []byte) (*Effects, error) {
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
	e := &Effects{Norm: "L2", Bound: s.RowNorm, Projected: s.RowScaling == schema.RowProject}
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
func (e *Effects) add(s *schema.Schema, w []float64, noise float64) {
	least, factor, most := s.RowFactors()
	e.Least, e.Factor, e.Most, e.Noise = least, factor, Bound(most), noise*factor
	for at, c := range s.Places() {
		f := c.Form()
		for _, k := range columnEffects(c.Name, f, w[at:at+f.Features()]) {
			for i := range k.Y {
				k.Y[i] *= factor
				k.Half[i] *= noise * factor
			}
			low := slices.Min(k.Y)
			k.Span = slices.Max(k.Y) - low
			if k.Slope != nil {
				*k.Slope = newSlope(f, k.Y[len(k.Y)-1]-k.Y[0], 2*noise*factor)
			}
			if noise == 0 {
				k.Half = nil
			}
			for i := range k.Half {
				if k.X != nil {
					low = math.Min(low, k.Y[i]-k.Half[i])
				}
			}
			for _, y := range k.Y {
				k.Above = append(k.Above, y-low)
			}
			e.Columns = append(e.Columns, k)
		}
	}
	e.Pairs = pairEffects(s, w, factor, noise/bandWidth)
}

// columnEffects are the effects of a column with these parameters, for features of their full size: of its number or
// its levels, and of each cycle over one period. Features of words have none: each stands for many words.
func columnEffects(name string, f *schema.Form, w []float64) (all []Effect) {
	k := Effect{Name: name, Axis: name}
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
		k.X, k.Y, k.Half = numericEffect(f, w[:1+f.Bumps+f.Waves])
		k.LogX = f.Line.Transform == schema.TransformLog1p
		if f.Kinks() == 0 {
			k.Slope = new(Slope)
		} else {
			k.Kinks = pieces(f.Kinks())
		}
		all = append(all, k)
	}
	for i, c := range f.Cycles {
		first := 1 + f.Bumps + f.Waves + 2*i
		all = append(all, cycleEffect(name, c, w[first], w[first+1]))
	}
	return all
}

// cycleEffect is the effect of a cycle over one period, at so many points.
func cycleEffect(name string, c schema.Cycle, sine, cosine float64) Effect {
	const points = 28
	k := Effect{Name: name + " within the " + c.Name, Axis: "days from the beginning of the " + c.Name, Kinks: 1}
	for i := range points + 1 {
		at := c.Period * float64(i) / points
		a, b := c.At(c.Zero + at)
		k.X, k.Y, k.Half = append(k.X, at), append(k.Y, sine*a+cosine*b), append(k.Half, 1)
	}
	return k
}

// newSlope is the slope of a column without bumps whose effect changes by so much from its lower to its upper bound.
func newSlope(f *schema.Form, change, half float64) Slope {
	t := schema.Transform(f.Line.Transform)
	step, share := cmp.Or(f.Step, "1"), 1/(t(f.Line.Max)-t(f.Line.Min))
	if f.Line.Transform != schema.TransformNone {
		step, share = "a doubling of 1 + the value", share*math.Ln2
		if f.Line.Transform == schema.TransformSignedLog1p {
			step = "a doubling of 1 + the size of the value"
		}
	}
	by := change * share
	return Slope{Step: step, By: by, Half: half * share, Ratio: math.Exp(by)}
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
	if k := f.Kinks(); k > 0 { // each kink is a point
		points = (k - 1) * pieces(k)
	}
	for i := range points + 1 {
		share := float64(i) / float64(points)
		linear := 2*share - 1
		v, square := w[0]*linear, linear*linear
		for j, c := range f.Curve(linear) {
			v += w[1+j] * c
			square += c * c
		}
		x, y, length = append(x, inverse(lo+share*(hi-lo))), append(y, v), append(length, math.Sqrt(square))
	}
	return x, y, length
}
