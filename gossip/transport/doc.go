// Package transport carries what owners of rows exchange between machines: an append-only store, over
// NATS with JetStream or in one process, and a node for each owner, which keeps a journal (network.md).
//
// # Both or neither
//
// In a round an owner sends a vector to each of its peers and receives theirs. One key of the store
// decides whether the exchange along an edge counts. Either side proposes a value: C (commit) once it
// holds both vectors, A (abort) after a time without the peer's. The first proposal decides for both. The
// weights are those of the scheduled edges, so any set of committed ones is a symmetric doubly stochastic
// matrix, and the owners' mean does not change.
//
// # What the hub is trusted with
//
// No owner trusts the hub with its privacy: the hub sees only noisy vectors that were already charged.
// What it loses, delays or forges costs accuracy. Owners sign their vectors.
package transport
