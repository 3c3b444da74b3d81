package account

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/privacy"
)

// divided returns, for each part of a divided table in e, what was released about its records: the
// events of the part and of the whole table. Under replace-one a record may leave one part while
// another enters a second part, and with two rules a record may be in any of their parts; then it
// returns one composition of everything. It is nil if e divides no table. PROOFS.md#parallel.
func divided(e privacy.Event, adj privacy.Adjacency) (parts []privacy.Event) {
	if !privacy.Contains[privacy.Parallel](e) {
		return nil
	}
	if _, refused, _ := spelled(e); refused != nil { // trivial says so
		return nil
	}
	names, rules := partsOf(e)
	if adj == privacy.ReplaceOne || len(rules) > 1 {
		return []privacy.Event{seenBy(e, func(string) bool { return true })}
	}
	for _, name := range names {
		parts = append(parts, seenBy(e, func(part string) bool { return part == name }))
	}
	return parts
}

// partsOf are the names of the parts that e speaks of, and the rules that divide the table into them.
func partsOf(e privacy.Event) (names, rules []string) {
	note := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	privacy.Walk(e, func(e privacy.Event) bool {
		if p, ok := e.(privacy.Parallel); ok {
			note(&names, p.Name())
			note(&rules, p.Division())
		}
		return true
	})
	return names, rules
}

// seenBy returns e without the queries of parts for which in is false.
func seenBy(e privacy.Event, in func(part string) bool) privacy.Event {
	return privacy.Map(e, func(e privacy.Event) privacy.Event {
		p, ok := e.(privacy.Parallel)
		switch {
		case !ok:
			return e
		case in(p.Name()):
			return p.Of
		}
		return privacy.Composed{}
	})
}

// lossOfParts is the largest loss of any part. PROOFS.md#parallel.
func lossOfParts(a Accountant, parts []privacy.Event, adj privacy.Adjacency) (Loss, error) {
	losses := make(mostLoss, len(parts))
	for i, part := range parts {
		var err error
		if losses[i], err = a.Loss(part, adj); err != nil {
			return nil, err
		}
	}
	return losses, nil
}

// mostOver is the largest figure of any part.
func mostOver(parts []privacy.Event, figure func(privacy.Event) (float64, error)) (most float64, err error) {
	for _, part := range parts {
		v, err := figure(part)
		if err != nil {
			return 0, err
		}
		most = math.Max(most, v)
	}
	return most, nil
}

// mostLoss is the largest of several losses at every δ. Each record has one of them.
type mostLoss []Loss

// Epsilon implements Loss.
func (ls mostLoss) Epsilon(delta float64) float64 {
	most := 0.0
	for _, l := range ls {
		most = math.Max(most, l.Epsilon(delta)) // NaN stays
	}
	return most
}

// Delta implements Loss.
func (ls mostLoss) Delta(epsilon float64) float64 {
	most := 0.0
	for _, l := range ls {
		most = math.Max(most, l.Delta(epsilon))
	}
	return most
}
