package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// shorts writes the kernels of rows of 16-bit numbers. Parameters and weights are limbs, 256·high + low, so that sums
// of products fit 32 bits: 4,096 columns of a row, over the eight double words of a register, or 256 rows.
func shorts(m machine) {
	if m.wide {
		shortDot(m, 8, 1)
		shortDot(m, 2, 5)
		shortAdd(m, 5)
	} else {
		shortDot(m, 4, 1)
	}
	shortAdd(m, 1)
}

// joined is 256·high + low of a register of double words each, as doubles: of eight, or twice of four.
func (m machine) joined(high, low reg.VecVirtual) (sums []reg.VecVirtual) {
	f := m.constant(256)
	for _, part := range m.halves(high, low) {
		VFMADD231PD(part[0], f, part[1])
		sums = append(sums, part[1])
	}
	if m.wide { // lanes are added up in any order: all is exact
		VADDPD(sums[1], sums[0], sums[0])
		sums = sums[:1]
	}
	return sums
}

// halves are the double words of two registers as doubles, those of the lower halves and those of the upper ones.
func (m machine) halves(v ...reg.VecVirtual) (parts [2][]reg.VecVirtual) {
	for i := range parts {
		for _, r := range v {
			d := m.vec()
			switch {
			case m.wide && i == 0:
				VCVTDQ2PD(r.AsY(), d)
			case m.wide:
				h := YMM()
				VEXTRACTI64X4(Imm(1), r, h)
				VCVTDQ2PD(h, d)
			case i == 0:
				VCVTDQ2PD(r.AsX(), d)
			default:
				h := XMM()
				VEXTRACTI128(Imm(1), r, h)
				VCVTDQ2PD(h, d)
			}
			parts[i] = append(parts[i], d)
		}
	}
	return parts
}

// shortDot sets z to the products of rows with the parameters of some classes: of each 32 columns, the high limbs of a
// class, then its low ones, then the next class.
func shortDot(m machine, rows, classes int) {
	TEXT(fmt.Sprintf("shortDot%sx%d", m.name, classes), 4,
		"func(z *float64, step int, x *int16, stride int, groups int, w *int16)")
	Pragma("noescape")
	z, x, stride, groups, step := gp("z"), gp("x"), gp("stride"), gp("groups"), gp("step")
	SHLQ(U8(3), step)
	SHLQ(U8(1), stride)
	stride3 := GP64()
	if rows >= 4 {
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	}
	Label("group")
	p, q, w, left := GP64(), GP64(), gp("w"), GP64()
	MOVQ(x, p)
	if rows > 4 {
		LEAQ(Mem{Base: x, Index: stride, Scale: 4}, q)
	}
	MOVQ(stride, left)
	sums := make([][][2]reg.VecVirtual, rows) // of each class, both limbs
	for r := range sums {
		sums[r] = make([][2]reg.VecVirtual, classes)
		for c := range classes {
			sums[r][c] = [2]reg.VecVirtual{m.vec(), m.vec()}
			zero(sums[r][c][0])
			zero(sums[r][c][1])
		}
	}
	Label("chunk")
	for off := 0; off < 64; off += 8 * m.doubles() {
		row := func(r int) reg.VecVirtual {
			at := Mem{Base: p, Disp: off}
			if r >= 4 {
				at.Base = q
			}
			switch r % 4 {
			case 1, 2:
				at.Index, at.Scale = stride, uint8(r%4)
			case 3:
				at.Index, at.Scale = stride3, 1
			}
			v := m.vec()
			m.loadWords(at, v)
			return v
		}
		limb := func(c, i int) reg.VecVirtual {
			v := m.vec()
			m.loadWords(Mem{Base: w, Disp: 128*c + 64*i + off}, v)
			return v
		}
		if classes == 1 {
			limbs := [2]reg.VecVirtual{limb(0, 0), limb(0, 1)}
			for r := range rows {
				v := row(r)
				for i, l := range limbs {
					m.pairs(l, v, sums[r][0][i], m.temp())
				}
			}
			continue
		}
		var v []reg.VecVirtual
		for r := range rows {
			v = append(v, row(r))
		}
		for c := range classes {
			for i := range 2 {
				l := limb(c, i)
				for r := range rows {
					m.pairs(l, v[r], sums[r][c][i], m.temp())
				}
			}
		}
	}
	ADDQ(U32(64), p)
	if rows > 4 {
		ADDQ(U32(64), q)
	}
	ADDQ(U32(uint32(128*classes)), w)
	SUBQ(U8(64), left)
	JG(LabelRef("chunk"))
	joined := func(r, c int) []reg.VecVirtual { return m.joined(sums[r][c][0], sums[r][c][1]) }
	if classes == 1 {
		for r := 0; r < rows; r += 4 {
			four := m.reduce([][]reg.VecVirtual{joined(r, 0), joined(r+1, 0), joined(r+2, 0), joined(r+3, 0)})
			VMOVUPD(four, Mem{Base: z, Disp: 8 * r})
		}
	} else { // two rows of two classes at a time
		to := GP64()
		MOVQ(z, to)
		for c := 0; c < classes; c += 2 {
			all := [][]reg.VecVirtual{joined(0, c), joined(1, c)}
			for r := range 2 {
				if c+1 < classes {
					all = append(all, joined(r, c+1))
				} else {
					none := m.vec()
					zero(none)
					all = append(all, []reg.VecVirtual{none})
				}
			}
			four, high := m.reduce(all), XMM()
			VMOVUPD(four.AsX(), Mem{Base: to})
			if c+1 < classes {
				VEXTRACTF64X2(Imm(1), four, high)
				VMOVUPD(high, Mem{Base: to, Index: step, Scale: 1})
				LEAQ(Mem{Base: to, Index: step, Scale: 2}, to)
			}
		}
	}
	ADDQ(U32(uint32(8*rows)), z)
	if rows > 4 {
		LEAQ(Mem{Base: x, Index: stride, Scale: 8}, x)
	} else {
		LEAQ(Mem{Base: x, Index: stride, Scale: uint8(rows)}, x)
	}
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

func (m machine) loadWords(at Mem, to reg.VecVirtual) {
	if m.wide {
		VMOVDQU64(at, to)
	} else {
		VMOVDQU(at, to)
	}
}

// shortAdd adds weighted rows to the sums of some classes, chunks of as many columns as a register has words. The
// weights of each class are 256 high limbs, then 256 low ones.
func shortAdd(m machine, classes int) {
	TEXT(fmt.Sprintf("shortAdd%sx%d", m.name, classes), 4,
		"func(dst *float64, d int, a *int16, x *int16, stride int, pairs int, chunks int, unit float64)")
	Pragma("noescape")
	dst, d, x, stride, chunks := gp("dst"), gp("d"), gp("x"), gp("stride"), gp("chunks")
	SHLQ(U8(3), d)
	SHLQ(U8(1), stride)
	// Lines of the rows that follow for each pair of each chunk: together they are as many as the rows after x have.
	ahead := gp("pairs")
	IMULQ(stride, ahead)
	LEAQ(Mem{Base: x, Index: ahead, Scale: 2}, ahead)
	Label("chunk")
	p, a, left := GP64(), gp("a"), gp("pairs")
	MOVQ(x, p)
	sums := make([][2][2]reg.VecVirtual, classes) // of each limb, those of both halves of the words
	for c := range sums {
		for i := range sums[c] {
			for h := range sums[c][i] {
				sums[c][i][h] = m.vec()
				zero(sums[c][i][h])
			}
		}
	}
	Label("pair")
	first, mixed := m.vec(), [2]reg.VecVirtual{m.vec(), m.vec()}
	m.loadWords(Mem{Base: p}, first)
	second := Mem{Base: p, Index: stride, Scale: 1}
	VPUNPCKLWD(second, first, mixed[0])
	VPUNPCKHWD(second, first, mixed[1])
	for c := range classes {
		for i := range 2 {
			w := m.vec()
			VPBROADCASTD(Mem{Base: a, Disp: 1024*c + 512*i}, w)
			for h, v := range mixed {
				m.pairs(w, v, sums[c][i][h], m.temp())
			}
		}
	}
	for i := range m.doubles() / 4 {
		PREFETCHT1(Mem{Base: ahead, Disp: 64 * i})
	}
	ADDQ(U32(uint32(16*m.doubles())), ahead)
	LEAQ(Mem{Base: p, Index: stride, Scale: 2}, p)
	ADDQ(U8(4), a)
	DECQ(left)
	JNZ(LabelRef("pair"))
	f, unit, to := m.constant(256), m.vec(), GP64()
	at, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, unit)
	MOVQ(dst, to)
	for c := range sums {
		// Words are mixed in each quarter of a register, or half: its double words are four columns of the first row of
		// mixed, then of the second, and so on.
		var whole [2][2]reg.VecVirtual
		for i := range whole {
			low, high := sums[c][i][0], sums[c][i][1]
			for h := range 2 {
				t := m.vec()
				if m.wide {
					order := m.vec()
					VMOVDQU64(shortOrder().Offset(64*h), order)
					VMOVDQA64(low, t)
					VPERMT2D(high, order, t)
				} else {
					VPERM2I128(Imm(uint64(0x20+0x11*h)), high, low, t)
				}
				whole[i][h] = t
			}
		}
		for h := range 2 {
			for k, part := range m.halves(whole[0][h], whole[1][h]) {
				column := 2*m.doubles()*h + m.doubles()*k
				VFMADD231PD(part[0], f, part[1])
				VMULPD(unit, part[1], part[1])
				VADDPD(Mem{Base: to, Disp: 8 * column}, part[1], part[1])
				VMOVUPD(part[1], Mem{Base: to, Disp: 8 * column})
			}
		}
		if c < classes-1 {
			ADDQ(d, to)
		}
	}
	ADDQ(U32(uint32(8*m.doubles())), x)
	ADDQ(U32(uint32(32*m.doubles())), dst)
	DECQ(chunks)
	JNZ(LabelRef("chunk"))
	VZEROUPPER()
	RET()
}

var order Mem // of the columns that VPUNPCKLWD and VPUNPCKHWD have mixed

func shortOrder() Mem {
	if order == (Mem{}) {
		order = GLOBL("shortOrder", 8|16) // RODATA|NOPTR
		for i, quarter := range []uint32{0, 16, 4, 20, 8, 24, 12, 28} {
			for k := range uint32(4) {
				DATA(16*i+4*int(k), U32(quarter+k))
			}
		}
	}
	return order
}

// shortSplit makes limbs of words: of 32 words the high limbs in their place and the low ones behind them, chunks of
// them step bytes apart.
func shortSplit() {
	TEXT("shortSplitAVX2", 4, "func(dst *int16, step int, chunks int)")
	Pragma("noescape")
	dst, step, chunks := gp("dst"), gp("step"), gp("chunks")
	one := YMM()
	VPCMPEQW(one, one, one)
	VPSRLW(Imm(15), one, one)
	Label("chunk")
	for off := 0; off < 64; off += 32 {
		word, low, high := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: dst, Disp: off}, word)
		VPSLLW(Imm(8), word, low)
		VPSRAW(Imm(8), low, low)
		VPSRAW(Imm(8), word, high)
		VPSRLW(Imm(7), word, word)
		VPAND(one, word, word)
		VPADDW(word, high, high)
		VMOVDQU(high, Mem{Base: dst, Disp: off})
		VMOVDQU(low, Mem{Base: dst, Disp: 64 + off})
	}
	ADDQ(step, dst)
	DECQ(chunks)
	JNZ(LabelRef("chunk"))
	VZEROUPPER()
	RET()
}
