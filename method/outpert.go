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

// OutPert is OutPert-GD, output perturbation of full-batch gradient descent (Zhang, Zheng, Mou and
// Wang 2017; a baseline of P2): T steps without noise, then noise on w_T, once.
//
//	paper      here
//	T, η       Steps, Rate
//	L, β, μ    from public facts and the objective: Lipschitz, Smooth + λ, λ
//	Δ          2LηT/n without a regularizer, 2Lη/n · (1 − (1−ηλ)^T)/(ηλ) with λ/2‖w‖²; the
//	           private oracle computes it and adds what rounding can (oracle/perturb/PROOFS.md)
//	σ          Noise: w_T + N(0, σ²Δ²I)
//
// Deviations. The paper's Δ has a factor 3 where 2 is enough (S-B2), and its σ is proven for ε < 1 only; here it is
// the exact Gaussian's. Replace-one only: with a private row count the mean's curvature is not bounded (R20).
type OutPert struct {
	Steps int     `yaml:"steps" json:"steps" doc:"number of steps T, each over all rows (default: as many as bring the norm of the noise to 3.5/R, R the bound on a row's norm, at most 1000)"`
	Rate  float64 `yaml:"rate" json:"rate" doc:"step size η (default 1/(β+λ), β the bound on the loss's curvature; a theorem covers up to 2/(β+λ))"`
	Noise float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ (default: the smallest that the budget allows)"`

	L2  float64 `yaml:"-" json:"l2,omitempty"`  // λ of the objective
	Off bool    `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// OutPertSGD is OutPert-RSGD, the bolt-on permutation SGD of Wu, Li, Kumar, Chaudhuri, Jha and Naughton 2017 and of
// Chen, Lee and Kifer 2019 (a baseline of P2): passes over one secret random order of the rows in batches, then noise.
//
//	paper      here
//	k, b       Passes, Batch
//	η          Rate; with Decay η_t = min(Rate, 1/(λt)), t = 1, 2, …
//	w          the last iterate; with Average the mean of all, as P2 has it
//	Δ          the most that a row can move w, wherever it stands in the order: 2kLη/b without a
//	           regularizer; with one, distances shrink by 1−ηλ in each step
//	σ          Noise: w + N(0, σ²Δ²I)
//
// Deviations. No theorem about a random place in the order is used: it would make Δ a random number, which no event can
// say, for little (docs/measurements/methods.md). Replace-one only (R20).
type OutPertSGD struct {
	Passes  int     `yaml:"passes" json:"passes" doc:"number of passes k over the rows (default 1)"`
	Batch   int     `yaml:"batch" json:"batch" doc:"batch size b (default 50)"`
	Rate    float64 `yaml:"rate" json:"rate" doc:"step size η (default 1/(β+λ) or, if smaller, that which covers the distance of outpert's default; a theorem covers up to 2/(β+λ))"`
	Decay   bool    `yaml:"decay" json:"decay" doc:"let the step size fall as 1/(λt); needs the regularizer l2"`
	Noise   float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ (default: the smallest that the budget allows)"`
	Average bool    `yaml:"average" json:"average,omitempty" doc:"add the noise to the mean of all iterates, not to the last one"`

	L2  float64 `yaml:"-" json:"l2,omitempty"`  // λ of the objective
	Off bool    `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// Defaults, measured (docs/measurements/methods.md).
const (
	outPertNoise  = 3.5  // noise on w that T makes room for, in ℓ2 norm × R
	outPertSteps  = 1000 // the most
	outPertPasses = 1
	outPertBatch  = 50
)

// outPertFar is how many steps of size 1/β the noise leaves room for: as many as make its norm, about
// σ·2LηT/n·√d, a few times 1/R.
func outPertFar(pub oracle.Public, noise, curve float64) float64 {
	if noise == 0 {
		return outPertSteps
	}
	far := outPertNoise / pub.NormBound * curve * float64(pub.Rows) /
		(2 * float64(pub.Lipschitz) * noise * math.Sqrt(float64(pub.Dim)))
	return min(max(far, 1), outPertSteps)
}

// Configure sets what is zero.
func (m OutPert) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	curve, err := solvable(pub, obj, terms, &m.L2, &m.Noise)
	if err == nil {
		err = configure(Count{"steps", &m.Steps, 1e6, int(outPertFar(pub, m.Noise, curve))})
	}
	if err == nil {
		m.Off, err = terms.Off, stepWithin(&m.Rate, 1/curve, 2/curve)
	}
	return m, err
}

// Configure sets what is zero.
func (m OutPertSGD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	curve, err := solvable(pub, obj, terms, &m.L2, &m.Noise)
	if err == nil {
		err = configure(Count{"passes", &m.Passes, 1e4, outPertPasses},
			Count{"batch", &m.Batch, pub.Rows, min(outPertBatch, pub.Rows)})
	}
	if err == nil && m.Decay && m.L2 == 0 {
		err = errors.New("decay: found true; step sizes of 1/(λt) need model.l2 above 0")
	}
	if err != nil {
		return nil, err
	}
	m.Off = terms.Off
	rate := 1 / curve
	if steps := float64(m.Passes) * math.Ceil(float64(pub.Rows)/float64(m.Batch)); !m.Off {
		rate *= min(1, outPertFar(pub, m.Noise, curve)/steps)
	}
	err = stepWithin(&m.Rate, rate, 2/curve)
	return m, err
}

// solvable says whether a minimizer of the objective has a sensitivity (R20), sets λ, and the noise multiplier of one
// Gaussian if it is free, and returns the curvature bound of the objective.
func solvable(pub oracle.Public, obj Objective, terms Terms, l2, noise *float64) (curve float64, err error) {
	if *l2, err = ridge(obj); err != nil {
		return 0, err
	}
	if !pub.Smooth.Finite() {
		return 0, errors.New("model.name: the loss has no bound on its curvature, so that its minimizer has none on what a row can move; choose a model that has one, as huber-svm instead of svm")
	}
	if err := (&Gradient{Noise: *noise, Off: terms.Off}).check(pub); err != nil {
		return 0, err
	}
	curve = float64(pub.Smooth) + *l2
	if terms.Off {
		return curve, nil
	}
	if err := oneSolve(pub, terms); err != nil {
		return 0, err
	}
	return curve, calibrate(noise, terms, func(sigma float64) privacy.Event { return privacy.Gaussian{Sigma: sigma} })
}

// oneSolve refuses terms and losses for which one noisy minimizer has no theorem.
func oneSolve(pub oracle.Public, terms Terms) error {
	switch {
	case pub.Owners > 0:
		return errors.New("name: a minimizer needs all rows in one process; owners who add up their sums take methods that ask for noisy sums, as auto")
	case pub.Adjacency != privacy.ReplaceOne:
		return fmt.Errorf("privacy.adjacency: found %v; choose %v: with a private row count neither the curvature of the mean loss nor the effect of one row on its minimizer has a bound", pub.Adjacency, privacy.ReplaceOne)
	case !pub.Lipschitz.Finite():
		return errors.New("model.name: the loss has no Lipschitz bound, so its minimizer has no bound on what a row can move")
	case terms.Budget.Delta == 0:
		return errors.New("privacy.delta: found 0; Gaussian noise has no guarantee without a δ above 0")
	}
	return nil
}

// ridge is λ of an objective whose regularizer is λ/2‖w‖² or none.
func ridge(obj Objective) (float64, error) {
	switch r := obj.Reg.(type) {
	case nil:
		return 0, nil
	case reg.L2:
		return r.Lambda, nil
	}
	return 0, errors.New("model.l2: found another regularizer; use l2, or none")
}

// stepWithin sets a free step size and says whether it has a theorem.
func stepWithin(rate *float64, free, most float64) error {
	if !(*rate >= 0 && *rate <= most) {
		return fmt.Errorf("rate: found %v; choose a number above 0 and up to %v, 2 over the curvature bound of the objective",
			*rate, most)
	}
	if *rate == 0 {
		*rate = math.Nextafter(free, 0)
	}
	return nil
}

func (m OutPert) query() oracle.Minimize {
	return descent(oracle.Descent{Passes: m.Steps, Rate: m.Rate}, m.Noise, m.L2, m.Off)
}

func (m OutPertSGD) query() oracle.Minimize {
	return descent(oracle.Descent{Passes: m.Passes, Batch: m.Batch, Rate: m.Rate, Decay: m.Decay, Average: m.Average},
		m.Noise, m.L2, m.Off)
}

func descent(d oracle.Descent, noise, l2 float64, off bool) oracle.Minimize {
	d.Noise = mech.Gaussian{Sigma: noise}
	if off {
		d.Noise = mech.None{}
	}
	return oracle.Minimize{How: d, L2: l2}
}

// Plan is one Gaussian.
func (m OutPert) Plan(oracle.Public) (privacy.Event, error) { return planOnce(m.query()) }

// Plan is one Gaussian.
func (m OutPertSGD) Plan(oracle.Public) (privacy.Event, error) { return planOnce(m.query()) }

// MaxSteps is one: what is released.
func (m OutPert) MaxSteps() int { return 1 }

// MaxSteps is one: what is released.
func (m OutPertSGD) MaxSteps() int { return 1 }

// Run asks once.
func (m OutPert) Run(ctx context.Context, o oracle.Oracle, _ Objective) iter.Seq2[Step, error] {
	return runOnce(ctx, o, m.query(), m.Rate)
}

// Run asks once.
func (m OutPertSGD) Run(ctx context.Context, o oracle.Oracle, _ Objective) iter.Seq2[Step, error] {
	return runOnce(ctx, o, m.query(), m.Rate)
}

func planOnce(q oracle.Minimize) (privacy.Event, error) {
	return valid(oracle.Public{}.Cost(sample.Full{}, []oracle.Query{q}))
}

// Solves says whether m asks for a minimizer, which the private oracle computes in floating point.
func Solves(m Method) bool {
	_, ok := m.(interface{ query() oracle.Minimize })
	return ok
}

// runOnce is the run of a method that asks for one minimizer: a step, and the end.
func runOnce(ctx context.Context, o oracle.Oracle, q oracle.Minimize, rate float64) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		st := Step{W: make([]float64, o.Public().Dim), Rate: rate}
		b, err := o.Batch(ctx, sample.Full{}, q)
		if err != nil {
			return st, err
		}
		w, err := b.Minimize(q)
		if err != nil {
			return st, err
		}
		copy(st.W, w)
		st.T, st.Moved = 1, norm2(w)
		yield(st)
		return st, nil
	})
}
