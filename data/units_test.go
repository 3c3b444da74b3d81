package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/schema"
)

// A visit is a row of a table of visits.
type visit struct {
	who, age int
	sick     string
}

func (v visit) String() string { return fmt.Sprintf("p%d,%d,%d,%s", v.who, v.who, v.age, v.sick) }

func drawVisits(t *rapid.T, name string, most int) []visit {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) visit {
		return visit{rapid.IntRange(0, 8).Draw(t, "who"), rapid.IntRange(0, 12).Draw(t, "age"), rapid.SampledFrom([]string{"no", "yes", "yes", "no", "perhaps"}).Draw(t, "sick")}
	}), 1, most).Draw(t, name)
}

func visitsFile(rows []visit) string {
	var b strings.Builder
	b.WriteString("patient_id,who,age,sick\n")
	for _, v := range rows {
		b.WriteString(v.String() + "\n")
	}
	return b.String()
}

// counting is what counts of each patient: rows in words, sorted. It fails where a
// unit's rows are another's, or their shares are not what they should be.
func counting(t rapid.TB, tab *Table) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	seen := make([]bool, tab.Rows())
	dense := tab.Dense()
	for u := range tab.Units() {
		var words []string
		var sum float64
		who := ""
		rows := tab.UnitRows(nil, u)
		for _, r := range rows {
			b, i := dense.Blocks[r/BlockRows], int(r%BlockRows)
			if seen[r] || b.Drop != nil && b.Drop[i] {
				t.Fatalf("unit %d: row %d counts twice or is dropped", u, r)
			}
			seen[r] = true
			x := b.X[i*b.Dim:][:b.Dim]
			if w := fmt.Sprint(x[0]); who == "" || who == w {
				who = w
			} else {
				t.Fatalf("unit %d has rows of two patients", u)
			}
			y := float32(-1)
			if b.Y != nil {
				y = b.Y[i]
			}
			words = append(words, fmt.Sprint(x, y))
			sum += tab.Shares()[r]
		}
		if len(rows) == 0 {
			continue // all of them are bad
		}
		if sum > 1 || sum < 1-0x1p-20 {
			t.Fatalf("the shares of %d rows add up to %v", len(rows), sum)
		}
		if !slices.IsSorted(rows) || out[who] != nil {
			t.Fatalf("unit %d: rows %v, or a patient in two units", u, rows)
		}
		slices.Sort(words)
		out[who] = words
	}
	for r, s := range tab.Shares() {
		if !seen[r] && s != 0 {
			t.Fatalf("row %d belongs to no unit and has the share %v", r, s)
		}
	}
	return out
}

// TestUnitsAlone: which rows of a unit count, and with what share, does not change when
// other units' rows come, go or move, nor with the order of its own.
func TestUnitsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(rt *rapid.T) {
		s := mustParse(t, strings.Replace(visits, "rows: 3", fmt.Sprint("rows: ", rapid.IntRange(1, 4).Draw(rt, "most")), 1))
		opt := Options{KeepBad: rapid.Bool().Draw(rt, "keep")}
		of := func(rows []visit) map[string][]string {
			if err := os.WriteFile(path, []byte(visitsFile(rows)), 0o600); err != nil {
				rt.Fatal(err)
			}
			tab, _, err := readTable(context.Background(), admit(), s, path, opt)
			if err != nil {
				return map[string][]string{} // no good row
			}
			checkTable(t, tab)
			return counting(rt, tab)
		}
		rows := drawVisits(rt, "rows", 40)
		all := of(rows)
		if got := of(rapid.Permutation(rows).Draw(rt, "moved")); !reflect.DeepEqual(got, all) {
			rt.Fatalf("in another order: %v, was %v", got, all)
		}
		gone := rapid.SampledFrom(rows).Draw(rt, "gone").who
		rest := slices.DeleteFunc(slices.Clone(rows), func(v visit) bool { return v.who == gone })
		alone := slices.DeleteFunc(slices.Clone(rows), func(v visit) bool { return v.who != gone })
		if len(rest) == 0 {
			return
		}
		got := of(rest)
		for who, kept := range of(alone) {
			if got[who] != nil {
				rt.Fatal("a patient who left is there")
			}
			got[who] = kept
		}
		if !reflect.DeepEqual(got, all) {
			rt.Fatalf("without patient %d, and alone: %v, was %v", gone, got, all)
		}
		for who, kept := range all {
			if len(kept) > s.UnitRows {
				rt.Fatalf("patient %s has %d rows", who, len(kept))
			}
		}
	})
}

// TestUnitsStayWhole: dividing a table divides units, by coins that are their own.
func TestUnitsStayWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	s := mustParse(t, visits)
	rapid.Check(t, func(rt *rapid.T) {
		key := []byte{byte(rapid.IntRange(0, 9).Draw(rt, "key"))}
		// side says which patients the coins of a table put on the one side.
		divide := func(rows []visit) (all, in, out map[string][]string) {
			if err := os.WriteFile(path, []byte(visitsFile(rows)), 0o600); err != nil {
				rt.Fatal(err)
			}
			tab, _, err := readTable(context.Background(), admit(), s, path, Options{KeepBad: true})
			if err != nil {
				return
			}
			coins := RowHashes([]*Table{tab}, key)
			if len(coins) != tab.Units() {
				rt.Fatalf("%d coins for %d units", len(coins), tab.Units())
			}
			one := Subset([]*Table{tab}, func(u int) bool { return coins[u] < 1<<63 })
			other := Subset([]*Table{tab}, func(u int) bool { return coins[u] >= 1<<63 })
			if n := one.Units() + other.Units(); n != tab.Units() {
				rt.Fatalf("%d units in the parts, %d in the whole", n, tab.Units())
			}
			return counting(rt, tab), counting(rt, one), counting(rt, other)
		}
		rows := drawVisits(rt, "rows", 40)
		all, in, out := divide(rows)
		if len(in)+len(out) != len(all) {
			rt.Fatalf("%d and %d patients of %d", len(in), len(out), len(all))
		}
		for who, kept := range all {
			if !reflect.DeepEqual(in[who], kept) && !reflect.DeepEqual(out[who], kept) {
				rt.Fatalf("patient %s was cut", who)
			}
		}
		gone := rapid.SampledFrom(rows).Draw(rt, "gone").who
		rest := slices.DeleteFunc(slices.Clone(rows), func(v visit) bool { return v.who == gone })
		if len(rest) == 0 {
			return
		}
		_, without, _ := divide(rapid.Permutation(rest).Draw(rt, "moved"))
		for who := range without {
			if in[who] == nil {
				rt.Fatalf("patient %s changes sides when another leaves", who)
			}
		}
	})
}

func TestUnitIDs(t *testing.T) {
	const head = "patient_id,who,age,sick\n"
	s := mustParse(t, visits)
	stop := mustParse(t, strings.Replace(visits, "on_bad_row: drop", "format: {missing: [\"?\"]}", 1))
	tab, stats := mustRead(t, s, head+" a,1,5,no\na ,1,6,no\n,2,5,no\nb,2,9,perhaps\n  ,2,5,no\nb,2,9,no\n", Options{KeepBad: true})
	if tab.Units() != 2 || tab.Rows() != 6 || stats.Dropped != 3 {
		t.Errorf("%d units in %d rows, %d of them bad", tab.Units(), tab.Rows(), stats.Dropped)
	}
	for u, want := range [][]int32{{0, 1}, {5}} {
		if got := tab.UnitRows(nil, u); !slices.Equal(got, want) {
			t.Errorf("unit %d has the rows %v, not %v", u, got, want)
		}
	}
	if got, want := tab.Shares(), []float64{.5, .5, 0, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("shares %v, not %v", got, want)
	}
	for _, content := range []string{head + "?,1,5,no\n", head + ",1,5,no\n", head + `" ",1,5,no` + "\n"} {
		if _, _, err := read(t, stop, content, Options{}); err == nil || !strings.Contains(err.Error(), ":2:1: column patient_id: found a missing value; expected an id") {
			t.Errorf("%q: %v", content, err)
		}
	}
	// Replace-one counts units, those of bad rows too.
	for rows, want := range map[int]string{2: "", 1: "units: found more units; expected exactly 1", 3: "units: found 2 units; expected exactly 3"} {
		_, _, err := read(t, s, head+"a,1,5,no\nb,2,9,perhaps\nb,2,9,perhaps\na,1,5,no\n", Options{Rows: rows, KeepBad: true})
		if fmt.Sprint(err) != "<nil>" && want == "" || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d units: %v", rows, err)
		}
	}
	// Where each row is for itself, the column may be missing or hold anything.
	for _, content := range []string{"who,age,sick\n1,5,no\n1,5,no\n1,5,no\n1,5,no\n", head + "a,1,5,no\n,1,5,no\na,1,5,no\na,1,5,no\n"} {
		if tab, _ := mustRead(t, s, content, Options{ByRow: true}); tab.Units() != 4 || tab.Shares() != nil || !slices.Equal(tab.UnitRows(nil, 3), []int32{3}) {
			t.Errorf("by row: %d units", tab.Units())
		}
	}
}

// TestReadTest: rows of one unit are never on both sides, and where that cannot be seen
// nothing is read.
func TestReadTest(t *testing.T) {
	s := mustParse(t, visits)
	const head = "patient_id,who,age,sick\n"
	train, _ := mustRead(t, s, head+"a,1,5,no\nb,2,5,no\nc,3,5,perhaps\n", Options{KeepBad: true})
	packed := packOf(t, s, head+"d,1,5,no\n", Options{})
	for name, c := range map[string]struct{ path, want string }{
		"others":     {writeFile(t, "others", head+"d,1,5,no\nd,1,6,no\n"), ""},
		"one of two": {writeFile(t, "f", head+"d,1,5,no\nb ,8,8,yes\n"), ": unit: found a patient who has rows to train on too; expected others"},
		"a bad row":  {writeFile(t, "f", head+"d,1,5,no\nc,8,8,yes\n"), ": unit: found a patient who has rows to train on too"},
		"packed":     {packed, ": unit: found a table whose ids are not here"},
		"no file":    {"nowhere", "nowhere: found no file"},
	} {
		tab, _, err := readTable(context.Background(), admit(), s, c.path, Options{}, train)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || tab != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := mustParse(t, strings.NewReplacer("unit: {name: patient, rows: 3}\nunits", "rows", "type: unit", "type: ignore").Replace(visits))
	same := writeFile(t, "same", head+"a,1,5,no\n")
	one, _, err := readTable(context.Background(), admit(), plain, same, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := readTable(context.Background(), admit(), plain, same, Options{}, one); err != nil {
		t.Errorf("without units: %v", err)
	}
}

// TestUnitsInEveryForm: Parquet and a table of a database, its rows from last to first,
// give the units of the text, ids that are numbers or missing among them.
func TestUnitsInEveryForm(t *testing.T) {
	type row struct {
		Patient *int64 `parquet:"patient_id,optional"`
		Who     int32  `parquet:"who"`
		Age     int32  `parquet:"age"`
		Sick    string `parquet:"sick"`
	}
	s := mustParse(t, visits)
	var rows []row
	var text strings.Builder
	text.WriteString("patient_id,who,age,sick\n")
	for i, v := range visitRows(60) {
		r := row{Who: int32(v.who), Age: int32(v.age), Sick: v.sick}
		id := ""
		if i%9 != 4 {
			n := int64(v.who) - 3
			r.Patient, id = &n, fmt.Sprint(n)
		}
		rows = append(rows, r)
		fmt.Fprintf(&text, "%s,%d,%d,%s\n", id, v.who, v.age, v.sick)
	}
	csv, _ := mustRead(t, s, text.String(), Options{KeepBad: true})
	want := counting(t, csv)
	db, lite := sqliteFileOf(t)
	fill(t, db, "CREATE TABLE t (patient_id INTEGER, who INTEGER, age INTEGER, sick TEXT)", "t", "?1", text.String(), true)
	for _, path := range []string{writeParquet(t, rows), lite + "?table=t"} {
		tab, _, err := readTable(context.Background(), admit(), s, path, Options{KeepBad: true, Rows: csv.Units()})
		if err != nil {
			t.Fatal(err)
		}
		checkTable(t, tab)
		if got := counting(t, tab); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, and in the text %v", path, got, want)
		}
		if _, _, err := readTable(context.Background(), admit(), s, path, Options{}, csv); err == nil {
			t.Errorf("%s: patients of the text are not known", path)
		}
	}
}

func TestShareOf(t *testing.T) {
	for n := 1; n <= schema.MaxUnitRows; n++ {
		if s := shareOf(n); s != float64(float32(s)) || s*float64(n) > 1 || s*float64(n) <= 1-0x1p-22 {
			t.Fatalf("a share of %d is %v", n, s)
		}
	}
}

func TestSetUnits(t *testing.T) {
	for _, bad := range [][]int32{{0, 1}, {0, 2, 1}, {1, 0, 0}, {0, -2, 0}, {0, 0, -1}, {0, 0, 0, 0}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("units %v are taken", bad)
				}
			}()
			rowsOf([]int{1, 2, 3}, false).SetUnits(bad)
		}()
	}
}
