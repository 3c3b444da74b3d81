package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEach: results are in the order of the jobs whichever ends first, progress counts them, and the first error is returned.
func TestEach(t *testing.T) {
	jobs := []int{3, 1, 4, 1, 5, 9, 2, 6}
	told := 0
	l := &Lab{Jobs: 3, Progress: func(done, all int) {
		if told++; done != told || all != len(jobs) {
			t.Errorf("progress %d of %d after %d", done, all, told)
		}
	}}
	double := func(_ context.Context, j int) (int, error) { return 2 * j, nil }
	got, err := Each(context.Background(), l, jobs, double)
	if err != nil || !slices.Equal(got, []int{6, 2, 8, 2, 10, 18, 4, 12}) || told != len(jobs) {
		t.Errorf("results %v after %d, %v", got, told, err)
	}
	bad := errors.New("bad")
	_, err = Each(context.Background(), &Lab{Jobs: 1}, jobs, func(_ context.Context, j int) (int, error) {
		if j == 9 {
			t.Error("a job was started after an error")
		}
		if j == 4 {
			return 0, bad
		}
		return j, nil
	})
	if err != bad {
		t.Errorf("found %v, want the job's error", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Each(ctx, &Lab{}, jobs, double); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped experiment: %v", err)
	}
}

// TestCSV: numbers have six digits, strings stay as they are.
func TestCSV(t *testing.T) {
	c := NewCSV("a,b,c,d")
	c.Add(1.0/3, 12, `"x, y"`, true)
	c.Add(1e-7, "", Digits(2.0/3, 2), 100000.0)
	if want := "a,b,c,d\n0.333333,12,\"x, y\",true\n1e-07,,0.67,100000\n"; c.String() != want {
		t.Errorf("found %q, want %q", c, want)
	}
}

// TestContinue: an experiment that was stopped takes the results that are there, with NaN and ±Inf, drops a torn last line, and
// refuses other settings, another version, another dataset and another directory's files; what it refuses changes nothing on disk.
// Another version may only judge the results.
func TestContinue(t *testing.T) {
	type result struct{ Value, Odd float64 }
	var ran []int
	stop := errors.New("stopped")
	experiment := func(size, last int, file string) Experiment {
		return Experiment{Name: "p9", Seeds: "1", Run: Sized(size, 2*size, func(ctx context.Context, l *Lab, size int) (*Results, error) {
			if err := keeperOf(ctx).reads(file); err != nil {
				return nil, err
			}
			var all []result
			for call := range 2 {
				list, err := Each(ctx, l, []int{0, 1, 2, 3}, func(_ context.Context, j int) (result, error) {
					if j = 4*call + j; j == last {
						return result{}, stop
					}
					ran = append(ran, j)
					return result{float64(j), []float64{math.Inf(1), math.NaN()}[j%2]}, nil
				})
				if err != nil {
					return nil, err
				}
				all = append(all, list...)
			}
			r := &Results{R: all, Tables: []Table{{Head: []string{"what", "paper", "Sotto"}, Rows: [][]string{{"T", "396", "395"}, {"ε", "only drawn", "1"}, {"n", "5", ""}}}}}
			r.Claims.Add("§1", "a", "is one", true, "%d", 1)
			r.Claims.Add("§2", "b", "is two", false, "%d", 1).Because("It is one.")
			r.Claims.NotTested("§3", "c", "is three", "There is no count.")
			return r, nil
		})}
	}
	file := filepath.Join(t.TempDir(), "data.csv")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "1,2")
	lab := func() *Lab {
		return &Lab{Jobs: 1, Version: "v1", Data: filepath.Dir(file), Dir: filepath.Join(filepath.Dir(file), "out")}
	}
	kept := filepath.Join(lab().Dir, keptFile)
	if _, err := experiment(5, 6, file+"x").Reproduce(t.Context(), lab()); err == nil {
		t.Error("a dataset that is not there passed")
	}
	if _, err := os.Stat(lab().Dir); !os.IsNotExist(err) {
		t.Errorf("bad input made the directory: %v", err)
	}
	if _, err := experiment(5, 6, file).Reproduce(t.Context(), lab()); err != stop || !slices.Equal(ran, []int{0, 1, 2, 3, 4, 5}) {
		t.Fatalf("the first piece ran %v, %v", ran, err)
	}
	whole, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	torn := string(whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')-3]) // within job 5
	write(kept, torn)
	for what, try := range map[string]func() error{
		"settings is": func() error { _, err := experiment(6, -1, file).Reproduce(t.Context(), lab()); return err },
		"version is": func() error {
			l := lab()
			l.Version = "v2"
			_, err := experiment(5, -1, file).Reproduce(t.Context(), l)
			return err
		},
		"data.csv has the checksum": func() error {
			write(file, "1,3")
			defer write(file, "1,2")
			_, err := experiment(5, -1, file).Reproduce(t.Context(), lab())
			return err
		},
		"is not empty": func() error {
			l := lab()
			l.Dir = filepath.Dir(file)
			_, err := experiment(5, -1, file).Reproduce(t.Context(), l)
			return err
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("found %v, want %q", err, what)
		}
		if now, err := os.ReadFile(kept); err != nil || string(now) != torn {
			t.Errorf("%s: what was refused changed the file (%v)", what, err)
		}
	}
	ran = nil
	r, err := experiment(5, -1, file).Reproduce(t.Context(), lab())
	if err != nil || !slices.Equal(ran, []int{5, 6, 7}) {
		t.Fatalf("the second piece ran %v, %v", ran, err)
	}
	for j, v := range r.R.([]result) {
		if v.Value != float64(j) || math.IsInf(v.Odd, 1) != (j%2 == 0) || math.IsNaN(v.Odd) != (j%2 == 1) {
			t.Errorf("job %d: %+v", j, v)
		}
	}
	if rec := r.Record; len(rec.Pieces) != 2 || rec.Wall <= 0 || rec.Printed != 1 || rec.Data["data.csv"] == "" || rec.Settings != "5" || rec.Claims.Tested() != 2 {
		t.Errorf("record %+v", rec)
	}
	text, err := os.ReadFile(filepath.Join(lab().Dir, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	var again *Record
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Record, again); diff != "" {
		t.Errorf("the record read again: %s", diff)
	}
	for _, want := range []string{"| P9 | 3 | 1 | 1 | 1 | 1 |", "- **P9**: Jane Doe, ", "(`b`) | 1 | It is one. |", "\n## Notes\n\nA note.\n\n## Claims that fail\n", "| P9 | §1: is one (`a`) | 1 |", "| There is no count. |"} {
		if page := Summary([]*Record{again}, map[string]Publication{"p9": cited}, "\nA note.\n"); !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
	ran = nil
	if _, err := experiment(5, -1, file).Reproduce(t.Context(), lab()); err != nil || ran != nil {
		t.Errorf("an experiment that is done ran %v, %v", ran, err)
	}
	// Another version judges what is kept, and names the version that ran it; it changes nothing and runs nothing.
	judge := func(last int, size int) (*Results, error) {
		l := lab()
		l.Version, l.Judge = "v2", true
		return experiment(size, last, file).Reproduce(t.Context(), l)
	}
	was, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := judge(-1, 5)
	if err != nil || ran != nil || judged.Record.Ran == nil || judged.Record.Ran.Version != "v1" || len(judged.Record.Pieces) != 3 ||
		!strings.Contains(judged.Record.Line(), "which judged what Sotto v1 ran") {
		t.Errorf("judged again: ran %v, record %+v, %v", ran, judged, err)
	}
	if now, err := os.ReadFile(kept); err != nil || !bytes.Equal(now, was) {
		t.Errorf("judging changed the results (%v)", err)
	}
	if _, err := judge(-1, 6); err == nil || !strings.Contains(err.Error(), "settings is") {
		t.Errorf("results of other settings were judged: %v", err)
	}
	write(kept, torn)
	if _, err := judge(-1, 5); err == nil || !strings.Contains(err.Error(), "lacks the result of job 2: 2 of 4") || ran != nil {
		t.Errorf("an experiment that is not done was judged: %v", err)
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	if _, err := judge(-1, 5); err == nil || !strings.Contains(err.Error(), "holds no experiment") {
		t.Errorf("an empty directory was judged: %v", err)
	}
	_, err = Each(t.Context(), &Lab{keeper: &keeper{}}, []int{1}, func(context.Context, int) (keeper, error) { return keeper{}, nil })
	if err == nil || !strings.Contains(err.Error(), "would not be stored") {
		t.Errorf("a result with hidden fields: %v", err)
	}
}
