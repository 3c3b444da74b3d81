package private_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// farm is a carrier in one process, whose shards die, are asked twice and are heard twice.
type farm struct {
	t      testing.TB
	tables []*data.Table
	cfg    private.Config
	secret *remote.Secret
	rough  *rand.Rand
	shards []*remote.Shard
}

func newFarm(t testing.TB, cfg private.Config, tables []*data.Table, rough *rand.Rand) *farm {
	t.Helper()
	key := sha256.Sum256([]byte("farm"))
	secret, err := remote.NewSecret(key[:])
	if err != nil {
		t.Fatal(err)
	}
	return &farm{t: t, tables: tables, cfg: cfg, secret: secret, rough: rough, shards: make([]*remote.Shard, len(tables))}
}

func (f *farm) Shards() int  { return len(f.tables) }
func (f *farm) Largest() int { return 1 << 20 }

func (f *farm) shard(i int) *remote.Shard {
	if f.shards[i] == nil {
		rows, err := private.NewLocal(f.tables[i], f.cfg.Model, f.cfg.Facts, 1+i)
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(rows.Close)
		s, err := remote.NewShard(remote.ShardConfig{Rows: rows, Facts: f.cfg.Facts, Digest: sha256.Sum256([]byte{byte(i)}), Secret: f.secret, Index: i, Count: len(f.tables),
			Hashes: func(key [32]byte) []uint64 { return data.Fingerprints(f.tables[i], key[:]) }})
		if err != nil {
			f.t.Fatal(err)
		}
		f.shards[i] = s
	}
	return f.shards[i]
}

func (f *farm) Ask(_ context.Context, questions [][]byte, take func(int, []byte) error) error {
	for _, i := range f.rough.Perm(len(questions)) {
		question := bytes.Clone(questions[i])
		if f.rough.IntN(8) == 0 { // dies
			f.shards[i] = nil
		}
		answer, err := f.shard(i).Answer(question)
		if u := new(remote.Unfit); errors.As(err, &u) { // its worker goes
			err = nil
		}
		if err == nil && f.rough.IntN(4) == 0 {
			answer, err = f.shard(i).Answer(question) // asked again
		}
		if err == nil {
			err = take(i, answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *farm) open(t testing.TB) *remote.Shards {
	t.Helper()
	s, err := remote.Open(t.Context(), f.secret, f, f.cfg.Facts, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// divide cuts a table into parts, one after the other; some may be empty.
func divide(rnd *rand.Rand, tab *data.Table, parts int) (tables []*data.Table) {
	cuts := []int{0, tab.Rows()}
	for range parts - 1 {
		cuts = append(cuts, rnd.IntN(tab.Rows()+1))
	}
	slices.Sort(cuts)
	for i := range parts {
		tables = append(tables, data.Subset([]*data.Table{tab}, func(row int) bool { return row >= cuts[i] && row < cuts[i+1] }))
	}
	return tables
}

// rowless is a table of the same kind without rows.
func rowless(tab *data.Table) *data.Table {
	return &data.Table{Dim: tab.Dim, Classes: tab.Classes, NormBound: tab.NormBound, Unit: tab.Unit, Labeled: tab.Labeled}
}

// What an oracle releases is the same bit for bit whether the rows are in its table or in shards, however many, through deaths and
// repeated questions: for every query that is a sum of whole numbers, every sampler and every model.
func TestShardsEqualTheTable(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(31, 1))
	seen := map[string]int{}
	for trial := range 250 {
		var m model.Model
		var classes int
		var draw func() private.Row
		image := trial%5 == 0
		switch {
		case image:
			m, classes = private.ImageNetwork(t, []string{"", "float64"}[rnd.IntN(2)], [][]string{{"5 relu"}, {"conv 3 2x2 relu", "max 2 stride 1", "4 tanh"}}[rnd.IntN(2)]...), 3
			draw = func() private.Row { r := private.RandomRows(rnd, 1, 12)[0]; return r.Labeled(float32(rnd.IntN(3))) }
		case trial%5 == 1:
			features := 1 + rnd.IntN(9)
			var label func() float32
			m, label = private.CurvedModel(t, rnd, features)
			if classes = 2; m.Name() == "linear" {
				classes = 0
			}
			draw = func() private.Row { r := private.RandomRows(rnd, 1, features)[0]; return r.Labeled(label()) }
		default:
			m, classes, draw = private.AnyModel(t, rnd)
		}
		rows := make([]private.Row, 1+rnd.IntN(3000))
		if image {
			rows = rows[:1+len(rows)/10]
		}
		for i := range rows {
			rows[i] = draw()
		}
		tab := private.TableOf(rows, classes, rnd.IntN(2) == 0)
		private.DropSome(rnd, tab)
		adj := []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne}[rnd.IntN(2)]
		cfg := private.ConfigOf(t, tab, adj, len(rows))
		cfg.Model, cfg.Facts.Dim, cfg.Facts.Classes, cfg.Workers = m, m.Dim(), classes, 1+rnd.IntN(3)
		cfg.Streams = noise.SeededStreams(rnd.Uint64())
		if image {
			cfg.Facts.Image = []int{3, 4}
		}

		var s sample.Sampler = sample.Full{}
		switch {
		case trial%3 == 1:
			s = sample.Poisson{Rate: math.Exp2(-6 * rnd.Float64())}
		case trial%3 == 2 && adj == privacy.ReplaceOne:
			s = sample.Fixed{M: 1 + rnd.IntN(len(rows)), N: len(rows)}
		}
		bound := math.Exp2(rnd.Float64()*8 - 6)
		grad := oracle.Grad{Clip: clip.Norm{C: bound}, Noise: mech.Gaussian{Sigma: 1}}
		switch kind := rnd.IntN(6); {
		case kind == 0:
			grad = oracle.Grad{Clip: clip.Norm{C: bound, P: 1}, Noise: mech.Laplace{Scale: 1}}
		case kind == 1 && m.Facts().Bounded:
			grad.Clip = clip.Value{C: bound}
		case kind == 5:
			grad.Clip = clip.Automatic{C: bound}
		case kind == 2 && m.Facts().Layers > 0:
			grad.Clip = clip.PerLayer{C: bound, Layers: m.Facts().Layers}
		case kind == 3 && !math.IsInf(m.Facts().Lipschitz, 1):
			grad.Clip = clip.Lipschitz{L: m.Facts().Lipschitz}
		case image:
			grad.Augmentation = oracle.Augmentation{Count: 3, Shift: 1, Flip: true}
		}
		within := oracle.Loss{Bound: 0.5, Within: true, Signed: true, Noise: mech.Gaussian{Sigma: 1}}
		pay := []oracle.Query{grad, within}
		loss := oracle.Loss{Bound: bound, Noise: mech.Gaussian{Sigma: 1}}
		find := oracle.Search{Bound: bound, Noise: mech.AboveThreshold{Threshold: 4, Query: 8, Max: 20}}
		hess := oracle.Hess{Clip: bound, Noise: mech.SymmetricGaussian{Sigma: 1}}
		choose, among := private.AnyChoice(rnd, m, classes, bound)
		linear := !image && m.Facts().Layers == 0
		if linear {
			pay = append(pay, loss, find, choose)
		}
		if m.Facts().Curved {
			pay = append(pay, hess)
		}
		along := private.AnyLine(rnd, m.Dim(), 1+rnd.IntN(20))
		for k := range along.Least {
			along.Least[k] = 0.01
		}
		batches := 1 + rnd.IntN(4)
		release := func(cfg private.Config) [][][]float64 {
			journal := &private.Memo{}
			cfg.Journal = journal
			o := private.OpenOracle(t, cfg)
			for range batches {
				b, err := o.Batch(t.Context(), s, pay...)
				if err != nil {
					t.Fatal(m.Name(), err)
				}
				for _, q := range pay {
					seen[fmt.Sprintf("%T", q)]++
					var err error
					switch q := q.(type) {
					case oracle.Grad:
						_, err = b.Grad(q, along.From)
					case oracle.Loss:
						at := along.From
						if q.Within {
							at = append(slices.Clone(at), bound)
						}
						_, err = b.Loss(q, at)
					case oracle.Search:
						_, err = b.Search(q, along)
					case oracle.Hess:
						_, err = b.Hess(q, along.From)
					case oracle.Select:
						seen[fmt.Sprintf("%T", among)]++
						_, err = b.Select(q, among)
					}
					if err != nil {
						t.Fatalf("%s, %T: %v", m.Name(), q, err)
					}
				}
			}
			return journal.Released()
		}
		want := release(cfg)
		away := cfg
		away.Table = rowless(tab)
		away.Summer = newFarm(t, cfg, divide(rnd, tab, 1+rnd.IntN(4)), rnd).open(t)
		got := release(away)
		if len(want) != batches || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("trial %d: %s, %T, %v, %T: shards release\n%.3v, the table\n%.3v", trial, m.Name(), s, adj, grad.Clip, got, want)
		}
	}
	for _, kind := range []string{"oracle.Grad", "oracle.Loss", "oracle.Search", "oracle.Select", "oracle.Hess", "oracle.Line", "oracle.Neighbors", "oracle.Classes"} {
		if seen[kind] < 20 {
			t.Errorf("%s: asked %d times", kind, seen[kind])
		}
	}
}
