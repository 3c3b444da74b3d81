package data

import (
	"slices"

	"github.com/sottodp/sotto/internal/kern"
)

// A form is how a block has its rows. Each form is a type with a file of its own, which alone knows the fields of Block
// that the form uses: dense.go, sparse.go, pixels.go, short.go and curves.go. Everything else asks a block or a view,
// and never for the form (ADR 93).
type form interface {
	sparse() bool

	// fill sets x, which is 0, to row i with its zeros.
	fill(x []float32, i int)
	// fillAll is fill of rows from … end−1, one after the other.
	fillAll(x []float32, from, end int)
	// run is rows from … end−1 as float32 with their zeros, one after the other, where they are in memory so; nil
	// otherwise.
	run(from, end int) []float32
	// values is Block.Values.
	values(i int, memory *[]float32) (col []int32, val []float32)
	// appendText appends what row i says, so that equal rows of all forms have equal texts, and appendCode what rows of
	// equal texts can differ in.
	appendText(dst []byte, i int) []byte
	appendCode(dst []byte, i int) []byte

	// size is about how many bytes the features of a row take, by public facts.
	size() int
	// memory is where the features of row i are. In some forms it is read from an index, which is somewhere else.
	memory(i int) [2][]byte
	index(i int) []byte
	// prefetch fetches row i, which is read soon, into the cache.
	prefetch(i int)
	// copyTo appends row i to a block that has no rows of another form.
	copyTo(to *Block, i int)
	// erase makes row i one of zeros.
	erase(i int)
	// filler makes blocks of the form with rows of dim features, of all numbers that it is given.
	filler(dim int) filler
	// parts are the features as a packed table has them, and valid says whether they are as Pack writes them, but for
	// what is checked of all forms.
	parts() [][]byte
	valid() bool

	// What models ask of the rows of a view; see the methods of View.
	margins(z, w []float64, k int, v View, s *Space)
	exact(z, w []float64, v View, s *Space)
	sizes(dst []float64, v View)
	weights(c []float64, v View, s *Space) []float64
	add(dst, a []float64, k int, v View, unit float64, s *Space)
	outer(dst []float64, side int, a []float64, v View, scratch []float64) []float64
}

// form is how the block has its rows.
func (b *Block) form() form {
	s := base{b}
	switch {
	case b.Pixels != nil:
		return byteRows{s}
	case b.Short != nil:
		return shortRows{s}
	case b.Narrow():
		return narrowRows{s}
	case b.Curves != nil:
		return wideRows{denseRows{s}}
	case b.Start != nil:
		return sparseRows{s}
	case b.Made != nil:
		return cutRows{denseRows{s}}
	}
	return denseRows{s}
}

// errForm is a programmer's error.
const errForm = "data: rows are asked for what their form does not have; ask them as float32 (Numbers)"

// base is what a form has that does nothing better.
type base struct{ *Block }

func (base) sparse() bool                                               { return false }
func (base) run(from, end int) []float32                                { return nil }
func (b base) size() int                                                { return 4 * b.Dim }
func (base) index(int) []byte                                           { return nil }
func (base) appendCode(dst []byte, _ int) []byte                        { return dst }
func (base) parts() [][]byte                                            { panic(errForm) }
func (base) margins(_, _ []float64, _ int, _ View, _ *Space)            { panic(errForm) }
func (b base) exact(z, w []float64, v View, s *Space)                   { b.form().margins(z, w, 1, v, s) }
func (base) sizes([]float64, View)                                      { panic(errForm) }
func (base) add(_, _ []float64, _ int, _ View, _ float64, _ *Space)     { panic(errForm) }
func (base) outer([]float64, int, []float64, View, []float64) []float64 { panic(errForm) }
func (base) filler(dim int) filler                                      { return &denseFiller{dim: dim} }
func (base) valid() bool                                                { return true }
func (base) weights(c []float64, _ View, _ *Space) []float64            { return c }
func (b base) values(i int, m *[]float32) ([]int32, []float32)          { return nil, b.Dense(i, m) }

func (b base) appendText(dst []byte, i int) []byte {
	var memory []float32
	for j, v := range b.Dense(i, &memory) {
		dst = appendValue(dst, int32(j), v)
	}
	return dst
}

// firstBytes is how much of a row is fetched before it is read: the hardware fetches the rest.
const firstBytes = 1 << 10

func (b base) prefetch(i int) {
	for _, m := range b.form().memory(i) {
		kern.Prefetch(m[:min(len(m), firstBytes)])
	}
}

func (b base) fillAll(x []float32, from, end int) {
	f := b.form()
	for i := from; i < end; i++ {
		f.fill(x[:b.Dim], i)
		x = x[b.Dim:]
	}
}

func (b base) erase(i int) {
	for _, m := range b.form().memory(i) {
		clear(m)
	}
}

// A Coding says in what numbers rows are, where they are not float32. Sums over them are in the units of those.
type Coding struct {
	Bytes bool // images as bytes (Pixels)
	Short bool // numbers of 16 bits (Short)
}

// Coding says in what numbers the rows are.
func (b *Block) Coding() Coding { return Coding{b.Pixels != nil, b.Short != nil} }

// Coding says in what numbers the rows are, also where there are none.
func (t *Table) Coding() Coding { return Coding{t.Pixels != nil, t.Short != nil} }

// Tile is how many rows suit the caches and the kernels of their numbers at a time; 0 of float32, for which any number
// does.
func (t *Table) Tile() int {
	switch {
	case t.Pixels != nil:
		return kern.ByteRows
	case t.Short != nil:
		return t.Short.tile()
	}
	return 0
}

// Sparse says that the rows lack their zeros.
func (b *Block) Sparse() bool { return b.form().sparse() }

// Run is rows from … end−1 as float32 with their zeros, one after the other, where the block has them so; nil
// otherwise.
func (b *Block) Run(from, end int) []float32 { return b.form().run(from, end) }

// Dense returns a row with its zeros: a part of b, or of *memory.
func (b *Block) Dense(row int, memory *[]float32) []float32 {
	if x := b.Run(row, row+1); x != nil {
		return x
	}
	if len(*memory) < b.Dim {
		*memory = make([]float32, b.Dim)
	}
	x := (*memory)[:b.Dim]
	clear(x)
	b.form().fill(x, row)
	return x
}

// Values returns the numbers of a row and the columns that they are in, ascending: all columns where col is nil, as it
// never is for a row without any number. Some numbers may be 0. They are a part of b, or of *memory.
func (b *Block) Values(row int, memory *[]float32) (col []int32, val []float32) {
	return b.form().values(row, memory)
}

// Numbers sets to to rows from … to-1 of b as dense float32, with all else that b has of them, in the memory of to.
func (b *Block) Numbers(to *Block, from, end int) {
	x, size := to.X, (end-from)*b.Dim
	if cap(x) < size {
		x = make([]float32, size)
	}
	b.floats(to, x[:size], from, end)
}

// floats is Numbers in the memory x.
func (b *Block) floats(to *Block, x []float32, from, end int) {
	clear(x)
	b.form().fillAll(x, from, end)
	b.part(to, x, from, end)
}

// part sets to to rows from … to-1 of b, which are dense in x.
func (b *Block) part(to *Block, x []float32, from, end int) {
	*to = Block{N: end - from, Dim: b.Dim, X: x, Norm: b.Norm[from:end]}
	if b.Y != nil {
		to.Y = b.Y[from:end]
	}
	if b.Drop != nil {
		to.Drop = b.Drop[from:end]
	}
}

// A filler takes the features of a block's rows, one row after another.
type filler interface {
	begin(memory *Arena)
	add(i int, r *record) // row i; that of a dropped one is all 0
	end(k *Block, memory *Arena)
}

// empty makes b a block of n rows without any of their numbers yet, and keeps its memory.
func (b *Block) empty(n int) {
	*b = Block{N: n, Dim: b.Dim, X: b.X[:0], Start: b.Start[:0], Col: b.Col[:0], Val: b.Val[:0],
		Bytes: b.Bytes[:0], Factor: b.Factor[:0], Shorts: b.Shorts[:0], Shift: b.Shift[:0],
		Lines: b.Lines[:0], Factors: b.Factors[:0], Y: b.Y[:0], Norm: b.Norm[:0], Drop: b.Drop[:0]}
}

// clone returns a copy of b in memory. If no row is dropped, its Drop is nil.
func (b *Block) clone(memory *Arena) *Block {
	c := *b
	c.X, c.Val, c.Lines, c.Y, c.Norm = memory.copy(b.X), memory.copy(b.Val), memory.copy(b.Lines), memory.copy(b.Y),
		memory.copy(b.Norm)
	c.Start, c.Factor, c.Factors, c.Shift = slices.Clone(b.Start), slices.Clone(b.Factor), slices.Clone(b.Factors),
		slices.Clone(b.Shift)
	c.Col = append(memory.Ints(len(b.Col))[:0], b.Col...)
	c.Bytes = append(memory.Bytes(len(b.Bytes))[:0], b.Bytes...)
	c.Shorts = append(memory.Shorts(len(b.Shorts))[:0], b.Shorts...)
	if c.Drop = slices.Clone(b.Drop); !slices.Contains(b.Drop, true) {
		c.Drop = nil
	}
	return &c
}

// spread is b with the zeros of its rows: b itself where rows have them, or are bytes or 16-bit numbers.
func (b *Block) spread(memory *Arena) *Block {
	if b.Coding() != (Coding{}) || b.Run(0, b.N) != nil {
		return b
	}
	c, all := *b, Block{}
	b.floats(&all, memory.Floats(b.N*b.Dim), 0, b.N)
	c.X, c.Start, c.Col, c.Val = all.X, nil, nil, nil
	return &c
}

// A Space is the memory of products with rows. It is one goroutine's, and as private as the rows.
type Space struct {
	held  *float64 // see Hold
	bytes byteSpace
	short shortSpace

	coef []float64 // coefficients that are not 0, and
	rows []int32   // their rows
}

// Hold says that w does not change until Release, so that what follows from it alone may be kept.
func (s *Space) Hold(w []float64) { s.held = &w[0] }

// Release ends Hold.
func (s *Space) Release() { s.held, s.bytes.loaded, s.short.loaded = nil, nil, nil }

// keeps says whether what was loaded follows from w, and otherwise notes that it will.
func (s *Space) keeps(loaded **float64, w []float64) bool {
	if s.held == &w[0] && *loaded == &w[0] {
		return true
	}
	if *loaded = nil; s.held == &w[0] {
		*loaded = s.held
	}
	return false
}

// nonzero are the coefficients of the rows of v that are not 0, and the numbers of those rows.
func (s *Space) nonzero(a []float64, v View) (coef []float64, rows []int32) {
	coef, rows = s.coef[:0], s.rows[:0]
	for i, ai := range a {
		if ai != 0 {
			coef, rows = append(coef, ai), append(rows, int32(v.Row(i)))
		}
	}
	s.coef, s.rows = coef, rows
	return coef, rows
}

// Margins sets z[c·n+i] = ⟨w_c, x_i⟩ for the n rows of v and the parameters w of k classes, one class after the other.
func (v View) Margins(z, w []float64, k int, s *Space) { v.form().margins(z, w, k, v, s) }

// Exact is Margins of one class where all products, and their sums in any order, are exact.
func (v View) Exact(z, w []float64, s *Space) { v.form().exact(z, w, v, s) }

// Sizes sets dst_i = ‖x_i‖₁, never understated.
func (v View) Sizes(dst []float64) { v.form().sizes(dst, v) }

// Weights are the weights of the rows with which Add adds them, for sums Σ c_i·x_i: c itself for float32; otherwise in
// the memory of s.
func (v View) Weights(c []float64, s *Space) []float64 { return v.form().weights(c, v, s) }

// Add sets dst_c += Σ_i a[c·n+i]·x_i for k classes, where each coefficient is a weight times any number, truncated to a
// multiple of unit. It may change the coefficients. Rows that are not float32 need a unit. Rows with a coefficient of 0
// are skipped: half of an SVM's, and all that a clip rule rejected.
func (v View) Add(dst, a []float64, k int, unit float64, s *Space) {
	v.form().add(dst, a, k, v, unit, s)
}

// Outer adds Σ_i v_i·v_iᵀ to the upper triangle of dst, whose rows are side apart, where v_i is a_i·x_i rounded toward
// zero to whole numbers. It returns scratch, which may have grown.
func (v View) Outer(dst []float64, side int, a []float64, scratch []float64) []float64 {
	return v.form().outer(dst, side, a, v, scratch)
}

// Floats is v with float32 in place of bytes or 16-bit numbers, in the memory of to.
func (v View) Floats(to *Block) View {
	if v.Coding() == (Coding{}) {
		return v
	}
	v.Numbers(to, v.From, v.To)
	return View{Block: to, To: v.Len()}
}

// part is rows i … j−1 of v.
func (v View) part(i, j int) View {
	if v.Rows != nil {
		v.Rows = v.Rows[i:j]
		return v
	}
	v.From, v.To = v.From+i, v.From+j
	return v
}

// next is the part of v's rows to come that is fetched during rows i … j−1.
func (v View) next(i, j int) [][]float32 {
	return v.Next[min(i, len(v.Next)):min(j, len(v.Next))]
}

// tile is the number of rows that all classes use before the next rows are loaded, so that rows come from a near cache
// k−1 times out of k.
const tile = 32

// grow is s with n elements of any content, reallocated only if it must be.
func grow(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}
