package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gram is the micro-kernel of VᵀV, a tile of C += AᵀB: 8 or 4 columns of V by that many registers
// of others, at most 3, over k rows of V, step bytes apart. Both read V where it is:
// rows in whole lines need no packing.
func gram(m machine, across int) {
	rows := m.doubles()
	TEXT(fmt.Sprintf("gram%sx%d", m.name, across), 4, "func(k int, a *float64, b *float64, step int, c *float64, ldc int)")
	Pragma("noescape")
	k, a, b, step, c, ldc := gp("k"), gp("a"), gp("b"), gp("step"), gp("c"), gp("ldc")
	SHLQ(U8(3), step)
	SHLQ(U8(3), ldc)
	step3 := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	var sums [][]reg.VecVirtual
	for range rows {
		var v []reg.VecVirtual
		for i := range across {
			v = append(v, m.vec())
			zero(v[i])
		}
		sums = append(sums, v)
	}
	row := func(base reg.GPVirtual, i, disp int) Mem {
		switch i {
		case 0:
			return Mem{Base: base, Disp: disp}
		case 3:
			return Mem{Base: base, Index: step3, Scale: 1, Disp: disp}
		}
		return Mem{Base: base, Index: step, Scale: uint8(i), Disp: disp}
	}
	steps := func(n int) {
		for i := range n {
			var bv []reg.VecVirtual
			for j := range across {
				bv = append(bv, m.vec())
				VMOVUPD(row(b, i, 8*j*m.doubles()), bv[j])
			}
			for r := range rows {
				v := m.vec()
				VBROADCASTSD(row(a, i, 8*r), v)
				for j := range across {
					VFMADD231PD(bv[j], v, sums[r][j])
				}
			}
		}
		if n == 4 {
			LEAQ(Mem{Base: a, Index: step, Scale: 4}, a)
			LEAQ(Mem{Base: b, Index: step, Scale: 4}, b)
			return
		}
		ADDQ(step, a)
		ADDQ(step, b)
	}
	SUBQ(U8(4), k)
	JL(LabelRef("rest"))
	Label("loop")
	steps(4)
	SUBQ(U8(4), k)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(U8(4), k)
	JZ(LabelRef("sum"))
	Label("one")
	steps(1)
	DECQ(k)
	JNZ(LabelRef("one"))
	Label("sum")
	for r := range rows {
		for i := range across {
			at := Mem{Base: c, Disp: 8 * i * m.doubles()}
			VADDPD(at, sums[r][i], sums[r][i])
			VMOVUPD(sums[r][i], at)
		}
		if r < rows-1 {
			ADDQ(ldc, c)
		}
	}
	VZEROUPPER()
	RET()
}

// truncate rounds x toward zero, and makes 0 of what is not finite. size has all bits but the sign's, most is the
// largest number.
func (m machine) truncate(x, size, most reg.VecVirtual) {
	if m.wide {
		VRNDSCALEPD(Imm(11), x, x) // toward zero
	} else {
		VROUNDPD(Imm(11), x, x)
	}
	abs := m.vec()
	VANDPD(size, x, abs)
	if m.wide { // what is at most the largest number keeps x, NaN does not
		k := K()
		VCMPPD(Imm(18), most, abs, k)
		VMOVAPD_Z(x, k, x)
	} else {
		k := YMM()
		VCMPPD(Imm(18), most, abs, k)
		VANDPD(k, x, x)
	}
}

// whole scales rows and rounds them toward zero, one row after the other, and fills
// them up with zeros to eight columns.
func whole(m machine) {
	TEXT("whole"+m.name, 4, "func(dst *float64, n int, a *float64, x *float32, stride int, rows *int32, m int)")
	Pragma("noescape")
	dst, n, a, left := gp("dst"), gp("n"), gp("a"), gp("m")
	at := newWalk(true)
	none, size, most := m.vec(), m.bits(1<<63-1), m.constant(math.MaxFloat64)
	zero(none)
	Label("next")
	p := []reg.GPVirtual{GP64()}
	c := m.vec()
	VBROADCASTSD(Mem{Base: a}, c)
	ADDQ(U8(8), a)
	at.next("row", p)
	j := GP64()
	m.columns("column", j, n, nil, func(_ int, t *tail) {
		for i := range m.parts() {
			x := m.vec()
			m.load(p[0], j, true, 0, i, t, x)
			VMULPD(c, x, x)
			m.truncate(x, size, most)
			VADDPD(none, x, x) // not −0
			VMOVUPD(x, Mem{Base: dst, Disp: 8 * i * m.doubles()})
		}
		ADDQ(U8(64), dst)
	})
	DECQ(left)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}
