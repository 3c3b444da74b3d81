package chart

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// TestBars: a bar and an interval for each bin, heights in proportion, and texts escaped; a histogram of nothing is drawn, too.
func TestBars(t *testing.T) {
	b := Bars{ID: "c0", Title: "a <b>", Desc: "d", YLabel: "records", Value: []float64{10, 0, 40}, Low: []float64{5, 0, 30}, High: []float64{15, 3, 50},
		Ends: [3]string{"0", "<5>", "10"}}
	text := string(b.SVG())
	if strings.Count(text, "<rect") != 3 || strings.Contains(text, "<b>") || strings.Contains(text, "<5>") || strings.Contains(text, "NaN") {
		t.Error(text)
	}
	var heights []string
	for _, part := range strings.Split(text, "<rect")[1:] {
		_, after, _ := strings.Cut(part, `height="`)
		h, _, _ := strings.Cut(after, `"`)
		heights = append(heights, h)
	}
	if strings.Join(heights, " ") != "29.3 0.0 117.3" {
		t.Errorf("heights %v", heights)
	}
	for _, b := range []Bars{{}, {Value: []float64{0}, Low: []float64{0}, High: []float64{0}}, b} {
		d := xml.NewDecoder(strings.NewReader(string(b.SVG())))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v: %s", err, b.SVG())
			}
		}
	}
}
