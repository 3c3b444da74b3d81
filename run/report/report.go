// Package report writes report.html: one page for people that says what a run
// guarantees, how that was computed, how the run went and what is not covered.
//
// The page is a pure function of the files in the run directory and, where a ledger is at hand, of the dataset's
// history in it. It believes none of their figures for the guarantee: ε is recomputed from the events. It holds public
// facts and released values only, beside scores that are marked as not private, and it fetches nothing: style and plots
// are inside the file.
package report

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

//go:embed page.html page.css
var assets embed.FS

var (
	sheet = template.Must(template.ParseFS(assets, "page.html"))
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

// ErrPart says that a directory is one owner's in a network, which has no page.
var ErrPart = errors.New("an owner's run directory has no report; `sotto verify` checks it")

// Build makes the page of the run in dir. Equal directories give equal bytes. It recomputes the guarantee from the
// record, and replays nothing: Rebuild takes what a verification found.
func Build(dir string) ([]byte, error) {
	return makePage(dir, "recomputed from the run log when this page was made, and not verified", nil, nil)
}

// byItself says how the page came to be that a run writes when it ends.
const byItself = "written by the run itself when it ended"

func makePage(dir, how string, broken []string, life *ledger.History) ([]byte, error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return nil, err
	}
	if info.Network != "" {
		return nil, ErrPart
	}
	rec, err := runlog.Read(dir)
	if err != nil {
		return nil, err
	}
	v, err := newView(info, rec)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{runlog.EventsFile, runlog.ReleasesFile, runlog.ModelFile} {
		sum, err := runlog.Hash(dir, name)
		if err != nil {
			return nil, err
		}
		v.Hashes = append(v.Hashes, fact{name, sum})
	}
	if v.Effects, err = effectsIn(dir); err != nil {
		return nil, err
	}
	v.Style, v.How = style, how
	v.lifetime(life)
	for _, what := range broken {
		v.Alarms = append(v.Alarms, "`sotto verify` finds that this does not hold: "+what)
	}
	v.summarize()
	var out bytes.Buffer
	err = sheet.Execute(&out, v)
	return out.Bytes(), err
}

// Write makes the page of a run that has just ended and puts it into dir as report.html, as a whole. If life is not
// nil, the page says what the ledger holds of the dataset.
func Write(dir string, life *ledger.History) error {
	b, err := makePage(dir, byItself, nil, life)
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
	now, err := makePage(dir, byItself, nil, nil)
	if err != nil {
		return false, err
	}
	return bytes.Equal(ofLife.ReplaceAll(was, nil), ofLife.ReplaceAll(now, nil)), nil
}

// Rebuild makes the page again, with what a verification of the run found not to hold at its top, and returns its
// path. A report of a finished run stays as it is, since it may be sealed: the new one is report.new.html.
func Rebuild(dir string, verified bool, broken []string, life *ledger.History) (string, error) {
	how := "verified against its log when this page was made"
	if !verified {
		how = "not verified, since the run is not finished"
	}
	b, err := makePage(dir, how, broken, life)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	path := filepath.Join(dir, runlog.ReportFile)
	if _, err := os.Lstat(path); err == nil && verified {
		path = filepath.Join(dir, runlog.NewReportFile)
	}
	return path, newfile.Replace(path, 0o600, b)
}
