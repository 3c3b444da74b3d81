// Package pool adds up what the owners of a network mask, over its store, so that only their sum can be read
// (network.mode: sum). Owners need not trust the store or the hub that adds: masks hide each part, and an owner takes
// no sum whose owners did not all sign the same context. What an owner masked is in its journal before it is in the
// store, and is never masked again.
//
// An owner waits for the others as long as it takes: a sum needs all of them, and giving an attempt up does not bring
// one back. Only an owner that cannot make its part asks for the end. So how long an owner computes, which depends on
// its rows, ends nothing (R22).
package pool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sottodp/sotto/gossip/mask"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// Options say whose pool it is, and what its run has done so far.
type Options struct {
	Store       transport.Store
	Credentials *transport.Credentials
	Disk        runlog.Disk
	Path        string            // of the journal
	Run         string            // the run's identity; a journal is of one run
	Retries     int               // how many attempts the owners may give up
	Waiting     func(what string) // told of what is public and has not come for a while; nil: nobody

	// What the run's log has: attempts charged, and batches whose sums were released.
	Charged, Released int
}

// ErrBehind says that a journal is older than what its owner has stored.
var ErrBehind = errors.New("the journal is older than what its owner has stored; restore the run directory as it was last written, or begin another run")

// A Pool is one owner's sum.Pool. After an error other than sum.ErrGivenUp it returns that error. It is not
// safe for concurrent use.
type Pool struct {
	Options
	network *transport.Network
	config  transport.Config
	journal *runlog.Sums

	attempt int // the current one; -1: none yet
	sum     int // the next one of it
	open    bool
	present [sha256.Size]byte // hash of the list of presences
	session *mask.Session     // nil if another process has met in this attempt
	charged int
	givenUp int // attempts before the current one, or with it if it is over
	// the owner that ended the last one: it asked for that, or its part is missing; where this process has read of it
	lacks      string
	transcript [sha256.Size]byte
	failed     error
	values     []int64
}

var _ sum.Pool = (*Pool)(nil)

// Open opens the pool with its journal.
func Open(o Options) (*Pool, error) {
	p := &Pool{Options: o, network: &o.Credentials.Network, attempt: -1, charged: o.Charged}
	switch {
	case len(p.network.Owners) < 2:
		return nil, fmt.Errorf("pool: found %d owners; at least 2 are needed", len(p.network.Owners))
	case o.Retries < 0 || o.Charged < 0 || o.Released < 0 || o.Released > o.Charged:
		return nil, fmt.Errorf("pool: found %d retries, %d attempts charged and %d released; no more may be released than charged", o.Retries, o.Charged, o.Released)
	}
	var err error
	if p.config, err = p.network.Config(); err != nil {
		return nil, err
	}
	head := runlog.SumsHead{Run: o.Run, Config: hex.EncodeToString(p.config[:]), Owner: o.Credentials.Owner,
		Owners: len(p.network.Owners)}
	if p.journal, err = o.Disk.OpenSums(o.Path, head); err != nil {
		return nil, err
	}
	p.transcript = p.journal.Start()
	for released := 0; released < o.Released; {
		p.attempt++
		a := p.journal.Of(p.attempt)
		switch {
		case a.GivenUp:
			p.givenUp++
		case len(a.Totals) == 0:
			p.Close()
			return nil, fmt.Errorf("%s: found the sums of %d batches, and the run has released %d: %w", o.Path, released,
				o.Released, ErrBehind)
		default:
			released++
		}
		p.pass(a)
	}
	return p, nil
}

// Close closes the journal.
func (p *Pool) Close() error { return p.journal.Close() }

// pass adds to the transcript what an attempt released.
func (p *Pool) pass(a runlog.SumsAttempt) {
	if k := len(a.Totals); k > 0 {
		p.transcript = a.Totals[k-1].Transcript
	}
}

// Meet implements sum.Pool.
func (p *Pool) Meet(ctx context.Context) (held bool, err error) {
	if p.failed == nil {
		held, p.failed = p.meet(ctx)
	}
	return held, p.failed
}

func (p *Pool) meet(ctx context.Context) (held bool, err error) {
	for {
		p.open, p.session, p.sum = false, nil, 0
		if p.givenUp > p.Retries {
			last := ""
			if p.lacks != "" {
				last = ", the last because of " + p.lacks
			}
			return false, fmt.Errorf("pool: the owners have given up %d attempts of %d that they may%s: %w", p.givenUp,
				p.Retries, last, privacy.ErrExhausted)
		}
		p.attempt++
		a := p.journal.Of(p.attempt)
		if masked := len(a.Parts) > 0; masked && (!a.GivenUp || len(a.Totals) > 0 || p.charged < a.Parts[0].Charged) {
			// The charge may have been lost with the end of the run's log. What was masked was charged, so it is charged again
			// then. An attempt that was given up after some of its sums is gone through again: the batch goes on at the sum
			// after those.
			if held = p.charged >= a.Parts[0].Charged; !held {
				p.charged++
			}
			p.open = true
			return held, nil
		} else if a.GivenUp {
			p.givenUp++
			p.pass(a)
			continue
		}
		switch ok, err := p.arrive(ctx, true); {
		case err != nil:
			return false, err
		case ok:
			p.charged++
			p.open = true
			return false, nil
		}
	}
}

// End compares all totals with what the hub has shown the other owners, by a sum of no numbers: the digest of its
// context covers the transcript. Nothing is masked, so nothing is charged, and a process whose key is lost goes on with
// the attempt. An owner calls it when its run asks for no more sums, also because all retries are used up, and repeats
// it after a crash. An error that names owners says that the hub has shown them other totals.
func (p *Pool) End(ctx context.Context) error {
	if p.failed != nil && !errors.Is(p.failed, privacy.ErrExhausted) {
		return p.failed
	}
	err := p.end(ctx)
	if p.failed = err; err == nil {
		p.failed = errEnded
	}
	return err
}

var errEnded = errors.New("pool: it has ended")

func (p *Pool) end(ctx context.Context) error {
	stored := 0 // attempts that the hub has storage for: those of batches that are not made any more are free for this
	if l := p.network.Limits; l != nil && l.Sums != nil {
		stored = l.Sums.MostAttempts()
	}
	// Retries+1: one more than is left to a run whose retries are used up
	for p.givenUp <= p.Retries+1 || p.attempt+1 < stored {
		p.open, p.session, p.sum = false, nil, 0
		p.attempt++
		a := p.journal.Of(p.attempt)
		if a.GivenUp {
			p.givenUp++
			continue
		}
		if len(a.Parts) == 0 {
			if ok, err := p.arrive(ctx, false); err != nil {
				return err
			} else if !ok {
				continue
			}
			r := runlog.SumsPart{Charged: p.charged, Asked: runlog.LastSum, Digest: p.digest(runlog.LastSum, 0)}
			if err := p.journal.Part(p.attempt, 0, r, nil); err != nil {
				return err
			}
		}
		p.open = true
		if _, err := p.add(ctx, runlog.LastSum, 0, nil); !errors.Is(err, sum.ErrGivenUp) {
			return err
		}
	}
	return fmt.Errorf("pool: the owners have given up %d attempts, and could not compare their last sum; nothing is left to charge. Ask who runs the hub", p.givenUp)
}

// arrive meets in an attempt of which the journal has no part. It reports false if the owners have given the attempt
// up. A process that masks needs the key of its presence; one whose key is lost asks for the end.
func (p *Pool) arrive(ctx context.Context, masks bool) (bool, error) {
	owner := p.Credentials.Owner
	key, err := mask.NewKey()
	if err != nil {
		return false, err
	}
	public := key.Public()
	at := transport.PresenceKey(owner, p.attempt)
	value := p.Credentials.Sign(p.config, at, public[:])
	stored, err := p.Store.Put(ctx, at, value)
	if err != nil {
		return false, err
	}
	lost := masks && !bytes.Equal(stored, value)
	if lost { // with the process that stored it, which masked nothing
		if err := p.stop(ctx); err != nil {
			return false, err
		}
	}
	keys := []string{transport.OutcomeKey(p.attempt, 0), transport.PresencesKey(p.attempt)}
	if lost {
		keys = keys[:1]
	}
	after := ""
	if p.lacks != "" {
		after = "; the one before was given up because of " + p.lacks
	}
	waits := p.waits("all owners, for attempt %d at a sum%s", p.attempt+1, after)
	which, b, err := p.Store.Await(ctx, keys...)
	waits()
	if err != nil {
		return false, err
	}
	if which == 0 {
		o, err := transport.ReadOutcome(ctx, p.Store, p.network, p.config, p.attempt, 0, b)
		if err != nil {
			return false, err
		}
		if o.Lacks < 0 { // nobody else signs this owner's part
			return false, fmt.Errorf("%s: attempt %d has a part of this owner: %w", p.Path, p.attempt+1, ErrBehind)
		}
		p.givenUp++
		p.lacks = p.network.Owners[o.Lacks].Name
		return false, p.journal.GiveUp(p.attempt, 0)
	}
	all, err := p.network.Presences(p.config, p.attempt, b)
	if err != nil {
		return false, err
	}
	keysOf := make([][mask.KeySize]byte, len(all))
	for i, presence := range all {
		keysOf[i] = presence
	}
	p.present = sha256.Sum256(b)
	if !masks {
		return true, nil
	}
	p.session, err = mask.NewSession(key, p.config, owner, keysOf)
	return err == nil, err
}

// waits tells Waiting in a while, unless what is returned is called before.
func (p *Pool) waits(format string, args ...any) (over func() bool) {
	if p.Waiting == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(waitsAfter, func() { p.Waiting(fmt.Sprintf(format, args...)) }).Stop
}

const waitsAfter = 5 * time.Second

// stop asks the hub to give the attempt up.
func (p *Pool) stop(ctx context.Context) error {
	return transport.PutStop(ctx, p.Store, p.Credentials, p.config, p.attempt, p.sum)
}

// Sum implements sum.Pool. It masks the part in place.
func (p *Pool) Sum(ctx context.Context, asked [sha256.Size]byte, n int, part func() ([]int64, error)) ([]int64, error) {
	if p.failed != nil {
		return nil, p.failed
	}
	v, err := p.add(ctx, asked, n, part)
	if err != nil && !errors.Is(err, sum.ErrGivenUp) {
		p.failed = err
	}
	return v, err
}

func (p *Pool) add(ctx context.Context, asked [sha256.Size]byte, n int, part func() ([]int64, error)) ([]int64, error) {
	a := p.journal.Of(p.attempt)
	switch {
	case !p.open || n < 0 || n == 0 && asked != runlog.LastSum: // the hub tells the last sum by its length
		return nil, errors.New("pool: Sum follows Meet, and asks for one number or more")
	case a.GivenUp && p.sum >= len(a.Totals):
		p.open = false
		p.givenUp++
		return nil, sum.ErrGivenUp
	}
	if p.sum >= len(a.Parts) && p.session != nil {
		if err := p.mask(asked, n, part); err != nil {
			return nil, err
		}
		a = p.journal.Of(p.attempt)
	}
	if p.sum >= len(a.Parts) {
		if err := p.stop(ctx); err != nil {
			return nil, err
		}
		return p.outcome(ctx, nil, nil)
	}
	r := &a.Parts[p.sum]
	if r.Asked != asked || r.N != n {
		return nil, fmt.Errorf("%s: sum %d of attempt %d was asked otherwise by the process that masked it; continue the run with the same program and settings", p.Path, p.sum+1, p.attempt+1)
	}
	if p.sum < len(a.Totals) {
		b, err := p.journal.TotalNumbers(a.Totals[p.sum])
		if err != nil {
			return nil, err
		}
		p.transcript = a.Totals[p.sum].Transcript
		return p.release(b), nil
	}
	b, err := p.journal.PartNumbers(*r)
	if err != nil {
		return nil, err
	}
	if ok, err := transport.PutPart(ctx, p.Store, p.Credentials, p.config, p.attempt, p.sum, r.Digest, b); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%s: the store has another part of sum %d of attempt %d: %w", p.Path, p.sum+1, p.attempt+1,
			ErrBehind)
	}
	return p.outcome(ctx, r, b)
}

// mask makes the owner's part, and writes it to the journal as it will be stored.
func (p *Pool) mask(asked [sha256.Size]byte, n int, part func() ([]int64, error)) error {
	v, err := part()
	if err != nil {
		return err
	}
	if len(v) != n {
		return fmt.Errorf("pool: found a part of %d numbers; the sum has %d", len(v), n)
	}
	r := runlog.SumsPart{Charged: p.charged, N: n, Asked: asked, Digest: p.digest(asked, n)}
	if err := p.session.Mask(v, mask.Context{Turn: uint64(p.sum), Digest: r.Digest}); err != nil {
		return err
	}
	return p.journal.Part(p.attempt, p.sum, r, runlog.Numbers(v))
}

// digest is of all that the owners agree on in a sum.
func (p *Pool) digest(asked [sha256.Size]byte, n int) [sha256.Size]byte {
	h := sha256.New()
	io.WriteString(h, "sotto/pool/1 context\n")
	h.Write(p.config[:])
	h.Write(p.present[:])
	for _, v := range []int{p.attempt, p.sum, n} {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(v)))
	}
	h.Write(asked[:])
	h.Write(p.transcript[:])
	return [sha256.Size]byte(h.Sum(nil))
}

// outcome waits until the sum ends, of which r and numbers are this owner's part; nil: it has none.
func (p *Pool) outcome(ctx context.Context, r *runlog.SumsPart, numbers []byte) ([]int64, error) {
	key := transport.OutcomeKey(p.attempt, p.sum)
	waits := p.waits("the sum of all owners, in attempt %d", p.attempt+1)
	_, b, err := p.Store.Await(ctx, key)
	waits()
	if err != nil {
		return nil, err
	}
	o, err := transport.ReadOutcome(ctx, p.Store, p.network, p.config, p.attempt, p.sum, b)
	if err != nil {
		return nil, err
	}
	if o.Lacks >= 0 {
		if err := p.journal.GiveUp(p.attempt, p.sum); err != nil {
			return nil, err
		}
		p.open = false
		p.givenUp++
		p.lacks = p.network.Owners[o.Lacks].Name
		return nil, fmt.Errorf("attempt %d, %s: %w", p.attempt+1, p.lacks, sum.ErrGivenUp)
	}
	if r == nil || o.Claims[p.Credentials.Owner].Hash != sha256.Sum256(numbers) {
		return nil, fmt.Errorf("%s: sum %d of attempt %d has another part of this owner: %w", p.Path, p.sum+1, p.attempt+1,
			ErrBehind)
	}
	var others []string
	for i, c := range o.Claims {
		if c.Context != r.Digest || c.Numbers != r.N {
			others = append(others, p.network.Owners[i].Name)
		}
	}
	if others != nil {
		return nil, fmt.Errorf("pool: sum %d of attempt %d is of different contexts, so it can't be read: %s signed another one than %s; compare the specs and versions of these owners, and ask who runs the hub",
			p.sum+1, p.attempt+1, strings.Join(others, ", "), p.Credentials.Name())
	}
	if err := p.journal.Total(p.attempt, p.sum, o.Total); err != nil {
		return nil, err
	}
	p.transcript = p.journal.Of(p.attempt).Totals[p.sum].Transcript
	return p.release(o.Total), nil
}

// release returns the numbers of the sum and goes on to the next.
func (p *Pool) release(b []byte) []int64 {
	p.sum++
	n := len(b) / 8
	if cap(p.values) < n {
		p.values = make([]int64, n)
	}
	p.values = p.values[:n]
	clear(p.values)
	runlog.AddNumbers(p.values, b)
	return p.values
}
