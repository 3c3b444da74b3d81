package account

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"gonum.org/v1/gonum/floats"
)

// A lossLaw is a law of the privacy loss in points: of an upper bound it dominates the true one, of a lower bound it is
// dominated. Its points are on the mesh that suits the losses of so many releases, so that few are enough where most
// losses are tiny and rare ones are not. PROOFS.md#pld-geometric.
type lossLaw struct {
	times      float64   // how many releases
	loss, mass []float64 // in order of loss; mass is P's
	inf        float64   // of an upper bound, mass of P at an infinite loss, at most
}

const (
	geometricMost  = 120  // convolutions; with more the uniform grid serves alone
	geometricBlock = 16   // points are added up in blocks
	geometricCut   = 1e-9 // of δ, what all convolutions together leave out
	geometricLeast = -460 // ln δ; below it products of masses would underflow
)

// A geometric is the lossLaw of a whole composition.
type geometric struct {
	lossLaw
	gap, low []float64 // Σ mass·(1−e^{−(loss−lossᵢ)}) and Σ mass·e^{−(loss−lossᵢ)} over loss ≥ lossᵢ
	shift    float64   // what rounding may add to or take from a sum of losses
}

// A convolver is how laws are composed.
type convolver struct {
	pitch, widest float64 // of meshes
	cut           float64 // mass that a convolution may leave out for each release
	lower         bool
}

// newGeometric returns nil where it would take many convolutions.
func (l *pldLoss) newGeometric(d direction, a pldAim, lower bool) *geometric {
	steps := len(l.parts) - 1
	far, largest := 2*a.epsilon, 0.0
	for i, p := range l.parts {
		if !(a.list[i].scale() > 0) {
			return nil
		}
		n := uint64(p.times)
		steps += bits.Len64(n) + bits.OnesCount64(n) - 2
		lo, hi := p.ends(d, a.z)
		most := math.Max(-lo, hi)
		far = math.Max(far, most)
		if p.shape == sumShape { // what u and two exponents are rounded by moves the loss, too
			most *= 1 + p.shift*(a.z+p.shift)
		}
		largest = math.Max(largest, most+p.offset())
	}
	if steps > geometricMost || a.logDelta < geometricLeast {
		return nil
	}
	// One large loss is rounded in every convolution, which adds about tilt²·width²/12 to ln δ.
	c := convolver{pitch: math.Max(0.002, 0.01*math.Pow(float64(steps)/25, 0.25)), lower: lower}
	if a.rough {
		c.pitch *= 4
	}
	c.widest = c.pitch * math.Max(15/nearestPower(a.tilt+1), nearestPower(far)/15)
	c.cut = math.Exp(a.logDelta) * geometricCut / l.steps / float64(steps+1)
	var total lossLaw
	for _, i := range l.ordered() {
		p := l.parts[i]
		power := c.one(p, d, a.z, a.list[i])
		for n := uint64(p.times); n > 0; n >>= 1 {
			if n&1 == 1 {
				total = c.convolve(total, power)
			}
			if n > 1 {
				power = c.convolve(power, power)
			}
		}
	}
	return total.questions(l.steps * 8 * float64(steps+1) * unit * largest)
}

// nearestPower of 2, so that digits that depend on the order of events move no mesh.
func nearestPower(x float64) float64 { return math.Exp2(math.Round(math.Log2(x))) }

// ordered lists the parts in an order that does not depend on that of the events.
func (l *pldLoss) ordered() []int {
	list := make([]int, len(l.parts))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(i, j int) int {
		p, q := l.parts[i], l.parts[j]
		return cmp.Or(cmp.Compare(p.shape, q.shape), cmp.Compare(p.times, q.times), cmp.Compare(p.rate, q.rate),
			cmp.Compare(p.shift, q.shift), cmp.Compare(p.near, q.near), cmp.Compare(p.lost, q.lost))
	})
	return list
}

// one is the law of one release.
func (c convolver) one(p pldPart, d direction, z float64, s sketch) lossLaw {
	lo, hi := p.ends(d, z)
	m := stretched(s.scale(), c.pitch, c.widest)
	first := m.cell(lo) - 2
	mass := make([]float64, m.cell(hi)+3-first)
	over := make([]float64, len(mass)) // Σ mass·(1 − e^{−excess})
	count := make([]float64, len(mass))
	below, above := p.each(d, m, z, func(k, _ int, excess, w float64) {
		mass[k-first] += w
		over[k-first] += w * -math.Expm1(-excess)
		count[k-first]++
	})
	law := lossLaw{times: 1}
	if !c.lower {
		law.inf = above
		law.add(lo, below)
	}
	for i, w := range mass {
		wrong := p.massError(z) + 2*count[i]*unit
		least := 1e-14 + 2*wrong
		c.put(&law, m, first+i, w, wrong, over[i]/w-least, over[i]/w+least)
	}
	return law
}

// put appends what a cell becomes, whose mass is off by the share wrong at most: for the upper bound its ends, for the
// lower one a point within. The mean of 1 − e^{−excess} over the mass is between low and high.
func (c convolver) put(law *lossLaw, m mesh, k int, mass, wrong, low, high float64) {
	if !(mass > 0) {
		return
	}
	from, to := m.at(k), m.at(k+1)
	whole := -math.Expm1(from - to)
	if c.lower {
		loss := from - math.Log1p(-math.Min(whole, math.Max(0, low)))
		law.add(loss-4*unit*(math.Abs(from)+math.Abs(loss)), mass*(1-wrong))
		return
	}
	share := math.Min(1, math.Max(0, high/whole*(1+1e-12)))
	mass *= 1 + wrong
	law.add(from, mass*(1-share))
	law.add(to, mass*share)
}

// add appends a point, or adds to the last one, which is not below it by more than rounding.
func (law *lossLaw) add(loss, mass float64) {
	n := len(law.loss)
	switch {
	case !(mass > 0):
	case n > 0 && law.loss[n-1] >= loss:
		law.mass[n-1] += mass
	default:
		law.loss, law.mass = append(law.loss, loss), append(law.mass, mass)
	}
}

// convolve is the law of both together.
func (c convolver) convolve(a, b lossLaw) lossLaw {
	law := lossLaw{times: a.times + b.times, inf: a.inf + b.inf}
	switch {
	case a.times == 0:
		return b
	case len(a.loss) == 0 || len(b.loss) == 0:
		return law
	}
	same := &a.loss[0] == &b.loss[0]
	n := len(b.loss)
	lo, hi := a.loss[0]+b.loss[0], a.loss[len(a.loss)-1]+b.loss[n-1]
	widest := math.Max(c.widest, (hi-lo)*c.pitch/30) // a long range has no more cells than a short one
	m := stretched(math.Max(scaleOfSum(a, b), widest*1e-60), c.pitch, widest)
	first := m.cell(lo) - 1
	edges := make([]float64, m.cell(hi)+3-first)
	for k := range edges {
		edges[k] = m.at(first + k)
	}
	cell := func(s float64) int { return sort.Search(len(edges), func(k int) bool { return edges[k] > s }) - 1 }
	mass, moment := make([]float64, len(edges)), make([]float64, len(edges))
	size := make([]float64, len(edges)) // Σ mass·|loss in a|, for the rounding of moment
	blockMass, blockMoment := b.blocks()
	before, after := b.sums()
	allowed, left := c.cut*law.times/float64(2*len(a.loss)), 0.0
	for i, x := range a.loss {
		p, from := a.mass[i], 0
		if same { // each two points once
			k := cell(2 * x)
			mass[k] += p * p
			moment[k] += p * p * 2 * x
			size[k] += p * p * math.Abs(x)
			from = i + 1
			p *= 2
		} else {
			from = sort.Search(n, func(j int) bool { return p*before[j+1] > allowed })
			left += p * before[from]
		}
		to := from + sort.Search(n-from, func(j int) bool { return p*after[from+j] <= allowed })
		left += p * after[to]
		if from == to {
			continue
		}
		for j, k := from, cell(x+b.loss[from]); j < to; k++ {
			end, runMass, runMoment := edges[k+1], 0.0, 0.0
			for j < to {
				if j%geometricBlock == 0 && j+geometricBlock <= to && x+b.loss[j+geometricBlock-1] < end {
					runMass += blockMass[j/geometricBlock]
					runMoment += blockMoment[j/geometricBlock]
					j += geometricBlock
					continue
				}
				y := b.loss[j]
				if x+y >= end {
					break
				}
				runMass += b.mass[j]
				runMoment += b.mass[j] * y
				j++
			}
			mass[k] += p * runMass
			moment[k] += p * (runMoment + x*runMass)
			size[k] += p * runMass * math.Abs(x)
		}
	}
	// The masses of a law may add up to more than 1, by what they were enlarged.
	law.inf = (a.inf*math.Max(1, before[n])+b.inf*math.Max(1, floats.Sum(a.mass))+left)*(1+1e-9) + 1e-290
	rounding := 4 * unit * float64(len(a.loss)+n+64)
	for k, p := range mass {
		if !(p > 0) {
			continue
		}
		width := edges[k+1] - edges[k]
		mean := moment[k]/p - edges[k]
		wrong := 2 * rounding * (2*size[k]/p + math.Abs(edges[k]) + width)
		low := (mean - wrong) / width * -math.Expm1(-width) // all mass at both ends
		high := -math.Expm1(-math.Max(0, mean+wrong))       // all at its mean
		c.put(&law, m, first+k, p, rounding, low, high)
	}
	return law
}

// blocks are the sums of mass and of mass·loss over whole blocks of points.
func (law lossLaw) blocks() (mass, moment []float64) {
	mass = make([]float64, len(law.loss)/geometricBlock)
	moment = make([]float64, len(mass))
	for i := range mass {
		for j := i * geometricBlock; j < (i+1)*geometricBlock; j++ {
			mass[i] += law.mass[j]
			moment[i] += law.mass[j] * law.loss[j]
		}
	}
	return mass, moment
}

// sums are the masses before each point, and from each point on.
func (law lossLaw) sums() (before, after []float64) {
	n := len(law.mass)
	before, after = make([]float64, n+1), make([]float64, n+1)
	for j, p := range law.mass {
		before[j+1] = before[j] + p
	}
	for j := n - 1; j >= 0; j-- {
		after[j] = after[j+1] + law.mass[j]
	}
	return before, after
}

// scale is about E|L|.
func (s sketch) scale() (scale float64) {
	for i, loss := range s.l {
		scale += s.w[i] * math.Abs(loss)
	}
	return scale
}

// scaleOfSum is about the E|L| of both together.
func scaleOfSum(a, b lossLaw) (scale float64) {
	a, b = a.few(), b.few()
	for i, x := range a.loss {
		for j, y := range b.loss {
			scale += a.mass[i] * b.mass[j] * math.Abs(x+y)
		}
	}
	return scale
}

// few is about the law in at most 100 points.
func (law lossLaw) few() (few lossLaw) {
	size := (len(law.loss) + 99) / 100
	for i := 0; i < len(law.loss); i += size {
		mass, moment := 0.0, 0.0
		for j := i; j < min(i+size, len(law.loss)); j++ {
			mass += law.mass[j]
			moment += law.mass[j] * law.loss[j]
		}
		few.add(moment/mass, mass)
	}
	return few
}

// questions prepares a law to be asked for δ.
func (law lossLaw) questions(shift float64) *geometric {
	n := len(law.loss)
	c := &geometric{lossLaw: law, shift: shift, gap: make([]float64, n+1), low: make([]float64, n+1)}
	for i := n - 1; i >= 0; i-- {
		apart := math.Inf(1)
		if i < n-1 {
			apart = law.loss[i+1] - law.loss[i]
		}
		c.gap[i] = c.gap[i+1] + c.low[i+1]*-math.Expm1(-apart)
		c.low[i] = c.low[i+1]*math.Exp(-apart) + law.mass[i]
	}
	return c
}

// sum is Σ mass·(1 − e^{ε−loss}) over losses above ε, and the relative error of that.
func (c *geometric) sum(epsilon float64) (total, wrong float64) {
	wrong = 1e-12 + 16*unit*float64(len(c.loss))
	i := sort.Search(len(c.loss), func(i int) bool { return c.loss[i] > epsilon })
	if i == len(c.loss) {
		return 0, wrong
	}
	return c.gap[i] + c.low[i]*-math.Expm1(epsilon-c.loss[i]), wrong
}

// delta is a δ that holds at epsilon.
func (c *geometric) delta(epsilon float64) float64 {
	total, wrong := c.sum(epsilon - c.shift)
	return math.Min(1, total*(1+wrong)+c.inf)
}

// lowerDelta is less than δ at epsilon.
func (c *geometric) lowerDelta(epsilon float64) float64 {
	total, wrong := c.sum(epsilon + c.shift)
	return total * (1 - wrong)
}

func (c *geometric) top() float64 {
	if len(c.loss) == 0 {
		return 1
	}
	return math.Max(c.loss[len(c.loss)-1], math.SmallestNonzeroFloat64)
}

// sharper is what is proven by the one or by the other of two compositions of the same releases.
type sharper struct{ one, other composition }

func (c sharper) delta(epsilon float64) float64 {
	return math.Min(c.one.delta(epsilon), c.other.delta(epsilon))
}

func (c sharper) lowerDelta(epsilon float64) float64 {
	return math.Max(c.one.lowerDelta(epsilon), c.other.lowerDelta(epsilon))
}

func (c sharper) top() float64 { return math.Max(c.one.top(), c.other.top()) }
