package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// broadcast is a register with a parameter in all lanes.
func broadcast(param string) reg.VecVirtual {
	at, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	r := YMM()
	VBROADCASTSD(at.Addr, r)
	return r
}

// cut is the kernel of Cuts, four lines at a time: what it stores for each takes longer than the rest, so wider
// registers would not be faster.
func cut() {
	TEXT("cutAVX2", 4,
		"func(dst *float32, x *float32, at *int32, half *float64, last *int32, groups int, inv float64, f float64, unit float64)")
	Pragma("noescape")
	dst, x, at, half, last, groups := gp("dst"), gp("x"), gp("at"), gp("half"), gp("last"), gp("groups")
	inv, f, unit := broadcast("inv"), broadcast("f"), broadcast("unit")
	one, low, none, absent, ones := YMM(), YMM(), YMM(), XMM(), XMM()
	VBROADCASTSD(double(1), one)
	VBROADCASTSD(double(-1), low)
	zero(none)
	VPCMPEQD(ones, ones, ones)
	VPSLLD(U8(31), ones, absent) // the bits of −0
	VPSRLD(U8(31), ones, ones)
	snap := func(v reg.VecVirtual) reg.VecVirtual { // v·f, rounded toward zero, times unit, as float32
		k := XMM()
		VMULPD(f, v, v)
		VCVTTPD2DQY(v, k)
		VCVTDQ2PD(k, v)
		VMULPD(unit, v, v)
		VCVTPD2PSY(v, k)
		return k
	}
	Label("loop")
	stored, v, u, jf := XMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: x}, stored)
	VCVTPS2PD(stored, v)
	VPCMPEQD(absent, stored, stored)
	VMULPD(inv, v, v)
	VMINPD(one, v, v) // 1 for NaN, so that no index leaves the row
	VMAXPD(low, v, v)
	VADDPD(none, v, v)
	VADDPD(one, v, u)
	VMULPD(Mem{Base: half}, u, u)
	line := snap(v)
	j := XMM()
	VCVTTPD2DQY(u, j)
	VPMINSD(Mem{Base: last}, j, j)
	VCVTDQ2PD(j, jf)
	left, right := YMM(), YMM()
	VSUBPD(jf, u, left)
	VSUBPD(left, one, left)
	VADDPD(one, jf, right)
	VSUBPD(u, right, right)
	VSUBPD(right, one, right)
	low4, high4 := snap(left), snap(right)
	VPANDN(low4, stored, low4)
	VPANDN(high4, stored, high4)
	VPADDD(Mem{Base: at}, j, j)
	VPADDD(ones, j, j)
	first, second := XMM(), XMM()
	VUNPCKLPS(high4, low4, first)
	VUNPCKHPS(high4, low4, second)
	for k := range 4 {
		to := GP64()
		MOVLQSX(Mem{Base: at, Disp: 4 * k}, to)
		VEXTRACTPS(U8(k), line, Mem{Base: dst, Index: to, Scale: 4})
	}
	for k := range 4 {
		to, pair := GP64(), first
		if k > 1 {
			pair = second
		}
		VPEXTRD(U8(k), j, to.As32())
		if k%2 == 0 {
			VMOVLPS(pair, Mem{Base: dst, Index: to, Scale: 4})
		} else {
			VMOVHPS(pair, Mem{Base: dst, Index: to, Scale: 4})
		}
	}
	ADDQ(U8(16), x)
	ADDQ(U8(16), at)
	ADDQ(U8(32), half)
	ADDQ(U8(16), last)
	DECQ(groups)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
