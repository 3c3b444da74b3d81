package data

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
)

func TestSynth(t *testing.T) {
	race.Skip(t)
	for name, src := range map[string]string{
		"csv":     small,
		"plain":   strings.Replace(small, "rows: 100", "intercept: false\nrow_scaling: project", 1),
		"classes": strings.Replace(small, `["no", "yes"]`, "[a, b, c]", 1),
		"number":  strings.Replace(small, `classes: ["no", "yes"], strip: "."`, "min: 50, max: 80", 1),
		"libsvm":  strings.Replace(svm, "features: 5", "features: 500", 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, src)
			var a, b, c bytes.Buffer
			truth, err := Synth(s, 3000, 7, &a)
			if err != nil {
				t.Fatal(err)
			}
			Synth(s, 3000, 7, &b)
			Synth(s, 3000, 8, &c)
			if a.String() != b.String() || a.String() == c.String() {
				t.Error("the seed does not decide the table")
			}
			sets := 1
			if s.Classes() > 2 {
				sets = s.Classes()
			}
			if len(truth) != sets*s.Dim() {
				t.Fatalf("%d weights", len(truth))
			}
			tab, stats := mustRead(t, s, a.String(), Options{Rows: 3000})
			if len(stats.Clamped) > 0 {
				t.Errorf("values out of bounds: %+v", stats)
			}

			// How well the truth foretells the labels.
			var right, errs, spread float64
			for _, k := range tab.Dense().Blocks {
				for i := range k.N {
					x := k.X[i*k.Dim:][:k.Dim]
					m := make([]float64, sets)
					for c := range m {
						for j, v := range x {
							m[c] += truth[c*s.Dim()+j] * float64(v)
						}
					}
					y := float64(k.Y[i])
					switch {
					case s.Classes() == 0:
						errs += (y - m[0]) * (y - m[0]) / 3000
						spread += (y - 65) * (y - 65) / 3000
					case sets == 1 && (m[0] > 0) == (y == 1), sets > 1 && m[int(y)] == max(m[0], m[1], m[2]):
						right++
					}
				}
			}
			if acc := right / 3000; s.Classes() > 0 && (acc < 0.78 || acc > 0.95) {
				t.Errorf("the truth is right in %v of the rows", acc)
			}
			if s.Classes() == 0 && (math.Sqrt(errs) > 4 || errs > spread) {
				t.Errorf("root mean square error %v of the truth", math.Sqrt(errs))
			}
			if s.Classes() == 2 && name != "plain" {
				if n := classCounts(tab); n[0] < 900 || n[1] < 900 {
					t.Errorf("classes %v", n)
				}
			}
		})
	}
	if _, err := Synth(mustParse(t, small), 0, 1, &bytes.Buffer{}); err == nil {
		t.Error("0 rows")
	}
	if _, err := Synth(mustParse(t, small), 5000, 1, &failing{1000}); err == nil {
		t.Error("a failing writer")
	}
	if _, err := Synth(mustLoad(t, adultSchema), 10, 1, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	if _, _, err := readTable(context.Background(), admit(), mustParse(t, svm), writeFile(t, "x", "1 1:1\n"), Options{}); err != nil {
		t.Error(err)
	}
}

// TestSynthUnits: units are as many as were asked for, of all sizes and with all rows
// among those of others.
func TestSynthUnits(t *testing.T) {
	s := mustParse(t, unitSmall)
	var b bytes.Buffer
	if _, err := Synth(s, 500, 7, &b); err != nil {
		t.Fatal(err)
	}
	tab, _ := mustRead(t, s, b.String(), Options{Rows: 500})
	sizes, apart := map[int]int{}, 0
	for u := range tab.Units() {
		rows := tab.UnitRows(nil, u)
		sizes[len(rows)]++
		if n := len(rows); int(rows[n-1]-rows[0]) >= n {
			apart++
		}
	}
	if len(sizes) != s.UnitRows || apart < 100 || sizes[1] < sizes[s.UnitRows] {
		t.Errorf("units by their rows: %v; %d of them stand apart", sizes, apart)
	}
	for _, k := range tab.Blocks {
		if k.Drop != nil {
			t.Error("a unit has too many rows")
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}
