package private

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/noise"
)

// ShardConfig says what a shard holds. Every field but Workers is required.
type ShardConfig struct {
	Table  *data.Table
	Model  model.Model
	Facts  oracle.Public // of the whole table
	Digest [32]byte      // of the shard's content; it leaves the process sealed
	Terms  map[string][]byte
	Secret *Secret

	Index, Count int // this is shard Index of Count, from 0
	Workers      int // goroutines of a large pass; 0 means 1
}

// A Shard is a part of a table on a machine of its own. It answers the questions of the owner's coordinator, which has paid, by
// sums before noise: sealed, as they were asked. Nothing else leaves it, and nothing opens it without the secret. It
// keeps no state but of the last question, so a question may be asked again, or of another process
// with the same rows. It is for one goroutine.
type Shard struct {
	cfg      ShardConfig
	sum      summer
	rows     int // private
	session  *session
	sampling noise.Source
	drawn    []int32
	drawnBy  draw // what the sample was drawn by
	all      bool
	last     []byte // question
	answer   []byte // to it
}

// draw names a sample: two of one session differ in the batch, and those of a session and its copy, as of a virtual machine, in the key.
type draw struct {
	salt  [32]byte
	batch int
	key   noise.Key
}

// NewShard opens a shard's rows to the holder of the secret.
func NewShard(cfg ShardConfig) (*Shard, error) {
	if _, err := kern.Level(); err != nil {
		return nil, err
	}
	switch {
	case cfg.Table == nil || cfg.Model == nil || cfg.Secret == nil:
		return nil, errors.New("private: a table, a model and a secret are required")
	case cfg.Index < 0 || cfg.Index >= cfg.Count:
		return nil, fmt.Errorf("private: shard %d of %d", cfg.Index+1, cfg.Count)
	case cfg.Facts.UnitRows > 0 || cfg.Table.Shares() != nil:
		return nil, errUnitShards
	}
	s := &Shard{cfg: cfg, rows: cfg.Table.Rows()}
	s.sum.open(cfg.Table, cfg.Model, max(1, cfg.Workers))
	return s, nil
}

// Close stops the workers.
func (s *Shard) Close() { s.sum.close() }

// Format prints no more than what it is.
func (s *Shard) Format(f fmt.State, _ rune) { io.WriteString(f, "private.Shard") }

// An Unfit says why a coordinator does not take a shard, as one with another model. A worker that has what is wanted may take its place.
type Unfit struct{ Why string }

func (u *Unfit) Error() string { return u.Why }

// The first byte of an answer.
const (
	answerGood byte = iota
	answerFailed
	answerUnfit
)

// Answer answers a sealed question. An error says that it is not one of this shard's coordinator; an *Unfit comes beside
// the answer that says it to the coordinator.
func (s *Shard) Answer(message []byte) ([]byte, error) {
	h, err := readHead(message)
	if err != nil {
		return nil, err
	}
	if h.shard != uint32(s.cfg.Index) || h.of != uint32(s.cfg.Count) {
		return nil, fmt.Errorf("private: a question to shard %d of %d; this is %d of %d", h.shard+1, h.of, s.cfg.Index+1, s.cfg.Count)
	}
	if s.session == nil || s.session.salt != h.salt {
		if s.session, err = s.cfg.Secret.session(h.salt); err != nil {
			return nil, err
		}
	}
	if s.answer != nil && bytes.Equal(message, s.last) {
		return s.answer, nil // asked again
	}
	text, err := unseal(s.session.asks, message, nil)
	if err != nil {
		return nil, err
	}
	q, err := decodeQuestion(text)
	if err != nil {
		return nil, err
	}
	answer, err := s.reply(h, q)
	var u *Unfit
	switch {
	case errors.As(err, &u):
		answer = append([]byte{answerUnfit}, u.Why...)
	case err != nil: // a mistake in what both were given, which is public
		answer = append([]byte{answerFailed}, err.Error()...)
	}
	s.last, s.answer = bytes.Clone(message), seal(s.session.answers, h, answer, message)
	if u != nil {
		return s.answer, u
	}
	return s.answer, nil
}

func (s *Shard) reply(h head, q *question) ([]byte, error) {
	switch q.Ask {
	case askLeave:
		return nil, &Unfit{q.Why}
	case askHello:
		for _, term := range slices.Sorted(maps.Keys(q.Terms)) {
			if !bytes.Equal(q.Terms[term], s.cfg.Terms[term]) {
				return nil, &Unfit{"found another " + term + " than the coordinator's; allowed is the same"}
			}
		}
		return append(binary.LittleEndian.AppendUint64([]byte{answerGood}, uint64(s.rows)), s.cfg.Digest[:]...), nil
	}
	if !bytes.Equal(q.Is, identity(s.cfg.Digest, s.cfg.Terms)) {
		return nil, &Unfit{"found other rows, or another schema, model or adjacency, than those of the worker that the run began with; allowed are the same for all workers of one shard"}
	}
	rows, err := s.sample(h, q)
	if err != nil {
		return nil, err
	}
	counts, err := s.counts(q, rows)
	if err != nil {
		return nil, err
	}
	return encodeCounts(append(make([]byte, 0, 1+8*len(counts)), answerGood), counts), nil
}

// sample draws the sample of the question's batch and takes what is this shard's. It is the same for every question of the batch, and
// for the table in one piece.
func (s *Shard) sample(h head, q *question) ([]int32, error) {
	if len(q.Key) != len(noise.Key{}) {
		return nil, errQuestion
	}
	by := draw{h.salt, q.Batch, noise.Key(q.Key)}
	if by == s.drawnBy {
		return s.drawn, nil
	}
	sampler, err := q.Sampler.sampler()
	if err != nil {
		return nil, err
	}
	by.key.Reset(&s.sampling)
	s.cfg.Table.Random(sampler.Size(s.cfg.Facts.Rows)*randomShare < float64(s.cfg.Facts.Rows))
	rows, all := sampler.Draw(s.drawn[:0], q.Total, &s.sampling)
	if all {
		s.drawnBy, s.all, s.drawn = by, true, s.drawn[:0]
		return s.drawn, nil
	}
	first, _ := slices.BinarySearch(rows, int32(q.From))
	end, _ := slices.BinarySearch(rows, int32(q.From+s.rows))
	own := rows[:end-first]
	for i, row := range rows[first:end] {
		own[i] = row - int32(q.From)
	}
	s.drawnBy, s.all, s.drawn = by, false, own
	return own, nil
}

// counts sums over this shard's rows of the sample.
func (s *Shard) counts(q *question, rows []int32) ([]int64, error) {
	vectors := map[string]int{askGradients: 1, askCurvature: 1, askDecreases: 3, askNeighbours: 1, askLosses: 1}[q.Ask]
	if len(q.vectors) != vectors {
		return nil, errQuestion
	}
	dim := s.cfg.Model.Dim()
	for i, v := range q.vectors {
		if i < 2 && len(v) != dim {
			return nil, fmt.Errorf("found %d parameters; the shard's model has %d", len(v), dim)
		}
	}
	bounded := func() (float64, error) {
		if !(q.Bound > 0) {
			return 0, errQuestion
		}
		return fallUnit(q.Bound), q.in(fallUnit(q.Bound))
	}
	var sums []decrease
	switch q.Ask {
	case askGradients:
		return s.gradients(q, rows)
	case askCurvature:
		rule, err := q.Clip.rule()
		if err != nil {
			return nil, err
		}
		unit := rootUnit(rule.Bound(), s.cfg.Facts.Rows)
		if err := q.in(unit); err != nil {
			return nil, err
		}
		return s.sum.hessian(&curvature{w: q.vectors[0], clip: rule, unit: unit}, rows, s.all), nil
	case askDecreases:
		if _, err := bounded(); err != nil {
			return nil, err
		}
		sums = s.sum.decrease(oracle.Line{From: q.vectors[0], Along: q.vectors[1]}, q.vectors[2], q.Bound, rows, s.all, false)
	case askNeighbours:
		unit, err := bounded()
		if err != nil {
			return nil, err
		}
		sums = s.sum.tallied(&neighbours{from: q.vectors[0], step: q.Step, bound: q.Bound, unit: unit}, 2*dim, unit, rows, s.all)
	case askLosses:
		unit, err := bounded()
		if err != nil {
			return nil, err
		}
		sums = s.sum.tallied(&losses{w: q.vectors[0], bound: q.Bound, unit: unit}, 1, unit, rows, s.all)
	case askClasses:
		if err := q.in(1); err != nil {
			return nil, err
		}
		sums = s.sum.tallied(classes{s.cfg.Facts.Classes, 1}, s.cfg.Facts.Classes, 1, rows, s.all)
	default:
		return nil, fmt.Errorf("the shard does not know the question %q", q.Ask)
	}
	counts := make([]int64, len(sums))
	for k, sum := range sums {
		counts[k] = sum.count
	}
	return counts, nil
}

func (s *Shard) gradients(q *question, rows []int32) ([]int64, error) {
	rule, err := q.Clip.rule()
	if err != nil {
		return nil, err
	}
	if s.sum.views, err = q.Views.Of(s.cfg.Facts.Image, q.Batch); err != nil {
		return nil, err
	}
	defer func() { s.sum.views = nil }()
	unit, err := s.sum.clipped(q.vectors[0], rule, s.cfg.Facts, rows, s.all)
	if err == nil {
		err = q.in(unit)
	}
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(q.vectors[0]))
	s.sum.take(counts, 0)
	return counts, nil
}
