package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// ErrPart says that a directory is one owner's in a network, of which there is no record.
var ErrPart = errors.New("an owner's run directory has no report; `sotto verify` checks it")

// Read makes the record of the run in dir. Equal directories give equal records. life is what a ledger holds of the
// dataset; nil: none is at hand.
func Read(dir string, life *ledger.History) (*Record, error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return nil, err
	}
	if info.Network != "" {
		return nil, ErrPart
	}
	log, err := runlog.Read(dir)
	if err != nil {
		return nil, err
	}
	r := Of(info, log)
	p, err := r.prove(info, log)
	if err != nil {
		return nil, err
	}
	if p != nil {
		r.spend(p, info, log)
	}
	for _, name := range []string{runlog.EventsFile, runlog.ReleasesFile, runlog.ModelFile} {
		sum, err := runlog.Hash(dir, name)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, File{name, sum})
	}
	if r.Effects, err = effectsIn(dir); err != nil {
		return nil, err
	}
	if life != nil {
		r.Lifetime = LifetimeOf(life, info.Budget)
	}
	return r, nil
}

// Of is the record of what run.json and the log say, without what has to be proven: no curves, no checks, no files. The
// log may be nil: then only what run.json says is in it.
func Of(info *runlog.Info, log *runlog.Record) *Record {
	shares := info.Shares() // decodes the plan, which may be long
	r := &Record{Format: Format, Protection: protectionOf(info, shares), Statements: info.Disclosure,
		NotCovered: notCovered(info, shares), Checks: []Finding{}, Findings: []Finding{}, Released: []Release{},
		Files: []File{}}
	r.Run = Run{ID: info.ID, Dataset: info.Dataset, Started: info.Started, Finished: info.Finished, Status: info.Status,
		Resumed: info.Resumed(), Off: info.Off, Lab: info.Lab, Seed: info.Seed,
		Method: info.Method, Output: info.Output, Search: info.Search, Shards: info.Shards,
		Accountant: info.Accountant, NoiseMultiplier: info.NoiseMultiplier,
		Warnings: list(info.Warnings), HeldOut: heldOut(info.Holdout),
		Version: info.Version, Build: info.Build, Go: info.Go, Platform: info.Platform, Kernels: info.Kernels,
		Binary: info.Binary, LedgerHead: info.LedgerHead}
	var model struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(info.Model, &model) == nil { // a damaged one has no name
		r.Run.Model = model.Name
	}
	r.Course.Planned = info.MaxSteps
	if t := info.Result; t != nil {
		r.Run.Outcome, r.Run.Fallback, r.Run.Claim = t.Outcome, t.Fallback, t.Claim
		r.Run.Pairs, r.Run.Lines = t.Pairs, t.Lines
		r.Run.TrainSeconds = t.TrainSeconds
		r.Course.Steps, r.Course.Charged = t.Steps, t.Charged
	}
	if log != nil {
		r.Run.Torn, r.Course.Charged = log.Torn, log.Charged()
		if info.Search == nil {
			r.Course.Lost = log.Charged() - log.Released
		}
		r.Course.Rates = seriesOf(log.Steps, func(s runlog.Step) float64 { return s.Rate })
		r.Course.Norms = seriesOf(log.Steps, func(s runlog.Step) float64 { return s.GradNorm })
		r.Released, r.MoreReleased = released(log)
	}
	r.quality(info)
	r.Public = publicOf(info)
	r.claim(info, shares)
	return r
}

// list is never null in JSON.
func list[T any](l []T) []T { return append([]T{}, l...) }

// seriesOf is a figure of some steps; nil where there are none.
func seriesOf(steps []runlog.Step, of func(runlog.Step) float64) *Series {
	if len(steps) == 0 {
		return nil
	}
	x, y := make([]float64, len(steps)), make([]float64, len(steps))
	for i, s := range steps {
		x[i], y[i] = float64(s.T), of(s)
	}
	s := &Series{Count: len(y), First: y[0], Last: y[len(y)-1], Least: slices.Min(y), Most: slices.Max(y)}
	s.Step, s.Value = chart.Thin(x, y)
	return s
}

// quality takes private figures, and scores, which are not private.
func (r *Record) quality(info *runlog.Info) {
	if info.Result == nil {
		return
	}
	q := &r.Quality
	q.Private, q.Test = info.Result.Private, info.Result.Test
	if t := q.Test; t != nil {
		q.TestConstant = ConstantOf(t)
	}
	if p := q.Private; p != nil {
		q.PrivateConstant = PrivateConstantOf(p)
	}
	if t := q.Test; t != nil && square(t.Confusion) {
		for k, counts := range t.Confusion {
			q.Recall = append(q.Recall, Recall(k, counts))
		}
	}
	if !info.Lab {
		return // figures of the rows: only a page with the watermark shows them
	}
	for name, n := range info.Result.LabCounts {
		q.Lab = append(q.Lab, LabFigure{name, float64(n)})
	}
	slices.SortFunc(q.Lab, func(a, b LabFigure) int { return cmp.Compare(a.Name, b.Name) })
	if loss := info.Result.TrainLoss; loss != nil {
		q.Lab = append(q.Lab, LabFigure{TrainLoss, *loss})
	}
}

// TrainLoss names a lab figure that is no count.
const TrainLoss = "loss on the training rows"

// square says whether there is a table with as many columns as rows. A damaged run.json may hold another.
func square(table [][]int) bool {
	return len(table) > 0 && !slices.ContainsFunc(table, func(row []int) bool { return len(row) != len(table) })
}

// Recall is the share of the rows of class k that are predicted as such; nil: there are none.
func Recall(k int, row []int) *float64 {
	all := 0
	for _, n := range row {
		all += n
	}
	if all == 0 {
		return nil
	}
	return new(float64(row[k]) / float64(all))
}

func heldOut(h *runlog.Holdout) float64 {
	if h == nil {
		return 0
	}
	return h.Share
}

func publicOf(info *runlog.Info) Public {
	p := Public{Assumptions: list(info.Assumptions), Asserted: list(asserted(info.Assertions)),
		Facts: settings(info.Public), Method: settings(info.Config), Model: settings(info.Model)}
	var s struct {
		Rows       int      `json:"rows"`
		RowNorm    *float64 `json:"row_norm"`
		RowScaling string   `json:"row_scaling"`
		OnBadRow   string   `json:"on_bad_row"`
		Columns    []struct {
			Name    string   `json:"name"`
			Type    string   `json:"type"`
			Classes []string `json:"classes"`
		} `json:"columns"`
	}
	p.Table.Columns = []OfColumn{}
	if json.Unmarshal(info.Schema, &s) != nil {
		return p
	}
	p.Table.Rows, p.Table.RowNorm, p.Table.RowScaling, p.Table.OnBadRow = s.Rows, s.RowNorm, s.RowScaling, s.OnBadRow
	count := map[string]int{}
	for _, c := range s.Columns {
		if count[c.Type]++; c.Type == "label" {
			p.Table.Label, p.Table.Classes = c.Name, c.Classes
		}
	}
	for _, kind := range []string{"numeric", "categorical", "label", "ignore"} {
		if n := count[kind]; n > 0 {
			p.Table.Columns = append(p.Table.Columns, OfColumn{kind, n})
		}
	}
	return p
}

// settings lists the fields of a JSON object in their order.
func settings(raw json.RawMessage) []Setting {
	all := []Setting{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return all
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return all
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return all
		}
		all = append(all, Setting{fmt.Sprint(key), value})
	}
	return all
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
