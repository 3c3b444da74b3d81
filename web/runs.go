package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

const pageSize = 50 // runs on a page

// runsBody is a page of the list of runs.
type runsBody struct {
	Rows         []runRow
	All, Matched int
	From, To     int
	Query        string
	Status       string
	States       []string
	Earlier      string // addresses of the previous and the next page
	Later        string
	Heads        []head
	Sort         string
	Back         bool
	Dirs         []string
}

// A head is a column of the list; Sorted is what aria-sort says of it.
type head struct {
	Name, Sorted string
	Link         string // that sorts by it; empty: nothing does
	Number       bool
}

// orders are what the list is sorted by. None is a score: choosing by scores is an access that is not charged.
var orders = []struct {
	key, name string
	compare   func(a, b *runEntry) int
}{
	{"name", "Run", func(a, b *runEntry) int { return cmp.Compare(a.Name, b.Name) }},
	{"dataset", "Dataset", func(a, b *runEntry) int { return cmp.Compare(a.Dataset, b.Dataset) }},
	{"method", "Method", func(a, b *runEntry) int { return cmp.Compare(a.Method, b.Method) }},
	{"state", "State", func(a, b *runEntry) int { return cmp.Compare(a.State, b.State) }},
	{"epsilon", "ε", func(a, b *runEntry) int { return cmp.Compare(a.Budget.Epsilon, b.Budget.Epsilon) }},
	{"delta", "δ", func(a, b *runEntry) int { return cmp.Compare(a.Budget.Delta, b.Budget.Delta) }},
	{"", "Quality", nil},
	{"started", "Started", func(a, b *runEntry) int { return a.Started.Compare(b.Started) }},
}

// A runRow is a run in the list, with its progress while it trains.
type runRow struct {
	*runEntry
	Progress *progress
}

func (s *Server) runsPage(r *http.Request) (*content, error) {
	l, q := s.dirs.list(), r.URL.Query()
	b := runsBody{All: len(l.Runs), Query: strings.TrimSpace(q.Get("q")), Status: q.Get("status"), Sort: q.Get("sort"),
		Back: q.Get("back") != "", Dirs: s.options.Dirs,
		States: []string{runlog.Running, stalled, runlog.Interrupted, runlog.Finished, damaged}}
	var matched []*runEntry
	want := strings.ToLower(b.Query)
	for _, e := range l.Runs {
		if (b.Status == "" || e.State == b.Status) &&
			strings.Contains(strings.ToLower(strings.Join([]string{e.Name, e.ID, e.Dataset, e.Method}, "\n")), want) {
			matched = append(matched, e)
		}
	}
	b.Matched = len(matched)
	at, _ := strconv.Atoi(q.Get("page")) // not a number: the first page
	at = max(0, min(at-1, (len(matched)-1)/pageSize))
	from := at * pageSize
	to := min(from+pageSize, len(matched))
	b.From, b.To = min(from+1, to), to
	address := func(at int, sort string, back bool) string {
		v := url.Values{}
		for name, value := range map[string]string{"page": strconv.Itoa(at + 1), "q": b.Query, "status": b.Status,
			"sort": sort} {
			if value != "" && (name != "page" || at > 0) {
				v.Set(name, value)
			}
		}
		if back {
			v.Set("back", "1")
		}
		return "/runs?" + v.Encode()
	}
	for _, o := range orders {
		h := head{Name: o.name, Number: o.key == "epsilon" || o.key == "delta"}
		switch {
		case o.compare == nil:
		case o.key == b.Sort:
			slices.SortStableFunc(matched, o.compare)
			if h.Sorted = "ascending"; b.Back {
				slices.Reverse(matched)
				h.Sorted = "descending"
			}
			fallthrough
		default:
			h.Link = address(0, o.key, o.key == b.Sort && !b.Back)
		}
		b.Heads = append(b.Heads, h)
	}
	if at > 0 {
		b.Earlier = address(at-1, b.Sort, b.Back)
	}
	if to < len(matched) {
		b.Later = address(at+1, b.Sort, b.Back)
	}
	for _, e := range matched[from:to] {
		b.Rows = append(b.Rows, s.row(e))
	}
	return &content{"Runs", l.state, b}, nil
}

// row returns a run with its progress if it has not ended.
func (s *Server) row(e *runEntry) runRow {
	row := runRow{runEntry: e}
	if e.Open() {
		row.Progress = s.progressOf(e)
	}
	return row
}

// runBody is one run.
type runBody struct {
	*runEntry
	Info     *runlog.Info
	Progress *progress
	Charged  int
	Events   []runlog.Charges
	More     int    // lines of events that are not shown
	Spent    string // ε of what was charged, rounded up
	Norms    template.HTML
	Reserved *ledger.Run
	Known    bool // the ledger knows the dataset
	Files    []file
}

// A file of a run directory.
type file struct {
	Name string
	Size int
	At   time.Time
}

const mostEvents = 200 // lines of events on the page of a run

func (s *Server) runPage(r *http.Request) (*content, error) {
	l := s.dirs.list()
	e, err := l.run(r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	b := runBody{runEntry: e}
	var f *runLog
	if b.Info, f, err = recorded(e); err != nil {
		return nil, err
	}
	b.Progress = s.progressOf(e)
	b.Charged, b.Events = f.Record().Charged(), f.Events
	if b.More = len(b.Events) - mostEvents; b.More > 0 {
		b.Events = b.Events[b.More:]
	}
	b.Norms = norms([]*runEntry{e}, []*runLog{f})
	if !e.Off && !e.Open() {
		b.Spent = spent(b.Info, f.Record())
	}
	if v := s.view(r.Context()); v != nil {
		if found, err := v.Run(r.Context(), e.ID); err == nil {
			b.Reserved = &found
		}
		_, err := v.Dataset(r.Context(), e.Dataset)
		b.Known = err == nil
	}
	entries, err := os.ReadDir(e.Dir)
	if err != nil {
		return nil, err
	}
	for _, d := range entries {
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() && !strings.HasPrefix(d.Name(), ".") && d.Name() != runlog.TokenFile {
			b.Files = append(b.Files, file{d.Name(), int(info.Size()), info.ModTime()})
		}
	}
	return &content{"Run on " + b.Dataset, l.state, b}, nil
}

// spent returns ε of the charges of a run, rounded up; empty if there is none.
func spent(i *runlog.Info, rec *runlog.Record) string {
	plan, err := i.PlanEvent()
	if err != nil {
		return ""
	}
	a, err := account.ByName(i.Accountant)
	if err != nil {
		return ""
	}
	epsilon, err := account.Spent(plan, a, rec.Event(), i.Budget.Adjacency, i.Budget.Delta)
	if err != nil {
		return ""
	}
	return chart.NumberUp(epsilon, 4)
}

// norms draws the norms of the released gradients of some runs.
func norms(entries []*runEntry, of []*runLog) template.HTML {
	p := chart.Plot{ID: "norms", Title: "Norm of the released gradient by step", XLabel: "step", YLabel: "gradient norm"}
	for i, f := range of {
		if len(f.Steps) < 2 {
			continue
		}
		x, y := make([]float64, len(f.Steps)), make([]float64, len(f.Steps))
		for k, step := range f.Steps {
			x[k], y[k] = float64(step.T), step.GradNorm
		}
		line := chart.Line{}
		line.X, line.Y = chart.Thin(x, y)
		if len(of) > 1 {
			line.Name = entries[i].Name
		}
		p.Lines = append(p.Lines, line)
		p.Desc += fmt.Sprintf("%s: %s at step %s, %s at step %s. ", entries[i].Name, chart.Number(y[0], 3),
			chart.Number(x[0], 9), chart.Number(y[len(y)-1], 3), chart.Number(x[len(x)-1], 9))
	}
	if len(p.Lines) == 0 {
		return ""
	}
	return p.SVG()
}

// report shows the page that `sotto report` would make now.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	e, err := s.dirs.list().run(r.PathValue("key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	b, err := page.Build(e.Dir)
	if errors.Is(err, record.ErrPart) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// its style is inside
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b)
}

// verifyBody is the result of a verification.
type verifyBody struct {
	*runEntry
	Findings []record.Finding
	Held     int
	Failed   int
	Refused  string // why there is no result
	Ledger   string // that the run was checked against
}

func (s *Server) verifyPage(r *http.Request) (*content, error) {
	e, err := s.dirs.list().run(r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	b := verifyBody{runEntry: e}
	s.verifying.Lock()
	defer s.verifying.Unlock()
	v := s.view(r.Context())
	if e.Lab || v != nil && v.Where() != e.Ledger { // another ledger does not know the run
		v = nil
	}
	if v != nil {
		b.Ledger = v.Where()
	}
	if b.Findings, err = party.Verify(r.Context(), e.Dir, v); err != nil {
		b.Refused = err.Error()
	}
	for _, f := range b.Findings {
		switch {
		case f.Skipped:
		case f.Holds:
			b.Held++
		default:
			b.Failed++
		}
	}
	s.mu.Lock()
	s.verified[e.Key] = verified{e, b.verdict()}
	s.mu.Unlock()
	return &content{Title: "Verification of a run on " + b.Dataset, Body: b}, nil
}

// compareBody is some runs side by side.
type compareBody struct {
	Runs  []*runEntry
	Facts []sideFact
	Norms template.HTML
	Lab   bool
}

// A sideFact is a fact of each run; Differs says that the runs differ in it.
type sideFact struct {
	Name    string
	Values  []string
	Differs bool
}

const mostCompared = 6

func (s *Server) comparePage(r *http.Request) (*content, error) {
	l, b := s.dirs.list(), compareBody{}
	var infos []*runlog.Info
	var records []*runLog
	for _, key := range r.URL.Query()["run"] {
		e, err := l.run(key)
		if err != nil {
			return nil, err
		}
		if slices.Contains(b.Runs, e) || len(b.Runs) == mostCompared {
			continue
		}
		info, f, err := recorded(e)
		if err != nil {
			return nil, err
		}
		b.Runs, infos, records = append(b.Runs, e), append(infos, info), append(records, f)
		b.Lab = b.Lab || e.Lab
	}
	add := func(name string, of func(i int) string) {
		f := sideFact{Name: name}
		for i := range b.Runs {
			f.Values = append(f.Values, of(i))
			f.Differs = f.Differs || f.Values[i] != f.Values[0]
		}
		if slices.ContainsFunc(f.Values, func(v string) bool { return v != "" }) {
			b.Facts = append(b.Facts, f)
		}
	}
	add("state", func(i int) string { return b.Runs[i].State })
	add("dataset", func(i int) string { return infos[i].Dataset })
	add("ε (cap)", func(i int) string { return bound(infos[i], infos[i].Budget.Epsilon) })
	add("δ (cap)", func(i int) string { return bound(infos[i], infos[i].Budget.Delta) })
	shares := func(i int, of func(*account.Shares) string) string {
		if s := infos[i].Shares(); s != nil {
			return of(s)
		}
		return ""
	}
	add("ε and δ hold against", func(i int) string {
		return shares(i, func(s *account.Shares) string { return text.Against(s.Colluders) + ", while masks hold" })
	})
	add("ε against "+text.AgainstAll, func(i int) string {
		return shares(i, func(s *account.Shares) string {
			if s.Alone == nil {
				return "none is proven"
			}
			return chart.NumberUp(*s.Alone, 5)
		})
	})
	add("neighboring relation", func(i int) string { return infos[i].Budget.Adjacency.String() })
	add("ε of what was charged", func(i int) string {
		if infos[i].Off {
			return ""
		}
		return spent(infos[i], records[i].Record())
	})
	add("batches charged", func(i int) string { return chart.Integer(records[i].Record().Charged()) })
	add("method", func(i int) string { return infos[i].Method })
	add("noise multiplier", func(i int) string { return chart.Number(infos[i].NoiseMultiplier, 5) })
	add("steps", func(i int) string {
		if n := len(records[i].Steps); n > 0 {
			return chart.Integer(records[i].Steps[n-1].T)
		}
		return "0"
	})
	add("outcome", func(i int) string { return b.Runs[i].Outcome })
	add("released model", func(i int) string { return infos[i].Output })
	for _, part := range []struct {
		name string
		of   func(*runlog.Info) json.RawMessage
	}{{"model", func(i *runlog.Info) json.RawMessage {
		return i.Model
	}}, {"setting", func(i *runlog.Info) json.RawMessage { return i.Config }}} {
		settings, names := make([]map[string]string, len(infos)), map[string]bool{}
		for i, info := range infos {
			settings[i] = map[string]string{}
			flatten(part.of(info), part.name, settings[i])
			for name := range settings[i] {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			add(name, func(i int) string { return settings[i][name] })
		}
	}
	add("training time", func(i int) string {
		if r := infos[i].Result; r != nil {
			return chart.Number(r.TrainSeconds, 3) + " s"
		}
		return ""
	})
	add("quality, private", func(i int) string { return b.Runs[i].Quality })
	add("test score, not private", func(i int) string { return b.Runs[i].Score })
	add("kernels", func(i int) string { return infos[i].Platform + ", " + infos[i].Kernels })
	add("Sotto", func(i int) string { return infos[i].Version })
	b.Norms = norms(b.Runs, records)
	return &content{Title: "Runs side by side", Body: b}, nil
}

// bound returns a figure of a guarantee, or none.
func bound(i *runlog.Info, v float64) string {
	if i.Off {
		return "none"
	}
	return chart.NumberUp(v, 4)
}

// flatten puts the values of a JSON object into a table, each under its name after that of the object. It leaves out
// what is empty.
func flatten(text json.RawMessage, name string, into map[string]string) {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return
	}
	var put func(name string, v any)
	put = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, of := range v {
				put(name+": "+strings.ReplaceAll(key, "_", " "), of)
			}
		case []any:
			for i, of := range v {
				put(fmt.Sprintf("%s %d", name, i+1), of)
			}
		case float64:
			into[name] = chart.Number(v, 5)
		case bool:
			into[name] = map[bool]string{true: "yes", false: "no"}[v]
		case string:
			into[name] = v
		}
	}
	put(name, v)
}
