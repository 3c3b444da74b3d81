package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/sottodp/sotto/internal/twins"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// ShardConfig says what a shard holds. Every field but Refusal is required.
type ShardConfig struct {
	Rows   sum.Summer
	Facts  oracle.Public // of the whole table
	Digest [32]byte      // of the shard's content; it leaves the process sealed
	// of its rows in their order, likewise: another process that stands in for this one must have the same
	Order  [32]byte
	Terms  map[string][]byte
	Secret *Secret
	// Hashes returns a hash of each row under a key: equal rows have equal hashes. They show the coordinator which shards
	// share rows, and leave the process sealed.
	Hashes func(key [32]byte) []uint64
	// Units are hashes of the ids of the rows' units under the secret's IDKey, if a unit has several rows. They leave the
	// process sealed.
	Units [][16]byte
	// Compared is what the coordinator's gate compares of the rows. It leaves the process sealed.
	Compared []byte
	// Refusal says why this machine does not give its rows: then the shard has none, and answers nothing else.
	Refusal string

	Index, Count int // this is shard Index of Count, from 0
}

// A Shard is a part of a table on its own machine. It answers the questions of the owner's
// coordinator, which has charged for them, by sums before noise, sealed. Nothing else leaves it,
// and nothing opens it without the secret. It keeps only the last question, so a question may be
// repeated, or go to another process with the same rows. It is for one goroutine.
type Shard struct {
	cfg     ShardConfig
	session *session
	is      [sha256.Size]byte // what stands for its rows and terms
	reader  reader
	drawnBy draw   // what the sample was drawn by
	last    []byte // question
	answer  []byte // to it

	hashes   *twins.Sketch // all of the rows'; nil once sums are asked for
	hashedBy [32]byte

	text   []byte // of the last question, then of the answer
	counts []int64
}

// draw names a sample by all that it follows from: other workers hold the secret, so a question may be of one of them.
type draw struct {
	salt               [32]byte
	batch, total, from int64
	key                noise.Key
	sampler            sample.Sampler
}

// NewShard gives the holder of the secret access to a shard's rows.
func NewShard(cfg ShardConfig) (*Shard, error) {
	switch {
	case cfg.Refusal != "" && cfg.Secret != nil:
		return &Shard{cfg: cfg}, nil
	case cfg.Rows == nil || cfg.Secret == nil || cfg.Hashes == nil:
		return nil, errors.New("remote: rows, their hashes and a secret are required")
	case cfg.Index < 0 || cfg.Index >= cfg.Count:
		return nil, fmt.Errorf("remote: shard %d of %d", cfg.Index+1, cfg.Count)
	case cfg.Facts.UnitRows > 0 && (cfg.Units == nil || len(cfg.Units) != cfg.Rows.Rows()):
		return nil, errors.New("remote: a shard of units of several rows needs the hash of each unit's id")
	}
	cfg.Units = slices.Clone(cfg.Units)
	slices.SortFunc(cfg.Units, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return &Shard{cfg: cfg, is: identity(cfg.Order, cfg.Terms)}, nil
}

// Format prints no more than what it is.
func (s *Shard) Format(f fmt.State, _ rune) { io.WriteString(f, "remote.Shard") }

// An Unfit says why a coordinator does not use a shard, as one with another model. Another worker
// may replace it.
type Unfit struct {
	Why       string
	Protected bool // the gate of the coordinator, or of this machine, refuses the rows
}

func (u *Unfit) Error() string { return u.Why }

// The first byte of an answer.
const (
	answerGood byte = iota
	answerFailed
	answerUnfit
	answerProtected // by the worker's own gate
)

// Answer answers a sealed question. An error says that the question is not from this shard's
// coordinator; an *Unfit comes with the answer that tells the coordinator. The answer is valid until the next question.
func (s *Shard) Answer(message []byte) ([]byte, error) {
	h, err := readHead(message)
	if err != nil {
		return nil, err
	}
	if h.shard != uint32(s.cfg.Index) || h.of != uint32(s.cfg.Count) {
		return nil, fmt.Errorf("remote: a question to shard %d of %d; this is %d of %d", h.shard+1, h.of, s.cfg.Index+1,
			s.cfg.Count)
	}
	if s.session == nil || s.session.salt != h.salt {
		if s.session, err = s.cfg.Secret.session(h.salt); err != nil {
			return nil, err
		}
	}
	if len(s.answer) > 0 && bytes.Equal(message, s.last) {
		return s.answer, nil // asked again
	}
	text, err := unseal(s.session.asks, s.text[:0], message, nil)
	if err != nil {
		return nil, err
	}
	s.text = text
	q, err := s.reader.read(text)
	if err != nil {
		return nil, err
	}
	s.text, err = s.reply(h, q, s.text[:0])
	var u *Unfit
	switch {
	case errors.As(err, &u) && s.cfg.Refusal != "":
		s.text = append([]byte{answerProtected}, u.Why...)
	case errors.As(err, &u):
		s.text = append([]byte{answerUnfit}, u.Why...)
	case err != nil: // a mistake in what both were given, which is public
		s.text = append([]byte{answerFailed}, err.Error()...)
	}
	s.last = append(s.last[:0], message...)
	s.answer = seal(s.session.answers, s.answer[:0], h, s.text, message)
	if u != nil {
		return s.answer, u
	}
	return s.answer, nil
}

// reply writes the answer to dst.
func (s *Shard) reply(h head, q *question, dst []byte) ([]byte, error) {
	if s.cfg.Refusal != "" {
		return nil, &Unfit{s.cfg.Refusal, true}
	}
	switch q.Ask {
	case askLeave:
		return nil, &Unfit{q.Why, q.Protected}
	case askHello:
		var terms map[string][]byte
		if err := json.Unmarshal([]byte(q.Terms), &terms); err != nil {
			return nil, errQuestion
		}
		for _, term := range slices.Sorted(maps.Keys(terms)) {
			if !bytes.Equal(terms[term], s.cfg.Terms[term]) {
				return nil, &Unfit{Why: "found another " + term + " than the coordinator's; use the same"}
			}
		}
		dst = append(binary.LittleEndian.AppendUint64(append(dst, answerGood), uint64(s.cfg.Rows.Rows())), s.cfg.Digest[:]...)
		dst = append(dst, s.cfg.Order[:]...)
		return append(appendSketch(dst, s.hashed().Least(sketchRows)), s.cfg.Compared...), nil
	}
	if q.Is != s.is {
		return nil, &Unfit{Why: "found other rows, or another schema, model or adjacency, than those of the worker that the run began with; use the same for all workers of one shard"}
	}
	if q.Ask == askShared {
		dst = append(dst, answerGood)
		for b := q.sketches; len(b) >= sketchRows*sketchSize; b = b[sketchRows*sketchSize:] {
			dst = appendTally(dst, twins.Compare(readSketch(b[:sketchRows*sketchSize]), *s.hashed()))
		}
		return dst, nil
	}
	if q.Ask == askUnits {
		return appendPage(append(dst, answerGood), s.cfg.Units, unitsOf(s.cfg.Facts.Rows, s.cfg.Count), int(q.Batch))
	}
	sum, err := q.sum(&s.cfg.Facts)
	if err != nil {
		return nil, err
	}
	s.hashes = nil
	if err := s.draw(h, q); err != nil {
		return nil, err
	}
	if err := s.cfg.Rows.Sum(context.Background(), sum); err != nil {
		return nil, err
	}
	s.counts = slices.Grow(s.counts[:0], sum.Len())[:sum.Len()]
	s.cfg.Rows.Take(s.counts, 0)
	return encodeCounts(append(slices.Grow(dst, 1+8*len(s.counts)), answerGood), s.counts), nil
}

// hashed are the hashes of the rows in this session.
func (s *Shard) hashed() *twins.Sketch {
	if s.hashes == nil || s.hashedBy != s.session.hashes {
		rows := s.cfg.Hashes(s.session.hashes)
		slices.Sort(rows)
		all := twins.Of(rows)
		s.hashes, s.hashedBy = &all, s.session.hashes
	}
	return s.hashes
}

// draw draws the sample of the question's batch, of which the rows take their part. It is the same
// for every question of the batch, and for the table in one piece.
func (s *Shard) draw(h head, q *question) error {
	by := draw{h.salt, q.Batch, q.Total, q.From, q.Key, q.Sampler}
	if by == s.drawnBy {
		return nil
	}
	if q.Sampler == nil {
		return errors.New("remote: found a sampler that this shard does not know; both need the same version of Sotto")
	}
	if err := q.checkSample(s.cfg.Facts.Adjacency); err != nil {
		return err
	}
	s.drawnBy = draw{}
	if err := s.cfg.Rows.Draw(context.Background(),
		sum.Draw{Sampler: q.Sampler, Key: by.key, Batch: int(q.Batch), Total: int(q.Total),
			From: int(q.From)}); err != nil {
		return err
	}
	s.drawnBy = by
	return nil
}
