package data

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// hashes are those of a table's raw rows under a key.
func hashes(t *testing.T, key *RowKey, s *schema.Schema, path string, opt Options) []uint64 {
	t.Helper()
	g := &testGate{key: key}
	tab, _, err := readTable(context.Background(), g, s, path, opt)
	if err != nil {
		t.Fatal(err)
	}
	tab.Close()
	return slices.Concat(g.content.Rows...)
}

// A row has one hash, however its file is written: order of columns, form of numbers, gzip,
// packed, database. Any cell counts, one of an ignored column too.
func TestRowHashes(t *testing.T) {
	testRowHashes(t, testKey)
	testRowHashes(t, &RowKey{Secret: []byte("key"), Form: RowWords})
	testRowHashes(t, &RowKey{Secret: []byte("key"), Form: RowText})
}

func testRowHashes(t *testing.T, key *RowKey) {
	s := mustParse(t, small)
	const table = "age,colour,id,gain,sick\n1,red,x,2.5,yes\n30,blue,y,0,no\n1,red,x,2.5,yes\n"
	want := hashes(t, key, s, writeFile(t, "f", table), Options{})
	if len(want) != 3 || want[0] != want[2] || want[0] == want[1] {
		t.Fatalf("hashes %x of two equal rows and another", want)
	}
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "t.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"CREATE TABLE p (id TEXT, age REAL, colour TEXT, sick TEXT, gain)", "INSERT INTO p VALUES ('x', 1, 'red', 'yes', 2.5), ('y', 30, 'blue', 'no', 0), ('x', 1, 'red', 'yes', '2.50')"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	pack := filepath.Join(dir, "t.pack")
	if _, err := packTable(context.Background(), &testGate{key: key}, s, writeFile(t, "f", table), pack, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"columns moved": writeFile(t, "f", "id,sick,gain,colour,age\nx,yes,2.5,red,1\ny,no,0,blue,30\nx,yes,2.5,red,1\n"),
		"other numbers": writeFile(t, "f", "age,colour,id,gain,sick\n1.0,red,x,2.500,yes\n3e1,blue,y,-0,no\n+1,red,x,25e-1,yes\n"),
		"gzip":          writeFile(t, "f", zipped(table)),
		"database":      filepath.Join(dir, "t.db") + "?table=p",
		"packed":        pack,
	} {
		if got := hashes(t, key, s, path, Options{}); !slices.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
	for name, row := range map[string]string{"ignored": "1,red,z,2.5,yes", "feature": "1.25,red,x,2.5,yes", "label": "1,red,x,2.5,no", "moved": "1,red,2.5,x,yes"} {
		got := hashes(t, key, s, writeFile(t, "f", "age,colour,id,gain,sick\n"+strings.ReplaceAll(row, "2.5,x", "2.5,9")+"\n"), Options{})
		if len(got) != 1 || got[0] == want[0] {
			t.Errorf("%s: another row has the same hash", name)
		}
	}
	for _, other := range []*RowKey{{Secret: []byte("another key"), Form: key.Form}, {Secret: key.Secret, Form: (key.Form + 1) % 3}} {
		g := &testGate{key: other}
		if tab, _, err := readTable(context.Background(), g, s, pack, Options{}); err != nil || g.content.Rows != nil {
			t.Errorf("a packed table gives hashes under another key: %x, %v", g.content.Rows, err)
		} else {
			tab.Close()
		}
	}
}

// What a gate refuses there is no table of, and no packed one either.
func TestGateRefuses(t *testing.T) {
	s := mustParse(t, small)
	src := writeFile(t, "f", "age,colour,id,gain,sick\n1,red,x,2.5,yes\n")
	dst := filepath.Join(t.TempDir(), "t.pack")
	if _, err := packTable(context.Background(), refusing{}, s, src, dst, Options{}); err != errRefused {
		t.Errorf("Pack: %v", err)
	}
	if _, err := os.Stat(dst); err == nil {
		t.Error("the packed table is there")
	}
	if _, err := packTable(context.Background(), admit(), s, src, dst, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{src, dst} {
		if tab, stats, err := readTable(context.Background(), refusing{}, s, path, Options{}); !errors.Is(err, errRefused) || tab != nil || stats != nil {
			t.Errorf("Read: %v, %v, %v", tab, stats, err)
		}
		if tab, _, err := readTable(context.Background(), nil, s, path, Options{}); err == nil || tab != nil {
			t.Errorf("Read without a gate: %v, %v", tab, err)
		}
	}
}

type refusing struct{}

const errRefused = chunkError("refused")

func (refusing) RowKey() *RowKey                       { return nil }
func (refusing) Admit(context.Context, *Content) error { return errRefused }

// canonical says what appendCanonical appends. It must not change: packed tables and the owner's state hold hashes
// of this text.
func canonical(cell string) string {
	cell = strings.TrimSpace(cell)
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil || strings.Trim(cell[:1], "+-.0123456789") != "":
		return cell
	case v == 0:
		return "0"
	case math.Abs(v) >= 1e-7 && math.Abs(v) < 1e16:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func TestCanonical(t *testing.T) {
	check := func(cell string) {
		t.Helper()
		if got, want := appendCanonical([]byte("x"), cell), appendCell([]byte("x"), canonical(cell)); string(got) != string(want) {
			t.Errorf("%q becomes %q, want %q", cell, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(rapid.StringMatching(`[+-]?0{0,7}[0-9]{0,17}(\.0{0,8}[0-9]{0,17})?0{0,3}`).Draw(t, "decimal"))
		v := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		check(strconv.FormatFloat(v, 'g', -1, 64))
		if rapid.Bool().Draw(t, "short") {
			v = float64(rapid.Int64Range(-1e15, 1e15).Draw(t, "n")) / powers[rapid.IntRange(0, 15).Draw(t, "places")]
		}
		if v-v == 0 {
			places := rapid.IntRange(0, 15).Draw(t, "tried")
			if got, want := appendNumber([]byte("x"), v, &places), appendCell([]byte("x"), canonical(strconv.FormatFloat(v, 'g', -1, 64))); string(got) != string(want) {
				t.Fatalf("%v becomes %q, want %q", v, got, want)
			}
		}
		check(strconv.FormatFloat(v, 'f', rapid.IntRange(-1, 20).Draw(t, "digits"), 64))
		check(rapid.SampledFrom([]string{"", " ", "-", "\u00a0"}).Draw(t, "head") + rapid.String().Draw(t, "text"))
	})
	for cell, want := range map[string]string{" 1.0": "1", "1e0": "1", "+.5": "0.5", "00012": "12", "01": "1", "-07": "-7", "00": "0", "0": "0", "10": "10", "-0.5": "-0.5", "?": "?", "no": "no", "": "", "1,5": "1,5", "0.000010": "0.00001", "1e-9": "1e-09",
		"nan": "nan", "0x10": "0x10", "-0.0": "0", ".": ".", "+": "+", "-.": "-.", "5.": "5", "-007.50": "-7.5", "0.0000001": "0.0000001", "1e16": "1e+16"} {
		check(cell)
		if got := canonical(cell); got != want {
			t.Errorf("%q becomes %q, want %q", cell, got, want)
		}
	}
}

// TestRowHashesOfEarlierBuilds: rows of text, numbers, pairs and images have the hashes that the build of 23 November
// 2026 (42b0885) gave them under a key of its own, and those of 24 November under another. Tables are compared with hashes of
// earlier builds.
func TestRowHashesOfEarlierBuilds(t *testing.T) {
	for form, want := range map[RowForm]string{
		RowText:  "42000 609e4f6545dfaa0dd6a344e4a87f321067852d7c48eeed7865af730ea48f90a0",
		RowWords: "42000 5b1ccc8a94e062daee0bd09c9dcccb18a097cda39a3e77de483f416980ba68df",
	} {
		if got := manyHashes(&RowKey{Secret: []byte("the key of a ledger"), Form: form}); got != want {
			t.Errorf("the hashes of form %d are %s, want %s", form, got, want)
		}
	}
}

// manyHashes is the number of hashes of rows of all kinds, and a hash of them.
func manyHashes(key *RowKey) string {
	rng := rand.New(rand.NewPCG(21, 2))
	number := func() float64 {
		switch rng.IntN(8) {
		case 0:
			return float64(rng.IntN(2000) - 1000)
		case 1:
			return math.Float64frombits(rng.Uint64())
		case 2:
			return rng.NormFloat64() * 1e-5
		case 3:
			return float64(float32(rng.NormFloat64()))
		}
		return math.Round(rng.NormFloat64()*1e4) / 1e4
	}
	odd := []string{"", " ", "?", "0", "-0.0", "+1", "007", ".5", "-.50", "5.", "1e3", "0.00001", "-0.000010", "0.000001", "1e-7", "123456789012345", "1234567890123456", "0.123456789012345",
		"12345678.90123450", "99999999999999999999", "nan", "-Inf", "0x10", "1_0", "-", ".", " 1.0 ", "\u00a02", "red", "M\u00fcnchen", "no.", "100000000000000000000000000"}
	cell := func() string {
		switch rng.IntN(10) {
		case 0, 1:
			return odd[rng.IntN(len(odd))]
		case 2:
			return strconv.FormatFloat(number(), 'f', rng.IntN(20), 64)
		case 3:
			return strconv.FormatFloat(number(), 'e', rng.IntN(20)-1, 64)
		}
		return strconv.FormatFloat(number(), 'g', -1, 64)
	}
	h := newRowHasher(key)
	names := make([]string, 12)
	for i := range names {
		names[i] = "x" + strconv.Itoa(i)
	}
	h.columns(names, "")
	cells, values := make([]string, len(names)), make([]Value, len(names))
	for range 20_000 {
		for i := range cells {
			cells[i] = cell()
			values[i] = Value{Number: number(), Is: Number}
			if rng.IntN(6) == 0 {
				values[i] = Value{Text: cell(), Is: Kind(2 * rng.IntN(2))}
			}
		}
		h.cells(cells)
		h.values(values)
	}
	image := make([]byte, 784)
	for i := range 1000 {
		for j := range image {
			image[j] = byte(rng.Uint32())
		}
		h.image(image[:i%len(image)], byte(i%10))
		line := cell()
		for j := range rng.IntN(10) {
			line += " " + strconv.Itoa(j+1) + ":" + cell()
		}
		h.libsvm([]byte(line + "\n"))
	}
	var all []byte
	for _, r := range h.rows {
		all = binary.LittleEndian.AppendUint64(all, r)
	}
	return fmt.Sprintf("%d %x", len(h.rows), sha256.Sum256(all))
}

// Rows have the same words of [RowWords] if and only if their cells have the same canonical text: numbers of one value are one
// cell, and no text runs into the next. TestMeanings has those of [RowMeaning].
func TestRowWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.OneOf(rapid.StringMatching(`[-+]?0?[0-2]\.?0?(e[01])?`), rapid.StringMatching("[ab\x00]{0,17}"), rapid.SampledFrom([]string{"nan", "+Inf", "-inf", "1e999", "0x2", " 1 "}))
		n := rapid.IntRange(1, 4).Draw(t, "cells")
		a, b := rapid.SliceOfN(cell, n, n).Draw(t, "a"), rapid.SliceOfN(cell, n, n).Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			copy(b[1:], a[1:])
		}
		h := newRowHasher(&RowKey{Secret: testKey.Secret, Form: RowWords})
		h.columns(make([]string, n), "")
		words := func(row []string) []uint64 {
			h.cells(row)
			return slices.Clone(h.words)
		}
		text := func(row []string) (all []byte) {
			for _, c := range row {
				all = appendCanonical(all, c)
			}
			return all
		}
		if same, want := slices.Equal(words(a), words(b)), string(text(a)) == string(text(b)); same != want || (h.rows[0] == h.rows[1]) != want {
			t.Fatalf("%q and %q: the same words %t, want %t; hashes %x", a, b, same, want, h.rows)
		}
		values := make([]Value, n)
		for i, c := range a {
			values[i] = Value{Text: c}
			if v, err := strconv.ParseFloat(c, 64); err == nil && v == v {
				values[i] = Value{Number: v, Is: Number}
			}
		}
		if h.values(values); h.rows[2] != h.rows[0] {
			t.Fatalf("%q has another hash with types", a)
		}
	})
}

// A hash is half of the sum of products in its definition, under AES; here with numbers of any size.
func TestRowHashIsNH(t *testing.T) {
	h := newRowHasher(testKey)
	for _, n := range []int{2, 3, 8, 65, 200} {
		words := h.begin(uint64(n))
		for len(words) < n {
			words = append(words, uint64(len(words))*0x9e3779b97f4a7c15)
		}
		h.add(words)
		two, sum := func(k uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), k) }, new(big.Int)
		term := func(i int) *big.Int {
			var w uint64
			if i < n {
				w = words[i]
			}
			x := new(big.Int).Add(new(big.Int).SetUint64(w), new(big.Int).SetUint64(h.secret[i]))
			return x.Mod(x, two(64))
		}
		for i := 0; i < n; i += 2 {
			sum.Add(sum, new(big.Int).Mul(term(i), term(i+1)))
		}
		text := sum.Mod(sum, two(128)).FillBytes(make([]byte, 16))
		slices.Reverse(text)
		if h.block.Encrypt(text, text); h.rows[len(h.rows)-1] != binary.LittleEndian.Uint64(text) {
			t.Errorf("%d words: %x, want %x", n, h.rows[len(h.rows)-1], text[:8])
		}
	}
	more := func(h *rowHasher) []uint64 {
		h.grow(2)
		return h.secret[:2]
	}
	if other := newRowHasher(&RowKey{Secret: []byte("another key")}); slices.Equal(more(other), more(h)) {
		t.Error("two keys have the same words")
	}
}

// shortest agrees with strconv, on all texts of up to five of these bytes.
func TestShortest(t *testing.T) {
	const some = "-+.019e/:"
	for n, all := 1, len(some); n <= 5; n, all = n+1, all*len(some) {
		text := make([]byte, n)
		for k := range all {
			for i := range text {
				text[i], k = some[k%len(some)], k/len(some)
			}
			s := string(text)
			v, digits, ok := config.Decimal(s)
			if want := ok && digits <= 15 && math.Abs(v) >= 1e-7 && s == strconv.FormatFloat(v, 'f', -1, 64); ok && shortest(s, v, digits) != want {
				t.Fatalf("%q is the shortest text: %t, want %t", s, !want, want)
			}
		}
	}
}

// What the hashes of raw rows add to reading a CSV of ten columns.
func BenchmarkRowHashes(b *testing.B) {
	sch := "dataset: wide\nrows: 20000\ncolumns:\n"
	var text strings.Builder
	for i := range 10 {
		sch += "  - {name: c" + strconv.Itoa(i) + ", type: numeric, min: 0, max: 100}\n"
		text.WriteString("c" + strconv.Itoa(i) + ",")
	}
	text.WriteString("y\n")
	for i := range 20000 {
		for j := range 10 {
			text.WriteString(strconv.Itoa((i*j)%97) + "." + strconv.Itoa(1+i%9) + ",")
		}
		text.WriteString("no\n")
	}
	s := mustParse(b, sch+"  - {name: y, type: label, classes: [no, yes]}\n")
	path := writeFile(b, "f", text.String())
	for name, key := range map[string]*RowKey{"without": nil, "with": testKey} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, _, err := readTable(context.Background(), &testGate{key: key}, s, path, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The sum of rows depends on which rows there are, not on their order, their division, or the form of the file; two equal rows
// count twice.
func TestRowSum(t *testing.T) {
	sum := func(rows ...uint64) RowSum { return SumRows(Hashes{rows}) }
	parts := sum(3, 1)
	parts.Add(sum())
	parts.Add(sum(2))
	if parts != sum(1, 2, 3) || parts.Digest() != sum(2, 3, 1).Digest() {
		t.Error("a sum depends on the order or the division of rows")
	}
	for _, other := range []RowSum{sum(), sum(1, 2), sum(1, 2, 3, 3), sum(1, 2, 4), sum(1, 2, 2)} {
		if other == parts || other.Digest() == parts.Digest() {
			t.Error("other rows have the same sum")
		}
	}
}

// TestMeanings: a row has one hash, whether its cells are text as programs write it or have types, and other cells have others.
func TestMeanings(t *testing.T) {
	h := newRowHasher(testKey)
	h.columns([]string{"a", "b"}, "b")
	hash := func(v Value) uint64 {
		h.values([]Value{v, {Is: Number, Number: 1}})
		return h.rows[len(h.rows)-1]
	}
	of := func(cell string) uint64 {
		h.cells([]string{cell, "1"})
		if got := hash(Value{Is: Text, Text: cell}); got != h.rows[len(h.rows)-2] {
			t.Errorf("%q: another hash as a value than as a cell", cell)
		}
		return h.rows[len(h.rows)-2]
	}
	seen := map[uint64]string{}
	for _, alike := range [][]string{
		{"1", "true", "True", "TRUE", "t", "T", "yes", "Y", "1.0"},
		{"0", "false", "False", "F", "no", "n", "-0"},
		{"", " ", "NA", "n/a", "NaN", "nan", "null", "NULL", "None", "NaT", "<NA>", `\N`, "?", "."},
		{"2021-11-25", "2021-11-25 00:00:00", "2021-11-25T00:00:00.000", "2021-11-25T00:00:00Z", "2021-11-25 01:00:00+01:00", "2021/11/25", "25.11.2021"},
		{"2021-11-25 03:09:53", "2021-11-25T03:09:53", "2021-11-25 03:09:53.000000", "2021-11-25 03:09:53+00:00", "2021-11-25T03:09:53Z", "2021-11-24T22:09:53-0500", "2021-11-25T03:09:53+00", "2021-11-25 03:09:53 UTC"},
		{"2021-11-25 03:09:53.25", "2021-11-25T03:09:53.250", "2021-11-25T03:09:53,25Z"},
		{"2021-11-25 03:09", "2021-11-25T03:09:00"},
		{"2020-03-01 00:30+01:00", "2020-02-29T23:30:00", "2020-02-29 23:30"}, {"2020-01-01T00:00:00+0100", "2019-12-31 23:00:00"}, {"2021-12-31 23:59:60", "2022-01-01"},
		{"2024-02-29"}, {"2023-02-29"}, {"2021-02-30"}, {"2021-04-31"}, {"2021-12-31", "31.12.2021"},
		{"2021-11-31"}, {"2021-13-01"}, {"2021-11-25x"}, {"2021-11-25 3:09"}, {"2021-11-25 24:00"}, {"2021-11-25 03:09:53+1"}, {"2021-11-25 03:09:53."}, {"31.02.2021"}, {"red"}, {"2021"}, {"yess"}, {"2021-11-2"},
	} {
		for i, cell := range alike {
			got := of(cell)
			if i == 0 {
				if other, ok := seen[got]; ok {
					t.Errorf("%q has the hash of %q", cell, other)
				}
				seen[got] = cell
			} else if seen[got] != alike[0] {
				t.Errorf("%q has another hash than %q", cell, alike[0])
			}
		}
	}
	for v, cell := range map[Value]string{{Is: Number, Number: math.NaN()}: "", {Is: Null}: "NA"} {
		if hash(v) != of(cell) {
			t.Errorf("%+v has another hash than %q", v, cell)
		}
	}
	for _, form := range []RowForm{RowWords, RowText} { // of keys of earlier builds
		h := newRowHasher(&RowKey{Secret: []byte("key"), Form: form})
		h.columns([]string{"a"}, "")
		h.cells([]string{"True"})
		h.cells([]string{"true"})
		if h.rows[0] == h.rows[1] {
			t.Errorf("form %d: rows are hashed as today", form)
		}
	}
}
