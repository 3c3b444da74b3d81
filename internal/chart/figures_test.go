package chart

import (
	"math"
	"testing"
)

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{1: "1", 32561: "32,561", 0.123456789: "0.123456789", 1e-6: "0.000001", 1.5e-10: "1.5 × 10⁻¹⁰", 0: "0", 1e6: "1,000,000"} {
		if got := Full(v); got != want {
			t.Errorf("Full(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{1.00001: "1.001", 0.99991: "1", 2.7182818: "2.719", 0.25: "0.25", 0: "0", math.Inf(1): "∞", 123401: "123,500", 0.1: "0.1", 1e-9: "10⁻⁹"} {
		if got := Upper(v); got != want {
			t.Errorf("Upper(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.73106: "73.2 %", 0.5: "50 %", 0.731: "73.1 %", 1: "100 %", 0.9999: "99.99 %"} {
		if got := PercentUp(v); got != want {
			t.Errorf("PercentUp(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{1e-6: "1 in 1,000,000", 3e-6: "1 in 333,300", 0.5: "1 in 2", 1e-12: "1 in 1,000,000,000,000"} {
		if got := OneIn(v); got != want {
			t.Errorf("OneIn(%v) = %s, want %s", v, got, want)
		}
	}
}
