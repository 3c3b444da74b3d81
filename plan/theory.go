package plan

import (
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account/claimed"
)

// Claims are what the papers' own formulas say. They are no guarantee: some are loose, some false.
type Claims struct {
	NotAGuarantee bool            `json:"not_a_guarantee"` // always true
	Claims        []claimed.Claim `json:"claims"`
}

// Paper returns a paper's claims about its own experiments; "all" means all papers.
func Paper(name string) (*Claims, error) {
	list := []string{name}
	if name == "all" {
		list = claimed.Papers()
	}
	c := &Claims{NotAGuarantee: true}
	for _, p := range list {
		more, err := claimed.Example(p)
		if err != nil {
			return nil, err
		}
		c.Claims = append(c.Claims, more...)
	}
	return c, nil
}

// Papers lists the names that Paper knows.
func Papers() []string { return append(claimed.Papers(), "all") }

// Claim adds what the papers' formulas say of the plan.
func (p *Plan) Claim() error {
	list, err := claimed.Of(p.event, p.accountant, p.Adjacency, p.Delta)
	p.Claimed = &Claims{NotAGuarantee: true, Claims: list}
	return err
}

// A Bound is what theory promises of the error of a method, against the number of steps, or how many rows it needs to
// promise anything.
type Bound struct {
	Method string         `json:"method"`
	Budget privacy.Budget `json:"budget"`
	*method.Forecast
	*method.Need        // of P4's methods, instead
	Rows         int    `json:"rows"`              // declared
	Against      string `json:"against,omitempty"` // where owners share the noise: whom the budget's ε is against
}

// against names whom ε holds against if owners share the noise; "" means everyone.
func against(pub oracle.Public) string {
	if pub.Owners == 0 {
		return ""
	}
	return text.Against(pub.Colluders)
}

// BoundOf returns the theoretical bound of a method that is not configured yet.
func BoundOf(name string, m method.Method, pub oracle.Public, obj method.Objective,
	terms method.Terms) (*Bound, error) {
	b := &Bound{Method: name, Budget: terms.Budget, Rows: pub.Rows, Against: against(pub)}
	var err error
	if b.Need, err = method.Needed(m, pub, obj, terms); b.Need == nil && err == nil {
		b.Forecast, err = method.Predict(m, pub, obj, terms)
	}
	return b, err
}

// MuOfBest is the strong convexity that stands for the best momentum in a spec: β = (1−√(αμ))/(1+√(αμ)).
// It is a little less, so that rounding leaves it valid.
func (b *Bound) MuOfBest() float64 {
	root := (1 - b.Best.Momentum) / (1 + b.Best.Momentum)
	return root * root / b.Best.Rate * (1 - 1e-6)
}

// A Choice says what a method chooses for its fields, and why.
type Choice struct {
	Method  string         `json:"method"`
	About   string         `json:"about"`
	Budget  privacy.Budget `json:"budget"`
	Against string         `json:"against,omitempty"` // where owners share the noise: whom its ε is against
	Columns string         `json:"columns,omitempty"` // of the schema that are used, and why; "": all
	// which iterate becomes the model, and why; "": as the spec says, or the tail average
	Output   string `json:"output,omitempty"`
	Encoding string `json:"encoding,omitempty"` // of numeric columns that name none, and why
	*method.Explanation
	Warnings []string `json:"warnings,omitempty"` // as of the plan
}

// Explain asks a method that is not configured yet for its choices.
func Explain(name string, m method.Method, pub oracle.Public, obj method.Objective,
	terms method.Terms) (*Choice, error) {
	entry, err := method.Lookup(name)
	if err != nil {
		return nil, err
	}
	out, err := method.Explain(m, pub, obj, terms)
	return &Choice{Method: name, About: entry.About, Budget: terms.Budget, Against: against(pub), Explanation: out}, err
}
