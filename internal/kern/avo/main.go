// Command avo writes the assembly of package kern:
//
//	go run . -out ../kern_amd64.s -stubs ../stubs_amd64.go
//
// It is a module of its own, so that the generator is no dependency of Sotto. The
// same source gives the same bytes; CI compares them. Every kernel ends with
// VZEROUPPER: without it Go's own float code runs many times slower after a kernel.
// No parameter is named g: that is a register of Go's assembler.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// A machine is one instruction set.
type machine struct {
	name string
	wide bool // AVX-512: 8 doubles in a register, masks; else AVX2: 4
}

var machines = []machine{{"AVX512", true}, {"AVX2", false}}

func main() {
	ConstraintExpr("amd64")
	masks()
	tables()
	cutOrder()
	for _, m := range machines {
		for _, f32 := range []bool{true, false} {
			margins(m, f32, product)
			axpy(m, f32)
			for across := range m.doubles()/4 + 1 { // 3 or 2
				gemm(m, f32, false, false, across+1)
				gemm(m, f32, true, false, across+1)
				if m.wide {
					gemm(m, f32, !f32, true, across+1)
				}
			}
		}
		margins(m, true, absolute)
		margins(m, true, square)
		pointwise(m)
		coef(m)
		whole(m)
		axpyWhole(m)
		highest(m)
		addWhere(m)
		add32(m)
		approach(m)
		for across := range 3 {
			gram(m, across+1)
		}
		yardsticks(m)
		bytes(m)
		shorts(m)
		cut(m)
	}
	sparse()
	lines(false)
	lines(true)
	prefetch()
	dot5()
	axpy5()
	dot10()
	for _, size := range []int{32, 64, 192} {
		panels(size)
	}
	axpy10()
	wholePanel(false)
	wholePanel(true)
	listTerms()
	bytesWords()
	bytesLargest()
	bytesWeights()
	shortSplit()
	spill(true)
	spill(false)
	roundShift()
	release()
	narrow()
	rectify()
	mask()
	squares(false)
	squares(true)
	cutSum()
	cutDot()
	productsOf()
	decimals()
	random()
	chacha8()
	Generate()
}

func gp(param string) reg.GPVirtual { return Load(Param(param), GP64()).(reg.GPVirtual) }

// vec is a register of the machine's width.
func (m machine) vec() reg.VecVirtual {
	if m.wide {
		return ZMM()
	}
	return YMM()
}

// doubles is how many a register holds.
func (m machine) doubles() int {
	if m.wide {
		return 8
	}
	return 4
}

// parts is how many registers eight doubles take.
func (m machine) parts() int { return 8 / m.doubles() }

// constant is a register with one double in all lanes.
func (m machine) constant(v float64) reg.VecVirtual {
	r := m.vec()
	VBROADCASTSD(double(v), r)
	return r
}

// bits is a register with one 64-bit word in all lanes.
func (m machine) bits(v uint64) reg.VecVirtual {
	r := m.vec()
	VPBROADCASTQ(word(v), r)
	return r
}

func zero(r reg.VecVirtual) { VXORPD(r, r, r) }

func typeOf(f32 bool) (name, goType string, size int) {
	if f32 {
		return "F32", "float32", 4
	}
	return "F64", "float64", 8
}
