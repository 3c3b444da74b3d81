package access

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// Test rows that are an honest random half or fifth of a table are admitted, however coarse the table is; copies are refused as far as
// rows that occur once tell. Refusing an honest split has a chance of 2e-9 for each. Seeded; -v prints the shares for
// docs/explanation/privacy.md.
func TestTwins(t *testing.T) {
	race.Skip(t)
	const draws, n = 200, 2000
	rnd := rand.New(rand.NewPCG(21, 3))
	of := func(rows []uint64) *hashes { return &hashes{rows: data.Hashes{rows}, n: len(rows)} }
	for _, kinds := range []int{16, 64, 256, 1000, 100_000} {
		names := make([]uint64, kinds)
		for i := range names {
			names[i] = rnd.Uint64()
		}
		count := map[string]map[likeness]int{}
		see := func(name string, train, test []uint64) {
			if count[name] == nil {
				count[name] = map[likeness]int{}
			}
			count[name][compare(of(train), of(test))]++
		}
		for range draws {
			all := make([]uint64, n)
			for i := range all {
				all[i] = names[rnd.IntN(kinds)]
			}
			see("an honest half", all[:n/2], all[n/2:])
			see("an honest fifth", all[:n*4/5], all[n*4/5:])
			again := slices.Clone(all)
			slices.Reverse(again)
			see("the training rows", all, again)
			see("one row more", all, append(slices.Clone(again), names[rnd.IntN(kinds)]))
			see("one row less", all, again[1:])
			see("half of them", all, again[:n/2])
			see("each twice", all, slices.Concat(again, all))
		}
		for _, name := range []string{"an honest half", "an honest fifth"} {
			if c := count[name]; c[alike]+c[theSame] > 0 {
				t.Errorf("%d kinds of rows, %s: refused %d of %d times", kinds, name, c[alike]+c[theSame], draws)
			}
		}
		for _, name := range []string{"the training rows", "each twice"} {
			if c := count[name]; c[theSame] != draws {
				t.Errorf("%d kinds of rows, %s: refused %d of %d times", kinds, name, c[theSame], draws)
			}
		}
		for _, name := range []string{"one row more", "one row less", "half of them"} {
			if c := count[name]; kinds >= 1000 && c[alike] < draws*95/100 {
				t.Errorf("%d kinds of rows, %s: refused %d of %d times", kinds, name, c[alike], draws)
			}
		}
		for name, c := range count {
			t.Logf("%d kinds of rows, %s: refused %d, cannot tell %d, admitted %d of %d", kinds, name, c[alike]+c[theSame], c[untold], c[apart], draws)
		}
	}
}

// An honest random split of a public table is admitted, and its training rows with a row more, or half of them, are refused.
func TestTwinsOfTables(t *testing.T) {
	race.Skip(t)
	dir := needs.Data(t)
	rnd := rand.New(rand.NewPCG(21, 4))
	for name, c := range map[string]struct{ schema, file string }{
		"Adult":  {filepath.Join("..", "examples", "adult", "schema.yaml"), filepath.Join(dir, "adult", "adult.data.gz")},
		"Bank":   {filepath.Join("..", "examples", "bank", "schema.yaml"), filepath.Join(dir, "bank", "bank-full.csv.gz")},
		"clinic": {filepath.Join("..", "examples", "clinic", "schema.yaml"), filepath.Join("..", "examples", "clinic", "patients.csv")},
	} {
		s, err := data.LoadSchema(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		o, err := (&Gate{}).Open(t.Context(), Lab, s, c.file, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		of := func(rows []uint64) *hashes { return &hashes{rows: data.Hashes{rows}, n: len(rows)} }
		rows := slices.Concat(o.by[byName].rows...)
		o.Close()
		refused := 0
		for range 20 {
			rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			k := len(rows) * 4 / 5
			if like := compare(of(rows[:k]), of(rows[k:])); like != apart {
				refused++
			}
			if like := compare(of(rows[:k]), of(rows[:k+1])); like < alike {
				t.Errorf("%s, a row more: %d", name, like)
			}
			if like := compare(of(rows[:k]), of(rows[:k/2])); like < alike {
				t.Errorf("%s, half of it: %d", name, like)
			}
		}
		if refused > 0 {
			t.Errorf("%s: %d of 20 honest splits are not admitted", name, refused)
		}
	}
}

// Disjoint parts of a protected table, each hidden among other people's rows, are scored up to 5 % of it in all. Scoring the same rows
// again is no more of it. The key is random: a part has about 20 of the sketch's 1,024 rows, so the first is refused with a chance of
// 1e-9, and five are scored with one of 1e-7.
func TestParts(t *testing.T) {
	race.Skip(t)
	w := newWorld(t)
	w.charge("clinic", w.file("patients.csv", rows(0, 4000)), "paid")
	first, scored := false, 0
	score := func(i int) error {
		text := rows(80*i, 80*i+80) + strings.TrimPrefix(rows(10000+6000*i, 15000+6000*i), "x,name,y\n")
		g := w.gate()
		g.Unprotected = true
		_, err := w.open(g, Score, "public", w.file(fmt.Sprintf("part%d.csv", i), text), "r")
		return err
	}
	for i := range 50 {
		switch err := score(i); {
		case err == nil:
			scored++
			first = first || i == 0
		case !errors.Is(err, ErrProtected):
			t.Fatal(err)
		}
	}
	if !first || scored > 4 {
		t.Errorf("%d of 50 parts of 2 %% were scored, the first of them %v; want it, and 4 at most", scored, first)
	}
	if err := score(0); err != nil {
		t.Errorf("the same part again: %v", err)
	}
	if w.void("clinic") != nil {
		t.Error("recorded")
	}
}

// The tables of a simulation are one table: parts that are each below 5 % are refused together, whether scored or not.
func TestOwnersAreOneTable(t *testing.T) {
	w := newWorld(t)
	w.charge("clinic", w.file("patients.csv", rows(0, 4000)), "paid")
	g := w.gate()
	var err error
	opened := 0
	for i := 0; i < 20 && err == nil; i++ {
		text := rows(80*i, 80*i+80) + strings.TrimPrefix(rows(10000+6000*i, 15000+6000*i), "x,name,y\n")
		_, err = w.open(g, Simulate, "public", w.file(fmt.Sprintf("owner%d.csv", i), text), "")
		opened++
	}
	if !errors.Is(err, ErrProtected) || opened < 2 {
		t.Errorf("the %d. of twenty owners with 2 %% of a protected table each: %v", opened, err)
	}
}

// Rows that come without names, or under others, are those of the table with names; another order of the columns is not.
func TestPositions(t *testing.T) {
	w := newWorld(t)
	w.charge("clinic", w.file("patients.csv", rows(0, 2000)), "paid")
	renamed := func(names string) string { return names + strings.TrimPrefix(rows(0, 2000), "x,name,y") }
	g := w.gate()
	path := w.file("array.csv", renamed("x0,x1,y"))
	s := tableSchema(t, "other")
	for i, name := range []string{"x0", "x1"} {
		s.Columns[i].Name = name
	}
	for _, p := range []Purpose{Train, Lab, Score} {
		if _, err := g.Open(t.Context(), p, s, path, data.Options{}); !errors.Is(err, ErrProtected) {
			t.Errorf("%s of the columns under other names: %v", p, err)
		}
	}
	other := w.file("other.csv", "x0,x1,y"+strings.TrimPrefix(rows(5000, 7000), "x,name,y"))
	if _, err := g.Open(t.Context(), Lab, s, other, data.Options{}); err != nil {
		t.Errorf("other people: %v", err)
	}
}

// Of commands that begin at once with a new state, each keeps a sketch under the one key.
func TestFirstRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	const runs = 6
	var ready, done sync.WaitGroup
	ready.Add(runs)
	for i := range runs {
		path := w.file(fmt.Sprintf("table%d.csv", i), rows(10_000*i, 10_000*i+500))
		done.Go(func() {
			g := Gate{Ledger: w.ledger}
			if err := g.ask(t.Context(), Lab); err != nil { // each has a key of its own in memory
				t.Error(err)
			}
			ready.Done()
			ready.Wait()
			in := admission{gate: &g, o: &Opened{purpose: Lab, dataset: fmt.Sprint("d", i), gate: &g}, path: path}
			if err := in.read(t.Context(), tableSchema(t, fmt.Sprint("d", i)), path, data.Options{}); err != nil {
				t.Error(err)
			} else if _, err := in.o.Take(t.Context(), w.ledger, fmt.Sprint("r", i)); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	kept, err := openTables()
	if err != nil || len(kept.all) != runs {
		t.Fatalf("%d sketches are kept of %d tables: %v", len(kept.all), runs, err)
	}
	w.must(w.ledger.SetBudget(t.Context(), "d3", "record", "", budget))
	half := w.file("half.csv", rows(30_000, 30_250))
	if _, err := w.open(w.gate(), Train, "other", half, ""); !errors.Is(err, ErrProtected) {
		t.Errorf("half of one of them under another name: %v", err)
	}
	if _, err := os.Stat(tablesFile(w, lockFile)); errors.Is(err, fs.ErrNotExist) {
		t.Error("nothing was locked")
	}
}

// Nor does packing, which keeps its hashes in the packed table.
func TestFirstPacksAtOnce(t *testing.T) {
	w := newWorld(t)
	path, gates := w.file("table.csv", rows(0, 500)), [2]Gate{}
	for i := range gates {
		if err := gates[i].ask(t.Context(), Pack); err != nil { // each has a key of its own in memory
			t.Fatal(err)
		}
	}
	for i := range gates {
		if _, err := gates[i].Pack(t.Context(), tableSchema(t, "d"), path, filepath.Join(t.TempDir(), "packed"), data.Options{}); err != nil {
			t.Error(err)
		}
	}
}

var budget = privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}

// TestLeast: the least rows of a large table are those of its sketch, with one row many times, all rows twice, few distinct ones, or none of
// that.
func TestLeast(t *testing.T) {
	const n = 16
	rnd := rand.New(rand.NewPCG(46, 4))
	for _, rows := range []int{0, 1, 64 * n, 64*n + 1, 5000, 40_000} {
		for _, kind := range []string{"distinct", "twice", "one often", "few", "some twice"} {
			var list []uint64
			for i := range rows {
				r := rnd.Uint64()
				switch {
				case kind == "one often" && i%2 == 1:
					r = 1
				case kind == "few":
					r = (r%5 + 1) << 60
				case kind == "some twice" && i%3 == 0, kind == "twice":
					list = append(list, r)
				}
				list = append(list, r)
			}
			short, whole := (&hashes{rows: data.Hashes{list}, n: len(list)}).least(n), (&hashes{rows: data.Hashes{list}, n: len(list)}).sketch().Least(n)
			if !slices.Equal(short.Rows, whole.Rows) || !slices.Equal(short.Times, whole.Times) || short.Last != whole.Last {
				t.Errorf("%d rows, %s: %v, want %v", rows, kind, short, whole)
			}
		}
	}
}
