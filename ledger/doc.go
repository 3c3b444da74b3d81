// Package ledger keeps one privacy budget for each dataset over its whole life, across runs,
// processes and people.
//
// A run reserves before it accesses a row and settles after it; a crash between the two leaves the
// reservation spent (rules.md, R1). The currency of a dataset is fixed when it enters. In caps, runs add
// up their own ε and δ and get nothing back. In a filter's currency a run reserves the cost of its plan
// and settles for the events that it charged, a prefix of the plan: what is held or settled stays within
// the lifetime budget (PROOFS.md#tally of package account). The ledger itself recorded these events while
// the run went on; where the run directory disagrees, the whole plan is settled (R25).
//
//	l, err := ledger.Open(ctx, "")             // SQLite in the user's data directory
//	token, err := l.Reserve(ctx, reservation)  // durable when it returns
//	err = l.Reach(ctx, run, token, n, charged) // before each group of releases: record what it cost
//	err = l.Resume(ctx, run, token, next, all) // after a crash: swap the one-time token
//	err = l.Settle(ctx, run, token, settlement)
//
// # What is stored
//
// The entries are the only truth. Each holds the hash of the one before it. Costs and current tokens
// are computed from the entries, inside the transaction that depends on them. One row beside them
// holds the format's version, the key of the content marks and the head of the chain; a writer locks
// that row.
//
// Two tables are outside the chain, since an entry for each group of releases would make it endless: how
// many batches each open run reached, and what they cost. A settlement copies what it rests on into its
// entry, so that [Ledger.Verify] can compare it with the plan. For an open run the chain holds the plan,
// and the number of batches at each resume. Where rows are missing, or go less far than these entries or
// each other, the settlement is the whole plan. Neither the chain nor the witness detects a consistent
// change of both tables: a person who may write the ledger can make the settlement of an open run cost
// less.
//
// A long ledger also holds a checkpoint: the state that follows from the entries up to one, authenticated under the
// ledger's key. Commands read it and the entries after it (docs/adr/0086-checkpoint-of-a-ledger.md).
//
// A filter's entries hold events; costs are computed when they are read. An older version of Sotto
// refuses a ledger with such a dataset.
//
// Sums of caps are exact. Every ε and δ is the decimal number that it prints as, which is what a
// person declared: ten runs of 0.1 fit a budget of 1. A float64 is within one part in 2⁵³ of its
// decimal, so the runs' guarantees keep the lifetime budget up to that.
//
// # What the chain shows
//
// [Ledger.Verify] finds an entry that was changed, removed, inserted or moved, and entries that were
// never allowed. It reads all of them and compares the checkpoint; other methods check the entries after it.
// Verify cannot detect that somebody rewrote the whole file, hashes and head included, or put back an older
// copy. A head kept elsewhere shows that. The owner's state directory keeps one for each ledger: Open refuses a
// ledger that does not continue it with a [*WitnessError] (docs/adr/0026-witness-of-a-ledger.md), as one that
// lacks the entry of its own checkpoint, until [Accept] records the restoration. A run directory stores
// [Ledger.Head], and [Ledger.Contains] compares.
package ledger
