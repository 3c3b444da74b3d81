package chart

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestAtMost(t *testing.T) {
	for v, want := range map[float64]string{math.E: "2.719", 1.105170918: "1.106", 2: "2", 9.9999: "10", 1e-6: "1e-06", 0.99999: "1", math.Inf(1): "+Inf"} {
		if got := AtMost(v, 4); got != want {
			t.Errorf("%v is at most %s; want %s", v, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-12, 1e12).Draw(t, "v")
		digits := rapid.IntRange(2, 9).Draw(t, "digits")
		got, err := strconv.ParseFloat(AtMost(v, digits), 64)
		if err != nil || got < v || got > v*(1+2*math.Pow(10, float64(1-digits))) {
			t.Fatalf("%v is at most %s", v, AtMost(v, digits))
		}
	})
}

// A lower bound is never rounded up, and a number of few digits stays as it is.
func TestNumberDown(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3.5: "3.5", 0.09999999995564052: "0.09999", 0.00008: "0.00008", 1.23456: "1.234", 999.99: "999.9", math.Inf(1): "∞"} {
		if got := NumberDown(v, 4); got != want {
			t.Errorf("%v: found %s, want %s", v, got, want)
		}
	}
}

// TestWithin: a value and its noise end at the same place, and the noise is never rounded down.
func TestWithin(t *testing.T) {
	for want, v := range map[string][2]float64{
		"1.8 ± 1.5": {1.769, 1.448}, "0 ± 1.5": {0.0001525, 1.448}, "0.1 ± 1.5": {0.066, 1.448}, "−1 ± 1.5": {-0.96, 1.448}, "100 ± 21": {99.7, 20.4}, "12 ± 14": {12.4, 14},
		"0.1234 ± 0.0021": {0.12341, 0.00201}, "3.142": {3.14159, 0},
	} {
		if got := Within(v[0], v[1]); got != want {
			t.Errorf("%v: found %q, want %q", v, got, want)
		}
	}
}
