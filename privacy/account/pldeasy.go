package account

import (
	"math"
	"sync"
)

// A pldWhole is what was composed to answer one question: all directions, or one of them with Chernoff's bound for
// the other. It bounds δ at every ε, but it is sharp only near what it was made for.
type pldWhole struct {
	all  []composition
	easy *chernoff // nil: none
}

// delta is a δ that holds at epsilon, and whether the easy direction does not raise it.
func (w pldWhole) delta(epsilon float64) (delta float64, sharp bool) {
	for _, c := range w.all {
		delta = math.Max(delta, c.delta(epsilon))
	}
	if w.easy == nil {
		return delta, true
	}
	easy := w.easy.delta(epsilon)
	return math.Max(delta, easy), easy <= delta
}

// epsilon is an ε that holds at delta, +Inf and false where the easy direction was to be composed.
func (w pldWhole) epsilon(delta float64) (epsilon float64, proven bool) {
	for _, c := range w.all {
		epsilon = math.Max(epsilon, epsilonOf(c, delta))
	}
	if w.easy != nil && w.easy.delta(epsilon) > delta {
		return math.Inf(1), false
	}
	return epsilon, true
}

// answer is what the goal asks for, and whether w was enough for it.
func (w pldWhole) answer(goal pldGoal) (float64, bool) {
	if goal.atEpsilon {
		return w.delta(goal.epsilon)
	}
	return w.epsilon(goal.delta)
}

// whole composes what the goal needs, and answers it. A direction that seems to cost clearly less is composed only
// where Chernoff's bound, a small part of the work, does not prove that it does. PROOFS.md#pld-line.
func (l *pldLoss) whole(goal pldGoal) (w pldWhole, answer float64) {
	directions := l.directions()
	aims := l.aims(directions, goal)
	if hard, easy, clear := order(aims, goal); clear && !l.gridOnly {
		w.all = []composition{l.composeOne(directions[hard], aims[hard], false)}
		answer, _ = w.answer(goal)
		epsilon, delta := answer, goal.delta
		if goal.atEpsilon {
			epsilon, delta = goal.epsilon, answer
		}
		if w.easy = l.chernoff(directions[easy], aims[easy], aims[hard].tilt, epsilon, math.Log(delta)); w.easy != nil {
			if answer, enough := w.answer(goal); enough {
				return w, answer
			}
		}
		w.easy = nil
		w.all = append(w.all, l.composeOne(directions[easy], aims[easy], false))
	} else {
		w.all = l.composeAll(directions, aims, false)
	}
	answer, _ = w.answer(goal)
	return w, answer
}

// order names the direction that costs more; clear says that the other is likely to be proven to cost less.
func order(aims []pldAim, goal pldGoal) (hard, easy int, clear bool) {
	if len(aims) < 2 {
		return 0, 0, false
	}
	hard, easy = 0, 1
	if aims[hard].cost < aims[easy].cost {
		hard, easy = easy, hard
	}
	margin := 2.0 // by which Chernoff's ln δ is above δ, about
	if !goal.atEpsilon {
		margin /= aims[hard].tilt
	}
	return hard, easy, aims[easy].cost < aims[hard].cost-margin
}

func (l *pldLoss) aims(directions []direction, goal pldGoal) []pldAim {
	list := make([]pldAim, len(directions))
	for i, d := range directions {
		list[i] = l.aim(d, goal)
	}
	return list
}

// compose composes all directions.
func (l *pldLoss) compose(goal pldGoal, lower bool) []composition {
	directions := l.directions()
	return l.composeAll(directions, l.aims(directions, goal), lower)
}

// composeAll composes the directions side by side.
func (l *pldLoss) composeAll(directions []direction, aims []pldAim, lower bool) []composition {
	list := make([]composition, len(directions))
	var wait sync.WaitGroup
	for i, d := range directions {
		wait.Go(func() { list[i] = l.composeOne(d, aims[i], lower) })
	}
	wait.Wait()
	return list
}

// A chernoff bounds δ(ε) by e^{k−λε} times the most that its weight can be, for λ = tilt. PROOFS.md#pld-line.
type chernoff struct {
	tilt  float64
	k     float64 // K(tilt)
	relax float64 // error of k
	inf   float64 // mass at an infinite loss
}

func (c *chernoff) delta(epsilon float64) float64 {
	weight := -c.tilt*math.Log1p(1/c.tilt) - math.Log1p(c.tilt)
	rounding := 16 * unit * (20 + math.Abs(c.k) + c.tilt*epsilon)
	return math.Min(1, math.Exp(c.k+c.relax-c.tilt*epsilon+weight+rounding)*(1+1e-12)+c.inf)
}

// chernoff is a bound that seems to be below delta at epsilon, nil where there is none. Of the tilts from tilt on it
// takes the first, because larger ones need more nodes.
func (l *pldLoss) chernoff(d direction, a pldAim, tilt, epsilon, logDelta float64) *chernoff {
	const margin = 0.1
	for ; ; tilt *= 2 {
		if improvedLogDelta(tilt, logMoment(a.list, tilt)/tilt, epsilon) < logDelta-margin {
			break
		}
		if !(tilt < a.tilt) {
			return nil
		}
	}
	if a.z > lineMaxReach {
		return nil
	}
	c := &chernoff{tilt: tilt}
	growth := 3 + tilt
	for _, p := range l.parts {
		if p.nodeCount(d, a.z, growth) > lineMaxNodes {
			return nil
		}
		nodes, _, inf := p.nodes(d, a.z, growth)
		largest := 0.0
		for _, n := range nodes {
			largest = math.Max(largest, math.Abs(n.loss))
		}
		moment := logMomentOf(nodes, tilt)
		c.k += p.times * moment
		c.relax += p.times*(p.nodeError(a.z, growth, largest)+4*unit*(1+math.Abs(moment))) + 2*unit*math.Abs(c.k)
		c.inf += p.times * inf * (1 + 1e-12)
	}
	return c
}
