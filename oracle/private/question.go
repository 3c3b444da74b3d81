package private

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
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/sample"
)

// What a question asks for.
const (
	askHello      = "hello"
	askLeave      = "leave"
	askGradients  = "gradients"
	askCurvature  = "curvature"
	askDecreases  = "decreases"
	askNeighbours = "neighbours"
	askLosses     = "losses"
	askClasses    = "classes"
)

// A question asks a shard for its part of the sums of whole numbers over a sample. It holds the key of the sample, so it
// leaves a process only sealed.
type question struct {
	Ask string

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
	Step  float64 // of neighbours
	Count int     // of sums

	vectors [][]float64 // parameters; of decreases a line and its steps
}

// typed is a value and which type it has.
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
	return nil, fmt.Errorf("private: a shard does not know the sampler %q", t.Type)
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
	return nil, fmt.Errorf("private: a shard does not know the clip rule %q", t.Type)
}

// in says whether the coordinator counts in the unit that the shard counts in. Where it did not, as a program of another version may, its claim
// of the sum's sensitivity would be of another sum.
func (q *question) in(unit float64) error {
	if q.Unit != unit {
		return fmt.Errorf("found sums in units of %v; the shard's are %v: both need the same version of Sotto", q.Unit, unit)
	}
	return nil
}

// identity stands for a shard's rows and what they are read under.
func identity(digest [32]byte, terms map[string][]byte) []byte {
	h := sha256.New()
	h.Write(digest[:])
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		fmt.Fprintf(h, "%s=%x\n", name, terms[name])
	}
	return h.Sum(nil)
}

// asked is the question for the sums of t.
func asked(t tally) (q question, err error) {
	switch t := t.(type) {
	case *decreases:
		q = question{Ask: askDecreases, Bound: t.bound, Count: len(t.steps) - 1, vectors: [][]float64{t.from, t.along, t.steps[1:]}}
	case *neighbours:
		q = question{Ask: askNeighbours, Bound: t.bound, Step: t.step, Count: 2 * len(t.from), vectors: [][]float64{t.from}}
	case *losses:
		q = question{Ask: askLosses, Bound: t.bound, Count: 1, vectors: [][]float64{t.w}}
	case classes:
		q = question{Ask: askClasses, Count: t.n}
	case *curvature:
		q = question{Ask: askCurvature, Unit: t.unit, Count: oracle.HessLen(len(t.w)), vectors: [][]float64{t.w}}
		q.Clip, err = typedOf(t.clip)
	default:
		err = fmt.Errorf("private: shards have no question for %T", t)
	}
	return q, err
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

var errQuestion = errors.New("private: a question that is none")

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

// encodeCounts writes sums, decodeCounts adds them to dst: modulo 2⁶⁴, as all sums (coefUnit).
func encodeCounts(dst []byte, counts []int64) []byte {
	for _, v := range counts {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

func decodeCounts(dst []int64, b []byte) error {
	if len(b) != 8*len(dst) {
		return errors.New("private: an answer of another length than the question's")
	}
	for i := range dst {
		dst[i] += int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}
