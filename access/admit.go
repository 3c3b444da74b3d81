package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/schema"
)

// An admission is the gate while one table is read: it compares the rows, asks Decide, and notes what Take records.
type admission struct {
	gate  *Gate
	o     *Opened
	path  string
	train []*Opened                      // of a test table
	begin func() func(*data.Block) error // of a table that is streamed; nil: it is kept
	key   *data.RowKey                   // of a worker: the coordinator's

	also    []string  // other datasets that have these rows, of a charged run
	encoded []*Opened // training tables to compare by their encoded rows
	like    likeness  // of test rows and training rows
}

// underOneKey reads a table, and again if another process makes the key of row hashes meanwhile.
func underOneKey(read func() error) error {
	err := read()
	if errors.Is(err, errOtherKey) {
		err = read()
	}
	return err
}

// read reads and admits the table.
func (a *admission) read(ctx context.Context, schema *schema.Schema, path string, opt data.Options) error {
	opt.Formats = source.Formats()
	var beside []*data.Table
	for _, t := range a.train {
		beside = append(beside, t.table)
	}
	var table *data.Table
	var stats *data.LoadStats
	err := underOneKey(func() (err error) {
		if a.begin != nil {
			table = data.Empty(schema)
			stats, err = data.Stream(ctx, a, schema, path, opt, a.begin)
		} else {
			table, stats, err = data.Read(ctx, a, schema, path, opt, beside...)
		}
		return err
	})
	if err == nil && len(a.encoded) > 0 {
		if err = a.compareEncoded(table); err != nil {
			err = errors.Join(err, table.Close())
		}
	}
	if err != nil {
		return err
	}
	if a.o.table, a.o.Stats = table, stats; a.o.purpose.exact() {
		a.gate.opened = append(a.gate.opened, a.o)
	}
	return nil
}

// RowKey implements data.Gate. Tables that are neither remembered nor compared need no hashes.
func (a *admission) RowKey() *data.RowKey {
	switch a.o.purpose {
	case Predict, Synthetic:
		return nil
	case Worker:
		return a.key
	case Pack:
		return cmp.Or(a.gate.PackKey, a.gate.tables.key)
	}
	return a.gate.tables.key
}

// Admit implements data.Gate: it is the verdict. After errOtherKey it is called again.
func (a *admission) Admit(_ context.Context, c *data.Content) error {
	a.also, a.encoded, a.like, a.o.void = nil, nil, apart, nil
	if a.o.content = (&data.Content{Digest: c.Digest, Also: c.Also}); c.Parts != nil {
		a.o.parts = c.Parts
	}
	if c.Rows != nil {
		a.o.by[byName] = &hashes{rows: c.Rows, n: c.Rows.Len()}
	}
	if c.Positions != nil {
		a.o.by[byPosition] = &hashes{away: c.Positions, n: c.Rows.Len()}
	}
	if err := a.decide(); err != nil {
		return err
	}
	if a.o.purpose.charged() || a.o.Records() || a.o.purpose == Pack && a.gate.PackKey == nil { // the hashes will be kept
		return a.gate.saveKey()
	}
	return nil
}

// saveKey makes the key of row hashes durable. The error is errOtherKey; another one is for the owner.
func (g *Gate) saveKey() error {
	err := g.tables.save()
	if err != nil && !errors.Is(err, errOtherKey) {
		g.tell(err.Error())
		return nil
	}
	return err
}

// decide asks for the verdict, tells the owner what it rests on, and notes what Take records.
func (a *admission) decide() error {
	o := a.o
	if o.purpose == Predict || o.purpose == Synthetic || o.purpose == Pack {
		return nil
	}
	relation, datasets := a.relation()
	v := Decide(a.judged(), relation, a.standing())
	if v.Refused {
		return a.refusal(relation, datasets)
	}
	if v.Notice {
		a.notice(relation)
	}
	if len(a.also) > 0 {
		a.gate.tell(fmt.Sprintf("the ledger knows these rows also as %s; for people in both, the costs of both add up",
			quoted(a.also)))
	}
	if v.Ends {
		o.void = append(o.void, datasets...)
	}
	o.own = v.Record && !slices.Contains(o.void, o.dataset)
	return nil
}

// judged is the purpose by which the rows are judged. Those of a run's workers are judged by the coordinator, as one
// table.
func (a *admission) judged() Purpose {
	if a.o.away && a.o.purpose == Train {
		return Worker
	}
	return a.o.purpose
}

func (a *admission) standing() Standing {
	s := Standing{Reserves: a.o.purpose != Worker, Unprotected: a.gate.Unprotected, Void: a.gate.Void}
	for _, k := range a.gate.known {
		s.Named = s.Named || k.Dataset == a.o.dataset && k.Protected && !k.Void
	}
	return s
}

// relation compares the rows with what the ledger protects, and test rows with the training rows. It names the datasets
// that matched.
func (a *admission) relation() (r Relation, datasets []string) {
	if a.o.purpose == Test {
		if r, datasets = a.tested(); r == Own {
			return r, datasets
		}
	}
	if a.gate.Ledger == nil {
		return r, nil
	}
	matches := a.matches()
	if a.o.purpose.exact() {
		return a.exact(matches, r)
	}
	own, whole := false, false
	for _, m := range matches {
		mine := m.Dataset == a.o.dataset
		if m.accessed || m.Void && !mine {
			a.o.before = m.Dataset
		}
		switch {
		case mine:
			if own = own || m.own; m.Protected {
				r = Own
			}
		case m.Protected:
			datasets, whole = append(datasets, m.Dataset), whole || m.whole
			fallthrough
		default:
			a.also = append(a.also, m.Dataset)
		}
	}
	if slices.ContainsFunc(a.gate.known, func(k ledger.Known) bool { return k.Dataset == a.o.dataset && k.Void }) {
		a.o.before = "" // its statement says so already
	}
	switch {
	case own: // a mixture of two datasets is neither, so a part is not enough
		return Own, []string{a.o.dataset}
	case len(datasets) > 0:
		return other(whole), datasets
	case r == Own:
		return Own, []string{a.o.dataset}
	}
	return a.reach(), nil
}

// exact is relation for exact figures. Datasets whose guarantee has ended have nothing left to lose: the access is
// recorded and not refused.
func (a *admission) exact(matches []match, r Relation) (_ Relation, datasets []string) {
	whole := false
	for _, m := range matches {
		switch {
		case !m.Protected:
		case m.Void:
			a.o.void = append(a.o.void, m.Dataset)
		default:
			datasets, whole = append(datasets, m.Dataset), whole || m.whole
		}
	}
	switch {
	case slices.Contains(datasets, a.o.dataset):
		return Own, datasets
	case len(datasets) > 0:
		return other(whole), datasets
	}
	return max(r, a.reach()), nil
}

func other(whole bool) Relation {
	if whole {
		return Whole
	}
	return Part
}

// reach returns the relation of rows that matched nothing: Disjoint, unless they could not be compared.
func (a *admission) reach() Relation {
	switch {
	case !slices.ContainsFunc(a.gate.known, func(k ledger.Known) bool { return k.Protected }):
		return Disjoint
	case a.o.by[byName] == nil && (a.o.away || a.RowKey() != nil):
		return Foreign
	case a.gate.tables.dir == "":
		return Unknown
	}
	return Disjoint
}

// A match is a dataset under whose name the ledger knows the content.
type match struct {
	ledger.Known
	whole    bool // it has the whole content; otherwise a part, or many of its rows
	own      bool // a run that the gate admitted has the whole content
	accessed bool // the content was accessed without a guarantee before the dataset entered
}

// matches returns the datasets that were used with this content, or with a content that shares many rows
// with it.
func (a *admission) matches() []match {
	g := a.gate
	if a.o.by[byName] != nil && a.o.by[byName].n == 0 {
		return nil // no rows match nothing
	}
	var here [][sha256.Size]byte // the whole first
	for _, d := range a.o.digests() {
		here = append(here, mark(g.Ledger, d))
	}
	var beside [][sha256.Size]byte // contents whose overlap was compared as a whole
	for _, t := range a.train {
		if t.by[byName] != nil && a.o.by[byName] != nil {
			beside = append(beside, mark(g.Ledger, t.content.Digest))
		}
	}
	alike := g.tables.alike(a.together(), a.o.purpose.exact(), here, beside)
	var found []match
	for _, k := range g.known {
		among := func(some map[[sha256.Size]byte]bool, marks [][sha256.Size]byte) bool {
			return slices.ContainsFunc(marks, func(m [sha256.Size]byte) bool { return some[m] })
		}
		whole, all := here[:a.o.wholes()], slices.Concat(here, alike)
		m := match{Known: k, whole: among(k.Marks, whole), own: among(k.Own, whole), accessed: among(k.Accessed, all)}
		if m.whole || m.accessed || among(k.Marks, all) {
			found = append(found, m)
		}
	}
	return found
}

// together are the hashes of all tables that the gate has opened for exact figures of this purpose: they are one table.
func (a *admission) together() [2]*hashes {
	by := a.o.by
	for _, o := range a.gate.opened {
		for i := range by {
			if o.purpose == a.o.purpose && o.by[i] != nil && by[i] != nil {
				by[i] = union(o.by[i], by[i])
			}
		}
	}
	return by
}

// score records which protected rows a table for exact figures has.
func (g *Gate) score(o *Opened) error {
	return g.tables.score(o.by, func(marks [][sha256.Size]byte) bool {
		return !g.Void && slices.ContainsFunc(g.known, func(k ledger.Known) bool {
			return k.Protected && !k.Void && slices.ContainsFunc(marks, func(m [sha256.Size]byte) bool { return k.Marks[m] })
		})
	})
}

// tested compares test rows with the training rows of a charged run. Own says that they are the same, or too many of
// them.
func (a *admission) tested() (r Relation, datasets []string) {
	for _, t := range a.train {
		if !t.purpose.charged() {
			continue // the training rows are recorded as not private
		}
		like := apart
		switch {
		case t.Same(a.o):
			like = theSame
		case t.by[byName] != nil && a.o.by[byName] != nil:
			like = compare(t.by[byName], a.o.by[byName])
		default:
			a.encoded = append(a.encoded, t)
		}
		switch a.like = max(a.like, like); like {
		case theSame, alike:
			r, datasets = Own, append(datasets, t.dataset)
		case untold:
			r = max(r, Unknown)
		}
	}
	return r, datasets
}

// compareEncoded compares test rows with training rows whose raw rows have hashes under different keys: by their
// encoded values.
func (a *admission) compareEncoded(test *data.Table) error {
	var key [sha256.Size]byte
	rand.Read(key[:])
	of := func(t *data.Table) *hashes {
		rows := data.Fingerprints(t, key[:])
		return &hashes{rows: data.Hashes{rows}, n: len(rows)}
	}
	rows := of(test)
	for _, t := range a.encoded {
		like := untold
		switch {
		case t.away && a.o.by[byName] == nil: // only this table is here
			return a.refusal(Foreign, nil)
		case t.away:
		case t.table.Coding() == test.Coding():
			like = compare(of(t.table), rows)
		}
		switch a.like = max(a.like, like); like {
		case untold:
			a.notice(Unknown)
		case theSame, alike:
			v := Decide(Test, Own, a.standing())
			if v.Refused {
				return a.refusal(Own, nil)
			}
			a.o.void = append(a.o.void, t.dataset)
		}
	}
	return nil
}

// notice tells the owner that the comparison could not tell.
func (a *admission) notice(r Relation) {
	text := "compared with protected tables as a whole only, since the state directory cannot be read"
	switch {
	case r == Foreign:
		text = fmt.Sprintf("%v; copies and parts of protected tables were not looked for. Pack it on this machine to change that", ErrCannotTell)
	case a.like == untold:
		text = "too few rows occur only once to tell whether test rows are training rows; they are scored as those of other people"
	}
	a.gate.tell(a.path + ": " + text)
}

// refusal is the error for the owner's terminal.
func (a *admission) refusal(r Relation, datasets []string) error {
	say := func(err error, why string) error { return fmt.Errorf("%s: %w: %s", a.path, err, why) }
	const instead = "; exact scores would show protected rows without noise. Use other rows, or none; --void scores them all the same, which ends the guarantee forever"
	them := "them"
	if r == Part {
		them = "them, or more than 5 % of them,"
	}
	switch p := a.judged(); {
	case p == Test && r == Own && a.like == theSame:
		return say(ErrOverlap, "both files hold the same rows"+instead)
	case p == Test && r == Own && a.like == alike:
		return say(ErrOverlap,
			"of the rows that occur once in one file, more than 5 % occur in the other, and chance does not explain it"+instead+
				". Rows are compared by the values of all their columns: where other people can have the same ones, as in a table of few columns, keep a column that tells them apart, or train with holdout: in the spec, whose scores are private")
	case r == Foreign && p == Worker:
		return say(ErrCannotTell,
			"pack it with the coordinator's key (`sotto data key` there, `sotto data pack --row-key` here), or name the file that it was packed from")
	case r == Foreign:
		return say(ErrCannotTell, "pack it on this machine, or name the file that it was packed from")
	case r == Unknown:
		return say(ErrProtected, "Sotto must assume so, since it cannot read the state directory, by which it recognizes copies")
	case a.o.purpose == Worker:
		return say(ErrProtected,
			fmt.Sprintf("this machine's ledger knows them as %s, and the run does not reserve in that ledger. Give the coordinator that ledger, or use other rows", quoted(datasets)))
	case p.charged() || p == Worker:
		return say(ErrProtected,
			fmt.Sprintf("the ledger knows %s as %s. Write dataset: %s in the schema, so that its budget is charged", them,
				quoted(datasets), datasets[0]))
	case r < Part:
		return fmt.Errorf("dataset %q is in %s: %w", a.o.dataset, a.gate.Ledger.Where(), ErrWouldEnd)
	}
	return say(ErrProtected,
		fmt.Sprintf("the ledger knows them, or more than 5 %% of them, as %s. Use other rows; --void accesses them all the same, which ends the guarantee forever", quoted(datasets)))
}
