package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestPlot(t *testing.T) {
	p := Plot{ID: "p", Title: "A <title>", Desc: "what & why", XLabel: "x", YLabel: "y",
		Lines: []Line{{Name: "first", X: []float64{0, 50, 100}, Y: []float64{1, math.NaN(), 3}}, {Name: "second", X: []float64{0, 100}, Y: []float64{2, 4}}}}
	level := 8.0
	p.Level, p.LevelName = &level, "the cap"
	p.Mark, p.MarkName = &[2]float64{50, 2}, "here"
	got := string(p.SVG())
	wellFormed(t, []byte(got))
	// The field spans x from 72 to 464 and, below four lines of legend, y from 250 up to 102.
	for _, want := range []string{
		`role="img" aria-labelledby="p-t p-d"`, `<title id="p-t">A &lt;title&gt;</title>`, `<desc id="p-d">what &amp; why</desc>`,
		`<path d="M72.0 231.5M464.0 194.5" class="l0"/>`, // broken where a value is missing
		`<path d="M72.0 213.0L464.0 176.0" class="l1"/>`,
		`<path d="M72 102.0H464" class="rule"/>`,
		`<circle cx="268.0" cy="213.0" r="5" class="mark"/>`,
		`>first</text>`, `>the cap</text>`, `>here</text>`, `>100</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plot lacks %s in\n%s", want, strings.ReplaceAll(got, "><", ">\n<"))
		}
	}
}

func TestPlotsOfLittle(t *testing.T) {
	for name, l := range map[string]Line{
		"nothing":     {},
		"one point":   {Name: "", X: []float64{3}, Y: []float64{2}},
		"all zero":    {Name: "", X: []float64{0, 1}, Y: []float64{0, 0}},
		"no number":   {Name: "", X: []float64{0, 1}, Y: []float64{math.NaN(), math.Inf(1)}},
		"below zero":  {Name: "", X: []float64{0, 1}, Y: []float64{-1, -1}},
		"huge":        {Name: "", X: []float64{0, 1}, Y: []float64{0, 1e300}},
		"tiny":        {Name: "", X: []float64{0, 1}, Y: []float64{0, 5e-324}},
		"far away":    {Name: "", X: []float64{1e15, 1e15 + 8}, Y: []float64{1, 1}},
		"farther":     {Name: "", X: []float64{math.MaxInt, math.MaxInt}, Y: []float64{1, 1}},
		"one in logs": {Name: "", X: []float64{1e-6}, Y: []float64{1}},
	} {
		for _, logX := range []bool{false, true} {
			if logX && len(l.X) > 0 && l.X[0] == 0 {
				continue
			}
			p := Plot{ID: "p", LogX: logX, Lines: []Line{l}}
			got := string(p.SVG())
			wellFormed(t, []byte(got))
			if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") || len(got) > 5000 {
				t.Errorf("%s: %d bytes: %.2000s", name, len(got), got)
			}
		}
	}
	p := Plot{ID: "p", Lines: []Line{{Name: "", X: []float64{3}, Y: []float64{2}}}}
	if !strings.Contains(string(p.SVG()), "h3") {
		t.Error("a single point cannot be seen")
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   string
	}{
		{0, 1, 5, "[0 0.2 0.4 0.6 0.8 1]"},
		{0, 0.93, 5, "[0 0.2 0.4 0.6 0.8 1]"},
		{0, 100, 6, "[0 20 40 60 80 100]"},
		{1, 100, 6, "[20 40 60 80 100]"},
		{0, 40, 5, "[0 10 20 30 40]"},
		{0, 0, 5, "[0 0.2 0.4 0.6 0.8 1]"},
		{0, 2.2e-5, 5, "[0 5e-06 1e-05 1.5e-05 2e-05 2.5e-05]"},
		{0, 7e6, 5, "[0 2e+06 4e+06 6e+06 8e+06]"},
	} {
		var ticks []string
		for _, v := range linear(c.lo, c.hi, c.n).ticks {
			ticks = append(ticks, fmt.Sprintf("%.4g", v))
		}
		if got := fmt.Sprint(ticks); got != c.want {
			t.Errorf("linear(%v, %v) = %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
	if s := decades(0.05, 1.6); fmt.Sprintf("%.3g %.3g", s.lo, s.hi) != "-1.3 0.301" || len(s.ticks) != 6 {
		t.Errorf("few decades: %+v", s)
	}
	if s := decades(1e-12, 1e-2); s.lo != -12 || s.hi != -2 || fmt.Sprint(s.ticks) != "[-12 -10 -8 -6 -4 -2]" {
		t.Errorf("decades: %+v", s)
	}
}

func TestThin(t *testing.T) {
	x, y := make([]float64, 10_000), make([]float64, 10_000)
	for i := range x {
		x[i], y[i] = float64(i), math.Sin(float64(i))
	}
	y[5000], y[7777] = 50, -50 // spikes
	tx, ty := Thin(x, y)
	if len(tx) > 2*columns || len(tx) < columns || len(tx) != len(ty) || !slices.IsSorted(tx) {
		t.Errorf("%d points, sorted: %v", len(tx), slices.IsSorted(tx))
	}
	if slices.Max(ty) != 50 || slices.Min(ty) != -50 {
		t.Error("a spike was lost")
	}
	for c := range columns { // what the curve covers in each column is what is drawn
		from, to := c*len(y)/columns, (c+1)*len(y)/columns
		i, _ := slices.BinarySearch(tx, x[from])
		j, _ := slices.BinarySearch(tx, x[to-1]+1)
		if slices.Min(ty[i:j]) != slices.Min(y[from:to]) || slices.Max(ty[i:j]) != slices.Max(y[from:to]) {
			t.Errorf("column %d is drawn from %v to %v", c, slices.Min(ty[i:j]), slices.Max(ty[i:j]))
		}
	}
	if sx, _ := Thin(x[:2*columns], y[:2*columns]); len(sx) != 2*columns {
		t.Error("a short curve was thinned")
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 2.718281828: "2.718", 0.000001: "0.000001", 1e-7: "10⁻⁷", 3.25e-9: "3.25 × 10⁻⁹", 32561: "32,560", 999.96: "1,000",
		0.1: "0.1", 1234567: "1,235,000", -2.5: "−2.5", 1e15: "10¹⁵", 2e20: "2 × 10²⁰", 0.00012345: "0.0001234", 47.6: "47.6", math.Inf(1): "∞",
	} {
		if got := Number(v, 4); got != want {
			t.Errorf("Number(%v) = %s, want %s", v, got, want)
		}
	}
	if got := Number(math.NaN(), 4); got != "undefined" {
		t.Errorf("NaN is %q", got)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4321: "−4,321"} {
		if got := Integer(n); got != want {
			t.Errorf("Integer(%d) = %s, want %s", n, got, want)
		}
	}
}

// wellFormed checks that every element is closed.
func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well formed: %v in\n%s", err, b)
		}
	}
}

func TestFigure(t *testing.T) {
	p := Plot{ID: "a", Title: "A & B", Lines: []Line{{Name: "first", X: []float64{1, 2}, Y: []float64{3, 4}}}}
	q := p
	q.ID, q.Title = "b", "C"
	got := Figure("All of <it>", "a & b", p, q)
	wellFormed(t, []byte(got))
	for _, want := range []string{`xmlns="http://www.w3.org/2000/svg"`, `aria-label="All of &lt;it&gt;"`, ">A &amp; B</text>", ">a &amp; b</text>", ">C</text>", `id="a-t"`, `id="b-t"`, "<style>", "prefers-color-scheme:dark"} {
		if !strings.Contains(got, want) {
			t.Errorf("the figure lacks %s", want)
		}
	}
	for _, never := range []string{"href", "url(", "<script"} {
		if strings.Contains(got, never) {
			t.Errorf("the figure holds %s", never)
		}
	}
}

// TestLogY: decades on the y axis; what is 0 is not drawn.
func TestLogY(t *testing.T) {
	p := Plot{ID: "p", Title: "t", Desc: "d", LogY: true, Lines: []Line{{X: []float64{0, 1, 2}, Y: []float64{0, 100, 0.01}}}}
	svg := string(p.SVG())
	wellFormed(t, []byte(svg))
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || !strings.Contains(svg, ">10⁻²<") || !strings.Contains(svg, ">10²<") {
		t.Error(svg)
	}
	p.Lines = nil
	wellFormed(t, []byte(p.SVG()))
}

// A tight plot's axis begins near its least value; a long legend does not take the field
// away.
func TestTightAndTall(t *testing.T) {
	p := Plot{ID: "p", Tight: true}
	for i := range 9 {
		p.Lines = append(p.Lines, Line{Name: fmt.Sprint("m", i), X: []float64{1, 2}, Y: []float64{84.1, 84.9}})
	}
	level := 83.7
	p.Level, p.LevelName = &level, "level"
	_, y := p.ranges()
	if y.lo != 83.7 || y.hi != 84.9 || len(y.ticks) < 3 || y.ticks[0] < y.lo {
		t.Errorf("axis %+v", y)
	}
	if h := p.height(); h != plotH+8*legendH {
		t.Errorf("height %d", h)
	}
	if f := NewPanels([]Plot{p, p}); f.Plots[1].height() != plotH || len(f.entries) != 10 {
		t.Errorf("%d names in the legend of a figure, height %d", len(f.entries), f.Plots[1].height())
	}
}

// Panels share ranges by label, and a name has one style, a method its own in every figure.
func TestPanels(t *testing.T) {
	a := Plot{ID: "a", XLabel: "t", YLabel: "error", Lines: []Line{{Name: "other", X: []float64{0, 10}, Y: []float64{1, 2}}, {Name: "DP-SGD", X: []float64{0, 20}, Y: []float64{1, 3}, SD: []float64{0, 5}}}}
	b := Plot{ID: "b", XLabel: "t", YLabel: "error", Lines: []Line{{Name: "DP-SGD", X: []float64{5}, Y: []float64{1}}}}
	c := Plot{ID: "c", XLabel: "t", YLabel: "accuracy", Lines: []Line{{Name: "sgd", X: []float64{5}, Y: []float64{70}}}}
	f := NewPanels([]Plot{a, b, c})
	for i := range f.Plots {
		p := &f.Plots[i]
		if x, y := p.ranges(); x.hi != 20 || y.hi != []float64{8, 8, 80}[i] {
			t.Errorf("panel %d: x to %v, y to %v", i, x.hi, y.hi)
		}
		if strings.Contains(string(p.SVG()), `class="legend"`) {
			t.Errorf("panel %d has a legend of its own", i)
		}
	}
	own := methods["sgd"]
	if f.classes["DP-SGD"] != own || f.classes["sgd"] == own || f.classes["other"] == own || f.classes["other"] == f.classes["sgd"] {
		t.Errorf("styles %v", f.classes)
	}
	if got := string(f.Legend()); strings.Count(got, "<li>") != 3 {
		t.Errorf("legend %s", got)
	}
	for n := 2; n < 13; n++ {
		if k := columnsOf(n); n%k == 1 {
			t.Errorf("%d plots in %d columns", n, k)
		}
	}
}

// Bars for few points, a band for many, and points for categories.
func TestSpread(t *testing.T) {
	var l Line
	for i := range 30 {
		l.X, l.Y, l.SD = append(l.X, float64(i)), append(l.Y, 1), append(l.SD, 2)
	}
	for _, c := range []struct {
		n    int
		want string
	}{{30, "l0 band"}, {3, "l0 bar"}} {
		p := Plot{ID: "p", LogY: true, Lines: []Line{{X: l.X[:c.n], Y: l.Y[:c.n], SD: l.SD[:c.n]}}}
		got := string(p.SVG())
		wellFormed(t, []byte(got))
		if !strings.Contains(got, c.want) || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Error(got)
		}
	}
	p := Plot{ID: "p", Categories: []string{"no", "must"}, Lines: []Line{{X: []float64{0, 1}, Y: []float64{3, 4}}}}
	if got := string(p.SVG()); strings.Count(got, "l0 dot") != 2 || !strings.Contains(got, ">must<") || strings.Contains(got, `class="l0"`) {
		t.Error(got)
	}
}

// An axis that counts has whole numbers at its ticks, however few things it counts.
func TestCounts(t *testing.T) {
	for _, hi := range []float64{1, 2, 3, 7, 40, 1234} {
		p := Plot{Counts: true}
		s := p.xScale(0, hi)
		if len(s.ticks) < 2 || s.hi < hi {
			t.Errorf("up to %v: ticks %v, to %v", hi, s.ticks, s.hi)
		}
		for _, v := range s.ticks {
			if v != math.Trunc(v) {
				t.Errorf("up to %v: a tick at %v", hi, v)
			}
		}
	}
}
