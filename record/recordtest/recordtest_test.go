package recordtest

import (
	"slices"
	"testing"
)

func TestFigures(t *testing.T) {
	f := New(t, []byte(`{"epsilon": 0.98765, "delta": 1e-6, "rows": 32561, "id": "20261120-093000-a1b2", "share": 0.731058, "started": "2026-11-20T09:30:00Z", "none": null,
		"x": [5, 6, 7, 8], "factor": 2.71828}`))
	f.Words("right 50 % of the time")
	for _, known := range []string{"ε = 0.9877, δ = 10⁻⁶", "δ = 0.000001", "32,561 rows", "32,600 rows", "run 20261120-093000-a1b2.", "73.2 % (50 %)", "20 November 2026, 09:30 UTC", "<b>2.719</b> <svg><text>77</text></svg>"} {
		if u := f.Unknown(Plain(known)); u != nil {
			t.Errorf("%s: %q", known, u)
		}
	}
	for _, unknown := range []string{"ε = 0.87", "ε = 0.9866", "δ = 10⁻⁵", "32,571 rows", "73.3 %", "21 November", "<svg><desc>77</desc></svg>", "a1b3"} {
		if u := f.Unknown(Plain(unknown)); len(u) != 1 {
			t.Errorf("%s: %q", unknown, u)
		}
	}
	if u := f.Unknown("17 or 17, and 18"); !slices.Equal(u, []string{"17", "18"}) {
		t.Errorf("%q", u)
	}
}

func TestOtherWays(t *testing.T) {
	f := New(t, []byte(`{"epsilon": 0.98765, "delta": 1e-5, "tiny": 2.5e-8, "guess": 0.731058, "share": 0.1}`))
	for _, known := range []string{"ε = 0.98765, δ = 0.00001", "ε = 0.9877 at δ = 2.5 × 10⁻⁸.", "at most 73.2 %, and 10 % of it", "(ε 0.98765, δ 0.00001)"} {
		if wrong := f.OtherWays(known); wrong != nil {
			t.Errorf("%s: %q", known, wrong)
		}
	}
	for _, other := range []string{"ε = 0.987", "ε = 0.988", "δ = 1e-05", "δ = 10⁻⁵", "73.1 %", "73.11 %", "(ε 0.98765, δ 1e-05)"} {
		if wrong := f.OtherWays(other); len(wrong) != 1 {
			t.Errorf("%s: %q", other, wrong)
		}
	}
}
