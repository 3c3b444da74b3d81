package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type figure int

const (
	product  figure = iota // Σ x·w
	absolute               // Σ |x|
	square                 // Σ x²
)

// A walk goes through rows in groups: those listed, or one after the other.
type walk struct {
	x, stride, rows reg.GPVirtual // stride in bytes; rows 0: no list
}

func newWalk(f32 bool) walk {
	w := walk{gp("x"), gp("stride"), gp("rows")}
	if f32 {
		SHLQ(U8(2), w.stride)
	} else {
		SHLQ(U8(3), w.stride)
	}
	return w
}

// next sets p to the next rows.
func (w walk) next(label string, p []reg.GPVirtual) {
	TESTQ(w.rows, w.rows)
	JZ(LabelRef(label + "_range"))
	for r := range p {
		MOVLQSX(Mem{Base: w.rows, Disp: 4 * r}, p[r])
		IMULQ(w.stride, p[r])
		ADDQ(w.x, p[r])
	}
	ADDQ(U8(4*len(p)), w.rows)
	JMP(LabelRef(label + "_at"))
	Label(label + "_range")
	for r := range p {
		MOVQ(w.x, p[r])
		ADDQ(w.stride, w.x)
	}
	Label(label + "_at")
}

// columns runs body for columns j + off to j + off + 7, eight after eight, and once
// for a rest, with its mask. With something to fetch, sixteen columns go at a time.
func (m machine) columns(label string, j, n reg.GPVirtual, f *fetch, body func(off int, t *tail)) {
	r := GP64()
	XORQ(j, j)
	MOVQ(n, r)
	if f != nil {
		TESTQ(f.at, f.at)
		JZ(LabelRef(label + "_near"))
		SUBQ(U8(16), r)
		JL(LabelRef(label + "_eight"))
		Label(label + "_sixteen")
		for i := range f.lines {
			PREFETCHT1(Mem{Base: f.at, Disp: 64 * i})
		}
		ADDQ(U32(uint32(64*f.lines)), f.at)
		body(0, nil)
		body(8, nil)
		ADDQ(U8(16), j)
		SUBQ(U8(16), r)
		JGE(LabelRef(label + "_sixteen"))
		Label(label + "_eight")
		ADDQ(U8(16), r)
		Label(label + "_near")
	}
	SUBQ(U8(8), r)
	JL(LabelRef(label + "_rest"))
	Label(label + "_loop")
	body(0, nil)
	ADDQ(U8(8), j)
	SUBQ(U8(8), r)
	JGE(LabelRef(label + "_loop"))
	Label(label + "_rest")
	ADDQ(U8(8), r)
	JZ(LabelRef(label + "_end"))
	t := m.tail(r)
	body(0, &t)
	Label(label + "_end")
}

// reduce adds the eight lanes of four sums: lane l with lane l+4, then
// (0+1)+(2+3), then 0, which turns −0 into 0. It returns them in one register.
func (m machine) reduce(s [][]reg.VecVirtual) reg.VecVirtual {
	var t []reg.VecVirtual
	for _, v := range s {
		y := YMM()
		if m.wide {
			VEXTRACTF64X4(Imm(1), v[0], y)
			VADDPD(y, v[0].AsY(), y)
		} else {
			VADDPD(v[1], v[0], y)
		}
		t = append(t, y)
	}
	a, b, lo, none := YMM(), YMM(), YMM(), YMM()
	if m.wide { // in instructions that reach all 32 registers
		c := YMM()
		for i, sum := range []reg.VecVirtual{a, b} {
			VUNPCKLPD(t[2*i+1], t[2*i], sum)
			VUNPCKHPD(t[2*i+1], t[2*i], c)
			VADDPD(c, sum, sum)
		}
		VSHUFF64X2(Imm(0), b, a, lo)
		VSHUFF64X2(Imm(3), b, a, a)
	} else {
		VHADDPD(t[1], t[0], a)
		VHADDPD(t[3], t[2], b)
		VPERM2F128(Imm(0x20), b, a, lo)
		VPERM2F128(Imm(0x31), b, a, a)
	}
	VADDPD(a, lo, lo)
	zero(none)
	VADDPD(none, lo, lo)
	return lo
}

// A fetch is what to bring nearer meanwhile: some lines for sixteen columns, from at
// on; none where at is 0.
type fetch struct {
	at    reg.GPVirtual
	lines int
}

// fetch is half of what lies m rows after these: the next call reads it, unless rows
// are listed, and memory has time while there is arithmetic to do. The margins fetch
// the first rows of a group, the sums the others. Long rows are left to the machine,
// which sees them coming.
func (w walk) fetch(label string, p []reg.GPVirtual, m reg.GPVirtual, half, size int) *fetch {
	const long = 4096 // bytes
	TESTQ(w.rows, w.rows)
	JNZ(LabelRef(label + "_none"))
	CMPQ(w.stride, U32(long))
	JGE(LabelRef(label + "_none"))
	IMULQ(w.stride, m)
	ADDQ(p[len(p)/2*half], m)
	JMP(LabelRef(label + "_ahead"))
	Label(label + "_none")
	XORQ(m, m)
	Label(label + "_ahead")
	return &fetch{m, (len(p) + 1) / 2 * 16 * size / 64}
}

// margins is one figure of each row, four rows at a time.
func margins(m machine, f32 bool, what figure) {
	name, goType, size := typeOf(f32)
	fn := map[figure]string{product: "dot", absolute: "abs", square: "square"}[what]
	args := ""
	if what == product {
		args = "w *float64, "
	}
	TEXT(fn+name+m.name, 4,
		fmt.Sprintf("func(z *float64, x *%s, stride int, rows *int32, groups int, %sn int)", goType, args))
	Pragma("noescape")
	z, groups, n := gp("z"), gp("groups"), gp("n")
	at := newWalk(f32)
	var w reg.GPVirtual
	if what == product {
		w = gp("w")
	}
	var sign reg.VecVirtual
	if what == absolute {
		sign = m.bits(1<<63 - 1)
	}
	p := []reg.GPVirtual{GP64(), GP64(), GP64(), GP64()}
	Label("group")
	at.next("row", p)
	s := make([][]reg.VecVirtual, 4)
	for r := range s {
		for range m.parts() {
			v := m.vec()
			zero(v)
			s[r] = append(s[r], v)
		}
	}
	j, after := GP64(), GP64()
	Load(Param("groups"), after)
	SHLQ(U8(2), after)
	fetch := at.fetch("row", p, after, 0, size)
	m.columns("column", j, n, fetch, func(off int, t *tail) {
		for i := range m.parts() {
			var wv reg.VecVirtual
			if what == product {
				wv = m.vec()
				m.load(w, j, false, off, i, t, wv)
			}
			for r := range p {
				x := m.vec()
				m.load(p[r], j, f32, off, i, t, x)
				switch what {
				case product:
					VFMADD231PD(x, wv, s[r][i])
				case absolute:
					VANDPD(x, sign, x)
					VADDPD(x, s[r][i], s[r][i])
				case square:
					VFMADD231PD(x, x, s[r][i])
				}
			}
		}
	})
	VMOVUPD(m.reduce(s), Mem{Base: z})
	ADDQ(U8(32), z)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// axpy adds weighted rows, four, two and one at a time.
func axpy(m machine, f32 bool) {
	name, goType, size := typeOf(f32)
	TEXT("axpy"+name+m.name, 4,
		fmt.Sprintf("func(dst *float64, n int, a *float64, x *%s, stride int, rows *int32, m int)", goType))
	Pragma("noescape")
	dst, n, a, left := gp("dst"), gp("n"), gp("a"), gp("m")
	at := newWalk(f32)
	for _, group := range []int{4, 2, 1} {
		l := fmt.Sprintf("rows%d", group)
		Label(l)
		CMPQ(left, U8(group))
		JL(LabelRef(l + "_done"))
		var p []reg.GPVirtual
		var c []reg.VecVirtual
		for r := range group {
			p, c = append(p, GP64()), append(c, m.vec())
			VBROADCASTSD(Mem{Base: a, Disp: 8 * r}, c[r])
		}
		ADDQ(U8(8*group), a)
		at.next(l, p)
		j := GP64()
		after := GP64()
		Load(Param("m"), after)
		fetch := at.fetch(l, p, after, 1, size)
		m.columns(l+"_column", j, n, fetch, func(off int, t *tail) {
			for i := range m.parts() {
				s := m.vec()
				m.load(dst, j, false, off, i, t, s)
				for r := range p {
					x := m.vec()
					m.load(p[r], j, f32, off, i, t, x)
					VFMADD231PD(x, c[r], s)
				}
				m.store(s, dst, j, off, i, t)
			}
		})
		SUBQ(U8(group), left)
		JMP(LabelRef(l))
		Label(l + "_done")
	}
	VZEROUPPER()
	RET()
}

// five is the number of classes that dot5 and axpy5 take at once: 4 rows × 5
// classes, and 5 classes × 4 registers, leave what the loads need of 32 registers.
const five = 5

// classes addresses the same place in the vectors of five classes.
type classes struct{ base, step, step3 reg.GPVirtual }

// newClasses takes a step in doubles.
func newClasses(base, step reg.GPVirtual) classes {
	c := classes{base, step, GP64()}
	SHLQ(U8(3), step)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, c.step3)
	return c
}

func (c classes) at(k, disp int) Mem {
	switch k {
	case 0:
		return Mem{Base: c.base, Disp: disp}
	case 3:
		return Mem{Base: c.base, Index: c.step3, Scale: 1, Disp: disp}
	}
	return Mem{Base: c.base, Index: c.step, Scale: uint8(k), Disp: disp}
}

// dot5 is margins of five classes: rows are widened once for all of them. A group is
// where four rows begin, and two more to fetch meanwhile.
func dot5() {
	m := machines[0]
	TEXT("dot5F32AVX512", 4, "func(z *float64, zstep int, group *[6]*float32, groups int, w *float64, wstep int, n int)")
	Pragma("noescape")
	group, groups := gp("group"), gp("groups")
	ws := newClasses(GP64(), gp("wstep"))
	p := []reg.GPVirtual{GP64(), GP64(), GP64(), GP64()}
	fetch := []reg.GPVirtual{GP64(), GP64()}
	Label("group")
	for i, at := range append(p[:4:4], fetch...) {
		MOVQ(Mem{Base: group, Disp: 8 * i}, at)
	}
	ADDQ(U8(8*6), group)
	s := make([][][]reg.VecVirtual, five)
	for k := range s {
		for range p {
			v := ZMM()
			zero(v)
			s[k] = append(s[k], []reg.VecVirtual{v})
		}
	}
	n := GP64()
	Load(Param("w"), ws.base)
	Load(Param("n"), n)
	j := GP64()
	m.columns("column", j, n, nil, func(_ int, t *tail) {
		x := make([]reg.VecVirtual, len(p))
		for r := range p {
			x[r] = ZMM()
			m.load(p[r], j, true, 0, 0, t, x[r])
		}
		for _, at := range fetch { // each line twice: the second time costs next to nothing
			PREFETCHT1(Mem{Base: at, Index: j, Scale: 4})
		}
		for k := range s {
			w := ZMM()
			if t == nil {
				VMOVUPD(ws.at(k, 0), w)
			} else {
				VMOVUPD_Z(ws.at(k, 0), t.k, w)
			}
			for r := range p {
				VFMADD231PD(x[r], w, s[k][r][0])
			}
		}
		if t == nil {
			ADDQ(U8(64), ws.base)
		}
	})
	z, step, done := GP64(), GP64(), GP64()
	Load(Param("groups"), done)
	SUBQ(groups, done)
	SHLQ(U8(5), done)
	Load(Param("z"), z)
	ADDQ(done, z)
	Load(Param("zstep"), step)
	SHLQ(U8(3), step)
	for k := range s {
		VMOVUPD(m.reduce(s[k]), Mem{Base: z})
		if k < five-1 {
			ADDQ(step, z)
		}
	}
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// axpy5 adds weighted rows to the sums of five classes, 32 columns at a time, which
// stay in registers while the rows go by.
func axpy5() {
	const width = 4 // registers of columns
	TEXT("axpy5F32AVX512", 4,
		"func(dst *float64, step int, n int, a *float64, astep int, x *float32, stride int, rows *int32, m int)")
	Pragma("noescape")
	left := gp("n")
	d := newClasses(gp("dst"), gp("step"))
	c := newClasses(GP64(), gp("astep"))
	at := newWalk(true)
	Label("block")
	mask := GP32()
	MOVL(U32(0xFFFFFFFF), mask)
	cols := GP64()
	MOVQ(left, cols)
	CMPQ(cols, U8(32)) // BZHI looks at eight bits of it
	JLE(LabelRef("narrow"))
	MOVQ(U32(32), cols)
	Label("narrow")
	BZHIL(cols.As32(), mask, mask)
	var k []reg.OpmaskVirtual
	for i := range width {
		v := K()
		KMOVW(mask, v)
		if i < width-1 {
			SHRL(U8(8), mask)
		}
		k = append(k, v)
	}
	s := make([][]reg.VecVirtual, five)
	for class := range s {
		for i := range width {
			v := ZMM()
			VMOVUPD_Z(d.at(class, 64*i), k[i], v)
			s[class] = append(s[class], v)
		}
	}
	m, row, from := GP64(), GP64(), GP64()
	Load(Param("m"), m)
	Load(Param("rows"), at.rows)
	Load(Param("a"), c.base)
	MOVQ(at.x, from)
	Label("row")
	MOVQ(from, row)
	TESTQ(at.rows, at.rows)
	JZ(LabelRef("range"))
	MOVLQSX(Mem{Base: at.rows}, row)
	ADDQ(U8(4), at.rows)
	IMULQ(at.stride, row)
	ADDQ(at.x, row)
	Label("range")
	ADDQ(at.stride, from)
	x := make([]reg.VecVirtual, width)
	for i := range x {
		x[i] = ZMM()
		VCVTPS2PD_Z(Mem{Base: row, Disp: 32 * i}, k[i], x[i])
	}
	for class := range s {
		a := ZMM()
		VBROADCASTSD(c.at(class, 0), a)
		for i := range x {
			VFMADD231PD(x[i], a, s[class][i])
		}
	}
	ADDQ(U8(8), c.base)
	DECQ(m)
	JNZ(LabelRef("row"))
	for class := range s {
		for i := range width {
			VMOVUPD(s[class][i], k[i], d.at(class, 64*i))
		}
	}
	ADDQ(U32(256), d.base)
	ADDQ(U32(128), at.x)
	SUBQ(U8(32), left)
	JG(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// sparse is the inner loop of a sparse row, one value at a time: what it saves over
// Go is the question whether there is a fused multiply-add. It stops before a column
// outside of 0 … dim−1, as Go would: a mapped file may change under our hands. What it
// returns is not 0 then.
func sparse() {
	for _, fn := range []string{"dot", "axpy"} {
		var sums, w reg.GPVirtual
		if fn == "dot" {
			TEXT("dotSparseFMA", 4, "func(s *[8]float64, col *int32, x *float32, n int, w *float64, dim int) int")
			sums, w = gp("s"), gp("w")
		} else {
			TEXT("axpySparseFMA", 4, "func(dst *float64, a float64, col *int32, x *float32, n int, dim int) int")
			sums = gp("dst")
		}
		Pragma("noescape")
		a := XMM()
		if fn == "axpy" {
			Load(Param("a"), a)
		}
		col, x, n, dim := gp("col"), gp("x"), gp("n"), gp("dim")
		one := func(i int) {
			j, v, s := GP64(), XMM(), XMM()
			MOVLQSX(Mem{Base: col, Disp: 4 * i}, j)
			CMPQ(j, dim)
			JAE(LabelRef("bad")) // negative ones are large
			VXORPS(v, v, v)
			VCVTSS2SD(Mem{Base: x, Disp: 4 * i}, v, v)
			if fn == "dot" {
				wv := XMM()
				VMOVSD(Mem{Base: w, Index: j, Scale: 8}, wv)
				ANDQ(U8(7), j)
				VMOVSD(Mem{Base: sums, Index: j, Scale: 8}, s)
				VFMADD231SD(v, wv, s)
			} else {
				VMOVSD(Mem{Base: sums, Index: j, Scale: 8}, s)
				VFMADD231SD(v, a, s)
			}
			VMOVSD(s, Mem{Base: sums, Index: j, Scale: 8})
		}
		SUBQ(U8(4), n)
		JL(LabelRef("rest"))
		Label("loop")
		for i := range 4 {
			one(i)
		}
		ADDQ(U8(16), col)
		ADDQ(U8(16), x)
		SUBQ(U8(4), n)
		JGE(LabelRef("loop"))
		Label("rest")
		ADDQ(U8(4), n)
		JZ(LabelRef("end"))
		Label("last")
		one(0)
		ADDQ(U8(4), col)
		ADDQ(U8(4), x)
		DECQ(n)
		JNZ(LabelRef("last"))
		Label("end")
		Store(n, ReturnIndex(0))
		VZEROUPPER()
		RET()
		Label("bad")
		MOVQ(I32(-1), n)
		JMP(LabelRef("end"))
	}
}

// prefetch asks for each line of n bytes.
func prefetch() {
	TEXT("prefetchLines", 4, "func(p *byte, n int)")
	Pragma("noescape")
	p, n := gp("p"), gp("n")
	Label("loop")
	PREFETCHT0(Mem{Base: p})
	ADDQ(U8(64), p)
	SUBQ(U8(64), n)
	JG(LabelRef("loop"))
	PREFETCHT0(Mem{Base: p, Index: n, Scale: 1, Disp: -1}) // the last byte
	RET()
}
