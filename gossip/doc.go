// Package gossip trains together without sharing rows: n owners, each behind an oracle of
// its own, exchange noisy vectors with neighbors of a public graph (P3, Liu, Johansson
// and others, Distributed Empirical Risk Minimization With Differential Privacy).
//
// # What is public
//
// The graph, the schedule (who speaks to whom in which round), every vector that an owner
// hands to a [Mixer], and which exchanges failed. The schedule is drawn beforehand from a public seed and
// depends on no row (R22). So an owner's guarantee is for its rows against all other
// owners together and anyone who carries the messages: the owner answers as often as the
// schedule says, each time from a secret sample of its own rows, and that is what is
// accounted. P3's Theorem 1 also counts that an owner is active only now and then; anyone who sees the
// messages sees who is active, and the theorem does not hold (soundness.md, S-3).
//
// An owner's rows are reached only through its [oracle.Oracle], with a meter of its own.
// One person with rows at several owners is covered by the sum of what these spend.
package gossip
