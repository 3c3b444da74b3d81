package paper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/chart"
)

var cited = Publication{Key: "doe2022x", Authors: []string{"Jane Doe", "Ş. İlker Birbil", "Sinan Yıldırım"}, Title: "On X", Journal: "J. X", Volume: "3", Number: "2", Pages: "1--9", Year: 2022, DOI: "10.1/x", ArXiv: "2001.00001"}

// TestCite: a paper is cited with all of its fields and no others, and an entry of BibTeX is of the kind of its venue.
func TestCite(t *testing.T) {
	if got, want := cited.Names()+"; "+cited.Venue(), "Jane Doe, Ş. İlker Birbil and Sinan Yıldırım; J. X 3 (2), 1–9, 2022"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	want := `@article{doe2022x,
  author = {Jane Doe and {\c S}. {\.I}lker Birbil and Sinan Y{\i}ld{\i}r{\i}m},
  title = {{On X}},
  journal = {J. X},
  volume = {3},
  number = {2},
  pages = {1--9},
  year = {2022},
  doi = {10.1/x},
  eprint = {2001.00001},
  archiveprefix = {arXiv},
}
`
	if got := cited.BibTeX(); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	for _, c := range []struct {
		p           Publication
		venue, want string
	}{
		{Publication{Key: "a", Title: "T", Authors: []string{"A"}, Year: 2020, ArXiv: "2008.07978"}, "preprint, 2020", "@misc{a,"},
		{Publication{Key: "b", Title: "T", Authors: []string{"A"}, Meeting: "M", Year: 2023, Review: "Q5"}, "M, 2023", "  url = {https://openreview.net/forum?id=Q5},\n"},
	} {
		if c.p.Venue() != c.venue || !strings.Contains(c.p.BibTeX(), c.want) || strings.Contains(c.p.BibTeX(), "{}") {
			t.Errorf("found %q and %s", c.p.Venue(), c.p.BibTeX())
		}
	}
}

// TestFigureData: without data of its own a figure's file has the points of its plots.
func TestFigureData(t *testing.T) {
	level := 0.5
	f := Figure{Plots: []chart.Plot{{Title: `a, "b"`, Lines: []chart.Line{{Name: "l", X: []float64{0, 1}, Y: []float64{2, 1.0 / 3}, SD: []float64{0.1, 0.2}}}},
		{Title: "c", Categories: []string{"no", "must"}, Lines: []chart.Line{{X: []float64{1}, Y: []float64{4}}}, Level: &level, LevelName: "top"}}}
	want := "plot,line,x,y,sd\n\"a, \"\"b\"\"\",\"l\",0,2,0.1\n\"a, \"\"b\"\"\",\"l\",1,0.333333,0.2\n\"c\",\"\",\"must\",4,\n\"c\",\"top\",,0.5,\n"
	if got := f.data(); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	f.CSV = NewCSV("own")
	if f.data() != "own\n" {
		t.Errorf("found %s", f.data())
	}
}

// TestPrinted: results of the paper beside ours are counted, settings are not.
func TestPrinted(t *testing.T) {
	table := Table{Head: []string{"what", "paper", "Sotto"}, Rows: [][]string{{"a", "1", "2"}, {"b", "drawn", "2"}, {"c", "3", ""}}}
	if n := table.printed(); n != 1 {
		t.Errorf("%d results", n)
	}
	if table.Settings = true; table.printed() != 0 {
		t.Error("settings count")
	}
}

// TestVerdicts: the page of a small run leads with the verdicts of the full run, which stand beside its own; that of a full run
// leads with its own.
func TestVerdicts(t *testing.T) {
	full := &Record{Paper: "p9", Full: true, Pieces: []Piece{{Start: time.Date(2026, 11, 23, 16, 0, 0, 0, time.UTC)}}}
	full.Claims.Add("§1", "a", "is one", false, "7").Because("No.")
	full.Claims.Add("§2", "b", "is two", true, "8")
	for _, size := range []string{"small", "full"} {
		small := size == "small"
		r := &Results{Tables: []Table{{Title: "T", Head: []string{"x"}, Rows: [][]string{{"1"}}}}, Record: &Record{Paper: "p9", Full: !small, Pieces: full.Pieces}}
		r.Claims.Add("§1", "a", "is one", true, "1")
		r.Claims.Add("§3", "c", "is three", true, "3")
		r.Record.Claims = r.Claims
		v := view{Results: r, E: Experiment{Name: "p9", Of: cited, Seeds: "1 to 3"}, Full: full, Command: "sotto paper p9 --" + size}
		dir := t.TempDir()
		if err := v.write(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "index.html"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		for want, in := range map[string]bool{
			"which decides no claim of the paper.</strong> In the full run (p9, full size, 2026-11-23 16:00 UTC), of the paper's 2 claims 1 hold, 1 fail.": small,
			`<td data-of="full run"><span class="no">fails</span></td><td data-of="this size">holds</td>`:                                                  small,
			"Claims that only the full run has: 1</summary>":                                                                                               small,
			`<span class="">not in its record</span>`:                                                                                                      small,
			"In the full size, of the paper's 2 claims 2 hold":                                                                                             !small,
			"Claims of the paper: 2 of 2 hold":                                                                                                             !small,
			"Seeds: 1 to 3. Run: <a href=\"#run\">p9, " + size:                                                                                             true,
			"<code>sotto paper p9 --" + size + "</code>":                                                                                                   true,
			"doi:10.1/x</a>": true,
		} {
			if strings.Contains(page, want) != in {
				t.Errorf("%s: %q is there: %v", size, want, !in)
			}
		}
	}
}

// TestIndex: the page of all papers links those that are made, with the verdicts of full runs.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	small := &Record{Paper: "p8", Wall: 12, Seeds: "1", Printed: 4, Pieces: []Piece{{Start: time.Unix(0, 0)}}}
	made := []Made{{E: Experiment{Name: "p8", Of: cited, Record: []byte(`{"paper":"p8","full":true,"pieces":[{}],"claims":[{"from":"§1","name":"a","holds":true}]}`)}, Record: small}, {E: Experiment{Name: "p9", Of: cited}}}
	if err := Index(dir, "sotto paper all --small", false, made); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<a href="./p8/index.html">P8</a>: Jane Doe, Ş. İlker`, "1 hold, 0 fail, 0 not tested", ">P9: Jane Doe", "not made yet", "12 s, seeds 1", "decides no claim"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	bib, err := os.ReadFile(filepath.Join(dir, "papers.bib"))
	if err != nil || strings.Count(string(bib), "@") != 3 || !strings.Contains(string(bib), "@misc{sotto-p8,") {
		t.Errorf("%s, %v", bib, err)
	}
}
