package remote

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
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
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
	cfg    private.Config
	terms  map[string][]byte
	rows   *Shards
	shards []*Shard
	times  int                                              // that an answer is taken
	carry  func(shard int, question []byte) ([]byte, error) // nil: to the shards
	asked  [][]byte
	heard  [][]byte
}

func newFarm(t testing.TB, cfg private.Config, tables []*data.Table) *farm {
	f := &farm{t: t, tables: tables, cfg: cfg, shards: make([]*Shard, len(tables)), times: 1, terms: map[string][]byte{"schema": {1}, "model": {2}}}
	return f
}

func (f *farm) Shards() int  { return len(f.tables) }
func (f *farm) Largest() int { return 1 << 20 }

func (f *farm) shard(i int) *Shard {
	if f.shards[i] == nil {
		rows, err := private.NewLocal(f.tables[i], f.cfg.Model, f.cfg.Facts, 1+i)
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(rows.Close)
		s, err := NewShard(ShardConfig{
			Rows: rows, Facts: f.cfg.Facts, Digest: sha256.Sum256([]byte{byte(i)}), Terms: f.terms,
			Secret: secretOf(f.t, "farm"), Index: i, Count: len(f.tables), Compared: []byte{byte(i)},
			Hashes: func(key [32]byte) []uint64 { return data.Fingerprints(f.tables[i], key[:]) },
		})
		if err != nil {
			f.t.Fatal(err)
		}
		f.shards[i] = s
	}
	return f.shards[i]
}

func (f *farm) Ask(_ context.Context, questions [][]byte, take func(int, []byte) error) error {
	for i, q := range questions {
		if len(q) == 0 {
			continue
		}
		answer, err := f.askOne(i, q)
		if err != nil {
			return fmt.Errorf("shard %d of %d: %w", i+1, len(questions), err)
		}
		for range f.times {
			if err := take(i, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *farm) askOne(i int, question []byte) ([]byte, error) {
	f.asked = append(f.asked, bytes.Clone(question))
	if f.carry != nil {
		return f.carry(i, question)
	}
	answer, err := f.shard(i).Answer(question)
	if u := new(Unfit); errors.As(err, &u) { // its worker goes
		err = nil
	}
	f.heard = append(f.heard, bytes.Clone(answer))
	return answer, err
}

func (f *farm) open(t testing.TB, ctx context.Context) *Shards {
	t.Helper()
	s, err := Open(ctx, secretOf(t, "farm"), f, f.cfg.Facts, f.terms, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// memo is a meter that admits everything, and a journal that counts.
type memo struct {
	adjacency         privacy.Adjacency
	charged, released int
}

func (m *memo) Adjacency() privacy.Adjacency { return m.adjacency }
func (m *memo) Release([][]float64) error    { m.released++; return nil }

func (m *memo) Charge(privacy.Event) error { m.charged++; return nil } // once by the oracle's meter, once by its journal

// part is a table of rows of four features.
func part(rnd *rand.Rand, rows int) *data.Table {
	b := &data.Block{N: rows, Dim: 4}
	for range rows {
		for range 4 {
			b.X = append(b.X, float32(math.Trunc((rnd.Float64()-0.5)*(1<<20))/(1<<20)))
		}
		b.Y, b.Norm = append(b.Y, float32(rnd.IntN(2))), append(b.Norm, 1)
	}
	t := &data.Table{Dim: 4, Classes: 2, NormBound: 1, Unit: 0x1p-20, Labeled: true}
	if rows > 0 {
		t.Blocks = []*data.Block{b}
	}
	return t
}

// sharded is an oracle over three shards, with their carrier.
func sharded(t *testing.T) (*private.Oracle, *farm, *memo) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(32, 1))
	m, err := model.New("logistic", model.Options{Dim: 4, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	kept := &memo{adjacency: privacy.AddRemove}
	cfg := private.Config{Table: part(rnd, 0), Model: m, Meter: kept, Journal: kept, Streams: noise.SecureStreams(),
		Facts: oracle.Public{Dim: 4, Rows: 300, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25, Curved: true}}
	f := newFarm(t, cfg, []*data.Table{part(rnd, 117), part(rnd, 0), part(rnd, 183)})
	f.rows = f.open(t, t.Context())
	f.cfg.Summer = f.rows
	o, err := private.New(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o, f, kept
}

var shardGrad = oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}

func askShards(t *testing.T, o *private.Oracle) error {
	t.Helper()
	b, err := o.Batch(t.Context(), sample.Poisson{Rate: 0.3}, shardGrad)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Grad(shardGrad, make([]float64, 4))
	return err
}

// Who carries the messages learns their sizes, which are those of public numbers: not the sample's key, no sum, no
// count of rows; two messages of the same content have nothing in common.
func TestShardMessagesAreSealed(t *testing.T) {
	o, f, _ := sharded(t)
	for range 5 {
		if err := askShards(t, o); err != nil {
			t.Fatal(err)
		}
	}
	key := f.rows.bought.Key
	rows := binary.LittleEndian.AppendUint64(nil, uint64(f.tables[0].Rows()))
	for _, m := range slices.Concat(f.asked, f.heard) {
		body := m[headSize:]
		for _, secret := range [][]byte{key[:], []byte("gradients"), []byte("Poisson"), rows, encodeCounts(nil, f.rows.counts[:1])} {
			if bytes.Contains(body, secret) {
				t.Errorf("a message holds % x in the clear", secret)
			}
		}
	}
	sizes := map[int]bool{}
	for _, m := range f.heard[6:] { // behind the hello and what shards share
		sizes[len(m)] = true
	}
	if len(sizes) != 1 {
		t.Errorf("answers have sizes %v: they tell of rows", sizes)
	}
	for _, v := range []any{secretOf(t, "farm"), *secretOf(t, "farm"), f.shard(0), f.rows, noise.Key{1, 2, 3}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s", "%d"} {
			if _, plain := v.(Secret); !plain && len(fmt.Sprintf(verb, v)) > len("remote.Shards") {
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
			return seal(s.answers, nil, h, make([]byte, 1+8*4), q), err
		},
		"too few sums": func(f *farm, i int, q []byte) ([]byte, error) {
			h, _ := readHead(q)
			s, err := secretOf(t, "farm").session(h.salt)
			return seal(s.answers, nil, h, make([]byte, 1+8*3), q), err
		},
		"the answer to what a copy of the coordinator asked under that number": func(f *farm, i int, q []byte) ([]byte, error) {
			h, _ := readHead(q)
			s, err := secretOf(t, "farm").session(h.salt)
			if err != nil {
				return nil, err
			}
			text, err := unseal(s.asks, nil, q, nil)
			if err != nil {
				t.Fatal(err)
			}
			var r reader
			copied, err := r.read(text)
			if err != nil {
				t.Fatal(err)
			}
			copied.Key = noise.Key{}
			return straight(f, i, seal(s.asks, nil, h, copied.append(nil, r.forms.text), nil)), nil
		},
		"no carrier": func(f *farm, i int, q []byte) ([]byte, error) { return nil, errors.New("the line is cut") },
	} {
		o, f, journal := sharded(t)
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
		if journal.charged != 2 || journal.released != 0 {
			t.Errorf("%s: %d charges, %d releases", name, journal.charged, journal.released)
		}
	}

	// A carrier that brings each answer twice, or none, is refused, too.
	for _, times := range []int{0, 2} {
		o, f, journal := sharded(t)
		f.times = times
		if err := askShards(t, o); err == nil || !strings.HasPrefix(err.Error(), "shard 1 of 3: ") || journal.released != 0 {
			t.Errorf("answers taken %d times: %v, %d releases", times, err, journal.released)
		}
		o.Close()
	}

	// What a shard is asked by others than its coordinator it does not answer.
	_, f, _ := sharded(t)
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
	o, f, journal := sharded(t)
	for _, q := range []oracle.Query{
		oracle.Grad{Clip: clip.None{}, Noise: mech.None{}},
		oracle.Loss{Noise: mech.None{}},
		oracle.Search{Noise: mech.AboveThreshold{Max: 3}, Off: true},
		oracle.Select{Off: true},
		oracle.Minimize{How: oracle.Exact{}},
	} {
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil || journal.charged > 0 {
			t.Errorf("%T: %v, %d charges", q, err, journal.charged)
		}
	}

	_, err := Open(t.Context(), secretOf(t, "farm"), f, f.cfg.Facts, map[string][]byte{"schema": {1}, "model": {3}}, 1)
	if u := new(Unfit); !errors.As(err, &u) || !strings.Contains(err.Error(), "shard ") || !strings.Contains(err.Error(), "another model") {
		t.Errorf("another model: %v", err)
	}
	if _, err := Open(t.Context(), secretOf(t, "another"), f, f.cfg.Facts, f.terms, 1); err == nil {
		t.Error("shards answer to another secret")
	}
	if _, err := Open(t.Context(), secretOf(t, "farm"), f, oracle.Public{Dim: 1 << 16}, f.terms, 1); err == nil || !strings.Contains(err.Error(), "the carrier takes 1048576") {
		t.Errorf("messages above the carrier's largest: %v", err)
	}
	// A shard of another program, say, that counts in another unit: its sum would be another, and so its sensitivity.
	f.shards[2], f.cfg.Facts.Rows = nil, 1<<30
	if err := askShards(t, o); !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), `shard 3 of 3: refuses: "found sums in units of`) {
		t.Errorf("sums in another unit: %v", err)
	}
	f.cfg.Facts.Rows = 300

	cfg := f.cfg
	cfg.Facts.Adjacency, cfg.Facts.Rows, cfg.Meter = privacy.ReplaceOne, 299, &memo{adjacency: privacy.ReplaceOne}
	if _, err := private.New(cfg); err == nil {
		t.Error("under replace-one 300 rows at shards are 299 declared ones")
	}
	cfg.Table, cfg.Facts.Rows = f.tables[0], 300
	if _, err := private.New(cfg); err == nil {
		t.Error("rows of a table beside shards are no error")
	}
	units := f.cfg.Facts
	units.UnitRows = 2
	for _, of := range [][][16]byte{nil, {{1}}} {
		if _, err := NewShard(ShardConfig{Rows: f.rows, Hashes: func([32]byte) []uint64 { return nil }, Units: of, Facts: units, Secret: secretOf(t, "farm"), Count: 1}); err == nil {
			t.Errorf("a shard of units of several rows, with the ids of %d", len(of))
		}
	}
	if _, err := NewSecret(make([]byte, 31)); err == nil {
		t.Error("a short secret is no error")
	}
	if s := f.rows; s.Rows() != 300 || len(s.Digests()) != 3 || s.Digests()[2] != sha256.Sum256([]byte{2}) {
		t.Errorf("%d rows, digests %x", s.Rows(), s.Digests())
	}
}

// Two copies of one coordinator, as of a virtual machine that was saved and started twice, ask under the same numbers: each gets the sums of
// its own sample, not those that the other was given.
func TestCopiedCoordinator(t *testing.T) {
	_, f, _ := sharded(t)
	asked := &sum.Sum{Of: sum.Gradients, Clip: shardGrad.Clip, W: make([]float64, 4)}
	asked.Unit = 0x1p-38 // of a clip bound of 1 and 300 rows of norm up to 1
	copies := [2]Shards{*f.rows, *f.rows}
	var sums [2][]int64
	ask := func(s *Shards) []int64 {
		if err := s.Sum(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		counts := make([]int64, 4)
		s.Take(counts, 0)
		return counts
	}
	for i := range copies {
		s := &copies[i]
		s.counts = nil
		d := sum.Draw{Sampler: sample.Poisson{Rate: 0.3}, Total: s.Rows()}
		if err := noise.SecureStreams().Key(&d.Key, "sample", 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Draw(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		sums[i] = ask(s)
	}
	if again := ask(&copies[1]); !slices.Equal(again, sums[1]) || slices.Equal(sums[0], sums[1]) {
		t.Errorf("sums %v and %v; the second, asked again, %v", sums[0], sums[1], again)
	}
}

// Another holder of the secret asks a shard under the coordinator's session and number, and under the key of its sample, but for all rows. The
// sample of that question does not stay for the coordinator's.
func TestForgedQuestionToAWorker(t *testing.T) {
	_, f, _ := sharded(t)
	d := sum.Draw{Sampler: sample.Poisson{Rate: 0.5}, Batch: 1, Total: f.rows.Rows()}
	if err := noise.SecureStreams().Key(&d.Key, "sample", 0); err != nil {
		t.Fatal(err)
	}
	total := func(batch int) []int64 {
		d.Batch = batch
		if err := f.rows.Draw(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		of := &sum.Sum{Of: sum.Gradients, Clip: shardGrad.Clip, W: make([]float64, 4), Unit: 0x1p-38}
		if err := f.rows.Sum(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		counts := make([]int64, 4)
		f.rows.Take(counts, 0)
		return counts
	}
	want := total(1)
	total(2)
	f.carry = func(i int, q []byte) ([]byte, error) {
		h, _ := readHead(q)
		text, err := unseal(f.rows.session.asks, nil, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		var r reader
		asked, err := r.read(text)
		if err != nil {
			t.Fatal(err)
		}
		asked.Sampler = sample.Full{}
		form, err := asked.form.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.shard(i).Answer(seal(f.rows.session.asks, nil, h, asked.append(nil, form), nil)); err != nil {
			t.Fatal(err)
		}
		if f.shard(i).drawnBy.sampler != (sample.Full{}) {
			t.Fatal("the forged question was not answered")
		}
		return f.shard(i).Answer(q)
	}
	if got := total(1); !slices.Equal(got, want) {
		t.Errorf("found the sum %d, want %d", got, want)
	}
}

// Numbers that no question of a coordinator has are refused, no matter who sends them.
func TestQuestionsThatDoNotFit(t *testing.T) {
	facts := oracle.Public{Dim: 4, Classes: 2, Adjacency: privacy.AddRemove}
	w := make([]float64, 4)
	for name, q := range map[string]question{
		"negative count": {form: form{Ask: sum.Classes, Count: -1}},
		"huge count":     {form: form{Ask: sum.Classes, Count: 1 << 60}},
		"other count":    {form: form{Ask: sum.Gradients, Count: 5}, vectors: [][]float64{w}},
		"a seat, of a coordinator that had workers add up among themselves": {form: form{Ask: "seat"}, sketches: make([]byte, 32)},
		"parameters": {form: form{Ask: sum.Hessians, Count: 15}, vectors: [][]float64{make([]float64, 5)}},
	} {
		if _, err := q.sum(&facts); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, q := range map[string]question{
		"total":    {form: form{Sampler: sample.Full{}}, turn: turn{Total: 1 << 31}},
		"negative": {form: form{Sampler: sample.Full{}}, turn: turn{Total: -1}},
		"from":     {form: form{Sampler: sample.Full{}}, turn: turn{Total: 3, From: 4}},
		"rate":     {form: form{Sampler: sample.Poisson{Rate: 2}}, turn: turn{Total: 3}},
		"fixed":    {form: form{Sampler: sample.Fixed{M: 1, N: 4}}, turn: turn{Total: 3}},
	} {
		if q.checkSample(privacy.ReplaceOne) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	good := question{form: form{Sampler: sample.Poisson{Rate: 0.5}}, turn: turn{Total: 3, From: 3}}
	if err := good.checkSample(privacy.AddRemove); err != nil {
		t.Error(err)
	}
}

// What a process with the secret says cannot move a terminal's cursor, end its line or fill it.
func TestSaid(t *testing.T) {
	for text, want := range map[string]string{
		"found another model": `"found another model"`, "\x1b[2J\nshard 1\u202e\xff": `"\x1b[2J\nshard 1\u202e\xff"`, "": `""`,
		strings.Repeat("x", mostSaid+1): `"` + strings.Repeat("x", mostSaid) + `" and more`,
	} {
		if got := said([]byte(text)); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
	_, f, _ := sharded(t)
	for what, want := range map[byte]string{answerFailed: `shard 1 of 3: refuses: "\r\x1b"`, answerUnfit: `shard 1 of 3: "\r\x1b"`} {
		f.carry = func(_ int, q []byte) ([]byte, error) {
			h, err := readHead(q)
			return seal(f.rows.session.answers, nil, h, []byte{what, '\r', 0x1b}, q), err
		}
		err := f.rows.ask(t.Context(), question{form: form{Ask: askUnits}}, func(int, []byte) error { return nil })
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
