// Package page shows the record of a run (package record): as report.html, one page for people that says what the run
// guarantees, how that was computed, how the run went and what is not covered; as text on a terminal; and as the object
// that commands print for programs. It formats: what the guarantee is was recomputed in the record.
//
// The page fetches nothing: style and plots are inside the file.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

//go:embed page.html page.css
var assets embed.FS

var (
	sheet = template.Must(template.New("page.html").Funcs(functions).ParseFS(assets, "page.html"))
	style = must(assets.ReadFile("page.css"))
)

// Style is the style sheet of the page, for other pages that show a plot or a table.
func Style() string { return string(style) }

func must(b []byte, err error) template.CSS {
	if err != nil {
		panic(err) // the file is part of the program
	}
	return template.CSS(b)
}

// Build makes the page of the run in dir. Equal directories give equal bytes. It recomputes the guarantee from the
// record, and replays nothing.
func Build(dir string) ([]byte, error) {
	return makePage(dir, "recomputed from the run log when this page was made, and not verified", nil)
}

// byItself says who made a page: the run, when it ended.
const byItself = "written by the run itself when it ended"

func makePage(dir, how string, life *ledger.History) ([]byte, error) {
	r, err := record.Read(dir, life)
	if err != nil {
		return nil, err
	}
	r.Verified = how
	return Render(r)
}

// Render makes the page of a record.
func Render(r *record.Record) ([]byte, error) {
	var out bytes.Buffer
	err := sheet.Execute(&out, newView(r))
	return chart.Together(out.Bytes()), err
}

// Write makes the page of a run that has just ended and puts it into dir as report.html, as a whole. If life is not
// nil, the page says what the ledger holds of the dataset.
func Write(dir string, life *ledger.History) error {
	b, err := makePage(dir, byItself, life)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return newfile.Replace(filepath.Join(dir, runlog.ReportFile), 0o600, b)
}

// ofLife are the parts of a page that a ledger gives.
var ofLife = regexp.MustCompile(`(?s)<dt>(<a href="#life">)?The dataset’s whole life(</a>)?</dt><dd>.*?</dd>|\n<li><a href="#life">[^\n]*|\n<section id="life">.*?</section>`)

// Compare reports whether report.html in dir is the page that this program makes of the other files. What it says of
// the dataset's whole life, which a ledger gives, is left out.
func Compare(dir string) (same bool, err error) {
	was, err := readfile.All(filepath.Join(dir, runlog.ReportFile), readfile.Page)
	if err != nil {
		return false, err
	}
	now, err := makePage(dir, byItself, nil)
	if err != nil {
		return false, err
	}
	return bytes.Equal(ofLife.ReplaceAll(was, nil), ofLife.ReplaceAll(now, nil)), nil
}

// Rebuild makes the page again of a record, with what does not hold at its top, and returns its path. A report of a
// finished run stays as it is, since it may be sealed: the new one is report.new.html.
func Rebuild(dir string, r *record.Record) (string, error) {
	b, err := Render(r)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	path := filepath.Join(dir, runlog.ReportFile)
	if _, err := os.Lstat(path); err == nil && r.Run.Status == runlog.Finished {
		path = filepath.Join(dir, runlog.NewReportFile)
	}
	return path, newfile.Replace(path, 0o600, b)
}
