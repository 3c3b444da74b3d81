package p0

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/paper"
)

// P0's own figures: ε of its experiments on MNIST and CIFAR-10.
var printed = []float64{1.0379, 0.9580}

// claims judges the paper.
func (r *Report) claims() (c paper.Claims) {
	for i, e := range r.Epsilons {
		least := math.Inf(1)
		for _, s := range e.Sound {
			least = min(least, s.Value)
		}
		c.Add("Figure 1", []string{"epsilon-mnist", "epsilon-cifar10"}[i], fmt.Sprintf("The training is about (%.4f, 1e-5)-DP.", printed[i]),
			math.Abs(e.Claimed-printed[i]) < 1e-4 && least <= e.Claimed, "%.4f by its orders; Sotto: %.4f", e.Claimed, least)
	}
	models := []string{linear, network}
	for _, t := range r.Tables {
		if t == "synthetic" {
			continue
		}
		falls, all, least := 0, 0, 1.0
		for _, name := range models {
			for _, k := range r.find(t, name, gc) {
				all++
				least = min(least, Last(k.Clipped))
				if Last(k.Clipped) <= k.Clipped[0] {
					falls++
				}
			}
		}
		c.Add("§6.1", "clipping-falls-"+slug(t), "In most cases the clipping frequency decreases as the training accuracy goes up.", 2*falls > all, "%d of %d clip norms", falls, all)
		c.Add("§6.1", "clipping-vanishes-"+slug(t), "With the right clip norm the clipping frequency becomes close to 0.", least <= 0.05, "least: %.3f of the rows", least)
	}
	for _, k := range r.find("MNIST", network, gc) {
		if k.Clip >= 20 {
			first, last := k.Clipped[0], Last(k.Clipped)
			c.Add("§6.1", fmt.Sprintf("mlp-stays-clipped-%v", k.Clip), "On MNIST the clipping frequency of the MLP is small at first and then stays near 15 %.",
				last >= 0.1 && last <= 0.2, "C = %v: %.3f after one epoch, %.3f in the end", k.Clip, first, last)
		}
	}
	for _, name := range models {
		for _, clip := range compared {
			says, most := "Value clipping loses about 2 % of the testing accuracy.", 0.03
			if name == network {
				says, most = "Value clipping loses 2 to 3 % of the testing accuracy, with C = 10 about 4 %.", 0.05
			}
			loss, own := r.gap(name, vcOld, clip), r.gap(name, vc, clip)
			id := fmt.Sprintf("%s-%v", slug(name), clip)
			c.Add("§6.2", "vc-loses-"+id, says, loss >= 0.01 && loss <= most, "%.4f", loss)
			c.Add("", "tighter-wins-"+id, "Tighter bounds win some of it back (S-0b).", own < loss, "the loss is %.4f in place of %.4f", own, loss)
		}
		c.Add("§6.2", "small-clip-loses-more-"+slug(name), "The gap is more obvious when the clip norm is small.", r.gap(name, vcOld, 10) > r.gap(name, vcOld, 40), "%.4f at C = 10, %.4f at C = 40", r.gap(name, vcOld, 10), r.gap(name, vcOld, 40))
		low, high := r.budgetGap(name, vcOld, r.Size.Epsilons[0]), r.budgetGap(name, vcOld, Last(r.Size.Epsilons))
		c.Add("Figure 5", "small-epsilon-loses-more-"+slug(name), "The gap grows as ε becomes smaller.", low > high, "%.4f at ε = %v, %.4f at ε = %v; with tighter bounds %.4f and %.4f", low, r.Size.Epsilons[0], high, Last(r.Size.Epsilons),
			r.budgetGap(name, vc, r.Size.Epsilons[0]), r.budgetGap(name, vc, Last(r.Size.Epsilons)))
	}
	worst := 0.0
	for i, k := range r.find("synthetic", linear, gc) {
		worst = max(worst, math.Abs(Last(r.find("synthetic", linear, vcOld)[i].Loss)/Last(k.Loss)-1))
	}
	c.Add("Figure 4", "regression-agrees", "On the synthetic regression value clipping does as gradient clipping: the bound is exact.", worst < 0.1, "losses differ by a factor of at most 1 + %.3g", worst)
	for _, name := range models {
		of := func(kind string) float64 { return r.time(name, kind).Ratio }
		id := slug(name)
		c.Add("§6.2", "vc-near-sgd-"+id, "Value clipping is slightly slower than SGD.", of(vc) < 1.5, "%.2f × SGD", of(vc))
		c.Add("§6.2", "vc-faster-than-gc-"+id, "Value clipping is faster than gradient clipping.", of(vc) < of(gc), "%.2f and %.2f × SGD", of(vc), of(gc))
		c.Add("§6.2", "micro-slowest-"+id, "Micro-batches are the slowest.", of(micro) > max(of(gc), of(vc)), "%.1f × SGD", of(micro))
	}
	return c
}

// gap is how much less of the test rows a kind gets right than gradient clipping does.
func (r *Report) gap(name, kind string, clip float64) float64 {
	return r.at(name, gc, clip) - r.at(name, kind, clip)
}

// at is the accuracy on MNIST's test rows in the end.
func (r *Report) at(name, kind string, clip float64) float64 {
	for _, c := range r.find("MNIST", name, kind) {
		if c.Clip == clip {
			return Last(c.Test)
		}
	}
	return math.NaN()
}

// budgetGap is the gap of Figure 5 at that ε and δ = 1e-5.
func (r *Report) budgetGap(name, kind string, epsilon float64) float64 {
	at := func(kind string) float64 {
		for _, c := range r.Curves {
			if c.Model == name && c.Kind == kind && c.Epsilon == epsilon && c.Delta == delta {
				return Last(c.Test)
			}
		}
		return math.NaN()
	}
	return at(gc) - at(kind)
}

// find is the runs of Figures 1 to 4 by their clip norms, ascending.
func (r *Report) find(table, name, kind string) (list []*Curve) {
	for _, c := range r.Curves {
		if c.Table == table && c.Model == name && c.Kind == kind && c.Epsilon == 0 {
			list = append(list, c)
		}
	}
	return list
}

func (r *Report) time(name, kind string) Time {
	for _, t := range r.Times {
		if t.Model == name && t.Kind == kind {
			return t
		}
	}
	return Time{}
}
