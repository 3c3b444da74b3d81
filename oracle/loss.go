package oracle

import (
	"errors"
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// Loss asks for the mean loss at given parameters: Σ_i [ℓ_i(w)]_0^c plus noise, divided by the sampler's public size. A
// record's part lies between 0 and c, so the sensitivity is c, under either relation, but where Signed.
//
// With Labels it asks for labels instead, each by how far it is above Public.LabelMin: what it costs, by the absolute
// error, to predict the least label for every record. What is asked at counts for nothing then.
type Loss struct {
	Bound float64 // c, of one record's loss; 0: none, lab only
	Noise mech.Additive
	// Wrong asks for the 0-1 loss of a model with one margin for two classes: 1 where the class is not the margin's, with
	// c = 1. It is asked with the parameters and one number more, which is added to every margin.
	Wrong bool
	// Signed, with Wrong, counts ½ for a wrong answer and −½ for a right one, with c = ½: a record that comes or goes then
	// moves the sum by half as much, and one that is replaced by as much.
	Signed bool
	// Labels asks for labels instead, as above.
	Labels bool
	// Squares, with Labels, asks for the square of how far labels are from a number. It is asked with the parameters and
	// that number behind them.
	Squares bool
	// Within, with Signed and c = ½, counts ½ for a record whose gradient has an ℓ2 norm of at most C, and −½ for another.
	// It is asked with the parameters and C behind them.
	Within bool
}

// Event is the event of the noise.
func (q Loss) Event() privacy.Event { return q.Noise.Event() }

// Sensitivity is how far one record moves the sum.
func (q Loss) Sensitivity(adj privacy.Adjacency) float64 {
	if q.Signed && adj == privacy.ReplaceOne {
		return 2 * q.Bound
	}
	return q.Bound
}

// counts says whether the query counts records, so that its bound is wrongBound.
func (q Loss) counts() bool { return q.Wrong || q.Within }

// wrongBound is the bound of a 0-1 loss, and of any count of records.
func (q Loss) wrongBound() float64 {
	if q.Signed {
		return 0.5
	}
	return 1
}

// Validate: there is a noise, and the bound is a sensitivity.
func (q Loss) Validate() error {
	if q.Noise == nil {
		return errors.New("oracle: a query of the loss needs a noise")
	}
	if q.Squares && !q.Labels {
		return errors.New("oracle: a query of squares is of labels; set Labels, too")
	}
	if q.Labels && q.counts() || q.Wrong && q.Within {
		return errors.New("oracle: a query of the loss asks for two of 0-1 losses, labels and norms of gradients; ask for one of them")
	}
	if q.Signed && !q.counts() || q.Within && !q.Signed {
		return errors.New("oracle: a query of the loss is signed where it counts norms of gradients, and only there or with 0-1 losses")
	}
	if bound := q.wrongBound(); q.counts() && q.Bound != bound {
		return fmt.Errorf("oracle: a count of records has the bound %v; found the bound %v", bound, q.Bound)
	}
	if _, off := q.Noise.(mech.None); off && q.Bound == 0 {
		return nil
	}
	if _, err := clip.Sensitivity(q.Bound, privacy.AddRemove); err != nil {
		return fmt.Errorf("oracle: a bound on one record's loss: %w", err)
	}
	return nil
}
