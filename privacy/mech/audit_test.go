package mech

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// What the audit holds each mechanism to: a lower bound on ε, drawn from its outcomes on two
// neighbors, that a private mechanism passes with probability auditFailure at most.
// A bound within nearly of the claim shows that the audit would see a smaller fault, too.
const (
	auditFailure = 1e-6
	auditSens    = 8 // grid steps between neighbors, on a grid of 1
)

// An audited mechanism draws a label from its law on the input or on its neighbor.
type audited func(neighbor bool, src *noise.Source) int

// laws are the two of them, on streams of their own.
func (a audited) laws(name string) (p, q audit.Law) {
	one, two := noise.NewSeeded(1, "audit "+name, 0), noise.NewSeeded(1, "audit "+name, 1)
	return func() int { return a(false, one) }, func() int { return a(true, two) }
}

// bucket is the label of a number: clamped to ±limit, so that there are 2·limit + 1.
func bucket(v int64, limit int64) int { return int(min(max(v, -limit), limit) + limit) }

// shifted is noise on 0 or on one sensitivity.
func shifted(add func(v []int64, src *noise.Source)) audited {
	v := make([]int64, 1)
	return func(neighbor bool, src *noise.Source) int {
		v[0] = 0
		if neighbor {
			v[0] = auditSens
		}
		add(v, src)
		return bucket(v[0], 200)
	}
}

// additive is a mechanism on 0 or on one sensitivity.
func additive(m Additive) audited {
	return shifted(func(v []int64, src *noise.Source) { must(m.Add(v, 1, auditSens, src)) })
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// oneSided turns noise on v from 0 up.
func oneSided(add func(v []int64, src *noise.Source)) audited {
	return shifted(func(v []int64, src *noise.Source) {
		at := v[0]
		add(v, src)
		v[0] = at + max(v[0]-at, at-v[0])
	})
}

// matrix is the entry beside the diagonal of a 2×2 matrix: neighbors differ there alone,
// by √½ of the Frobenius sensitivity.
func matrix(add func(v []int64, sens float64, src *noise.Source)) audited {
	v := make([]int64, 3)
	return func(neighbor bool, src *noise.Source) int {
		clear(v)
		if neighbor {
			v[1] = auditSens
		}
		add(v, math.Sqrt2*auditSens, src)
		return bucket(v[1], 200)
	}
}

// queries are those of the search under audit: on the input all but the last lie half a sensitivity
// below the threshold and the last as much above it; on the neighbor each is
// moved by one sensitivity, against the others.
const queries = 12

func query(k int, neighbor bool) int64 {
	if (k == queries-1) != neighbor {
		return auditSens / 2
	}
	return -auditSens / 2
}

// searching is the number of the query that ends the search, or that none does.
func searching(m AboveThreshold) audited {
	return func(neighbor bool, src *noise.Source) int {
		s, err := m.Start(0, 1, auditSens, src)
		must(err)
		for k := range queries {
			reached, err := s.Ask(query(k, neighbor))
			must(err)
			if reached {
				return k
			}
		}
		return queries
	}
}

// faultySearch is a search written as it should not be: draw sets the noise of the threshold
// and of the answers.
func faultySearch(draw func(src *noise.Source, bar, answer []int64)) audited {
	bar, answer := make([]int64, 1), make([]int64, queries)
	return func(neighbor bool, src *noise.Source) int {
		bar[0] = 0
		clear(answer)
		draw(src, bar, answer)
		for k := range queries {
			if query(k, neighbor)+answer[k] >= bar[0] {
				return k
			}
		}
		return queries
	}
}

// endless is a search that goes on after the first success under the same threshold noise. The
// first half of the queries is moved up, the other down; the label is how many of each succeed.
func endless(bar, each float64) audited {
	z, v := make([]int64, 1), make([]int64, queries)
	return func(neighbor bool, src *noise.Source) int {
		z[0] = 0
		for k := range v {
			v[k] = auditSens / 2
			if (k < queries/2) != neighbor {
				v[k] = -v[k]
			}
		}
		src.AddLaplace(z, bar*auditSens)
		src.AddLaplace(v, each*auditSens)
		told := 0
		for k := range v {
			if v[k] >= z[0] {
				told += 1 + 6*(2*k/queries) // 1 for the first half, 7 for the second
			}
		}
		return told
	}
}

// choice is the number of the candidate chosen; scores of the input and of its neighbor.
func choice(m Chooser, scores, neighbors []int64) audited {
	return func(neighbor bool, src *noise.Source) int {
		s := scores
		if neighbor {
			s = neighbors
		}
		i, err := m.Choose(s, 1, auditSens, src)
		must(err)
		return i
	}
}

// wrongWay is the choice of soundness.md, S-B1: exponential noise is taken off the scores.
func wrongWay(scale float64, scores, neighbors []int64) audited {
	v := make([]int64, len(scores))
	return func(neighbor bool, src *noise.Source) int {
		s := scores
		if neighbor {
			s = neighbors
		}
		clear(v)
		src.AddLaplace(v, scale)
		best := 0
		for i := range v {
			v[i] = s[i]<<20 - max(v[i], -v[i])
			if v[i] > v[best] {
				best = i
			}
		}
		return best
	}
}

// raised is k scores of 0, the first of which is moved by up and the others by rest.
func raised(k int, up, rest int64) (scores, neighbors []int64) {
	scores, neighbors = make([]int64, k), make([]int64, k)
	for i := range neighbors {
		neighbors[i] = rest
	}
	neighbors[0] = up
	return scores, neighbors
}

// A mechanism says what it costs.
type mechanism interface{ Event() privacy.Event }

// mechanisms are the names of the package's mechanisms: its types with a method Event.
func mechanisms(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	event := regexp.MustCompile(`(?m)^func \((?:\w+ )?(\w+)\) Event\(\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range event.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 8 {
		t.Fatalf("found only the mechanisms %q", names)
	}
	return names
}

// unaudited are the mechanisms that TestAudit does not try, and why.
var unaudited = map[string]string{
	"None":           "it adds no noise, and claims no privacy",
	"SymmetricShare": "it is Share on a matrix: TestSharesOfAMatrix",
}

// TestAudit: 10⁶ outcomes of each mechanism on each of two neighbors refute no claim, and those
// of mechanisms with planted faults refute theirs. Seeds are fixed. With random ones each line
// would fail by chance at most once in 10⁶; the faults have bounds far above the claim.
func TestAudit(t *testing.T) {
	race.Skip(t)
	const delta = 0.01
	// claim is what the accountant of pure ε, or of Gaussian noise, says of an event.
	claim := func(e privacy.Event, a account.Accountant, delta float64) float64 {
		loss, err := a.Loss(e, privacy.AddRemove)
		must(err)
		return loss.Epsilon(delta)
	}
	tried := map[string]bool{}
	pure := func(m mechanism) float64 {
		tried[reflect.TypeOf(m).Name()] = true
		return claim(m.Event(), account.Pure{}, 0)
	}
	gauss := func(m mechanism) float64 {
		tried[reflect.TypeOf(m).Name()] = true
		return claim(m.Event(), account.GDP{}, delta)
	}
	laplace := func(scale float64) func(v []int64, src *noise.Source) {
		return func(v []int64, src *noise.Source) { must(Laplace{scale}.Add(v, 1, auditSens, src)) }
	}
	gaussian := func(sigma float64) func(v []int64, src *noise.Source) {
		return func(v []int64, src *noise.Source) { must(Gaussian{sigma}.Add(v, 1, auditSens, src)) }
	}
	symmetric := func(sigma float64) audited {
		return matrix(func(v []int64, sens float64, src *noise.Source) {
			must(SymmetricGaussian{sigma}.Add(v, 1, sens, src))
		})
	}
	// Scales of the search: ε = 1/2 + 2/4.
	const bar, each = 2, 4
	at := AboveThreshold{Threshold: bar, Query: each, Max: queries}
	lap := func(scale float64, src *noise.Source, v []int64) { src.AddLaplace(v, scale*auditSens) }

	many, manyMoved := raised(40, auditSens, -auditSens)
	fewer, fewerMoved := raised(40, -auditSens, auditSens)
	up, upMoved := raised(40, auditSens, 0)
	one, oneMoved := raised(21, auditSens, 0) // S-B1
	for _, c := range []struct {
		name   string
		claim  float64
		delta  float64
		nearly float64 // the audit finds at least this part of the claim
		labels int
		right  audited
		wrong  map[string]audited
	}{
		{"laplace", pure(Laplace{1.5}), 0, 0.95, 401, additive(Laplace{1.5}), map[string]audited{
			"half the noise":  additive(Laplace{0.75}),
			"one-sided noise": oneSided(laplace(1.5)),
		}},
		{"gaussian", gauss(Gaussian{1.5}), delta, 0.9, 401, additive(Gaussian{1.5}), map[string]audited{
			"half the noise":            additive(Gaussian{0.75}),
			"one-sided noise":           oneSided(gaussian(1.5)),
			"sensitivity off by two":    shifted(func(v []int64, src *noise.Source) { must(Gaussian{1.5}.Add(v, 1, auditSens/2, src)) }),
			"variance taken for the σ²": shifted(func(v []int64, src *noise.Source) { must(Gaussian{math.Sqrt(1.5) / 1.5}.Add(v, 1, auditSens, src)) }),
		}},
		{"symmetric", gauss(SymmetricGaussian{1.5}), delta, 0.9, 401, symmetric(1.5), map[string]audited{
			"half the noise": symmetric(0.75),
			"deviation halved, not variance": matrix(func(v []int64, sens float64, src *noise.Source) {
				src.AddGaussian(v, 1.5*sens/2)
			}),
		}},
		{"shares", gauss(Share{3, 4, 2}), delta, 0.9, 401, shifted(pooling(Share{3, 4, 2}, 2)), map[string]audited{
			"a share missing":        shifted(pooling(Share{3, 4, 2}, 1)),
			"colluders not counted":  shifted(pooling(Share{3, 4, 0}, 2)),
			"the noise of one alone": shifted(func(v []int64, src *noise.Source) { must(Gaussian{3}.Add(v, 1, auditSens/2, src)) }),
		}},
		{"a share alone", claim(privacy.Alone(Share{3, 4, 2}.Event()), account.GDP{}, delta), delta, 0.9, 401,
			shifted(pooling(Share{3, 4, 2}, 1)), nil},
		{"search", pure(at), 0, 0.7, 49, searching(at), map[string]audited{
			"half the noise": searching(AboveThreshold{bar / 2, each / 2, queries}),
			"reused query noise": faultySearch(func(src *noise.Source, z, v []int64) {
				lap(bar, src, z)
				lap(each, src, v[:1])
				for k := range v {
					v[k] = v[0]
				}
			}),
			"threshold noise reused for the queries": faultySearch(func(src *noise.Source, z, v []int64) {
				lap(bar, src, z)
				for k := range v {
					v[k] = z[0]
				}
			}),
			"goes on after the first success": endless(bar, each),
			"no noise on the answers":         faultySearch(func(src *noise.Source, z, v []int64) { lap(bar, src, z) }),
		}},
		{"select", pure(Select{Epsilon: 1}), 0, 0.85, 40, choice(Select{Epsilon: 1}, many, manyMoved), map[string]audited{
			"half the noise":                 choice(Select{Epsilon: 2}, many, manyMoved),
			"taken for monotone":             choice(Select{Epsilon: 1, Monotone: true}, many, manyMoved),
			"S-B1, noise in the wrong way":   wrongWay(auditSens<<20, one, oneMoved),
			"no noise, the best is chosen":   choice(Select{Epsilon: 1000}, many, manyMoved),
			"S-B1, at twice the sensitivity": wrongWay(2*auditSens<<20, many, manyMoved),
		}},
		{"monotone select", pure(Select{Epsilon: 1, Monotone: true}), 0, 0.85, 40, choice(Select{Epsilon: 1, Monotone: true},
			up, upMoved), map[string]audited{
			"half the noise": choice(Select{Epsilon: 2, Monotone: true}, up, upMoved),
		}},
		{"permute and flip", pure(PermuteAndFlip{Epsilon: 1}), 0, 0.85, 40, choice(PermuteAndFlip{Epsilon: 1}, fewer,
			fewerMoved), map[string]audited{
			"half the noise":     choice(PermuteAndFlip{Epsilon: 2}, fewer, fewerMoved),
			"taken for monotone": choice(PermuteAndFlip{Epsilon: 1, Monotone: true}, fewer, fewerMoved),
		}},
	} {
		p, q := c.right.laws(c.name)
		switch got := audit.Epsilon(p, q, 1_000_000, c.labels, c.delta, auditFailure); {
		case got > c.claim:
			t.Errorf("%s: outcomes on two neighbors prove that it costs ε ≥ %.4f, %.4f more than its Event claims. It draws "+
				"less noise than it says, or Event is wrong: noise is scaled by the sensitivity, rounded up (R8, R15)", c.name, got,
				got-c.claim)
		case got < c.nearly*c.claim:
			t.Errorf("%s: the audit finds ε ≥ %.4f only, of the %.4f that its Event claims; it must find %.0f %%, or it would "+
				"not see a smaller fault. Choose neighbors in TestAudit, privacy/mech/audit_test.go, that differ as much as they "+
				"can, or correct an Event that claims too much", c.name, got, c.claim, 100*c.nearly)
		default:
			t.Logf("%s: ε ≥ %.4f of %.4f", c.name, got, c.claim)
		}
		for fault, m := range c.wrong {
			p, q := m.laws(c.name + fault)
			if got := audit.Epsilon(p, q, 200_000, c.labels, c.delta, auditFailure); got <= c.claim {
				t.Errorf("%s with the planted fault %q: the audit finds ε ≥ %.4f, within the claim, %.4f; it must catch the "+
					"fault, so choose neighbors or labels that show it", c.name, fault, got, c.claim)
			} else {
				t.Logf("%s, %s: ε ≥ %.4f of %.4f", c.name, fault, got, c.claim)
			}
		}
	}
	for _, name := range mechanisms(t) {
		switch _, exempt := unaudited[name]; {
		case !tried[name] && !exempt:
			t.Errorf("mechanism %s is not audited; give it a row of TestAudit, privacy/mech/audit_test.go, with planted "+
				"faults, or an entry of the map unaudited there, with the reason", name)
		case tried[name] && exempt:
			t.Errorf("mechanism %s is audited; take it out of the map unaudited, privacy/mech/audit_test.go", name)
		}
	}
}

// TestAuditOfTheRange: the log odds of two candidates move by ε at most if Select chooses, and by more if
// PermuteAndFlip does, which therefore must not claim it (R19).
func TestAuditOfTheRange(t *testing.T) {
	race.Skip(t)
	scores, neighbors := raised(2, -auditSens, auditSens)
	p, q := choice(Select{Epsilon: 1}, scores, neighbors).laws("range")
	if got := audit.Range(p, q, 1_000_000, 2, 0, 1, auditFailure); got > 1 || got < 0.95 {
		t.Errorf("select: found a range of %.4f; want 0.95 to 1", got)
	}
	p, q = choice(PermuteAndFlip{Epsilon: 1}, scores, neighbors).laws("range")
	// ln(2e − 1) = 1.49.
	if got := audit.Range(p, q, 1_000_000, 2, 0, 1, auditFailure); got < 1.4 {
		t.Errorf("permute and flip: found a range of %.4f; want about 1.49", got)
	}
}
