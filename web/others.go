package web

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/study/audit"
	"github.com/sottodp/sotto/study/compare"
)

func (s *Server) comparisonsPage(*http.Request) (*content, error) {
	l := s.dirs.list()
	return &content{"Comparisons", l.state, l.Comparisons}, nil
}

// A training in a network, as shown by the owners' run directories on this machine.
type training struct {
	Name  string
	Parts []runRow
}

func (s *Server) networksPage(*http.Request) (*content, error) {
	l := s.dirs.list()
	var trainings []training
	for _, e := range l.Runs {
		if e.Network == "" {
			continue
		}
		name, _, _ := strings.Cut(e.Network, "/")
		i := slices.IndexFunc(trainings, func(t training) bool { return t.Name == name })
		if i < 0 {
			i, trainings = len(trainings), append(trainings, training{Name: name})
		}
		trainings[i].Parts = append(trainings[i].Parts, runRow{e, s.progressOf(e)})
	}
	for _, t := range trainings {
		slices.SortFunc(t.Parts, func(a, b runRow) int { return cmp.Compare(a.Network, b.Network) })
	}
	return &content{"Networks", l.state, trainings}, nil
}

// auditBody is the result of an audit.
type auditBody struct {
	place
	*audit.Result
}

// Meaning explains the bound of an audit.
func (auditBody) Meaning() string { return audit.Meaning }

// An audited is an audit in a list, or why it cannot be read.
type audited struct {
	place
	*audit.Result
	Damage string
}

func (s *Server) auditsPage(*http.Request) (*content, error) {
	l := s.dirs.list()
	var list []audited
	for _, p := range l.Audits {
		a := audited{place: p}
		var err error
		if a.Result, err = audit.Read(p.Dir); err != nil {
			a.Damage = err.Error()
		}
		list = append(list, a)
	}
	return &content{"Audits", l.state, list}, nil
}

func (s *Server) auditPage(r *http.Request) (*content, error) {
	p, err := find(s.dirs.list().Audits, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	a, err := audit.Read(p.Dir)
	if err != nil {
		return nil, err
	}
	return &content{Title: "Audit " + p.Name, Body: auditBody{p, a}}, nil
}

// comparisonBody is the result of `sotto compare`.
type comparisonBody struct {
	place
	Notice string
	Done   int // trainings
	Whole  bool
	Figure bool
	Tables []cellsTable
}

// A cellsTable holds the results on one table of records.
type cellsTable struct {
	Name, Measure string
	Rows          []compare.Row
	Plot          template.HTML
}

// mostLines is how many lines of a plot have a style of their own.
const mostLines = 6

// scores draws the scores of each method at each ε beside each other, with bars of one standard deviation.
func (t cellsTable) scores(id string) template.HTML {
	p := chart.Plot{ID: id, Title: "Score of each method",
		Desc: "Means with bars of one standard deviation; the table holds the figures.", XLabel: "ε", YLabel: t.Measure,
		Tight: true}
	for _, row := range t.Rows {
		if row.Refused != "" || math.IsNaN(row.Mean) {
			continue
		}
		x := slices.Index(p.Categories, row.Epsilon)
		if x < 0 {
			x, p.Categories = len(p.Categories), append(p.Categories, row.Epsilon)
		}
		i := slices.IndexFunc(p.Lines, func(l chart.Line) bool { return l.Name == row.Method })
		if i < 0 {
			i, p.Lines = len(p.Lines), append(p.Lines, chart.Line{Name: row.Method})
		}
		l := &p.Lines[i]
		l.X, l.Y, l.SD = append(l.X, float64(x)), append(l.Y, row.Mean), append(l.SD, row.SD)
	}
	if len(p.Lines) == 0 || len(p.Lines) > mostLines {
		return ""
	}
	return p.SVG()
}

func (s *Server) comparisonPage(r *http.Request) (*content, error) {
	p, err := find(s.dirs.list().Comparisons, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	b := comparisonBody{place: p, Notice: compare.Notice}
	if b.Done, err = compare.Done(p.Dir); err != nil {
		return nil, err
	}
	rows, err := compare.ReadRows(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &content{Title: "Comparison " + p.Name, Body: b}, nil // it is not finished
	}
	if err != nil {
		return nil, err
	}
	b.Whole = true
	_, err = os.Stat(filepath.Join(p.Dir, compare.Chart))
	b.Figure = err == nil
	for _, row := range rows {
		n := len(b.Tables)
		if n == 0 || b.Tables[n-1].Name != row.Table {
			b.Tables, n = append(b.Tables, cellsTable{Name: row.Table, Measure: row.Measure}), n+1
		}
		b.Tables[n-1].Rows = append(b.Tables[n-1].Rows, row)
	}
	for i := range b.Tables {
		b.Tables[i].Plot = b.Tables[i].scores(fmt.Sprintf("scores%d", i))
	}
	return &content{Title: "Comparison " + p.Name, Body: b}, nil
}

// figure is the chart of a comparison; the policy lets no script run in it.
func (s *Server) figure(w http.ResponseWriter, r *http.Request) {
	p, err := find(s.dirs.list().Comparisons, r.PathValue("key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	b, err := readfile.All(filepath.Join(p.Dir, compare.Chart), readfile.Page)
	if err != nil {
		http.Error(w, "there is no figure", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	asset("image/svg+xml", b)(w, r)
}
