package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cut is the kernel of Cuts, as many lines at a time as a register has doubles; the last of a row may be done twice.
// What it makes goes through memory of its own: general registers take numbers from there to their places faster than
// vectors give them away one by one.
func cut(m machine) {
	TEXT("cut"+m.name, 4, "func(dst *float32, dim int, x *float32, stride int, invs *float64, fs *float64, rows int, "+
		"at *int32, half *float64, last *int32, n int, unit float32)")
	Pragma("noescape")
	size := m.doubles()
	single := XMM // as many float32 as there are doubles
	if m.wide {
		single = YMM
	}
	dst, x, at, half, last, n := gp("dst"), gp("x"), gp("at"), gp("half"), gp("last"), gp("n")
	inv, f := m.vec(), m.vec()
	one, low := m.constant(1), m.constant(-1)
	units := single() // unit as float32
	at32, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at32.Addr, units)
	absent := single()
	if m.wide {
		VPBROADCASTD(word(1<<31), absent) // the bits of −0
	} else {
		VPCMPEQD(absent, absent, absent)
		VPSLLD(U8(31), absent, absent)
	}
	whole := func(v, to reg.VecVirtual) { // rounded toward zero
		if m.wide {
			VCVTTPD2DQ(v, to)
		} else {
			VCVTTPD2DQY(v, to)
		}
	}
	snap := func(v reg.VecVirtual) reg.VecVirtual { // v·f, rounded toward zero, times unit
		k := single()
		VMULPD(f, v, v)
		whole(v, k)
		VCVTDQ2PS(k, k)
		VMULPS(units, k, k)
		return k
	}
	local := AllocLocal(64 + 16*size)
	room := GP64()
	LEAQ(local.Offset(63), room)
	ANDQ(I8(-64), room)
	lines, places, pairs := Mem{Base: room}, Mem{Base: room, Disp: 4 * size}, Mem{Base: room, Disp: 8 * size}

	i, j := GP64(), GP64()
	XORQ(i, i)
	Label("row")
	p := GP64()
	Load(Param("invs"), p)
	VBROADCASTSD(Mem{Base: p, Index: i, Scale: 8}, inv)
	Load(Param("fs"), p)
	VBROADCASTSD(Mem{Base: p, Index: i, Scale: 8}, f)
	XORQ(j, j)
	Label("loop")
	stored, v, u, jf := single(), m.vec(), m.vec(), m.vec()
	VMOVUPS(Mem{Base: x, Index: j, Scale: 4}, stored)
	VCVTPS2PD(stored, v)
	present := K()
	if m.wide {
		VPCMPD(U8(4), absent, stored, present)
	} else {
		VPCMPEQD(absent, stored, stored)
	}
	VMULPD(inv, v, v)
	VMINPD(one, v, v) // 1 for NaN, so that no index leaves the row
	VMAXPD(low, v, v)
	VADDPD(one, v, u)
	VMULPD(Mem{Base: half, Index: j, Scale: 8}, u, u)
	VMOVUPS(snap(v), lines)
	place := single()
	whole(u, place)
	VPMINSD(Mem{Base: last, Index: j, Scale: 4}, place, place)
	VCVTDQ2PD(place, jf)
	VPADDD(Mem{Base: at, Index: j, Scale: 4}, place, place)
	VMOVUPS(place, places)
	left, right := m.vec(), m.vec()
	VSUBPD(jf, u, left)
	VSUBPD(left, one, left)
	VSUBPD(left, one, right) // 1 − left has no other digits than u − j
	lefts, rights, first, second := snap(left), snap(right), single(), single()
	if m.wide {
		VMOVAPS_Z(lefts, present, lefts)
		VMOVAPS_Z(rights, present, rights)
	} else {
		VPANDN(lefts, stored, lefts)
		VPANDN(rights, stored, rights)
	}
	VUNPCKLPS(rights, lefts, first)
	VUNPCKHPS(rights, lefts, second)
	VMOVUPS(first, pairs)
	VMOVUPS(second, pairs.Offset(4*size))
	for k := range size {
		to, number := GP64(), GP32()
		MOVLQSX(Mem{Base: at, Index: j, Scale: 4, Disp: 4 * k}, to)
		MOVL(lines.Offset(4*k), number)
		MOVL(number, Mem{Base: dst, Index: to, Scale: 4})
	}
	for k := range size {
		to, pair := GP64(), GP64()
		MOVL(places.Offset(4*k), to.As32())
		from := k // two, and then two of the other register, of each half
		if m.wide {
			from = k/4*2 + k/2%2*4 + k%2
		}
		MOVQ(pairs.Offset(8*from), pair)
		MOVQ(pair, Mem{Base: dst, Index: to, Scale: 4, Disp: 4})
	}
	ADDQ(U8(size), j)
	CMPQ(j, n)
	JE(LabelRef("end"))
	back := GP64()
	LEAQ(Mem{Base: n, Disp: -size}, back)
	CMPQ(j, back)
	CMOVQGT(back, j)
	JMP(LabelRef("loop"))
	Label("end")
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
