package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// coefficients of the polynomials, which vec.go of kern has too.
var (
	expTerms   []float64 // 1/k!, k = 0 … 13
	atanhTerms []float64 // 2/(2k+3), k = 0 … 8
)

func init() {
	f := 1.0
	for k := range 14 {
		if k > 1 {
			f *= float64(k)
		}
		expTerms = append(expTerms, 1/f)
	}
	for k := range 9 {
		atanhTerms = append(atanhTerms, 2/float64(2*k+3))
	}
}

// fma213 sets p = p·q + c.
func (m machine) fma213(c float64, q, p reg.VecVirtual) {
	if m.wide {
		VFMADD213PD_BCST(double(c), q, p)
		return
	}
	VFMADD213PD(m.constant(c), q, p)
}

// horner is Σ c_k·q^k.
func (m machine) horner(q reg.VecVirtual, c []float64) reg.VecVirtual { return m.sums(series{q, c})[0] }

// A series is Σ c_k·q^k.
type series struct {
	q reg.VecVirtual
	c []float64
}

// sums are those of several series, their steps in turn: none waits for the one before it.
func (m machine) sums(all ...series) []reg.VecVirtual {
	var p []reg.VecVirtual
	for _, s := range all {
		p = append(p, m.constant(s.c[len(s.c)-1]))
	}
	for back, left := 2, true; left; back++ {
		left = false
		for i, s := range all {
			if k := len(s.c) - back; k >= 0 {
				m.fma213(s.c[k], s.q, p[i])
				left = true
			}
		}
	}
	return p
}

// exp is e^x: expOne of kern, lane by lane.
func (m machine) exp(x reg.VecVirtual) reg.VecVirtual {
	const magic = 0x1.8p52
	t, nf, n, whole := m.vec(), m.vec(), m.vec(), m.constant(magic)
	VMAXPD(x, m.constant(-1000), t) // the second operand, x, where it is NaN
	VMINPD(t, m.constant(1000), t)
	VMOVAPD(whole, nf)
	VFMADD231PD(m.constant(math.Log2E), t, nf)
	VSUBPD(whole, nf, n)
	VFNMADD231PD(m.constant(ln2Hi), n, t)
	VFNMADD231PD(m.constant(ln2Lo), n, t)
	p := m.horner(t, expTerms)
	e := m.vec()
	VPADDQ(m.bits(4096-math.Float64bits(magic)), nf, nf)
	VPSRLQ(Imm(1), nf, e)
	VPSUBQ(e, nf, nf)
	bias := m.bits(1<<64 - 1025)
	for _, v := range []reg.VecVirtual{e, nf} {
		VPADDQ(bias, v, v)
		VPSLLQ(Imm(52), v, v)
		VMULPD(v, p, p)
	}
	return p
}

const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
)

// pointwise writes exp, sigmoid and log1pexp, for n that is a multiple of 8.
func pointwise(m machine) {
	for _, fn := range []string{"exp", "sigmoid", "softplus"} {
		TEXT(fn+m.name, 4, "func(dst *float64, z *float64, n int)")
		Pragma("noescape")
		dst, z, n := gp("dst"), gp("z"), gp("n")
		Label("loop")
		x := m.vec()
		VMOVUPD(Mem{Base: z}, x)
		r := x
		switch fn {
		case "exp":
			r = m.exp(x)
		case "sigmoid":
			e := m.exp(m.minusAbs(x))
			num, one := m.vec(), m.constant(1)
			if m.wide {
				k := K()
				VPMOVQ2M(x, k)
				VBLENDMPD(e, one, k, num)
			} else {
				VBLENDVPD(x, e, one, num)
			}
			VADDPD(one, e, e)
			VDIVPD(e, num, num)
			r = num
		case "softplus":
			r = m.softplus(x)
		}
		VMOVUPD(r, Mem{Base: dst})
		ADDQ(U8(8*m.doubles()), z)
		ADDQ(U8(8*m.doubles()), dst)
		SUBQ(U8(m.doubles()), n)
		JNZ(LabelRef("loop"))
		VZEROUPPER()
		RET()
	}
}

func (m machine) minusAbs(x reg.VecVirtual) reg.VecVirtual {
	a := m.vec()
	VORPD(m.bits(1<<63), x, a)
	return a
}

func (m machine) softplus(x reg.VecVirtual) reg.VecVirtual {
	u := m.exp(m.minusAbs(x))
	v, base := m.vec(), m.vec()
	VSUBPD(m.constant(1), u, v)
	VMULPD(m.constant(0.5), v, v)
	if m.wide {
		k := K()
		VCMPPD(Imm(30), m.constant(math.Sqrt2-1), u, k) // greater, false for NaN
		VBLENDMPD(v, u, k, v)
		VMOVAPD_Z(m.constant(math.Ln2), k, base)
	} else {
		k := YMM()
		VCMPPD(Imm(30), m.constant(math.Sqrt2-1), u, k)
		VBLENDVPD(k, v, u, v)
		VANDPD(m.constant(math.Ln2), k, base)
	}
	s, q, l := m.vec(), m.vec(), m.vec()
	VADDPD(m.constant(2), v, s)
	VDIVPD(s, v, s)
	VMULPD(s, s, q)
	p := m.horner(q, atanhTerms)
	VMOVAPD(v, l)
	VFNMADD231PD(p, q, l) // v − q·p
	VFNMADD231PD(l, s, v) // v − s·(v − q·p)
	VADDPD(base, v, v)
	top, none := m.vec(), m.vec()
	zero(none)
	VMAXPD(x, none, top)
	VADDPD(top, v, v)
	return v
}

// random writes the transforms of random words, AVX-512 only.
func random() {
	m := machines[0]
	gaussianAdd(m)
	laplaceRound(m)
}

// gaussianAdd takes sixteen words at a time. While it makes values from the lengths and the words of angles of one
// group, it makes those of the next: neither waits for the other.
func gaussianAdd(m machine) {
	TEXT("gaussianAddAVX512", 4, "func(dst *int64, words *uint64, groups int, scale float64, slack float64) int")
	Pragma("noescape")
	dst, words, left, scale, slack := gp("dst"), gp("words"), gp("groups"), all("scale"), all("slack")
	ln, turn := newLogarithm(m), newTurn(m)
	next, length, v := GP64(), ZMM(), ZMM()
	draw := func(v reg.VecVirtual) logarithm {
		w, u := ZMM(), ZMM()
		VMOVDQU64(Mem{Base: next}, w)
		VPUNPCKLQDQ(Mem{Base: next, Disp: 64}, w, u)
		VPUNPCKHQDQ(Mem{Base: next, Disp: 64}, w, v)
		return ln.of(u)
	}
	lengths := func(l logarithm, p, length reg.VecVirtual) {
		VSQRTPD_Z(l.end(p), l.known, length) // a length of 0 is never proven
		VMULPD(scale, length, length)
	}
	MOVQ(words, next)
	l := draw(v)
	lengths(l, m.sums(l.series())[0], length)
	Label("loop")
	LEAQ(Mem{Base: next, Disp: 128}, next)
	CMPQ(left, U8(1))
	CMOVQEQ(words, next) // past the last group, any words will do
	later, laterV := ZMM(), ZMM()
	l = draw(laterV)
	t := turn.of(v)
	p := m.sums(l.series(), t.cosine(), t.sine())
	lengths(l, p[0], later)
	x, y := t.end(length, p[1], p[2])
	ok, d, other, none := K(), ZMM(), ZMM(), ZMM()
	VREDUCEPD(Imm(8), x, d) // x − round x: to nearest, ties to even
	VREDUCEPD(Imm(8), y, other)
	VCVTPD2QQ(x, x) // to nearest, ties to even
	VCVTPD2QQ(y, y)
	VRANGEPD(Imm(11), other, d, d) // the larger, without signs
	VSUBPD(d, m.constant(0.5), d)
	VFMSUB213PD(slack, length, d)
	zero(none)
	VCMPPD(Imm(30), none, d, ok) // greater, false for NaN
	stopUnless(ok)
	even, odd := ZMM(), ZMM()
	VPUNPCKLQDQ(y, x, even)
	VPUNPCKHQDQ(y, x, odd)
	for i, z := range []reg.VecVirtual{even, odd} {
		at := Mem{Base: dst, Disp: 64 * i}
		VPADDQ(at, z, z)
		VMOVDQU64(z, at)
	}
	VMOVAPD(later, length)
	VMOVDQA64(laterV, v)
	ADDQ(U32(128), dst)
	DECQ(left)
	JNZ(LabelRef("loop"))
	Label("stop")
	Store(left, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// laplaceRound takes eight words at a time.
func laplaceRound(m machine) {
	TEXT("laplaceRoundAVX512", 4, "func(dst *int64, words *uint64, groups int, half float64, slack float64) int")
	Pragma("noescape")
	dst, words, left, half, slack := gp("dst"), gp("words"), gp("groups"), all("half"), all("slack")
	ln := newLogarithm(m)
	Label("loop")
	w, u, d := ZMM(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: words}, w)
	VPSLLQ(Imm(1), w, u)
	l := ln.of(u)
	x, ok := l.end(m.sums(l.series())[0]), l.known
	VMULPD(half, x, x)
	VREDUCEPD(Imm(8), x, d)
	VPTERNLOGQ(Imm(0x78), m.bits(1<<63), w, x) // x ^ (w & sign)
	VANDPD(m.bits(1<<63-1), d, d)
	VADDPD(slack, d, d)
	VCMPPD(Imm(17), m.constant(0.5), d, ok, ok) // less, false for NaN
	VCVTPD2QQ(x, x)                             // to nearest, ties to even
	stopUnless(ok)
	VMOVDQU64(x, Mem{Base: dst})
	ADDQ(U8(64), words)
	ADDQ(U8(64), dst)
	DECQ(left)
	JNZ(LabelRef("loop"))
	Label("stop")
	Store(left, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// sixteen is a table of sixteen numbers in two registers.
type sixteen [2]reg.VecVirtual

func (m machine) sixteen(values [16]float64) (t sixteen) {
	for i := range t {
		t[i] = m.vec()
		VMOVUPD(doubles(values).Offset(64*i), t[i])
	}
	return t
}

// at replaces each index, of which the low four bits count, by the number in the table.
func (t sixteen) at(index reg.VecVirtual) { VPERMI2PD(t[1], t[0], index) }

// A logarithm is −2·ln(u·2⁻⁶⁴) of the words u. With u = 2ᵉ·m, 1 ≤ m < 2, and a table's number a ≈ 1/m it is (64−e)·2·ln
// 2 + 2·ln a − 2·ln(1+z), z = a·m − 1, of whose series eight terms are taken. Errors are in package noise, AddGaussian.
type logarithm struct {
	m machine
	// of each sixteenth of [1, 2), an inverse of its middle, and twice its logarithm
	inverse, logs                   sixteen
	minusOne, least, top, ln2, last reg.VecVirtual

	e, z, a reg.VecVirtual
	known   reg.OpmaskVirtual // where u is at least 2⁴⁹
}

func newLogarithm(m machine) logarithm {
	var inverse [16]float64
	for k := range inverse {
		inverse[k] = 32 / float64(33+2*k)
	}
	return logarithm{inverse: m.sixteen(inverse), logs: m.sixteen(twiceLogs)}
}

// of begins the logarithm of u.
func (l logarithm) of(u reg.VecVirtual) logarithm {
	f, inverse := ZMM(), ZMM()
	l.e, l.z, l.a, l.known = ZMM(), ZMM(), ZMM(), K()
	VCVTUQQ2PD(u, f)
	VPSRLQ(Imm(48), f, l.a)
	VGETMANTPD(Imm(0), f, l.z)
	VMOVDQA64(l.a, inverse)
	l.inverse.at(inverse)
	VCMPPD_BCST(Imm(29), double(0x1p49), f, l.known) // at least
	VGETEXPPD(f, l.e)
	l.logs.at(l.a)
	VFMADD213PD_BCST(double(-1), inverse, l.z)
	VSUBPD_BCST(double(64), l.e, l.e)
	return l
}

// series is 2·ln(1+z)/z, |z| ≤ 1/33. In place of the last term, of z⁷, it has a polynomial of degree 5 that is nowhere
// further from it than b⁷/64 times its factor, b = 1/33: z⁷ less Chebyshev's polynomial of degree 7.
func (l logarithm) series() series {
	const last, b2 = -2. / 8, 1. / (33 * 33)
	return series{l.z,
		[]float64{2, -2./2 + last*b2*b2*b2*7/64, 2. / 3, -2./4 - last*b2*b2*7/8, 2. / 5, -2./6 + last*b2*7/4, 2. / 7}}
}

// end is the logarithm, where p is the sum of the series.
func (l logarithm) end(p reg.VecVirtual) reg.VecVirtual {
	VFNMADD231PD(p, l.z, l.a)
	VFNMADD231PD_BCST(double(2*math.Ln2), l.e, l.a)
	return l.a
}

// Literals, so that every machine writes the same bytes: 2·ln(32/(33+2k)), and cos(kπ/16).
var (
	twiceLogs = [16]float64{
		-0.06154331733350732, -0.17922431737937433, -0.29036401968899567, -0.39565148665983985,
		-0.4956723278091624, -0.5909284257876718, -0.6818531739411864, -0.7688233978206641,
		-0.8521687906218003, -0.9321794598491985, -1.0091120215047906, -1.0831945648654888,
		-1.1546307300696472, -1.2236030822119859, -1.2902759227471694, -1.3547976471836123,
	}
	cosines = [9]float64{
		1, 0.9807852804032304, 0.9238795325112867, 0.8314696123025452, 0.7071067811865476,
		0.5555702330196022, 0.3826834323650898, 0.19509032201612828, 0,
	}
)

// A turn is the angle 2πV, V = v·2⁻⁶⁴. With k the nearest to 32·V and a the angle that is left, at most π/32 of either
// sign, its cosine and sine follow from those of k mod 16 in a table, those of a, of whose series five terms are taken,
// and the sign of k's half turn.
type turn struct {
	cos, sin            sixteen // of 0, 1, … 15 thirty-seconds of a turn
	a, z, k, cosK, sinK reg.VecVirtual
}

func newTurn(m machine) turn {
	var cos, sin [16]float64
	for k := range 16 {
		cos[k], sin[k] = cosines[min(k, 16-k)], cosines[max(8-k, k-8)]
		if k > 8 {
			cos[k] = -cos[k]
		}
	}
	return turn{cos: m.sixteen(cos), sin: m.sixteen(sin)}
}

// of begins the turn of v.
func (t turn) of(v reg.VecVirtual) turn {
	t.a, t.z, t.k, t.cosK, t.sinK = ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	VPSLLQ(Imm(5), v, t.a) // with its sign, 32 times the distance from the nearest thirty-second
	VPADDQ_BCST(word(1<<58), v, t.k)
	VCVTQQ2PD(t.a, t.a)
	VPSRLQ(Imm(59), t.k, t.cosK)
	VMULPD_BCST(double(math.Pi/(1<<68)), t.a, t.a)
	VMOVDQA64(t.cosK, t.sinK)
	t.cos.at(t.cosK)
	VMULPD(t.a, t.a, t.z)
	t.sin.at(t.sinK)
	return t
}

// cosine is cos a, sine (sin a − a)/a³.
func (t turn) cosine() series {
	return series{t.z, []float64{1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320}}
}
func (t turn) sine() series {
	return series{t.z, []float64{-1. / 6, 1. / 120, -1. / 5040, 1. / 362880}}
}

// end is length·cos 2πV and length·sin 2πV, where cos and s are the sums of the series.
func (t turn) end(length, cos, s reg.VecVirtual) (x, y reg.VecVirtual) {
	signed := ZMM()
	x, y = ZMM(), ZMM()
	VMOVAPD(length, signed)
	VPTERNLOGQ_BCST(Imm(0x78), word(1<<63), t.k, signed) // signed ^ (k & sign)
	VMULPD(t.a, t.z, t.z)
	VFMADD213PD(t.a, t.z, s) // a + a·z·s
	VMULPD(t.sinK, s, x)
	VMULPD(t.cosK, s, y)
	VFMSUB231PD(t.cosK, cos, x) // cos k·cos a − sin k·sin a
	VFMADD231PD(t.sinK, cos, y)
	VMULPD(signed, x, x)
	VMULPD(signed, y, y)
	return x, y
}

// stopUnless leaves the loop unless ok has all eight lanes.
func stopUnless(ok reg.OpmaskVirtual) {
	KORTESTB(ok, ok)
	JCC(LabelRef("stop"))
}

// coef is Coef of kern for n that is a multiple of 8, with a unit, or, plain, without.
func coef(m machine) {
	for _, plain := range []bool{false, true} {
		if plain {
			TEXT("coefPlain"+m.name, 4, "func(dst *float64, c *float64, s *float64, n int)")
		} else {
			TEXT("coef"+m.name, 4, "func(dst *float64, c *float64, s *float64, n int, unit float64, inv float64)")
		}
		Pragma("noescape")
		dst, c, s, n := gp("dst"), gp("c"), gp("s"), gp("n")
		none, size, most := m.vec(), m.bits(1<<63-1), m.constant(math.MaxFloat64)
		zero(none)
		unit, inv := m.vec(), m.vec()
		if !plain {
			for _, p := range []struct {
				name string
				to   reg.VecVirtual
			}{{"unit", unit}, {"inv", inv}} {
				at, err := Param(p.name).Resolve()
				if err != nil {
					panic(err)
				}
				VBROADCASTSD(at.Addr, p.to)
			}
		}
		Label("loop")
		w, x := m.vec(), m.vec()
		VMOVUPD(Mem{Base: c}, w)
		VMULPD(Mem{Base: s}, w, x)
		a, b := w, none     // what compares true keeps x
		predicate := Imm(4) // not equal, true for NaN
		if !plain {
			VMULPD(inv, x, x)
			if m.wide {
				VRNDSCALEPD(Imm(11), x, x) // toward zero
			} else {
				VROUNDPD(Imm(11), x, x)
			}
			abs := m.vec()
			VANDPD(size, x, abs)
			a, b, predicate = abs, most, Imm(18) // at most, false for NaN
		}
		if m.wide {
			k := K()
			VCMPPD(predicate, b, a, k)
			VMOVAPD_Z(x, k, x)
		} else {
			k := YMM()
			VCMPPD(predicate, b, a, k)
			VANDPD(k, x, x)
		}
		if !plain {
			VMULPD(unit, x, x)
			VADDPD(none, x, x)
		}
		VMOVUPD(x, Mem{Base: dst})
		for _, p := range []reg.GPVirtual{dst, c, s} {
			ADDQ(U8(8*m.doubles()), p)
		}
		SUBQ(U8(m.doubles()), n)
		JNZ(LabelRef("loop"))
		VZEROUPPER()
		RET()
	}
}
