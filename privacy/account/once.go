package account

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Composing is most of what an accountant costs, and calibration, meter, progress, report, settlement and verification
// of one run ask the same of the same plan. So this process keeps the last answers: they depend on the question only.
var once = answers[float64]{known: map[question]float64{}}

// curves keeps the last trade-off curves, by the δ outside.
var curves = answers[TradeOff]{known: map[question]TradeOff{}}

// A question is a composed privacy loss, as its SHA-256, and what is asked of it.
type question struct {
	loss [sha256.Size]byte
	goal pldGoal
}

// answers are those to the last questions. It is safe for concurrent use; two that ask the same at once both compose.
type answers[V any] struct {
	mu    sync.Mutex
	known map[question]V
	last  [512]question // a ring
	next  int
	count int64 // compositions
}

// Compositions is how many privacy losses this process has composed: for tests, which do not measure time.
func Compositions() int64 { return once.counted() + curves.counted() }

func (a *answers[V]) counted() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

func (a *answers[V]) find(q question) (V, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.known[q]
	return v, ok
}

// keep keeps an answer that took that many compositions.
func (a *answers[V]) keep(q question, v V, composed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count += int64(composed)
	if _, ok := a.known[q]; ok {
		return
	}
	delete(a.known, a.last[a.next]) // of a ring that is not full yet, no question
	a.known[q], a.last[a.next] = v, q
	a.next = (a.next + 1) % len(a.last)
}

// forget makes the next questions be composed.
func (a *answers[V]) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.known)
	clear(a.last[:])
}

// answer is what the goal asks for, composed if it is not known.
func (l *pldLoss) answer(goal pldGoal) float64 {
	q := question{l.digest(), goal}
	sharp := q
	sharp.goal.rough = false
	for _, q := range []question{sharp, q} {
		if v, ok := once.find(q); ok {
			return v
		}
	}
	_, v := l.whole(goal)
	once.keep(q, v, 1)
	return v
}

// digest names all that a composition depends on.
func (l *pldLoss) digest() (sum [sha256.Size]byte) {
	var b []byte
	number := func(list ...float64) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	flag := func(list ...bool) {
		for _, v := range list {
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	b = append(b, byte(l.adj))
	flag(l.sampled, l.gridOnly)
	number(l.steps)
	for _, p := range l.parts {
		b = append(b, byte(p.shape))
		number(p.rate, p.shift, p.lost, p.near, p.times, float64(len(p.points)))
		for _, at := range p.points {
			number(at.y, at.p0, at.p1)
		}
	}
	return sha256.Sum256(b)
}

// Near is an ε that holds at delta, for charts and progress. It is at most a little above that of
// l, and cheaper to compute if l was not asked at delta before.
func Near(l Loss, delta float64) float64 {
	switch l := l.(type) {
	case bound:
		if l.leak == 0 {
			return Near(l.rest, delta)
		}
	case leastLoss:
		least := math.Inf(1)
		for _, one := range l {
			least = math.Min(least, Near(one, delta))
		}
		return least
	case mostLoss:
		most := 0.0
		for _, one := range l {
			most = math.Max(most, Near(one, delta))
		}
		return most
	case *pldLoss:
		return l.epsilon(delta, true)
	}
	return l.Epsilon(delta)
}

// Curve is ε of l at each of deltas, for a chart with a table: at knots it is what l.Epsilon says, elsewhere at most a
// little above. What was composed for a knot also bounds ε at the deltas between that and its neighbors.
func Curve(l Loss, knots, deltas []float64) []float64 {
	y := make([]float64, len(deltas))
	for i := range y {
		y[i] = math.Inf(1)
	}
	switch l := l.(type) {
	case bound:
		if l.leak == 0 {
			return Curve(l.rest, knots, deltas)
		}
	case leastLoss:
		for _, one := range l {
			for i, v := range Curve(one, knots, deltas) {
				y[i] = math.Min(y[i], v)
			}
		}
		return y
	case *pldLoss:
		l.curve(knots, deltas, y)
	}
	for i, delta := range deltas {
		if math.IsInf(y[i], 1) {
			y[i] = Near(l, delta)
		}
	}
	return y
}

// curveAgrees is how far, relatively, the bounds of two knots may be apart to be taken for sharp.
const curveAgrees = 1e-3

// curve lowers y[i] where the knots on both sides of deltas[i] say about the same.
func (l *pldLoss) curve(knots, deltas, y []float64) {
	if l.exact != nil || l.hopeless {
		return
	}
	knots = slices.DeleteFunc(slices.Sorted(slices.Values(knots)), func(k float64) bool { return !(k > 1e-300 && k < 1) })
	knots = slices.Compact(knots)
	var before pldWhole
	for j, knot := range knots {
		goal := goalAt(knot)
		here, v := l.whole(goal)
		once.keep(question{l.digest(), goal}, v, 1)
		for i, delta := range deltas {
			switch {
			case delta == knot:
				y[i] = math.Min(v, l.pure)
			case j > 0 && knots[j-1] < delta && delta < knot:
				a, _ := before.epsilon(delta)
				b, _ := here.epsilon(delta)
				if math.Abs(a-b) <= curveAgrees*math.Min(a, b) {
					y[i] = math.Min(math.Min(a, b), l.pure)
				}
			}
		}
		before = here
	}
}
