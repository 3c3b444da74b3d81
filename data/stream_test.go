package data

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
)

func streamTable(t *testing.T, path string, each func(*Block) error) error {
	t.Helper()
	_, err := Stream(t.Context(), admit(), mustParse(t, small), path, Options{Formats: TestFormats, unlimited: true, Unlabeled: true},
		func() func(*Block) error { return each })
	return err
}

// TestStreamMemory: what lives while a table is streamed does not grow with its rows, as text, packed, and packed as 16-bit
// numbers. At the last block, the rows before it are gone.
func TestStreamMemory(t *testing.T) {
	race.Skip(t)
	live := func(path string, rows int) int {
		var m runtime.MemStats
		seen, most := 0, 0
		if err := streamTable(t, path, func(b *Block) error {
			if seen += b.N; seen >= rows-BlockRows {
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, int(m.HeapAlloc))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if seen != rows {
			t.Fatalf("streamed %d rows of %d", seen, rows)
		}
		return most
	}
	const few, many = 100 * BlockRows, 600 * BlockRows
	bytes := many * 4 * mustParse(t, small).Dim() // of the table, encoded
	for _, form := range []string{"text", "packed", "short"} {
		at := func(rows int) string {
			if form == "text" {
				return writeFile(t, "t.csv", smallRows(rows))
			}
			return packOf(t, mustParse(t, small), smallRows(rows), Options{Coding: Coding{Short: form == "short"}})
		}
		if a, b := live(at(few), few), live(at(many), many); b-a > bytes/8 {
			t.Errorf("%s: %d bytes live at the end of %d rows, %d at that of %d; the whole table takes %d", form, a, few, b, many, bytes)
		}
	}
}

// TestStreamFails: no table is streamed without a gate, or whose rows belong to units; the caller's error ends the reading;
// a bad last row is an error as in Read.
func TestStreamFails(t *testing.T) {
	path := writeFile(t, "t.csv", smallRows(3*BlockRows))
	stop := errors.New("enough")
	blocks := 0
	if err := streamTable(t, path, func(*Block) error { blocks++; return stop }); err != stop || blocks != 1 {
		t.Errorf("the caller's error after the first block gives %v after %d", err, blocks)
	}
	packed := packOf(t, mustParse(t, small), smallRows(3*BlockRows), Options{})
	blocks = 0
	if err := streamTable(t, packed, func(*Block) error { blocks++; return stop }); !errors.Is(err, stop) || blocks != 1 {
		t.Errorf("packed, the caller's error after the first block gives %v after %d", err, blocks)
	}
	none := func() func(*Block) error { return func(*Block) error { return nil } }
	if _, err := Stream(t.Context(), nil, mustParse(t, small), path, Options{Formats: TestFormats}, none); err != errNoGate {
		t.Errorf("without a gate: %v", err)
	}
	bad := writeFile(t, "bad.csv", smallRows(3*BlockRows)+"40,green,x,much,no\n")
	err := streamTable(t, bad, func(*Block) error { return nil })
	_, _, want := readTable(t.Context(), admit(), mustParse(t, small), bad, Options{Unlabeled: true})
	if err == nil || want == nil || err.Error() != want.Error() || !strings.Contains(err.Error(), filepath.Base(bad)) {
		t.Errorf("a bad last row: %v, want %v", err, want)
	}
}
