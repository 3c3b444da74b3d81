package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/runlog"
)

const clinic = "../../examples/clinic/"

// spec writes a spec for the clinic's table, with a ledger of its own.
func spec(t *testing.T, text string) (file, book string) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(clinic)
	if err != nil {
		t.Fatal(err)
	}
	file, book = filepath.Join(dir, "spec.yaml"), filepath.Join(dir, "ledger.db")
	text = "data: " + root + "/patients.csv\nschema: " + root + "/schema.yaml\nledger: " + book + "\nmodel: {name: logistic}\n" + strings.ReplaceAll(text, "HELDOUT", root+"/heldout.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, book
}

const two = "tune: {mean: 8, methods: [{label: good, name: sgd, steps: 40}, {label: bad, name: sgd, steps: 40, rate: 1e-6}]}\n"

func plan(t *testing.T, text string) (*Plan, string) {
	t.Helper()
	file, book := spec(t, text)
	p, err := New(file, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return p, book
}

// The whole costs at most the budget and nearly that, each candidate less; and a search in which a score is paid for leaves the training less.
func TestPlanKeepsTheBudget(t *testing.T) {
	for _, privacy := range []string{"{epsilon: 1, delta: 1e-5, adjacency: add-or-remove}", "{epsilon: 1, delta: 1e-5, adjacency: replace-one}", "{epsilon: 2, delta: 0, adjacency: replace-one}"} {
		text := "privacy: " + privacy + "\n" + strings.ReplaceAll(two, "sgd", "gd")
		scored, _ := plan(t, text)
		tested, _ := plan(t, text+"test: HELDOUT\n")
		for _, p := range []*Plan{scored, tested} {
			l, err := p.accountant.Loss(p.Event, p.Budget.Adjacency)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Epsilon(p.Budget.Delta); got > p.Budget.Epsilon || got < 0.98*p.Budget.Epsilon {
				t.Errorf("%s, by %s: the search costs %v of %v", privacy, p.Score, got, p.Budget.Epsilon)
			}
			if p.Budget.Delta == 0 && math.Abs(p.Each-p.Budget.Epsilon/3) > 0.01 {
				t.Errorf("%s: each is trained at %v; Liu and Talwar say a third", privacy, p.Each)
			}
			if u := p.Uncharged(); u <= p.Budget.Epsilon {
				t.Errorf("%s: unpaid, it would tell %v", privacy, u)
			}
		}
		train := func(p *Plan) float64 { return p.Candidates[0].Job.Spec.Privacy.Epsilon }
		if scored.Score != runlog.ByLoss || tested.Score != runlog.ByTest || train(scored) >= scored.Each || train(tested) != tested.Each {
			t.Errorf("%s: by %s at %v of %v, by %s at %v of %v", privacy, scored.Score, train(scored), scored.Each, tested.Score, train(tested), tested.Each)
		}
	}
}

// The noise that a plan states is that of its scores: over 100 trainings that stay at 0, in Gaussian and in Laplace noise, the
// standard deviation of a score is within a third of it (seeds fixed; others would fail with a probability of 10⁻⁵).
func TestNoiseOfScores(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, privacy := range []string{"{epsilon: 1, delta: 1e-5, adjacency: add-or-remove}", "{epsilon: 2, delta: 0, adjacency: replace-one}"} {
		p, _ := plan(t, "privacy: "+privacy+"\ntune: {mean: 1.001, methods: [{name: gd, steps: 1, rate: 1e-9}]}\n")
		sum, square := 0.0, 0.0
		const n = 100
		for seed := range uint64(n) {
			r, err := p.Run(t.Context(), noise.SeededStreams(seed), quiet)
			if err != nil {
				t.Fatal(err)
			}
			off := -r.Score - math.Ln2
			sum, square = sum+off, square+off*off
		}
		if got, want := math.Sqrt(square/n), p.Noise(); math.Abs(got/want-1) > 0.33 || math.Abs(sum/n) > want/3 {
			t.Errorf("%s: scores have a standard deviation of %.4g about %.4g; the plan says %.4g", privacy, got, sum/n, want)
		}
	}
}

// A search is refused where noise hides all that methods can differ by, and one warns where it hides a tenth. Scores on test
// rows have no noise.
func TestNoisySearch(t *testing.T) {
	text := "privacy: {epsilon: %v, delta: 1e-5, adjacency: add-or-remove}\ntune: {mean: 5, methods: [{name: sgd, steps: 30}, nag]}\n"
	file, _ := spec(t, fmt.Sprintf(text, 0.05))
	if _, err := New(file, nil, ""); err == nil || !strings.Contains(err.Error(), "a random choice would do as well") {
		t.Errorf("ε = 0.05: %v", err)
	}
	for epsilon, warned := range map[float64]bool{1: true, 8: false} {
		p, _ := plan(t, fmt.Sprintf(text, epsilon))
		if got := strings.Contains(strings.Join(p.Warnings(), "\n"), "noise in a score hides differences"); got != warned {
			t.Errorf("ε = %v: warned %t, by differences below %.3g", epsilon, got, p.alike())
		}
	}
	if p, _ := plan(t, fmt.Sprintf(text, 0.05)+"test: HELDOUT\n"); p.Noise() != 0 || strings.Contains(strings.Join(p.Warnings(), "\n"), "noise in a score") {
		t.Errorf("scores on test rows: noise %v, %q", p.Noise(), p.Warnings())
	}
}

// Over many searches with noise of their own: the number of trainings has the geometric law, the better candidate wins wherever it was drawn, and the ledger knows the whole once.
func TestSearch(t *testing.T) {
	race.Skip(t)
	for _, text := range []string{"test: HELDOUT\n", ""} {
		p, book := plan(t, "privacy: {epsilon: 4, delta: 1e-5, adjacency: add-or-remove}\n"+two+text)
		bad := 0
		const searches = 30
		for seed := range searches {
			r, err := p.Run(context.Background(), noise.SeededStreams(uint64(seed)), quiet)
			if err != nil {
				t.Fatal(err)
			}
			if r.Winner == "bad" {
				bad++
			}
			if seed > 0 {
				continue
			}
			if r.File == nil || len(r.File.W) != p.Candidates[0].Job.Facts.Dim || !strings.Contains(string(r.File.Guarantee), `"tuned"`) {
				t.Errorf("the model's guarantee is %s", r.File.Guarantee)
			}
			if r.By == runlog.ByTest && (r.Score < 0.8 || r.Score > 1) || r.By == runlog.ByLoss && (r.Score > -0.1 || r.Score < -0.6) {
				t.Errorf("score by %s: %v", r.By, r.Score)
			}
		}
		// The worse one wins where the better is not drawn: Σ γ(1−γ)^{k−1}2^{−k} = γ/(1+γ) = 1/9 of the searches, 3 of 30; more than 12 have probability 10⁻⁵.
		if bad > 12 {
			t.Errorf("the worse candidate wins %d of %d searches", bad, searches)
		}
		l, err := ledger.Open(context.Background(), book)
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Dataset(context.Background(), "clinic")
		if err != nil || math.Abs(d.Spent.Epsilon-4*searches) > 1e-9 {
			t.Errorf("the ledger says %+v, %v", d.Spent, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is trained that the dataset's budget does not cover.
func TestSearchIsRefused(t *testing.T) {
	p, book := plan(t, "privacy: {epsilon: 4, delta: 1e-5, adjacency: add-or-remove}\n"+two)
	l, err := ledger.Open(context.Background(), book)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetBudget(context.Background(), "clinic", "record", "", privacy.Budget{Epsilon: 1, Delta: 1e-3, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Run(context.Background(), noise.SeededStreams(1), quiet); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Neither the ledger nor the model says how long a search took, which tells how many were trained: the whole is settled before the first look,
// and stays so where the search breaks off; under a filter, too.
func TestSearchHidesItsLength(t *testing.T) {
	ctx := context.Background()
	for _, currency := range []string{"", ledger.InRDP} {
		p, book := plan(t, "privacy: {epsilon: 4, delta: 1e-5, adjacency: add-or-remove}\n"+two+"test: HELDOUT\n")
		l, err := ledger.Open(ctx, book)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := l.SetBudget(ctx, "clinic", "record", currency, privacy.Budget{Epsilon: 50, Delta: 1e-3, Adjacency: privacy.AddRemove}); err != nil {
			t.Fatal(err)
		}
		r, err := p.Run(ctx, noise.SeededStreams(1), quiet)
		if err != nil {
			t.Fatal(err)
		}
		if begun := r.info.Started.Format(time.RFC3339); r.File.Created != begun {
			t.Errorf("the model is of %v, the search of %v", r.File.Created, begun)
		}
		p.Candidates[0].Job.Model, p.Candidates[1].Job.Model = nil, nil // the first training breaks off
		func() {
			defer func() { recover() }()
			if r, err := p.Run(ctx, noise.SeededStreams(2), quiet); err == nil {
				t.Errorf("a search without a model: %+v", r)
			}
		}()
		runs, err := l.Runs(ctx, "clinic")
		if err != nil || len(runs) != 2 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		for _, r := range runs {
			if r.State != ledger.StateSettled {
				t.Errorf("currency %q: a search is %v while it trains", currency, r.State)
			}
		}
	}
}

// What a search cannot take, with the reason.
func TestMistakes(t *testing.T) {
	const terms = "privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"
	for text, want := range map[string]string{
		terms: `field "tune" is missing`,
		terms + "tune: {mean: 1, methods: [sgd]}\n":                                                                    "tune.mean: found 1",
		terms + "tune: {methods: []}\n":                                                                                "tune.methods: found none",
		terms + "tune: {methods: [sgd], loss_bound: -1}\n":                                                             "tune.loss_bound: found -1",
		terms + "tune: {methods: [{name: agd}]}\n":                                                                     "a search needs methods whose costs are known beforehand",
		"lab: true\nseed: 3\n" + terms + "tune: {methods: [sgd]}\n":                                                    "found it for a search",
		"privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove, accountant: gdp}\ntune: {methods: [gd]}\n":       "no theorem",
		terms + "tune: {methods: [sgd], loose: 1}\n":                                                                   `unknown field "loose"`,
		"privacy: {epsilon: 1e-9, delta: 1e-5, adjacency: add-or-remove}\ntune: {mean: 900, methods: [{name: sgd}]}\n": "privacy budget exhausted",
	} {
		file, _ := spec(t, text)
		if _, err := New(file, nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	file, _ := spec(t, terms+two+"test: "+clinicFile(t, "patients.csv")+"\n")
	p, err := New(file, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(context.Background(), noise.SeededStreams(1), quiet); !errors.Is(err, access.ErrOverlap) {
		t.Errorf("scored on the rows trained on: %v", err)
	}
}

func clinicFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(clinic + name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// quiet takes no notice.
func quiet(string) {}
