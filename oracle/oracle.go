// Package oracle declares the oracle, through which methods ask queries of the data. A method holds an
// Oracle: it can charge a batch, ask each charged query once, and nothing else. The
// package imports no data, so whatever a method computes from the answers is
// post-processing and costs nothing more.
//
// A batch is charged as a whole. Its cost is fixed by public values and charged before a
// sample is drawn; all that is asked of one sample is composed inside the
// sampling event and amplified once (soundness.md, S-2a).
package oracle

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// Public is all that a method may know of the data: what a person wrote in the
// schema, or what the model implies of it.
type Public struct {
	Dim       int               `json:"dim"`     // number of parameters
	Rows      int               `json:"rows"`    // nominal number of records: a public size, the divisor of every mean
	Classes   int               `json:"classes"` // 0 for a numeric label
	Adjacency privacy.Adjacency `json:"adjacency"`
	// Presence says that under replace-one the events of sums on Poisson samples state how far a record's presence moves
	// them, too, and that their noise is relative to both moves (ADR 41); false in runs written before.
	Presence bool `json:"presence,omitempty"`
	Coding
	// Snapped says that bumps and waves follow from rows without them, as they are stored (ADR 87), so that a packed table
	// and its file give the same rows; false in runs written before, whose curves follow from the cells.
	Snapped bool `json:"snapped,omitempty"`
	// Centered says that Mean is answered, and Grad with Centered (ADR 46); false in runs written before.
	Centered bool `json:"centered,omitempty"`
	// Shifted says that Loss with Labels is answered, and Grad with Shift (ADR 49); false in runs written before.
	Shifted bool `json:"shifted,omitempty"`
	// Totals says that Totals is answered (ADR 79); false in runs written before. Runs call it looked, as the query was
	// once called.
	Totals bool `json:"looked,omitempty"`
	// Cells says that every number of a row is 1, of a cell that the row is in, or 0.
	Cells bool `json:"cells,omitempty"`
	// Slots is for how many pairs of Numeric columns a row has places of PairFeatures each: its last features
	// before the intercept, all 0 until Refine.
	Slots int `json:"slots,omitempty"`
	// Owners, where it is not 0, is how many owners of a network add up their sums so that only the total can be read,
	// each with its share of the noise, and Colluders for how many of them the guarantee allows (ADR 66). Rows are those
	// of all owners.
	Owners    int `json:"owners,omitempty"`
	Colluders int `json:"colluders,omitempty"`
	// UnitRows is the most rows of a record where records are units of several rows, whose loss is the mean of their
	// rows' losses; 0: a record is a row. Bounds on a record hold for both.
	UnitRows int `json:"unit_rows,omitempty"`

	NormBound float64 `json:"norm_bound"`         // every row has ‖x‖₂ ≤ NormBound
	L1Bound   float64 `json:"l1_bound,omitempty"` // and ‖x‖₁ ≤ L1Bound
	// Bounds on one record's loss as a function of the parameters; +Inf where
	// the model has none (stored as null).
	Lipschitz Bound `json:"lipschitz"` // ‖∇ℓ‖₂
	Smooth    Bound `json:"smooth"`    // ‖∇²ℓ‖₂
	// Of ∇²ℓ, a Lipschitz constant; like Curved, unknown (0, false) in runs written before there were Hessians.
	HessLipschitz Bound `json:"hess_lipschitz,omitempty"`
	Curved        bool  `json:"curved,omitempty"`  // Hess is answered, and ‖∇²ℓ‖ ≤ Smooth in the Frobenius norm, too
	Bounded       bool  `json:"bounded,omitempty"` // losses bound gradients: clip.Value is answered
	// Margins is answered (ADR 81); false in runs written before.
	Calibrated bool `json:"calibrated,omitempty"`
	// parts of a network's gradient that can be clipped by themselves: clip.PerLayer is answered
	Layers int `json:"layers,omitempty"`
	// rows, columns and what is at a point, where rows are images and Grad.Augmentation is answered
	Image []int `json:"image,omitempty"`
	// Numeric are the numeric columns that have features beside their line, in their order; the schema has them, too.
	Numeric []Numeric `json:"-"`
	// Leveled are the columns with levels, likewise.
	Leveled   []Leveled `json:"-"`
	LabelSpan float64   `json:"label_span,omitempty"` // width of the bounds of a numeric label
	LabelMin  float64   `json:"label_min,omitempty"`  // the lower of them, where Shifted or Totals
	// about how far labels lie from their mean, as a person wrote; 0: not given
	LabelScale float64 `json:"label_scale,omitempty"`
	StartLoss  Bound   `json:"start_loss,omitempty"` // a record's loss at w = 0, where it is the same for all; else 0
	// Of each Intercept parameters, those of a class or all, the last goes with a feature
	// that is above 0 in every row; 0: there is none.
	Intercept int  `json:"intercept,omitempty"`
	OneMargin bool `json:"one_margin,omitempty"` // the loss is one of w·x, monotone for each label
	// How parameters start, the spans one after the other; none: all at 0. See Start.
	Initial []Span `json:"initial,omitempty"`
}

// A Coding says in what numbers rows are, where they are not float32: their gradients are summed in the units of those.
// Its zero value, float32, is that of runs written before.
type Coding struct {
	Bytes bool `json:"bytes,omitempty"` // images as bytes (ADR 43)
	Short bool `json:"short,omitempty"` // numbers of 16 bits (ADR 50)
}

// Coded says that rows are not float32.
func (c Coding) Coded() bool { return c != Coding{} }

// A Numeric is a numeric column: feature At, counted from 0, is its line, and the Bumps features after it are its
// bumps, or the Waves features its waves. Free says that a run that
// begins chose them, since the schema names no encoding.
type Numeric struct {
	At, Bumps, Waves int
	Free             bool
}

// A Leveled is a column with levels: Levels features from feature At on, of which a row has one at 1, or none, and the
// others at 0; or, of levels in order and truth values, one feature within ±1, and Levels is 0.
type Leveled struct{ At, Levels int }

// Features counts those of the column.
func (c Leveled) Features() int { return max(1, c.Levels) }

// Features are those beside the line.
func (n Numeric) Features() int { return n.Bumps + n.Waves }

// Counted is what Rows counts, in the plural.
func (p Public) Counted() string {
	if p.UnitRows > 0 {
		return "units"
	}
	return "rows"
}

// A Bound is a public bound that may be infinite; JSON writes that as null.
type Bound float64

// Finite says whether there is a bound at all.
func (b Bound) Finite() bool { return !math.IsInf(float64(b), 0) && !math.IsNaN(float64(b)) }

// MarshalJSON writes a finite bound as a number and an infinite one as null.
func (b Bound) MarshalJSON() ([]byte, error) {
	if !b.Finite() {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%v", float64(b)), nil
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (b *Bound) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*b = Bound(math.Inf(1))
		return nil
	}
	_, err := fmt.Sscan(string(data), (*float64)(b))
	return err
}

// Oracle answers queries about the records. Implementations are oracle/private,
// which holds the data, and oracle/replay, which holds a run's releases.
type Oracle interface {
	Public() Public
	// Batch charges s.Event(Composed(queries...)), then draws one sample, of which
	// each charged query may be asked once, in any order. A refused charge wraps
	// privacy.ErrExhausted, releases nothing and changes nothing. A batch is
	// valid until the next call of Batch.
	Batch(ctx context.Context, s sample.Sampler, queries ...Query) (Batch, error)
}

// Batch answers the charged queries of one sample. An answer is a slice that the
// oracle owns: it is valid until the next call of Oracle.Batch.
type Batch interface {
	// Grad answers a charged Grad at the parameters w: the noisy clipped sum of the
	// records' gradients, divided by the sampler's public size. Where q.Centered, the center of the rows follows the
	// parameters in w, one number for each feature.
	Grad(q Grad, w []float64) ([]float64, error)
	// Hess answers a charged Hess at the parameters w: the noisy sum of the records' Hessians,
	// divided by the sampler's public size, as its upper triangle row after row. See Symmetric.
	Hess(q Hess, w []float64) ([]float64, error)
	// Search answers a charged Search along a line: the number of the first step that lowers the
	// loss by as much as it should, by noisy comparison, or −1 for none.
	Search(q Search, along Line) (int, error)
	// Select answers a charged Select: the number of the candidate that is chosen.
	Select(q Select, among Candidates) (int, error)
	// Mean answers a charged Mean: the noisy sum of the rows, divided by the sampler's public size.
	Mean(q Mean) ([]float64, error)
	// Totals answers a charged Totals: the noisy sums of cell after cell, each the count, the features and the products.
	Totals(q Totals) ([]float64, error)
	// Loss answers a charged Loss at the parameters w. Where q.Wrong, the number that is added to margins follows them in
	// w, where q.Within, the norm, and where q.Squares, the number that labels are taken from.
	Loss(q Loss, w []float64) (float64, error)
	// Score answers a charged Score at the parameters w: noisy numbers of records, or sums of errors. They are not
	// divided.
	Score(q Score, w []float64) ([]float64, error)
	// Margins answers a charged Margins at the parameters, what is added to each margin, the factor a, and the offset b of
	// each margin. The sums are not divided.
	Margins(q Margins, at []float64) ([]float64, error)
	// Minimize answers a charged Minimize: noisy parameters.
	Minimize(q Minimize) ([]float64, error)
}

// A Query says what may be asked and what it costs. Queries are comparable
// values that know no data.
type Query interface {
	// Event is the cost of asking once, given the sample.
	Event() privacy.Event
	// Validate says what is wrong with the query's public numbers.
	Validate() error
}

// Grad asks for the clipped gradient sum plus noise (P0 Algorithm 1, lines 4–6).
type Grad struct {
	Clip         clip.Rule
	Noise        mech.Additive
	Augmentation Augmentation // of images: the gradient of a record is the mean of theirs
	// Centered takes a public point, the center, from every row first: margins are ⟨w, x − m⟩ and gradients s·(x − m).
	// It is asked with the parameters, as whatever it is, clipping bounds a record's part.
	Centered bool
	// Shift is a public number that is added to all margins, where Public.Shifts: an argument, as the parameters are.
	Shift float64
}

// Event is the event of the noise: what is written is what is done.
func (q Grad) Event() privacy.Event { return q.Noise.Event() }

// Validate checks that clipping and noise are set and use the same norm.
func (q Grad) Validate() error {
	switch {
	case q.Clip == nil || q.Noise == nil:
		return errors.New("oracle: a gradient query needs a clip rule and a noise")
	case q.Clip.Norm() != q.Noise.Norm():
		return fmt.Errorf("oracle: the clip rule bounds the ℓ%d norm, the noise is calibrated to ℓ%d", q.Clip.Norm(),
			q.Noise.Norm())
	}
	if err := q.Clip.Validate(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if err := q.Augmentation.Validate(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if err := q.checkCentered(); err != nil {
		return err
	}
	if math.IsNaN(q.Shift) || math.IsInf(q.Shift, 0) || q.Shift != 0 && q.Augmentation.Count > 1 {
		return fmt.Errorf("oracle: margins are shifted by %v; choose a finite number, without views", q.Shift)
	}
	if _, off := q.Noise.(mech.None); off {
		return nil
	}
	if _, err := clip.Sensitivity(q.Clip.Bound(), privacy.ReplaceOne); err != nil {
		return fmt.Errorf("oracle: noise needs a clip bound: %w", err)
	}
	return nil
}

// Errors of misuse: each is a mistake in a method, none depends on a record.
var (
	ErrNotCharged = errors.New("oracle: this query was not charged in this batch, or was already asked")
	ErrStale      = errors.New("oracle: this batch is over: a newer one was charged")
)

// Cost is the event of one batch: all queries, composed on one sample, then
// sampled (S-2a: composed first, amplified once).
func (p Public) Cost(s sample.Sampler, queries []Query) privacy.Event {
	event := Query.Event
	if p.BothMoves(s) {
		event = movesOf
	}
	of := event
	if p.Owners > 0 {
		of = func(q Query) privacy.Event { return privacy.InShares(event(q), p.Owners, p.Colluders) }
	}
	if len(queries) == 1 {
		return s.Event(of(queries[0]))
	}
	parts := make(privacy.Composed, len(queries))
	for i, q := range queries {
		parts[i] = of(q)
	}
	return s.Event(parts)
}

// BothMoves says whether the events of noisy sums on samples of s state both moves, of a record's presence and of its
// replacement, as Presence has it. oracle/private then makes their noise relative to both.
func (p Public) BothMoves(s sample.Sampler) bool {
	poisson, ok := s.(sample.Poisson)
	return ok && poisson.Rate < 1 && p.Presence && p.Adjacency == privacy.ReplaceOne
}

// movesOf is the event of a query on a Poisson sample under replace-one. A sum of gradients or rows, each of norm up to
// C, moves by C with a record's presence and by 2C with its replacement, a sum of Hessians by C and √2·C (R16), a count
// of gradients within a norm by ½ and 1, and a sum of losses by c with either, which is what a plain Gaussian says.
// oracle/private/PROOFS.md#moves.
func movesOf(q Query) privacy.Event {
	if m, ok := q.(Mean); ok {
		q = m.Grad()
	}
	switch q := q.(type) {
	case Loss:
		if g, ok := q.Noise.(mech.Gaussian); ok && q.Within {
			return privacy.GaussianSum{Presence: 2 * g.Sigma, Replacement: g.Sigma}
		}
	case Grad:
		if g, ok := q.Noise.(mech.Gaussian); ok {
			return privacy.GaussianSum{Presence: 2 * g.Sigma, Replacement: g.Sigma}
		}
	case Hess:
		if !q.Off {
			return privacy.GaussianSum{Presence: q.Noise.Sigma * math.Nextafter(math.Sqrt2, 0) * (1 - 0x1p-52),
				Replacement: q.Noise.Sigma}
		}
	}
	return q.Event()
}

// Journal keeps a run's record, in the order of the rules (R5): a charge is
// written before its sample is drawn, all answers of one batch are one atomic
// record, and nothing derived from a record leaves before it is durable.
type Journal interface {
	// Charge notes the cost of the next batch.
	Charge(privacy.Event) error
	// Release notes the answers of the batch last charged, in the order asked.
	Release(answers [][]float64) error
}
