package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// narrow rounds numbers to float32, sixteen at a time, and returns sixteen ones if all are finite then.
func narrow() {
	TEXT("narrowAVX512", 4, "func(dst *float32, src *float64, n int) uint64")
	Pragma("noescape")
	dst, src, n, ones := gp("dst"), gp("src"), gp("n"), GP64()
	size, most := ZMM(), ZMM()
	VPBROADCASTD(word(1<<31-1), size)
	VPBROADCASTD(word(uint64(math.Float32bits(math.MaxFloat32))), most)
	all, k := K(), K()
	KXNORW(all, all, all)
	Label("loop")
	low, high, v := YMM(), YMM(), ZMM()
	VCVTPD2PS(Mem{Base: src}, low)
	VCVTPD2PS(Mem{Base: src, Disp: 64}, high)
	VINSERTF64X4(Imm(1), high, low.AsZ(), v)
	VMOVUPS(v, Mem{Base: dst})
	VPANDD(size, v, v)
	VCMPPS(Imm(18), most, v, k) // at most, false for NaN
	KANDW(k, all, all)
	ADDQ(U8(64), dst)
	ADDQ(I32(128), src)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	KMOVW(all, ones.As32())
	Store(ones, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// rectify sets numbers below 0 to 0. What is none stays.
func rectify() {
	TEXT("rectifyAVX512", 4, "func(z *float32, n int)")
	Pragma("noescape")
	z, n := gp("z"), gp("n")
	none := ZMM()
	zero(none)
	Label("loop")
	v := ZMM()
	VMAXPS(Mem{Base: z}, none, v) // where one is NaN, that of memory
	VMOVUPS(v, Mem{Base: z})
	ADDQ(U8(64), z)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// mask sets d to 0 where a is at most 0.
func mask() {
	TEXT("maskAVX512", 4, "func(d *float32, a *float32, n int)")
	Pragma("noescape")
	d, a, n := gp("d"), gp("a"), gp("n")
	none := ZMM()
	zero(none)
	Label("loop")
	v, k := ZMM(), K()
	VMOVUPS(Mem{Base: a}, v)
	VCMPPS(Imm(6), none, v, k) // not at most, true for NaN
	VMOVUPS_Z(Mem{Base: d}, k, v)
	VMOVUPS(v, Mem{Base: d})
	ADDQ(U8(64), d)
	ADDQ(U8(64), a)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
