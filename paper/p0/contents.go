package p0

import (
	_ "embed"

	"github.com/sottodp/sotto/paper"
)

//go:embed record.json
var record []byte

// of is the paper: its page at ICLR (iclr.cc/virtual/2023/poster/11841), and the number of its text at OpenReview.
var of = paper.Publication{Key: "fang2023improved",
	Authors: []string{"Huang Fang", "Xiaoyun Li", "Chenglin Fan", "Ping Li"},
	Title:   "Improved Convergence of Differential Private SGD with Gradient Clipping",
	Meeting: "International Conference on Learning Representations (ICLR)", Year: 2023, Review: "FRLswckPXQ5"}

const proofs = "privacy/account/PROOFS.md"

var contents = []paper.Item{
	{Name: "Algorithm 1", Says: "DP-SGD with gradient clipping",
		Where: []string{"method/sgd.go#SGD", "docs/methods/sgd.md", "#figure1"}},
	{Name: "Algorithm 2", Says: "SGD with sub-Gaussian noise: Algorithm 1 while no row is clipped",
		Where: []string{"paper/p0/theorem.go", "#theorem"}},
	{Name: "Algorithm 3, §5", Says: "DP-SGD with value clipping, and why its gradients are within C",
		Where: []string{"paper/p0/bound.go#wgc", "privacy/clip/clip.go#Value", "oracle/private/PROOFS.md#value", "#figure2"}},
	{Name: "Definition 3.1, Lemma 3.2", Says: "weak growth condition; (2L, 0) of an L-smooth function",
		Where: []string{"paper/p0/bound.go#wgc"}},
	{Name: "Theorem 3.4", Says: "noise that makes Algorithm 1 (ε, δ)-private, with constants that are not stated",
		Where: []string{proofs + "#poisson-gaussian", "privacy/account/claimed/p0.go", "#epsilon"}},
	{Name: "Propositions 4.2 to 4.4, Theorem 4.5", Says: "bounds on the objective, on gradients and on f(w_priv) − f*",
		Where: []string{"paper/p0/theorem.go", "#theorem"}},
	{Name: "Corollary 5.1", Says: "privacy of value clipping", Where: []string{"oracle/private/PROOFS.md#value",
		proofs + "#poisson-gaussian"}},
	{Name: "Remark 5.1", Says: "value clipping in one pass forward and backward",
		Where: []string{"paper/p0/times.go", "#table2"}},
	{Name: "Lemma D.1", Says: "(2β², 0) of a convex, nonnegative 1-smooth function of a β-Lipschitz one",
		Where: []string{"paper/p0/bound.go#composed"}},
	{Name: "Appendix D", Says: "β of a network with ReLU and cross-entropy",
		Where: []string{"paper/p0/bound.go#sizeOf", "#ladder"}},
	{Name: "Table 2", Says: "time of an epoch", Where: []string{"#table2"}},
	{Name: "Figure 1", Says: "accuracy and clipping frequency", Where: []string{"#figure1"}},
	{Name: "Figures 2 and 3", Says: "value and gradient clipping, training and testing",
		Where: []string{"#figure2", "#figure3"}},
	{Name: "Figure 4", Says: "regression on synthetic rows", Where: []string{"#figure4"}},
	{Name: "Figure 5", Says: "accuracy by ε and by δ", Where: []string{"#figure5"}},
	{Name: "§7, adaptive methods", Says: "named as further work", Where: []string{"method/adagrad.go#AdaGrad",
		"method/adam.go#Adam"}},
	{Name: "§7, distributed optimization", Says: "named as further work", Where: []string{"gossip/dda.go#DDA"}},
	{Name: "Table 1", Says: "utility bounds of this and of earlier work",
		Why: "It compares orders of bounds, without an experiment; their constants are not stated."},
	{Name: "Remark 4.2", Says: "with heavy tails the bound is √n worse",
		Why: "A bound without an experiment, and with constants that are not stated."},
	{Name: "Algorithm 4, Lemmas A.1 to A.13, B.1", Says: "tools of the proofs of utility",
		Why: "Nothing is computed from them. Lemma A.13 bounds the gradient of the mean; Sotto clips the gradients of rows."},
	{Name: "§7, subspaces", Says: "the analysis may extend to DP-SGD with subspace identification",
		Why: "The paper names two others' papers and states no algorithm. A subspace found from the rows is an access that must be charged, and one from public rows needs such rows."},
	{Name: "§7, compression", Says: "the analysis may be combined with gradient compression",
		Why: "The paper states no algorithm. Compressing a noisy gradient is post-processing and changes no ε; the sums that Sotto sends are at most a model's size."},
}
