package access

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/twins"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/schema"
)

func TestMain(m *testing.M) { os.Exit(needs.Home(m)) }

// world is a ledger in which dataset "clinic" has a charged run on some rows.
type world struct {
	*testing.T
	dir    string
	ledger *ledger.Ledger
	said   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	w := &world{T: t, dir: t.TempDir()}
	var err error
	if w.ledger, err = ledger.Open(t.Context(), filepath.Join(w.dir, "ledger.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.ledger.Close() })
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// rows are those of numbers from a to b-1, each of another person.
func rows(a, b int) string {
	var s strings.Builder
	s.WriteString("x,name,y\n")
	for i := a; i < b; i++ {
		fmt.Fprintf(&s, "%d,n%d,%s\n", i%100, i, []string{"no", "yes"}[i%2])
	}
	return s.String()
}

func (w *world) file(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

func tableSchema(t testing.TB, dataset string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s", []byte("dataset: "+dataset+"\nrows: 20000\ncolumns:\n  - {name: x, type: numeric, min: 0, max: 100}\n  - {name: name, type: ignore}\n  - {name: y, type: label, classes: [no, yes]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gate is one of a new command.
func (w *world) gate() *Gate {
	return &Gate{Ledger: w.ledger, Notice: func(text string) { w.said += text + "\n" }}
}

// open opens a file; it is taken, too, for a run of that name.
func (w *world) open(g *Gate, p Purpose, dataset, path, run string, train ...*Opened) (*Opened, error) {
	w.Helper()
	o, err := g.Open(w.Context(), p, tableSchema(w, dataset), path, data.Options{}, train...)
	if err == nil && run != "" {
		_, err = o.Take(w.Context(), w.ledger, run)
	}
	return o, err
}

// charge is a training run of the dataset on a file.
func (w *world) charge(dataset, path, run string) {
	w.Helper()
	w.chargeAs(tableSchema(w, dataset), path, run)
}

func (w *world) chargeAs(s *schema.Schema, path, run string) {
	w.Helper()
	o, err := w.gate().Open(w.Context(), Train, s, path, data.Options{})
	w.must(err)
	m := mark(w.ledger, o.Digest())
	var parts [][]byte
	for _, d := range o.Parts() {
		p := mark(w.ledger, d)
		parts = append(parts, p[:])
	}
	_, err = w.ledger.Reserve(w.Context(), ledger.Reservation{Dataset: s.Dataset, Unit: "record", Adjacency: privacy.AddRemove, Run: run, Epsilon: 0.1, Delta: 1e-7, Mark: m[:], Parts: parts})
	w.must(err)
	_, err = o.Take(w.Context(), w.ledger, run)
	w.must(err)
}

func (w *world) void(dataset string) *ledger.Access {
	w.Helper()
	d, err := w.ledger.Dataset(w.Context(), dataset)
	if errors.Is(err, ledger.ErrUnknownDataset) {
		return nil
	}
	w.must(err)
	return d.Void
}

// A1: protected rows are known by their content, whatever name they are given. What is exact is
// refused, or with Void recorded on the dataset that they are protected as.
func TestA1OneGate(t *testing.T) {
	w := newWorld(t)
	patients := w.file("patients.csv", rows(0, 2000))
	w.charge("clinic", patients, "paid")
	others := w.file("others.csv", rows(5000, 6000))
	for _, p := range []Purpose{Test, Score, Lab, Simulate, Verify, Check} {
		g := w.gate()
		g.Unprotected = true // never overrides a match
		if o, err := w.open(g, p, "another", patients, "r"); !errors.Is(err, ErrProtected) {
			t.Errorf("%s of protected rows under another name: %v, %v", p, o, err)
		} else if strings.Contains(err.Error(), "n1") {
			t.Errorf("%v", err)
		}
		g.Unprotected = false
		if _, err := w.open(g, p, "clinic", patients, "r"); !errors.Is(err, ErrProtected) {
			t.Errorf("%s of protected rows under their name: %v", p, err)
		}
		if _, err := w.open(g, p, "another", others, ""); err != nil {
			t.Errorf("%s of other rows: %v", p, err)
		}
	}
	// By its name a dataset is protected too: an edited file is still the dataset's.
	if _, err := w.open(w.gate(), Score, "clinic", others, ""); !errors.Is(err, ErrWouldEnd) {
		t.Errorf("scores of other rows of a protected dataset: %v", err)
	}
	if _, err := w.open(w.gate(), Train, "another", patients, ""); !errors.Is(err, ErrProtected) {
		t.Errorf("training under another name: %v", err)
	}
	if _, err := w.open(w.gate(), Train, "clinic", patients, ""); err != nil {
		t.Errorf("training under its own name: %v", err)
	}
	if _, err := w.open(w.gate(), Party, "another", patients, ""); !errors.Is(err, ErrProtected) {
		t.Errorf("an owner of a network under another name: %v", err)
	}
	for _, p := range []Purpose{Predict, Pack, Synthetic} {
		if _, err := w.open(w.gate(), p, "another", patients, ""); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if w.void("clinic") != nil {
		t.Fatal("a refusal ended the guarantee")
	}
	g := w.gate()
	g.Void = true
	_, err := w.open(g, Test, "another", patients, "looker")
	w.must(err)
	if v := w.void("clinic"); v == nil || v.Run != "looker" {
		t.Errorf("the dataset that the rows are protected as says %+v", v)
	}
	if w.void("another") != nil {
		t.Error("a score of test rows was recorded on the dataset of the schema")
	}
	// There is nothing left to lose: recorded, and not refused.
	_, err = w.open(w.gate(), Lab, "another", patients, "lab")
	w.must(err)
}

// A dataset is protected by a budget, too, and rows are known by each content that it ever had.
func TestA1BudgetProtects(t *testing.T) {
	w := newWorld(t)
	first := w.file("first.csv", rows(0, 1000))
	_, err := w.open(w.gate(), Lab, "clinic", first, "lab")
	w.must(err)
	if _, err := w.open(w.gate(), Lab, "other", first, "lab2"); err != nil {
		t.Errorf("rows of a dataset without a budget or a charged run: %v", err)
	}
	w.must(w.ledger.SetBudget(w.Context(), "clinic", "record", "", privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}))
	if _, err := w.open(w.gate(), Train, "other", first, ""); !errors.Is(err, ErrProtected) {
		t.Errorf("%v", err)
	}
}

// A mixture of a dataset's rows with another's is neither's: it may be trained on under no name, and does not
// open the way for the other's rows.
func TestA1Mixture(t *testing.T) {
	w := newWorld(t)
	w.charge("clinic", w.file("patients.csv", rows(0, 2000)), "paid")
	w.charge("other", w.file("own.csv", rows(5000, 8000)), "own")
	mix := w.file("mix.csv", rows(0, 2000)+strings.TrimPrefix(rows(5000, 8000), "x,name,y\n"))
	for _, name := range []string{"clinic", "other"} {
		if _, err := w.open(w.gate(), Train, name, mix, ""); !errors.Is(err, ErrProtected) {
			t.Errorf("under %s: %v", name, err)
		}
	}
	if _, err := w.open(w.gate(), Train, "clinic", w.file("newer.csv", rows(0, 2100)), ""); err != nil {
		t.Errorf("a newer version of its own table: %v", err)
	}
}

// The parts of a table on several machines are known, each as a whole, whatever parts stand beside them.
func TestA1Parts(t *testing.T) {
	w := newWorld(t)
	patients := w.file("patients.csv", rows(0, 2000))
	w.charge("clinic", patients, "paid")
	o, err := w.open(w.gate(), Predict, "x", patients, "")
	w.must(err)
	if _, err := w.gate().Remote(t.Context(), Train, tableSchema(t, "third"), [32]byte{1}, [][32]byte{o.Digest(), {2}}, [][]byte{o.Sent(), o.Sent()}, nil); !errors.Is(err, ErrProtected) {
		t.Errorf("a part is protected under another name: %v", err)
	}
	m := mark(w.ledger, [32]byte{7})
	_, err = w.ledger.Reserve(t.Context(), ledger.Reservation{Dataset: "parts", Unit: "record", Adjacency: privacy.AddRemove, Run: "parts", Epsilon: 0.1, Mark: make([]byte, 32), Parts: [][]byte{m[:]}})
	w.must(err)
	known, err := w.ledger.Known(t.Context())
	w.must(err)
	for _, k := range known {
		if k.Dataset == "parts" && !k.Marks[m] {
			t.Error("the mark of a part is not in the ledger")
		}
	}
}

// A table of several files is protected as a whole, and so is each of its files, by their marks alone; and a file that is
// protected stays so beside others.
func TestA1Files(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/dev/null/none") // no hashes of rows
	w := newWorld(t)
	one, two, three := w.file("v-1.csv", rows(0, 1000)), w.file("v-2.csv", rows(1000, 2000)), w.file("three.csv", rows(2000, 3000))
	w.charge("clinic", filepath.Join(w.dir, "v-*.csv"), "paid")
	w.charge("other", three, "own")
	for _, path := range []string{one, two, filepath.Join(w.dir, "v-*.csv"), two + data.Plus + one, two + data.Plus + w.file("new.csv", rows(5000, 5100))} {
		for _, p := range []Purpose{Test, Score, Lab, Simulate, Verify, Check} {
			if _, err := w.open(w.gate(), p, "another", path, ""); !errors.Is(err, ErrProtected) {
				t.Errorf("%s of %s: %v", p, path, err)
			}
		}
		if _, err := w.open(w.gate(), Train, "another", path, ""); !errors.Is(err, ErrProtected) {
			t.Errorf("training on %s under another name: %v", path, err)
		}
		if _, err := w.open(w.gate(), Train, "clinic", path, ""); err != nil {
			t.Errorf("training on %s under its own name: %v", path, err)
		}
	}
	for _, name := range []string{"clinic", "other"} { // a mixture of two datasets is neither
		if _, err := w.open(w.gate(), Train, name, one+data.Plus+three, ""); !errors.Is(err, ErrProtected) {
			t.Errorf("a mixture under %s: %v", name, err)
		}
	}
	g := w.gate()
	tr, err := w.open(g, Train, "clinic", one+data.Plus+two, "")
	w.must(err)
	if _, err := w.open(g, Test, "x", two, "", tr); !errors.Is(err, ErrOverlap) {
		t.Errorf("a training file as test rows: %v", err)
	}

	// An access without a guarantee is one of each file.
	four, five := w.file("four.csv", rows(6000, 7000)), w.file("five.csv", rows(7000, 8000))
	_, err = w.open(w.gate(), Lab, "lab", four+data.Plus+five, "lab")
	w.must(err)
	o, err := w.open(w.gate(), Train, "later", five, "")
	w.must(err)
	if o.before == "" {
		t.Error("a file that was accessed without a guarantee enters as if it was not")
	}
}

// Where the state cannot be read, what is in memory together is compared all the same, and a damaged sketch
// leaves the others.
func TestA3StateThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.charge("clinic", w.file("patients.csv", rows(0, 2000)), "paid")
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sotto", "tables")
	w.must(os.WriteFile(filepath.Join(dir, "junk.json"), []byte("junk"), 0o600))
	less := w.file("less.csv", rows(1, 2000))
	if _, err := w.open(w.gate(), Score, "x", less, ""); !errors.Is(err, ErrProtected) || !strings.Contains(w.said, "junk.json: damaged") {
		t.Errorf("beside a damaged sketch: %v, %q", err, w.said)
	}
	t.Setenv("XDG_STATE_HOME", "/dev/null/none")
	g := w.gate()
	tr, err := w.open(g, Train, "fresh", w.file("other.csv", rows(3000, 5000)), "")
	w.must(err)
	if _, err := w.open(g, Test, "fresh", w.file("part.csv", rows(3001, 5000)), "", tr); !errors.Is(err, ErrOverlap) {
		t.Errorf("test rows that are training rows, without a state: %v", err)
	}
}

// A2: of test rows more than 5 % may not be training rows. The count is exact.
func TestA2TestRowsAreTrainingRows(t *testing.T) {
	w := newWorld(t)
	whole := rows(0, 2000)
	train := w.file("train.csv", whole)
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"the same file", whole, true},
		{"another order", reversed(whole), true},
		{"each row twice", whole + strings.TrimPrefix(whole, "x,name,y\n"), true},
		{"half", rows(0, 1000), true},
		{"less one row", rows(1, 2000), true},
		{"one row more", rows(0, 2001), true},
		{"5.1 %", rows(1949, 2949), true},
		{"5 %", rows(1950, 2950), false},
		{"all of them among 50 times as many others", rows(0, 100000), true},
		{"none", rows(3000, 4000), false},
		{"nobody", "x,name,y\n", false},
	} {
		path := w.file("test.csv", c.text)
		g := w.gate()
		tr, err := w.open(g, Train, "clinic", train, "")
		w.must(err)
		if _, err = w.open(g, Test, "clinic", path, "", tr); errors.Is(err, ErrOverlap) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if o, err := w.open(g, Lab, "clinic", train, ""); err != nil {
			t.Error(err)
		} else if _, err := w.open(g, Test, "clinic", path, "", o); err != nil { // what is trained on is recorded
			t.Errorf("%s in the lab: %v", c.name, err)
		}
	}
	if w.void("clinic") != nil {
		t.Fatal("recorded")
	}
	g := w.gate()
	g.Void = true
	tr, err := w.open(g, Train, "clinic", train, "")
	w.must(err)
	_, err = w.open(g, Test, "clinic", train, "run", tr)
	w.must(err)
	if w.void("clinic") == nil {
		t.Error("scores of training rows are not recorded")
	}
}

func reversed(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	out := lines[0]
	for i := len(lines) - 1; i > 0; i-- {
		out += lines[i]
	}
	return out
}

// A3: parts and copies of protected rows are known in later commands, by the sketch in the
// owner's state; without that by the whole content only.
func TestA3SubsetsAndCopies(t *testing.T) {
	t.Run("new key", func(t *testing.T) { subsetsAndCopies(t, newWorld(t)) })
	t.Run("key of an earlier build", func(t *testing.T) {
		w := newWorld(t)
		key, earlier := tablesFile(w, keyFile), bytes.Repeat([]byte{7}, sha256.Size)
		w.must(os.MkdirAll(filepath.Dir(key), 0o700))
		w.must(os.WriteFile(key, earlier, 0o600))
		subsetsAndCopies(t, w)
		if now, err := os.ReadFile(key); err != nil || !bytes.Equal(now, earlier) {
			t.Errorf("the key became %x, %v", now, err)
		}
	})
}

// tablesFile is a file of the owner's state of tables.
func tablesFile(w *world, name string) string {
	return filepath.Join(os.Getenv("XDG_STATE_HOME"), "sotto", "tables", name)
}

func subsetsAndCopies(t *testing.T, w *world) {
	patients := w.file("patients.csv", rows(0, 3000))
	w.charge("clinic", patients, "paid")
	for _, c := range []struct {
		name, text string
		known      bool
	}{
		{"less one row", rows(0, 2999), true},
		{"one row more", rows(0, 3001), true},
		{"another order", reversed(rows(0, 3000)), true},
		{"half of it", rows(0, 1500), true},
		{"half of it among others", rows(1500, 4500), true},
		{"a tenth of it in a table of its size", rows(2700, 5700), true},
		{"a table that holds it and 40 times as many others", rows(0, 120000), true},
		{"others", rows(10000, 13000), false},
		{"nobody", "x,name,y\n", false},
	} {
		path := w.file("copy.csv", c.text)
		if _, err := w.open(w.gate(), Lab, "copy", path, ""); errors.Is(err, ErrProtected) != c.known {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := w.open(w.gate(), Train, "copy", path, ""); errors.Is(err, ErrProtected) != c.known {
			t.Errorf("%s, trained on under another name: %v", c.name, err)
		}
		if _, err := w.open(w.gate(), Train, "clinic", path, ""); err != nil {
			t.Errorf("%s, trained on under its name: %v", c.name, err)
		}
	}
	// The sketch goes through other forms of the table.
	pack := filepath.Join(w.dir, "part.pack")
	_, err := w.gate().Pack(w.Context(), tableSchema(t, "clinic"), w.file("part.csv", rows(0, 2000)), pack, data.Options{})
	w.must(err)
	if _, err := w.open(w.gate(), Lab, "copy", pack, ""); !errors.Is(err, ErrProtected) {
		t.Errorf("a packed part: %v", err)
	}
	// A new ledger knows nothing of it.
	other := newWorldAt(t, w.dir)
	if _, err := other.open(other.gate(), Lab, "copy", patients, ""); err != nil {
		t.Errorf("another ledger: %v", err)
	}
	// Without the state the whole content is still known, a part is not.
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if _, err := w.open(w.gate(), Lab, "copy", patients, ""); !errors.Is(err, ErrProtected) {
		t.Errorf("the whole: %v", err)
	}
	if _, err := w.open(w.gate(), Lab, "copy", w.file("copy.csv", rows(0, 2999)), ""); err != nil {
		t.Errorf("a part, without the state: %v", err)
	}
}

func newWorldAt(t *testing.T, dir string) *world {
	t.Helper()
	w := &world{T: t, dir: dir}
	var err error
	w.ledger, err = ledger.Open(t.Context(), filepath.Join(t.TempDir(), "other.db"))
	w.must(err)
	t.Cleanup(func() { w.ledger.Close() })
	return w
}

// A3: m rows of a protected table of n distinct rows are known with probability 1 − (1 − k/n)^m.
// 400 draws: the count is outside five standard deviations with probability below 1e-6. Seeded.
func TestA3DetectionProbability(t *testing.T) {
	const n, draws = 50_000, 400
	r := rand.New(rand.NewPCG(17, 10))
	all := make([]uint64, n)
	for i := range all {
		all[i] = r.Uint64()
	}
	of := func(rows []uint64) [2]*hashes { return [2]*hashes{{rows: data.Hashes{rows}, n: len(rows)}} }
	tab := &tables{all: []*known{{marks: [][32]byte{{1}}, by: [2]*sketch{sketchOf(of(all)[0].sketch())}}}}
	for _, m := range []int{1, 10, 50, 200} {
		found := 0
		for range draws {
			part := make([]uint64, m)
			for i, k := range r.Perm(n)[:m] {
				part[i] = all[k]
			}
			if tab.alike(of(part), false, nil, nil) != nil {
				found++
			}
		}
		p := 1 - math.Pow(1-sketchSize/float64(n), float64(m))
		if want, spread := draws*p, math.Sqrt(draws*p*(1-p)); math.Abs(float64(found)-want) > 5*spread+1 {
			t.Errorf("%d rows: known %d of %d times; want about %.0f ± %.0f", m, found, draws, want, spread)
		} else {
			t.Logf("%d of %d rows: known %d of %d times; 1 − (1 − k/n)^m = %.3f", m, n, found, draws, p)
		}
	}
	// Two tables that share 4 % are told apart from one that shares 8 %: the estimate's standard deviation is about 0.6 %.
	for share, want := range map[float64]bool{0.02: false, 0.10: true} {
		other := make([]uint64, n)
		for i := range other {
			if other[i] = r.Uint64(); i < int(share*n) {
				other[i] = all[i]
			}
		}
		if got := tab.alike(of(other), false, nil, nil) != nil; got != want {
			t.Errorf("a table of which %v is protected: %v", share, got)
		}
	}
}

// What the state holds: hashes under a key, as many for every table.
func TestSketchShowsNoSize(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 1024, 5000} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		hashes := make([]uint64, n)
		for i := range hashes {
			hashes[i] = r.Uint64()
		}
		slices.Sort(hashes)
		if s := sketchOf(twins.Of(hashes)); len(s.rows) != sketchSize || len(s.times) != sketchSize {
			t.Errorf("%d rows: %d hashes", n, len(s.rows))
		}
	}
	w := newWorld(t)
	w.charge("clinic", w.file("few.csv", rows(0, 3)), "paid")
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sotto", "tables")
	entries, err := os.ReadDir(dir)
	w.must(err)
	if len(entries) != 3 { // a key, a lock and a sketch
		t.Errorf("found %v", entries)
	}
	for _, e := range entries {
		info, err := e.Info()
		w.must(err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", e.Name(), info.Mode())
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	// A damaged file is named, and the whole content is known without it.
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			w.must(os.WriteFile(filepath.Join(dir, e.Name()), []byte("{"), 0o600))
		}
	}
	if _, err := w.open(w.gate(), Lab, "other", filepath.Join(w.dir, "few.csv"), ""); !errors.Is(err, ErrProtected) || !strings.Contains(w.said, "damaged; delete it") {
		t.Errorf("%v, %q", err, w.said)
	}
}

// A4: the first access counts. A table that was accessed without a guarantee, under whatever name and even
// in part, has no clean statement when it is trained on.
func TestA4FirstAccessIsRemembered(t *testing.T) {
	w := newWorld(t)
	patients := w.file("patients.csv", rows(0, 2000))
	_, err := w.open(w.gate(), Lab, "play", w.file("part.csv", rows(0, 1500)), "lab")
	w.must(err)
	if w.void("play") == nil {
		t.Fatal("a lab access of unknown rows is not recorded")
	}
	w.charge("clinic", patients, "paid")
	if v := w.void("clinic"); v == nil || !strings.Contains(v.Why, `as dataset "play"`) && !strings.Contains(v.Why, "as dataset play") {
		t.Errorf("rows that were accessed before have the statement of %+v", v)
	}
	before, err := w.ledger.Head(t.Context())
	w.must(err)
	w.charge("clinic", patients, "again")
	if after, err := w.ledger.Head(t.Context()); err != nil || after.Seq != before.Seq+1 {
		t.Errorf("a second run leaves %d entries, %v", after.Seq-before.Seq, err)
	}
	// A synthetic table in the lab says nothing of the rows that the dataset enters with later.
	_, err = w.open(w.gate(), Lab, "hospital", w.file("made.csv", rows(50000, 51000)), "lab2")
	w.must(err)
	w.charge("hospital", w.file("real.csv", rows(20000, 21000)), "real")
	if v := w.void("hospital"); v != nil {
		t.Errorf("rows that nobody accessed before: %+v", v)
	}
	w.charge("ward", w.file("others.csv", rows(9000, 9500)), "clean")
	if v := w.void("ward"); v != nil {
		t.Errorf("other rows: %+v", v)
	}
}

// Predictions, packing and made rows leave no state behind, nor does what is refused.
func TestNothingIsLeftBehind(t *testing.T) {
	w := newWorld(t)
	path := w.file("patients.csv", rows(0, 100))
	for _, p := range []Purpose{Predict, Synthetic} {
		g := Gate{}
		o, err := g.Open(w.Context(), p, tableSchema(t, "clinic"), path, data.Options{})
		w.must(err)
		_, err = o.Take(w.Context(), nil, "")
		w.must(err)
	}
	bad := w.file("bad.csv", rows(0, 10)+"1,x,perhaps\n")
	if _, err := w.open(w.gate(), Lab, "clinic", bad, "r"); err == nil {
		t.Error("a bad row was read")
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("XDG_STATE_HOME"), "sotto", "tables")); !os.IsNotExist(err) {
		t.Errorf("there is a state of tables: %v", err)
	}
	g := Gate{}
	o, err := g.Open(w.Context(), Lab, tableSchema(t, "clinic"), path, data.Options{})
	w.must(err)
	if _, err := o.Take(w.Context(), nil, ""); err == nil || !o.Records() {
		t.Errorf("an access that is to be recorded was taken without a ledger: %v", err)
	}
}

// How many test rows of real tables equal training rows by chance, for docs/explanation/privacy.md.
func TestNaturalDuplicates(t *testing.T) {
	clinic := filepath.Join("..", "examples", "clinic")
	s, err := data.LoadSchema(filepath.Join(clinic, "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	measure := func(name string, s *schema.Schema, train, test string) float64 {
		t.Helper()
		g := Gate{}
		a, err := g.Open(t.Context(), Lab, s, train, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := g.Open(t.Context(), Test, s, test, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		training := map[uint64]bool{}
		for _, r := range slices.Concat(a.by[byName].rows...) {
			training[r] = true
		}
		equal := 0
		for _, r := range slices.Concat(b.by[byName].rows...) {
			if training[r] {
				equal++
			}
		}
		share := float64(equal) / float64(b.by[byName].n)
		t.Logf("%s: %.3f %% of %d test rows equal one of %d training rows; compare says %d", name, 100*share, b.by[byName].n, a.by[byName].n, compare(a.by[byName], b.by[byName]))
		return share
	}
	if v := measure("clinic", s, filepath.Join(clinic, "patients.csv"), filepath.Join(clinic, "heldout.csv")); v > 0.001 {
		t.Errorf("clinic: %v", v)
	}
	dir := needs.Data(t)
	adult, err := data.LoadSchema(filepath.Join("..", "examples", "adult", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The labels of Adult's test file end in a point, so its rows as published equal none.
	text := bytes.ReplaceAll(unzipped(t, filepath.Join(dir, "adult", "adult.test.gz")), []byte("K.\n"), []byte("K\n"))
	plain := filepath.Join(t.TempDir(), "adult.test")
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := measure("Adult, labels without the point", adult, filepath.Join(dir, "adult", "adult.data.gz"), plain); v > 0.01 {
		t.Errorf("Adult: %v", v)
	}
	bank, err := data.LoadSchema(filepath.Join("..", "examples", "bank", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	head, half := halves(t, filepath.Join(dir, "bank", "bank-full.csv.gz"))
	if v := measure("Bank, its second half against its first", bank, head, half); v > 0.01 {
		t.Errorf("Bank: %v", v)
	}
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// halves are the two halves of a gzipped CSV, each with its header.
func halves(t *testing.T, path string) (first, second string) {
	t.Helper()
	lines := bytes.SplitAfter(unzipped(t, path), []byte("\n"))
	half := 1 + (len(lines)-1)/2
	put := func(name string, rows [][]byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, append(bytes.Clone(lines[0]), bytes.Join(rows, nil)...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return put("first.csv", lines[1:half]), put("second.csv", lines[half:])
}

var _ data.Gate = (*admission)(nil)

// A table is admitted by its content, so nothing is decided before it was read to its end.
func TestCanceled(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := w.gate().Open(ctx, Lab, tableSchema(t, "clinic"), w.file("f.csv", rows(0, 5000)), data.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
