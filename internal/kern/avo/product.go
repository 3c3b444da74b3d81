package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// productsOf is the kernel of Products, four rows at a time of one pair; some rows may be done twice.
func productsOf() {
	TEXT("productsAVX2", 4, "func(dst *float32, dim int, x *float32, stride int, invs *float64, fs *float64, rows int, "+
		"a *int32, b *int32, at *int32, n int, half float64, last int32, bumps int32, unit float32)")
	Pragma("noescape")
	one, low := YMM(), YMM()
	VBROADCASTSD(double(1), one)
	VBROADCASTSD(double(-1), low)
	absent := XMM()
	VPCMPEQD(absent, absent, absent)
	VPSLLD(U8(31), absent, absent) // the bits of −0
	many := func(param string, to reg.Register, f func(Op, Op)) {
		p, err := Param(param).Resolve()
		if err != nil {
			panic(err)
		}
		f(p.Addr, to)
	}
	unit, last, width, half := XMM(), XMM(), XMM(), YMM()
	many("unit", unit, func(p, to Op) { VBROADCASTSS(p, to) })
	many("last", last, func(p, to Op) { VBROADCASTSS(p, to) })
	many("bumps", width, func(p, to Op) { VBROADCASTSS(p, to) })
	many("half", half, func(p, to Op) { VBROADCASTSD(p, to) })
	pair := GP64()
	XORQ(pair, pair)

	Label("pair")
	row, next := gp("dst"), gp("dim")
	SHLQ(U8(2), next)
	lines := [2]reg.GPVirtual{GP64(), GP64()}
	stride := gp("stride")
	for k, name := range []string{"a", "b"} {
		p, from := GP64(), GP64()
		Load(Param(name), p)
		MOVLQSX(Mem{Base: p, Index: pair, Scale: 4}, from)
		Load(Param("x"), lines[k])
		LEAQ(Mem{Base: lines[k], Index: from, Scale: 4}, lines[k])
	}
	at, from := GP64(), GP64()
	Load(Param("at"), at)
	MOVLQSX(Mem{Base: at, Index: pair, Scale: 4}, from)
	LEAQ(Mem{Base: row, Index: from, Scale: 4}, row)
	SHLQ(U8(2), stride)
	i := GP64()
	XORQ(i, i)

	Label("rows")
	inv, f := YMM(), YMM()
	p := GP64()
	Load(Param("invs"), p)
	VMOVUPD(Mem{Base: p, Index: i, Scale: 8}, inv)
	Load(Param("fs"), p)
	VMOVUPD(Mem{Base: p, Index: i, Scale: 8}, f)
	three := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	place, none := XMM(), XMM()
	var bump [2][2]reg.VecVirtual // of a line: the one at its left, and at its right
	for k, line := range lines {
		stored, v, u, jf, j, missing := XMM(), YMM(), YMM(), YMM(), XMM(), XMM()
		VMOVSS(Mem{Base: line}, stored)
		VINSERTPS(U8(0x10), Mem{Base: line, Index: stride, Scale: 1}, stored, stored)
		VINSERTPS(U8(0x20), Mem{Base: line, Index: stride, Scale: 2}, stored, stored)
		VINSERTPS(U8(0x30), Mem{Base: line, Index: three, Scale: 1}, stored, stored)
		VPCMPEQD(absent, stored, missing)
		VCVTPS2PD(stored, v)
		VMULPD(inv, v, v)
		VMINPD(one, v, v) // 1 for NaN, so that no index leaves the row
		VMAXPD(low, v, v)
		VADDPD(one, v, u)
		VMULPD(half, u, u)
		VCVTTPD2DQY(u, j)
		VPMINSD(last, j, j)
		VCVTDQ2PD(j, jf)
		left, right := YMM(), YMM()
		VSUBPD(jf, u, left)
		VSUBPD(left, one, left)
		VSUBPD(left, one, right) // 1 − left has no other digits than u − j
		bump[k] = [2]reg.VecVirtual{left, right}
		if k == 0 {
			VPMULLD(width, j, place)
			VMOVDQA(missing, none)
		} else {
			VPADDD(j, place, place)
			VPOR(missing, none, none)
		}
	}
	product := func(a, b reg.VecVirtual) reg.VecVirtual { // a·b·f, rounded toward zero, times unit
		v, k := YMM(), XMM()
		VMULPD(a, b, v)
		VMULPD(f, v, v)
		VCVTTPD2DQY(v, k)
		VCVTDQ2PS(k, k)
		VMULPS(unit, k, k)
		VPANDN(k, none, k)
		return k
	}
	var both [2][2]reg.VecVirtual // of the left, and of the right bump of a: its products with those of b, of two rows each
	for k, a := range bump[0] {
		of, with := product(a, bump[1][0]), product(a, bump[1][1])
		both[k] = [2]reg.VecVirtual{XMM(), XMM()}
		VUNPCKLPS(with, of, both[k][0])
		VUNPCKHPS(with, of, both[k][1])
	}
	wide := GP64()
	MOVLQSX(Load(Param("bumps"), GP32()), wide)
	to := GP64()
	MOVQ(row, to)
	for r := range 4 {
		j := GP32()
		VPEXTRD(U8(r), place, j)
		p := GP64()
		LEAQ(Mem{Base: to, Index: j.As64(), Scale: 4}, p)
		if r%2 == 0 {
			VMOVLPS(both[0][r/2], Mem{Base: p})
			VMOVLPS(both[1][r/2], Mem{Base: p, Index: wide, Scale: 4})
		} else {
			VMOVHPS(both[0][r/2], Mem{Base: p})
			VMOVHPS(both[1][r/2], Mem{Base: p, Index: wide, Scale: 4})
		}
		if r < 3 {
			ADDQ(next, to)
		}
	}
	// as many rows further as there are, four at most
	step, rows := GP64(), GP64()
	Load(Param("rows"), rows)
	SUBQ(U8(4), rows)
	SUBQ(i, rows)
	JZ(LabelRef("end"))
	MOVQ(U32(4), step)
	CMPQ(rows, step)
	CMOVQGT(step, rows)
	ADDQ(rows, i)
	MOVQ(rows, step)
	IMULQ(next, step)
	ADDQ(step, row)
	MOVQ(rows, step)
	IMULQ(stride, step)
	for _, line := range lines {
		ADDQ(step, line)
	}
	JMP(LabelRef("rows"))

	Label("end")
	INCQ(pair)
	n := GP64()
	Load(Param("n"), n)
	CMPQ(pair, n)
	JL(LabelRef("pair"))
	VZEROUPPER()
	RET()
}
