package job

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
)

// RowOptions says how the training rows are read. Under replace-one their number is public, and a row
// that is dropped keeps its position (R9).
func (j *Job) RowOptions() data.Options {
	opt := data.Options{Labels: j.Spec.Labels, Bytes: j.Facts.Bytes, Short: j.Facts.Short,
		Narrow: data.Narrows(j.Schema)}
	if j.Facts.Adjacency == privacy.ReplaceOne {
		opt.Rows, opt.KeepBad = j.Own(), true
	}
	return opt
}

// coded says whether a new run may sum rows that are not float32: its queries are sums with noise, and its model is
// linear. Solvers add in float32, and owners who add up their sums all do, whatever their files are.
func (j *Job) coded() bool {
	return j.Owner == nil && j.Sum == nil && !j.Spec.Privacy.Off && !method.Solves(j.Method) && j.Model.Facts().Coded
}

// Bytes says whether a new run keeps rows of images as bytes.
func (j *Job) Bytes() bool { return j.coded() && data.PixelsOf(j.Schema) != nil }

// Short says whether a new run keeps 16-bit numbers as a packed table has them: they have no curves and no center.
func (j *Job) Short() bool { return j.coded() && !centers(j.Method) && !j.Facts.Snapped }

// Terms are what a coordinator and its shards must agree on, each hashed.
func (j *Job) Terms() (map[string][]byte, error) {
	schema, err := j.Schema.Marshal()
	if err != nil {
		return nil, err
	}
	model, err := json.Marshal(j.Spec.Model)
	if err != nil {
		return nil, err
	}
	terms := map[string][]byte{}
	for name, text := range map[string][]byte{"schema": schema, "model": model,
		"adjacency":                   []byte(j.Facts.Adjacency.String()),
		"choice of --metrics-timings": strconv.AppendBool(nil, j.Spec.MetricsTimings)} {
		sum := sha256.Sum256(text)
		terms[name] = sum[:]
	}
	return terms, nil
}
