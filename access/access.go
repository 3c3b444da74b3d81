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
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/ledger"
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
func (p Purpose) exact() bool { return p == Test || p.records() }

// records reports whether the first access of a content counts, even if nothing protects it yet.
func (p Purpose) records() bool {
	switch p {
	case Score, Lab, Simulate, Verify, Check:
		return true
	}
	return false
}

// charged reports whether a run reserves for the access.
func (p Purpose) charged() bool { return p == Train || p == Party }

// Refusals. Each comes wrapped in a text for the owner's terminal.
var (
	// ErrProtected: the ledger protects these rows, under some name.
	ErrProtected = errors.New("these rows are protected")
	// ErrWouldEnd: the ledger protects the dataset that the schema names.
	ErrWouldEnd = errors.New("an access that is not charged would end the dataset's guarantee forever")
	// ErrOverlap: test rows are training rows.
	ErrOverlap = errors.New("test rows are training rows")
	// ErrCannotTell: a packed table cannot be compared with what the ledger protects.
	ErrCannotTell = errors.New("this packed table cannot be compared with protected rows, since its row hashes were made on another machine")
)

// most is the largest share of common rows at which two tables still count as different people.
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
	// PackKey is the key of the row hashes of a packed table for another machine; nil: this owner's.
	PackKey *data.RowKey
	// Dropped gets the counts of dropped rows and refuses too many: see data.Options.
	Dropped func(file string, stats *data.LoadStats) error
	Why     string // what the ledger says of an access without a guarantee; "": by its purpose

	known  []ledger.Known
	tables *tables
	opened []*Opened // for exact figures; tables of one purpose count as one
}

// An Opened table was read and admitted. Take hands it out.
type Opened struct {
	Stats *data.LoadStats

	purpose Purpose
	dataset string
	table   *data.Table
	content *data.Content
	by      [2]*hashes          // of its rows, by names and by positions; nil: not known
	parts   [][sha256.Size]byte // of rows on several machines, or in several files
	away    bool                // the rows are on workers
	gate    *Gate
	void    []string // protected datasets whose guarantee the access ends, or has been ended
	before  string   // for Train: the dataset under which these rows were accessed without a guarantee
	own     bool     // the access is recorded under the schema's dataset
}

// Digest is the digest of the content. It leaves memory only under a key (R4).
func (o *Opened) Digest() [sha256.Size]byte { return o.content.Digest }

// Parts returns the digests of the parts of a table on several machines or in several files, and
// the other digests of the whole: a ledger compares all of them.
func (o *Opened) Parts() [][sha256.Size]byte { return slices.Concat(o.content.Also, o.parts) }

// digests returns the digests of the whole content, the first wholes() of them, and of its parts.
func (o *Opened) digests() [][sha256.Size]byte {
	return slices.Concat([][sha256.Size]byte{o.content.Digest}, o.content.Also, o.parts)
}

func (o *Opened) wholes() int { return 1 + len(o.content.Also) }

// Same reports whether two tables have the same content. For rows on several machines or in several files one equal
// part is enough.
func (o *Opened) Same(other *Opened) bool {
	others := other.digests()
	return slices.ContainsFunc(o.digests(), func(d [sha256.Size]byte) bool { return slices.Contains(others, d) })
}

// Records reports whether Take records the access, so that it needs a ledger.
func (o *Opened) Records() bool { return o.own || len(o.void) > 0 || o.before != "" }

// Ended reports whether the access ends a guarantee of these rows, or one had ended before.
func (o *Opened) Ended() bool { return len(o.void) > 0 }

// Coding says in what numbers the rows are, which follows from the schema and the form of the file.
func (o *Opened) Coding() data.Coding { return o.table.Coding() }

// Units is the number of rows or units: public under replace-one only (R9).
func (o *Opened) Units() int { return o.table.Units() }

// Close closes a table that was not taken.
func (o *Opened) Close() error {
	if t := o.gate.tables; t != nil {
		t.forget()
	}
	return o.table.Close()
}

// Open reads a table for a purpose and decides whether it may be used. For Test, train are the tables
// that the model is trained on.
func (g *Gate) Open(ctx context.Context, purpose Purpose, schema *schema.Schema, path string, opt data.Options,
	train ...*Opened) (*Opened, error) {
	return g.open(ctx, purpose, schema, path, opt, nil, train...)
}

func (g *Gate) open(ctx context.Context, purpose Purpose, schema *schema.Schema, path string, opt data.Options,
	begin func() func(*data.Block) error, train ...*Opened) (*Opened, error) {
	if err := g.ask(ctx, purpose); err != nil {
		return nil, err
	}
	in := admission{gate: g, o: &Opened{purpose: purpose, dataset: schema.Dataset, gate: g}, path: data.Public(path),
		train: train, begin: begin}
	opt.Dropped = g.Dropped
	if err := in.read(ctx, schema, path, opt); err != nil {
		return nil, err
	}
	return in.o, nil
}

// Stream is Open for predictions and scores of a table that may be too large to be kept: it hands over blocks of rows
// in their order, and the table that Take returns has none. begin is called before the first block, for scores perhaps
// a second time (underOneKey), and returns the function that gets each one, valid during that call. The verdict follows
// the last block: the caller gives away nothing that depends on a row before Take has returned.
func (g *Gate) Stream(ctx context.Context, purpose Purpose, schema *schema.Schema, path string, opt data.Options,
	begin func() func(*data.Block) error) (*Opened, error) {
	if purpose != Predict && purpose != Score {
		return nil, fmt.Errorf("access: no table is streamed to %s", purpose)
	}
	return g.open(ctx, purpose, schema, path, opt, begin)
}

// Describe describes the table at path by its header alone. It reads no row.
func Describe(ctx context.Context, path string) (*data.Description, error) {
	return data.Describe(ctx, path, source.Formats())
}

// IsTable reports whether the name of an uncompressed file ends like that of a table.
func IsTable(path string) bool {
	end := strings.ToLower(filepath.Ext(path))
	return slices.ContainsFunc(source.Formats(), func(f data.Format) bool { return slices.Contains(f.Ends, end) })
}

// Skeleton returns a schema for the table at path that a person fills in. It reads no row.
func Skeleton(ctx context.Context, path, delimiter string) ([]byte, error) {
	return source.Skeleton(ctx, path, delimiter)
}

// An Outline is what a schema needs of a table, and Answers are what a person says about it.
type (
	Outline = source.Outline
	Answers = source.Answers
)

// OutlineOf returns the outline of the table at path. It reads no row.
func OutlineOf(ctx context.Context, path, delimiter string) (*Outline, error) {
	return source.OutlineOf(ctx, path, delimiter)
}

// Pack writes a table packed.
func (g *Gate) Pack(ctx context.Context, schema *schema.Schema, src, dst string,
	opt data.Options) (stats *data.LoadStats, err error) {
	if err := g.ask(ctx, Pack); err != nil {
		return nil, err
	}
	opt.Dropped, opt.Formats = g.Dropped, source.Formats()
	err = underOneKey(func() (err error) {
		stats, err = data.Pack(ctx, &admission{gate: g, o: &Opened{purpose: Pack, gate: g}}, schema, src, dst, opt)
		return err
	})
	return stats, err
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

// Take records what the access must leave in the ledger, remembers the rows in the owner's state, and
// returns the table. For Train and Party the run has reserved before. l may be nil for purposes that
// record nothing.
func (o *Opened) Take(ctx context.Context, l *ledger.Ledger, run string) (*data.Table, error) {
	if err := o.record(ctx, l, run); err != nil {
		return nil, errors.Join(err, o.table.Close())
	}
	if l != nil && (o.purpose.charged() || o.purpose.records()) {
		if err := o.gate.tables.remember(o.content.Digest, o.by, mark(l, o.content.Digest)); err != nil {
			o.gate.tell(err.Error())
		}
	}
	if o.purpose.exact() {
		if err := o.gate.score(o); err != nil {
			return nil, errors.Join(err, o.table.Close())
		}
	}
	o.by = [2]*hashes{} // decided
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
		o.gate.tell(fmt.Sprintf("the ledger records this access as not private; dataset %q no longer has a lifetime guarantee", d))
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

func quoted(list []string) string {
	all := make([]string, len(list))
	for i, n := range list {
		all[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(all, ", ")
}
