package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// sigma is the noise multiplier that a budget of (1, 1e-6) needs for 100 full
// batches, a little above the exact figure.
const sigma = 42.5

// asked is a finished run of 100 full batches as run.json tells it.
func asked(t *testing.T) *runlog.Info {
	t.Helper()
	started := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	finished := started.Add(4 * time.Second)
	accuracy, logLoss, auc := 0.84712, 0.32918, 0.9021
	info := &runlog.Info{
		Format: runlog.InfoFormat, ID: "20261120-093000-a1b2c3", Status: runlog.Finished, Started: started, Finished: &finished,
		Version: "0.1.0", Go: "go1.26.8", Platform: "linux/amd64", Kernels: "avx2",
		Data: "/home/someone/secret-place/adult.data", Dataset: "adult", Unit: "record", Method: "sgd", Output: "tail-average", MaxSteps: 100,
		Schema: json.RawMessage(`{"dataset":"adult","unit":"record","rows":32561,"row_norm":1,"row_scaling":"scale","on_bad_row":"stop",
			"columns":[{"name":"age","type":"numeric"},{"name":"work","type":"categorical"},{"name":"income","type":"label","classes":["no","yes"]}]}`),
		Model:  json.RawMessage(`{"name":"logistic"}`),
		Config: json.RawMessage(`{"steps":100,"rate":40,"clip":0.5,"batch":0,"noise_multiplier":42.5}`),
		Public: json.RawMessage(`{"dim":106,"rows":32561,"classes":2,"adjacency":"add-or-remove","norm_bound":1,"lipschitz":1,"smooth":0.25}`),
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}, Accountant: "gdp", NoiseMultiplier: sigma,
		Warnings:    []string{"1 column is ignored"},
		Assumptions: []string{"Every encoded row has norm at most 1.", "The nominal number of rows is 32,561."},
		Result: &runlog.Result{Steps: 100, Charged: 100, Outcome: "done", TrainSeconds: 3.25, SampleBound: "below 10⁻²⁰ for all coordinates and steps.",
			Test: &runlog.Scores{Rows: 16281, Accuracy: &accuracy, LogLoss: &logLoss, AUC: &auc,
				Classes: []string{"<=50K", ">50K"}, Confusion: [][]int{{11650, 785}, {1704, 2142}}}},
	}
	plan(t, info, 100, privacy.Gaussian{Sigma: sigma})
	return info
}

func plan(t *testing.T, info *runlog.Info, n int, e privacy.Event) {
	t.Helper()
	b, err := privacy.MarshalEvent(privacy.Repeated{Count: n, Of: e})
	if err != nil {
		t.Fatal(err)
	}
	info.Plan, info.MaxSteps = b, n
}

// ran writes a run directory whose record holds n steps, of the events in turn.
func ran(t testing.TB, info *runlog.Info, n int, e ...privacy.Event) string {
	t.Helper()
	dir := t.TempDir()
	w, err := runlog.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := errors.Join(w.Charge(e[i%len(e)]), w.Release([][]float64{{float64(i), 0.5}})); err != nil {
			t.Fatal(err)
		}
		w.Step(runlog.Step{T: i + 1, Rate: 40, GradNorm: 0.02 + 0.1/math.Sqrt(float64(i+1)) + 0.01*math.Sin(float64(i*i)), Moved: 0.1})
	}
	if err := errors.Join(w.Close(), runlog.WriteInfo(dir, info)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// build makes the page and checks what holds for every page.
func build(t *testing.T, dir string) string {
	t.Helper()
	b, err := Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	wellFormed(t, b)
	for _, fetch := range []string{"<script", "src=", "<link", "@import", "url(", "<iframe", "<object", "<embed", "href=\"http", "secret-place", "ZgotmplZ", "NaN", "%!"} {
		if strings.Contains(s, fetch) {
			t.Errorf("the page holds %q", fetch)
		}
	}
	for _, ref := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(s, -1) {
		if !strings.HasPrefix(ref[1], "#") || !strings.Contains(s, `id="`+ref[1][1:]+`"`) {
			t.Errorf("a link leads to %q", ref[1])
		}
	}
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(s, -1) {
		if ids[id[1]] {
			t.Errorf("id %q stands twice", id[1])
		}
		ids[id[1]] = true
	}
	for _, label := range regexp.MustCompile(`aria-labelledby="([^"]*)"`).FindAllStringSubmatch(s, -1) {
		for id := range strings.FieldsSeq(label[1]) {
			if !ids[id] {
				t.Errorf("a plot is labeled by %q, which is not there", id)
			}
		}
	}
	return s
}

// wellFormed checks that every element is closed where it has to be.
func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))

	dec.Entity = map[string]string{"nbsp": "\u00a0"}
	dec.Strict = true
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			line, col := dec.InputPos()
			t.Fatalf("not well formed at %d:%d: %v", line, col, err)
		}
	}
}

// plain is the text of a page without marks and with single spaces.
func plain(s string) string {
	s = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(s, "")
	s = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(s, "")
	return strings.Join(strings.Fields(strings.NewReplacer("&nbsp;", " ", "\u00a0", " ", "&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(s)), " ")
}

func wants(t *testing.T, page string, phrases ...string) {
	t.Helper()
	text := plain(page)
	for _, p := range phrases {
		if !strings.Contains(text, p) {
			t.Errorf("the page does not say %q", p)
		}
	}
}

func lacks(t *testing.T, page string, phrases ...string) {
	t.Helper()
	text := plain(page)
	for _, p := range phrases {
		if strings.Contains(text, p) {
			t.Errorf("the page says %q", p)
		}
	}
}

func TestFinished(t *testing.T) {
	dir := ran(t, asked(t), 100, privacy.Gaussian{Sigma: sigma})
	model := []byte(`{"format":"sotto-model/1"}`)
	if err := os.WriteFile(filepath.Join(dir, runlog.ModelFile), model, 0o600); err != nil {
		t.Fatal(err)
	}
	page := build(t, dir)
	wants(t, page,
		"Privacy report: adult", "20 November 2026, 09:30 UTC", "Finished. Guarantee: ε = 1, δ = 0.000001, for adding or removing any one record;",
		"If one record were added to or removed from adult, the probability of any set of outcomes of this run would change by at most a factor of 2.719, plus 0.000001.",
		"1 in 1,000,000", "The number of records is private too", "at most 54.7 % of the time; ε and δ alone would say 73.2 %", "μ = 0.235", "This says all that the curve does.", "ε = 2, δ = 0.000003719",
		"ε by gdp", "ε by rdp", "0.000001 (this run)", "100 batches were charged; 100 steps were planned",
		"0.8471", "16,281", "11,650", "not private: computed from the test rows without noise",
		"Every encoded row has norm at most 1.", "columns: categorical1", "#gaussian-exact", "below 10⁻²⁰",
		"a sum over the records with Gaussian noise, whose standard deviation is 42.5 times",
		"every batch charged in the run log is the one that the plan holds at its position",
		"Time, memory and pace", "Crashes that the data cause", "The same people elsewhere", "What is true of everybody",
		"1 column is ignored", "Improved Convergence of Differential Private SGD with Gradient Clipping", "@misc{sotto",
		fmt.Sprintf("%x", sha256.Sum256(model)))
	lacks(t, page, "LAB", "NOT PRIVATE", "not finished", "support the claim", "3.25", "NO:", "The seed", "Number of records")
	for _, id := range []string{"tradeoff", "curve", "spent", "rate", "norm"} {
		if !strings.Contains(page, `id="`+id+`-t"`) {
			t.Errorf("the plot %q is missing", id)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := ran(t, asked(t), 3, privacy.Gaussian{Sigma: sigma})
	if err := Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, runlog.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(dir, runlog.ReportFile))
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("two pages of one directory differ, %v", err)
	}
	// C2: what does not hold stands at the top of a new page, and the run's own stays.
	r, err := record.Read(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Findings = []record.Finding{{What: "files", Detail: "others"}}
	path, err := Rebuild(dir, r)
	if err != nil || filepath.Base(path) != runlog.NewReportFile {
		t.Fatal(path, err)
	}
	page, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(page, []byte("does not hold: files: others")) || !bytes.Contains(page, []byte("banner bad")) || bytes.Contains(page, []byte("banner good")) {
		t.Errorf("the page does not say what does not hold, %v", err)
	}
	if again, err = os.ReadFile(filepath.Join(dir, runlog.ReportFile)); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the report of the run was changed, %v", err)
	}
	if err := Write(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is not a run directory") {
		t.Errorf("err = %v", err)
	}
}

func TestReplaceOneAndPure(t *testing.T) {
	info := asked(t)
	info.Budget = privacy.Budget{Epsilon: 0.5, Adjacency: privacy.ReplaceOne}
	info.Accountant = "pure"
	e := privacy.Laplace{Scale: 400}
	plan(t, info, 100, e)
	page := build(t, ran(t, info, 40, e))
	wants(t, page, "If one record of adult were replaced by any other", "The number of records is public", "with ε = 0.5 and δ = 0, in both directions",
		"a factor of 1.649.", "δ = 0 on a real machine", "They think two versions of one record equally likely", "40 batches were charged; 100 steps were planned",
		"The plan costs ε = 0.25 and what was charged costs ε = 0.1;", "Laplace noise, whose scale is 400 times")
	lacks(t, page, ", plus", "(this run)", "support the claim")
}

// Beside the best of all accountants stands one that says less.
func TestBestAccountant(t *testing.T) {
	info := asked(t)
	info.Accountant = "best"
	page := build(t, ran(t, info, 100, privacy.Gaussian{Sigma: sigma}))
	wants(t, page, "ε by best", "ε by rdp", "#gaussian-exact")
	lacks(t, page, "support the claim")
}

func TestSampled(t *testing.T) {
	info := asked(t)
	info.Accountant = "rdp"
	e := privacy.PoissonSampled{Rate: 256.0 / 32561, Of: privacy.Gaussian{Sigma: 2}}
	plan(t, info, 127, e)
	start := time.Now()
	page := build(t, ran(t, info, 127, e))
	wants(t, page, "Poisson: each record enters a step with probability 0.007862", "#poisson-gaussian", "on a secret random batch that holds each record independently")
	lacks(t, page, "for comparison", "support the claim")
	t.Logf("the page took %v", time.Since(start))
}

// The page of owners who share the noise prints both ε, says whom to trust, and takes charges without a release for attempts. The
// accountant of the wanted ε knows of no shares.
func TestShares(t *testing.T) {
	shared := privacy.Shared{Owners: 10, Colluders: 3, Of: privacy.Gaussian{Sigma: sigma}}
	b, err := privacy.MarshalEvent(privacy.Retried{Of: privacy.Repeated{Count: 98, Of: shared}, Retries: 2})
	if err != nil {
		t.Fatal(err)
	}
	alone := func(n int) string {
		loss, err := account.GDP{}.Loss(privacy.Repeated{Count: n, Of: privacy.Gaussian{Sigma: sigma / math.Sqrt(7)}}, privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		return "ε = " + upward(loss.Epsilon(1e-6))
	}
	info := asked(t)
	info.Plan, info.MaxSteps, info.Result.Steps, info.Result.Charged = b, 98, 98, 99
	dir := t.TempDir()
	w, err := runlog.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Charge(shared) // and given up
	for range 98 {
		err = errors.Join(err, w.Charge(shared), w.Release([][]float64{{0.5}}))
	}
	if err := errors.Join(err, w.Close(), runlog.WriteInfo(dir, info)); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(build(t, dir), "&nbsp;", " ")
	const hub, all = "the hub and any 3 other owners", "all other owners together, or if masks were broken"
	wants(t, page, "against "+hub+"; "+alone(100)+" against "+all+";",
		"At least 7 of the 10 owners have to be honest", "by what was charged, "+alone(99)+" there", "Nothing is given back if fewer owners collude or fewer attempts are given up.",
		"This is against "+hub+", while masks hold. Against "+all+": "+alone(100), "1 charged attempt has no answer in the log: given up, as an owner was missing, or lost in a crash.",
		"each followed by no more retries than the plan has left", "Owners who tell what they know", "add-or-remove, against "+hub+" ("+alone(100)+" against")
	lacks(t, page, "support the claim", "The answers of")
	for _, row := range []string{hub + ", while masks hold</th><td><b>ε = 1</b>", all + "</th><td><b>" + alone(100) + "</b> at the same δ"} {
		if !strings.Contains(page, row) {
			t.Errorf("the page has no row %q", row)
		}
	}
	var out strings.Builder
	WriteSummary(&out, record.Of(info, nil), dir)
	if want := "This is against " + hub + ", while masks hold.\n           Against " + all + ": " + alone(100) + ".\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the summary does not say %q:\n%s", want, out.String())
	}
	if s, ok := Summary(record.Of(info, nil), dir)["sum"].(*account.Shares); !ok || s.Owners != 10 || s.Alone == nil {
		t.Errorf("the summary for programs: %+v", s)
	}
}

func TestLab(t *testing.T) {
	seed := uint64(7)
	loss := 0.3125
	private := asked(t)
	private.Result.LabCounts, private.Result.TrainLoss = map[string]int{"clamped cells": 987654}, &loss
	lacks(t, build(t, ran(t, private, 100, privacy.Gaussian{Sigma: sigma})), "987,654", "0.3125", "Lab figures") // no lab, no private figures
	for name, change := range map[string]func(*runlog.Info){
		"lab":    func(i *runlog.Info) { i.Lab = true },
		"seeded": func(i *runlog.Info) { i.Lab, i.Seed = true, &seed },
		"seed without lab": func(i *runlog.Info) {
			i.Seed = &seed
		},
	} {
		info := asked(t)
		info.Result.LabCounts, info.Result.TrainLoss = map[string]int{"clamped cells": 987654}, &loss
		change(info)
		page := build(t, ran(t, info, 100, privacy.Gaussian{Sigma: sigma}))
		wants(t, page, "LAB, NOT PRIVATE: Privacy report", "There is none.", "lab run, not private")
		if n := strings.Count(page, "LAB RUN: NOT PRIVATE"); n < 10 {
			t.Errorf("%s: the watermark stands there %d times", name, n)
		}
		lacks(t, page, "Finished. Guarantee", "ε = 1, δ = 0.000001, for adding or removing any one record")
		if info.Lab {
			wants(t, page, "987,654", "Lab figures", "0.3125")
		} else {
			lacks(t, page, "987,654")
		}
		if info.Seed != nil {
			wants(t, page, "Seeded noise: all random numbers come from seed 7", "The seed")
		}
	}
}

func TestOff(t *testing.T) {
	info := asked(t)
	info.Lab, info.Off, info.Accountant, info.NoiseMultiplier = true, true, "", 0
	info.Budget = privacy.Budget{Adjacency: privacy.AddRemove}
	e := privacy.NonPrivate{Why: "no noise"}
	plan(t, info, 100, e)
	page := build(t, ran(t, info, 100, e))
	wants(t, page, "No noise was added", "There is none. This run added no noise.", "without noise ε is infinite", "an access to the records without noise: no noise",
		"Step size by step")
	lacks(t, page, "If one record were", "What an attacker could learn", "at most a factor", "support the claim")
}

func TestUnfinished(t *testing.T) {
	for status, phrase := range map[string]string{
		runlog.Running:     "either still running or was interrupted",
		runlog.Interrupted: "was interrupted by its user",
		"paused":           `Its status is &#34;paused&#34;.`,
	} {
		info := asked(t)
		info.Status, info.Result, info.Finished = status, nil, nil
		dir := ran(t, info, 17, privacy.Gaussian{Sigma: sigma})
		f, err := os.OpenFile(filepath.Join(dir, runlog.ReleasesFile), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Write([]byte{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		page := build(t, dir)
		wants(t, page, "This run is not finished.", phrase, "A crash cut off the end of its log", "17 batches were charged; 100 steps were planned", "The whole budget stays charged",
			"The run scored no test rows.", "model.jsonnot written yet", "This record does not hold the figure yet.")
		lacks(t, page, "Finished. Guarantee", "support the claim")
	}
}

func TestNoSteps(t *testing.T) {
	info := asked(t)
	info.Status, info.Result, info.Finished = runlog.Running, nil, nil
	page := build(t, ran(t, info, 0, nil))
	wants(t, page, "0 batches were charged; 100 steps were planned", "No step has been recorded", "Nothing has been charged yet.", "what was charged costs ε = 0;")
	lacks(t, page, "support the claim")
}

func TestLostBatches(t *testing.T) {
	dir := ran(t, asked(t), 5, privacy.Gaussian{Sigma: sigma})
	path := filepath.Join(dir, runlog.ReleasesFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, build(t, dir), "The answers of 1 charged batch are not in the log; they stay charged.")
}

// A claim is not believed: whatever does not follow from the events is said at
// the top.
func TestFalseClaims(t *testing.T) {
	honest := privacy.Gaussian{Sigma: sigma}
	for name, c := range map[string]struct {
		change func(*runlog.Info)
		event  privacy.Event
		n      int
		want   string
	}{
		"cap below the cost":      {func(i *runlog.Info) { i.Budget.Epsilon = 0.1 }, honest, 100, "found wrong, that the whole plan costs"},
		"less noise than planned": {func(i *runlog.Info) {}, privacy.Gaussian{Sigma: 1}, 100, "found wrong, that what was charged so far costs"},
		"another plan":            {func(i *runlog.Info) {}, privacy.Gaussian{Sigma: 2 * sigma}, 3, "found wrong, that every batch charged in the run log is the one"},
		"more than planned":       {func(i *runlog.Info) {}, honest, 101, "found wrong, that every batch"},
		"unknown accountant":      {func(i *runlog.Info) { i.Accountant = "guess" }, honest, 100, "the accountant is not known"},
		"no theorem": {func(i *runlog.Info) { plan(t, i, 100, privacy.Laplace{Scale: 1e4}) }, honest, 100,
			"the plan cannot be accounted for"},
		"a look":     {func(i *runlog.Info) {}, privacy.NonPrivate{Why: "curious"}, 1, "found wrong, that what was charged so far costs ε = ∞"},
		"planned":    {func(i *runlog.Info) { plan(t, i, 100, privacy.NonPrivate{}) }, honest, 0, "found wrong, that the whole plan costs ε = ∞"},
		"pure claim": {func(i *runlog.Info) { i.Budget.Delta = 0 }, honest, 100, "found wrong, that the whole plan costs ε = ∞"},
	} {
		info := asked(t)
		c.change(info)
		page := build(t, ran(t, info, c.n, c.event))
		if !strings.Contains(plain(page), c.want) || !strings.Contains(page, "does not support the claim") {
			t.Errorf("%s: the page does not say %q", name, c.want)
		}
		lacks(t, page, "Finished. Guarantee")
		wants(t, page, "Claimed, but not supported.")
	}
}

func TestBrokenDirectories(t *testing.T) {
	for want, change := range map[string]func(*runlog.Info){
		"plan":    func(i *runlog.Info) { i.Plan = json.RawMessage(`{"event":"magic"}`) },
		"epsilon": func(i *runlog.Info) { i.Budget.Epsilon = 0 },
	} {
		info := asked(t)
		change(info)
		if _, err := Build(ran(t, info, 1, privacy.Gaussian{Sigma: sigma})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want one with %q", err, want)
		}
	}
	dir := ran(t, asked(t), 1, privacy.Gaussian{Sigma: sigma})
	if err := os.WriteFile(filepath.Join(dir, runlog.EventsFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(dir); err == nil || !strings.Contains(err.Error(), runlog.EventsFile+":1") {
		t.Errorf("err = %v", err)
	}
}

// What people write stays text.
func TestEscaping(t *testing.T) {
	evil := `<script>alert(1)</script>"'&}{%s`
	info := asked(t)
	info.Dataset, info.ID, info.Unit, info.Version, info.Output = evil, evil, evil, evil, evil
	info.Warnings, info.Assumptions = []string{evil}, []string{evil}
	info.Result.Outcome, info.Result.SampleBound = evil, evil
	info.Result.Test.Classes = []string{evil, "b"}
	info.Config, _ = json.Marshal(map[string]any{evil: evil, "list": []string{evil}})
	page := build(t, ran(t, info, 3, privacy.Gaussian{Sigma: sigma}))
	if n := strings.Count(page, "&lt;script&gt;alert(1)"); n < 10 {
		t.Errorf("the text stands there %d times", n)
	}
}

func TestLongRun(t *testing.T) {
	const n = 30_000
	info := asked(t)
	e := privacy.Gaussian{Sigma: 900}
	plan(t, info, n, e)
	start := time.Now()
	page := build(t, ran(t, info, n, e))
	if len(page) > 100_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	t.Logf("the page took %v", time.Since(start))
	wants(t, page, "30,000 batches were charged")
}

// A run of which every batch is another event has a page of the same size.
func TestManyEvents(t *testing.T) {
	const n = 20_000
	info := asked(t)
	info.Accountant = "zcdp"
	plan(t, info, n, privacy.Gaussian{Sigma: 900})
	filter, err := privacy.MarshalEvent(privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	info.Plan = filter
	events := make([]privacy.Event, n)
	for i := range events {
		events[i] = privacy.Gaussian{Sigma: 9000 + float64(i)}
	}
	page := build(t, ran(t, info, n, events...))
	if len(page) > 150_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	wants(t, page, "20,000 batches were charged", "standard deviation is 9,049 times", "19,950 more lines are in events.jsonl", "differs from step to step")
	lacks(t, page, "standard deviation is 9,050 times")
}

// The cap of the tests' own plan is met and not wasted.
func TestSigma(t *testing.T) {
	loss, err := account.GDP{}.Loss(privacy.Repeated{Count: 100, Of: privacy.Gaussian{Sigma: sigma}}, privacy.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	if e := loss.Epsilon(1e-6); e > 1 || e < 0.9 {
		t.Errorf("ε = %v", e)
	}
}
