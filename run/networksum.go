package run

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// The modes of a network: in the first, every vector that an owner gives away has all its noise (package gossip); in the second,
// owners add up masked sums, each with a share of the noise (ADR 66, 69), and train as one process on all their rows.
const (
	modeGossip = "gossip"
	modeSum    = "sum"
)

// A Sum is the place of a job in a network whose owners add up masked sums, as run.json has it.
type Sum = runlog.Sum

// defaultRetries is how many attempts may be given up where a spec does not say.
const defaultRetries = 3

// setSum settles a network whose owners add up masked sums: its job is that of one process with the rows of all.
func (p *NetworkPlan) setSum() error {
	n, of := p.Network, len(p.Owners)
	for _, field := range []string{"graph", "probability", "edge_list", "schedule", "edges", "rounds", "seed", "method"} {
		if _, given := p.places[field]; given {
			return p.fail(field, "found it beside mode: sum; allowed is it in mode: gossip. Every owner takes part in every step, and the method is the spec's")
		}
	}
	_, given := p.places["colluders"]
	s := &Sum{Owner: -1, Colluders: n.Colluders, Retries: defaultRetries}
	if n.Retries != nil {
		s.Retries = *n.Retries
	}
	spec := *p.Spec
	if err := p.Job.Allows(OfOwners); err != nil {
		return err
	}
	switch {
	case !given:
		return p.fail("colluders", "it is missing; write the largest number of owners that may collude with the hub, from 0 to %d: the guarantee holds against as many", of-2)
	case s.Colluders < 0 || s.Colluders > of-2:
		return p.fail("colluders", "found %d; allowed is 0 to %d: two owners or more have to be honest", s.Colluders, of-2)
	case s.Retries < 0 || s.Retries > runlog.MostRetries:
		return p.fail("retries", "found %d; allowed is 0 to %d", s.Retries, runlog.MostRetries)
	}
	for _, o := range p.Owners {
		s.Names, s.Rows = append(s.Names, o.Name), append(s.Rows, o.Facts.Rows)
	}
	spec.sum = s
	j, err := prepare(&spec)
	if err != nil {
		return err
	}
	p.Spec, p.Job, p.MethodName = j.Spec, j, j.Spec.MethodName
	for i := range p.Owners {
		p.Owners[i].Plan = j.Plan
	}
	return nil
}

// summed is a method's plan as owners release it together. It refuses plans that no owner can make a share of: of searches, choices and
// sums whose noise is not Gaussian.
func (j *Job) summed(plan privacy.Event) (privacy.Event, error) {
	plan = privacy.InShares(plan, j.Facts.Owners, j.Facts.Colluders)
	shared := privacy.Fold(plan, func(e privacy.Event, inside []bool) bool {
		switch e.(type) {
		case privacy.Shared:
			return true
		case privacy.FixedSampled, privacy.Allocated, privacy.Parallel, privacy.Tuned:
			return false
		}
		return len(inside) > 0 && !slices.Contains(inside, false)
	})
	if shared && j.Sum.Retries > 0 {
		plan = privacy.Retried{Of: plan, Retries: j.Sum.Retries}
	}
	if shared {
		return plan, nil
	}
	return nil, j.notSummed()
}

// notSummed refuses the job's method.
func (j *Job) notSummed() error {
	return &InputError{j.Spec.Place("method.name"), fmt.Errorf("method.name: found %q beside network.mode: sum; allowed are methods that ask for nothing but sums with Gaussian noise, of all rows or a Poisson sample, as many as their plan says: searches, choices and other noise have no theorem for shares", j.Spec.MethodName)}
}

// Alone is the ε of the plan against all other owners together, or if masks were broken, at the spec's δ.
func (j *Job) Alone() float64 {
	return account.Alone(j.Plan, j.Accountant, j.Facts.Adjacency, j.Spec.Privacy.Budget().Delta)
}

// agreeOnSum adds what is the same for all owners who add up masked sums.
func (p *NetworkPlan) agreeOnSum(a *agreement.Agreement) (err error) {
	s := p.Job.Sum
	a.Sum = &agreement.Sum{Colluders: s.Colluders, Retries: s.Retries, Output: string(p.Spec.Output), Public: p.Job.Facts}
	if a.Sum.Method, err = method.Encode(p.Job.Method); err != nil {
		return err
	}
	a.Sum.Plan, err = privacy.MarshalEvent(p.Job.Plan)
	return err
}

// sumText prints what a training would cost: both ε.
func (p *NetworkPlan) sumText(w io.Writer) error {
	s := p.Job.Sum
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "owner\tdeclared rows\n")
	for i, name := range s.Names {
		fmt.Fprintf(t, "%s\t%d\n", name, s.Rows[i])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	loss, err := p.Job.Accountant.Loss(p.Job.Plan, p.Job.Facts.Adjacency)
	if err != nil {
		return err
	}
	b := p.Spec.Privacy.Budget()
	fmt.Fprintf(w, "\nAgainst %s: ε = %s at δ = %g.\nAgainst %s: ε = %s at δ = %g.\n", text.Against(s.Colluders), chart.AtMost(loss.Epsilon(b.Delta), 5), b.Delta, text.AgainstAll, chart.AtMost(p.Job.Alone(), 5), b.Delta)
	fmt.Fprintf(w, "%d steps on %d rows, and up to %d attempts more.\n", method.MaxSteps(p.Job.Method), p.Job.Facts.Rows, s.Retries)
	return nil
}

// SumSizes are the most that owners who add up ask of their hub: batches of the plan, without retries, and numbers of a sum.
func (j *Job) SumSizes() (batches, numbers int) {
	batches = privacy.Fold(privacy.WithoutRetries(j.Plan), func(e privacy.Event, inside []int) (n int) {
		switch e := e.(type) {
		case privacy.Shared, privacy.PoissonSampled:
			return 1
		case privacy.Repeated:
			return e.Count * inside[0]
		}
		for _, k := range inside {
			n += k
		}
		return n
	})
	return batches, method.MostNumbers(j.Method, j.Facts)
}
