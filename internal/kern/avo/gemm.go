package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm is the micro-kernel of a matrix product, C += A·B: 8 or 6 rows of A by a
// packed panel of B of that many registers a row, at most 3 or 2. C stays in registers
// while k goes by. A is row after row, arow apart; or, packed, a panel too: term after
// term, each 8 or 6 numbers. Eight by three registers take 11 loads for 24
// multiplications; twelve by two take 14, which some machines cannot keep up with.
//
// Listed, only the k terms of a list are summed: list holds their numbers, as the panel of B has them; a
// panel of A has those alone.
func gemm(m machine, f32, packed, listed bool, across int) {
	name, goType, size := typeOf(f32)
	rows, layout, list := 6, "Rows", ""
	if m.wide {
		rows = 8
	}
	if packed {
		layout = "Panel"
	}
	if listed {
		layout, list = layout+"List", "list *int32, "
	}
	TEXT(fmt.Sprintf("gemm%s%s%sx%d", layout, name, m.name, across), 4,
		fmt.Sprintf("func(k int, a *%[1]s, arow int, %[2]sb *%[1]s, c *%[1]s, ldc int)", goType, list))
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
	var terms reg.GPVirtual
	if listed {
		terms = gp("list")
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
			from, skip, base, ahead := Mem{Base: b, Disp: across * step * bytes}, step, base, 16
			if listed {
				term, width := GP64(), GP64()
				MOVLQSX(Mem{Base: terms, Disp: 4 * step}, term)
				if !packed {
					var of []reg.GPVirtual
					for _, p := range base {
						q := GP64()
						LEAQ(Mem{Base: p, Index: term, Scale: uint8(size)}, q)
						of = append(of, q)
					}
					base, skip = of, 0
				}
				IMUL3Q(U32(uint32(across*bytes)), term, width)
				from, ahead = Mem{Base: b, Index: width, Scale: 1}, 24
			}
			for i := range across {
				bv = append(bv, m.vec())
				move(from.Offset(i*bytes), bv[i])
			}
			for i := 0; i < across*bytes; i += 64 { // the panel comes from the second level
				PREFETCHT0(from.Offset(ahead*across*bytes + i))
			}
			for r := range rows {
				var at Mem
				if packed {
					at = Mem{Base: base[0], Disp: (step*rows + r) * size}
				} else {
					at = Mem{Base: base[r/4], Disp: skip * size}
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
		if packed || !listed {
			for _, p := range base {
				ADDQ(U32(uint32(ahead)), p)
			}
		}
		if listed {
			ADDQ(U8(4*n), terms)
		} else {
			ADDQ(U32(uint32(across*bytes*n)), b)
		}
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

// wholePanel makes a panel of a tile of a sum of products: of each of so many rows eight numbers, times the
// row's factor, rounded toward zero as by whole, or plain. Rows of which all eight are 0 are left out; list has
// the numbers of the others, which it counts.
func wholePanel(plain bool) {
	name, m := "wholePanelAVX512", machines[0]
	if plain {
		name = "plainPanelAVX512"
	}
	TEXT(name, 4, "func(dst *float64, list *int32, a *float64, x *float32, stride int, rows int) int")
	Pragma("noescape")
	dst, list, a, x, stride, rows := gp("dst"), gp("list"), gp("a"), gp("x"), gp("stride"), gp("rows")
	begin, term, some := GP64(), GP64(), GP64()
	none, size, most := m.vec(), m.bits(1<<63-1), m.constant(math.MaxFloat64)
	zero(none)
	SHLQ(U8(2), stride)
	MOVQ(list, begin)
	XORQ(term, term)
	Label("loop")
	c, v, abs, keep, full := m.vec(), m.vec(), m.vec(), K(), K()
	VCVTPS2PD(Mem{Base: x}, v)
	VBROADCASTSD(Mem{Base: a}, c)
	VMULPD(c, v, v)
	if plain {
		VCMPPD(Imm(4), none, c, keep) // not equal, true for NaN
	} else {
		VRNDSCALEPD(Imm(11), v, v) // toward zero
		VANDPD(size, v, abs)
		VCMPPD(Imm(18), most, abs, keep) // at most, false for NaN
	}
	VMOVAPD_Z(v, keep, v)
	VADDPD(none, v, v) // not −0
	VPTESTMQ(v, v, full)
	VMOVUPD(v, Mem{Base: dst})
	MOVL(term.As32(), Mem{Base: list})
	KMOVB(full, some.As32())
	ADDQ(stride, x)
	ADDQ(U8(8), a)
	INCQ(term)
	NEGL(some.As32())
	SBBQ(some, some) // −1 where there are some
	step := GP64()
	MOVQ(some, step)
	ANDQ(U8(64), step)
	ADDQ(step, dst)
	ANDQ(U8(4), some)
	ADDQ(some, list)
	DECQ(rows)
	JNZ(LabelRef("loop"))
	SUBQ(begin, list)
	SHRQ(U8(2), list)
	Store(list, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// listTerms lists the columns of eight rows that are not all zeros.
func listTerms() {
	TEXT("listTermsAVX512", 4, "func(list *int32, a *float32, lda int, terms int) int")
	Pragma("noescape")
	list, a, lda, terms := gp("list"), gp("a"), gp("lda"), gp("terms")
	begin, a4, lda3, count := GP64(), GP64(), GP64(), GP64()
	MOVQ(list, begin)
	SHLQ(U8(2), lda)
	LEAQ(Mem{Base: a, Index: lda, Scale: 4}, a4)
	LEAQ(Mem{Base: lda, Index: lda, Scale: 2}, lda3)
	number, sixteen, size := ZMM(), ZMM(), ZMM()
	VMOVDQU32(upTo16, number)
	VPBROADCASTD(word(16), sixteen)
	VPBROADCASTD(word(1<<31-1), size) // all but the sign
	step := func(load func(Mem, reg.VecVirtual)) {
		some := K()
		or, v := ZMM(), ZMM()
		for r := range 8 {
			at := Mem{Base: []reg.GPVirtual{a, a4}[r/4]}
			switch r % 4 {
			case 1, 2:
				at.Index, at.Scale = lda, uint8(r%4)
			case 3:
				at.Index, at.Scale = lda3, 1
			}
			if r == 0 {
				load(at, or)
				continue
			}
			load(at, v)
			VPORD(v, or, or)
		}
		VPTESTMD(size, or, some)
		VPCOMPRESSD_Z(number, some, v)
		VMOVDQU32(v, Mem{Base: list})
		KMOVW(some, count.As32())
		POPCNTL(count.As32(), count.As32())
		LEAQ(Mem{Base: list, Index: count, Scale: 4}, list)
	}
	SUBQ(U8(16), terms)
	JL(LabelRef("rest"))
	Label("loop")
	step(func(at Mem, v reg.VecVirtual) { VMOVDQU32(at, v) })
	VPADDD(sixteen, number, number)
	ADDQ(U8(64), a)
	ADDQ(U8(64), a4)
	SUBQ(U8(16), terms)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(U8(16), terms)
	JZ(LabelRef("done"))
	all, there := GP32(), K()
	MOVL(U32(0xFFFFFFFF), all)
	BZHIL(terms.As32(), all, all)
	KMOVW(all, there)
	step(func(at Mem, v reg.VecVirtual) { VMOVDQU32_Z(at, there, v) })
	Label("done")
	SUBQ(begin, list)
	SHRQ(U8(2), list)
	Store(list, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
