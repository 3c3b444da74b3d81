package shards_test

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/shards"
)

// A tap passes what workers and their coordinator send each other on, and keeps it.
type tap struct {
	net.Listener
	mu       sync.Mutex
	traffic  []byte // both directions of all connections
	sizes    [2]int // bytes to the coordinator, and from it
	finished sync.WaitGroup
}

func newTap(t *testing.T, to string) *tap {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &tap{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			w.finished.Add(2)
			go w.pass(out, in, 0)
			go w.pass(in, out, 1)
		}
	}()
	return w
}

func (w *tap) pass(to, from net.Conn, way int) {
	defer w.finished.Done()
	defer to.Close()
	b, _ := io.ReadAll(io.TeeReader(from, to))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traffic, w.sizes[way] = append(w.traffic, b...), w.sizes[way]+len(b)
}

// What passes between workers and coordinator shows nothing but its size, and that does not depend on rows: no cell, no number of a row
// in any form of it, no parameter, not the key; after the handshake all bytes are equally frequent, which sums of whole numbers, most of whose
// bytes are 0 or 255, are not. The chance of a false failure is below 1e-6: of the histogram below 1e-8 (a χ² of 255 degrees of freedom
// above 400), of a text of 7 bytes or more by accident below 1e-9.
func TestNothingReadableOnTheWire(t *testing.T) {
	t.Parallel()
	var sizes [2]int
	for round, patients := range []int{600, 130} {
		s := newVisits(t, 250)
		if patients < 600 {
			s.write("part1.csv", visits(0, 30))
			s.write("part2.csv", visits(30, patients))
		}
		c, err := shards.Listen("127.0.0.1:0", 2, s.key, nil)
		s.must(err)
		w := newTap(t, c.URL)
		s.workers(w.Addr().String())
		_, dir, err := run.Fit(t.Context(), s.job("away", "method: {name: sgd, steps: 200, batch: 100}"), run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}})
		s.must(err)
		c.Close(true)
		w.finished.Wait()
		if w.sizes[0] < 200*2*8*8 || w.sizes[1] < 200*2*8*8 {
			t.Fatalf("%d and %d bytes passed the tap", w.sizes[0], w.sizes[1])
		}
		if round == 0 {
			sizes = w.sizes
		} else if w.sizes != sizes {
			t.Errorf("600 patients: %v bytes to and from the coordinator, %d: %v", sizes, patients, w.sizes)
		}

		var histogram [256]float64
		var all float64
		for b := w.traffic; len(b) >= 5; {
			n := 5 + int(binary.BigEndian.Uint16(b[3:]))
			if n > len(b) || b[1] != 3 || b[0] < 20 || b[0] > 23 {
				t.Fatalf("no record of TLS: % x", b[:5])
			}
			if b[0] == 23 {
				for _, v := range b[5:n] {
					histogram[v]++
					all++
				}
			}
			b = b[n:]
		}
		chi := 0.0
		for _, n := range histogram {
			chi += (n - all/256) * (n - all/256) / (all / 256)
		}
		if chi > 400 || all < 0.9*float64(len(w.traffic)) {
			t.Errorf("%.0f of %d bytes are sealed, their histogram has a χ² of %.0f: some can be read", all, len(w.traffic), chi)
		}

		key, err := os.ReadFile(s.file("key"))
		s.must(err)
		secrets := map[string][]byte{"the key": key, "a column": []byte("systolic"), "a level": []byte("surgery"), "a sampler": []byte("Poisson")}
		for _, part := range s.parts {
			b, err := os.ReadFile(part)
			s.must(err)
			rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
			s.must(err)
			for i, row := range rows[1:] {
				secrets[fmt.Sprint("row ", i, " of ", filepath.Base(part))] = []byte(strings.Join(row, ","))
				glucose, err := strconv.ParseFloat(row[3], 64)
				s.must(err)
				secrets[fmt.Sprint("a number of row ", i)] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(glucose))
			}
		}
		b, err := os.ReadFile(filepath.Join(dir, runlog.ModelFile))
		s.must(err)
		var model struct{ W []float64 }
		s.must(json.Unmarshal(b, &model))
		if len(model.W) < 5 {
			t.Fatalf("the model has the parameters %v", model.W)
		}
		for i, v := range model.W {
			secrets[fmt.Sprint("parameter ", i)] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
		}
		for name, text := range secrets {
			if len(text) >= 7 && bytes.Contains(w.traffic, text) {
				t.Errorf("%s is in the traffic", name)
			}
		}
	}
}
