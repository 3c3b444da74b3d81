// Package secondorder holds what the second-order methods share: curvature of released Hessians, the
// constants of P4's analysis, and the state of a run of P4's methods (Run).
//
// Matrices are released Hessians H̃, stored whole: everything that is computed from them is
// post-processing (soundness.md, S-4f).
package secondorder

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Direct is the largest order for which Smallest takes the whole decomposition; above it
// Lanczos's is cheaper.
const Direct = 256

// errEigen is LAPACK's failure, which finite matrices do not see.
var errEigen = errors.New("secondorder: the eigenvalues of a matrix were not found")

// A Pair is the smallest eigenvalue of a matrix with a unit eigenvector. No eigenvalue is
// below Value − Slack; Slack is 0 where the whole decomposition was taken.
type Pair struct {
	Value  float64
	Vector []float64
	Slack  float64
}

// Smallest is the smallest eigenpair of h, a finite matrix of any order above 0. Up to order
// Direct it is LAPACK's; above it is Lanczos's to the tolerance, which fails with probability
// miss at most over the start vector.
func Smallest(h *mat.SymDense, tolerance, miss float64) (Pair, error) {
	if err := finite(h); err != nil {
		return Pair{}, err
	}
	d := h.SymmetricDim()
	if d > Direct {
		return lanczos(h, Iterations(d, norm(h), tolerance, miss), tolerance)
	}
	var e mat.EigenSym
	if !e.Factorize(h, true) {
		return Pair{}, errEigen
	}
	var q mat.Dense
	e.VectorsTo(&q)
	return Pair{Value: e.Values(nil)[0], Vector: mat.Col(nil, 0, &q)}, nil
}

// Iterations bounds the steps that Lanczos's method takes to the smallest eigenvalue of a matrix of
// order d and norm at most norm, to the tolerance, from a start uniform on the
// sphere, but for a probability of miss: with k steps the error is above a fraction ε of the
// spectrum's width, which is at most 2·norm, with probability at most
// 1.648·√d·e^(−√ε(2k−1)) (Kuczyński and Woźniakowski 1992, Theorem 4.2; P4 Lemma C.1).
func Iterations(d int, norm, tolerance, miss float64) int {
	if !(norm > 0) {
		return 1
	}
	k := math.Ceil(0.5 + math.Log(1.648*math.Sqrt(float64(d))/miss)/(2*math.Sqrt(tolerance/(2*norm))))
	if !(k < float64(d)) {
		return d // then it is exact
	}
	return max(1, int(k))
}

// norm bounds the spectral norm of h by its largest row sum or its Frobenius norm.
func norm(h *mat.SymDense) float64 {
	return math.Min(mat.Norm(h, 1), mat.Norm(h, 2)) // 2 is Frobenius's
}

func finite(h *mat.SymDense) error {
	d := h.SymmetricDim()
	if d < 1 {
		return errors.New("secondorder: a matrix of order 0")
	}
	for i := range d {
		for j := i; j < d; j++ {
			if v := h.At(i, j); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("secondorder: entry %d, %d of a matrix is no finite number", i, j)
			}
		}
	}
	return nil
}

// lanczos takes k steps from a start that is as good as random, each orthogonal to all before.
func lanczos(h *mat.SymDense, k int, tolerance float64) (Pair, error) {
	d := h.SymmetricDim()
	basis := make([]*mat.VecDense, 0, k)
	tri := mat.NewSymDense(k, nil)
	v := start(h)
	for i := range k {
		basis = append(basis, v)
		next := mat.NewVecDense(d, nil)
		next.MulVec(h, v)
		tri.SetSym(i, i, mat.Dot(next, v))
		for range 2 { // twice is enough
			for _, b := range basis {
				next.AddScaledVec(next, -mat.Dot(next, b), b)
			}
		}
		beta := next.Norm(2)
		if i+1 == k {
			break
		}
		if beta <= 1e-14*norm(h) { // the basis spans what h can reach from the start
			k = i + 1
			break
		}
		tri.SetSym(i, i+1, beta)
		next.ScaleVec(1/beta, next)
		v = next
	}
	var e mat.EigenSym
	if !e.Factorize(tri.SliceSym(0, k), true) {
		return Pair{}, errEigen
	}
	var q mat.Dense
	e.VectorsTo(&q)
	p := make([]float64, d)
	for i, b := range basis {
		floats.AddScaled(p, q.At(i, 0), b.RawVector().Data)
	}
	floats.Scale(1/floats.Norm(p, 2), p)
	pair := Pair{Value: e.Values(nil)[0], Vector: p}
	if k < d {
		pair.Slack = tolerance
	}
	return pair, nil
}

// start is a direction that is as good as drawn at random: normal coordinates, by twelve uniform numbers
// each, from SplitMix64 at SHA-256 of what h has beside the diagonal. A direction that is the same for all matrices
// would be at right angles to some table's curvature. What a public regularizer adds
// to h is on the diagonal, so that other machines, which round it in another way, find the same start.
func start(h *mat.SymDense) *mat.VecDense {
	d := h.SymmetricDim()
	hash, b := sha256.New(), make([]byte, 0, 8*d)
	for i := range d {
		b = b[:0]
		for j := i + 1; j < d; j++ {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(h.At(i, j)))
		}
		hash.Write(b)
	}
	v, state := mat.NewVecDense(d, nil), binary.LittleEndian.Uint64(hash.Sum(nil))
	for j := range d {
		sum := -6.0
		for range 12 {
			state += 0x9e3779b97f4a7c15
			z := state
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			sum += float64((z^z>>31)>>11) * 0x1p-53
		}
		v.SetVec(j, sum)
	}
	v.ScaleVec(1/v.Norm(2), v)
	return v
}
