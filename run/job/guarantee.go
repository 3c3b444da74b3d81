package job

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/runlog"
)

// GuaranteeOf returns the guarantee in the model file of a run.
func GuaranteeOf(i *runlog.Info) Guarantee {
	g := Guarantee{Budget: i.Budget, Off: i.Off, Unit: i.Unit, UnitRows: i.UnitRows, Dataset: i.Dataset, Run: i.ID,
		Accountant: i.Accountant, GDP: i.GDP, Plan: i.Plan, Method: i.Method, Config: i.Config}
	if plan, err := i.PlanEvent(); err == nil {
		if s := privacy.SharingOf(plan); s.Owners > 0 {
			g.Against = text.Against(s.Colluders) + ", while masks hold"
		}
	}
	return g
}

// Guarantee travels in model.json. ε(δ) is always recomputed from Plan.
type Guarantee struct {
	Budget     privacy.Budget         `json:"budget"`
	Off        bool                   `json:"off,omitempty"`
	Unit       string                 `json:"unit"`
	UnitRows   int                    `json:"unit_rows,omitempty"` // as in run.json
	Dataset    string                 `json:"dataset"`
	Run        string                 `json:"run"`
	Accountant string                 `json:"accountant,omitempty"`
	GDP        *account.GaussianBound `json:"gdp,omitempty"` // as in run.json; not in older files
	Plan       json.RawMessage        `json:"plan"`
	// whom the budget holds against, where owners share the noise: in words
	Against string          `json:"against,omitempty"`
	Method  string          `json:"method,omitempty"` // this and Config: not in older files
	Config  json.RawMessage `json:"config,omitempty"`
}

// Numerics states how far the run's numbers are from the theorem's (R14, R15, R23). Noise and samples at a
// total variation distance t from the ideal change (ε, δ) to (ε, δ + (1+e^ε)·t). A batch takes dim values of
// noise and, if it is sampled, at most 2³¹ gaps.
func Numerics(j *Job, batches int) string {
	switch {
	case j.Owner != nil: // package gossip adds the owner's noise
		return ""
	case j.Spec.Privacy.Off:
		return "No noise was added."
	}
	sums := "Sums are exact integers on a public grid"
	if method.Solves(j.Method) {
		sums = "The minimiser is computed in floating point, with a proven bound on all rounding in the sensitivity, and put on a public grid,"
	}
	dim := j.Facts.Dim
	total, whose := SamplerDelta(dim, batches, j.Spec.Privacy.Budget().Epsilon), ""
	if n := j.Facts.Owners; n > 0 { // each adds a share of the noise, and draws its own sample
		total, whose = total*float64(n),
			fmt.Sprintf(" of each of %d owners; that each share is rounded by itself adds less than (1 + e^ε)·2⁻⁹⁰⁰ for each number of a sum", n)
	}
	return fmt.Sprintf("%s and the noise is an exactly rounded Gaussian on the same grid, added without rounding: "+
		"the guarantee holds in the computer's arithmetic, not only on paper. The sampler's distance from the ideal adds at most %.1e to δ over %d coordinates and %d batches%s; "+
		"beyond that it rests on the ChaCha8 cipher, on SHA-256 and on the system's randomness.", sums, total, dim, batches,
		whose)
}

// SamplerDelta bounds what the sampler's distance from the ideal adds to δ where batches release dim numbers each: of
// noise, and of choices of records.
func SamplerDelta(dim, batches int, epsilon float64) float64 {
	if factor := 1 + math.Exp(epsilon); !math.IsInf(factor, 1) {
		return noise.SamplerDistance * (float64(dim) + 1<<31) * float64(batches) * factor
	}
	return 1 // no δ is more
}

// File returns the model file of a job with parameters w and the guarantee of its training.
func (j *Job) File(w []float64, g Guarantee) (*model.File, error) {
	guarantee, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	schema, err := j.Schema.Marshal()
	if err != nil {
		return nil, err
	}
	return &model.File{
		Format: model.FileFormat, Model: j.Spec.Model.Name, Dim: j.Schema.Dim(), NormBound: j.Schema.RowNorm,
		Config: j.Spec.Model.Config, Shape: model.ShapeOf(j.Model), W: w, Classes: j.Schema.ClassNames(),
		Features:  j.Schema.FeatureNames(),
		Threshold: j.Spec.Model.Threshold, Schema: schema, Guarantee: guarantee, Lab: j.Spec.Lab,
		Created: time.Now().UTC().Format(time.RFC3339), Run: g.Run,
	}, nil
}
