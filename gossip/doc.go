// Package gossip trains together without sharing rows: n owners, each behind an oracle of
// its own, exchange noisy vectors with neighbors of a public graph (P3, Liu, Johansson
// and others, Distributed Empirical Risk Minimization With Differential Privacy).
//
// # What is public
//
// The graph, the schedule (who exchanges with whom in which round), every vector that an owner gives to a
// [Mixer], and the failed exchanges are public. The schedule is drawn beforehand from a public seed and
// depends on no row (R22). An owner's guarantee protects its rows against all other owners together and
// anyone who carries the messages: the accountant counts the owner's answers in the schedule, each from a
// secret sample of its own rows. P3's Theorem 1 also counts that an owner is active only now and then;
// but the messages show who is active, so the theorem does not hold (soundness.md, S-3).
//
// Only an [oracle.Oracle] with the owner's own meter reaches its rows. For one person with rows at
// several owners the costs add up.
package gossip
