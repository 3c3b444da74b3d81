package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
)

// A pool takes the largest number of each window, channel by channel, the first of equal ones; or with mean, the mean.
type pool struct {
	window
	mean bool
}

// parsePool reads "max 2 stride 1" or "mean 2x3"; without a stride windows lie side by side.
func parsePool(text string, image shape) ([]layer, error) {
	words := strings.Fields(text)
	why := "too short"
	if len(words) > 1 {
		w, rest, err := parseWindow(words[1:], image, 0)
		switch {
		case err != nil:
			why = err.Error()
		case len(rest) > 0 || w.pad > 0:
			why = "what is behind the window"
		default:
			return []layer{&pool{w, words[0] == "mean"}}, nil
		}
	}
	return nil, fmt.Errorf("model: layers: found %q: %s; write max or mean, window, then stride, as in max 2x2 stride 1",
		text, why)
}

func (p *pool) in() int              { return p.image.size() }
func (p *pool) params() int          { return 0 }
func (p *pool) start(float64) []Span { return nil }
func (p *pool) inPlace() bool        { return false }

func (p *pool) out() shape {
	rows, cols := p.places()
	return shape{rows, cols, p.image.channels}
}

// taken calls f for each pixel k of the window and each run of adjacent positions that use it: where the run
// begins in a record's output and input, and its length.
func (p *pool) taken(f func(k int32, out, in, n int)) {
	rows, cols := p.places()
	c, run, runs := p.image.channels, cols*p.image.channels, 1
	if p.right > 1 {
		run, runs = c, cols
	}
	for k := range int32(p.height * p.width) {
		dy, dx := int(k)/p.width, int(k)%p.width
		for y := range rows {
			line := (y*p.down+dy)*p.image.width + dx
			for x := range runs {
				f(k, (y*cols+x)*c, (line+x*p.right)*c, run)
			}
		}
	}
}

type poolWorker[T number] struct {
	*pool
	n    int
	from []int32 // the pixel of the window that each output is of
}

func (p *poolWorker[T]) load([]float64) {}

func (p *poolWorker[T]) forward(out, in []T, n int) {
	p.n = n
	size, each := p.in(), p.out().size()
	p.from = grow(p.from, n*each)
	clear(p.from)
	for i := range n {
		z, from, a := out[i*each:(i+1)*each], p.from[i*each:(i+1)*each], in[i*size:(i+1)*size]
		p.taken(func(k int32, at, in, n int) {
			switch {
			case k == 0:
				copy(z[at:at+n], a[in:])
			case p.mean:
				kern.Add(z[at:at+n], a[in:])
			default:
				kern.Highest(z[at:at+n], from[at:], a[in:], k)
			}
		})
	}
	p.share(out[:n*each])
}

// share divides the sums of windows by their pixels.
func (p *poolWorker[T]) share(v []T) {
	if !p.mean {
		return
	}
	s := 1 / T(p.height*p.width)
	for i := range v {
		v[i] *= s
	}
}

func (p *poolWorker[T]) backward(back, err []T) {
	if back == nil {
		return
	}
	size, each := p.in(), p.out().size()
	clear(back[:p.n*size])
	for i := range p.n {
		to, d, from := back[i*size:(i+1)*size], err[i*each:(i+1)*each], p.from[i*each:(i+1)*each]
		p.taken(func(k int32, at, in, n int) {
			if p.mean {
				kern.Add(to[in:in+n], d[at:])
			} else {
				kern.AddWhere(to[in:in+n], d[at:], from[at:], k)
			}
		})
	}
	p.share(back[:p.n*size])
}

func (p *poolWorker[T]) addNorm([]float64, int)            {}
func (p *poolWorker[T]) addGrad(_, _ []float64, _ float64) {}
func (p *poolWorker[T]) addBound(_, _ []float64)           {}

// reach: a pixel gets the sum of overlap errors at most, each of which goes to one pixel of its window, so that ‖back‖²
// ≤ overlap·‖δ‖²; or, for the mean of k pixels, to all of them over k, ‖back‖² ≤ overlap·k·‖δ‖²/k².
func (p *poolWorker[T]) reach(delta []float64) {
	relative, least := rounding[T]()
	square := p.overlap()
	if p.mean {
		square /= float64(p.height * p.width)
	}
	norm := math.Sqrt(square) * (1 + 2*(p.overlap()+8)*relative)
	below := 4 * least * p.overlap() * math.Sqrt(float64(p.in()))
	for i, v := range delta {
		delta[i] = up(v, norm) + below
	}
}
