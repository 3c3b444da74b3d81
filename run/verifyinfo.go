package run

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// givenInfo copies into want the fields that no other file and no computation gives: time and platform of the
// run, names of files, and figures of rows. It checks that those fields fit each other.
func givenInfo(want, info *runlog.Info) {
	// model.json has the ID, too
	want.ID, want.Started, want.Finished, want.Status = info.ID, info.Started, info.Finished, info.Status
	want.Version, want.Go, want.Platform, want.Kernels = info.Version, info.Go, info.Platform, info.Kernels
	want.Build, want.Binary = info.Build, info.Binary
	want.Disclosure = info.Disclosure
	want.SpecFile, want.Data, want.Shards, want.Test = info.SpecFile, info.Data, info.Shards, info.Test
	want.Labels, want.TestLabels = info.Labels, info.TestLabels
	want.Ledger, want.LedgerHead = info.Ledger, info.LedgerHead
	want.Network = info.Network // checked against what the owners agreed on
	want.Search = info.Search   // checked against tune.json
	want.Hashes = info.Hashes   // checked against the files
	if f := info.Finished; f == nil || f.Before(info.Started) {
		want.Finished = &info.Started
	}
	if (info.Data == "") != (info.Shards > 0) {
		want.Data = "a file, or the number of machines in its place"
	}
	if info.Ledger == "" && !info.Lab {
		want.Ledger = "where the budget was reserved"
	}
	if info.Network == "" && (info.LedgerHead == "") != (info.Ledger == "" || info.Search != nil) {
		want.LedgerHead = "the head of the ledger when the budget was reserved"
	}
}

// written compares the text of run.json with the expected one, as canonical JSON, field by field.
func (v *Verification) written(want *runlog.Info) error {
	text, err := readfile.All(filepath.Join(v.Dir, runlog.InfoFile), readfile.JSON)
	if err != nil {
		return &InputError{Err: err}
	}
	should, err := json.Marshal(want)
	if err != nil {
		return err
	}
	other, err := runlog.Differing(text, should)
	if err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	if t := v.Info.Result; t != nil && t.Test != nil {
		other = append(other, unfitScores(t.Test, v.Job.Schema.ClassNames())...)
	}
	if v.Info.Network == "" && (v.Info.Test == "") != (v.Info.Result == nil || v.Info.Result.Test == nil) && !v.noModel() {
		other = append(other, "test")
	}
	detail := "every field that follows from the schema, the configuration, the record or its replay is what they give; times, versions, names of files and test scores follow from nothing, and only a ledger's seal covers them"
	if len(other) > 0 {
		detail = "does not follow from the schema, the configuration, the record and its replay: " + runlog.Some(other)
	}
	v.Say(runlog.InfoFile, len(other) == 0, "%s", detail)
	return nil
}

// noModel says that the run ended without a model, hence without scores.
func (v *Verification) noModel() bool {
	return v.Info.Result != nil && v.Info.Result.Outcome == Diverged
}

// unfitScores are the scores that contradict each other or the classes.
func unfitScores(s *runlog.Scores, classes []string) (other []string) {
	if !slices.Equal(s.Classes, classes) {
		other = append(other, "result.test.classes")
	}
	if len(s.Confusion) != len(classes) {
		return append(other, "result.test.confusion")
	}
	if len(classes) == 0 {
		return other
	}
	rows, right := 0, 0
	for i, row := range s.Confusion {
		if len(row) != len(classes) {
			return append(other, "result.test.confusion")
		}
		for j, n := range row {
			if rows += n; i == j {
				right += n
			}
		}
	}
	if rows != s.Rows {
		other = append(other, "result.test.rows")
	}
	if (s.Accuracy == nil) != (rows == 0) || s.Accuracy != nil && *s.Accuracy != float64(right)/float64(rows) {
		other = append(other, "result.test.accuracy")
	}
	return other
}

// expected returns run.json as a run of the job writes it, without its result. Warnings while it ran
// depended on the state of the ledger.
func (v *Verification) expected() (*runlog.Info, error) {
	j := *v.Job
	j.Warnings = j.Cautions()
	want, err := job.NewInfo(&j, v.Info.Version)
	if err != nil {
		return nil, err
	}
	givenInfo(want, v.Info)
	if v.Info.GDP == nil || want.GDP != nil && nearGDP(*want.GDP, *v.Info.GDP) { // a file of an earlier version has none
		want.GDP = v.Info.GDP
	}
	// a run from before such a δ was refused
	if _, err := j.Spec.CheckDelta(j.Whole(), ""); err != nil && v.Info.Network == "" {
		want.Warnings = append(want.Warnings,
			fmt.Sprintf("delta %v is at least 1/%s = %.3g: a mechanism that publishes one whole record at random would satisfy such a δ; choose one well below",
				v.Info.Budget.Delta, j.Facts.Counted(), 1/float64(j.Whole().Rows)))
	}
	if v.Info.Lab && slices.Contains(v.Info.Warnings, recordedLab) {
		want.Warnings = append(want.Warnings, recordedLab)
	}
	return want, nil
}

// nearGDP reports whether a recorded bound is the recomputed one; platforms and versions differ in the last digits of a
// curve.
func nearGDP(again, was account.GaussianBound) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-3*a+1e-12 }
	return again.Outside == was.Outside && near(again.Mu, was.Mu) && near(again.Mu+again.Regret, was.Mu+was.Regret)
}

// wrote: run.json says what a run of this job and record writes that ended so.
func (v *Verification) wrote(end ending) error {
	want, err := v.expected()
	if err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	switch newest, oldest := v.Record.Newest(), v.Record.Oldest(); {
	case v.Job.Owner != nil:
		want.Output, want.StateEvery = v.Info.Output, 0
	case newest == nil:
		want.StateEvery = job.StateEvery(v.Job.Method, v.Job.Plan, v.Job.Facts.Dim)
	case oldest == nil:
		want.StateEvery = newest.Step
	default:
		want.StateEvery = newest.Step - oldest.Step
	}
	was := v.Info.Result
	if was == nil {
		return v.written(want)
	}
	r, err := resultOf(v.Job, end, v.Record.Charged())
	if err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	want.Result = r
	given(r, was)
	if v.Job.Owner == nil {
		r.Owners = 0
	}
	if r.Private != nil && was.Private != nil &&
		math.Abs(r.Private.Epsilon-was.Private.Epsilon) <= 1e-6*r.Private.Epsilon {
		r.Private.Epsilon = was.Private.Epsilon // as of a curve: see nearGDP
	}
	if v.Job.Held != nil && !v.noModel() {
		v.Say("score", reflect.DeepEqual(r.Private, was.Private),
			"the private figures are what the %d noisy numbers of the rows held out give", len(slices.Concat(end.answers...)))
	}
	if r.Claim != nil && was.Claim != nil && !v.same() { // near to it: see claim
		r.Claim = was.Claim
	}
	return v.written(want)
}

// lines compares replayed steps with their lines in steps.jsonl. For a step without kept releases it compares
// only the number.
type lines struct {
	v     *Verification
	next  int // line to be compared
	other int // first step that differs, 0 for none
	worst float64
}

func (l *lines) compare(st method.Step) {
	if st.T <= l.next {
		return // the step that ends the run has no line of its own
	}
	if l.next = st.T; st.T > len(l.v.Record.Steps) {
		l.differs(st.T)
		return
	}
	was, now := l.v.Record.Steps[st.T-1],
		runlog.Step{T: st.T, Rate: st.Rate, GradNorm: st.GradNorm, Moved: st.Moved}.Finite()
	worst := apart([]float64{was.Rate, was.GradNorm, was.Moved}, []float64{now.Rate, now.GradNorm, now.Moved})
	if l.worst = math.Max(l.worst, worst); was.T != st.T || !l.v.near(worst) {
		l.differs(st.T)
	}
}

func (l *lines) differs(step int) {
	if l.other == 0 {
		l.other = step
	}
}

// say ends the comparison of a replay that began after step from.
func (l *lines) say(from, steps int) {
	for t := range min(from, len(l.v.Record.Steps)) {
		if l.v.Record.Steps[t].T != t+1 {
			l.differs(t + 1)
		}
	}
	if len(l.v.Record.Steps) > steps {
		l.differs(steps + 1)
	}
	before := ""
	if from > 0 {
		before = fmt.Sprintf("; the first %d cannot be replayed any more, and are taken as they are", from)
	}
	if l.other > 0 {
		l.v.Say(runlog.StepsFile, false, "the line of step %d is not what the replayed step gives%s", l.other, before)
		return
	}
	l.v.Say(runlog.StepsFile, true,
		"%d lines, each what the replayed step gives, the largest relative difference being %.3g%s", len(l.v.Record.Steps),
		l.worst, before)
}

// final are the hashes of the final files.
func (v *Verification) final() (_ map[string]string, err error) {
	if v.seal == nil {
		v.seal, err = runlog.Seal(v.Dir)
	}
	return v.seal, err
}

// sealed: the settlement in the ledger holds the hashes of the files, or their HMAC under its key is beside them.
func (v *Verification) sealed(l *ledger.Ledger, known ledger.Run) error {
	if known.Settlement == nil {
		return nil // the finding on the ledger says so
	}
	seal := known.Settlement.Seal
	if len(seal) == 0 {
		v.Findings = append(v.Findings,
			record.Finding{What: "seal", Holds: true, Skipped: true,
				Detail: "not sealed: the run was settled by a version of Sotto that did not seal its files"})
		return nil
	}
	now, err := v.final()
	if err != nil {
		return err
	}
	if _, signed := seal[runlog.SealFile]; signed {
		held, err := readfile.All(filepath.Join(v.Dir, runlog.SealFile), 1<<10)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		want, err := l.SealOf(v.Info.ID, now)
		if err != nil {
			return err
		}
		v.Say("seal", hmac.Equal(bytes.TrimSpace(held), []byte(want)), "%s is the HMAC of %d files under the ledger's key",
			runlog.SealFile, len(now))
		return nil
	}
	if _, changed := compared(now, seal); len(changed) > 0 {
		v.Say("seal", false, "changed since the run was settled: %s", strings.Join(changed, ", "))
		return nil
	}
	v.Say("seal", true, "%d files have the hashes that the settlement in the ledger holds", len(seal))
	return nil
}

// compared returns how many names two maps have together, and those under which they differ, sorted.
func compared(a, b map[string]string) (names int, differ []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			differ = append(differ, name)
		}
	}
	return len(all), differ
}

// searched: run.json says what a search with this plan and this tune.json writes.
func (v *Verification) searched(whole privacy.Tuned) error {
	want, err := v.expected()
	if err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	want.MaxSteps, want.StateEvery = 1, 0
	want.Assumptions = v.Job.Candidate(v.Info.Search).Assumptions()
	want.Finished = &v.Info.Started // R21
	if v.Info.Result != nil {
		want.Result = &runlog.Result{Steps: 1, Charged: 1, Outcome: method.Done.String(), Test: v.Info.Result.Test}
	}
	b, err := readfile.All(filepath.Join(v.Dir, runlog.SearchFile), readfile.JSON)
	if err != nil {
		return &InputError{Err: err}
	}
	var found struct {
		Run    string         `json:"run"`
		Budget privacy.Budget `json:"budget"`
		runlog.Search
	}
	if err := json.Unmarshal(b, &found); err != nil {
		return inputError("", "%s: %v", filepath.Join(v.Dir, runlog.SearchFile), err)
	}
	s, by := *v.Info.Search, runlog.ByLoss
	score := s.Score
	if r := v.Info.Result; r != nil && r.Test != nil {
		by = runlog.ByTest
		switch {
		case r.Test.Accuracy != nil:
			score = *r.Test.Accuracy
		case r.Test.RMSE != nil:
			score = -*r.Test.RMSE
		}
	}
	mean := math.Abs(s.Mean*whole.Gamma-1) < 1e-9
	v.Say("search",
		found.Run == v.Info.ID && found.Budget == v.Info.Budget && reflect.DeepEqual(found.Search, s) && s.By == by &&
			s.Score == score && mean,
		"%s beside what %s says of the search, its plan and its scores", runlog.SearchFile, runlog.InfoFile)
	return v.written(want)
}

// FinishOwner ends the verification of an owner's run in a network: it checks run.json, the model file and the
// ledger. The model is the mean of several owners' parameters, which this directory does not hold. So it
// checks only the hash and the promise of the model.
func (v *Verification) FinishOwner(ctx context.Context, l *ledger.Ledger) ([]record.Finding, error) {
	end := ending{steps: v.Job.Owner.Activations, outcome: method.Done.String()}
	if v.Diverged() {
		end.w = []float64{math.NaN()}
	}
	if err := v.wrote(end); err != nil {
		return nil, err
	}
	if !v.Diverged() {
		file, err := model.Read(filepath.Join(v.Dir, runlog.ModelFile))
		if err != nil {
			return nil, &InputError{Err: err}
		}
		v.promise(file, ending{})
	}
	return v.Findings, v.ledger(ctx, l)
}

// Diverged reports whether the run says that it diverged and made no model.
func (v *Verification) Diverged() bool {
	_, err := os.Stat(filepath.Join(v.Dir, runlog.ModelFile))
	return os.IsNotExist(err) && v.noModel()
}

// spent answers after the run log: it asks the meter for the run's last query, which the meter refuses
// again if the run ended because its budget was spent.
type spent struct {
	job   *Job
	meter account.Meter
	over  bool // for another reason than the meter's
}

func (o spent) Public() oracle.Public { return o.job.Facts }

// Refine implements oracle.Refiner: what was lost was of rows so encoded.
func (o spent) Refine(_ context.Context, c oracle.Choice) error { return c.Check(o.job.Facts) }

func (o spent) Batch(_ context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	if o.over {
		return nil, privacy.ErrExhausted
	}
	if err := o.meter.Charge(privacy.InPart(o.job.Part(), o.job.Facts.Cost(s, queries))); errors.Is(err,
		privacy.ErrExhausted) {
		return nil, err
	}
	return nil, replay.ErrEnd
}
