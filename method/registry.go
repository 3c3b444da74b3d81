package method

import (
	"fmt"
	"regexp"

	"github.com/sottodp/sotto/internal/registry"
)

// An Entry is one method that can be named in a spec.
type Entry struct {
	Name   string
	About  string // what it is, in one line
	Use    string // when to use it, likewise
	Method Method // its zero value: everything left free
	// It takes networks: it starts where Public.Start says, and asks no more of a loss than values and
	// its gradient.
	Networks bool
}

// methods are all of them, in the order of the documentation. To add one is one line here.
var methods = registry.New("method", func(e Entry) (string, any) { return e.Name, e.Method },
	Entry{"auto", "noisy gradients of all rows with momentum; every number is chosen from public facts, by the budget",
		"first, on a table with a linear model: it needs no settings and no search", Auto{}, false},
	Entry{"sgd", "DP-SGD with gradient clipping (P0 Algorithm 1); with all rows in every step it is DP-GD",
		"for networks, when you set every number yourself, or to compare with the literature", SGD{}, true},
	Entry{"momentum", "DP-SGD with momentum, of Polyak's kind or Nesterov's",
		"when the runs you compare with use momentum; it costs what sgd costs", Momentum{}, true},
	Entry{"autoclip", "DP-SGD with automatic clipping (AUTO-S): each record's gradient is brought to about the same length",
		"for networks when you do not want to choose a clip norm", AutoClip{}, true},
	Entry{"quantileclip", "DP-SGD with adaptive clipping: the clip norm follows a private quantile of the gradients' norms",
		"for networks when the size of gradients is not known, or changes during the run", QuantileClip{}, true},
	Entry{"hyfree", "DP-SGD with step sizes from private probes of the loss along each gradient (HyFreeDP)",
		"to compare with step sizes that are not set by hand; on networks autoclip with its default was better", HyFree{}, true},
	Entry{"gd", "DP-GD: gradient descent, the baseline of P1, with Laplace noise for pure ε",
		"as the baseline of P1, with all rows in every step or for pure ε", GD{}, false},
	Entry{"shb", "DP-SHB: Polyak's heavy ball (P1 (3.1))",
		"to compare with P1 on strongly convex objectives", SHB{}, false},
	Entry{"nag", "DP-NAG: Nesterov's accelerated gradient (P1 (4.1))",
		"on strongly convex objectives, or for pure ε with few steps", NAG{}, false},
	Entry{"nag-opt", "DP-NAG-opt: the same, with the budget spread over the steps to the best bound (P1 Proposition 4.2)",
		"when the bound on the last iterate matters (output: last); with averages nag does as well", NAGOpt{}, false},
	Entry{"masg", "DP-MASG: NAG in stages of falling step size (P1 (4.7))",
		"when many steps are affordable and the last iterate matters", MASG{}, false},
	Entry{"masg-opt", "DP-MASG-opt: the same, with the budget spread over the steps to the best bound (P1 (4.8))",
		"as masg, with the best bound on the last iterate", MASGOpt{}, false},
	Entry{"adam", "DP-Adam: Adam's step along the noisy gradients of sgd, a baseline of P2",
		"to compare with the literature, or when the row norm bound says little about a good step size", Adam{}, true},
	Entry{"adagrad", "DP-AdaGrad: AdaGrad's step along the noisy gradients of sgd",
		"when features have different scales and you do not want to choose a schedule of step sizes", AdaGrad{}, true},
	Entry{"blsgd",
		"DP-BLSGD: step sizes by a private backtracking line search (P2 Algorithms 1 to 3), optionally with growing budgets; with all rows in every step it is DP-BLGD",
		"when no good step size is known: the search costs a part of the budget", BLSGD{}, true},
	Entry{"agd", "DP-AGD: gradients of all rows with adaptive budgets, and step sizes by a noisy choice; a baseline of P2",
		"to compare with P2, or when the noise of each step should follow from the progress so far", AGD{}, false},
	Entry{"privgene", "PrivGene: a noisy choice moves one parameter per round; a baseline of P2",
		"for pure ε with few features, or to compare with P2", PrivGene{}, false},
	Entry{"majority", "the most frequent class, by a noisy choice: the minimum that a classifier must beat",
		"as the accuracy that a useful classifier must exceed", Majority{}, false},
	Entry{"newton", "DP-Newton: noisy gradients scaled by a noisy Hessian, for losses with smooth Hessians of rank one",
		"for logistic or linear models with few features and δ above 0: the lowest loss in few steps", Newton{}, false},
	Entry{"adassp", "AdaSSP: least squares by noisy XᵀX and Xᵀy, with a ridge that follows their noise",
		"for the model linear on many rows with few features: the exact solution, without steps", AdaSSP{}, false},
	Entry{"opt",
		"OPT: gradient steps, and steps along negative curvature where the gradient is small (P4 Algorithm 1); with a batch it is OPT-B",
		"on non-convex objectives that need a certificate of second-order stationarity", OPT{}, false},
	Entry{"opt-ls", "OPT-LS: the same with a private line search along both (P4 Algorithm 3)",
		"on non-convex objectives, first among the methods of P4: fewer steps than opt", OPTLS{}, false},
	Entry{"2opt", "2OPT: opt in two phases, the first short and with little noise (P4 §3.4)",
		"as opt, when its bound on the number of steps is pessimistic", TwoOPT{}, false},
	Entry{"2opt-ls", "2OPT-LS: opt-ls in two phases",
		"as opt-ls, when its bound on the number of steps is pessimistic", TwoOPTLS{}, false},
	Entry{"tr", "DP-TR: a trust region around each iterate, with a Hessian in every step; the baseline of P4",
		"to compare with P4's baseline", TR{}, false},
	Entry{"gd-2ns", "DP-GD with a test for second-order points afterward, a baseline of P4",
		"to compare with P4's baseline", GD2NS{}, false},
	Entry{"outpert", "OutPert-GD: noise on the last iterate of gradient descent, a baseline of P2",
		"to compare with P2 under replace-one, on smooth losses with a Lipschitz bound", OutPert{}, false},
	Entry{"outpert-sgd",
		"OutPert-RSGD: noise on the last or mean iterate of SGD over a secret order of the rows, a baseline of P2",
		"as outpert, when few passes over the rows must suffice", OutPertSGD{}, false},
	Entry{"amp", "AMP: objective perturbation with an approximate minimum, a baseline of P2",
		"under replace-one with a large budget: it gains most as ε grows", AMP{}, false},
	Entry{"optimum", "the optimum itself, by L-BFGS: no privacy, lab only",
		"in the lab, for the objective that private methods are measured against", Optimum{}, false},
)

// Register adds a method, also from another module: a program that registers its own before it calls
// cli.Main or reads a spec has one method more. It panics if the name is taken or not in lower case, if the
// method is not a struct with tagged fields, and once the registry was read.
func Register(e Entry) { methods.Register(e) }

// Registry lists every method, in the order of the documentation.
func Registry() []Entry { return methods.All() }

// Networks lists the methods that take networks.
func Networks() []string {
	var names []string
	for _, e := range Registry() {
		if e.Networks {
			names = append(names, e.Name)
		}
	}
	return names
}

// Default is the method of a spec that names none.
const Default = "auto"

// Lookup finds a method by name.
func Lookup(name string) (Entry, error) {
	e, err := methods.Lookup(name)
	if err != nil {
		err = fmt.Errorf("method: %w", err)
	}
	return e, err
}

// chosen finds the default of a field that has another than 0, and in whose doc 0 stands for nothing else.
var chosen = regexp.MustCompile(`\(default:? (?:[^0]|0[.])`)
