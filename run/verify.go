package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// WithoutLedger is the finding of a verification without a ledger.
const WithoutLedger = "not checked against a ledger, so anyone who can write the directory can have written all of its files to fit each other; --ledger PLACE compares them with what the ledger holds"

// A Verification checks one finished run directory. Verify makes one for a run; package gossip/party
// makes one for an owner's run in a network.
type Verification struct {
	Dir      string
	Info     *runlog.Info
	Record   *runlog.Record
	Job      *Job
	Findings []record.Finding

	seal    map[string]string // of the final files as they are, once they were read
	givenUp bool              // the owners of a network gave up more attempts than they may
}

// Say adds a finding.
func (v *Verification) Say(what string, holds bool, format string, args ...any) {
	v.Findings = append(v.Findings, record.Finding{What: what, Holds: holds, Detail: fmt.Sprintf(format, args...)})
}

// Examine reads the directory of a finished run and begins its verification. The job of an owner's run in a
// network has no method yet.
func Examine(dir string) (v *Verification, err error) {
	v = &Verification{Dir: dir}
	if v.Info, err = runlog.ReadInfo(dir); err != nil {
		return nil, &InputError{Err: err}
	}
	if v.Info.Status != runlog.Finished {
		return nil, inputError("", "%s: this run is %s; only a finished run can be verified", dir, v.Info.Status)
	}
	if v.Record, err = v.Info.Record(dir); err != nil {
		return nil, &InputError{Err: err}
	}
	if v.Info.Network != "" {
		v.Job, err = job.WithMethod(v.Info, nil)
	} else if lost := v.Record.Charged() - v.Record.Released; lost > mostLost {
		return nil, inputError("",
			"%s: found %d charged batches that were not released; a run that can be verified has up to %d",
			filepath.Join(dir, runlog.EventsFile), lost, mostLost)
	} else {
		v.Job, err = job.FromInfo(v.Info)
	}
	if err != nil {
		return nil, &InputError{Where: dir, Err: err}
	}
	return v, v.files()
}

// mostLost is how many batches crashes can have lost in a run that Verify checks: each crash loses about
// half a second of them. A line of the run log can claim any number, and Verify walks every batch.
const mostLost = 1 << 22

// Verify checks a finished run from its files alone, without its data: that they are complete, that
// the charges are the planned ones and fit the budget, by the run's accountant and by a second one, that
// every release was charged, and that the method, replayed from the releases, gives the model. With a
// ledger it also checks the ledger's record of the run. An error means that the directory cannot be read;
// a check that fails is a Finding.
func Verify(ctx context.Context, dir string, l *ledger.Ledger) ([]record.Finding, error) {
	v, err := Examine(dir)
	if err != nil {
		return nil, err
	}
	if v.Info.Network != "" {
		return nil, inputError("", "%s: is an owner's run in a network, which package gossip/party verifies", dir)
	}
	if v.Info.Search != nil {
		return v.search(ctx, l)
	}
	plan, err := v.Job.Replan()
	v.Charged(plan, err, method.MaxSteps(v.Job.Method), method.NoiseMultiplier(v.Job.Method))
	v.releases()
	if v.Job.Sum != nil {
		if err := v.sums(ctx); err != nil {
			return nil, err
		}
	}
	if err := v.replay(ctx); err != nil {
		return nil, err
	}
	return v.Findings, v.ledger(ctx, l)
}

// files checks that the directory holds the files of the run, unchanged, and no others.
func (v *Verification) files() error {
	// No field may occur twice in run.json: its meaning must be clear.
	if _, err := v.final(); err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	now, err := runlog.Hashes(v.Dir)
	if err != nil {
		return err
	}
	all, changed := compared(now, v.Info.Hashes)
	more := ""
	if len(changed) > 0 {
		more += "; others: " + strings.Join(changed, ", ")
	}
	if v.Record.Torn {
		more += "; the end of the record is torn"
	}
	v.Say("files", len(changed) == 0 && len(v.Info.Hashes) > 0 && !v.Record.Torn, "%d of %d files have the hashes in %s%s",
		all-len(changed), all, runlog.InfoFile, more)
	return nil
}

// Charged checks that the plan of the configuration is the recorded one, that the budget covers it, and that
// the charges are within it.
func (v *Verification) Charged(own privacy.Event, err error, steps int, noise float64) {
	same := err == nil && privacy.Equal(own, v.Job.Plan) && v.Info.NoiseMultiplier == noise && v.Info.MaxSteps == steps
	v.Say("plan", same,
		"the configuration in %s plans %v in %d steps with noise multiplier %.6g; the record says %v in %d steps with %.6g",
		runlog.InfoFile, own, steps, noise, v.Job.Plan, v.Info.MaxSteps, v.Info.NoiseMultiplier)
	if v.Info.Off {
		v.Say("budget", true, "a run without noise has none: nothing is guaranteed")
	} else {
		v.cost("budget", v.Job.Plan)
	}
	v.charges()
}

// cost checks that an event fits the budget by the run's accountant, whose figure must not be below
// a known lower bound of the true cost. The finding also names a second accountant with another
// proof, whose bound may be looser.
func (v *Verification) cost(what string, e privacy.Event) {
	b := v.Info.Budget
	loss, err := v.Job.Accountant.Loss(e, b.Adjacency)
	if err != nil {
		v.Say(what, false, "%v", err)
		return
	}
	epsilon := loss.Epsilon(b.Delta)
	second, least := "no second accountant has a theorem for it", math.Inf(1)
	for _, name := range account.Names() {
		other, err := account.ByName(name)
		if err != nil || name == v.Info.Accountant || name == (account.Best{}).String() {
			continue
		}
		if l, err := other.Loss(e, b.Adjacency); err == nil {
			if bound := l.Epsilon(b.Delta); bound != epsilon && bound < least {
				second, least = fmt.Sprintf("%s, by another proof, says at most %s", name, chart.Upper(bound)), bound
			}
		}
	}
	// The bound of a meter, which leaves room for the rounding of decimals.
	_, err = account.NewPlan(e, v.Job.Accountant, b)
	fits := err == nil
	if lower, err := (account.PLD{}).Least(e, b.Adjacency, b.Delta); err == nil && lower > epsilon*(1+1e-9) {
		fits, second = false, fmt.Sprintf("%s; pld says at least %v", second, lower)
	}
	against := ""
	if s := account.SharesOf(e, v.Job.Accountant, b.Adjacency, b.Delta); s != nil {
		against = "; " + againstWords(s)
	}
	v.Say(what, fits, "%v costs ε = %s at δ = %s by %s (%s); the budget is %s%s", e, chart.Upper(epsilon),
		chart.Full(b.Delta), v.Info.Accountant, second, chart.Full(b.Epsilon), against)
}

// charges: the charges are a prefix of the plan, or within the filter.
func (v *Verification) charges() {
	meter, err := v.Job.Meter()
	order := "in the order of the plan"
	if v.Info.Resumed() {
		account.AllowGaps(meter)
		order += ", of which a run that was broken may leave releases out"
	}
	charged := 0
	for e := range v.Record.Batches() {
		if runlog.InHoldout(e) {
			account.AllowGaps(meter) // the method may have stopped early
		}
		if err == nil {
			err = meter.Charge(e)
		}
		charged++
	}
	detail := fmt.Sprintf("%d batches were charged, %s", charged, order)
	if f, ok := meter.(*account.Filter); ok && err == nil {
		// For events that the run chose on its way an accountant's figure is no bound; it is shown for
		// comparison with the filter's sum.
		beside := "no second accountant has a theorem for them"
		for _, name := range []string{"rdp", "zcdp", "pure"} {
			a, err := account.ByName(name)
			if err != nil {
				continue
			}
			if l, err := a.Loss(v.Record.Event(), f.Adjacency()); err == nil {
				beside = fmt.Sprintf("accountant %s would say %s of them as a plan", name,
					chart.Upper(l.Epsilon(v.Info.Budget.Delta)))
				break
			}
		}
		detail = fmt.Sprintf("%d batches were charged; they add up to %.9g of the filter's %.9g in %v, ε = %s (%s)", charged,
			f.Spent(), f.Limit(), f.Currency(), chart.Upper(f.Epsilon()), beside)
	}
	if err != nil {
		detail = err.Error()
	}
	v.Say("charges", err == nil && v.Info.Result != nil && charged == v.Info.Result.Charged, "%s", detail)
}

// releases: each was charged. A charge without a release is a batch that a crash lost; it stays charged.
func (v *Verification) releases() {
	lost := v.Record.Charged() - v.Record.Released
	kept := ""
	if at := v.Record.Oldest(); at != nil {
		kept = fmt.Sprintf(", of which the first %d are no longer kept: their costs are checked, their content is not",
			at.Released)
	}
	without := "batches were charged and lost"
	if v.Job.Sum != nil {
		without = "attempts were charged and given up, or lost"
	}
	v.Say("releases", lost >= 0, "%d releases, each of a charged batch%s; %d %s", v.Record.Released, kept, lost, without)
}

// replay: from the oldest saved state the method gives the recorded steps and the model again, and on its way
// the newest saved state.
func (v *Verification) replay(ctx context.Context) error {
	var file *model.File
	var err error
	if !v.noModel() {
		if file, err = model.Read(filepath.Join(v.Dir, runlog.ModelFile)); err != nil {
			return &InputError{Err: err}
		}
	}
	known, err := historyOf(v.Record)
	if err != nil {
		return err
	}
	oldest, newest := v.Record.Oldest(), v.Record.Newest()
	walk, err := walkFrom(v.Job, v.Record, oldest)
	if err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	meter, after, err := v.afterLog()
	if err != nil {
		v.Say("replay", false, "%v", err)
		return nil
	}
	o, done := known.oracle(v.Job, oldest, meter, after)
	defer done()
	from, start, kept := 0, "the beginning", known.released
	if oldest != nil {
		from, start, kept = oldest.Step, fmt.Sprintf("the state that was saved after step %d", oldest.Step),
			kept-oldest.Released
	}
	passed, lines := newest == oldest, &lines{v: v, next: from}
	var mine error // of a file, not of the run
	end, err := walk.fold(ctx, o, func(st method.Step) error {
		lines.compare(st)
		if !passed && st.T == newest.Step {
			passed = true
			mine = v.state(walk, st, newest)
		}
		return mine
	})
	switch {
	case mine != nil:
		return mine
	case err != nil && !errors.Is(err, replay.ErrEnd): // there the rest was lost in a crash, or the run was stopped
		v.Say("replay", false, "%v", err)
		return ctx.Err()
	}
	end.answers = known.answers
	lines.say(from, end.steps)
	if !passed {
		v.Say("state", false, "the state that was saved after step %d: the run has %d steps", newest.Step, end.steps)
	}
	all := v.Info.Result != nil && end.steps == v.Info.Result.Steps && o.Replayed() == kept
	if file == nil {
		v.Say("replay", all && !end.finite(),
			"%s, replayed from %s to step %d by its releases, without data: the parameters are not finite, and the run made no model", v.Info.Method, start, end.steps)
	} else {
		worst := max(apart(narrow(v.Job, end), file.W), apart(end.margins.offset, file.Offset))
		v.Say("replay", all && v.near(worst),
			"%s, replayed from %s to step %d by its releases, without data, gives the %d parameters of %s, the largest relative difference being %.3g",
			v.Info.Method, start, end.steps, len(file.W), runlog.ModelFile, worst)
		v.promise(file, ending{choice: end.choice, margins: v.nearMargins(end.margins, file)})
	}
	v.claim(end.claim)
	return v.wrote(end)
}

// nearMargins are the replayed margins, but those of the file where they are near, or where a file of an earlier
// version has none.
func (v *Verification) nearMargins(m margins, file *model.File) margins {
	if v.near(math.Abs(m.factor-file.MarginFactor)) || file.MarginFactor == 0 {
		m.factor = file.MarginFactor
	}
	if v.near(math.Abs(m.noise-file.Noise)) || file.Noise == 0 {
		m.noise = file.Noise
	}
	m.offset = file.Offset
	return m
}

// afterLog is what answers after the run log: where the meter may have refused a batch of the run, the replay asks it
// again.
func (v *Verification) afterLog() (account.Meter, oracle.Oracle, error) {
	_, filtered := v.Job.Plan.(privacy.Filtered)
	if !filtered && !v.Info.Resumed() && (v.Info.Result == nil || v.Info.Result.Outcome != method.OutOfBudget.String()) {
		return nil, nil, nil
	}
	meter, err := v.Job.Meter()
	if v.Info.Resumed() {
		account.AllowGaps(meter)
	}
	return meter, spent{v.Job, meter, v.givenUp}, err
}

// promise checks that the model file claims this run's guarantee, and describes rows and margins as
// the end of the run does.
func (v *Verification) promise(file *model.File, end ending) {
	i := v.Info
	var g job.Guarantee
	found := *file
	err := json.Unmarshal(file.Guarantee, &g)
	claims := job.GuaranteeOf(i)
	if g.Method == "" && g.Config == nil { // a file of an earlier version, without them
		claims.Method, claims.Config = "", nil
	}
	if g.GDP == nil { // likewise
		claims.GDP = nil
	}
	end.w = file.W
	want, fileErr := modelFileOf(v.Job, end, claims)
	if err = errors.Join(err, fileErr); err == nil {
		want.Created, want.Lab = file.Created, i.Lab
	}
	if err == nil {
		found.Guarantee, err = json.Marshal(g)
	}
	var texts [2][]byte
	for k, f := range []*model.File{&found, want} {
		if err == nil {
			texts[k], err = json.Marshal(f)
		}
	}
	var other []string
	if err == nil {
		other, err = runlog.Differing(texts[0], texts[1])
	}
	v.Say("model", err == nil && len(other) == 0, "what %s says of its rows, itself and the guarantee, beside this run",
		runlog.ModelFile)
}

// state checks that the newest saved state follows from the oldest one, or the beginning, and the
// releases in between.
func (v *Verification) state(walk *walk, st method.Step, newest *runlog.State) error {
	if err := v.Record.Load(newest); err != nil {
		return err
	}
	again, err := walk.state(st)
	if err != nil {
		return err
	}
	worst := 0.0
	if len(again.Vectors) != len(newest.Vectors) {
		worst = math.Inf(1)
	}
	for i := range min(len(again.Vectors), len(newest.Vectors)) {
		worst = max(worst, apart(again.Vectors[i], newest.Vectors[i]))
	}
	v.Say("state", v.near(worst) && bytes.Equal(again.Fold, runlog.Compact(newest.Fold)),
		"the state that was saved after step %d follows from the releases before it, the largest relative difference being %.3g", newest.Step, worst)
	return nil
}

// apart returns the largest relative difference of two vectors; +Inf if their lengths differ.
func apart(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst := 0.0
	for j, v := range a {
		if v != b[j] {
			worst = max(worst, math.Abs(v-b[j])/max(1, math.Abs(v)))
		}
	}
	return worst
}

// same reports whether a replay must give the bits of the run: it does on the platform of the run.
// Elsewhere it agrees to 1e-9.
func (v *Verification) same() bool {
	return v.Info.Platform == runtime.GOOS+"/"+runtime.GOARCH && v.Info.Kernels == runlog.Kernels()
}

// Near reports whether a replayed vector is that of the run.
func (v *Verification) Near(again, was []float64) bool { return v.near(apart(again, was)) }

func (v *Verification) near(worst float64) bool { return worst == 0 || !v.same() && worst <= 1e-9 }

// claim: the run's claim about its model follows from the releases.
func (v *Verification) claim(again *secondorder.Claim) {
	var recorded *runlog.Claim
	if v.Info.Result != nil {
		recorded = v.Info.Result.Claim
	}
	if recorded == nil && again == nil {
		return
	}
	near := func(a, b float64) bool { return a == b || !v.same() && math.Abs(a-b) <= 1e-9*math.Abs(a) }
	if recorded == nil || again == nil {
		v.Say("claim", false, "only one of %s and the replayed run makes a claim", runlog.InfoFile)
		return
	}
	v.Say("claim",
		near(recorded.Gradient, again.Gradient) && near(recorded.Curvature, again.Curvature) &&
			recorded.Probability == again.Probability,
		"%v: as the replayed run says; --claim computes both from the rows, for lab runs", recorded)
}

// VerifyClaim computes from the rows what a converged lab run claims about its model. This is an access
// without noise, so it is for lab runs only. It refuses rows that are protected by now, unless void is
// set, which ends their guarantee. Without a named ledger it uses the run's.
func VerifyClaim(ctx context.Context, dir, where string, void bool) (record.Finding, error) {
	info, err := runlog.ReadInfo(dir)
	switch {
	case err != nil:
		return record.Finding{}, &InputError{Err: err}
	case !info.Lab:
		return record.Finding{}, inputError("", "%s: --claim accesses the rows without noise; use it on lab runs only", dir)
	case info.Result == nil || info.Result.Claim == nil:
		return record.Finding{}, inputError("", "%s: this run claims nothing of its model", dir)
	}
	j, err := job.FromInfo(info)
	if err != nil {
		return record.Finding{}, &InputError{Where: dir, Err: err}
	}
	file, err := model.Read(filepath.Join(dir, runlog.ModelFile))
	if err != nil {
		return record.Finding{}, &InputError{Err: err}
	}
	gate := access.Gate{Void: void, Dropped: Dropped(nil, true)} // the run accepted what is dropped
	table, err := Read(ctx, cmp.Or(where, info.Ledger), info.ID, gate, access.Verify, j.Schema, j.Spec.Data,
		j.RowOptions())
	if err != nil {
		return record.Finding{}, err
	}
	defer table.Close()
	if j.Held != nil {
		if table, _, err = divide(j, table, dir); err != nil {
			return record.Finding{}, err
		}
	}
	// sums without noise are of float32 in any case
	j.Facts.Coding = oracle.Coding(table.Coding())
	t := Trainer{Job: j, Table: table, Meter: job.LabMeter(j.Facts.Adjacency), Streams: noise.SeededStreams(0),
		Journal: NopJournal{}, Workers: runtime.GOMAXPROCS(0)}
	o, err := t.Open()
	if err != nil {
		return record.Finding{}, err
	}
	defer o.Close()
	gradient, least, err := secondorder.Exact(ctx, o, j.Objective.Reg, file.W)
	if err != nil {
		return record.Finding{}, err
	}
	c := info.Result.Claim
	return record.Finding{What: "rows", Holds: gradient <= c.Gradient && least >= -c.Curvature,
		Detail: fmt.Sprintf("‖∇F‖ = %.4g and λ_min(∇²F) = %.4g; claimed are %v", gradient, least, c)}, nil
}

// ledger: it reserved the budget, and settled the same events.
func (v *Verification) ledger(ctx context.Context, l *ledger.Ledger) error {
	if v.Info.Lab {
		v.Say("ledger", true, "a lab run reserves and settles nothing, so no ledger holds a seal of its files")
		return nil
	}
	if l == nil {
		v.Findings = append(v.Findings, record.Finding{What: "ledger", Holds: true, Detail: WithoutLedger, Skipped: true})
		return nil
	}
	known, err := l.Run(ctx, v.Info.ID)
	if errors.Is(err, ledger.ErrUnknownRun) {
		v.Say("ledger", false, "%s knows no such run", l.Where())
		return nil
	}
	if err != nil {
		return err
	}
	alike := false
	if s := known.Settlement; s != nil && s.Basis != ledger.BasisPlan {
		if alike, err = s.Shows(v.Record.Event()); err != nil {
			return err
		}
	}
	plan, err := planHash(v.Job)
	if err != nil {
		return err
	}
	d, err := l.Dataset(ctx, known.Dataset)
	if err != nil {
		return err
	}
	b := v.Info.Budget
	holds := d.Unit == v.Info.Unit && d.Adjacency == b.Adjacency && known.State == ledger.StateSettled &&
		known.Settlement != nil && known.Dataset == v.Info.Dataset &&
		known.Caps == ledger.Caps{Epsilon: b.Epsilon, Delta: b.Delta} &&
		(len(known.Plan) == 0 || bytes.Equal(known.Plan, plan)) &&
		(known.Settlement.Basis == ledger.BasisPlan || alike)
	if err := v.sealed(l, known); err != nil {
		return err
	}
	v.Say("ledger", holds, "%s reserved %v of %q for this run; it is %s", l.Where(), known.Caps, known.Dataset,
		known.State)
	v.shares(l.Where(), known.Shares)
	return nil
}
