package run

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// hashes are those of all that a run leaves for a replay.
func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, err := runlog.Hashes(dir)
	if err != nil {
		t.Fatal(err)
	}
	delete(all, runlog.ModelFile)  // holds the time
	delete(all, runlog.EventsFile) // its lines follow the groups
	return all
}

func weights(t *testing.T, dir string) string {
	t.Helper()
	f, err := model.Read(filepath.Join(dir, runlog.ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(f.W)
}

// A seeded run that saves states, broken anywhere around the saving of one, ends as one that was not broken, which ends as one that keeps
// everything. What is left of it holds.
func TestStatesOfBrokenRuns(t *testing.T) {
	t.Parallel()
	const steps, every = 23, 5
	for _, c := range []struct{ method, output string }{
		{"{name: sgd, steps: 23, batch: 64, rate: 1}", "tail-average"},
		{"{name: adam, steps: 23, batch: 64}", "random"},
		{"{name: momentum, steps: 23, batch: 64, rate: 1, nesterov: true}", "ema"},
	} {
		t.Run(c.output, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			more := "method: " + c.method + "\noutput: " + c.output + "\nlab: true\nseed: 5"
			job, kept := begin(t, dir, "kept", more)
			if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			// The progress is told of at each flush: after a state's releases are there, and before it is saved.
			job, whole := begin(t, dir, "whole", more)
			job.StateEvery = every
			var flushed []string
			if _, _, err := Fit(t.Context(), job, Env{Workers: 1, Progress: func(p Progress) {
				if p.Step%every == 0 && p.Step < steps {
					to := fmt.Sprintf("%s-%d", whole, p.Step)
					copyDir(t, whole, to)
					flushed = append(flushed, to)
				}
			}}); err != nil {
				t.Fatal(err)
			}
			if weights(t, whole) != weights(t, kept) {
				t.Error("saving states gives another model")
			}
			wantHolds(t, dir, whole)
			if f := holds(t, dir, whole); !strings.Contains(f["replay"].Detail, "the state that was saved after step 15 to step 23") ||
				!strings.Contains(f["state"].Detail, "after step 20") || !strings.Contains(f["releases"].Detail, "the first 15 are no longer kept") {
				t.Errorf("verify says %+v", f)
			}
			if len(flushed) != (steps-1)/every {
				t.Fatalf("broken in %d places", len(flushed))
			}
			for i, out := range flushed {
				part := fmt.Sprintf("releases-%d.bin", i+1)
				saved := []byte{}
				if i+1 < len(flushed) { // as the next crash finds it, without what came behind
					all, err := os.ReadFile(filepath.Join(flushed[i+1], part))
					if err != nil {
						t.Fatal(err)
					}
					saved = all[:len(all)-every*runlog.ReleaseBytes(job.Facts.Dim)]
				}
				for _, size := range []int{0, len(saved) / 2, len(saved)} {
					broken := fmt.Sprintf("%s+%d", out, size)
					if _, err := os.Stat(broken); err == nil {
						continue
					}
					copyDir(t, out, broken)
					if size > 0 {
						if err := os.WriteFile(filepath.Join(broken, part), saved[:size], 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := Resume(t.Context(), broken, Env{Workers: 1}); err != nil {
						t.Fatalf("%s: %v", broken, err)
					}
					if weights(t, broken) != weights(t, whole) || !maps.Equal(hashes(t, broken), hashes(t, whole)) {
						t.Errorf("%s: ends in another way than a run that was not broken", broken)
					}
					wantHolds(t, dir, broken)
				}
			}
		})
	}
}

// What is kept of a run is bounded, however many steps it takes: 14,000 of a network of 101,770 parameters stay below 100 MB.
func TestStateEvery(t *testing.T) {
	const dim, steps = 101_770, 14_000
	every := job.StateEvery(method.Adam{Steps: steps}, privacy.Gaussian{Sigma: 1}, dim)
	state := 4 * 8 * dim             // the output, w, and two moments
	lines, file := 120*steps, 24*dim // of steps.jsonl, and of model.json
	if size := 2*every*runlog.ReleaseBytes(dim) + 3*state + lines + file; every < 20 || size > 90<<20 {
		t.Errorf("a state every %d steps: %d bytes", every, size)
	}
	for _, c := range []struct {
		method method.Method
		plan   privacy.Event
		dim    int
	}{
		{method.SGD{Steps: steps}, privacy.Gaussian{Sigma: 1}, 100},
		{method.Newton{Steps: steps}, privacy.Gaussian{Sigma: 1}, dim},
		{method.SGD{Steps: steps}, privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-5}, dim},
	} {
		if every := job.StateEvery(c.method, c.plan, c.dim); every != 0 {
			t.Errorf("%T, %v, %d parameters: a state every %d steps", c.method, c.plan, c.dim, every)
		}
	}
}

// A secure run that saves states, stopped and taken up again and again, is told by its ledger from what it charged, and holds.
func TestStatesOfSecureRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: sgd, steps: 3000, batch: 64, rate: 1}")
	job.StateEvery = 100
	ctx, stop := context.WithCancel(t.Context())
	_, _, err := Fit(ctx, job, stopAt(2, stop))
	wantErr(t, err, ErrInterrupted)
	for range 3 {
		ctx, stop := context.WithCancel(t.Context())
		_, err = Resume(ctx, out, stopAt(4, stop))
		wantErr(t, err, ErrInterrupted)
	}
	if _, err := Resume(t.Context(), out, Env{}); err != nil {
		t.Fatal(err)
	}
	wantHolds(t, dir, out)
	rec := logOf(t, out)
	if rec.Charged() != method.MaxSteps(job.Method) || rec.Released != rec.Charged() || rec.Oldest() == nil {
		t.Errorf("%d charged, %d released of %d; the oldest state is %+v", rec.Charged(), rec.Released, method.MaxSteps(job.Method), rec.Oldest())
	}
}

// A saved state that does not follow from what came before is found, also where its file and run.json agree.
func TestVerifyFindsAnotherState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: sgd, steps: 23, batch: 64, rate: 1}")
	job.StateEvery = 5
	info, _, err := Fit(t.Context(), job, Env{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	rec := logOf(t, out)
	if err := rec.Load(rec.Newest()); err != nil {
		t.Fatal(err)
	}
	// One number of the newest state is another, under a checksum that holds.
	forged := filepath.Join(dir, "forged")
	copyDir(t, out, forged)
	path := filepath.Join(forged, "releases-4.bin")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	at := bytes.IndexByte(b, '\n') + 1
	end := at + 4 + int(le.Uint32(b[at:]))
	number := bytes.LastIndex(b[:end], le.AppendUint64(nil, math.Float64bits(rec.Newest().Vectors[1][0])))
	le.PutUint64(b[number:], math.Float64bits(rec.Newest().Vectors[1][0]+1e-6))
	le.PutUint32(b[end:], crc32.Checksum(b[at:end], crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if info.Hashes, err = runlog.Hashes(forged); err != nil {
		t.Fatal(err)
	}
	if err := runlog.WriteInfo(forged, info); err != nil {
		t.Fatal(err)
	}
	found := holds(t, dir, forged)
	if found["state"].Holds || !found["files"].Holds || !found["releases"].Holds {
		t.Errorf("%+v", found)
	}
}
