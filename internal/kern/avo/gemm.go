package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm is the micro-kernel of a matrix product, C += A·B: 12 or 6 rows of A, from
// any two strides, by a packed panel of B of two registers a row. C stays in
// registers while k goes by.
func gemm(m machine, f32 bool) {
	name, goType, size := typeOf(f32)
	rows := 6
	if m.wide {
		rows = 12
	}
	TEXT("gemm"+name+m.name, 4, fmt.Sprintf("func(k int, a *%[1]s, arow int, acol int, b *%[1]s, c *%[1]s, ldc int)", goType))
	Pragma("noescape")
	var (
		k, b, c        = gp("k"), gp("b"), gp("c")
		row, col, ldc  = gp("arow"), gp("acol"), gp("ldc")
		fma, add, move = VFMADD231PD, VADDPD, VMOVUPD
		broadcast      = VBROADCASTSD
		shift          = U8(3)
		row3, lead     = GP64(), gp("a")
		bytes          = 8 * m.doubles()
		base           []reg.GPVirtual // of rows 0, 4, 8
		sums           [][2]reg.VecVirtual
	)
	if f32 {
		fma, add, move, broadcast, shift = VFMADD231PS, VADDPS, VMOVUPS, VBROADCASTSS, 2
	}
	_ = size
	for _, r := range []reg.GPVirtual{row, col, ldc} {
		SHLQ(shift, r)
	}
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	for r := 0; r < rows; r += 4 {
		at := lead
		if r > 0 {
			at = GP64()
			LEAQ(Mem{Base: base[len(base)-1], Index: row, Scale: 4}, at)
		}
		base = append(base, at)
	}
	for range rows {
		v := [2]reg.VecVirtual{m.vec(), m.vec()}
		zero(v[0])
		zero(v[1])
		sums = append(sums, v)
	}
	Label("loop")
	b0, b1 := m.vec(), m.vec()
	move(Mem{Base: b}, b0)
	move(Mem{Base: b, Disp: bytes}, b1)
	for r := range rows {
		at := Mem{Base: base[r/4]}
		switch r % 4 {
		case 1, 2:
			at.Index, at.Scale = row, uint8(r%4)
		case 3:
			at.Index, at.Scale = row3, 1
		}
		a := m.vec()
		broadcast(at, a)
		fma(b0, a, sums[r][0])
		fma(b1, a, sums[r][1])
	}
	for _, p := range base {
		ADDQ(col, p)
	}
	ADDQ(U32(2*bytes), b)
	DECQ(k)
	JNZ(LabelRef("loop"))
	for r := range rows {
		for i := range 2 {
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
