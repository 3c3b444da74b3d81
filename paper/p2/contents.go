package p2

import (
	_ "embed"

	"github.com/sottodp/sotto/paper"
)

//go:embed record.json
var record []byte

// of is the paper, as arXiv has it.
var of = paper.Publication{Key: "chen2020stochastic", Authors: []string{"Chen Chen", "Jaewoo Lee"},
	Title: "Stochastic Adaptive Line Search for Differentially Private Optimization", Year: 2020, ArXiv: "2008.07978"}

const proofs = "privacy/account/PROOFS.md"

var contents = []paper.Item{
	{Name: "Algorithm 1, Laplace", Says: "NoisyBTLS, the search for a step size",
		Where: []string{"method/blsgd.go#BLSGD.search", "privacy/mech/PROOFS.md#search", proofs + "#above-threshold"}},
	{Name: "Algorithm 1, Gaussian", Says: "the same with Gaussian noise, which does not cost what Theorem 3 says",
		Where: []string{"paper/p2/gaussian.go", "#figure1"}},
	{Name: "Algorithm 2", Says: "DP-BLSGD, and DP-BLGD on all rows", Where: []string{"method/blsgd.go#BLSGD",
		"docs/methods/blsgd.md"}},
	{Name: "Algorithm 3", Says: "CHEB, budgets that grow by the angle between gradients",
		Where: []string{"method/blsgd.go#BLSGD.cheb", "#adapt"}},
	{Name: "§4.4", Says: "DP-BLSGD-AC, clip thresholds that fall",
		Where: []string{"docs/methods/blsgd.md", "#adapt"}},
	{Name: "Theorems 1 and 2", Says: "cost of the search with Laplace noise",
		Where: []string{proofs + "#above-threshold"}},
	{Name: "Theorem 3", Says: "cost of the search with Gaussian noise; false",
		Where: []string{"privacy/account/claimed/p2.go", "#formulas"}},
	{Name: "Theorem 4", Says: "the loop ends within the budget; false where releases decide the order",
		Where: []string{proofs + "#filters", "#published"}},
	{Name: "Lemmas 1 to 3", Says: "Gaussian mechanism, pure ε as Rényi divergence, composition",
		Where: []string{proofs + "#gaussian-rdp", proofs + "#pure-rdp", proofs + "#rdp-composition"}},
	{Name: "Lemma 4", Says: "amplification by Poisson samples", Where: []string{proofs + "#poisson-lemma"}},
	{Name: "Lemma 5", Says: "AboveThreshold", Where: []string{proofs + "#above-threshold"}},
	{Name: "Proposition 1", Says: "from Rényi divergences to (ε, δ)",
		Where: []string{proofs + "#classic-conversion"}},
	{Name: "Table 1", Says: "datasets: Adult, Bank and MNIST", Where: []string{"#settings"}},
	{Name: "§5.3, baselines", Says: "DP-AGD, DP-SGD, OutPert, ObjPert, PrivGene, Majority and the optimum",
		Where: []string{"method/agd.go#AGD", "method/sgd.go#SGD", "method/outpert.go#OutPert", "method/amp.go#AMP",
			"method/privgene.go#PrivGene", "method/majority.go#Majority", "method/optimum.go#Optimum"}},
	{Name: "Figure 1", Says: "hyperparameters", Where: []string{"#figure1"}},
	{Name: "Figure 2", Says: "evaluations by sampling ratio", Where: []string{"#figure2"}},
	{Name: "Figures 3 and 4", Says: "accuracy and objective by ε",
		Where: []string{"#figure3", "#figure4", "#leaders"}},
	{Name: "Figure 5", Says: "networks; on MNIST, in the full size", Where: []string{"paper/p2/neural.go"}},
	{Name: "Table 1, other datasets", Says: "IPUMS-BR, IPUMS-US, Fashion-MNIST and CIFAR-10, and their figures",
		Why: "They are not among our datasets."},
}
