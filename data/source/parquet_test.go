package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"pgregory.net/rapid"
)

// TestParquetTypes: each type that has a text gives the one that a CSV has.
func TestParquetTypes(t *testing.T) {
	type row struct {
		A bool    `parquet:"a"`
		B uint64  `parquet:"b"`
		C int32   `parquet:"c,date"`
		D int32   `parquet:"d,decimal(2:9)"`
		E int64   `parquet:"e,decimal(3:18)"`
		F float32 `parquet:"f"`
		G uint32  `parquet:"g"`
		H float64 `parquet:"h"`
		I int8    `parquet:"i"`
	}
	path := filepath.Join(t.TempDir(), "t")
	if err := parquet.WriteFile(path, []row{{true, 1 << 63, 20000, -5, 1234567, 0.1, 1 << 31, 1e-300, -7}}); err != nil {
		t.Fatal(err)
	}
	p, err := openParquet(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := []string{"true", "9223372036854775808", "2024-10-04", "-0.05", "1234.567", "0.1", "2147483648", "1e-300", "-7"}
	for i, c := range p.file.Root().Columns() {
		pages := c.Pages()
		page, err := pages.ReadPage()
		if err != nil {
			t.Fatal(err)
		}
		v := make([]parquet.Value, 1)
		page.Values().ReadValues(v)
		if got, ok := parquetText(c)(nil, v[0]); string(got) != want[i] || !ok {
			t.Errorf("%s: %q, want %q", c.Name(), got, want[i])
		}
		pages.Close()
	}
	point := decimalText(parquet.FixedLenByteArray, 1)
	for b, want := range map[string]string{"\x00\x00": "0.0", "\xff\xff": "-0.1", "\x80\x00": "-3276.8", "\x01\x00": "25.6", "": "0.0"} {
		if got := string(point(nil, parquet.FixedLenByteArrayValue([]byte(b)))); got != want {
			t.Errorf("%x: %s, want %s", b, got, want)
		}
	}
}

// TestParquetNumbers: a value as a number is the number of its text.
func TestParquetNumbers(t *testing.T) {
	type row struct {
		A uint64  `parquet:"a"`
		B uint32  `parquet:"b"`
		C int64   `parquet:"c"`
		D int32   `parquet:"d"`
		E float32 `parquet:"e"`
		F float64 `parquet:"f"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []row{{}}); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	columns := file.Root().Columns()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float32().Draw(t, "float")
		if rapid.Bool().Draw(t, "short") {
			v, _ := strconv.ParseFloat(rapid.StringMatching(`-?[0-9]{1,7}\.[0-9]{0,8}`).Draw(t, "decimal"), 32)
			number = float32(v)
		}
		if bits := math.Float32frombits(rapid.Uint32().Draw(t, "bits")); rapid.Bool().Draw(t, "any") && bits-bits == 0 {
			number = bits
		}
		values := []parquet.Value{parquet.Int64Value(rapid.Int64().Draw(t, "a")), parquet.Int32Value(rapid.Int32().Draw(t, "b")), parquet.Int64Value(rapid.Int64().Draw(t, "c")),
			parquet.Int32Value(rapid.Int32().Draw(t, "d")), parquet.FloatValue(number), parquet.DoubleValue(rapid.Float64().Draw(t, "f"))}
		pages := []encoding.Values{encoding.Uint64Values([]uint64{values[0].Uint64()}), encoding.Uint32Values([]uint32{values[1].Uint32()}),
			encoding.Int64Values([]int64{values[2].Int64()}), encoding.Int32Values([]int32{values[3].Int32()}),
			encoding.FloatValues([]float32{number}), encoding.DoubleValues([]float64{values[5].Double()})}
		for i, c := range columns {
			text, _ := parquetText(c)(nil, values[i])
			want, err := strconv.ParseFloat(string(text), 64)
			one, many := parquetNumbers(c)
			if got := many(nil, pages[i], nil, 0, 1); math.Float64bits(got[0]) != math.Float64bits(one(values[i])) {
				t.Fatalf("%s: %s is %v in a page", c.Name(), text, got[0])
			}
			if got := one(values[i]); err != nil || math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%s: %s is %v, want %v; %v", c.Name(), text, got, want, err)
			}
		}
	})
}

// TestShortest compares numbers of all sizes, and those beside powers of two and ten, with strconv.
func TestShortest(t *testing.T) {
	check := func(x float32) {
		want, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
		if got := shortest(x); x-x == 0 && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%v (%x): %v, want %v", x, math.Float32bits(x), got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 250_000 {
		check(float32(r.NormFloat64()))
		check(float32(math.Exp(20 * (r.Float64() - 0.4))))
	}
	for exponent := -12; exponent <= 22; exponent++ {
		for step := -200; step <= 200; step++ {
			check(math.Float32frombits(uint32(int(math.Float32bits(float32(math.Ldexp(1, exponent)))) + step)))
		}
	}
	for exponent := -5; exponent <= 7; exponent++ {
		for step := -200; step <= 200; step++ {
			check(math.Float32frombits(uint32(int(math.Float32bits(float32(math.Pow10(exponent)))) + step)))
		}
	}
}

// A run of no values has none behind it for the library, which reads the next run there. Read otherwise, one of 2²⁶ values was hidden, of
// 256 MB (seed 311, input 5022 of the hostile files).
func TestRunsFitAsTheLibraryReads(t *testing.T) {
	long := binary.AppendUvarint([]byte{0}, 1<<26<<1) // of four bytes, as long as a value of 32 bits
	if runsFit(append(long, 0, 0, 0, 0), 32, 1024) {
		t.Error("a run of 2²⁶ values fits 1024")
	}
	if !runsFit([]byte{0, 5 << 1, 7}, 8, 1024) {
		t.Error("a run of five values does not fit 1024")
	}
}
