package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// SGD is DP-SGD with gradient clipping, P0 Algorithm 1, or with value clipping,
// Algorithm 3; with a full batch it is DP-GD.
//
//	P0        here
//	B_t       the rows drawn by sampler(): each with probability q = B/n, or B of
//	          the n rows without replacement, or all
//	C         Clip; of value clipping, divided by the bound that the loss gives (model.BoundedPass), not by P0's
//	σ         Noise, the noise multiplier: ξ ~ N(0, σ²Δ²I), Δ = C under
//	          add-or-remove and 2C under replace-one (R8)
//	η         Rate, times what Schedule says of the step
//	B         the divisor: the nominal batch size, a public number
//
// Deviations: P0's proof (App. B.3) divides by the realised |B_t|, which is not
// private (S-2b); here the divisor is B, as in the algorithm box. P0 returns a
// uniformly random iterate; which iterate is returned is the caller's choice
// (Output), all of them are covered. σ comes from an accountant, not from
// Theorem 3.4, whose constants are unspecified (S-0e).
type SGD struct {
	Steps        int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100)"`
	Rate         float64 `yaml:"rate" json:"rate" doc:"step size η (default 80/R², R the bound on a row's norm; 1.5/L for the squared loss, L its curvature bound; 60/(R²+1) for a network)"`
	Clip         float64 `yaml:"clip" json:"clip" doc:"clip norm C of one record's gradient (default 0.35 × the loss's Lipschitz bound; R/8 × the width of the label's bounds for the squared loss; √((R²+1)/2) for a network)"`
	Clipping     string  `yaml:"clipping" json:"clipping,omitempty" doc:"what a gradient is clipped by: gradient (its own norm; default), value (a bound on it that follows from the record's loss, P0 Algorithm 3) or per-layer (the norms of its parts, each to C/√L, L the layers of a network that have parameters)"`
	Batch        int     `yaml:"batch" json:"batch" doc:"batch size B: the expected one of Poisson sampling, the exact one of fixed; 0 means all rows in every step"`
	Sampling     string  `yaml:"sampling" json:"sampling,omitempty" doc:"how a batch is drawn: poisson (each row by itself; default under add-or-remove) or fixed (B rows without replacement; allowed and the default under replace-one)"`
	Noise        float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ (default: the smallest that the budget allows)"`
	Augmentation int     `yaml:"views" json:"views,omitempty" doc:"views K of each image: the gradient of a record is the mean of theirs (default 1, the image alone)"`
	Shift        int     `yaml:"shift" json:"shift,omitempty" doc:"most pixels by which a view is shifted, to each side; what leaves on one side comes in on the other"`
	Flip         bool    `yaml:"flip" json:"flip,omitempty" doc:"whether views may be mirrored, left to right"`
	Schedule     string  `yaml:"schedule" json:"schedule,omitempty" doc:"how the step size changes: constant (default), cosine, linear, sqrt or inverse, if wanted after a warm-up, as in warmup 20 cosine (see Schedules)"`

	Off bool `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// The ways to draw a batch.
const (
	Poisson = "poisson" // each row by itself with probability B/n
	Fixed   = "fixed"   // B of the n rows, every such set equally likely
)

// What a gradient is clipped by.
const (
	ByGradient = "gradient"  // its own norm
	ByValue    = "value"     // a bound on it that follows from the loss
	PerLayer   = "per-layer" // the norms of its parts, those of a network's layers
)

// Defaults of what Fit may choose, measured on Adult, Bank, ijcnn1 and synthetic
// tables (docs/measurements/methods.md). They depend on public facts only: R is the bound on a
// row's norm, L that on the curvature of one record's loss.
const (
	sgdSteps    = 100
	sgdRate     = 80    // × 1/R², for a loss with a Lipschitz bound
	sgdClip     = 0.35  // × Lipschitz bound
	sgdQuadRate = 1.5   // × 1/L, for one without
	sgdQuadClip = 0.125 // × R × width of the label's bounds, likewise

	netRate = 30 // of a network, × 2/(R²+1): measured on MNIST with R = 1
	netClip = 1  // likewise, × √((R²+1)/2)
)

// What Sotto computes with: far inside the range of its numbers.
const (
	minClip, maxClip = 1e-100, 1e100
	maxNoise         = 1e6
)

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m SGD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	if err := m.fit(pub, obj, terms, func(m SGD) privacy.Event { return m.plan(pub) }); err != nil {
		return nil, err
	}
	return m, nil
}

// fit does so for any method that takes noisy gradients of these numbers, and whose whole cost is plan.
func (m *SGD) fit(pub oracle.Public, obj Objective, terms Terms, plan func(SGD) privacy.Event) error {
	m.Off = terms.Off
	if m.Sampling == "" && m.Batch != 0 && m.Batch != pub.Rows {
		m.Sampling = Poisson
		if pub.Adjacency == privacy.ReplaceOne {
			m.Sampling = Fixed
		}
	}
	if err := m.check(pub); err != nil {
		return err
	}
	if m.Steps == 0 {
		m.Steps = sgdSteps
	}
	if _, err := parseRates(m.Schedule, m.Steps); err != nil {
		return err
	}
	if len(pub.Initial) > 0 {
		size := (pub.NormBound*pub.NormBound + 1) / 2
		if m.Rate == 0 {
			m.Rate = netRate / size
		}
		if m.Clip == 0 && !m.Off {
			m.Clip = netClip * math.Sqrt(size)
		}
	}
	bounded := pub.Lipschitz.Finite()
	if m.Rate == 0 && bounded {
		m.Rate = sgdRate / (pub.NormBound * pub.NormBound)
	}
	if m.Rate == 0 {
		m.Rate = sgdQuadRate / (float64(pub.Smooth) + obj.smooth())
	}
	if m.Clip == 0 && !m.Off && bounded {
		m.Clip = sgdClip * float64(pub.Lipschitz)
	}
	if m.Clip == 0 && !m.Off {
		m.Clip = sgdQuadClip * pub.NormBound * pub.LabelSpan
	}
	if !m.Off && terms.Budget.Delta == 0 {
		return errors.New("privacy.delta: found 0; Gaussian noise has no guarantee without a δ above 0")
	}
	if m.Noise == 0 && !m.Off {
		noise, err := account.Calibrate(terms.Accountant, terms.Budget, func(noise float64) privacy.Event {
			m.Noise = noise
			return plan(*m)
		})
		unproven := (*account.UnsupportedError)(nil)
		if errors.As(err, &unproven) && m.Batch != 0 {
			return fmt.Errorf("batch: found %d, drawn %s; allowed is 0 (all rows): accountant %s has no theorem for %v under %v", m.Batch, m.Sampling, unproven.Accountant, unproven.Event, unproven.Adjacency)
		}
		if unproven != nil {
			return fmt.Errorf("privacy.accountant: %w", err)
		}
		if err != nil {
			return fmt.Errorf("noise_multiplier: %w", err)
		}
		m.Noise = noise
	}
	if m.Noise > maxNoise {
		return fmt.Errorf("noise_multiplier: this budget needs %.3g; allowed is at most %g: take fewer steps or a larger budget", m.Noise, float64(maxNoise))
	}
	return nil
}

// check says what is wrong with the fields, which are public numbers.
func (m SGD) check(pub oracle.Public) error {
	switch {
	case m.Steps < 0:
		return fmt.Errorf("steps: found %d; allowed is 1 or more", m.Steps)
	case !(m.Rate >= 0) || math.IsInf(m.Rate, 1):
		return fmt.Errorf("rate: found %v; allowed is any number above 0", m.Rate)
	case m.Clip != 0 && !(m.Clip >= minClip && m.Clip <= maxClip):
		return fmt.Errorf("clip: found %v; allowed is any number from %g to %g", m.Clip, minClip, maxClip)
	case m.Batch < 0 || m.Batch > pub.Rows:
		return fmt.Errorf("batch: found %d; allowed is 0 (all rows) to %d, the nominal row count", m.Batch, pub.Rows)
	case !(m.Noise >= 0 && m.Noise <= maxNoise):
		return fmt.Errorf("noise_multiplier: found %v; allowed is any number above 0 and up to %g", m.Noise, float64(maxNoise))
	case m.Noise > 0 && m.Off:
		return fmt.Errorf("noise_multiplier: found %v; it has no place beside `privacy: none`", m.Noise)
	}
	switch m.Clipping {
	case "", ByGradient:
	case ByValue:
		if !pub.Bounded {
			return fmt.Errorf("clipping: found %q; allowed is %s: the losses of this model do not bound its gradients", m.Clipping, ByGradient)
		}
	case PerLayer:
		if pub.Layers == 0 {
			return fmt.Errorf("clipping: found %q; allowed without layers are %s, %s", m.Clipping, ByGradient, ByValue)
		}
	default:
		return fmt.Errorf("clipping: found %q; allowed are %s, %s, %s", m.Clipping, ByGradient, ByValue, PerLayer)
	}
	if _, err := m.views().Of(pub.Image, 0); err != nil {
		return err
	}
	if m.Augmentation > 1 && m.Clipping != "" && m.Clipping != ByGradient {
		return fmt.Errorf("clipping: found %q; allowed beside views is %s", m.Clipping, ByGradient)
	}
	switch m.Sampling {
	case "":
	case Poisson, Fixed:
		if m.Batch == 0 {
			return fmt.Errorf("sampling: found %q without a batch; allowed is to leave it out: all rows are taken", m.Sampling)
		}
	default:
		return fmt.Errorf("sampling: found %q; allowed are %s, %s", m.Sampling, Poisson, Fixed)
	}
	if err := m.sampler(pub).Check(pub.Adjacency); err != nil {
		return fmt.Errorf("sampling: %w", err)
	}
	return nil
}

// sampler of a fitted method. A record of before there was a choice holds no Sampling and
// means Poisson.
func (m SGD) sampler(pub oracle.Public) sample.Sampler {
	switch {
	case m.Batch == 0 || m.Batch == pub.Rows:
		return sample.Full{}
	case m.Sampling == Fixed:
		return sample.Fixed{M: m.Batch, N: pub.Rows}
	default:
		return sample.Poisson{Rate: float64(m.Batch) / float64(pub.Rows)}
	}
}

func (m SGD) views() oracle.Augmentation {
	return oracle.Augmentation{Count: m.Augmentation, Shift: m.Shift, Flip: m.Flip}
}

func (m SGD) query(pub oracle.Public) oracle.Grad {
	q := oracle.Grad{Clip: clip.Norm{C: m.Clip}, Noise: mech.Gaussian{Sigma: m.Noise}, Augmentation: m.views()}
	switch m.Clipping {
	case ByValue:
		q.Clip = clip.Value{C: m.Clip}
	case PerLayer:
		q.Clip = clip.PerLayer{C: m.Clip, Layers: pub.Layers}
	}
	if m.Off {
		q.Noise = mech.None{}
		if m.Clip == 0 {
			q.Clip = clip.None{}
		}
	}
	return q
}

// Purchase is what each step of a fitted method buys, for methods elsewhere that take the
// same noisy gradients.
func (m SGD) Purchase(pub oracle.Public) (sample.Sampler, oracle.Grad) {
	return m.sampler(pub), m.query(pub)
}

func (m SGD) plan(pub oracle.Public) privacy.Event {
	return privacy.Repeated{Count: m.Steps, Of: oracle.Cost(m.sampler(pub), []oracle.Query{m.query(pub)})}
}

// Plan is T times one sampled Gaussian.
func (m SGD) Plan(pub oracle.Public) (privacy.Event, error) {
	p := m.plan(pub)
	return p, p.Validate()
}

// MaxSteps is T.
func (m SGD) MaxSteps() int { return m.Steps }

// NoiseMultiplier is σ.
func (m SGD) NoiseMultiplier() float64 { return m.Noise }

// variance is that of one coordinate of a gradient's noise.
func (m SGD) variance(pub oracle.Public, sigma, bound float64) float64 {
	sens, err := clip.Sensitivity(bound, pub.Adjacency)
	if err != nil || m.Off {
		return 0
	}
	deviation := sigma * sens / m.sampler(pub).Size(pub.Rows)
	return deviation * deviation
}

// Run is P0 Algorithm 1.
func (m SGD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w.
func (m SGD) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error] {
	return m.descend(ctx, o, obj, from, m.Rate, 0, func(_ int, rate float64, w, g []float64, _ [][]float64) float64 {
		for j := range w { // line 7: w_{t+1} = w_t − η (ḡ + ∇r(w_t))
			w[j] -= rate * g[j]
		}
		return rate * norm2(g)
	})
}

// A move is what follows a gradient in step t = 0, 1, …: it takes w a step of size rate and says how far that was. g is the noisy
// mean gradient with the regulariser's and may be written over; kept are the vectors, zeros at first, that go from step to step.
type move func(t int, rate float64, w, g []float64, kept [][]float64) float64

// descend takes steps along SGD's noisy gradients, of sizes rate times what the schedule says.
func (m SGD) descend(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint, rate float64, vectors int, step move) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		w := o.Public().Start() // line 1: w_0, the same for every table
		g := make([]float64, len(w))
		state := [][]float64{w}
		for range vectors {
			state = append(state, make([]float64, len(w)))
		}
		q, s := m.query(o.Public()), m.sampler(o.Public())
		pay := []oracle.Query{q}
		st := Step{W: w, Rate: rate, Kept: state}
		rates, err := parseRates(m.Schedule, m.Steps)
		if err != nil {
			yield(st, err)
			return
		}
		if st.T, err = from.into(state...); err != nil {
			yield(st, err)
			return
		}
		for t := st.T; t < m.Steps; t++ {
			b, err := o.Batch(ctx, s, pay...) // line 3: draw B_t, paid
			if err != nil {
				stop(yield, st, err)
				return
			}
			released, err := b.Grad(q, w) // lines 4–6: clip, sum, add ξ, divide by B
			if err != nil {
				stop(yield, st, err)
				return
			}
			st.GradNorm = norm2(released)
			copy(g, released)
			obj.addGrad(g, w)
			st.Rate = rate * rates.part(t)
			st.Moved = step(t, st.Rate, w, g, state[1:])
			st.T = t + 1
			if !yield(st, nil) {
				return
			}
		}
		st.Status = Done
		yield(st, nil)
	}
}
