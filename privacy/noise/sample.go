package noise

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/sottodp/sotto/internal/kern"
)

const (
	// MaxScale is the largest scale of AddGaussian and AddLaplace, in counts. Up to it
	// no noise exceeds 2⁶² counts.
	MaxScale = 1 << 54

	// SamplerDistance bounds the total-variation distance of one value of AddGaussian
	// or AddLaplace, one gap of Trials or one coin of Decay from its ideal law, if the stream's bits are
	// ideal. The distance of a run is at most this times the number of its values.
	//
	// Derivation. A value is wrong only if its uniforms, known to B = 319 bits or more,
	// leave it open on which side of a rounding threshold it lies, and the slow path
	// guesses wrong. For Gaussian values cut the unit square of (U, V) into cells of side
	// 2⁻ᴮ. The curve R(U)·cos 2πV = h of one threshold h has at most 4 pieces, each
	// monotone in both coordinates, and a monotone curve meets at most 2·2ᴮ of the 2²ᴮ
	// cells. The error of the 512-bit arithmetic (below 2⁻⁴²⁰ even after division by the
	// smallest R that reaches a threshold, 1/(2·MaxScale)) is less than one cell, which
	// at most triples them: 24·2⁻ᴮ for each threshold. |Z| < 22 leaves at most
	// 44·MaxScale + 1 < 2⁶⁰ thresholds: in all below 2⁻²⁵⁴. Laplace values are functions
	// of one uniform below 222 with fewer than 2⁶³ thresholds, each in one cell or its
	// neighbors: below 2⁻²⁵⁴. A gap has fewer than 2⁶³ thresholds too (Trials.Gap).
	SamplerDistance = 0x1p-250
)

// expo computes E = −ln U in float64, where U is the uniform whose first 63 bits, or
// more, are those of u. It returns e ≥ 0 and err with |e − E| ≤ 0.3·err.
//
// Method. Write u = y·2⁶⁴⁻ᵐ with √½ ≤ y < √2, up to rounding. Then −ln U is m·ln 2 − ln y,
// and −ln y = 2·artanh(s), s = (1−y)/(1+y), |s| ≤ 0.1716, of which ten terms are taken.
//
// Error. Whatever u's missing bits are, U exceeds u·2⁻⁶⁴ by at most 2/u relatively. Taking
// u to y loses 2⁻⁶³ and a rounding of 2⁻⁵³, or nothing if u < 2⁵³. Together they move ln by at
// most 2/u if u < 2⁵³, else by 2/u + 1.001·2⁻⁵³ ≤ 4.1/u if u < 2⁵⁴, else by 1.001·2⁻⁵². All
// are ≤ 0.3·tail. In the evaluation 1−y is exact, s has two roundings, the terms after the
// first are below 1 % of it, those left out below 2⁻⁵⁵: ln y errs by less than
// 3.5·2⁻⁵³ relatively. m·ln 2 has two roundings and is at most 2E if m > 0, where
// |ln y| ≤ E too. With the last sum's rounding, 8.5·2⁻⁵³·E < 0.3·2⁻⁴⁸·e.
// For u = 0, err is +Inf.
func expo(u uint64) (e, err float64) {
	tail := 0x1p-50
	if u < 1<<54 {
		tail = 16 / float64(u)
	}
	const sqrtHalf = 0xB504F333F9DE6484 // √½·2⁶⁴
	zeros := uint(bits.LeadingZeros64(u))
	mantissa := u << zeros // in [2⁶³, 2⁶⁴)
	_, low := bits.Sub64(mantissa, sqrtHalf, 0)
	y := float64(int64(mantissa>>1)) * math.Float64frombits((1023-63+low)<<52)
	s := (1 - y) / (1 + y)
	q := s * s
	p := 2./3 + q*(2./5+q*(2./7+q*(2./9+q*(2./11+q*(2./13+q*(2./15+q*(2./17+q*(2./19))))))))
	e = float64(uint64(zeros)+low)*math.Ln2 + (2*s + s*q*p)
	return e, tail + e*0x1p-48
}

// turn computes cos 2πV and sin 2πV, where V is the uniform whose first 64 bits are v. Each
// is within 2⁻⁵⁰ of the true value.
//
// Method. V = q/4 + a with a in [−1/8, 1/8); q chooses which of ±cos 2πa and ±sin 2πa is
// which, by masks on their bits. The two are Taylor polynomials.
//
// Error. The angle x = fl(a·2π), |x| ≤ π/4, has three roundings (of a, of π, of the product)
// of 2⁻⁵³ each, and V's missing bits: 3·(π/4)·2⁻⁵³ + 2π·2⁻⁶⁴ < 0.31·2⁻⁵⁰. The terms left out
// are below (π/4)¹⁷/17! < 2⁻⁵⁴ for the sine and (π/4)¹⁸/18! < 2⁻⁵⁸ for the cosine. The
// roundings of the evaluation are below 4·2⁻⁵³ = 0.5·2⁻⁵⁰, as each level of nesting is at
// most a third of the one around it.
func turn(v uint64) (cos, sin float64) {
	w := v + 1<<61
	x := float64(int64(w&(1<<62-1))-1<<61) * (math.Pi / (1 << 63))
	z := x * x
	c := 1 - z*(1./2-z*(1./24-z*(1./720-z*(1./40320-z*(1./3628800-z*(1./479001600-
		z*(1./87178291200-z*(1./20922789888000))))))))
	s := x - x*z*(1./6-z*(1./120-z*(1./5040-z*(1./362880-z*(1./39916800-z*(1./6227020800-z*(1./1307674368000)))))))

	cb, sb := math.Float64bits(c), math.Float64bits(s)
	q := w >> 62
	swap := (cb ^ sb) & -(q & 1)
	cb ^= swap ^ (q+1)&2<<62 // the cosine is negative in quadrants 1 and 2
	sb ^= swap ^ q&2<<62     // the sine in 2 and 3
	return math.Float64frombits(cb), math.Float64frombits(sb)
}

// AddGaussian adds to each dst[i] the value scale·Zᵢ rounded to the nearest integer,
// with Zᵢ independent and ideal N(0, 1). Scale is in counts, from 0, which adds nothing
// and draws nothing, to MaxScale; any other is a programming error and panics. Sums wrap around modulo
// 2⁶⁴, as the exact sums of counts do: what is released is a function of sum and noise either way. From |dst[i]| ≤ 2⁶²
// they do not.
//
// Two words of the stream give two values (Box and Muller 1958); the last of an odd
// number throws its partner away.
//
// The error of the fast path, given expo's (e, err) for E = −ln U and R = √(2E):
//
//   - r = fl√(2e): |r² − R²| ≤ 0.6·err up to rounding, so |r − R| ≤ 0.6·err/r + r·2⁻⁵³;
//   - turn is within 2⁻⁵⁰;
//   - x = fl(scale·fl(r·cos)) adds two roundings of 2⁻⁵³.
//
// In all |x − scale·Z| ≤ scale·(0.6·err/r + r·1.4·2⁻⁵⁰). What we use, scale·(err/r + r·2⁻⁴⁸),
// is more by half at least, which covers all second-order terms and for its own
// rounding; where a compiler fuses a product and a sum, errors only shrink. Since x−k is
// exact and rounding is monotone, the float comparison |x−k| + slack < ½ proves that
// scale·Z rounds to k. For R near 0, U near 0 and large scales the slack is large or
// infinite and the comparison false. The slow path is taken by about one pair in
// 2⁴⁴/scale.
//
// Where there is a kernel for it (kern.GaussianAdd), it makes the values of eight pairs at once, of words u ≥ 2⁴⁹, so
// R² < 20.8, with logarithms, cosines and sines from tables and short series (internal/kern/avo, logarithm and turn).
// Both ways prove what they return, so the values are the same. The kernel's errors:
//   - −2·ln U, in units of 2⁻⁴⁸: 1 for the missing bits of U and those of u that its conversion drops; 1.4 for the
//     terms that the series leaves out, 2·(1/33)⁹/9 and on, and 0.8 for the last term's replacement, (1/33)⁸/256;
//     1.1 for all roundings, most of it 15·2⁻⁵³ of the product with 2·ln 2 and 2⁻⁴⁹ of the last sum. In all |r² −
//     R²| < 4.4·2⁻⁴⁸ before the root is rounded.
//   - cos and sin, in units of 2⁻⁵⁴: 0.6 for three roundings of an angle of at most π/32; 0.5 and 1.4 for the
//     series, (π/32)¹⁰/10! and (π/32)⁹/(32·9!); 1 for the table, 2.4 for roundings. Each is within 2⁻⁵¹.
//   - x = fl(fl(scale·r)·cos) has two roundings of 2⁻⁵³, and the root one.
//
// In all |x − scale·Z| ≤ scale·(4.4·2⁻⁴⁸/r + r·1.4·2⁻⁵¹) < scale·2⁻⁴⁵/r·(0.55 + 0.46), as r² < 20.9. The kernel uses
// twice as much, 2⁻⁴⁴·scale/r, and does not divide: with h = fl(½ − |x−k|) and l = fl(scale·r) it takes what has h·l >
// scale²·2⁻⁴⁴. The sign of the difference by one fused operation is right, and the factor 2 covers the roundings of h,
// l and scale².
func (s *Source) AddGaussian(dst []int64, scale float64) {
	checkScale(scale)
	if scale == 0 {
		return
	}
	st := s.state()
	if n := len(dst); n == 1 || n == 2 { // no batch to set up: the rows of a small matrix
		var z [2]int64
		pos := st.pos
		z[0], z[1] = st.pair(pos, st.word(), st.word(), scale)
		addAll(dst, z[:])
		return
	}
	var words [batch]uint64
	for len(dst) > 0 {
		n := min(batch, (len(dst)+1)&^1)
		to := dst[:min(n, len(dst))]
		pos := st.pos
		st.words(words[:n])
		for i := 0; i < n; {
			i += kern.GaussianAdd(to[i:], words[i:n], scale)
			for end := min(i+16, n); i < end; i += 2 {
				var z [2]int64
				z[0], z[1] = st.pair(pos+uint64(i), words[i], words[i+1], scale)
				addAll(to[i:], z[:])
			}
		}
		dst = dst[len(to):]
	}
}

// pair returns the two rounded values of the words u and v, drawn at pos.
func (st *state) pair(pos, u, v uint64, scale float64) (j, k int64) {
	j, k, ok := fastPair(u, v, scale)
	if !ok {
		return st.slowPair(pos, u, v, scale)
	}
	return j, k
}

// batch is how many words are drawn at once: those of four keys, and whole groups of the kernels.
const batch = 4 * perKey

// addAll adds values to the first of dst and returns the others.
func addAll(dst, values []int64) []int64 {
	n := min(len(dst), len(values))
	for i, v := range values[:n] {
		dst[i] += v
	}
	return dst[n:]
}

// fastPair returns the two rounded values and whether they are proven.
func fastPair(u, v uint64, scale float64) (j, k int64, ok bool) {
	e, err := expo(u)
	r := math.Sqrt(2 * e)
	slack := scale * (err/r + r*0x1p-48)
	cos, sin := turn(v)
	x, y := scale*(r*cos), scale*(r*sin)
	xr, yr := math.RoundToEven(x), math.RoundToEven(y)
	ok = math.Abs(x-xr)+slack < 0.5 && math.Abs(y-yr)+slack < 0.5
	return int64(xr), int64(yr), ok
}

// slowPair is fastPair with 256 more bits of each uniform, in 512-bit arithmetic.
func (st *state) slowPair(pos, u, v uint64, scale float64) (j, k int64) {
	x, y := gaussPair(st.uniform(pos, u, 64), st.uniform(pos+1, v, 64))
	return roundScaled(x, scale), roundScaled(y, scale)
}

// AddLaplace adds to each dst[i] the value scale·Lᵢ rounded to the nearest integer,
// with Lᵢ independent and ideal Laplace of scale 1 (density exp(−|x|)/2). Scale and
// sums are as for AddGaussian. Each value takes one word: a sign bit and a uniform U,
// and is ±(−ln U).
//
// With expo's (e, err), |scale·e − scale·E| ≤ 0.3·scale·err and the product adds 2⁻⁵³·scale·e: together less than
// scale·err. A kernel (kern.LaplaceRound) takes −2·ln U as AddGaussian's does, from words w with 2·w ≥ 2⁴⁹ modulo 2⁶⁴.
// Half of its error and 2⁻⁴⁹ for the bit more that U misses are below 2.7·2⁻⁴⁸, and the product adds 10.4·2⁻⁵³: it uses
// 2⁻⁴⁵·scale, more than twice as much.
func (s *Source) AddLaplace(dst []int64, scale float64) {
	checkScale(scale)
	if scale == 0 {
		return
	}
	st := s.state()
	if len(dst) == 1 { // as a search draws: no batch to set up
		pos := st.pos
		dst[0] += st.laplace(pos, st.word(), scale)
		return
	}
	var words [batch]uint64
	var out [batch]int64
	for len(dst) > 0 {
		n := min(batch, len(dst))
		pos := st.pos
		st.words(words[:n])
		for i := 0; i < n; {
			i += kern.LaplaceRound(out[i:n], words[i:n], scale)
			for end := min(i+8, n); i < end; i++ {
				out[i] = st.laplace(pos+uint64(i), words[i], scale)
			}
		}
		dst = addAll(dst, out[:n])
	}
}

// laplace returns the rounded value of the word w, drawn at pos.
func (st *state) laplace(pos, w uint64, scale float64) int64 {
	k, ok := fastExpo(w<<1, scale)
	if !ok {
		k = st.slowExpo(pos, w, scale)
	}
	if w>>63 == 1 {
		return -k
	}
	return k
}

func fastExpo(u uint64, scale float64) (k int64, ok bool) {
	e, err := expo(u)
	x := scale * e
	xr := math.RoundToEven(x)
	return int64(xr), math.Abs(x-xr)+scale*err < 0.5
}

// slowExpo is fastExpo on the low 63 bits of w, in 512-bit arithmetic.
func (st *state) slowExpo(pos, w uint64, scale float64) int64 {
	return roundScaled(negLn(st.uniform(pos, w&^(1<<63), 63)), scale)
}

func checkScale(scale float64) {
	if !(scale >= 0 && scale <= MaxScale) {
		panic("noise: scale is outside [0, MaxScale]")
	}
}

// Trials is an endless row of independent coins, each showing heads with the same
// probability. The zero value is invalid; NewTrials makes one.
type Trials struct{ rate, lambda float64 }

// NewTrials returns coins of probability rate, which must lie in (0, 1); any other
// rate is a programming error and panics.
func NewTrials(rate float64) Trials {
	if !(rate > 0 && rate < 1) {
		panic("noise: rate of trials is outside (0, 1)")
	}
	return Trials{rate: rate, lambda: -math.Log1p(-rate)}
}

// Gap returns how many coins show tails before the next heads, or limit if that many
// or more do; limit must be from 0 to 2⁵³. The law is exact, P(gap ≥ k) = (1−rate)ᵏ for
// k ≤ limit, with the rate exactly the float64 that was given, up to SamplerDistance.
//
// The gap is ⌊E/λ⌋ with E = −ln U and λ = −ln(1−rate). For math.Log1p we assume a
// relative error of 2⁻⁵⁰, four times what it states. With expo's (e, err) the quotient
// fl(e/λ) is then within 0.3·err/λ + (e/λ)·(2⁻⁵⁰ + 2⁻⁵³), up to second order, which is less
// than 0.6·err/λ; the rest of err/λ covers the rounding of the sums in bracket. If two or
// more gaps remain open, the slow path compares U, with 256 more
// bits, with powers of 1−rate.
func (t Trials) Gap(src *Source, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	st := src.state()
	pos := st.pos
	u := st.word()
	lo, hi := t.bracket(u, limit)
	if lo < hi {
		lo = t.exact(st.uniform(pos, u, 64), lo, hi)
	}
	return lo
}

// bracket returns lo ≤ hi within [0, limit] between which the capped gap lies.
func (t Trials) bracket(u uint64, limit int64) (lo, hi int64) {
	e, err := expo(u)
	x, slack := e/t.lambda, err/t.lambda
	if a := x - slack; a >= float64(limit) {
		lo = limit
	} else if a > 0 { // false also for a slack of +Inf
		lo = int64(a)
	}
	hi = limit
	if b := x + slack; b < float64(limit) {
		hi = int64(b)
	}
	return lo, hi
}

// exact returns the largest k in [lo, hi] with U ≤ (1−rate)ᵏ, given that lo is one.
// A power of 1−rate, which 1200 bits hold exactly, is off by less than 2⁻¹⁰⁰⁰
// relatively: a gap is wrong only if U's cell of width 2⁻³²⁰ holds a power.
func (t Trials) exact(u *big.Int, lo, hi int64) int64 {
	uf := new(big.Float).SetPrec(prec).SetMantExp(new(big.Float).SetInt(u), -fraction)
	tails := new(big.Float).SetPrec(prec).SetInt64(1)
	tails.Sub(tails, new(big.Float).SetFloat64(t.rate))
	for lo < hi {
		k := lo + (hi-lo+1)/2
		if uf.Cmp(power(tails, k)) <= 0 {
			lo = k
		} else {
			hi = k - 1
		}
	}
	return lo
}

// finer is how many times as fine as gaps Heads counts.
const finer = 1 << 10

// Heads appends the numbers of the coins that show heads, of n coins from 0 on, to dst: what Gap gives again and again,
// from the same words of the stream, until there is no coin left. n is at most 2³¹ − 1.
//
// Where there is a kernel (kern.LaplaceRound), it proves j = ⌊s·E + ½⌋ of E = −ln U and s = fl(finer/λ) for many words
// at once, of which it takes the first 63 bits, for E < 10.4. With Gap's assumption about λ, s is finer/λ up to
// 1.2·2⁻⁵⁰ relatively. So finer·E/λ is within ½ + 10.4·s·1.2·2⁻⁵⁰ of j, less than 1 for the s < 2⁴⁴ that a kernel
// proves anything for. It is then between the same two multiples of finer as j, unless j is one of them: that word goes
// Gap's way, as a word that the kernel leaves.
func (t Trials) Heads(dst []int32, n int64, src *Source) []int32 {
	var words [perKey]uint64
	var at [perKey]int64
	st := src.state()
	for row := int64(0); row < n; {
		ahead := st.chacha.ahead()
		most := int(min(float64(n-row)*t.rate+8, perKey)) &^ 7 // no more than are likely to be used
		ahead = ahead[:min(len(ahead), most)]
		for i, w := range ahead {
			words[i] = w >> 1 // a Laplace value above 0
		}
		known, others := kern.LaplaceRound(at[:len(ahead)], words[:len(ahead)], finer/t.lambda), 8
		for i, j := range at[:known] {
			if j%finer == 0 {
				known, others = i, 1
				break
			}
			if row += j / finer; row < n {
				dst = append(dst, int32(row))
			}
			if row++; row >= n {
				st.skip(i + 1)
				return dst
			}
		}
		st.skip(known)
		for range min(others, max(len(ahead)-known, 1)) {
			if row += t.Gap(src, n-row); row >= n {
				return dst
			}
			dst = append(dst, int32(row))
			row++
		}
	}
	return dst
}

// skip draws n words of those ahead.
func (st *state) skip(n int) {
	st.pos += uint64(n)
	st.chacha.skip(n)
}

// Below returns a whole number from 0 to n−1, each equally likely; n must be above 0, else
// it panics, a programming error. The law is exact: words that would favor some numbers
// are drawn again (Lemire 2019), each with a probability below n/2⁶⁴.
func (s *Source) Below(n uint64) uint64 {
	if n == 0 {
		panic("noise: a number below 0 was asked for")
	}
	st := s.state()
	hi, lo := bits.Mul64(st.word(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(st.word(), n)
		}
	}
	return hi
}

// Decay tosses a coin that shows heads with probability exp(−rate·k), where rate is
// above 0 and finite and k ≥ 0; else it panics, a programming error. The law is exact for
// the float64 rate that was given, up to SamplerDistance. It takes one word, and none
// for k = 0, which always shows heads.
//
// The coin shows heads if E = −ln U is at least rate·k. With expo's (e, err), |e − E| ≤
// 0.3·err; the product x has two roundings (of k and itself), 2⁻⁵¹·x in all. If x ≤ 2e
// that is below 0.3·err, as err ≥ 2⁻⁴⁸·e; else it is below (x − e)/4. Either way
// |e − x| > err decides. Where it does not hold, U, with 256 more bits, is compared in
// 512-bit arithmetic: one threshold, so the distance is far below SamplerDistance.
func (s *Source) Decay(rate float64, k int64) bool {
	if !(rate > 0) || math.IsInf(rate, 1) || k < 0 {
		panic("noise: decay outside rate > 0, k ≥ 0")
	}
	if k == 0 {
		return true
	}
	st := s.state()
	pos := st.pos
	u := st.word()
	e, err := expo(u)
	if x := rate * float64(k); math.Abs(e-x) > err {
		return e > x
	}
	return !lessDecay(negLn(st.uniform(pos, u, 64)), rate, k)
}

// lessDecay says whether the fixed-point number e is below rate·k, exactly.
func lessDecay(e *big.Int, rate float64, k int64) bool {
	frac, exp := math.Frexp(rate) // rate·k·2⁵¹² = frac·2⁵³ · k · 2^(exp−53+512)
	x := big.NewInt(int64(frac * (1 << 53)))
	x.Mul(x, big.NewInt(k))
	shift := exp - 53 + fraction
	if shift < 0 {
		return new(big.Int).Lsh(e, uint(-shift)).Cmp(x) < 0
	}
	return e.Cmp(x.Lsh(x, uint(shift))) < 0
}
