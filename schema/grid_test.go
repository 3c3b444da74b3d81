package schema

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Every value lies within the bounds of its bin, up to values beyond the grid and those that count as 0; bins are in the order
// of their values and mirror each other.
func TestGrid(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 6))
	last, lastBin := math.Inf(-1), 0
	var values []float64
	for range 20000 {
		values = append(values, math.Copysign(math.Pow(10, rnd.Float64()*30-11), rnd.Float64()-0.5))
	}
	for _, e := range gridEdges {
		values = append(values, e, -e, math.Nextafter(e, 0), math.Nextafter(e, math.Inf(1)))
	}
	values = append(values, 0, math.MaxFloat64, -math.MaxFloat64)
	slices.Sort(values)
	for _, v := range values {
		bin := GridBin(v)
		if bin < lastBin || bin >= GridBins() || GridBin(-v) != GridBins()-1-bin {
			t.Fatalf("%v is in bin %d, %v before it in %d, %v in %d", v, bin, last, lastBin, -v, GridBin(-v))
		}
		last, lastBin = v, bin
		b := GridBounds(bin, bin)
		if math.Abs(v) <= 1e-9 || math.Abs(v) > 1e18 {
			continue
		}
		if !(b.Min <= v && v <= b.Max && b.Max-b.Min <= 0.6*math.Abs(b.Min+b.Max)) {
			t.Fatalf("%v is in bin %d of bounds %v", v, bin, b)
		}
	}
	if b := GridBounds(GridBin(-3), GridBin(0)); b != (Bounds{-5, 0}) {
		t.Errorf("%v", b)
	}
	if b := GridBounds(GridBin(0), GridBin(100)); b != (Bounds{0, 100}) {
		t.Errorf("%v", b)
	}
}

const openSchema = `dataset: d
rows: 10
columns:
  - {name: "a", type: numeric, bounds: unknown} # kept
  - name: b
    bounds: unknown # too
    type: numeric
    missing: zero
  - {name: c, type: numeric, min: 0, max: 1}
  - {name: é, type: numeric, transform: log1p, bounds: "unknown"}
  - {name: d, type: categorical, levels: [x]}
  - {name: y, type: label, classes: [n, j]}
`

func TestOpenSchema(t *testing.T) {
	if _, err := Parse("s.yaml", []byte(openSchema)); err == nil || !strings.Contains(err.Error(), "s.yaml:4:40: columns[0].bounds: found unknown") {
		t.Errorf("%v", err)
	}
	s, err := ParseOpen("s.yaml", []byte(openSchema))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Unbounded(); !slices.Equal(got, []string{"a", "b", "é"}) {
		t.Fatalf("%q", got)
	}
	g := s.OnGrid([]string{"b", "é"})
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	if g.Dim() != 2*GridBins() || g.RowNorm < math.Sqrt2 || g.RowNorm > math.Sqrt2*(1+1e-6) || g.Columns[0].Type != TypeIgnore || g.Columns[2].Type != TypeIgnore || g.Intercept {
		t.Errorf("%+v", g)
	}
	if b, err := g.Marshal(); err != nil {
		t.Error(err)
	} else if _, err := FromJSON(b); err == nil {
		t.Error("a schema without bounds was read from JSON")
	}
	out, err := SetBounds([]byte(openSchema), map[string]Bounds{"a": {-2, 5}, "b": {0, 0.001}, "é": {1, 1e18}}, "private estimate")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"a", type: numeric, bounds: unknown`, `"a", type: numeric, min: -2, max: 5, source: "private estimate"`,
		"bounds: unknown # too", "min: 0\n    max: 0.001\n    source: \"private estimate\" # too", `bounds: "unknown"`, `min: 1, max: 1e+18, source: "private estimate"`).Replace(openSchema)
	if string(out) != want {
		t.Errorf("%s\nwant %s", out, want)
	}
	if _, err := Parse("", out); err != nil {
		t.Error(err)
	}
	for text, found := range map[string]string{
		"bounds: unknown, min: 3":    "a min beside",
		"bounds: unknown, source: x": "a source beside",
		"bounds: [0, 1]":             "wants text",
		"bounds: wide":               `"wide"`,
		"bounds: unknown, hats: 1":   "hats",
	} {
		src := strings.Replace(openSchema, "bounds: unknown", text, 1)
		if _, err := ParseOpen("", []byte(src)); err == nil || found != "wants text" && !strings.Contains(err.Error(), found) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, other := range []string{"type: categorical, levels: [x]", "type: ignore", "type: label, classes: [n, j]"} {
		src := strings.Replace(openSchema, "type: numeric", other, 1)
		if _, err := ParseOpen("", []byte(src)); err == nil || !strings.Contains(err.Error(), `unknown field "bounds"`) {
			t.Errorf("%s: %v", other, err)
		}
	}
	broken := strings.Replace(openSchema, "bounds: unknown # too", "bounds:\n      unknown", 1)
	if _, err := SetBounds([]byte(broken), map[string]Bounds{"b": {0, 1}}, ""); err == nil || !strings.Contains(err.Error(), "on one line") {
		t.Errorf("%v", err)
	}
}
