// Command bench measures the speed of Sotto's inner loops as ratios to the limits of the
// machine, measured in the same run: `make bench`. It prints a table and writes bench.json,
// one flat object. docs/measurements/performance.md explains the figures.
//
// One-thread figures are in processor time where the system has it, so other work on the
// machine disturbs them little. Each is the best of several rounds, and each round measures
// all sides of a ratio.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/sottodp/sotto/internal/kern"
)

// results are the figures in the order in which they were measured.
type results struct {
	names  []string
	values map[string]any
}

func (r *results) put(name string, value float64, note string) {
	// Four digits: more would be noise.
	if value != 0 {
		scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(value))))
		value = math.Round(value*scale) / scale
	}
	r.names = append(r.names, name)
	r.values[name] = value
	fmt.Printf("%-34s %10.4g  %s\n", name, value, note)
}

func main() {
	out := flag.String("out", "bench.json", "file to write")
	only := flag.String("only", "",
		"one of: pass, gemm, noise, hess, adult, covtype, mnist, mlp, cnn, rcv1, wide, workers, side; the last only by name")
	flag.Parse()
	if spec := os.Getenv(sideChild); spec != "" {
		if err := sideFit(spec); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	set, err := kern.Level()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	begin := time.Now()
	r := &results{values: map[string]any{"kernels": set, "go": runtime.Version(),
		"platform": runtime.GOOS + "/" + runtime.GOARCH, "cores": runtime.NumCPU()}}
	fmt.Printf("kernels %s, %s, %d cores\n", set, runtime.Version(), runtime.NumCPU())
	for _, part := range []struct {
		name string
		run  func(*results) error
	}{{"pass", passes}, {"gemm", products}, {"noise", noises}, {"hess", hessians}, {"adult", adult}, {"covtype", covtype},
		{"mnist", mnist}, {"mlp", network}, {"cnn", images}, {"rcv1", rcv1}, {"wide", wide}, {"workers", workers},
		{"side", sides}} {
		if *only != part.name && (*only != "" || part.name == "side") {
			continue
		}
		if err := part.run(r); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", part.name, err)
			os.Exit(1)
		}
		runtime.GC()
	}
	r.put("seconds", time.Since(begin).Seconds(), "of this benchmark")
	text, err := json.MarshalIndent(r.values, "", "  ")
	if err == nil {
		err = os.WriteFile(*out, append(text, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// best runs all functions in each round and returns the fewest seconds of processor time
// that each took.
func best(rounds int, fns ...func()) []float64 { return bestBy(cpuTime, rounds, fns) }

// bestWall is best in wall-clock time.
func bestWall(rounds int, fns ...func()) []float64 {
	begin := time.Now()
	return bestBy(func() time.Duration { return time.Since(begin) }, rounds, fns)
}

func bestBy(clock func() time.Duration, rounds int, fns []func()) []float64 {
	least := make([]float64, len(fns))
	for round := range rounds {
		for i, f := range fns {
			from := clock()
			f()
			if s := (clock() - from).Seconds(); round == 0 || s < least[i] {
				least[i] = s
			}
		}
	}
	return least
}
