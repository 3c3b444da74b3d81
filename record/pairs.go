package record

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/schema"
)

// A PairEffect is what two columns add to the margin together, beside what each adds by itself, on a row of middle
// size. Between the values it follows straight lines along either column.
type PairEffect struct {
	Name  string      `json:"name"`
	A     string      `json:"a"`
	B     string      `json:"b"`
	OfA   []float64   `json:"values_of_a" unit:"column"`         // at which a bump of A is 1
	OfB   []float64   `json:"values_of_b" unit:"column"`         // likewise of B
	Y     [][]float64 `json:"y" unit:"margin"`                   // for each value of A, at each value of B
	Above [][]float64 `json:"above_lowest" unit:"margin"`        // Y less its lowest
	Noise float64     `json:"deviation,omitempty" unit:"margin"` // standard deviation of a value; 0: not known
	Span  float64     `json:"span" unit:"margin"`                // between the lowest and the highest
}

// pairEffects are those of the pairs of a schema with parameters w, times factor; noise is the deviation of each.
func pairEffects(s *schema.Schema, w []float64, factor, noise float64) (all []PairEffect) {
	for at, p := range s.PairPlaces() {
		if p.Open() { // of a forged file
			continue
		}
		k := PairEffect{Name: p.String(), A: p.A, B: p.B, OfA: s.Column(p.A).PairCenters(), OfB: s.Column(p.B).PairCenters(),
			Noise: noise * factor}
		low, high := math.Inf(1), math.Inf(-1)
		for row := range slices.Chunk(w[at:at+schema.PairFeatures], schema.PairBumps) {
			y := make([]float64, len(row))
			for j, v := range row {
				y[j] = v * factor
			}
			k.Y = append(k.Y, y)
			low, high = math.Min(low, slices.Min(y)), math.Max(high, slices.Max(y))
		}
		for _, y := range k.Y {
			above := make([]float64, len(y))
			for j, v := range y {
				above[j] = v - low
			}
			k.Above = append(k.Above, above)
		}
		k.Span = high - low
		all = append(all, k)
	}
	return all
}
