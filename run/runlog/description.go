package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/privacy"
)

// Files in the directory of a description.
const (
	DescriptionFile  = "description.json" // what was asked, what was answered and what follows
	DescriptionTable = "description.csv"  // the figures
)

// ErrDescription says that a directory holds a description where a run of a method is needed.
var ErrDescription = errors.New("holds private statistics of a table (sotto describe): there is no model, and nothing to resume or settle; `sotto verify` checks it, and report.html shows it")

// DescriptionFormat names the form of DescriptionFile.
const DescriptionFormat = "sotto-description/1"

// A Description is a run of `sotto describe`: private statistics of a table, of one charged release. It holds public
// facts and released values only.
type Description struct {
	Format     string          `json:"format"`
	ID         string          `json:"id"` // under which the ledger has the charge
	Started    time.Time       `json:"started"`
	Version    string          `json:"version,omitempty"`
	Build      string          `json:"build,omitempty"` // the program, where it is not the command sotto
	Data       string          `json:"data"`
	Dataset    string          `json:"dataset"`
	Unit       string          `json:"unit"`
	Rows       int             `json:"rows"` // nominal number of records
	Schema     json.RawMessage `json:"schema"`
	Bins       int             `json:"bins"`            // of a number
	Pairs      [][2]string     `json:"pairs,omitempty"` // of columns that are counted together
	Budget     privacy.Budget  `json:"budget"`          // what was charged
	Accountant string          `json:"accountant"`      // by which Plan fits it
	Plan       json.RawMessage `json:"plan"`            // the event
	Noise      float64         `json:"noise_multiplier"`
	Answer     []float64       `json:"answer"` // noisy counts
	Ledger     string          `json:"ledger"`
	Assertions []string        `json:"assertions,omitempty"`
	Warnings   []string        `json:"warnings,omitempty"`
	Figures    *Figures        `json:"figures"` // what follows
}

// Figures are the private statistics of a table. Each interval holds the figure of the table's own records with a
// probability of Level over the noise; one says nothing of the next.
type Figures struct {
	Level     float64           `json:"level" unit:"probability"`
	Deviation float64           `json:"noise_deviation" unit:"records"` // of the noise in a count, before it is adjusted
	Sampler   float64           `json:"sampler_delta" unit:"δ"`         // what the sampler adds to δ at most
	Records   Figure            `json:"records" unit:"records"`
	Columns   []ColumnFigures   `json:"columns"`
	Pairs     []TwoColumnCounts `json:"pairs,omitempty"`
}

// ColumnFigures are those of a column.
type ColumnFigures struct {
	Name    string     `json:"name"`
	Type    string     `json:"type"`
	Label   bool       `json:"label,omitempty"`
	Counts  string     `json:"counts,omitempty"` // what its numbers count, as in "days since 2020-01-01"
	Cells   []Cell     `json:"cells"`            // levels, or bins in their order
	Missing Figure     `json:"missing" unit:"records"`
	Other   Figure     `json:"other" unit:"records"` // with values that the schema does not allow
	Mean    *Figure    `json:"mean,omitempty" unit:"value of the column"`
	Points  []Quantile `json:"quantiles,omitempty"`
}

// A Cell is a level or a bin.
type Cell struct {
	Name    string   `json:"name"`
	From    *float64 `json:"from,omitempty" unit:"value of the column"` // of a bin
	To      *float64 `json:"to,omitempty" unit:"value of the column"`
	Records Figure   `json:"records" unit:"records"`
}

// A Quantile is the value that a given share of a column's numbers does not exceed.
type Quantile struct {
	Share float64 `json:"share" unit:"share"`
	Value Figure  `json:"value" unit:"value of the column"`
}

// TwoColumnCounts are the counts of two columns together. The last row and the last column are of records without a
// value that the schema allows.
type TwoColumnCounts struct {
	A       string     `json:"a"`
	B       string     `json:"b"`
	Rows    []string   `json:"rows"` // cells of A
	Columns []string   `json:"columns"`
	Records [][]Figure `json:"records" unit:"records"`
}

// ReadDescription reads the description in dir.
func ReadDescription(dir string) (*Description, error) {
	path := filepath.Join(dir, DescriptionFile)
	b, err := readfile.All(path, readfile.JSON)
	if err != nil {
		return nil, err
	}
	if _, err := Canonical(b); err != nil { // no field may occur twice
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	e := &Description{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if e.Format != DescriptionFormat {
		return nil, fmt.Errorf("%s: format: found %q; expected %s", path, e.Format, DescriptionFormat)
	}
	if e.Figures == nil {
		return nil, fmt.Errorf("%s: figures: found none", path)
	}
	return e, nil
}
