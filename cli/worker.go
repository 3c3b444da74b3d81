package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/shards"
)

// workerFlags are the flags of a fit whose rows are on other machines.
type workerFlags struct {
	address, key string
	count        int
	quiet        bool
	owner        *ownerLog
	away         *shards.Coordinator // nil: the rows are here
}

// close ends the coordinator's side; done ends the workers too.
func (w *workerFlags) close(done bool) {
	if w.away != nil {
		w.away.Close(done)
	}
}

func (w *workerFlags) add(f *pflag.FlagSet) {
	f.StringVar(&w.address, "workers", "",
		"address to listen on for workers, which hold the rows, instead of --data (sotto worker)")
	f.IntVar(&w.count, "shards", 0, "number of shards (with --workers)")
	f.StringVar(&w.key, "key", "",
		"file of the key that coordinator and workers share, or - for standard input (with --workers)")
}

// listen opens the coordinator's side if the flags ask for workers.
func (w *workerFlags) listen(c *cobra.Command, resume string, env *run.Env) error {
	if w.address == "" {
		if w.count != 0 || w.key != "" {
			return usageError("--workers: found none beside --shards or --key; give the address to listen on")
		}
		return nil
	}
	if w.count == 0 && resume != "" {
		info, err := runlog.ReadInfo(resume)
		if err != nil {
			return &run.InputError{Err: err}
		}
		w.count = info.Shards
	}
	switch {
	case c.Flags().Changed("data"):
		return usageError("--data: found beside --workers; leave it out, as the workers hold the rows")
	case w.key == "":
		return usageError("--key FILE is missing: the key that coordinator and workers share")
	case w.count < 1:
		return usageError("--shards: found %d; write how many shards the workers hold, 1 or more", w.count)
	}
	key, err := shards.ReadKey(w.key)
	if err != nil {
		return err
	}
	if w.away, err = shards.Listen(w.address, w.count, key, env.Notice); err != nil {
		return err
	}
	env.Rows = &run.Shards{Secret: key.Secret, Carrier: w.away}
	if !w.quiet {
		w.owner.say(c, "waiting for the workers of %d shards at %s", w.count, w.away.URL)
	}
	return nil
}

func workerCommand() *cobra.Command {
	var o shards.Options
	var key, shard string
	var quiet bool
	var index int
	var owner ownerLog
	var m meters
	var work func(c *cobra.Command, args []string) error
	c := &cobra.Command{
		Use:   "worker [spec.yaml]",
		Short: "Hold a shard of the rows of a fit on another machine",
		Long: `Worker reads its shard of a table and computes sums for a coordinator (sotto fit --workers) until the run ends. All
machines belong to one owner and share a key, which seals their messages; only the coordinator adds noise. The spec is the
coordinator's; --data is the worker's shard. Each row must be in one shard: a record in two shards counts twice, for twice
the ε. Workers with the same file, and with files that share 7 % of their rows or more, are refused; less is not
detected, nor are copies in another order of a table of few distinct rows. If a unit has several rows, all of them must be
in one shard; two shards that share a unit are refused.

A worker can be stopped and started at any time; the run waits for it. Several workers may hold the same shard: the first
answer counts. A worker whose schema, model, adjacency or rows differ from the run's is told why and ends.
(umask 077; head -c 32 /dev/urandom > key) makes a key.`,
		Example: "  sotto fit sotto.yaml --workers 10.0.0.1:4222 --shards 2 --key key\n  sotto worker sotto.yaml --hub 10.0.0.1:4222 --key key --shard 1/2 --data part1.csv",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return owner.around(c, as[*shards.RowsError], func() error { return work(c, args) })
		},
	}
	work = func(c *cobra.Command, args []string) (err error) {
		if o.Spec, err = specOf(c, args); err != nil {
			return err
		}
		switch counted := c.Flags().Changed("index"); {
		case counted && (shard != "" || o.Count < 1 || index < 0 || index >= o.Count):
			return usageError("--index: found %d with --shards %d; write a number from 0 to less than --shards, without --shard",
				index, o.Count)
		case counted:
			o.Index, shard = index, fmt.Sprintf("%d/%d", index+1, o.Count)
		case o.Count != 0:
			return usageError("--shards: found it without --index; give both, or --shard I/N")
		}
		if o.URL == "" || key == "" || shard == "" || !c.Flags().Changed("data") {
			return usageError("--hub URL, --key FILE, --shard I/N and --data FILE are needed: where the coordinator listens, the key, and which rows these are")
		}
		if o.Index, o.Count, err = shards.ParseShard(shard); err != nil {
			return err
		}
		if key == "-" && (o.Spec.Data == "-" || o.Spec.Data == "/dev/stdin") {
			return usageError("--key -: found beside --data -; give one of them, as standard input is read once")
		}
		if o.Key, err = shards.ReadKey(key); err != nil {
			return err
		}
		o.Warn = warner(c)
		if !quiet {
			o.Notice = func(text string) { owner.say(c, "shard %s: %s", shard, text) }
		}
		o.Cores = runtime.GOMAXPROCS(0)
		o.Spec.MetricsTimings = m.timings
		if err := serveWorker(c, &m, &o, &owner); err != nil {
			return err
		}
		defer m.close()
		err = shards.Work(c.Context(), o)
		if err == nil && c.Context().Err() != nil { // not done: a scheduler starts it again
			err = fmt.Errorf("stopped; the run waits for a worker of shard %s (%w)", shard, context.Canceled)
		}
		return err
	}
	f := c.Flags()
	addSomeSpecFlags(c, "any field of the spec, as in --set model.l2=0.01", "test", "test-labels", "holdout", "method",
		"accountant", "output", "seed", "ledger", "out")
	f.Bool("lab", false, "lab: the spec has a seed")
	f.StringVar(&o.URL, "hub", "", "address at which the coordinator listens (required)")
	f.StringVar(&key, "key", "", "file of the key that coordinator and workers share, or - for standard input (required)")
	f.StringVar(&shard, "shard", "", "the shard, as in 1/2 (required, or --index and --shards)")
	f.IntVar(&index, "index", 0,
		"number of the shard from 0, as an indexed job of Kubernetes counts (with --shards, in place of --shard)")
	f.IntVar(&o.Count, "shards", 0, "number of shards (with --index)")
	owner.add(f)
	m.add(f, true)
	f.BoolVar(&quiet, "quiet", false, "print only errors and warnings")
	return c
}

// serveWorker serves a worker's metrics: whether it is connected, nothing of its answers.
func serveWorker(c *cobra.Command, m *meters, o *shards.Options, owner *ownerLog) error {
	if err := m.begin("worker", "reading", "waiting", "connected"); err != nil {
		return err
	}
	m.fixed("sotto_shard", float64(o.Index+1))
	m.fixed("sotto_shards", float64(o.Count))
	connections := m.count("sotto_connections_total")
	o.Connected = func(is bool) {
		m.state.Store(1)
		if is {
			m.state.Store(2)
			connections.Inc()
		}
	}
	if m.timings {
		answers, seconds := m.count("sotto_answers_total"), m.set.NewFloatCounter("sotto_answer_seconds_total")
		o.Answered = func(took time.Duration) {
			answers.Inc()
			seconds.Add(took.Seconds())
		}
	}
	return m.serve(c, func(format string, args ...any) {
		if o.Notice != nil { // not --quiet
			owner.say(c, format, args...)
		}
	})
}
