package model

import (
	"fmt"
	"math"
	"strings"
)

// A groupNorm brings each group of a record's channels to mean 0 and variance 1 (Wu and He 2018), then
// scales and shifts each channel by 1 + γ and β, its parameters, γ first, which begin at 0:
//
//	x̂ = (x − μ)/√(v + 10⁻⁵),  z = (1 + γ)·x̂ + β
//	∂ℓ/∂γ_c = Σ_p δ·x̂,  ∂ℓ/∂β_c = Σ_p δ
//	∂ℓ/∂x = (e − mean e − x̂·mean(e·x̂))/√(v + 10⁻⁵),  e = (1 + γ)·δ, means over the group
//
// Means and variances are those of one record: a function of that record alone, unlike a batch's.
type groupNorm struct {
	image  shape
	groups int
}

const normEpsilon = 1e-5

// parseGroupNorm reads a normalization and its activation, as in "group 4 tanh".
func parseGroupNorm(text string, image shape) ([]layer, error) {
	words := strings.Fields(text)
	groups, act := 0, ident
	var err error
	if len(words) > 1 {
		groups, err = size(words[1], 1)
	}
	if len(words) > 2 {
		act = words[2]
	}
	if err != nil || len(words) < 2 || len(words) > 3 || !isActivation(act) || image.channels%groups != 0 {
		return nil, fmt.Errorf("model: layers: found %q; write group, a number of groups that divides the %d channels, and linear (the default), relu or tanh, as in group %d tanh", text, image.channels, image.channels)
	}
	return withActivation(&groupNorm{image, groups}, act), nil
}

func (g *groupNorm) in() int              { return g.image.size() }
func (g *groupNorm) out() shape           { return g.image }
func (g *groupNorm) params() int          { return 2 * g.image.channels }
func (g *groupNorm) start(float64) []Span { return []Span{{g.params(), 0}} }
func (g *groupNorm) inPlace() bool        { return false }

// members is the numbers of a group.
func (g *groupNorm) members() int { return g.in() / g.groups }

type groupNormWorker[T number] struct {
	*groupNorm
	w    []T // 1 + γ, β
	n    int
	hat  []T       // x̂
	inv  []float64 // 1/√(v + ε) of each row's groups
	err  []T
	mean []float64 // of groups
	also []float64

	grads           []T
	formed          bool
	figures, scaled []float64
}

func (g *groupNormWorker[T]) load(w []float64) {
	g.w = grow(g.w, len(w))
	convert(g.w, w)
	for c := range g.image.channels {
		g.w[c] = T(1 + w[c])
	}
}

func (g *groupNormWorker[T]) forward(out, in []T, n int) {
	size, ch, each, count := g.in(), g.image.channels, g.image.channels/g.groups, float64(g.members())
	g.n = n
	g.hat, g.inv = grow(g.hat, n*size), grow(g.inv, n*g.groups)
	g.mean, g.also = grow(g.mean, g.groups), grow(g.also, g.groups)
	for i := range n {
		row, inv := in[i*size:(i+1)*size], g.inv[i*g.groups:(i+1)*g.groups]
		clear(g.mean)
		clear(inv)
		for p := 0; p < size; p += ch {
			for c, v := range row[p : p+ch] {
				g.mean[c/each] += float64(v)
			}
		}
		for k := range g.mean {
			g.mean[k] /= count
		}
		for p := 0; p < size; p += ch {
			for c, v := range row[p : p+ch] {
				d := float64(v) - g.mean[c/each]
				inv[c/each] += d * d
			}
		}
		for k, v := range inv {
			inv[k] = 1 / math.Sqrt(v/count+normEpsilon)
		}
		for p := 0; p < size; p += ch {
			for c, v := range row[p : p+ch] {
				hat := T((float64(v) - g.mean[c/each]) * inv[c/each])
				g.hat[i*size+p+c] = hat
				out[i*size+p+c] = g.w[c]*hat + g.w[ch+c]
			}
		}
	}
}

func (g *groupNormWorker[T]) backward(back, err []T) {
	g.err, g.formed = err, false
	if back == nil {
		return
	}
	size, ch, each, count := g.in(), g.image.channels, g.image.channels/g.groups, float64(g.members())
	for i := range g.n {
		clear(g.mean)
		clear(g.also)
		for p := i * size; p < (i+1)*size; p += ch {
			for c, v := range err[p : p+ch] {
				e := float64(v) * float64(g.w[c])
				g.mean[c/each] += e
				g.also[c/each] += e * float64(g.hat[p+c])
			}
		}
		for k := range g.mean {
			g.mean[k] /= count
			g.also[k] /= count
		}
		for p := i * size; p < (i+1)*size; p += ch {
			for c, v := range err[p : p+ch] {
				e := float64(v) * float64(g.w[c])
				back[p+c] = T((e - g.mean[c/each] - float64(g.hat[p+c])*g.also[c/each]) * g.inv[i*g.groups+c/each])
			}
		}
	}
}

// form sets grads to the rows' gradients.
func (g *groupNormWorker[T]) form() {
	if g.formed {
		return
	}
	g.formed = true
	size, ch := g.in(), g.image.channels
	g.grads = grow(g.grads, g.n*2*ch)
	clear(g.grads)
	for i := range g.n {
		to := g.grads[i*2*ch : (i+1)*2*ch]
		for p := i * size; p < (i+1)*size; p += ch {
			for c, v := range g.err[p : p+ch] {
				to[c] += v * g.hat[p+c]
				to[ch+c] += v
			}
		}
	}
}

func (g *groupNormWorker[T]) addNorm(dst []float64, p int) {
	g.form()
	addNorms(&g.figures, dst, g.grads, g.params(), p)
}

func (g *groupNormWorker[T]) addGrad(dst, weights []float64, unit float64) {
	g.form()
	if unit > 0 {
		addWhole(&g.scaled, dst, weights, g.grads, unit)
		return
	}
	k := g.params()
	for i, w := range weights {
		if w == 0 {
			continue
		}
		for j, v := range g.grads[i*k : (i+1)*k] {
			dst[j] += w * float64(v)
		}
	}
}

// addBound: ‖∂ℓ/∂γ‖² + ‖∂ℓ/∂β‖² ≤ ‖δ‖²·(max_c ‖x̂_c‖² + places), channel by channel.
func (g *groupNormWorker[T]) addBound(dst, delta []float64) {
	relative, least := rounding[T]()
	size, ch := g.in(), g.image.channels
	places := float64(size / ch)
	more := 1 + 2*(places+8)*relative
	below := 4 * least * places * math.Sqrt(float64(g.params()))
	square := grow(g.figures, ch)
	g.figures = square
	for i := range dst {
		clear(square)
		for p := i * size; p < (i+1)*size; p += ch {
			for c, v := range g.hat[p : p+ch] {
				square[c] += float64(v) * float64(v)
			}
		}
		top := 0.0
		for _, v := range square {
			top = max(top, v)
		}
		dst[i] = finite[T](math.Hypot(dst[i], up(delta[i], math.Sqrt(top+places)*more)+below))
	}
}

// reach multiplies by the greatest |1 + γ|·max(1, ‖x̂‖²/m)/√(v + ε) of all groups, m their members: e − mean e is a
// projection, and less x̂x̂ᵀ/m it is a symmetric matrix with eigenvalues from −‖x̂‖²/m to 1, whatever rounding made of
// x̂. The arithmetic is in float64, of m terms: 2⁻²⁰ covers it; then back is rounded.
func (g *groupNormWorker[T]) reach(delta []float64) {
	relative, least := rounding[T]()
	size, ch, each := g.in(), g.image.channels, g.image.channels/g.groups
	square := grow(g.also, g.groups)
	for i := range delta {
		clear(square)
		for p := i * size; p < (i+1)*size; p += ch {
			for c, v := range g.hat[p : p+ch] {
				square[c/each] += float64(v) * float64(v)
			}
		}
		top := 0.0
		for k, v := range square {
			gamma := 0.0
			for _, w := range g.w[k*each : (k+1)*each] {
				gamma = max(gamma, math.Abs(float64(w)))
			}
			top = max(top, gamma*max(1, v/float64(g.members()))*g.inv[i*g.groups+k])
		}
		delta[i] = up(delta[i], top*(1+2*relative+0x1p-20)) + least*math.Sqrt(float64(size))
	}
}
