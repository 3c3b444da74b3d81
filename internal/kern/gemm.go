package kern

import (
	"math"
	"sync"
	"unsafe"
)

const (
	depth  = 400 // most terms of one block; more means fewer passes over C
	height = 240 // rows of A in one block, a multiple of 8, 6 and 2
	width  = 528 // columns of B in one block, a multiple of 48, 16 and 4: the block is 792 KiB of float32
	gap    = 16  // numbers between the rows of a block, so that they fall on different cache sets
)

// termsOf is the terms of a block of a product with k terms: equal blocks, but for the
// last.
func termsOf(k int) int {
	blocks := (k + depth - 1) / depth
	return ((k+blocks-1)/blocks + 3) &^ 3
}

// A tiler is the memory of one product.
type tiler[T float] struct {
	a [height * (depth + gap)]T
	b [depth * width]T
	c [8 * 48]T // an incomplete tile

	// Of each tile of rows of A, where a block is listed: how many terms are summed, and which, if not all.
	count [height / 2]int
	list  [height/8*depth + 16]int32
}

var tilers32 = sync.Pool{New: func() any { return new(tiler[float32]) }}
var tilers64 = sync.Pool{New: func() any { return new(tiler[float64]) }}

// Gemm adds a matrix product: C += op(A)·op(B), C of m rows and n columns, k terms
// each. A is stored m×k, or k×m where ta says transposed; B k×n, or n×k for tb. Rows
// are lda, ldb and ldc apart, at least their length. C must not share memory with A
// or B.
//
// Each element is summed over blocks of terms (termsOf) from 0, in order, products fused;
// the blocks' sums are added to C. All sets of kernels give the same bits, and those of a
// row do not depend on the rows beside it.
func Gemm[T float](ta, tb bool, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) {
	needMatrix("A", len(a), lda, pick(ta, k, m), pick(ta, m, k))
	needMatrix("B", len(b), ldb, pick(tb, n, k), pick(tb, k, n))
	needMatrix("C", len(c), ldc, m, n)
	if m == 0 || n == 0 || k == 0 {
		return
	}
	var t *tiler[T]
	switch any(t).(type) {
	case *tiler[float32]:
		p := tilers32.Get().(*tiler[float32])
		defer tilers32.Put(p)
		t = any(p).(*tiler[T])
	default:
		p := tilers64.Get().(*tiler[float64])
		defer tilers64.Put(p)
		t = any(p).(*tiler[T])
	}
	mr, nr, one := tileSize[T]()
	block := termsOf(k)
	// A is read without a copy, unless its rows fall on the same cache sets.
	direct := !ta && lda*int(unsafe.Sizeof(*new(T)))%4096 != 0
	for j := 0; j < n; j += width {
		cols := min(width, n-j)
		for p := 0; p < k; p += block {
			terms := min(block, k-p)
			if tb {
				t.packTransposed(b[j*ldb+p:], ldb, terms, cols, nr, one)
			} else {
				t.pack(b[p*ldb+j:], ldb, terms, cols, nr, one)
			}
			for i, rows := 0, 0; i < m; i += rows {
				rows = min(height, m-i)
				if direct && rows > mr {
					rows -= rows % mr // the rest is copied: a kernel reads whole tiles
				}
				from, row := t.a[:], 0
				if ta {
					for q := range terms {
						line, ahead := a[(p+q)*lda+i:][:rows], 0
						if q+1 < terms {
							ahead = lda
						}
						for s := panelsFast(t.a[q*mr:], terms*mr, line, ahead, mr); s < rows; s += mr {
							copy(t.a[s*terms+q*mr:][:mr], line[s:])
						}
					}
				} else if direct && rows >= mr {
					from, row = a[i*lda+p:], lda
				} else {
					row = depth + gap
					for q := range rows {
						copy(t.a[q*row:], a[(i+q)*lda+p:][:terms])
					}
				}
				t.block(rows, cols, terms, from, row, false, c[i*ldc+j:], ldc, mr, nr, one)
			}
		}
	}
}

// block multiplies the blocks: A in rows, row apart, or for 0 in panels; all its terms, or those that are listed.
func (t *tiler[T]) block(rows, cols, terms int, from []T, row int, listed bool, c []T, ldc, mr, nr, one int) {
	step := row
	if row == 0 {
		step = terms
	}
	for j := 0; j < cols; j += nr {
		b, w := t.b[j*terms:], panelWidth(cols-j, nr, one)
		for i := 0; i < rows; i += mr {
			a, count, list := from[i*step:], terms, []int32(nil)
			if listed {
				if count = t.count[i/mr]; count == 0 {
					continue
				}
				if count < terms {
					list = t.list[i/mr*depth:][:count]
				}
			}
			if i+mr <= rows && j+w <= cols {
				tile(count, a, row, list, b, w, c[i*ldc+j:], ldc)
				continue
			}
			clear(t.c[:mr*w])
			tile(count, a, row, list, b, w, t.c[:], w)
			for r := range min(mr, rows-i) {
				for s := range min(w, cols-j) {
					c[(i+r)*ldc+j+s] += t.c[r*w+s]
				}
			}
		}
	}
}

// panelWidth is the width of the panel that begins with left columns to go: nr, or
// what takes a whole number of registers.
func panelWidth(left, nr, one int) int { return min(nr, (left+one-1)/one*one) }

// pack lays out columns in panels: panel, term, column. The last panel is filled up
// with zeros to its width.
func (t *tiler[T]) pack(b []T, ldb, terms, cols, nr, one int) {
	for q := range terms {
		from := b[q*ldb:][:cols]
		ahead := 0
		if q+1 < terms {
			ahead = ldb
		}
		for j := panelsFast(t.b[q*nr:], terms*nr, from, ahead, nr); j < cols; j += nr {
			pw := panelWidth(cols-j, nr, one)
			to := t.b[j*terms+q*pw:][:pw]
			clear(to[copy(to, from[j:]):])
		}
	}
}

// packTransposed is pack for B stored column after column.
func (t *tiler[T]) packTransposed(b []T, ldb, terms, cols, nr, one int) {
	for j := 0; j < cols; j += nr {
		w, pw := min(nr, cols-j), panelWidth(cols-j, nr, one)
		to := t.b[j*terms:][:pw*terms]
		s := 0
		for ; s+4 <= w; s += 4 {
			b0, b1, b2, b3 := b[(j+s)*ldb:][:terms], b[(j+s+1)*ldb:][:terms], b[(j+s+2)*ldb:][:terms], b[(j+s+3)*ldb:][:terms]
			for q, v := range b0 {
				d := to[q*pw+s:][:4]
				d[0], d[1], d[2], d[3] = v, b1[q], b2[q], b3[q]
			}
		}
		for ; s < pw; s++ {
			for q := range terms {
				var v T
				if s < w {
					v = b[(j+s)*ldb+q]
				}
				to[q*pw+s] = v
			}
		}
	}
}

func pick(transposed bool, yes, no int) int {
	if transposed {
		return yes
	}
	return no
}

func needMatrix(name string, length, ld, rows, cols int) {
	if rows < 0 || cols < 0 || rows > 0 && cols > 0 && (ld < cols || (length-cols)/ld < rows-1 || length < cols) {
		panic("kern: matrix " + name + " is shorter than its rows")
	}
}

// tilePlain is one tile in plain Go, 2×4: the twin of the micro-kernels.
func tilePlain[T float](k int, a []T, row int, b, c []T, ldc int) {
	var s [2][4]T
	col := 1
	if row == 0 {
		row, col = 1, 2
	}
	for p := range k {
		bp := b[4*p:][:4]
		for r := range 2 {
			v := a[r*row+p*col]
			for j := range 4 {
				s[r][j] = fused(v, bp[j], s[r][j])
			}
		}
	}
	for r := range 2 {
		for j := range 4 {
			c[r*ldc+j] += s[r][j]
		}
	}
}

// fused is a·b + c, rounded once.
func fused[T float](a, b, c T) T {
	if unsafe.Sizeof(a) == 4 {
		return T(fused32(float64(a), float64(b), float64(c)))
	}
	return T(math.FMA(float64(a), float64(b), float64(c)))
}

// fused32 is a·b + c of numbers of float32, rounded once. In float64 the product is exact. Rounding the sum again is
// wrong only where its first rounding hid on which side of the middle of two float32 it is: there its last bit is made
// odd, on that side.
func fused32(a, b, c float64) float32 {
	p := float64(a * b)
	s := p + c
	if bits := math.Float64bits(s); bits&(1<<29-1) == 1<<28 || math.Abs(s) < 0x1p-126 {
		q := s - p
		if below := (p - (s - q)) + (c - q); below != 0 && bits&1 == 0 { // what the sum lost, exactly
			if (below > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return float32(s)
}
