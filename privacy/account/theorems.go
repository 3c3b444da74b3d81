package account

import (
	_ "embed"
	"maps"
	"slices"
)

// Proofs is PROOFS.md: every theorem that a figure of this package rests on.
//
//go:embed PROOFS.md
var Proofs string

// A Theorem points into PROOFS.md.
type Theorem struct {
	Anchor string // of its section, without "#"
	Title  string
	Source string
}

// theorems is the one table of anchors.
var theorems = []Theorem{
	{"adjacency", "Neighbours and sensitivity", "definition"},
	{"parallel", "Parts of a divided table", "McSherry 2009; own proof"},
	{"shared", "Noise that owners share", "own proof"},
	{"retries", "Batches that are made once more", "own proof"},
	{"non-private", "An access without noise", "definition"},
	{"pure-composition", "Composition of pure ε", "Dwork, McSherry, Nissim, Smith 2006"},
	{"pure-laplace", "Laplace noise is 1/b-private", "Dwork, McSherry, Nissim, Smith 2006"},
	{"pure-delta", "δ of a pure release", "Kairouz, Oh, Viswanath 2015"},
	{"poisson-pure", "Poisson sampling of a pure release", "Li, Qardaji, Su 2012; Balle, Barthe, Gaboardi 2018"},
	{"fixed-pure", "A sample of fixed size of a pure release", "Balle, Barthe, Gaboardi 2018"},
	{"above-threshold", "AboveThreshold with Laplace noise", "Dwork, Roth 2014; Zhu, Wang 2020; own proof"},
	{"select", "A choice of bounded range",
		"Durfee, Rogers 2019; Dong, Durfee, Rogers 2020; Cesar, Rogers 2021; own proofs"},
	{"approximate", "(ε, δ) releases beside others", "Kairouz, Oh, Viswanath 2015; own proof"},
	{"zcdp-composition", "Composition of zCDP", "Bun, Steinke 2016"},
	{"gaussian-zcdp", "zCDP of Gaussian noise", "Bun, Steinke 2016"},
	{"laplace-zcdp", "zCDP of Laplace noise", "own proof; Harrison, Manurangsi 2026"},
	{"pure-zcdp", "zCDP of a pure release", "own proof; Steinke 2024"},
	{"gaussian-collapse", "Gaussians on the same records are one Gaussian", "Dong, Roth, Su 2022"},
	{"gaussian-exact", "δ(ε) of Gaussian noise", "Balle, Wang 2018"},
	{"rdp-composition", "Composition of Rényi divergences", "Mironov 2017"},
	{"gaussian-rdp", "Rényi divergence of Gaussian noise", "Mironov 2017"},
	{"laplace-rdp", "Rényi divergence of Laplace noise", "Mironov 2017"},
	{"pure-rdp", "Rényi divergence of a pure release", "Bun, Steinke 2016"},
	{"poisson-gaussian", "Poisson sampling of Gaussian noise", "Mironov, Talwar, Zhang 2019; Zhu, Dong, Wang 2022"},
	{"sampled-mixture", "A sample never costs more than the table", "own proof"},
	{"dominating-pairs", "Symmetric dominating pairs", "Zhu, Dong, Wang 2022; own proofs"},
	{"poisson-pair", "Poisson sampling of a dominating pair", "Zhu, Dong, Wang 2022"},
	{"fixed-pair", "Sampling a fixed number of records", "Zhu, Dong, Wang 2022; own proof"},
	{"poisson-replace", "Poisson samples under replace-one", "Zhu, Dong, Wang 2022; own proof"},
	{"poisson-replace-sum", "Noisy sums on Poisson samples under replace-one", "own proof"},
	{"allocation", "Random allocation", "Feldman, Shenfeld 2025, 2026; own proof"},
	{"poisson-lemma", "Poisson sampling of any release", "Zhu, Wang 2019"},
	{"fixed-lemma", "Sampling a fixed number of records: any release", "Wang, Balle, Kasiviswanathan 2019"},
	{"tuned", "The best of a random number of releases", "Liu, Talwar 2019; Papernot, Steinke 2022"},
	{"classic-conversion", "Classic conversion to (ε, δ)", "Mironov 2017; Bun, Steinke 2016"},
	{"improved-conversion", "Improved conversion to (ε, δ)", "Canonne, Kamath, Steinke 2020"},
	{"best-order", "The search for the best order", "own proof"},
	{"best", "The least of several bounds", "own proof"},
	{"trade-off", "Every attack at once: trade-off curves and μ",
		"Wasserman, Zhou 2010; Dong, Roth, Su 2022; Kaissis, Kolek, Balle, Hayes, Rueckert 2024; own proof"},
	{"pld-pairs", "Dominating pairs", "Zhu, Dong, Wang 2022; Kairouz, Oh, Viswanath 2015; own proof"},
	{"pld-fixed", "Samples of fixed size under replace-one", "Zhu, Dong, Wang 2022; Balle, Barthe, Gaboardi 2018"},
	{"pld-mixture", "Releases of different kinds on one sample", "own proof"},
	{"pld-line", "The integral along a vertical line", "own proof; Alghamdi, Gomez, Asoodeh, Calmon, Kosut, Sankar 2023"},
	{"pld-discretisation", "Privacy-loss distributions on a grid",
		"Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022; own proofs"},
	{"pld-geometric", "Losses of very different size", "own proof"},
	{"pld-least", "What an event costs at least", "own proof"},
	{"pld-composition", "Composition by Fourier transforms",
		"Koskela, Jälkö, Honkela 2020; Gopi, Lee, Wutschitz 2021; own proof"},
	{"pld-truncation", "Window, tails and rounding", "Gopi, Lee, Wutschitz 2021; own proof"},
	{"plan-prefix", "Part of a certified plan", "own proof"},
	{"filters", "Filters for adaptive spending",
		"Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Lécuyer 2021; Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023"},
	{"filter-orders", "A filter of several orders", "Feldman, Zrnic 2021; own proof"},
	{"filtered", "A whole run on a filter", "own proof"},
	{"tally", "Runs that hold and settle", "own proof"},
	{"basic-composition", "Runs whose ε and δ add up", "Vadhan, Zhang 2023; Lyu 2022; own proof"},
}

// Basis lists what a loss that an accountant of this package returned rests on, in
// the order of PROOFS.md.
func Basis(l Loss) []Theorem {
	used := map[string]bool{"adjacency": true}
	mark(used, l)
	var list []Theorem
	for _, t := range theorems {
		if used[t.Anchor] {
			list = append(list, t)
		}
	}
	return list
}

// mark adds the theorems that a loss rests on.
func mark(used map[string]bool, l Loss) {
	switch l := l.(type) {
	case infinite:
		used["non-private"] = true
	case bound:
		for _, anchor := range l.rests {
			used[anchor] = true
		}
		mark(used, l.rest)
	case mostLoss:
		used["parallel"] = true
		for _, one := range l {
			mark(used, one)
		}
	case leastLoss:
		used["best"] = true
		for _, one := range l {
			mark(used, one)
		}
	}
}

// anchors collects what a figure rests on, each section once.
type anchors map[string]bool

func (s anchors) note(rests ...string) {
	for _, r := range rests {
		s[r] = true
	}
}

func (s anchors) list() []string { return slices.Sorted(maps.Keys(s)) }
