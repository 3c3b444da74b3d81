package job

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// RowOptions says how the training rows are read. Under replace-one their number is public, and a row
// that is dropped keeps its position (R9).
func (j *Job) RowOptions() data.Options {
	opt := data.Options{Labels: j.Spec.Labels, Coding: data.Coding(j.Facts.Coding),
		Narrow: data.Narrows(j.Schema)}
	if j.Facts.Adjacency == privacy.ReplaceOne {
		opt.Rows, opt.KeepBad = j.Own(), true
	}
	return opt
}

// Coding says in what numbers a new run may keep its rows. Only rows of float32 are summed where its queries are no
// sums with noise, or its model is not linear: solvers add in float32, and owners who add up their sums all do,
// whatever their files are. Rows of 16-bit numbers, which a packed table has, have no curves and no center.
func (j *Job) Coding() oracle.Coding {
	if j.Owner != nil || j.Sum != nil || j.Spec.Privacy.Off || method.Solves(j.Method) || !j.Model.Facts().Coded {
		return oracle.Coding{}
	}
	return oracle.Coding{Bytes: data.PixelsOf(j.Schema) != nil, Short: !centers(j.Method) && !j.Facts.Snapped}
}

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
