package remote

import (
	"bytes"
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
	"github.com/sottodp/sotto/privacy/noise"
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
	form
	turn
	vectors [][]float64 // parameters; of decreases a line and its steps
}

// A form is what a question mostly shares with those of the step before. It travels as JSON, of which both sides keep the last.
type form struct {
	Ask   private.Kind
	Terms string // of a hello: what both sides must agree on, hashed, as JSON
	Why   string // of a leave

	Sampler typed
	Clip    typed
	Views   oracle.Augmentation
	Unit    float64 // of the sums: both sides know it, and it must be the same
	Bound   float64 // of losses and their decreases
	Step    float64 // of neighbors
	Count   int     // of sums
}

// A turn is what each question to a shard has of its own.
type turn struct {
	Is          [sha256.Size]byte // which rows, under which terms, the shard said that it has; not of a hello and a leave
	Key         noise.Key         // of the sample, of all shards' rows
	Batch       int64
	From, Total int64 // the shard's own rows begin at From
}

// typed is a value, as JSON, with its type.
type typed struct{ Type, Value string }

func typedOf(v any) (typed, error) {
	b, err := json.Marshal(v)
	return typed{fmt.Sprintf("%T", v), string(b)}, err
}

func as[T any](t typed) (v T, err error) {
	err = json.Unmarshal([]byte(t.Value), &v)
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
func identity(digest [32]byte, terms map[string][]byte) (is [sha256.Size]byte) {
	h := sha256.New()
	h.Write(digest[:])
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		fmt.Fprintf(h, "%s=%x\n", name, terms[name])
	}
	h.Sum(is[:0])
	return is
}

// asked is the question for a sum.
func asked(s *private.Sum) (q question, err error) {
	if s.Of == private.Rows || s.Center != nil {
		return q, errors.New("remote: shards sum no rows, and take no center from them")
	}
	q.form = form{Ask: s.Of, Unit: s.Unit, Views: s.Augmentation, Bound: s.Bound, Step: s.Step, Count: s.Len()}
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

// A formCache is the last form with its JSON.
type formCache struct {
	form form
	text []byte
}

// encode returns the JSON of f, not to be changed.
func (c *formCache) encode(f form) (_ []byte, err error) {
	if c.text == nil || c.form != f {
		c.form = f
		c.text, err = json.Marshal(f)
	}
	return c.text, err
}

// decode is the reverse.
func (c *formCache) decode(text []byte) (form, error) {
	if c.text == nil || !bytes.Equal(c.text, text) {
		var f form
		if err := json.Unmarshal(text, &f); err != nil {
			return f, errQuestion
		}
		c.form, c.text = f, bytes.Clone(text)
	}
	return c.form, nil
}

var turnSize = binary.Size(turn{})

// encode writes the question, whose form has that JSON: the length of the JSON, itself, the turn, and the vectors, each with its
// length before it.
func (q *question) encode(form []byte) ([]byte, error) {
	n := 4 + len(form) + turnSize
	for _, v := range q.vectors {
		n += 4 + 8*len(v)
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, n), uint32(len(form)))
	b, err := binary.Append(append(b, form...), binary.LittleEndian, &q.turn)
	if err != nil {
		return nil, err
	}
	for _, v := range q.vectors {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b, nil
}

var errQuestion = errors.New("remote: a question that is none")

func decodeQuestion(b []byte, forms *formCache) (*question, error) {
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
	text, err := part(1)
	if err != nil {
		return nil, err
	}
	q := new(question)
	if q.form, err = forms.decode(text); err != nil {
		return nil, err
	}
	n, err := binary.Decode(b, binary.LittleEndian, &q.turn)
	if err != nil {
		return nil, errQuestion
	}
	for b = b[n:]; len(b) > 0; {
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
