package main

import (
	"fmt"
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
func (m machine) horner(q reg.VecVirtual, c []float64) reg.VecVirtual {
	p := m.constant(c[len(c)-1])
	for k := len(c) - 2; k >= 0; k-- {
		m.fma213(c[k], q, p)
	}
	return p
}

// horners is horner of several, their steps in turn: none waits for the one before it.
func (m machine) horners(q []reg.VecVirtual, c []float64) []reg.VecVirtual {
	var p []reg.VecVirtual
	for range q {
		p = append(p, m.constant(c[len(c)-1]))
	}
	for k := len(c) - 2; k >= 0; k-- {
		for i := range q {
			m.fma213(c[k], q[i], p[i])
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
	for _, round := range []bool{false, true} {
		name, goType := "gaussian", "float64"
		if round {
			name, goType = "gaussianAdd", "int64"
		}
		if round {
			TEXT(name+"AVX512", 4, fmt.Sprintf("func(dst *%s, words *uint64, groups int, scale float64) int", goType))
		} else {
			TEXT(name+"AVX512", 4, fmt.Sprintf("func(dst *%s, words *uint64, groups int, scale float64)", goType))
		}
		Pragma("noescape")
		dst, words, left := gp("dst"), gp("words"), gp("groups")
		scale := ZMM()
		at, err := Param("scale").Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSD(at.Addr, scale)
		step := func(loop string, groups int) {
			m.gauss(dst, words, scale, groups, round)
			ADDQ(U32(128*groups), words)
			ADDQ(U32(128*groups), dst)
			SUBQ(U8(groups), left)
			JNZ(LabelRef(loop))
		}
		if round { // two groups at a time, after an odd one
			TESTQ(U32(1), left)
			JZ(LabelRef("loop"))
			step("loop", 1)
			JMP(LabelRef("stop"))
			Label("loop")
			step("loop", 2)
			Label("stop")
			Store(left, ReturnIndex(0))
		} else {
			Label("loop")
			step("loop", 1)
		}
		VZEROUPPER()
		RET()
	}
	for _, round := range []bool{false, true} {
		if round {
			TEXT("laplaceRoundAVX512", 4, "func(dst *int64, words *uint64, groups int, scale float64) int")
		} else {
			TEXT("laplaceAVX512", 4, "func(dst *float64, words *uint64, groups int, scale float64)")
		}
		Pragma("noescape")
		dst, words, left := gp("dst"), gp("words"), gp("groups")
		scale := ZMM()
		at, err := Param("scale").Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSD(at.Addr, scale)
		Label("loop")
		w, u, x := ZMM(), ZMM(), ZMM()
		VMOVDQU64(Mem{Base: words}, w)
		VPSLLQ(Imm(1), w, u)
		e, count := m.expo([]reg.VecVirtual{u})
		VMULPD(scale, e[0], x)
		VPANDQ(m.bits(1<<63), w, w)
		VPXORQ(w, x, x)
		if round {
			ok := m.proven(x, nil, nil, scale, m.slack(e[0], count[0], 1), u)
			VCVTPD2QQ(x, x) // to nearest, ties to even
			stopUnless(ok)
		}
		VMOVUPD(x, Mem{Base: dst})
		ADDQ(U8(64), words)
		ADDQ(U8(64), dst)
		DECQ(left)
		JNZ(LabelRef("loop"))
		if round {
			Label("stop")
			Store(left, ReturnIndex(0))
		}
		VZEROUPPER()
		RET()
	}
}

// gauss makes values of so many groups of 16 words; to round and add them, it goes to stop before one that is not proven.
func (m machine) gauss(dst, words reg.GPVirtual, scale reg.VecVirtual, groups int, round bool) {
	var u, v, r []reg.VecVirtual
	for i := range groups {
		w0, w1, ui, vi := ZMM(), ZMM(), ZMM(), ZMM()
		VMOVDQU64(Mem{Base: words, Disp: 128 * i}, w0)
		VMOVDQU64(Mem{Base: words, Disp: 128*i + 64}, w1)
		VPUNPCKLQDQ(w1, w0, ui)
		VPUNPCKHQDQ(w1, w0, vi)
		u, v = append(u, ui), append(v, vi)
	}
	e, count := m.expo(u)
	for _, e := range e {
		ri := ZMM()
		VADDPD(e, e, ri)
		VSQRTPD(ri, ri)
		r = append(r, ri)
	}
	cos, sin := m.turn(v)
	var ok reg.OpmaskVirtual
	for i, r := range r {
		x, y, length := cos[i], sin[i], r
		if round {
			length = ZMM()
			VMULPD(r, scale, length)
		}
		VMULPD(length, x, x)
		VMULPD(length, y, y)
		if !round {
			VMULPD(scale, x, x)
			VMULPD(scale, y, y)
			continue
		}
		k := m.proven(x, y, r, scale, m.slack(e[i], count[i], 3), u[i])
		if i > 0 {
			KANDB(ok, k, k)
		}
		ok = k
		VCVTPD2QQ(x, x) // to nearest, ties to even
		VCVTPD2QQ(y, y)
	}
	for i, x := range cos {
		low := ZMM()
		VUNPCKLPD(sin[i], x, low)
		VUNPCKHPD(sin[i], x, sin[i])
		cos[i] = low
	}
	if round {
		m.addWithin(dst, cos, sin, ok)
		stopUnless(ok)
	}
	for i := range cos {
		VMOVUPD(cos[i], Mem{Base: dst, Disp: 128 * i})
		VMOVUPD(sin[i], Mem{Base: dst, Disp: 128*i + 64})
	}
}

// expo is −ln(u·2⁻⁶⁴) for each u: expo of package noise, lane by lane, products fused. Count is the multiple of ln 2 in it: at
// least the zeros before u's first digit.
func (m machine) expo(us []reg.VecVirtual) (es, counts []reg.VecVirtual) {
	var ss, qs []reg.VecVirtual
	for _, u := range us {
		zeros, man, y, count, k := ZMM(), ZMM(), ZMM(), ZMM(), K()
		VPLZCNTQ(u, zeros)
		VPSLLVQ(zeros, u, man)
		VPCMPUQ(Imm(1), m.bits(0xB504F333F9DE6484), man, k) // man below √½
		VPSRLQ(Imm(1), man, man)
		VCVTQQ2PD(man, y)
		VMULPD(m.constant(0x1p-63), y, y)
		VADDPD(y, y, k, y)
		VCVTQQ2PD(zeros, count)
		one := m.constant(1)
		VADDPD(one, count, k, count)
		num, den, s, q := ZMM(), ZMM(), ZMM(), ZMM()
		VSUBPD(y, one, num)
		VADDPD(y, one, den)
		VDIVPD(den, num, s)
		VMULPD(s, s, q)
		ss, qs, counts = append(ss, s), append(qs, q), append(counts, count)
	}
	ps := m.horners(qs, atanhTerms)
	for i, s := range ss {
		e := ZMM()
		VMULPD(s, qs[i], qs[i])
		VADDPD(s, s, e)
		VFMADD231PD(ps[i], qs[i], e)
		VFMADD231PD(m.constant(math.Ln2), counts[i], e)
		es = append(es, e)
	}
	return es, counts
}

// turn is cos 2πV and sin 2πV, V = v·2⁻⁶⁴, for each v: turn of package noise.
func (m machine) turn(vs []reg.VecVirtual) (cosines, sines []reg.VecVirtual) {
	var xs, zs []reg.VecVirtual
	for _, v := range vs {
		x, z := ZMM(), ZMM()
		VPSLLQ(Imm(2), v, x) // with its sign, four times the distance from the nearest quarter
		VCVTQQ2PD(x, x)
		VMULPD(m.constant(math.Pi/(1<<65)), x, x)
		VMULPD(x, x, z)
		xs, zs = append(xs, x), append(zs, z)
	}
	cs := m.horners(zs, cosTerms)
	ps := m.horners(zs, sinTerms)
	for i, v := range vs {
		w, s, odd, turned, cos, sin := ZMM(), ZMM(), K(), ZMM(), ZMM(), ZMM()
		VMULPD(xs[i], zs[i], zs[i])
		VMOVAPD(xs[i], s)
		VFMADD231PD(ps[i], zs[i], s)
		VPADDQ(m.bits(1<<61), v, w)
		VPTESTMQ(m.bits(1<<62), w, odd)
		VBLENDMPD(s, cs[i], odd, cos)
		VBLENDMPD(cs[i], s, odd, sin)
		sign := m.bits(1 << 63)
		VPSLLQ(Imm(1), w, turned)
		VPTERNLOGQ(Imm(0x28), sign, w, turned) // (turned ^ w) & sign
		VPXORQ(turned, cos, cos)
		VPTERNLOGQ(Imm(0x78), sign, w, sin) // sin ^ (w & sign)
		cosines, sines = append(cosines, cos), append(sines, sin)
	}
	return cosines, sines
}

// Taylor coefficients of the cosine in z = x², and of (sin x − x)/(x·z).
var (
	cosTerms = []float64{1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000}
	sinTerms = []float64{-1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000}
)

// slack is at least expo's err with so many times its relative part: 2⁻⁵⁰, or what is missing of u, and parts·e·2⁻⁴⁸. From
// u ≥ 2^(63−count) follows 16/u ≤ 2^(count−59).
func (m machine) slack(e, count reg.VecVirtual, parts float64) reg.VecVirtual {
	s := m.constant(0x1p-59)
	VSCALEFPD(count, s, s)
	VMAXPD(m.constant(0x1p-50), s, s)
	VFMADD231PD(m.constant(parts*0x1p-48), e, s)
	return s
}

// proven is the lanes where u is above 0 and |x − round x| + scale·slack < ½; with a second number y and their length r, those
// where (½ − |x − round x|)·r > scale·slack for both, whose sign a fused product has right.
func (m machine) proven(x, y, r, scale, slack, u reg.VecVirtual) reg.OpmaskVirtual {
	VMULPD(scale, slack, slack)
	d, none, ok := ZMM(), ZMM(), K()
	VPTESTMQ(u, u, ok)
	VREDUCEPD(Imm(8), x, d) // x − round x: to nearest, ties to even
	if y == nil {
		VANDPD(m.bits(1<<63-1), d, d)
		VADDPD(slack, d, d)
		VCMPPD(Imm(17), m.constant(0.5), d, ok, ok) // less, false for NaN
		return ok
	}
	other := ZMM()
	VREDUCEPD(Imm(8), y, other)
	VRANGEPD(Imm(11), other, d, d) // the larger, without signs
	VSUBPD(d, m.constant(0.5), d)
	VFMSUB213PD(slack, r, d)
	zero(none)
	VCMPPD(Imm(30), none, d, ok, ok) // greater, false for NaN
	return ok
}

// addWithin adds the numbers at dst to out, 8 of each in turn, and keeps no lane where a sum leaves int64.
func (m machine) addWithin(dst reg.GPVirtual, even, odd []reg.VecVirtual, ok reg.OpmaskVirtual) {
	all := ZMM() // negative where some sum left
	zero(all)
	for i := range 2 * len(even) {
		out, to, sum := [][]reg.VecVirtual{even, odd}[i%2][i/2], ZMM(), ZMM()
		VMOVDQU64(Mem{Base: dst, Disp: 64 * i}, to)
		VPADDQ(to, out, sum)
		VPTERNLOGQ(Imm(0x42), sum, out, to) // negative where both have one sign and the sum the other
		VPORQ(to, all, all)
		VMOVDQA64(sum, out)
	}
	VPTESTNMQ(m.bits(1<<63), all, ok, ok)
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
