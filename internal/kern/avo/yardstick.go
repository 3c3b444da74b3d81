package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// digits is two registers of numbers in ±[½, 1).
var digits = map[bool]Mem{}

func tables() {
	for _, f32 := range []bool{true, false} {
		name, _, size := typeOf(f32)
		digits[f32] = GLOBL("digits"+name, 8|16) // RODATA|NOPTR
		x := uint64(1)
		for i := range 128 / size {
			x = x*6364136223846793005 + 1442695040888963407
			if f32 {
				DATA(4*i, U32(uint32(x>>32)&0x807FFFFF|0x3F000000))
			} else {
				DATA(8*i, U64(x&0x800FFFFFFFFFFFFF|0x3FE0000000000000))
			}
		}
	}
}

// yardsticks write what benchmarks measure the others against: a loop that only
// reads, and one that only multiplies and adds.
func yardsticks(m machine) {
	bytes := 8 * m.doubles()
	TEXT("sweep"+m.name, 4, "func(p *float32, n int) float64")
	Pragma("noescape")
	p, n := gp("p"), gp("n") // n: 64 floats at a time
	var s []reg.VecVirtual
	for range 4 {
		v := m.vec()
		zero(v)
		s = append(s, v)
	}
	Label("loop")
	for i := 0; i < 256; i += bytes {
		v := s[i/bytes%4]
		VORPD(Mem{Base: p, Disp: i}, v, v)
	}
	ADDQ(U32(256), p)
	SUBQ(U8(64), n)
	JNZ(LabelRef("loop"))
	for _, v := range s[1:] {
		VORPD(v, s[0], s[0])
	}
	Store(s[0].AsX(), ReturnIndex(0))
	VZEROUPPER()
	RET()

	for _, f32 := range []bool{true, false} {
		name, _, _ := typeOf(f32)
		fma := VFMADD231PD
		if f32 {
			fma = VFMADD231PS
		}
		TEXT("peak"+name+m.name, 4, "func(n int)")
		Pragma("noescape")
		left := gp("n")
		var sums []reg.VecVirtual
		for range 12 {
			v := m.vec()
			zero(v)
			sums = append(sums, v)
		}
		// Numbers with all their digits: a core may run faster on zeros.
		a, b := m.vec(), m.vec()
		at := GP64()
		LEAQ(digits[f32], at)
		VMOVUPD(Mem{Base: at}, a)
		VMOVUPD(Mem{Base: at, Disp: 64}, b)
		Label("loop")
		for i, v := range sums {
			if i%2 == 0 {
				fma(a, b, v)
			} else {
				fma(b, a, v)
			}
		}
		DECQ(left)
		JNZ(LabelRef("loop"))
		VZEROUPPER()
		RET()
	}
}
