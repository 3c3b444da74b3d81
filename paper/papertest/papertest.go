// Package papertest runs an experiment in a test and checks that what it writes is complete and well formed.
package papertest

import (
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
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
	for _, lack := range lacks(e, r, l.Dir) {
		t.Error(lack)
	}
	t.Run("page", func(t *testing.T) { page(t, l.Dir) })
	return r
}

var (
	link  = regexp.MustCompile(`href="\./([^"]+)"`)
	ident = regexp.MustCompile(`id="([^"]+)"`)
)

// lacks lists what a reader who cites the page would miss: the paper's authors and entry, the command, seeds and run of
// each table and figure, each figure's data, what a link leads to, and each part that the contents of the paper name.
func lacks(e paper.Experiment, r *paper.Results, dir string) (list []string) {
	b, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		return []string{err.Error()}
	}
	page, ids := string(b), map[string]bool{}
	need := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Sprintf("index.html: "+format, args...))
		}
	}
	for _, m := range ident.FindAllStringSubmatch(page, -1) {
		ids[m[1]] = true
	}
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		_, err := os.Stat(filepath.Join(dir, m[1]))
		need(err == nil, "a link to %s, which is not there", m[1])
	}
	for _, text := range []string{html.EscapeString(e.Of.Names()), "sotto paper " + e.Name + " --",
		"@misc{sotto-" + e.Name + ","} {
		need(strings.Contains(page, text), "no %q", text)
	}
	parts := len(r.Tables) + len(r.Figures)
	for _, claims := range []paper.Claims{r.Claims.Paper(), r.Claims.Ours()} {
		parts += min(len(claims), 1)
	}
	if strings.Contains(page, "<details>") { // claims that only the full run has
		parts++
	}
	n := strings.Count(page, `<p class="seeds">Seeds: `)
	need(n == parts, "seeds and run of %d parts of %d", n, parts)
	for _, f := range r.Figures {
		need(strings.Contains(page, `href="./`+f.File+`.csv"`), "%s has no data", f.File)
	}
	for _, i := range e.Contents {
		need((len(i.Where) > 0) != (i.Why != ""), "%s has a place and a reason why not, or neither", i.Name)
		for _, w := range i.Where {
			if id, ok := strings.CutPrefix(w, "#"); ok {
				need(ids[id], "%s: no part %s", i.Name, w)
			}
		}
	}
	own := fmt.Sprintf("Claims of the paper: %d of", r.Claims.Paper().Passed())
	need(r.Record.Full || !strings.Contains(page, own), "a verdict by the small size")
	return list
}
