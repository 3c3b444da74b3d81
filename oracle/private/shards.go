package private

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Carrier takes sealed questions to shards and brings back what they answer. It may ask a shard again, by the same bytes, as often
// as it likes, and take any of the answers.
type Carrier interface {
	Shards() int  // how many there are
	Largest() int // most bytes of a message
	Ask(ctx context.Context, shard int, question []byte) (answer []byte, err error)
	Refused(ctx context.Context, shard int, why *Unfit) error // of the worker that answered; nil asks again, another one
}

// Shards stand in for a table's rows: they are on machines of the same owner, each with a part, one after the other in
// the order of the shards. A sum of whole numbers is the same wherever its parts are added, so a door with shards
// releases what one with the table would. Noise is added here, once.
type Shards struct {
	carrier Carrier
	session *session
	from    []int // private: row at which a shard begins, and the end
	digests [][32]byte
	is      [][]byte // what stands for each
	asked   uint64
	ctx     context.Context // of the purchase
	bought  question        // the sample, without From
	counts  []int64         // the sums that were last asked for
}

// OpenShards asks all shards who they are. Terms are what they and the coordinator must agree on, each hashed; a shard of
// others is refused. Dim is the number of the model's parameters.
func OpenShards(ctx context.Context, secret *Secret, carrier Carrier, dim int, terms map[string][]byte) (*Shards, error) {
	session, err := secret.newSession()
	if err != nil {
		return nil, err
	}
	s := &Shards{carrier: carrier, session: session, from: make([]int, carrier.Shards()+1)}
	if carrier.Shards() < 1 {
		return nil, errors.New("private: no shards")
	}
	if most := largest(dim); most > carrier.Largest() {
		return nil, fmt.Errorf("private: messages of %d parameters have up to %d bytes; allowed are %d", dim, most, carrier.Largest())
	}
	answers, err := s.ask(ctx, question{Ask: askHello, Terms: terms})
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

// Digests of the shards' contents, in their order. As a table's they never leave memory but under a key (R4).
func (s *Shards) Digests() [][32]byte { return s.digests }

// Format prints no more than what it is.
func (s *Shards) Format(f fmt.State, _ rune) { io.WriteString(f, "private.Shards") }

// draw makes the sample that is asked about from now on.
func (s *Shards) draw(ctx context.Context, by sample.Sampler, streams noise.Streams, batch int) error {
	sampler, err := typedOf(by)
	if err != nil {
		return err
	}
	key, err := streams.Key("sample", batch)
	if err != nil {
		return err
	}
	s.ctx, s.bought = ctx, question{Sampler: sampler, Key: key[:], Batch: batch, Total: s.Rows()}
	return nil
}

// ask asks all shards at once for what they answer to q, each of the sample's rows that are its own.
func (s *Shards) ask(ctx context.Context, q question) ([][]byte, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
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
			q.From, q.Is = s.from[i], s.is[i]
		}
		go func() {
			text, err := s.askOne(ctx, h, &q)
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

// of says whose error it is.
func (s *Shards) of(shard int, err error) error {
	return fmt.Errorf("shard %d of %d: %w", shard+1, s.carrier.Shards(), err)
}

func (s *Shards) askOne(ctx context.Context, h head, q *question) ([]byte, error) {
	text, err := q.encode()
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

// Dismiss tells the workers of these shards why they are not taken. It waits until they have heard it, or the context ends.
func (s *Shards) Dismiss(ctx context.Context, why string, shards ...int) error {
	text, err := (&question{Ask: askLeave, Why: why}).encode()
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

// ErrShard wraps what a shard answers that cannot answer: it is of another version of Sotto, say.
var ErrShard = errors.New("refuses")

// sum adds up what the shards answer to q over the sample.
func (s *Shards) sum(q question) ([]int64, error) {
	b := s.bought
	q.Sampler, q.Key, q.Batch, q.Total = b.Sampler, b.Key, b.Batch, b.Total
	answers, err := s.ask(s.ctx, q)
	if err != nil {
		return nil, err
	}
	if cap(s.counts) < q.Count {
		s.counts = make([]int64, q.Count)
	}
	s.counts = s.counts[:q.Count]
	clear(s.counts)
	for i, a := range answers {
		if err := decodeCounts(s.counts, a); err != nil {
			return nil, s.of(i, err)
		}
	}
	return s.counts, nil
}

// summable says what of q the shards cannot sum.
func summable(q oracle.Query) error {
	ok := true
	switch q := q.(type) {
	case oracle.Minimize:
		return errors.New("private: a minimisation is solved where the rows are; shards only sum")
	case oracle.Grad:
		_, none := q.Clip.(clip.None)
		ok = !none
	case oracle.Loss:
		ok = q.Bound > 0
	case oracle.Search:
		ok = q.Bound > 0
	case oracle.Select:
		ok = q.Bound > 0 || !q.Off
	}
	if !ok {
		return errors.New("private: shards sum whole numbers; a sum without a bound is none of them")
	}
	return nil
}

// errUnitShards: a unit on two machines would count for two, and nobody sees both.
var errUnitShards = errors.New("private: a table in shards has records of one row; of a unit of several rows each shard could have some")

// The stages of summing, over the table's rows or the shards'.

func (o *Oracle) clipped(w []float64, q oracle.Grad, rows []int32, all bool) (unit float64, err error) {
	if o.cfg.Shards == nil {
		return o.sum.clipped(w, q.Clip, o.cfg.Facts, rows, all)
	}
	unit, err = o.sum.unitOf(q.Clip.Bound(), o.cfg.Facts.Rows)
	if err != nil {
		return 0, err
	}
	ask := question{Ask: askGradients, Unit: unit, Views: q.Augmentation, Count: len(w), vectors: [][]float64{w}}
	if ask.Clip, err = typedOf(q.Clip); err != nil {
		return 0, err
	}
	_, err = o.cfg.Shards.sum(ask)
	return unit, err
}

func (o *Oracle) take(dst []int64, from int) {
	if o.cfg.Shards == nil {
		o.sum.take(dst, from)
		return
	}
	copy(dst, o.cfg.Shards.counts[from:])
}

func (b *batch) tallied(t tally, n int, unit float64) ([]decrease, error) {
	s := b.o.cfg.Shards
	if s == nil {
		return b.o.sum.tallied(t, n, unit, b.rows, b.all), nil
	}
	q, err := asked(t)
	if err != nil {
		return nil, err
	}
	q.Unit = unit
	counts, err := s.sum(q)
	if err != nil {
		return nil, err
	}
	sums := make([]decrease, n)
	for k, v := range counts {
		sums[k] = decrease{v, float64(v) * unit}
	}
	return sums, nil
}

func (b *batch) decrease(along oracle.Line, steps []float64, bound float64, again bool) ([]decrease, error) {
	if b.o.cfg.Shards == nil {
		return b.o.sum.decrease(along, steps, bound, b.rows, b.all, again), nil
	}
	return b.tallied(&decreases{from: along.From, along: along.Along, steps: append([]float64{0}, steps...), bound: bound}, len(steps), fallUnit(bound))
}

func (b *batch) hessian(c *curvature) ([]int64, error) {
	if b.o.cfg.Shards == nil {
		return b.o.sum.hessian(c, b.rows, b.all), nil
	}
	q, err := asked(c)
	if err != nil {
		return nil, err
	}
	return b.o.cfg.Shards.sum(q)
}
