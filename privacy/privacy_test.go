package privacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "append new forms to testdata/events.golden")

// stored are events whose form is in people's files. The list only grows, and
// line i of testdata/events.golden is the form of event i.
var stored = []Event{
	Gaussian{Sigma: 1.5},
	Laplace{Scale: 0.25},
	PureDP{Epsilon: 1e-9},
	PoissonSampled{Rate: 0.01, Of: Gaussian{Sigma: 1}},
	PoissonSampled{Rate: 1, Of: Composed{Gaussian{Sigma: 2}, Laplace{Scale: 3}}},
	Composed{},
	Composed{Gaussian{Sigma: 1}, Composed{}, Repeated{Count: 2, Of: PureDP{Epsilon: 0.5}}},
	Repeated{Count: 0, Of: Gaussian{Sigma: 1}},
	Repeated{Count: 10_000_000, Of: PoissonSampled{Rate: 1e-7, Of: Gaussian{Sigma: 0.6}}},
	NonPrivate{Why: "a test score <b>& \"more\"</b>"},
	NonPrivate{},
	AboveThreshold{2, 4, 50},
	Select{0.5},
	ApproxDP{0, 1e-5},
	ApproxDP{1, 0},
	FixedSampled{10, 1000, Gaussian{4}},
	FixedSampled{7, 7, Composed{Gaussian{2}, AboveThreshold{1, 2, 1}}},
	Filtered{InPure, 0, 1.5, 0},
	Filtered{InZCDP, 0, 1, 1e-8},
	Filtered{InGDP, 0, 1, 1e-8},
	Filtered{InRDP, 38.5, 0.1, 1e-6},
	Tuned{[]Event{Gaussian{2}, Composed{Laplace{3}, Repeated{4, PoissonSampled{0.5, Gaussian{1}}}}}, 1, 0.1},
	PoissonSampled{0.01, GaussianSum{2, 1}},
	Repeated{60, Allocated{234, Gaussian{0.8}}},
	Continued{},
	Parallel{Part: "holdout", Of: Composed{Gaussian{2}, PoissonSampled{0.5, Gaussian{1}}}},
	PoissonSampled{0.01, Shared{10, 3, GaussianSum{2, 1}}},
	Retried{Repeated{60, PoissonSampled{0.01, Shared{10, 3, Gaussian{2}}}}, 6},
	Parallel{"training", "1f3a", Gaussian{2}},
}

// The rule of a division is the end of a part's name, as events were stored before they had the field. Every name is written
// as it was read.
func TestRuleOfAPart(t *testing.T) {
	for name, want := range map[string]Parallel{
		"training":                            {Part: "training"},
		"training of split 1f3a":              {Part: "training", Rule: "1f3a"},
		"training of split a of split b":      {Part: "training of split a", Rule: "b"},
		"training of split ":                  {Part: "training of split "},
		" of split b":                         {Part: " of split b"},
		"a of split  of split b":              {Part: "a of split ", Rule: "b"},
		"holdout of splits 1f3a":              {Part: "holdout of splits 1f3a"},
		"training of split a of split b of s": {Part: "training of split a", Rule: "b of s"},
	} {
		want.Of = Gaussian{2}
		quoted, _ := json.Marshal(name)
		form := `{"event":"parallel","of":{"event":"gaussian","sigma":2},"part":` + string(quoted) + `}`
		e, err := UnmarshalEvent([]byte(form))
		if err != nil || e != Event(want) {
			t.Errorf("%s reads as %#v, %v", form, e, err)
			continue
		}
		if b, err := MarshalEvent(e); err != nil || string(b) != form {
			t.Errorf("%s is written as %s, %v", form, b, err)
		}
		named := Parallel{Part: name, Of: want.Of}
		if b, err := MarshalEvent(named); err != nil || string(b) != form || named.Division() != want.Rule || !Equal(named, e) || InPart(name, want.Of) != e {
			t.Errorf("as a name: %s, %q, %v", b, named.Division(), err)
		}
	}
	for _, e := range []Parallel{{"a", "b of split c", Gaussian{2}}, {"a", "\xff", Gaussian{2}}, {"", "b", Gaussian{2}}} {
		if e.Validate() == nil {
			t.Errorf("%#v is valid", e)
		}
	}
}

func TestStoredForms(t *testing.T) {
	const path = "testdata/events.golden"
	data, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(data) == 0 {
		lines = nil
	}
	if *update {
		for _, e := range stored[len(lines):] {
			form, err := MarshalEvent(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(form))
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) != len(stored) {
		t.Fatalf("%s holds %d forms of %d; -update appends new ones", path, len(lines), len(stored))
	}
	for i, line := range lines {
		got, err := UnmarshalEvent([]byte(line))
		if err != nil || !Equal(got, stored[i]) {
			t.Errorf("line %d: %s reads as %v, %v; want %v", i+1, line, got, err, stored[i])
		}
		form, err := MarshalEvent(stored[i])
		if err != nil || string(form) != line {
			t.Errorf("line %d: %v is written as %s, %v; want %s", i+1, stored[i], form, err, line)
		}
	}
}

// TestKinds: every type of event is in kinds, inside, with, stored and anyEvent, which a new one must enter.
func TestKinds(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	types := regexp.MustCompile(`(?m)^func \((\w+)\) event\(\)`).FindAllStringSubmatch(string(source), -1)
	seen, drawn := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	walk := func(in map[reflect.Type]bool) func(Event) bool {
		return func(e Event) bool { in[reflect.TypeOf(e)] = true; return true }
	}
	Walk(Composed(stored), walk(seen))
	for seed := range 400 {
		Walk(anyEvent(3).Example(seed), walk(drawn))
	}
	for _, m := range types {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.of.Name() == m[1] })
		if i < 0 {
			t.Errorf("event %s of privacy/event.go has no entry in kinds, privacy/codec.go; add a kindOf that says how it is "+
				"written and read", m[1])
			continue
		}
		e := reflect.Zero(kinds[i].of).Interface().(Event)
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("event %s: %v; add a case to inside, privacy/walk.go, with the events that it is made of", m[1], p)
				}
			}()
			lists := []reflect.Type{reflect.TypeFor[Composed](), reflect.TypeFor[Tuned]()} // without an entry, if zero
			made, part := len(inside(e)) > 0 || slices.Contains(lists, kinds[i].of), Event(Gaussian{1})
			if made == Single(e) {
				t.Errorf("event %s: Single, privacy/walk.go, says %v, but inside lists what it is made of; add a case to Single",
					m[1], !made)
			}
			if got := inside(with(e, []Event{part})); made && !(len(got) == 1 && got[0] == part) {
				t.Errorf("event %s: with, privacy/walk.go, does not put in other events than it was made of; add a case to with",
					m[1])
			}
		}()
		if !seen[kinds[i].of] {
			t.Errorf("event %s is not in stored, privacy/privacy_test.go; append one and run go test ./privacy -run "+
				"TestStoredForms -update, so that its form in files stays readable", m[1])
		}
		if !drawn[kinds[i].of] {
			t.Errorf("anyEvent, privacy/privacy_test.go, never draws the event %s, so no round trip is tried; add a case", m[1])
		}
	}
	if len(types) != len(kinds) {
		t.Errorf("privacy/event.go has %d types of events, kinds in privacy/codec.go %d; each has one entry", len(types),
			len(kinds))
	}
}

func positiveNumber() *rapid.Generator[float64] {
	return rapid.Float64Range(math.SmallestNonzeroFloat64, math.MaxFloat64)
}

// anyEvent draws a valid event of at most the given depth.
func anyEvent(depth int) *rapid.Generator[Event] {
	return rapid.Custom(func(t *rapid.T) Event {
		kinds := 19
		if depth == 0 {
			kinds = 10
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return Gaussian{positiveNumber().Draw(t, "sigma")}
		case 1:
			return Laplace{positiveNumber().Draw(t, "scale")}
		case 2:
			return PureDP{positiveNumber().Draw(t, "epsilon")}
		case 3:
			return NonPrivate{rapid.String().Draw(t, "why")}
		case 4:
			return AboveThreshold{positiveNumber().Draw(t, "threshold"), positiveNumber().Draw(t, "query"), rapid.IntRange(1, math.MaxInt).Draw(t, "max")}
		case 5:
			return Select{positiveNumber().Draw(t, "epsilon")}
		case 6:
			return ApproxDP{rapid.Float64Range(0, math.MaxFloat64).Draw(t, "epsilon"), rapid.Float64Range(0, 0.999).Draw(t, "delta")}
		case 7:
			f := Filtered{rapid.SampledFrom([]Currency{InPure, InZCDP, InGDP, InRDP}).Draw(t, "currency"), 0, positiveNumber().Draw(t, "epsilon"), rapid.Float64Range(1e-300, 0.999).Draw(t, "delta")}
			switch f.Currency {
			case InPure:
				f.Delta = 0
			case InRDP:
				f.Order = rapid.Float64Range(1.001, 1e300).Draw(t, "order")
			}
			return f
		case 8:
			owners := rapid.IntRange(2, math.MaxInt).Draw(t, "owners")
			return Shared{owners, rapid.IntRange(0, owners-2).Draw(t, "colluders"), Gaussian{positiveNumber().Draw(t, "sigma")}}
		case 9:
			r := rapid.Float64Range(1e-300, 1e300).Draw(t, "replacement")
			return GaussianSum{Presence: r * rapid.Float64Range(1, 2).Draw(t, "presence over replacement"), Replacement: r}
		case 17:
			return Tuned{rapid.SliceOfN(inSample(depth-1), 1, 3).Draw(t, "among"), rapid.Float64Range(-0.999, 9).Draw(t, "eta"),
				rapid.Float64Range(1e-300, 0.999).Draw(t, "gamma")}
		case 14:
			n := rapid.IntRange(1, math.MaxInt).Draw(t, "n")
			return FixedSampled{rapid.IntRange(1, n).Draw(t, "m"), n, inSample(depth-1).Draw(t, "of")}
		case 16:
			return PoissonSampled{rapid.Float64Range(1e-300, 1).Draw(t, "rate"), inSample(depth-1).Draw(t, "of")}
		case 10:
			return Allocated{rapid.IntRange(2, math.MaxInt).Draw(t, "batches"), inSample(depth-1).Draw(t, "of")}
		case 15:
			return Retried{anyEvent(depth-1).Filter(func(e Event) bool { return !Contains[Retried](e) }).Draw(t, "of"), rapid.IntRange(0, math.MaxInt).Draw(t, "retries")}
		case 11:
			return Continued{}
		case 13:
			return Parallel{rapid.StringN(1, 9, -1).Draw(t, "part"), rapid.StringN(0, 9, -1).Draw(t, "rule"), inSample(depth-1).Draw(t, "of")}
		case 12:
			return Repeated{rapid.IntRange(0, math.MaxInt).Draw(t, "count"), anyEvent(depth-1).Draw(t, "of")}
		default:
			return Composed(rapid.SliceOfN(anyEvent(depth-1), 0, 3).Draw(t, "parts"))
		}
	})
}

// inSample draws one that may be asked of a sample.
func inSample(depth int) *rapid.Generator[Event] {
	return anyEvent(depth).Filter(func(e Event) bool {
		return !Contains[Filtered](e) && !Contains[Parallel](e) && !Contains[Retried](e) && !Contains[Tuned](e)
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(3).Draw(t, "event")
		form, err := MarshalEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := UnmarshalEvent(form)
		if err != nil || !Equal(e, back) || !Equal(back, e) {
			t.Fatalf("%s reads as %v, %v", form, back, err)
		}
		again, err := MarshalEvent(back)
		if err != nil || string(again) != string(form) {
			t.Fatalf("%s is written again as %s, %v", form, again, err)
		}
	})
}

func TestEqual(t *testing.T) {
	for i, a := range stored {
		for j, b := range stored {
			if Equal(a, b) != (i == j) {
				t.Errorf("Equal(%v, %v) is %v", a, b, i != j)
			}
		}
		if Equal(a, nil) || Equal(nil, a) {
			t.Errorf("%v equals nil", a)
		}
	}
	if !Equal(nil, nil) {
		t.Error("nil differs from nil")
	}
	if !Equal(Composed(nil), Composed{}) {
		t.Error("two empty compositions differ")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyEvent(2).Draw(t, "a"), anyEvent(2).Draw(t, "b")
		x, _ := MarshalEvent(a)
		y, _ := MarshalEvent(b)
		if Equal(a, b) != (string(x) == string(y)) || Equal(a, b) != Equal(b, a) {
			t.Fatalf("%s and %s: Equal is %v", x, y, Equal(a, b))
		}
	})
}

// nested is a stored event inside n repetitions.
func nested(n int) string {
	return strings.Repeat(`{"event":"repeated","count":1,"of":`, n) + `{"event":"gaussian","sigma":1}` + strings.Repeat("}", n)
}

func TestUnmarshalIsStrict(t *testing.T) {
	for _, c := range []struct{ form, says string }{
		{``, "EOF"},
		{`null`, "not an object"},
		{`[]`, "array"},
		{`{}`, "not known"},
		{`{"event":"cauchy","scale":1}`, `"cauchy" is not known`},
		{`{"event":"Gaussian","sigma":1}`, `"Gaussian" is not known`},
		{`{"event":"gaussian"}`, `"sigma" is missing`},
		{`{"event":"laplace"}`, `"scale" is missing`},
		{`{"event":"pure"}`, `"epsilon" is missing`},
		{`{"event":"gaussian","sigma":null}`, `"sigma" is null`},
		{`{"event":"gaussian","sigma":0}`, "above 0"},
		{`{"event":"gaussian","sigma":-1}`, "above 0"},
		{`{"event":"gaussian","sigma":1e999}`, "1e999"},
		{`{"event":"gaussian","sigma":"1"}`, "string"},
		{`{"event":"gaussian","sigma":1,"scale":1}`, "another type"},
		{`{"event":"gaussian","sigma":1,"parts":[{}]}`, "another type"},
		{`{"event":"gaussian","sigma":1,"of":{}}`, "another type"},
		{`{"event":"gaussian","sigma":1,"rate":null}`, "null"},
		{`{"event":"gaussian","sigma":1,"mean":1}`, "unknown field"},
		{`{"event":"gaussian","Sigma":1}`, "unknown field"},
		{`{"event":"gaussian","ſigma":1}`, "unknown field"}, // a long s, which JSON in Go folds to s
		{`{"event":"gaussian","sigma":1,"sigma":2}`, "twice"},
		{`{"event":"gaussian","sigma":1}}`, "more follows"},
		{`{"event":"gaussian","sigma":1}]`, "more follows"},
		{`{"event":"gaussian","sigma":1} {}`, "more follows"},
		{`{"event":"poisson","rate":0.5}`, "event"},
		{`{"event":"poisson","of":{"event":"gaussian","sigma":1}}`, `"rate" is missing`},
		{`{"event":"poisson","rate":0,"of":{"event":"gaussian","sigma":1}}`, "rate"},
		{`{"event":"poisson","rate":1.5,"of":{"event":"gaussian","sigma":1}}`, "rate"},
		{`{"event":"poisson","rate":0.5,"of":{"event":"gaussian","sigma":-1}}`, "sigma"},
		{`{"event":"repeated","of":{"event":"gaussian","sigma":1}}`, `"count" is missing`},
		{`{"event":"repeated","count":1.5,"of":{"event":"gaussian","sigma":1}}`, "1.5"},
		{`{"event":"repeated","count":-1,"of":{"event":"gaussian","sigma":1}}`, "count"},
		{`{"event":"composed","parts":[{"event":"gaussian"}]}`, "sigma"},
		{`{"event":"composed","parts":[null]}`, "not an object"},
		{`{"event":"filtered","epsilon":1,"delta":0}`, `"currency" is missing`},
		{`{"event":"filtered","currency":"rdp","epsilon":1,"delta":1e-8}`, `"order" is missing`},
		{`{"event":"filtered","currency":"zcdp","order":2,"epsilon":1,"delta":1e-8}`, "another type"},
		{nested(maxDepth + 1), "nested"},
	} {
		e, err := UnmarshalEvent([]byte(c.form))
		if err == nil || e != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.80s: got %v, %v; want an error that says %q", c.form, e, err, c.says)
		}
	}
	if _, err := UnmarshalEvent([]byte(nested(maxDepth))); err != nil {
		t.Errorf("the deepest allowed nesting: %v", err)
	}
}

func TestMarshalRefuses(t *testing.T) {
	deep := Event(Gaussian{1})
	for range maxDepth + 1 {
		deep = Composed{deep}
	}
	for _, e := range []Event{
		nil, Gaussian{}, Gaussian{math.NaN()}, Gaussian{math.Inf(1)}, GaussianSum{1, 0}, GaussianSum{0.9, 1}, GaussianSum{2.1, 1}, GaussianSum{math.Inf(1), math.Inf(1)}, Laplace{-1}, PureDP{0},
		PoissonSampled{Rate: 0.5}, PoissonSampled{0, Gaussian{1}}, PoissonSampled{math.NaN(), Gaussian{1}},
		Repeated{Count: 1}, Repeated{-1, Gaussian{1}}, Composed{nil}, Composed{Gaussian{}},
		NonPrivate{"\xff"}, deep,
		Filtered{}, Filtered{"caps", 0, 1, 1e-8}, Filtered{InPure, 0, 1, 1e-8}, Filtered{InZCDP, 0, 1, 0}, Filtered{InZCDP, 0, 0, 1e-8}, Filtered{InGDP, 2, 1, 1e-8},
		Filtered{InRDP, 0, 1, 1e-8}, Filtered{InRDP, 1, 1, 1e-8}, Filtered{InRDP, math.Inf(1), 1, 1e-8}, Filtered{InRDP, 2, 1, 1},
		Allocated{1, Gaussian{1}}, Allocated{Batches: 2}, Allocated{2, Filtered{InZCDP, 0, 1, 1e-8}}, PoissonSampled{0.5, Filtered{InZCDP, 0, 1, 1e-8}}, FixedSampled{1, 2, Composed{Gaussian{1}, Repeated{2, Filtered{InZCDP, 0, 1, 1e-8}}}},
	} {
		if form, err := MarshalEvent(e); err == nil {
			t.Errorf("%#v is written as %s", e, form)
		}
	}
}

// FuzzUnmarshalEvent: reading never panics, and whatever is read is valid and
// reads the same after writing.
func FuzzUnmarshalEvent(f *testing.F) {
	for _, e := range stored {
		form, err := MarshalEvent(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(form)
	}
	f.Add([]byte(nested(3) + "}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := UnmarshalEvent(data)
		if err != nil {
			if e != nil {
				t.Fatalf("%v with error %v", e, err)
			}
			return
		}
		form, err := MarshalEvent(e)
		if err != nil {
			t.Fatalf("%v was read and cannot be written: %v", e, err)
		}
		if back, err := UnmarshalEvent(form); err != nil || !Equal(e, back) {
			t.Fatalf("%s reads as %v, %v; want %v", form, back, err, e)
		}
	})
}

func TestAdjacency(t *testing.T) {
	for _, a := range []Adjacency{AddRemove, ReplaceOne} {
		text, err := a.MarshalText()
		var back Adjacency
		if err != nil || back.UnmarshalText(text) != nil || back != a {
			t.Errorf("%v is written as %s, %v and reads as %v", a, text, err, back)
		}
	}
	if _, err := Adjacency(0).MarshalText(); err == nil {
		t.Error("the zero relation has a name")
	}
	if _, err := ParseAdjacency("zero-out"); err == nil || !strings.Contains(err.Error(), "add-or-remove") {
		t.Errorf("an unknown relation: %v", err)
	}
	var b Budget
	if err := json.Unmarshal([]byte(`{"epsilon":1,"delta":1e-6,"adjacency":"replace-one"}`), &b); err != nil || b.Validate() != nil {
		t.Errorf("a budget: %v, %v", b, err)
	}
}

func TestBudgetValidate(t *testing.T) {
	ok := Budget{Epsilon: 1, Delta: 0, Adjacency: AddRemove}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
	for field, b := range map[string]Budget{
		"epsilon 0":   {0, 0.1, AddRemove},
		"epsilon NaN": {math.NaN(), 0.1, AddRemove},
		"epsilon Inf": {math.Inf(1), 0.1, AddRemove},
		"delta 1":     {1, 1, AddRemove},
		"delta below": {1, -1e-9, AddRemove},
		"delta NaN":   {1, math.NaN(), AddRemove},
		"adjacency":   {1, 0.1, 0},
	} {
		name, _, _ := strings.Cut(field, " ")
		if err := b.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if !errors.Is(fmt.Errorf("x: %w", ErrExhausted), ErrExhausted) {
		t.Error("ErrExhausted is not found when wrapped")
	}
}

func TestStrings(t *testing.T) {
	e := Composed{Repeated{3, PoissonSampled{0.5, Gaussian{2}}}, Laplace{1}, PureDP{0.1}, NonPrivate{"why"}}
	const want = "3 × Poisson(q=0.5, Gaussian(σ=2)) + Laplace(b=1) + pure(ε=0.1) + not private (why)"
	if e.String() != want || (Composed{}).String() != "nothing" {
		t.Errorf("got %q, want %q", e.String(), want)
	}
}

// A plan with other noise in every step was put into words in memory that grew with the
// square of its length: `sotto verify` does that several times.
func TestC4ManyPartsInLinearMemory(t *testing.T) {
	const parts = 20_000
	all := make(Composed, parts)
	for i := range all {
		all[i] = Repeated{Count: 1, Of: Gaussian{Sigma: 1 + float64(i)/parts}}
	}
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	words := ""
	if n := allocated(func() { words = all.String() }); n > 1<<20 || !strings.HasSuffix(words, "+ 19950 more") {
		t.Errorf("%d parts in words took %d bytes: %s", parts, n, words)
	}
	var text []byte
	if n := allocated(func() {
		var err error
		if text, err = MarshalEvent(all); err != nil {
			t.Fatal(err)
		}
	}); n > 16384*parts {
		t.Errorf("%d parts as JSON took %d bytes", parts, n)
	}
	if again, err := UnmarshalEvent(text); err != nil || !Equal(again, all) {
		t.Errorf("read again: %v", err)
	}
	for _, e := range []Event{all, Repeated{Count: 2, Of: all[:3]}, Composed{}, Composed{Composed{}, all[:2]}, Gaussian{1}} {
		want, err := MarshalEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteEvent(&b, e); err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%v written: %.300s, %v; want %.300s", e, b.Bytes(), err, want)
		}
	}
	if err := WriteEvent(io.Discard, Composed{Gaussian{-1}}); err == nil {
		t.Error("an event that is not valid was written")
	}
}

// What owners release together is a Shared wherever noise is Gaussian, once.
func TestInShares(t *testing.T) {
	in := Composed{Gaussian{1}, Repeated{3, PoissonSampled{0.1, Composed{Gaussian{2}, GaussianSum{3, 2}}}}, Laplace{1}}
	want := Composed{Shared{4, 1, Gaussian{1}}, Repeated{3, PoissonSampled{0.1, Composed{Shared{4, 1, Gaussian{2}}, Shared{4, 1, GaussianSum{3, 2}}}}}, Laplace{1}}
	got := InShares(in, 4, 1)
	if !Equal(got, want) || !Equal(InShares(got, 4, 1), want) || !Equal(in[0], Gaussian{1}) {
		t.Errorf("%v", got)
	}
}
