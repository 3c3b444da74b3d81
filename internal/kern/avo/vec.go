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
		Label("loop")
		w0, w1, u, v := ZMM(), ZMM(), ZMM(), ZMM()
		VMOVDQU64(Mem{Base: words}, w0)
		VMOVDQU64(Mem{Base: words, Disp: 64}, w1)
		VPUNPCKLQDQ(w1, w0, u)
		VPUNPCKHQDQ(w1, w0, v)
		e := m.expo(u)
		r, cos, sin := ZMM(), ZMM(), ZMM()
		VADDPD(e, e, r)
		VSQRTPD(r, r)
		c, s := m.turn(v)
		VMULPD(c, r, cos)
		VMULPD(s, r, sin)
		VMULPD(cos, scale, cos)
		VMULPD(sin, scale, sin)
		out0, out1 := ZMM(), ZMM()
		if round {
			slack := ZMM()
			VMOVAPD(m.constant(0x1p-50), slack)
			VFMADD231PD(m.constant(3*0x1p-48), e, slack)
			VMULPD(scale, slack, slack)
			ok := m.certain(u)
			m.nearestOf(cos, r, slack, ok)
			m.nearestOf(sin, r, slack, ok)
			VUNPCKLPD(sin, cos, out0)
			VUNPCKHPD(sin, cos, out1)
			m.addWithin(dst, out0, out1, ok)
			stopUnless(ok)
		} else {
			VUNPCKLPD(sin, cos, out0)
			VUNPCKHPD(sin, cos, out1)
		}
		VMOVUPD(out0, Mem{Base: dst})
		VMOVUPD(out1, Mem{Base: dst, Disp: 64})
		ADDQ(U32(128), words)
		ADDQ(U32(128), dst)
		DECQ(left)
		JNZ(LabelRef("loop"))
		if round {
			Label("stop")
			Store(left, ReturnIndex(0))
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
		e := m.expo(u)
		VMULPD(scale, e, x)
		VPANDQ(m.bits(1<<63), w, w)
		VPXORQ(w, x, x)
		if round {
			slack := m.slack(e)
			VMULPD(scale, slack, slack)
			ok := m.certain(u)
			m.nearest(x, slack, ok)
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

// expo is −ln(u·2⁻⁶⁴): expo of package noise, lane by lane, products fused.
func (m machine) expo(u reg.VecVirtual) reg.VecVirtual {
	zeros, man, y, count := ZMM(), ZMM(), ZMM(), ZMM()
	k := K()
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
	num, den, s, q, e := ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	VSUBPD(y, one, num)
	VADDPD(y, one, den)
	VDIVPD(den, num, s)
	VMULPD(s, s, q)
	p := m.horner(q, atanhTerms)
	VMULPD(s, q, q)
	VADDPD(s, s, e)
	VFMADD231PD(p, q, e)
	VFMADD231PD(m.constant(math.Ln2), count, e)
	return e
}

// turn is cos 2πV and sin 2πV, V = v·2⁻⁶⁴: turn of package noise.
func (m machine) turn(v reg.VecVirtual) (cos, sin reg.VecVirtual) {
	w, a, x, z := ZMM(), ZMM(), ZMM(), ZMM()
	VPADDQ(m.bits(1<<61), v, w)
	VPANDQ(m.bits(1<<62-1), w, a)
	VPSUBQ(m.bits(1<<61), a, a)
	VCVTQQ2PD(a, x)
	VMULPD(m.constant(math.Pi/(1<<63)), x, x)
	VMULPD(x, x, z)
	c := m.horner(z, cosTerms)
	sp := m.horner(z, sinTerms)
	s := ZMM()
	VMULPD(x, z, z)
	VMOVAPD(x, s)
	VFMADD231PD(sp, z, s)
	odd, turned := K(), ZMM()
	VPTESTMQ(m.bits(1<<62), w, odd)
	cos, sin = ZMM(), ZMM()
	VBLENDMPD(s, c, odd, cos)
	VBLENDMPD(c, s, odd, sin)
	sign := m.bits(1 << 63)
	VPSLLQ(Imm(1), w, turned)
	VPXORQ(w, turned, turned)
	VPANDQ(sign, turned, turned)
	VPXORQ(turned, cos, cos)
	VPANDQ(sign, w, w)
	VPXORQ(w, sin, sin)
	return cos, sin
}

// Taylor coefficients of the cosine in z = x², and of (sin x − x)/(x·z).
var (
	cosTerms = []float64{1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000}
	sinTerms = []float64{-1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000}
)

// slack is expo's err where u ≥ 2⁵⁴: 2⁻⁵⁰ + e·2⁻⁴⁸.
func (m machine) slack(e reg.VecVirtual) reg.VecVirtual {
	s := m.constant(0x1p-50)
	VFMADD231PD(m.constant(0x1p-48), e, s)
	return s
}

// certain is the lanes where u ≥ 2⁵⁴.
func (m machine) certain(u reg.VecVirtual) reg.OpmaskVirtual {
	k := K()
	VPCMPUQ(Imm(5), m.bits(1<<54), u, k)
	return k
}

// nearest rounds x to int64 and keeps in ok the lanes where |x − round x| + slack < ½.
func (m machine) nearest(x, slack reg.VecVirtual, ok reg.OpmaskVirtual) {
	r, d, k := ZMM(), ZMM(), K()
	VRNDSCALEPD(Imm(8), x, r) // to nearest, ties to even
	VSUBPD(r, x, d)
	VANDPD(m.bits(1<<63-1), d, d)
	VADDPD(slack, d, d)
	VCMPPD(Imm(17), m.constant(0.5), d, k) // less, false for NaN
	KANDW(k, ok, ok)
	VCVTPD2QQ(r, x)
}

// nearestOf is nearest for slack/r: it keeps the lanes where (½ − |x − round x|)·r > slack, whose sign a fused product
// has right.
func (m machine) nearestOf(x, r, slack reg.VecVirtual, ok reg.OpmaskVirtual) {
	whole, d, none, k := ZMM(), ZMM(), ZMM(), K()
	VRNDSCALEPD(Imm(8), x, whole) // to nearest, ties to even
	VSUBPD(whole, x, d)
	VANDPD(m.bits(1<<63-1), d, d)
	VSUBPD(d, m.constant(0.5), d)
	VFMSUB213PD(slack, r, d)
	zero(none)
	VCMPPD(Imm(30), none, d, k) // greater, false for NaN
	KANDW(k, ok, ok)
	VCVTPD2QQ(whole, x)
}

// addWithin adds 16 numbers at dst to out0 and out1, and keeps no lane where a sum leaves int64.
func (m machine) addWithin(dst reg.GPVirtual, out0, out1 reg.VecVirtual, ok reg.OpmaskVirtual) {
	for i, out := range []reg.VecVirtual{out0, out1} {
		to, sum, k := ZMM(), ZMM(), K()
		VMOVDQU64(Mem{Base: dst, Disp: 64 * i}, to)
		VPADDQ(to, out, sum)
		VPXORQ(sum, to, to)
		VPXORQ(sum, out, out)
		VPANDQ(to, out, to) // negative where both have one sign and the sum the other
		VPTESTNMQ(m.bits(1<<63), to, k)
		KANDW(k, ok, ok)
		VMOVDQA64(sum, out)
	}
}

func stopUnless(ok reg.OpmaskVirtual) {
	b := GP32()
	KMOVW(ok, b)
	ANDL(U32(0xFF), b)
	CMPL(b, U32(0xFF))
	JNE(LabelRef("stop"))
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
