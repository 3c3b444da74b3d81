package gossip

import (
	"iter"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Weights returns the Metropolis weights of the edges of one round, which every node can compute from
// these edges alone: w_ij = 1/(1 + max(d_i, d_j)), d the number of edges at a node (algorithms.md §4.2).
// A node's own weight is 1 − Σ_j w_ij ≥ 1/(1+d_i). Any subset of the edges with these weights is a doubly
// stochastic matrix, too.
func Weights(edges []Edge) []float64 {
	degree := map[int]int{}
	for _, e := range edges {
		degree[e[0]]++
		degree[e[1]]++
	}
	w := make([]float64, len(edges))
	for k, e := range edges {
		w[k] = 1 / float64(1+max(degree[e[0]], degree[e[1]]))
	}
	return w
}

// Matrix returns the mixing matrix W of one round on n nodes.
func Matrix(n int, edges []Edge) *mat.SymDense {
	m := mat.NewSymDense(n, nil)
	for i := range n {
		m.SetSym(i, i, 1)
	}
	for k, w := range Weights(edges) {
		i, j := edges[k][0], edges[k][1]
		m.SetSym(i, j, w)
		m.SetSym(i, i, m.At(i, i)-w)
		m.SetSym(j, j, m.At(j, j)-w)
	}
	return m
}

// Beta returns the root mean square, over the rounds, of the share of the nodes' disagreement that a
// round leaves: β of P3 (4), the root of the second largest eigenvalue of the mean of WᵀW. It is at most
// 1; the spectral gap is 1 − β. It takes time in n³.
func Beta(n int, rounds iter.Seq[[]Edge]) float64 {
	sum, count := mat.NewSymDense(n, nil), 0
	var touched []int
	for edges := range rounds {
		count++
		// W is the unit matrix except for nodes with an edge: only that part is multiplied.
		at := map[int]int{}
		touched = touched[:0]
		for _, e := range edges {
			for _, i := range e {
				if _, ok := at[i]; !ok {
					at[i] = len(touched)
					touched = append(touched, i)
				}
			}
		}
		if len(touched) == 0 {
			continue
		}
		local := make([]Edge, len(edges))
		for k, e := range edges {
			local[k] = Edge{at[e[0]], at[e[1]]}
		}
		var square mat.SymDense
		square.SymOuterK(1, Matrix(len(touched), local))
		for a, i := range touched {
			for b, j := range touched[:a+1] {
				v := square.At(a, b)
				if a == b {
					v--
				}
				sum.SetSym(i, j, sum.At(i, j)+v)
			}
		}
	}
	for i := range n {
		for j := range i + 1 {
			// Without the mean's own direction, whose eigenvalue is 1.
			v := sum.At(i, j)/float64(max(1, count)) - 1/float64(n)
			if i == j {
				v++
			}
			sum.SetSym(i, j, v)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sum, false) {
		return 1
	}
	values := eigen.Values(nil)
	return math.Sqrt(min(1, max(0, values[len(values)-1])))
}
