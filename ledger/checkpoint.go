package ledger

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A checkpoint is the state of all datasets after an entry, stored beside the chain: opening a ledger reads it and the
// entries after it (docs/adr/0086-checkpoint-of-a-ledger.md). Its sum is an HMAC under the ledger's key.
type checkpoint struct {
	head    Head   // the last entry that the state contains
	time    string // of that entry
	version string // of the fold that made the state
	state   string // savedBooks in JSON
	mac     string
}

// everyEntries is how many entries may follow a checkpoint before an append writes a new one. A small ledger has none:
// each command reads its whole chain, in less than 20 ms.
const everyEntries = 1000

// stateShare is the bytes of state per entry: a checkpoint of n KiB, above everyEntries KiB, waits
// for n entries. So each append pays about as much for writing it as for reading the entries after
// it.
const stateShare = 1 << 10

// foldVersion changes with the meaning of a stored state: with a field, and with any change to what apply or the
// accounts compute from an entry. TestFoldIsPinned fails where the numbers change without it.
const foldVersion = "1"

// fold is foldVersion with the version of Sotto: another release reads the whole chain once.
var fold = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return foldVersion
	}
	version := info.Main.Version
	for _, d := range info.Deps { // the program is another module's
		if d.Path == "github.com/sottodp/sotto" {
			version = d.Version
		}
	}
	return foldVersion + " " + version
})

// sum is the HMAC over all other fields, each after its length.
func (c checkpoint) sum(key []byte) string {
	h := hmac.New(sha256.New, key)
	var size [8]byte
	for _, field := range []string{"sotto ledger checkpoint 1", strconv.FormatInt(c.head.Seq, 10), c.head.Hash, c.time,
		c.version, c.state} {
		binary.BigEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write([]byte(field))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// What a store lets this process do with a checkpoint. Each right includes the ones before it,
// except that canCreate means that there is no table to read yet.
const (
	noCheckpoint = iota // no right to make or read the table
	canCreate
	canRead
	canWrite
)

// stored reads the checkpoint. can says what the store allows. Authentic is false where there is none, or one that was
// not written under the ledger's key; damaged tells the two apart.
func (l *Ledger) stored(ctx context.Context, q querier) (c checkpoint, can int, authentic, damaged bool, err error) {
	if err = q.QueryRowContext(ctx, l.store.checkpoint).Scan(&can); err != nil || can < canRead {
		return c, can, false, false, err
	}
	there, err := found(q.QueryRowContext(ctx, selectCheckpoint), &c.head.Seq, &c.head.Hash, &c.time, &c.version, &c.state,
		&c.mac)
	if err != nil || !there || c.head.Seq == 0 { // Accept sets 0
		return checkpoint{}, can, false, false, err
	}
	authentic = hmac.Equal([]byte(c.mac), []byte(c.sum(l.key)))
	return c, can, authentic, !authentic, nil
}

// onChain checks that the chain holds the entry of an authentic checkpoint. The error is a *WitnessError: a ledger that
// lacks it is an older copy, or one that went on by itself (R25).
func (l *Ledger) onChain(ctx context.Context, q querier, c checkpoint) error {
	at, err := parseTime(c.time)
	if err != nil {
		return &ChainError{c.head.Seq, "the time in its checkpoint is malformed"}
	}
	return l.continues(ctx, q, headSeen{Head: c.head, Time: at})
}

// load gives the books of the stored checkpoint, or empty ones: then the whole chain is read.
func (l *Ledger) load(ctx context.Context, q querier) (*books, error) {
	c, _, authentic, _, err := l.stored(ctx, q)
	if err == nil && authentic {
		err = l.onChain(ctx, q, c)
	}
	if err != nil {
		return nil, err
	}
	if authentic && c.version == fold() {
		if b, err := c.books(); err == nil {
			l.prefix.note(c.head.Seq, len(c.state))
			return b, nil
		}
	}
	return newBooks(), nil
}

// checkpoint stores a new checkpoint if enough entries follow the last one. It refuses a ledger that lacks the entry of
// an authentic one, and overwrites one that is not authentic or of another version.
func (w *writer) checkpoint() error {
	due := func(seq int64, size int) bool {
		every := int64(everyEntries)
		if w.l.store.disk.Every > 0 {
			every = w.l.store.disk.Every
		}
		return w.head.Seq-seq >= max(every, int64(size)/stateShare)
	}
	if w.drops || !due(w.l.prefix.checkpoint()) {
		return nil
	}
	c, can, authentic, _, err := w.l.stored(w.ctx, w.tx)
	if err == nil && authentic {
		err = w.l.onChain(w.ctx, w.tx, c)
	}
	if err != nil || can == noCheckpoint || can == canRead {
		return err
	}
	if authentic && c.version == fold() && !due(c.head.Seq, len(c.state)) { // another process was faster
		w.saved = &c
		return nil
	}
	b, err := w.state()
	if broken := (*ChainError)(nil); errors.As(err, &broken) || errors.Is(err, errNewer) {
		return nil // no checkpoint of a chain that does not hold
	} else if err != nil {
		return err
	}
	if c, err = b.checkpoint(w.l.key); err != nil {
		return err
	}
	if can == canCreate {
		if _, err := w.tx.ExecContext(w.ctx, createCheckpoint); err != nil {
			return err
		}
	}
	w.saved = &c
	_, err = w.tx.ExecContext(w.ctx, upsertCheckpoint, c.head.Seq, c.head.Hash, c.time, c.version, c.state, c.mac)
	return err
}

// dropCheckpoint forgets the stored checkpoint, whatever it says, and what this Ledger remembers.
func (w *writer) dropCheckpoint() error {
	w.drops = true
	w.l.prefix.remember(newBooks(), w.l.prefix.known())
	var can int
	if err := w.tx.QueryRowContext(w.ctx, w.l.store.checkpoint).Scan(&can); err != nil || can < canWrite {
		return err
	}
	_, err := w.tx.ExecContext(w.ctx, dropCheckpoint)
	return err
}

// agrees checks an authentic checkpoint of this version against books that were read from the entries alone.
func (c checkpoint) agrees(b *books) error {
	other := errors.New("the checkpoint after it holds another state than the entries; delete the row of table sotto_checkpoint, and Sotto makes it again from them")
	was, err := c.saved()
	if err != nil {
		return other
	}
	now, err := b.saved()
	if err != nil {
		return err
	}
	near := slices.EqualFunc(was.Datasets, now.Datasets, func(a, b savedDataset) bool {
		x, errA := a.Tally.tally()
		y, errB := b.Tally.tally()
		return errA == nil && errB == nil && x.Near(y)
	})
	for _, s := range []*savedBooks{was, now} {
		for i := range s.Datasets {
			s.Datasets[i].Tally = nil
		}
	}
	x, errA := json.Marshal(was)
	y, errB := json.Marshal(now)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if !near || !bytes.Equal(x, y) {
		return other
	}
	return nil
}

// The stored form of books. Sets are sorted, so that equal states have equal texts.
type (
	savedBooks struct {
		Datasets []savedDataset     `json:"datasets"`
		Restored []savedRestoration `json:"restored,omitempty"`
	}
	savedRestoration struct {
		Restoration
		At time.Time `json:"at"`
	}
	savedDataset struct {
		Key       string         `json:"key"`
		Facts     *datasetFacts  `json:"facts,omitempty"` // of a dataset that has entered
		Seen      string         `json:"seen,omitempty"`
		First     *Access        `json:"first,omitempty"`
		Void      *Access        `json:"void,omitempty"`
		Unguarded int            `json:"unguarded,omitempty"`
		Early     int            `json:"early,omitempty"`
		Accesses  []Access       `json:"accesses,omitempty"`
		Created   time.Time      `json:"created"`
		Budget    *Caps          `json:"budget,omitempty"`
		Largest   *Caps          `json:"largest,omitempty"`
		Raised    *time.Time     `json:"raised,omitempty"`
		Changed   time.Time      `json:"changed"`
		Spent     savedTotal     `json:"spent"`
		Sharing   *savedSharing  `json:"sharing,omitempty"`
		Tally     *savedTally    `json:"tally,omitempty"`
		Over      string         `json:"over,omitempty"`
		Runs      int            `json:"runs"`
		Open      int            `json:"open"`
		Resumed   map[string]int `json:"resumed,omitempty"`
		Marks     []string       `json:"marks,omitempty"`
		Owned     []string       `json:"owned,omitempty"`
		Accessed  []string       `json:"accessed,omitempty"`
	}
	savedTotal   struct{ Epsilon, Delta *big.Rat }
	savedSharing struct {
		Runs      int        `json:"runs"`
		Colluders int        `json:"colluders"`
		Unproven  bool       `json:"unproven,omitempty"`
		Alone     savedTotal `json:"alone"`
	}
	savedTally struct {
		Settled [][2]number `json:"settled,omitempty"`
		// Each plan that open runs hold is stored once, with its cost; Held gives its index.
		Plans []savedPlan    `json:"plans,omitempty"`
		Held  map[string]int `json:"held,omitempty"`
	}
	savedPlan struct {
		Event json.RawMessage `json:"event"` // as an entry holds it
		Cost  []number        `json:"cost"`
	}
	// A number may be infinite, which JSON has no number for.
	number float64
)

func (n number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

func (n *number) UnmarshalText(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	*n = number(v)
	return err
}

func (t *total) saved() savedTotal { return savedTotal{&t.epsilon, &t.delta} }

func (s savedTotal) total() (t total, err error) {
	if s.Epsilon == nil || s.Delta == nil {
		return t, errors.New("a sum is missing")
	}
	t.epsilon.Set(s.Epsilon)
	t.delta.Set(s.Delta)
	return t, nil
}

func sorted(set []string) []string { return slices.Compact(slices.Sorted(slices.Values(set))) }

// saved is the stored form.
func (b *books) saved() (*savedBooks, error) {
	s := &savedBooks{Datasets: []savedDataset{}}
	for _, r := range b.restored {
		s.Restored = append(s.Restored, savedRestoration{r, r.At})
	}
	for _, key := range slices.Sorted(maps.Keys(b.datasets)) {
		d, err := b.datasets[key].saved(key)
		if err != nil {
			return nil, err
		}
		s.Datasets = append(s.Datasets, d)
	}
	return s, nil
}

func (d *dataset) saved(key string) (s savedDataset, err error) {
	s = savedDataset{Key: key, Seen: d.seen, First: d.first, Void: d.void, Unguarded: d.unguarded, Early: d.early,
		Accesses: d.accesses, Created: d.created,
		Budget: d.budget, Largest: d.largest, Raised: d.raised, Changed: d.changed, Spent: d.spent.saved(), Over: d.over,
		Runs: d.runs, Open: d.open, Resumed: d.resumed, Marks: sorted(d.marks), Owned: sorted(d.owned),
		Accessed: sorted(d.accessed)}
	if d.name != "" {
		s.Facts = &d.facts
	}
	if d.runs > 0 {
		s.Sharing = &savedSharing{d.sharing.runs, d.sharing.colluders, d.sharing.unproven, d.sharing.alone.saved()}
	}
	if d.tally != nil {
		s.Tally, err = saveTally(d.tally.Saved())
	}
	return s, err
}

func saveTally(t account.SavedTally) (*savedTally, error) {
	s := &savedTally{}
	for _, v := range t.Settled {
		s.Settled = append(s.Settled, [2]number{number(v[0]), number(v[1])})
	}
	known := map[string]int{}
	for _, h := range t.Held {
		plain, err := privacy.MarshalEvent(h.Plan)
		if err != nil {
			return nil, err
		}
		i, there := known[string(plain)]
		if !there {
			i = len(s.Plans)
			known[string(plain)] = i
			p := savedPlan{}
			for _, c := range h.Cost {
				p.Cost = append(p.Cost, number(c))
			}
			if p.Event, err = pack(plain); err != nil {
				return nil, err
			}
			s.Plans = append(s.Plans, p)
		}
		if s.Held == nil {
			s.Held = map[string]int{}
		}
		s.Held[h.Run] = i
	}
	return s, nil
}

// tally is the content of the tally; of none for nil.
func (s *savedTally) tally() (t account.SavedTally, err error) {
	if s == nil {
		return t, nil
	}
	for _, v := range s.Settled {
		t.Settled = append(t.Settled, [2]float64{float64(v[0]), float64(v[1])})
	}
	plans := make([]account.SavedPlan, len(s.Plans))
	for i, p := range s.Plans {
		if plans[i].Plan, err = eventIn(p.Event); err != nil {
			return t, err
		}
		for _, c := range p.Cost {
			plans[i].Cost = append(plans[i].Cost, float64(c))
		}
	}
	for _, run := range slices.Sorted(maps.Keys(s.Held)) {
		i := s.Held[run]
		if i < 0 || i >= len(plans) {
			return t, fmt.Errorf("run %q holds no plan of the checkpoint", run)
		}
		t.Held = append(t.Held, account.SavedPlan{Run: run, Plan: plans[i].Plan, Cost: plans[i].Cost})
	}
	return t, nil
}

// checkpoint is the stored form, under the ledger's key.
func (b *books) checkpoint(key []byte) (c checkpoint, err error) {
	s, err := b.saved()
	if err != nil {
		return c, err
	}
	text, err := json.Marshal(s)
	c = checkpoint{head: b.head, time: formatTime(b.time), version: fold(), state: string(text)}
	c.mac = c.sum(key)
	return c, err
}

func (c checkpoint) saved() (*savedBooks, error) {
	s := new(savedBooks)
	d := json.NewDecoder(bytes.NewReader([]byte(c.state)))
	d.DisallowUnknownFields()
	return s, d.Decode(s)
}

// books are those of an authentic checkpoint of this version.
func (c checkpoint) books() (*books, error) {
	s, err := c.saved()
	if err != nil {
		return nil, err
	}
	b := newBooks()
	b.head = c.head
	if b.time, err = parseTime(c.time); err != nil {
		return nil, err
	}
	for _, r := range s.Restored {
		r.Restoration.At = r.At
		b.restored = append(b.restored, r.Restoration)
	}
	for _, d := range s.Datasets {
		if b.datasets[d.Key], err = d.dataset(); err != nil {
			return nil, err
		}
	}
	b.own = map[string]bool{}
	return b, nil
}

func (s savedDataset) dataset() (*dataset, error) {
	d := &dataset{seen: s.Seen, first: s.First, void: s.Void, unguarded: s.Unguarded, early: s.Early,
		accesses: s.Accesses, created: s.Created, budget: s.Budget,
		largest: s.Largest, raised: s.Raised, changed: s.Changed, over: s.Over, runs: s.Runs, open: s.Open,
		resumed: s.Resumed, marks: s.Marks, owned: s.Owned, accessed: s.Accessed}
	var err error
	if d.spent, err = s.Spent.total(); err != nil {
		return nil, err
	}
	if h := s.Sharing; h != nil {
		d.sharing.runs, d.sharing.colluders, d.sharing.unproven = h.Runs, h.Colluders, h.Unproven
		if d.sharing.alone, err = h.Alone.total(); err != nil {
			return nil, err
		}
	}
	if s.Facts == nil {
		return d, nil
	}
	d.name, d.facts = s.Key, *s.Facts
	currency := filter(d.facts.Currency)
	if (currency != nil) != (s.Tally != nil) {
		return nil, fmt.Errorf("dataset %q counts in %q, its checkpoint in another currency", s.Key, d.facts.Currency)
	}
	if currency == nil {
		return d, nil
	}
	d.tally = account.NewTally(currency, d.facts.Adjacency)
	t, err := s.Tally.tally()
	if err != nil {
		return nil, err
	}
	return d, d.tally.Restore(t)
}
