package method

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
)

// OPTLS is OPT-LS, P4 Algorithms 2 and 3: OPT with a private line search along both directions.
//
//	P4              here
//	γ̄_g, γ̄_H       2(1−c₁−c_g)/G, t₂|λ̃|/M: taken where a search finds nothing
//	b_g = b_H       Long
//	β_g = β_H       Shrink
//	i_max           ⌊ln b/ln(1/β)⌋ + 1
//	λ_SVT           Noise, as σ_g and σ_H are (14)
//
// Deviations. Algorithm 2 loses the fallback step, since it shrinks the variable that holds it (S-4h). Its
// sensitivity (2/n)·b·γ̄·B_g·‖g̃‖ is right (S-4b); here it is enforced, by clipping each row's
// decrease at b·γ̄·B_g·‖g̃‖, so it rests on no bound of the loss. There is no search on samples: P4 has no analysis of one.
type OPTLS struct {
	P4
	Costs
	Long   float64 `yaml:"long" json:"long" doc:"first step size of a search over the one that is taken where it finds nothing, b (default 8)"`
	Shrink float64 `yaml:"shrink" json:"shrink" doc:"factor β from one step size to the next (default 0.5)"`
}

// Defaults of OPTLS.
const (
	p4Search = 8.
	p4Shrink = 0.5
)

// Configure sets what is zero.
func (m OPTLS) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	if _, err := m.fit(pub, obj, terms); err != nil {
		return nil, err
	}
	if err := m.spend(m.lens(pub), terms); err != nil {
		return nil, err
	}
	return m, nil
}

// fit sets all but the noise.
func (m *OPTLS) fit(pub oracle.Public, obj Objective, terms Terms) (bends float64, err error) {
	for _, f := range []struct {
		name        string
		value       *float64
		least, most float64
		or          float64
	}{{"long", &m.Long, 1, 1e6, p4Search}, {"shrink", &m.Shrink, 0, 1, p4Shrink}} {
		if *f.value == 0 {
			*f.value = f.or
		}
		if !(*f.value > f.least && *f.value < f.most) {
			return 0, fmt.Errorf("%s: found %v; allowed is any number above %v and below %v", f.name, *f.value, f.least, f.most)
		}
	}
	if n := m.tries(); n > 1000 {
		return 0, fmt.Errorf("shrink: found %v; with long: %v that is %d step sizes, allowed are up to 1000", m.Shrink, m.Long, n)
	}
	if bends, err = m.P4.fit(pub, obj, terms, secondorder.Constants.Search, 3); err != nil {
		return 0, err
	}
	return bends, m.Costs.fit(&m.P4, bends)
}

func (m *OPTLS) tries() int { return secondorder.MaxBacktracks(m.Long, m.Shrink) }

func (m *OPTLS) lens(pub oracle.Public) *lens {
	return &lens{P4: &m.P4, pub: pub, sample: sample.Full{}, plan: m.Off || m.Pay == ByPlan, tests: m.Steps, tries: m.tries()}
}

// Plan is T steps, or the filter.
func (m OPTLS) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.planned(m.lens(pub).cost(phase{m.Steps, m.Noise, m.Hessians}))
}

// Cautions says whether the rows are enough for a search to do what the analysis counts on.
func (m OPTLS) Cautions(pub oracle.Public, obj Objective) []string {
	c, err := m.constants(pub, obj)
	if err != nil || m.Off {
		return nil
	}
	if need := c.SearchRows(m.Noise, m.tries(), m.Steps, p4Miss, m.Clip, m.Long, m.Long); !(float64(pub.Rows) >= need) {
		return []string{fmt.Sprintf("a line search in every one of %d steps does what the analysis counts on from %.3g rows on, and there are %d: where it fails, a short step is taken", m.Steps, need, pub.Rows)}
	}
	return nil
}

// Run is P4 Algorithm 3.
func (m OPTLS) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, one(phase{m.Steps, m.Noise, m.Hessians}))
}

func (m OPTLS) run(ctx context.Context, o oracle.Oracle, obj Objective, phases phasing) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		l := m.lens(o.Public())
		w, g := make([]float64, l.pub.Dim), make([]float64, l.pub.Dim) // w_0 = 0
		st := Step{W: w}
		err := l.start(ctx, o, obj)
		_, t2 := l.c.Roots() // (15)
		for err == nil && l.open(phases(l)) {
			for l.next() { // k = 0, 1, …
				if err = l.gradient(g, w); err != nil { // g̃_k
					break
				}
				norm := norm2(g)
				s, sure := g, 2*(1-l.c.C1-l.c.CG)/l.c.Smooth                               // γ̄_g
				least := func(step float64) float64 { return l.c.CG * step * norm * norm } // (13a)
				if norm <= m.Gradient {
					var p secondorder.Pair
					if p, err = l.smallest(w, g); err != nil { // (λ̃_k, p̃_k) of H̃_k, p̃'g̃ ≤ 0 (5)
						break
					}
					if p.Value >= -m.Curvature { // a 2NS
						st.GradNorm = norm
						yield(st.converged(l.claim(g, p)), nil)
						return
					}
					negative := -p.Value
					s, sure = negated(p.Vector), t2*negative/l.c.HessLipschitz                        // γ̄_H
					least = func(step float64) float64 { return l.c.CH / 2 * step * step * negative } // (13b)
				}
				var step float64
				if step, err = l.along(w, s, sure, m.Long, m.Shrink, least); err != nil { // Algorithm 2
					break
				}
				st.move(w, s, -step, norm)
				if !yield(st, nil) {
					return
				}
			}
			err = l.ended(err)
		}
		if err == nil {
			err = l.refused
		}
		yield(st.End(err))
	}
}

// along is P4 Algorithm 2: of long·sure, shrink·long·sure … down to sure, the first step size against s that a
// noisy comparison finds to lower F by least, and sure where none is found.
func (l *lens) along(w, s []float64, sure, long, shrink float64, least func(step float64) float64) (float64, error) {
	first := long * sure
	q := l.lookAlong(l.phase.noise, math.Min(math.Max(first*l.Clip*norm2(s), minClip), maxClip))
	if err := l.buy(q); err != nil {
		return 0, err
	}
	line := oracle.Line{From: w, Along: s}
	step := first
	for range l.tries {
		fall := least(step)
		if l.obj.Reg != nil {
			fall += l.obj.rise(w, s, step)
		}
		line.Steps, line.Least = append(line.Steps, step), append(line.Least, fall)
		step *= shrink
	}
	k, err := l.batch.Search(q, line)
	if err != nil || k < 0 {
		return sure, err
	}
	return line.Steps[k], nil
}
