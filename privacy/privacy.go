// Package privacy holds the terms that every other package of Sotto uses: the
// neighboring relation, the budget, and the events that say what was released.
//
// An event is free of data units: its noise is relative to sensitivity. It says
// all that an accountant needs and nothing more, so runs, ledgers and models
// store events, and every ε is recomputed from them (package account).
package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Adjacency is the neighboring relation of a guarantee: which two tables count
// as neighbors. The zero value is invalid, so that no one gets one by accident.
type Adjacency uint8

const (
	// AddRemove: one table has one record more than the other. The number of
	// rows is private.
	AddRemove Adjacency = iota + 1
	// ReplaceOne: the tables have the same number of rows and differ in one.
	// The number of rows is public.
	ReplaceOne
)

var adjacencyNames = map[Adjacency]string{AddRemove: "add-or-remove", ReplaceOne: "replace-one"}

func (a Adjacency) String() string {
	if s, ok := adjacencyNames[a]; ok {
		return s
	}
	return fmt.Sprintf("Adjacency(%d)", uint8(a))
}

// Valid says whether a is one of the known relations.
func (a Adjacency) Valid() bool { return a == AddRemove || a == ReplaceOne }

// Validate returns an error that lists the relations if a is not one of them.
func (a Adjacency) Validate() error {
	if a.Valid() {
		return nil
	}
	return fmt.Errorf("adjacency: none given; choose %q or %q", AddRemove, ReplaceOne)
}

// ParseAdjacency reads "add-or-remove" or "replace-one".
func ParseAdjacency(s string) (Adjacency, error) {
	for a, name := range adjacencyNames {
		if s == name {
			return a, nil
		}
	}
	return 0, fmt.Errorf("adjacency: found %q; choose %q or %q", s, AddRemove, ReplaceOne)
}

// MarshalText writes the name of a valid relation.
func (a Adjacency) MarshalText() ([]byte, error) {
	if !a.Valid() {
		return nil, fmt.Errorf("adjacency: %v has no name", a)
	}
	return []byte(a.String()), nil
}

// UnmarshalText is ParseAdjacency.
func (a *Adjacency) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAdjacency(string(b))
	return err
}

// A Budget is an upper limit on (ε, δ) under one neighboring relation. None of
// its fields has a default: a person chooses all three.
type Budget struct {
	Epsilon   float64   `json:"epsilon"`   // ε > 0, finite
	Delta     float64   `json:"delta"`     // 0 ≤ δ < 1; 0 asks for pure ε
	Adjacency Adjacency `json:"adjacency"` // AddRemove or ReplaceOne
}

// Validate says what is wrong with a budget, naming the field.
func (b Budget) Validate() error {
	switch {
	case !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 1):
		return fmt.Errorf("epsilon: found %v; choose a number above 0", b.Epsilon)
	case !(b.Delta >= 0) || b.Delta >= 1:
		return fmt.Errorf("delta: found %v; choose a number of 0 or more and below 1", b.Delta)
	}
	return b.Adjacency.Validate()
}

func (b Budget) String() string {
	return fmt.Sprintf("(%v, %v) under %v", b.Epsilon, b.Delta, b.Adjacency)
}

// ErrExhausted is returned, wrapped, by a meter whose budget does not cover what
// was asked. Nothing was released.
var ErrExhausted = errors.New("privacy budget exhausted")
