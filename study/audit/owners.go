package audit

import (
	"context"
	"slices"

	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/run"
)

// owners play a network whose owners add up masked sums (network.mode: sum), as a sum.Pool. One owner has all the
// records. The colluders know their own shares of the noise, so they add none: what is left is the noise of the others,
// and the attack sees every total. The hub makes the owners give up the first attempts, as many as the spec allows,
// after it has read their totals: the plan is charged for those, too. There are no masks here: that they hide all but
// the total is proved and tested in gossip/mask.
type owners struct {
	rows    *canaries
	by      *listener
	honest  int     // owners whose shares are in a total
	retries int     // attempts that will still be given up
	reused  []int64 // by a fault: the noise of an attempt that was given up
}

// together makes the trainer one of owners who add up masked sums, if its job is of such a network. c has the trainer's
// records.
func together(t *run.Trainer, c *canaries, l *listener) {
	if t.Job.Sum == nil {
		return
	}
	job, sum := *t.Job, *t.Job.Sum
	sum.Owner, sum.Rows = 0, make([]int, len(sum.Rows))
	sum.Rows[0] = t.Job.Sum.Total()
	job.Sum = &sum
	o := &owners{rows: c, by: l, honest: len(sum.Names) - sum.Colluders, retries: sum.Retries}
	if c.fault.share {
		o.honest--
	}
	t.Job, t.Pool = &job, o
}

// Meet implements sum.Pool.
func (o *owners) Meet(context.Context) (held bool, err error) { return false, nil }

// Sum implements sum.Pool.
func (o *owners) Sum(_ context.Context, _ [32]byte, n int, part func() ([]int64, error)) ([]int64, error) {
	v, err := part()
	if err != nil {
		return nil, err
	}
	total := slices.Clone(v)
	o.rows.silent = true // the other owners' parts are their shares
	defer func() { o.rows.silent = false }()
	for range o.honest - 1 {
		if v, err = part(); err != nil {
			return nil, err
		}
		for j := range total {
			total[j] += v[j]
		}
	}
	if !o.rows.gradients {
		return total, nil
	}
	set := o.rows.set
	if o.rows.fault.rerun {
		if o.reused == nil {
			o.reused = make([]int64, n)
			for j := range total {
				o.reused[j] = total[j] - set.exact(j)
			}
		}
		for j := range total {
			total[j] = set.exact(j) + o.reused[j]
		}
	}
	if o.retries == 0 {
		o.reused = nil
		return total, nil
	}
	o.retries--
	size, released := o.by.from.Size(o.by.Public().Rows), make([]float64, n)
	for j, v := range total {
		released[j] = float64(v) * set.unit / size
	}
	o.by.heard(released, o.by.asked, o.by.from)
	return nil, sum.ErrGivenUp
}
