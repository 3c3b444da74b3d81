package data

import "unsafe"

// An Arena allocates memory for the rows of a table, in pieces of large stretches. It asks the system for
// large pages, so that reading rows in random order does not walk the page tables. The zero value is
// ready.
type Arena struct {
	left  []float32
	last  []float32 // the stretch that left is of
	given int       // numbers in all stretches so far
	round int       // numbers in all pieces since the last reset
}

const (
	largePage = 2 << 20 // bytes
	stretch   = 8 << 20 // most numbers of a stretch, unless one piece is larger
	line      = 16      // numbers in a line of the cache
)

// Floats returns n zeros, aligned to a cache line.
func (r *Arena) Floats(n int) []float32 {
	whole := (n + line - 1) &^ (line - 1)
	r.round += whole
	if whole > len(r.left) && whole > stretch/2 { // a stretch of its own; what is left stays for smaller pieces
		r.given += whole
		return largeFloats(whole)[:n:n]
	}
	if whole > len(r.left) {
		// The memory doubles, so at most half of it stays unused.
		r.left = largeFloats(max(whole, min(r.given, stretch)))
		r.last = r.left
		r.given += len(r.left)
	}
	x := r.left[:n:n]
	r.left = r.left[whole:]
	return x
}

// reset takes back all that was given, for the next block, and makes one stretch for as much.
func (r *Arena) reset() {
	if r.round > len(r.last) {
		r.last = largeFloats(r.round)
	} else {
		clear(r.last[:len(r.last)-len(r.left)])
	}
	r.left, r.round = r.last, 0
}

// Ints is Floats for integers.
func (r *Arena) Ints(n int) []int32 {
	x := r.Floats(n)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(x))), n)
}

// Bytes is Floats for bytes.
func (r *Arena) Bytes(n int) []byte {
	x := r.Floats((n + 3) / 4)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), n)
}

// Shorts is Floats for numbers of 16 bits.
func (r *Arena) Shorts(n int) []int16 {
	x := r.Floats((n + 1) / 2)
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(x))), n)
}

// copy returns a copy of x; nil for nil.
func (r *Arena) copy(x []float32) []float32 {
	if x == nil {
		return nil
	}
	y := r.Floats(len(x))
	copy(y, x)
	return y
}

// largeFloats returns n zeros, in large pages if they fill at least one.
func largeFloats(n int) []float32 {
	if 4*n < 2*largePage {
		x := make([]float32, n+line-1)
		return x[skip(&x[0], 4*line):][:n]
	}
	// It is on Go's heap, so that the garbage collector frees it.
	n = (4*n + largePage - 1) &^ (largePage - 1) / 4
	x := make([]float32, n+largePage/4)
	x = x[skip(&x[0], largePage):][:n]
	adviseLarge(unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*n))
	return x
}

// skip is how many numbers lie between p and the next multiple of size.
func skip(p *float32, size uintptr) int { return int(-uintptr(unsafe.Pointer(p)) % size / 4) }
