package record

import (
	"fmt"
	"math"
	"testing"

	"github.com/sottodp/sotto/schema"
)

// TestPairEffects: the cells of a pair are its parameters, times the factor of a row of middle size, at the centers of the bumps in
// each column's own units; effects of columns do not change but for that factor.
func TestPairEffects(t *testing.T) {
	for _, norm := range []string{"l2", "l1"} {
		s, err := schema.Parse("s.yaml", []byte("norm: "+norm+"\npairs: [[money, age]]\n"+effectsSchema))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		w := "1,0,3,0,0,0, 2, 5,7,6"
		for i := range schema.PairFeatures {
			w += fmt.Sprintf(",%d", i-3)
		}
		e, err := EffectsOf(fmt.Appendf(nil, `{"model":"logistic","classes":["no","yes"],"w":[%s,100],"noise":0.25,"margin_factor":0.5,"schema":%s}`, w, raw))
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Columns) != 3 || len(e.Pairs) != 1 {
			t.Fatalf("%+v", e)
		}
		// Beside what the columns have, the products of a row sum to 1, and their squares to 1/16 … 1 each.
		plain, _, most := s.WithPairs().RowFactors()
		least, middle, largest := s.RowFactors()
		size := func(f float64) float64 {
			if norm == "l1" {
				return 1 / f
			}
			return 1 / (f * f)
		}
		if between := map[string]float64{"l1": 1, "l2": 0.25}[norm]; math.Abs(size(least)-size(plain)-1) > 1e-9 || math.Abs(size(largest)-size(most)-between) > 1e-9 {
			t.Errorf("%s: factors %v, %v, %v; without the pair %v, %v", norm, least, middle, largest, plain, most)
		}
		p := e.Pairs[0]
		if p.Name != "money × age" || p.A != "money" || p.B != "age" || math.Abs(p.Noise-0.25*0.5*middle) > 1e-12 || math.Abs(p.Span-24*0.5*middle) > 1e-12 {
			t.Errorf("%+v", p)
		}
		for i := range 5 {
			if math.Abs(p.OfA[i]-(math.Pow(1000, float64(i)/4)-1)) > 1e-9 || p.OfB[i] != 2*float64(i) {
				t.Errorf("values %v, %v", p.OfA, p.OfB)
			}
			for j := range 5 {
				if want := float64(5*i+j) * 0.5 * middle; math.Abs(p.Above[i][j]-want) > 1e-12 || math.Abs(p.Y[i][j]-want+3*0.5*middle) > 1e-12 {
					t.Errorf("cell %d %d: %v, %v above the lowest, not %v", i, j, p.Y[i][j], p.Above[i][j], want)
				}
			}
		}
		if math.Abs(e.Columns[2].Above[1]-2*0.5*middle) > 1e-12 {
			t.Errorf("bars %v", e.Columns[2].Above)
		}
	}
}
