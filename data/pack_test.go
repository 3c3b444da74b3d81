package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
)

// sameTable: whether a table is mapped is no part of it.
var sameTable = cmpopts.IgnoreUnexported(Table{})

// packOf packs content and gives the packed file.
func packOf(t testing.TB, s *schema.Schema, content string, opt Options) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "t.pack")
	if _, err := packTable(context.Background(), admit(), s, writeFile(t, "file", content), dst, opt); err != nil {
		t.Fatal(err)
	}
	return dst
}

// svmRows are LIBSVM rows for the schema svm.
func svmRows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d %d:0.%d 5:%d\n", i%2*2-1, 1+i%4, 1+i%9, i%3-1)
	}
	return b.String()
}

func smallRows(n int) string {
	var b strings.Builder
	b.WriteString("age,colour,id,gain,sick\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,%s,x,%d,%s\n", i%120-5, []string{"red", "green", "blue"}[i%3], i*7%2000, []string{"yes", "no"}[i/2%2])
	}
	return b.String()
}

// TestPack: a packed table is the table, bit for bit, with its counts and digest.
func TestPack(t *testing.T) {
	number := strings.Replace(small, `classes: ["no", "yes"], strip: "."`, "min: 0, max: 100", 1)
	for name, c := range map[string]struct{ schema, content string }{
		"dense":   {small, smallRows(3*BlockRows + 17)},
		"l1":      {"norm: l1\n" + small, smallRows(100)},
		"hats":    {strings.ReplaceAll(small, "type: numeric,", "type: numeric, hats: 5,"), smallRows(BlockRows + 17)},
		"pairs":   {"pairs: [[age, gain]]\n" + small, smallRows(BlockRows + 17)},
		"one":     {small, smallRows(1)},
		"full":    {small, smallRows(BlockRows)},
		"sparse":  {svm, svmRows(2*BlockRows + 5)},
		"empty":   {svm, "1\n-1\n1\n"}, // rows of zeros
		"dropped": {"on_bad_row: drop\n" + small, strings.Replace(smallRows(2000), "red,x,", "red,x,NaN", 600)},
		"units":   {visits, visitsFile(visitRows(3*BlockRows + 17))},
		"blank":   {visits, strings.ReplaceAll(visitsFile(visitRows(50)), "p2,", " ,")},
		"number":  {number, "age,colour,id,gain,sick\n1,red,x,2,17.25\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, c.schema)
			opts := []Options{{KeepBad: true}, {KeepBad: true, Unlabeled: true}}
			if s.UnitRows > 0 {
				opts = opts[:1] // which rows of a unit count, their labels say too
			}
			for _, opt := range opts {
				var want, got [sha256.Size]byte
				tab, stats, err := readTable(context.Background(), digestTo(&want), s, writeFile(t, "file", c.content), opt)
				if err != nil {
					t.Fatal(err)
				}
				checkTable(t, tab)
				path := packOf(t, s, zipped(c.content), Options{})
				packed, counts, err := readTable(context.Background(), digestTo(&got), s, path, opt)
				if err != nil {
					t.Fatal(err)
				}
				checkTable(t, packed)
				if d := cmp.Diff(tab, packed, sameTable); d != "" {
					t.Error(d)
				}
				if tab.units != nil {
					tab.units.ids = nil // are not written
				}
				if !reflect.DeepEqual(tab.units, packed.units) {
					t.Error("other units")
				}
				if d := cmp.Diff(stats, counts); d != "" {
					t.Error(d)
				}
				if got != want {
					t.Error("the digest is not that of the source")
				}
				if err := packed.Close(); err != nil || packed.Close() != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestPackOfImages(t *testing.T) {
	s := mustParse(t, pictures)
	src := pair(t, idx(2, []int{2, 3}, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6), idx(2, nil, 3, 7), "")
	want, _, err := readTable(context.Background(), admit(), s, src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "t")
	if _, err := packTable(context.Background(), admit(), s, src, dst, Options{}); err != nil {
		t.Fatal(err)
	}
	got, _, err := readTable(context.Background(), admit(), s, dst, Options{Rows: 2, KeepBad: true})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if d := cmp.Diff(want, got, sameTable); d != "" {
		t.Error(d)
	}
}

// TestPackRefuses: what a packed table does not fit is an error of the input.
func TestPackRefuses(t *testing.T) {
	s := mustParse(t, small)
	path := packOf(t, s, smallRows(1500), Options{})
	unlabeled := packOf(t, s, smallRows(3), Options{Unlabeled: true})
	drop := mustParse(t, "on_bad_row: drop\n"+small)
	dropped := packOf(t, drop, strings.Replace(smallRows(2000), "red,x,", "red,x,NaN", 600), Options{})
	other := mustParse(t, strings.Replace(small, "max: 1000", "max: 1001", 1))
	hats := mustParse(t, strings.ReplaceAll(small, "type: numeric,", "type: numeric, encode: hats,"))
	renamed := mustParse(t, strings.NewReplacer("rows: 100", "rows: 7", "dataset: ", "dataset: x").Replace(small))
	for _, c := range []struct {
		s    *schema.Schema
		path string
		opt  Options
		want string
	}{
		{s, path, Options{}, ""},
		{renamed, path, Options{}, ""},
		{hats, path, Options{}, "schema: found a table that was packed under another one"},
		{s.WithPairs(schema.Pair{A: "age", B: "gain"}), path, Options{}, "schema: found a table that was packed under another one"},
		{s, path, Options{Rows: 1500}, ""},
		{s, path, Options{Rows: 1501}, "rows: found 1500 rows; expected exactly 1501"},
		{other, path, Options{}, "schema: found a table that was packed under another one"},
		{s, path, Options{Labels: "l"}, "l: found a file of labels"},
		{s, unlabeled, Options{}, "found a table that was packed without its labels"},
		{s, unlabeled, Options{Unlabeled: true}, ""},
		{s, dropped, Options{}, "found rows that did not fit the schema"},
		{drop, dropped, Options{}, ""},
	} {
		tab, _, err := readTable(context.Background(), admit(), c.s, c.path, c.opt)
		if c.want == "" {
			if err != nil {
				t.Error(err)
			} else {
				tab.Close()
			}
			continue
		}
		if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := packTable(context.Background(), admit(), s, path, path+"2", Options{}); err == nil || !strings.Contains(err.Error(), "found a packed table") {
		t.Error(err)
	}
	// A bad row leaves nothing behind, and no half of a file.
	dir := t.TempDir()
	_, err := packTable(context.Background(), admit(), s, writeFile(t, "bad", smallRows(2000)+"1,red,x,y,yes\n"), filepath.Join(dir, "t"), Options{})
	if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), "column gain: found text that is not a number") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if got, err := LoadSchema(path); err != nil || got.Fingerprint() != s.Fingerprint() || got.Dataset != s.Dataset {
		t.Errorf("the schema of a packed table: %v", err)
	}
}

// visitRows are rows for the schema visits: some bad ones, and units with more rows than
// they may have.
func visitRows(n int) []visit {
	var rows []visit
	for i := range n {
		rows = append(rows, visit{i * i % 7, i % 11, []string{"yes", "no", "no", "perhaps"}[i%4]})
	}
	return rows
}

func TestPackOfUnits(t *testing.T) {
	s := mustParse(t, visits)
	rows := visitRows(4000)
	whole, _ := mustRead(t, s, visitsFile(rows), Options{KeepBad: true})
	path := packOf(t, s, visitsFile(rows), Options{})
	byRow := packOf(t, s, visitsFile(rows), Options{ByRow: true, Unlabeled: true})
	again := filepath.Join(t.TempDir(), "t.pack")
	if err := PackTable(s, whole, again); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, again} {
		tab, _, err := readTable(context.Background(), admit(), s, p, Options{Rows: whole.Units()})
		if err != nil {
			t.Fatal(err)
		}
		checkTable(t, tab)
		if !reflect.DeepEqual(counting(t, tab), counting(t, whole)) {
			t.Error("other rows count than in the text")
		}
		tab.Close()
	}
	few := mustParse(t, strings.Replace(visits, "rows: 3", "rows: 2", 1))
	none := mustParse(t, strings.NewReplacer("unit: {name: patient, rows: 3}\nunits", "rows", "type: unit", "type: ignore").Replace(visits))
	for _, c := range []struct {
		s    *schema.Schema
		path string
		opt  Options
		want string
	}{
		{s, path, Options{ByRow: true}, ""},
		{s, byRow, Options{ByRow: true, Unlabeled: true}, ""},
		{none, byRow, Options{Unlabeled: true}, ""},
		{s, byRow, Options{Unlabeled: true}, "unit: found a table that was packed row by row"},
		{few, path, Options{}, "unit: found a table that was packed for another unit"},
		{none, path, Options{}, "unit: found a table that was packed for another unit"},
		{s, path, Options{Rows: 8}, "units: found 4 units; expected exactly 8"},
	} {
		tab, _, err := readTable(context.Background(), admit(), c.s, c.path, c.opt)
		if c.want == "" {
			if err != nil {
				t.Error(err)
			} else {
				tab.Close()
			}
		} else if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}

	// Right checksums do not give a unit more rows than it may have.
	b, err := os.ReadFile(packOf(t, s, visitsFile(rows[:40]), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	n, d := 40, s.Dim()
	at := padded(4*n*d) + 2*padded(4*n)
	for name, unit := range map[string]int32{"too many rows": 0, "no unit": -1, "no such unit": 99} {
		forged := forge(t, b, func(chunk []byte) {
			for i := range n {
				if chunk[at+padded(4*n)+i] == 0 { // it counts
					binary.LittleEndian.PutUint32(chunk[at+4*i:], uint32(unit))
				}
			}
		})
		if _, _, err := readTable(context.Background(), admit(), s, writeFile(t, "t", string(forged)), Options{}); err == nil || !strings.Contains(err.Error(), "found units that are not as the schema asks") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPackDamaged: no byte of a packed table can be changed or lost, not even
// the zeros between its parts.
func TestPackDamaged(t *testing.T) {
	for name, c := range map[string]struct{ schema, content string }{
		"dense": {small, smallRows(20)}, "sparse": {svm, svmRows(20)}, "units": {visits, visitsFile(visitRows(20))},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, c.schema)
			whole, err := os.ReadFile(packOf(t, s, c.content, Options{}))
			if err != nil {
				t.Fatal(err)
			}
			refused := func(b []byte) {
				t.Helper()
				_, _, err := tableOf(context.Background(), admit(), s, "f", Options{}, &pages{mem: b})
				if !errors.As(err, new(*config.Error)) {
					t.Fatalf("%v", err)
				}
			}
			if _, _, err := tableOf(context.Background(), admit(), s, "f", Options{}, &pages{mem: whole}); err != nil {
				t.Fatal(err)
			}
			for i := range whole {
				whole[i] ^= 1 << (i % 8)
				refused(whole)
				whole[i] ^= 1 << (i % 8)
			}
			for n := range whole {
				refused(whole[:n])
			}
			refused(append(slices.Clone(whole), 0))
		})
	}
}

// forge rewrites a packed file's chunk and makes all its checksums right again.
func forge(t *testing.T, b []byte, change func(chunk []byte)) []byte {
	t.Helper()
	b = slices.Clone(b)
	le := binary.LittleEndian
	offset := le.Uint64(b[16:])
	change(b[packHeader:offset])
	sum := sha256.Sum256(b[packHeader:offset]) // one chunk
	copy(b[len(b)-sha256.Size:], sum[:])
	all := sha256.Sum256(append(slices.Clone(b[:32]), b[offset:]...))
	copy(b[32:], all[:])
	return b
}

// TestPackForged: right checksums do not make a row that is too long, off the
// grid, or of no class. The sensitivity of every sum rests on that.
func TestPackForged(t *testing.T) {
	f32 := func(b []byte, i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
	set := func(b []byte, i int, v float32) { binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v)) }
	s := mustParse(t, small)
	dense, err := os.ReadFile(packOf(t, s, smallRows(4), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	d := s.Dim()
	y := padded(4*4*d) / 4
	norm := y + packAlign/4
	v := mustParse(t, svm)
	sparse, err := os.ReadFile(packOf(t, v, "1 1:0.5 2:0.5\n-1 3:1\n", Options{}))
	if err != nil {
		t.Fatal(err)
	}
	col, val := packAlign/4, 2*packAlign/4
	for name, c := range map[string]struct {
		s      *schema.Schema
		b      []byte
		change func([]byte)
	}{
		"too long":              {s, dense, func(b []byte) { set(b, 0, 2) }},
		"infinite":              {s, dense, func(b []byte) { set(b, 0, float32(math.Inf(1))) }},
		"NaN":                   {s, dense, func(b []byte) { set(b, 0, float32(math.NaN())) }},
		"off the grid":          {s, dense, func(b []byte) { set(b, 0, 0x1p-22) }},
		"another value":         {s, dense, func(b []byte) { set(b, d-1, f32(b, d-1)/2) }},
		"norm understated":      {s, dense, func(b []byte) { set(b, norm, f32(b, norm)/2) }},
		"norm NaN":              {s, dense, func(b []byte) { set(b, norm, float32(math.NaN())) }},
		"no class":              {s, dense, func(b []byte) { set(b, y, 2) }},
		"half a class":          {s, dense, func(b []byte) { set(b, y, 0.5) }},
		"label NaN":             {s, dense, func(b []byte) { set(b, y, float32(math.NaN())) }},
		"start":                 {v, sparse, func(b []byte) { b[0] = 1 }},
		"start beyond":          {v, sparse, func(b []byte) { b[4] = 200 }},
		"start descending":      {v, sparse, func(b []byte) { b[4], b[7] = 0, 128 }},
		"end":                   {v, sparse, func(b []byte) { b[8] = 2 }},
		"column beyond":         {v, sparse, func(b []byte) { b[4*col+16] = 99 }},
		"column negative":       {v, sparse, func(b []byte) { b[4*col+3] = 255 }},
		"columns not ascending": {v, sparse, func(b []byte) { b[4*col+4] = 0 }},
		"sparse too long":       {v, sparse, func(b []byte) { set(b, val, 9) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := forge(t, c.b, c.change)
			path := writeFile(t, "t", string(b))
			_, _, err := readTable(context.Background(), admit(), c.s, path, Options{})
			if err == nil || !strings.Contains(err.Error(), "chunk 1: found rows that are not encoded as the schema asks") {
				t.Errorf("%v", err)
			}
		})
	}
	same := forge(t, dense, func([]byte) {})
	if !bytes.Equal(same, dense) {
		t.Error("forge does not know the format: the tests above test nothing")
	}
	// A row within its bound in the L2 norm is not yet one in the L1 norm.
	one := mustParse(t, "norm: l1\n"+small)
	tight, err := os.ReadFile(packOf(t, one, smallRows(4), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	long := forge(t, tight, func(b []byte) {
		copy(b, dense[packHeader:][:padded(4*4*d)])
		copy(b[4*norm:], dense[packHeader+4*norm:][:16])
	})
	if _, _, err := readTable(context.Background(), admit(), one, writeFile(t, "t", string(long)), Options{}); err == nil || !strings.Contains(err.Error(), "not encoded as the schema asks") {
		t.Error(err)
	}
	next := slices.Clone(dense)
	next[8] = packShorts + 1
	if _, _, err := readTable(context.Background(), admit(), s, writeFile(t, "t", string(next)), Options{}); err == nil || !strings.Contains(err.Error(), "found a packed table of version 4") {
		t.Error(err)
	}
}

// TestSynthPacked: written directly, the table is the one that the text packs to.
func TestSynthPacked(t *testing.T) {
	race.Skip(t)
	for name, src := range map[string]string{"csv": small, "units": unitSmall, "libsvm": strings.Replace(svm, "features: 5", "features: 50", 1),
		"number": strings.Replace(small, `classes: ["no", "yes"], strip: "."`, "min: 50, max: 80", 1)} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, src)
			var text bytes.Buffer
			truth, err := Synth(s, 2500, 3, &text)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := mustRead(t, s, text.String(), Options{})
			path := filepath.Join(t.TempDir(), "t")
			again, err := SynthPacked(s, 2500, 3, path)
			if err != nil || !slices.Equal(again, truth) {
				t.Fatal(err)
			}
			got, _, err := readTable(context.Background(), admit(), s, path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if d := cmp.Diff(want, got, sameTable); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestPackNeedsNoMemory: an open packed table takes a small part of its size from the
// heap. The rest is the file's, in the page cache.
func TestPackNeedsNoMemory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("skipped: on Windows the file is read, not mapped")
	}
	s := mustParse(t, small)
	path := filepath.Join(t.TempDir(), "t")
	if _, err := SynthPacked(s, 200_000, 1, path); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if used := heap() - before; used > st.Size()/20 {
		t.Errorf("%d bytes of the heap for a file of %d", used, st.Size())
	}
	if tab.Rows() != 200_000 {
		t.Error(tab.Rows())
	}
	tab.Close()
}

func BenchmarkOpenPacked(b *testing.B) {
	var sch strings.Builder
	sch.WriteString("dataset: d\ncolumns:\n  - {name: y, type: label, classes: [no, yes]}\n")
	for i := range 100 {
		fmt.Fprintf(&sch, "  - {name: c%d, type: numeric, min: 0, max: 1}\n", i)
	}
	s, err := schema.Parse("s", []byte(sch.String()))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "t")
	if _, err := SynthPacked(s, 20_000, 1, path); err != nil {
		b.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	for b.Loop() {
		tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		tab.Close()
	}
}

func FuzzPack(f *testing.F) {
	s, v := mustParse(f, small), mustParse(f, svm)
	u := mustParse(f, visits)
	for _, p := range []string{packOf(f, s, smallRows(3), Options{}), packOf(f, v, svmRows(3), Options{}), packOf(f, u, visitsFile(visitRows(6)), Options{})} {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false)
		f.Add(b, true)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "t")
	f.Fuzz(func(t *testing.T, b []byte, right bool) {
		b = append([]byte(packMagic), b[min(len(b), 8):]...)
		if len(b) >= packHeader && right { // past the checksum of the footer
			if o := binary.LittleEndian.Uint64(b[16:]); o <= uint64(len(b)) {
				sum := sha256.Sum256(append(slices.Clone(b[:32]), b[o:]...))
				copy(b[32:], sum[:])
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*schema.Schema{s, v, u} {
			tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
			if err != nil {
				if !errors.As(err, new(*config.Error)) {
					t.Fatalf("%T: %v", err, err)
				}
				continue
			}
			checkTable(t, tab)
			tab.Close()
		}
	})
}
