package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chacha8 is the output of chacha8rand (c2sp.org/chacha8rand) for one key: sixteen
// blocks, the block numbers in the lanes. Rows of four blocks lie together in
// memory, four times.
func chacha8() {
	TEXT("chacha8AVX512", 4, "func(out *[128]uint64, key *[4]uint64)")
	Pragma("noescape")
	out, key := gp("out"), gp("key")
	counters := GLOBL("counters", 8|16) // RODATA|NOPTR
	for i := range 16 {
		DATA(4*i, U32(i))
	}
	b := make([]reg.VecVirtual, 16)
	for i := range b {
		b[i] = ZMM()
		switch {
		case i < 4: // "expand 32-byte k"
			VPBROADCASTD(word([]uint64{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}[i]), b[i])
		case i < 12:
			VPBROADCASTD(Mem{Base: key, Disp: 4 * (i - 4)}, b[i])
		case i == 12:
			VMOVDQU32(counters, b[i])
		default:
			VPXORD(b[i], b[i], b[i])
		}
	}
	quarters := func(shift int) { // four quarter rounds, their steps in turn
		for step, by := range []uint64{16, 12, 8, 7} {
			var sum, add, turn [4]reg.VecVirtual
			for i := range 4 {
				j, k, l := 4+(i+shift)%4, 8+(i+2*shift)%4, 12+(i+3*shift)%4
				sum[i], add[i], turn[i] = b[i], b[j], b[l]
				if step%2 == 1 {
					sum[i], add[i], turn[i] = b[k], b[l], b[j]
				}
			}
			for i := range 4 {
				VPADDD(add[i], sum[i], sum[i])
			}
			for i := range 4 {
				VPXORD(sum[i], turn[i], turn[i])
			}
			for i := range 4 {
				VPROLD(Imm(by), turn[i], turn[i])
			}
		}
	}
	for range 4 {
		quarters(0)
		quarters(1)
	}
	for i := 4; i < 12; i++ {
		VPADDD_BCST(Mem{Base: key, Disp: 4 * (i - 4)}, b[i], b[i])
	}
	for i := 0; i < 16; i += 4 { // a quarter of each of four rows goes to each of four places
		var pairs [2][2]reg.VecVirtual // of rows, lower and upper halves
		for j := range pairs {
			for half := range 2 {
				pairs[j][half] = ZMM()
				VSHUFI32X4(Imm([]uint64{0x44, 0xEE}[half]), b[i+2*j+1], b[i+2*j], pairs[j][half])
			}
		}
		for chunk := range 4 {
			four := ZMM()
			VSHUFI32X4(Imm([]uint64{0x88, 0xDD}[chunk%2]), pairs[1][chunk/2], pairs[0][chunk/2], four)
			VMOVDQU32(four, Mem{Base: out, Disp: 256*chunk + 16*i})
		}
	}
	VZEROUPPER()
	RET()
}
