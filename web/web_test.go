package web

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/audit"
	"github.com/sottodp/sotto/study/tune"
)

// A site is a dashboard at work over a directory of the test's own.
type site struct {
	t           testing.TB
	root        string // holds runs/ and ledger.db
	server      *Server
	link, where string
	client      *http.Client
}

// open serves what lies in root.
func open(t testing.TB, root string) *site {
	t.Helper()
	s, err := New(Options{Dirs: []string{filepath.Join(root, "runs")}, Ledger: filepath.Join(root, "ledger.db"), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	link := s.Link(l)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, root: root, server: s, link: link, where: "http://" + l.Addr().String(), client: &http.Client{Jar: jar, Timeout: needs.Patience}}
}

// enter opens the link.
func (s *site) enter() *site {
	s.t.Helper()
	if status, text := s.get(strings.TrimPrefix(s.link, s.where)); status != http.StatusOK {
		s.t.Fatalf("%d: %s", status, text)
	}
	return s
}

func (s *site) get(path string) (status int, text string) {
	s.t.Helper()
	r, err := s.client.Get(s.where + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, strings.ReplaceAll(string(b), "&nbsp;", " ")
}

// fit trains on the clinic.
func fit(t testing.TB, root, name string, more ...run.Override) string {
	t.Helper()
	dir := filepath.Join(root, "runs", name)
	spec, err := run.LoadSpec("../examples/clinic/sotto.yaml", append([]run.Override{
		{Path: "out", Value: dir, From: "out"}, {Path: "ledger", Value: filepath.Join(root, "ledger.db"), From: "ledger"},
	}, more...))
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := run.Fit(context.Background(), job, run.Env{Version: "test", Report: page.Write}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A trainee is a run that the test drives by hand.
type trainee struct {
	t    testing.TB
	dir  string
	info *runlog.Info
	w    *runlog.Writer
	done int
}

// train begins a run of so many steps, in the terms of the finished one in like.
func train(t testing.TB, like, dir string, steps int) *trainee {
	t.Helper()
	info, err := runlog.ReadInfo(like)
	if err != nil {
		t.Fatal(err)
	}
	info.ID, info.Status, info.Finished, info.Result, info.Hashes = filepath.Base(dir), runlog.Running, nil, nil, nil
	info.MaxSteps, info.Started = steps, time.Now().UTC()
	info.Accountant = "zcdp"
	if info.Plan, err = privacy.MarshalEvent(privacy.Repeated{Count: steps, Of: gauss}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &trainee{t: t, dir: dir, info: info}
	if r.w, err = runlog.Create(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.w.Close() })
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	return r
}

var gauss = privacy.Gaussian{Sigma: 100}

// killed leaves a run whose process has ended without its end.
func killed(t testing.TB, like, dir string) {
	t.Helper()
	r := train(t, like, dir, 40)
	r.step(7)
	unlock, err := run.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	long := time.Now().Add(-time.Hour)
	r.info.Started = long.UTC()
	if err := runlog.WriteInfo(dir, r.info); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, runlog.StepsFile), long, long); err != nil {
		t.Fatal(err)
	}
}

// step takes some steps and makes them durable.
func (r *trainee) step(n int) {
	r.t.Helper()
	for range n {
		r.done++
		if err := r.w.Charge(gauss); err != nil {
			r.t.Fatal(err)
		}
		if err := r.w.Release([][]float64{{1, 2}}); err != nil {
			r.t.Fatal(err)
		}
		r.w.Step(runlog.Step{T: r.done, Rate: 1, GradNorm: 1 / float64(r.done), Moved: 1})
	}
	if err := r.w.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// end ends the run.
func (r *trainee) end() {
	r.t.Helper()
	now := time.Now().UTC()
	r.info.Status, r.info.Finished = runlog.Finished, &now
	r.info.Result = &runlog.Result{Steps: r.done, Charged: r.done, Outcome: "done"}
	if err := runlog.WriteInfo(r.dir, r.info); err != nil {
		r.t.Fatal(err)
	}
}

// search leaves the best of a search.
func search(t testing.TB, root string) {
	t.Helper()
	dir, file := filepath.Join(root, "runs", "tuned"), filepath.Join(t.TempDir(), "spec.yaml")
	clinic, err := filepath.Abs("../examples/clinic")
	if err != nil {
		t.Fatal(err)
	}
	text := "data: " + clinic + "/patients.csv\nschema: " + clinic + "/schema.yaml\nledger: " + filepath.Join(root, "searches.db") + "\nmodel: {name: logistic}\n" +
		"privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\ntune: {mean: 2, methods: [{label: short, name: sgd, steps: 2}, {label: long, name: sgd, steps: 4}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := tune.New(file, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(context.Background(), noise.SeededStreams(1), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(dir, 0o755), r.Write(dir, "test")); err != nil {
		t.Fatal(err)
	}
}

// part begins an owner's part of a training among owners, in the terms of the run in like, and takes two activations.
func part(t testing.TB, like, dir string) {
	t.Helper()
	info, err := runlog.ReadInfo(like)
	if err != nil {
		t.Fatal(err)
	}
	info.ID, info.Status, info.Finished, info.Result, info.Hashes, info.Network = "p1", runlog.Running, nil, nil, nil, "n7/east"
	info.MaxSteps, info.Started = 40, time.Now().Add(-time.Hour).UTC() // the oldest in the list
	if err := errors.Join(os.MkdirAll(dir, 0o755), runlog.WriteInfo(dir, info)); err != nil {
		t.Fatal(err)
	}
	j, err := runlog.CreateJournal(filepath.Join(dir, runlog.JournalFile), runlog.JournalHead{Run: "p1", Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		if err := errors.Join(j.Charge(gauss), j.Release([][]float64{{1, 2}}), j.Send(round, []float64{1, 2})); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// filled is a root with two finished runs, one that trains, one that is damaged, a search, an
// owner's part in a network, a budget, a rehearsal, a comparison and an audit.
func filled(t testing.TB) (root string, r *trainee) {
	t.Helper()
	root = t.TempDir()
	like := fit(t, root, "first")
	fit(t, root, "second", run.Override{Path: "privacy.epsilon", Value: "0.5", From: "epsilon"})
	ctx := context.Background()
	l, err := ledger.Open(ctx, filepath.Join(root, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetBudget(ctx, "clinic", "record", "", privacy.Budget{Epsilon: 5, Delta: 1e-4, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	r = train(t, like, filepath.Join(root, "runs", "third"), 1000)
	r.step(20)
	search(t, root)
	part(t, like, filepath.Join(root, "runs", "demo", "east"))
	found := audit.Result{Method: "sgd", Attack: audit.ManyRuns, Adjacency: privacy.AddRemove, Unit: "record", Rows: 4000, Epsilon: 4, Delta: 1e-5, Bound: 1.5, Plain: 1.25, Failure: 0.05, Runs: 80, Steps: 9}
	if err := found.Write(filepath.Join(root, "runs", "audited")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"runs/damaged/run.json": `{"format":"sotto-run/1","<b>":1}`,
		"runs/cmp/compare.json": `{"id":"c1","version":"test","plan":{}}`,
		"runs/cmp/runs.jsonl":   "{}\n{}\n",
		"runs/cmp/compare.svg":  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>`,
		"runs/cmp/cells.csv": "table,method,epsilon,delta,adjacency,runs,diverged,measure,score_mean,score_sd,score_median,objective_mean,objective_sd,objective_median,seconds_mean,seconds_sd,seconds_median,noise_multiplier,refused\n" +
			"clinic,sgd,1,0.00001234567890123,add-or-remove,2,0,accuracy,0.9,0.01,0.9,0.3,0.1,0.3,1,0,1,3,\nclinic,amp,1,1e-05,add-or-remove,0,0,accuracy,,,,,,,,,,,no theorem\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, r
}

// keyIn is the key of a directory below runs/.
func (s *site) keyIn(name string) string { return placeOf(filepath.Join(s.root, "runs", name)).Key }

// Every page says what it is for, and all of them together have changed no file.
func TestPages(t *testing.T) {
	root, _ := filled(t)
	before := contents(t, root)
	s := open(t, root).enter()
	for _, c := range []struct {
		path   string
		status int
		has    []string
	}{
		{"/", 200, []string{"ε 3.5 of 5, δ 0.00008 of 0.0001", "not verified yet", "All 6 runs", "accuracy 0."}},
		{"/runs", 200, []string{"1 to 6 of 6 runs", "damaged", "first", "second", "third", `class="step">20</b> of 1,000`, "unknown field &#34;&lt;b&gt;&#34;"}},
		{"/runs?q=SECOND", 200, []string{"1 to 1 of 1 runs", "; 6 in all"}},
		{"/runs?q=nothing", 200, []string{"No run matches"}},
		{"/runs?status=running", 200, []string{"1 to 2 of 2 runs", ">third<", ">east<"}},
		{"/runs?sort=name", 200, []string{`aria-sort="ascending"><a href="/runs?back=1&amp;sort=name">Run`}},
		{"/runs?sort=score", 200, []string{"1 to 6 of 6 runs"}},
		{"/runs?page=x", 200, []string{"1 to 6 of 6 runs"}},
		{"/runs?page=99", 200, []string{"1 to 6 of 6 runs"}},
		{"/runs/" + s.keyIn("first"), 200, []string{"ε = 1, δ = 0.00001, add-or-remove, for each record of <b>clinic</b>", "What was charged is ε =", "Reserved ε 1, δ 0.00001", "not private", `id="norms-t"`}},
		{"/runs/" + s.keyIn("third"), 200, []string{`class="step">20</b> of 1,000`, "20 batches were charged", "20</td><td>Gaussian(σ=100)"}},
		{"/runs/" + s.keyIn("damaged"), 500, []string{"This cannot be shown", "unknown field"}},
		{"/runs/" + s.keyIn("none"), 404, []string{"Not found"}},
		{"/runs/" + s.keyIn("first") + "/report", 200, []string{"Privacy report: clinic"}},
		{"/runs/" + s.keyIn("third") + "/report", 200, []string{"This run is not finished"}},
		{"/runs/" + s.keyIn("first") + "/verify", 200, []string{"All 11 hold.", "compared with the ledger"}},
		{"/runs/" + s.keyIn("third") + "/verify", 200, []string{"only a finished run can be verified"}},
		{"/compare?run=" + s.keyIn("first") + "&run=" + s.keyIn("second"), 200, []string{"<td>1</td><td>0.5</td>", "setting: momentum", "model: name", "<td>logistic</td>", "training time", "access that is not charged", `class="l1"`}},
		{"/compare", 200, []string{"No run was chosen"}},
		{"/datasets", 200, []string{"ε: 1.5 of 5 reserved", "ε 3.5 of 5", "2 charges"}},
		{"/datasets/clinic", 200, []string{"together (ε 5, δ 0.0001)-differentially private", "ε 0.5, δ 0.00001</td><td class=\"num\" data-name=\"ε left after it\">3.5</td>", `/runs/` + s.keyIn("second"), "lifetime budget: ε = 5"}},
		{"/datasets/none", 404, []string{"knows no dataset of this name"}},
		{"/comparisons", 200, []string{">cmp<"}},
		{"/comparisons/" + s.keyIn("cmp"), 200, []string{"2 trainings done", "90.00 ± 1.00 (90.00)", "refused: no theorem", "figure.svg", `class="l0 bar"`}},
		{"/comparisons/" + s.keyIn("cmp") + "/figure.svg", 200, []string{"<svg"}},
		{"/networks", 200, []string{"Training n7", ">east</a>", `class="step">2</b> of 40`}},
		{"/runs/" + s.keyIn("demo/east"), 200, []string{"part of n7/east", "2 batches were charged", "2</td><td>Gaussian(σ=100)"}},
		{"/runs/" + s.keyIn("demo/east") + "/report", 404, []string{"an owner's run directory has no report"}},
		{"/runs/" + s.keyIn("tuned"), 200, []string{`<span class="meta">search</span>`, "The best of a secret, random number of trainings, 2 on average", "drawn from short, long", "finished, done after 1 step"}},
		{"/runs/" + s.keyIn("tuned") + "/verify", 200, []string{"All 8 hold.", "none but the model"}},
		{"/audits", 200, []string{">audited<", "not contradicted", ">1.5<"}},
		{"/audits/" + s.keyIn("audited"), 200, []string{"The claim is not contradicted", "≥ 1.5", "≤ 4", "Bound beside claim", `<th scope="row">How</th><td>80 runs of sgd`, "A bound below the claim proves nothing"}},
		{"/audits/none", 404, []string{"Not found"}},
		{"/elsewhere", 404, []string{"not found"}},
	} {
		status, text := s.get(c.path)
		if status != c.status {
			t.Errorf("%s: status %d, want %d\n%s", c.path, status, c.status, text)
		}
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", c.path, want, text)
			}
		}
		for _, never := range []string{"ZgotmplZ", "<no value>", "%!", "resume.token", "<nil>"} {
			if strings.Contains(text, never) {
				t.Errorf("%s holds %q", c.path, never)
			}
		}
	}
	if after := contents(t, root); !maps.Equal(before, after) {
		t.Errorf("files have changed, come or gone: %v, were %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// The list is sorted by public columns, either way, and the home page knows what was verified.
func TestOrderAndVerdict(t *testing.T) {
	root := t.TempDir()
	fit(t, root, "a")
	fit(t, root, "b", run.Override{Path: "privacy.epsilon", Value: "0.5", From: "epsilon"})
	s := open(t, root).enter()
	for _, c := range []struct{ query, first string }{{"", "b"}, {"sort=started", "a"}, {"sort=started&back=1", "b"}, {"sort=epsilon", "b"}, {"sort=epsilon&back=1", "a"}, {"sort=name&back=1", "b"}} {
		_, text := s.get("/runs?" + c.query)
		if a, b := strings.Index(text, ">a</a>"), strings.Index(text, ">b</a>"); a < 0 || b < 0 || (a < b) != (c.first == "a") {
			t.Errorf("%q: found a at %d, b at %d; %s is first", c.query, a, b, c.first)
		}
	}
	count := func(want string) int {
		_, text := s.get("/")
		return strings.Count(text, want)
	}
	if n := count("not verified yet"); n != 2 {
		t.Errorf("%d of 2 runs are not verified", n)
	}
	s.get("/runs/" + s.keyIn("a") + "/verify")
	if n, m := count(">verified</span>"), count("not verified yet"); n != 1 || m != 1 {
		t.Errorf("%d verified, %d not; 1 of each", n, m)
	}
	text, err := os.ReadFile(filepath.Join(root, "runs", "a", runlog.InfoFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "runs", "a", runlog.InfoFile), append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	s.server.dirs.last = nil
	if n := count("not verified yet"); n != 2 {
		t.Error("the verdict on a run is of another run.json")
	}
}

// contents are the hashes of all files below root.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Without a ledger and without runs the pages say so, and none is made.
func TestNothing(t *testing.T) {
	root := t.TempDir()
	if _, err := New(Options{Dirs: []string{filepath.Join(root, "runs")}}); err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, "runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, root).enter()
	for path, want := range map[string]string{"/": "There are no runs", "/runs": "There are no runs", "/datasets": "There is no ledger yet", "/comparisons": "There are none", "/networks": "There are none"} {
		if status, text := s.get(path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d, lacks %q", path, status, want)
		}
	}
	if all := contents(t, root); len(all) != 0 {
		t.Errorf("files were made: %v", all)
	}
}

// Nobody comes in without the link, twice with it, under another name, from another site.
// B4: a ledger that is lost while the dashboard runs is said to be.
func TestB4LostLedger(t *testing.T) {
	root := t.TempDir()
	fit(t, root, "first")
	s := open(t, root).enter()
	if code, text := s.get("/datasets"); code != http.StatusOK || !strings.Contains(text, "clinic") {
		t.Fatalf("found %d: %s", code, text)
	}
	if err := os.Remove(filepath.Join(root, "ledger.db")); err != nil {
		t.Fatal(err)
	}
	if code, text := s.get("/datasets"); code != http.StatusOK || !strings.Contains(text, "the ledger is missing") {
		t.Errorf("found %d: %s", code, text)
	}
}

func TestGuard(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	ask := func(method, path string, header map[string]string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, s.where+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range header {
			r.Header.Set(name, value)
			if name == "Host" {
				r.Host = value
			}
		}
		a, err := (&http.Client{Timeout: needs.Patience}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a
	}
	token := strings.TrimPrefix(s.link, s.where)
	for _, path := range []string{"/", "/datasets", "/live", "/style.css", "/?token=", "/?token=" + strings.Repeat("0", 32)} {
		if a := ask("GET", path, nil); a.StatusCode != 403 {
			t.Errorf("%s without the link: %d", path, a.StatusCode)
		}
	}
	if a := ask("GET", token, map[string]string{"Host": "sotto.example"}); a.StatusCode != 403 {
		t.Errorf("another name with the right token: %d", a.StatusCode)
	}
	a := ask("GET", token, nil)
	if a.StatusCode != 200 || len(a.Cookies()) != 1 {
		t.Fatalf("the link: %d, %v", a.StatusCode, a.Cookies())
	}
	c := a.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(token, c.Value) || len(c.Value) < 32 {
		t.Errorf("cookie %v", c)
	}
	if a := ask("GET", token, nil); a.StatusCode != 403 || len(a.Cookies()) != 0 {
		t.Errorf("the link a second time: %d", a.StatusCode)
	}
	in := c.Name + "=" + c.Value
	if a := ask("GET", token, map[string]string{"Cookie": in}); a.StatusCode != 200 || len(a.Cookies()) != 0 {
		t.Errorf("the link a second time in the same browser: %d, %v", a.StatusCode, a.Cookies())
	}
	if a := ask("GET", token, map[string]string{"Cookie": in + "0"}); a.StatusCode != 403 {
		t.Errorf("the link a second time with another cookie: %d", a.StatusCode)
	}
	for _, x := range []struct {
		method string
		header map[string]string
		want   int
	}{
		{"GET", map[string]string{"Cookie": in}, 200},
		{"HEAD", map[string]string{"Cookie": in}, 200},
		{"GET", map[string]string{"Cookie": in, "Sec-Fetch-Site": "same-origin"}, 200},
		{"GET", map[string]string{"Cookie": in, "Sec-Fetch-Site": "cross-site"}, 403},
		{"GET", map[string]string{"Cookie": in, "Sec-Fetch-Site": "same-site"}, 403},
		{"GET", map[string]string{"Cookie": in, "Host": "127.0.0.1.example:80"}, 403},
		{"GET", map[string]string{"Cookie": in + "0"}, 403},
		{"POST", map[string]string{"Cookie": in}, 405},
		{"DELETE", map[string]string{"Cookie": in}, 405},
	} {
		a := ask(x.method, "/", x.header)
		if a.StatusCode != x.want {
			t.Errorf("%s %v: %d, want %d", x.method, x.header, a.StatusCode, x.want)
		}
		if p := a.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("policy %q", p)
		}
	}

	// A new link is for one more browser, and ends the earlier one.
	s.server.guard.renew()
	again := "/?token=" + s.server.guard.token
	if again == token {
		t.Fatal("the new link is the earlier one")
	}
	for i, x := range []struct {
		path string
		want int
	}{{token, 403}, {again, 200}, {again, 403}} {
		if a := ask("GET", x.path, nil); a.StatusCode != x.want {
			t.Errorf("%d: %d, want %d", i, a.StatusCode, x.want)
		}
	}
}

// A content is told of steps when they are durable, of the end, and of runs that come.
func TestLive(t *testing.T) {
	root, r := filled(t)
	s := open(t, root).enter()
	key := s.keyIn("third")
	answer, err := s.client.Get(s.where + "/live?run=" + key + "&seen=" + s.server.dirs.list().state)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func(event string) (message map[string]string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() != "event: "+event {
				continue
			}
			lines.Scan()
			if text := strings.TrimPrefix(lines.Text(), "data: "); event == "run" {
				if err := json.Unmarshal([]byte(text), &message); err != nil {
					t.Fatal(err)
				}
			}
			return message
		}
		t.Fatalf("no event %q: %v", event, lines.Err())
		return nil
	}
	until := func(want string) map[string]string {
		t.Helper()
		for {
			if m := next("run"); m["key"] == key && strings.Contains(m["html"], want) {
				return m
			}
		}
	}
	until(`class="step">20</b>`)
	r.step(30)
	m := until(`class="step">50</b>`)
	if !strings.Contains(m["html"], "left") {
		until("left") // of one point alone nothing can be said
	}
	r.step(60)
	if m = until(`class="step">110</b>`); !strings.Contains(m["say"], "10 percent") {
		t.Errorf("said %q", m["say"])
	}
	if !strings.Contains(m["html"], `class="spent">`) {
		t.Errorf("no ε in %s", m["html"])
	}
	r.step(1)
	r.end()
	if m = until("finished, done after 111 steps"); m["say"] != "Run on clinic: finished." {
		t.Errorf("said %q", m["say"])
	}
	next("news")
}

// Where owners add up masked sums, every page with an ε says against whom it is; that of a run has both.
func TestAgainst(t *testing.T) {
	root := t.TempDir()
	like, dir := fit(t, root, "first"), filepath.Join(root, "runs", "sums")
	killed(t, like, dir)
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	plan := privacy.Retried{Of: privacy.InShares(privacy.Repeated{Count: 40, Of: gauss}, 5, 2), Retries: 2}
	info.Sum = &runlog.Sum{Owner: 1, Names: []string{"a", "b", "c", "d", "e"}, Rows: []int{800, 800, 800, 800, 800}, Colluders: 2, Retries: 2}
	if info.Plan, err = privacy.MarshalEvent(plan); err != nil {
		t.Fatal(err)
	}
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), filepath.Join(root, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Reserve(t.Context(), ledger.Reservation{Dataset: "clinic", Unit: "record", Adjacency: privacy.AddRemove, Run: info.ID, Epsilon: 1, Delta: 1e-5, Plan: plan, Shares: info.Shares()}); err != nil {
		t.Fatal(err)
	}
	s := open(t, root).enter()
	const hub, all = "against the hub and any 2 other owners", "against all other owners together, or if masks were broken"
	alone := chart.NumberUp(*info.Shares().Alone, 4)
	for path, want := range map[string][]string{
		"/":                         {`<span class="meta">ε ` + hub + "</span><div", `<span class="meta">ε ` + hub + "</span></td>"}, // the run, and the budget
		"/runs?q=sums":              {`<span class="meta">ε ` + hub + "</span>"},
		"/datasets":                 {`<span class="meta">ε ` + hub + "</span>"},
		"/runs/" + s.keyIn("sums"):  {`<span class="meta">ε ` + hub + "</span>", "</b>, " + hub + ", while masks hold. At the same δ, " + all + ", ε = " + alone + ".</p>", "The same <code>sotto node</code> command"},
		"/runs/" + s.keyIn("first"): {"for each record of <b>clinic</b>.</p>"},
	} {
		status, text := s.get(path)
		for _, w := range want {
			if status != 200 || !strings.Contains(text, w) {
				t.Errorf("%s: %d lacks %q:\n%s", path, status, w, text)
			}
		}
		if path == "/runs/"+s.keyIn("sums") && strings.Contains(text, "fit --resume") {
			t.Error("sotto fit does not resume an owner's run")
		}
	}
}

// What a run has charged is counted, and rounded up.
func TestSpentSoFar(t *testing.T) {
	root, r := filled(t)
	s := open(t, root)
	e, err := s.server.dirs.list().run(s.keyIn("third"))
	if err != nil {
		t.Fatal(err)
	}
	p := s.server.progressOf(e)
	if p == nil || p.Epsilon != "0.1574" || p.Step != 20 || p.Share != 2 {
		t.Fatalf("%+v", p) // ρ = 20/(2·100²) at δ = 1e-5
	}
	r.step(1)
	if p = s.server.progressOf(e); p.Step != 21 {
		t.Errorf("%+v", p)
	}
}

// BenchmarkList lists 10,000 runs: from nothing, and when nothing has changed.
func BenchmarkList(b *testing.B) {
	root := b.TempDir()
	like := fit(b, root, "like")
	text, err := os.ReadFile(filepath.Join(like, runlog.InfoFile))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		dir := filepath.Join(root, "runs", fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, runlog.InfoFile), text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s := open(b, root).enter()
	list := func(b *testing.B) {
		if status, text := s.get("/runs?page=3"); status != 200 || !strings.Contains(text, "101 to 150 of 10,001 runs") {
			b.Fatalf("%d: %.3000s", status, text)
		}
	}
	b.Run("first", func(b *testing.B) {
		for range b.N {
			s.server.dirs.known, s.server.dirs.last = map[string]stamped{}, nil
			list(b)
		}
	})
	b.Run("again", func(b *testing.B) {
		for range b.N {
			s.server.dirs.last = nil
			list(b)
		}
	})
}
