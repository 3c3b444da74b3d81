package private

import (
	"context"
	"errors"
)

// A Pool adds up the parts of all owners of a network, so that nobody reads more than the sum (network.mode: sum). A part is an
// owner's exact sum with its share of noise (mech.Share); the Pool masks it, so what it is given is private and what it
// returns is public. For each attempt at a batch the oracle calls Meet, then charges, and then calls Sum once for each query.
type Pool interface {
	// Meet waits until all owners are there for the next attempt. Nothing was charged for it. held says that an earlier process of
	// this owner charged the attempt and masked a part of it: it is not charged again. Owners make as many attempts as they all
	// have planned, retries included; after that the error wraps privacy.ErrExhausted.
	Meet(ctx context.Context) (held bool, err error)
	// Sum returns the sum of all owners' parts modulo 2⁶⁴, n numbers, valid until the next call. part makes the owner's; it is not called for a
	// part that an earlier process masked. asked is a hash of what all owners must agree on beside what was released before. ErrGivenUp says
	// that an owner's part is missing and the attempt is over for all owners: the oracle meets, charges and draws again.
	Sum(ctx context.Context, asked [32]byte, n int, part func() ([]int64, error)) ([]int64, error)
}

// ErrGivenUp is returned by a Pool when the owners have given an attempt up.
var ErrGivenUp = errors.New("private: an owner's part is missing; the attempt was given up")
