package privacy

import (
	"slices"
	"testing"
)

var tree = Composed{
	Repeated{3, PoissonSampled{0.5, Composed{Gaussian{2}, Laplace{1}}}},
	Tuned{Among: []Event{FixedSampled{1, 2, Select{1}}, Gaussian{4}}, Eta: 1, Gamma: 0.5},
	Composed{},
}

func TestWalk(t *testing.T) {
	var all []string
	Walk(tree, func(e Event) bool {
		if _, sample := e.(FixedSampled); sample {
			return false // so that the choice on it is not seen
		}
		if Single(e) {
			all = append(all, e.String())
		}
		return true
	})
	if want := []string{"Gaussian(σ=2)", "Laplace(b=1)", "Gaussian(σ=4)"}; !slices.Equal(all, want) {
		t.Errorf("found %v, want %v", all, want)
	}
	if !Contains[Select](tree) || Contains[PureDP](tree) || !Contains[Composed](Composed{}) || Contains[Gaussian](nil) {
		t.Error("Contains does not find what Walk sees")
	}
}

func TestFold(t *testing.T) {
	releases := Fold(tree, func(e Event, inside []int) int {
		n := 0
		for _, k := range inside {
			n += k
		}
		if r, ok := e.(Repeated); ok {
			n *= r.Count
		}
		if Single(e) {
			n = 1
		}
		return n
	})
	if releases != 8 {
		t.Errorf("counted %d releases, want 8", releases)
	}
}

func TestMap(t *testing.T) {
	before := tree.String()
	noisier := func(e Event) Event {
		if g, ok := e.(Gaussian); ok {
			g.Sigma *= 10
			return g
		}
		return e
	}
	got := Map(tree, noisier)
	want := Composed{
		Repeated{3, PoissonSampled{0.5, Composed{Gaussian{20}, Laplace{1}}}},
		Tuned{Among: []Event{FixedSampled{1, 2, Select{1}}, Gaussian{40}}, Eta: 1, Gamma: 0.5},
		Composed{},
	}
	if !Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if tree.String() != before {
		t.Errorf("Map changed the event itself to %v", tree)
	}
	// Inside first: a sample sees what became of what it holds.
	whole := Map(PoissonSampled{1, Gaussian{2}}, func(e Event) Event {
		if p, ok := e.(PoissonSampled); ok && p.Rate == 1 {
			return p.Of
		}
		return noisier(e)
	})
	if !Equal(whole, Gaussian{20}) {
		t.Errorf("found %v", whole)
	}
}

// Every event says what it is made of: one of a new type, without its line in inside, panics here.
func TestInside(t *testing.T) {
	for _, e := range []Event{Gaussian{1}, GaussianSum{2, 1}, Laplace{1}, PureDP{1}, AboveThreshold{1, 1, 1}, Select{1}, ApproxDP{1, 0}, Continued{}, NonPrivate{""}, Filtered{}} {
		if !Single(e) || len(inside(e)) != 0 {
			t.Errorf("%v is a single release", e)
		}
	}
	for _, e := range []Event{PoissonSampled{1, Gaussian{1}}, FixedSampled{1, 1, Gaussian{1}}, Allocated{2, Gaussian{1}}, Composed{Gaussian{1}}, Repeated{1, Gaussian{1}}, Tuned{Among: []Event{Gaussian{1}}}, Retried{Gaussian{1}, 1}} {
		if Single(e) || len(inside(e)) != 1 || !Equal(with(e, inside(e)), e) {
			t.Errorf("%v is made of one", e)
		}
	}
}
