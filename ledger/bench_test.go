package ledger

import (
	"fmt"
	"path/filepath"
	"testing"
)

func BenchmarkRun(b *testing.B) {
	l := open(b, filepath.Join(b.TempDir(), "ledger.db"))
	tokens := make([]string, 0, 1<<16)
	id := func(i int) string { return fmt.Sprint("r", i) }
	b.Run("Reserve", func(b *testing.B) {
		for b.Loop() {
			tokens = append(tokens, reserve(b, l, reservation(fmt.Sprint("d", len(tokens)/100), id(len(tokens)))))
		}
	})
	b.Run("Check", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			must(b, l.Check(b.Context(), id(i%len(tokens)), tokens[i%len(tokens)]))
		}
	})
	b.Run("Settle", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			run := fmt.Sprint("s", b.N, ".", i)
			token := reserve(b, l, reservation("settled", run))
			b.StartTimer()
			must(b, l.Settle(b.Context(), run, token, Settlement{Outcome: Done, Epsilon: 0.1}))
		}
	})
	b.Run("Verify", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n = verify(b, l)
		}
		b.ReportMetric(float64(n), "entries")
	})
}
