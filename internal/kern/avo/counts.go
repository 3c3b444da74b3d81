package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// all loads a float64 parameter into all lanes.
func all(param string) reg.VecVirtual {
	at, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	v := ZMM()
	VBROADCASTSD(at.Addr, v)
	return v
}

// shiftBy loads a shift.
func shiftBy(param string) reg.VecVirtual {
	v := XMM()
	VMOVQ(gp(param), v)
	return v
}

// each goes over n numbers of eight bytes, eight at a time.
func each(n reg.GPVirtual, body func(), pointers ...reg.GPVirtual) {
	Label("loop")
	body()
	for _, p := range pointers {
		ADDQ(U8(64), p)
	}
	SUBQ(U8(8), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// spill moves sums to counts, or adds them to what is there.
func spill(add bool) {
	name := "move"
	if add {
		name = "spill"
	}
	TEXT(name+"AVX512", 4, "func(counts *int64, acc *float64, n int, scale float64)")
	Pragma("noescape")
	counts, acc, n, scale, none := gp("counts"), gp("acc"), gp("n"), all("scale"), ZMM()
	zero(none)
	each(n, func() {
		v := ZMM()
		VMULPD(Mem{Base: acc}, scale, v)
		VMOVUPD(none, Mem{Base: acc})
		VCVTTPD2QQ(v, v)
		if add {
			VPADDQ(Mem{Base: counts}, v, v)
		}
		VMOVDQU64(v, Mem{Base: counts})
	}, counts, acc)
}

// roundShift is half of x>>most, a half upwards.
func roundShift() {
	TEXT("roundShiftAVX512", 4, "func(v *int64, n int, most uint64)")
	Pragma("noescape")
	at, n, most := gp("v"), gp("n"), shiftBy("most")
	each(n, func() {
		x, half := ZMM(), ZMM()
		VMOVDQU64(Mem{Base: at}, x)
		VPSRAQ(most, x, x)
		VPSRAQ(Imm(1), x, half)
		VPSUBQ(half, x, x)
		VMOVDQU64(x, Mem{Base: at})
	}, at)
}

// release turns counts into numbers. The quotient by size has the bits of a division: inverse is the nearest number to
// 1/size, one correction brings the quotient within a unit of its last place, and the next, by Markstein's theorem, to
// the nearest number, where nothing overflows or underflows.
func release() {
	TEXT("releaseAVX512", 4,
		"func(dst *float64, counts *int64, n int, shift uint64, grid float64, size float64, inverse float64)")
	Pragma("noescape")
	dst, counts, n, shift := gp("dst"), gp("counts"), gp("n"), shiftBy("shift")
	grid, size, inverse := all("grid"), all("size"), all("inverse")
	each(n, func() {
		x, q := ZMM(), ZMM()
		VMOVDQU64(Mem{Base: counts}, x)
		VPSLLQ(shift, x, x)
		VPSRAQ(shift, x, x)
		VCVTQQ2PD(x, x)
		VMULPD(grid, x, x)
		VMULPD(inverse, x, q)
		for range 2 {
			rest := ZMM()
			VMOVAPD(x, rest)
			VFNMADD231PD(size, q, rest) // x − q·size
			VFMADD231PD(inverse, rest, q)
		}
		VMOVUPD(q, Mem{Base: dst})
	}, dst, counts)
}

// approach moves numbers of dst toward those of v by the inverse of all.
func approach(m machine) {
	TEXT("approach"+m.name, 4, "func(dst *float64, v *float64, n int, all float64)")
	Pragma("noescape")
	dst, v, n, count := gp("dst"), gp("v"), gp("n"), m.vec()
	at, err := Param("all").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, count)
	Label("loop")
	x, d := m.vec(), m.vec()
	VMOVUPD(Mem{Base: dst}, x)
	VMOVUPD(Mem{Base: v}, d)
	VSUBPD(x, d, d)
	VDIVPD(count, d, d)
	VADDPD(d, x, x)
	VMOVUPD(x, Mem{Base: dst})
	ADDQ(U8(8*m.doubles()), dst)
	ADDQ(U8(8*m.doubles()), v)
	SUBQ(U8(m.doubles()), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
