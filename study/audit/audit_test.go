package audit

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// jobOf is a run of m on a schema that is all ours.
func jobOf(t *testing.T, schema *schema.Schema, m method.Method, epsilon float64, adj privacy.Adjacency, accountant string) *run.Job {
	t.Helper()
	delta := 1e-5
	job, err := job.PrepareOn(&run.Spec{MethodName: "sgd", Method: m, Model: run.ModelSpec{Name: "logistic"}, Output: method.Last,
		Privacy: run.PrivacySpec{Epsilon: epsilon, Delta: &delta, Adjacency: adj, Accountant: accountant}}, schema)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func synthetic(t *testing.T, schema *schema.Schema, rows int) *data.Table {
	t.Helper()
	table, err := Synthetic(context.Background(), schema, rows, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func one(t *testing.T, job *run.Job, table *data.Table, canaries, seed int, deed method.Method) *Result {
	t.Helper()
	r, err := One(context.Background(), job, table, Options{Canaries: canaries, Streams: noise.SeededStreams(uint64(seed)), deed: deed})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// DP-GD and DP-SGD on a table of Adult's shape: the bound is at or below the claim, and not far below.
func TestAdultIsBoundFromBelow(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, method := range []string{"gd", "sgd"} {
		var table *data.Table
		for epsilon, share := range map[string]float64{"1": 0.2, "4": 0.3, "8": 0.3} {
			over := []run.Override{{Path: "method.name", Value: method, From: "test"}, {Path: "privacy.epsilon", Value: epsilon, From: "test"}}
			if method == "sgd" {
				over = append(over, run.Override{Path: "method.batch", Value: "4096", From: "test"}, run.Override{Path: "method.steps", Value: "1000", From: "test"})
			}
			spec, err := run.LoadSpec("../../examples/adult/sotto.yaml", over)
			if err != nil {
				t.Fatal(err)
			}
			job, err := run.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			if table == nil {
				table = synthetic(t, job.Schema, job.Facts.Rows)
			}
			r := one(t, job, table, 5000, 1, nil)
			t.Logf("%s, ε = %s: at least %.2f, %.2f of any mechanism; %d of %d guesses right", method, epsilon, r.Bound, r.Plain, r.Right, r.Guesses)
			if r.Refuted() || r.Bound < share*r.Epsilon {
				t.Errorf("%s, ε = %s: at least %.3f; want from %.3g × it to it", method, epsilon, r.Bound, share)
			}
		}
	}
}

// With half the noise, and with a clip rule that does nothing, the bound of one run is above ε = 4 with each of three seeds, or ten with -long; the run as it should be is not refuted. A
// canary's gradient is 16 times the clip norm: clipping at 16 times as much with a 16th of the noise multiplier adds the
// noise of the claim to gradients that are not clipped.
func TestFaultsAreFound(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	schema, err := smallSchema(1000, 120)
	if err != nil {
		t.Fatal(err)
	}
	table := synthetic(t, schema, 1000)
	long := jobOf(t, schema, method.SGD{Steps: 1000}, 4, privacy.AddRemove, "gdp")
	half := long.Method.(method.SGD)
	half.Gradient.Noise /= 2
	short := jobOf(t, schema, method.SGD{Steps: 200}, 4, privacy.AddRemove, "gdp")
	whole := short.Method.(method.SGD)
	whole.Gradient.Clip, whole.Gradient.Noise = excess*whole.Gradient.Clip, whole.Gradient.Noise/excess
	for seed := range seeds(3, 10) {
		if r := one(t, long, table, 5000, seed, half); r.Bound <= r.Epsilon {
			t.Errorf("seed %d: half the noise is not found: at least %.3f", seed, r.Bound)
		}
		if r := one(t, short, table, 5000, seed, whole); r.Bound <= r.Epsilon {
			t.Errorf("seed %d: a clip rule that does nothing is not found: at least %.3f", seed, r.Bound)
		}
	}
	if r := one(t, long, table, 5000, 0, nil); r.Refuted() || r.Bound < 1.8 {
		t.Errorf("the run as it should be: at least %.3f", r.Bound)
	}
}

// realized divides by the rows that there are in place of the public number.
type realized struct {
	oracle.Oracle
	rows int
}

func (r realized) Batch(ctx context.Context, s sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	b, err := r.Oracle.Batch(ctx, s, pay...)
	return realizedBatch{b, float64(r.Public().Rows) / float64(r.rows)}, err
}

type realizedBatch struct {
	oracle.Batch
	scale float64
}

func (b realizedBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	g, err := b.Batch.Grad(q, w)
	for j := range g {
		g[j] *= b.scale
	}
	return g, err
}

// A divisor that counts the rows shows in the length of the noise where there are many parameters: with 10⁵ it is found at
// ε = 4 with one seed, or each of ten with -long, and the run as it should be is not refuted.
func TestDivisorIsFound(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	schema, err := schema.Parse("", []byte("dataset: wide\nrows: 5\nformat: {kind: libsvm}\nfeatures: 100000\nmin: 0\nmax: 1\ncolumns:\n  - {name: label, type: label, classes: [\"-1\", \"+1\"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	table := synthetic(t, schema, 4)
	job := jobOf(t, schema, method.SGD{Steps: 1}, 4, privacy.AddRemove, "gdp")
	for seed := range seeds(1, 10) {
		opt := Options{Streams: noise.SeededStreams(uint64(seed))}
		opt.wrap = func(o *private.Oracle, rows int) oracle.Oracle { return realized{o, rows} }
		r, err := Many(context.Background(), job, table, 630, opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Bound <= r.Epsilon {
			t.Errorf("seed %d: the divisor is not found: at least %.3f", seed, r.Bound)
		}
	}
	r, err := Many(context.Background(), job, table, 200, Options{Streams: noise.SeededStreams(1)})
	if err != nil || r.Refuted() {
		t.Errorf("the run as it should be: %+v, %v", r, err)
	}
}

// Each way in which a method releases is audited: noisy gradients on each kind of sample, Hessians beside them, and a choice.
func TestEachKindIsAudited(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	var names []string
	err := whole.all(context.Background(), []string{"newton", "majority"}, Options{Streams: noise.SeededStreams(1)}, func(r *Result) {
		names = append(names, r.Method+" in "+r.Attack)
		if r.Refuted() {
			t.Errorf("%s: at least %.3f", r.Method, r.Bound)
		}
	})
	if want := []string{"newton in crafted canaries", "majority in many runs"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("audited %v, %v; want %v", names, err, want)
	}
	for _, c := range []struct {
		adj privacy.Adjacency
		m   method.SGD
	}{
		{privacy.ReplaceOne, method.SGD{Steps: 300}},
		{privacy.ReplaceOne, method.SGD{Steps: 300, Gradient: method.Gradient{Batch: 2000}}},
		{privacy.AddRemove, method.SGD{Steps: 300, Gradient: method.Gradient{Batch: 2000}}},
	} {
		schema, err := smallSchema(8000, 120)
		if err != nil {
			t.Fatal(err)
		}
		job := jobOf(t, schema, c.m, 4, c.adj, "")
		rows, canaries, err := Rows(job, 5000)
		if err != nil {
			t.Fatal(err)
		}
		r, err := One(context.Background(), job, synthetic(t, schema, rows), Options{Canaries: canaries, Streams: noise.SeededStreams(1)})
		if err != nil || r.Refuted() || r.Bound < 0.8 {
			t.Errorf("%v, batch %d: %+v, %v", c.adj, c.m.Gradient.Batch, r, err)
		} else {
			t.Logf("%v, batch %d: at least %.2f", c.adj, c.m.Gradient.Batch, r.Bound)
		}
	}
}

// tiny is what each method of the registry is audited on here: that it can be, and in which way.
var tiny = extent{rows: 300, features: 6, few: 12, narrow: 2, runs: 32}

// Every method of the registry that claims something can be audited, and a tiny audit refutes none. What an audit finds is tested
// where it is large enough to find anything.
func TestAllMethods(t *testing.T) {
	race.Skip(t)
	attacks := map[string]int{}
	audited := 0
	err := tiny.all(context.Background(), nil, Options{Streams: noise.SeededStreams(3), runs: 20, quick: true}, func(r *Result) {
		audited++
		attacks[r.Attack]++
		if r.Refuted() || !(r.Bound >= 0) {
			t.Errorf("method %s: the audit by %s refutes its claim of ε = %v: it costs at least %v (of any mechanism %v)",
				r.Method, r.Attack, allEpsilon, r.Bound, r.Plain)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(method.Registry()) - len(unclaimed); audited != want || attacks[Crafted] < 10 || attacks[ManyRuns] < 3 {
		t.Errorf("%d methods were audited (by attack: %v); %d of the registry claim privacy, at least 10 of them audited "+
			"by %s and 3 by %s. A method that claims none stands in the map unclaimed, study/audit/all.go", audited, attacks,
			want, Crafted, ManyRuns)
	}
}

// A method without noisy gradients has no place for canaries; it says so before it has minimized.
func TestBlind(t *testing.T) {
	job, err := small("amp", 4, 200, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, err = One(context.Background(), job, synthetic(t, job.Schema, 150), Options{Canaries: 50, Streams: noise.SeededStreams(1)})
	if !errors.Is(err, ErrBlind) {
		t.Errorf("amp: %v", err)
	}
}

// Of a filter, half the noise buys twice the ε; of a release whose noise nobody states there is no half.
func TestLouder(t *testing.T) {
	f := privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-6}
	if got, err := louder(f, 2); err != nil || got.(privacy.Filtered).Epsilon != 2 {
		t.Errorf("%v: %v, %v", f, got, err)
	}
	if got, err := louder(privacy.Gaussian{Sigma: 3}, 2); err != nil || !privacy.Equal(got, privacy.Gaussian{Sigma: 1.5}) {
		t.Errorf("half the noise: %v, %v", got, err)
	}
	if got, err := louder(privacy.ApproxDP{Epsilon: 1, Delta: 1e-6}, 2); err == nil {
		t.Errorf("half the noise of an unknown release: %v", got)
	}
}

// Under replace-one canaries take the place of rows; a sample of fixed size has none but one that is not.
func TestRows(t *testing.T) {
	schema, err := smallSchema(8000, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		adj          privacy.Adjacency
		batch        int
		sampling     string
		rows, beside int
	}{{privacy.AddRemove, 0, "", 8000, 5000}, {privacy.ReplaceOne, 0, "", 3000, 5000}, {privacy.ReplaceOne, 100, method.Poisson, 3000, 5000}, {privacy.ReplaceOne, 100, method.Fixed, 1, 7999}} {
		job := jobOf(t, schema, method.SGD{Gradient: method.Gradient{Batch: c.batch, Sampling: c.sampling}}, 1, c.adj, "")
		if rows, beside, err := Rows(job, 5000); err != nil || rows != c.rows || beside != c.beside {
			t.Errorf("%v, batch %d: %d rows and %d canaries, %v; want %d and %d", c.adj, c.batch, rows, beside, err, c.rows, c.beside)
		}
	}
	if _, _, err := Rows(jobOf(t, schema, method.SGD{}, 1, privacy.ReplaceOne, ""), 8000); err == nil {
		t.Error("as many canaries as rows are allowed")
	}
}

// The neighbor is one record away, within the schema's bounds.
func TestNeighbors(t *testing.T) {
	schema, err := smallSchema(20, 3)
	if err != nil {
		t.Fatal(err)
	}
	for adj, fewer := range map[privacy.Adjacency]int{privacy.AddRemove: 1, privacy.ReplaceOne: 0} {
		job := jobOf(t, schema, method.SGD{}, 1, adj, "")
		with, without, err := neighbors(job, synthetic(t, schema, 19))
		if err != nil || with.Rows() != 20 || without.Rows() != 20-fewer {
			t.Fatalf("%v: %d and %d rows, %v", adj, with.Rows(), without.Rows(), err)
		}
		b := with.Blocks[len(with.Blocks)-1]
		norm := 0.0
		for _, v := range b.X {
			norm += float64(v) * float64(v)
			if math.Mod(float64(v), with.Unit) != 0 {
				t.Errorf("%v: %v is no multiple of %v", adj, v, with.Unit)
			}
		}
		if norm = math.Sqrt(norm); norm > with.NormBound || norm > float64(b.Norm[0]) || norm < 0.99*with.NormBound {
			t.Errorf("%v: the record has norm %v, says %v; the bound is %v", adj, norm, b.Norm[0], with.NormBound)
		}
	}
}

// Where a record is a unit, the neighbor is a whole one away, and the claim is tested of that.
func TestNeighborsOfUnits(t *testing.T) {
	schema, err := schema.Parse("", []byte("dataset: synthetic\nunit: {name: patient, rows: 6}\nunits: 20\ncolumns:\n  - {name: id, type: unit}\n  - {name: x, type: numeric, min: 0, max: 1}\n  - {name: label, type: label, classes: [no, yes]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for adj, fewer := range map[privacy.Adjacency]int{privacy.AddRemove: 1, privacy.ReplaceOne: 0} {
		job := jobOf(t, schema, method.SGD{}, 1, adj, "")
		with, without, err := neighbors(job, synthetic(t, schema, 19))
		if err != nil || with.Units() != 20 || without.Units() != 20-fewer || len(with.UnitRows(nil, 19)) != 6 {
			t.Fatalf("%v: %d and %d units, the last with %d rows, %v", adj, with.Units(), without.Units(), len(with.UnitRows(nil, 19)), err)
		}
		r, err := Many(t.Context(), job, synthetic(t, schema, 19), 40, Options{Streams: noise.SeededStreams(3)})
		if err != nil || r.Refuted() {
			t.Errorf("%v: %+v, %v", adj, r, err)
		}
	}
}

// The page and the words say whether the claim holds; the drawing has a line for the canaries that took part and one for the others.
func TestPage(t *testing.T) {
	r := &Result{Method: "sgd", Attack: OneRun, Adjacency: privacy.AddRemove, Unit: "record", Epsilon: 1, Delta: 1e-5, Bound: 0.4, Plain: 0.2, Failure: Failure, Noise: 2, Canaries: 4, Guesses: 2, Right: 2, Steps: 7,
		Odds: []float64{-1, 2, 0.5, -0.25}, In: []bool{false, true, true, false}}
	dir := filepath.Join(t.TempDir(), "new")
	for _, c := range []struct {
		bound       float64
		attack      string
		word, shown string
	}{
		{0.4, OneRun, "does not contradict it", "The claim is not contradicted."},
		{1.5, OneRun, "REFUTES it", "<strong>The claim is refuted.</strong>"},
		{1.1, Crafted, "is above it, as happens by chance", "The claim is not contradicted."},
		{0, ManyRuns, "0 runs of sgd", "The claim is not contradicted."},
	} {
		r.Bound, r.Attack, r.Alarms = c.bound, c.attack, nil
		if c.bound == 1.5 {
			r.alarm("canaries")
		}
		if !strings.Contains(r.Words(), c.word) {
			t.Errorf("the words are\n%s", r.Words())
		}
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(dir, PageFile))
		if err != nil || !strings.Contains(string(page), c.shown) || strings.Count(string(page), `class="l1"`) != 2 {
			t.Errorf("the page is\n%s%v", page, err)
		}
	}
	figures, err := os.ReadFile(filepath.Join(dir, DataFile))
	if err != nil || !strings.Contains(string(figures), `"claimed_epsilon": 1`) || strings.Contains(string(figures), "odds") {
		t.Errorf("the figures are %s, %v", figures, err)
	}
}
