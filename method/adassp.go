package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// AdaSSP is least squares by noisy sufficient statistics, with a ridge that follows their noise (Wang, Revisiting
// Differentially Private Linear Regression, UAI 2018, Algorithm 2).
//
//	ȳ̃       = mean label + noise                           a first release
//	S̃       = XᵀX + E                                      (line 3)
//	b̃       = Xᵀ(y − ȳ̃) + noise                            (line 4)
//	λ       = max{0, s·√(d·ln(2d²/ρ)) − max{0, λ_min(S̃)}}   (lines 1 and 2)
//	w       = (S̃ + λI)⁻¹ b̃,  ŷ(x) = ȳ̃ + ⟨w, x⟩              (line 5)
//
//	Wang       here
//	‖X‖        R, the bound on the norm of rows
//	‖Y‖        the larger distance of ȳ̃ from the label's bounds; at most Clip/R
//	ρ          adasspMiss
//	s          standard deviation of the diagonal of E
//	S̃, b̃, λ    all over n, the nominal number of rows
//
// Deviations. The paper splits (ε, δ) evenly over three releases, one of which is λ_min; here λ_min is that of S̃,
// which is free (and is lower than that of XᵀX in the mean, so that λ is no smaller for it), and the budget is split in
// zCDP. Labels are taken relative to their mean, which is released first: what λ draws predictions to is the mean
// label, not 0. E is a symmetric Gaussian, with half the variance beside the diagonal, scaled to the sensitivity of
// R16. The sums S̃ and b̃ are those of oracle.Hess and oracle.Grad at w = 0. Eigenvalues of S̃ + λI count as at least
// half of s·√(d·ln(2d²/ρ)), which they are below with a chance of less than ρ.
type AdaSSP struct {
	Share    float64  `yaml:"share" json:"share" doc:"share of the budget, in zCDP, for XᵀX (default 0.45); the mean label takes 0.05, and Xᵀy the rest"`
	Gradient Gradient `clip:"largest norm of one row times its label, which is taken relative to the mean label (default R × the width of the label's bounds, or of 12 of its scale if that is less)" noise_multiplier:"noise multiplier σ of Xᵀy (default: the smallest that the budget allows); that of XᵀX is σ·√((0.95−s)/s), s the share, and that of the mean label σ·√((0.95−s)/0.05)"`
}

const (
	adasspShare = 0.45
	adasspMiss  = 0.05
)

// Configure sets what is zero.
func (m AdaSSP) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	switch _, ridge := obj.Reg.(reg.L2); {
	case pub.Classes > 0 || pub.HessLipschitz != 0:
		return nil, errors.New("model.name: found another loss than the squared one, which adassp minimizes; choose linear")
	case !pub.Curved:
		return nil, fmt.Errorf("model.name: found %d parameters; adassp releases a matrix with a row for each and takes at most %d; use fewer features or another method", pub.Dim, oracle.MaxHess)
	case !pub.Shifted:
		return nil, errors.New("name: found adassp, which asks for the mean label; it does not take part in a search by tune, in a network, or with --workers")
	case obj.Reg != nil && !ridge:
		return nil, errors.New("model: found a regularizer that is not quadratic; use l2 with adassp")
	}
	if err := unused(m); err != nil {
		return nil, err
	}
	err := configure(Number{"share", &m.Share, Interval{0, 1 - labelShare, true}, adasspShare})
	if err == nil {
		err = m.Gradient.configure(pub, terms, pub.NormBound*known(labelWidth(pub)))
	}
	if err == nil {
		err = m.Gradient.Calibrate(terms, func(with Gradient) privacy.Event {
			at := m
			at.Gradient = with
			return at.plan(pub)
		})
	}
	if err == nil {
		err = tooMuch(math.Max(m.hessNoise(), m.labelNoise()))
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// of is the noise multiplier of what takes that share of 1/σ², which adds up.
func (m AdaSSP) of(share float64) float64 {
	return m.Gradient.Noise * math.Sqrt((1-labelShare-m.Share)/share)
}

func (m AdaSSP) hessNoise() float64  { return m.of(m.Share) }
func (m AdaSSP) labelNoise() float64 { return m.of(labelShare) }

// ridge is s·√(d·ln(2d²/ρ))/n: the spectral norm of the matrix's noise is above it with a chance of less than ρ.
func (m AdaSSP) ridge(pub oracle.Public) float64 {
	if m.Gradient.Off {
		return 0
	}
	moved := float64(pub.Smooth) // by one record
	if pub.Adjacency == privacy.ReplaceOne {
		moved *= math.Sqrt2
	}
	d := float64(pub.Dim)
	return m.hessNoise() * moved / float64(pub.Rows) * math.Sqrt(d*math.Log(2*d*d/adasspMiss))
}

// queries are XᵀX and, of labels relative to shift, −Xᵀy.
func (m AdaSSP) queries(pub oracle.Public, shift float64) (oracle.Hess, oracle.Grad) {
	far := math.Max(shift-pub.LabelMin, pub.LabelMin+pub.LabelSpan-shift) // no label is farther from shift
	if most := pub.NormBound * far; m.Gradient.Clip > most && most > minClip {
		m.Gradient.Clip = most
	}
	g := m.Gradient.Query(pub)
	g.Shift = shift
	h := oracle.Hess{Clip: float64(pub.Smooth), Off: m.Gradient.Off}
	if !m.Gradient.Off {
		h.Noise = mech.SymmetricGaussian{Sigma: m.hessNoise()}
	}
	return h, g
}

func (m AdaSSP) plan(pub oracle.Public) privacy.Event {
	h, g := m.queries(pub, pub.LabelMin) // the cost is that of any shift
	return privacy.Composed{labelCost(pub, m.labelNoise()), pub.Cost(sample.Full{}, []oracle.Query{h, g})}
}

// Plan is three Gaussians.
func (m AdaSSP) Plan(pub oracle.Public) (privacy.Event, error) { return valid(m.plan(pub)) }

// Run asks for the mean label, then for both sums, and solves.
func (m AdaSSP) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub := o.Public()
		w := make([]float64, pub.Dim)
		st := Step{W: w}
		shift, err := askLabel(ctx, o, m.labelNoise())
		if err != nil {
			return st, err
		}
		st.Shift = shift
		h, g := m.queries(pub, shift)
		b, err := o.Batch(ctx, sample.Full{}, h, g)
		if err != nil {
			return st, err
		}
		packed, err := b.Hess(h, w)
		if err != nil {
			return st, err
		}
		s, err := spectrum(packed, w, obj, 1)
		if err != nil {
			return st, err
		}
		xy, err := b.Grad(g, w)
		if err != nil {
			return st, err
		}
		most := m.ridge(pub)
		ridge := math.Max(0, most-math.Max(0, s.values[0])) // in ascending order
		least := math.Max(most/2, newtonLeast*float64(pub.Smooth))
		for i, v := range s.values {
			s.values[i] = -1 / math.Max(v+ridge, least)
		}
		copy(w, xy)
		s.apply(w)
		st.T, st.GradNorm, st.Moved = 1, norm2(xy), norm2(w)
		yield(st)
		return st, nil
	})
}
