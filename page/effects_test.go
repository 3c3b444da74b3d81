package page

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/chart"
	_ "github.com/sottodp/sotto/model" // its words for margins
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
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

// TestEffects: curves and bars are those of a record, with bands where the noise is known.
func TestEffects(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(effectsSchema))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	model := func(more string) []byte {
		return fmt.Appendf(nil, `{"model":"logistic","classes":["no","yes"],"w":[1,0,3,0,0,0,2,5,7,6,100]%s,"schema":%s}`, more, raw)
	}
	draw := func(text []byte) *effects {
		of, err := record.EffectsOf(text)
		if err != nil {
			t.Fatal(err)
		}
		return drawn(of)
	}
	e := draw(model(""))
	if len(e.Curves) != 3 || e.Curves[0].Plot == "" || e.Curves[1].Plot == "" || e.Curves[2].Plot != "" || strings.Contains(string(e.Curves[0].Plot), "band") {
		t.Fatalf("%+v", e)
	}
	if l := e.Curves[2].Levels; len(l) != 3 || l[0].Value != "0" || l[0].Width != 0 || l[1].Value != number(2*e.Factor) || l[2].Value != number(e.Factor) || l[1].Name != "b" {
		t.Errorf("bars %+v", l)
	}
	if !strings.Contains(string(e.Curves[1].Plot), "1 + money") {
		t.Error("the axis does not say that it is 1 + money")
	}
	noisy := model(`,"noise":0.25,"margin_factor":0.5`)
	if n := draw(noisy); !strings.Contains(string(n.Curves[0].Plot), "band") || !strings.Contains(string(n.Curves[1].Plot), "band") {
		t.Error("no bands")
	}
	testTable(t, e, noisy, e.Factor)
}

// testTable checks the lines of the page and of the CSV file, where the effect of a level is its parameter times middle.
func testTable(t *testing.T, e *effects, file []byte, middle float64) {
	t.Helper()
	doubling := 2 * 2 * middle * math.Ln2 / math.Log(1000) // the linear feature moves by 2 over ln 1000
	var names []string
	for _, l := range e.Ranked() {
		names = append(names, l.Name)
		if l.Name == "money" && (number(l.Span) != number(4*middle) || l.Slope.Step != "a doubling of 1 + the value" || l.By != number(doubling) || l.Ratio != number(math.Exp(doubling))) {
			t.Errorf("money: %+v", l)
		}
	}
	if strings.Join(names, " ") != "money age ward" { // 4, 3.5 and 2 × middle
		t.Errorf("columns %v", names)
	}
	var out strings.Builder
	if err := WriteEffects(&out, file); err != nil {
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
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	of, err := record.EffectsOf(fmt.Appendf(nil, `{"model":"logistic","classes":["no","yes"],"w":[%s0],"schema":%s}`, strings.Repeat("0,", s.Dim()-1), raw))
	if err != nil {
		t.Fatal(err)
	}
	e := drawn(of)
	if len(e.Curves) != mostEffects || e.Rest != 2 || len(e.Ranked()) != mostEffects {
		t.Errorf("%d curves, %d lines, %d more", len(e.Curves), len(e.Ranked()), e.Rest)
	}
	first, more := e.First, e.More
	if len(first.Curves) != firstEffects || len(more.Curves) != mostEffects-firstEffects {
		t.Errorf("%d columns first, and %d more", len(first.Curves), len(more.Curves))
	}
	for _, c := range more.Curves {
		if c.span > first.Curves[firstEffects-1].span {
			t.Errorf("%s moves the margin further than a column before it", c.Name)
		}
	}
}

// TestPairEffects: a pair is a map of its cells, as dark as they are high, with the noise of a cell beside it, a line among the columns,
// and lines of the CSV file.
func TestPairEffects(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte("pairs: [[age, money]]\n"+effectsSchema))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	model := func(more string) []byte {
		return fmt.Appendf(nil, `{"model":"logistic","classes":["no","yes"],"w":[1,0,3,0,0,0,2,5,7,6,%s10,100]%s,"schema":%s}`, strings.Repeat("0,", 24), more, raw)
	}
	of, err := record.EffectsOf(model(`,"noise":0.25`))
	if err != nil {
		t.Fatal(err)
	}
	e := drawn(of)
	if len(e.Curves) != 3 || len(e.Maps) != 1 || len(e.Maps[0].Rows) != 5 || len(e.Maps[0].Columns) != 5 {
		t.Fatalf("%+v", e)
	}
	m := e.Maps[0]
	if first, last := m.Rows[0].Cells[0], m.Rows[4].Cells[4]; first != (chart.HeatCell{Value: "0"}) || last.Value != chart.Number(10*e.Factor, 3) || last.Share < 99 {
		t.Errorf("cells %+v, %+v", first, last)
	}
	if m.Rows[1].Name != "2" || m.Columns[4] != "999" || m.Noise != 0.25*e.Factor {
		t.Errorf("%+v", m)
	}
	if r := e.Ranked(); len(r) != 4 || r[0].Name != "age × money" || number(r[0].Span) != number(10*e.Factor) {
		t.Errorf("%+v", r)
	}
	for more, lines := range map[string][2]string{
		"": {"age × money,cell,0 × 0,0,,,1", fmt.Sprintf("age × money,cell,8 × 999,%.6g,,,%.6g", 10*e.Factor, math.Exp(10*e.Factor))},
		`,"noise":0.25`: {fmt.Sprintf("age × money,cell,0 × 0,0,%.6g,%.6g,1", -0.5*e.Factor, 0.5*e.Factor),
			fmt.Sprintf("age × money,cell,8 × 999,%.6g,%.6g,%.6g,%.6g", 10*e.Factor, 9.5*e.Factor, 10.5*e.Factor, math.Exp(10*e.Factor))},
	} {
		var out strings.Builder
		if err := WriteEffects(&out, model(more)); err != nil {
			t.Fatal(err)
		}
		all := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(all) != 1+5+1+3+25 || all[10] != lines[0] || all[34] != lines[1] {
			t.Errorf("%d lines:\n%s", len(all), out.String())
		}
	}
	dir := ran(t, asked(t), 100, privacy.Gaussian{Sigma: sigma})
	if err := os.WriteFile(filepath.Join(dir, runlog.ModelFile), model(`,"noise":0.25`), 0o600); err != nil {
		t.Fatal(err)
	}
	page := build(t, dir)
	for _, want := range []string{"age × money: the noise of each cell has the standard deviation " + number(m.Noise), `<th scope="colgroup" colspan="5">money</th>`, "A map shows",
		`<td class="num" style="--share: ` + fmt.Sprint(m.Rows[4].Cells[4].Share) + `%">` + m.Rows[4].Cells[4].Value} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if of, err = record.EffectsOf(model("")); err != nil || drawn(of).Maps[0].Noise != 0 {
		t.Errorf("a map of a model whose noise is not known: %v", err)
	}
}
