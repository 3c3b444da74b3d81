//go:build linux

package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/needs"
)

// BenchmarkNetwork is rounds of 20 owners, each a process, and their hub, everything durable: two random edges in a round. The time is from the first
// activation in a journal to the last owner's end; cpu is the processor time of all processes, their starts among it.
func BenchmarkNetwork(b *testing.B) {
	for _, size := range []struct{ dim, words, rounds int }{{2000, 2000, 600}, {47236, 70, 120}} {
		b.Run(fmt.Sprintf("dim=%d", size.dim), func(b *testing.B) {
			for range b.N {
				benchNetwork(b, size.dim, size.words, size.rounds)
			}
		})
	}
}

func benchNetwork(b *testing.B, dim, words, rounds int) {
	const n, rows = 20, 2000
	dir := b.TempDir()
	src := rand.New(rand.NewPCG(3, uint64(dim)))
	var text strings.Builder
	for range rows {
		fmt.Fprint(&text, 1-2*src.IntN(2))
		for k := range words {
			fmt.Fprintf(&text, " %d:%.3f", 1+k*dim/words, src.Float64())
		}
		text.WriteByte('\n')
	}
	schema := fmt.Sprintf("dataset: bench\nrows: %d\nformat: {kind: libsvm}\nfeatures: %d\nintercept: false\nrow_norm: 1\ncolumns: [{name: y, type: label, classes: ['-1', '1']}]\n", rows, dim)
	for name, text := range map[string]string{"rows.svm": text.String(), "schema.yaml": schema} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	v := villageOf(b, fmt.Sprintf("data: %s/rows.svm\nschema: %s/schema.yaml\nmodel: {name: svm, l2: 0.0005}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\nnetwork: {owners: %d, rows: %d, schedule: edges, edges: 2, rounds: %d, method: {name: dda, batch: 10}}\n", dir, dir, n, rows/n, rounds), time.Minute)
	v.startHub()
	b.ResetTimer()
	var all sync.WaitGroup
	var mu sync.Mutex
	var cpu time.Duration
	for i := range n {
		all.Go(func() {
			c, stderr := v.owner(i, "")
			if err := c.Run(); err != nil {
				b.Errorf("owner %d: %v\n%s", i+1, err, stderr)
			}
			mu.Lock()
			cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			mu.Unlock()
		})
	}
	begun := func() bool {
		for i := range n {
			if st, err := os.Stat(v.journal(i)); err == nil && st.Size() > int64(dim) {
				return true
			}
		}
		return false
	}
	needs.Until(b, "the first activation", begun)
	start := time.Now()
	all.Wait()
	seconds := time.Since(start).Seconds()
	v.hub.Process.Signal(syscall.SIGINT)
	v.hub.Wait()
	hub := v.hub.ProcessState.UserTime() + v.hub.ProcessState.SystemTime()
	b.ReportMetric(float64(rounds)/seconds, "rounds/s")
	b.ReportMetric(1e3*(cpu+hub).Seconds()/float64(rounds), "cpu-ms/round")
	b.ReportMetric(1e3*hub.Seconds()/float64(rounds), "hub-ms/round")
	b.ReportMetric(0, "ns/op")
}
