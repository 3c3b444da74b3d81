package ledger

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Version is the format of the ledgers that this version writes. Format 1 has no record of what runs
// charge and no entries of KindRestore; opening it to write turns it into 2.
const Version = 2

// A Ledger may be used by several goroutines, and opened by several processes.
type Ledger struct {
	store   *store
	witness *witness
	key     []byte // of the content marks
	now     func() time.Time
	prefix  prefix
	made    bool // this process made the file
	unmade  bool // and removed it, as its first entry found no room
}

// Open opens a ledger, or makes it if nothing exists there. where is the path of an SQLite file, the
// URL of a PostgreSQL database (postgres:// or postgresql://), or "" for
// $XDG_DATA_HOME/sotto/ledger.db (by default ~/.local/share). New files and directories are for
// their owner only. Open leaves a file that is no ledger, even an empty one, as it is: the error wraps
// [ErrNotLedger].
func Open(ctx context.Context, where string) (*Ledger, error) { return machine.Open(ctx, where) }

// Find is Open for an existing ledger: without one the error wraps [os.ErrNotExist].
func Find(ctx context.Context, where string) (*Ledger, error) { return machine.Find(ctx, where) }

// View is Find for reading: methods that write fail.
func View(ctx context.Context, where string) (*Ledger, error) { return machine.View(ctx, where) }

// A Disk is the file system of ledgers in files and of their witnesses.
type Disk struct {
	FS     vfs.FS
	SQLite string // name of the VFS by which SQLite reaches it; "": its own, of the machine's file system
	Every  int64  // entries between checkpoints, also of PostgreSQL's ledgers; 0: the usual number
}

var machine = Disk{FS: vfs.OS{}}

// Open is [Open] on the disk.
func (d Disk) Open(ctx context.Context, where string) (*Ledger, error) {
	return d.reach(ctx, where, making)
}

// Find is [Find] on the disk.
func (d Disk) Find(ctx context.Context, where string) (*Ledger, error) {
	return d.reach(ctx, where, writing)
}

// View is [View] on the disk.
func (d Disk) View(ctx context.Context, where string) (*Ledger, error) {
	return d.reach(ctx, where, reading)
}

// access is what a ledger is opened for; each includes the ones before it.
type access int

const (
	reading access = iota
	writing
	making
)

func (d Disk) reach(ctx context.Context, where string, a access) (*Ledger, error) {
	s, err := d.connect(where, a)
	if err != nil {
		return nil, err
	}
	l := &Ledger{store: s, witness: newWitness(s), now: time.Now}
	if err := l.open(ctx, a); err != nil {
		l.unmake(ctx, err)
		s.db.Close()
		return nil, s.explain(err)
	}
	return l, nil
}

// open opens a ledger that continues what the witness saw; for another one the error is a *WitnessError.
// Reading does not change the witness.
func (l *Ledger) open(ctx context.Context, a access) error {
	known, err := l.witness.at()
	if err != nil {
		return err
	}
	err = l.find(ctx)
	missing := errors.Is(err, os.ErrNotExist)
	if len(known) > 0 && (missing || notLedger(err)) {
		lost := &WitnessError{Found: Missing}
		if !missing {
			lost.Found, lost.what = Emptied, err
		}
		return l.lost(lost, known)
	}
	if missing && a == making {
		err = l.make(ctx, nil)
	}
	if err == nil {
		err = l.prepare(ctx, a)
	}
	if err == nil {
		err = l.compare(ctx, known)
	}
	if err == nil {
		err = l.remember(ctx)
	}
	if err != nil || a == reading {
		return err
	}
	if err := l.upgrade(ctx); err != nil {
		return err
	}
	return l.noteHead(ctx, false)
}

// lost fills in what was last seen of the ledgers at this location.
func (l *Ledger) lost(e *WitnessError, known []string) error {
	for _, id := range known {
		seen, err := l.witness.last(id)
		if err != nil {
			return err
		}
		if seen.Head.Seq >= e.Last.Seq {
			e.Last, e.Time = seen.Head, seen.Time
		}
	}
	return e
}

// compare checks that the open ledger is the one last used at this location, and continues what the
// witness saw of it at any location.
func (l *Ledger) compare(ctx context.Context, known []string) error {
	if others := slices.DeleteFunc(slices.Clone(known), func(id string) bool {
		return id == l.witness.id
	}); len(others) > 0 {
		return l.lost(&WitnessError{Found: Another}, others)
	}
	seen, err := l.witness.last(l.witness.id)
	if err != nil {
		return err
	}
	return l.continues(ctx, l.store.db, seen)
}

// remember reads the checkpoint, if there is one.
func (l *Ledger) remember(ctx context.Context) error {
	b, err := l.load(ctx, l.store.db)
	if err == nil {
		l.prefix.remember(b, nil)
	}
	return err
}

// continues checks that the chain holds an entry that was seen.
func (l *Ledger) continues(ctx context.Context, q querier, seen headSeen) error {
	if seen.Head.Seq == 0 {
		return nil
	}
	e, there, err := entryAt(ctx, q, seen.Head.Seq)
	switch {
	case err != nil:
	case !there:
		err = &WitnessError{Found: Older, Last: seen.Head, Time: seen.Time}
	case e.Hash != seen.Head.Hash:
		err = &WitnessError{Found: Forked, Last: seen.Head, Time: seen.Time}
	}
	return err
}

// noteHead shows the witness the ledger and its last entry.
func (l *Ledger) noteHead(ctx context.Context, force bool) error {
	_, _, head, err := readHead(ctx, l.store.db)
	if err != nil {
		return err
	}
	at := l.now().UTC()
	if head.Seq > 0 {
		e, there, err := entryAt(ctx, l.store.db, head.Seq)
		if err != nil {
			return err
		}
		if !there {
			return &ChainError{head.Seq, "the head names it, and it is missing"}
		}
		at = e.Time
	}
	l.witness.settle()
	l.witness.note(head, at, force)
	return nil
}

// find checks that there is a ledger. If there is nothing, the error wraps os.ErrNotExist; if there is
// something else, ErrNotLedger.
func (l *Ledger) find(ctx context.Context) error {
	if l.store.path != "" {
		if err := findFile(l.store.disk.FS, l.store.path); err != nil {
			return err
		}
	}
	var tables, all int
	if err := l.store.db.QueryRowContext(ctx, l.store.tables).Scan(&tables); err != nil || tables == ledgerTables {
		return err
	}
	if tables != 0 {
		return &ChainError{0, "one of its tables is missing"}
	}
	if l.store.others == "" {
		return fmt.Errorf("it holds no ledger: %w", os.ErrNotExist)
	}
	if err := l.store.db.QueryRowContext(ctx, l.store.others).Scan(&all); err != nil {
		return err
	}
	if all != 0 {
		return fmt.Errorf("the database belongs to another program: %w", ErrNotLedger)
	}
	return fmt.Errorf("the database is empty: %w", ErrNotLedger)
}

// make makes a ledger where find found nothing. Of two processes at once, one succeeds and both open
// its ledger.
func (l *Ledger) make(ctx context.Context, why *Restoration) error {
	fill := func(db *sql.DB) error {
		if err := l.create(ctx, db); err != nil || why == nil {
			return err
		}
		fresh := &Ledger{store: &store{db: db, sync: l.store.sync, checkpoint: l.store.checkpoint}, now: l.now}
		return fresh.restore(ctx, *why)
	}
	if l.store.path == "" {
		return fill(l.store.db)
	}
	done, alone := l.store.queue(ctx)
	defer done()
	if alone {
		removeUnfinished(l.store.disk.FS, l.store.path)
	}
	made, err := l.store.disk.makeFile(l.store.path, why != nil, fill)
	l.made = made && why == nil
	if errors.Is(err, os.ErrExist) {
		return l.find(ctx)
	}
	return err
}

// unmake removes a ledger that this process made and that has no entry, if err says that the disk
// was full. Left there, the witness would expect an empty ledger at this path.
func (l *Ledger) unmake(ctx context.Context, err error) {
	if !l.made || !noRoom(err) {
		return
	}
	// no other process writes until it ends, nor afterwards: ErrGone
	tx, err := l.store.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return
	}
	defer tx.Rollback()
	_, key, head, err := readHead(ctx, tx)
	if err != nil || head.Seq > 0 || l.store.here() != nil {
		return
	}
	if l.witness.id == "" {
		id, err := hex.DecodeString(key)
		if err != nil {
			return
		}
		l.witness.identify(id)
	}
	disk, dir := l.store.disk.FS, filepath.Dir(l.store.path)
	if _, err := disk.Lstat(l.store.path + "-journal"); !errors.Is(err, os.ErrNotExist) || disk.SyncDir(dir) != nil {
		return // after a power cut, a journal without its ledger would be refused
	}
	if err := l.witness.forget(); err != nil {
		return // so would a witness without its ledger
	}
	if disk.Remove(l.store.path) == nil {
		l.unmade = true
		disk.SyncDir(dir)
	}
}

// create makes the tables, unless another process was faster.
func (l *Ledger) create(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if l.store.lock != "" {
		if _, err := tx.ExecContext(ctx, l.store.lock); err != nil {
			return err
		}
	}
	var tables int
	if err := tx.QueryRowContext(ctx, l.store.tables).Scan(&tables); err != nil || tables == ledgerTables {
		return err
	}
	for _, statement := range []string{createHead, createEntries, createProgress, createCharges, indexDataset, indexRun} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	key := make([]byte, sha256.Size)
	rand.Read(key)
	if _, err := tx.ExecContext(ctx, insertHead, Version, hex.EncodeToString(key), noHash); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare reads the version and the key.
func (l *Ledger) prepare(ctx context.Context, a access) error {
	version, key, _, err := readHead(ctx, l.store.db)
	if err != nil {
		return err
	}
	if version < 1 || version > Version {
		return fmt.Errorf("its format is version %d; this Sotto knows version %d: %w", version, Version, errNewer)
	}
	if l.key, err = hex.DecodeString(key); err != nil || len(l.key) != sha256.Size {
		return &ChainError{0, "the key of the content marks is damaged"}
	}
	l.witness.identify(l.key)
	if l.store.path != "" {
		if l.store.opened, err = l.store.disk.FS.Stat(l.store.path); err != nil {
			return err
		}
	}
	if l.store.journal == "" || a == reading {
		return err
	}
	if _, err := l.store.db.ExecContext(ctx, l.store.journal); err != nil {
		return err
	}
	if err := l.store.locate(ctx); err != nil {
		return err
	}
	// A process that was killed during a commit may have removed its journal, which commits for all who read the
	// ledger, and not synced the directory: without this, a power cut could undo what was read here.
	return l.store.syncDir()
}

// upgrade gives a ledger of format 1 what format 2 has.
func (l *Ledger) upgrade(ctx context.Context) error {
	if version, _, _, err := readHead(ctx, l.store.db); err != nil || version == Version {
		return err
	}
	return l.write(ctx, (*writer).upgrade)
}

func (w *writer) upgrade() error {
	version, _, _, err := readHead(w.ctx, w.tx)
	if err != nil || version == Version { // another process was faster
		return err
	}
	if _, err := w.tx.ExecContext(w.ctx, createCharges); err != nil {
		return err
	}
	_, err = w.tx.ExecContext(w.ctx, setVersion, Version)
	return err
}

// Close closes the ledger.
func (l *Ledger) Close() error { return l.store.db.Close() }

// Here checks that the ledger's file is still the one that was opened; otherwise the error wraps
// [ErrGone].
func (l *Ledger) Here() error { return l.store.explain(l.store.here()) }

// Where is the ledger's path or URL, without a password.
func (l *Ledger) Where() string { return l.store.where }

// NewMark returns a writer for the content of a dataset. Its sum is the content mark: an HMAC-SHA256
// under a key that never leaves this ledger, so that only a person with the ledger can test a guess about
// the rows (R4). All datasets share the key, so that [Ledger.Known] can compare them.
func (l *Ledger) NewMark() hash.Hash { return hmac.New(sha256.New, l.key) }

// SealOf is the HMAC, in hexadecimal, of a run's final files under the ledger's key: for a run that settles before it
// has them, whose settlement can hold no hashes. Marks are of 32 bytes, seals of more, so neither passes for the other.
func (l *Ledger) SealOf(run string, files map[string]string) (string, error) {
	b, err := json.Marshal(files)
	mac := hmac.New(sha256.New, l.key)
	fmt.Fprintf(mac, "the final files of run %s: %s", run, b)
	return hex.EncodeToString(mac.Sum(nil)), err
}

// NewToken returns a fresh one-time token of 128 random bits, in hexadecimal.
func NewToken() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func validToken(token string) bool {
	b, err := hex.DecodeString(token)
	return err == nil && len(b) == 16
}

func tokenHash(token string) string { return hexSum([]byte(token)) }

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A Reservation is what a run asks for before it accesses rows.
type Reservation struct {
	Dataset   string            // the identity that a person named in the schema
	Unit      string            // whose privacy it is: "record"
	Adjacency privacy.Adjacency // the neighboring relation of the run
	Currency  string            // that the run expects; "" for the dataset's own
	Run       string            // a name that no run had before
	Epsilon   float64           // the most that the run may cost: ε > 0
	Delta     float64           // and 0 ≤ δ < 1
	Mark      []byte            // the sum of NewMark over the content, which the gate has admitted; nil if there is none
	Parts     [][]byte          // likewise of its parts, where several machines have one each
	Plan      privacy.Event     // the most that the run will release; only under caps may it be nil
	Shares    *account.Shares   // what ε assumes where owners share the noise of Plan; required there
	Token     string            // from NewToken, durable with the run already; "" makes one
	Lab       bool              // the run's guarantee does not hold (seeded noise, uncharged accesses)
	Why       string            // for people who read the ledger
}

// Reserve takes what the run may cost out of the dataset's lifetime budget, and returns the token with
// which the run resumes and settles. Under caps it takes the run's ε and δ, for good; under a filter
// the cost of its plan, until it settles. The reservation is durable when Reserve returns. Without a
// lifetime budget Reserve records and does not refuse (R3). A lab run also enters as not private.
//
// After an error the run must access no row. [privacy.ErrExhausted]: the budget does not cover the run.
// [*MismatchError]: the dataset is counted in another way. [*account.UnsupportedError]: its currency has
// no theorem for the plan. After these nothing is reserved. [ErrUncertain], as when the database is
// lost during the commit: the reservation may exist.
func (l *Ledger) Reserve(ctx context.Context, r Reservation) (token string, err error) {
	caps := Caps{r.Epsilon, r.Delta}
	err = cmp.Or(caps.validate(), validName("run", r.Run))
	var marks []string
	for _, m := range append([][]byte{r.Mark}, r.Parts...) {
		err = cmp.Or(err, validMark(m))
		marks = append(marks, hex.EncodeToString(m))
	}
	if err != nil {
		return "", fmt.Errorf("reserve: %w", err)
	}
	if s := privacy.SharingOf(r.Plan); s.Owners > 0 && (r.Shares == nil || r.Shares.Sharing != s) {
		return "", errors.New("reserve: owners share the noise of the plan; Reservation.Shares is required and says of how many")
	}
	var plan []byte // its canonical form
	if r.Plan != nil {
		if plan, err = privacy.MarshalEvent(r.Plan); err != nil {
			return "", fmt.Errorf("reserve: plan: %w", err)
		}
	}
	if token = r.Token; token == "" {
		token = NewToken()
	} else if !validToken(token) {
		return "", errors.New("reserve: found an invalid token; NewToken makes one")
	}
	entered := false // all is written but for the end of the transaction
	err = l.write(ctx, func(w *writer) (err error) {
		defer func() { entered = err == nil }()
		if known, err := loadRun(ctx, w.tx, r.Run); err != nil {
			return err
		} else if known.ID != "" {
			return fmt.Errorf("run %q: %w", r.Run, ErrRunExists)
		}
		d, err := w.enter(r.Dataset, datasetFacts{r.Unit, r.Adjacency, r.Currency}, InCaps)
		if err != nil {
			return err
		}
		if err := d.take(r.Run, caps, r.Plan, false); err != nil {
			return err
		}
		p := reserved{Caps: caps, Token: tokenHash(token), Mark: marks[0], Parts: marks[1:], Lab: r.Lab, Why: r.Why,
			Recorded: true, Shares: r.Shares, Compared: len(r.Parts) > 0}
		if plan != nil {
			p.Plan = hexSum(plan)
		}
		if d.tally != nil {
			if p.Event, err = pack(plan); err != nil {
				return err
			}
		}
		// The row exists from now on, so that a settlement detects its loss.
		if _, err := w.tx.ExecContext(ctx, upsertProgress, r.Run, 0); err != nil {
			return err
		}
		if err := w.append(KindReserve, r.Dataset, r.Run, p); err != nil || !r.Lab {
			return err
		}
		return w.append(KindNotPrivate, r.Dataset, r.Run, notPrivate{Why: strings.TrimSuffix("a lab run: "+r.Why, ": ")})
	})
	if err != nil && entered && !l.unmade { // an unmade ledger holds nothing
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	if err != nil {
		return "", err
	}
	return token, nil
}

// Admits returns the error with which [Ledger.Reserve] would refuse now. It writes nothing.
func (l *Ledger) Admits(ctx context.Context, r Reservation) error {
	b, err := l.books(ctx)
	if err != nil {
		return err
	}
	d := b.dataset(r.Dataset)
	if d.name == "" {
		return nil
	}
	if err := d.compare(datasetFacts{r.Unit, r.Adjacency, r.Currency}); err != nil {
		return err
	}
	return d.take(r.Run, Caps{r.Epsilon, r.Delta}, r.Plan, false)
}

// SetBudget sets or changes the lifetime budget of a dataset. A new dataset enters the ledger with that
// currency; "" is caps. An existing dataset keeps its own, which "" stands for.
//
// A budget below what is already reserved is allowed: it takes nothing back and refuses further runs. If
// the budget is 0 in the currency, the error wraps [privacy.ErrExhausted].
func (l *Ledger) SetBudget(ctx context.Context, dataset, unit, currency string, b privacy.Budget) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("lifetime budget: %w", err)
	}
	if currency != "" {
		if err := validCurrency(currency); err != nil {
			return err
		}
	}
	return l.write(ctx, func(w *writer) error {
		d, err := w.enter(dataset, datasetFacts{unit, b.Adjacency, currency}, Currencies()...)
		if err != nil {
			return err
		}
		if c := filter(d.facts.Currency); c != nil {
			if _, err := account.NewFilter(c, b); err != nil {
				return fmt.Errorf("dataset %q counts in %s: %w", dataset, d.facts.Currency, err)
			}
		}
		return w.append(KindBudget, dataset, "", Caps{b.Epsilon, b.Delta})
	})
}

// RecordAccess records an access to rows of a dataset without a guarantee that is about to happen: a lab
// run, a seeded run, an uncharged score. From then on the dataset's statement says that it has no
// guarantee (R3). A dataset that has not entered is recorded too, with unit, adjacency and currency open:
// the gate to tables finds it when a run is about to enter these rows as this or another dataset. mark is
// the content's, as in a [Reservation]; nil if there is none.
func (l *Ledger) RecordAccess(ctx context.Context, dataset string, mark []byte, run, why string) error {
	if err := validName("dataset", dataset); err != nil {
		return err
	}
	if err := cmp.Or(validName("run", run), validMark(mark)); err != nil {
		return fmt.Errorf("access: %w", err)
	}
	return l.write(ctx, func(w *writer) error {
		d, err := w.dataset(dataset)
		if err != nil {
			return err
		}
		kind := KindNotPrivate
		if d.name == "" {
			kind = KindAccess
		}
		return w.append(kind, dataset, run, notPrivate{why, hex.EncodeToString(mark)})
	})
}

func validMark(mark []byte) error {
	if len(mark) != 0 && len(mark) != sha256.Size {
		return fmt.Errorf("found a content mark of %d bytes; expected %d", len(mark), sha256.Size)
	}
	return nil
}

// Resume swaps the run's token for a new one from [NewToken]. The caller writes the new one to the run
// directory, durably, before the call: after a crash between the two, [Ledger.Check] says which is
// current. The old token is then useless, so a copy of the directory cannot resume, too (R7).
//
// charged are the run's charges in its directory. If the ledger knows more batches, the directory is a
// copy made while the run went on, or an old one put back: it would draw released batches again, so the
// error wraps [ErrBehind]. If the ledger recorded other events, it wraps [ErrOtherCharges] (R25). Resume
// records what the ledger does not know yet: these batches were charged, and the process was killed
// before it released any of them. Batches that the ledger recorded beyond them, since the run told
// [Ledger.Reach] ahead, may have been released and are drawn again: such a run settles for its whole
// plan.
func (l *Ledger) Resume(ctx context.Context, run, oldToken, newToken string, charged []Charges) error {
	if !validToken(newToken) {
		return fmt.Errorf("resume: found an invalid new token; NewToken makes one")
	}
	shown, err := lines(charged)
	if err != nil {
		return fmt.Errorf("resume: run %q: %w", run, err)
	}
	return l.write(ctx, func(w *writer) error {
		r, err := current(ctx, w.tx, run, oldToken)
		if err != nil {
			return err
		}
		from, to := tokenHash(oldToken), tokenHash(newToken)
		if r.used[to] {
			return fmt.Errorf("run %q: the new token was this run's before: %w", run, ErrStaleToken)
		}
		batches := end(shown)
		if err := w.notBehind(run, batches); err != nil {
			return err
		}
		all, err := w.adopted(r, shown)
		if err != nil {
			return err
		}
		if known(all) && !begins(shown, all) && !begins(all, shown) {
			return fmt.Errorf("run %q: %w", run, ErrOtherCharges)
		}
		if err := w.extend(run, shown); err != nil {
			return err
		}
		return w.append(KindResume, r.Dataset, run, resumed{from, to, &batches, end(shown) < end(all)})
	})
}

// Check checks that the run is open and the token its current one. It records nothing.
func (l *Ledger) Check(ctx context.Context, run, token string) error {
	_, err := current(ctx, l.store.db, run, token)
	return l.store.explain(err)
}

// An Outcome says how a run ended.
type Outcome string

const (
	Done      Outcome = "done"      // it ran to its end
	Stopped   Outcome = "stopped"   // a person or its budget stopped it
	Abandoned Outcome = "abandoned" // it died and will not resume
)

// A Settlement is the end of a run, as its directory shows it.
type Settlement struct {
	Batches int `json:"-"` // how many charged batches the directory knows
	// of a settled run, what its cost rests on: BasisRecord and so on; "" for one that an earlier version settled
	Basis   string  `json:"-"`
	Outcome Outcome `json:"outcome"`
	Epsilon float64 `json:"epsilon"` // realized cost, as information
	Delta   float64 `json:"delta"`
	// The charged events, canonical: information under caps too. A settled run's may be compressed: see
	// [Settlement.Shows].
	Charged json.RawMessage `json:"charged,omitempty"`

	// Cost, where set, is ε of what the ledger recorded, at Delta: it replaces Epsilon
	// where the two may differ.
	Cost func(charged privacy.Event) (float64, error) `json:"-"`

	// SHA-256 of the final files of the run directory, by name; nil for runs settled before seals
	// existed. A run that settles before it has these files names the file that holds [Ledger.SealOf]
	// instead.
	Seal map[string]string `json:"seal,omitempty"`
}

// Settle ends a run, which can then neither resume nor settle again. Under caps what it reserved stays
// spent. Under a filter it costs what the ledger recorded that it charged, and the rest of its plan
// comes back; where the directory shows other events, or more, the whole plan is settled (R25). If the
// directory does not know all batches that the run reached, the error wraps [ErrBehind].
func (l *Ledger) Settle(ctx context.Context, run, token string, s Settlement) error {
	switch {
	case s.Outcome != Done && s.Outcome != Stopped && s.Outcome != Abandoned:
		return fmt.Errorf("settle: outcome: found %q; choose %q, %q or %q", s.Outcome, Done, Stopped, Abandoned)
	case !(s.Epsilon >= 0) || math.IsInf(s.Epsilon, 1) || !(s.Delta >= 0) || s.Delta >= 1:
		return fmt.Errorf("settle: realized: found ε %v and δ %v; both must be 0 or more, δ below 1", s.Epsilon, s.Delta)
	}
	if len(s.Charged) != 0 && !(json.Valid(s.Charged) && utf8.Valid(s.Charged)) {
		return fmt.Errorf("settle: the charged events are not JSON")
	}
	return l.write(ctx, func(w *writer) error {
		r, err := current(ctx, w.tx, run, token)
		if err != nil {
			return err
		}
		if err := w.notBehind(run, s.Batches); err != nil {
			return err
		}
		d, err := w.dataset(r.Dataset)
		if err != nil {
			return err
		}
		p, err := w.settlement(r, d, s)
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		if err := d.settle(run, p); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		if _, err := w.tx.ExecContext(ctx, deleteCharges, run); err != nil {
			return err
		}
		return w.append(KindSettle, r.Dataset, run, p)
	})
}

// current is the run, if it is open and the token is its own.
func current(ctx context.Context, q querier, id, token string) (run, error) {
	r, err := loadRun(ctx, q, id)
	switch {
	case err != nil:
	case r.ID == "":
		err = fmt.Errorf("run %q: %w", id, ErrUnknownRun)
	case r.State == StateSettled:
		err = fmt.Errorf("run %q: %w", id, ErrSettled)
	case r.token != tokenHash(token):
		err = fmt.Errorf("run %q: %w", id, ErrStaleToken)
	}
	return r, err
}

func loadRun(ctx context.Context, q querier, id string) (run, error) {
	var r run
	err := each(ctx, q, r.apply, selectRun, id)
	return r, err
}

// A writer appends entries inside one transaction, which no other writer overlaps.
type writer struct {
	ctx   context.Context
	tx    *sql.Tx
	l     *Ledger
	now   time.Time
	began Head // the last entry that was committed before
	head  Head
	books *books      // of some entry from began to head; nil: not read
	saved *checkpoint // the last one, where this transaction read or wrote it
	drops bool        // it drops the checkpoint, and writes none
}

// busyLimit is how long a writer retries while others hold the lock.
const busyLimit = time.Minute

// write runs do as the only writer, commits what it appended and notes the last entry with the witness.
// If do fails, nothing is appended. write may run do more than once.
func (l *Ledger) write(ctx context.Context, do func(*writer) error) error {
	done, _ := l.store.queue(ctx)
	var w *writer
	var err error
	for began := time.Now(); ; { // the clock of the machine: l.now is a test's own
		w, err = l.transact(ctx, do)
		if !busy(err) || time.Since(began) > busyLimit || ctx.Err() != nil {
			break
		}
		pause(ctx)
	}
	l.unmake(ctx, err)
	done()
	if err != nil {
		return l.store.explain(err)
	}
	if w.head != w.began {
		l.witness.note(w.head, w.now, false)
	}
	return nil
}

// transact is one try of write.
func (l *Ledger) transact(ctx context.Context, do func(*writer) error) (*writer, error) {
	tx, err := l.store.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	if l.store.sync != "" {
		if _, err := tx.ExecContext(ctx, l.store.sync); err != nil {
			return nil, err
		}
	}
	if err := l.store.here(); err != nil { // SQLite, too, would find that it cannot write
		return nil, err
	}
	if err := lock(ctx, tx); err != nil {
		return nil, err
	}
	_, _, head, err := readHead(ctx, tx)
	if err != nil {
		return nil, err
	}
	// The file may have been overwritten with an older copy while it was open.
	if err := l.continues(ctx, tx, l.prefix.head()); err != nil {
		return nil, err
	}
	w := &writer{ctx: ctx, tx: tx, l: l, now: l.now().UTC(), began: head, head: head}
	if err := do(w); err != nil {
		return nil, err
	}
	if w.head != head { // else at most how far a run has come
		if _, err := tx.ExecContext(ctx, updateHead, w.head.Seq, w.head.Hash); err != nil {
			return nil, err
		}
		if err := w.checkpoint(); err != nil {
			return nil, err
		}
	}
	// SQLite does so, too, and goes on to overwrite the ledger if it fails: a power cut could then leave half of the
	// transaction, and no journal to undo it.
	if err := l.store.syncDir(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	// Where SQLite cannot open the directory, it does not sync the removal of its journal, and says that it has committed.
	if err := l.store.syncDir(); err != nil {
		return nil, err
	}
	l.prefix.reach(w.head, w.now)
	if w.books != nil {
		l.prefix.remember(w.books, nil)
	}
	if w.saved != nil {
		l.prefix.note(w.saved.head.Seq, len(w.saved.state))
	}
	return w, nil
}

// lock waits until no other writer is at work. Where a restoration replaced the row while this writer waited for it,
// PostgreSQL locks nothing: the new row is seen only by another statement.
func lock(ctx context.Context, tx *sql.Tx) error {
	for range 10 { // each needs another restoration
		done, err := tx.ExecContext(ctx, lockHead)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
	}
	return &ChainError{0, "the row with its head is missing"}
}

func readHead(ctx context.Context, q querier) (version int, key string, h Head, err error) {
	there, err := found(q.QueryRowContext(ctx, selectHead), &version, &key, &h.Seq, &h.Hash)
	if err == nil && !there {
		err = &ChainError{0, "the row with its head is missing"}
	}
	return version, key, h, err
}

func (w *writer) append(kind Kind, dataset, run string, payload any) error {
	text, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	e := Entry{Seq: w.head.Seq + 1, Time: w.now, Kind: kind, Dataset: dataset, Run: run, Payload: text, Prev: w.head.Hash}
	e.Hash = e.digest()
	_, err = w.tx.ExecContext(w.ctx, insertEntry, e.Seq, formatTime(e.Time), string(e.Kind), e.Dataset, e.Run,
		string(e.Payload), e.Prev, e.Hash)
	w.head = Head{e.Seq, e.Hash}
	return err
}

// reached returns how many batches the run reported as reached, if its row exists.
func (w *writer) reached(run string) (n int, there bool, err error) {
	there, err = found(w.tx.QueryRowContext(w.ctx, selectProgress, run), &n)
	return n, there, err
}

// notBehind refuses a directory that knows fewer charged batches than the run reached.
func (w *writer) notBehind(run string, batches int) error {
	reached, _, err := w.reached(run)
	if err == nil && batches < reached {
		err = fmt.Errorf("run %q: the directory holds %d charged batches of %d: %w", run, batches, reached, ErrBehind)
	}
	return err
}

// enter returns the dataset with these facts. A new dataset gets them; its currency must be allowed, ""
// being caps.
func (w *writer) enter(name string, facts datasetFacts, allowed ...string) (dataset, error) {
	if err := cmp.Or(validName("dataset", name), validName("unit", facts.Unit)); err != nil {
		return dataset{}, err
	}
	if err := facts.Adjacency.Validate(); err != nil {
		return dataset{}, fmt.Errorf("dataset %q: %w", name, err)
	}
	d, err := w.dataset(name)
	if err != nil {
		return d, err
	}
	if d.name != "" {
		return d, d.compare(facts)
	}
	facts.Currency = cmp.Or(facts.Currency, InCaps)
	if !slices.Contains(allowed, facts.Currency) {
		return d, fmt.Errorf("dataset %q: currency: found %q; for a dataset without a lifetime budget, choose %q", name,
			facts.Currency, InCaps)
	}
	if err := w.append(KindDataset, name, "", facts); err != nil {
		return d, err
	}
	return w.dataset(name)
}

// validName: 1 to 200 bytes of text, without control characters.
func validName(field, s string) error {
	if s == "" {
		return fmt.Errorf("%s: none given", field)
	}
	if len(s) > 200 || !utf8.ValidString(s) {
		return fmt.Errorf("%s: found %d bytes; write up to 200 bytes of text", field, len(s))
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%s: found a control character in %q", field, s)
	}
	return nil
}
