package method

import (
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
)

// AGD is DP-AGD of Lee and Kifer 2018, a baseline of P2: noisy gradients of all rows, with the step size, or to stay,
// by a noisy choice. Where the choice is to stay, the gradient is not good enough and gets more budget.
//
//	DP-AGD    here
//	ρ_ng      1/(2σ²), σ = Noise at first
//	ρ_nmax    ε_c²/8, ε_c = Choice/σ
//	splits    Splits
//	γ         Growth
//	Φ         {0} and MaxBacktracks equispaced step sizes up to η_max, which is Rate at first
//	C_grad    Clip
//	C_obj     Fall
//
// Deviations. The choice is the exponential mechanism, which costs ε_c²/8 in zCDP; the public code takes one-sided
// noise off the scores, which is not private at any such cost (S-B1). What is clipped is a row's decrease, not its
// loss: same cost, less bias. The direction is the gradient, regularizer included, over its norm; Lee and Kifer add the
// regularizer's gradient to the other's direction. Where the choice is to stay, η_max is halved too, so that steps also
// become short enough where the gradient is good. Splits times both costs make up the budget.
type AGD struct {
	Splits        int     `yaml:"splits" json:"splits" doc:"number of steps that the budget allows if every step moves (default 100)"`
	Steps         int     `yaml:"steps" json:"steps" doc:"maximum number of steps, including those without a move (default twice splits)"`
	Rate          float64 `yaml:"rate" json:"rate" doc:"largest step at first, as the length of a move of w (default 2/R, R the bound on a row's norm; an eighth of the width of the label's bounds × 1/R for the squared loss)"`
	MaxBacktracks int     `yaml:"tries" json:"tries" doc:"number of step sizes of a choice (default 20)"`
	Clip          float64 `yaml:"clip" json:"clip" doc:"clip norm C of one record's gradient (default 0.35 × the loss's Lipschitz bound; R/8 × the width of the label's bounds for the squared loss)"`
	Fall          float64 `yaml:"fall" json:"fall" doc:"clip bound c on the decrease of one row's loss (default a tenth of the loss's Lipschitz bound × 1/R; an eighth of the square of the width of the label's bounds for the squared loss)"`
	Choice        float64 `yaml:"choice" json:"choice" doc:"ε of one choice × noise multiplier (default 0.5)"`
	Growth        float64 `yaml:"growth" json:"growth" doc:"relative growth γ of a gradient's budget when no step lowers the loss (default 0.1)"`
	Noise         float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ of the first gradients (default: the one with which splits steps fit the budget)"`

	Filter *privacy.Filtered `yaml:"-" json:"filter,omitempty"`
	Off    bool              `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// Defaults of what Configure may choose, measured (docs/measurements/methods.md).
const (
	agdSplits   = 100
	agdRate     = 2.0   // × 1/R
	agdQuadRate = 0.125 // × 1/R × width of the label's bounds
	agdTries    = 20
	agdFall     = 0.1 // × Lipschitz bound / R
	agdChoice   = 0.5
	agdGrowth   = 0.1
	agdEvery    = 10
	agdStretch  = 1.1
)

// Configure sets what is zero.
func (m AGD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	m.Off = terms.Off
	rate, fall := agdRate/known(pub.NormBound), agdFall*float64(pub.Lipschitz)/pub.NormBound
	if inLabelUnits(pub) {
		rate, fall = agdQuadRate/pub.NormBound*known(pub.LabelSpan), blQuadFall*pub.LabelSpan*known(pub.LabelSpan)
	}
	if m.Off {
		fall = 0
	}
	g := Gradient{Clip: m.Clip, Noise: m.Noise}
	if err := g.configure(pub, terms, clipBound(pub, sgdClip)); err != nil {
		return nil, err
	}
	m.Clip = g.Clip
	err := configure(
		Count{"splits", &m.Splits, 1e6, agdSplits},
		Count{"steps", &m.Steps, 1e6, 0},
		Count{"tries", &m.MaxBacktracks, 1000, agdTries},
		Number{"rate", &m.Rate, clipping, rate},
		Number{"fall", &m.Fall, clipping, fall},
		Number{"choice", &m.Choice, noises, agdChoice},
		Number{"growth", &m.Growth, Interval{0, 1, false}, agdGrowth},
	)
	if err != nil {
		return nil, err
	}
	if m.Steps == 0 {
		m.Steps = 2 * m.Splits
	}
	if m.Off {
		return m, nil
	}
	typical := func(noise float64) privacy.Event {
		return privacy.Repeated{Count: m.Splits, Of: oracle.Public{}.Cost(sample.Full{}, m.queries(1/(noise*noise), noise))}
	}
	f, err := calibrateFilter(&m.Noise, terms, typical)
	m.Filter = &f
	return m, err
}

// queries are those of a step: a gradient of that precision, 1/σ², and a choice.
func (m AGD) queries(precision, noise float64) []oracle.Query {
	g := Gradient{Clip: m.Clip, Noise: 1 / math.Sqrt(precision), Off: m.Off}.Query(oracle.Public{})
	return []oracle.Query{g, oracle.Select{Epsilon: m.Choice / noise, Bound: m.Fall, Off: m.Off}}
}

// Plan is the filter.
func (m AGD) Plan(oracle.Public) (privacy.Event, error) {
	if m.Off {
		return privacy.Repeated{Count: m.Steps, Of: oracle.Public{}.Cost(sample.Full{}, m.queries(1, 1))}, nil
	}
	return *m.Filter, m.Filter.Validate()
}

// Run is Algorithm 1 of Lee and Kifer: each access to the rows is a gradient and the choice that follows it.
func (m AGD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := make([]float64, o.Public().Dim) // w_0 = 0
		g := make([]float64, len(w))         // the gradient at w, from all charges for it
		p := make([]float64, len(w))
		precision := 1 / (m.Noise * m.Noise) // of a whole gradient, 2ρ_ng
		if m.Off {
			precision = 1
		}
		known := 0.0 // of g
		l := oracle.Line{From: w, Along: p, Steps: make([]float64, 1+m.MaxBacktracks),
			Least: make([]float64, 1+m.MaxBacktracks)}
		top, longest := m.Rate, 0.0 // η_max; the longest step since it was set
		st := Step{W: w}
		for t := range m.Steps {
			q := m.queries(precision-known, m.Noise)
			b, err := o.Batch(ctx, sample.Full{}, q...)
			if err != nil {
				return st, err
			}
			released, err := b.Grad(q[0].(oracle.Grad), w)
			if err != nil {
				return st, err
			}
			for j, v := range released { // (ρ_old g + (ρ_new − ρ_old) g₂) / ρ_new
				g[j] += (v - g[j]) * (precision - known) / precision
			}
			known = precision
			st.GradNorm = norm2(g)
			copy(p, g)
			obj.AddGradient(p, w)
			m.aim(l, obj, top)
			k, err := b.Select(q[1].(oracle.Select), l)
			if err != nil {
				return st, err
			}
			st.T, st.Rate, st.Moved = t+1, l.Steps[k], l.Steps[k]
			if k > 0 {
				for j := range w {
					w[j] -= l.Steps[k] * p[j]
				}
				clear(g)
				known, longest = 0, math.Max(longest, l.Steps[k])
			} else {
				precision *= 1 + m.Growth
				top /= 2
			}
			if st.T%agdEvery == 0 && longest > 0 {
				top, longest = math.Min(agdStretch*longest, m.Rate), 0
			}
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}

// aim makes the direction of length 1 and sets the step sizes to choose from, the first to stay, and what each must
// bring: by how much the regularizer grows.
func (m AGD) aim(l oracle.Line, obj Objective, top float64) {
	if norm := norm2(l.Along); norm > 0 {
		for j := range l.Along {
			l.Along[j] /= norm
		}
	}
	for k := range l.Steps {
		l.Steps[k] = top * float64(k) / float64(m.MaxBacktracks)
		l.Least[k] = reg.Rise(obj.Reg, l.From, l.Along, l.Steps[k])
	}
}
