package mech

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// The law of the outcome is that of the statement in PROOFS.md: probabilities by summation over the
// threshold, 2·10⁵ searches, chi-square with at most 4 degrees of freedom; 50 is passed by one
// seed in 10⁹.
func TestSearchLaw(t *testing.T) {
	const n = 200_000
	values := []int64{-3, 2, -1, 5}
	m := AboveThreshold{Threshold: 1.5, Query: 3, Max: len(values)}
	tail := func(scale float64, k int64) float64 { // P(⌊scale·L⌉ ≥ k)
		x := (float64(k) - 0.5) / scale
		if x < 0 {
			return 1 - math.Exp(x)/2
		}
		return math.Exp(-x) / 2
	}
	const sens, threshold = 2, 1
	want := make([]float64, len(values)+1)
	for z := int64(-200); z <= 200; z++ {
		left := tail(m.Threshold*sens, z-threshold) - tail(m.Threshold*sens, z+1-threshold)
		for k, v := range values {
			p := tail(m.Query*sens, z-v)
			want[k] += left * p
			left *= 1 - p
		}
		want[len(values)] += left
	}
	src := noise.NewSeeded(1, "search", 0)
	count := make([]float64, len(want))
	for range n {
		s, err := m.Start(threshold, 1, sens, src)
		if err != nil {
			t.Fatal(err)
		}
		outcome := len(values)
		for k, v := range values {
			reached, err := s.Ask(v)
			if err != nil {
				t.Fatal(err)
			}
			if reached {
				outcome = k
				break
			}
		}
		count[outcome]++
	}
	chi := 0.0
	for k, p := range want {
		chi += (count[k] - n*p) * (count[k] - n*p) / (n * p)
	}
	if chi > 50 {
		t.Errorf("outcomes %v of %d, want shares %.4v: chi-square %.1f", count, n, want, chi)
	}
}

// A search ends with the first success or after Max answers, and a copy of it is the same search.
func TestSearchIsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := AboveThreshold{Threshold: 1, Query: 1, Max: rapid.IntRange(1, 6).Draw(t, "max")}
		s, err := m.Start(0, 1, 1, noise.NewSeeded(rapid.Uint64().Draw(t, "seed"), "", 0))
		if err != nil {
			t.Fatal(err)
		}
		copied := s
		for k := range 10 {
			over := s.Over()
			reached, err := []Search{s, copied}[k%2].Ask(rapid.Int64Range(-2, 2).Draw(t, "value"))
			if over != errors.Is(err, ErrOver) || (err != nil && reached) || k < 1 && over || k >= m.Max && !over {
				t.Fatalf("answer %d: over is %v, answered %v, %v", k, over, reached, err)
			}
			if reached && (!s.Over() || !copied.Over()) {
				t.Fatal("the search goes on after a success")
			}
		}
	})
	if _, err := (Search{}).Ask(1); !errors.Is(err, ErrOver) {
		t.Errorf("the zero value answers: %v", err)
	}
}

// Extreme values are far from the threshold, whatever the noise.
func TestSearchOfExtremes(t *testing.T) {
	src := noise.NewSeeded(1, "", 0)
	for range 100 {
		m := AboveThreshold{Threshold: 1, Query: 1, Max: 2}
		s, err := m.Start(limit, 1, 1<<50, src)
		if err != nil {
			t.Fatal(err)
		}
		if reached, err := s.Ask(math.MinInt64); reached || err != nil {
			t.Fatalf("−2⁶³ reaches 2⁶²: %v", err)
		}
		s, err = m.Start(-limit, 1, 1<<50, src)
		if err != nil {
			t.Fatal(err)
		}
		if reached, err := s.Ask(math.MaxInt64); !reached || err != nil {
			t.Fatalf("2⁶³ does not reach −2⁶²: %v", err)
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	ok := AboveThreshold{Threshold: 1, Query: 1, Max: 1}
	for _, c := range []struct {
		m          AboveThreshold
		threshold  int64
		grid, sens float64
	}{
		{AboveThreshold{}, 0, 1, 1}, {AboveThreshold{1, 1, 0}, 0, 1, 1}, {AboveThreshold{0, 1, 1}, 0, 1, 1}, {AboveThreshold{1, math.NaN(), 1}, 0, 1, 1},
		{ok, 0, 3, 4}, {ok, 0, 1, 0.5}, {ok, 0, 1, math.Inf(1)}, {ok, 0, 1, 1 << 55},
		{AboveThreshold{1, 1 << 30, 1}, 0, 1, 1 << 30}, {ok, limit + 1, 1, 1}, {ok, math.MinInt64, 1, 1},
	} {
		src := noise.NewSeeded(1, "", 0)
		if s, err := c.m.Start(c.threshold, c.grid, c.sens, src); err == nil || !s.Over() {
			t.Errorf("%+v: no error", c)
		}
		if src.Uint64() != noise.NewSeeded(1, "", 0).Uint64() {
			t.Errorf("%+v: drew noise in spite of the error", c)
		}
		if c.threshold == 0 && c.m.Check(c.grid, c.sens) == nil {
			t.Errorf("%+v: Check accepts", c)
		}
	}
}

// No formatting of a search, or of what holds one, shows its noisy threshold.
func TestSearchPrintsNothing(t *testing.T) {
	src := noise.NewSeeded(1, "", 0)
	s, err := AboveThreshold{Threshold: 1, Query: 1, Max: 3}.Start(123_456_789_000, 1, 1000, src)
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		s Search
		p *Search
	}
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{s, &s, holder{s, &s}, &holder{s, &s}, []Search{s}} {
			fmt.Fprintf(&b, verb+"\n", v)
		}
	}
	j, err := json.Marshal([]any{s, &s})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ToLower(b.String() + string(j))
	noisy := (*s.p).bar[0]
	if noisy/1_000_000 != 123_456 {
		t.Fatalf("the noisy threshold is %d", noisy)
	}
	if strings.Contains(text, "123456") || strings.Contains(text, fmt.Sprintf("%x", noisy)) {
		t.Errorf("the noisy threshold %d is printed:\n%s", noisy, text)
	}
}

func TestAskAllocatesNothing(t *testing.T) {
	s, err := AboveThreshold{Threshold: 1, Query: 1, Max: 1 << 20}.Start(1000, 1, 1, noise.NewSeeded(1, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.Ask(0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Ask allocates %v times", n)
	}
}
