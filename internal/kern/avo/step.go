package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// squares adds the squares of n numbers to four sums, n a multiple of 4; with a step it also takes eta times each from
// w. The sums wait for the addition before, so wider registers would not be faster, and have other bits.
func squares(step bool) {
	if step {
		TEXT("descendAVX2", 4, "func(sums *[4]float64, w *float64, v *float64, n int, eta float64)")
	} else {
		TEXT("squaresAVX2", 4, "func(sums *[4]float64, v *float64, n int)")
	}
	Pragma("noescape")
	sums, v, n := gp("sums"), gp("v"), gp("n")
	var w reg.GPVirtual
	eta, s := YMM(), YMM()
	if step {
		w = gp("w")
		at, err := Param("eta").Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSD(at.Addr, eta)
	}
	VMOVUPD(Mem{Base: sums}, s)
	Label("loop")
	x, xx := YMM(), YMM()
	VMOVUPD(Mem{Base: v}, x)
	VMULPD(x, x, xx)
	VADDPD(xx, s, s)
	if step {
		to := YMM()
		VMULPD(eta, x, x)
		VMOVUPD(Mem{Base: w}, to)
		VSUBPD(x, to, to)
		VMOVUPD(to, Mem{Base: w})
		ADDQ(U8(32), w)
	}
	ADDQ(U8(32), v)
	SUBQ(U8(4), n)
	JNZ(LabelRef("loop"))
	VMOVUPD(s, Mem{Base: sums})
	VZEROUPPER()
	RET()
}
