package job

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// knows reports an error where this build does not have the run's model.
func knows(info *runlog.Info, m ModelSpec) error {
	if _, err := model.Lookup(m.Name); err != nil {
		return runlog.OtherBuild(info, "model", m.Name)
	}
	return nil
}

// NewInfo returns the run.json of a new run, without the fields of the method if the job has none.
func NewInfo(j *Job, version string) (*runlog.Info, error) {
	id, err := NewID()
	if err != nil {
		return nil, err
	}
	i := &runlog.Info{
		Format: runlog.InfoFormat, ID: id, Status: runlog.Running, Started: time.Now().UTC().Truncate(time.Millisecond),
		Version: version, Build: runlog.Program(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Kernels:  runlog.Kernels(),
		SpecFile: absolute(j.Spec.File), Data: TablePath(j.Spec.Data), Test: TablePath(j.Spec.Test),
		Labels: absolute(j.Spec.Labels), TestLabels: absolute(j.Spec.TestLabels),
		Dataset: j.Schema.Dataset, Unit: j.Schema.Unit, UnitRows: j.Schema.UnitRows,
		Method: j.Spec.MethodName, Output: string(j.Spec.Output), StateEvery: j.StateEvery,
		Budget: j.Spec.Privacy.Budget(), Off: j.Spec.Privacy.Off,
		Lab: j.Spec.Lab, Seed: j.Spec.Seed, Warnings: j.Warnings, Assumptions: j.Assumptions(),
		Assertions: j.Spec.Assertions(),
		Disclosure: j.Spec.Disclosure,
	}
	i.Budget.Adjacency = j.Facts.Adjacency
	if j.Accountant != nil {
		i.Accountant = j.Accountant.String()
	}
	if i.Plan, err = privacy.MarshalEvent(j.Plan); err != nil {
		return nil, err
	}
	i.Sum = j.Sum
	if i.Holdout, err = j.Held.info(j.Spec.Holdout); err != nil {
		return nil, err
	}
	i.GDP = j.gdp()
	if i.Schema, err = j.Schema.Marshal(); err != nil {
		return nil, err
	}
	public := j.Facts
	public.Centered = j.Method != nil && centers(j.Method) // as it is asked of the rows
	if j.Method == nil || !shifts(j.Method) {
		public.Shifted, public.LabelMin = false, 0
	}
	auto, _ := j.Method.(method.Auto)
	public.Calibrated = auto.LastNoise > 0 // as it is asked of the margins
	parts := map[*json.RawMessage]any{&i.Model: j.Spec.Model, &i.Public: public}
	if j.Outlook != nil {
		parts[&i.Outlook] = j.Outlook
	}
	switch {
	case j.Owner != nil:
		i.MaxSteps, i.NoiseMultiplier = j.Owner.Activations, j.Owner.Method.NoiseMultiplier()
		i.Config, err = json.Marshal(j.Owner.Method)
	case j.Method != nil:
		i.MaxSteps, i.NoiseMultiplier = method.MaxSteps(j.Method), method.NoiseMultiplier(j.Method)
		i.Config, err = method.Encode(j.Method)
	}
	if err != nil {
		return nil, err
	}
	for dst, v := range parts {
		if *dst, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// gdp is the bound by Gaussian DP of the job's plan, nil where no theorem gives one.
func (j *Job) gdp() *account.GaussianBound {
	if j.Spec.Privacy.Off || j.Accountant == nil {
		return nil
	}
	loss, err := j.Accountant.Loss(j.Plan, j.Facts.Adjacency)
	if err != nil {
		return nil
	}
	curve, err := account.NewTradeOff(loss, j.Spec.Privacy.Budget().Delta)
	if err != nil {
		return nil
	}
	return &curve.GaussianBound
}

// Assumptions returns the schema's assumptions with the rows that the method divides by: those of the
// owner in a network.
func (j *Job) Assumptions() []string {
	own := *j.Schema
	own.Rows = j.Whole().Rows
	return slices.Concat(own.Assumptions(), j.encodingFacts(), j.holdoutFacts())
}

// SearchAccountant counts a search as a whole, and so each of its candidates.
func SearchAccountant(b privacy.Budget) account.Accountant {
	if b.Delta == 0 {
		return account.Pure{}
	}
	return account.RDP{}
}

// Candidate is the job of a search's winner as the search trained it, at its own ε.
func (j *Job) Candidate(s *runlog.Search) *Job {
	own, spec := *j, *j.Spec
	spec.Privacy.Epsilon = s.Trained()
	own.Spec, own.Accountant = &spec, SearchAccountant(spec.Privacy.Budget())
	return &own
}

// encodingFacts says of a run of auto by which numbers numeric columns have bumps.
func (j *Job) encodingFacts() []string {
	auto, chooses := j.Method.(method.Auto)
	what := "waves"
	if slices.ContainsFunc(j.Facts.Numeric, func(n oracle.Numeric) bool { return n.Bumps > 0 }) {
		what = "bumps"
	}
	if !chooses || len(j.Facts.Numeric) == 0 {
		return nil
	}
	noise, err := auto.Noise(j.Facts, j.Spec.terms(j.Accountant))
	if err != nil || noise == 0 {
		return nil
	}
	dim := j.Facts.WithSlots(0).Dim
	facts := []string{fmt.Sprintf(
		"Columns that name no encoding have %s by a rule on public numbers: noise ν√d = %.3g with d = %d, and %.3g %s per feature.",
		what, noise, dim, float64(j.Facts.Rows)/float64(dim), j.Schema.Counted())}
	if auto.SmoothBumps {
		facts = append(facts,
			"The weights of "+what+" were brought closer to 0 by what the known noise adds to them, which costs nothing.")
	}
	return facts
}

// NewID returns a name for a run: the time, and four random bytes.
func NewID() (string, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return time.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:]), nil
}

// TablePath returns the name of a table in files that Sotto writes: its absolute path, or the URL of a
// database without the password.
func TablePath(p string) string {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return data.Public(data.Join(dir, p))
}

func absolute(p string) string {
	if p == "" || readfile.Inherited(p) {
		return p
	}
	if a, err := filepath.Abs(p); err == nil {
		return a
	}
	return p
}

// FromInfo rebuilds a job from run.json, where everything is configured already.
func FromInfo(info *runlog.Info) (*Job, error) {
	entry, err := method.Lookup(info.Method)
	if err != nil {
		return nil, runlog.OtherBuild(info, "method", info.Method)
	}
	m, err := entry.Decode(info.Config)
	if err != nil {
		return nil, err
	}
	return WithMethod(info, m)
}

// WithMethod is the job of run.json with the method m; nil for a method that is not of package method.
func WithMethod(info *runlog.Info, m method.Method) (j *Job, err error) {
	j = &Job{Method: m}
	if j.Schema, err = schema.FromJSON(info.Schema); err != nil {
		return nil, err
	}
	if j.Schema.Dataset != info.Dataset || j.Schema.Unit != info.Unit || j.Schema.UnitRows != info.UnitRows {
		return nil, fmt.Errorf("%s: the schema is of the dataset %q by %s, the run of %q by %s", runlog.InfoFile,
			j.Schema.Dataset, text.Whom(j.Schema.Unit, j.Schema.UnitRows), info.Dataset, info.Whom())
	}
	delta := info.Budget.Delta
	j.Spec = &Spec{
		File: info.SpecFile, Data: info.Data, Test: info.Test, Labels: info.Labels, TestLabels: info.TestLabels,
		MethodName: info.Method, Method: m,
		Privacy: PrivacySpec{Off: info.Off, Epsilon: info.Budget.Epsilon, Delta: &delta, Adjacency: info.Budget.Adjacency,
			Accountant: info.Accountant},
		Lab: info.Lab, Seed: info.Seed, Ledger: info.Ledger,
		AcceptDelta:    slices.Contains(info.Assertions, runlog.AcceptDelta),
		AcceptDropped:  slices.Contains(info.Assertions, runlog.AcceptDropped),
		TestOverlaps:   slices.Contains(info.Assertions, runlog.TestOverlaps),
		Void:           slices.Contains(info.Assertions, runlog.Void),
		MetricsTimings: slices.Contains(info.Assertions, runlog.MetricsTimings),
	}
	if err := j.Spec.Allows(OnOneTable); err != nil {
		return nil, err
	}
	if err := j.setHeldOut(info.Holdout); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(info.Model, &j.Spec.Model); err != nil {
		return nil, err
	}
	if err := knows(info, j.Spec.Model); err != nil {
		return nil, err
	}
	if j.Spec.Output, err = method.ParseOutput(info.Output); err != nil {
		return nil, err
	}
	if s := info.Sum; s != nil {
		if err := s.Check(); err != nil {
			return nil, err
		}
		if j.Schema.Rows != s.Total() {
			return nil, fmt.Errorf("%s: sum.rows: found %d rows in all; the schema has %d", runlog.InfoFile, s.Total(),
				j.Schema.Rows)
		}
		j.Sum, j.Spec.sum, j.Spec.summed = s, s, true
	}
	if err := j.setModel(); err != nil {
		return nil, err
	}
	var facts oracle.Public
	if err := json.Unmarshal(info.Public, &facts); err != nil {
		return nil, err
	}
	// What the run's events state, and how it sums; the rest follows from schema and model.
	j.Facts.Presence, j.Facts.Coding, j.Facts.Centered = facts.Presence, facts.Coding, facts.Centered
	j.Facts.Calibrated = facts.Calibrated
	if !facts.Shifted {
		j.Facts.Shifted, j.Facts.LabelMin = false, 0
	}
	if facts.Owners != j.Facts.Owners || facts.Colluders != j.Facts.Colluders {
		return nil, fmt.Errorf("%s: public: found %d owners, %d of whom may collude; sum has %d and %d", runlog.InfoFile,
			facts.Owners, facts.Colluders, j.Facts.Owners, j.Facts.Colluders)
	}
	if !info.Off {
		if j.Accountant, err = account.ByName(info.Accountant); err != nil {
			return nil, err
		}
	}
	if info.Outlook != nil {
		if err := json.Unmarshal(info.Outlook, &j.Outlook); err != nil {
			return nil, err
		}
	}
	j.StateEvery = info.StateEvery
	j.Plan, err = info.PlanEvent()
	return j, err
}
