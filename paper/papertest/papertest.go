// Package papertest runs an experiment in a test and checks that what it writes is complete and well formed.
package papertest

import (
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/paper"
)

// Run reproduces e in l, in a new directory if l names none. lines says how many lines under the head a CSV file
// has; files are all files, by name.
func Run(t *testing.T, e paper.Experiment, l paper.Lab, files []string, lines map[string]int) *paper.Results {
	t.Helper()
	if l.Dir == "" {
		l.Dir = filepath.Join(t.TempDir(), "out")
	}
	left := -1
	l.Progress = func(done, all int) { left = all - done }
	r, err := e.Reproduce(context.Background(), &l)
	if err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("progress ended %d runs too early", left)
	}
	files = append(slices.Clone(files), "record.json")
	if !slices.Equal(r.Files, files) {
		t.Errorf("wrote %q", r.Files)
	}
	for _, name := range r.Files {
		b, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") && name != "runs.csv" {
			t.Errorf("%s: found a value that is no number", name)
		}
		switch filepath.Ext(name) {
		case ".csv":
			rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if want, ok := lines[name]; err != nil || len(rows) < 2 || ok && len(rows) != want+1 {
				t.Errorf("%s: %d lines under the head, want %d (%v)", name, len(rows)-1, want, err)
			}
		case ".svg":
			for d := xml.NewDecoder(strings.NewReader(text)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
	}
	t.Run("page", func(t *testing.T) { page(t, l.Dir) })
	return r
}
