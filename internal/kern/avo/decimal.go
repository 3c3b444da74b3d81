package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// decimals is the kernel of Decimals, eight numbers at a time. Those that are near enough with some digits keep what
// multiplies them, and the others go on with a digit more.
func decimals() {
	m := machines[0]
	TEXT("decimalsAVX512", 4, "func(dst *float64, x *float32, n int)")
	Pragma("noescape")
	dst, x, n := gp("dst"), gp("x"), gp("n")
	at := GP64()
	LEAQ(doubles([16]float64{0.1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}), at)
	low, high := ZMM(), ZMM()
	VMOVUPD(Mem{Base: at}, low)
	VMOVUPD(Mem{Base: at, Disp: 64}, high)
	const mantissa = 1<<52 - 1
	sign, exponents, fraction := m.bits(1<<63), m.bits(0x7ff<<52), m.bits(mantissa)
	digits, shift, six, one := m.bits(77), m.bits(1023*77), m.bits(6), m.bits(1)
	rest, halfway, none := m.bits(1<<29-1), m.bits(1<<28), m.bits(math.Float64bits(math.NaN()))
	width, million, milli := m.constant(0x1p-24*(1+1e-9)), m.constant(1e6), m.constant(1e-3)
	ten, half, whole := m.constant(10), m.constant(0.5), m.constant(1<<24)
	const equal, notEqual, less, atLeast, greater = 0x0, 0x4, 0x11, 0x1d, 0x1e
	vec := func() reg.VecVirtual { return ZMM() }
	Label("loop")
	v, minus, size, near, e, times, less1 := vec(), vec(), vec(), vec(), vec(), vec(), vec()
	VCVTPS2PD(Mem{Base: x}, v)
	VPANDQ(sign, v, minus)
	VPXORQ(minus, v, size)
	VPANDQ(exponents, size, near)
	VPSRLQ(U8(52), near, e)
	VMULPD(width, near, near)
	VPMULLD(digits, e, e)
	VPSUBQ(shift, e, e)
	VPSRAQ(U8(8), e, e)
	VPSUBQ(e, six, times)
	VPSUBQ(one, times, less1)
	VPERMI2PD(high, low, times)
	VPERMI2PD(high, low, less1)
	scaled, rounded, far, limit := vec(), vec(), vec(), vec()
	k := K()
	VMULPD(times, size, scaled)
	VCMPPD(U8(atLeast), million, scaled, k)
	VMOVAPD(less1, k, times)
	first, second, third := K(), K(), K()
	for i, on := range []reg.OpmaskVirtual{first, second, third, nil} {
		VMULPD(times, size, scaled)
		VRNDSCALEPD(U8(8), scaled, rounded)
		VSUBPD(scaled, rounded, far)
		VPANDNQ(far, sign, far)
		if on == nil {
			break
		}
		VMULPD(times, near, limit)
		if i == 0 {
			VCMPPD(U8(greater), limit, far, on)
		} else {
			VCMPPD(U8(greater), limit, far, []reg.OpmaskVirtual{first, second}[i-1], on)
		}
		VMULPD(ten, times, on, times)
	}
	w, back, t := vec(), vec(), vec()
	narrow := YMM()
	VDIVPD(times, rounded, w)
	VCVTPD2PS(w, narrow)
	VCVTPS2PD(narrow, back)
	good, power := K(), K()
	VCMPPD(U8(equal), size, back, good)
	VCMPPD(U8(notEqual), half, far, good, good)
	VPANDQ(rest, w, t)
	VPCMPQ(U8(notEqual), halfway, t, good, good)
	VCMPPD(U8(atLeast), milli, size, good, good)
	VCMPPD(U8(less), million, size, good, good)
	VPTESTNMQ(fraction, size, first, power)
	KANDNW(good, power, good)
	VPORQ(minus, w, w)
	VMOVDQA64(none, t)
	VMOVAPD(w, good, t)
	VRNDSCALEPD(U8(11), size, w)
	VCMPPD(U8(equal), size, w, good)
	VCMPPD(U8(less), whole, size, good, good)
	VMOVAPD(v, good, t)
	VMOVUPD(t, Mem{Base: dst})
	ADDQ(U8(32), x)
	ADDQ(U8(64), dst)
	SUBQ(U8(8), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
