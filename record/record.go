// Package record says what is known of a run: what ran, what is guaranteed and why, how the run went, how good its
// model is, and what people stated. A [Record] is a plain struct of numbers and words. All pages about a run are
// templates over it (package page): the report, the disclosure, the text on a terminal and the dashboard. They format,
// and compute nothing.
//
// A record follows from the files in the run directory and, where a ledger is at hand, from the dataset's history in
// it. It believes none of their figures for the guarantee: ε is recomputed from the events. It holds public facts and
// released values only, beside scores that are marked as not private. Its JSON is described by
// docs/record.schema.json.
package record

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// Format names the form of a record.
const Format = "sotto-record/1"

// A Record is what is known of a run. The tag source says where a part comes from: stated by a person, recorded by the
// run, computed from what it recorded, or checked. The tag unit is that of a number.
type Record struct {
	Format     string     `json:"format"`
	Run        Run        `json:"run" source:"recorded"`
	Protection Protection `json:"protection" source:"computed"`
	Guarantee  *Guarantee `json:"guarantee" source:"computed"` // null: no noise was added, so there is none
	// What was charged, as so many equal batches; the first lines of a long list.
	Released     []Release   `json:"released" source:"recorded"`
	MoreReleased int         `json:"more_released,omitempty" source:"recorded" unit:"lines"`
	Course       Course      `json:"course" source:"recorded"`
	Lifetime     *Lifetime   `json:"lifetime" source:"recorded"` // in the ledger; null: none was at hand
	Quality      Quality     `json:"quality" source:"recorded"`
	Effects      *Effects    `json:"effects" source:"computed"` // null: there are none to show
	Public       Public      `json:"public" source:"stated"`
	NotCovered   []Note      `json:"not_covered" source:"computed"`
	Statements   *Statements `json:"statements" source:"stated"` // null: there are none
	// What was recomputed when the record was made. A guarantee that could not be recomputed is a finding named
	// [Guaranteed].
	Checks   []Finding `json:"checks" source:"checked"`
	Findings []Finding `json:"findings" source:"checked"` // of a verification that does not hold; empty: see Verified
	Verified string    `json:"verified" source:"checked"` // how the record was checked, in words
	Files    []File    `json:"files" source:"computed"`
}

// Statements are those of the spec (see [runlog.Statements]).
type Statements = runlog.Statements

// Run is what ran.
type Run struct {
	ID       string     `json:"id"`
	Dataset  string     `json:"dataset"`
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished"`
	Status   string     `json:"status"` // running, interrupted or finished
	Torn     bool       `json:"torn"`   // a crash cut off the end of the log
	Resumed  bool       `json:"resumed"`
	Off      bool       `json:"off"` // no noise was added
	Lab      bool       `json:"lab"` // not private
	Seed     *uint64    `json:"seed,omitempty" unit:"1"`

	Model      string         `json:"model"`
	Method     string         `json:"method"`
	Output     string         `json:"output"`
	Accountant string         `json:"accountant,omitempty"`
	Outcome    string         `json:"outcome,omitempty"`
	Fallback   string         `json:"fallback,omitempty"` // the class that the model predicts for every row
	Pairs      []string       `json:"pairs,omitempty"`    // of columns, which a charged release chose
	Lines      bool           `json:"lines,omitempty"`    // it left out bumps and waves, as one class is rare
	Claim      *runlog.Claim  `json:"claim,omitempty"`
	Search     *runlog.Search `json:"search,omitempty"`

	TrainSeconds float64 `json:"train_seconds" unit:"seconds"`
	// of each step, in sensitivities; 0: it differs from step to step, or there is no noise
	NoiseMultiplier float64 `json:"noise_multiplier" unit:"sensitivities"`
	Shards          int     `json:"shards,omitempty" unit:"machines"` // that held the rows
	// the share of the units that was not trained on, to score the model
	HeldOut float64 `json:"held_out,omitempty" unit:"1"`

	Warnings []string `json:"warnings"`

	Version    string `json:"version"` // of Sotto
	Build      string `json:"build,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kernels    string `json:"kernels"`
	Binary     string `json:"binary,omitempty"`      // SHA-256 of the program; empty: an earlier version did not note it
	LedgerHead string `json:"ledger_head,omitempty"` // the entry before the run's first access
}

// Private reports whether the run has a guarantee.
func (r *Run) Private() bool { return !r.Lab && !r.Off && r.Seed == nil }

// Protection is who is protected against whom.
type Protection struct {
	Unit       string `json:"unit"`
	UnitRows   int    `json:"unit_rows,omitempty" unit:"rows"` // the most rows of a unit; 0: it is one row
	Whom       string `json:"whom"`                            // the same in words
	Relation   string `json:"relation"`
	Neighbors  string `json:"neighbors"` // the relation in words
	TrustModel string `json:"trust_model"`
	Trusted    string `json:"trusted"`
	Adversary  string `json:"adversary"`
	Outcome    string `json:"outcome"` // what the guarantee is about
}

// Each is one of those who are protected, in words.
func (p *Protection) Each() string { return strings.TrimPrefix(p.Whom, "any one ") }

// Change is the change that the guarantee is about, in words.
func (p *Protection) Change() string {
	if p.Relation == privacy.ReplaceOne.String() {
		return "replacing " + p.Whom + " by another"
	}
	return "adding or removing " + p.Whom
}

// Guarantee is that of the run alone, recomputed from its plan and its log.
type Guarantee struct {
	Epsilon     float64           `json:"epsilon" unit:"ε"` // the cap, which was fixed before the first access
	Delta       float64           `json:"delta" unit:"δ"`
	Relation    privacy.Adjacency `json:"relation"`
	Words       string            `json:"words"`
	Accountant  string            `json:"accountant"`
	FirstShare  float64           `json:"first_share" unit:"share of μ²"`  // of what chose pairs of columns
	CountShare  float64           `json:"count_share" unit:"share of μ²"`  // of the share that predictions begin at
	CenterShare float64           `json:"center_share" unit:"share of μ²"` // of the mean row
	LastShare   float64           `json:"last_share" unit:"share of μ²"`   // of the model's margins
	// what each of these would cost alone, at Delta; left out: it was not asked, or is not to be known
	FirstAlone  *Bound `json:"first_alone,omitempty" unit:"ε"`
	CountAlone  *Bound `json:"count_alone,omitempty" unit:"ε"`
	CenterAlone *Bound `json:"center_alone,omitempty" unit:"ε"`
	LastAlone   *Bound `json:"last_alone,omitempty" unit:"ε"`
	Noise       string `json:"noise"` // of all batches, in words
	Sampling    string `json:"sampling"`
	Filter      bool   `json:"filter"` // the costs were chosen during the run, within a filter

	Shares *Shares `json:"shares,omitempty"` // what it assumes where owners of a network share the noise

	// What follows from ε and δ by arithmetic.
	Factor    Bound `json:"factor" unit:"1"`               // e^ε; null: too large for a number
	DeltaOdds Bound `json:"delta_odds,omitempty" unit:"1"` // δ is one in so many
	// δ times the declared number of those who are protected
	DeltaRows Bound    `json:"delta_times_rows,omitempty" unit:"1"`
	Pair      Pair     `json:"two_records"`                    // the guarantee of somebody with two records
	Guess     float64  `json:"guess" unit:"share of attempts"` // the most often that an attacker is right, by ε and δ
	Beliefs   []Belief `json:"beliefs"`                        // of an attacker, before and at most after

	// What the plan says beyond that. It is information: the cap is the guarantee.
	PlanEpsilon *Bound    `json:"plan_epsilon" unit:"ε"`    // null: infinite, or it could not be recomputed
	Realized    *Bound    `json:"charged_epsilon" unit:"ε"` // of what was charged
	Theorems    []Theorem `json:"theorems"`
	GDP         *Gaussian `json:"gdp"`                                           // null: no theorem gives it
	NoGDP       string    `json:"no_gdp,omitempty"`                              // why
	PlanGuess   *float64  `json:"plan_guess,omitempty" unit:"share of attempts"` // Guess by the plan's own curve
	Attacks     []Attack  `json:"attacks,omitempty"`                             // points of the trade-off curve
	TradeOff    *TradeOff `json:"trade_off,omitempty"`                           // the curve itself
	Curve       *Curve    `json:"curve,omitempty"`                               // ε for other δ
	Spending    []Spent   `json:"spending,omitempty"`                            // ε by batch
}

// Pair is what is left of a guarantee for somebody with two records.
type Pair struct {
	Epsilon Bound `json:"epsilon" unit:"ε"`
	Delta   Bound `json:"delta" unit:"δ"`
}

// Gaussian is a bound by Gaussian differential privacy.
type Gaussian = account.GaussianBound

// Bound is a number that may be infinite, which JSON writes as null.
type Bound float64

// MarshalJSON writes the number, or null.
func (b Bound) MarshalJSON() ([]byte, error) {
	if v := float64(b); math.IsInf(v, 0) || math.IsNaN(v) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(b))
}

// Bounds are numbers that may be infinite, which JSON writes as null.
type Bounds []float64

// MarshalJSON writes the numbers.
func (b Bounds) MarshalJSON() ([]byte, error) {
	all := make([]Bound, len(b))
	for i, v := range b {
		all[i] = Bound(v)
	}
	return json.Marshal(all)
}

// Belief is what an attacker believes before and, at most, after.
type Belief struct {
	Before float64 `json:"before" unit:"probability"`
	After  float64 `json:"after" unit:"probability"`
}

// Attack is a point of the trade-off curve.
type Attack struct {
	FalsePositives float64 `json:"false_positive_rate" unit:"share"`
	TruePositives  float64 `json:"true_positive_rate" unit:"share"` // at most, by the plan
	Pair           float64 `json:"by_epsilon_delta" unit:"share"`   // the same by ε and δ alone
}

// TradeOff are the largest true positive rates of any attack: by the plan, by ε and δ alone, and by μ alone.
type TradeOff struct {
	FalsePositives []float64 `json:"false_positive_rate" unit:"share"`
	Plan           []float64 `json:"plan" unit:"share"`
	Pair           []float64 `json:"by_epsilon_delta" unit:"share"`
	Gaussian       []float64 `json:"by_mu,omitempty" unit:"share"` // left out where it is Plan
}

// Curve is ε over δ for the plan, by its accountant and, where it differs, by a second one.
type Curve struct {
	Delta    []float64    `json:"delta" unit:"δ"`
	Epsilon  Bounds       `json:"epsilon" unit:"ε"`
	Second   string       `json:"second,omitempty"` // the name of the second accountant
	BySecond Bounds       `json:"by_second,omitempty" unit:"ε"`
	Points   []CurvePoint `json:"points"`
}

// CurvePoint is a line of the table beside the curve.
type CurvePoint struct {
	Delta    float64 `json:"delta" unit:"δ"`
	Epsilon  Bound   `json:"epsilon" unit:"ε"`
	BySecond *Bound  `json:"by_second,omitempty" unit:"ε"`
}

// Spent is ε of the first batches.
type Spent struct {
	Batches int     `json:"batches" unit:"batches"`
	Epsilon float64 `json:"epsilon" unit:"ε"`
}

// Shares say against whom the guarantee is where owners of a network share the noise, and what it is against the
// others.
type Shares struct {
	Owners    int `json:"owners" unit:"owners"`
	Colluders int `json:"colluders" unit:"owners"` // of the other owners
	// attempts that could be given up; those that were not needed give nothing back
	Retries      int      `json:"retries" unit:"batches"`
	Against      string   `json:"against"`
	AgainstAll   string   `json:"against_all"`            // those against whom EpsilonAlone holds, at the same δ
	EpsilonAlone *float64 `json:"epsilon_alone" unit:"ε"` // null: no finite ε is proven
	ChargedAlone *float64 `json:"charged_epsilon_alone" unit:"ε"`
	Trusted      string   `json:"trusted"`
}

// Assumed is what summaries for programs say of it.
func (s *Shares) Assumed() *account.Shares {
	return &account.Shares{Sharing: privacy.Sharing{Owners: s.Owners, Colluders: s.Colluders, Retries: s.Retries},
		Alone: s.EpsilonAlone}
}

// Release is so many equal releases.
type Release struct {
	First int             `json:"first" unit:"batches"` // that were charged before it
	Times int             `json:"times" unit:"batches"`
	What  string          `json:"what"`
	Event json.RawMessage `json:"event"` // of one of them, as the log has it
}

// Theorem is a section of privacy/account/PROOFS.md.
type Theorem struct {
	Title  string `json:"title"`
	Source string `json:"source"`
	Anchor string `json:"anchor"`
}

// Course is how the run went.
type Course struct {
	Planned int     `json:"planned" unit:"steps"` // at most
	Steps   int     `json:"steps" unit:"steps"`   // that the method took
	Charged int     `json:"charged" unit:"batches"`
	Lost    int     `json:"lost" unit:"batches"` // that were charged and have no answer in the log
	Rates   *Series `json:"rate,omitempty" unit:"step size"`
	Norms   *Series `json:"gradient_norm,omitempty" unit:"ℓ2 norm, noise included"`
}

// Series is a figure of each step. Of a long run it keeps the points that a plot shows.
type Series struct {
	Count int       `json:"count" unit:"steps"`
	First float64   `json:"first" unit:"of the figure"`
	Last  float64   `json:"last" unit:"of the figure"`
	Least float64   `json:"least" unit:"of the figure"`
	Most  float64   `json:"most" unit:"of the figure"`
	Step  []float64 `json:"steps" unit:"steps"`
	Value []float64 `json:"values" unit:"of the figure"`
}

// Lifetime is what all runs on the dataset cost together, by the ledger up to Head.
type Lifetime struct {
	Head     Head         `json:"head"`
	Currency string       `json:"currency"`
	Total    *ledger.Caps `json:"total"` // null: there is no lifetime guarantee, and Why says why
	Why      string       `json:"why,omitempty"`
	Words    string       `json:"words"`
	// What Total assumes where owners share the noise of runs.
	Sharing *ledger.Sharing `json:"sharing,omitempty"`
	// that is set now; null: none is, so later runs are recorded and not refused
	Budget *ledger.Caps `json:"budget"`
	// what is left of Budget under caps; null: none is set, or a filter counts, whose state depends on releases
	Left  *ledger.Caps `json:"left,omitempty"`
	More  *int         `json:"more_runs,omitempty" unit:"runs"` // runs like this one that Left admits
	Lasts string       `json:"lasts,omitempty"`                 // how long the budget lasts, in words
	// the day the dataset entered the ledger; accesses before are not recorded
	Since       string      `json:"since"`
	Runs        []LedgerRun `json:"runs"` // all, in the order of their reservations, this one among them
	Unprotected []Access    `json:"unprotected"`
	// how many came before those that are listed, where a run's end lists the last ones only
	EarlierRuns        int      `json:"earlier_runs,omitempty" unit:"runs"`
	EarlierUnprotected int      `json:"earlier_unprotected,omitempty" unit:"accesses"`
	Restored           []string `json:"restored,omitempty"`
}

// Head is an entry of the ledger.
type Head struct {
	Seq  int64  `json:"seq" unit:"entries"`
	Hash string `json:"hash"`
}

// LedgerRun is the reservation of a run.
type LedgerRun struct {
	ID      string  `json:"id"`
	Day     string  `json:"day"`
	Epsilon float64 `json:"epsilon" unit:"ε"`
	Delta   float64 `json:"delta" unit:"δ"`
	// What Epsilon assumes where owners share the noise.
	Shares *account.Shares `json:"shares,omitempty"`
}

// Access is one that no guarantee covers.
type Access struct {
	Day    string `json:"day"`
	Run    string `json:"run,omitempty"`
	Why    string `json:"why"`
	Before bool   `json:"before,omitempty"` // the dataset entered: it ends the guarantee only of a run on the same rows
}

// Note is something with a name, in words.
type Note struct {
	What  string `json:"what"`
	Words string `json:"words"`
}

// Quality is how good the model is.
type Quality struct {
	Private *runlog.Private `json:"private"` // part of the guarantee; null: none was computed
	Test    *runlog.Scores  `json:"test"`    // not private; null: no test rows were scored
	// on the rows of Test, and by the noisy counts of Private; null: not known
	TestConstant    *Constant   `json:"test_constant,omitempty"`
	PrivateConstant *Constant   `json:"private_constant,omitempty"`
	Recall          []*float64  `json:"recall,omitempty" unit:"share"` // of each class of Test; null: it has no rows
	Lab             []LabFigure `json:"lab,omitempty"`                 // not private, of lab runs alone
}

// LabFigure is a figure of the training rows without noise.
type LabFigure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value" unit:"records, or the loss"`
}

// Public is what the guarantee takes as public and true.
type Public struct {
	Assumptions []string  `json:"assumptions"`
	Asserted    []string  `json:"asserted"`
	Facts       []Setting `json:"facts"`  // of the data, as the method knew them
	Method      []Setting `json:"method"` // its settings
	Model       []Setting `json:"model"`
	Table       Table     `json:"table"`
}

// Setting is a named value.
type Setting struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Table is what the schema says of all rows.
type Table struct {
	// or units, as a person declared; under add-or-remove they were not counted. 0: not declared
	Rows       int        `json:"rows,omitempty" unit:"rows"`
	RowNorm    *float64   `json:"row_norm,omitempty" unit:"norm"`
	RowScaling string     `json:"row_scaling,omitempty"`
	OnBadRow   string     `json:"on_bad_row,omitempty"`
	Label      string     `json:"label,omitempty"`   // the column that is predicted
	Classes    []string   `json:"classes,omitempty"` // of the label; none: it is a number
	Columns    []OfColumn `json:"columns"`
}

// OfColumn counts the columns of a type.
type OfColumn struct {
	Type  string `json:"type"`
	Count int    `json:"count" unit:"columns"`
}

// File is one that the record was made from.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256,omitempty"` // empty: it does not exist
}
