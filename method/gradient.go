package method

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// Gradient says how a method asks for noisy mean gradients (P0 Algorithm 1, lines 3 to 6): draw a
// batch, clip each record's gradient, sum, add noise, divide by the nominal batch size. It is a field of
// every method that takes such gradients; all that a method does with them is post-processing.
//
//	P0        here
//	B_t       the rows that Sampler draws: each with probability q = B/n, or B of the n rows
//	          without replacement, or all
//	C         Clip; of value clipping, divided by the bound that the loss gives (model.BoundedPass)
//	σ         Noise, the noise multiplier: ξ ~ N(0, σ²Δ²I), Δ = C under add-or-remove and 2C under
//	          replace-one (R8); of Laplace noise, its scale over Δ in the L1 norm
//	B         the divisor: the nominal batch size, a public number
//
// The methods' files hold its fields beside their own (Encode).
type Gradient struct {
	Clip         float64 `yaml:"clip" json:"clip" doc:"clip norm C of one record's gradient (default 0.35 × the loss's Lipschitz bound; R/8 × the width of the label's bounds for the squared loss; √((R²+1)/2) for a network, with classes at most 6)"`
	Clipping     string  `yaml:"clipping" json:"clipping,omitempty" doc:"norm for clipping: gradient (that of the gradient; default), value (a bound on it from the record's loss, P0 Algorithm 3) or per-layer (those of its parts, each clipped to C/√L, L the number of layers with parameters)"`
	Batch        int     `yaml:"batch" json:"batch" doc:"batch size B: the expected size with Poisson sampling, the exact size with fixed; 0 means all rows in every step"`
	Sampling     string  `yaml:"sampling" json:"sampling,omitempty" doc:"how a batch is drawn: poisson (each row independently; default), fixed (B rows without replacement; needs replace-one) or, in sgd alone, allocation (random allocation: each row in one of the ⌊n/B⌋ batches of an epoch; needs add-or-remove)"`
	Noise        float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ (default: the smallest that the budget allows)"`
	Augmentation int     `yaml:"views" json:"views,omitempty" doc:"number K of views of each image; a record's gradient is the mean over its views (default 1, the image alone)"`
	Shift        int     `yaml:"shift" json:"shift,omitempty" doc:"largest shift of a view in pixels, to each side; pixels wrap around"`
	Flip         bool    `yaml:"flip" json:"flip,omitempty" doc:"whether views may be mirrored horizontally"`

	Laplace bool `yaml:"-" json:"laplace,omitempty"` // Laplace noise and L1 clip norms, for δ = 0
	Off     bool `yaml:"-" json:"off,omitempty"`     // no noise: lab

	allocates bool // whether the method may ask for random allocation
	automatic bool // each record's gradient g becomes g·C/(‖g‖+C), C = Clip
}

// The ways to draw a batch.
const (
	Poisson = "poisson" // each row by itself with probability B/n
	Fixed   = "fixed"   // B of the n rows, every such set equally likely
	// Allocation is random allocation: each row in one of the ⌊n/B⌋ batches of an epoch, equally likely in each.
	Allocation = "allocation"
)

// What a gradient is clipped by.
const (
	ByGradient = "gradient"  // its own norm
	ByValue    = "value"     // a bound on it that follows from the loss
	PerLayer   = "per-layer" // the norms of its parts, those of a network's layers
)

// Defaults of clip norms, measured (docs/measurements/methods.md).
const (
	sgdClip     = 0.35  // × Lipschitz bound
	sgdQuadClip = 0.125 // × R × width of the label's bounds, for a loss without one
	netClip     = 6     // of a network with classes, at most: measured on covtype-sample, ijcnn1 and MNIST with R = √d
)

// netClipFree is the clip norm of a network: √((R²+1)/2), the size of its first layer's gradient, and with classes at
// most netClip.
func netClipFree(pub oracle.Public) float64 {
	size := math.Sqrt((pub.NormBound*pub.NormBound + 1) / 2)
	if pub.Classes > 0 {
		return min(size, netClip)
	}
	return size
}

// inLabelUnits says that the loss is measured in the unit of a numeric label, so that steps and bounds which suit the
// losses of classes do not suit it.
func inLabelUnits(pub oracle.Public) bool {
	return !pub.Lipschitz.Finite() || pub.Classes == 0 && pub.LabelSpan > 0
}

// clipBound is share × the loss's Lipschitz bound; for the squared loss R/8 × the width of the label's bounds.
func clipBound(pub oracle.Public, share float64) float64 {
	if pub.Lipschitz.Finite() {
		return share * float64(pub.Lipschitz)
	}
	return sgdQuadClip * pub.NormBound * known(pub.LabelSpan)
}

// Configure checks all fields against what is public, and sets the way to sample and the clip norm where they
// are free. The noise follows with Calibrate, once the method knows its steps.
func (g *Gradient) Configure(pub oracle.Public, terms Terms) error {
	if g.Sampling == "" && g.Batch != 0 && g.Batch != pub.Rows {
		g.Sampling = Poisson
		if drawsFixed(pub) && !pub.Presence {
			g.Sampling = Fixed
		}
	}
	free := clipBound(pub, sgdClip)
	if len(pub.Initial) > 0 {
		free = netClipFree(pub)
	}
	return g.configure(pub, terms, free)
}

// ConfigureSteps is Configure for a method that asks one gradient a step: it also checks and fills the
// number of steps and the method's other settings, and sets the noise.
func (g *Gradient) ConfigureSteps(pub oracle.Public, terms Terms, steps *int, settings ...Setting) error {
	err, free := g.Configure(pub, terms), sgdSteps
	if len(pub.Initial) > 0 {
		free = netSteps
	}
	if err == nil {
		err = configure(append([]Setting{Count{"steps", steps, 0, free}}, settings...)...)
	}
	if err == nil {
		err = g.Calibrate(terms, func(g Gradient) privacy.Event { return repeat(g.charges(pub, *steps), g.Cost(pub)) })
	}
	return err
}

// configure is Configure for Gaussian noise, with that clip norm by default and the sampling as it is.
func (g *Gradient) configure(pub oracle.Public, terms Terms, clips float64) error {
	g.Off = terms.Off
	if err := g.check(pub); err != nil {
		return err
	}
	if !terms.Off && terms.Budget.Delta == 0 {
		return errNoDelta
	}
	return g.freeClip(clips)
}

// freeClip sets the clip norm if it is free; without noise nothing is clipped then.
func (g *Gradient) freeClip(free float64) error {
	if g.Off {
		return nil
	}
	return Number{"clip", &g.Clip, clipping, free}.fill()
}

var errNoDelta = errors.New("privacy.delta: found 0; Gaussian noise has no guarantee without a δ above 0")

// check says what is wrong with the fields, which are public numbers.
func (g *Gradient) check(pub oracle.Public) error {
	if err := check(Number{"clip", &g.Clip, clipping, 0}, Number{"noise_multiplier", &g.Noise, noises, 0}); err != nil {
		return err
	}
	switch {
	case g.Batch < 0 || g.Batch > pub.Rows:
		return fmt.Errorf("batch: found %d; write 0 (all rows) or a number up to %d, the nominal row count", g.Batch,
			pub.Rows)
	case g.Noise > 0 && g.Off:
		return fmt.Errorf("noise_multiplier: found %v; leave it out: `privacy: none` adds no noise", g.Noise)
	}
	switch g.Clipping {
	case "", ByGradient:
	case ByValue:
		if !pub.Bounded {
			return fmt.Errorf("clipping: found %q; choose %s, as the losses of this model do not bound its gradients",
				g.Clipping, ByGradient)
		}
	case PerLayer:
		if pub.Layers == 0 {
			return fmt.Errorf("clipping: found %q for a model without layers; choose %s or %s", g.Clipping, ByGradient, ByValue)
		}
	default:
		return fmt.Errorf("clipping: found %q; choose %s, %s or %s", g.Clipping, ByGradient, ByValue, PerLayer)
	}
	if _, err := g.augmentation().Of(pub.Image, 0); err != nil {
		return err
	}
	if g.Augmentation > 1 && g.Clipping != "" && g.Clipping != ByGradient {
		return fmt.Errorf("clipping: found %q beside views; choose %s", g.Clipping, ByGradient)
	}
	switch allowed := []string{Poisson, Fixed, Allocation}; {
	case g.Sampling == "":
	case g.Sampling == Allocation && !g.allocates, !slices.Contains(allowed, g.Sampling):
		if !g.allocates {
			allowed = allowed[:2]
		}
		return fmt.Errorf("sampling: found %q; choose %s", g.Sampling, strings.Join(allowed, ", "))
	case g.Batch == 0:
		return fmt.Errorf("sampling: found %q without a batch; leave it out, as each step takes all rows", g.Sampling)
	case g.Sampling == Allocation && pub.Rows/g.Batch < 2:
		return fmt.Errorf("sampling: found %q with a batch of %d; choose a batch of at most half of the %d rows", g.Sampling,
			g.Batch, pub.Rows)
	}
	if err := g.Sampler(pub).Check(pub.Adjacency); err != nil {
		return fmt.Errorf("sampling: %w", err)
	}
	return nil
}

// Plan is that many batches.
func (g Gradient) Plan(pub oracle.Public, steps int) (privacy.Event, error) {
	return valid(repeat(g.charges(pub, steps), g.Cost(pub)))
}

// charges is how often Cost is charged in that many steps: by random allocation once for each epoch, also for a last
// one that is not whole.
func (g Gradient) charges(pub oracle.Public, steps int) int {
	if a, ok := g.Sampler(pub).(sample.Allocation); ok {
		return steps/a.Batches + min(1, steps%a.Batches)
	}
	return steps
}

// Calibrate sets the noise, where it is free, to the least with which plan fits the terms.
func (g *Gradient) Calibrate(terms Terms, plan func(Gradient) privacy.Event) error {
	if g.Noise != 0 || g.Off {
		return nil
	}
	noise, err := account.Calibrate(terms.Accountant, terms.Budget, func(noise float64) privacy.Event {
		with := *g
		with.Noise = noise
		return plan(with)
	})
	if err != nil {
		return g.refusal(err)
	}
	g.Noise = noise
	return tooMuch(noise)
}

// calibrate is Calibrate for a noise multiplier that is not of a Gradient.
func calibrate(noise *float64, terms Terms, plan func(noise float64) privacy.Event) error {
	g := Gradient{Noise: *noise, Off: terms.Off}
	err := g.Calibrate(terms, func(g Gradient) privacy.Event { return plan(g.Noise) })
	*noise = g.Noise
	return err
}

// calibrateFilter chooses the filter for costs that depend on releases, and sets the noise, where it is
// free, to the least with which plan fits in the filter.
func calibrateFilter(noise *float64, terms Terms,
	plan func(noise float64) privacy.Event) (f privacy.Filtered, err error) {
	if *noise != 0 {
		f, _, err = account.ChooseFilter(plan(*noise), terms.Budget)
	} else {
		*noise, f, err = account.CalibrateFilter(terms.Budget, plan)
	}
	if err == nil {
		_, err = terms.Accountant.Loss(f, terms.Budget.Adjacency) // with retries (account.Retrying) a filter has no theorem
	}
	if err != nil {
		return f, Gradient{}.refusal(err)
	}
	return f, tooMuch(*noise)
}

// refusal says which field an error of an accountant is about.
func (g Gradient) refusal(err error) error {
	unproven := (*account.UnsupportedError)(nil)
	if errors.As(err, &unproven) && g.Batch != 0 {
		how := ""
		if g.Sampling != "" {
			how = ", drawn " + g.Sampling
		}
		return fmt.Errorf("batch: found %d%s; write 0 (all rows), as accountant %s has no theorem for %v under %v", g.Batch,
			how, unproven.Accountant, unproven.Event, unproven.Adjacency)
	}
	return about("noise_multiplier", err)
}

// about says which field an error of an accountant is about: that one, unless the accountant has no theorem.
func about(field string, err error) error {
	unproven := (*account.UnsupportedError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unproven):
		field = "privacy.accountant"
	}
	return fmt.Errorf("%s: %w", field, err)
}

// tooMuch is the error of a noise multiplier that is beyond what Sotto computes with.
func tooMuch(noise float64) error {
	if noise > maxNoise {
		return fmt.Errorf("noise_multiplier: this budget needs %.3g, more than the largest, %g; take fewer steps or a larger budget", noise, float64(maxNoise))
	}
	return nil
}

// Sampler draws the batches. Runs written before there was a choice have no Sampling and mean Poisson.
func (g Gradient) Sampler(pub oracle.Public) sample.Sampler {
	switch {
	case g.Batch == 0 || g.Batch == pub.Rows:
		return sample.Full{}
	case g.Sampling == Allocation:
		return sample.Allocation{Batches: pub.Rows / g.Batch}
	case g.Sampling == Fixed:
		return sample.Fixed{M: g.Batch, N: pub.Rows}
	}
	return sample.Poisson{Rate: float64(g.Batch) / float64(pub.Rows)}
}

// drawsFixed says whether batches have a fixed size where there is no choice: under replace-one, but for owners who add
// up their sums, each of whom draws by itself.
func drawsFixed(pub oracle.Public) bool {
	return pub.Adjacency == privacy.ReplaceOne && pub.Owners == 0
}

// batches draws that many rows, 0 being all, in the way that the adjacency asks for.
func batches(pub oracle.Public, rows int) sample.Sampler {
	g := Gradient{Batch: rows}
	if drawsFixed(pub) {
		g.Sampling = Fixed
	}
	return g.Sampler(pub)
}

func (g Gradient) augmentation() oracle.Augmentation {
	return oracle.Augmentation{Count: g.Augmentation, Shift: g.Shift, Flip: g.Flip}
}

// Query is what each step asks of its batch.
func (g Gradient) Query(pub oracle.Public) oracle.Grad {
	q := oracle.Grad{Clip: clip.Norm{C: g.Clip}, Noise: mech.Gaussian{Sigma: g.Noise}, Augmentation: g.augmentation()}
	if g.automatic {
		q.Clip = clip.Automatic{C: g.Clip}
	}
	switch g.Clipping {
	case ByValue:
		q.Clip = clip.Value{C: g.Clip}
	case PerLayer:
		q.Clip = clip.PerLayer{C: g.Clip, Layers: pub.Layers}
	}
	switch {
	case g.Off && g.Clip == 0:
		q.Clip, q.Noise = clip.None{}, mech.None{}
	case g.Off:
		q.Noise = mech.None{}
	case g.Laplace:
		q.Clip, q.Noise = clip.Norm{C: g.Clip, P: 1}, mech.Laplace{Scale: g.Noise}
	}
	return q
}

// Cost is the event of one batch; by random allocation, of an epoch.
func (g Gradient) Cost(pub oracle.Public) privacy.Event {
	return pub.Cost(g.Sampler(pub), []oracle.Query{g.Query(pub)})
}

// Variance is that of one coordinate of the Gaussian noise in a mean gradient.
func (g Gradient) Variance(pub oracle.Public) float64 {
	sens, err := clip.Sensitivity(g.Clip, pub.Adjacency)
	if err != nil || g.Off {
		return 0
	}
	deviation := g.Noise * sens / g.Sampler(pub).Size(pub.Rows)
	return deviation * deviation
}

// Noisy gives the noisy mean gradients of one run.
type Noisy struct {
	Gradient
	o       oracle.Oracle
	sampler sample.Sampler
	query   oracle.Grad
	queries []oracle.Query // the same, as Batch takes it
	g       []float64      // of At and descend
	at      []float64      // of centered gradients: the parameters, then the center
}

// On prepares gradients from o: asking for one does not allocate.
func (g Gradient) On(o oracle.Oracle) *Noisy {
	n := &Noisy{o: o, query: g.Query(o.Public()), sampler: g.Sampler(o.Public()), queries: make([]oracle.Query, 1)}
	n.Gradient, n.queries[0] = g, n.query
	return n
}

// Around makes the next gradients those of rows less a center, nil: of rows as they are, at margins to which shift is
// added.
func (n *Noisy) Around(center []float64, shift float64) {
	if n.query.Shift = shift; center != nil {
		n.query.Centered = true
		n.at = append(make([]float64, n.o.Public().Dim), center...)
	}
	n.queries[0] = n.query
}

// With changes what the next gradients are clipped to and carry as noise; the sampling stays.
func (n *Noisy) With(g Gradient) *Noisy {
	if n.Gradient != g {
		centered, shift := n.query.Centered, n.query.Shift
		n.Gradient, n.query = g, g.Query(n.o.Public())
		n.query.Centered, n.query.Shift = centered, shift
		n.queries[0] = n.query
	}
	return n
}

// At is a noisy mean gradient at w, of a new batch. The slice is the caller's until the next call.
func (n *Noisy) At(ctx context.Context, w []float64) ([]float64, error) {
	released, err := n.ask(ctx, w)
	if err != nil {
		return nil, err
	}
	copy(n.memory(len(w)), released)
	return n.g, nil
}

// ask is At in memory of the oracle: nobody changes it.
func (n *Noisy) ask(ctx context.Context, w []float64) ([]float64, error) {
	b, err := n.o.Batch(ctx, n.sampler, n.queries...) // charge, then draw the batch
	if err != nil {
		return nil, err
	}
	if n.query.Centered {
		copy(n.at, w)
		w = n.at
	}
	return b.Grad(n.query, w) // clip, sum, add noise, divide by the nominal size
}

// descend sets w to w − η(g + ∇r(w)), r the regularizer of obj, and returns ‖g‖ and the length of the step. It does not
// change g, which ask returned, and passes over the parameters once where there is no regularizer.
func (n *Noisy) descend(w []float64, eta float64, g []float64, obj Objective) (norm, moved float64) {
	if obj.Reg == nil {
		norm = math.Sqrt(kern.Descend(w, g, eta))
		return norm, eta * norm
	}
	all := n.memory(len(w))
	copy(all, g)
	obj.AddGradient(all, w)
	return norm2(g), eta * math.Sqrt(kern.Descend(w, all, eta))
}

// memory is the Noisy's own gradient.
func (n *Noisy) memory(dim int) []float64 {
	if n.g == nil {
		n.g = make([]float64, dim)
	}
	return n.g
}
