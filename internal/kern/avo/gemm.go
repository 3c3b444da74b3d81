package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm is the micro-kernel of a matrix product, C += A·B: 8 or 6 rows of A by a
// packed panel of B of that many registers a row, at most 3 or 2. C stays in registers
// while k goes by. A is row after row, arow apart; or, packed, a panel too: term after
// term, each 8 or 6 numbers. Eight by three registers take 11 loads for 24
// multiplications; twelve by two take 14, which some machines cannot keep up with.
func gemm(m machine, f32, packed bool, across int) {
	name, goType, size := typeOf(f32)
	rows, layout := 6, "Rows"
	if m.wide {
		rows = 8
	}
	if packed {
		layout = "Panel"
	}
	TEXT(fmt.Sprintf("gemm%s%s%sx%d", layout, name, m.name, across), 4, fmt.Sprintf("func(k int, a *%[1]s, arow int, b *%[1]s, c *%[1]s, ldc int)", goType))
	Pragma("noescape")
	var (
		k, b, c        = gp("k"), gp("b"), gp("c")
		row, ldc       = gp("arow"), gp("ldc")
		fma, add, move = VFMADD231PD, VADDPD, VMOVUPD
		broadcast      = VBROADCASTSD
		shift          = U8(3)
		row3           = GP64()
		bytes          = 8 * m.doubles()
		base           = []reg.GPVirtual{gp("a")} // of rows 0, 4, 8; of a panel
		sums           [][]reg.VecVirtual
	)
	if f32 {
		fma, add, move, broadcast, shift = VFMADD231PS, VADDPS, VMOVUPS, VBROADCASTSS, 2
	}
	SHLQ(shift, ldc)
	if !packed {
		SHLQ(shift, row)
		LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
		for r := 4; r < rows; r += 4 {
			at := GP64()
			LEAQ(Mem{Base: base[len(base)-1], Index: row, Scale: 4}, at)
			base = append(base, at)
		}
	}
	at := GP64()
	MOVQ(c, at)
	for range rows {
		var v []reg.VecVirtual
		for i := range across {
			v = append(v, m.vec())
			zero(v[i])
			if i*bytes%64 == 0 {
				PREFETCHT0(Mem{Base: at, Disp: i * bytes})
			}
		}
		sums = append(sums, v)
		ADDQ(ldc, at)
	}
	// steps does n terms: few additions to pointers, which would take the place of
	// multiplications.
	steps := func(n int) {
		for step := range n {
			var bv []reg.VecVirtual
			for i := range across {
				bv = append(bv, m.vec())
				move(Mem{Base: b, Disp: (across*step + i) * bytes}, bv[i])
			}
			for i := 0; i < across*bytes; i += 64 { // the panel comes from the second level
				PREFETCHT0(Mem{Base: b, Disp: (across*step+16*across)*bytes + i})
			}
			for r := range rows {
				var at Mem
				if packed {
					at = Mem{Base: base[0], Disp: (step*rows + r) * size}
				} else {
					at = Mem{Base: base[r/4], Disp: step * size}
					switch r % 4 {
					case 1, 2:
						at.Index, at.Scale = row, uint8(r%4)
					case 3:
						at.Index, at.Scale = row3, 1
					}
				}
				a := m.vec()
				broadcast(at, a)
				for i := range across {
					fma(bv[i], a, sums[r][i])
				}
			}
		}
		ahead := n * size
		if packed {
			ahead *= rows
		}
		for _, p := range base {
			ADDQ(U32(uint32(ahead)), p)
		}
		ADDQ(U32(uint32(across*bytes*n)), b)
	}
	const unroll = 4
	SUBQ(U8(unroll), k)
	JL(LabelRef("rest"))
	Label("loop")
	steps(unroll)
	SUBQ(U8(unroll), k)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(U8(unroll), k)
	JZ(LabelRef("sum"))
	Label("one")
	steps(1)
	DECQ(k)
	JNZ(LabelRef("one"))
	Label("sum")
	for r := range rows {
		for i := range across {
			at := Mem{Base: c, Disp: i * bytes}
			add(at, sums[r][i], sums[r][i])
			move(sums[r][i], at)
		}
		if r < rows-1 {
			ADDQ(ldc, c)
		}
	}
	VZEROUPPER()
	RET()
}

// panels copies a row to panels: so many bytes of src after so many, to places apart.
// Meanwhile it asks for another row, which is to come.
func panels(bytes int) {
	TEXT(fmt.Sprintf("panels%dAVX512", bytes), 4, "func(dst *byte, apart int, src *byte, ahead int, count int)")
	Pragma("noescape")
	dst, apart, src, ahead, count := gp("dst"), gp("apart"), gp("src"), gp("ahead"), gp("count")
	ADDQ(src, ahead)
	Label("loop")
	for i := 0; i < bytes; i += 64 {
		PREFETCHT0(Mem{Base: ahead, Disp: i})
		v := reg.VecVirtual(ZMM())
		if bytes < 64 {
			v = YMM()
		}
		VMOVUPD(Mem{Base: src, Disp: i}, v)
		VMOVUPD(v, Mem{Base: dst, Disp: i})
	}
	ADDQ(I32(int32(bytes)), src)
	ADDQ(I32(int32(bytes)), ahead)
	ADDQ(apart, dst)
	DECQ(count)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
