package account

import (
	"math"
	"reflect"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// asked are events whose composition differs: by lines, by the grid, with parts of several kinds, with none.
func asked() []privacy.Event {
	return []privacy.Event{
		sampled(0.00786, 1.42, 1272),
		sampled(0.01, 1, 10),
		sampled(0.02, 5, 400),
		privacy.Repeated{Count: 30, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Laplace{Scale: 2}}},
		privacy.Repeated{Count: 10, Of: privacy.PoissonSampled{Rate: 0.05, Of: privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Laplace{Scale: 2}}}},
		privacy.Composed{sampled(0.01, 1, 300), privacy.Gaussian{Sigma: 20}},
		privacy.Repeated{Count: 5, Of: privacy.PureDP{Epsilon: 0.1}},
		privacy.Gaussian{Sigma: 3},
	}
}

// TestOnce: an answer that is kept is the one that is composed, another question is not mistaken for it, and the
// same question is composed once.
func TestOnce(t *testing.T) {
	for _, e := range asked() {
		fresh := func(delta float64) float64 {
			once.forget()
			return mustLoss(t, PLD{}, e).Epsilon(delta)
		}
		first, second := fresh(1e-6), fresh(1e-5)
		before := Compositions()
		grouped := privacy.Composed{privacy.Repeated{Count: 1, Of: e}}
		for range 2 {
			if v := mustLoss(t, PLD{}, e).Epsilon(1e-5); v != second {
				t.Errorf("%v costs %v, then %v", e, second, v)
			}
			if v := mustLoss(t, PLD{}, grouped).Epsilon(1e-5); v != second {
				t.Errorf("%v costs %v, grouped in another way %v", e, second, v)
			}
		}
		if n := Compositions() - before; n != 0 {
			t.Errorf("%v was composed %d times more for the same question", e, n)
		}
		if _, ok := curveOf(mustLoss(t, PLD{}, e)).(*pldLoss); ok { // the same for its trade-off curve
			f := tradeOff(t, PLD{}, e, privacy.AddRemove, 1e-5)
			before = Compositions()
			if again := tradeOff(t, PLD{}, grouped, privacy.AddRemove, 1e-5); again.GaussianBound != f.GaussianBound || Compositions() != before {
				t.Errorf("%v has %+v, then %+v, composed %d times more", e, f.GaussianBound, again.GaussianBound, Compositions()-before)
			}
			if other := tradeOff(t, PLD{}, e, privacy.AddRemove, 1e-4); other.Outside == f.Outside {
				t.Errorf("%v has %+v at another δ", e, other.GaussianBound)
			}
		}
		if v := mustLoss(t, PLD{}, e).Epsilon(1e-6); v != first {
			t.Errorf("%v costs %v at another δ, then %v", e, first, v)
		}
		if v := mustLoss(t, PLD{}, privacy.Repeated{Count: 2, Of: e}).Epsilon(1e-6); !(v > first) {
			t.Errorf("twice %v costs %v, once %v", e, v, first)
		}
	}
}

// TestDigest: every field of a part changes the name under which its answers are kept, one that is added, too.
func TestDigest(t *testing.T) {
	part := pldPart{pair: pair{sumShape, 0.5, 2, 0.25, 1.5}, times: 3, points: []atom{{1, 2, 3}}}
	before := (&pldLoss{parts: []pldPart{part}}).digest()
	var change func(name string, v reflect.Value)
	change = func(name string, v reflect.Value) {
		v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				change(v.Type().Field(i).Name, v.Field(i))
			}
			return
		case reflect.Slice:
			change(name, v.Index(0))
			return
		case reflect.Float64:
			v.SetFloat(v.Float() + 1)
		case reflect.Uint8, reflect.Uint:
			v.SetUint(v.Uint() - 1)
		case reflect.Int:
			v.SetInt(v.Int() - 1)
		default:
			t.Fatalf("a field %s of kind %v", name, v.Kind())
		}
		if now := (&pldLoss{parts: []pldPart{part}}).digest(); now == before {
			t.Errorf("another %s keeps the name", name)
		} else {
			before = now
		}
	}
	change("part", reflect.ValueOf(&part).Elem())
}

// TestOnceForgets: the answers that are kept are the last, and no more than there is room for.
func TestOnceForgets(t *testing.T) {
	a := answers[float64]{known: map[question]float64{}}
	n := len(a.last) + 10
	for i := range n {
		a.keep(question{goal: goalAt(float64(i + 1))}, float64(i), 1)
	}
	for i := range n {
		if v, ok := a.find(question{goal: goalAt(float64(i + 1))}); ok != (i >= 10) || ok && v != float64(i) {
			t.Fatalf("answer %d of %d: %v, %v", i, n, v, ok)
		}
	}
	if len(a.known) != len(a.last) {
		t.Errorf("%d answers are kept", len(a.known))
	}
}

// TestNear: what is composed with less effort, or for another δ, is above what the event certainly costs, and at most
// little above the sharp figure.
func TestNear(t *testing.T) {
	race.Skip(t)
	deltas := []float64{1e-7, 1e-6, 3e-6, 1e-3}
	knots := []float64{1e-8, 1e-6, 1e-4}
	for _, e := range asked() {
		once.forget()
		near := make([]float64, len(deltas))
		for i, delta := range deltas {
			near[i] = Near(mustLoss(t, Best{}, e), delta)
		}
		curve := Curve(mustLoss(t, Best{}, e), knots, deltas)
		for i, delta := range deltas {
			sharp := mustLoss(t, Best{}, e).Epsilon(delta)
			least, err := PLD{}.Least(e, privacy.AddRemove, delta)
			if err != nil {
				t.Fatal(err)
			}
			for name, v := range map[string]float64{"near": near[i], "of a curve": curve[i]} {
				if v < least || v > sharp*1.005+1e-9 {
					t.Errorf("%v at δ = %v: ε %s is %v; it is %v to %v", e, delta, name, v, least, sharp)
				}
			}
			if delta == 1e-6 && curve[i] != sharp {
				t.Errorf("%v: a curve says %v at a knot, Epsilon %v", e, curve[i], sharp)
			}
		}
	}
	once.forget()
	l := mustLoss(t, PLD{}, asked()[0])
	if v := l.Epsilon(1e-6); Near(l, 1e-6) != v {
		t.Error("a sharp figure that is known is not used")
	}
	if v := Near(l, 0); !math.IsInf(v, 1) {
		t.Errorf("ε at δ = 0: %v", v)
	}
}
