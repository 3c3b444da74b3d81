package method

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
)

// PrivGene is the genetic search of Zhang, Xiao, Yang, Zhang and Winslett 2013, a baseline of P2: each
// round moves one parameter of the only parent up or down, as the exponential mechanism chooses among all such moves.
//
//	PrivGene  here
//	r         Steps
//	s         Move·Decay^t in round t: by how much a parameter moves
//	u         the decrease of the loss, of each row clipped to ±Clip·s, and of the regularizer
//	Δ_u       Clip·s under add-or-remove, 2·Clip·s under replace-one
//	ε_r       Choice: Pr ∝ exp(ε_r·u/(2Δ_u))
//
// Deviations. Staying is a candidate too. A choice is of bounded range, so with a δ it costs ε_r²/8 in zCDP, not ε_r²/2
// (S-B4); without one, permute-and-flip chooses, which errs less for the same pure ε. What is clipped
// is a row's decrease, so that the sensitivity rests on no assumption.
type PrivGene struct {
	Steps  int     `yaml:"steps" json:"steps" doc:"rounds r (default half the root of n·ε, n the nominal number of rows, from 5 to 500)"`
	Move   float64 `yaml:"move" json:"move" doc:"size of a parameter's move in the first round (default 6/R, R the bound on a row's norm; the width of the label's bounds × 1/R for the squared loss)"`
	Decay  float64 `yaml:"decay" json:"decay" doc:"factor of the move from one round to the next (default 0.95)"`
	Clip   float64 `yaml:"clip" json:"clip" doc:"clip bound on the decrease of one row's loss, per unit of the move (default 0.12 × the loss's Lipschitz bound; R/8 × the width of the label's bounds for the squared loss)"`
	Choice float64 `yaml:"choice" json:"choice" doc:"ε of one choice (default: the largest that the budget allows)"`

	Flip bool `yaml:"-" json:"flip,omitempty"` // δ = 0
	Off  bool `yaml:"-" json:"off,omitempty"`  // no noise: lab
}

// Defaults of what Configure may choose, measured (docs/measurements/methods.md).
const (
	geneSteps    = 0.5 // × √(nε)
	geneLeast    = 5
	geneMost     = 500
	geneMove     = 6 // × 1/R
	geneQuadMove = 1 // × 1/R × width of the label's bounds
	geneDecay    = 0.95
	geneClip     = 0.12 // × Lipschitz bound
)

// Configure sets what is zero.
func (m PrivGene) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	m.Off, m.Flip = terms.Off, !terms.Off && terms.Budget.Delta == 0
	steps, move, clips := geneMost, geneMove/known(pub.NormBound), 0.0
	if !m.Off {
		steps = max(geneLeast, int(math.Min(geneMost, geneSteps*math.Sqrt(float64(pub.Rows)*terms.Budget.Epsilon))))
		clips = clipBound(pub, geneClip)
	}
	if inLabelUnits(pub) {
		move = geneQuadMove / pub.NormBound * known(pub.LabelSpan)
	}
	err := configure(
		Count{"steps", &m.Steps, 0, steps},
		Number{"move", &m.Move, clipping, move},
		Number{"decay", &m.Decay, Interval{0, 1, false}, geneDecay},
		Number{"clip", &m.Clip, clipping, clips},
	)
	if err != nil {
		return nil, err
	}
	if last := m.Clip * m.Move * math.Pow(m.Decay, float64(m.Steps)); !m.Off && !(last >= minClip) {
		return nil, fmt.Errorf("decay: found %v; after %d rounds moves are too short to count", m.Decay, m.Steps)
	}
	err = fitChoice(&m.Choice, terms, func(epsilon float64) privacy.Event {
		m.Choice = epsilon
		return m.plan()
	})
	return m, err
}

func (m PrivGene) query(move float64) oracle.Select {
	return oracle.Select{Epsilon: m.Choice, Bound: m.Clip * move, Flip: m.Flip, Off: m.Off}
}

func (m PrivGene) plan() privacy.Event {
	return privacy.Repeated{Count: m.Steps, Of: oracle.Public{}.Cost(sample.Full{}, []oracle.Query{m.query(m.Move)})}
}

// Plan is r choices.
func (m PrivGene) Plan(oracle.Public) (privacy.Event, error) {
	return valid(m.plan())
}

// Run is PrivGene with one parent.
func (m PrivGene) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := make([]float64, o.Public().Dim) // w_0 = 0
		st := Step{W: w}
		move := m.Move
		for t := range m.Steps {
			q := m.query(move)
			b, err := o.Batch(ctx, sample.Full{}, q)
			if err != nil {
				return st, err
			}
			near := oracle.Neighbors{From: w, Step: move, Least: obj.rises(w, move)}
			k, err := b.Select(q, near)
			if err != nil {
				return st, err
			}
			near.Move(w, k)
			st.T, st.Rate, st.Moved = t+1, move, 0
			if k > 0 {
				st.Moved = move
			}
			if !yield(st) {
				return st, nil
			}
			move *= m.Decay
		}
		return st, nil
	})
}

// rises are by how much the regularizer grows from w to each of its Neighbors; nil: there is none.
func (o Objective) rises(w []float64, step float64) []float64 {
	if o.Reg == nil {
		return nil
	}
	near := oracle.Neighbors{From: w, Step: step}
	rise := make([]float64, 1+2*len(w))
	for k := range rise {
		to := append([]float64(nil), w...)
		near.Move(to, k)
		rise[k] = o.Reg.Value(to) - o.Reg.Value(w)
	}
	return rise
}
