package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// A snapshot is the list of datasets at a head of the ledger.
type snapshot struct {
	head ledger.Head
	list []ledger.Dataset
}

// view is the ledger, read-only; nil while it cannot be read.
func (s *Server) view(ctx context.Context) *ledger.Ledger {
	l, _ := s.open(ctx)
	return l
}

func (s *Server) open(ctx context.Context) (*ledger.Ledger, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger != nil {
		if !errors.Is(s.ledger.Here(), ledger.ErrGone) {
			return s.ledger, nil
		}
		s.ledger, s.read = nil, nil // View returns the error; other requests may still read the old one
	}
	l, err := ledger.View(ctx, s.options.Ledger)
	if err != nil {
		return nil, err
	}
	s.ledger = l
	return l, nil
}

// where is the location of the ledger, if it is open.
func (s *Server) where() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil {
		return ""
	}
	return s.ledger.Where()
}

// datasetsBody is the list of datasets.
type datasetsBody struct {
	Place    string // of the ledger
	None     string // why there is no list
	Datasets []budgeted
}

// budgeted is a dataset with the rest of its budget and the bars that show it.
type budgeted struct {
	ledger.Dataset
	Left string
	Bars []labeled
}

func budget(d ledger.Dataset) budgeted { return budgeted{d, left(d), bars(d)} }

// left says what new runs may still reserve, rounded down.
func left(d ledger.Dataset) string {
	switch {
	case d.Budget == nil:
		return "no budget is set"
	case d.Part != nil:
		return fmt.Sprintf("%s %% of (ε %s, δ %s)", chart.NumberDown(100*max(0, 1-*d.Part), 3),
			chart.Full(d.Budget.Epsilon), chart.Full(d.Budget.Delta))
	}
	text := fmt.Sprintf("ε %s of %s", chart.NumberDown(d.Left.Epsilon, 4), chart.Full(d.Budget.Epsilon))
	if d.Budget.Delta > 0 {
		text += fmt.Sprintf(", δ %s of %s", chart.NumberDown(d.Left.Delta, 4), chart.Full(d.Budget.Delta))
	}
	return text
}

type labeled struct {
	Name, Text string
	Bar        template.HTML
}

func (s *Server) datasetsPage(r *http.Request) (*content, error) {
	b, err := s.datasets(r.Context())
	return &content{Title: "Datasets", Body: b}, err
}

// datasets lists the datasets of the ledger, or says why there is no list.
func (s *Server) datasets(ctx context.Context) (b datasetsBody, err error) {
	l, err := s.open(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return datasetsBody{None: "There is no ledger yet: the first run that reserves a budget makes it."}, nil
	case errors.Is(err, ledger.ErrWitness), errors.Is(err, ledger.ErrNotLedger):
		return datasetsBody{None: err.Error()}, nil
	case err != nil:
		return b, err
	}
	head, err := l.Head(ctx)
	if err != nil {
		return b, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil || s.read.head != head {
		list, err := l.Datasets(ctx)
		if err != nil {
			return b, err
		}
		s.read = &snapshot{head, list}
	}
	b.Place = l.Where()
	for _, d := range s.read.list {
		b.Datasets = append(b.Datasets, budget(d))
	}
	return b, nil
}

// bars draw the charged share of a lifetime budget.
func bars(d ledger.Dataset) []labeled {
	switch {
	case d.Budget == nil:
		return nil
	case d.Part != nil:
		text := fmt.Sprintf("%s held or settled", ledger.Percent(*d.Part))
		return []labeled{{"of the budget, in " + d.Currency, text, bar(100**d.Part, text)}}
	}
	one := func(name string, spent, budget float64) labeled {
		text := fmt.Sprintf("%s of %s reserved", chart.Full(spent), chart.Full(budget))
		part := 0.0
		if budget > 0 {
			part = 100 * spent / budget
		}
		return labeled{name, text, bar(part, name+": "+text)}
	}
	list := []labeled{one("ε", d.Spent.Epsilon, d.Budget.Epsilon)}
	if d.Budget.Delta > 0 {
		list = append(list, one("δ", d.Spent.Delta, d.Budget.Delta))
	}
	return list
}

// datasetBody is one dataset.
type datasetBody struct {
	budgeted
	Runs    []charged // the last to reserve first
	History template.HTML
	Entries []ledger.Entry // the newest first
	// how many entries and runs there are, on pages of mostEntries of each, the newest on the first
	All, AllRuns, Page, Newer, Older int
}

// A charged is a run in the ledger, with its directory if it is listed here.
type charged struct {
	ledger.Run
	Entry     *runEntry
	Described string // the key of its private statistics; empty: it has none, or its directory is elsewhere
	Left      string // ε of the current budget after it, under caps
}

// mostEntries is how many runs and how many entries a page has. Tests change it.
var mostEntries = 500

const mostPages = 1 << 20

func (s *Server) datasetPage(r *http.Request) (*content, error) {
	ctx := r.Context()
	l, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	d, err := l.Dataset(ctx, r.PathValue("name"))
	if errors.Is(err, ledger.ErrUnknownDataset) {
		return nil, missing("the ledger knows no dataset of this name")
	}
	if err != nil {
		return nil, err
	}
	page, _ := strconv.Atoi(r.FormValue("page"))
	page = min(max(page, 1), mostPages)
	skip := (page - 1) * mostEntries
	runs, allRuns, err := l.LastRuns(ctx, d.Name, skip, mostEntries)
	if err != nil {
		return nil, err
	}
	b := datasetBody{budgeted: budget(d), History: history(d, runs, max(0, allRuns-skip)), AllRuns: allRuns, Page: page}
	if b.Entries, b.All, err = l.LastEntries(ctx, d.Name, skip, mostEntries); err != nil {
		return nil, err
	}
	dirs := s.dirs.list()
	known, statistics := map[string]*runEntry{}, map[string]string{}
	for _, e := range dirs.Runs {
		known[e.ID] = e
	}
	for _, p := range dirs.Described {
		if !slices.ContainsFunc(runs, func(r ledger.RunAfter) bool { return known[r.ID] == nil }) {
			break // all are runs of models
		}
		if d, err := runlog.ReadDescription(p.Dir); err == nil {
			statistics[d.ID] = p.Key
		}
	}
	for _, run := range runs {
		c := charged{Run: run.Run, Entry: known[run.ID], Described: statistics[run.ID]}
		if d.Left != nil {
			c.Left = chart.NumberDown(max(0, d.Budget.Epsilon-run.After.Epsilon), 4)
		}
		b.Runs = append(b.Runs, c)
	}
	slices.Reverse(b.Runs)
	slices.Reverse(b.Entries)
	if page > 1 {
		b.Newer = page - 1
	}
	if max(b.All, allRuns) > skip+mostEntries && page < mostPages {
		b.Older = page + 1
	}
	return &content{Title: "Dataset " + b.Name, Body: b}, nil
}

// history draws the growth of the reserved ε, a step for each of these runs, under basic composition (caps). last is
// how many runs there are up to the last of them.
func history(d ledger.Dataset, runs []ledger.RunAfter, last int) template.HTML {
	if d.Currency != ledger.InCaps || len(runs) == 0 {
		return ""
	}
	first := last - len(runs)
	before := 0.0
	if first > 0 {
		before = max(0, runs[0].After.Epsilon-runs[0].Caps.Epsilon)
	}
	x, y := []float64{float64(first)}, []float64{before}
	for i, run := range runs {
		n := float64(first + i + 1)
		x, y = append(x, n, n), append(y, y[len(y)-1], run.After.Epsilon)
	}
	line := chart.Line{Name: "ε reserved by all runs"}
	line.X, line.Y = chart.Thin(x, y)
	p := chart.Plot{ID: "history", Title: "ε reserved, run by run", XLabel: "runs", YLabel: "ε", Counts: true,
		Lines: []chart.Line{line},
		Desc: fmt.Sprintf("After %s runs, ε = %s is reserved.", chart.Integer(last),
			chart.Full(runs[len(runs)-1].After.Epsilon))}
	if d.Budget != nil {
		p.Level, p.LevelName = &d.Budget.Epsilon, "lifetime budget: ε = "+chart.Full(d.Budget.Epsilon)
	}
	return p.SVG()
}
