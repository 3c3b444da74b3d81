package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper"
)

// TestAllPapers: each paper runs in its own directory, the page of all links those that are made, and a repeated command
// continues: what a stopped one has run is not run again.
func TestAllPapers(t *testing.T) {
	var ran []string
	stop := errors.New("stopped")
	experiment := func(name, data string, fail *bool) paper.Experiment {
		return paper.Experiment{Name: name, Data: data, Seeds: "1", Of: paper.Publication{Key: name, Authors: []string{"A"}, Title: "T " + name, Year: 2020, ArXiv: "1"},
			Record: []byte(`{"paper":"` + name + `","full":true,"pieces":[{}],"claims":[{"from":"§1","name":"a"}]}`),
			Run: paper.Sized(1, 2, func(ctx context.Context, l *paper.Lab, _ int) (*paper.Results, error) {
				if (l.Data != "") != (data != "") {
					t.Errorf("%s has the data %q", name, l.Data)
				}
				_, err := paper.Each(ctx, l, []int{1}, func(context.Context, int) (int, error) {
					if *fail {
						return 0, stop
					}
					ran = append(ran, name)
					return 1, nil
				})
				r := &paper.Results{}
				r.Claims.Add("§1", "a", "is one", true, "1")
				return r, err
			})}
	}
	dir, no, fail := t.TempDir(), false, true
	list := []paper.Experiment{experiment("p8", "", &no), experiment("p9", "tables", &fail)}
	run := func() (string, error) {
		var out bytes.Buffer
		c := &cobra.Command{}
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetContext(t.Context())
		err := allPapers(c, list, paper.Lab{Data: "folder", Dir: dir, Version: "v1", Jobs: 1})
		return out.String(), err
	}
	index := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "index.html"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if _, err := run(); !errors.Is(err, stop) || !strings.Contains(index(), `href="./p8/index.html"`) || strings.Contains(index(), `href="./p9/`) {
		t.Fatalf("%v after %v, page %s", err, ran, index())
	}
	fail = false
	out, err := run()
	if err != nil || !slices.Equal(ran, []string{"p8", "p9"}) || !strings.Contains(index(), `href="./p9/index.html"`) {
		t.Errorf("%v after %v, page %s", err, ran, index())
	}
	if want := "p9: The small size decides no claim. In the full run (p9, full size, 0001-01-01 00:00 UTC) 0 of the paper's claims hold, 1 fail and 0 are not tested."; !strings.Contains(out, want) || !strings.Contains(out, "Page: "+filepath.Join(dir, "index.html")) {
		t.Errorf("%q is not in %s", want, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "p9", "cite.bib")); err != nil {
		t.Error(err)
	}
}
