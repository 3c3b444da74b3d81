package chart

import (
	"reflect"
	"testing"
)

// TestHeat: cells have as many digits as the highest needs, and colors by the most of the page; long numbers are short.
func TestHeat(t *testing.T) {
	got := NewHeat([]float64{-2e6, 31622.8}, []float64{0, 1e15, 99999.4}, [][]float64{{0, 0.01234, 12.345}, {6.2, 3, 0.26}}, 24.6)
	want := &Heat{Columns: []string{"0", "1e15", "100,000"}, Rows: []HeatRow{
		{"−2e6", []HeatCell{{"0", 0}, {"0", 0}, {"12.3", 50}}}, {"31,600", []HeatCell{{"6.2", 25}, {"3", 12}, {"0.3", 1}}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if flat := NewHeat([]float64{1}, []float64{2}, [][]float64{{0}}, 0); flat.Rows[0].Cells[0] != (HeatCell{"0", 0}) {
		t.Errorf("%+v", flat)
	}
}
