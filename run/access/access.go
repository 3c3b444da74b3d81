// Package access is the one gate to tables with rows (rules.md, R24). No other package may call the
// readers of package data (a test of internal/arch checks this), and the readers return only tables that
// the gate has admitted.
//
//	gate := access.Gate{Ledger: l, Notice: terminal}
//	opened, err := gate.Open(ctx, access.Train, schema, path, opt) // reads, and decides by the content
//	table, err := opened.Take(ctx, l, run)                         // records what it must, hands out the table
//
// The caller names its purpose. The gate asks the ledger whether the content is protected, under the name
// of any dataset: whether a dataset used with this content, or with a content that shares many rows with
// it, has a lifetime budget or a charged run. Training under the dataset's own name is charged by its
// run; under another name it is refused. An access that gives exact figures of the rows is refused, or
// recorded if the caller ends the guarantee.
//
// A verdict depends on the rows. It is for the owner's terminal only (R11), and is made
// before a run directory, a reservation or the joining of a network.
package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/schema"
)

// A Purpose says what rows are used for.
type Purpose string

const (
	Train     Purpose = "train"     // a run that reserves its cost in the ledger under the schema's dataset
	Test      Purpose = "test"      // exact scores of a model that is trained meanwhile
	Score     Purpose = "score"     // exact scores of a model that exists
	Lab       Purpose = "lab"       // training without a guarantee: lab runs, comparisons, audits
	Simulate  Purpose = "simulate"  // all owners of a network in one process, of which none is charged
	Verify    Purpose = "verify"    // a claim of a lab run computed from the rows
	Check     Purpose = "check"     // exact counts of what the columns hold, which steer a schema
	Predict   Purpose = "predict"   // one answer for each row, for the person who has the rows
	Pack      Purpose = "pack"      // the same rows in another form
	Worker    Purpose = "worker"    // rows that a coordinator on another machine trains on and reserves for
	Party     Purpose = "party"     // an owner's rows in a network, whose own run reserves
	Synthetic Purpose = "synthetic" // rows that this process made
)

// exact reports whether the purpose gives figures without noise or charge.
func (p Purpose) exact() bool {
	switch p {
	case Test, Score, Lab, Simulate, Verify, Check:
		return true
	}
	return false
}

// Refusals. Each comes wrapped in a text for the owner's terminal.
var (
	// ErrProtected: the ledger protects these rows, under some name.
	ErrProtected = errors.New("these rows are protected")
	// ErrWouldEnd: the ledger protects the dataset that the schema names.
	ErrWouldEnd = errors.New("an access that is not charged would end the dataset's guarantee forever")
	// ErrOverlap: test rows are training rows.
	ErrOverlap = errors.New("test rows are training rows")
)

// most is the largest share of common rows at which two tables count as different people.
const most = 0.05

// A Gate opens tables for one command or run.
type Gate struct {
	Ledger *ledger.Ledger // asked which contents are protected; nil: there is no ledger, and none is
	Notice func(string)   // gets what only the owner may see; may be nil
	// Void ends the guarantee of what is protected, and records it.
	Void bool
	// Unprotected says that the rows need no protection, so that the access is not recorded.
	// It never overrides a match by content.
	Unprotected bool
	// TestOverlaps asserts that test rows which equal training rows are other people's.
	TestOverlaps bool
	// Dropped gets the counts of dropped rows and refuses too many: see data.Options.
	Dropped func(file string, stats *data.LoadStats) error
	Why     string // what the ledger says of an access without a guarantee; "": by its purpose

	known  []ledger.Known
	tables *tables
}

// An Opened table was read and admitted. Take hands it out.
type Opened struct {
	Stats *data.LoadStats

	purpose Purpose
	dataset string
	table   *data.Table
	content *data.Content
	parts   [][sha256.Size]byte // of rows on several machines, or in several files
	gate    *Gate
	void    []string // protected datasets whose guarantee the access ends, or has been ended
	before  string   // for Train: a dataset whose rows, these, were accessed without a guarantee
	own     bool     // the access is recorded under the schema's dataset
	sum     data.RowSum
	hashed  bool // the raw rows were, for the sum
}

// Digest is the digest of the content. It leaves memory only under a key (R4).
func (o *Opened) Digest() [sha256.Size]byte { return o.content.Digest }

// Parts are the digests of the parts of a table on several machines or in several files. Other digests of the whole are among
// them: a ledger compares all of them.
func (o *Opened) Parts() [][sha256.Size]byte { return slices.Concat(o.content.Also, o.parts) }

// RowSum identifies the rows of a worker without their order. A packed table keeps no such hashes: then it is zero, and ok false.
func (o *Opened) RowSum() (sum data.RowSum, ok bool) { return o.sum, o.hashed }

// digests are those of the whole content, of which there are wholes, and of its parts.
func (o *Opened) digests() [][sha256.Size]byte {
	return slices.Concat([][sha256.Size]byte{o.content.Digest}, o.content.Also, o.parts)
}

func (o *Opened) wholes() int { return 1 + len(o.content.Also) }

// Same reports whether two tables have the same content. For rows on several machines or in several files one equal part is
// enough.
func (o *Opened) Same(other *Opened) bool {
	others := other.digests()
	return slices.ContainsFunc(o.digests(), func(d [sha256.Size]byte) bool { return slices.Contains(others, d) })
}

// Records reports whether Take records the access, so that it needs a ledger.
func (o *Opened) Records() bool { return o.own || len(o.void) > 0 || o.before != "" }

// Ended reports whether the access ends a guarantee of these rows, or one had ended before.
func (o *Opened) Ended() bool { return len(o.void) > 0 }

// Bytes reports whether the rows are bytes, which follows from the schema and the form of the file.
func (o *Opened) Bytes() bool { return o.table.Pixels != nil }

// Short reports whether the rows are 16-bit numbers, which follows from the form of the file.
func (o *Opened) Short() bool { return o.table.Short != nil }

// Units is the number of rows or units: public under replace-one only (R9).
func (o *Opened) Units() int { return o.table.Units() }

// Close closes a table that was not taken.
func (o *Opened) Close() error { return o.table.Close() }

// Open reads a table for a purpose and decides whether it may be used. For Test, train are the tables
// that the model is trained on.
func (g *Gate) Open(ctx context.Context, purpose Purpose, schema *schema.Schema, path string, opt data.Options, train ...*Opened) (*Opened, error) {
	if err := g.ask(ctx, purpose); err != nil {
		return nil, err
	}
	in := admission{gate: g, o: &Opened{purpose: purpose, dataset: schema.Dataset, gate: g}, path: data.Public(path), train: train}
	opt.Dropped, opt.Formats = g.Dropped, source.Formats()
	var beside []*data.Table
	for _, t := range train {
		beside = append(beside, t.table)
	}
	var err error
	if in.o.table, in.o.Stats, err = data.Read(ctx, &in, schema, path, opt, beside...); err != nil {
		return nil, err
	}
	return in.o, nil
}

// Describe describes the table at path by its header alone. It reads no row.
func Describe(path string) (*data.Description, error) { return data.Describe(path, source.Formats()) }

// Skeleton returns a schema for the table at path that a person fills in. It reads no row.
func Skeleton(path, delimiter string) ([]byte, error) { return source.Skeleton(path, delimiter) }

// An Outline is what a schema needs of a table, and Answers are what a person says about it.
type (
	Outline = source.Outline
	Answers = source.Answers
)

// OutlineOf returns the outline of the table at path. It reads no row.
func OutlineOf(path, delimiter string) (*Outline, error) { return source.OutlineOf(path, delimiter) }

// Pack writes a table packed.
func (g *Gate) Pack(ctx context.Context, schema *schema.Schema, src, dst string, opt data.Options) (*data.LoadStats, error) {
	if err := g.ask(ctx, Pack); err != nil {
		return nil, err
	}
	opt.Dropped, opt.Formats = g.Dropped, source.Formats()
	return data.Pack(ctx, &admission{gate: g, o: &Opened{purpose: Pack, gate: g}}, schema, src, dst, opt)
}

// Remote decides about rows on other machines. Only the digests of the parts are known, and digest, which
// stands for all rows, as each of also does; and of units of several rows the ids, as data.Table.UnitIDs gives them.
func (g *Gate) Remote(ctx context.Context, purpose Purpose, schema *schema.Schema, digest [sha256.Size]byte, parts [][sha256.Size]byte, units [][16]byte, also ...[sha256.Size]byte) (*Opened, error) {
	if err := g.ask(ctx, purpose); err != nil {
		return nil, err
	}
	in := admission{gate: g, o: &Opened{purpose: purpose, dataset: schema.Dataset, table: data.Away(schema, units), parts: parts, gate: g}, path: "the workers' rows"}
	return in.o, in.Admit(ctx, &data.Content{Digest: digest, Also: also})
}

// Close closes the ledger.
func (g *Gate) Close() error {
	if g.Ledger == nil {
		return nil
	}
	return g.Ledger.Close()
}

// ask reads what the ledger and the owner's state know.
func (g *Gate) ask(ctx context.Context, purpose Purpose) (err error) {
	if g.tables == nil {
		if g.tables, err = openTables(); err != nil {
			g.tell(err.Error())
		}
	}
	g.known = nil
	if g.Ledger == nil {
		return nil
	}
	g.known, err = g.Ledger.Known(ctx)
	return err
}

func (g *Gate) tell(text string) {
	if g.Notice != nil {
		g.Notice(text)
	}
}

// mark is the content mark of a digest: its HMAC under the ledger's key (R4).
func mark(l *ledger.Ledger, digest [sha256.Size]byte) [sha256.Size]byte {
	h := l.NewMark()
	h.Write(digest[:])
	return [sha256.Size]byte(h.Sum(nil))
}

// An admission is the gate while one table is read.
type admission struct {
	gate  *Gate
	o     *Opened
	path  string
	train []*Opened
}

// RowKey implements data.Gate. Tables that are neither remembered nor compared need no hashes.
func (a *admission) RowKey() *data.RowKey {
	switch a.o.purpose {
	case Predict, Synthetic:
		return nil
	case Worker:
		return data.SumKey()
	}
	return a.gate.tables.key
}

// Admit implements data.Gate: it is the verdict.
func (a *admission) Admit(_ context.Context, c *data.Content) error {
	if a.o.content = c; c.Parts != nil {
		a.o.parts = c.Parts
	}
	switch a.o.purpose {
	case Worker:
		a.o.sum, a.o.hashed = data.SumRows(c.Rows), c.Rows != nil
		c.Rows = nil // under a key that is no owner's
	case Test:
		if err := a.overlap(); err != nil {
			return err
		}
	case Pack: // the hashes go into the file
		if err := a.gate.tables.save(); err != nil {
			a.gate.tell(err.Error())
		}
	}
	switch {
	case a.gate.Ledger == nil:
		a.o.own = a.records()
		return nil
	case a.o.purpose == Train || a.o.purpose == Party:
		return a.charged()
	case a.o.purpose.exact():
		return a.exact()
	}
	return nil
}

// records reports whether the access is recorded even if nothing is protected: the first access of a
// content counts.
func (a *admission) records() bool {
	switch a.o.purpose {
	case Score, Lab, Simulate, Verify, Check:
		return !a.gate.Unprotected
	}
	return false
}

// A match is a dataset under whose name the ledger knows the content.
type match struct {
	ledger.Known
	whole    bool // it has the whole content; otherwise a part, or many of its rows
	accessed bool // the content was accessed without a guarantee before the dataset entered
}

// matches returns the datasets that were used with this content, or with a content that shares many rows
// with it.
func (a *admission) matches() []match {
	g, c := a.gate, a.o.content
	if c.Rows != nil && len(c.Rows) == 0 {
		return nil // nobody
	}
	var here [][sha256.Size]byte // the whole first
	for _, d := range a.o.digests() {
		here = append(here, mark(g.Ledger, d))
	}
	var beside [][sha256.Size]byte // contents whose overlap was counted
	for _, t := range a.train {
		if t.content.Rows != nil {
			beside = append(beside, mark(g.Ledger, t.content.Digest))
		}
	}
	alike := g.tables.alike(c.Rows, func(marks [][sha256.Size]byte) bool {
		return !slices.ContainsFunc(marks, func(m [sha256.Size]byte) bool { return slices.Contains(here, m) || slices.Contains(beside, m) })
	})
	var found []match
	for _, k := range g.known {
		m := match{Known: k, whole: slices.ContainsFunc(here[:a.o.wholes()], func(mark [sha256.Size]byte) bool { return k.Marks[mark] })}
		m.accessed = slices.ContainsFunc(slices.Concat(here, alike), func(mark [sha256.Size]byte) bool { return k.Accessed[mark] })
		if m.whole || m.accessed || slices.ContainsFunc(slices.Concat(here, alike), func(mark [sha256.Size]byte) bool { return k.Marks[mark] }) {
			found = append(found, m)
		}
	}
	return found
}

// charged admits training under the dataset's own name.
func (a *admission) charged() error {
	var others, protected []string
	own := false
	for _, m := range a.matches() {
		if m.accessed {
			a.o.before = m.Dataset
		}
		if m.Dataset == a.o.dataset {
			own = own || m.Protected && m.whole // a mixture of two datasets is neither
			continue
		}
		others = append(others, m.Dataset)
		if m.Protected {
			protected = append(protected, m.Dataset)
		}
		if m.Void {
			a.o.before = m.Dataset
		}
	}
	if len(protected) > 0 && !own && a.o.purpose == Train {
		return fmt.Errorf("%s: %w: the ledger knows them as %s. Write dataset: %s in the schema, so that its budget is charged", a.path, ErrProtected, names(protected), protected[0])
	}
	for _, k := range a.gate.known {
		if k.Dataset == a.o.dataset && k.Void {
			a.o.before = "" // its statement says so already
		}
	}
	if len(others) > 0 {
		a.gate.tell(fmt.Sprintf("the ledger knows these rows also as %s; for people in both, the costs of both add up", names(others)))
	}
	return nil
}

// exact refuses protected rows, unless the access ends their guarantee or it has ended.
func (a *admission) exact() error {
	var kept []string // have a guarantee to lose
	for _, m := range a.matches() {
		if !m.Protected {
			continue
		}
		a.o.void = append(a.o.void, m.Dataset)
		if !m.Void {
			kept = append(kept, m.Dataset)
		}
	}
	if len(kept) > 0 && !a.gate.Void {
		return fmt.Errorf("%s: %w: the ledger knows them, or more than 5 %% of them, as %s. Use other rows; --void accesses them all the same, which ends the guarantee forever", a.path, ErrProtected, names(kept))
	}
	if !a.records() {
		return nil
	}
	a.o.own = !slices.Contains(a.o.void, a.o.dataset)
	for _, k := range a.gate.known {
		if k.Dataset == a.o.dataset && k.Protected && !k.Void && !a.gate.Void {
			return fmt.Errorf("dataset %q stands in %s: %w", k.Dataset, a.gate.Ledger.Where(), ErrWouldEnd)
		}
	}
	return nil
}

// overlap refuses test rows if many of them are training rows. It counts them, since all are in memory.
func (a *admission) overlap() error {
	for _, t := range a.train {
		if t.purpose != Train {
			continue // the training rows are recorded as not private
		}
		whole := t.Same(a.o)
		many := func() bool { // of the one or of the other
			return shared(a.o.content.Rows, t.content.Rows) > most || shared(t.content.Rows, a.o.content.Rows) > most
		}
		if !whole && (a.gate.TestOverlaps || !many()) {
			continue
		}
		if a.gate.Void {
			a.o.void = append(a.o.void, t.dataset)
			continue
		}
		hint := ", or --test-overlaps if they are other people with equal values"
		what := "more than 5 % of them are training rows, or they hold more than 5 % of the training rows"
		if whole {
			hint, what = "", "they are those of the training file"
		}
		return fmt.Errorf("%s: %w: %s, and exact scores would show protected rows without noise. Use other rows, none%s; --void scores them all the same, which ends the guarantee forever", a.path, ErrOverlap, what, hint)
	}
	return nil
}

// shared is the share of rows that are among others.
func shared(rows, others []uint64) float64 {
	if len(rows) == 0 {
		return 0
	}
	times := make(map[uint64]int, len(rows))
	for _, h := range rows {
		times[h]++
	}
	n := 0
	for _, h := range others {
		n += times[h]
		delete(times, h)
	}
	return float64(n) / float64(len(rows))
}

// Take records what the access must leave in the ledger, remembers the rows in the owner's state, and
// returns the table. For Train and Party the run has reserved before. l may be nil for purposes that
// record nothing.
func (o *Opened) Take(ctx context.Context, l *ledger.Ledger, run string) (*data.Table, error) {
	if err := o.record(ctx, l, run); err != nil {
		return nil, errors.Join(err, o.table.Close())
	}
	switch o.purpose {
	case Predict, Pack, Test, Synthetic:
	default:
		if l != nil {
			if err := o.gate.tables.remember(o.content, mark(l, o.content.Digest)); err != nil {
				o.gate.tell(err.Error())
			}
		}
	}
	o.content.Rows = nil // decided
	return o.table, nil
}

func (o *Opened) record(ctx context.Context, l *ledger.Ledger, run string) error {
	if l == nil {
		if o.Records() {
			return errors.New("access: a ledger is needed to record this access")
		}
		return nil
	}
	datasets := o.void
	if o.own {
		datasets = append(slices.Clip(datasets), o.dataset)
	}
	slices.Sort(datasets)
	for _, d := range slices.Compact(datasets) {
		if err := o.recordAs(ctx, l, d, run, cmp.Or(o.gate.Why, words[o.purpose])); err != nil {
			return err
		}
		o.gate.tell(fmt.Sprintf("this access stands in the ledger of dataset %q as not private; its lifetime statement says so from now on", d))
	}
	if o.before != "" {
		return o.recordAs(ctx, l, o.dataset, run, "its rows were accessed without a guarantee before, as dataset "+o.before)
	}
	return nil
}

// recordAs records the access to the whole content, and to each part, under the name of a dataset.
func (o *Opened) recordAs(ctx context.Context, l *ledger.Ledger, dataset, run, why string) error {
	for _, d := range o.digests() {
		m := mark(l, d)
		if err := l.RecordAccess(ctx, dataset, m[:], run, why); err != nil {
			return err
		}
	}
	return nil
}

// words say in the ledger what an access without a guarantee was for.
var words = map[Purpose]string{
	Test:     "exact scores of a run on protected rows",
	Score:    "exact scores of a model",
	Lab:      "training in the lab",
	Simulate: "a simulation of a network",
	Verify:   "a claim of a lab run computed from the rows",
	Check:    "exact counts of what the columns hold, by `sotto schema check`",
}

func names(list []string) string {
	quoted := make([]string, len(list))
	for i, n := range list {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
