package private

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// consortium is a network of owners in one process: their tables, a model and public facts.
type consortium struct {
	tables []*data.Table
	model  model.Model
	facts  oracle.Public
}

// consortiumOf has three owners with the rows of one problem, of which one may collude.
func consortiumOf(t *testing.T, name string, adj privacy.Adjacency) (n consortium) {
	const dim, each = 4, 40
	opt := model.Options{Dim: dim, Classes: 2, NormBound: 1}
	if name == "linear" {
		opt.Classes = 0
	}
	var err error
	if n.model, err = model.New(name, opt); err != nil {
		t.Fatal(err)
	}
	rows := randomRows(rand.New(rand.NewPCG(21, 22)), 3*each, dim)
	for i := range 3 {
		n.tables = append(n.tables, table(rows[i*each:][:each], opt.Classes, false))
	}
	f := n.model.Facts()
	n.facts = oracle.Public{
		Dim: dim, Rows: 3 * each, Owners: 3, Colluders: 1, Classes: opt.Classes, Adjacency: adj, NormBound: 1, L1Bound: 2,
		Lipschitz: oracle.Bound(f.Lipschitz), Smooth: oracle.Bound(f.Smooth), HessLipschitz: oracle.Bound(f.HessLipschitz), OneMargin: f.OneMargin,
		Curved: f.Curved, Bounded: f.Bounded, Centered: f.Centered, Intercept: dim,
	}
	if !math.IsInf(f.Start, 1) {
		n.facts.StartLoss = oracle.Bound(f.Start)
	}
	if f.Shifted {
		n.facts.Shifted, n.facts.LabelSpan = true, 1
	}
	return n
}

// released is a journal that knows of which charge each release is.
type released struct {
	memo
	of []privacy.Event
}

func (r *released) Release(answers [][]float64) error {
	r.of = append(r.of, r.charged[len(r.charged)-1])
	return r.memo.Release(answers)
}

// settingsOf are configurations of a method: everything free, its other ways to ask, and few steps of each, since a test waits for them.
func settingsOf(e method.Entry) (configs []string) {
	has := func(name string) bool {
		return slices.ContainsFunc(e.Fields(), func(f method.Field) bool { return f.Name == name })
	}
	free := "{}"
	if has("steps") {
		free = `{"steps": 6}`
	}
	configs = append(configs, free)
	with := func(more string) { configs = append(configs, strings.TrimSuffix(free, "}")+", "+more+"}") }
	if has("batch") && has("steps") {
		with(`"batch": 30`)
	}
	if has("hessians") && !has("costs") {
		with(`"hessians": 2`)
	}
	if has("costs") {
		with(`"costs": "plan", "gradient": 1e-6`)
	}
	return configs
}

// alone are the methods that do not train owners together, and why: none of their settings is taken.
var alone = map[string]string{
	"blsgd": "it searches along a line", "opt-ls": "it searches along a line", "2opt-ls": "it searches along a line",
	"agd": "it chooses its steps", "privgene": "it chooses its moves", "majority": "it chooses a class",
	"outpert": "it asks for a minimizer", "outpert-sgd": "it asks for a minimizer", "amp": "it asks for a minimizer", "optimum": "it is for the lab",
}

// Every method of the registry either says why it does not train owners together, before anything is charged; or it trains them, also when attempts
// are given up: the meter of its plan with retries admits every attempt, all owners release the same, the run is a
// function of what was released, and no sum has more numbers than the method says, for which the owners' hub has storage.
func TestMethodsOfOwners(t *testing.T) {
	const retries = 4
	var mu sync.Mutex
	trained := map[string]bool{}
	t.Run("all", func(t *testing.T) {
		for _, e := range method.Registry() {
			for _, name := range []string{"logistic", "linear"} {
				for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
					for _, c := range settingsOf(e) {
						t.Run(fmt.Sprintf("%s %s %s %v", e.Name, c, name, adj), func(t *testing.T) {
							t.Parallel()
							m, err := e.Decode([]byte(c))
							if err != nil {
								t.Fatal(err)
							}
							if consortiumOf(t, name, adj).train(t, m, retries) {
								mu.Lock()
								defer mu.Unlock()
								trained[fmt.Sprintf("%s %v", e.Name, adj)] = true
							}
						})
					}
				}
			}
		}
	})
	for _, e := range method.Registry() {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			why, not := alone[e.Name]
			switch ok := trained[fmt.Sprintf("%s %v", e.Name, adj)]; {
			case ok && not:
				t.Errorf("method %s trains owners together under %v; take it out of the map alone, "+
					"oracle/private/poolmethods_test.go, which says that %s", e.Name, adj, why)
			case !ok && !not:
				t.Errorf("method %s does not train owners together under %v, by none of settingsOf; its log says why it refused. "+
					"If it cannot, it stands with the reason in the map alone, oracle/private/poolmethods_test.go", e.Name, adj)
			}
		}
	}
}

// train trains the owners by m, or says that m refuses.
func (n consortium) train(t *testing.T, m method.Method, retries int) bool {
	budget := privacy.Budget{Epsilon: 3, Delta: 1e-5, Adjacency: n.facts.Adjacency}
	m, err := m.Configure(n.facts, method.Objective{}, method.Terms{Budget: budget, Accountant: account.Retrying(account.Best{}, retries)})
	if err != nil {
		t.Logf("refused: %v", err)
		return false
	}
	plan, err := m.Plan(n.facts)
	if err != nil {
		t.Fatal(err)
	}
	whole := privacy.Retried{Of: plan, Retries: retries}
	var refused *account.UnsupportedError
	if _, err := account.NewMeter(whole, account.Best{}, budget); errors.As(err, &refused) {
		t.Logf("refused: %v", err)
		return false
	}

	// A sum is given up where one of its kind is asked for the first time, while there are retries.
	given, seen := 0, map[[32]byte]bool{}
	p := newPlaza(len(n.tables), func(_ int, asked [32]byte) bool {
		up := !seen[asked] && given < retries
		if seen[asked] = true; up {
			given++
		}
		return up
	})
	all, meters, journals := make([]*Oracle, len(n.tables)), make([]*account.Plan, len(n.tables)), make([]*released, len(n.tables))
	members := make([]*member, len(n.tables))
	for i, tab := range n.tables {
		meter, err := account.NewMeter(whole, account.Best{}, budget)
		if err != nil {
			t.Fatal(err)
		}
		meters[i], journals[i], members[i] = meter.(*account.Plan), &released{}, &member{plaza: p, at: i}
		all[i] = openOracle(t, Config{Table: tab, Model: n.model, Facts: n.facts, Meter: meter, Journal: journals[i], Streams: noise.SeededStreams(uint64(i)),
			Pool: members[i], Own: tab.Rows()})
	}
	steps := make([][][]float64, len(all))
	atOnce(t, all, func(i int, o *Oracle) error {
		for st, err := range m.Run(t.Context(), o, method.Objective{}) {
			switch {
			case err != nil:
				return err
			case st.Status == method.OutOfBudget:
				return errors.New("the meter refused what the plan holds")
			}
			steps[i] = append(steps[i], slices.Clone(st.W))
		}
		return o.Close()
	})
	for _, drawn := range members[0].drawn {
		if most := method.MostNumbers(m, n.facts); len(drawn) > most {
			t.Fatalf("it asked for a sum of %d numbers, and says that none has more than %d", len(drawn), most)
		}
	}
	if given == 0 {
		t.Error("no attempt was given up: the test shows nothing")
	}
	for i, journal := range journals {
		if n := len(journal.released) + given; len(journal.charged) != n || meters[i].Charged() != n || len(journal.released) == 0 {
			t.Fatalf("owner %d: %d charges, %d admitted, for %d releases and %d attempts that were given up",
				i+1, len(journal.charged), meters[i].Charged(), len(journal.released), given)
		}
		same := func(a, b [][]float64) bool { return slices.EqualFunc(a, b, slices.Equal) }
		if !slices.EqualFunc(journal.released, journals[0].released, same) || !same(steps[i], steps[0]) {
			t.Fatalf("owner %d has other releases, or other iterates", i+1)
		}
	}
	cost, err := account.Best{}.Loss(privacy.Composed(journals[0].charged), n.facts.Adjacency)
	if err != nil {
		t.Fatal(err)
	}
	if epsilon := cost.Epsilon(budget.Delta); !(epsilon <= budget.Epsilon*(1+1e-6)) {
		t.Errorf("what was charged costs ε = %v; the budget is %v", epsilon, budget.Epsilon)
	}
	// The method sees releases, and no attempts.
	var record []replay.Released
	for k, answers := range journals[0].released {
		record = append(record, replay.Released{Event: journals[0].of[k], Answers: answers})
	}
	var again [][]float64
	for st, err := range m.Run(t.Context(), &replay.Oracle{Facts: n.facts, Next: replay.Each(record)}, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, slices.Clone(st.W))
	}
	if !slices.EqualFunc(again, steps[0], slices.Equal) {
		t.Error("the releases replayed give other iterates")
	}
	return true
}
