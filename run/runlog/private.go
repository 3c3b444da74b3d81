package runlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/privacy"
)

// Private holds figures of a model on protected rows. All follow from noisy numbers that were
// charged, so they may be published.
type Private struct {
	On      string  `json:"on"`               // which rows: OnHoldout or OnTable
	Epsilon float64 `json:"epsilon" unit:"ε"` // what the noisy numbers cost by themselves, with Delta
	Delta   float64 `json:"delta" unit:"δ"`
	// Level is the confidence of each interval. It holds the noise, whose law is known, and the sampling error of the
	// rows.
	Level float64 `json:"level" unit:"probability"`

	Records  Figure  `json:"records" unit:"records"` // with an interval for the noise alone
	Accuracy *Figure `json:"accuracy,omitempty" unit:"share"`
	AUC      *Figure `json:"auc,omitempty" unit:"share"`
	LogLoss  *Figure `json:"log_loss,omitempty" unit:"nats"`
	// probabilities nearer to 0 or 1 than this are clipped to it
	Clip *float64 `json:"log_loss_clip,omitempty" unit:"probability"`

	MAE   *Figure  `json:"mae,omitempty" unit:"label"`
	RMSE  *Figure  `json:"rmse,omitempty" unit:"label"`
	R2    *Figure  `json:"r2,omitempty" unit:"share"`
	Error *float64 `json:"error_clip,omitempty" unit:"label"` // larger errors are clipped to this

	Classes []PrivateClass `json:"classes,omitempty"`
	// noisy numbers of records, [true class][predicted class]
	Confusion   [][]float64  `json:"confusion,omitempty" unit:"records"`
	Deviation   float64      `json:"noise_deviation,omitempty" unit:"records"` // of the noise in each of them
	Calibration []PrivateBin `json:"calibration,omitempty"`                    // of the second of two classes

	By     string         `json:"by,omitempty"` // a column of public levels
	Groups []PrivateGroup `json:"groups,omitempty"`
}

// What private figures are computed on.
const (
	OnHoldout = "holdout" // the rows that a run left out of training
	OnTable   = "table"   // a table of its own
)

// digits is how many digits of a figure are kept. Later ones differ between machines, which fuse
// multiplications and additions differently.
const digits = 9

// Rounded keeps the digits of a figure that are the same on all machines.
func Rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// A Figure is an estimate with an interval.
type Figure struct {
	Value *float64 `json:"value" unit:"of the figure"` // null: TooFew
	Low   float64  `json:"low" unit:"of the figure"`
	High  float64  `json:"high" unit:"of the figure"`
	// TooFew says that the noisy number of records that the figure is of is too small for the noise; the interval is then
	// all that the figure may be.
	TooFew bool `json:"too_few,omitempty"`
}

// PrivateClass are the figures of one class.
type PrivateClass struct {
	Class     string `json:"class"`
	Records   Figure `json:"records" unit:"records"`
	Recall    Figure `json:"recall" unit:"share"`
	Precision Figure `json:"precision" unit:"share"`
}

// A PrivateBin is a point of a calibration curve: of the records whose predicted probability is between From and To,
// Share are of the class.
type PrivateBin struct {
	From    float64 `json:"from" unit:"probability"`
	To      float64 `json:"to" unit:"probability"`
	Records Figure  `json:"records" unit:"records"`
	Share   Figure  `json:"share" unit:"share"`
}

// PrivateGroup are the figures of one level; those of no level stand last, with an empty one.
type PrivateGroup struct {
	Level    string         `json:"level"`
	Records  Figure         `json:"records" unit:"records"`
	Accuracy *Figure        `json:"accuracy,omitempty" unit:"share"`
	Classes  []PrivateClass `json:"classes,omitempty"`
	MAE      *Figure        `json:"mae,omitempty" unit:"label"`
	RMSE     *Figure        `json:"rmse,omitempty" unit:"label"`
	R2       *Figure        `json:"r2,omitempty" unit:"share"`
}

// EvaluationFile holds an evaluation, SealFile beside it the HMAC of its hash.
const EvaluationFile = "evaluation.json"

// EvaluationFormat names its form.
const EvaluationFormat = "sotto-evaluation/1"

// An Evaluation is a charged evaluation of a model on protected rows: what was asked, what was answered and what
// follows. It holds public facts and released values only.
type Evaluation struct {
	Format     string          `json:"format"`
	ID         string          `json:"id"` // under which the ledger has the charge
	Started    time.Time       `json:"started"`
	Version    string          `json:"version,omitempty"`
	Model      string          `json:"model"`               // SHA-256 of the model file
	Run        string          `json:"run,omitempty"`       // that trained it
	Data       string          `json:"data"`                // the table
	Dataset    string          `json:"dataset"`             // that was charged
	Unit       string          `json:"unit"`                // whom the guarantee protects
	UnitRows   int             `json:"unit_rows,omitempty"` // the most rows of one unit that count
	Rows       int             `json:"rows"`                // nominal number of units
	Budget     privacy.Budget  `json:"budget"`              // what was charged
	Accountant string          `json:"accountant"`          // by which Plan fits it
	Plan       json.RawMessage `json:"plan"`                // the event
	Scores     json.RawMessage `json:"scores"`              // what was asked (package run/quality)
	Answers    [][]float64     `json:"answers"`             // noisy
	Ledger     string          `json:"ledger"`
	Private    *Private        `json:"private"` // what follows
}

// ReadEvaluation reads the evaluation in dir.
func ReadEvaluation(dir string) (*Evaluation, error) {
	path := filepath.Join(dir, EvaluationFile)
	b, err := readfile.All(path, readfile.JSON)
	if err != nil {
		return nil, err
	}
	if _, err := Canonical(b); err != nil { // no field may occur twice
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	e := &Evaluation{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if e.Format != EvaluationFormat {
		return nil, fmt.Errorf("%s: format: found %q; expected %s", path, e.Format, EvaluationFormat)
	}
	return e, nil
}
