package source

import (
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
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
	p, err := openParquet(path)
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
		if got, ok := parquetText(c)(v[0]); got != want[i] || !ok {
			t.Errorf("%s: %q, want %q", c.Name(), got, want[i])
		}
		pages.Close()
	}
	point := decimalText(parquet.FixedLenByteArray, 1)
	for b, want := range map[string]string{"\x00\x00": "0.0", "\xff\xff": "-0.1", "\x80\x00": "-3276.8", "\x01\x00": "25.6", "": "0.0"} {
		if got, _ := point(parquet.FixedLenByteArrayValue([]byte(b))); got != want {
			t.Errorf("%x: %s, want %s", b, got, want)
		}
	}
}
