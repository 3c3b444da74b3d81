package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cut is the kernel of Cuts, as many lines at a time as a register has doubles; some lines of a row may be done twice.
// General registers carry numbers to their places, faster than vectors give them away one by one.
func cut(m machine) {
	TEXT("cut"+m.name, 4, "func(dst *float32, dim int, x *float32, stride int, invs *float64, fs *float64, rows int, "+
		"at *int32, half *float64, last *int32, n int, unit float32, lines *float32, places *int32, pairs *float32)")
	Pragma("noescape")
	dst, x, at, half, last, n := gp("dst"), gp("x"), gp("at"), gp("half"), gp("last"), gp("n")
	lines, places, pairs := gp("lines"), gp("places"), gp("pairs")
	inv, f := m.vec(), m.vec()
	one, low := m.constant(1), m.constant(-1)
	single := XMM // as many float32 as there are doubles
	if m.wide {
		single = YMM
	}
	unit, absent, order := single(), single(), ZMM()
	param, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(param.Addr, unit)
	if m.wide {
		VPBROADCASTD(word(1<<31), absent) // the bits of −0
		VMOVDQU32(inTurn, order)
	} else {
		VPCMPEQD(absent, absent, absent)
		VPSLLD(U8(31), absent, absent)
	}
	i, j := GP64(), GP64()
	XORQ(i, i)
	Label("row")
	p := GP64()
	Load(Param("invs"), p)
	VBROADCASTSD(Mem{Base: p, Index: i, Scale: 8}, inv)
	Load(Param("fs"), p)
	VBROADCASTSD(Mem{Base: p, Index: i, Scale: 8}, f)
	XORQ(j, j)
	body := func(size int) {
		vec, single := YMM, XMM
		part := func(r reg.VecVirtual) reg.Register { return r.AsY() }
		of := func(r reg.VecVirtual) reg.Register { return r.AsX() }
		if size == 8 {
			vec, single = ZMM, YMM
			part = func(r reg.VecVirtual) reg.Register { return r.AsZ() }
			of = func(r reg.VecVirtual) reg.Register { return r.AsY() }
		}
		whole := func(v, to reg.VecVirtual) { // rounded toward zero
			if size == 8 {
				VCVTTPD2DQ(v, to)
			} else {
				VCVTTPD2DQY(v, to)
			}
		}
		stored, v, u, jf := single(), vec(), vec(), vec()
		VMOVUPS(Mem{Base: x, Index: j, Scale: 4}, stored)
		VCVTPS2PD(stored, v)
		all, present := K(), K()
		if m.wide {
			KXNORW(all, all, all)
			VPCMPD(U8(4), of(absent), stored, present)
		} else {
			VPCMPEQD(absent, stored, stored)
		}
		snap := func(v reg.VecVirtual, present reg.OpmaskVirtual) reg.VecVirtual { // v·f, rounded toward zero, times unit
			k := single()
			VMULPD(part(f), v, v)
			whole(v, k)
			if m.wide {
				VCVTDQ2PS_Z(k, present, k)
			} else {
				VCVTDQ2PS(k, k)
			}
			VMULPS(of(unit), k, k)
			return k
		}
		VMULPD(part(inv), v, v)
		VMINPD(part(one), v, v) // 1 for NaN, so that no index leaves the row
		VMAXPD(part(low), v, v)
		VADDPD(part(one), v, u)
		VMULPD(Mem{Base: half, Index: j, Scale: 8}, u, u)
		VMOVUPS(snap(v, all), Mem{Base: lines, Index: j, Scale: 4})
		place := single()
		whole(u, place)
		VPMINSD(Mem{Base: last, Index: j, Scale: 4}, place, place)
		VCVTDQ2PD(place, jf)
		VPADDD(Mem{Base: at, Index: j, Scale: 4}, place, place)
		left, right := vec(), vec()
		VSUBPD(jf, u, left)
		VSUBPD(left, part(one), left)
		VSUBPD(left, part(one), right) // 1 − left has no other digits than u − j
		lefts, rights := snap(left, present), snap(right, present)
		zero := GP64()
		XORQ(zero, zero)
		for k := range size { // where the bumps of an earlier row are
			to := GP64()
			MOVLQSX(Mem{Base: places, Index: j, Scale: 4, Disp: 4 * k}, to)
			MOVQ(zero, Mem{Base: dst, Index: to, Scale: 4, Disp: 4})
		}
		VMOVUPS(place, Mem{Base: places, Index: j, Scale: 4})
		if size == 8 {
			both := lefts.AsZ()
			VPERMT2PS(rights.AsZ(), order, both)
			VMOVUPS(both, Mem{Base: pairs, Index: j, Scale: 8})
		} else {
			first, second := XMM(), XMM()
			if !m.wide {
				VPANDN(lefts, stored, lefts)
				VPANDN(rights, stored, rights)
			}
			VUNPCKLPS(rights, lefts, first)
			VUNPCKHPS(rights, lefts, second)
			VMOVUPS(first, Mem{Base: pairs, Index: j, Scale: 8})
			VMOVUPS(second, Mem{Base: pairs, Index: j, Scale: 8, Disp: 16})
		}
		for k := range size {
			to, number := GP64(), GP32()
			MOVLQSX(Mem{Base: at, Index: j, Scale: 4, Disp: 4 * k}, to)
			MOVL(Mem{Base: lines, Index: j, Scale: 4, Disp: 4 * k}, number)
			MOVL(number, Mem{Base: dst, Index: to, Scale: 4})
		}
		for k := range size {
			to, pair := GP64(), GP64()
			MOVLQSX(Mem{Base: places, Index: j, Scale: 4, Disp: 4 * k}, to)
			MOVQ(Mem{Base: pairs, Index: j, Scale: 8, Disp: 8 * k}, pair)
			MOVQ(pair, Mem{Base: dst, Index: to, Scale: 4, Disp: 4})
		}
		ADDQ(U8(size), j)
		CMPQ(j, n)
		JE(LabelRef("end"))
	}
	back := GP64()
	if m.wide {
		Label("eight")
		body(8)
		LEAQ(Mem{Base: n, Disp: -8}, back)
		CMPQ(j, back)
		JLE(LabelRef("eight"))
		LEAQ(Mem{Base: n, Disp: -4}, back)
		CMPQ(j, back)
		JGE(LabelRef("last"))
		LEAQ(Mem{Base: n, Disp: -8}, j)
		JMP(LabelRef("eight"))
		Label("last")
		MOVQ(back, j)
		body(4)
	} else {
		Label("four")
		body(4)
		LEAQ(Mem{Base: n, Disp: -4}, back)
		CMPQ(j, back)
		CMOVQGT(back, j)
		JMP(LabelRef("four"))
	}
	Label("end")
	LEAQ(Mem{Base: lines, Index: n, Scale: 4}, lines)
	LEAQ(Mem{Base: places, Index: n, Scale: 4}, places)
	LEAQ(Mem{Base: pairs, Index: n, Scale: 8}, pairs)
	step := GP64()
	Load(Param("dim"), step)
	LEAQ(Mem{Base: dst, Index: step, Scale: 4}, dst)
	Load(Param("stride"), step)
	LEAQ(Mem{Base: x, Index: step, Scale: 4}, x)
	INCQ(i)
	rows := GP64()
	Load(Param("rows"), rows)
	CMPQ(i, rows)
	JL(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// cutSum adds weighted bumps of rows to a sum, where they are.
func cutSum() {
	TEXT("cutSumFMA", 4, "func(dst *float64, a *float64, rows int, places *int32, pairs *float32, n int)")
	Pragma("noescape")
	dst, a, rows, places, pairs, n := gp("dst"), gp("a"), gp("rows"), gp("places"), gp("pairs"), gp("n")
	weight, left := XMM(), GP64()
	Label("row")
	VMOVDDUP(Mem{Base: a}, weight)
	ADDQ(U8(8), a)
	MOVQ(n, left)
	one := func(k int) {
		to, pair, sum := GP64(), XMM(), XMM()
		MOVLQSX(Mem{Base: places, Disp: 4 * k}, to)
		VCVTPS2PD(Mem{Base: pairs, Disp: 8 * k}, pair)
		at := Mem{Base: dst, Index: to, Scale: 8, Disp: 8}
		VMOVUPD(at, sum)
		VFMADD231PD(pair, weight, sum)
		VMOVUPD(sum, at)
	}
	const some = 4
	SUBQ(U8(some), left)
	JL(LabelRef("rest"))
	Label("loop")
	for k := range some {
		one(k)
	}
	ADDQ(U8(4*some), places)
	ADDQ(U8(8*some), pairs)
	SUBQ(U8(some), left)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(U8(some), left)
	JZ(LabelRef("end"))
	Label("last")
	one(0)
	ADDQ(U8(4), places)
	ADDQ(U8(8), pairs)
	DECQ(left)
	JNZ(LabelRef("last"))
	Label("end")
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// cutDot adds to numbers of rows the products of their lines and bumps with w, which are exact.
func cutDot() {
	TEXT("cutDotFMA", 4, "func(dst *float64, w *float64, rows int, lines *float32, of *float64, places *int32, pairs *float32, n int)")
	Pragma("noescape")
	dst, w, rows, lines, of := gp("dst"), gp("w"), gp("rows"), gp("lines"), gp("of")
	places, pairs, n := gp("places"), gp("pairs"), gp("n")
	const some = 4
	var sums [some]reg.VecVirtual
	for k := range sums {
		sums[k] = XMM()
	}
	left, weight := GP64(), GP64()
	Label("row")
	MOVQ(n, left)
	MOVQ(of, weight)
	for _, s := range sums {
		zero(s)
	}
	bumps := func(k int) {
		to, pair := GP64(), XMM()
		MOVLQSX(Mem{Base: places, Disp: 4 * k}, to)
		VCVTPS2PD(Mem{Base: pairs, Disp: 8 * k}, pair)
		VFMADD231PD(Mem{Base: w, Index: to, Scale: 8, Disp: 8}, pair, sums[k])
	}
	further := func(k int) {
		ADDQ(U8(4*k), places)
		ADDQ(U8(8*k), pairs)
		ADDQ(U8(4*k), lines)
		ADDQ(U8(8*k), weight)
	}
	SUBQ(U8(some), left)
	JL(LabelRef("rest"))
	Label("loop")
	for k := range some {
		bumps(k)
		if k%2 == 0 {
			two := XMM()
			VCVTPS2PD(Mem{Base: lines, Disp: 4 * k}, two)
			VFMADD231PD(Mem{Base: weight, Disp: 8 * k}, two, sums[k+1])
		}
	}
	further(some)
	SUBQ(U8(some), left)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(U8(some), left)
	JZ(LabelRef("sum"))
	Label("last")
	bumps(0)
	one, line := XMM(), XMM()
	VMOVSS(Mem{Base: lines}, one)
	VCVTPS2PD(one, line)
	VMOVSD(Mem{Base: weight}, one)
	VFMADD231PD(one, line, sums[1])
	further(1)
	DECQ(left)
	JNZ(LabelRef("last"))
	Label("sum")
	for k := some / 2; k > 0; k /= 2 {
		for j := range k {
			VADDPD(sums[j+k], sums[j], sums[j])
		}
	}
	VHADDPD(sums[0], sums[0], sums[0])
	VADDSD(Mem{Base: dst}, sums[0], sums[0])
	VMOVSD(sums[0], Mem{Base: dst})
	ADDQ(U8(8), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

var inTurn Mem // numbers of two registers of eight, one of each in turn

func cutOrder() {
	inTurn = GLOBL("inTurn", 8|16) // RODATA|NOPTR
	for i := range 16 {
		DATA(4*i, U32(uint32(i/2+i%2*16)))
	}
}
