package p1

import (
	_ "embed"

	"github.com/sottodp/sotto/paper"
)

//go:embed record.json
var record []byte

// of is the paper: authors and DOI as its text has them, volume and pages as arXiv does.
var of = paper.Publication{Key: "kuru2022differentially",
	Authors: []string{"Nurdan Kuru", "Ş. İlker Birbil", "Mert Gürbüzbalaban", "Sinan Yıldırım"},
	Title:   "Differentially Private Accelerated Optimization Algorithms",
	Journal: "SIAM Journal on Optimization", Volume: "32", Number: "2", Pages: "795--821", Year: 2022,
	DOI: "10.1137/20M1355847", ArXiv: "2008.01989"}

const (
	proofs   = "privacy/account/PROOFS.md"
	planning = "method/schedule/"
)

var contents = []paper.Item{
	{Name: "(3.1), §3.1", Says: "DP-SHB, heavy ball",
		Where: []string{"method/shb.go#SHB", "docs/methods/shb.md"}},
	{Name: "Proposition 3.1", Says: "Laplace noise b = S₁/(m·ε₀) makes T steps ε-private",
		Where: []string{"method/p1.go#P1", proofs + "#pure-laplace", proofs + "#fixed-pure"}},
	{Name: "Proposition 3.3", Says: "variance of noise and sample",
		Where: []string{planning + "schedule.go#SampleVariance"}},
	{Name: "Proposition 3.4", Says: "rate of DP-SHB by a matrix inequality",
		Where: []string{planning + "heavyball.go#HeavyBall.Certify"}},
	{Name: "Theorem 3.5", Says: "error of DP-SHB on a quadratic",
		Where: []string{planning + "heavyball.go#HeavyBall.QuadraticBound", "#figure1"}},
	{Name: "§4", Says: "DP-NAG", Where: []string{"method/nag.go#NAG", "docs/methods/nag.md"}},
	{Name: "Theorem 4.1, (4.3)", Says: "error of DP-NAG; false by a factor of 2 as printed",
		Where: []string{planning + "schedule.go#Convex.Weights", "#slips"}},
	{Name: "Proposition 4.2, (4.5)", Says: "best noise of each step on all rows",
		Where: []string{planning + "pure.go#Pure",
			"#figure2"}},
	{Name: "Remark 4.1, (4.6)", Says: "the number of steps T′ by the bound",
		Where: []string{planning + "schedule.go#Steps",
			"#lengths"}},
	{Name: "Remark 4.2", Says: "noise of each step on samples; here the exact minimum, too",
		Where: []string{planning + "pure.go#PureSampled", "#gains"}},
	{Name: "§4.1", Says: "DP-NAG-opt", Where: []string{"method/nag.go#NAGOpt", "docs/methods/nag-opt.md"}},
	{Name: "§4.2, (4.7)", Says: "DP-MASG and its stages",
		Where: []string{"method/masg.go#MASG", planning + "schedule.go#MASG",
			"docs/methods/masg.md"}},
	{Name: "Theorem 4.3, (4.8)", Says: "error of DP-MASG; the best noise makes DP-MASG-opt",
		Where: []string{planning + "schedule.go#Convex.Weights", "method/masg.go#MASGOpt"}},
	{Name: "Theorem A.1", Says: "Laplace mechanism", Where: []string{proofs + "#pure-laplace"}},
	{Name: "Theorem A.2", Says: "composition", Where: []string{proofs + "#pure-composition"}},
	{Name: "Theorem A.3", Says: "amplification by samples of fixed size",
		Where: []string{proofs + "#fixed-pure"}},
	{Name: "§5, DP-GD", Says: "gradient descent with Laplace noise", Where: []string{"method/gd.go#GD",
		"docs/methods/gd.md"}},
	{Name: "Figures 1 and 2", Says: "bound and rate on a quadratic; best noise",
		Where: []string{"#figure1", "#figure2"}},
	{Name: "Figures 3 and 4", Says: "errors with all rows and with samples",
		Where: []string{"#figure3", "#figure4"}},
	{Name: "§6, other forms of privacy", Says: "schedules under another form of privacy; here zCDP with Gaussian noise",
		Where: []string{planning + "gaussian.go#ZCDP"}},
	{Name: "(3.2) to (3.4), b_t(x_t)", Says: "noise by the sensitivity S₁(x_t) at the current point",
		Why: "In the paper's experiment S₁(x) = 2·sup‖u‖₁ at each x, so b_t(x_t) is the constant b, and from (3.11) on the paper takes the constant, too. Noise by the point is sound, since x_t is public, but needs a model with a bound that depends on x; Sotto's models state one bound, and clip what is longer."},
	{Name: "§6, restarts without μ", Says: "whether restarts that do not know μ can be made private, as further work",
		Why: "The paper states no algorithm. Here μ is a public field of these methods, by default that of the regularizer or 1/(100α), whichever is larger, so no run estimates it. A restart that measures progress asks the rows for it, which must be charged."},
	{Name: "Lemma B.1", Says: "a tool of the proof of Proposition 3.4", Why: "Nothing is computed from it."},
}
