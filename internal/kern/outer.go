package kern

// AddOuter adds Σ_q v_qᵀ·b_q to C, of m rows and n columns, ldc apart: v_q is row q of x, of m values, stride apart,
// times a_q and rounded toward zero to whole numbers as by Whole, or with round = false only multiplied, and 0 where
// a_q is 0. b has len(a) rows of n finite numbers, ldb apart. As long as the magnitudes of products of whole numbers in
// an element sum up to less than 2⁵³, and C to it, the sum is exact, whatever set of kernels.
//
// Where there are kernels for it, numbers of x that are 0, eight side by side, cost nothing.
func AddOuter[T float](c []float64, ldc int, a []float64, x []T, stride, m int, b []float64, ldb, n int, round bool) {
	k := len(a)
	needMatrix("X", len(x), stride, k, m)
	needMatrix("B", len(b), ldb, k, n)
	needMatrix("C", len(c), ldc, m, n)
	if m == 0 || n == 0 || k == 0 {
		return
	}
	t := tilers64.Get().(*tiler[float64])
	defer tilers64.Put(t)
	mr, nr, one := tileSize[float64]()
	block := termsOf(k)
	for j := 0; j < n; j += width {
		cols := min(width, n-j)
		for p := 0; p < k; p += block {
			terms := min(block, k-p)
			t.pack(b[p*ldb+j:], ldb, terms, cols, nr, one)
			for i := 0; i < m; i += height {
				rows := min(height, m-i)
				for s := 0; s < rows; s += mr {
					t.count[s/mr] = wholePanel(t, s, min(mr, rows-s), mr, a[p:p+terms], x[p*stride+i+s:], stride, round)
				}
				t.block(rows, cols, terms, t.a[:], 0, true, c[i*ldc+j:], ldc, mr, nr, one)
			}
		}
	}
}

// wholePanel makes the panel of A that begins with row s and has there rows. It returns how many terms it has: all,
// unless it lists them.
func wholePanel[T float](t *tiler[float64], s, there, mr int, a []float64, x []T, stride int, round bool) int {
	terms := len(a)
	if there == mr {
		if n, ok := wholePanelFast(t, s, a, x, stride, round); ok {
			return n
		}
	}
	for q, aq := range a {
		to := t.a[s*terms+q*mr:][:mr]
		clear(to)
		if aq == 0 {
			continue
		}
		for r, v := range x[q*stride:][:there] {
			if round {
				to[r] = whole(aq, float64(v))
			} else {
				to[r] = aq * float64(v)
			}
		}
	}
	return terms
}

// GemmSparse is Gemm of float32 without transposition, for B of finite numbers and A with many zeros: where there are
// kernels for it, terms that are 0 in eight rows of A cost nothing. Elements are those of Gemm, except perhaps the sign
// of a 0.
func GemmSparse(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	mr, nr, one := tileSize[float32]()
	if n < one || m < mr || use != avx512 {
		Gemm(false, false, m, n, k, a, lda, b, ldb, c, ldc)
		return
	}
	needMatrix("A", len(a), lda, m, k)
	needMatrix("B", len(b), ldb, k, n)
	needMatrix("C", len(c), ldc, m, n)
	t := tilers32.Get().(*tiler[float32])
	defer tilers32.Put(t)
	block := termsOf(k)
	for j := 0; j < n; j += width {
		cols := min(width, n-j)
		for p := 0; p < k; p += block {
			terms := min(block, k-p)
			t.pack(b[p*ldb+j:], ldb, terms, cols, nr, one)
			whole := m - m%mr
			for i := 0; i < whole; i += height {
				rows := min(height, whole-i)
				for s := 0; s < rows; s += mr {
					if t.count[s/mr] = listTerms(t.list[s/mr*depth:], a[(i+s)*lda+p:], lda, terms); t.count[s/mr] > terms*7/8 {
						t.count[s/mr] = terms // a list costs more than it saves
					}
				}
				t.block(rows, cols, terms, a[i*lda+p:], lda, true, c[i*ldc+j:], ldc, mr, nr, one)
			}
			if whole < m {
				row := depth + gap
				for q := range m - whole {
					copy(t.a[q*row:], a[(whole+q)*lda+p:][:terms])
				}
				t.block(m-whole, cols, terms, t.a[:], row, false, c[whole*ldc+j:], ldc, mr, nr, one)
			}
		}
	}
}
