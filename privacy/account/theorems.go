package account

import (
	_ "embed"

	"github.com/sottodp/sotto/privacy"
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
	{"non-private", "A look without noise", "definition"},
	{"pure-composition", "Composition of pure ε", "Dwork, McSherry, Nissim, Smith 2006"},
	{"pure-laplace", "Laplace noise is 1/b-private", "Dwork, McSherry, Nissim, Smith 2006"},
	{"pure-delta", "δ of a pure release", "Kairouz, Oh, Viswanath 2015"},
	{"poisson-pure", "Poisson sampling of a pure release", "Li, Qardaji, Su 2012; Balle, Barthe, Gaboardi 2018"},
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
	{"classic-conversion", "Classic conversion to (ε, δ)", "Mironov 2017; Bun, Steinke 2016"},
	{"improved-conversion", "Improved conversion to (ε, δ)", "Canonne, Kamath, Steinke 2020"},
	{"best-order", "The search for the best order", "own proof"},
	{"best", "The least of several bounds", "own proof"},
	{"pld-pairs", "Dominating pairs", "Zhu, Dong, Wang 2022; Kairouz, Oh, Viswanath 2015; own proof"},
	{"pld-fixed", "Samples of fixed size under replace-one", "Zhu, Dong, Wang 2022; Balle, Barthe, Gaboardi 2018"},
	{"pld-mixture", "Releases of different kinds on one sample", "own proof"},
	{"pld-line", "The integral along a vertical line", "own proof; Alghamdi, Gomez, Asoodeh, Calmon, Kosut, Sankar 2023"},
	{"pld-discretisation", "Privacy-loss distributions on a grid", "Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022; own proofs"},
	{"pld-composition", "Composition by Fourier transforms", "Koskela, Jälkö, Honkela 2020; Gopi, Lee, Wutschitz 2021; own proof"},
	{"pld-truncation", "Window, tails and rounding", "Gopi, Lee, Wutschitz 2021; own proof"},
	{"plan-prefix", "A prefix of a certified plan", "own proof"},
	{"filters", "Filters for adaptive spending", "Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Lécuyer 2021; Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023"},
	{"filter-orders", "A filter of several orders", "Feldman, Zrnic 2021; own proof"},
	{"tally", "Runs that hold and settle", "own proof"},
}

// Theorems lists what the figure of accountant a for event e rests on, in the
// order of PROOFS.md. It is empty for an event that a has no theorem for.
func Theorems(e privacy.Event, a Accountant) []Theorem {
	used := map[string]bool{}
	if e == nil || a == nil || e.Validate() != nil {
		return nil
	}
	if look, found := nonPrivate(e); found {
		mark(used, a, look)
	} else {
		_ = leaves(e, 1, func(leaf privacy.Event, _ float64) error {
			mark(used, a, leaf)
			return nil
		})
	}
	if !supported(e, a) {
		return nil
	}
	used["adjacency"] = true
	var list []Theorem
	for _, t := range theorems {
		if used[t.Anchor] {
			list = append(list, t)
		}
	}
	return list
}

// supported says whether a has a theorem for e under some relation.
func supported(e privacy.Event, a Accountant) bool {
	_, err := a.Loss(e, privacy.AddRemove)
	if err != nil {
		_, err = a.Loss(e, privacy.ReplaceOne)
	}
	return err == nil
}

// mark notes the theorems of one release.
func mark(used map[string]bool, a Accountant, leaf privacy.Event) {
	use := func(anchors ...string) {
		for _, anchor := range anchors {
			used[anchor] = true
		}
	}
	if _, ok := leaf.(privacy.NonPrivate); ok {
		use("non-private")
		return
	}
	switch a := a.(type) {
	case Best:
		for _, c := range candidates {
			if supported(leaf, c) {
				mark(used, c, leaf)
			}
		}
		use("best")
	case Pure:
		use("pure-composition", "pure-delta")
		markPure(used, leaf)
	case GDP:
		use("gaussian-collapse", "gaussian-exact")
	case ZCDP:
		use("zcdp-composition")
		conversion(used, a.Classic)
		switch leaf.(type) {
		case privacy.Gaussian:
			use("gaussian-zcdp")
		case privacy.Laplace:
			use("laplace-zcdp")
		case privacy.PureDP:
			use("pure-zcdp")
		}
	case PLD:
		use("pld-pairs", "pld-line", "pld-discretisation", "pld-composition", "pld-truncation")
		switch leaf := leaf.(type) {
		case privacy.Gaussian:
			use("gaussian-collapse", "gaussian-exact")
		case privacy.PoissonSampled:
			markInner(used, leaf.Of)
		case privacy.FixedSampled:
			use("pld-fixed")
			markInner(used, leaf.Of)
		default:
			use("pure-composition", "pure-delta")
			markPure(used, leaf)
		}
	case RDP:
		use("rdp-composition")
		conversion(used, a.Classic)
		if len(a.Orders) == 0 {
			use("best-order")
		}
		switch leaf := leaf.(type) {
		case privacy.Gaussian:
			use("gaussian-rdp")
		case privacy.Laplace:
			use("laplace-rdp")
		case privacy.PureDP:
			use("pure-rdp")
		case privacy.PoissonSampled:
			if _, ok := gaussianPrecision(leaf.Of); ok {
				use("gaussian-collapse", "poisson-gaussian")
			} else {
				use("pure-rdp")
				markPure(used, leaf)
			}
		}
	}
}

// markInner notes what the pair of all that is asked of one sample rests on.
func markInner(used map[string]bool, inner privacy.Event) {
	if _, ok := gaussianPrecision(inner); ok {
		used["gaussian-collapse"] = true
	} else if _, ok := onlyLeaf(inner); !ok {
		used["pld-mixture"] = true
	}
}

func conversion(used map[string]bool, classic bool) {
	if classic {
		used["classic-conversion"] = true
	} else {
		used["improved-conversion"] = true
	}
}

// markPure notes what the pure ε of a release rests on.
func markPure(used map[string]bool, leaf privacy.Event) {
	switch leaf := leaf.(type) {
	case privacy.Laplace:
		used["pure-laplace"] = true
	case privacy.PoissonSampled:
		used["poisson-pure"], used["pure-composition"] = true, true
		_ = leaves(leaf.Of, 1, func(inner privacy.Event, _ float64) error {
			markPure(used, inner)
			return nil
		})
	}
}
