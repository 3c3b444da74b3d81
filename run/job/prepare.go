// Package job settles what a run does, before it has any row: a spec, what public facts determine of it, its plan, and
// what run.json says of it. It reads no table.
package job

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// A Job is a spec with everything that public facts determine. Making one opens the schema and no data.
type Job struct {
	Spec       *Spec
	Schema     *schema.Schema
	Model      model.Model
	Facts      oracle.Public
	Objective  method.Objective
	Method     method.Method // configured: every field set
	Accountant account.Accountant
	Plan       privacy.Event // an upper bound of the releases; privacy.Filtered if it depends on the releases
	StateEvery int           // steps from one saved state of the method to the next; 0: every release is kept
	Warnings   []string      // things a person should know before the run
	// a warning that noise decides the predictions; nil: it does not, nothing is known, or an
	// earlier version wrote the run
	Outlook *method.Outlook
	Columns string // which columns of the schema are used, and why; "": all
	// which iterate becomes the model, and why, where the spec leaves it open and it is not the usual one
	Output   string
	Encoding string   // how numeric columns that name no encoding are encoded, and why; "": there are none
	Held     *HeldOut // what is not trained on, but scored; nil: nothing
	Owner    *Owner   // of a run in a network, with the method instead of Method; otherwise nil
	Sum      *Sum     // of a run in a network whose owners add up masked sums, and of its plan; otherwise nil
}

// Prepare settles a spec of one table. Numeric columns whose encoding the schema leaves open get what method auto
// chooses for them.
func Prepare(spec *Spec) (*Job, error) {
	if spec.Summed() {
		return nil, inputError(spec.File,
			"network.mode: found %s; use a spec of one table here. Owners train with sotto node; sotto plan and sotto net simulate show what to expect", ModeSum)
	}
	return prepare(spec)
}

func prepare(spec *Spec) (*Job, error) {
	if err := spec.Allows(OnOneTable); err != nil { // a spec need not come from a file
		return nil, err
	}
	full, err := spec.readSchema()
	if err != nil {
		return nil, err
	}
	if spec.sum != nil {
		all := *full
		full = &all
		full.Rows = spec.sum.Total()
	}
	if full.Rows < 1 {
		return nil, inputError(spec.Schema,
			"%[1]s: field is missing: training divides by a public number of %[1]s that a person writes, about as many as the table has", full.Counted())
	}
	spec, schema, columns, err := spec.trainable(full).columns(full)
	if err != nil {
		return nil, err
	}
	if schema, err = spec.paired(full, schema); err != nil {
		return nil, err
	}
	bumps, err := spec.bumps(schema)
	if err != nil {
		return nil, err
	}
	free := schema.Free()
	encoded := schema.WithCurves(bumps.Hats, bumps.Waves, spec.Hats == nil).Snap()
	encoded, why, err := spec.places(encoded)
	if err != nil {
		return nil, err
	}
	j, err := PrepareOn(spec, encoded)
	if err != nil {
		return nil, err
	}
	j.Columns = columns
	if free > 0 {
		j.Encoding = fmt.Sprintf("numeric columns that name none: %d; %s", free, bumps.Why)
	}
	if why != "" {
		j.Encoding = strings.TrimPrefix(j.Encoding+"; "+why, "; ")
	}
	if len(schema.Pairs) > 0 {
		j.Encoding = strings.TrimPrefix(j.Encoding+"; pairs of columns: "+schema.PairNames(), "; ")
	}
	return j, nil
}

// boundless is the method that replaces auto for models whose loss has no bounds, from which auto would choose
// (docs/measurements/methods.md).
const boundless = "adam"

// trainable returns the spec with that method if its model needs it and the spec sets no field of
// auto. It leaves errors to the code that makes the model.
func (s *Spec) trainable(schema *schema.Schema) *Spec {
	if auto, ok := s.Method.(method.Auto); !ok || auto != (method.Auto{}) {
		return s
	}
	j, err := PrepareModel(s, schema.WithHats(0))
	if err != nil || j.Facts.Lipschitz.Finite() || j.Facts.Smooth.Finite() || len(j.Facts.Initial) > 0 {
		return s
	}
	with := *s
	with.MethodName, with.Method = boundless, method.Adam{}
	return &with
}

// columns returns the spec and the schema with the columns that the run uses, and why. If method
// auto chooses, the returned spec states its choice.
func (s *Spec) columns(full *schema.Schema) (*Spec, *schema.Schema, string, error) {
	if s.Columns != AutoColumns {
		schema, err := s.first(full)
		if err != nil || s.Columns == 0 {
			return s, full, "", err
		}
		return s, schema, fmt.Sprintf("the first %d of %d, as the spec says", s.Columns, full.Predictors()), nil
	}
	auto, chooses := s.Method.(method.Auto)
	switch {
	case !chooses:
		return nil, nil, "", inputError(s.Place("columns"),
			"columns: found auto beside method %s; write all or a number, as only method %s chooses", s.MethodName,
			method.Default)
	case data.IsPacked(s.Data) || full.Predictors() == 0:
		return nil, nil, "", s.noColumns()
	}
	linear, err := PrepareModel(s, full.WithHats(0))
	if err != nil {
		return nil, nil, "", err
	}
	auto, why, err := auto.ChooseColumns(linear.Facts, linear.Objective, linear.Schema.Dims(), s.terms(linear.Accountant))
	if err != nil { // the method refuses for the same reason, and says which field
		return s, full, "", nil
	}
	with := *s
	with.Method = auto
	if auto.Columns > 0 {
		full = full.First(auto.Columns)
	}
	return &with, full, why, nil
}

// first is a schema with the first columns that the spec asks for by number.
func (s *Spec) first(full *schema.Schema) (*schema.Schema, error) {
	switch n := full.Predictors(); {
	case s.Columns == 0:
		return full, nil
	case s.Columns == AutoColumns:
		return nil, inputError(s.Place("columns"),
			"columns: found auto; write all or a number here, as the table is read before a method chooses")
	case data.IsPacked(s.Data) || n == 0:
		return nil, s.noColumns()
	case s.Columns > n:
		return nil, inputError(s.Place("columns"), "columns: found %d; the schema has %d that features come from", s.Columns,
			n)
	}
	return full.First(s.Columns), nil
}

func (s *Spec) noColumns() error {
	return inputError(s.Place("columns"),
		"columns: found it for a table without columns, or a packed one; leave it out, or write all")
}

// bumps chooses the encoding of the free columns of the schema.
func (s *Spec) bumps(free *schema.Schema) (method.Bumps, error) {
	auto, chooses := s.Method.(method.Auto)
	switch {
	case s.Hats != nil && *s.Hats > 0 && free.Free() == 0:
		return method.Bumps{}, inputError(s.Place("hats"),
			"hats: found %d; write none, as every numeric column of the schema has an encoding of its own", *s.Hats)
	case s.Hats != nil:
		return method.Bumps{Hats: *s.Hats,
			Why: fmt.Sprintf("%d bumps beside each linear feature, as the spec says", *s.Hats)}, nil
	case !chooses:
		return method.Bumps{Why: "no bumps: only method auto chooses"}, nil
	case data.IsPacked(s.Data) &&
		!(free.WithCurves(1, 0, true).Snap().Snapped && data.PackedLines(free.WithHats(0), s.Data)):
		return method.Bumps{Why: "no bumps: the table is packed in a form that does not tell them"}, nil
	}
	linear, err := PrepareModel(s, free.WithHats(0))
	if err != nil {
		return method.Bumps{}, err
	}
	linear.Facts.Snapped = free.WithCurves(1, 0, true).Snap().Snapped // with bumps
	b, err := auto.Bumps(linear.Facts, free.Free(), s.terms(linear.Accountant))
	if err != nil {
		return method.Bumps{Why: "no bumps"}, nil // the method refuses for the same reason, and says which field
	}
	return b, nil
}

// places is the schema with places for pairs that a run of method auto chooses, where neither spec nor schema names
// any, and why.
func (s *Spec) places(of *schema.Schema) (with *schema.Schema, why string, err error) {
	auto, chooses := s.Method.(method.Auto)
	if !chooses || s.Has("pairs") || of.Paired || s.Uncentered || s.sum != nil || data.IsPacked(s.Data) && !of.Snapped {
		return of, "", nil
	}
	j, err := PrepareModel(s, of)
	if err != nil {
		return nil, "", err
	}
	n, why := auto.Places(j.Facts, j.Objective, s.terms(j.Accountant))
	return of.WithPlaces(n), why, nil
}

// Chosen is the job under the encoding that its run chose, without features that are 0 in every row.
func (j *Job) Chosen(c oracle.Choice) (*Job, error) {
	if j.Facts.Slots == 0 {
		return j, nil
	}
	with := *j
	with.Schema, with.Objective = j.Schema.Refined(c.Lines, j.ChosenPairs(c)...), method.Objective{}
	return &with, with.setModel()
}

// ChosenPairs are the pairs that a choice names.
func (j *Job) ChosenPairs(c oracle.Choice) (pairs []schema.Pair) {
	names := j.Schema.Curved()
	for _, p := range c.Pairs {
		pairs = append(pairs, schema.Pair{A: names[p[0]], B: names[p[1]]})
	}
	return pairs
}

// paired is the schema with the pairs that the spec asks for; full is the schema with all columns.
func (s *Spec) paired(full, used *schema.Schema) (*schema.Schema, error) {
	if len(s.Pairs) > 0 && data.IsPacked(s.Data) {
		return nil, inputError(s.Place("pairs"),
			"pairs: the table is packed, so its encoding is fixed; leave pairs out, or pack the table with a schema that has them")
	}
	with, err := used.AddPairs(s.Pairs, full)
	if e := (*config.Error)(nil); s.doc != nil && errors.As(err, &e) {
		err = s.doc.Locate(e)
	}
	return with, input(err)
}

// LoadSchema reads the spec's schema, with the label, the first columns and the pairs that the spec asks for. Columns
// whose encoding the schema leaves open have the spec's hats, or none.
func (s *Spec) LoadSchema() (*schema.Schema, error) {
	full, err := s.readSchema()
	if err != nil {
		return nil, err
	}
	schema, err := s.first(full)
	if err == nil {
		schema, err = s.paired(full, schema)
	}
	if err != nil {
		return nil, err
	}
	return schema.WithHats(*cmp.Or(s.Hats, new(int))), nil
}

func (s *Spec) readSchema() (*schema.Schema, error) {
	schema, err := data.LoadSchema(s.Schema)
	if err != nil {
		return nil, &InputError{"", err}
	}
	if s.Label != "" {
		if schema, err = schema.WithLabel(s.Label); err != nil {
			return nil, &InputError{"--label", err}
		}
	}
	return schema, nil
}

// PrepareOn settles a spec under a loaded schema, whose number of rows may differ from the file's.
func PrepareOn(spec *Spec, schema *schema.Schema) (*Job, error) {
	j := &Job{Spec: spec.chosen(schema), Schema: schema, Sum: spec.sum}
	if err := cmp.Or(spec.checkHoldout(), spec.Allows(OnOneTable)); err != nil {
		return nil, err
	}
	if err := j.setModel(); err != nil {
		return nil, err
	}
	var err error
	if !spec.Privacy.Off {
		if j.Accountant, err = spec.Accountant(); err != nil {
			return nil, &InputError{spec.Place("privacy.accountant"), err}
		}
	}
	if err := j.keepThreshold(); err != nil {
		return nil, err
	}
	if j.Method, err = j.Spec.Method.Configure(j.Facts, j.Objective, spec.terms(j.Accountant)); err != nil {
		if none := (*account.UnsupportedError)(nil); j.Sum != nil && errors.As(err, &none) {
			return nil, j.notSummed()
		}
		field, _, _ := strings.Cut(err.Error(), ":")
		if strings.HasPrefix(field, "privacy.") || strings.HasPrefix(field, "model.") {
			return nil, &InputError{spec.Place(field), err}
		}
		return nil, &InputError{spec.Place("method." + field), fmt.Errorf("method.%w", err)}
	}
	if n := method.MaxSteps(j.Method); n > runlog.MostSteps {
		return nil, &InputError{spec.Place("method.steps"), fmt.Errorf("method.steps: found %d; choose at most %d: %s has a line for each step, and larger files are not read again",
			n, runlog.MostSteps, runlog.StepsFile)}
	}
	j.setOutput()
	if auto, ok := j.Method.(method.Auto); ok && j.Spec.Output == method.TailAverage {
		auto.SmoothBumps = auto.Smooths(j.Facts)
		j.Method = auto
	}
	if j.Plan, err = j.Replan(); err != nil {
		if refused := (*InputError)(nil); errors.As(err, &refused) {
			return nil, err
		}
		return nil, &InputError{spec.Place("method"), err}
	}
	if err := j.Allows(OnOneTable); err != nil {
		return nil, err
	}
	if spec.Holdout > 0 {
		if err := j.holdOut(); err != nil {
			return nil, err
		}
	}
	j.StateEvery = StateEvery(j.Method, j.Plan, j.Facts.Dim)
	if _, err := spec.CheckDelta(j.Whole(), ""); err != nil {
		return nil, err
	}
	j.foresee()
	j.Warnings = j.Cautions()
	return j, nil
}

// keepThreshold turns the fallback of auto off beside a threshold, which looks for a rare class.
func (j *Job) keepThreshold() error {
	auto, ok := j.Spec.Method.(method.Auto)
	if !ok || len(j.Spec.Model.Threshold) == 0 {
		return nil
	}
	switch auto.Fallback {
	case method.FallbackClass:
		return inputError(j.Spec.Place("method.fallback"), "method.fallback: found %s beside model.threshold; write %s",
			method.FallbackClass, method.FallbackNone)
	case "":
		with := *j.Spec
		auto.Fallback = method.FallbackNone
		with.Method, j.Spec = auto, &with
	}
	return nil
}

// unsettled reports whether the spec trains on scattering coefficients of more than two classes and
// leaves output open.
func (j *Job) unsettled() bool {
	m := j.Schema.Image
	return j.Spec.doc != nil && !j.Spec.Has("output") && j.Schema.Classes() > 2 && m != nil &&
		m.Encode == schema.EncodeScattering
}

// setOutput takes the last iterate where the spec names no output and auto trains softmax on scattering coefficients:
// its length ends before its iterates have settled (docs/measurements/methods.md).
func (j *Job) setOutput() {
	if _, auto := j.Method.(method.Auto); !auto || !j.unsettled() {
		return
	}
	with := *j.Spec
	with.Output = method.Last
	j.Spec, j.Output = &with, "last, as suits softmax on scattering coefficients; `output: tail-average` overrules it"
}

// MethodTerms are the privacy terms of the method of the job.
func (j *Job) MethodTerms() method.Terms { return j.Spec.terms(j.Accountant) }

// terms are the privacy terms of the spec.
func (s *Spec) terms(a account.Accountant) method.Terms {
	if s.sum != nil && a != nil {
		a = account.Retrying(a, s.sum.Retries)
	}
	return method.Terms{Budget: s.methodBudget(), Accountant: a, Off: s.Privacy.Off}
}

// Cautions returns the warnings of a job before it runs; they follow from public facts.
func (j *Job) Cautions() (warnings []string) {
	if c, ok := j.Method.(method.Cautious); ok {
		warnings = append(warnings, c.Cautions(j.Facts, j.Objective)...)
	}
	if j.Outlook != nil {
		warnings = append(warnings, j.bleak())
	}
	if warning, _ := j.Spec.CheckDelta(j.Whole(), ""); warning != "" {
		warnings = append(warnings, warning)
	}
	return warnings
}

// PrepareModel prepares the model of a spec and its public facts, without a method.
func PrepareModel(spec *Spec, schema *schema.Schema) (*Job, error) {
	j := &Job{Spec: spec.chosen(schema), Schema: schema}
	if err := j.setModel(); err != nil {
		return nil, err
	}
	if spec.Privacy.Off {
		return j, nil
	}
	var err error
	if j.Accountant, err = spec.Accountant(); err != nil {
		return nil, &InputError{spec.Place("privacy.accountant"), err}
	}
	return j, nil
}

const majority = "majority" // the method that has no loss

// weights are those of the classes in the loss; nil where the spec has none.
func (m ModelSpec) weights(schema *schema.Schema) ([]float64, error) {
	if len(m.ClassWeights) == 0 {
		return nil, nil
	}
	classes := schema.ClassNames()
	w := slices.Repeat([]float64{1}, len(classes))
	for name, v := range m.ClassWeights {
		k := slices.Index(classes, name)
		if k < 0 {
			return nil, fmt.Errorf("model.class_weights: found %q; use the classes of the label, %s", name,
				cmp.Or(strings.Join(classes, ", "), "of which a numeric label has none"))
		}
		w[k] = v
	}
	return w, nil
}

// setModel makes the model, and sets what is publicly known for the method.
func (j *Job) setModel() error {
	spec, schema := j.Spec, j.Schema
	if _, err := model.Lookup(spec.Model.Name); err != nil {
		return inputError(spec.Place("model.name"), "model.name: %w", err)
	}
	s := spec.Model
	opt := s.options(schema)
	var err error
	if opt.Weights, err = s.weights(schema); err != nil {
		return &InputError{spec.Place("model.class_weights"), err}
	}
	m, err := model.New(s.Name, opt)
	if err != nil {
		return &InputError{spec.Place("model"), err}
	}
	j.Model = m
	f := m.Facts()
	if err := model.CheckThreshold(s.Threshold, schema.ClassNames(), f); err != nil {
		return inputError(spec.Place("model.threshold"), "model.threshold: %w", err)
	}
	if opt.Weights != nil && spec.MethodName == majority {
		return inputError(spec.Place("model.class_weights"),
			"model.class_weights: found it beside method %s, which counts records of each class; choose a method that trains",
			majority)
	}
	if _, network := m.(model.Starter); network && !slices.Contains(method.Networks(), spec.MethodName) {
		if spec.MethodName == method.Default {
			return inputError(spec.Place("method.name"),
				"method.name: found %q, which is for linear models, and taken where none is named; for a network choose %s, as in method: {name: %s}", method.Default, strings.Join(method.Networks(), ", "), method.Networks()[0])
		}
		return inputError(spec.Place("method.name"), "method.name: found %q; for a network choose %s", spec.MethodName,
			strings.Join(method.Networks(), ", "))
	}
	j.setFacts()
	if err := j.checkPlaces(); err != nil {
		return err
	}
	return j.setRegularizer()
}

// setFacts sets what schema, model and spec say in public.
func (j *Job) setFacts() {
	spec, schema, m, f := j.Spec, j.Schema, j.Model, j.Model.Facts()
	j.Facts = oracle.Public{
		Dim: m.Dim(), Rows: schema.Rows - spec.heldOut(schema.Rows), UnitRows: schema.UnitRows, Classes: schema.Classes(),
		Adjacency: spec.Privacy.Adjacency,
		NormBound: f.NormBound, L1Bound: schema.L1Bound(), Lipschitz: oracle.Bound(f.Lipschitz),
		Smooth: oracle.Bound(f.Smooth), OneMargin: f.OneMargin,
		HessLipschitz: oracle.Bound(f.HessLipschitz), Curved: f.Curved && m.Dim() <= oracle.MaxHess,
		Bounded: f.Bounded, Layers: f.Layers,
	}
	if s, ok := m.(model.Starter); ok {
		for _, span := range s.Start() {
			j.Facts.Initial = append(j.Facts.Initial, oracle.Span(span))
		}
	}
	if !math.IsInf(f.Start, 1) {
		j.Facts.StartLoss = oracle.Bound(f.Start)
	}
	if b := schema.LabelBounds(); b != nil {
		j.Facts.LabelSpan = b.Max - b.Min
	}
	if schema.Intercept {
		j.Facts.Intercept = schema.Dim()
	}
	if f.Viewed && schema.Image != nil && schema.Image.Encode == "" {
		j.Facts.Image = schema.Image.Shape
	}
	if spec.Privacy.Off {
		j.Facts.Adjacency = privacy.AddRemove // without noise nothing depends on it
	}
	j.Facts.Presence, j.Facts.Snapped = j.Facts.Adjacency == privacy.ReplaceOne, schema.Snapped
	j.Facts.Centered = f.Centered && schema.Image == nil && !spec.Uncentered
	if b := schema.LabelBounds(); b != nil && f.Shifted && !spec.Uncentered {
		j.Facts.Shifted, j.Facts.LabelMin = true, b.Min
	}
	if n := schema.Open(); n > 0 {
		j.Facts.Totals, j.Facts.Slots = true, n
	}
	j.Facts.LabelScale = schema.Label().Scale
	for first, c := range schema.Places() {
		if c.Hats+c.Waves > 0 {
			j.Facts.Numeric = append(j.Facts.Numeric, oracle.Numeric{At: first, Bumps: c.Hats, Waves: c.Waves, Free: c.Chosen})
		}
		switch f := c.Form(); {
		case f.OneHot:
			j.Facts.Leveled = append(j.Facts.Leveled, oracle.Leveled{At: first, Levels: len(f.Levels)})
		case len(f.Levels) > 0 && f.Line != nil:
			j.Facts.Leveled = append(j.Facts.Leveled, oracle.Leveled{At: first})
		}
	}
	j.Facts.Calibrated = !spec.Uncentered && spec.sum == nil && schema.Classes() > 1 &&
		(spec.Output == method.TailAverage || spec.Output == "") && !j.unsettled() && model.Calibrates(m)
	if s := spec.sum; s != nil { // what owners add up are sums over rows as they are, whose events state one move
		j.Facts.Owners, j.Facts.Colluders, j.Facts.Presence = len(s.Names), s.Colluders, false
	}
}

// checkPlaces refuses a schema with reserved pairs if the run has no first release that fills them.
func (j *Job) checkPlaces() error {
	s, f := j.Schema, j.Model.Facts()
	_, network := j.Model.(model.Starter)
	linear := (model.Calibrates(j.Model) || f.Shifted) && !network && f.Unit == 0
	if n := s.Open(); n > 0 && (n < len(s.Pairs) || !s.Intercept || s.UnitRows > 0 || j.Spec.sum != nil || !linear) {
		return inputError(j.Spec.Schema,
			"pairs: the schema reserves pairs without naming columns; only a run of method auto with an intercept and one row per record fills them")
	}
	return nil
}

// setRegularizer sets the one that the spec has, if any.
func (j *Job) setRegularizer() (err error) {
	spec := j.Spec
	for _, r := range []struct {
		name   string
		lambda float64
	}{{"l2", spec.Model.L2}, {"l1", spec.Model.L1}, {"nonconvex", spec.Model.NonConvex}} {
		if r.lambda == 0 {
			continue
		}
		if !(r.lambda > 0) || math.IsInf(r.lambda, 1) {
			return inputError(spec.Place("model."+r.name), "model.%s: found %v; write a number, 0 or more", r.name, r.lambda)
		}
		if j.Objective.Reg != nil {
			return inputError(spec.Place("model."+r.name), "model.%s: found a second regularizer; keep one of l2, l1, nonconvex",
				r.name)
		}
		if j.Objective.Reg, err = reg.New(r.name, r.lambda); err != nil {
			return &InputError{spec.Place("model." + r.name), err}
		}
	}
	return nil
}

// Meter certifies the plan against the budget, or makes the filter that the plan names.
func (j *Job) Meter() (account.Meter, error) {
	if j.Spec.Privacy.Off {
		return LabMeter(j.Facts.Adjacency), nil
	}
	m, err := account.NewMeter(j.Plan, j.Accountant, j.Spec.Privacy.Budget())
	if err != nil {
		return nil, err // wraps privacy.ErrExhausted where the plan costs too much
	}
	return m, nil
}

// LabMeter is the meter of a run without noise.
func LabMeter(a privacy.Adjacency) account.Meter { return &labMeter{adjacency: a} }

// labMeter admits only queries without noise. Such a run needs `lab: true`, guarantees nothing, and everything
// that it writes says so.
type labMeter struct{ adjacency privacy.Adjacency }

func (m *labMeter) Adjacency() privacy.Adjacency { return m.adjacency }

func (m *labMeter) Charge(e privacy.Event) error {
	if !privacy.Contains[privacy.NonPrivate](e) && e != (privacy.Continued{}) {
		return errors.New("run: a lab meter admits only queries without noise")
	}
	return nil
}

// Cost returns ε of the charges at the job's δ: +Inf without noise.
func (j *Job) Cost(charged privacy.Event) float64 { return j.CostBy(account.Spent, charged) }

// CostBy is Cost by account.Spent or account.SpentNear.
func (j *Job) CostBy(spent func(privacy.Event, account.Accountant, privacy.Event, privacy.Adjacency,
	float64) (float64, error), charged privacy.Event) float64 {
	if j.Spec.Privacy.Off {
		return math.Inf(1)
	}
	epsilon, err := spent(j.Plan, j.Accountant, charged, j.Facts.Adjacency, j.Spec.Privacy.Budget().Delta)
	if err != nil {
		return math.Inf(1)
	}
	return epsilon
}

// shifts says whether a configured method predicts from a shift of margins.
func shifts(m method.Method) bool {
	a, ok := m.(method.Auto)
	_, adassp := m.(method.AdaSSP)
	return adassp || ok && (a.LabelNoise > 0 || a.FirstNoise > 0 || a.Shift != 0 || a.Solve == method.SolveStatistics)
}

// centers says whether a configured method centers rows.
func centers(m method.Method) bool {
	a, ok := m.(method.Auto)
	return ok && a.Center == method.CenterMean
}
