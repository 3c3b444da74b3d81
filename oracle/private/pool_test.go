package private

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
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
		return nil, sum.ErrGivenUp
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

// A listener is a Pool that notes what goes in.
type listener struct {
	sum.Pool
	did   []string
	drawn [][]int64
	asked [][32]byte
}

func (l *listener) Meet(ctx context.Context) (bool, error) {
	l.did = append(l.did, "meet")
	return l.Pool.Meet(ctx)
}

func (l *listener) Sum(ctx context.Context, asked [32]byte, n int, part func() ([]int64, error)) ([]int64, error) {
	return l.Pool.Sum(ctx, asked, n, func() ([]int64, error) {
		v, err := part()
		l.did, l.asked, l.drawn = append(l.did, "part"), append(l.asked, asked), append(l.drawn, slices.Clone(v))
		return v, err
	})
}

// The release of all owners is, bit for bit, that of one process that adds up the owners' exact sums and shares, and it is the same at each
// owner. Each charges Shared, before its part is drawn.
func TestPoolReleases(t *testing.T) {
	poolReleases(t, func(_ *testing.T, owners int) (all []sum.Pool) {
		p := newPlaza(owners, nil)
		for i := range owners {
			all = append(all, &member{plaza: p, at: i})
		}
		return all
	})
}

// poolReleases checks that of the pools that open makes for so many owners.
func poolReleases(t *testing.T, open func(t *testing.T, owners int) []sum.Pool) {
	for _, c := range []struct {
		adj     privacy.Adjacency
		sampler sample.Sampler
	}{
		{privacy.AddRemove, sample.Full{}}, {privacy.AddRemove, sample.Poisson{Rate: 0.4}},
		{privacy.ReplaceOne, sample.Full{}},
	} {
		t.Run(fmt.Sprintf("%v, %T", c.adj, c.sampler), func(t *testing.T) { poolReleasesOf(t, c.adj, c.sampler, open(t, 3)) })
	}
}

func poolReleasesOf(t *testing.T, adj privacy.Adjacency, sampler sample.Sampler, pools []sum.Pool) {
	const dim, n, batches = 5, 90, 2
	rnd := rand.New(rand.NewPCG(1, 2))
	rows := randomRows(rnd, n, dim)
	start := make([]float64, dim)
	for j := range start {
		start[j] = rnd.NormFloat64()
	}
	g := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: 2}}
	h := oracle.Hess{Clip: 0.25, Noise: mech.SymmetricGaussian{Sigma: 3}}
	l := oracle.Loss{Bound: 2, Noise: mech.Gaussian{Sigma: 4}}
	var tables []*data.Table
	var all []*Oracle
	var heard []*listener
	for i, rows := range [][]row{rows[:20], rows[20:50], rows[50:]} {
		tab := table(rows, 2, false)
		c := config(t, tab, adj, n)
		pool := &listener{Pool: pools[i]}
		c.Streams, c.Pool, c.Own, c.Facts.Owners, c.Facts.Colluders = noise.SeededStreams(uint64(i)), pool, tab.Rows(), len(pools), 1
		tables, all, heard = append(tables, tab), append(all, openOracle(t, c)), append(heard, pool)
	}
	// Each owner takes a step along the gradient that was released.
	next := func(w, gradient []float64) []float64 {
		w = slices.Clone(w)
		for j := range w {
			w[j] -= gradient[j]
		}
		return w
	}
	got := make([][]float64, len(all))
	atOnce(t, all, func(i int, o *Oracle) error {
		w := start
		for range batches {
			b, err := o.Batch(t.Context(), sampler, g, h, l)
			if err != nil {
				return err
			}
			a1, err1 := b.Grad(g, w)
			a2, err2 := b.Hess(h, w)
			a3, err3 := b.Loss(l, w)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			got[i] = append(append(append(got[i], a1...), a2...), a3)
			w = next(w, a1)
		}
		return nil
	})
	if t.Failed() {
		return
	}
	if !slices.Equal(got[0], got[1]) || !slices.Equal(got[0], got[2]) {
		t.Fatalf("owners have other releases: %v", got)
	}
	// The same from parts that are made here.
	o := all[0]
	size := sampler.Size(n)
	var want []float64
	w := start
	for batch := range batches {
		draws := make([]sum.Draw, len(tables))
		noises := make([]noise.Source, len(tables))
		for i, tab := range tables {
			draws[i] = sum.Draw{Sampler: sampler, Batch: batch, Total: tab.Rows()}
			streams := noise.SeededStreams(uint64(i))
			if err := errors.Join(streams.Reset(&noises[i], "noise", batch), streams.Key(&draws[i].Key, "sample", batch)); err != nil {
				t.Fatal(err)
			}
		}
		first := len(want)
		for k, q := range []oracle.Query{g, h, l} {
			var r release
			var err error
			s := sum.Sum{W: w}
			switch q := q.(type) {
			case oracle.Grad:
				r, err = o.gradients(q, false)
				s.Of, s.Clip, s.Unit = sum.Gradients, q.Clip, r.unit
			case oracle.Hess:
				r, err = o.hessians(q.Clip, false)
				s.Of, s.Clip, s.Unit = sum.Hessians, clip.Lipschitz{L: q.Clip}, r.unit
			case oracle.Loss:
				r, err = o.losses(q)
				s.Of, s.Bound, s.Unit = sum.Losses, q.Bound, r.unit
			}
			if err != nil {
				t.Fatal(err)
			}
			total := make([]int64, s.Len())
			for i, tab := range tables {
				exact := exactSum(t, tab, all[i].cfg.Model, all[i].cfg.Facts, draws[i], &s)
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
				if !slices.Equal(exact, heard[i].drawn[3*batch+k]) {
					t.Errorf("batch %d: owner %d has another part of %T", batch, i+1, q)
				}
				for j := range total {
					total[j] += exact[j]
				}
			}
			for _, v := range total {
				want = append(want, float64(v>>r.shift)*r.grid/size)
			}
		}
		w = next(w, want[first:first+dim])
	}
	if !slices.Equal(got[0], want) {
		t.Errorf("released %v; the parts add up to %v", got[0], want)
	}
	event := all[1].cfg.Journal.(*memo).charged
	asked := o.cfg.Facts.Cost(sampler, []oracle.Query{g, h, l})
	if len(event) != batches || !privacy.Equal(event[0], asked) || !privacy.Contains[privacy.Shared](event[1]) {
		t.Errorf("charged %v", event)
	}
	if sampler == (sample.Full{}) {
		shared := privacy.Composed{}
		for _, sigma := range []float64{2, 3, 4} {
			shared = append(shared, privacy.Shared{Owners: 3, Colluders: 1, Of: privacy.Gaussian{Sigma: sigma}})
		}
		if !privacy.Equal(event[0], shared) {
			t.Errorf("charged %v", event[0])
		}
	}
	if p := heard[0]; strings.Join(p.did, " ") != "meet part part part meet part part part" || p.asked[0] != heard[2].asked[0] || p.asked[0] == p.asked[2] {
		t.Errorf("%v, asked %x", p.did, p.asked)
	}
}

// exactSum is the exact sum over the rows of a table that are drawn.
func exactSum(t *testing.T, tab *data.Table, m model.Model, facts oracle.Public, d sum.Draw, s *sum.Sum) []int64 {
	t.Helper()
	l, err := NewLocal(tab, m, facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(l.Draw(t.Context(), d), l.Sum(t.Context(), s)); err != nil {
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
		s := sum.Sum{Of: sum.Gradients, Clip: q.Clip, Unit: r.unit, W: w}
		exact := exactSum(t, tab, all[i].cfg.Model, all[i].cfg.Facts, sum.Draw{Sampler: sample.Full{}, Total: tab.Rows()}, &s)
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

// failing is a Pool whose sums fail from one on.
type failing struct {
	sum.Pool
	left int
	err  error
}

func (f *failing) Sum(ctx context.Context, asked [32]byte, n int, part func() ([]int64, error)) ([]int64, error) {
	if f.left--; f.left < 0 {
		return nil, f.err
	}
	return f.Pool.Sum(ctx, asked, n, part)
}

// A batch that fails between its sums releases none of them: the journal would take half a batch for a whole one.
func TestPoolHalfABatch(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(13, 14)), 20, 3)
	g := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	l := oracle.Loss{Bound: 2, Noise: mech.Gaussian{Sigma: 1}}
	for name, c := range map[string]struct {
		err     error // of the second sum
		refuse  bool  // what is charged after the first attempt
		want    error
		charged int
	}{
		"interrupted": {context.Canceled, false, context.Canceled, 1},
		"no retries":  {sum.ErrGivenUp, true, privacy.ErrExhausted, 1},
	} {
		all, _ := owners(t, privacy.AddRemove, []*data.Table{table(rows[:10], 2, false), table(rows[10:], 2, false)}, 0, nil)
		for _, o := range all {
			o.cfg.Pool = &failing{o.cfg.Pool, 1, c.err}
		}
		atOnce(t, all, func(_ int, o *Oracle) error {
			b, err := o.Batch(t.Context(), sample.Full{}, g, l)
			if err != nil {
				return err
			}
			if _, err := b.Grad(g, make([]float64, 3)); err != nil {
				return err
			}
			o.cfg.Meter.(*free).refuse = c.refuse
			if _, err := b.Loss(l, make([]float64, 3)); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			return o.Close()
		})
		for i, o := range all {
			if j := o.cfg.Journal.(*memo); len(j.charged) != c.charged || len(j.released) != 0 {
				t.Errorf("%s: owner %d charged %d times and released %v", name, i+1, len(j.charged), j.released)
			}
		}
	}
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
		"margins":       {sample.Full{}, oracle.Margins{Bound: 6, Noise: mech.Gaussian{Sigma: 1}}},
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

// TestAskedIsPinned: what owners agreed on in earlier runs is what they agree on now, for each query that has a share of
// noise. A field that is new in a query is left out of the text where it is not set.
func TestAskedIsPinned(t *testing.T) {
	m := mech.Share{Sigma: 2, Owners: 3, Colluders: 1}
	r := release{unit: 0x1p-20, grid: 0x1p-10, sens: 1}
	for name, c := range map[string]struct {
		q    oracle.Query
		want string
	}{
		"gradient": {oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 2}}, "b836cfbb5493a4f7"},
		"mean":     {oracle.Mean{Clip: 1, Noise: mech.Gaussian{Sigma: 2}}, "6d3cdd5c581ce61a"},
		"loss":     {oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: 2}}, "301e088a09f7f91a"},
		"labels":   {oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: 2}, Labels: true}, "962704b2f9636e17"},
		"hessian":  {oracle.Hess{Noise: mech.SymmetricGaussian{Sigma: 2}}, "b80d339f627ea3f7"},
	} {
		asked, err := askedOf(c.q, sample.Full{}, m, r, 5)
		if got := fmt.Sprintf("%x", asked[:8]); err != nil || got != c.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
	}
}
