package p3

import (
	_ "embed"

	"github.com/sottodp/sotto/paper"
)

//go:embed record.json
var record []byte

// of is the paper: authors as its text has them, the rest as the library of the University of Victoria does.
var of = paper.Publication{Key: "liu2024distributed",
	Authors: []string{"Changxin Liu", "Karl H. Johansson", "Yang Shi"},
	Title:   "Distributed Empirical Risk Minimization With Differential Privacy", Journal: "Automatica", Volume: "162",
	Pages: "111514", Year: 2024, DOI: "10.1016/j.automatica.2024.111514", ArXiv: "2302.10520"}

const proofs = "privacy/account/PROOFS.md"

var contents = []paper.Item{
	{Name: "Algorithm 1", Says: "private dual averaging with a share of the nodes active",
		Where: []string{"gossip/dda.go#DDA", "docs/how-to/network.md#methods"}},
	{Name: "[19], §5", Says: "dual averaging with all nodes active, the baseline",
		Where: []string{"gossip/dda.go#DDA",
			"#figure1"}},
	{Name: "Problem (1), Assumption 1", Says: "mean loss of all nodes and a convex regularizer",
		Where: []string{"paper/p3/experiment.go"}},
	{Name: "Assumption 2", Says: "doubly stochastic weights, and β < 1",
		Where: []string{"gossip/weights.go#Weights",
			"gossip/weights.go#Beta"}},
	{Name: "Theorem 1, Remark 3.1", Says: "noise that makes Algorithm 1 private; false",
		Where: []string{"privacy/account/claimed/p3.go", "#truth", "docs/how-to/network.md"}},
	{Name: "Theorem 2, (9)", Says: "bound on F − F*", Where: []string{"paper/p3/bounds.go#theorem2", "#bounded"}},
	{Name: "Corollaries 3.2 and 3.4, (10) to (12)", Says: "bounds without noise",
		Where: []string{"paper/p3/bounds.go#Report.bounds", "#bounds"}},
	{Name: "Corollaries 3.5 and 3.6, (13) to (15)", Says: "orders of the bounds with noise",
		Where: []string{"paper/p3/bounds.go#Report.bounds", "#bounded"}},
	{Name: "Remark 3.3", Says: "‖x̃ − x*‖² falls as 1/t without noise",
		Where: []string{"paper/p3/bounds.go#Report.exponent",
			"#claims"}},
	{Name: "Lemma 4.1", Says: "Gaussian mechanism", Where: []string{proofs + "#gaussian-exact"}},
	{Name: "Lemma 4.2", Says: "amplification by sampling, which is not secret here",
		Where: []string{proofs + "#poisson-gaussian"}},
	{Name: "Lemmas 4.3 and 4.4", Says: "composition and post-processing",
		Where: []string{proofs + "#rdp-composition"}},
	{Name: "Table 2", Says: "rows and features of epsilon and rcv1", Where: []string{"#settings"}},
	{Name: "Figures 1 and 2", Says: "SVM with ℓ2: along the iterations, and by ε",
		Where: []string{"#figure1", "#figure2"}},
	{Name: "Figures 3 and 4", Says: "SVM with ℓ1: along the iterations, and by ε",
		Where: []string{"#figure3", "#figure4"}},
	{Name: "Table 1", Says: "rates of this and of earlier work",
		Why: "It compares orders of theorems, without an experiment."},
	{Name: "Lemmas 4.5 and 4.6", Says: "tools of the proof of Theorem 2", Why: "Nothing is computed from them."},
	{Name: "Directed graphs", Says: "only in the titles of the works that the paper cites as [11], [34] and [42]",
		Why: "The paper's text does not cover them: its W is doubly stochastic, and its proofs use that the mean of z stays in place. Where links are directed such weights need not exist; push-sum weights are another algorithm with other bounds."},
	{Name: "§5, epsilon and rcv1 whole", Says: "the datasets of the figures",
		Why: "They are not among our datasets; synthetic rows of their shape and a part of rcv1 stand for them."},
}
