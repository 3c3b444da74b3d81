package private

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/schema"
)

// BenchmarkPacked is a step of DP-SGD on a packed table of 54 columns, a batch of 256 drawn by Poisson sampling or all rows: while the
// table is in memory, and after its pages were taken out of it before every step, as if it was far larger.
func BenchmarkPacked(b *testing.B) {
	rows := 200_000
	if race.Enabled {
		rows = 10_000
	}
	text := fmt.Sprintf("dataset: d\nrows: %d\nintercept: true\ncolumns:\n  - {name: y, type: label, classes: [no, yes]}\n", rows)
	for i := range 53 {
		text += fmt.Sprintf("  - {name: c%d, type: numeric, min: 0, max: 1}\n", i)
	}
	s, err := schema.Parse("s", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "t")
	if _, err := data.SynthPacked(s, rows, 1, path); err != nil {
		b.Fatal(err)
	}
	tab, _, err := data.Read(b.Context(), &datatest.Gate{}, s, path, data.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tab.Close() })
	for _, batch := range []int{256, 0} {
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch=%d/cold=%v", batch, cold), func(b *testing.B) {
				cfg := config(b, tab, privacy.AddRemove, rows)
				cfg.Meter, cfg.Journal = &free{adj: privacy.AddRemove}, nowhere{}
				next, stop := pull(method.SGD{Steps: 1 << 30, Rate: 0.1, Gradient: method.Gradient{Clip: 0.5, Noise: 1, Batch: batch}}, openOracle(b, cfg))
				defer stop()
				next()
				var took time.Duration
				n := 0
				for b.Loop() {
					if cold {
						evict(b, path)
					}
					began := time.Now()
					next()
					took += time.Since(began)
					n++
				}
				b.ReportMetric(float64(took.Microseconds())/float64(n), "µs/step")
			})
		}
	}
}

// evict takes the pages of a mapped file out of memory.
func evict(tb testing.TB, path string) {
	tb.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if !strings.HasSuffix(lines.Text(), path) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err != nil {
			tb.Fatal(err)
		}
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); e != 0 {
			tb.Fatal(e)
		}
	}
	t, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer t.Close()
	if err := unix.Fadvise(int(t.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		tb.Fatal(err)
	}
}
