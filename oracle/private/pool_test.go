package private

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// plaza adds up the parts of owners in one process, without masks.
type plaza struct {
	mu      sync.Mutex
	all     *sync.Cond
	owners  int
	waiting int
	round   int
	parts   map[int][]int64 // of the round
	total   []int64
	giveUp  func(round int, asked [32]byte) bool
	up      bool
}

func newPlaza(owners int, giveUp func(round int, asked [32]byte) bool) *plaza {
	p := &plaza{owners: owners, parts: map[int][]int64{}, giveUp: giveUp}
	p.all = sync.NewCond(&p.mu)
	return p
}

// wait returns when all owners wait; the last to come calls last.
func (p *plaza) wait(last func()) {
	round := p.round
	if p.waiting++; p.waiting == p.owners {
		last()
		p.waiting, p.round = 0, p.round+1
		p.all.Broadcast()
	}
	for p.round == round {
		p.all.Wait()
	}
}

// member is one owner's Pool.
type member struct {
	*plaza
	at    int
	did   []string // meet, part, sum
	drawn [][]int64
	asked [][32]byte
	held  bool
}

func (m *member) Meet(context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did = append(m.did, "meet")
	m.wait(func() {})
	return m.held, nil
}

func (m *member) Sum(_ context.Context, asked [32]byte, n int, part func() ([]int64, error)) ([]int64, error) {
	v, err := part()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did, m.asked = append(m.did, "part"), append(m.asked, asked)
	m.drawn = append(m.drawn, slices.Clone(v))
	m.parts[m.at] = m.drawn[len(m.drawn)-1]
	m.wait(func() {
		m.total = make([]int64, n)
		for _, v := range m.parts {
			for j := range v {
				m.total[j] += v[j]
			}
		}
		m.up = m.giveUp != nil && m.giveUp(m.round, asked)
	})
	if m.up {
		return nil, ErrGivenUp
	}
	return slices.Clone(m.total), nil
}

// owners are oracles over parts of a table, and their pools.
func owners(t *testing.T, adj privacy.Adjacency, tables []*data.Table, colluders int, giveUp func(int, [32]byte) bool) (all []*Oracle, pools []*member) {
	p := newPlaza(len(tables), giveUp)
	rows := 0
	for _, tab := range tables {
		rows += tab.Rows()
	}
	for i, tab := range tables {
		c := config(t, tab, adj, rows)
		m := &member{plaza: p, at: i}
		c.Streams, c.Pool, c.Own, c.Facts.Owners, c.Facts.Colluders = noise.SeededStreams(uint64(i)), m, tab.Rows(), len(tables), colluders
		all, pools = append(all, openOracle(t, c)), append(pools, m)
	}
	return all, pools
}

// atOnce calls f for each owner at once.
func atOnce(t *testing.T, all []*Oracle, f func(i int, o *Oracle) error) {
	t.Helper()
	var wg sync.WaitGroup
	for i, o := range all {
		wg.Go(func() {
			if err := f(i, o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// The release of all owners is, bit for bit, that of one process that adds up the owners' exact sums and shares, and it is the same at each
// owner. Each charges Shared, before its part is drawn.
func TestPoolReleases(t *testing.T) {
	const dim, n = 5, 90
	rnd := rand.New(rand.NewPCG(1, 2))
	rows := randomRows(rnd, n, dim)
	w := make([]float64, dim)
	for j := range w {
		w[j] = rnd.NormFloat64()
	}
	var tables []*data.Table
	for i := range 3 {
		tables = append(tables, table(rows[i*30:][:30], 2, false))
	}
	g := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: 2}}
	h := oracle.Hess{Clip: 0.25, Noise: mech.SymmetricGaussian{Sigma: 3}}
	l := oracle.Loss{Bound: 2, Noise: mech.Gaussian{Sigma: 4}}
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		all, pools := owners(t, adj, tables, 1, nil)
		var got [3][]float64
		atOnce(t, all, func(i int, o *Oracle) error {
			b, err := o.Batch(t.Context(), sample.Full{}, g, h, l)
			if err != nil {
				return err
			}
			a1, err1 := b.Grad(g, w)
			a2, err2 := b.Hess(h, w)
			a3, err3 := b.Loss(l, w)
			got[i] = slices.Concat(a1, a2, []float64{a3})
			return errors.Join(err1, err2, err3)
		})
		if !slices.Equal(got[0], got[1]) || !slices.Equal(got[0], got[2]) {
			t.Fatalf("owners have other releases: %v", got)
		}
		// The same from parts that are made here.
		o := all[0]
		var want []float64
		noises := make([]noise.Source, len(tables))
		for i := range noises {
			if err := noise.SeededStreams(uint64(i)).Reset(&noises[i], "noise", 0); err != nil {
				t.Fatal(err)
			}
		}
		for k, q := range []oracle.Query{g, h, l} {
			var r release
			var err error
			s := Sum{W: w}
			switch q := q.(type) {
			case oracle.Grad:
				r, err = o.gradients(q, false)
				s.Of, s.Clip, s.Unit = Gradients, q.Clip, r.unit
			case oracle.Hess:
				r, err = o.hessians(q.Clip, false)
				s.Of, s.Clip, s.Unit = Hessians, clip.Lipschitz{L: q.Clip}, r.unit
			case oracle.Loss:
				r, err = o.losses(q)
				s.Of, s.Bound, s.Unit = Losses, q.Bound, r.unit
			}
			if err != nil {
				t.Fatal(err)
			}
			total := make([]int64, s.Len())
			for i, tab := range tables {
				exact := exactSum(t, tab, all[i].cfg.Model, all[i].cfg.Facts, &s)
				mech.RoundShift(exact, r.shift)
				m, err := o.shareOf(q)
				if err == nil {
					err = m.AddPart(exact, r.grid, r.sens, &noises[i])
				}
				if err != nil {
					t.Fatal(err)
				}
				for j := range exact {
					exact[j] <<= r.shift
				}
				if !slices.Equal(exact, pools[i].drawn[k]) {
					t.Errorf("%v: owner %d has another part of %T", adj, i+1, q)
				}
				for j := range total {
					total[j] += exact[j]
				}
			}
			for _, v := range total {
				want = append(want, float64(v>>r.shift)*r.grid/n)
			}
		}
		if !slices.Equal(got[0], want) {
			t.Errorf("%v: released %v; the parts add up to %v", adj, got[0], want)
		}
		event := all[1].cfg.Journal.(*memo).charged
		asked := privacy.Composed{}
		for _, sigma := range []float64{2, 3, 4} {
			asked = append(asked, privacy.Shared{Owners: 3, Colluders: 1, Of: privacy.Gaussian{Sigma: sigma}})
		}
		if len(event) != 1 || !privacy.Equal(event[0], asked) {
			t.Errorf("charged %v", event)
		}
		if strings.Join(pools[0].did, " ") != "meet part part part" || pools[0].asked[0] != pools[2].asked[0] || pools[0].asked[0] == pools[0].asked[2] {
			t.Errorf("%v, asked %x", pools[0].did, pools[0].asked)
		}
	}
}

// exactSum is the exact sum over all rows of a table.
func exactSum(t *testing.T, tab *data.Table, m model.Model, facts oracle.Public, s *Sum) []int64 {
	t.Helper()
	l, err := NewLocal(tab, m, facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(l.Draw(t.Context(), Draw{Sampler: sample.Full{}, Total: tab.Rows()}), l.Sum(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	v := make([]int64, s.Len())
	l.Take(v, 0)
	return v
}

// A part is the exact sum with one share of noise, of deviation σΔ/√(n−c). 4,000 numbers; the test fails a sound build once in 10⁷ seeds, and its
// seed is fixed.
func TestPoolPartHasItsShare(t *testing.T) {
	const dim, times = 40, 100
	rows := randomRows(rand.New(rand.NewPCG(3, 4)), 20, dim)
	tables := []*data.Table{table(rows[:10], 2, false), table(rows[10:], 2, false), table(nil, 2, false)}
	tables[2] = table(rows[:1], 2, false)
	all, pools := owners(t, privacy.AddRemove, tables, 1, nil)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 2}}
	w := make([]float64, dim)
	for range times {
		atOnce(t, all, func(_ int, o *Oracle) error {
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err == nil {
				_, err = b.Grad(q, w)
			}
			return err
		})
	}
	r, err := all[0].gradients(q, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, tab := range tables {
		s := Sum{Of: Gradients, Clip: q.Clip, Unit: r.unit, W: w}
		exact := exactSum(t, tab, all[i].cfg.Model, all[i].cfg.Facts, &s)
		mech.RoundShift(exact, r.shift)
		squares := 0.0
		for _, part := range pools[i].drawn {
			for j, v := range part {
				squares += math.Pow(float64(v>>r.shift-exact[j])*r.grid, 2)
			}
		}
		want := 2 * r.sens / math.Sqrt2
		if got := math.Sqrt(squares / (dim * times)); math.Abs(got-want) > 5.5*want/math.Sqrt(2*dim*times) {
			t.Errorf("owner %d: the noise of its part has the deviation %v; want %v", i+1, got, want)
		}
	}
}

// Where the owners give an attempt up, each meets, charges and draws again: another sample, other noise, another part. What was answered stays.
func TestPoolAttempts(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(5, 6)), 60, 4)
	tables := []*data.Table{table(rows[:30], 2, false), table(rows[30:], 2, false)}
	parts := 0
	all, pools := owners(t, privacy.AddRemove, tables, 0, func(int, [32]byte) bool { parts++; return parts == 2 || parts == 3 })
	g := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	l := oracle.Loss{Bound: 2, Noise: mech.Gaussian{Sigma: 1}}
	w := make([]float64, 4)
	atOnce(t, all, func(_ int, o *Oracle) error {
		b, err := o.Batch(t.Context(), sample.Poisson{Rate: 0.5}, g, l)
		if err != nil {
			return err
		}
		_, err1 := b.Grad(g, w)
		_, err2 := b.Loss(l, w)
		return errors.Join(err1, err2)
	})
	for i, o := range all {
		journal := o.cfg.Journal.(*memo)
		if len(journal.charged) != 3 || o.cfg.Meter.(*free).charges != 3 || o.Batches() != 3 || !privacy.Equal(journal.charged[0], journal.charged[2]) {
			t.Errorf("owner %d: charged %v", i+1, journal.charged)
		}
		if len(journal.released) != 1 || len(journal.released[0]) != 2 {
			t.Errorf("owner %d: released %v", i+1, journal.released)
		}
		if did := strings.Join(pools[i].did, " "); did != "meet part part meet part meet part" {
			t.Errorf("owner %d: %s", i+1, did)
		}
		if d := pools[i].drawn; d[1][0] == d[2][0] || d[2][0] == d[3][0] {
			t.Errorf("owner %d: the same part again: %v", i+1, d)
		}
	}
	// A refused charge ends the batch, and nothing more is drawn.
	all[0].cfg.Meter.(*free).refuse, all[1].cfg.Meter.(*free).refuse = true, true
	atOnce(t, all, func(i int, o *Oracle) error {
		drawn := len(pools[i].drawn)
		if _, err := o.Batch(t.Context(), sample.Full{}, g); !errors.Is(err, privacy.ErrExhausted) || len(pools[i].drawn) != drawn {
			t.Errorf("%v", err)
		}
		return nil
	})
}

// Exact sums are known modulo 2⁶⁴ units. Two that are the same so, and differ as counts of the coarser grid, give one total: what is published has no
// digits above those of the release.
func TestPoolWraps(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(11, 12)), 4, 2)
	tables := []*data.Table{table(rows[:2], 2, false), table(rows[2:], 2, false)}
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	var totals [2][]int64
	for k := range totals {
		all, pools := owners(t, privacy.AddRemove, tables, 0, nil)
		atOnce(t, all, func(i int, o *Oracle) error {
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err != nil {
				return err
			}
			r, err := o.gradients(q, false)
			if err != nil {
				return err
			}
			if r.shift == 0 {
				t.Error("the grid is the unit: the test shows nothing")
			}
			sum, err := b.(*batch).total(q, r, 1, func() ([]int64, error) {
				return []int64{12345 + int64(k)<<(64-r.shift)}, nil
			})
			if err == nil && i == 0 {
				totals[k] = append(slices.Clone(sum), pools[0].total...)
			}
			return err
		})
	}
	if !slices.Equal(totals[0], totals[1]) {
		t.Errorf("%d", totals)
	}
}

// An attempt that an earlier process charged is not charged again, and has no part from this one.
func TestPoolHeld(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(7, 8)), 20, 3)
	all, pools := owners(t, privacy.AddRemove, []*data.Table{table(rows[:10], 2, false), table(rows[10:], 2, false)}, 0, nil)
	g := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	pools[0].held, pools[1].held = true, true
	atOnce(t, all, func(i int, o *Oracle) error {
		b, err := o.Batch(t.Context(), sample.Full{}, g)
		if err != nil {
			return err
		}
		if _, err := b.Grad(g, make([]float64, 3)); !errors.Is(err, errHeld) {
			t.Errorf("%v", err)
		}
		if n := len(o.cfg.Journal.(*memo).charged); n != 0 {
			t.Errorf("charged %d times", n)
		}
		return nil
	})
}

// What has no theorem with shared noise is refused before anybody meets.
func TestPoolRefuses(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(9, 10)), 20, 3)
	all, pools := owners(t, privacy.ReplaceOne, []*data.Table{table(rows[:10], 2, false), table(rows[10:], 2, false)}, 0, nil)
	grad := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	for name, q := range map[string]struct {
		s sample.Sampler
		q oracle.Query
	}{
		"no noise":      {sample.Full{}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.None{}}},
		"no bound":      {sample.Full{}, oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}},
		"Laplace":       {sample.Full{}, oracle.Loss{Bound: 1, Noise: mech.Laplace{Scale: 1}}},
		"bare Hessian":  {sample.Full{}, oracle.Hess{Clip: 1, Off: true}},
		"search":        {sample.Full{}, oracle.Search{Bound: 1, Noise: mech.AboveThreshold{Threshold: 1, Query: 1}}},
		"choice":        {sample.Full{}, oracle.Select{Epsilon: 1}},
		"fixed batches": {sample.Fixed{M: 2, N: 20}, grad},
		"small shares":  {sample.Full{}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1e-12}}},
	} {
		if _, err := all[0].Batch(t.Context(), q.s, q.q); err == nil || len(pools[0].did) != 0 {
			t.Errorf("%s: %v, %v", name, err, pools[0].did)
		}
	}
	tab := table(rows[:10], 2, false)
	for name, change := range map[string]func(*Config){
		"no pool":      func(c *Config) { c.Pool = nil },
		"one owner":    func(c *Config) { c.Facts.Owners = 0 },
		"colluders":    func(c *Config) { c.Facts.Colluders = 1 },
		"no own rows":  func(c *Config) { c.Own = 0 },
		"other rows":   func(c *Config) { c.Own = 11 },
		"both moves":   func(c *Config) { c.Facts.Presence = true },
		"a part":       func(c *Config) { c.Part = "1 of 2" },
		"units of any": func(c *Config) { c.Facts.UnitRows = 2 },
	} {
		c := config(t, tab, privacy.ReplaceOne, 20)
		c.Pool, c.Own, c.Facts.Owners = pools[0], 10, 2
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
