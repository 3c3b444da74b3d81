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
