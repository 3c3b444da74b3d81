package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// The ranges that Calibrate and CalibrateMost search.
const (
	leastNoise = 0x1p-40
	mostNoise  = 0x1p60
	leastPart  = 0x1p-100 // of the top
)

// The relative distance from the best noise: calibrated is good enough; the search then makes up to
// fewMore more calls to reach perfected.
const (
	calibrated = 9e-7
	perfected  = 9e-10
	fewMore    = 4
)

// Calibrate returns the smallest noise whose event the budget covers, to 1e-6
// relative or better and never too small: the event of the noise that it returns was
// checked. More noise must not cost more; it may be a noise multiplier, a Laplace
// scale, or the factor of a whole schedule. If the least noise that it tries,
// about 1e-12, is enough, that is what it returns; if the most is not, about 1e18,
// the error wraps privacy.ErrExhausted.
func Calibrate(a Accountant, b privacy.Budget, event func(noise float64) privacy.Event) (float64, error) {
	if event == nil {
		return 0, errNothingToCalibrate
	}
	s := search{accountant: a, budget: b, event: event, sense: 1}
	p, err := s.solve(1, leastNoise, mostNoise)
	if err == nil && !p.fits && b.Delta == 0 && math.IsInf(p.epsilon, 1) {
		err = fmt.Errorf("calibrate: no noise is enough for %v: Gaussian noise, among others, has no guarantee without a δ above 0: %w", b, privacy.ErrExhausted)
	} else if err == nil && !p.fits {
		err = fmt.Errorf("calibrate: no noise is enough for %v: at noise %.3g it costs ε = %.6g by accountant %v: %w",
			b, p.x, p.epsilon, a, privacy.ErrExhausted)
	}
	return result(p, err)
}

// CalibrateMost returns the largest x of 0 < x ≤ top whose event the budget
// covers, to 1e-6 relative or better and never too large: for what costs more the larger it
// is, such as a sampling rate, or a clip bound beside fixed noise. If not even
// top·1e-30 is covered, the error wraps privacy.ErrExhausted.
func CalibrateMost(a Accountant, b privacy.Budget, top float64, event func(x float64) privacy.Event) (float64, error) {
	if event == nil {
		return 0, errNothingToCalibrate
	}
	if !(top > 0) || math.IsInf(top, 1) {
		return 0, fmt.Errorf("calibrate: top: found %v; choose a number above 0", top)
	}
	s := search{accountant: a, budget: b, event: event, sense: -1}
	p, err := s.solve(top, top, math.Max(top*leastPart, math.SmallestNonzeroFloat64))
	if err == nil && !p.fits {
		err = fmt.Errorf("calibrate: nothing up to %.6g is covered by %v: even %.3g costs ε = %.6g by accountant %v: %w",
			top, b, p.x, p.epsilon, a, privacy.ErrExhausted)
	}
	return result(p, err)
}

// CalibrateCount returns the largest n of 1 ≤ n ≤ top whose event the budget
// covers, exactly: n is covered, and n+1 is not or is above top. It is for steps
// and other whole numbers that cost more the larger they are. If not even 1 is
// covered, the error wraps privacy.ErrExhausted.
func CalibrateCount(a Accountant, b privacy.Budget, top int, event func(n int) privacy.Event) (int, error) {
	if event == nil {
		return 0, errNothingToCalibrate
	}
	if top < 1 || top > 1<<53 {
		return 0, fmt.Errorf("calibrate: top: found %d; choose 1 to 2^53", top)
	}
	s := search{accountant: a, budget: b, event: func(x float64) privacy.Event {
		return event(int(x))
	}, sense: -1, whole: true}
	p, err := s.solve(float64(top), float64(top), 1)
	if err == nil && !p.fits {
		err = fmt.Errorf("calibrate: not even one is covered by %v: it costs ε = %.6g by accountant %v: %w", b, p.epsilon, a,
			privacy.ErrExhausted)
	}
	n, err := result(p, err)
	return int(n), err
}

var errNothingToCalibrate = errors.New("calibrate: no event given")

// A search finds where the cost of an event passes a budget. It works with
// v = sense·ln x, which is more private the larger it is, and with
// g = ln(ε/budget), which falls in v and is often nearly straight. Whatever it
// guesses, only what was evaluated counts.
type search struct {
	accountant Accountant
	budget     privacy.Budget
	event      func(x float64) privacy.Event
	sense      float64 // 1 if a larger x is more private, −1 if a smaller one is
	whole      bool    // x is a whole number
}

// result is 0 beside an error.
func result(p point, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return p.x, nil
}

type point struct {
	x, v, epsilon, g float64
	fits             bool
}

func (s *search) eval(x float64) (point, error) {
	loss, err := s.accountant.Loss(s.event(x), s.budget.Adjacency)
	if err != nil {
		return point{}, fmt.Errorf("calibrate: %w", err)
	}
	epsilon := loss.Epsilon(s.budget.Delta)
	return point{x, s.sense * math.Log(x), epsilon, math.Log(epsilon / s.budget.Epsilon), epsilon <= s.budget.Epsilon}, nil
}

// solve starts at x = start and searches between loosest, the least private x, and
// safest. It returns the least private point that fits, or else safest, which then
// does not.
func (s *search) solve(start, loosest, safest float64) (point, error) {
	if s.accountant == nil {
		return point{}, errors.New("calibrate: no accountant given")
	}
	if err := s.budget.Validate(); err != nil {
		return point{}, fmt.Errorf("calibrate: budget: %w", err)
	}
	lo, hi, found, err := s.bracket(start, loosest, safest)
	if err != nil || !found {
		return hi, err
	}
	return s.close(lo, hi)
}

// bracket finds lo, which does not fit, and hi, which does. Where there are none
// such, found is false and hi is the end of the range.
func (s *search) bracket(start, loosest, safest float64) (lo, hi point, found bool, err error) {
	p, err := s.eval(start)
	if err != nil {
		return lo, hi, false, err
	}
	side, end := 1.0, safest // walk to where it fits
	if p.fits {
		side, end = -1, loosest
	}
	slope := -1.0 // of g in v
	for margin := 0.1; ; margin *= 3 {
		if p.x == end {
			return lo, p, false, nil
		}
		// A little past where g should be 0; blindly where g is no number.
		stride := math.Min(math.Abs(p.g/slope), 5) + margin
		if !(math.Abs(p.g) < math.Inf(1)) {
			stride = 10 * margin
		}
		x := math.Exp(s.sense * (p.v + side*stride))
		if s.whole {
			x = math.Round(x)
			if x == p.x {
				x += side * s.sense
			}
		}
		if s.sense*side*(end-x) <= 0 {
			x = end
		}
		q, err := s.eval(x)
		if err != nil {
			return lo, hi, false, err
		}
		switch {
		case q.fits && !p.fits:
			return p, q, true, nil
		case p.fits && !q.fits:
			return q, p, true, nil
		}
		if r := (q.g - p.g) / (q.v - p.v); r < 0 && !math.IsInf(r, 0) { // not NaN
			slope = math.Min(-0.2, math.Max(-4, r))
		}
		p = q
	}
}

// close narrows the bracket by secants through the last two points, and by
// halving where those do not get on.
func (s *search) close(lo, hi point) (point, error) {
	last, before := hi, lo
	slow, more := 0, 0
	for {
		width, tolerance := hi.v-lo.v, perfected
		switch {
		case s.whole:
			if lo.x-hi.x <= 1 {
				return hi, nil
			}
			tolerance = 1 / hi.x
		case width <= perfected || more >= fewMore:
			return hi, nil
		case width <= calibrated:
			more++
		}
		v := last.v - last.g*(last.v-before.v)/(last.g-before.g)
		// v is about the root. Pull in the end that is farther away, by stopping just
		// before the root, so that two good guesses close the bracket.
		nudge := math.Max(0.45*tolerance, 0.002*math.Abs(v-last.v))
		if !(v > lo.v && v < hi.v) || slow >= 3 { // also where v is no number
			v, slow = lo.v+width/2, 0
		} else if v-lo.v > hi.v-v {
			v = math.Max(v-nudge, lo.v+tolerance/8)
		} else {
			v = math.Min(v+nudge, hi.v-tolerance/8)
		}
		x := math.Exp(s.sense * v)
		if s.whole {
			x = math.Min(math.Max(math.Round(x), hi.x+1), lo.x-1)
		}
		p, err := s.eval(x)
		if err != nil {
			return hi, err
		}
		if p.fits {
			hi = p
		} else {
			lo = p
		}
		before, last = last, p
		if slow++; hi.v-lo.v <= width/2 {
			slow = 0
		}
	}
}
