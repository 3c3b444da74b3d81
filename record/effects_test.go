package record

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/sottodp/sotto/model" // its words for margins
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

const effectsSchema = `dataset: t
rows: 1000
columns:
  - {name: age, type: numeric, min: 0, max: 8, hats: 5}
  - {name: money, type: numeric, min: 0, max: 999, transform: log1p, encode: linear}
  - {name: ward, type: categorical, levels: [a, b, c]}
  - {name: sick, type: label, classes: ["no", "yes"]}
`

// TestEffects: curves and bars are those of the parameters, times the factor of a row of middle size.
func TestEffects(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(effectsSchema))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(model, w string) {
		t.Helper()
		text := fmt.Sprintf(`{"model":%q,"classes":["no","yes"],"w":[%s],"schema":%s}`, model, w, raw)
		if err := os.WriteFile(filepath.Join(dir, runlog.ModelFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := effectsIn(dir); e != nil || err != nil {
		t.Errorf("without a model: %v, %v", e, err)
	}
	write("logistic", `1,0,3,0,0,0, 2, 5,7,6, 100],"classes":[`)
	if e, err := effectsIn(dir); err == nil || !strings.HasPrefix(err.Error(), runlog.ModelFile+": ") {
		t.Errorf("without classes: %v, %v", e, err)
	}
	write("logistic", "1,0,3,0,0,0, 2, 5,7,6, 100")
	e, err := effectsIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	// A row has an intercept and a level, age from x² + 1/2 at its middle between two centers to 2, and money from 0 to 1.
	least, middle, most := s.RowFactors()
	if math.Abs(least-1/math.Sqrt(5)) > 1e-12 || !(least < middle && middle < most) || most > 1/math.Sqrt(2.5) {
		t.Errorf("factors %v, %v, %v", least, middle, most)
	}
	if e.What != `log-odds of the class "yes"` || len(e.Columns) != 3 || e.Columns[0].X == nil || e.Columns[1].X == nil || e.Columns[2].X != nil {
		t.Fatalf("%+v", e)
	}
	if l := e.Columns[2]; len(l.Above) != 3 || l.Above[0] != 0 || l.Above[1] != 2*middle || l.Above[2] != middle || l.Names[1] != "b" {
		t.Errorf("bars %+v", l)
	}
	write("logistic", `1,0,3,0,0,0, 2, 5,7,6, 100],"margin_factor":0.5,"unused":[`)
	if e, err := effectsIn(dir); err != nil || e.Columns[2].Above[1] != middle {
		t.Errorf("bars of a model with a factor on its margins: %+v, %v", e, err)
	}
	if e.Noise != 0 || e.Columns[0].Half != nil {
		t.Error("bands of a model whose noise is not known")
	}
	write("logistic", `1,0,3,0,0,0, 2, 5,7,6, 100],"noise":0.25,"margin_factor":0.5,"unused":[`)
	if e, err := effectsIn(dir); err != nil || e.Noise != 2*0.25*0.5*middle || e.Columns[0].Half == nil || e.Columns[1].Half == nil {
		t.Errorf("bands: %v, %v", e.Noise, err)
	}
	x, y, length := numericEffect(s.Columns[0].Form(), []float64{1, 0, 3, 0, 0, 0})
	for i, want := range map[int]float64{0: -1, len(x) / 4: -0.5 + 3, len(x) / 2: 0, len(x) - 1: 1} {
		if math.Abs(y[i]-want) > 1e-12 || math.Abs(x[i]-8*float64(i)/float64(len(x)-1)) > 1e-12 {
			t.Errorf("age %v: %v, not %v", x[i], y[i], want)
		}
	}
	for i, want := range map[int]float64{0: math.Sqrt2, len(x) / 4: math.Sqrt(0.25 + 1), len(x) / 2: 1, len(x) - 1: math.Sqrt2} {
		if math.Abs(length[i]-want) > 1e-12 {
			t.Errorf("age %v: features of length %v, not %v", x[i], length[i], want)
		}
	}
	if x, _, _ := numericEffect(s.Columns[1].Form(), []float64{2}); math.Abs(x[0]-1) > 1e-12 || math.Abs(x[len(x)-1]-1000) > 1e-9 {
		t.Errorf("money from %v to %v", x[0], x[len(x)-1])
	}
	if !e.Columns[1].LogX {
		t.Error("the axis does not say that it is 1 + money")
	}
	write("softmax", strings.Repeat("0,", 32)+"0") // several margins are not drawn
	if e, err := effectsIn(dir); e != nil || err != nil {
		t.Errorf("softmax: %v, %v", e, err)
	}
	write("logistic", "broken")
	if _, err := effectsIn(dir); err == nil {
		t.Error("a damaged model made a page")
	}
}

// TestWaveEffect: the curve of a column with waves is its line and its waves, and noise reaches it by their length.
func TestWaveEffect(t *testing.T) {
	f := &schema.Form{Line: &schema.Line{Bounds: schema.Bounds{Min: -1, Max: 1}, Transform: schema.TransformNone}, Waves: 2}
	x, y, length := numericEffect(f, []float64{1, 2, -3})
	if len(x) != 7*pieces(8)+1 {
		t.Errorf("%d points", len(x))
	}
	for i, at := range x {
		a, b := schema.Wave(0, at), schema.Wave(1, at)
		if math.Abs(y[i]-(at+2*a-3*b)) > 1e-9 || math.Abs(length[i]-math.Sqrt(at*at+a*a+b*b)) > 1e-9 {
			t.Errorf("at %v: %v, length %v", at, y[i], length[i])
		}
	}
	if e := columnEffects("a", f, []float64{1, 2, -3}); len(e) != 1 || e[0].Slope != nil || e[0].Kinks != pieces(8) {
		t.Errorf("%+v", e)
	}
}
