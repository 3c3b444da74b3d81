// Package ledger keeps one privacy budget for each dataset over the dataset's
// whole life, across runs, processes and people.
//
// A run reserves before it looks at a row and settles after it; a crash between the
// two leaves the reservation spent (rules.md, R1). What a dataset counts in is fixed
// when it enters. In caps, runs add up their own ε and δ, and get nothing back. In
// a filter's currency a run reserves the cost of its plan and settles for the events
// that it charged, which are how the plan begins: what is held or settled stays
// within the lifetime budget (PROOFS.md#tally of package account). The events are
// those that the ledger itself recorded while the run went on; the run directory is
// compared with them, and where it disagrees the whole plan is settled (R25).
//
//	l, err := ledger.Open(ctx, "")             // SQLite in the user's data directory
//	token, err := l.Reserve(ctx, reservation)  // durable when it returns
//	err = l.Reach(ctx, run, token, n, charged) // before each group of releases: record what it cost
//	err = l.Resume(ctx, run, token, next, all) // after a crash: swap the one-time token
//	err = l.Settle(ctx, run, token, settlement)
//
// # What is stored
//
// The entries are the only truth. Each holds the hash of the one before it, and
// what has been spent and which token is current are computed from the entries
// inside the transaction that depends on them. One row beside them holds the
// format's version, the key of the content marks and the head of the chain;
// writers take turns by locking that row.
//
// Two tables stand beside the chain, since an entry for each group of releases would
// make it endless: how many batches each open run reached, and what they cost. What a
// settlement rests on is copied into its entry, so that [Ledger.Verify] can check it
// against the plan. Of an open run the chain shows its plan and how far it had come at
// each resume. Where rows are missing, or go less far than these entries or each other
// say, its settlement is the whole plan. Neither the chain nor the witness shows where
// somebody rewrites the rows of both tables so that they agree on less: who may write
// the ledger can make the settlement of a run that is open then cost less.
//
// A filter's entries hold events, of which the costs are computed when they are
// read. An older version of Sotto refuses a ledger that has such a dataset.
//
// Sums of caps are exact. Every ε and δ is taken as the decimal number that it prints
// as, which is the number that a person declared, so ten runs of 0.1 fit a budget
// of 1. A float64 is within one part in 2⁵³ of its decimal, hence so is the sum
// of what the runs guarantee of the lifetime budget.
//
// # What the chain shows
//
// [Ledger.Verify] finds an entry that was changed, removed, inserted or moved, and
// entries that never were allowed. It cannot find what somebody does who rewrites
// the whole file, hashes and head included, or who puts back an older copy of it.
//
// That shows against a head that was kept elsewhere. The owner's state directory
// keeps one of each ledger: what does not continue it is refused with a
// [*WitnessError] (docs/adr/0026-witness-of-a-ledger.md), until [Accept] records
// the restoration. [Ledger.Head] gives the head, a run directory stores it,
// [Ledger.Contains] compares.
package ledger
