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

// spill moves sums to counts.
func spill() {
	TEXT("spillAVX512", 4, "func(counts *int64, acc *float64, n int, scale float64)")
	Pragma("noescape")
	counts, acc, n, scale, none := gp("counts"), gp("acc"), gp("n"), all("scale"), ZMM()
	zero(none)
	each(n, func() {
		v := ZMM()
		VMULPD(Mem{Base: acc}, scale, v)
		VMOVUPD(none, Mem{Base: acc})
		VCVTTPD2QQ(v, v)
		VPADDQ(Mem{Base: counts}, v, v)
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

// release turns counts into numbers.
func release() {
	TEXT("releaseAVX512", 4, "func(dst *float64, counts *int64, n int, shift uint64, grid float64, size float64)")
	Pragma("noescape")
	dst, counts, n, shift, grid, size := gp("dst"), gp("counts"), gp("n"), shiftBy("shift"), all("grid"), all("size")
	each(n, func() {
		x := ZMM()
		VMOVDQU64(Mem{Base: counts}, x)
		VPSLLQ(shift, x, x)
		VPSRAQ(shift, x, x)
		VCVTQQ2PD(x, x)
		VMULPD(grid, x, x)
		VDIVPD(size, x, x)
		VMOVUPD(x, Mem{Base: dst})
	}, dst, counts)
}
