package paper

import (
	"context"
	"errors"
	"slices"
	"testing"
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
