// Package claimed computes what the papers that Sotto builds on say by their own
// formulas, beside what can be proven. None of its claims is a guarantee: some are false,
// some unproven, some true and larger than need be. Nothing that charges, plans or reports a
// run may import it; sotto plan --claimed shows it to people who know a paper's number and
// wonder why Sotto's is another.
//
// The papers:
//
//	P0  Improved Convergence of Differential Private SGD with Gradient Clipping
//	P1  Differentially Private Accelerated Optimization Algorithms
//	P2  Stochastic Adaptive Line Search for Differentially Private Optimization
//	P3  Distributed Empirical Risk Minimization With Differential Privacy
//	P4  Differentially Private Optimization for Smooth Non-Convex ERM
//
// S-numbers are those of the design's review of the papers' soundness.
package claimed

import (
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A Verdict says what a claim is worth.
type Verdict string

const (
	Unsound  Verdict = "unsound"  // the published statement is false, or its use here is
	Unproven Verdict = "unproven" // the proof does not establish it; no counterexample is known
	Loose    Verdict = "loose"    // true, and larger than need be
	Agrees   Verdict = "agrees"   // true, and the same as the sound figure
)

// A Claim is one figure of a paper beside the sound one.
type Claim struct {
	Paper    string   `json:"paper"`
	About    string   `json:"about"`    // the setting
	Quantity string   `json:"quantity"` // what the figures are, as "ε at δ = 1e-05"
	Formula  string   `json:"formula"`  // where the paper's figure comes from
	Claimed  float64  `json:"claimed"`
	Sound    []Figure `json:"sound"`
	Verdict  Verdict  `json:"verdict"`
	Why      string   `json:"why"`
	Source   string   `json:"source"` // S-2a, …
}

// A Figure is a number and who says so: an accountant, a proof or a computation.
type Figure struct {
	Value float64 `json:"value"`
	By    string  `json:"by"`
}

// Papers lists what Example accepts.
func Papers() []string { return []string{"p0", "p1", "p2", "p3", "p4"} }

// Example returns a paper's claims about its own experiments. The claims of P3 take a
// second, since they are compared with composed privacy-loss distributions.
func Example(paper string) ([]Claim, error) {
	switch paper {
	case "p0":
		return p0Example()
	case "p1":
		return p1Example()
	case "p2":
		return p2Example()
	case "p3":
		return p3Example()
	case "p4":
		return p4Example()
	}
	return nil, fmt.Errorf("paper: found %q; choose %s", paper, strings.Join(Papers(), ", "))
}

// Of returns the papers' formulas for a plan, of the papers that cover such a plan.
// The sound figures are those of a and of the accountant best.
func Of(plan privacy.Event, a account.Accountant, adj privacy.Adjacency, delta float64) ([]Claim, error) {
	var sound []Figure
	for _, a := range []account.Accountant{a, account.Best{}} {
		loss, err := a.Loss(plan, adj)
		if err != nil {
			return nil, err
		}
		if by := "accountant " + a.String(); len(sound) == 0 || sound[0].By != by {
			sound = append(sound, Figure{loss.Epsilon(delta), by})
		}
	}
	units, ok := flatten(plan)
	if !ok {
		return nil, nil
	}
	var claims []Claim
	for _, formula := range []func([]unit, privacy.Adjacency, float64) (Claim, bool){p0Of, p1Of, p2Of, p4Of} {
		if c, ok := formula(units, adj, delta); ok && !math.IsInf(c.Claimed, 1) {
			if c.Verdict == Loose && c.Claimed <= sound[0].Value*(1+1e-9) {
				c.Verdict = Agrees
			}
			c.About, c.Quantity, c.Sound = "this plan", fmt.Sprintf("ε at δ = %v", delta), sound
			claims = append(claims, c)
		}
	}
	return claims, nil
}

// A unit is all that is asked of one sample, so many times; or of all records.
type unit struct {
	times    float64
	poisson  float64         // the rate of a Poisson sample; 0: none
	fixed    float64         // the share of a fixed sample; 0: none
	releases []privacy.Event // mechanisms, each as often as it is asked
}

// The most that a formula takes the trouble to add up.
const (
	mostUnits    = 1 << 14
	mostSampled  = 64 // of the units, those on samples
	mostReleases = 64
)

// flatten splits a plan into what its samples hold. It gives up on samples within samples
// and on plans of too many different parts.
func flatten(e privacy.Event) ([]unit, bool) {
	var units []unit
	ok, sampled := true, 0
	var walk func(e privacy.Event, times float64)
	walk = func(e privacy.Event, times float64) {
		switch e := e.(type) {
		case privacy.Composed:
			for _, part := range e {
				walk(part, times)
			}
			return
		case privacy.Repeated:
			if e.Count > 0 {
				walk(e.Of, times*float64(e.Count))
			}
			return
		}
		u := unit{times: times}
		inner := e
		switch e := e.(type) {
		case privacy.PoissonSampled:
			u.poisson, inner = e.Rate, e.Of
		case privacy.FixedSampled:
			u.fixed, inner = float64(e.M)/float64(e.N), e.Of
		}
		if !releases(inner, 1, &u.releases) || len(units) >= mostUnits {
			ok = false
			return
		}
		if n := len(units); n > 0 && units[n-1].poisson == u.poisson && units[n-1].fixed == u.fixed &&
			privacy.Equal(units[n-1].event(), u.event()) {
			units[n-1].times += times
			return
		}
		if u.poisson > 0 || u.fixed > 0 {
			sampled++
		}
		units = append(units, u)
	}
	walk(e, 1)
	return units, ok && len(units) > 0 && sampled <= mostSampled
}

// releases lists the mechanisms of what holds no sample.
func releases(e privacy.Event, times int, to *[]privacy.Event) bool {
	switch e := e.(type) {
	case privacy.Composed:
		for _, part := range e {
			if !releases(part, times, to) {
				return false
			}
		}
		return true
	case privacy.Repeated:
		return e.Count <= mostReleases && releases(e.Of, times*e.Count, to)
	case privacy.PoissonSampled, privacy.FixedSampled, privacy.Allocated, privacy.Continued, privacy.NonPrivate:
		return false
	}
	if len(*to)+times > mostReleases {
		return false
	}
	for range times {
		*to = append(*to, e)
	}
	return true
}

// only says whether every release of the plan is of the kind that f accepts.
func only(units []unit, f func(unit, privacy.Event) bool) bool {
	for _, u := range units {
		for _, r := range u.releases {
			if !f(u, r) {
				return false
			}
		}
	}
	return true
}

// shared says whether some sample is asked more than once.
func shared(units []unit) bool {
	for _, u := range units {
		if len(u.releases) > 1 && (u.poisson > 0 || u.fixed > 0) {
			return true
		}
	}
	return false
}

// event makes a unit an event again, without its sample.
func (u unit) event() privacy.Event { return privacy.Composed(u.releases) }
