package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
	"github.com/sottodp/sotto/schema"
)

// Trained is a model file ready for use.
type Trained struct {
	File      *model.File
	Schema    *schema.Schema
	Model     model.Model
	Guarantee job.Guarantee
	Ledger    string // of its run, if the file is in its run directory and the ledger exists

	path string
}

// Promised lists the guarantee of the training, as keys and values of metadata.
func (m *Trained) Promised() [][2]string {
	g := m.Guarantee
	facts := [][2]string{{"sotto.model", m.File.Model}, {"sotto.run", g.Run}, {"sotto.dataset", g.Dataset},
		{"sotto.unit", text.Whom(g.Unit, g.UnitRows)}}
	if m.File.Lab || g.Off {
		return append(facts, [2]string{"sotto.guarantee", "none: a run of the lab"})
	}
	epsilon, delta := chart.Exact(g.Budget.Epsilon), chart.Exact(g.Budget.Delta)
	words := fmt.Sprintf("(%s, %s)-differentially private, neighbours %s", epsilon, delta, g.Budget.Adjacency)
	info := runlog.Info{Plan: g.Plan, Accountant: g.Accountant, Budget: g.Budget}
	if s := info.Shares(); s != nil {
		alone := "not proven"
		if s.Alone != nil {
			alone = chart.AtMost(*s.Alone, 5)
		}
		words += fmt.Sprintf(", against %s; epsilon %s against %s", g.Against, alone, text.AgainstAll)
		facts = append(facts, [2]string{"sotto.against", g.Against}, [2]string{"sotto.epsilon_alone", alone},
			[2]string{"sotto.against_alone", text.AgainstAll})
	}
	return append(facts,
		[2]string{"sotto.guarantee", words},
		[2]string{"sotto.epsilon", epsilon}, [2]string{"sotto.delta", delta},
		[2]string{"sotto.adjacency", g.Budget.Adjacency.String()})
}

// LoadModel reads a model file, or that of a run directory.
func LoadModel(path string) (*Trained, error) {
	if path == "" {
		return nil, inputError("", "--model is missing: a run directory or a model file")
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		dir := path
		path = filepath.Join(path, runlog.ModelFile)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			if info, err := runlog.ReadInfo(dir); err == nil {
				return nil, inputError("", "%s: has no model; its run is %s", dir, info.Status)
			} else if errors.Is(err, runlog.ErrDescription) {
				return nil, &InputError{Err: err}
			}
		}
	}
	f, err := model.Read(path)
	if err != nil {
		return nil, &InputError{Err: err}
	}
	t := &Trained{File: f, path: path}
	if t.Schema, err = schema.FromJSON(f.Schema); err != nil {
		return nil, &InputError{Where: path, Err: err}
	}
	if t.Model, err = f.New(); err != nil {
		return nil, &InputError{Where: path, Err: err}
	}
	switch names := t.Schema.FeatureNames(); {
	case t.Schema.Open() > 0:
		return nil, inputError(path, "schema: has places for pairs that no columns take, which no model file has")
	case t.Schema.Dim() != f.Dim || t.Schema.Classes() != len(f.Classes):
		return nil, inputError(path, "schema: found one of %d features and %d classes; use that of the parameters, %d and %d",
			t.Schema.Dim(), t.Schema.Classes(), f.Dim, len(f.Classes))
	case len(f.Features) > 0 && !slices.Equal(f.Features, names), !slices.Equal(f.Classes, t.Schema.ClassNames()),
		f.NormBound != t.Schema.RowNorm:
		return nil, inputError(path,
			"schema: found other features, classes or norm bound than the parameters have; use the schema that the model was trained under")
	}
	if err := json.Unmarshal(f.Guarantee, &t.Guarantee); err != nil {
		return nil, &InputError{Where: path, Err: err}
	}
	if info, err := runlog.ReadInfo(filepath.Dir(path)); err == nil && info.ID == f.Run {
		if _, err := os.Stat(info.Ledger); err == nil || strings.Contains(info.Ledger, "://") { // it may be another machine's
			t.Ledger = info.Ledger
		}
	}
	return t, nil
}

// Predict writes the predicted label of each row of the table at path as CSV, and the probability of each class, or the
// predicted value, as numbers of that many digits. It keeps some blocks of rows, not the table. What it has written is
// valid only if it returns no error.
func (m *Trained) Predict(ctx context.Context, path string, w io.Writer, digits int, notice func(string)) error {
	lines, err := model.NewLines(w, m.Schema.LabelName(), m.Schema.ClassNames(), m.File.Threshold, digits)
	if err != nil {
		return err
	}
	outputs := score.Predictor{Model: m.Model, W: m.File.Weights()}
	gate, opt := access.Gate{Dropped: Dropped(notice, true)}, data.Options{Unlabeled: true, KeepBad: true, ByRow: true}
	opened, err := gate.Stream(ctx, access.Predict, m.Schema, path, opt, func() func(*data.Block) error {
		return func(b *data.Block) error {
			return outputs.Block(b, func(p []float64, _ float32) error { return lines.Write(p) })
		}
	})
	if err == nil {
		_, err = opened.Take(ctx, nil, "")
	}
	return err
}

// An Evaluation says how a model is scored on labeled rows.
type Evaluation struct {
	Labels      string // file of labels, for images
	Ledger      string // empty: that of the model's run, else the user's own
	Unprotected bool   // the rows need no protection
	Void        bool   // ends the guarantee of a dataset that has one

	AcceptDropped bool
	Notice        func(string)
}

// Evaluate scores the model on a table. The figures are not private: the access is recorded in the
// ledger, and refused if it would end a guarantee (R3).
func (m *Trained) Evaluate(ctx context.Context, path string, o Evaluation) (*runlog.Scores, error) {
	var made *score.Scorer
	read := func(where string, unprotected bool, begin func() func(*data.Block) error) (*access.Opened, error) {
		gate := access.Gate{Notice: o.Notice, Dropped: Dropped(o.Notice, o.AcceptDropped), Void: o.Void,
			Unprotected: unprotected, Why: "score of a model by `sotto evaluate`"}
		_, opened, err := take(ctx, where, "", gate, func(g *access.Gate) (*access.Opened, error) {
			return g.Stream(ctx, access.Score, m.Schema, path, data.Options{Labels: o.Labels, ByRow: true}, begin)
		})
		return opened, err
	}
	own, err := ledger.Path("")
	if o.Ledger == "" && m.Ledger != "" && (err != nil || own != m.Ledger) { // the user's own may protect the rows, too
		ignore := func(*data.Block) error { return nil }
		if _, err := read("", true, func() func(*data.Block) error { return ignore }); err != nil {
			return nil, err
		}
	}
	opened, err := read(cmp.Or(o.Ledger, m.Ledger), o.Unprotected, func() func(*data.Block) error {
		made = score.NewScorer(m.Model, m.File.Weights(), m.Schema.Classes(), m.Schema.ClassNames(), m.File.Threshold)
		return made.Block
	})
	if err != nil {
		return nil, err
	}
	return made.Scores(opened.Stats.Clamped[m.Schema.LabelName()]), nil
}
