package runlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Names of the other files in a run directory.
const (
	InfoFile   = "run.json"
	ModelFile  = "model.json"
	ReportFile = "report.html"
	// NewReportFile is a report rebuilt after the end of the run, whose own report stays as it was
	// sealed.
	NewReportFile = "report.new.html"
	TokenFile     = "resume.token" // one-time right to go on (R7)
	HoldoutFile   = "holdout.key"  // says which units are held out

	// Of an owner's run directory in a network: what it released, and who exchanged with whom.
	JournalFile  = "journal.bin"
	ScheduleFile = "schedule.json"
	AgreedFile   = "agreed.json" // what the owners agreed on
	PlaceFile    = "place.json"  // the network, and the owner's share of the schedule's seed
	SumsFile     = "sums.bin"    // what the owner masked, and the sums of all owners (network.mode: sum)

	SearchFile = "tune.json" // what a search found
	// SealFile holds the HMAC of a search's final files under the ledger's key: a search settles before it has them (R21).
	SealFile = "seal.hmac"
)

// InfoFormat names the form of run.json.
const InfoFormat = "sotto-run/1"

// Status of a run directory.
const (
	Running     = "running"     // alive, or killed: it can be resumed
	Interrupted = "interrupted" // stopped by its user: it can be resumed
	Finished    = "finished"    // settled
)

// Assertions, by which a person overrides a refusal.
const (
	AcceptDelta   = "accept_delta"   // δ may be 1/rows or more
	AcceptDropped = "accept_dropped" // more than one row in a hundred may be dropped
	TestOverlaps  = "test_overlaps"  // test rows that equal training rows are other people's
	// MetricsTimings says that times, memory and counts of batches were served as metrics.
	MetricsTimings = "metrics_timings"
	Void           = "void" // protected rows may be accessed without charge, which ends their guarantee
)

// Info is run.json: what was asked, under which guarantee, on what, and how it
// ended. It holds public facts and released values only.
type Info struct {
	Format   string     `json:"format"`
	ID       string     `json:"id"`
	Status   string     `json:"status"`
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished,omitempty"`

	// What ran. Replaying gives the same bits on the same platform.
	Version  string `json:"version"`
	Build    string `json:"build,omitempty"` // the program, where it is not the command sotto: its module and version
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
	Binary   string `json:"binary,omitempty"` // SHA-256 of the program; empty: it could not be read, or an earlier one ran

	// What was asked. Paths are absolute.
	SpecFile   string          `json:"spec_file,omitempty"`
	Data       string          `json:"data"`
	Shards     int             `json:"shards,omitempty"` // machines that hold the rows, instead of Data; 0: none
	Test       string          `json:"test,omitempty"`
	Labels     string          `json:"labels,omitempty"`      // of Data, where they are in a file of their own
	TestLabels string          `json:"test_labels,omitempty"` // of Test, likewise
	Schema     json.RawMessage `json:"schema"`
	Dataset    string          `json:"dataset"`
	Unit       string          `json:"unit"`
	UnitRows   int             `json:"unit_rows,omitempty"` // the most rows of a unit that are used; 0: it is one row
	Model      json.RawMessage `json:"model"`
	Method     string          `json:"method"`
	Config     json.RawMessage `json:"config"` // of the method, everything set
	Output     string          `json:"output"`
	MaxSteps   int             `json:"horizon"` // the most steps it takes
	// steps from one saved state to the next; 0: every release is kept
	StateEvery int             `json:"state_every,omitempty"`
	Public     json.RawMessage `json:"public"` // what the method knew of the data

	// The guarantee: Plan is the most that is released; ε(δ) is recomputed from it.
	Budget     privacy.Budget `json:"budget"`
	Off        bool           `json:"off,omitempty"` // no noise at all: nothing is guaranteed
	Accountant string         `json:"accountant"`
	// what Plan proves at all ε; nil where no theorem gives it, and in older files
	GDP             *account.GaussianBound `json:"gdp,omitempty"`
	Plan            json.RawMessage        `json:"plan"`
	NoiseMultiplier float64                `json:"noise_multiplier"`
	Lab             bool                   `json:"lab,omitempty"`
	Seed            *uint64                `json:"seed,omitempty"`
	// a warning that noise decides what the model predicts; nil: it does not, or this is not known
	Outlook     json.RawMessage `json:"outlook,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Assumptions []string        `json:"assumptions"` // public facts that the guarantee rests on
	// what a person asserted, by name, whether it was needed or not
	Assertions []string `json:"assertions,omitempty"`
	Network    string   `json:"network,omitempty"` // and the name of the owner whose run this is
	Ledger     string   `json:"ledger,omitempty"`
	LedgerHead string   `json:"ledger_head,omitempty"`
	// of an owner's run in a network of mode sum; nil: it is none
	Sum *Sum `json:"sum,omitempty"`
	// what is not trained on, but scored; nil: nothing
	Holdout *Holdout `json:"holdout,omitempty"`
	// what a person stated in the spec; nothing is computed from it
	Disclosure *Statements `json:"disclosure,omitempty"`

	Search *Search           `json:"search,omitempty"`
	Result *Result           `json:"result,omitempty"`
	Hashes map[string]string `json:"hashes,omitempty"` // SHA-256 of the other files, when the run was finished
}

// A Search says that the run is the best of a secret, random number of trainings (sotto tune),
// whose configuration and model these are. Its record is one charge for the whole. It counts as one
// step, and shows no time but when it began (R21).
type Search struct {
	Winner string `json:"winner"`
	// of the winner: accuracy or minus the root mean squared error on the test rows, or minus the noisy mean loss
	Score float64 `json:"score" unit:"figure that score_by names"`
	By    string  `json:"score_by"`
	// standard deviation of the known noise in a noisy mean loss
	Noise float64  `json:"score_noise,omitempty" unit:"figure that score_by names"`
	Each  float64  `json:"each_epsilon" unit:"ε"` // ε that each was trained at, its score included
	Mean  float64  `json:"mean" unit:"trainings"` // number of trainings on average
	Among []string `json:"among"`                 // what they were drawn from, in the order of the plan
}

// How a search scores what it trains.
const (
	ByTest = "test" // on rows that need no protection
	ByLoss = "loss" // by the noisy mean loss on the rows trained on
)

// ScoreShare is the part of a candidate's ε that its private score costs.
const ScoreShare = 0.2

// Trained is ε that each was trained at, without its score.
func (s *Search) Trained() float64 {
	if s.By == ByLoss {
		return s.Each * (1 - ScoreShare)
	}
	return s.Each
}

// Result is how a run ended.
type Result struct {
	Steps   int    `json:"steps"`
	Charged int    `json:"charged"` // batches that were charged
	Outcome string `json:"outcome"`
	// the class that the model predicts for every row, where a charged count chose it
	Fallback string `json:"fallback,omitempty"`
	// the pairs of columns that a charged release chose, as in x × y
	Pairs []string `json:"pairs,omitempty"`
	// columns lost the bumps or waves that the run had chosen, since by a charged release one class is rare
	Lines bool `json:"lines,omitempty"`
	// of an owner's run: the number of owners whose parameters the model averages
	Owners       int     `json:"owners,omitempty"`
	TrainSeconds float64 `json:"train_seconds"`
	Claim        *Claim  `json:"claim,omitempty"` // of a converged run: what it says of its model
	// figures on protected rows, from noisy numbers that were charged
	Private      *Private       `json:"private,omitempty"`
	Test         *Scores        `json:"test,omitempty"`           // not private
	LabCounts    map[string]int `json:"lab_counts,omitempty"`     // private counts of loading, lab only
	SinceResumed bool           `json:"resumed,omitempty"`        // the run was interrupted and resumed
	SampleBound  string         `json:"numerics,omitempty"`       // distance of the noise sampler from the ideal, in words
	TrainLoss    *float64       `json:"lab_train_loss,omitempty"` // not private, lab only
}

// A Claim is what a run says of the objective F at its model, with that probability over its noise:
// ‖∇F‖ ≤ Gradient and λ_min(∇²F) ≥ −Curvature. It follows from released values only.
type Claim struct {
	Gradient    float64 `json:"gradient" unit:"ℓ2 norm"`
	Curvature   float64 `json:"curvature" unit:"eigenvalue"`
	Probability float64 `json:"probability" unit:"probability"`
}

func (c Claim) String() string {
	return fmt.Sprintf("‖∇F‖ ≤ %.4g and λ_min(∇²F) ≥ %.4g, with probability %.6g", c.Gradient, -c.Curvature, c.Probability)
}

// Scores are figures of a model on a table, computed without noise: not private unless those rows
// need no protection.
type Scores struct {
	Rows      int      `json:"rows" unit:"rows"`
	Accuracy  *float64 `json:"accuracy,omitempty" unit:"share"`
	LogLoss   *float64 `json:"log_loss,omitempty" unit:"nats"`
	AUC       *float64 `json:"auc,omitempty" unit:"share"`
	Confusion [][]int  `json:"confusion,omitempty" unit:"rows"` // [true class][predicted class]
	Classes   []string `json:"classes,omitempty"`
	RMSE      *float64 `json:"rmse,omitempty" unit:"label"`
	R2        *float64 `json:"r2,omitempty" unit:"share"`
	// labels beyond the schema's bounds, which count as the bound: raw errors are larger
	ClampedLabels int `json:"clamped_labels,omitempty" unit:"rows"`

	Examples []Example `json:"examples,omitempty"` // images of a test file: the first ones, then the first wrong ones
}

// An Example is one test image and what the model says of it.
type Example struct {
	Width int `json:"width" unit:"pixels"`
	// row after row, from the image's least value, 0, to its largest, 255
	Pixels     []byte  `json:"pixels" unit:"gray, 0 to 255"`
	Class      string  `json:"class"`
	Guess      string  `json:"guess"`
	Confidence float64 `json:"confidence" unit:"probability"` // the model's probability of its guess
}

// Resumed reports whether the run was interrupted and resumed: the batches that it lost are
// charged, and its plan has gaps.
func (i *Info) Resumed() bool { return i.Result != nil && i.Result.SinceResumed }

// Whom says whom the guarantee protects: one unit, and how many of its rows.
func (i *Info) Whom() string { return text.Whom(i.Unit, i.UnitRows) }

// PlanEvent returns the plan as an event.
func (i *Info) PlanEvent() (privacy.Event, error) {
	e, err := privacy.UnmarshalEvent(i.Plan)
	if err != nil {
		return nil, fmt.Errorf("%s: plan: %w", InfoFile, err)
	}
	return e, nil
}

// Shares is what the guarantee assumes where several owners share the noise of the plan; nil where they do not.
func (i *Info) Shares() *account.Shares {
	plan, err := i.PlanEvent()
	if err != nil || i.Off {
		return nil
	}
	a, err := account.ByName(i.Accountant)
	if err != nil {
		a = account.Pure{} // which proves nothing of Gaussian noise
	}
	return account.SharesOf(plan, a, i.Budget.Adjacency, i.Budget.Delta)
}

// WriteInfo replaces run.json in dir, as a whole.
func (d Disk) WriteInfo(dir string, i *Info) error {
	return newfile.JSONOn(d.FS, filepath.Join(dir, InfoFile), "  ", i)
}

// ReadInfo reads run.json of a run directory.
func (d Disk) ReadInfo(dir string) (*Info, error) {
	path := filepath.Join(dir, InfoFile)
	b, err := readfile.AllOn(d.FS, path, readfile.JSON)
	if err != nil {
		if !os.IsNotExist(err) {
			return nil, err
		}
		if _, err := d.FS.Stat(filepath.Join(dir, DescriptionFile)); err == nil {
			return nil, fmt.Errorf("%s: %w", dir, ErrDescription)
		}
		return nil, fmt.Errorf("%s: is not a run directory: it holds no %s", dir, InfoFile)
	}
	var i Info
	if err := Strict(b, &i); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, raw := range []*json.RawMessage{&i.Plan, &i.Config} { // a plan of many parts is mostly spaces
		if len(*raw) > 64<<10 {
			var b bytes.Buffer
			if err := json.Compact(&b, *raw); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			*raw = bytes.Clone(b.Bytes())
		}
	}
	if i.Format != InfoFormat {
		return nil, fmt.Errorf("%s: format: found %q; expected %q", path, i.Format, InfoFormat)
	}
	return &i, nil
}

// Tidy removes the temporary files that killed processes left in a run directory. The caller holds
// the directory's lock.
func (d Disk) Tidy(dir string) error {
	entries, err := d.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && temporary.MatchString(e.Name()) {
			if err := d.FS.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

var temporary = regexp.MustCompile(`^\.(run\.json|events\.jsonl|model\.json|report\.html|report\.new\.html|resume\.token|resume\.token\.next|holdout\.key|schedule\.json|agreed\.json|place\.json|journal\.bin)\.[0-9]+$`)
