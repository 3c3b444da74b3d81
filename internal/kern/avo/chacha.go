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
	quarter := func(i, j, k, l int) {
		for _, step := range []struct{ a, b, c, by int }{{i, j, l, 16}, {k, l, j, 12}, {i, j, l, 8}, {k, l, j, 7}} {
			VPADDD(b[step.b], b[step.a], b[step.a])
			VPXORD(b[step.a], b[step.c], b[step.c])
			VPROLD(Imm(uint64(step.by)), b[step.c], b[step.c])
		}
	}
	for range 4 {
		for i := range 4 {
			quarter(i, 4+i, 8+i, 12+i)
		}
		for i := range 4 {
			quarter(i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4)
		}
	}
	for i, row := range b {
		if i >= 4 && i < 12 {
			VPADDD_BCST(Mem{Base: key, Disp: 4 * (i - 4)}, row, row)
		}
		for chunk := range 4 {
			VEXTRACTI32X4(Imm(uint64(chunk)), row, Mem{Base: out, Disp: 256*chunk + 16*i})
		}
	}
	VZEROUPPER()
	RET()
}
