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
	"github.com/sottodp/sotto/run/runlog"
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

// BenchmarkSums is steps of 20 owners who add up masked sums, each a process, and their hub, everything durable. The time is from the first sum in a
// journal to the last owner's end.
func BenchmarkSums(b *testing.B) {
	for _, size := range []struct{ dim, words, steps int }{{2000, 2000, 100}, {47236, 70, 20}} {
		b.Run(fmt.Sprintf("dim=%d", size.dim), func(b *testing.B) {
			for range b.N {
				benchOwners(b, size.dim, size.words, size.steps, fmt.Sprintf("method: {name: sgd, steps: %d}\n", size.steps), "mode: sum, colluders: 3", runlog.SumsFile)
			}
		})
	}
}

func benchNetwork(b *testing.B, dim, words, rounds int) {
	benchOwners(b, dim, words, rounds, "", fmt.Sprintf("schedule: edges, edges: 2, rounds: %d, method: {name: dda, batch: 10}", rounds), runlog.JournalFile)
}

// benchOwners trains in so many rounds by the block network; journal is the file of each owner that a round adds to.
func benchOwners(b *testing.B, dim, words, rounds int, method, block, journal string) {
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
	v := villageOf(b, fmt.Sprintf("data: %s/rows.svm\nschema: %s/schema.yaml\nmodel: {name: svm, l2: 0.0005}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n%snetwork: {owners: %d, rows: %d, %s}\n", dir, dir, method, n, rows/n, block), time.Minute)
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
			if st, err := os.Stat(filepath.Join(v.d.Owner(i, "part"), journal)); err == nil && st.Size() > int64(dim) {
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
