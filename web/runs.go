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
	"github.com/sottodp/sotto/page/description"
	"github.com/sottodp/sotto/privacy"
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
	Described    []place
}

// A head is a column of the list; Sorted is what aria-sort says of it.
type head struct {
	Name, Sorted string
	Link         string // that sorts by it; empty: nothing does
	Number       bool
}

// orders lists the sort orders of the list of runs. Scores are not among them, since choosing a run
// by its score is an uncharged access.
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
	b := runsBody{All: len(l.Runs), Described: l.Described,
		Query: strings.TrimSpace(q.Get("q")), Status: q.Get("status"), Sort: q.Get("sort"),
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
	Record   *record.Record
	Progress *progress
	Norms    template.HTML
	Reserved *ledger.Run
	Known    bool // the ledger knows the dataset
	Files    []file
	Others   []*runEntry // the newest other runs on the dataset
}

// mostOthers bounds the runs that the page of a run names beside it.
const mostOthers = 5

// A file of a run directory.
type file struct {
	Name string
	Size int
	At   time.Time
}

func (s *Server) runPage(r *http.Request) (*content, error) {
	l := s.dirs.list()
	e, err := l.run(r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	b := runBody{runEntry: e}
	for _, other := range l.Runs {
		if other != e && other.Damage == "" && other.Dataset == e.Dataset && len(b.Others) < mostOthers {
			b.Others = append(b.Others, other)
		}
	}
	if b.Record, _, err = recorded(e, !e.Open()); err != nil {
		return nil, err
	}
	b.Progress = s.progressOf(e)
	b.Norms = norms([]*runEntry{e}, []*record.Record{b.Record})
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
	return &content{fmt.Sprintf("Run %s on %s", b.Name, b.Dataset), l.state, b}, nil
}

// spent writes ε of what was charged; empty if it is not known.
func spent(epsilon *record.Bound) string {
	if epsilon == nil {
		return ""
	}
	return chart.Upper(float64(*epsilon))
}

// eventText writes an event as the ledger does.
func eventText(text json.RawMessage) string {
	e, err := privacy.UnmarshalEvent(text)
	if err != nil {
		return string(text)
	}
	return e.String()
}

// norms draws the norms of the released gradients of some runs.
func norms(entries []*runEntry, of []*record.Record) template.HTML {
	p := chart.Plot{ID: "norms", Title: "Norm of the released gradient by step", XLabel: "step", YLabel: "gradient norm",
		Counts: true}
	for i, r := range of {
		n := r.Course.Norms
		if n == nil || n.Count < 2 {
			continue
		}
		line := chart.Line{X: n.Step, Y: n.Value}
		if len(of) > 1 {
			line.Name = entries[i].Name
		}
		p.Lines = append(p.Lines, line)
		last := len(n.Step) - 1
		p.Desc += fmt.Sprintf("%s: %s at step %s, %s at step %s. ", entries[i].Name, chart.Number(n.First, 3),
			chart.Number(n.Step[0], 9), chart.Number(n.Last, 3), chart.Number(n.Step[last], 9))
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
	writePage(w, b, err)
}

// described shows private statistics.
func (s *Server) described(w http.ResponseWriter, r *http.Request) {
	e, err := find(s.dirs.list().Described, r.PathValue("key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	d, err := runlog.ReadDescription(e.Dir)
	var b []byte
	if err == nil {
		b, err = description.Page(d)
	}
	writePage(w, b, err)
}

// writePage writes a self-contained page, or an error.
func writePage(w http.ResponseWriter, b []byte, err error) {
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
	var records []*record.Record
	var steps []int
	for _, key := range r.URL.Query()["run"] {
		e, err := l.run(key)
		if err != nil {
			return nil, err
		}
		if slices.Contains(b.Runs, e) || len(b.Runs) == mostCompared {
			continue
		}
		of, log, err := recorded(e, true)
		if err != nil {
			return nil, err
		}
		b.Runs, records, steps = append(b.Runs, e), append(records, of), append(steps, 0)
		if n := len(log.Steps); n > 0 {
			steps[len(steps)-1] = log.Steps[n-1].T
		}
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
	of := func(i int) *record.Run { return &records[i].Run }
	guarantee := func(name string, of func(g *record.Guarantee) string, none string) {
		add(name, func(i int) string {
			if g := records[i].Guarantee; g != nil {
				return of(g)
			}
			return none
		})
	}
	shares := func(name string, of func(*record.Shares) string) {
		guarantee(name, func(g *record.Guarantee) string {
			if g.Shares == nil {
				return ""
			}
			return of(g.Shares)
		}, "")
	}
	add("dataset", func(i int) string { return of(i).Dataset })
	guarantee("ε (cap)", func(g *record.Guarantee) string { return chart.Full(g.Epsilon) }, "none")
	guarantee("δ (cap)", func(g *record.Guarantee) string { return chart.Full(g.Delta) }, "none")
	shares("ε and δ hold against", func(s *record.Shares) string { return s.Against + ", while masks hold" })
	shares("ε against "+text.AgainstAll, func(s *record.Shares) string {
		if s.EpsilonAlone == nil {
			return "none is proven"
		}
		return chart.Upper(*s.EpsilonAlone)
	})
	add("quality, private", func(i int) string { return b.Runs[i].Quality })
	add("test score, not private", func(i int) string { return b.Runs[i].Score })
	add("neighboring relation", func(i int) string { return records[i].Protection.Relation })
	guarantee("ε of what was charged", func(g *record.Guarantee) string { return spent(g.Realized) }, "")
	add("batches charged", func(i int) string { return chart.Integer(records[i].Course.Charged) })
	add("method", func(i int) string { return of(i).Method })
	add("noise multiplier", func(i int) string { return chart.Number(of(i).NoiseMultiplier, 5) })
	add("steps", func(i int) string { return chart.Integer(steps[i]) })
	add("outcome", func(i int) string { return b.Runs[i].Outcome })
	add("released model", func(i int) string { return of(i).Output })
	for _, part := range []struct {
		name string
		of   func(*record.Public) []record.Setting
	}{{"model", func(p *record.Public) []record.Setting { return p.Model }},
		{"setting", func(p *record.Public) []record.Setting { return p.Method }}} {
		settings, names := make([]map[string]string, len(records)), map[string]bool{}
		for i, r := range records {
			settings[i] = map[string]string{}
			for _, s := range part.of(&r.Public) {
				flatten(s, part.name, settings[i])
			}
			for name := range settings[i] {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			add(name, func(i int) string { return settings[i][name] })
		}
	}
	add("training time", func(i int) string {
		if r := of(i); r.Outcome != "" {
			return chart.Number(r.TrainSeconds, 3) + " s"
		}
		return ""
	})
	add("kernels", func(i int) string { return of(i).Platform + ", " + of(i).Kernels })
	add("Sotto", func(i int) string { return of(i).Version })
	b.Norms = norms(b.Runs, records)
	return &content{Title: "Runs side by side", Body: b}, nil
}

// flatten puts a setting into a table, its parts each under its name after that of the whole. It leaves out what is
// empty.
func flatten(s record.Setting, of string, into map[string]string) {
	var v any
	if json.Unmarshal(s.Value, &v) != nil {
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
	put(of+": "+strings.ReplaceAll(s.Name, "_", " "), v)
}
