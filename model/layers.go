package model

// A LayeredPass separates a gradient into one part for each layer with parameters, for per-layer clipping: there are
// Facts.Layers of them, and figures of rows are in order of the parts.
type LayeredPass interface {
	Pass
	// LayerNorms sets dst[k·Len()+i] to the ℓ2 norm of part k of ∇ℓ_i, as GradNorm does to that of all.
	LayerNorms(dst []float64)
	// AddLayers is AddGrad with a weight c[k·Len()+i] for each part.
	AddLayers(dst, c []float64, unit float64)
}

func (p *netPass[T]) LayerNorms(dst []float64) {
	needLength("dst", len(dst), p.m.facts.Layers*p.n)
	p.backward()
	clear(dst)
	for l, k := range p.workers {
		if p.m.layers[l].params() > 0 {
			k.addNorm(dst[:p.n], 2)
			p.cover(dst[:p.n])
			dst = dst[p.n:]
		}
	}
}

func (p *netPass[T]) AddLayers(dst, c []float64, unit float64) {
	needLength("dst", len(dst), p.m.Dim())
	needLength("c", len(c), p.m.facts.Layers*p.n)
	needUnit(unit)
	p.backward()
	for l, k := range p.workers {
		if p.m.layers[l].params() > 0 {
			k.addGrad(dst[p.m.offset[l]:p.m.offset[l+1]], c[:p.n], unit)
			c = c[p.n:]
		}
	}
}
