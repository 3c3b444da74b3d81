package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Kind says what an entry of the ledger did.
type Kind string

const (
	KindDataset    Kind = "dataset"     // a dataset entered, its facts fixed
	KindBudget     Kind = "budget"      // its lifetime budget was set or changed
	KindReserve    Kind = "reserve"     // a run reserved its caps
	KindResume     Kind = "resume"      // a run swapped its token
	KindSettle     Kind = "settle"      // a run ended
	KindNotPrivate Kind = "not-private" // an access without a guarantee
	// the same, of a dataset that has not entered: unit, adjacency and currency stay open
	KindAccess  Kind = "access"
	KindRestore Kind = "restore" // the owner accepted a ledger that lacks entries; of no dataset, for all
)

// An Entry is one line of the ledger, which only grows.
type Entry struct {
	Seq     int64           `json:"seq"`  // 1, 2, 3 …
	Time    time.Time       `json:"time"` // UTC
	Kind    Kind            `json:"kind"`
	Dataset string          `json:"dataset"`
	Run     string          `json:"run,omitempty"`
	Payload json.RawMessage `json:"payload"`
	Prev    string          `json:"prev"` // the hash of the entry before; of the first, 64 zeros
	Hash    string          `json:"hash"`
}

// A Head names the last entry of a chain. A copy kept elsewhere shows later whether entries were
// cut off or rewritten.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

const noHash = "0000000000000000000000000000000000000000000000000000000000000000"

// digest is SHA-256 over all other fields, each after its length, so that no two entries are
// encoded alike.
func (e Entry) digest() string {
	h := sha256.New()
	var size [8]byte
	for _, field := range [][]byte{
		[]byte("sotto ledger entry 1"), []byte(strconv.FormatInt(e.Seq, 10)), []byte(formatTime(e.Time)), []byte(e.Kind),
		[]byte(e.Dataset), []byte(e.Run), e.Payload, []byte(e.Prev),
	} {
		binary.BigEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write(field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// check checks the entry against its hash.
func (e Entry) check() error {
	if e.Hash != e.digest() {
		return &ChainError{e.Seq, "it was changed after it was written: its hash does not fit its content"}
	}
	return nil
}

// A ChainError says where the ledger stops being what was written.
type ChainError struct {
	Seq int64  // the first entry that is wrong; 0 for the ledger as a whole
	Why string // in words
}

func (e *ChainError) Error() string {
	if e.Seq == 0 {
		return "the chain is broken: " + e.Why
	}
	return fmt.Sprintf("the chain is broken at entry %d: %s", e.Seq, e.Why)
}

// The payloads. Their JSON is canonical: fixed fields in a fixed order, numbers in
// their shortest form.
type (
	datasetFacts struct {
		Unit      string            `json:"unit"`
		Adjacency privacy.Adjacency `json:"adjacency"`
		Currency  string            `json:"currency"`
	}
	reserved struct {
		Caps
		Token string   `json:"token"` // SHA-256 of the one-time token
		Mark  string   `json:"mark,omitempty"`
		Parts []string `json:"parts,omitempty"` // marks of its parts, on several machines
		Lab   bool     `json:"lab,omitempty"`
		Why   string   `json:"why,omitempty"`
		Plan  string   `json:"plan,omitempty"` // SHA-256 of the most that the run will release
		// The most that the run will release, canonical: in a filter's ledger only.
		Event json.RawMessage `json:"event,omitempty"`
		// The ledger records what the run charges. Format 1 did not.
		Recorded bool `json:"recorded,omitempty"`
		// What the guarantee assumes where owners share the noise of the plan.
		Shares *account.Shares `json:"shares,omitempty"`
		// The parts were compared with what the ledger protects. Builds that wrote parts without it compared no rows of
		// workers.
		Compared bool `json:"compared,omitempty"`
	}
	// Under caps it is the settlement alone, as information.
	settled struct {
		Settlement
		Currency string `json:"currency,omitempty"` // of a filter: the charged events are what it cost
		Batches  int    `json:"batches,omitempty"`  // that the charged events are, and that the run reached at most
		Basis    string `json:"basis,omitempty"`    // of a filter: what the cost rests on; "" for an entry of format 1
	}
	resumed struct {
		From string `json:"from"`
		To   string `json:"to"`
		// The batches charged by then; nil in format 1. From there on charges may leave out
		// releases of the plan.
		Batches *int `json:"batches,omitempty"`
		// The record went further: batches beyond may have been released and drawn again.
		Again bool `json:"again,omitempty"`
	}
	notPrivate struct {
		Why  string `json:"why"`
		Mark string `json:"mark,omitempty"` // of the content
	}
)

// plan is the most that the run will release; nil under caps.
func (r *reserved) plan() (privacy.Event, error) {
	if len(r.Event) == 0 {
		return nil, nil
	}
	return eventIn(r.Event)
}

// dataset is the state that follows from the entries of one dataset.
type dataset struct {
	name      string   // "" until the dataset enters
	seen      string   // its name, if an access came before
	first     *Access  // that access. It says nothing of a dataset that enters with other content
	accessed  []string // marks of such accesses
	facts     datasetFacts
	created   time.Time
	budget    *Caps
	raised    *time.Time // when the budget was last raised
	largest   *Caps      // at least every budget so far
	changed   time.Time  // when the budget was last set
	spent     total      // under caps
	sharing   sharing
	tally     *account.Tally // of a filter; nil under caps
	over      string         // under a filter: the first run that was admitted above the budget
	runs      int            // reserved ever
	open      int            // of these, not settled
	marks     []string
	owned     []string // of these, marks of runs whose rows passed the gate's comparison (R24)
	void      *Access
	unguarded int            // accesses without a guarantee, those before it entered included
	early     int            // of these, before it entered
	accesses  []Access       // of these, the last
	resumed   map[string]int // of a filter: batches that each open run had charged when it first resumed
	restored  []Restoration  // of the whole ledger
}

// apply adds one entry, in the order of the chain. It refuses an entry that this package could not have
// written.
func (d *dataset) apply(e Entry) error {
	switch entered := d.name != ""; {
	case e.Kind == KindRestore:
		r, err := restoration(e)
		d.restored = append(d.restored, r)
		return err
	case e.Kind == KindDataset && entered:
		return fmt.Errorf("dataset %q enters a second time", e.Dataset)
	case e.Kind == KindAccess && entered:
		return fmt.Errorf("dataset %q has entered already", e.Dataset)
	case e.Kind != KindDataset && e.Kind != KindAccess && !entered:
		return fmt.Errorf("dataset %q is used before it entered", e.Dataset)
	}
	switch e.Kind {
	case KindDataset:
		return d.enter(e)
	case KindBudget:
		return d.setBudget(e)
	case KindReserve:
		return d.reserve(e)
	case KindAccess, KindNotPrivate:
		return d.access(e)
	case KindSettle:
		return d.settlement(e)
	case KindResume:
		return d.resume(e)
	}
	return fmt.Errorf("entry %d is of kind %q: %w", e.Seq, e.Kind, errNewer)
}

// enter is the dataset's first entry.
func (d *dataset) enter(e Entry) error {
	facts, err := payload[datasetFacts](e)
	if err != nil {
		return err
	}
	if validCurrency(facts.Currency) != nil {
		return fmt.Errorf("dataset %q counts in currency %q: %w", e.Dataset, facts.Currency, errNewer)
	}
	d.name, d.created, d.facts = e.Dataset, e.Time, facts
	if c := filter(facts.Currency); c != nil {
		d.tally = account.NewTally(c, facts.Adjacency)
	}
	return nil
}

// setBudget sets the budget, and remembers when it last grew.
func (d *dataset) setBudget(e Entry) error {
	b, err := payload[Caps](e)
	if err != nil {
		return err
	}
	if d.budget != nil && (b.Epsilon > d.budget.Epsilon || b.Delta > d.budget.Delta) {
		d.raised = &e.Time
	}
	d.budget, d.largest, d.changed = &b, grow(d.largest, b), e.Time
	return nil
}

// access adds an access without noise. One before the dataset entered is remembered; a later one ends the guarantee.
func (d *dataset) access(e Entry) error {
	n, err := payload[notPrivate](e)
	if err != nil {
		return err
	}
	access := &Access{Since: e.Time, Run: e.Run, Why: n.Why}
	d.unguarded++
	d.accesses = append(d.accesses[max(0, len(d.accesses)+1-mostAccesses):], *access)
	if e.Kind == KindAccess {
		d.early++
		d.accessed = addMark(d.accessed, n.Mark)
		if d.seen == "" {
			d.seen, d.created, d.first = e.Dataset, e.Time, access
		}
		return nil
	}
	if n.Mark != "" {
		d.marks = addMark(d.marks, n.Mark)
	}
	if d.void == nil {
		d.void = access
	}
	return nil
}

// settlement replaces what a run reserved by what it cost.
func (d *dataset) settlement(e Entry) error {
	s, err := payload[settled](e)
	if err != nil {
		return err
	}
	if (s.Currency != "") != (d.tally != nil) || s.Currency != "" && s.Currency != d.facts.Currency {
		return fmt.Errorf("run %q settles in another currency than dataset %q counts in", e.Run, e.Dataset)
	}
	if err := d.settle(e.Run, s); err != nil {
		return err
	}
	delete(d.resumed, e.Run)
	d.open--
	return nil
}

// resume remembers how far an open run of a filter's ledger was when it first resumed.
func (d *dataset) resume(e Entry) error {
	r, err := payload[resumed](e)
	if err != nil {
		return err
	}
	if _, ok := d.resumed[e.Run]; !ok && r.Batches != nil && d.tally != nil {
		if d.resumed == nil {
			d.resumed = map[string]int{}
		}
		d.resumed[e.Run] = *r.Batches
	}
	return nil
}

// reserve adds a reservation.
func (d *dataset) reserve(e Entry) error {
	r, err := payload[reserved](e)
	if err != nil {
		return err
	}
	if (len(r.Event) > 0) != (d.tally != nil) {
		return fmt.Errorf("run %q reserves in another currency than dataset %q counts in", e.Run, e.Dataset)
	}
	plan, err := r.plan()
	if err != nil {
		return err
	}
	var unsupported *account.UnsupportedError
	if err := d.take(e.Run, r.Caps, plan, true); errors.As(err, &unsupported) {
		return fmt.Errorf("%w: %w", err, errNewer)
	} else if err != nil {
		return err
	}
	d.sharing.add(r.Caps, r.Shares)
	d.runs++
	d.open++
	if r.Mark != "" {
		d.marks = addMark(d.marks, r.Mark)
	}
	for _, part := range r.Parts {
		d.marks = addMark(d.marks, part)
	}
	if r.Mark != "" && (len(r.Parts) == 0 || r.Compared) {
		d.owned = addMark(d.owned, r.Mark)
	}
	return nil
}

// addMark adds a content mark to a set of them. It compares the last ones only: runs mostly use the same few tables.
func addMark(set []string, mark string) []string {
	if slices.Contains(set[max(0, len(set)-16):], mark) {
		return set
	}
	return append(set, mark)
}

// run is the state that follows from the entries of one run.
type run struct {
	Run
	plan     privacy.Event   // in a filter's ledger
	recorded bool            // the ledger records what the run charges, from its first batch on
	token    string          // the hash of the current one
	used     map[string]bool // the hashes of all that ever were
	least    int             // batches that it had charged when it resumed
	again    bool            // it may have drawn recorded batches again
}

// apply adds one entry of this run, in the order of the chain.
func (r *run) apply(e Entry) error {
	switch e.Kind {
	case KindReserve:
		if r.ID != "" {
			return fmt.Errorf("run %q is reserved a second time", e.Run)
		}
		p, err := payload[reserved](e)
		if err != nil {
			return err
		}
		mark, err := unhex(p.Mark)
		if err != nil {
			return fmt.Errorf("run %q: its content mark is not hexadecimal", e.Run)
		}
		plan, err := unhex(p.Plan)
		if err != nil {
			return fmt.Errorf("run %q: the hash of its plan is not hexadecimal", e.Run)
		}
		r.Run = Run{ID: e.Run, Dataset: e.Dataset, Caps: p.Caps, Lab: p.Lab, Why: p.Why, State: StateOpen, Reserved: e.Time,
			Mark: mark, Plan: plan, Shares: p.Shares}
		r.recorded, r.token, r.used = p.Recorded, p.Token, map[string]bool{p.Token: true}
		r.plan, err = p.plan()
		return err
	case KindResume:
		p, err := payload[resumed](e)
		if err != nil {
			return err
		}
		if r.State != StateOpen || r.Dataset != e.Dataset || p.From != r.token || r.used[p.To] {
			return fmt.Errorf("run %q resumes without its token", e.Run)
		}
		r.token = p.To
		r.used[p.To] = true
		r.Resumes++
		if p.Batches != nil {
			r.least = max(r.least, *p.Batches)
		}
		r.again = r.again || p.Again
	case KindSettle:
		p, err := payload[settled](e)
		if err != nil {
			return err
		}
		if r.State != StateOpen || r.Dataset != e.Dataset {
			return fmt.Errorf("run %q settles without being open", e.Run)
		}
		p.Settlement.Batches, p.Settlement.Basis = p.Batches, p.Basis
		r.State, r.SettledAt, r.Settlement = StateSettled, &e.Time, &p.Settlement
	}
	return nil
}

func unhex(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return hex.DecodeString(text)
}

func restoration(e Entry) (Restoration, error) {
	if e.Dataset != "" || e.Run != "" {
		return Restoration{}, errors.New("a restoration is of the whole ledger")
	}
	r, err := payload[Restoration](e)
	r.At = e.Time
	return r, err
}

// payload reads an entry's payload, which must be byte for byte what this version writes for its value:
// without unknown or repeated fields, and with nothing after it.
func payload[T any](e Entry) (v T, err error) {
	if err := json.Unmarshal(e.Payload, &v); err != nil {
		return v, fmt.Errorf("its content does not read as %q: %w", e.Kind, err)
	}
	again := compared{want: io.MultiReader(bytes.NewReader(e.Payload), strings.NewReader("\n"))} // which an encoder adds
	if err := json.NewEncoder(&again).Encode(v); err != nil || !again.same() {
		return v, fmt.Errorf("its content is not in the form of %q", e.Kind)
	}
	return v, nil
}

func formatTime(t time.Time) string { return t.Format(time.RFC3339Nano) }

// parseTime reads exactly what formatTime writes.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || formatTime(t.UTC()) != s {
		return t, fmt.Errorf("time %q: expected UTC as in RFC 3339", s)
	}
	return t.UTC(), nil
}
