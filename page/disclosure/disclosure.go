// Package disclosure writes what a privacy officer signs: disclosure.json and a page to print. It says whom a run
// protects against whom, what the run and the whole life of its dataset cost, what is not covered, and what people
// stated about purpose and data.
//
// The facts of a disclosure follow from the run directory and the ledger. [Check] computes them
// again, at the ledger's entry that the disclosure names, and compares. What people stated cannot
// be recomputed: it comes from the run's spec, or from one that was given later, and is marked as
// theirs. The published JSON Schema is docs/disclosure.schema.json.
package disclosure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Format names the form of a disclosure.
const Format = "sotto-disclosure/1"

// Names of the files in a run directory. The seal of the run does not cover them.
const (
	File = "disclosure.json"
	Page = "disclosure.html"
)

// A Document is a disclosure.
type Document struct {
	Format     string      `json:"format"`
	Facts      Facts       `json:"facts"`      // they follow from the run directory and the ledger
	Statements Statements  `json:"statements"` // of people
	Made       Made        `json:"made"`
	Supersedes *Superseded `json:"supersedes,omitempty"`

	curve template.HTML // the trade-off curve, for the page
}

// Facts are computed.
type Facts struct {
	Run        Run               `json:"run"`
	Protection record.Protection `json:"protection"`
	Guarantee  Guarantee         `json:"guarantee"`
	Lifetime   record.Lifetime   `json:"lifetime"`
	NotCovered []record.Note     `json:"not_covered"`
	Utility    []Figure          `json:"utility"` // quality of the model; empty: none was computed
	// exact figures of rows were left out of Utility, as a person asked for
	PrivateOnly  bool         `json:"private_only,omitempty"`
	Public       Public       `json:"public"`
	Fingerprints Fingerprints `json:"fingerprints"`
}

// Run is what ran.
type Run struct {
	ID       string `json:"id"`
	Dataset  string `json:"dataset"`
	Started  string `json:"started"` // days in UTC
	Finished string `json:"finished"`
	Outcome  string `json:"outcome"`
	Model    string `json:"model"`
	Method   string `json:"method"`
	Version  string `json:"version"` // of Sotto
	Build    string `json:"build,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
	Binary   string `json:"binary,omitempty"` // SHA-256 of the program; empty: an earlier version did not note it
}

// Guarantee is that of the run alone.
type Guarantee struct {
	Epsilon float64 `json:"epsilon"` // the cap, which was fixed before the first access
	Delta   float64 `json:"delta"`
	Words   string  `json:"words"`
	// Bounds on how often an attacker with even odds guesses right whether a record was used: by
	// the plan's own noise, and by Epsilon and Delta alone. Rounded up; absent: not known, or the
	// disclosure is of an earlier version.
	Guess     float64 `json:"guess,omitempty"`
	GuessPair float64 `json:"guess_by_epsilon_delta,omitempty"`
	DeltaRows float64 `json:"delta_times_rows,omitempty"` // Delta times Public.Rows, rounded up
	// what it assumes where owners of a network share the noise
	Shares       *Shares          `json:"shares,omitempty"`
	Accountant   string           `json:"accountant"`
	PlanEpsilon  float64          `json:"plan_epsilon"` // what the whole plan costs at Delta, rounded up; information
	Noise        string           `json:"noise_multiplier"`
	Sampling     string           `json:"sampling"`
	Released     []Release        `json:"released"`
	MoreReleased int              `json:"more_released,omitempty"` // lines that are not listed
	Theorems     []record.Theorem `json:"theorems"`
	GDP          *Gaussian        `json:"gdp,omitempty"` // nil where no theorem gives it
	NoGDP        string           `json:"no_gdp,omitempty"`
	Attacks      []account.Attack `json:"attacks,omitempty"` // points of the trade-off curve, rounded up
}

// Shares say against whom the guarantee is where owners of a network share the noise, and what it is against the
// others.
type Shares struct {
	Owners    int `json:"owners"`
	Colluders int `json:"colluders"` // of the other owners
	// attempts that could be given up; those that were not needed give nothing back
	Retries      int      `json:"retries"`
	Against      string   `json:"against"`
	AgainstAll   string   `json:"against_all"`   // those against whom EpsilonAlone holds, at the same δ
	EpsilonAlone *float64 `json:"epsilon_alone"` // rounded up; null: no finite ε is proven
	Trusted      string   `json:"trusted"`
}

// Gaussian is an [account.GaussianBound], rounded up.
type Gaussian struct {
	Mu      float64 `json:"mu"`
	Outside float64 `json:"outside"`
	Regret  float64 `json:"regret"`
}

// Release is a number of equal releases.
type Release struct {
	Times string `json:"times"`
	What  string `json:"what"`
}

// A Figure is one of the model's quality.
type Figure struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Of      string  `json:"of"`      // what it was computed from
	Private bool    `json:"private"` // it is part of the guarantee
}

// Public is what the guarantee takes as public and true.
type Public struct {
	Rows        int      `json:"rows,omitempty"` // or units, as a person declared; 0: not declared
	Assumptions []string `json:"assumptions"`
	Asserted    []string `json:"asserted"`
	Columns     []Column `json:"columns"`
}

// Column is a column that the model uses, as the schema has it.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Says string `json:"says"` // its bounds, levels or classes
}

// Fingerprints are SHA-256 in hex.
type Fingerprints struct {
	Schema     string            `json:"schema"`      // of what the encoding depends on
	Settings   string            `json:"settings"`    // of what the spec asked for: model, method, budget, output, plan
	LedgerHead string            `json:"ledger_head"` // the entry before the run's first access
	Files      map[string]string `json:"files"`       // of the run directory, run.json in its canonical form
}

// Made says when and by which program a disclosure was made.
type Made struct {
	At       string `json:"at"` // UTC
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
	Binary   string `json:"binary,omitempty"` // SHA-256 of the program
	// fingerprint of the key that signs the file and its page; empty: none did when it was made
	Signer string `json:"signer,omitempty"`
}

// Superseded is the disclosure that another one corrects.
type Superseded struct {
	SHA256 string `json:"sha256"` // of its file
	At     string `json:"at"`     // when it was made
}

// Options say how to make a disclosure.
type Options struct {
	Made        Made
	PrivateOnly bool   // leave out exact figures of rows
	Later       *Later // statements that were given after the run, instead of the spec's; nil: the spec's
	Supersedes  string // the file of the disclosure that this one corrects; "": none
}

// Later are statements that were given after the run.
type Later struct {
	SpecFile   string // of which the SHA-256 is noted
	Statements runlog.Statements
	Schema     *schema.Schema // its author and sources; it describes the same encoding as the run's
}

// An InputError is a mistake in what a person gave.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputError(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Make makes the disclosure of the finished run in dir, by a ledger up to its last entry. The caller has verified the
// run.
func Make(ctx context.Context, dir string, l *ledger.Ledger, o Options) (*Document, error) {
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	d := &Document{Format: Format, Made: o.Made}
	if d.Facts, d.curve, err = r.facts(o.PrivateOnly); err != nil {
		return nil, err
	}
	if d.Facts.Lifetime, err = r.lifetime(ctx, l, nil); err != nil {
		return nil, err
	}
	if d.Statements, err = r.statements(o.Later); err != nil {
		return nil, err
	}
	if o.Supersedes != "" {
		old, text, err := Read(o.Supersedes)
		if err != nil {
			return nil, err
		}
		if old.Facts.Run.ID != r.info.ID {
			return nil, inputError("--supersedes: %s is the disclosure of run %s; give one of run %s", o.Supersedes,
				old.Facts.Run.ID, r.info.ID)
		}
		d.Supersedes = &Superseded{SHA256: sum(text), At: old.Made.At}
	}
	return d, nil
}

// Marshal is a document as its file.
func (d *Document) Marshal() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", "  ")
	return append(b, '\n'), err
}

// Read reads the file of a disclosure. An unknown field, or one that occurs twice, is an error.
func Read(path string) (*Document, []byte, error) {
	b, err := readfile.All(path, readfile.JSON)
	if err != nil {
		return nil, nil, inputError("%w", err)
	}
	var d Document
	if _, err = runlog.Canonical(b); err == nil {
		err = runlog.Strict(b, &d)
	}
	if err == nil && d.Format != Format {
		err = fmt.Errorf("format: found %q; expected %q", d.Format, Format)
	}
	if err != nil {
		return nil, nil, inputError("%s: %w", path, err)
	}
	return &d, b, nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// A finished run, as its directory has it.
type finished struct {
	dir    string
	info   *runlog.Info
	log    *runlog.Record
	schema *schema.Schema
}

// ErrLab says that a run has no guarantee to disclose.
var ErrLab = errors.New("is a lab run: it has no guarantee, so there is nothing to disclose")

func read(dir string) (*finished, error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return nil, &InputError{err}
	}
	switch {
	case info.Lab:
		return nil, inputError("%s: %w", dir, ErrLab)
	case info.Network != "":
		return nil, inputError("%s: is an owner's run in a network, which has no disclosure; `sotto verify` checks it", dir)
	case info.Status != runlog.Finished || info.Result == nil || info.Finished == nil:
		return nil, inputError("%s: this run is %s; only a finished run has a disclosure", dir, info.Status)
	}
	r := &finished{dir: dir, info: info}
	if r.log, err = runlog.Read(dir); err != nil {
		return nil, &InputError{err}
	}
	if r.schema, err = schema.FromJSON(info.Schema); err != nil {
		return nil, inputError("%s: %w", filepath.Join(dir, runlog.InfoFile), err)
	}
	return r, nil
}

// facts are all facts but the lifetime, and the plot of the trade-off curve; privateOnly leaves out exact figures.
func (r *finished) facts(privateOnly bool) (f Facts, curve template.HTML, err error) {
	known := record.Of(r.info, r.log)
	if err := known.Prove(r.info, r.log); err != nil {
		return f, "", &InputError{err}
	}
	for _, c := range known.Checks {
		if c.What == record.Guaranteed {
			return f, "", inputError("%s: %s", r.dir, c.Detail)
		}
	}
	if known.Guarantee == nil {
		return f, "", inputError("%s: %w", r.dir, ErrLab)
	}
	if known.Run.Model == "" {
		return f, "", inputError("%s: model: found no name", runlog.InfoFile)
	}
	is := &known.Run
	f.Run = Run{ID: is.ID, Dataset: is.Dataset, Started: day(is.Started), Finished: day(*is.Finished),
		Outcome: is.Outcome, Model: is.Model, Method: is.Method,
		Version: is.Version, Build: is.Build, Go: is.Go, Platform: is.Platform, Kernels: is.Kernels, Binary: is.Binary}
	f.Protection, f.NotCovered = known.Protection, known.NotCovered
	f.Guarantee, curve = guaranteeOf(known), page.PlotTradeOff(known.Guarantee)
	f.Utility = utility(&known.Quality, is.Search)
	if f.PrivateOnly = privateOnly; privateOnly {
		f.leaveOutExact()
	}
	p := &known.Public
	f.Public = Public{Rows: p.Table.Rows, Assumptions: p.Assumptions, Asserted: p.Asserted, Columns: columns(r.schema)}
	f.Fingerprints, err = r.fingerprints()
	return f, curve, err
}

// guaranteeOf is the guarantee of a record, its bounds with five digits.
func guaranteeOf(known *record.Record) Guarantee {
	is := known.Guarantee
	g := Guarantee{Epsilon: is.Epsilon, Delta: is.Delta, Accountant: is.Accountant, Words: is.Words,
		PlanEpsilon: up(float64(*is.PlanEpsilon)), Noise: is.Noise, Sampling: is.Sampling, NoGDP: is.NoGDP,
		MoreReleased: known.MoreReleased, Released: []Release{}, Theorems: is.Theorems,
		GuessPair: up(is.Guess), DeltaRows: up(float64(is.DeltaRows))}
	g.Guess = g.GuessPair
	if is.PlanGuess != nil {
		g.Guess = min(up(*is.PlanGuess), g.GuessPair)
	}
	if s := is.Shares; s != nil {
		g.Shares = &Shares{Owners: s.Owners, Colluders: s.Colluders, Retries: s.Retries,
			Against: s.Against + ", while masks hold", AgainstAll: s.AgainstAll, Trusted: s.Trusted}
		if s.EpsilonAlone != nil {
			g.Shares.EpsilonAlone = new(up(*s.EpsilonAlone))
		}
	}
	for _, l := range known.Released {
		g.Released = append(g.Released, Release{chart.Integer(l.Times), l.What})
	}
	if t := is.GDP; t != nil {
		g.GDP = &Gaussian{up(t.Mu), up(t.Outside), up(t.Regret)}
	}
	for _, a := range is.Attacks {
		g.Attacks = append(g.Attacks,
			account.Attack{FalsePositives: a.FalsePositives, TruePositives: min(up(a.TruePositives), 1)})
	}
	return g
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// up is an upper bound with five digits, never below v.
func up(v float64) float64 {
	short, err := strconv.ParseFloat(chart.AtMost(v, 5), 64)
	if err != nil {
		return v
	}
	return short
}

func utility(q *record.Quality, search *runlog.Search) []Figure {
	all := []Figure{}
	add := func(name string, v *float64, of string, private bool) {
		if v != nil {
			all = append(all, Figure{name, *v, of, private})
		}
	}
	if s := search; s != nil && s.By == "loss" {
		add("noisy mean loss of the winner", new(-s.Score), "the training rows, with noise that the search charged", true)
	}
	if p := q.Private; p != nil {
		figure := func(name string, f *runlog.Figure) {
			if f != nil && f.Value != nil {
				add(name, f.Value,
					fmt.Sprintf("protected rows, from noisy counts that were charged; %g %% interval from %.4g to %.4g", 100*p.Level,
						f.Low, f.High), true)
			}
		}
		figure("accuracy", p.Accuracy)
		figure("log loss", p.LogLoss)
		figure("area under the ROC curve", p.AUC)
		figure("mean absolute error", p.MAE)
		figure("root mean squared error", p.RMSE)
		figure("R²", p.R2)
	}
	if s := q.Test; s != nil {
		of := "test rows, without noise"
		add("accuracy", s.Accuracy, of, false)
		add("log loss", s.LogLoss, of, false)
		add("area under the ROC curve", s.AUC, of, false)
		add("root mean squared error", s.RMSE, of, false)
		add("R²", s.R2, of, false)
	}
	return all
}

// leaveOutExact leaves out exact figures of rows, and says so.
func (f *Facts) leaveOutExact() {
	f.Utility = slices.DeleteFunc(f.Utility, func(f Figure) bool { return !f.Private })
	for i := range f.NotCovered {
		if n := &f.NotCovered[i]; n.What == record.TestScores {
			n.Words = "The run scored test rows without noise. The figures are left out here, and stand in run.json and the report of the run: keep these where the people in the test file need protection."
		}
	}
}

// columns are those that the model uses.
func columns(s *schema.Schema) []Column {
	all := []Column{}
	for _, c := range s.Columns {
		if c.Type == schema.TypeIgnore || c.Type == schema.TypeUnit {
			continue
		}
		all = append(all, Column{c.Name, c.Type, c.Says()})
	}
	return all
}

func (r *finished) fingerprints() (f Fingerprints, err error) {
	i := r.info
	settings, err := json.Marshal(struct {
		Model      json.RawMessage `json:"model"`
		Method     string          `json:"method"`
		Config     json.RawMessage `json:"config"`
		Output     string          `json:"output"`
		Budget     privacy.Budget  `json:"budget"`
		Accountant string          `json:"accountant"`
		Plan       json.RawMessage `json:"plan"`
	}{i.Model, i.Method, i.Config, i.Output, i.Budget, i.Accountant, i.Plan})
	if err == nil {
		settings, err = runlog.Canonical(settings)
	}
	if err != nil {
		return f, err
	}
	f = Fingerprints{Schema: r.schema.Fingerprint(), Settings: sum(settings), LedgerHead: i.LedgerHead}
	f.Files, err = runlog.Seal(r.dir)
	return f, err
}

// lifetime is the dataset's, up to an entry of the ledger or, for nil, its last.
func (r *finished) lifetime(ctx context.Context, l *ledger.Ledger, upTo *ledger.Head) (t record.Lifetime, err error) {
	h, err := l.History(ctx, r.info.Dataset, upTo)
	if err != nil {
		return t, err
	}
	mine := slices.ContainsFunc(h.Runs, func(run ledger.Run) bool { return run.ID == r.info.ID })
	if !mine {
		return t, inputError("%s has no reservation of run %s up to entry %d; name the ledger of the run by --ledger",
			l.Where(), r.info.ID, h.Head.Seq)
	}
	return *record.LifetimeOf(h, r.info.Budget), nil
}
