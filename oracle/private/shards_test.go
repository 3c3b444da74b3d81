package private

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

func secretOf(t testing.TB, word string) *Secret {
	t.Helper()
	key := sha256.Sum256([]byte(word))
	s, err := NewSecret(key[:])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// farm is a carrier in one process, whose shards die, are asked twice and are heard twice.
type farm struct {
	t      testing.TB
	tables []*data.Table
	cfg    Config
	terms  map[string][]byte
	rough  *rand.Rand // nil: nothing happens

	mu     sync.Mutex
	shards []*Shard
	carry  func(shard int, question []byte) ([]byte, error) // nil: to the shards
	asked  [][]byte
	heard  [][]byte
}

// divide cuts a table into parts, one after the other; some may be empty.
func divide(rnd *rand.Rand, tab *data.Table, parts int) (tables []*data.Table) {
	cuts := []int{0, tab.Rows()}
	for range parts - 1 {
		cuts = append(cuts, rnd.IntN(tab.Rows()+1))
	}
	slices.Sort(cuts)
	for i := range parts {
		tables = append(tables, data.Gather([]*data.Table{tab}, func(row int) bool { return row >= cuts[i] && row < cuts[i+1] }))
	}
	return tables
}

func newFarm(t testing.TB, cfg Config, tables []*data.Table, rough *rand.Rand) *farm {
	f := &farm{t: t, tables: tables, cfg: cfg, rough: rough, shards: make([]*Shard, len(tables)), terms: map[string][]byte{"schema": {1}, "model": {2}}}
	t.Cleanup(func() {
		for _, s := range f.shards {
			if s != nil {
				s.Close()
			}
		}
	})
	return f
}

func (f *farm) Shards() int  { return len(f.tables) }
func (f *farm) Largest() int { return 1 << 20 }

func (f *farm) Refused(_ context.Context, _ int, why *Unfit) error { return why }

func (f *farm) shard(i int) *Shard {
	if f.shards[i] == nil {
		s, err := NewShard(ShardConfig{
			Table: f.tables[i], Model: f.cfg.Model, Facts: f.cfg.Facts, Digest: sha256.Sum256([]byte{byte(i)}), Terms: f.terms,
			Secret: secretOf(f.t, "farm"), Index: i, Count: len(f.tables), Workers: 1 + i,
		})
		if err != nil {
			f.t.Fatal(err)
		}
		f.shards[i] = s
	}
	return f.shards[i]
}

func (f *farm) Ask(ctx context.Context, i int, question []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, bytes.Clone(question))
	if f.carry != nil {
		return f.carry(i, question)
	}
	if f.rough != nil && f.rough.IntN(8) == 0 && f.shards[i] != nil { // dies
		f.shards[i].Close()
		f.shards[i] = nil
	}
	answer, err := f.shard(i).Answer(question)
	if u := new(Unfit); errors.As(err, &u) { // its worker goes
		err = nil
	}
	if f.rough != nil && err == nil && f.rough.IntN(4) == 0 {
		answer, err = f.shard(i).Answer(question) // asked again
	}
	f.heard = append(f.heard, answer)
	return answer, err
}

func (f *farm) open(t testing.TB, ctx context.Context) *Shards {
	t.Helper()
	s, err := OpenShards(ctx, secretOf(t, "farm"), f, f.cfg.Facts.Dim, f.terms)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rowless is a table of the same kind without rows.
func rowless(tab *data.Table) *data.Table {
	return &data.Table{Dim: tab.Dim, Classes: tab.Classes, NormBound: tab.NormBound, Unit: tab.Unit, Labelled: tab.Labelled}
}

// What a door releases is the same bit for bit whether the rows are in its table or in shards, however many, through deaths and
// repeated questions: for every query that is a sum of whole numbers, every sampler and every model.
func TestShardsEqualTheTable(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(31, 1))
	seen := map[string]int{}
	for trial := range 250 {
		var m model.Model
		var classes int
		var draw func() row
		image := trial%5 == 0
		switch {
		case image:
			m, classes = imageNetwork(t, []string{"", "float64"}[rnd.IntN(2)], [][]string{{"5 relu"}, {"conv 3 2x2 relu", "max 2 stride 1", "4 tanh"}}[rnd.IntN(2)]...), 3
			draw = func() row { r := randomRows(rnd, 1, 12)[0]; r.y = float32(rnd.IntN(3)); return r }
		case trial%5 == 1:
			features := 1 + rnd.IntN(9)
			var label func() float32
			m, label = curvedModel(t, rnd, features)
			if classes = 2; m.Name() == "linear" {
				classes = 0
			}
			draw = func() row { r := randomRows(rnd, 1, features)[0]; r.y = label(); return r }
		default:
			m, classes, draw = anyModel(t, rnd)
		}
		rows := make([]row, 1+rnd.IntN(3000))
		if image {
			rows = rows[:1+len(rows)/10]
		}
		for i := range rows {
			rows[i] = draw()
		}
		tab := table(rows, classes, rnd.IntN(2) == 0)
		dropSome(rnd, tab)
		adj := []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne}[rnd.IntN(2)]
		cfg := config(t, tab, adj, len(rows))
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
		switch kind := rnd.IntN(5); {
		case kind == 0:
			grad = oracle.Grad{Clip: clip.Norm{C: bound, P: 1}, Noise: mech.Laplace{Scale: 1}}
		case kind == 1 && m.Facts().Bounded:
			grad.Clip = clip.Value{C: bound}
		case kind == 2 && m.Facts().Layers > 0:
			grad.Clip = clip.PerLayer{C: bound, Layers: m.Facts().Layers}
		case kind == 3 && !math.IsInf(m.Facts().Lipschitz, 1):
			grad.Clip = clip.Lipschitz{L: m.Facts().Lipschitz}
		case image:
			grad.Augmentation = oracle.Augmentation{Count: 3, Shift: 1, Flip: true}
		}
		pay := []oracle.Query{grad}
		loss := oracle.Loss{Bound: bound, Noise: mech.Gaussian{Sigma: 1}}
		find := oracle.Search{Bound: bound, Noise: mech.AboveThreshold{Threshold: 4, Query: 8, Max: 20}}
		hess := oracle.Hess{Clip: bound, Noise: mech.SymmetricGaussian{Sigma: 1}}
		choose, among := anyChoice(rnd, m, classes, bound)
		linear := !image && m.Facts().Layers == 0
		if linear {
			pay = append(pay, loss, find, choose)
		}
		if m.Facts().Curved {
			pay = append(pay, hess)
		}
		along := anyLine(rnd, m.Dim(), 1+rnd.IntN(20))
		for k := range along.Least {
			along.Least[k] = 0.01
		}
		batches := 1 + rnd.IntN(4)
		release := func(cfg Config) [][][]float64 {
			journal := &memo{}
			cfg.Journal = journal
			o := openDoor(t, cfg)
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
						_, err = b.Loss(q, along.From)
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
			return journal.released
		}
		want := release(cfg)
		away := cfg
		away.Table = rowless(tab)
		away.Shards = newFarm(t, cfg, divide(rnd, tab, 1+rnd.IntN(4)), rnd).open(t, t.Context())
		got := release(away)
		if len(want) != batches || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("trial %d: %s, %T, %v, %T: shards release\n%.3v, the table\n%.3v", trial, m.Name(), s, adj, grad.Clip, got, want)
		}
	}
	for _, kind := range []string{"oracle.Grad", "oracle.Loss", "oracle.Search", "oracle.Select", "oracle.Hess", "oracle.Line", "oracle.Neighbours", "oracle.Classes"} {
		if seen[kind] < 20 {
			t.Errorf("%s: asked %d times", kind, seen[kind])
		}
	}
}

// dropSome lets rows keep their place and weigh nothing.
func dropSome(rnd *rand.Rand, tab *data.Table) {
	for _, b := range tab.Blocks {
		if rnd.IntN(2) == 0 {
			continue
		}
		b.Drop = make([]bool, b.N)
		for i := range b.Drop {
			b.Drop[i] = rnd.IntN(9) == 0
		}
	}
}

// shardedDoor is a door over three shards, and their carrier.
func shardedDoor(t *testing.T) (*Oracle, *farm, *memo) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(32, 1))
	tab := table(randomRows(rnd, 300, 4), 2, false)
	cfg := config(t, tab, privacy.AddRemove, 300)
	journal := &memo{}
	cfg.Journal, cfg.Streams = journal, noise.SecureStreams()
	f := newFarm(t, cfg, divide(rnd, tab, 3), nil)
	cfg.Table, cfg.Shards = rowless(tab), f.open(t, t.Context())
	return openDoor(t, cfg), f, journal
}

var shardGrad = oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}

func askShards(t *testing.T, o *Oracle) error {
	t.Helper()
	b, err := o.Batch(t.Context(), sample.Poisson{Rate: 0.3}, shardGrad)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Grad(shardGrad, make([]float64, 4))
	return err
}

// Whoever carries the messages learns their sizes, which are those of public numbers: not the sample's key, no sum, no
// count of rows; two messages of the same content have nothing in common.
func TestShardMessagesAreSealed(t *testing.T) {
	o, f, _ := shardedDoor(t)
	for range 5 {
		if err := askShards(t, o); err != nil {
			t.Fatal(err)
		}
	}
	key := o.cfg.Shards.bought.Key
	rows := binary.LittleEndian.AppendUint64(nil, uint64(f.tables[0].Rows()))
	for _, m := range slices.Concat(f.asked, f.heard) {
		body := m[headSize:]
		for _, secret := range [][]byte{key, []byte("gradients"), []byte("Poisson"), rows, encodeCounts(nil, o.cfg.Shards.counts[:1])} {
			if bytes.Contains(body, secret) {
				t.Errorf("a message holds % x in the clear", secret)
			}
		}
	}
	sizes := map[int]bool{}
	for _, m := range f.heard[3:] { // behind the hello
		sizes[len(m)] = true
	}
	if len(sizes) != 1 {
		t.Errorf("answers have sizes %v: they tell of rows", sizes)
	}
	for _, v := range []any{secretOf(t, "farm"), *secretOf(t, "farm"), f.shard(0), o.cfg.Shards, noise.Key{1, 2, 3}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s", "%d"} {
			if _, plain := v.(Secret); !plain && len(fmt.Sprintf(verb, v)) > len("private.Shards") {
				t.Errorf("%s prints %.60s", verb, fmt.Sprintf(verb, v))
			}
		}
	}
}

// A message that was altered, swapped, repeated in another's place or made under another secret ends the run's step with an error; nothing
// is released, and what was charged stays charged.
func TestForgedShardMessages(t *testing.T) {
	straight := func(f *farm, i int, question []byte) []byte {
		a, err := f.shard(i).Answer(question)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	other := secretOf(t, "another")
	for name, forge := range map[string]func(f *farm, i int, question []byte) ([]byte, error){
		"a bit of the answer": func(f *farm, i int, q []byte) ([]byte, error) {
			a := bytes.Clone(straight(f, i, q))
			a[len(a)-3] ^= 4
			return a, nil
		},
		"a bit of the answer's head": func(f *farm, i int, q []byte) ([]byte, error) {
			a := bytes.Clone(straight(f, i, q))
			a[len(headMagic)+33] ^= 1
			return a, nil
		},
		"an earlier answer":   func(f *farm, i int, q []byte) ([]byte, error) { return f.heard[i], nil },
		"the question itself": func(f *farm, i int, q []byte) ([]byte, error) { return q, nil },
		"nothing":             func(f *farm, i int, q []byte) ([]byte, error) { return nil, nil },
		"another's secret": func(f *farm, i int, q []byte) ([]byte, error) {
			h, _ := readHead(q)
			s, err := other.session(h.salt)
			return seal(s.answers, h, make([]byte, 1+8*4), q), err
		},
		"too few sums": func(f *farm, i int, q []byte) ([]byte, error) {
			h, _ := readHead(q)
			s, err := secretOf(t, "farm").session(h.salt)
			return seal(s.answers, h, make([]byte, 1+8*3), q), err
		},
		"the answer to what a copy of the coordinator asked under that number": func(f *farm, i int, q []byte) ([]byte, error) {
			h, _ := readHead(q)
			s, err := secretOf(t, "farm").session(h.salt)
			if err != nil {
				return nil, err
			}
			text, err := unseal(s.asks, q, nil)
			if err != nil {
				t.Fatal(err)
			}
			copied, err := decodeQuestion(text)
			if err != nil {
				t.Fatal(err)
			}
			copied.Key = make([]byte, len(noise.Key{}))
			if text, err = copied.encode(); err != nil {
				t.Fatal(err)
			}
			return straight(f, i, seal(s.asks, h, text, nil)), nil
		},
		"no carrier": func(f *farm, i int, q []byte) ([]byte, error) { return nil, errors.New("the line is cut") },
	} {
		o, f, journal := shardedDoor(t)
		f.carry = func(i int, q []byte) ([]byte, error) {
			if i != 1 {
				return straight(f, i, q), nil
			}
			return forge(f, i, q)
		}
		err := askShards(t, o)
		o.Close()
		if err == nil || !strings.HasPrefix(err.Error(), "shard 2 of 3: ") {
			t.Errorf("%s: %v", name, err)
		}
		if len(journal.charged) != 1 || len(journal.released) != 0 {
			t.Errorf("%s: %d charges, %d releases", name, len(journal.charged), len(journal.released))
		}
	}

	// What a shard is asked by others than its coordinator it does not answer.
	_, f, _ := shardedDoor(t)
	question := f.asked[slices.IndexFunc(f.asked, func(q []byte) bool { h, _ := readHead(q); return h.shard == 1 })]
	for name, forged := range map[string][]byte{
		"altered":   append(bytes.Clone(question[:len(question)-1]), question[len(question)-1]^1),
		"its head":  append(append(bytes.Clone(question[:headSize-9]), question[headSize-9]^1), question[headSize-8:]...),
		"cut":       question[:len(question)-1],
		"no head":   question[:headSize-1],
		"unrelated": []byte(strings.Repeat("x", 200)),
		"answer":    straight(f, 1, question),
	} {
		if a, err := f.shard(1).Answer(forged); err == nil || a != nil {
			t.Errorf("%s: a shard answers %d bytes", name, len(a))
		}
	}
	if _, err := f.shard(0).Answer(question); err == nil {
		t.Error("a shard answers what another was asked")
	}
}

// What shards cannot sum is refused before it is paid, and shards that were given something else say what.
func TestShardsRefuse(t *testing.T) {
	o, f, journal := shardedDoor(t)
	for _, q := range []oracle.Query{
		oracle.Grad{Clip: clip.None{}, Noise: mech.None{}},
		oracle.Loss{Noise: mech.None{}},
		oracle.Search{Noise: mech.AboveThreshold{Max: 3}, Off: true},
		oracle.Select{Off: true},
		oracle.Minimize{How: oracle.Exact{}},
	} {
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil || len(journal.charged) > 0 {
			t.Errorf("%T: %v, %d charges", q, err, len(journal.charged))
		}
	}

	_, err := OpenShards(t.Context(), secretOf(t, "farm"), f, 4, map[string][]byte{"schema": {1}, "model": {3}})
	if u := new(Unfit); !errors.As(err, &u) || !strings.Contains(err.Error(), "shard ") || !strings.Contains(err.Error(), "another model") {
		t.Errorf("another model: %v", err)
	}
	if _, err := OpenShards(t.Context(), secretOf(t, "another"), f, 4, f.terms); err == nil {
		t.Error("shards answer to another secret")
	}
	if _, err := OpenShards(t.Context(), secretOf(t, "farm"), f, 1<<16, f.terms); err == nil || !strings.Contains(err.Error(), "allowed are 1048576") {
		t.Errorf("messages above the carrier's largest: %v", err)
	}
	// A shard of another program, say, that counts in another unit: its sum would be another, and so its sensitivity.
	f.shards[2].Close()
	f.shards[2], f.cfg.Facts.Rows = nil, 1<<30
	if err := askShards(t, o); !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), "shard 3 of 3: refuses: found sums in units of") {
		t.Errorf("sums in another unit: %v", err)
	}
	f.cfg.Facts.Rows = 300

	cfg := o.cfg
	cfg.Facts.Adjacency, cfg.Facts.Rows, cfg.Meter = privacy.ReplaceOne, 299, &free{adj: privacy.ReplaceOne}
	if _, err := New(cfg); err == nil {
		t.Error("under replace-one 300 rows at shards are 299 declared ones")
	}
	cfg.Table, cfg.Facts.Rows = f.tables[0], 300
	if _, err := New(cfg); err == nil {
		t.Error("rows at the door beside shards are no error")
	}
	if _, err := NewSecret(make([]byte, 31)); err == nil {
		t.Error("a short secret is no error")
	}
	if s := o.cfg.Shards; s.Rows() != 300 || len(s.Digests()) != 3 || s.Digests()[2] != sha256.Sum256([]byte{2}) {
		t.Errorf("%d rows, digests %x", s.Rows(), s.Digests())
	}
}

// Two copies of one coordinator, as of a virtual machine that was saved and started twice, ask under the same numbers: each gets the sums of
// its own sample, not those that the other was given.
func TestCopiedCoordinator(t *testing.T) {
	o, _, _ := shardedDoor(t)
	unit, err := o.sum.unitOf(shardGrad.Clip.Bound(), o.cfg.Facts.Rows)
	if err != nil {
		t.Fatal(err)
	}
	q := question{Ask: askGradients, Unit: unit, Count: 4, vectors: [][]float64{make([]float64, 4)}}
	if q.Clip, err = typedOf(shardGrad.Clip); err != nil {
		t.Fatal(err)
	}
	copies := [2]Shards{*o.cfg.Shards, *o.cfg.Shards}
	var sums [2][]int64
	for i := range copies {
		s := &copies[i]
		s.counts = nil
		if err := s.draw(t.Context(), sample.Poisson{Rate: 0.3}, noise.SecureStreams(), 0); err != nil {
			t.Fatal(err)
		}
		if sums[i], err = s.sum(q); err != nil {
			t.Fatal(err)
		}
		sums[i] = slices.Clone(sums[i])
	}
	if again, err := copies[1].sum(q); err != nil || !slices.Equal(again, sums[1]) || slices.Equal(sums[0], sums[1]) {
		t.Errorf("sums %v and %v; the second, asked again, %v (%v)", sums[0], sums[1], again, err)
	}
}
