package transport

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/sottodp/sotto/run/runlog"
)

// Keys of masked sums (network.mode: sum). Owners write those that begin with sum, each its own; the hub those that
// begin with all. Numbers are those of the attempt and of the sum within it.

// PresenceKey is where an owner says that it is there for an attempt.
func PresenceKey(owner, attempt int) string { return fmt.Sprintf("sum.%d.here.%d", owner, attempt) }

// PartKey is where an owner's masked part is.
func PartKey(owner, attempt, sum int) string {
	return fmt.Sprintf("sum.%d.part.%d.%d", owner, attempt, sum)
}

// StopKey is where an owner asks for an attempt to be given up, at a sum that it cannot make or has waited for.
func StopKey(owner, attempt, sum int) string {
	return fmt.Sprintf("sum.%d.stop.%d.%d", owner, attempt, sum)
}

// PresencesKey is where the hub repeats the presences of all owners.
func PresencesKey(attempt int) string { return fmt.Sprintf("all.here.%d", attempt) }

// OutcomeKey is where the hub says how a sum ended. It is written once: a sum was made or the attempt was given up.
func OutcomeKey(attempt, sum int) string { return fmt.Sprintf("all.sum.%d.%d", attempt, sum) }

// sumFloats is how many numbers of a sum one message has, so that with its head it is below the server's megabyte.
const sumFloats = 120_000

// sumChunks is the number of messages of a vector of a sum. The first is stored last.
func sumChunks(n int) int { return max(1, (n+sumFloats-1)/sumFloats) }

// Sign signs a text that an owner stores under a key of the store, for the network of that config.
func (c *Credentials) Sign(config Config, key string, text []byte) []byte {
	signature := sign(config, c.key(), slices.Concat([]byte(key), []byte{' '}, text))
	return slices.Concat(text, signature[len(key)+1+len(text):])
}

// Signed returns the text that an owner has signed under a key, which is all of b but its signature.
func (n *Network) Signed(config Config, owner int, key string, b []byte) ([]byte, error) {
	if owner < 0 || owner >= len(n.Owners) || len(b) < ed25519.SignatureSize {
		return nil, fmt.Errorf("%s: %w", key, ErrForged)
	}
	text := b[:len(b)-ed25519.SignatureSize]
	if _, err := signed(config, n.key(owner), slices.Concat([]byte(key), []byte{' '}, b)); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", key, n.Owners[owner].Name, err)
	}
	return text, nil
}

// A Presence is an owner's public key of one attempt.
type Presence [sha256.Size]byte

const presenceBytes = sha256.Size + ed25519.SignatureSize

// PutStop asks for an attempt to be given up. If the store holds another value in this owner's
// name, or a hub of an earlier build accepts no signature there, PutStop stores an invalid part
// instead, which has the same effect.
func PutStop(ctx context.Context, r Store, c *Credentials, config Config, attempt, sum int) error {
	key := StopKey(c.Owner, attempt, sum)
	value := c.Sign(config, key, nil)
	held, err := r.Put(ctx, key, value)
	if errors.Is(err, ErrFull) || err == nil && !bytes.Equal(held, value) {
		_, err = r.Put(ctx, PartKey(c.Owner, attempt, sum), value)
	}
	return err
}

// Presences returns what all owners have signed in a list of the hub.
func (n *Network) Presences(config Config, attempt int, list []byte) ([]Presence, error) {
	if len(list) != len(n.Owners)*presenceBytes {
		return nil, fmt.Errorf("%s: found %d bytes: %w", PresencesKey(attempt), len(list), ErrForged)
	}
	all := make([]Presence, len(n.Owners))
	for i := range all {
		text, err := n.Signed(config, i, PresenceKey(i, attempt), list[i*presenceBytes:(i+1)*presenceBytes])
		if err != nil {
			return nil, err
		}
		copy(all[i][:], text)
	}
	return all, nil
}

// A Claim is what an owner signs of its masked part.
type Claim struct {
	Numbers int
	Context [sha256.Size]byte // digest of what the owner believes that all owners agree on
	Hash    [sha256.Size]byte // of the masked numbers
}

const claimBytes = 8 + 2*sha256.Size + ed25519.SignatureSize

func (c *Claim) text() []byte {
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(c.Numbers)), c.Context[:], c.Hash[:])
}

// claim reads an owner's claim.
func (n *Network) claim(config Config, owner, attempt, sum int, b []byte) (c Claim, err error) {
	text, err := n.Signed(config, owner, PartKey(owner, attempt, sum), b)
	if err != nil {
		return c, err
	}
	if len(text) != claimBytes-ed25519.SignatureSize {
		return c, fmt.Errorf("%s of %s: %w", PartKey(owner, attempt, sum), n.Owners[owner].Name, ErrForged)
	}
	c.Numbers = int(binary.LittleEndian.Uint64(text))
	copy(c.Context[:], text[8:])
	copy(c.Hash[:], text[8+sha256.Size:])
	return c, nil
}

// chunk is a part of a vector as it travels.
func chunk(b []byte, k int) []byte { return b[8*sumFloats*k : min(len(b), 8*sumFloats*(k+1))] }

// PutPart stores an owner's masked numbers. It reports false if the store holds other ones.
func PutPart(ctx context.Context, r Store, c *Credentials, config Config, attempt, sum int, context [sha256.Size]byte,
	numbers []byte) (bool, error) {
	key := PartKey(c.Owner, attempt, sum)
	claim := Claim{len(numbers) / 8, context, sha256.Sum256(numbers)}
	for k := sumChunks(claim.Numbers) - 1; k >= 0; k-- {
		at, value := chunkKey(key, k, k+1), chunk(numbers, k)
		if k == 0 {
			value = slices.Concat(c.Sign(config, key, claim.text()), value)
		}
		if held, err := r.Put(ctx, at, value); err != nil {
			return false, err
		} else if !bytes.Equal(held, value) {
			return false, nil
		}
	}
	return true, nil
}

// whole returns a vector from its first message, without the head, and the others in the store.
func whole(ctx context.Context, r Store, key string, n int, first []byte) ([]byte, error) {
	if n < 0 || n > MaxSum || len(first) != 8*min(n, sumFloats) {
		return nil, fmt.Errorf("%s: %w", key, ErrForged)
	}
	all := slices.Clip(first) // the store's own memory ends there
	for k := 1; k < sumChunks(n); k++ {
		b, err := r.Get(ctx, chunkKey(key, k, k+1))
		if err != nil {
			return nil, err
		}
		if len(b) != 8*min(sumFloats, n-k*sumFloats) {
			return nil, fmt.Errorf("%s: %w", key, ErrForged)
		}
		all = append(all, b...)
	}
	return all, nil
}

// MaxSum is the most numbers of a sum.
const MaxSum = runlog.MaxSum

// An Outcome says how a sum ended: with a total or, if Lacks is not negative, with the attempt given up.
type Outcome struct {
	Lacks  int     // the owner who asked for the end, or whose part was missing; -1: none
	Claims []Claim // of all owners, each signed
	Total  []byte  // numbers as they travel
}

const (
	made    = 'M'
	givenUp = 'G'
)

// ReadOutcome reads what the hub stored under an OutcomeKey.
func ReadOutcome(ctx context.Context, r Store, n *Network, config Config, attempt, sum int,
	b []byte) (o Outcome, err error) {
	bad := fmt.Errorf("%s: %w", OutcomeKey(attempt, sum), ErrForged)
	switch {
	case len(b) == 9 && b[0] == givenUp:
		lacks := binary.LittleEndian.Uint64(b[1:])
		if lacks >= uint64(len(n.Owners)) {
			return o, bad
		}
		o.Lacks = int(lacks)
		return o, nil
	case len(b) < 1+claimBytes*len(n.Owners) || b[0] != made:
		return o, bad
	}
	o.Lacks, b = -1, b[1:]
	for i := range n.Owners {
		c, err := n.claim(config, i, attempt, sum, b[:claimBytes])
		if err != nil {
			return o, err
		}
		o.Claims, b = append(o.Claims, c), b[claimBytes:]
		if c.Numbers != o.Claims[0].Numbers {
			return o, bad
		}
	}
	o.Total, err = whole(ctx, r, OutcomeKey(attempt, sum), o.Claims[0].Numbers, b)
	return o, err
}

// An Adder is the hub's part in masked sums: it says when all owners are there, and adds up what they store. It sees
// only what the store has, and begins where another one ended. Owners need not trust it: masks hide what it adds, and
// what it says wrongly makes the owners' contexts differ.
type Adder struct {
	Store   Store
	Network *Network
	Config  Config
	// Forget, if set, deletes the parts of all earlier attempts. All owners are there for the next one, so each has the
	// outcomes of those in its journal.
	Forget func(ctx context.Context) error
	// Notice, if set, gets why an attempt is given up, and which stops count for nothing.
	Notice func(text string)
}

// Run adds until the context ends or the store fails.
func (a *Adder) Run(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		if held, err := a.has(ctx, PresencesKey(attempt+1)); err != nil {
			return err
		} else if held {
			continue
		}
		if err := a.attempt(ctx, attempt); err != nil {
			return err
		}
	}
}

func (a *Adder) has(ctx context.Context, key string) (bool, error) {
	_, err := a.Store.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNone) {
		return false, err
	}
	return err == nil, nil
}

// attempt makes the sums of an attempt until it is given up or all owners are there for the next.
func (a *Adder) attempt(ctx context.Context, attempt int) error {
	if held, err := a.has(ctx, PresencesKey(attempt)); err != nil {
		return err
	} else if !held {
		if ok, err := a.meet(ctx, attempt); err != nil || !ok {
			return err
		}
	}
	for sum := 0; ; sum++ {
		over, err := a.sum(ctx, attempt, sum)
		if err != nil || over {
			return err
		}
	}
}

// meet waits for the presences of all owners and repeats them. An owner that signs none ends the attempt.
func (a *Adder) meet(ctx context.Context, attempt int) (bool, error) {
	var list []byte
	for i := range a.Network.Owners {
		key := PresenceKey(i, attempt)
		b, err := a.Store.Get(ctx, key) // it may have heard of it in the attempt before, and waits for no second announcement
		if errors.Is(err, ErrNone) {
			_, b, err = a.Store.Await(ctx, key)
		}
		if err != nil {
			return false, err
		}
		if text, err := a.Network.Signed(a.Config, i, key, b); err != nil || len(text) != sha256.Size {
			return false, a.giveUp(ctx, attempt, 0, i, "what %s stored as its key of the attempt is not signed by it", a.name(i))
		}
		list = append(list, b...)
	}
	if a.Forget != nil {
		if err := a.Forget(ctx); err != nil {
			return false, err
		}
	}
	_, err := a.Store.Put(ctx, PresencesKey(attempt), list)
	return true, err
}

func (a *Adder) name(owner int) string { return a.Network.Owners[owner].Name }

func (a *Adder) giveUp(ctx context.Context, attempt, sum, lacks int, why string, args ...any) error {
	_, err := a.Store.Put(ctx, OutcomeKey(attempt, sum), binary.LittleEndian.AppendUint64([]byte{givenUp}, uint64(lacks)))
	if err == nil {
		a.notice("attempt %d is given up at sum %d: %s", attempt+1, sum+1, fmt.Sprintf(why, args...))
	}
	return err
}

func (a *Adder) notice(format string, args ...any) {
	if a.Notice != nil {
		a.Notice(fmt.Sprintf(format, args...))
	}
}

// sum makes one sum. It reports true if the attempt is over: given up, or all owners are there for the next one. A stop
// at its first sum ends it once another owner's part shows that it is of numbers: the sum that ends a run has none,
// masks nothing, and needs no key that an owner could lack.
func (a *Adder) sum(ctx context.Context, attempt, sum int) (over bool, err error) {
	held, err := a.Store.Get(ctx, OutcomeKey(attempt, sum))
	if err == nil {
		return len(held) > 0 && held[0] == givenUp, nil
	} else if !errors.Is(err, ErrNone) {
		return false, err
	}
	s := &summed{totals: map[int][]int64{}, parts: map[int][]int{}, claims: make([][]byte, len(a.Network.Owners))}
	if over, err := a.collect(ctx, attempt, sum, s); over || err != nil {
		return over, err
	}
	most := s.most()
	for i := range a.Network.Owners {
		if !slices.Contains(s.parts[most], i) {
			return true, a.giveUp(ctx, attempt, sum, i, "the part of %s has another length than those of other owners",
				a.name(i))
		}
	}
	all := runlog.Numbers(s.totals[most])
	for k := sumChunks(most) - 1; k >= 0; k-- {
		value := chunk(all, k)
		if k == 0 {
			value = slices.Concat([]byte{made}, slices.Concat(s.claims...), value)
		}
		if _, err := a.Store.Put(ctx, chunkKey(OutcomeKey(attempt, sum), k, k+1), value); err != nil {
			return false, err
		}
	}
	return false, nil
}

// summed is what the owners' parts add up to so far. All should have one length.
type summed struct {
	totals map[int][]int64 // by length
	parts  map[int][]int   // the owners of parts of each length
	claims [][]byte        // by owner
	made   int             // parts
}

// add adds the part of owner i.
func (s *summed) add(i int, numbers, claim []byte) {
	length := len(numbers) / 8
	if s.totals[length] == nil {
		s.totals[length] = make([]int64, length)
	}
	runlog.AddNumbers(s.totals[length], numbers)
	s.parts[length] = append(s.parts[length], i)
	s.claims[i] = claim
	s.made++
}

// most is the length that most parts have; of several, the greatest.
func (s *summed) most() int {
	most := -1
	for length, who := range s.parts {
		if most < 0 || len(who) > len(s.parts[most]) || len(who) == len(s.parts[most]) && length > most {
			most = length
		}
	}
	return most
}

// collect awaits the part of every owner. It reports true if the attempt is over.
func (a *Adder) collect(ctx context.Context, attempt, sum int, s *summed) (over bool, err error) {
	n := len(a.Network.Owners)
	var keys []string // parts, then presences of the next attempt, then what ends this one
	var left []int
	for k, key := range []func(i int) string{
		func(i int) string { return PartKey(i, attempt, sum) },
		func(i int) string { return PresenceKey(i, attempt+1) },
		func(i int) string { return StopKey(i, attempt, sum) },
	} {
		for i := range n {
			keys, left = append(keys, key(i)), append(left, k*n+i)
		}
	}
	var stops []int // owners who asked for the end
	for here := 0; s.made < n; {
		if k := len(stops); k > 0 && (sum > 0 || k == n || s.made > len(s.parts[0])) {
			return true, a.giveUp(ctx, attempt, sum, stops[0], "%s asked for the end", a.name(stops[0]))
		}
		at, b, err := a.Store.Await(ctx, keys...)
		if err != nil {
			return false, err
		}
		what, i := left[at]/n, left[at]%n
		keys, left = slices.Delete(keys, at, at+1), slices.Delete(left, at, at+1)
		switch what {
		case 0:
			numbers, claim, err := a.part(ctx, i, attempt, sum, b)
			if errors.Is(err, ErrForged) {
				return true, a.giveUp(ctx, attempt, sum, i, "what %s stored as its part is not what it signed", a.name(i))
			} else if err != nil {
				return false, err
			}
			s.add(i, numbers, claim)
		case 1:
			if here++; here == n {
				return true, nil
			}
		case 2:
			if text, err := a.Network.Signed(a.Config, i, StopKey(i, attempt, sum), b); err == nil && len(text) == 0 {
				stops = append(stops, i)
			} else {
				a.notice("what is stored as the wish of %s to end attempt %d is not signed by it and counts for nothing: who stored it has the owner's connection, or its program is of an earlier build. Revoke and invite it again, or update it", a.name(i), attempt+1)
			}
		}
	}
	return false, nil
}

// part returns the numbers of an owner's part, and its claim with the signature.
func (a *Adder) part(ctx context.Context, owner, attempt, sum int, b []byte) (numbers, claim []byte, err error) {
	key := PartKey(owner, attempt, sum)
	if len(b) < claimBytes {
		return nil, nil, fmt.Errorf("%s: %w", key, ErrForged)
	}
	c, err := a.Network.claim(a.Config, owner, attempt, sum, b[:claimBytes])
	if err != nil {
		return nil, nil, err
	}
	numbers, err = whole(ctx, a.Store, key, c.Numbers, b[claimBytes:])
	if errors.Is(err, ErrNone) || err == nil && sha256.Sum256(numbers) != c.Hash {
		err = fmt.Errorf("%s: %w", key, ErrForged)
	}
	return numbers, b[:claimBytes], err
}
