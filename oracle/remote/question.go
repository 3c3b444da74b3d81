package remote

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/sample"
)

// What a question asks for: a sum, by its kind, or one of these.
const (
	askHello private.Kind = "hello"
	askLeave private.Kind = "leave"
)

// A question asks a shard for its part of the sums of whole numbers over a sample. It holds the
// sample's key, so it leaves a process only sealed.
type question struct {
	Ask private.Kind

	Terms map[string][]byte // of a hello: what both sides must agree on, hashed
	Why   string            // of a leave
	Is    []byte            // of all others: which rows, under which terms, the shard said that it has

	// The sample, of all shards' rows; the shard's own begin at From.
	Sampler     typed
	Key         []byte
	Batch       int
	From, Total int

	Clip  typed
	Views oracle.Augmentation
	Unit  float64 // of the sums: both sides know it, and it must be the same
	Bound float64 // of losses and their decreases
	Step  float64 // of neighbors
	Count int     // of sums

	vectors [][]float64 // parameters; of decreases a line and its steps
}

// typed is a value with its type.
type typed struct {
	Type  string
	Value json.RawMessage
}

func typedOf(v any) (typed, error) {
	b, err := json.Marshal(v)
	return typed{fmt.Sprintf("%T", v), b}, err
}

func as[T any](t typed) (v T, err error) {
	err = json.Unmarshal(t.Value, &v)
	return v, err
}

func (t typed) sampler() (sample.Sampler, error) {
	switch t.Type {
	case "sample.Full":
		return as[sample.Full](t)
	case "sample.Poisson":
		return as[sample.Poisson](t)
	case "sample.Fixed":
		return as[sample.Fixed](t)
	}
	return nil, fmt.Errorf("remote: a shard does not know the sampler %q", t.Type)
}

func (t typed) rule() (clip.Rule, error) {
	switch t.Type {
	case "clip.Norm":
		return as[clip.Norm](t)
	case "clip.Value":
		return as[clip.Value](t)
	case "clip.PerLayer":
		return as[clip.PerLayer](t)
	case "clip.Lipschitz":
		return as[clip.Lipschitz](t)
	}
	return nil, fmt.Errorf("remote: a shard does not know the clip rule %q", t.Type)
}

// identity stands for a shard's rows and the terms under which they are read.
func identity(digest [32]byte, terms map[string][]byte) []byte {
	h := sha256.New()
	h.Write(digest[:])
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		fmt.Fprintf(h, "%s=%x\n", name, terms[name])
	}
	return h.Sum(nil)
}

// asked is the question for a sum.
func asked(s *private.Sum) (q question, err error) {
	q = question{Ask: s.Of, Unit: s.Unit, Views: s.Augmentation, Bound: s.Bound, Step: s.Step, Count: s.Len()}
	for _, v := range [][]float64{s.W, s.Along, s.Steps} {
		if v != nil {
			q.vectors = append(q.vectors, v)
		}
	}
	if s.Clip != nil {
		q.Clip, err = typedOf(s.Clip)
	}
	return q, err
}

// sum is what the question asks for. The rows check that it fits the model, and that both sides use
// one unit.
func (q *question) sum() (s *private.Sum, err error) {
	s = &private.Sum{Of: q.Ask, Unit: q.Unit, Augmentation: q.Views, Bound: q.Bound, Step: q.Step}
	vectors := 1
	switch q.Ask {
	case private.Classes:
		s.Classes, vectors = q.Count, 0
	case private.Decreases:
		vectors = 3
	}
	if len(q.vectors) != vectors {
		return nil, errQuestion
	}
	for i, to := range []*[]float64{&s.W, &s.Along, &s.Steps}[:vectors] {
		*to = q.vectors[i]
	}
	if q.Ask == private.Gradients || q.Ask == private.Hessians {
		s.Clip, err = q.Clip.rule()
	}
	return s, err
}

// encode writes the question: its fields in JSON, their length before them, then its vectors.
func (q *question) encode() ([]byte, error) {
	fields, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	n := 4 + len(fields)
	for _, v := range q.vectors {
		n += 4 + 8*len(v)
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, n), uint32(len(fields)))
	b = append(b, fields...)
	for _, v := range q.vectors {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b, nil
}

var errQuestion = errors.New("remote: a question that is none")

func decodeQuestion(b []byte) (*question, error) {
	part := func(size int) ([]byte, error) {
		if len(b) < 4 {
			return nil, errQuestion
		}
		n := int(binary.LittleEndian.Uint32(b)) * size
		if b = b[4:]; len(b) < n {
			return nil, errQuestion
		}
		var p []byte
		p, b = b[:n], b[n:]
		return p, nil
	}
	fields, err := part(1)
	if err != nil {
		return nil, err
	}
	q := new(question)
	if err := json.Unmarshal(fields, q); err != nil {
		return nil, errQuestion
	}
	for len(b) > 0 {
		p, err := part(8)
		if err != nil {
			return nil, err
		}
		v := make([]float64, len(p)/8)
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
		q.vectors = append(q.vectors, v)
	}
	return q, nil
}

// encodeCounts writes sums, decodeCounts adds them to dst: modulo 2⁶⁴, as all sums.
func encodeCounts(dst []byte, counts []int64) []byte {
	for _, v := range counts {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

func decodeCounts(dst []int64, b []byte) error {
	if len(b) != 8*len(dst) {
		return errors.New("remote: an answer of another length than the question's")
	}
	for i := range dst {
		dst[i] += int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}
