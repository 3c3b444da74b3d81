package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// A cost is what a release costs in one currency, with the sections of PROOFS.md
// that the figure rests on.
type cost struct {
	value  float64
	proven bool
	rests  []string
}

func proven(value float64, rests ...string) cost { return cost{value, true, rests} }

// A curve is a bound on a release's Rényi divergences, with what it rests on.
type curve struct {
	divergence
	rests []string
	// rough says that the bound is the least of several, so that it need not have
	// one minimum after conversion.
	rough bool
}

// A divergence bounds the Rényi divergence of an order alpha > 1, +Inf where it
// overflows. Equal values are one mechanism, which is evaluated once.
type divergence interface{ at(alpha float64) float64 }

// known is what is proven of one release on a whole table. A new mechanism is a
// case of facts, and a section of PROOFS.md.
type known struct {
	pure  cost // ε
	zcdp  cost // ρ
	gdp   cost // μ²
	renyi curve
	leak  float64 // the δ that goes off the final one
	// The law of its privacy loss, for samples: Laplace and bounded-range releases
	// have one of their own, any other pure release is randomized response.
	laplace, bounded bool
}

// facts looks up a release. What happened on a sample is not known here.
func facts(e privacy.Event) (k known, ok bool) {
	switch e := e.(type) {
	case privacy.Gaussian:
		precision := precisionUp(e)
		k.zcdp = proven(precision/2*(1+1e-14), "gaussian-zcdp")
		k.gdp = proven(precision, "gaussian-collapse")
		k.renyi = curve{divergence: gaussianNoise{capNoise(e.Sigma)}, rests: []string{"gaussian-rdp"}}
	case privacy.GaussianSum: // on a whole table; under add-or-remove it costs no more
		return facts(privacy.Gaussian{Sigma: e.Replacement})
	case privacy.Laplace:
		scale := capNoise(e.Scale)
		k.pure = proven(invUp(e.Scale), "pure-laplace")
		k.zcdp = proven(expm1x(-1/scale)*(1+1e-14), "laplace-zcdp")
		k.renyi = curve{divergence: laplaceNoise{scale}, rests: []string{"laplace-rdp"}}
		k.laplace = true
	case privacy.PureDP:
		k = pureFacts(e.Epsilon)
	case privacy.AboveThreshold:
		query := invUp(e.Query)
		epsilon := invUp(e.Threshold) + 2*query
		k = pureFacts(epsilon * (1 + 1e-15))
		k.pure.rests = []string{"above-threshold"}
		k.zcdp.rests = append(k.zcdp.rests, "above-threshold")
		k.renyi = curve{aboveThreshold{capNoise(e.Threshold), 2 * query, floorEpsilon(k.pure.value)},
			[]string{"above-threshold", "laplace-rdp", "pure-rdp"}, true}
	case privacy.Select:
		epsilon := floorEpsilon(e.Epsilon)
		k.pure = proven(e.Epsilon, "select")
		k.zcdp = proven(math.Min(epsilon*epsilon/8, epsilon*math.Tanh(epsilon/2))*(1+1e-14), "select", "pure-zcdp")
		k.renyi = curve{divergence: boundedRange{epsilon}, rests: []string{"select"}}
		k.bounded = true
	case privacy.ApproxDP:
		if e.Epsilon > 0 {
			k = pureFacts(e.Epsilon)
		} else {
			k = known{pure: proven(0), zcdp: proven(0), gdp: proven(0), renyi: curve{divergence: noCost{}}}
		}
		if k.leak = e.Delta; k.leak > 0 {
			k.pure.rests = append(k.pure.rests, "approximate")
			k.zcdp.rests = append(k.zcdp.rests, "approximate")
			k.gdp.rests = append(k.gdp.rests, "approximate")
			k.renyi.rests = append(k.renyi.rests, "approximate")
		}
	case privacy.Filtered:
		k = filteredFacts(e)
	default:
		return known{}, false
	}
	return k, true
}

// pureFacts are those of any ε-private release.
func pureFacts(epsilon float64) (k known) {
	k.pure = proven(epsilon)
	e := floorEpsilon(epsilon)
	k.zcdp = proven(e*math.Tanh(e/2)*(1+1e-14), "pure-zcdp")
	k.renyi = curve{divergence: pureRelease{e}, rests: []string{"pure-rdp"}}
	return k
}

// A sampling is a release on a sample of less than the whole table.
type sampling struct {
	rate  float64 // of Poisson sampling, or M/N rounded up
	fixed bool
	swap  bool // under replace-one: the record is in both tables' samples, or in neither
	of    privacy.Event
}

// sampledBy reads a leaf of that kind.
func sampledBy(leaf privacy.Event) (s sampling, ok bool) {
	switch e := leaf.(type) {
	case privacy.PoissonSampled:
		return sampling{rate: floorRate(e.Rate), of: e.Of}, true
	case privacy.FixedSampled:
		rate := math.Nextafter(float64(e.M)/float64(e.N), 1)
		return sampling{rate: rate, fixed: true, of: e.Of}, true
	}
	return sampling{}, false
}

// under is s under adj, or why no amplification is proven.
func (s sampling) under(adj privacy.Adjacency) (_ sampling, why string) {
	if s.swap = adj == privacy.ReplaceOne; s.fixed && !s.swap {
		return s, addRemoveFixed
	}
	return s, ""
}

// rests are the sections that the amplification by s rests on: drawn, and of those
// named for a Poisson sample under add-or-remove and for samples under replace-one,
// the one that holds.
func (s sampling) rests(add, swap string) []string {
	switch {
	case !s.swap:
		return []string{add}
	case s.fixed:
		return []string{swap}
	}
	return []string{swap, "poisson-replace"}
}

const (
	onlyUnsampled = "it knows no amplification by sampling; use accountant rdp"

	// addRemoveFixed is why fixed sampling is refused under AddRemove.
	addRemoveFixed = "amplification by sampling a fixed number of records is proven for replace-one only, where the row count is public; use replace-one or a Poisson sample"

	// nestedSampling is why a sample of a sample is refused.
	nestedSampling = "there is no theorem for a sample of a sample"

	notKnown = "the event is not known"

	// outsideDelta is why a single number in a currency refuses a δ.
	outsideDelta = "this currency has no δ; use a plan, whose δ covers it"
)

// approximate finds a release, on the table or in a sample, whose δ is above 0.
func approximate(e privacy.Event) (found privacy.Event, ok bool) {
	err := leaves(e, 1, func(leaf privacy.Event, _ float64) error {
		if k, is := facts(leaf); is && k.leak > 0 {
			found = leaf
		} else if s, is := sampledBy(leaf); is {
			found, _ = approximate(s.of)
		} else if t, is := leaf.(privacy.Tuned); is {
			found, _ = approximate(privacy.Composed(t.Among))
		}
		if found != nil {
			return errFound
		}
		return nil
	})
	return found, err != nil
}

// refuseDelta is the error of an accountant's single number for an event with a δ.
func refuseDelta(a Accountant, e privacy.Event, adj privacy.Adjacency) error {
	if found, ok := approximate(e); ok {
		return unsupported(a, found, adj, outsideDelta)
	}
	return nil
}
