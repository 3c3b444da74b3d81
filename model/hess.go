package model

import (
	"math"

	"github.com/sottodp/sotto/internal/kern"
)

var _ CurvedPass = &glmPass{}

// curves computes h at its first use.
func (p *glmPass) curves() []float64 {
	if !p.curved {
		p.h = grow(p.h, len(p.z))
		p.link.curve(p.h, p.z, p.y)
		p.curved = true
	}
	return p.h
}

// HessNorm: ‖h·x·xᵀ‖ = h·‖x‖².
func (p *glmPass) HessNorm(dst []float64) {
	needLength("dst", len(dst), len(p.z))
	p.uncentered()
	RowNorms(dst, p.view, 2)
	for i, h := range p.curves() {
		dst[i] = up(h, up(dst[i], dst[i]))
	}
}

// AddHess: v = √(c·h)·x, and a scaled row is rounded as its outer product is to be: each entry
// of v·vᵀ is then at most what it was. The factor is computed a little too small, by more than
// its roundings and that of its product with x: 2⁻⁴⁰ of it.
func (p *glmPass) AddHess(dst, c []float64, unit float64) {
	p.uncentered()
	d := p.view.Block.Dim
	side := kern.Padded(d)
	needLength("dst", len(dst), side*side)
	needLength("c", len(c), len(p.z))
	if unit == 0 {
		panic("model: Hessians are summed in a unit")
	}
	needUnit(unit)
	p.a = grow(p.a, len(c))
	inv := 1 / unit
	for i, h := range p.curves() {
		p.a[i] = 0
		if t := math.Sqrt(c[i]*h) * (1 - 0x1p-40) * inv; c[i]*h > 0x1p-1000 && t <= math.MaxFloat64 {
			p.a[i] = t
		}
	}
	p.v = p.view.Floats(&p.ws.floats).Outer(dst, side, p.a, p.v)
}
