package quality

import (
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run/runlog"
)

// Intervals. A figure is a ratio A/B of sums over the population, of which noisy sums over a sample are known. The
// interval has each m at which A − m·B is no further from 0 than z times its standard deviation, that of the noise and
// of the sample together (the test of Fieller and, without noise, of Wilson). It does not divide by B, so it holds for
// small B too: there it grows to all that the figure can be. What the deviation needs of the sample is computed from
// noisy numbers, so it is taken at the upper end of its own noise.

// level is the confidence of an interval, at z standard deviations; zHalf is for two that hold together.
const (
	level = 0.95
	z     = 1.959963984540054
	zHalf = 2.241402727604947
)

// fewest is how many standard deviations of its noise a number of records must be for a figure of those records.
const fewest = 3

// unknown is the figure of too few records.
func unknown(low, high float64) runlog.Figure {
	return runlog.Figure{Low: runlog.Rounded(low), High: runlog.Rounded(high), TooFew: true}
}

// known is the figure value with an interval, within the range from least to most.
func known(value, low, high, least, most float64) runlog.Figure {
	inside := func(v float64) float64 { return runlog.Rounded(min(max(v, least), most)) }
	value = inside(value)
	return runlog.Figure{Value: &value, Low: min(value, inside(low)), High: max(value, inside(high))}
}

// ratio is the set of m with (a − m·b)² ≤ z²·(c₀ + c₁m + c₂m²), if it is an interval.
func ratio(a, b, z, c0, c1, c2 float64) (low, high float64, ok bool) {
	p, q, r := b*b-z*z*c2, -2*a*b-z*z*c1, a*a-z*z*c0
	d := q*q - 4*p*r
	if !(p > 0 && d >= 0) {
		return 0, 0, false
	}
	root := math.Sqrt(d)
	return (-q - root) / (2 * p), (-q + root) / (2 * p), true
}

// A part counts noisy records, and those of them that have a property.
type part struct {
	noise         float64 // its standard deviation in each number
	all, with     float64
	cells, having float64
}

func (p *part) add(records float64, with bool) {
	p.all += records
	p.cells++
	if with {
		p.with += records
		p.having++
	}
}

// few says whether a noisy number with that deviation is too small for figures.
func few(n, deviation float64) bool { return !(n > fewest*deviation) }

// records is a noisy number with an interval for its noise.
func records(n, deviation float64) runlog.Figure {
	f := known(n, n-z*deviation, n+z*deviation, 0, math.MaxFloat64)
	f.TooFew = few(n, deviation)
	return f
}

func (p *part) deviation() float64 { return p.noise * math.Sqrt(p.cells) }

func (p *part) count() runlog.Figure { return records(p.all, p.deviation()) }

// share is the share of the records that have the property.
func (p *part) share() runlog.Figure {
	if few(p.all, p.deviation()) {
		return unknown(0, 1)
	}
	a, s := min(max(p.with, 0), p.all), p.noise*p.noise
	n := p.all + z*p.deviation()
	low, high, ok := ratio(a, p.all, z, s*p.having, n-2*s*p.having, s*p.cells-n)
	if !ok {
		return unknown(0, 1)
	}
	return known(a/p.all, low, high, 0, 1)
}

// A grid holds noisy numbers of records in cells, with noise of that deviation in each.
type grid struct {
	counts []float64
	noise  float64
	ties   []tied
}

// A tied block of cells, from and up to a number, was brought to a total. Its noise has the covariance I − J·less, in
// units of a cell's variance.
type tied struct {
	from, to int
	less     float64
}

// tie brings a block of m cells to the least squares estimate given one more noisy number, of all its records, whose
// noise has r times the variance of a cell's: each cell takes the part 1/(m+r) of the difference.
func (g *grid) tie(from, to int, total, noise float64) {
	t := tied{from, to, 1 / (float64(to-from) + noise*noise/(g.noise*g.noise))}
	for _, c := range g.counts[from:to] {
		total -= c
	}
	for k := from; k < to; k++ {
		g.counts[k] += total * t.less
	}
	g.ties = append(g.ties, t)
}

// covariance is that of the noise in two sums of the cells with these factors.
func (g *grid) covariance(a, b []float64) float64 {
	sum := 0.0
	for k, v := range a {
		sum += v * b[k]
	}
	for _, t := range g.ties {
		var one, two float64
		for k := t.from; k < t.to; k++ {
			one += a[k]
			two += b[k]
		}
		sum -= one * two * t.less
	}
	return g.noise * g.noise * max(0, sum)
}

// mean is the mean over records of the values v of their cells, none of which is below 0.
func (g *grid) mean(v []float64) runlog.Figure {
	var n, sum, square float64
	least, most, ones := math.Inf(1), math.Inf(-1), make([]float64, len(v))
	for i, c := range g.counts {
		ones[i] = 1
		n += c
		sum += c * v[i]
		square += c * v[i] * v[i]
		least, most = min(least, v[i]), max(most, v[i])
	}
	deviation := math.Sqrt(g.covariance(ones, ones))
	if few(n, deviation) {
		return unknown(least, most)
	}
	m := min(max(sum/n, least), most)
	variance, spread := square/n-m*m, make([]float64, len(v))
	for i, x := range v {
		spread[i] = (x-m)*(x-m) - variance
	}
	variance = atMost(variance+z*math.Sqrt(g.covariance(spread, spread))/n, (m-least)*(most-m))
	low, high, ok := ratio(sum, n, z, g.covariance(v, v)+(n+z*deviation)*variance, -2*g.covariance(v, ones),
		g.covariance(ones, ones))
	if !ok {
		return unknown(least, most)
	}
	return known(sum/n, low, high, least, most)
}

// atMost is a variance that is at most most, and not below 0.
func atMost(variance, most float64) float64 { return max(0, min(variance, most)) }

// between is a figure of which only figures that it is not below and not above are known.
func between(below, above runlog.Figure) runlog.Figure {
	if below.TooFew || above.TooFew {
		return unknown(below.Low, above.High)
	}
	value := runlog.Rounded((*below.Value + *above.Value) / 2)
	return runlog.Figure{Value: &value, Low: below.Low, High: above.High}
}

// auc is the probability that a record of the second class has a higher score than one of the first, from records in
// bins of the score, first those of the first class. Pairs within a bin count half in the value; the interval has them
// count nothing and all.
func (g *grid) auc() runlog.Figure {
	bins := len(g.counts) / 2
	first, second := g.counts[:bins], g.counts[bins:]
	var n, m float64 // records of the second and of the first class
	inFirst, inSecond := make([]float64, 2*bins), make([]float64, 2*bins)
	for k := range first {
		m += first[k]
		n += second[k]
		inFirst[k], inSecond[bins+k] = 1, 1
	}
	if few(m, fewestPairs/fewest*math.Sqrt(g.covariance(inFirst, inFirst))) ||
		few(n, fewestPairs/fewest*math.Sqrt(g.covariance(inSecond, inSecond))) {
		return unknown(0, 1)
	}
	at := func(ties float64) (value, deviation float64) {
		// Of a record of the second class, the share of the first that is below it; of one of the first, that of the second
		// above.
		wins := make([]float64, 2*bins)
		below, above := 0.0, 0.0
		for k := range first {
			wins[bins+k] = (below + ties*first[k]) / m
			below += first[k]
			j := bins - 1 - k
			wins[j] = (above + ties*second[j]) / n
			above += second[j]
		}
		for k := range second {
			value += second[k] * wins[bins+k] / n
		}
		moves := make([]float64, 2*bins) // of the value with a number
		var one, two, onePlus, twoPlus float64
		for k := range first {
			a, b := wins[k]-value, wins[bins+k]-value
			moves[k], moves[bins+k] = a/m, b/n
			one += first[k] * a * a / m
			two += second[k] * b * b / n
			onePlus += math.Pow(g.noise*a*a/m, 2)
			twoPlus += math.Pow(g.noise*b*b/n, 2)
		}
		// The products of two noisy numbers, of at most all pairs of bins.
		noisy := g.covariance(moves, moves) + math.Pow(g.noise, 4)*float64(bins*bins)/2/(n*n*m*m)
		const most = 0.25
		sampling := atMost(one+z*math.Sqrt(onePlus), most)/m + atMost(two+z*math.Sqrt(twoPlus), most)/n
		return value, math.Sqrt(noisy + sampling)
	}
	value, _ := at(0.5)
	low, down := at(0)
	high, up := at(1)
	return known(value, low-z*down, high+z*up, 0, 1)
}

// fewestPairs is how many standard deviations of its noise the number of records of each class must be for an AUC,
// which is a ratio of products.
const fewestPairs = 5.0

// sums are noisy sums of errors, as oracle.ErrorSums has them.
type sums struct {
	a, noise   [oracle.ErrorSums]float64
	unit, span float64 // of errors; of labels
}

func (s *sums) count() runlog.Figure { return records(s.a[0], s.noise[0]) }

// moment is the mean of figures between 0 and 1 whose sum is number i and whose squares' is number j, at that many
// standard deviations.
func (s *sums) moment(i, j int, z float64) (low, high float64, ok bool) {
	n := s.a[0]
	if few(n, s.noise[0]) {
		return 0, 0, false
	}
	m := min(max(s.a[i]/n, 0), 1)
	noise := func(k int, factor float64) float64 { return factor * factor * s.noise[k] * s.noise[k] }
	second := s.a[j] / n
	spread := math.Sqrt(noise(j, 1)+noise(i, 2*m)+noise(0, 2*m*m-second)) / n
	variance := atMost(second-m*m+z*spread, m*(1-m)+z*s.noise[i]/n)
	return ratio(s.a[i], n, z, noise(i, 1)+(n+z*s.noise[0])*variance, 0, noise(0, 1))
}

// mae is the mean absolute error.
func (s *sums) mae() runlog.Figure {
	low, high, ok := s.moment(1, 2, z)
	if !ok {
		return unknown(0, s.unit)
	}
	return known(s.unit*s.a[1]/s.a[0], s.unit*low, s.unit*high, 0, s.unit)
}

// rmse is the root of the mean squared error.
func (s *sums) rmse() runlog.Figure {
	low, high, ok := s.moment(2, 3, z)
	if !ok {
		return unknown(0, s.unit)
	}
	root := func(v float64) float64 { return s.unit * math.Sqrt(max(0, v)) }
	return known(root(s.a[2]/s.a[0]), root(low), root(high), 0, s.unit)
}

// leastR2 is what a lower R² counts as.
const leastR2 = -1

// r2 is 1 less the mean squared error over the variance of the labels. The interval is of the ends of both, which hold
// together.
func (s *sums) r2() runlog.Figure {
	all := unknown(leastR2, 1)
	low, high, ok := s.moment(2, 3, zHalf)
	if !ok {
		return all
	}
	n := s.a[0]
	m := min(max(s.a[4]/n, 0), 1)
	second := s.a[5] / n
	variance := second - m*m
	noise := func(k int, factor float64) float64 { return factor * factor * s.noise[k] * s.noise[k] }
	noisy := noise(5, 1) + noise(4, 2*m) + noise(0, 2*m*m-second)
	// Of (u − m)², which is between 0 and most; the variance that a sample shows is below its own by the square of the
	// mean's error.
	most := max(m, 1-m) * max(m, 1-m)
	upper := atMost(variance+zHalf*math.Sqrt(noisy)/n, 0.25)
	width := zHalf * math.Sqrt(noisy/(n*n)+atMost(upper*(most-upper), most*most/4)/n)
	above := zHalf * zHalf * (upper/n + noise(4, 1)/(n*n))
	least, greatest := variance-width, variance+width+above
	if !(least > 0) {
		return all
	}
	scale := s.unit * s.unit / (s.span * s.span)
	r2 := func(square, variance float64) float64 { return 1 - scale*max(0, square)/variance }
	return known(r2(s.a[2]/n, variance), r2(high, least), r2(low, greatest), leastR2, 1)
}
