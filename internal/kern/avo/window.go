package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// axpyWhole is axpy with each product rounded toward zero to a whole number, times unit.
func axpyWhole(m machine) {
	TEXT("axpyWhole"+m.name, 4,
		"func(dst *float64, n int, a *float64, x *float32, stride int, rows *int32, m int, unit float64)")
	Pragma("noescape")
	dst, n, a, left := gp("dst"), gp("n"), gp("a"), gp("m")
	at := newWalk(true)
	unit := m.vec()
	from, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(from.Addr, unit)
	size, most := m.bits(1<<63-1), m.constant(math.MaxFloat64)
	for _, group := range []int{4, 1} {
		l := map[int]string{4: "four", 1: "one"}[group]
		Label(l)
		CMPQ(left, U8(group))
		JL(LabelRef(l + "_done"))
		var p []reg.GPVirtual
		var c []reg.VecVirtual
		for r := range group {
			p, c = append(p, GP64()), append(c, m.vec())
			VBROADCASTSD(Mem{Base: a, Disp: 8 * r}, c[r])
		}
		ADDQ(U8(8*group), a)
		at.next(l, p)
		j := GP64()
		m.columns(l+"_column", j, n, nil, func(off int, t *tail) {
			for i := range m.parts() {
				s := m.vec()
				m.load(dst, j, false, off, i, t, s)
				for r := range p {
					x := m.vec()
					m.load(p[r], j, true, off, i, t, x)
					VMULPD(c[r], x, x)
					m.truncate(x, size, most)
					VFMADD231PD(x, unit, s)
				}
				m.store(s, dst, j, off, i, t)
			}
		})
		SUBQ(U8(group), left)
		JMP(LabelRef(l))
		Label(l + "_done")
	}
	VZEROUPPER()
	RET()
}

// singles32 runs body for n numbers of 4 bytes, a multiple of a register's, and moves the pointers on.
func (m machine) singles32(n reg.GPVirtual, body func(), pointers ...reg.GPVirtual) {
	Label("loop")
	body()
	for _, p := range pointers {
		ADDQ(U8(8*m.doubles()), p)
	}
	SUBQ(U8(2*m.doubles()), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// label is a register with the number k in all lanes of 32 bits.
func (m machine) label() reg.VecVirtual {
	v := m.vec()
	x := XMM()
	VMOVD(Load(Param("k"), GP32()), x)
	VPBROADCASTD(x, v)
	return v
}

// highest is Highest of kern.
func highest(m machine) {
	TEXT("highest"+m.name, 4, "func(dst *float32, from *int32, x *float32, n int, k int32)")
	Pragma("noescape")
	dst, from, x, n := gp("dst"), gp("from"), gp("x"), gp("n")
	k := m.label()
	m.singles32(n, func() {
		d, v := m.vec(), m.vec()
		VMOVUPS(Mem{Base: dst}, d)
		VMOVUPS(Mem{Base: x}, v)
		if m.wide {
			above := K()
			VCMPPS(Imm(30), d, v, above) // v > d, false for NaN
			VMOVUPS(v, above, Mem{Base: dst})
			VMOVDQU32(k, above, Mem{Base: from})
			return
		}
		above, f := YMM(), YMM()
		VCMPPS(Imm(30), d, v, above)
		VBLENDVPS(above, v, d, d)
		VMOVUPS(d, Mem{Base: dst})
		VMOVUPS(Mem{Base: from}, f)
		VBLENDVPS(above, k, f, f)
		VMOVUPS(f, Mem{Base: from})
	}, dst, from, x)
}

// addWhere is AddWhere of kern.
func addWhere(m machine) {
	TEXT("addWhere"+m.name, 4, "func(dst *float32, x *float32, from *int32, n int, k int32)")
	Pragma("noescape")
	dst, x, from, n := gp("dst"), gp("x"), gp("from"), gp("n")
	k := m.label()
	m.singles32(n, func() {
		d := m.vec()
		VMOVUPS(Mem{Base: dst}, d)
		if m.wide {
			same := K()
			VPCMPEQD(Mem{Base: from}, k, same)
			VADDPS(Mem{Base: x}, d, same, d)
		} else {
			same, sum := YMM(), YMM()
			VPCMPEQD(Mem{Base: from}, k, same)
			VADDPS(Mem{Base: x}, d, sum)
			VBLENDVPS(same, sum, d, d)
		}
		VMOVUPS(d, Mem{Base: dst})
	}, dst, x, from)
}

// add32 adds x to dst.
func add32(m machine) {
	TEXT("add32"+m.name, 4, "func(dst *float32, x *float32, n int)")
	Pragma("noescape")
	dst, x, n := gp("dst"), gp("x"), gp("n")
	m.singles32(n, func() {
		d := m.vec()
		VMOVUPS(Mem{Base: dst}, d)
		VADDPS(Mem{Base: x}, d, d)
		VMOVUPS(d, Mem{Base: dst})
	}, dst, x)
}

// lines copies, or adds to where it belongs, a line of numbers of 4 bytes for each offset, line a multiple of 8. Eight
// numbers at a time suit both machines: lines are short.
func lines(add bool) {
	name := "copyLines"
	if add {
		name = "addLines"
	}
	TEXT(name, 4, "func(dst *float32, src *float32, from *int32, count int, line int)")
	Pragma("noescape")
	dst, src, from, count, line := gp("dst"), gp("src"), gp("from"), gp("count"), gp("line")
	at, left, side, y := GP64(), GP64(), src, YMM()
	if add {
		side = dst
	}
	Label("next")
	MOVLQSX(Mem{Base: from}, at)
	ADDQ(U8(4), from)
	LEAQ(Mem{Base: side, Index: at, Scale: 4}, at)
	MOVQ(line, left)
	Label("eight")
	if add {
		VMOVUPS(Mem{Base: src}, y)
		VADDPS(Mem{Base: at}, y, y)
		VMOVUPS(y, Mem{Base: at})
		ADDQ(U8(32), src)
	} else {
		VMOVUPS(Mem{Base: at}, y)
		VMOVUPS(y, Mem{Base: dst})
		ADDQ(U8(32), dst)
	}
	ADDQ(U8(32), at)
	SUBQ(U8(8), left)
	JNZ(LabelRef("eight"))
	DECQ(count)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}
