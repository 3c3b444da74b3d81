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
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// What a question asks for: a sum, by its kind, or one of these.
const (
	askHello  sum.Kind = "hello"
	askLeave  sum.Kind = "leave"
	askShared sum.Kind = "shared" // which rows are on others, too
	askUnits  sum.Kind = "units"  // hashes of the units' ids: a page of them, by its number
)

// A question asks a shard for its part of the sums of whole numbers over a sample. It holds the
// sample's key, so it leaves a process only sealed.
type question struct {
	form
	turn
	sketches []byte      // of all shards; of askShared alone
	vectors  [][]float64 // parameters; of decreases a line and its steps
}

// A form is what a question mostly shares with those of the step before. It travels as JSON, of which both sides keep
// the last.
type form struct {
	Ask       sum.Kind
	Terms     string // of a hello: what both sides must agree on, hashed, as JSON
	Why       string // of a leave
	Protected bool   // of a leave: the gate refuses the rows

	Sampler sample.Sampler
	Clip    clip.Rule
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
	Batch       int64             // of askUnits the page
	From, Total int64             // the shard's own rows begin at From
}

// formText is a form as JSON: in place of the sampler and the clip rule, their types and values.
type formText struct {
	plainForm
	Sampler, Clip typed
}

type plainForm form

type typed struct{ Type, Value string }

func (f form) MarshalJSON() (text []byte, err error) {
	t := formText{plainForm: plainForm(f)}
	if t.Sampler, err = typedOf(f.Sampler); err != nil {
		return nil, err
	}
	if t.Clip, err = typedOf(f.Clip); err != nil {
		return nil, err
	}
	return json.Marshal(t)
}

// UnmarshalJSON leaves out a sampler or clip rule that it does not know.
func (f *form) UnmarshalJSON(text []byte) (err error) {
	var t formText
	if err = json.Unmarshal(text, &t); err != nil {
		return err
	}
	*f = form(t.plainForm)
	switch v := []byte(t.Sampler.Value); t.Sampler.Type {
	case "sample.Full":
		f.Sampler, err = as[sample.Full](v)
	case "sample.Poisson":
		f.Sampler, err = as[sample.Poisson](v)
	case "sample.Fixed":
		f.Sampler, err = as[sample.Fixed](v)
	}
	if err != nil {
		return err
	}
	switch v := []byte(t.Clip.Value); t.Clip.Type {
	case "clip.Norm":
		f.Clip, err = as[clip.Norm](v)
	case "clip.Value":
		f.Clip, err = as[clip.Value](v)
	case "clip.Automatic":
		f.Clip, err = as[clip.Automatic](v)
	case "clip.PerLayer":
		f.Clip, err = as[clip.PerLayer](v)
	case "clip.Lipschitz":
		f.Clip, err = as[clip.Lipschitz](v)
	}
	return err
}

func typedOf(v any) (t typed, err error) {
	if v == nil {
		return t, nil
	}
	b, err := json.Marshal(v)
	return typed{fmt.Sprintf("%T", v), string(b)}, err
}

func as[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

// identity stands for a shard's rows in their order and the terms under which they are read.
func identity(order [32]byte, terms map[string][]byte) (is [sha256.Size]byte) {
	h := sha256.New()
	h.Write(order[:])
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		fmt.Fprintf(h, "%s=%x\n", name, terms[name])
	}
	h.Sum(is[:0])
	return is
}

// asked is the question for a sum.
func asked(s *sum.Sum) (q question, err error) {
	switch s.Of {
	case sum.Gradients, sum.Within, sum.Hessians, sum.Decreases, sum.Neighbors, sum.Losses,
		sum.Classes:
	default:
		return q, fmt.Errorf("remote: shards have no sums of the kind %q; keep all rows on one machine", s.Of)
	}
	if s.Center != nil || s.Shift != 0 {
		return q, errors.New("remote: shards take no center from rows and do not shift margins; keep all rows on one machine")
	}
	q.form = form{Ask: s.Of, Clip: s.Clip, Unit: s.Unit, Views: s.Augmentation, Bound: s.Bound, Step: s.Step,
		Count: s.Len()}
	for _, v := range [][]float64{s.W, s.Along, s.Steps} {
		if v != nil {
			q.vectors = append(q.vectors, v)
		}
	}
	return q, nil
}

// sum is what the question asks for. The rows check that it fits the model, and that both sides use
// one unit.
func (q *question) sum(facts *oracle.Public) (s *sum.Sum, err error) {
	s = &sum.Sum{Of: q.Ask, Clip: q.Clip, Unit: q.Unit, Augmentation: q.Views, Bound: q.Bound, Step: q.Step}
	vectors := 1
	switch q.Ask {
	case sum.Classes:
		s.Classes, vectors = q.Count, 0
	case sum.Decreases:
		vectors = 3
	}
	if len(q.vectors) != vectors {
		return nil, errQuestion
	}
	for i, to := range []*[]float64{&s.W, &s.Along, &s.Steps}[:vectors] {
		*to = q.vectors[i]
	}
	// Before anything is as long as the question says.
	if vectors > 0 && len(s.W) != facts.Dim || q.Ask == sum.Hessians && facts.Dim > oracle.MaxHess ||
		q.Ask == sum.Classes && q.Count != facts.Classes || q.Count != s.Len() {
		return nil, errQuestion
	}
	return s, nil
}

// checkSample refuses numbers that no sampler takes.
func (q *question) checkSample(adj privacy.Adjacency) error {
	if fixed, ok := q.Sampler.(sample.Fixed); q.Total < 0 || q.Total > math.MaxInt32 || q.From < 0 || q.From > q.Total ||
		ok && int64(fixed.N) != q.Total {
		return errQuestion
	}
	return q.Sampler.Check(adj)
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

const turnSize = sha256.Size + len(noise.Key{}) + 3*8

func (t *turn) append(dst []byte) []byte {
	dst = append(append(dst, t.Is[:]...), t.Key[:]...)
	for _, v := range []int64{t.Batch, t.From, t.Total} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

// readTurn is the reverse, of turnSize bytes.
func readTurn(b []byte) (t turn) {
	b = b[copy(t.Is[:], b):]
	b = b[copy(t.Key[:], b):]
	for i, v := range []*int64{&t.Batch, &t.From, &t.Total} {
		*v = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return t
}

// append writes the question, whose form has that JSON: the JSON, the turn, the sketches, and the vectors, each of them
// but the turn with its length before it.
func (q *question) append(dst, form []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(form)))
	dst = q.turn.append(append(dst, form...))
	dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(q.sketches))), q.sketches...)
	for _, v := range q.vectors {
		dst = binary.LittleEndian.AppendUint32(slices.Grow(dst, 4+8*len(v)), uint32(len(v)))
		for _, x := range v {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
		}
	}
	return dst
}

var errQuestion = errors.New("remote: a question that is none")

// A reader reads questions, each into the memory of the one before.
type reader struct {
	forms formCache
	q     question
}

func (r *reader) read(b []byte) (_ *question, err error) {
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
	q := &r.q
	if q.form, err = r.forms.decode(text); err != nil {
		return nil, err
	}
	if len(b) < turnSize {
		return nil, errQuestion
	}
	q.turn, q.vectors = readTurn(b), q.vectors[:0]
	b = b[turnSize:]
	if q.sketches, err = part(1); err != nil {
		return nil, err
	}
	for len(b) > 0 {
		p, err := part(8)
		if err != nil {
			return nil, err
		}
		k, n := len(q.vectors), len(p)/8
		q.vectors = slices.Grow(q.vectors, 1)[:k+1]
		v := slices.Grow(q.vectors[k][:0], n)[:n]
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
		q.vectors[k] = v
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
