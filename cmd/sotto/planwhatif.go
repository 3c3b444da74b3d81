package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// withSteps is e with times as many steps: a count is multiplied and rounded; a list of
// single events is cut, and cannot be made longer.
func withSteps(e privacy.Event, times float64) (privacy.Event, bool) {
	switch e := e.(type) {
	case privacy.Repeated:
		n := math.Round(float64(e.Count) * times)
		if n < 1 || n > mostSteps {
			return nil, false
		}
		e.Count = int(n)
		return e, true
	case privacy.Composed:
		if n := int(math.Round(float64(len(e)) * times)); times <= 1 && n >= 1 && len(e) > 1 {
			return e[:n], true
		}
	}
	return nil, false
}

// resample makes an event anew: f replaces each sample.
func resample(e privacy.Event, f func(privacy.Event) privacy.Event) privacy.Event {
	switch e := e.(type) {
	case privacy.Composed:
		parts := make(privacy.Composed, len(e))
		for i := range e {
			parts[i] = resample(e[i], f)
		}
		return parts
	case privacy.Repeated:
		e.Of = resample(e.Of, f)
		return e
	case privacy.PoissonSampled, privacy.FixedSampled:
		return f(e)
	}
	return e
}

// withRate is e with samples times as large, none above the whole table. It fails
// where nothing is sampled.
func withRate(e privacy.Event, times float64) (privacy.Event, bool) {
	found := false
	e = resample(e, func(e privacy.Event) privacy.Event {
		found = true
		switch e := e.(type) {
		case privacy.PoissonSampled:
			e.Rate = math.Min(1, e.Rate*times)
			return e
		case privacy.FixedSampled:
			e.M = min(e.N, max(1, int(math.Round(float64(e.M)*times))))
			return e
		}
		return e
	})
	return e, found
}

// longest is how many characters of an event are printed.
const longest = 300

// describe is an event in words; one of many parts is told by kind, with the range of the
// noise of each.
func describe(e privacy.Event) string {
	if text := e.String(); len(text) <= longest {
		return text
	}
	type kind struct {
		name   string
		count  int
		lo, hi float64
	}
	var kinds []kind
	var add func(e privacy.Event, within string, times int)
	add = func(e privacy.Event, within string, times int) {
		switch e := e.(type) {
		case privacy.Composed:
			for _, part := range e {
				add(part, within, times)
			}
			return
		case privacy.Repeated:
			add(e.Of, within, times*e.Count)
			return
		}
		privacy.Rebuild(e, within, func(within string, m privacy.Event) privacy.Event {
			name, _, _ := strings.Cut(m.String(), "(")
			noise := noiseOf(m)
			i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == within+name })
			if i < 0 {
				i = len(kinds)
				kinds = append(kinds, kind{within + name, 0, noise, noise})
			}
			k := &kinds[i]
			k.count, k.lo, k.hi = k.count+times, math.Min(k.lo, noise), math.Max(k.hi, noise)
			return m
		})
	}
	add(e, "", 1)
	var list []string
	for _, k := range kinds {
		text := fmt.Sprintf("%s × %s", count(k.count), k.name)
		if k.lo > 0 {
			text += fmt.Sprintf(", noise from %.6g to %.6g", k.lo, k.hi)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// noiseOf is the relative noise of a mechanism of one noise; 0 for others.
func noiseOf(m privacy.Event) float64 {
	switch m := m.(type) {
	case privacy.Gaussian:
		return m.Sigma
	case privacy.Laplace:
		return m.Scale
	}
	return 0
}

// A whatIf is what ε would be with one thing changed.
type whatIf struct {
	Change  string  `json:"change"`
	Epsilon float64 `json:"epsilon"`

	thing string // what the change is a change of
}

// weigh asks the accountant what each part of the plan weighs.
func (p *planned) weigh() {
	if _, ok := p.event.(privacy.Filtered); ok {
		return // it has no parts; the budget is what it costs
	}
	add := func(thing, change string, epsilon float64) {
		if !math.IsInf(epsilon, 0) && epsilon < p.Epsilon {
			p.WhatIf = append(p.WhatIf, whatIf{change, epsilon, thing})
		}
	}
	if e, ok := privacy.WithNoise(p.event, 2); ok {
		add("the noise", "twice the noise", p.epsilon(e))
	}
	if e, ok := withRate(p.event, 0.5); ok {
		add("the sampling rate", "half the sampling rate", p.epsilon(e))
	}
	if e, ok := withSteps(p.event, 0.5); ok {
		if _, list := p.event.(privacy.Composed); list { // of steps that differ
			add("the later steps", "stopping half-way", p.epsilon(e))
		} else {
			add("the steps", "half the steps", p.epsilon(e))
		}
	}
	if p.Delta > 0 && p.Delta <= 0.1 {
		add("δ", "ten times the δ", epsilonBy(p.accountant, p.event, p.Adjacency, 10*p.Delta))
	}
	slices.SortStableFunc(p.WhatIf, func(a, b whatIf) int { return cmp.Compare(a.Epsilon, b.Epsilon) })
	for _, w := range p.WhatIf {
		// Within a twentieth of the cost of the first they weigh the same.
		if w.Epsilon-p.WhatIf[0].Epsilon <= p.Epsilon/20 {
			p.Dominates = append(p.Dominates, w.thing)
		}
	}
	p.Parts = p.parts()
}

// words says what dominates the cost.
func (p *planned) words() string {
	if len(p.WhatIf) == 0 {
		return "nothing that could be changed by itself"
	}
	var b strings.Builder
	things := p.Dominates
	if n := len(things); n > 2 {
		things = []string{strings.Join(things[:n-1], ", "), things[n-1]}
	}
	b.WriteString(strings.Join(things, " and ") + ": ")
	for i, w := range p.WhatIf {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "%s would bring ε to %s", w.Change, atMost(w.Epsilon, 4))
		default:
			fmt.Fprintf(&b, ", %s to %s", w.Change, atMost(w.Epsilon, 4))
		}
	}
	return b.String()
}

// A part is the mechanisms of one kind in a plan of several kinds. An ε is nil where
// the accountant proves none.
type part struct {
	Mechanism string   `json:"mechanism"`
	Alone     *float64 `json:"epsilon_alone"`
	Without   *float64 `json:"epsilon_without"`
}

// mostParts is how many parts are told apart; above, mechanisms of one type are one part.
const mostParts = 6

// parts asks what each kind of mechanism costs alone and what the plan costs without it,
// where there are several.
func (p *planned) parts() []part {
	one := func(within string, m privacy.Event) string { return within + m.String() }
	kind := func(within string, m privacy.Event) string {
		name, _, _ := strings.Cut(m.String(), "(")
		return within + name + " releases"
	}
	var names []string
	for _, name := range []func(string, privacy.Event) string{one, kind} {
		names = nil
		privacy.Rebuild(p.event, "", func(within string, m privacy.Event) privacy.Event {
			if n := name(within, m); !slices.Contains(names, n) && len(names) <= mostParts {
				names = append(names, n)
			}
			return m
		})
		if len(names) > mostParts {
			continue
		}
		if len(names) < 2 {
			return nil
		}
		var list []part
		for _, n := range names {
			only := func(keep bool) *float64 {
				return finite(p.epsilon(privacy.Rebuild(p.event, "", func(within string, m privacy.Event) privacy.Event {
					if (name(within, m) == n) == keep {
						return m
					}
					return privacy.Composed{}
				})))
			}
			list = append(list, part{n, only(true), only(false)})
		}
		return list
	}
	return nil
}

func (p part) words() string {
	return fmt.Sprintf("%s: alone %s; the plan without it %s", p.Mechanism, proven(p.Alone), proven(p.Without))
}

// finite is a pointer to a number that JSON can hold.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// proven writes an ε, or that there is none.
func proven(epsilon *float64) string {
	if epsilon == nil {
		return "no finite ε is proven"
	}
	return "ε = " + atMost(*epsilon, 6)
}

// An opinion is what one accountant says of the plan.
type opinion struct {
	Accountant string   `json:"accountant"`
	Epsilon    *float64 `json:"epsilon"`
	Why        string   `json:"why,omitempty"` // why it says nothing
}

func (o opinion) words() string {
	if o.Why != "" {
		return o.Why
	}
	return proven(o.Epsilon)
}

// compare asks the other accountants, and about the other neighbouring relation.
func (p *planned) compare() {
	for _, name := range account.Names() {
		a, err := account.ByName(name)
		if err != nil {
			continue
		}
		p.Accountants = append(p.Accountants, ask(a, p.event, p.Adjacency, p.Delta))
	}
	p.OtherRelation = p.otherRelation()
}

func ask(a account.Accountant, e privacy.Event, adj privacy.Adjacency, delta float64) opinion {
	o := opinion{Accountant: a.String()}
	loss, err := a.Loss(e, adj)
	var unsupported *account.UnsupportedError
	switch {
	case errors.As(err, &unsupported) && a == account.Accountant(account.Best{}):
		o.Why = "finds no theorem for it by any accountant"
	case errors.As(err, &unsupported):
		o.Why = fmt.Sprintf("has no theorem for %v: %s", unsupported.Event, unsupported.Why)
	case err != nil:
		o.Why = err.Error()
	default:
		o.Epsilon = finite(loss.Epsilon(delta))
	}
	return o
}

// A relation is what the plan would cost under the neighbouring relation that it is
// not for.
type relation struct {
	Adjacency       privacy.Adjacency `json:"adjacency"`
	NoiseMultiplier float64           `json:"noise_multiplier,omitempty"` // 0: as the plan's, none or several
	Sampler         string            `json:"sampler,omitempty"`          // what the samples had to become
	opinion

	translated bool
}

// otherSampler is e with its samples drawn as the other relation has theorems for: fixed
// samples become Poisson ones of that mean size under add-or-remove. It says what it
// changed, nothing where nothing had to.
func otherSampler(e privacy.Event, to privacy.Adjacency) (other privacy.Event, change string) {
	other = resample(e, func(e privacy.Event) privacy.Event {
		if fixed, ok := e.(privacy.FixedSampled); ok && to == privacy.AddRemove {
			change = "Poisson samples of that size on average"
			return privacy.PoissonSampled{Rate: float64(fixed.M) / float64(fixed.N), Of: fixed.Of}
		}
		return e
	})
	return other, change
}

// otherRelation keeps the noise as it is, in units of the clip norm: the sensitivity of
// a clipped sum is C under add-or-remove and 2C under replace-one (R8).
func (p *planned) otherRelation() *relation {
	r := &relation{Adjacency: privacy.ReplaceOne}
	times := 0.5
	if p.Adjacency == privacy.ReplaceOne {
		r.Adjacency, times = privacy.AddRemove, 2
	}
	if _, ok := p.event.(privacy.Filtered); ok {
		r.opinion = opinion{Accountant: p.Accountant, Why: "is the budget there too: what a filter admits is whatever fits, and with the other sensitivity less fits or more"}
		return r
	}
	onlySums := true
	privacy.Rebuild(p.event, "", func(_ string, m privacy.Event) privacy.Event {
		switch m.(type) {
		case privacy.Gaussian, privacy.Laplace, privacy.AboveThreshold:
		default:
			onlySums = false
		}
		return m
	})
	if !onlySums {
		r.opinion = opinion{Accountant: p.Accountant, Why: "is not said here: the plan holds more than noisy sums, whose sensitivity under the other relation the plan does not state"}
		return r
	}
	e, _ := privacy.WithNoise(p.event, times)
	r.NoiseMultiplier, r.translated = p.NoiseMultiplier*times, true
	e, r.Sampler = otherSampler(e, r.Adjacency)
	r.opinion = ask(p.accountant, e, r.Adjacency, p.Delta)
	return r
}

func (r *relation) words(p *planned) string {
	notSame := "Not the same guarantee: "
	if r.Adjacency == privacy.ReplaceOne {
		notSame += "it hides a record's values from one who knows the number of records, not whether a record is there."
	} else {
		notSame += "it hides whether a record is there, and so the number of records, which must then be used nowhere."
	}
	if !r.translated {
		return fmt.Sprintf("The cost under %v %s. %s", r.Adjacency, r.Why, notSame)
	}
	change := "twice as large"
	if r.Adjacency == privacy.AddRemove {
		change = "half as large"
	}
	multiplier := fmt.Sprintf("a multiplier of %.6g", r.NoiseMultiplier)
	if r.NoiseMultiplier == 0 {
		multiplier = "half the multiplier"
		if r.Adjacency == privacy.AddRemove {
			multiplier = "twice the multiplier"
		}
	}
	if r.Sampler != "" {
		multiplier += ", here on " + r.Sampler
	}
	if r.Why != "" {
		return fmt.Sprintf("Under %v accountant %s %s. %s", r.Adjacency, r.Accountant, r.Why, notSame)
	}
	return fmt.Sprintf("Under %v a clipped sum's sensitivity is %s, so the same noise is %s: %s. %s", r.Adjacency, change, multiplier, r.opinion.words(), notSame)
}
