package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// An Access is an access that no guarantee covers.
type Access struct {
	Since time.Time `json:"since"`
	Run   string    `json:"run,omitempty"`
	Why   string    `json:"why"`
}

// A Dataset is the state of one dataset's budget. For a person with records in several datasets the
// costs add up (R22).
type Dataset struct {
	Name string `json:"name"`
	// "", as adjacency and currency, where nothing but an access without a guarantee is recorded
	Unit      string            `json:"unit,omitempty"`
	Adjacency privacy.Adjacency `json:"adjacency,omitzero"`
	Currency  string            `json:"currency,omitempty"`
	Created   time.Time         `json:"created"`
	Budget    *Caps             `json:"budget,omitempty"` // nil: none set, runs are recorded and not refused
	// under caps: reserved by all runs ever. Under a filter: a budget that would just cover what is held or settled
	Spent Caps  `json:"spent"`
	Left  *Caps `json:"left,omitempty"` // of the budget, under caps; nil where none is set
	// of the budget that is held or settled, under a filter: 1 is all of it
	Part *float64 `json:"part,omitempty"`
	// under a filter: of all runs together; at least every budget that was ever set
	Guarantee *Caps         `json:"guarantee,omitempty"`
	Runs      int           `json:"runs"`               // that ever reserved
	Open      int           `json:"open"`               // of these, not settled
	Void      *Access       `json:"void,omitempty"`     // the first that no guarantee covers
	Restored  []Restoration `json:"restored,omitempty"` // when the ledger was restored without entries that it had
	// what the figures assume where owners share the noise of runs
	Sharing   *Sharing `json:"sharing,omitempty"`
	Statement string   `json:"statement"` // the lifetime guarantee, in words
}

func (d *dataset) view() Dataset {
	v := Dataset{
		Name: cmp.Or(d.name, d.seen), Unit: d.facts.Unit, Adjacency: d.facts.Adjacency, Currency: d.facts.Currency,
		Created: d.created,
		Budget:  d.budget, Spent: d.spent.caps(), Runs: d.runs, Open: d.open, Void: d.ended(), Restored: d.restored,
		Sharing: d.sharing.view(),
	}
	switch {
	case d.budget == nil:
	case d.tally == nil:
		left := d.spent.left(*d.budget)
		v.Left = &left
	default:
		part := d.tally.Part(d.budgetOf(*d.budget))
		v.Part, v.Guarantee = &part, d.largest
		v.Spent = Caps{d.tally.Epsilon(d.budget.Delta), d.budget.Delta}
	}
	v.Statement = d.restoredWords() + d.statement() + v.Sharing.Words(v.Void != nil || d.over != "", func(c Caps) string {
		return c.atMost().String()
	})
	if d.name != "" && d.void == nil && d.first != nil {
		v.Statement += fmt.Sprintf(" Before this dataset entered, rows under its name were accessed without a guarantee (%s, %s); a run on the same rows ends the guarantee.", day(d.first.Since), d.first.Why)
	}
	return v
}

// restoredWords begin a statement after a restoration: the rest is about the charges that are left.
func (d *dataset) restoredWords() string {
	words := ""
	for _, r := range d.restored {
		words += r.Words() + " "
	}
	if words != "" {
		words += "No statement covers the missing charges; of those that this ledger holds: "
	}
	return words
}

// ended is the access that ended the guarantee; of a dataset that has not entered, the first.
func (d *dataset) ended() *Access {
	if d.name == "" {
		return d.first
	}
	return d.void
}

func (d *dataset) statement() string {
	void := ""
	if ended := d.ended(); ended != nil {
		by := ""
		if ended.Run != "" {
			by = fmt.Sprintf(" by run %q", ended.Run)
		}
		void = fmt.Sprintf("There is no lifetime guarantee: since %s it is void: the records were accessed without one%s (%s).", day(ended.Since), by, ended.Why)
	}
	if d.tally != nil {
		return d.filterStatement(void)
	}
	spent := d.spent.caps().atMost()
	switch {
	case d.name == "":
		return void
	case void != "":
		return fmt.Sprintf("%s Charged runs reserved %v in all.", void, spent)
	case d.budget == nil:
		return fmt.Sprintf("No lifetime budget is set, so runs are recorded and not refused. All runs so far are together %v-differentially private for each %s, under %v. Accesses before %s are not recorded here.",
			spent, d.facts.Unit, d.facts.Adjacency, day(d.created))
	case !d.spent.fits(Caps{}, d.budget):
		return fmt.Sprintf("All runs so far are together %v-differentially private for each %s, under %v. That is more than the lifetime budget %v, which was lowered later; no more runs are allowed.",
			spent, d.facts.Unit, d.facts.Adjacency, *d.budget)
	}
	return fmt.Sprintf("All runs on this dataset, including future ones, are together %v-differentially private for each %s, under %v; so far %v is reserved. Accesses before %s are not recorded here.%s",
		*d.budget, d.facts.Unit, d.facts.Adjacency, spent, day(d.created), d.raisedWords())
}

func (d *dataset) raisedWords() string {
	if d.raised == nil {
		return ""
	}
	return fmt.Sprintf(" The budget was raised on %s; what was said of the smaller one before no longer holds.",
		day(*d.raised))
}

// filterStatement is about the largest budget: what was held or settled depends on releases, and a
// smaller number chosen after them is no guarantee.
func (d *dataset) filterStatement(void string) string {
	if d.budget == nil {
		return "No lifetime budget is set; runs are refused until one is."
	}
	part := Percent(d.tally.Part(d.budgetOf(*d.budget)))
	if void != "" {
		return fmt.Sprintf("%s Charged runs hold or have settled %s of the lifetime budget %v, counted in %s.", void, part,
			*d.budget, d.facts.Currency)
	}
	if d.over != "" {
		return fmt.Sprintf("There is no lifetime guarantee: by the accounts of this version run %q went beyond the lifetime budget. Runs hold or have settled %s of %v, counted in %s.", d.over, part, *d.budget, d.facts.Currency)
	}
	text := fmt.Sprintf("All runs on this dataset, including future ones, are together %v-differentially private for each %s, under %v. "+
		"Runs spend it in %s: each holds the cost of its plan until it settles for what it charged. So far %s is held or settled; that is information, and no smaller guarantee. "+
		"Accesses before %s are not recorded here.",
		*d.largest, d.facts.Unit, d.facts.Adjacency, d.facts.Currency, part, day(d.created))
	if *d.budget != *d.largest {
		text += fmt.Sprintf(" Since %s new runs are admitted within %v only, of which the part is counted; that takes nothing back.", day(d.changed), *d.budget)
	}
	return text + d.raisedWords()
}

func day(t time.Time) string { return t.Format(time.DateTime + " MST") }

// State says whether a run may still access rows.
type State string

const (
	StateOpen    State = "open"    // reserved, running or dead: it may resume
	StateSettled State = "settled" // ended
)

// A Run is one reservation and its end.
type Run struct {
	ID         string          `json:"run"`
	Dataset    string          `json:"dataset"`
	Caps       Caps            `json:"caps"` // the run's own budget; under caps spent for good
	Lab        bool            `json:"lab,omitempty"`
	Why        string          `json:"why,omitempty"`
	State      State           `json:"state"`
	Reserved   time.Time       `json:"reserved"`
	Resumes    int             `json:"resumes"`
	SettledAt  *time.Time      `json:"settled,omitempty"`
	Settlement *Settlement     `json:"settlement,omitempty"`
	Shares     *account.Shares `json:"shares,omitempty"` // what Caps assume where owners share the noise
	Mark       []byte          `json:"-"`                // content mark that it reserved with; nil if there was none
	Plan       []byte          `json:"-"`                // hash of the plan that it reserved for; nil if there was none
}

// Datasets lists the datasets by name.
func (l *Ledger) Datasets(ctx context.Context) ([]Dataset, error) {
	all, err := l.books(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Dataset, 0, len(all.datasets))
	for name := range all.datasets {
		d := all.dataset(name)
		list = append(list, d.view())
	}
	slices.SortFunc(list, func(a, b Dataset) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Dataset gives one dataset, or an error that wraps [ErrUnknownDataset].
func (l *Ledger) Dataset(ctx context.Context, name string) (Dataset, error) {
	b, err := l.books(ctx)
	if err != nil {
		return Dataset{}, err
	}
	d := b.dataset(name)
	if d.name == "" && d.seen == "" {
		return Dataset{}, fmt.Errorf("dataset %q: %w", name, ErrUnknownDataset)
	}
	return d.view(), nil
}

// Run gives one run, or an error that wraps [ErrUnknownRun].
func (l *Ledger) Run(ctx context.Context, id string) (Run, error) {
	r, err := loadRun(ctx, l.store.db, id)
	if err != nil {
		return Run{}, l.store.explain(err)
	}
	if r.ID == "" {
		return Run{}, fmt.Errorf("run %q: %w", id, ErrUnknownRun)
	}
	return r.Run, nil
}

// Runs lists the runs on a dataset, or on all with "", in the order of their reservations.
func (l *Ledger) Runs(ctx context.Context, dataset string) ([]Run, error) {
	found := map[string]*run{}
	var order []string
	err := l.entries(ctx, dataset, func(e Entry) error {
		if e.Kind == KindReserve {
			order = append(order, e.Run)
		}
		return at(found, e.Run).apply(e)
	})
	if err != nil {
		return nil, l.store.explain(err)
	}
	list := make([]Run, len(order))
	for i, id := range order {
		list[i] = found[id].Run
	}
	return list, nil
}

// Entries lists the entries of a dataset, or all with "".
func (l *Ledger) Entries(ctx context.Context, dataset string) ([]Entry, error) {
	var list []Entry
	err := l.entries(ctx, dataset, func(e Entry) error { list = append(list, e); return nil })
	return list, l.store.explain(err)
}

func (l *Ledger) entries(ctx context.Context, dataset string, do func(Entry) error) error {
	if dataset == "" {
		return each(ctx, l.store.db, do, selectAll)
	}
	return each(ctx, l.store.db, do, selectDataset, dataset)
}

// A Known dataset is what the ledger tells the gate to tables (R24).
type Known struct {
	Dataset   string
	Protected bool                       // it has a lifetime budget or a charged run
	Void      bool                       // its rows were accessed without a guarantee
	Marks     map[[sha256.Size]byte]bool // of all contents that were used under its name
	Accessed  map[[sha256.Size]byte]bool // of those, what was accessed without a guarantee before it entered
	Own       map[[sha256.Size]byte]bool // of those, what a charged run used that the gate admitted by its rows
}

// Accessed lists the content marks under which the run's accesses without a guarantee are recorded.
func (l *Ledger) Accessed(ctx context.Context, run string) (marks [][]byte, err error) {
	err = each(ctx, l.store.db, func(e Entry) error {
		if e.Kind != KindNotPrivate && e.Kind != KindAccess {
			return nil
		}
		var p notPrivate
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return err
		}
		mark, err := hex.DecodeString(p.Mark)
		if len(mark) > 0 {
			marks = append(marks, mark)
		}
		return err
	}, selectRun, run)
	return marks, l.store.explain(err)
}

// Known lists the datasets by name, also those of which only an access without a guarantee is
// recorded.
func (l *Ledger) Known(ctx context.Context) ([]Known, error) {
	all, err := l.books(ctx)
	if err != nil {
		return nil, err
	}
	var list []Known
	for _, d := range all.datasets {
		k := Known{Dataset: cmp.Or(d.name, d.seen), Protected: d.budget != nil || d.runs > 0, Void: d.void != nil}
		for set, texts := range map[*map[[sha256.Size]byte]bool][]string{&k.Marks: slices.Concat(d.marks, d.accessed),
			&k.Accessed: d.accessed, &k.Own: d.owned} {
			*set = map[[sha256.Size]byte]bool{}
			for _, text := range texts {
				if text == "" {
					continue
				}
				b, err := hex.DecodeString(text)
				if err != nil || len(b) != sha256.Size {
					return nil, l.store.explain(&ChainError{0, "a content mark of dataset " + k.Dataset + " is malformed"})
				}
				(*set)[[sha256.Size]byte(b)] = true
			}
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b Known) int { return cmp.Compare(a.Dataset, b.Dataset) })
	return list, nil
}

// Head is the last entry. A run directory stores it. The error wraps [ErrGone] if the ledger's file
// is no longer the one that was opened.
func (l *Ledger) Head(ctx context.Context) (Head, error) {
	if err := l.Here(); err != nil {
		return Head{}, err
	}
	_, _, h, err := readHead(ctx, l.store.db)
	return h, l.store.explain(err)
}

// Contains checks that an earlier head is still part of the chain. A [*ChainError] says that
// entries were cut off or rewritten, or that the head is another ledger's.
func (l *Ledger) Contains(ctx context.Context, h Head) error {
	if h == (Head{0, noHash}) {
		return nil
	}
	e, found, err := entryAt(ctx, l.store.db, h.Seq)
	switch {
	case err != nil:
	case !found:
		err = &ChainError{h.Seq, "the chain held it earlier, and it is missing now"}
	case e.Hash != h.Hash:
		err = &ChainError{h.Seq, "the chain held another entry here earlier"}
	}
	return l.store.explain(err)
}

// Verify checks the chain and counts the entries that hold. A [*ChainError] names the first entry
// that was changed, does not follow the one before, or could not have been allowed. The package
// comment says what Verify cannot detect.
func (l *Ledger) Verify(ctx context.Context) (n int, err error) {
	n, err = l.verify(ctx)
	return n, l.store.explain(err)
}

func (l *Ledger) verify(ctx context.Context) (n int, err error) {
	// One snapshot, so that the head fits the entries while others write.
	tx, err := l.store.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if l.store.sound != "" {
		var says string
		if err := tx.QueryRowContext(ctx, l.store.sound).Scan(&says); err != nil {
			return 0, err
		}
		if says != "ok" {
			return 0, &ChainError{0, "the file is damaged: " + says}
		}
	}
	_, _, want, err := readHead(ctx, tx)
	if err != nil {
		return 0, err
	}
	saved, _, authentic, damaged, err := l.stored(ctx, tx)
	if err != nil {
		return 0, err
	}
	all := newBooks()
	runs := map[string]*run{}
	err = each(ctx, tx, func(e Entry) error {
		d, err := all.apply(e)
		if err != nil {
			return err
		}
		if d != nil && d.over != "" {
			return fmt.Errorf("run %q exceeds the lifetime budget of dataset %q", d.over, e.Dataset)
		}
		if e.Run != "" {
			if err := at(runs, e.Run).apply(e); err != nil {
				return err
			}
		}
		n++
		if authentic && e.Seq == saved.head.Seq && e.Hash == saved.head.Hash && saved.version == fold() {
			return saved.agrees(all)
		}
		return nil
	}, selectAll)
	switch head := all.head; {
	case err != nil:
	case head != want:
		err = &ChainError{min(head.Seq, want.Seq) + 1,
			fmt.Sprintf("the ledger's head is entry %d, the chain ends at entry %d", want.Seq, head.Seq)}
	case damaged:
		err = &ChainError{0, "its checkpoint is damaged; the entries hold, commands read them all, and a later entry writes another checkpoint"}
	case authentic:
		err = l.onChain(ctx, tx, saved)
	}
	return n, err
}

// Words describes an entry for people.
func (e Entry) Words() string {
	text, err := e.words()
	if err != nil || text == "" {
		return string(e.Payload)
	}
	return text
}

// why says what a reservation is for, if it does.
func (r reserved) why() string {
	if r.Why == "" {
		return ""
	}
	return ": " + r.Why
}

func (e Entry) words() (string, error) {
	switch e.Kind {
	case KindDataset:
		f, err := payload[datasetFacts](e)
		return fmt.Sprintf("entered: unit %s, %v, currency %s", f.Unit, f.Adjacency, f.Currency), err
	case KindBudget:
		c, err := payload[Caps](e)
		return fmt.Sprintf("lifetime budget set to %v", c), err
	case KindReserve:
		r, err := payload[reserved](e)
		if err != nil || len(r.Event) == 0 {
			return fmt.Sprintf("reserved %v%s%s", r.Caps, sharedWords(r.Shares), r.why()), err
		}
		plan, err := r.plan()
		return fmt.Sprintf("holds the plan %v of a run within %v%s%s", plan, r.Caps, sharedWords(r.Shares), r.why()), err
	case KindResume:
		return "went on after a stop or crash", nil
	case KindSettle:
		s, err := payload[settled](e)
		why := fmt.Sprintf("the %d batches that were charged, which by themselves cost %v", s.Batches,
			Caps{s.Epsilon, s.Delta}.atMost())
		switch {
		case s.Currency == "":
			return fmt.Sprintf("%s; the charged events cost %v, the reservation stays", s.Outcome,
				Caps{s.Epsilon, s.Delta}.atMost()), err
		case s.Basis == BasisPlan:
			why = "the whole plan: this ledger holds no full record of the charged events"
		case s.Basis == BasisMismatch:
			why = "the whole plan: the run directory did not show the events that this ledger recorded"
		}
		return fmt.Sprintf("%s; settled in %s for %s", s.Outcome, s.Currency, why), err
	case KindRestore:
		r, err := restoration(e)
		return r.Words(), err
	case KindNotPrivate, KindAccess:
		n, err := payload[notPrivate](e)
		return "accessed without a guarantee: " + n.Why, err
	}
	return "", nil
}
