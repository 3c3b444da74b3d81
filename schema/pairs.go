package schema

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// PairBumps is the number of bumps of each column of a [Pair], whatever bumps the column has by itself.
const PairBumps = 5

// PairFeatures is the number of features of a pair.
const PairFeatures = PairBumps * PairBumps

// MostPairs is the most pairs of a schema.
const MostPairs = 4

// A Pair names two numeric columns that get features for their interaction: the products of the
// [PairBumps] bumps of A and of B ([Bumps]), those of A's first bump first. They are 0 in a row in
// which a column's own bumps would be 0.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
}

// Open reports whether the pair is a reserved place: its features are 0 until a run names the columns.
func (p Pair) Open() bool { return p == Pair{} }

// String names the pair in names of features and in reports.
func (p Pair) String() string {
	if p.Open() {
		return "open pair"
	}
	return p.A + " × " + p.B
}

// names names the features of the pair.
func (p Pair) names() (names []string) {
	for i := range PairBumps {
		for j := range PairBumps {
			names = append(names, p.String()+" at "+strconv.Itoa(i+1)+" "+strconv.Itoa(j+1))
		}
	}
	return names
}

// pairsExample ends the errors of a list of pairs.
const pairsExample = "none, or a list of pairs of numeric columns, as in [[age, hours], [age, income]]"

// PairsOf reads the value of a field pairs. Whether the columns are there is for [Schema.Check].
func PairsOf(n config.Node) (pairs []Pair, err error) {
	if !n.Given() || n.Text() == "none" {
		return nil, nil
	}
	if n.Text() != "" || n.IsBlock() {
		return nil, n.Wrong(pairsExample)
	}
	var list []config.Node
	if err := n.Decode(&list); err != nil {
		return nil, err
	}
	for _, e := range list {
		var names []string
		if e.IsBlock() || e.Text() == "" && e.Decode(&names) != nil || len(names) != 2 ||
			slices.Contains(names, "") {
			return nil, e.Wrong("the names of two columns, as in [age, hours]")
		}
		pairs = append(pairs, Pair{names[0], names[1]})
	}
	return pairs, nil
}

// WithPairs is the schema with these pairs and no others. [Schema.Check] says whether it can have them.
func (s *Schema) WithPairs(pairs ...Pair) *Schema {
	t := *s
	t.Pairs, t.Paired = slices.Clone(pairs), len(pairs) > 0
	return &t
}

// WithPlaces is the schema with places for n pairs more, whose columns a run names.
func (s *Schema) WithPlaces(n int) *Schema {
	return s.WithPairs(slices.Concat(s.Pairs, make([]Pair, n))...)
}

// Open is the number of places of pairs whose columns a run names.
func (s *Schema) Open() (n int) {
	for _, p := range s.Pairs {
		if p.Open() {
			n++
		}
	}
	return n
}

// Curved are the numeric columns that have features beside their line.
func (s *Schema) Curved() (names []string) {
	for _, c := range s.Places() {
		if c.Hats+c.Waves > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// PairPlaces are the pairs, each with the position of its first feature in an encoded row: after those of all columns.
func (s *Schema) PairPlaces() iter.Seq2[int, Pair] {
	return func(yield func(int, Pair) bool) {
		first := s.Features
		for _, c := range s.Columns {
			first += c.features()
		}
		for _, p := range s.Pairs {
			if !yield(first, p) {
				return
			}
			first += PairFeatures
		}
	}
}

// AddPairs is the schema with these pairs, or an error with the position of the fault among them. full is the schema
// before columns were left out of it.
func (s *Schema) AddPairs(pairs []Pair, full *Schema) (*Schema, error) {
	if len(pairs) == 0 {
		return s, nil
	}
	if len(full.Pairs) > 0 {
		return nil, pairFault("pairs", "the schema has pairs of its own; leave them out here, or there")
	}
	for i, p := range pairs {
		for j, name := range []string{p.A, p.B} {
			if c := full.Column(name); c != nil && c.Type == TypeNumeric && s.Column(name).Type != c.Type {
				return nil, pairFault(fmt.Sprintf("pairs[%d][%d]", i, j),
					"the field columns leaves the column %s out; choose one that it keeps, or write columns: all", config.Quote(name))
			}
		}
	}
	with := s.WithPairs(pairs...)
	return with, with.Check()
}

// PairNames lists the pairs for people.
func (s *Schema) PairNames() string {
	var names []string
	for _, p := range s.Pairs {
		if !p.Open() {
			names = append(names, p.String())
		}
	}
	return strings.Join(names, ", ")
}

// PairCenters are the values of a numeric column at which its bumps in a pair are 1.
func (c *Column) PairCenters() (at []float64) {
	t := Transform(c.Transform)
	lo, hi := t(c.Bounds.Min), t(c.Bounds.Max)
	for i := range PairBumps {
		v := lo + (hi-lo)*float64(i)/(PairBumps-1)
		if c.Transform != TransformNone {
			v = math.Copysign(math.Expm1(math.Abs(v)), v)
		}
		at = append(at, v)
	}
	at[0], at[len(at)-1] = c.Bounds.Min, c.Bounds.Max // without rounding
	return at
}

// pairSizes are the least and the most that the features of a pair add to the sum of squares of a row, or to that of
// absolute values under NormL1.
func (s *Schema) pairSizes(p Pair) (least, most float64) {
	if p.Open() {
		return 0, 1
	}
	if s.Column(p.A).Form().Missing.Zero || s.Column(p.B).Form().Missing.Zero {
		return 0, 1
	}
	if s.Norm == NormL1 {
		return 1, 1
	}
	return 0.25, 1 // between two bumps of either column, and where a bump of each is 1
}

// possiblePairs are the pairs whose columns are still numeric.
func (s *Schema) possiblePairs() (pairs []Pair) {
	for _, p := range s.Pairs {
		if a, b := s.Column(p.A), s.Column(p.B); !p.Open() && a.Type == TypeNumeric && b.Type == TypeNumeric {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

func pairFault(path, format string, args ...any) *config.Error {
	return &config.Error{Field: path, Err: fmt.Errorf(path+": "+format, args...)}
}

// checkPairs wants different pairs of two different numeric columns. Columns have no faults.
func (s *Schema) checkPairs() *config.Error {
	if len(s.Pairs) > 0 && s.Format.Kind != KindCSV {
		return pairFault("pairs", "tables of kind %s have no columns to pair; leave pairs out", s.Format.Kind)
	}
	for i, p := range s.Pairs {
		path := fmt.Sprintf("pairs[%d]", i)
		if p.Open() && i < MostPairs {
			continue
		}
		for j, name := range []string{p.A, p.B} {
			at := fmt.Sprintf("%s[%d]", path, j)
			switch c := s.Column(name); {
			case c == nil:
				return pairFault(at, "the schema has no column %s; choose one of its numeric columns", config.Quote(name))
			case c.Type != TypeNumeric:
				return pairFault(at, "the column %s is of type %s; choose a numeric column", config.Quote(name), c.Type)
			}
		}
		switch {
		case p.A == p.B:
			return pairFault(path, "the column %s is paired with itself; choose two columns", config.Quote(p.A))
		case slices.Contains(s.Pairs[:i], p) || slices.Contains(s.Pairs[:i], Pair{p.B, p.A}):
			return pairFault(path, "the columns %s and %s are paired twice; list each pair once", config.Quote(p.A),
				config.Quote(p.B))
		case i == MostPairs:
			return pairFault(path, "there are %d pairs; keep at most %d", len(s.Pairs), MostPairs)
		}
	}
	return nil
}
