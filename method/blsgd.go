package method

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// BLSGD is DP-BLSGD, P2 Algorithms 1 to 3: noisy gradients with a private backtracking line
// search for the step size, and budgets that grow where that fails. With a full batch it is
// DP-BLGD, with Decay above 0 DP-BLSGD-AC.
//
//	P2          here
//	B           a fresh sample for each access, as Gradient says; all rows if Batch is 0
//	C_grad      clip, at first Clip
//	C_obj       fall, at first Fall
//	ρ_grad      1/(2σ²); σ at first Noise
//	ε_BT        1/scale, half of it for the threshold and half for the answers; at first Search/Noise
//	g̃           g, and with the regularizer's gradient p
//	η₀, β       Rate, Shrink: η_i = β^{i−1} η₀
//	max_it      MaxBacktracks
//	α_A         Armijo
//	θ̄, ψ        turn, 0.8: the moving average of the angle from one gradient to the next
//	φ_max, φ_min  1.1, 0.5
//	ξ, ζ        Raise, Decay
//	τ, ς        every 10 steps η₀ becomes 1.2 times the largest step taken in them
//
// A step is one gradient and one search. Where a search finds nothing, the gradient of the next
// step is the one that CHEB (Algorithm 3) asks for: w stays, the budgets may grow, and the two are
// averaged. By Growth the budgets stay as they are (no), grow each time (must), or by the angle
// (adaptive); with a full batch what grows is the gradient's precision, by a release of ξ times its ρ
// that is averaged in (DP-AGD's rule, which P2 uses for DP-BLGD). With Fallback every search moves w, by
// β^max_it·η₀ where it finds nothing, so that no budget grows (P2 §5.7, for networks).
//
// Deviations. P2 asks everything of one sample and charges it as if of many, which is not private; here each query has
// its own sample (S-2a), and divisors are public (S-2b). The search is Laplace's; P2's Gaussian one does not cost what
// is claimed (S-2d). What is clipped is a row's decrease, not its two losses: same sensitivity, no bias while decreases
// are small. Armijo's condition is about means, in P2 it mixes a sum and a mean (S-2f), and leaves out of ‖p‖² what the
// noise adds to it on average, unless NoisyNorm is set. η₀ is at most Rate: a failed search lowers it, and after 10
// steps it may rise again, where P2 only lowers it. Gradients are averaged by the inverse of their variances; P2's
// halves forget old ones (S-2f). P2 spends while one of many orders has budget left, which costs more than it says
// (S-2c); here growing budgets are charged to a filter of one order, and budgets that do not grow are a plan. The
// method takes at most Steps steps; P2 continues while there is budget, and leaves open what is returned where a search
// fails at the end (S-2f): w.
type BLSGD struct {
	Steps         int `yaml:"steps" json:"steps" doc:"number of steps T (default 100)"`
	Gradient      Gradient
	Rate          float64          `yaml:"rate" json:"rate" doc:"largest step size η₀, which a search tries first (default 80/R², R the bound on a row's norm; 4/L for the squared loss, L its curvature bound; 120/(R²+1) for a network)"`
	Shrink        float64          `yaml:"shrink" json:"shrink" doc:"factor β from one step size to the next (default 0.8)"`
	MaxBacktracks int              `yaml:"tries" json:"tries" doc:"maximum number of step sizes in a search (default 20)"`
	Armijo        float64          `yaml:"armijo" json:"armijo" doc:"share α of the linear decrease that a step must reach (default 0.4; 0.1 for a network)"`
	Fall          float64          `yaml:"fall" json:"fall" doc:"clip bound c on the decrease of one row's loss (default half the loss's Lipschitz bound × 1/R; an eighth of the square of the width of the label's bounds for the squared loss; 0.5 for a network)"`
	Search        float64          `yaml:"search" json:"search" doc:"ε of one search × noise multiplier, at first (default 0.25)"`
	Growth        string           `yaml:"growth" json:"growth,omitempty" doc:"effect of a failed search on the budgets of a step: no (none: the whole run is a plan; default), must (they grow) or adaptive (the angle between two gradients decides which one grows)"`
	NoisyNorm     bool             `yaml:"noisy_norm" json:"noisy_norm,omitempty" doc:"whether Armijo's condition has ‖p‖² of the noisy gradient, as P2 has (default: without what the noise adds to it on average)"`
	Fallback      bool             `yaml:"fallback" json:"fallback,omitempty" doc:"whether a search that finds nothing takes the next smaller step β^tries·η₀, as P2 does for networks (default: w stays)"`
	Raise         float64          `yaml:"raise" json:"raise,omitempty" doc:"relative growth ξ of a budget (default 0.3)"`
	Decay         float64          `yaml:"decay" json:"decay,omitempty" doc:"relative decrease ζ of clip norm and fall when the gradient's budget grows, once a step (default 0; P2's DP-BLSGD-AC has 0.05)"`
	Filter        privacy.Filtered `yaml:"-" json:"filter,omitzero"`
}

// What Growth may be.
const (
	growNot      = "no"
	growAlways   = "must"
	growAdaptive = "adaptive"
)

// Defaults of what Configure may choose, measured (docs/measurements/methods.md).
const (
	blRate      = 80  // × 1/R²
	blQuadRate  = 4   // × 1/L
	blNetRate   = 120 // × 1/(R²+1)
	blNetArmijo = 0.1
	blNetFall   = 0.5
	blShrink    = 0.8
	blTries     = 20
	blArmijo    = 0.4
	blFall      = 0.5 // × Lipschitz bound / R
	blQuadFall  = 0.125
	blSearch    = 0.25
	blRaise     = 0.3
	blEvery     = 10  // τ
	blReach     = 1.2 // ς
	blKeep      = 0.8 // ψ
	blMost      = 1.1 // φ_max
	blLeast     = 0.5 // φ_min
)

// Configure sets what is zero.
func (m BLSGD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	rate, fall, armijo := blRate/known(pub.NormBound*pub.NormBound), blFall*float64(pub.Lipschitz)/pub.NormBound, blArmijo
	if inLabelUnits(pub) {
		rate, fall = blQuadRate/known(float64(pub.Smooth)+obj.smooth()), blQuadFall*pub.LabelSpan*known(pub.LabelSpan)
	}
	if len(pub.Initial) > 0 {
		rate, fall, armijo = blNetRate/(pub.NormBound*pub.NormBound+1), blNetFall, blNetArmijo
	}
	if terms.Off {
		fall = 0
	}
	if err := configure(Word{"growth", &m.Growth, []string{growNot, growAlways, growAdaptive}}); err != nil {
		return nil, err
	}
	if m.Growth == growNot && (m.Raise != 0 || m.Decay != 0) {
		return nil, fmt.Errorf("growth: found %q beside raise or decay; choose %s or %s, as without growth there is nothing to raise", m.Growth, growAlways, growAdaptive)
	}
	if m.Growth != growNot && m.Fallback {
		return nil, fmt.Errorf("growth: found %q beside fallback; choose %s, as with a fallback no search fails", m.Growth,
			growNot)
	}
	err := configure(
		Count{"tries", &m.MaxBacktracks, 1000, blTries},
		Number{"rate", &m.Rate, Positive, rate},
		Number{"shrink", &m.Shrink, Fraction, blShrink},
		Number{"armijo", &m.Armijo, Fraction, armijo},
		Number{"fall", &m.Fall, clipping, fall},
		Number{"search", &m.Search, Interval{0, 1e6, true}, blSearch},
		Number{"raise", &m.Raise, Interval{0, 100, true}, blRaise},
		Number{"decay", &m.Decay, Fraction, 0},
	)
	if m.Growth == growNot {
		m.Raise = 0
	}
	if err == nil {
		err = m.Gradient.Configure(pub, terms)
	}
	if err == nil {
		err = configure(Count{"steps", &m.Steps, 0, sgdSteps})
	}
	if err == nil {
		err = m.calibrate(pub, terms)
	}
	return m, err
}

// calibrate sets the noise. Budgets that grow are charged to a filter, in which Steps steps fit if they do not grow.
func (m *BLSGD) calibrate(pub oracle.Public, terms Terms) (err error) {
	plan := func(g Gradient) privacy.Event {
		with := *m
		with.Gradient = g
		return with.plan(pub)
	}
	if m.Growth == growNot || terms.Off {
		return m.Gradient.Calibrate(terms, plan)
	}
	if m.Filter, err = calibrateFilter(&m.Gradient.Noise, terms, func(noise float64) privacy.Event {
		with := m.Gradient
		with.Noise = noise
		return plan(with)
	}); err != nil {
		return fmt.Errorf("growth: found %q, whose costs a filter has to admit: %w", m.Growth, err)
	}
	return nil
}

// search is P2 Algorithm 1 of pure ε 1/scale: ε/2 for the threshold, and twice ε/4 for an answer.
func (m BLSGD) search(scale, fall float64) oracle.Search {
	if m.Gradient.Off {
		return oracle.Search{Bound: fall, Off: true, Noise: mech.AboveThreshold{Max: m.MaxBacktracks}}
	}
	return oracle.Search{Bound: fall,
		Noise: mech.AboveThreshold{Threshold: 2 * scale, Query: 4 * scale, Max: m.MaxBacktracks}}
}

// plan is T steps without growth.
func (m BLSGD) plan(pub oracle.Public) privacy.Event {
	search := pub.Cost(m.Gradient.Sampler(pub), []oracle.Query{m.search(m.Gradient.Noise/m.Search, m.Fall)})
	return repeat(m.Steps, privacy.Composed{m.Gradient.Cost(pub), search})
}

// Plan is T times a gradient and a search, each of its own sample; with growth it is the filter.
func (m BLSGD) Plan(pub oracle.Public) (privacy.Event, error) {
	if m.Filter.Currency != "" {
		return valid(m.Filter)
	}
	return valid(m.plan(pub))
}

// Run is P2 Algorithm 2.
func (m BLSGD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub, noisy := o.Public(), m.Gradient.On(o)
		s := m.Gradient.Sampler(pub)
		_, full := s.(sample.Full)
		first := m.Gradient
		w := pub.Start()             // w_0
		g := make([]float64, len(w)) // g̃_t: the average of the gradients at w
		p := make([]float64, len(w))
		before := make([]float64, len(w)) // g̃_{t−1}
		sigma, scale, bound, fall := first.Noise, first.Noise/m.Search, first.Clip, m.Fall
		turn, moves := math.Pi/2, 0   // θ̄; steps that moved w
		weight, decayed := 0.0, false // of g: Σ of (Noise·Clip/σ·clip)²; whether AC has shrunk bounds since w moved
		top, longest := m.Rate, 0.0   // η₀; the largest step since it was last set
		l := oracle.Line{From: w, Along: p, Steps: make([]float64, m.MaxBacktracks), Least: make([]float64, m.MaxBacktracks)}
		lower := math.Pow(m.Shrink, float64(m.MaxBacktracks))
		st := Step{W: w}
		for t := range m.Steps {
			failed := weight > 0
			now := first
			now.Noise, now.Clip = sigma, bound
			if failed && full && m.Raise > 0 && !first.Off { // what is averaged in makes ρ (1+ξ)ρ
				now.Noise = sigma / math.Sqrt(m.Raise)
			}
			released, err := noisy.With(now).At(ctx, w) // lines 4–6
			if err != nil {
				return st, err
			}
			st.GradNorm = norm2(released)
			if failed { // Algorithm 3, lines 5–10
				gradient, search := m.cheb(g, released, turn, full)
				if gradient {
					sigma /= math.Sqrt(1 + m.Raise)
				}
				if search {
					scale /= 1 + m.Raise
				}
				if gradient && !decayed {
					bound, fall, decayed = bound*(1-m.Decay), fall*(1-m.Decay), true // (9)
				}
			}
			ratio := first.Noise * first.Clip / (now.Noise * now.Clip)
			if first.Off {
				ratio = 1
			}
			weight += ratio * ratio
			for j, v := range released {
				g[j] += (v - g[j]) * (ratio * ratio) / weight
			}
			copy(p, g)
			obj.AddGradient(p, w)
			noise := float64(pub.Dim) * first.Variance(pub) / weight
			if m.NoisyNorm {
				noise = 0
			}
			m.aim(l, obj, top, noise)

			find := m.search(scale, fall)
			b, err := o.Batch(ctx, s, find)
			if err != nil {
				return st, err
			}
			k, err := b.Search(find, l) // Algorithm 1
			if err != nil {
				return st, err
			}
			st.T, st.Rate, st.Moved = t+1, 0, 0
			if k >= 0 || m.Fallback {
				if st.Rate = top * lower; k >= 0 {
					st.Rate = l.Steps[k]
				}
				st.Moved = st.Rate * norm2(p)
				for j := range w {
					w[j] -= st.Rate * p[j] // line 13
				}
				if moves > 0 { // line 14, (7)
					turn = blKeep*turn + (1-blKeep)*angle(g, before)
				}
				copy(before, g)
				clear(g)
				moves, weight, decayed, longest = moves+1, 0, false, math.Max(longest, st.Rate)
			} else {
				top *= math.Sqrt(lower) // half as far down as the search went
			}
			if st.T%blEvery == 0 && longest > 0 {
				top, longest = math.Min(blReach*longest, m.Rate), 0
			}
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}

// cheb says which budgets grow where a search along g failed, and a second gradient there is g2.
// With a full batch the gradient's has grown already.
func (m BLSGD) cheb(g, g2 []float64, turn float64, full bool) (gradient, search bool) {
	switch m.Growth {
	case growAlways:
		return true, true
	case growAdaptive:
		theta := angle(g, g2)
		blamed := theta > math.Pi/2 || theta > blMost*turn // (8)
		return blamed || full, !blamed && theta < blLeast*turn
	}
	return false, false
}

// angle between two vectors, π/2 where one is 0.
func angle(a, b []float64) float64 {
	dot := 0.0
	for j := range a {
		dot += a[j] * b[j]
	}
	n := norm2(a) * norm2(b)
	if !(n > 0) || math.IsInf(n, 1) {
		return math.Pi / 2
	}
	return math.Acos(math.Max(-1, math.Min(1, dot/n)))
}

// aim sets the step sizes to try and what each must bring:
//
//	(F(w) − F(w−η_i p)) ≥ r(w−η_i p) − r(w) + α_A η_i max(0, ‖p‖² − noise)
func (m BLSGD) aim(l oracle.Line, obj Objective, first, noise float64) {
	norm := norm2(l.Along)
	slope := m.Armijo * math.Max(0, norm*norm-noise)
	eta := first
	for i := range l.Steps {
		l.Steps[i], l.Least[i] = eta, eta*slope+reg.Rise(obj.Reg, l.From, l.Along, eta)
		eta *= m.Shrink
	}
}
