// Package remote sums over rows in shards on several machines of one owner. Shards, on the
// coordinator, is a private.Summer: it sends sealed questions to each Shard and adds up the
// answers. A Shard, on a worker, answers from its own rows. Sums before noise and the keys of
// samples pass between them, sealed; the coordinator's oracle adds noise once. A Carrier delivers
// the messages.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
)

// A Carrier delivers sealed questions to shards and returns their answers. It may repeat a
// question, by the same bytes, and return any of the answers.
type Carrier interface {
	Shards() int  // how many there are
	Largest() int // most bytes of a message
	Ask(ctx context.Context, shard int, question []byte) (answer []byte, err error)
	Refused(ctx context.Context, shard int, why *Unfit) error // of the worker that answered; nil asks again, another one
}

// Shards stand for a table whose rows are on machines of the same owner, each with a part, in the
// order of the shards. Sums of whole numbers do not depend on where their parts are added, so an
// oracle over shards releases what one over the table would.
type Shards struct {
	carrier Carrier
	session *session
	from    []int // private: row at which a shard begins, and the end
	digests [][32]byte
	is      [][sha256.Size]byte // what stands for each
	forms   formCache
	asked   uint64
	sampler typed // of the sample, as its turn without From
	bought  turn
	counts  []int64 // the sums that were last asked for
}

// Open asks all shards who they are. Terms, each hashed, must be the same for them and the
// coordinator; Open refuses other shards.
func Open(ctx context.Context, secret *Secret, carrier Carrier, facts oracle.Public, terms map[string][]byte) (*Shards, error) {
	if facts.UnitRows > 0 {
		return nil, errUnits
	}
	session, err := secret.newSession()
	if err != nil {
		return nil, err
	}
	s := &Shards{carrier: carrier, session: session, from: make([]int, carrier.Shards()+1)}
	if carrier.Shards() < 1 {
		return nil, errors.New("remote: no shards")
	}
	if most := largest(facts.Dim); most > carrier.Largest() {
		return nil, fmt.Errorf("remote: messages of %d parameters have up to %d bytes; allowed are %d", facts.Dim, most, carrier.Largest())
	}
	agreed, err := json.Marshal(terms)
	if err != nil {
		return nil, err
	}
	answers, err := s.ask(ctx, question{form: form{Ask: askHello, Terms: string(agreed)}})
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if len(a) != 8+32 {
			return nil, s.of(i, errSealed)
		}
		s.from[i+1] = s.from[i] + int(binary.LittleEndian.Uint64(a))
		s.digests = append(s.digests, [32]byte(a[8:]))
		s.is = append(s.is, identity(s.digests[i], terms))
	}
	return s, nil
}

// largest message, in bytes: the two vectors of a line and its steps, or a Hessian.
func largest(dim int) int {
	numbers := 2 * dim
	if dim <= oracle.MaxHess {
		numbers = max(numbers, oracle.HessLen(dim))
	}
	return 1<<16 + 8*numbers
}

// Rows of all shards together: private, as a table's.
func (s *Shards) Rows() int { return s.from[len(s.from)-1] }

// RowsOf is the number of rows of shard i, as private as Rows.
func (s *Shards) RowsOf(i int) int { return s.from[i+1] - s.from[i] }

// Digests of the shards' contents, in their order. They leave memory only under a key, as a table's
// (R4).
func (s *Shards) Digests() [][32]byte { return s.digests }

// Format prints no more than what it is.
func (s *Shards) Format(f fmt.State, _ rune) { io.WriteString(f, "remote.Shards") }

// Draw implements private.Summer: the shards draw when they are asked.
func (s *Shards) Draw(_ context.Context, d private.Draw) error {
	sampler, err := typedOf(d.Sampler)
	s.sampler, s.bought = sampler, turn{Key: d.Key, Batch: int64(d.Batch), Total: int64(d.Total)}
	return err
}

// ask asks all shards at once q, each for its own rows of the sample.
func (s *Shards) ask(ctx context.Context, q question) ([][]byte, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	text, err := s.forms.encode(q.form)
	if err != nil {
		return nil, err
	}
	n := s.carrier.Shards()
	h := head{salt: s.session.salt, asked: s.asked, of: uint32(n)}
	s.asked++
	type answered struct {
		shard int
		text  []byte
		err   error
	}
	done := make(chan answered, n)
	for i := range n {
		h, q := h, q
		h.shard = uint32(i)
		if q.Ask != askHello {
			q.From, q.Is = int64(s.from[i]), s.is[i]
		}
		go func() {
			text, err := s.askOne(ctx, h, &q, text)
			done <- answered{i, text, err}
		}()
	}
	texts := make([][]byte, n)
	var failed error
	for range n {
		a := <-done
		if a.err != nil && failed == nil {
			failed = s.of(a.shard, a.err)
			stop()
		}
		texts[a.shard] = a.text
	}
	return texts, failed
}

// of adds to an error which shard it is about.
func (s *Shards) of(shard int, err error) error {
	return fmt.Errorf("shard %d of %d: %w", shard+1, s.carrier.Shards(), err)
}

// askOne asks one shard q, whose form has that JSON.
func (s *Shards) askOne(ctx context.Context, h head, q *question, form []byte) ([]byte, error) {
	text, err := q.encode(form)
	if err != nil {
		return nil, err
	}
	message := seal(s.session.asks, h, text, nil)
	for {
		answer, err := s.carrier.Ask(ctx, int(h.shard), message)
		if err != nil {
			return nil, err
		}
		if got, err := readHead(answer); err != nil || got != h {
			return nil, errSealed
		}
		text, err := unseal(s.session.answers, answer, message)
		switch {
		case err != nil:
			return nil, err
		case len(text) == 0:
			return nil, errSealed
		case text[0] == answerGood:
			return text[1:], nil
		case text[0] != answerUnfit:
			return nil, fmt.Errorf("%w: %s", ErrShard, text[1:])
		}
		if err := s.carrier.Refused(ctx, int(h.shard), &Unfit{string(text[1:])}); err != nil {
			return nil, err
		}
	}
}

// Dismiss tells the workers of these shards why they are not used. It waits until they have heard,
// or the context ends.
func (s *Shards) Dismiss(ctx context.Context, why string, shards ...int) error {
	q := question{form: form{Ask: askLeave, Why: why}}
	text, err := s.forms.encode(q.form)
	if err == nil {
		text, err = q.encode(text)
	}
	if err != nil {
		return err
	}
	var told sync.WaitGroup
	for _, i := range shards {
		h := head{salt: s.session.salt, asked: s.asked, shard: uint32(i), of: uint32(s.carrier.Shards())}
		told.Go(func() { s.carrier.Ask(ctx, i, seal(s.session.asks, h, text, nil)) })
	}
	told.Wait()
	s.asked++
	return nil
}

// ErrShard wraps the reason of a shard that cannot answer, as one of another version of Sotto.
var ErrShard = errors.New("refuses")

// Sum implements private.Summer: it adds up what the shards answer.
func (s *Shards) Sum(ctx context.Context, of *private.Sum) error {
	q, err := asked(of)
	if err != nil {
		return err
	}
	q.Sampler, q.turn = s.sampler, s.bought
	answers, err := s.ask(ctx, q)
	if err != nil {
		return err
	}
	if cap(s.counts) < q.Count {
		s.counts = make([]int64, q.Count)
	}
	s.counts = s.counts[:q.Count]
	clear(s.counts)
	for i, a := range answers {
		if err := decodeCounts(s.counts, a); err != nil {
			return s.of(i, err)
		}
	}
	return nil
}

// Take implements private.Summer.
func (s *Shards) Take(dst []int64, from int) { copy(dst, s.counts[from:]) }

// errUnits: a unit on two machines would count as two, and neither machine could notice.
var errUnits = errors.New("remote: a table in shards has records of one row; of a unit of several rows each shard could have some")
