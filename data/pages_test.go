//go:build linux

package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/schema"
)

// evict takes the table's pages out of memory. It returns false where the file system keeps them, as one in memory does.
func evict(t *testing.T, tab *Table, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := tab.pages
	for range 100 { // another process may be reading them
		f.Sync()
		unix.Madvise(p.mem, unix.MADV_DONTNEED)
		unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		if !resident(p.mem, len(p.mem)/2) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// TestRequest: the system reads the pages of the rows that are requested, all parts of them, and of no more chunks.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		name, text string
		rows       int
	}{{"dense", small, 200_000}, {"sparse", svm, 100_000}} {
		t.Run(c.name, func(t *testing.T) {
			s, path := mustParse(t, c.text), filepath.Join(t.TempDir(), "t")
			if _, err := SynthPacked(s, c.rows, 1, path); err != nil {
				t.Fatal(err)
			}
			tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer tab.Close()
			if !evict(t, tab, path) {
				t.Skip("skipped: the file system of the temporary directory keeps files in memory")
			}
			tab.Random(true)
			copier, rows := NewCopier(tab), []int32{5, 6, 70_000, 99_999}
			copier.Request(rows)
			p := tab.pages
			in := func(at int) bool {
				for end := time.Now().Add(time.Minute); !resident(p.mem, at); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						return false
					}
				}
				return true
			}
			for _, row := range rows {
				b, i := copier.Locate(int(row))
				at := []int{offset(p, &b.Norm[i])}
				if b.Y != nil {
					at = append(at, offset(p, &b.Y[i]))
				}
				if b.Start == nil {
					at = append(at, offset(p, &b.X[i*b.Dim]), offset(p, &b.X[(i+1)*b.Dim-1]))
				} else if from, to := b.Start[i], b.Start[i+1]; from < to {
					at = append(at, offset(p, &b.Start[i]), offset(p, &b.Col[to-1]), offset(p, &b.Val[from]))
				}
				for _, k := range at {
					if !in(k) {
						t.Errorf("row %d: byte %d was not read", row, k)
					}
				}
			}
			if b := tab.Blocks[40]; resident(p.mem, offset(p, &b.Norm[0])) {
				t.Error("rows that were not requested were read")
			}
			if copier.missing(rows) || !p.warm.Load() {
				t.Error("rows in memory are missing")
			}
		})
	}
}

// TestLargePass: a pass over a table that is not in memory gives back what is behind it, but not what it found in memory; rows
// are the same in any case.
func TestLargePass(t *testing.T) {
	text := "dataset: d\ncolumns:\n  - {name: y, type: label, classes: [no, yes]}\n"
	for i := range 500 {
		text += fmt.Sprintf("  - {name: c%d, type: numeric, min: 0, max: 1}\n", i)
	}
	s, err := schema.Parse("s", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	one, path := filepath.Join(dir, "one"), filepath.Join(dir, "t")
	if _, err := SynthPacked(s, 4*BlockRows, 1, one); err != nil {
		t.Fatal(err)
	}
	small, _, err := readTable(context.Background(), admit(), s, one, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if small.BeginPass(); small.pages.large {
		t.Error("a small table is large")
	}
	many := *small
	many.Blocks = slices.Repeat(small.Blocks, 36) // 288 MB
	if err := PackTable(s, &many, path); err != nil {
		t.Fatal(err)
	}
	tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if !evict(t, tab, path) {
		t.Skip("skipped: the file system of the temporary directory keeps files in memory")
	}
	p := tab.pages
	sum := func(b []byte) (n int) {
		for k := 0; k < len(b); k += 512 {
			n += int(b[k])
		}
		return n
	}
	if sum(p.mem[3*window:4*window]) == 0 { // is in memory now
		t.Error("rows without values")
	}
	tab.BeginPass()
	if !p.large {
		t.Fatal("a table that is not in memory is not large")
	}
	for _, b := range tab.Blocks {
		tab.Reach(b)
		if x := small.Blocks[0]; b.N != x.N || sum(asBytes(b.X)) == 0 {
			t.Fatal("a block has other rows")
		}
	}
	if last := (len(p.mem) - 1) / window; p.reached != last {
		t.Errorf("window %d of %d was reached", p.reached, last)
	}
	if !p.present(3*window, 4*window, windowTests) {
		t.Error("a window that was in memory before the pass is not after it")
	}
	status, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, status2, found := strings.Cut(string(status), path)
	if _, rss, ok := strings.Cut(status2, "Rss:"); found && ok {
		var kb int
		fmt.Sscan(rss, &kb)
		if kb > windowsNear*window>>10 {
			t.Errorf("%d kB of the table are in the process after a pass", kb)
		}
	} else {
		t.Error("no map of the file")
	}
}
