package private

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// errHeld is a Pool's fault: what an earlier process drew is lost, so a held attempt has no more parts.
var errHeld = errors.New("private: a part of an attempt that an earlier process began")

// A share adds an owner's share of noise to its part of a sum.
type share interface {
	Event() privacy.Event
	Check(grid, sens float64) error
	AddPart(v []int64, grid, sens float64, src *noise.Source) error
}

// shareOf is the owner's share of the noise of q. Sums whose noise is no Gaussian have no theorem here, nor have
// searches and choices.
func (o *Oracle) shareOf(q oracle.Query) (share, error) {
	var m mech.Additive
	switch q := q.(type) {
	case oracle.Grad:
		if q.Clip != (clip.None{}) {
			m = q.Noise
		}
	case oracle.Mean:
		m = q.Noise
	case oracle.Loss:
		if q.Bound > 0 {
			m = q.Noise
		}
	case oracle.Hess:
		if !q.Off {
			return mech.SymmetricShare{Sigma: q.Noise.Sigma, Owners: o.cfg.Facts.Owners, Colluders: o.cfg.Facts.Colluders}, nil
		}
	}
	if g, ok := m.(mech.Gaussian); ok {
		return mech.Share{Sigma: g.Sigma, Owners: o.cfg.Facts.Owners, Colluders: o.cfg.Facts.Colluders}, nil
	}
	return nil, fmt.Errorf("private: owners who add up their sums ask for sums with Gaussian noise; found %T, which has no theorem there", q)
}

// checkPool refuses what no theorem of shared noise covers.
func (cfg *Config) checkPool() error {
	owners := cfg.Facts.Owners
	switch {
	case cfg.Pool == nil && owners == 0:
		return nil
	case cfg.Pool == nil || owners == 0:
		return errors.New("private: a Pool belongs to the facts of several owners, and those to a Pool")
	case cfg.Own < 1:
		return errors.New("private: Config.Own is required beside a Pool")
	case cfg.Facts.Presence || cfg.Facts.UnitRows > 0 || cfg.Part != "":
		return errors.New("private: a Pool adds up sums over rows whose events state one move, of undivided tables")
	}
	return privacy.Shared{Owners: owners, Colluders: cfg.Facts.Colluders, Of: privacy.Gaussian{Sigma: 1}}.Validate()
}

// total is the noisy sum of all owners for q: n numbers in counts of r.grid, modulo 2^(64−r.shift). part is this
// owner's exact sum, which is known modulo 2⁶⁴ units. A part is given away in units, so that all can read is that
// function of sum plus noise, as in noisySum. Where the owners give an attempt up, this one charges the batch once more
// and draws a fresh sample, fresh noise and so a fresh part: noise that is used twice would show the part.
//
// An error ends the batch, and releases none of it. Half a batch would stand in the run's log as a whole one, and a
// process that goes on would pass over an attempt that the other owners are still at. The sums that were made are in
// the Pool's own journal, which answers again.
func (b *batch) total(q oracle.Query, r release, n int, part func() ([]int64, error)) (total []int64, err error) {
	defer func() {
		if err != nil {
			b.open, b.answers = b.open[:0], b.answers[:0]
		}
	}()
	o := b.o
	m, err := o.shareOf(q)
	if err != nil {
		return nil, err
	}
	asked, err := askedOf(q, b.sampler, m, r, n)
	if err != nil {
		return nil, err
	}
	for {
		all, err := o.cfg.Pool.Sum(b.ctx, asked, n, func() ([]int64, error) {
			if b.held {
				return nil, errHeld
			}
			v, err := part()
			if err == nil {
				err = m.AddPart(v, r.grid, r.sens, &o.noise)
			}
			if err != nil {
				return nil, err
			}
			for i := range v {
				v[i] <<= r.shift
			}
			return v, nil
		})
		switch {
		case err == nil && len(all) != n:
			return nil, fmt.Errorf("private: a Pool's sum of %d numbers; asked were %d", len(all), n)
		case err == nil:
			for i := range all {
				all[i] >>= r.shift
			}
			return all, nil
		case !errors.Is(err, sum.ErrGivenUp):
			return nil, err
		}
		if err := o.attempt(b.ctx, b.sampler, o.lastCost); err != nil {
			return nil, err
		}
	}
}

// askedOf is a hash of a query, its sample and its release. Parameters are not in it: they follow from what was
// released before, and may differ in their last bits where machines round differently.
func askedOf(q oracle.Query, from sample.Sampler, m share, r release, n int) (asked [32]byte, err error) {
	event, err := privacy.MarshalEvent(m.Event())
	if err != nil {
		return asked, err
	}
	// A field that a query had not when owners made their sums is not in the text where it is not set.
	query := strings.Replace(fmt.Sprintf("%#v", q), ", Squares:false", "", 1)
	return sha256.Sum256(fmt.Appendf(nil, "sotto/pool/1\n%s\n%#v\n%s\n%d numbers, unit %x, grid %x, sensitivity %x\n", query,
		from, event, n, math.Float64bits(r.unit), math.Float64bits(r.grid), math.Float64bits(r.sens))), nil
}
