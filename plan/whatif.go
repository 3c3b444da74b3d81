package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/privacy"
)

// withSteps is e with times as many steps. It multiplies and rounds the count of a repetition, also
// if that is the only one in a list. It cuts any other list short, and cannot lengthen it.
func withSteps(e privacy.Event, times float64) (privacy.Event, bool) {
	of, ok := withBatches(privacy.WithoutRetries(e), times)
	if r, retried := e.(privacy.Retried); retried {
		of = privacy.Retried{Of: of, Retries: r.Retries}
	}
	return of, ok
}

// withBatches is withSteps of a plan without retries.
func withBatches(e privacy.Event, times float64) (privacy.Event, bool) {
	switch e := e.(type) {
	case privacy.Repeated:
		return withCount(e, times)
	case privacy.Composed:
		if at, ok := counted(e); ok {
			list := slices.Clone(e)
			list[at], ok = withCount(e[at].(privacy.Repeated), times)
			return list, ok
		}
		if n := int(math.Round(float64(len(e)) * times)); times <= 1 && n >= 1 && len(e) > 1 {
			return e[:n], true
		}
	}
	return nil, false
}

// withCount is e with a count times as large.
func withCount(e privacy.Repeated, times float64) (privacy.Event, bool) {
	n := math.Round(float64(e.Count) * times)
	if n < 1 || n > MaxSteps {
		return nil, false
	}
	e.Count = int(n)
	return e, true
}

// counted is the position of the only count in a list.
func counted(e privacy.Composed) (at int, ok bool) {
	at = -1
	for i, part := range e {
		if _, is := part.(privacy.Repeated); is {
			if at >= 0 {
				return 0, false
			}
			at = i
		}
	}
	return at, at >= 0
}

// withRate is e with samples times as large, none above the whole table. It fails
// where nothing is sampled.
func withRate(e privacy.Event, times float64) (privacy.Event, bool) {
	found := false
	e = privacy.Map(e, func(e privacy.Event) privacy.Event {
		switch e := e.(type) {
		case privacy.PoissonSampled:
			found = true
			e.Rate = math.Min(1, e.Rate*times)
			return e
		case privacy.FixedSampled:
			found = true
			e.M = min(e.N, max(1, int(math.Round(float64(e.M)*times))))
			return e
		}
		return e
	})
	return e, found
}

// longest is the length of an event that Describe writes in full.
const longest = 300

// Describe writes an event in words. A long event becomes the number of each kind of mechanism and
// the range of their noise.
func Describe(e privacy.Event) string {
	if text := e.String(); len(text) <= longest {
		return text
	}
	type kind struct {
		name   string
		count  int
		lo, hi float64
	}
	kinds := privacy.Fold(e, func(e privacy.Event, inside [][]kind) []kind {
		if privacy.Single(e) {
			name, _, _ := strings.Cut(e.String(), "(")
			noise := noiseOf(e)
			return []kind{{name, 1, noise, noise}}
		}
		times, before := 1, privacy.Before(e)
		if r, ok := e.(privacy.Repeated); ok {
			times = r.Count
		}
		var kinds []kind
		for _, part := range inside {
			for _, k := range part {
				k.name, k.count = before+k.name, k.count*times
				if i := slices.IndexFunc(kinds, func(o kind) bool { return o.name == k.name }); i >= 0 {
					o := &kinds[i]
					o.count, o.lo, o.hi = o.count+k.count, math.Min(o.lo, k.lo), math.Max(o.hi, k.hi)
				} else {
					kinds = append(kinds, k)
				}
			}
		}
		return kinds
	})
	var list []string
	for _, k := range kinds {
		text := fmt.Sprintf("%s × %s", chart.Integer(k.count), k.name)
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
	case privacy.GaussianSum:
		return m.Replacement
	case privacy.Laplace:
		return m.Scale
	}
	return 0
}

// A WhatIf is what ε would be with one thing changed.
type WhatIf struct {
	Change  string  `json:"change"`
	Epsilon float64 `json:"epsilon"`

	thing string // what is changed
}

// weigh computes ε with one thing changed at a time, the strongest change first.
func (p *Plan) weigh() {
	if _, ok := p.event.(privacy.Filtered); ok {
		return // it has no parts; it costs the whole budget
	}
	add := func(thing, change string, epsilon float64) {
		if !math.IsInf(epsilon, 0) && epsilon < p.Epsilon {
			p.WhatIf = append(p.WhatIf, WhatIf{change, epsilon, thing})
		}
	}
	if e, ok := privacy.WithNoise(p.event, 2); ok {
		add("the noise", "twice the noise", p.epsilon(e))
	}
	if e, ok := withRate(p.event, 0.5); ok {
		add("the sampling rate", "half the sampling rate", p.epsilon(e))
	}
	if e, ok := withSteps(p.event, 0.5); ok {
		list, cut := privacy.WithoutRetries(p.event).(privacy.Composed)
		if _, ok := counted(list); cut && !ok { // of steps that differ
			add("the later steps", "stopping half-way", p.epsilon(e))
		} else {
			add("the steps", "half the steps", p.epsilon(e))
		}
	}
	if p.Delta > 0 && p.Delta <= 0.1 {
		add("δ", "ten times the δ", p.epsilonAt(p.event, 10*p.Delta))
	}
	slices.SortStableFunc(p.WhatIf, func(a, b WhatIf) int { return cmp.Compare(a.Epsilon, b.Epsilon) })
	for _, w := range p.WhatIf {
		// Changes within a twentieth of the cost of the first are equally strong.
		if w.Epsilon-p.WhatIf[0].Epsilon <= p.Epsilon/20 {
			p.Dominates = append(p.Dominates, w.thing)
		}
	}
	p.Parts = p.parts()
}

// A Part is the mechanisms of one kind in a plan of several kinds. An ε is nil where
// the accountant proves none.
type Part struct {
	Mechanism string   `json:"mechanism"`
	Alone     *float64 `json:"epsilon_alone"`
	Without   *float64 `json:"epsilon_without"`
}

// maxParts is how many parts are listed; above, mechanisms of one type are one part.
const maxParts = 6

// parts computes what each kind of mechanism costs alone and what the plan costs without it,
// where there are several kinds.
func (p *Plan) parts() []Part {
	one := func(within string, m privacy.Event) string { return within + m.String() }
	kind := func(within string, m privacy.Event) string {
		name, _, _ := strings.Cut(m.String(), "(")
		return within + name + " releases"
	}
	var names []string
	for _, name := range []func(string, privacy.Event) string{one, kind} {
		names = nil
		privacy.Rebuild(p.event, "", func(within string, m privacy.Event) privacy.Event {
			if n := name(within, m); !slices.Contains(names, n) && len(names) <= maxParts {
				names = append(names, n)
			}
			return m
		})
		if len(names) > maxParts {
			continue
		}
		if len(names) < 2 {
			return nil
		}
		var list []Part
		for _, n := range names {
			only := func(keep bool) *float64 {
				return finite(p.epsilon(privacy.Rebuild(p.event, "", func(within string, m privacy.Event) privacy.Event {
					if (name(within, m) == n) == keep {
						return m
					}
					return privacy.Composed{}
				})))
			}
			list = append(list, Part{n, only(true), only(false)})
		}
		return list
	}
	return nil
}
