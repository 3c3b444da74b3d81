package account

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// A tally that was saved and restored goes on to the same bits as the one that was not.
func TestSavedTally(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, currency := range []Currency{PureCurrency{}, ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
		whole, again := NewTally(currency, privacy.AddRemove), NewTally(currency, privacy.AddRemove)
		var open []string
		for i := range 200 {
			if len(open) > 0 && random.IntN(2) == 0 {
				at := random.IntN(len(open))
				run := open[at]
				open = append(open[:at], open[at+1:]...)
				settle := func(tally *Tally) error {
					if i%3 == 0 {
						return tally.SettlePlan(run)
					}
					return tally.Settle(run, privacy.Repeated{Count: 1 + i%2, Of: tally.held[run].plan.(privacy.Repeated).Of}, 0)
				}
				if a, b := settle(whole), settle(again); a != nil || b != nil {
					t.Fatal(a, b)
				}
			} else {
				of := privacy.Event(privacy.Gaussian{Sigma: 5 + random.Float64()})
				if _, pure := currency.(PureCurrency); pure {
					of = privacy.PureDP{Epsilon: random.Float64()}
				}
				run, plan := fmt.Sprint("run", i), privacy.Repeated{Count: 2 + random.IntN(9), Of: of}
				if a, b := whole.Hold(run, plan), again.Hold(run, plan); a != nil || b != nil {
					t.Fatal(a, b)
				}
				open = append(open, run)
			}
			saved := again.Saved()
			again = NewTally(currency, privacy.AddRemove)
			if err := again.Restore(saved); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(whole.Saved(), again.Saved()) {
				t.Fatalf("%T: after %d steps the tallies differ", currency, i)
			}
			if !saved.Near(again.Saved()) {
				t.Fatalf("%T: a tally is not near itself", currency)
			}
		}
	}
}

// What no tally can hold is refused, so that a damaged state never costs less than nothing.
func TestRestoreRefuses(t *testing.T) {
	plan := privacy.Gaussian{Sigma: 1}
	for says, s := range map[string]SavedTally{
		"found 2 sums":       {Settled: [][2]float64{{1, 0}, {1, 0}}},
		"a sum of -1":        {Settled: [][2]float64{{-1, 0}}},
		"a sum of NaN":       {Settled: [][2]float64{{math.NaN(), 0}}},
		"holds is damaged":   {Held: []SavedPlan{{"r", nil, []float64{1}}}},
		`run "r" is damaged`: {Held: []SavedPlan{{"r", plan, nil}}},
		"a cost of -1":       {Held: []SavedPlan{{"r", plan, []float64{-1}}}},
		`run "two" holds is`: {Held: []SavedPlan{{"two", plan, []float64{1}}, {"two", plan, []float64{1}}}},
	} {
		err := NewTally(ZCDPCurrency{}, privacy.AddRemove).Restore(s)
		if says = strings.Replace(says, `run "r" is`, `run "r" holds is`, 1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("found %v; want %q", err, says)
		}
	}
	full := NewTally(ZCDPCurrency{}, privacy.AddRemove)
	if err := full.Hold("r", plan); err != nil {
		t.Fatal(err)
	}
	if full.Restore(SavedTally{}) == nil {
		t.Error("a tally that holds a plan was restored")
	}
	a, b := full.Saved(), full.Saved()
	b.Held = []SavedPlan{{"r", plan, []float64{a.Held[0].Cost[0] * (1 + 1e-8)}}}
	if a.Near(b) {
		t.Error("costs that differ by 1e-8 are near")
	}
	b.Held[0].Cost[0] = a.Held[0].Cost[0] * (1 + 1e-12)
	if !a.Near(b) {
		t.Error("costs that differ in the last digits are not near")
	}
}
