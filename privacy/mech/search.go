package mech

import (
	"errors"
	"fmt"
	"io"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// ErrOver is what a search answers when it may not answer: it is over, or never began.
var ErrOver = errors.New("mech: the search is over; a new one must be paid for")

// AboveThreshold is the sparse vector technique with one positive answer (Dwork, Naor,
// Reingold, Rothblum, Vadhan 2009; in the form that Lyu, Su, Li 2017 prove): queries are
// asked one after the other, each is told to lie below the threshold or to reach it, and
// the first that reaches it ends the search, as Max queries do.
//
// Threshold and Query are Laplace scales over the sensitivity of one query, for the noise of the
// threshold, drawn once, and of each answer, drawn afresh. Two neighboring tables may move
// different queries in different directions. All three are above 0; the zero value is invalid.
type AboveThreshold struct {
	Threshold, Query float64
	Max              int
}

// Event is privacy.AboveThreshold of the same numbers: one whole search.
func (m AboveThreshold) Event() privacy.Event {
	return privacy.AboveThreshold{Threshold: m.Threshold, Query: m.Query, Max: m.Max}
}

// Check says whether Start would accept grid and sens.
func (m AboveThreshold) Check(grid, sens float64) error {
	_, _, err := m.scales(grid, sens)
	return err
}

func (m AboveThreshold) scales(grid, sens float64) (threshold, query float64, err error) {
	invalid := m.Event().Validate()
	if threshold, err = counts(invalid, m.Threshold, grid, sens); err != nil {
		return 0, 0, err
	}
	query, err = counts(invalid, m.Query, grid, sens)
	return threshold, query, err
}

// Start begins a search for the first query that reaches threshold, a public number in counts
// of grid, from −2⁶² to 2⁶². Sens is the sensitivity of one query, with the slack of its rounding;
// grid and sens are as in Additive. The noise of the threshold is drawn here. Until the search is
// over src belongs to it as well as to the caller, who may draw from it in between.
func (m AboveThreshold) Start(threshold int64, grid, sens float64, src *noise.Source) (Search, error) {
	t, q, err := m.scales(grid, sens)
	if err != nil {
		return Search{}, err
	}
	if clamp(threshold) != threshold {
		return Search{}, fmt.Errorf("mech: threshold is %d grid steps; choose −2⁶² to 2⁶²", threshold)
	}
	s := &search{left: m.Max, scale: q, src: src}
	s.bar[0] = threshold
	src.AddLaplace(s.bar[:], t)
	return Search{&s}, nil
}

// Search is a search under way. It is a handle: a copy is the same search, so that nothing
// can be asked twice under one noise. It is for one goroutine. The zero value is over. No
// noisy value ever leaves it, whatever the formatting verb.
type Search struct {
	// Two pointers, since fmt prints the unexported fields of others by reflection, where
	// Format is not called, and for some verbs it follows one pointer.
	p **search
}

type search struct {
	left        int
	scale       float64 // of an answer's noise, in counts
	src         *noise.Source
	bar, answer [1]int64 // the noisy threshold; the noisy answer while it is compared
}

// Ask says whether a query, whose exact value in counts of the grid is given, reaches the
// threshold, both with their noise. After the first that does, and after Max that do not,
// it says ErrOver and computes nothing. Values beyond ±2⁶² count as ±2⁶².
func (s Search) Ask(value int64) (reached bool, err error) {
	if s.Over() {
		return false, ErrOver
	}
	st := *s.p
	st.left--
	st.answer[0] = clamp(value)
	st.src.AddLaplace(st.answer[:], st.scale)
	reached = st.answer[0] >= st.bar[0]
	st.answer[0] = 0
	if reached || st.left == 0 {
		*st = search{} // the noise of the threshold is of no further use
	}
	return reached, nil
}

// Over says whether Ask would refuse.
func (s Search) Over() bool { return s.p == nil || (*s.p).left == 0 }

// Format writes no more than whether it is over, for every verb and flag.
func (s Search) Format(f fmt.State, _ rune) {
	if s.Over() {
		io.WriteString(f, "mech.Search(over)")
		return
	}
	io.WriteString(f, "mech.Search(under way)")
}
