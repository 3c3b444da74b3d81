package method_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// configs are further configurations that the suite runs, by method.
var configs = map[string][]method.Method{
	"sgd":         {method.SGD{Steps: 20, Gradient: method.Gradient{Batch: 100}}, method.SGD{Steps: 12, Rate: 0.5, Gradient: method.Gradient{Clip: 3}}},
	"momentum":    {method.Momentum{Steps: 20, Schedule: "warmup 4 linear to 0.1", Gradient: method.Gradient{Batch: 100}}, method.Momentum{Steps: 12, Rate: 0.5, Gradient: method.Gradient{Clip: 3}, Beta: 0.5, Nesterov: true}},
	"adam":        {method.Adam{Steps: 20, Gradient: method.Gradient{Batch: 100}, Rate: 0.01, Beta1: 0.5}},
	"blsgd":       {method.BLSGD{Steps: 20, Gradient: method.Gradient{Batch: 100}}, method.BLSGD{Steps: 12, Gradient: method.Gradient{Clip: 3}, MaxBacktracks: 3, Rate: 0.5}, method.BLSGD{Steps: 20, Gradient: method.Gradient{Batch: 100}, Growth: "adaptive", Decay: 0.05}, method.BLSGD{Steps: 20, Growth: "must", MaxBacktracks: 2, Armijo: 0.9}},
	"privgene":    {method.PrivGene{Steps: 12, Move: 1, Decay: 1, Clip: 2}, method.PrivGene{Steps: 3, Choice: 0.01}},
	"majority":    {method.Majority{Choice: 0.5}},
	"nag":         {method.NAG{P1: method.P1{Steps: 20, Gradient: method.Gradient{Batch: 100}}}, method.NAG{P1: method.P1{Steps: 12, Rate: 0.5, Gradient: method.Gradient{Clip: 3, Noise: 40}}}},
	"nag-opt":     {method.NAGOpt{NAG: method.NAG{P1: method.P1{Steps: 20, Gradient: method.Gradient{Batch: 100}}}}},
	"opt":         {method.OPT{P4: method.P4{Gradient: 1e-6, Steps: 20}, Costs: method.Costs{Pay: method.ByPlan}}, method.OPT{P4: method.P4{Gradient: 1e-6, Steps: 20}, Batch: 100}},
	"opt-ls":      {method.OPTLS{P4: method.P4{Gradient: 1e-6, Steps: 20}, Costs: method.Costs{Pay: method.ByPlan}, Long: 3, Shrink: 0.8}},
	"2opt":        {method.TwoOPT{OPT: method.OPT{P4: method.P4{Gradient: 1e-6, Steps: 40}, Costs: method.Costs{Pay: method.ByPlan}}, Phases: method.Phases{First: 8, Share: 0.5}}},
	"2opt-ls":     {method.TwoOPTLS{OPTLS: method.OPTLS{P4: method.P4{Gradient: 1e-6, Steps: 40}, Costs: method.Costs{Pay: method.ByPlan}}}},
	"tr":          {method.TR{P4: method.P4{Gradient: 1e-6, Steps: 20}, Batch: 100}},
	"outpert":     {method.OutPert{Steps: 3, Rate: 0.5, Noise: 40}},
	"outpert-sgd": {method.OutPertSGD{Passes: 3, Batch: 100, Rate: 0.5}},
	"amp":         {method.AMP{Lambda: 30}},
	"masg-opt":    {method.MASGOpt{MASG: method.MASG{P1: method.P1{Steps: 60, Rate: 0.5, Mu: 0.2}}}},
	"newton":      {method.Newton{Steps: 10, Hessians: 3, Share: 0.5, Gradient: method.Gradient{Clip: 3}}, method.Newton{Steps: 8, Hessians: 8, Floor: 0.2, Rate: 0.5, Gradient: method.Gradient{Noise: 40}}},
	"agd":         {method.AGD{Splits: 20, Rate: 0.5, MaxBacktracks: 5, Clip: 3, Choice: 2}, method.AGD{Splits: 10, Steps: 200, Growth: 1, Noise: 80}},
}

// short are the methods that do not reach the optimum of a problem, and why: the suite's part
// about what they ask is for them too.
var short = map[string]string{
	"majority": "it looks at labels only",
	"privgene": "its moves get shorter whether or not they have arrived",
}

func TestMain(m *testing.M) {
	method.Register(method.Entry{Name: "registered", About: "from outside", Method: method.SGD{}})
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	for _, e := range method.Registry() {
		t.Run(e.Name, func(t *testing.T) {
			if _, ok := short[e.Name]; ok {
				methodtest.CheckAsking(t, append([]method.Method{e.Method}, configs[e.Name]...)...)
				return
			}
			methodtest.Check(t, e, configs[e.Name]...)
		})
	}
}

// The way to draw a batch follows the relation unless it is given, and the plan says which it was.
func TestSGDSampling(t *testing.T) {
	inner := privacy.Gaussian{Sigma: 3}
	for _, c := range []struct {
		adj  privacy.Adjacency
		m    method.SGD
		want privacy.Event // nil: refused
	}{
		{privacy.AddRemove, method.SGD{}, inner},
		{privacy.ReplaceOne, method.SGD{Gradient: method.Gradient{Batch: 1000}}, inner},
		{privacy.AddRemove, method.SGD{Gradient: method.Gradient{Batch: 10}}, privacy.PoissonSampled{Rate: 0.01, Of: inner}},
		{privacy.ReplaceOne, method.SGD{Gradient: method.Gradient{Batch: 10}}, privacy.PoissonSampled{Rate: 0.01, Of: privacy.GaussianSum{Presence: 6, Replacement: 3}}},
		{privacy.ReplaceOne, method.SGD{Gradient: method.Gradient{Batch: 10, Sampling: method.Poisson}}, privacy.PoissonSampled{Rate: 0.01, Of: privacy.GaussianSum{Presence: 6, Replacement: 3}}},
		{privacy.ReplaceOne, method.SGD{Gradient: method.Gradient{Batch: 10, Sampling: method.Fixed}}, privacy.FixedSampled{M: 10, N: 1000, Of: inner}},
		{privacy.AddRemove, method.SGD{Gradient: method.Gradient{Batch: 10, Sampling: method.Fixed}}, nil},
		{privacy.AddRemove, method.SGD{Gradient: method.Gradient{Batch: 10, Sampling: "shuffled"}}, nil},
		{privacy.AddRemove, method.SGD{Gradient: method.Gradient{Sampling: method.Poisson}}, nil},
	} {
		pub := oracle.Public{Dim: 3, Rows: 1000, Classes: 2, Adjacency: c.adj, Presence: true, NormBound: 1, Lipschitz: 1, Smooth: 0.25}
		terms := method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: c.adj}, Accountant: account.Best{}}
		c.m.Gradient.Noise, c.m.Steps = 3, 7
		m, err := c.m.Configure(pub, method.Objective{}, terms)
		if err != nil || c.want == nil {
			if (err == nil) != (c.want != nil) {
				t.Errorf("%v, %+v: %v", c.adj, c.m, err)
			}
			continue
		}
		if plan, err := m.Plan(pub); err != nil || !privacy.Equal(plan, privacy.Repeated{Count: 7, Of: c.want}) {
			t.Errorf("%v, %+v plans %v (%v); want 7 × %v", c.adj, c.m, plan, err, c.want)
		}
	}
	// Runs written before this field existed.
	old := method.SGD{Steps: 1, Gradient: method.Gradient{Batch: 10, Noise: 3}}
	plan, err := old.Plan(oracle.Public{Rows: 1000, Adjacency: privacy.AddRemove})
	if err != nil || !privacy.Equal(plan, privacy.Repeated{Count: 1, Of: privacy.PoissonSampled{Rate: 0.01, Of: inner}}) {
		t.Errorf("an old record means %v (%v)", plan, err)
	}
	plan, err = old.Plan(oracle.Public{Rows: 1000, Adjacency: privacy.ReplaceOne})
	if err != nil || !privacy.Equal(plan, privacy.Repeated{Count: 1, Of: privacy.PoissonSampled{Rate: 0.01, Of: inner}}) {
		t.Errorf("a record without presence means %v (%v)", plan, err)
	}
}

// Value clipping is asked for only where losses bound gradients, and costs the same.
func TestSGDClipping(t *testing.T) {
	pub := oracle.Public{Dim: 3, Rows: 1000, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25}
	terms := method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}, Accountant: account.Best{}}
	if _, err := (method.SGD{Gradient: method.Gradient{Clipping: method.ByValue}}).Configure(pub, method.Objective{}, terms); err == nil || !strings.HasPrefix(err.Error(), "clipping: ") {
		t.Errorf("a model whose losses bound nothing: %v", err)
	}
	if _, err := (method.SGD{Gradient: method.Gradient{Clipping: "loss"}}).Configure(pub, method.Objective{}, terms); err == nil || !strings.Contains(err.Error(), "choose gradient, value") {
		t.Errorf("an unknown word: %v", err)
	}
	pub.Bounded = true
	var plans []privacy.Event
	for _, by := range []string{"", method.ByGradient, method.ByValue} {
		m, err := method.SGD{Gradient: method.Gradient{Clipping: by}}.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := m.Plan(pub)
		if err != nil {
			t.Fatal(err)
		}
		if plans = append(plans, plan); !privacy.Equal(plan, plans[0]) {
			t.Errorf("%q costs %v, not %v", by, plan, plans[0])
		}
	}
}

// An adversary that always asks for more is stopped, and conforms.
func TestAdversaryConforms(t *testing.T) {
	methodtest.CheckAsking(t, methodtest.Greedy{}, methodtest.Greedy{Batch: 50}, methodtest.Greedy{More: 0.5})
}

// What a method's files hold can be read again, and comes out the same; each field has a name of its own.
func TestFilesOfMethods(t *testing.T) {
	for _, e := range method.Registry() {
		seen := map[string]bool{}
		for _, f := range e.Fields() {
			if f.Name == "" || f.Doc == "" || seen[f.Name] {
				t.Errorf("method %s: its field %q needs a tag yaml with a name of its own and a tag doc that describes it; the "+
					"fields of embedded structs and of a Gradient count", e.Name, f.Name)
			}
			seen[f.Name] = true
			value := map[string]string{"int": "1", "float64": "1", "bool": "true", "string": `"x"`}[f.Type]
			if _, err := e.Decode(fmt.Appendf(nil, `{%q: %s}`, f.Name, value)); err != nil {
				t.Errorf("method %s: its field %q has another name in files: %v; give it the same name in its tags yaml and json",
					e.Name, f.Name, err)
			}
		}
		for _, m := range append([]method.Method{e.Method}, configs[e.Name]...) {
			written, err := method.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			read, err := e.Decode(written)
			if err != nil || !reflect.DeepEqual(read, m) {
				t.Errorf("method %s: Encode writes %s, and Decode reads that as another configuration, %+v (%v); give each "+
					"exported field the same name in its tags yaml and json, and no omitempty that loses a value", e.Name, written,
					read, err)
			}
		}
		if _, err := e.Decode([]byte(`{"unknown": 1}`)); err == nil {
			t.Errorf("%s: reads an unknown field", e.Name)
		}
	}
	// Fields of a Gradient stand among the method's, what Configure notes behind the schedule.
	m := method.Momentum{Steps: 3, Rate: 2, Gradient: method.Gradient{Clip: 1, Off: true}, Schedule: "cosine", Beta: 0.5}
	want := `{"steps":3,"rate":2,"clip":1,"batch":0,"noise_multiplier":0,"schedule":"cosine","off":true,"momentum":0.5}`
	if got, err := method.Encode(m); err != nil || string(got) != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

// A program registers methods before anything reads the registry, each under a name of its own.
func TestRegister(t *testing.T) {
	if e, err := method.Lookup("registered"); err != nil || e.About != "from outside" {
		t.Errorf("%+v, %v", e, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a method is registered after the registry was read")
		}
	}()
	method.Register(method.Entry{Name: "late", Method: method.SGD{}})
}

// A model without bounds is an error that names the field which would follow from them.
func TestNoBounds(t *testing.T) {
	inf := oracle.Bound(math.Inf(1))
	pub := oracle.Public{Dim: 3, Rows: 1000, Adjacency: privacy.ReplaceOne, NormBound: 1, Lipschitz: inf, Smooth: inf, HessLipschitz: inf}
	for _, e := range method.Registry() {
		for _, terms := range []method.Terms{methodtest.On, methodtest.Off} {
			m, err := e.Method.Configure(pub, method.Objective{}, terms)
			if err == nil {
				text, _ := method.Encode(m)
				for _, f := range []string{"rate", "move", "gradient"} {
					if strings.Contains(string(text), fmt.Sprintf(`"%s":0,`, f)) {
						t.Errorf("method %s: Configure takes a model without bounds and leaves %s at 0, as in %s; choose it by another "+
							"public fact, or return an error that begins with the field (a Number with a default of NaN does)", e.Name, f,
							text)
					}
				}
			} else if field, _, named := strings.Cut(err.Error(), ": "); !named || strings.Contains(field, " ") {
				t.Errorf("method %s: Configure refuses a model without bounds by %q; begin the error with the field to set and a "+
					"colon", e.Name, err)
			}
		}
	}
}

// A field of a Gradient that a method does not read is refused by its name: files would lose it.
func TestUnusedFields(t *testing.T) {
	pub := methodtest.NewOracle(methodtest.Quadratic(4, 10), 0).Facts
	for name, m := range map[string]method.Method{
		"sampling": method.Auto{Gradient: method.Gradient{Batch: 10, Sampling: method.Fixed}},
		"clipping": method.NAG{P1: method.P1{Gradient: method.Gradient{Clipping: method.ByValue}}},
		"batch":    method.Newton{Gradient: method.Gradient{Batch: 10}},
	} {
		if _, err := m.Configure(pub, method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Augmented views need images and a norm to clip, and cost nothing.
func TestSGDViews(t *testing.T) {
	pub := oracle.Public{Dim: 9, Rows: 1000, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25, Bounded: true, Image: []int{3, 3}}
	plan := func(m method.SGD) privacy.Event {
		fitted, err := m.Configure(pub, method.Objective{}, methodtest.On)
		if err != nil {
			t.Fatal(err)
		}
		p, err := fitted.Plan(pub)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if one, four := plan(method.SGD{Gradient: method.Gradient{Batch: 10}}), plan(method.SGD{Gradient: method.Gradient{Batch: 10, Augmentation: 4, Shift: 1}}); !privacy.Equal(one, four) {
		t.Errorf("four views cost %v, one %v", four, one)
	}
	plain := pub
	plain.Image = nil
	for _, c := range []struct {
		pub  oracle.Public
		m    method.SGD
		want string
	}{
		{plain, method.SGD{Gradient: method.Gradient{Augmentation: 2, Shift: 1}}, "views: found 2"},
		{pub, method.SGD{Gradient: method.Gradient{Augmentation: 2}}, "views: found 2"},
		{pub, method.SGD{Gradient: method.Gradient{Augmentation: 65, Flip: true}}, "views: found 65"},
		{pub, method.SGD{Gradient: method.Gradient{Flip: true}}, "views: found one"},
		{pub, method.SGD{Gradient: method.Gradient{Augmentation: 2, Shift: 3}}, "shift: found 3"},
		{pub, method.SGD{Gradient: method.Gradient{Augmentation: 2, Shift: -1}}, "shift: found -1"},
		{pub, method.SGD{Gradient: method.Gradient{Augmentation: 2, Shift: 1, Clipping: method.ByValue}}, "clipping: found"},
	} {
		if _, err := c.m.Configure(c.pub, method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.m, err, c.want)
		}
	}
}

// A method of curved models may ask for Hessians where it says nothing; auto does so for statistics alone.
func TestMostNumbers(t *testing.T) {
	curved, flat := oracle.Public{Dim: 5, Curved: true}, oracle.Public{Dim: 5}
	for _, c := range []struct {
		m    method.Method
		pub  oracle.Public
		want int
	}{
		{method.Newton{}, curved, 15}, {method.SGD{}, curved, 15}, {method.SGD{}, flat, 5},
		{method.Auto{Solve: method.SolveStatistics}, curved, 15}, {method.Auto{}, curved, 5}, {method.Auto{}, flat, 5},
	} {
		if n := method.MostNumbers(c.m, c.pub); n != c.want {
			t.Errorf("%#v: %d numbers; want %d", c.m, n, c.want)
		}
	}
}
