package report

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
	least, middle, most := factors(s)
	if math.Abs(least-1/math.Sqrt(5)) > 1e-12 || !(least < middle && middle < most) || most > 1/math.Sqrt(2.5) {
		t.Errorf("factors %v, %v, %v", least, middle, most)
	}
	if e.What != `log-odds of the class "yes"` || len(e.Curves) != 3 || e.Curves[0].Plot == "" || e.Curves[1].Plot == "" || e.Curves[2].Plot != "" {
		t.Fatalf("%+v", e)
	}
	if l := e.Curves[2].Levels; len(l) != 3 || l[0].Value != "0" || l[0].Width != 0 || l[1].Value != number(2*middle) || l[2].Value != number(middle) || l[1].Name != "b" {
		t.Errorf("bars %+v", l)
	}
	write("logistic", `1,0,3,0,0,0, 2, 5,7,6, 100],"margin_factor":0.5,"unused":[`)
	if e, err := effectsIn(dir); err != nil || e.Curves[2].Levels[1].Value != number(middle) {
		t.Errorf("bars of a model with a factor on its margins: %+v, %v", e, err)
	}
	if e.Noise != "" || strings.Contains(string(e.Curves[0].Plot), "band") {
		t.Error("bands of a model whose noise is not known")
	}
	write("logistic", `1,0,3,0,0,0, 2, 5,7,6, 100],"noise":0.25,"margin_factor":0.5,"unused":[`)
	if e, err := effectsIn(dir); err != nil || e.Noise != number(2*0.25*0.5*middle) || !strings.Contains(string(e.Curves[0].Plot), "band") || !strings.Contains(string(e.Curves[1].Plot), "band") {
		t.Errorf("bands: %q, %v", e.Noise, err)
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
	if !strings.Contains(string(e.Curves[1].Plot), "1 + money") {
		t.Error("the axis does not say that it is 1 + money")
	}
	testTable(t, e, filepath.Join(dir, runlog.ModelFile), middle)
	write("softmax", strings.Repeat("0,", 32)+"0") // several margins are not drawn
	if e, err := effectsIn(dir); e != nil || err != nil {
		t.Errorf("softmax: %v, %v", e, err)
	}
	write("logistic", "broken")
	if _, err := effectsIn(dir); err == nil {
		t.Error("a damaged model made a page")
	}
}

// testTable checks the lines of the page and of the CSV file, where the effect of a level is its parameter times middle.
func testTable(t *testing.T, e *effects, file string, middle float64) {
	t.Helper()
	doubling := 2 * 2 * middle * math.Ln2 / math.Log(1000) // the linear feature moves by 2 over ln 1000
	var names []string
	for _, l := range e.Ranked() {
		names = append(names, l.Name)
		want := ranking{Name: "money", Span: number(4 * middle), Step: "a doubling of 1 + the value", By: number(doubling), Ratio: number(math.Exp(doubling))}
		if l.Name == "money" && l != want {
			t.Errorf("money: %+v, not %+v", l, want)
		}
	}
	if strings.Join(names, " ") != "money age ward" { // 4, 3.5 and 2 × middle
		t.Errorf("columns %v", names)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := WriteEffects(&out, text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	g := func(v float64) string { return fmt.Sprintf("%.6g", v) }
	half := 0.5 * middle // of the file's factor 0.5 and noise 0.25, twice; its effects are half of those above
	for i, want := range map[int]string{
		0: "column,kind,value,effect,low,high,ratio",
		2: "age,point,2," + g(1.25*middle) + "," + g(1.25*middle-half*math.Sqrt(1.25)/2) + "," + g(1.25*middle+half*math.Sqrt(1.25)/2) + "," + g(math.Exp(1.25*middle)),
		6: "money,slope,a doubling of 1 + the value," + g(doubling/2) + "," + g(doubling/2-half*math.Ln2/math.Log(1000)) + "," + g(doubling/2+half*math.Ln2/math.Log(1000)) + "," + g(math.Exp(doubling/2)),
		8: "ward,level,b," + g(3.5*middle) + "," + g(3.5*middle-half/2) + "," + g(3.5*middle+half/2) + "," + g(math.Exp(3.5*middle)),
	} {
		if lines[i] != want {
			t.Errorf("line %d: %s, not %s", i, lines[i], want)
		}
	}
	if len(lines) != 1+5+1+3 {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
	if err := WriteEffects(&out, []byte(`{"model":"softmax"}`)); err == nil || !strings.Contains(err.Error(), "several margins") {
		t.Errorf("a model without effects: %v", err)
	}
}

// TestManyEffects: a page does not grow with the columns of a table.
func TestManyEffects(t *testing.T) {
	var text strings.Builder
	text.WriteString("dataset: t\nrows: 1000\ncolumns:\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n")
	const columns = mostEffects + 2
	for i := range columns {
		fmt.Fprintf(&text, "  - {name: c%d, type: numeric, min: 0, max: 1, encode: linear}\n", i)
	}
	s, err := schema.Parse("s.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	e := &effects{What: "margin w·x"}
	e.add(s, make([]float64, s.Dim()), 0)
	e.draw()
	if len(e.Curves) != mostEffects || e.Rest != 2 || len(e.Ranked()) != mostEffects {
		t.Errorf("%d curves, %d lines, %d more", len(e.Curves), len(e.Ranked()), e.Rest)
	}
}
