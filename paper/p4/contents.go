package p4

import (
	_ "embed"

	"github.com/sottodp/sotto/paper"
)

//go:embed record.json
var record []byte

// of is the paper, as arXiv has it.
var of = paper.Publication{Key: "gao2023differentially", Authors: []string{"Changyu Gao", "Stephen J. Wright"},
	Title: "Differentially Private Optimization for Smooth Nonconvex ERM", Year: 2023, ArXiv: "2302.04972"}

const (
	proofs = "privacy/account/PROOFS.md"
	second = "method/secondorder/"
)

var contents = []paper.Item{
	{Name: "Algorithm 1", Says: "OPT, short steps", Where: []string{"method/opt.go#OPT", "docs/methods/opt.md"}},
	{Name: "Algorithm 2", Says: "private search for a step size", Where: []string{second + "run.go#Run.Along",
		"privacy/mech/PROOFS.md#search"}},
	{Name: "Algorithm 3", Says: "OPT-LS", Where: []string{"method/optls.go#OPTLS", "docs/methods/opt-ls.md"}},
	{Name: "§3.3, Appendix B", Says: "OPT-B, steps on samples",
		Where: []string{"method/opt.go#OPT", "docs/methods/opt.md"}},
	{Name: "§3.4", Says: "2OPT and 2OPT-LS, two phases", Where: []string{"method/twoopt.go#TwoOPT",
		"method/twoopt.go#TwoOPTLS", "docs/methods/2opt.md"}},
	{Name: "§4, DP-TR", Says: "trust region, the baseline",
		Where: []string{"method/tr.go#TR", second + "trust.go",
			"docs/methods/tr.md"}},
	{Name: "§4, footnote 3, DP-GD", Says: "gradient descent and a choice among its iterates",
		Where: []string{"method/gd2ns.go#GD2NS",
			"docs/methods/gd-2ns.md"}},
	{Name: "Theorems 1 and 5", Says: "zCDP of OPT and of OPT-LS", Where: []string{proofs + "#gaussian-zcdp",
		proofs + "#pure-zcdp", proofs + "#above-threshold", proofs + "#filters"}},
	{Name: "Lemmas 2, 6 and 7, Corollary 3", Says: "least decrease of a step, with and without a search",
		Where: []string{second + "steps.go#Constants.Short", second + "steps.go#Constants.Search"}},
	{Name: "(6)", Says: "the number of steps T", Where: []string{second + "steps.go#Steps", "#gains"}},
	{Name: "Theorems 4 and 8, (18)", Says: "rows that suffice", Where: []string{"method/rows.go",
		second + "steps.go#Constants.SearchRows"}},
	{Name: "Propositions A.1 to A.7", Says: "zCDP and Rényi divergences: composition, conversion, mechanisms",
		Where: []string{proofs + "#rdp-composition", proofs + "#zcdp-composition", proofs + "#classic-conversion",
			proofs + "#pure-zcdp"}},
	{Name: "Lemmas B.1 and B.2", Says: "error of a sample's mean; here a tighter bound",
		Where: []string{second + "steps.go#SampleError"}},
	{Name: "Theorems B.3 to B.5", Says: "Rényi divergence of samples of fixed size",
		Where: []string{proofs + "#fixed-lemma",
			proofs + "#pld-fixed"}},
	{Name: "Lemma C.1", Says: "how many steps of Lanczos' method find the smallest eigenvalue",
		Where: []string{second + "curvature.go#Iterations"}},
	{Name: "Appendix D, norms of noise", Says: "of a vector and of a symmetric matrix",
		Where: []string{second + "steps.go#VectorNoise", second + "steps.go#MatrixNoise"}},
	{Name: "Tables of §4 and §E.3, losses and times", Says: "each cell that the text holds is one claim",
		Where: []string{"paper/p4/report.go#paperCells", "#claims", "#compared"}},
	{Name: "Tables 6 and 10, and others on Hessians", Says: "how many Hessians a run takes",
		Where: []string{"paper/p4/report.go#Report.tables"}},
	{Name: "§3.4, Hessian products", Says: "products of a Hessian and a vector by automatic or finite differences",
		Why: "They save time only without noise. Noise must be in the Hessian before Lanczos' method sees it: each product of the true Hessian is an access of its own, so an eigenvector of k products costs k releases where the noisy matrix costs one, from which any number of products is free."},
	{Name: "Proposition B.1, Theorems B.6 to B.9", Says: "the same by (ε, δ) and advanced composition",
		Why: "The divergences above are tighter for the same releases."},
	{Name: "Other statements of Appendix D", Says: "tools of the proofs", Why: "Nothing is computed from them."},
	{Name: "Successor: Ganesh, Liu, Oh and Thakurta, arXiv:2302.09699, 2023",
		Says: "second-order points by SpiderBoost with two kinds of gradient oracles",
		Why:  "Only its abstract could be read here. Missing: the algorithm, its batches and noise, and when it escapes a saddle. Liu and Talwar state that its escape from saddles has an error, with which its rate is worse."},
	{Name: "Successor: Liu and Talwar, arXiv:2410.07502, 2024",
		Says: "the same with batches by the drift of the model and a tree of noisy sums",
		Why:  "Only its abstract and the beginning of its introduction could be read here. Missing: the sizes of batches, the thresholds of drift, the noise of tree and Hessian, and the choice among iterates. Tao and others state that analyses before theirs leave out the variance of gradients where a saddle is left."},
	{Name: "Successor: Tao and others, arXiv:2505.15647, 2025",
		Says: "perturbed SGD that tells by the distance from a point whether it left a saddle",
		Why:  "Only its abstract and a summary of its loop could be read here. Missing: the absolute constants of its thresholds, steps and rounds, and the batches and noise of its gradient oracle, without which neither a cost nor a run is defined."},
}
