// Package transport carries what owners of rows exchange between machines: an append-only store whose keys are written once, over NATS
// with JetStream or in one process, and the place of one owner at it, which keeps a journal (network.md).
//
// # Both or neither
//
// In a round an owner hands a vector to each of its peers and takes theirs. Whether the exchange along an edge counts is decided by
// one key of the store, to which either side proposes: C (commit) once it holds both vectors, A (abort) after
// a time without the peer's. The first proposal stands for both. The weights are those of the scheduled edges, so any set
// of committed ones is a symmetric doubly stochastic matrix and the owners' mean stays what it was.
//
// # What the hub is trusted with
//
// Nothing of an owner's privacy: all that it sees is noisy and paid. What it forgets, delays or forges costs accuracy. Vectors are signed by
// their owners.
package transport
