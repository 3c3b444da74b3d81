package party

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// mostSums is the most sums of an attempt: those of a batch.
const mostSums = 8

// limitsOf are those of the hub of a plan.
func limitsOf(p *netplan.Plan) *transport.Limits {
	j := p.Job
	if j.Sum == nil {
		return transport.LimitsOf(p.Schedule, j.Facts.Dim, p.Drawn(), p.Drawn() && p.Network.Graph == "random")
	}
	batches, numbers := j.SumSizes()
	return &transport.Limits{Dim: j.Facts.Dim, Sums: &transport.SumLimits{
		// the sum that ends a run may be given up once
		Attempts: batches + j.Sum.Retries + 2, Sums: mostSums, Numbers: numbers,
	}}
}

// fits says whether the network's hub has storage for the plan.
func (s *session) fits() error {
	limits := s.c.Network.Limits
	if s.plan.Job.Sum == nil {
		return limits.Fits(s.plan.Schedule, s.plan.Job.Facts.Dim)
	}
	switch want := limitsOf(s.plan); {
	case limits == nil || limits.Sums == nil:
		return errors.New("the network is of mode gossip; the spec's is sum")
	case limits.Dim != want.Dim || *limits.Sums != *want.Sums:
		return errors.New("the hub has storage for sums of another plan")
	}
	return nil
}

// sum is the owner's run in a network whose owners add up masked sums. It is a run like those of sotto fit, whose
// oracle adds up its parts with the others' (package pool). After a crash the same command continues it.
func (s *session) sum(ctx context.Context, begun bool) (*Result, error) {
	start := time.Now()
	if s.o.Dir == "" {
		return nil, inputError("--dir is missing: a directory of the owner's own, kept until the training is over")
	}
	s.Job.Spec.Out, s.Job.Spec.Void = s.o.Dir, s.o.Void
	if begun {
		if err := s.comeTo(); err != nil {
			return nil, err
		}
	}
	begun, err := run.Began(s.Job)
	if err != nil {
		return nil, err
	}
	if begun {
		if done, err := s.finishedSum(ctx); done != nil || err != nil {
			return done, err
		}
	}
	if err := needHub(s.c, s.o.Hub); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	all := &owners{s, &transport.Node{Credentials: s.c, Config: s.config, Wait: s.o.Wait, Crash: s.o.Crash}, watching}
	defer all.close()
	env := run.Env{
		Version: s.o.Version, Workers: 1, Ledger: s.plan.Spec.Ledger, Void: s.o.Void, MetricsTimings: s.o.MetricsTimings,
		Notice: s.o.Notice, Report: s.o.Report, Crash: s.o.Crash, Owners: all,
		Progress: func(p run.Progress) {
			if s.o.Progress != nil {
				s.o.Progress(Steps, p.Step, p.MaxSteps)
			}
		},
	}
	var info *runlog.Info
	if begun {
		info, err = run.Resume(ctx, s.o.Dir, env)
	} else {
		info, _, err = run.Fit(ctx, s.Job, env)
	}
	if errors.Is(err, pool.ErrBehind) || errors.Is(err, ledger.ErrBehind) {
		all.sayBehind(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.Info = info
	return s.sumSummary(time.Since(start).Seconds())
}

// owners are the others, at the hub; they implement run.Owners.
type owners struct {
	*session
	node     *transport.Node
	watching context.Context // until the run ends
}

// connect joins the hub, once.
func (o *owners) connect(ctx context.Context) error {
	if o.node.Store != nil {
		return nil
	}
	silent := time.AfterFunc(sayAfter, func() { o.waiting("the hub at " + o.hubName()) })
	defer silent.Stop()
	hub, err := dial(ctx, o.c, o.o.Hub, o.o.Join)
	if err != nil {
		return err
	}
	o.node.Store = hub
	if o.o.Notice != nil {
		go transport.WatchFull(o.watching, hub, &o.c.Network, o.o.Notice)
		go transport.WatchBehind(o.watching, hub, o.c, o.config, o.o.Notice)
	}
	return nil
}

func (o *owners) close() {
	if hub, ok := o.node.Store.(*transport.Client); ok {
		hub.Close()
	}
}

// sayBehind tells the others, who wait all the same, that this owner has an older ledger or directory than they have
// seen.
func (o *owners) sayBehind(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, sayAfter)
	defer cancel()
	if o.connect(within) == nil {
		transport.SayBehind(within, o.node.Store, o.c, o.config)
	}
}

// Come implements run.Owners. Once this owner has come, the others may reserve their budgets, so its ledger must admit
// its plan first.
func (o *owners) Come(ctx context.Context) error {
	check := run.NewSession(o.Job, run.Env{Notice: o.o.Notice}, o.o.Dir, false)
	if err := errors.Join(check.Admits(ctx, o.networkName()), check.Close()); err != nil {
		return err
	}
	made := o.missing()
	if err := o.comeTo(); err != nil {
		return err
	}
	if err := o.connect(ctx); err != nil {
		o.leave(made, func() {})
		return err
	}
	// The hub must hold the same commitment as before; otherwise this owner came from another directory.
	_, err := o.meet(ctx, o.node, transport.Hello, o.place.Share.Commitment(&o.c.Network, o.c.Owner))
	return err
}

// Ready implements run.Owners. An owner that was here under another run is at work elsewhere.
func (o *owners) Ready(ctx context.Context, run string) error {
	if err := o.connect(ctx); err != nil { // of a run that goes on
		return err
	}
	_, err := o.meet(ctx, o.node, transport.Ready, []byte(run))
	return err
}

// Pool implements run.Owners.
func (o *owners) Pool(at run.PoolState) (run.Pool, error) {
	return pool.Open(pool.Options{
		Store: o.node.Store, Credentials: o.c, Disk: at.Disk, Path: at.Path, Run: at.Run, Retries: o.Job.Sum.Retries,
		Waiting: o.waiting, Charged: at.Charged, Released: at.Released,
	})
}

// comeTo makes the owner's directory, with what it says at the hub, or reads what an earlier process said.
func (s *session) comeTo() error {
	if err := vfs.MkdirAll(vfs.OS{}, s.o.Dir, 0o700); err != nil {
		return inputError("--dir: found %s, where nothing can be written (%w)", s.o.Dir, err)
	}
	switch old, err := readPlace(s.o.Dir); {
	case err != nil:
		return err
	case old != nil:
		return s.take(old)
	}
	return s.newPlace()
}

// finishedSum settles a run that ended before its settlement in the ledger; nil: the run goes on.
func (s *session) finishedSum(ctx context.Context) (*Result, error) {
	info, err := runlog.ReadInfo(s.o.Dir)
	if err != nil || info.Status != runlog.Finished {
		return nil, err
	}
	if s.Info, err = run.Resume(ctx, s.o.Dir,
		run.Env{Version: s.o.Version, Ledger: s.plan.Spec.Ledger, Report: s.o.Report, Notice: s.o.Notice}); err != nil {
		return nil, err
	}
	return s.sumSummary(0)
}

// sumSummary is the result of a run that has ended.
func (s *session) sumSummary(seconds float64) (*Result, error) {
	rec, err := s.Info.Record(s.o.Dir)
	if err != nil {
		return nil, err
	}
	n := s.Job.Sum
	r := &Result{
		Dir: s.o.Dir, Run: s.Info.ID, Owner: s.c.Name(), Activations: s.Info.Result.Steps, Noise: s.Info.NoiseMultiplier,
		Models: len(n.Names), Seconds: seconds,
		Delta: s.Info.Budget.Delta, Adjacency: s.Info.Budget.Adjacency.String(), Aborted: rec.Charged() - rec.Released,
		Committed: rec.Released,
	}
	r.Epsilon, r.Alone, r.colluders = new(s.Job.Cost(s.Job.Plan)), new(s.Job.Alone()), n.Colluders
	r.steps, r.outcome = s.Info.MaxSteps, s.Info.Result.Outcome
	return r, nil
}

// sumText prints the result for people.
func (r *Result) sumText(w io.Writer) {
	fmt.Fprintf(w, "Guarantee  for any row of %s, at δ = %s, %s:\n", r.Owner, chart.Full(r.Delta), r.Adjacency)
	fmt.Fprintf(w, "           ε = %s against %s\n", chart.Upper(*r.Epsilon), text.Against(r.colluders))
	fmt.Fprintf(w, "           ε = %s against %s\n", chart.Upper(*r.Alone), text.AgainstAll)
	fmt.Fprintf(w, "Sums       made %d, given up %d, in %d steps of %d\n", r.Committed, r.Aborted, r.Activations, r.steps)
	if r.Activations < r.steps {
		fmt.Fprintf(w,
			"Outcome    %s: owners were missing more often than `retries` allows; the model is that of the steps made\n",
			r.outcome)
	}
	fmt.Fprintf(w, "Model      %s, of the rows of %d owners\n", r.Dir, r.Models)
	fmt.Fprintf(w, "Time       %.2f s\n", r.Seconds)
}
