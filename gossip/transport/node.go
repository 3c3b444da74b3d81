package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// Errors that stop an owner before it releases anything more.
var (
	// ErrBehind: the store holds more of this owner than its journal. The journal is old, or another
	// directory took part in this owner's name.
	ErrBehind = errors.New("the hub holds releases of this owner that its journal does not: the journal was put back from a copy, or another directory has taken part in its name; nothing more may be released")
	// ErrElsewhere: the store holds another text of this owner than its directory.
	ErrElsewhere = errors.New("this owner has come to the hub from another directory, or from this one as it was before a copy was put back; use the directory from which it came first. If that is lost, found a new network")
)

// An ErrMissing names the owners that did not come in time.
type ErrMissing struct {
	What  string
	Names []string
}

func (e *ErrMissing) Error() string {
	return fmt.Sprintf("%s: timed out waiting for %s", e.What, strings.Join(e.Names, ", "))
}

// defaultWait is how long an owner waits for a peer's vector before it proposes to abort.
const defaultWait = 30 * time.Second

// patience is how long the higher of two owners waits for the lower one's decision, to save a write.
const patience = 100 * time.Millisecond

// A Node is one owner at an append-only store. It is the gossip.Mixer of that owner's method, and
// replays activations that the journal holds, without access to a row.
type Node struct {
	Store       Store
	Credentials *Credentials
	Config      Config
	Journal     *runlog.Journal
	Past        Replay        // activations to replay; none in the zero value
	Wait        time.Duration // for a peer's vector; 0: 30 s
	// Charged, if set, gets the number of batches in the journal before an activation is published.
	// Its error stops the owner.
	Charged func(ctx context.Context, batches int) error
	// Crash, if set, is called at named points, in tests.
	Crash func(point string)

	Committed, Aborted int // exchanges, since this process began
}

func (n *Node) owner() int { return n.Credentials.Owner }

func (n *Node) crash(point string) {
	if n.Crash != nil {
		n.Crash(point)
	}
}

// Meet publishes a text of this owner and waits for the texts of all others until the context ends:
// then it returns an *ErrMissing. All use the same key, what. If the store already holds another
// text of this owner, the error is ErrElsewhere.
func (n *Node) Meet(ctx context.Context, what string, text []byte) ([][]byte, error) {
	network := &n.Credentials.Network
	mine := sign(n.Config, n.Credentials.key(), slices.Concat(word(n.owner(), what), text))
	if stored, err := n.Store.Put(ctx, ownKey(n.owner(), what), mine); err != nil {
		return nil, err
	} else if !bytes.Equal(stored, mine) {
		return nil, ErrElsewhere
	}
	get, stop := n.within(ctx)
	defer stop()
	all := make([][]byte, len(network.Owners))
	missing := &ErrMissing{What: what}
	for i, o := range network.Owners {
		b, err := get(ctx, ownKey(i, what))
		if err != nil && !errors.Is(err, ErrNone) {
			return nil, err // who has come is not known
		}
		if err != nil {
			missing.Names = append(missing.Names, o.Name)
			continue
		}
		b, err = signed(n.Config, network.key(i), b)
		said, ok := bytes.CutPrefix(b, word(i, what))
		if err != nil || !ok { // or it said so of something else
			return nil, fmt.Errorf("%s of %s: %w", what, o.Name, ErrForged)
		}
		all[i] = said
	}
	if len(missing.Names) > 0 {
		return all, missing
	}
	return all, nil
}

// SayBehind tells the others that this owner's directory is older than what it has stored (network.mode: sum).
func SayBehind(ctx context.Context, r Store, c *Credentials, config Config) error {
	_, err := r.Put(ctx, ownKey(c.Owner, behind), sign(config, c.key(), word(c.Owner, behind)))
	return err
}

// WatchBehind passes on what other owners say with SayBehind, until the context ends.
func WatchBehind(ctx context.Context, r Store, c *Credentials, config Config, tell func(text string)) {
	told := make([]bool, len(c.Network.Owners))
	told[c.Owner] = true
	for {
		for i, o := range c.Network.Owners {
			if told[i] {
				continue
			}
			if b, err := r.Get(ctx, ownKey(i, behind)); err == nil {
				b, err = signed(config, c.Network.key(i), b)
				if told[i] = true; err == nil && bytes.Equal(b, word(i, behind)) {
					tell(fmt.Sprintf("%s has said that its run directory is older than what it had stored: a copy was put back. The run waits for %[1]s to continue with the directory as it was last written", o.Name))
				}
			}
		}
		if pause(ctx, rarePoll) != nil {
			return
		}
	}
}

// word begins a text of Meet, so that the hub cannot present it as another owner's text, or as an answer
// to another question.
func word(owner int, what string) []byte { return []byte(ownKey(owner, what) + " ") }

// Model is what an owner publishes at the end.
const Model = "model"

// Said reports whether an owner has published what: a text of Meet, or Model, of dim numbers.
func Said(ctx context.Context, r Store, owner int, what string, dim int) (bool, error) {
	key := ownKey(owner, what)
	if what == Model {
		key = messageKey(0, owner, toAll, 0, dim)
	}
	_, err := r.Get(ctx, key)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	return err == nil, err
}

// Share publishes the owner's parameters, and returns those of all owners that published within the
// context; nil for the others.
func (n *Node) Share(ctx context.Context, round int, x []float64) ([][]float64, error) {
	if err := n.put(ctx, round, toAll, x, func() {}); err != nil {
		return nil, err
	}
	all, err := n.Models(ctx, round, len(x))
	if err == nil {
		all[n.owner()] = x // whatever the hub says now
	}
	return all, err
}

// Models returns the parameters of all owners that published them within the context; nil for the others.
func (n *Node) Models(ctx context.Context, round, dim int) ([][]float64, error) {
	get, stop := n.within(ctx)
	defer stop()
	all := make([][]float64, len(n.Credentials.Network.Owners))
	for i := range all {
		v := make([]float64, dim)
		err := n.collect(ctx, round, i, toAll, v, get)
		switch {
		case err == nil:
			all[i] = v
		case ctx.Err() == nil && !none(err):
			return nil, err
		}
	}
	return all, nil
}

// lastAsk is the time that the store has to answer after the end of a wait.
const lastAsk = 10 * time.Second

// within gets values until the context's time is over, and then what the store holds: if one
// owner's value is missing, the others' still count.
func (n *Node) within(ctx context.Context) (get func(ctx context.Context, key string) ([]byte, error), stop func()) {
	late, stop := ctx, func() {}
	if end, ok := ctx.Deadline(); ok {
		late, stop = context.WithDeadline(context.WithoutCancel(ctx), end.Add(lastAsk))
	}
	return func(ctx context.Context, key string) ([]byte, error) {
		_, v, err := n.Store.Await(ctx, key)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return n.Store.Get(late, key)
		}
		return v, err
	}, stop
}

// collect puts a vector together from its chunks, which get fetches.
func (n *Node) collect(ctx context.Context, round, from, to int, v []float64,
	get func(ctx context.Context, key string) ([]byte, error)) error {
	for c := range chunksOf(len(v)) {
		key := messageKey(round, from, to, c, len(v))
		b, err := get(ctx, key)
		if err != nil {
			return err
		}
		if err := decode(n.Config, n.Credentials.Network.key(from), round, from, to, c, v, b); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// put stores a vector in chunks; stored is called after each. It fails if the store holds another vector.
func (n *Node) put(ctx context.Context, round, to int, v []float64, stored func()) error {
	for c := range chunksOf(len(v)) {
		mine := encode(n.Config, n.Credentials.key(), round, n.owner(), to, c, v)
		if held, err := n.Store.Put(ctx, messageKey(round, n.owner(), to, c, len(v)), mine); err != nil {
			return err
		} else if !bytes.Equal(held, mine) {
			return fmt.Errorf("round %d: %w", round, ErrBehind)
		}
		stored()
	}
	return nil
}

// Check compares the journal with the store: next is the owner's first activation after the
// journal. A release of it in the store shows that the journal is not the latest.
func (n *Node) Check(ctx context.Context, next gossip.Activation, dim int) error {
	for _, peer := range next.Peers {
		_, err := n.Store.Get(ctx, vectorKey(n.owner(), peer, next.T, 0, chunksOf(dim)))
		if err == nil {
			return fmt.Errorf("round %d: %w", next.T, ErrBehind)
		}
		if !errors.Is(err, ErrNone) {
			return err
		}
	}
	return nil
}

// Over is the private oracle behind the journal, which answers first. The meter is charged for its
// answers too.
func (n *Node) Over(o oracle.Oracle, meter account.Meter) oracle.Oracle {
	return n.Past.Oracle(o.Public(), o, meter)
}

// Mix implements gossip.Mixer. The activation is in the journal before any of it is published.
func (n *Node) Mix(ctx context.Context, node int, act gossip.Activation, m []float64) error {
	past, err := n.Past.Mix(act, m)
	if err != nil {
		return err
	}
	switch {
	case past == nil:
		n.crash("charged")
		if err := n.Journal.Send(act.T, m); err != nil {
			return err
		}
		n.crash("journaled")
		if n.Charged != nil {
			if err := n.Charged(ctx, n.Journal.Charged()); err != nil {
				return err
			}
		}
	case past.Done:
		return nil
	}
	// It publishes to one peer first. The store accepts one vector for it, so only one of two processes
	// with different vectors continues.
	if err := n.publish(ctx, act.T, act.Peers[0], m); err != nil {
		return err
	}
	theirs := make([][]float64, len(act.Peers)) // of the exchanges that came about
	errs := make([]error, len(act.Peers))
	edge := func(k int) {
		if k > 0 {
			errs[k] = n.publish(ctx, act.T, act.Peers[k], m)
		}
		if errs[k] == nil {
			theirs[k], errs[k] = n.exchange(ctx, act.T, act.Peers[k], m)
		}
	}
	if len(act.Peers) == 1 {
		edge(0)
	} else {
		var all sync.WaitGroup
		for k := range act.Peers {
			all.Go(func() { edge(k) })
		}
		all.Wait()
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	committed := make([]bool, len(theirs))
	own := m
	if len(theirs) > 1 {
		own = slices.Clone(m)
	}
	for k, v := range theirs {
		committed[k] = v != nil
		if v == nil {
			n.Aborted++
			continue
		}
		n.Committed++
		w := act.Weight[k]
		for j, x := range v {
			m[j] += w * (x - own[j])
		}
	}
	n.Journal.Done(act.T, committed, m)
	n.crash("mixed")
	return nil
}

// Proposals for an exchange.
const (
	commit = "C"
	abort  = "A"
)

// publish sends m to one peer, and fails if the store holds another vector of this activation.
func (n *Node) publish(ctx context.Context, t, peer int, m []float64) error {
	err := n.put(ctx, t, peer, m, func() { n.crash("published") })
	if errors.Is(err, ErrFull) {
		return fmt.Errorf("%w: someone else has stored messages in this owner's name, so its credentials have leaked. Ask the organizer to revoke them (sotto net revoke) and to found a new network", err)
	}
	return err
}

// exchange returns the vector of a peer to whom m was published; nil if the exchange is aborted.
func (n *Node) exchange(ctx context.Context, t, peer int, m []float64) ([]float64, error) {
	me := n.owner()
	decision := decisionKey(t, min(me, peer), max(me, peer))
	theirs, verdict, err := n.hear(ctx, t, peer, decision, len(m))
	if err != nil {
		return nil, err
	}
	if verdict == "" {
		proposal := commit
		if theirs == nil {
			proposal = abort
		}
		if verdict, err = n.decide(ctx, decision, proposal, me > peer); err != nil {
			return nil, err
		}
	}
	n.crash("decided")
	if verdict != commit { // abort, or nonsense that both of them read
		return nil, nil
	}
	if theirs == nil { // it is there: the peer committed
		theirs = make([]float64, len(m))
		err = n.collect(ctx, t, peer, me, theirs, n.held)
	}
	if none(err) { // it lied: the exchange counts for it alone
		return nil, nil
	}
	return theirs, err
}

// await waits for a peer until one of the keys has a value. After that time it asks the store for
// the first key: the hub may have been unreachable.
func (n *Node) await(ctx context.Context, keys ...string) (int, []byte, error) {
	brief, stop := context.WithTimeout(ctx, cmp.Or(n.Wait, defaultWait))
	defer stop()
	i, v, err := n.Store.Await(brief, keys...)
	if err != nil && ctx.Err() == nil && brief.Err() != nil {
		i = 0
		v, err = n.Store.Get(ctx, keys[0])
	}
	return i, v, err
}

// held returns the value of a key of which a peer says that it has one. ErrNone: the peer lied. A lagging
// copy of the store gets the value after a while.
func (n *Node) held(ctx context.Context, key string) ([]byte, error) {
	_, v, err := n.await(ctx, key)
	return v, err
}

// none reports whether there is no valid vector: a peer's lie does not end this owner's training.
func none(err error) bool { return errors.Is(err, ErrForged) || errors.Is(err, ErrNone) }

// hear waits for the peer's vector or a decision, whichever is first; after a time without either
// it returns neither. A vector that the peer did not sign counts as none.
func (n *Node) hear(ctx context.Context, t, peer int, decision string,
	dim int) (theirs []float64, verdict string, err error) {
	last := messageKey(t, peer, n.owner(), chunksOf(dim)-1, dim)
	which, value, err := n.await(ctx, last, decision)
	switch {
	case errors.Is(err, ErrNone):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case which == 1:
		return nil, string(value), nil
	}
	theirs = make([]float64, dim)
	err = n.collect(ctx, t, peer, n.owner(), theirs, func(ctx context.Context, key string) ([]byte, error) {
		if key == last {
			return value, nil
		}
		return n.held(ctx, key) // the last chunk is stored after the others
	})
	if none(err) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", err
	}
	return theirs, "", nil
}

// decide proposes a decision, and returns the one that the store holds.
func (n *Node) decide(ctx context.Context, key, proposal string, higher bool) (string, error) {
	if higher && proposal == commit {
		brief, stop := context.WithTimeout(ctx, patience)
		_, value, err := n.Store.Await(brief, key)
		stop()
		if err == nil {
			return string(value), nil
		}
	}
	stored, err := n.Store.Put(ctx, key, []byte(proposal))
	if errors.Is(err, ErrFull) { // the peer has filled the store of the pair's decisions: there will be none
		return abort, nil
	}
	return string(stored), err
}
