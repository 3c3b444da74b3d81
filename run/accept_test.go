package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// TestA6DroppedRows: up to one dropped row in a hundred is told, more are refused unless they are accepted.
func TestA6DroppedRows(t *testing.T) {
	for _, c := range []struct {
		rows, dropped int
		refused       bool
	}{
		{100, 1, false}, {100, 2, true}, {4360, 43, false}, {4360, 44, true}, {1, 1, true}, {4360, 3970, true},
	} {
		stats := &data.LoadStats{Rows: c.rows, Dropped: c.dropped, DroppedBy: map[string]int{"ward": c.dropped - 1, "": 1}}
		var told []string
		notice := func(text string) { told = append(told, text) }
		err := Dropped(notice, false)("t.csv", stats)
		if errors.Is(err, ErrDroppedRows) != c.refused || errors.As(err, new(*InputError)) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
		if c.refused && !strings.Contains(err.Error(), "rows do not fit the schema") {
			t.Errorf("%+v: %v", c, err)
		}
		told = nil
		if err := Dropped(notice, true)("t.csv", stats); err != nil || len(told) != 1 || !strings.Contains(told[0], "column ward ") || !strings.Contains(told[0], "the whole row 1") {
			t.Errorf("%+v: %v, %q", c, err, told)
		}
		if err := Dropped(nil, true)("t.csv", stats); err != nil {
			t.Error(err)
		}
	}
}

// TestA6ResumedRunWasAdmitted: a run of an earlier version, whose run.json knows of no assertion, goes on though more
// than one row in a hundred is dropped.
func TestA6ResumedRunWasAdmitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "stopped", "accept_dropped: true\n"+poisson(2))
	b, err := os.ReadFile(job.Spec.Data)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for i := 1; i < len(lines)/10; i++ {
		lines[i] = "?" + lines[i]
	}
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	job.Spec.Data = bad
	job.Schema.OnBadRow = schema.BadRowDrop
	ctx, stop := context.WithCancel(t.Context())
	_, _, err = Fit(ctx, job, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
	info, err := runlog.ReadInfo(out)
	if err != nil || !slices.Equal(info.Assertions, []string{runlog.AcceptDropped}) {
		t.Fatal(err, info.Assertions)
	}
	info.Assertions = nil
	if err := runlog.WriteInfo(out, info); err != nil {
		t.Fatal(err)
	}
	told := false
	if _, err := Resume(t.Context(), out, Env{Workers: 1, Notice: func(text string) { told = told || strings.Contains(text, "do not fit the schema") }}); err != nil || !told {
		t.Error(err, told)
	}
}
