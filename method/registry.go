package method

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// An Entry is one method that can be named in a spec.
type Entry struct {
	Name   string
	About  string // what it is, in one line
	Use    string // when to use it, likewise
	Method Method // its zero value: everything left free
}

// Registry lists every method, in the order of the documentation.
var Registry = []Entry{
	{"auto", "noisy gradients of all rows with momentum; every number is chosen from public facts, by the budget",
		"first, on a table with a linear model: it needs no settings and no search", Auto{}},
	{"sgd", "DP-SGD with gradient clipping (P0 Algorithm 1); with all rows in every step it is DP-GD",
		"for networks, when you set every number yourself, or to compare with the literature", SGD{}},
	{"momentum", "DP-SGD with momentum, of Polyak's kind or Nesterov's",
		"when the runs you compare with use momentum; it costs what sgd costs", Momentum{}},
	{"gd", "DP-GD: gradient descent, the baseline of P1, with Laplace noise for pure ε",
		"as the baseline of P1, with all rows in every step or for pure ε", GD{}},
	{"shb", "DP-SHB: Polyak's heavy ball (P1 (3.1))",
		"to compare with P1 on strongly convex objectives", SHB{}},
	{"nag", "DP-NAG: Nesterov's accelerated gradient (P1 (4.1))",
		"on strongly convex objectives, or for pure ε with few steps", NAG{}},
	{"nag-opt", "DP-NAG-opt: the same, with the budget spread over the steps to the best bound (P1 Proposition 4.2)",
		"when the bound on the last iterate matters (output: last); with averages nag does as well", NAGOpt{}},
	{"masg", "DP-MASG: NAG in stages of falling step size (P1 (4.7))",
		"when many steps are affordable and the last iterate matters", MASG{}},
	{"masg-opt", "DP-MASG-opt: the same, with the budget spread over the steps to the best bound (P1 (4.8))",
		"as masg, with the best bound on the last iterate", MASGOpt{}},
	{"adam", "DP-Adam: Adam's step along the noisy gradients of sgd, a baseline of P2",
		"to compare with the literature, or when the row norm bound says little about a good step size", Adam{}},
	{"blsgd", "DP-BLSGD: step sizes by a private backtracking line search (P2 Algorithms 1 to 3), and budgets that grow if asked to; with all rows in every step it is DP-BLGD",
		"when no good step size is known: the search costs a part of the budget", BLSGD{}},
	{"agd", "DP-AGD: gradients of all rows with adaptive budgets and step sizes by a noisy choice; a baseline of P2",
		"to compare with P2, or when the noise of each step should follow from the progress so far", AGD{}},
	{"privgene", "PrivGene: one parameter a round moves, as a noisy choice picks it; a baseline of P2",
		"for pure ε with few features, or to compare with P2", PrivGene{}},
	{"majority", "the class of the most rows, by a noisy choice: the least that a classifier must beat",
		"as the accuracy that a useful classifier must exceed", Majority{}},
	{"newton", "DP-Newton: noisy gradients scaled by a noisy Hessian, for losses with smooth Hessians of rank one",
		"for logistic or linear models with few features and δ above 0: the lowest loss in few steps", Newton{}},
	{"opt", "OPT: gradient steps, and steps along negative curvature where the gradient is small (P4 Algorithm 1); with a batch it is OPT-B",
		"on non-convex objectives that need a certificate of second-order stationarity", OPT{}},
	{"opt-ls", "OPT-LS: the same with a private line search along both (P4 Algorithm 3)",
		"on non-convex objectives, first among the methods of P4: fewer steps than opt", OPTLS{}},
	{"2opt", "2OPT: opt in two phases, the first short and with little noise (P4 §3.4)",
		"as opt, when its bound on the number of steps is pessimistic", TwoOPT{}},
	{"2opt-ls", "2OPT-LS: opt-ls in two phases",
		"as opt-ls, when its bound on the number of steps is pessimistic", TwoOPTLS{}},
	{"tr", "DP-TR: a trust region around each iterate, with a Hessian in every step; the baseline of P4",
		"to compare with P4's baseline", TR{}},
	{"gd-2ns", "DP-GD with a test for second-order points afterwards, a baseline of P4",
		"to compare with P4's baseline", GD2NS{}},
	{"outpert", "OutPert-GD: noise on the last iterate of gradient descent, a baseline of P2",
		"to compare with P2 under replace-one, on smooth losses with a Lipschitz bound", OutPert{}},
	{"outpert-sgd", "OutPert-RSGD: noise on the last iterate of SGD over a secret order of the rows, a baseline of P2",
		"as outpert, when few passes over the rows must do", OutPertSGD{}},
	{"amp", "AMP: objective perturbation with an approximate minimum, a baseline of P2",
		"under replace-one with a large budget: it gains most as ε grows", AMP{}},
	{"optimum", "the optimum itself, by L-BFGS: no privacy, lab only",
		"in the lab, for the objective that private methods are measured against", Optimum{}},
}

// Networks lists the methods that take networks: they start where Public.Start says, and ask no
// more of a loss than values and its gradient.
var Networks = []string{"sgd", "momentum", "adam", "blsgd"}

// Default is the method of a spec that names none.
const Default = "auto"

// Lookup finds a method by name.
func Lookup(name string) (Entry, error) {
	var names []string
	for _, e := range Registry {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Entry{}, fmt.Errorf("method: found %q; allowed are %s", name, strings.Join(names, ", "))
}

// A Field is one configuration field of a method, for help texts.
type Field struct {
	Name, Type, Doc string
	Free            bool // a number whose 0 says that the method chooses it: nobody asks for 0
}

// chosen finds the default of a field that has another than 0, and in whose doc 0 stands for nothing else.
var chosen = regexp.MustCompile(`\(default:? (?:[^0]|0[.])`)

// Fields lists the configuration of e's method.
func (e Entry) Fields() []Field {
	var out []Field
	t := reflect.TypeOf(e.Method)
	for _, f := range reflect.VisibleFields(t) { // those of embedded structs, too
		if f.IsExported() && !f.Anonymous {
			doc := f.Tag.Get("doc")
			number := f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Float64
			out = append(out, Field{f.Tag.Get("yaml"), f.Type.String(), doc, number && chosen.MatchString(doc) && !strings.Contains(doc, "0 means")})
		}
	}
	return out
}

// Decode reads a method of e's type from its JSON, strictly.
func (e Entry) Decode(config []byte) (Method, error) {
	v := reflect.New(reflect.TypeOf(e.Method))
	dec := json.NewDecoder(bytes.NewReader(config))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v.Interface()); err != nil {
		return nil, fmt.Errorf("method %s: %w", e.Name, err)
	}
	return v.Elem().Interface().(Method), nil
}
