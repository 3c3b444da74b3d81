package privacy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Event states what was released about the records. Its meaning never
// changes; a new meaning is a new type. The set is sealed, so that an accountant
// can say which events it has a theorem for.
type Event interface {
	fmt.Stringer
	// Validate says whether the event's numbers make sense.
	Validate() error
	event()
}

type (
	// Gaussian: v + N(0, (Sigma·Δ₂)² I), where Δ₂ is the ℓ2 sensitivity of v.
	// Sigma is the noise multiplier (rules.md, R8).
	Gaussian struct{ Sigma float64 }
	// GaussianSum: a sum over records + N(0, s² I). Adding or removing a record moves the sum by at
	// most s/Presence in the ℓ2 norm, replacing one by at most s/Replacement, so both fields are
	// noise multipliers. Replacement ≤ Presence ≤ 2·Replacement.
	GaussianSum struct{ Presence, Replacement float64 }
	// Laplace: v + Laplace(Scale·Δ₁) in each coordinate, Δ₁ the ℓ1 sensitivity.
	Laplace struct{ Scale float64 }
	// PureDP: any ε-differentially private release.
	PureDP struct{ Epsilon float64 }
	// AboveThreshold: of at most Max queries, in order, the number of the first
	// whose noisy answer reaches a noisy threshold, or that none does. The
	// threshold's noise is Laplace(Threshold·Δ), drawn once; each answer's is
	// Laplace(Query·Δ), drawn afresh; Δ is the sensitivity of one query, whose
	// sign may differ from query to query (S-2d).
	AboveThreshold struct {
		Threshold, Query float64
		Max              int
	}
	// Select: a choice among candidates whose log odds between any two change by
	// at most Epsilon from a table to its neighbor: ε-bounded range, as the
	// Gumbel (exponential) mechanism gives. A choice that is merely ε-private is
	// PureDP (rules.md, R19).
	Select struct{ Epsilon float64 }
	// ApproxDP: any (ε, δ)-differentially private release. Its δ is spent.
	ApproxDP struct{ Epsilon, Delta float64 }
	// PoissonSampled: Of, on a sample that holds each record independently with
	// probability Rate. All that was asked of one sample is inside Of (S-2a).
	// Under replace-one what Of says holds between samples with and without a record,
	// too; a GaussianSum says how much less the sum then moves.
	PoissonSampled struct {
		Rate float64
		Of   Event
	}
	// FixedSampled: Of, on M of the table's N records, every subset of that size
	// equally likely. N is the table's physical row count, which is public under
	// replace-one (rules.md, R9). All that was asked of one sample is inside Of.
	FixedSampled struct {
		M, N int
		Of   Event
	}
	// Allocated: Batches times Of, in order, on an epoch of random allocation. Each record is in one of the batches,
	// equally likely in each and independent of the others', and what is asked of a batch may depend on what those
	// before released (ADR 42).
	Allocated struct {
		Batches int
		Of      Event
	}
	// Continued: one more batch of the epoch that the last Allocated charged as a whole. It costs nothing more.
	Continued struct{}
	// Composed: all of these on the same records, each possibly chosen after
	// seeing the outcomes of those before it.
	Composed []Event
	// Repeated: Count times Of, on the same records.
	Repeated struct {
		Count int
		Of    Event
	}
	// Parallel: Of, on the records of the part of the table named Part. The rule that divides the
	// table is fixed beforehand, and adding or removing a record changes only one part
	// (PROOFS.md#parallel). What is asked of one part may depend on what others gave. Events of
	// different rules add up, as each rule may put a record into any of its parts. Events outside
	// of any Parallel are of the whole table. Samples hold none.
	Parallel struct {
		Part string
		Rule string // name of the dividing rule, as in Name; "" if it has none
		Of   Event
	}
	// Shared: Of, a noisy sum over the records of several owners. Each of Owners owners adds a
	// share of the noise to its own part, and those of any Owners − Colluders of them add up to the
	// noise that Of states. Masks hide all but the sum of all parts: an observer of all messages,
	// together with Colluders owners, sees Of. Alone gives what others see without that assumption.
	// Of is a Gaussian or a GaussianSum.
	Shared struct {
		Owners, Colluders int
		Of                Event
	}
	// Retried: the plan Of, and beside it up to Retries of its batches once more: attempts that were charged and then
	// given up. Which batches may depend on all that was seen, and each is made as a whole, on a fresh sample with fresh
	// noise. A batch is a release, or what a Composed below the outermost holds, without repetitions and samples in it.
	Retried struct {
		Of      Event
		Retries int
	}
	// Tuned: the best of a random number of releases, by an order of the releases alone. Each is one of Among, drawn
	// independently by a public law; their number follows the truncated negative binomial law of Eta and Gamma, is 1 at
	// least and stays secret with all releases but the best (rules.md, R21). Eta 1 is the geometric law of mean 1/Gamma,
	// Eta 0 the logarithmic one.
	Tuned struct {
		Among      []Event
		Eta, Gamma float64
	}
	// NonPrivate: an access to the records without noise. Its cost is infinite.
	NonPrivate struct{ Why string }
	// Filtered: any events, chosen during the run, whose costs in one currency add up to at most
	// what (Epsilon, Delta) covers. It is the plan of a run whose costs depend on its releases;
	// package account makes the meter that enforces it. It applies to a whole table, never inside a
	// sample.
	Filtered struct {
		Currency Currency `json:"currency"`
		Order    float64  `json:"order,omitempty"` // of InRDP, above 1; else 0
		Epsilon  float64  `json:"epsilon"`
		Delta    float64  `json:"delta"` // 0 for InPure, else above 0
	}
)

// A Currency is what a Filtered event counts in. The meaning of a name never changes.
type Currency string

// The currencies in which costs may be chosen on the way.
const (
	InPure Currency = "pure" // ε
	InZCDP Currency = "zcdp" // ρ of zero-concentrated differential privacy
	InGDP  Currency = "gdp"  // μ² of Gaussian differential privacy
	InRDP  Currency = "rdp"  // Rényi divergence of one order
)

func (Gaussian) event()       {}
func (GaussianSum) event()    {}
func (Laplace) event()        {}
func (PureDP) event()         {}
func (AboveThreshold) event() {}
func (Select) event()         {}
func (ApproxDP) event()       {}
func (PoissonSampled) event() {}
func (FixedSampled) event()   {}
func (Allocated) event()      {}
func (Continued) event()      {}
func (Composed) event()       {}
func (Repeated) event()       {}
func (Parallel) event()       {}
func (Shared) event()         {}
func (Retried) event()        {}
func (Tuned) event()          {}
func (NonPrivate) event()     {}
func (Filtered) event()       {}

func positive(event, field string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: %s is %v; choose a number above 0", event, field, v)
	}
	return nil
}

// Validate: Sigma > 0 and finite.
func (e Gaussian) Validate() error { return positive("gaussian", "sigma", e.Sigma) }

// Validate: both multipliers > 0 and finite, and Replacement ≤ Presence ≤ 2·Replacement: a replacement is
// a record less and one more.
func (e GaussianSum) Validate() error {
	if err := positive("gaussian-sum", "presence", e.Presence); err != nil {
		return err
	}
	if err := positive("gaussian-sum", "replacement", e.Replacement); err != nil {
		return err
	}
	if e.Presence < e.Replacement || e.Presence/2 > e.Replacement {
		return fmt.Errorf("gaussian-sum: presence is %v beside replacement %v; choose a number from replacement to twice that", e.Presence, e.Replacement)
	}
	return nil
}

// Validate: Scale > 0 and finite.
func (e Laplace) Validate() error { return positive("laplace", "scale", e.Scale) }

// Validate: Epsilon > 0 and finite.
func (e PureDP) Validate() error { return positive("pure", "epsilon", e.Epsilon) }

// Validate: both scales > 0 and finite, Max ≥ 1.
func (e AboveThreshold) Validate() error {
	if err := positive("above-threshold", "threshold", e.Threshold); err != nil {
		return err
	}
	if err := positive("above-threshold", "query", e.Query); err != nil {
		return err
	}
	if e.Max < 1 {
		return fmt.Errorf("above-threshold: max is %d; choose 1 or more", e.Max)
	}
	return nil
}

// Validate: Epsilon > 0 and finite.
func (e Select) Validate() error { return positive("select", "epsilon", e.Epsilon) }

// Validate: Epsilon ≥ 0 and finite, 0 ≤ Delta < 1.
func (e ApproxDP) Validate() error {
	if !(e.Epsilon >= 0) || math.IsInf(e.Epsilon, 1) {
		return fmt.Errorf("approximate: epsilon is %v; choose 0 or more", e.Epsilon)
	}
	if !(e.Delta >= 0 && e.Delta < 1) {
		return fmt.Errorf("approximate: delta is %v; choose a number of 0 or more and below 1", e.Delta)
	}
	return nil
}

// Validate: 0 < Rate ≤ 1, and the inner event is valid.
func (e PoissonSampled) Validate() error {
	if !(e.Rate > 0 && e.Rate <= 1) {
		return fmt.Errorf("poisson: rate is %v; choose a number above 0 and up to 1", e.Rate)
	}
	return validSample("poisson", e.Of)
}

// Validate: 1 ≤ M ≤ N, and the inner event is valid.
func (e FixedSampled) Validate() error {
	if e.M < 1 || e.M > e.N {
		return fmt.Errorf("fixed: m is %d of n = %d; choose 1 to n", e.M, e.N)
	}
	return validSample("fixed", e.Of)
}

// Validate: Batches ≥ 2, and the inner event is valid.
func (e Allocated) Validate() error {
	if e.Batches < 2 {
		return fmt.Errorf("allocated: batches is %d; choose 2 or more", e.Batches)
	}
	return validSample("allocated", e.Of)
}

// Validate: always valid. Meters admit it only inside an epoch.
func (e Continued) Validate() error { return nil }

// Validate: every part is valid. An empty composition released nothing.
func (e Composed) Validate() error {
	for i, part := range e {
		if err := validInner(fmt.Sprintf("composed[%d]", i), part); err != nil {
			return err
		}
	}
	return nil
}

// Validate: Count ≥ 0, and the inner event is valid.
func (e Repeated) Validate() error {
	if e.Count < 0 {
		return fmt.Errorf("repeated: count is %d; choose 0 or more", e.Count)
	}
	return validInner("repeated", e.Of)
}

// Validate: the part has a name, the rule's name is none of two, and the inner event is valid and of one part of a
// whole table.
func (e Parallel) Validate() error {
	if e.Part == "" || !utf8.ValidString(e.Part) {
		return fmt.Errorf("parallel: part is %q; choose a name", e.Part)
	}
	if strings.Contains(e.Rule, ofRule) || !utf8.ValidString(e.Rule) {
		return fmt.Errorf("parallel: rule is %q; choose a name without %q", e.Rule, ofRule)
	}
	return whole("parallel", e.Of)
}

// ofRule stands between part and rule in the name of a part.
const ofRule = " of split "

// Name is the part and, if it has a name, the rule, as events are stored: "training of split 1f3a".
func (e Parallel) Name() string {
	if e.Rule == "" {
		return e.Part
	}
	return e.Part + ofRule + e.Rule
}

// parallel is e on the part of that Name.
func parallel(name string, e Event) Parallel {
	if i := strings.LastIndex(name, ofRule); i > 0 && i+len(ofRule) < len(name) {
		return Parallel{Part: name[:i], Rule: name[i+len(ofRule):], Of: e}
	}
	return Parallel{Part: name, Of: e}
}

// Division is the rule that made the part, also if Part has the form of a Name.
func (e Parallel) Division() string { return parallel(e.Name(), nil).Rule }

// Validate: 0 ≤ Colluders ≤ Owners − 2, so that the part of an honest owner is never alone, and Of is valid and a
// Gaussian or a GaussianSum.
func (e Shared) Validate() error {
	if e.Owners < 2 || e.Colluders < 0 || e.Colluders > e.Owners-2 {
		return fmt.Errorf("shared: found %d colluders of %d owners; choose from 0 to two less than the owners", e.Colluders,
			e.Owners)
	}
	switch e.Of.(type) {
	case Gaussian, GaussianSum, nil:
		return validInner("shared", e.Of)
	}
	return fmt.Errorf("shared: holds %v; use a sum with Gaussian noise", e.Of)
}

// Share is what the share of one owner makes of its own part of e: the noise multiplier is less by √(Owners −
// Colluders), rounded down.
func (e Shared) Share() Event {
	less := math.Sqrt(float64(e.Owners-e.Colluders)) * (1 + 0x1p-51)
	switch of := e.Of.(type) {
	case Gaussian:
		return Gaussian{Sigma: of.Sigma / less}
	case GaussianSum:
		return GaussianSum{Presence: of.Presence / less, Replacement: of.Replacement / less}
	}
	return NonPrivate{Why: "a share of no noise"}
}

// InShares is e with every Gaussian and GaussianSum as what owners release together, of whom colluders may know
// each other's shares: each a Shared. Noise of another kind is not shared by any theorem here, and stays as it is.
func InShares(e Event, owners, colluders int) Event {
	switch e := e.(type) {
	case Gaussian, GaussianSum:
		return Shared{owners, colluders, e}
	case Shared:
		return e
	}
	in := inside(e)
	if len(in) == 0 {
		return e
	}
	parts := make([]Event, len(in))
	for i := range in {
		parts[i] = InShares(in[i], owners, colluders)
	}
	return with(e, parts)
}

// Alone is e with the share of one owner in place of noise that several share: what others learn of
// an owner's records if masks do not hold, or if all other owners collude. A filter does not name
// the events that it admitted, so it becomes an access without noise, at infinite cost.
func Alone(e Event) Event {
	return Map(e, func(e Event) Event {
		switch e := e.(type) {
		case Shared:
			return e.Share()
		case Filtered:
			return NonPrivate{Why: "releases on a filter, of which each owner may have made a share"}
		}
		return e
	})
}

// A Sharing is what a plan whose noise several owners share assumes.
type Sharing struct {
	Owners    int `json:"owners" unit:"owners"`
	Colluders int `json:"colluders" unit:"owners"` // of the other owners, against whom all noise counts
	Retries   int `json:"retries" unit:"batches"`  // attempts that may be given up
}

// SharingOf reads it off a plan, or off what was charged; Owners is 0 where no owners share noise. Of shares that
// differ it takes the fewest colluders.
func SharingOf(e Event) (s Sharing) {
	Walk(e, func(e Event) bool {
		switch e := e.(type) {
		case Retried:
			s.Retries = max(s.Retries, e.Retries)
		case Shared:
			if s.Owners == 0 || e.Colluders < s.Colluders {
				s.Owners, s.Colluders = e.Owners, e.Colluders
			}
			return false
		}
		return true
	})
	if s.Owners == 0 {
		return Sharing{}
	}
	return s
}

// Validate: Retries ≥ 0, and the plan is valid and has no retries of its own.
func (e Retried) Validate() error {
	if e.Retries < 0 {
		return fmt.Errorf("retried: retries is %d; choose 0 or more", e.Retries)
	}
	if err := validInner("retried", e.Of); err != nil {
		return err
	}
	return single("retried", e.Of)
}

// WithoutRetries is a plan without its retries.
func WithoutRetries(plan Event) Event {
	if r, ok := plan.(Retried); ok {
		return r.Of
	}
	return plan
}

// single refuses a plan with retries inside of another event.
func single(where string, e Event) error {
	if Contains[Retried](e) {
		return fmt.Errorf("%s: holds a plan with retries; use single releases", where)
	}
	return nil
}

// Validate: Among is not empty and valid, and holds no filter; Eta > −1 and finite, 0 < Gamma < 1.
func (e Tuned) Validate() error {
	if len(e.Among) == 0 {
		return fmt.Errorf("tuned: holds no event")
	}
	for i, one := range e.Among {
		if err := validSample(fmt.Sprintf("tuned[%d]", i), one); err != nil {
			return err
		}
	}
	if !(e.Eta > -1) || math.IsInf(e.Eta, 1) {
		return fmt.Errorf("tuned: eta is %v; choose a number above -1", e.Eta)
	}
	if !(e.Gamma > 0 && e.Gamma < 1) {
		return fmt.Errorf("tuned: gamma is %v; choose a number above 0 and below 1", e.Gamma)
	}
	return nil
}

// Mean is the mean number of releases.
func (e Tuned) Mean() float64 {
	if math.Abs(e.Eta) < 1e-16 { // moves the logarithm by 1e-13 at most
		return (1/e.Gamma - 1) / -math.Log(e.Gamma)
	}
	return e.Eta * (1 - e.Gamma) / (-math.Expm1(e.Eta*math.Log(e.Gamma)) * e.Gamma)
}

// Validate: always valid; its cost is infinite.
func (e NonPrivate) Validate() error { return nil }

// Validate: a known currency, with an order if it has one and a δ if it needs one.
func (e Filtered) Validate() error {
	switch e.Currency {
	case InPure, InZCDP, InGDP, InRDP:
	default:
		return fmt.Errorf("filtered: currency is %q; choose %s, %s, %s or %s", e.Currency, InPure, InZCDP, InGDP, InRDP)
	}
	switch {
	case (e.Currency == InRDP) != (e.Order > 1 && !math.IsInf(e.Order, 1)) || e.Currency != InRDP && e.Order != 0:
		return fmt.Errorf("filtered: order is %v in currency %s; choose a number above 1 in %s, and 0 elsewhere", e.Order,
			e.Currency, InRDP)
	case !(e.Delta >= 0 && e.Delta < 1) || (e.Currency == InPure) != (e.Delta == 0):
		return fmt.Errorf("filtered: delta is %v in currency %s; choose 0 in %s, and a number above 0 and below 1 elsewhere",
			e.Delta, e.Currency, InPure)
	}
	return positive("filtered", "epsilon", e.Epsilon)
}

// validSample is validInner for what happened on a sample, or in a search for the best.
func validSample(where string, e Event) error {
	if err := whole(where, e); err != nil {
		return err
	}
	if Contains[Tuned](e) {
		return fmt.Errorf("%s: holds a search for the best; use single releases", where)
	}
	return nil
}

// whole is validInner for events on all records at hand whose cost is known beforehand.
func whole(where string, e Event) error {
	if err := validInner(where, e); err != nil {
		return err
	}
	if Contains[Filtered](e) {
		return fmt.Errorf("%s: holds a filter; use releases, whose cost is known beforehand", where)
	}
	if Contains[Parallel](e) {
		return fmt.Errorf("%s: holds what was asked of a part of the table; use releases of all its records", where)
	}
	return single(where, e)
}

func validInner(where string, e Event) error {
	if e == nil {
		return fmt.Errorf("%s: holds no event", where)
	}
	if err := e.Validate(); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func (e Gaussian) String() string { return fmt.Sprintf("Gaussian(σ=%.6g)", e.Sigma) }
func (e GaussianSum) String() string {
	return fmt.Sprintf("GaussianSum(σ=%.6g, presence %.6g)", e.Replacement, e.Presence)
}
func (e Laplace) String() string { return fmt.Sprintf("Laplace(b=%.6g)", e.Scale) }

func (e PureDP) String() string { return fmt.Sprintf("pure(ε=%.6g)", e.Epsilon) }
func (e AboveThreshold) String() string {
	return fmt.Sprintf("AboveThreshold(b=%.6g, %.6g, at most %d)", e.Threshold, e.Query, e.Max)
}
func (e Select) String() string { return fmt.Sprintf("Select(ε=%.6g)", e.Epsilon) }
func (e ApproxDP) String() string {
	return fmt.Sprintf("approximate(ε=%.6g, δ=%s)", e.Epsilon, decimal(e.Delta))
}
func (e FixedSampled) String() string   { return fmt.Sprintf("Fixed(%d of %d, %v)", e.M, e.N, e.Of) }
func (e PoissonSampled) String() string { return fmt.Sprintf("Poisson(q=%.6g, %v)", e.Rate, e.Of) }
func (e Allocated) String() string {
	return fmt.Sprintf("Allocated(%d batches, %v)", e.Batches, e.Of)
}
func (e Parallel) String() string { return fmt.Sprintf("on part %s: %v", e.Name(), e.Of) }
func (e Shared) String() string {
	return fmt.Sprintf("Shared(%d owners, %d colluders, %v)", e.Owners, e.Colluders, e.Of)
}
func (e Retried) String() string {
	return fmt.Sprintf("%v, and up to %d batches of it once more", e.Of, e.Retries)
}
func (e Continued) String() string  { return "one more batch of the epoch" }
func (e Repeated) String() string   { return fmt.Sprintf("%d × %v", e.Count, e.Of) }
func (e NonPrivate) String() string { return fmt.Sprintf("not private (%s)", e.Why) }
func (e Tuned) String() string {
	return fmt.Sprintf("best of about %.4g (η=%.6g, γ=%.6g) × one of [%v]", e.Mean(), e.Eta, e.Gamma, Composed(e.Among))
}
func (e Filtered) String() string {
	in := string(e.Currency)
	if e.Currency == InRDP {
		in = fmt.Sprintf("rdp of order %.6g", e.Order)
	}
	return fmt.Sprintf("Filter(%s, ε=%.6g, δ=%s)", in, e.Epsilon, decimal(e.Delta))
}

// decimal writes a number with six digits, and up to six decimals, as pages do.
func decimal(v float64) string {
	text := strconv.FormatFloat(v, 'g', 6, 64)
	if short, err := strconv.ParseFloat(text, 64); err == nil && short >= 1e-6 {
		return strconv.FormatFloat(short, 'f', -1, 64)
	}
	return text
}

// mostWords is how many parts of a composition String names: a plan with different noise in every
// step can have a million.
const mostWords = 50

func (e Composed) String() string {
	if len(e) == 0 {
		return "nothing"
	}
	var s strings.Builder
	for i, part := range e {
		if i > 0 {
			s.WriteString(" + ")
		}
		if i == mostWords {
			fmt.Fprintf(&s, "%d more", len(e)-i)
			break
		}
		s.WriteString(part.String())
	}
	return s.String()
}

// Equal says whether two events are the same value. It never panics, which ==
// on events does for Composed.
func Equal(a, b Event) bool {
	switch a := a.(type) {
	case Composed:
		b, ok := b.(Composed)
		return ok && slices.EqualFunc(a, b, Equal)
	case Tuned:
		b, ok := b.(Tuned)
		return ok && a.Eta == b.Eta && a.Gamma == b.Gamma && slices.EqualFunc(a.Among, b.Among, Equal)
	case PoissonSampled:
		b, ok := b.(PoissonSampled)
		return ok && a.Rate == b.Rate && Equal(a.Of, b.Of)
	case FixedSampled:
		b, ok := b.(FixedSampled)
		return ok && a.M == b.M && a.N == b.N && Equal(a.Of, b.Of)
	case Allocated:
		b, ok := b.(Allocated)
		return ok && a.Batches == b.Batches && Equal(a.Of, b.Of)
	case Parallel:
		b, ok := b.(Parallel)
		return ok && a.Name() == b.Name() && Equal(a.Of, b.Of)
	case Shared:
		b, ok := b.(Shared)
		return ok && a.Owners == b.Owners && a.Colluders == b.Colluders && Equal(a.Of, b.Of)
	case Retried:
		b, ok := b.(Retried)
		return ok && a.Retries == b.Retries && Equal(a.Of, b.Of)
	case Repeated:
		b, ok := b.(Repeated)
		return ok && a.Count == b.Count && Equal(a.Of, b.Of)
	}
	return a == b // a can be compared, and with one of another type == is false
}
