package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bytes writes the kernels of rows of bytes. Bytes become words, so that one instruction multiplies pairs of words and
// adds up both products.
func bytes(m machine) {
	if m.wide {
		bytesDot(m, 2, 10)
		bytesDot(m, 4, 5)
		bytesDot(m, 8, 1)
		bytesAdd(m, 10)
	} else {
		bytesDot(m, 2, 5)
		bytesDot(m, 4, 1)
	}
	bytesAdd(m, 5)
	bytesAdd(m, 1)
}

// pairs adds to sum the products of words, two of them to each double word. It is one instruction of AVX-512 VNNI,
// which avo does not know. t is a register to work in.
func (m machine) pairs(a Op, x, sum, t reg.VecVirtual) {
	if m.wide {
		Instruction(&ir.Instruction{
			Opcode: "VPDPWSSD", Operands: []Op{a, x, sum}, Inputs: []Op{a, x, sum}, Outputs: []Op{sum},
			ISA: []string{"AVX512_VNNI"},
		})
		return
	}
	VPMADDWD(a, x, t)
	VPADDD(t, sum, sum)
}

// four are the sums of the double words of each of four registers, in a register of their own. It spoils v.
func (m machine) four(v [4]reg.VecVirtual) reg.VecVirtual {
	var y [4]reg.Register
	for i, r := range v {
		y[i] = r
		if !m.wide {
			continue
		}
		y[i] = r.AsY()
		done := false
		for j := range i {
			done = done || v[j] == r
		}
		if !done {
			high := YMM()
			VEXTRACTI64X4(Imm(1), r, high)
			VPADDD(high, r.AsY(), r.AsY())
		}
	}
	var s [2]reg.VecVirtual
	for i := range s {
		low, high := YMM(), YMM()
		VPUNPCKLDQ(y[2*i+1], y[2*i], low)
		VPUNPCKHDQ(y[2*i+1], y[2*i], high)
		VPADDD(low, high, low)
		s[i] = low
	}
	low, high, sum, x := YMM(), YMM(), YMM(), XMM()
	VPUNPCKLQDQ(s[1], s[0], low)
	VPUNPCKHQDQ(s[1], s[0], high)
	VPADDD(low, high, sum)
	if m.wide {
		VEXTRACTI32X4(Imm(1), sum, x)
	} else {
		VEXTRACTI128(Imm(1), sum, x)
	}
	VPADDD(sum.AsX(), x, x)
	return x
}

// bytesDot is the product of rows of bytes with the words of some classes: of each chunk of columns, the words of the
// classes lie side by side.
func bytesDot(m machine, rows, classes int) {
	TEXT(fmt.Sprintf("bytesDot%sx%d", m.name, classes), 4,
		"func(z *float64, step int, x *byte, stride int, groups int, w *int16, off *float64, scale *float64, row *float64)")
	Pragma("noescape")
	z, x, stride, groups, row := gp("z"), gp("x"), gp("stride"), gp("groups"), gp("row")
	step := gp("step")
	SHLQ(U8(3), step)
	stride3 := GP64()
	if rows >= 4 {
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	}
	width := 4 * m.doubles() // columns at a time
	Label("group")
	p, q, w, left := GP64(), GP64(), gp("w"), GP64()
	MOVQ(x, p)
	if rows > 4 {
		LEAQ(Mem{Base: x, Index: stride, Scale: 4}, q)
	}
	MOVQ(stride, left)
	var sums [][]reg.VecVirtual
	for range rows {
		s := make([]reg.VecVirtual, classes)
		for c := range s {
			s[c] = m.vec()
			zero(s[c])
		}
		sums = append(sums, s)
	}
	Label("chunk")
	// Words of 32 columns go together, whatever the width.
	for off := 0; off < 32; off += width {
		var v []reg.VecVirtual
		for r := range rows {
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
			v = append(v, m.vec())
			VPMOVZXBW(at, v[r])
		}
		for c := range classes {
			at := Mem{Base: w, Disp: 64*c + 2*off}
			var a Op = at
			if m.wide && rows > 1 {
				r := m.vec()
				VMOVDQU64(at, r)
				a = r
			}
			for r := range rows {
				m.pairs(a, v[r], sums[r][c], m.temp())
			}
		}
	}
	ADDQ(U8(32), p)
	if rows > 4 {
		ADDQ(U8(32), q)
	}
	ADDQ(U32(uint32(64*classes)), w)
	SUBQ(U8(32), left)
	JG(LabelRef("chunk"))
	off, scale := gp("off"), gp("scale")
	if classes == 1 {
		o, f := YMM(), YMM()
		VBROADCASTSD(Mem{Base: off}, o)
		VBROADCASTSD(Mem{Base: scale}, f)
		for r := 0; r < rows; r += 4 {
			s := m.four([4]reg.VecVirtual{sums[r][0], sums[r+1][0], sums[r+2][0], sums[r+3][0]})
			v, t := YMM(), YMM()
			VCVTDQ2PD(s, v)
			VADDPD(o, v, v)
			VMULPD(Mem{Base: row, Disp: 8 * r}, f, t)
			VMULPD(t, v, v)
			VMOVUPD(v, Mem{Base: z, Disp: 8 * r})
		}
	} else {
		for r := range rows {
			to, f := GP64(), YMM()
			LEAQ(Mem{Base: z, Disp: 8 * r}, to)
			VBROADCASTSD(Mem{Base: row, Disp: 8 * r}, f)
			for c := 0; c < classes; c += 4 {
				n := min(4, classes-c)
				var four [4]reg.VecVirtual
				for i := range four {
					four[i] = sums[r][c+min(i, n-1)]
				}
				s := m.four(four)
				v, t, high := YMM(), YMM(), XMM()
				VCVTDQ2PD(s, v)
				VADDPD(Mem{Base: off, Disp: 8 * c}, v, v)
				VMULPD(Mem{Base: scale, Disp: 8 * c}, f, t)
				VMULPD(t, v, v)
				for i := range n {
					switch i {
					case 0:
						VMOVLPD(v.AsX(), Mem{Base: to})
					case 1:
						VMOVHPD(v.AsX(), Mem{Base: to})
					case 2:
						if m.wide {
							VEXTRACTF64X2(Imm(1), v, high)
						} else {
							VEXTRACTF128(Imm(1), v, high)
						}
						VMOVLPD(high, Mem{Base: to})
					case 3:
						VMOVHPD(high, Mem{Base: to})
					}
					ADDQ(step, to)
				}
			}
		}
	}
	ADDQ(U32(uint32(8*rows)), z)
	ADDQ(U32(uint32(8*rows)), row)
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

// temp is a register to work in; AVX-512 needs none.
func (m machine) temp() reg.VecVirtual {
	if m.wide {
		return nil
	}
	return m.vec()
}

// bytesAdd adds weighted rows of bytes to the sums of some classes, chunks of as many columns as a register has bytes
// of words. The weights are words, 256 for each class.
func bytesAdd(m machine, classes int) {
	TEXT(fmt.Sprintf("bytesAdd%sx%d", m.name, classes), 4,
		"func(dst *float64, d int, a *int16, x *byte, stride int, pairs int, chunks int, off *float64, unit float64)")
	Pragma("noescape")
	dst, d, x, stride, chunks := gp("dst"), gp("d"), gp("x"), gp("stride"), gp("chunks")
	SHLQ(U8(3), d)
	half := m.doubles() // of a register: columns of its doubles
	unit := m.vec()
	at, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, unit)
	// A line of the rows that follow for each pair of each chunk: together they are about as many as the rows after x
	// have.
	ahead := gp("pairs")
	IMULQ(stride, ahead)
	LEAQ(Mem{Base: x, Index: ahead, Scale: 2}, ahead)
	Label("chunk")
	p, a, left := GP64(), gp("a"), gp("pairs")
	MOVQ(x, p)
	var sums [][2]reg.VecVirtual
	for range classes {
		s := [2]reg.VecVirtual{m.vec(), m.vec()}
		for _, r := range s {
			zero(r)
		}
		sums = append(sums, s)
	}
	Label("pair")
	vec := XMM
	if m.wide {
		vec = YMM
	}
	first, second := vec(), vec()
	if m.wide {
		VMOVDQU64(Mem{Base: p}, first)
		VMOVDQU64(Mem{Base: p, Index: stride, Scale: 1}, second)
	} else {
		VMOVDQU(Mem{Base: p}, first)
		VMOVDQU(Mem{Base: p, Index: stride, Scale: 1}, second)
	}
	var words [2]reg.VecVirtual // of both rows, in turn
	for i := range words {
		mixed := vec()
		if i == 0 {
			VPUNPCKLBW(second, first, mixed)
		} else {
			VPUNPCKHBW(second, first, mixed)
		}
		words[i] = m.vec()
		VPMOVZXBW(mixed, words[i])
	}
	for c := range classes {
		w := m.vec()
		VPBROADCASTD(Mem{Base: a, Disp: 512 * c}, w)
		for i := range words {
			m.pairs(w, words[i], sums[c][i], m.temp())
		}
	}
	PREFETCHT1(Mem{Base: ahead})
	ADDQ(U8(64), ahead)
	LEAQ(Mem{Base: p, Index: stride, Scale: 2}, p)
	ADDQ(U8(4), a)
	DECQ(left)
	JNZ(LabelRef("pair"))
	off, to := gp("off"), GP64()
	MOVQ(dst, to)
	for c := range classes {
		o := m.vec()
		VBROADCASTSD(Mem{Base: off, Disp: 8 * c}, o)
		for i, s := range sums[c] {
			// AVX-512 mixes bytes in the halves of a register: its double words are columns 0 to 7 and 16 to 23, or 8 to 15 and
			// 24 to 31. AVX2 mixes them in one half only: columns 0 to 7, or 8 to 15.
			for part := range 2 {
				v := m.vec()
				column := 8*i + 4*part
				if m.wide {
					column = 8*i + 16*part
				}
				switch {
				case m.wide && part == 0:
					VCVTDQ2PD(s.AsY(), v)
				case m.wide:
					h := YMM()
					VEXTRACTI64X4(Imm(1), s, h)
					VCVTDQ2PD(h, v)
				case part == 0:
					VCVTDQ2PD(s.AsX(), v)
				default:
					h := XMM()
					VEXTRACTI128(Imm(1), s, h)
					VCVTDQ2PD(h, v)
				}
				VADDPD(o, v, v)
				VMULPD(unit, v, v)
				VADDPD(Mem{Base: to, Disp: 8 * column}, v, v)
				VMOVUPD(v, Mem{Base: to, Disp: 8 * column})
			}
		}
		if c < classes-1 {
			ADDQ(d, to)
		}
	}
	ADDQ(U32(uint32(4*half)), x)
	ADDQ(U32(uint32(32*half)), dst)
	DECQ(chunks)
	JNZ(LabelRef("chunk"))
	VZEROUPPER()
	RET()
}

// bytesWords rounds scaled numbers to words, 32 of them after each other and the next 32 step bytes further, and adds
// up the words and their absolute values. Wider registers would not be faster: the words are few.
func bytesWords() {
	TEXT("bytesWordsAVX2", 4, "func(dst *int16, step int, w *float64, chunks int, scale float64, sums *[8]int32)")
	Pragma("noescape")
	dst, step, w, chunks, sums := gp("dst"), gp("step"), gp("w"), gp("chunks"), gp("sums")
	scale, ones, sum, size := YMM(), XMM(), XMM(), XMM()
	at, err := Param("scale").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, scale)
	VPCMPEQW(ones, ones, ones)
	VPABSW(ones, ones)
	VPXOR(sum, sum, sum)
	VPXOR(size, size, size)
	Label("chunk")
	for i := range 4 {
		var part [2]reg.VecVirtual
		for k := range part {
			v := YMM()
			VMULPD(Mem{Base: w, Disp: 64*i + 32*k}, scale, v)
			part[k] = XMM()
			VCVTPD2DQY(v, part[k])
		}
		words, t := XMM(), XMM()
		VPACKSSDW(part[1], part[0], words)
		VMOVDQU(words, Mem{Base: dst, Disp: 16 * i})
		VPMADDWD(words, ones, t)
		VPADDD(t, sum, sum)
		VPABSW(words, words)
		VPMADDWD(words, ones, t)
		VPADDD(t, size, size)
	}
	ADDQ(U32(256), w)
	ADDQ(step, dst)
	DECQ(chunks)
	JNZ(LabelRef("chunk"))
	VMOVDQU(sum, Mem{Base: sums})
	VMOVDQU(size, Mem{Base: sums, Disp: 16})
	VZEROUPPER()
	RET()
}

// bytesLargest is the largest of n numbers by their bits without the sign, n a multiple of 4: a NaN is above all
// numbers.
func bytesLargest() {
	TEXT("bytesLargestAVX2", 4, "func(w *float64, n int, most *[4]uint64)")
	Pragma("noescape")
	w, n, most := gp("w"), gp("n"), gp("most")
	m := machine{"AVX2", false}
	size, top := m.bits(1<<63-1), YMM()
	VPXOR(top, top, top)
	Label("loop")
	v, above := YMM(), YMM()
	VPAND(Mem{Base: w}, size, v)
	VPCMPGTQ(top, v, above)
	VBLENDVPD(above, v, top, top)
	ADDQ(U8(32), w)
	SUBQ(U8(4), n)
	JNZ(LabelRef("loop"))
	VMOVDQU(top, Mem{Base: most})
	VZEROUPPER()
	RET()
}

// bytesWeights makes words of whole multiples of a unit, n a multiple of 4; sums gets four sums of the multiples, and
// four largest absolute values.
func bytesWeights() {
	TEXT("bytesWeightsAVX2", 4, "func(dst *int16, a *float64, n int, inverse float64, sums *[8]float64)")
	Pragma("noescape")
	dst, a, n, sums := gp("dst"), gp("a"), gp("n"), gp("sums")
	m := machine{"AVX2", false}
	size, inverse, sum, most := m.bits(1<<63-1), YMM(), YMM(), YMM()
	at, err := Param("inverse").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, inverse)
	zero(sum)
	zero(most)
	Label("loop")
	v, x := YMM(), XMM()
	VMULPD(Mem{Base: a}, inverse, v)
	VADDPD(v, sum, sum)
	VCVTPD2DQY(v, x)
	VANDPD(size, v, v)
	VMAXPD(v, most, most)
	VPACKSSDW(x, x, x)
	VMOVQ(x, Mem{Base: dst})
	ADDQ(U8(32), a)
	ADDQ(U8(8), dst)
	SUBQ(U8(4), n)
	JNZ(LabelRef("loop"))
	VMOVUPD(sum, Mem{Base: sums})
	VMOVUPD(most, Mem{Base: sums, Disp: 32})
	VZEROUPPER()
	RET()
}
