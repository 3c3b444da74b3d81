package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ten is the number of classes that dot10 and axpy10 take at once: 2 rows × 10 classes,
// and 10 classes × 2 registers. A row is widened once for all of them, which takes as much
// of the core as two multiplications.
const ten = 10

// pairs is the most groups that dot10 takes: their sums wait in its frame.
const pairs = 8

// A decade addresses the same place in the vectors of ten classes.
type decade [2]classes

// newDecade takes a step in bytes and its threefold.
func newDecade(base, step, step3 reg.GPVirtual) decade {
	five := GP64()
	LEAQ(Mem{Base: base, Index: step, Scale: 4}, five)
	ADDQ(step, five)
	return decade{{base, step, step3}, {five, step, step3}}
}

func (d decade) at(k, disp int) Mem { return d[k/five].at(k%five, disp) }

// add moves all of d on.
func (d decade) add(bytes Op) {
	ADDQ(bytes, d[0].base)
	ADDQ(bytes, d[1].base)
}

// bytesOf loads a parameter of so many doubles and makes bytes of it, with its threefold.
func bytesOf(param string) (step, step3 reg.GPVirtual) {
	step, step3 = gp(param), GP64()
	SHLQ(U8(3), step)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	return step, step3
}

// dot10 is margins of ten classes. A group is where two rows begin, and one more to fetch
// meanwhile. It goes by blocks of so many columns, a multiple of eight, whose parameters
// stay in the first-level cache while the rows go by; the sums of the blocks before are
// kept as they are, so that the order of additions does not change.
func dot10() {
	m := machines[0]
	TEXT("dot10F32AVX512", 0,
		"func(z *float64, zstep int, group *[3]*float32, groups int, w *float64, wstep int, n int, width int)")
	Pragma("noescape")
	const size = 2 * ten * 64 // bytes of the sums of a group
	sums := AllocLocal(pairs * size)
	// columns before the block and behind it; groups done
	column, left, done := AllocLocal(8), AllocLocal(8), AllocLocal(8)
	step, step3 := bytesOf("wstep")
	at, n := GP64(), GP64()
	XORQ(at, at)
	MOVQ(at, column)
	Load(Param("n"), n)
	MOVQ(n, left)
	Label("block")
	cols, rest, width := GP64(), GP64(), gp("width")
	MOVQ(left, cols)
	CMPQ(cols, width)
	CMOVQGT(width, cols)
	MOVQ(left, rest)
	SUBQ(cols, rest)
	MOVQ(rest, left)
	group, sum := gp("group"), GP64()
	LEAQ(sums, sum)
	zero64 := GP64()
	XORQ(zero64, zero64)
	MOVQ(zero64, done)
	Label("group")
	before, base := GP64(), gp("w")
	MOVQ(column, before)
	LEAQ(Mem{Base: base, Index: before, Scale: 8}, base)
	w := newDecade(base, step, step3)
	var p [3]reg.GPVirtual
	for i := range p {
		p[i] = GP64()
		MOVQ(Mem{Base: group, Disp: 8 * i}, p[i])
		LEAQ(Mem{Base: p[i], Index: before, Scale: 4}, p[i])
	}
	ADDQ(U8(24), group)
	s := make([][2]reg.VecVirtual, ten)
	for k := range s {
		for r := range s[k] {
			s[k][r] = ZMM()
		}
	}
	each := func(f func(at Mem, v reg.VecVirtual)) {
		for k := range s {
			for r, v := range s[k] {
				f(Mem{Base: sum, Disp: 64 * (2*k + r)}, v)
			}
		}
	}
	TESTQ(before, before)
	JNZ(LabelRef("more"))
	each(func(_ Mem, v reg.VecVirtual) { zero(v) })
	JMP(LabelRef("begin"))
	Label("more")
	each(func(at Mem, v reg.VecVirtual) { VMOVUPD(at, v) })
	Label("begin")
	step1 := func(i int, t *tail) { // columns 8i … 8i+7 from here
		var x [2]reg.VecVirtual
		for r := range x {
			x[r] = ZMM()
			at := Mem{Base: p[r], Disp: 32 * i}
			if t == nil {
				VCVTPS2PD(at, x[r])
			} else {
				VCVTPS2PD_Z(at, t.k, x[r])
			}
		}
		for k := range s {
			v := ZMM()
			if t == nil {
				VMOVUPD(w.at(k, 64*i), v)
			} else {
				VMOVUPD_Z(w.at(k, 64*i), t.k, v)
			}
			for r := range x {
				VFMADD231PD(x[r], v, s[k][r])
			}
		}
	}
	on := func(n int) { // n·8 columns on
		for _, at := range p[:n/4+2] {
			ADDQ(I32(int32(32*n)), at)
		}
		w.add(I32(int32(64 * n)))
	}
	r := GP64()
	MOVQ(cols, r)
	SUBQ(U8(32), r)
	JL(LabelRef("eights"))
	Label("loop")
	PREFETCHT1(Mem{Base: p[2]})
	PREFETCHT1(Mem{Base: p[2], Disp: 64})
	for i := range 4 {
		step1(i, nil)
	}
	on(4)
	SUBQ(U8(32), r)
	JGE(LabelRef("loop"))
	Label("eights")
	ADDQ(U8(24), r)
	JL(LabelRef("rest"))
	PREFETCHT1(Mem{Base: p[2]})
	Label("eight")
	step1(0, nil)
	on(1)
	SUBQ(U8(8), r)
	JGE(LabelRef("eight"))
	Label("rest")
	ADDQ(U8(8), r)
	JZ(LabelRef("end"))
	t := m.tail(r)
	step1(0, &t)
	Label("end")
	{
		more := GP64()
		MOVQ(left, more)
		TESTQ(more, more)
		JZ(LabelRef("last"))
	}
	each(func(at Mem, v reg.VecVirtual) { VMOVUPD(v, at) })
	JMP(LabelRef("next"))
	Label("last")
	z, number := gp("z"), GP64()
	MOVQ(done, number)
	SHLQ(U8(4), number)
	ADDQ(number, z)
	zstep := gp("zstep")
	SHLQ(U8(3), zstep)
	for k := 0; k < ten; k += 2 {
		v := m.reduce([][]reg.VecVirtual{{s[k][0]}, {s[k][1]}, {s[k+1][0]}, {s[k+1][1]}})
		VMOVUPD(v.AsX(), Mem{Base: z})
		ADDQ(zstep, z)
		VEXTRACTF64X2(Imm(1), v.AsY(), Mem{Base: z})
		ADDQ(zstep, z)
	}
	Label("next")
	ADDQ(U32(size), sum)
	count := GP64()
	MOVQ(done, count)
	INCQ(count)
	MOVQ(count, done)
	{
		groups := gp("groups")
		CMPQ(count, groups)
		JL(LabelRef("group"))
	}
	ADDQ(cols, column)
	{
		more := GP64()
		MOVQ(left, more)
		TESTQ(more, more)
		JNZ(LabelRef("block"))
	}
	VZEROUPPER()
	RET()
}

// axpy10 adds weighted rows to the sums of ten classes, 16 columns at a time, which stay
// in registers while the rows go by. Meanwhile it fetches other rows. Columns left at the
// end go under masks, which make a conversion slower.
func axpy10() {
	TEXT("axpy10F32AVX512", 4,
		"func(dst *float64, step int, n int, a *float64, astep int, rows **float32, m int, fetch **float32, fetches int)")
	Pragma("noescape")
	left := gp("n")
	astep, astep3 := bytesOf("astep")
	off := GP64() // columns done
	XORQ(off, off)
	SUBQ(U8(16), left)
	JL(LabelRef("narrow"))
	Label("block")
	axpyBlock("", off, astep, astep3, nil)
	ADDQ(U8(16), off)
	SUBQ(U8(16), left)
	JGE(LabelRef("block"))
	Label("narrow")
	ADDQ(U8(16), left)
	JZ(LabelRef("done"))
	mask := GP32()
	MOVL(U32(0xFFFF), mask)
	BZHIL(left.As32(), mask, mask)
	k := []reg.OpmaskVirtual{K(), K()}
	KMOVW(mask, k[0])
	SHRL(U8(8), mask)
	KMOVW(mask, k[1])
	axpyBlock("last_", off, astep, astep3, k)
	Label("done")
	VZEROUPPER()
	RET()
}

// axpyBlock is 16 columns of axpy10, off of them before; nil is no mask.
func axpyBlock(label string, off, astep, astep3 reg.GPVirtual, k []reg.OpmaskVirtual) {
	s := make([][2]reg.VecVirtual, ten)
	for c := range s {
		s[c] = [2]reg.VecVirtual{ZMM(), ZMM()}
	}
	each := func(f func(at Mem, i int, v reg.VecVirtual)) {
		base := gp("dst")
		step, step3 := bytesOf("step")
		LEAQ(Mem{Base: base, Index: off, Scale: 8}, base)
		d := newDecade(base, step, step3)
		for c := range s {
			for i, v := range s[c] {
				f(d.at(c, 64*i), i, v)
			}
		}
	}
	each(func(at Mem, i int, v reg.VecVirtual) {
		if k == nil {
			VMOVUPD(at, v)
		} else {
			VMOVUPD_Z(at, k[i], v)
		}
	})
	from, count := gp("fetch"), gp("fetches")
	TESTQ(count, count)
	JZ(LabelRef(label + "fetched"))
	Label(label + "ahead")
	p := GP64()
	MOVQ(Mem{Base: from}, p)
	PREFETCHT1(Mem{Base: p, Index: off, Scale: 4})
	ADDQ(U8(8), from)
	DECQ(count)
	JNZ(LabelRef(label + "ahead"))
	Label(label + "fetched")
	rows, m := gp("rows"), gp("m")
	a := newDecade(gp("a"), astep, astep3)
	add := func(r int) {
		row := GP64()
		MOVQ(Mem{Base: rows, Disp: 8 * r}, row)
		var x [2]reg.VecVirtual
		for i := range x {
			x[i] = ZMM()
			at := Mem{Base: row, Index: off, Scale: 4, Disp: 32 * i}
			if k == nil {
				VCVTPS2PD(at, x[i])
			} else {
				VCVTPS2PD_Z(at, k[i], x[i])
			}
		}
		for c := range s {
			v := ZMM()
			VBROADCASTSD(a.at(c, 8*r), v)
			for i := range x {
				VFMADD231PD(x[i], v, s[c][i])
			}
		}
	}
	SUBQ(U8(4), m)
	JL(LabelRef(label + "ones"))
	Label(label + "row")
	for r := range 4 {
		add(r)
	}
	ADDQ(U8(32), rows)
	a.add(U8(32))
	SUBQ(U8(4), m)
	JGE(LabelRef(label + "row"))
	Label(label + "ones")
	ADDQ(U8(4), m)
	JZ(LabelRef(label + "sum"))
	Label(label + "one")
	add(0)
	ADDQ(U8(8), rows)
	a.add(U8(8))
	DECQ(m)
	JNZ(LabelRef(label + "one"))
	Label(label + "sum")
	each(func(at Mem, i int, v reg.VecVirtual) {
		if k == nil {
			VMOVUPD(v, at)
		} else {
			VMOVUPD(v, k[i], at)
		}
	})
}
