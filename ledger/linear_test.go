package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Histories of several writers at once, each with its own Ledger as in a process of its own, are
// checked for linearizability: there is an order of the operations, in which each lies between its
// call and its return, that the model below gives the same answers to. Seeds choose the operations;
// how they overlap is up to the machine.
var (
	histories = flag.Int("histories", 0, "check so many concurrent histories on each kind of database, in place of a few dozen")
	seed      = flag.Uint64("seed", 1, "of the first concurrent history")
)

const (
	writers     = 3
	perOne      = 5 // operations of each writer
	perLedger   = 5 // histories, the last of which restores an old copy
	runsOfAll   = 5
	mostBudget  = 25
	mostCharged = 3 // batches of a run, at most those of any plan
)

type operation uint8

const (
	opBudget operation = iota
	opReserve
	opReach
	opResume
	opSettle
	opRead
	opOpen    // a new Ledger
	opSave    // keeps a copy of the ledger
	opRewrite // puts that copy back
	opAccept  // as `sotto ledger accept` does
)

// A step is an operation: n is a budget, a plan or a number of charged batches, all counted in batches.
type step struct {
	op          operation
	writer      int
	run         int
	n           int
	token, next int // numbers of tokens
}

// An answer is the error as a word, "" for none, and what was read.
type answer struct {
	err              string
	runs, open, held int
}

// The model. A world is the ledger of one dataset, and what each writer has seen of restorations.
type (
	world struct {
		now, kept counts
		restored  int
		seen      [writers]int
	}
	counts struct {
		exists bool // of a kept copy
		budget int
		runs   [runsOfAll]modeled
	}
	modeled struct {
		token, plan       int
		reached, recorded int
		again, settled    bool
		cost              int
	}
)

// after is what the step answers and leaves. In caps a run keeps what it reserved.
func (w world) after(s step, inCaps bool) (answer, world) {
	b, r := &w.now, &w.now.runs[s.run]
	held := 0
	for _, r := range b.runs {
		held += r.cost
	}
	current := func(token int) string {
		switch {
		case r.plan == 0:
			return "unknown"
		case r.settled:
			return "settled"
		case r.token != token:
			return "stale"
		}
		return ""
	}
	behind := func() string {
		if s.n < r.reached {
			return "behind"
		}
		return ""
	}
	var a answer
	switch s.op {
	case opBudget:
		b.budget = s.n
	case opReserve:
		switch {
		case r.plan > 0:
			a.err = "exists"
		case held+s.n > b.budget:
			a.err = "exhausted"
		default:
			*r = modeled{token: s.next, plan: s.n, cost: s.n}
		}
	case opReach:
		if a.err = current(s.token); a.err == "" {
			r.reached, r.recorded = max(r.reached, s.n), max(r.recorded, s.n)
		}
	case opResume:
		if a.err = cmp.Or(current(s.token), behind()); a.err == "" {
			r.token, r.again, r.recorded = s.next, r.again || s.n < r.recorded, max(r.recorded, s.n)
		}
	case opSettle:
		if a.err = cmp.Or(current(s.token), behind()); a.err == "" {
			if r.settled = true; !inCaps && !r.again && s.n <= r.recorded {
				r.cost = r.recorded
			}
		}
	case opRead:
		a.held = held
		for _, r := range b.runs {
			if r.plan > 0 {
				a.runs++
			}
			if r.plan > 0 && !r.settled {
				a.open++
			}
		}
	case opOpen:
		w.seen[s.writer] = w.restored
	case opSave:
		w.kept = w.now
		w.kept.exists = true
	case opRewrite:
		if w.kept.exists {
			w.now, w.restored = w.kept, w.restored+1
		}
	}
	return a, w
}

// lawful reports whether the step may answer so, and what it leaves. After a restoration a writer may be told, without
// effect, that the ledger lacks what it saw: until it opens a new Ledger, or until somebody accepts it. A last entry that another
// writer notes with the witness only then has the same effect.
func lawful(inCaps bool) func(state, input, output any) (bool, any) {
	return func(state, input, output any) (bool, any) {
		w, s := state.(world), input.(step)
		if output.(answer).err == "lost" {
			return w.restored > w.seen[s.writer] || s.op == opOpen && w.restored > 0, w
		}
		a, next := w.after(s, inCaps)
		return a == output.(answer), next
	}
}

func linearizable(history []porcupine.Operation, inCaps bool) bool {
	model := porcupine.Model{Init: func() any { return world{} }, Step: lawful(inCaps)}
	return porcupine.CheckOperations(model, history)
}

// A system answers steps; several writers call it at once.
type system interface{ do(s step) answer }

// history has the writers do random steps at once. Some histories restore an old copy.
func history(sys system, random *rand.Rand, restores bool) []porcupine.Operation {
	var all []porcupine.Operation
	var clock atomic.Int64
	var mu sync.Mutex
	tokens := [runsOfAll][]int{}
	made := 0
	record := func(s step) {
		call := clock.Add(1)
		a := sys.do(s)
		end := clock.Add(1)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, porcupine.Operation{ClientId: s.writer, Input: s, Call: call, Output: a, Return: end})
	}
	record(step{op: opBudget, n: 5 + random.IntN(mostBudget-4)})
	if restores {
		record(step{op: opSave})
	}
	var done sync.WaitGroup
	for writer := range writers {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		done.Go(func() {
			for range perOne {
				s := step{writer: writer, run: random.IntN(runsOfAll)}
				common := []operation{opReserve, opReserve, opReserve, opReach, opReach, opResume, opResume, opSettle, opSettle, opBudget, opRead}
				s.op = common[random.IntN(len(common))]
				if restores && random.IntN(3) == 0 {
					s.op = []operation{opSave, opRewrite, opAccept, opOpen}[random.IntN(4)]
				}
				mu.Lock()
				if s.op != opReserve { // seldom of a run that nobody reserved yet
					for range runsOfAll {
						if len(tokens[s.run]) == 0 && random.IntN(8) > 0 {
							s.run = random.IntN(runsOfAll)
						}
					}
				}
				made++
				s.next = made
				switch known := tokens[s.run]; {
				case s.op == opReserve:
					tokens[s.run] = append(known, s.next)
				case len(known) > 0:
					s.token = known[len(known)-1-min(random.IntN(len(known)), random.IntN(len(known)))]
					if s.op == opResume {
						tokens[s.run] = append(known, s.next)
					}
				}
				mu.Unlock()
				switch s.op {
				case opBudget:
					s.n = 1 + random.IntN(mostBudget)
				case opReserve:
					s.n = mostCharged + random.IntN(5)
				case opReach, opResume, opSettle:
					s.n = random.IntN(mostCharged + 1)
				}
				record(s)
			}
		})
	}
	done.Wait()
	return all
}

// ledgers is the system under test: a Ledger for each writer, of one database.
type ledgers struct {
	t       *testing.T
	where   string
	disk    Disk // on which half of all ledgers have checkpoints
	dataset string
	number  uint64
	inCaps  bool
	each    [writers]*Ledger
	raw     *Ledger // to copy and to overwrite tables
	kept    map[string][][]any
}

func newLedgers(t *testing.T, where string, every int64) *ledgers {
	g := &ledgers{t: t, where: where, disk: often(every)}
	for _, l := range []**Ledger{&g.each[0], &g.each[1], &g.each[2], &g.raw} {
		var err error
		*l, err = relaxed(t.Context(), g.disk, where)
		must(t, err)
	}
	if every > 0 { // a table that a later transaction makes could not be copied
		_, err := g.raw.store.db.Exec(createCheckpoint)
		must(t, err)
	}
	return g
}

// relaxed opens a ledger none of whose commits need outlast a power cut.
func relaxed(ctx context.Context, d Disk, where string) (*Ledger, error) {
	l, err := d.Open(ctx, where)
	if err == nil && !postgres.IsURL(where) {
		_, err = l.store.db.Exec(`PRAGMA synchronous = OFF`)
	}
	return l, err
}

func (g *ledgers) close() {
	for _, l := range append(g.each[:], g.raw) {
		must(g.t, l.Close())
	}
}

// budgetOf covers n batches and no more.
func (g *ledgers) budgetOf(n int) privacy.Budget {
	b := privacy.Budget{Epsilon: float64(n) / 1000, Delta: 1e-6, Adjacency: privacy.AddRemove}
	if !g.inCaps {
		b.Epsilon = (costs()[n] + costs()[n+1]) / 2
	}
	return b
}

// costs are the least ε that cover 0, 1, 2 … batches in zCDP.
var costs = sync.OnceValue(func() (all []float64) {
	for n := range mostBudget + 2 {
		tally := account.NewTally(account.ZCDPCurrency{}, privacy.AddRemove)
		if err := tally.Hold("", batch(n)); err != nil {
			panic(err)
		}
		all = append(all, tally.Epsilon(1e-6))
	}
	return all
})

func batch(n int) privacy.Event { return privacy.Repeated{Count: n, Of: privacy.Gaussian{Sigma: 10}} }

func (g *ledgers) do(s step) answer {
	ctx, l := g.t.Context(), g.each[s.writer]
	run, token, next := fmt.Sprint(g.dataset, "-", s.run), g.token(s.token), g.token(s.next)
	var a answer
	var err error
	switch s.op {
	case opBudget:
		currency := InZCDP
		if g.inCaps {
			currency = InCaps
		}
		err = l.SetBudget(ctx, g.dataset, "record", currency, g.budgetOf(s.n))
	case opReserve:
		r := Reservation{Dataset: g.dataset, Unit: "record", Adjacency: privacy.AddRemove, Run: run, Token: next, Epsilon: float64(s.n) / 1000, Plan: batch(s.n)}
		_, err = l.Reserve(ctx, r)
	case opReach:
		err = l.Reach(ctx, run, token, s.n, batchesOf(s.n, 10))
	case opResume:
		err = l.Resume(ctx, run, token, next, batchesOf(s.n, 10))
	case opSettle:
		end := charged(s.n, 10)
		end.Epsilon = 0.001
		err = l.Settle(ctx, run, token, end)
	case opRead:
		var d Dataset
		if d, err = l.Dataset(ctx, g.dataset); err == nil {
			a = answer{runs: d.Runs, open: d.Open, held: g.held(d)}
		}
	case opOpen:
		var again *Ledger
		if again, err = relaxed(ctx, g.disk, g.where); err == nil {
			must(g.t, l.Close())
			g.each[s.writer] = again
		}
	case opSave:
		err = g.overwrite(false)
	case opRewrite:
		err = g.overwrite(true)
	case opAccept:
		if _, err = g.disk.Accept(ctx, g.where); errors.Is(err, ErrNothingLost) {
			err = nil
		}
	}
	a.err = word(err)
	return a
}

func (g *ledgers) token(n int) string { return fmt.Sprintf("%016x%016x", g.number, n) }

// held is what runs hold or settled, in batches.
func (g *ledgers) held(d Dataset) int {
	if g.inCaps {
		return int(math.Round(d.Spent.Epsilon * 1000))
	}
	one := account.NewTally(account.ZCDPCurrency{}, privacy.AddRemove)
	must(g.t, one.Hold("", batch(1)))
	return int(math.Round(*d.Part / one.Part(privacy.Budget{Epsilon: d.Budget.Epsilon, Delta: d.Budget.Delta, Adjacency: privacy.AddRemove})))
}

func word(err error) string {
	if err == nil {
		return ""
	}
	for text, known := range map[string]error{"exhausted": privacy.ErrExhausted, "exists": ErrRunExists, "unknown": ErrUnknownRun, "settled": ErrSettled,
		"stale": ErrStaleToken, "behind": ErrBehind, "lost": ErrWitness} {
		if errors.Is(err, known) {
			return text
		}
	}
	if broken := (*ChainError)(nil); errors.As(err, &broken) {
		return "lost" // Open reads twice: here before and after a restoration
	}
	return err.Error()
}

// overwrite keeps a copy of the ledger's tables, or puts it back, as a person would who restores a database.
func (g *ledgers) overwrite(back bool) error {
	ctx := g.t.Context()
	tx, err := g.raw.store.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := lock(ctx, tx); err != nil {
		return err
	}
	if back && g.kept == nil {
		return nil
	}
	copied := map[string][][]any{}
	tables := []string{"sotto_ledger", "sotto_entries", "sotto_progress", "sotto_charges"}
	if g.disk.Every == 2 { // where it is 1, the checkpoint stays, and shows that entries are missing
		tables = append(tables, "sotto_checkpoint")
	}
	for _, table := range tables {
		if back {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
			if err := insertRows(ctx, tx, table, g.kept[table]); err != nil {
				return err
			}
			continue
		}
		if copied[table], err = rowsOf(ctx, tx, table); err != nil {
			return err
		}
	}
	if !back {
		g.kept = copied // the lock on the head is held
	}
	return tx.Commit()
}

func insertRows(ctx context.Context, tx *sql.Tx, table string, rows [][]any) error {
	for _, row := range rows {
		marks := make([]string, len(row))
		for i := range row {
			marks[i] = fmt.Sprintf("$%d", i+1)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES ("+strings.Join(marks, ", ")+")", row...); err != nil {
			return err
		}
	}
	return nil
}

func rowsOf(ctx context.Context, q querier, table string) (all [][]any, err error) {
	rows, err := q.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func TestLinearizable(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		answers := map[string]int{}
		count := cmp.Or(*histories, 60)
		for first := 0; first < count && !t.Failed(); first += perLedger {
			t.Run(fmt.Sprint(*seed+uint64(first)), func(t *testing.T) {
				g := newLedgers(t, another(t, where), int64(first/perLedger%3)) // 0: the usual number of entries, so none
				defer g.close()
				for i := first; i < min(first+perLedger, count); i++ {
					restores := i == first+perLedger-1 // the last of this ledger
					seed := *seed + uint64(i)
					g.dataset, g.number, g.inCaps = fmt.Sprint("d", seed), seed, seed%2 == 0
					all := history(g, rand.New(rand.NewPCG(seed, 1)), restores)
					for _, o := range all {
						answers[o.Output.(answer).err]++
					}
					if !linearizable(all, g.inCaps) {
						t.Fatalf("no order of these operations explains their answers; -seed %d (in caps: %v)\n%s", seed, g.inCaps, listed(all))
					}
					if !restores {
						verify(t, g.raw)
					}
				}
			})
		}
		t.Log(count, "histories were answered:", answers)
		for _, want := range []string{"", "exhausted", "exists", "unknown", "settled", "stale", "behind", "lost"} {
			if answers[want] == 0 {
				t.Errorf("no operation was answered %q", want)
			}
		}
	})
}

func listed(all []porcupine.Operation) string {
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, o := range all {
		fmt.Fprintf(&b, "%3d to %3d: %+v: %+v\n", o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}

// racing is a ledger without a lock: what two writers do at once can be lost.
type racing struct {
	mu sync.Mutex
	w  world
}

func (r *racing) do(s step) answer {
	r.mu.Lock()
	w := r.w
	r.mu.Unlock()
	runtime.Gosched()
	a, next := w.after(s, true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.op != opRead {
		r.w = next
	}
	return a
}

// A ledger whose writers do not exclude each other is found.
func TestLinearizableFindsARace(t *testing.T) {
	for i := range uint64(10_000) {
		if !linearizable(history(&racing{}, rand.New(rand.NewPCG(i, 1)), false), true) {
			t.Logf("found after %d histories", i+1)
			return
		}
	}
	t.Error("10,000 histories of a ledger without a lock pass as linearizable")
}
