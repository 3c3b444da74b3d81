package gossip

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// The values of reference-values.json that are about mixing.
func TestReference(t *testing.T) {
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: found %v, want %v", name, got, want)
		}
	}
	file, err := os.ReadFile("../privacy/account/testdata/reference-values.json")
	if err != nil {
		t.Fatal(err)
	}
	want := fromFile(t, file)
	if len(want) != 5 {
		t.Fatalf("found the values %v", want)
	}
	path := Matrix(4, Path(4).Edges)
	for i := range 4 {
		for j := range 4 {
			near("path4", path.At(i, j), want["path4"][4*i+j])
		}
	}
	star := Matrix(4, []Edge{{0, 1}, {0, 2}, {0, 3}})
	near("star4 edge", star.At(0, 2), want["star4"][0])
	near("star4 hub", star.At(0, 0), want["star4"][1])
	near("star4 leaf", star.At(3, 3), want["star4"][2])

	edges := Complete(20).Edges
	near("one edge", Beta(20, func(yield func([]Edge) bool) {
		for _, e := range edges {
			if !yield([]Edge{e}) {
				return
			}
		}
	}), want["one_edge"][0])
	pairs, shared := 0, 0
	near("two edges", Beta(20, func(yield func([]Edge) bool) {
		for a, e := range edges {
			for _, f := range edges[:a] {
				pairs++
				if e[0] == f[0] || e[0] == f[1] || e[1] == f[0] || e[1] == f[1] {
					shared++
				} else if !yield([]Edge{e, f}) {
					return
				}
			}
		}
	}), want["two_edge"][0])
	near("share", float64(shared)/float64(pairs), want["share"][0])
	near("share, formula", 2*18./(190-1), want["share"][0])
}

func fromFile(t *testing.T, file []byte) map[string][]float64 {
	var all struct {
		Entries []struct {
			ID    string
			Value json.RawMessage
		} `json:"values"`
	}
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for _, v := range all.Entries {
		name, ours := strings.CutPrefix(v.ID, "P3_")
		for _, p := range []string{"metropolis_", "beta_", "share_prob"} {
			if rest, ok := strings.CutPrefix(name, p); ours && ok {
				var list []float64
				if json.Unmarshal(v.Value, &list) != nil {
					list = make([]float64, 1)
					if err := json.Unmarshal(v.Value, &list[0]); err != nil {
						t.Fatal(err)
					}
				}
				if rest == "" {
					rest = "share"
				}
				out[rest] = list
			}
		}
	}
	return out
}
