package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/audit"
)

// auditFlags are those of `sotto audit` beside the spec's.
type auditFlags struct {
	canaries, runs        int
	seed                  uint64
	all, onData           bool
	void, unprotected     bool
	methods               []string
	out                   string
	asJSON, seeded, quiet bool
	warn                  func(string)
}

func auditCommand() *cobra.Command {
	var o auditFlags
	c := &cobra.Command{
		Use:   "audit [spec.yaml]",
		Short: "Measure from outside how private a run is: a lower bound on ε",
		Long: `Audit runs a spec's method with synthetic records among the rows, each with a gradient in a direction of its own, which half of
them put into the sum. Then it guesses from what was released which did. The better the guesses, the larger the ε that the run has at least:
a bound with 95 % confidence, beside the claim. A bound above the claim shows a fault; one below proves nothing.

The rows are synthetic, as from ` + "`sotto synth`" + `, as many as the schema declares. --on-data takes those of the spec; what is then
released is an access to them that is not charged. With --runs N the method runs N times on each of two neighboring tables instead: for
small tables, and for methods that release no noisy gradient. --all audits every method on small synthetic tables. The run is a test of the code and of the
machine; it trains nothing that is kept. docs/audit.md says what the bound rests on.`,
		Example: `  sotto audit examples/adult/sotto.yaml --epsilon 4
  sotto audit examples/clinic/sotto.yaml --method majority --runs 2000
  sotto audit --all`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f := c.Flags()
			o.seeded = f.Changed("seed")
			switch {
			case o.canaries < 2:
				return usageError("--canaries: found %d; allowed is 2 or more", o.canaries)
			case f.Changed("runs") && o.runs < 16:
				return usageError("--runs: found %d; allowed is 16 or more", o.runs)
			case len(o.methods) > 0 && !o.all:
				return usageError("--methods: found it without --all; allowed is --method for a spec")
			case o.all && len(args) > 0:
				return usageError("--all: found a spec beside it; allowed is one of the two")
			}
			if o.all {
				return auditAll(c, o)
			}
			spec, err := specOf(c, args)
			if err != nil {
				return err
			}
			o.warn = warner(c)
			return auditSpec(c, spec, o)
		},
	}
	f := c.Flags()
	addSomeSpecFlags(f, "any field of the spec, as in --set method.steps=200", "test", "test-labels", "output", "out", "seed")
	f.IntVar(&o.canaries, "canaries", audit.Canaries, "synthetic records in one run")
	f.IntVar(&o.runs, "runs", 0, "audit in so many runs on each of two tables, in place of one run with canaries")
	f.BoolVar(&o.all, "all", false, "audit every method, on small synthetic tables")
	f.StringSliceVar(&o.methods, "methods", nil, "with --all: these, with a comma between (default all)")
	f.BoolVar(&o.onData, "on-data", false, "audit on the spec's own rows: a look that is not private")
	f.BoolVar(&o.unprotected, "unprotected", false, "with --on-data: these rows need no protection")
	f.BoolVar(&o.void, "void", false, "with --on-data: "+voids)
	f.Uint64Var(&o.seed, "seed", 0, "seed of the audit, which then finds the same again (default: the system's randomness)")
	f.StringVar(&o.out, "out", "audit", "directory of the page and the figures: new or empty")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object, and write no files")
	f.BoolVar(&o.quiet, "quiet", false, "print nothing but errors and warnings")
	return c
}

func (o auditFlags) options() audit.Options {
	opt := audit.Options{Canaries: o.canaries, Streams: noise.SecureStreams()}
	if o.seeded {
		opt.Streams = noise.SeededStreams(o.seed)
	}
	return opt
}

// refuted is the end of an audit that found a fault.
func refuted(what string) error {
	return fmt.Errorf("%s is refuted: it gives away more than is claimed", what)
}

func auditAll(c *cobra.Command, o auditFlags) error {
	w, found := c.OutOrStdout(), ""
	var all []*audit.Result
	err := audit.All(c.Context(), o.methods, o.options(), func(r *audit.Result) {
		if r.Refuted() {
			found = "the claim of " + r.Method
		}
		if all = append(all, r); o.asJSON || o.quiet {
			return
		}
		fmt.Fprintf(w, "%-12s ε ≥ %.3f of %.4g, %v, in %s\n", r.Method, r.Bound, r.Epsilon, r.Adjacency, r.Attack)
	})
	if err != nil {
		return err
	}
	if o.asJSON {
		if err := writeJSON(w, all); err != nil {
			return err
		}
	}
	if found != "" {
		return refuted(found)
	}
	return nil
}

func auditSpec(c *cobra.Command, spec *run.Spec, o auditFlags) error {
	ctx, w := c.Context(), c.OutOrStdout()
	if !o.asJSON {
		if err := newfile.EmptyDir(o.out); err != nil {
			return err
		}
	}
	if spec.Privacy.Off {
		return &run.InputError{Where: spec.Place("privacy"), Err: errors.New("privacy: found none; allowed is a claim that an audit can test")}
	}
	job, err := run.Prepare(spec)
	if err != nil {
		return err
	}
	for _, text := range job.Warnings {
		o.warn(text)
	}
	rows, canaries, err := audit.Rows(job, o.canaries)
	if o.runs > 0 {
		rows, err = job.Facts.Rows-1, nil
	}
	if err != nil {
		return usageError("--%v", err)
	}
	table, err := o.rows(ctx, job, rows)
	if errors.Is(err, access.ErrWouldEnd) {
		return fmt.Errorf("%w. Leave --on-data out for a synthetic table, say --unprotected if these rows need no protection, or give --void", err)
	}
	if err != nil {
		return err
	}
	defer table.Close()
	opt := o.options()
	opt.Canaries = canaries
	var r *audit.Result
	if o.runs > 0 {
		r, err = audit.Many(ctx, job, table, o.runs, opt)
	} else if r, err = audit.One(ctx, job, table, opt); errors.Is(err, audit.ErrBlind) {
		return &run.InputError{Where: spec.Place("method"), Err: fmt.Errorf("%w: --runs 2000", err)}
	}
	if err != nil {
		return err
	}
	switch {
	case o.asJSON:
		err = writeJSON(w, r)
	default:
		if err = r.Write(o.out); err == nil && !o.quiet {
			fmt.Fprintf(w, "%sPage       %s\n", r.Words(), filepath.Join(o.out, audit.PageFile))
		}
	}
	if err == nil && r.Refuted() {
		err = refuted("the claim")
	}
	return err
}

// rows are the rows of an audit: synthetic ones, or those of the spec.
func (o auditFlags) rows(ctx context.Context, job *run.Job, rows int) (*data.Table, error) {
	if !o.onData {
		return audit.Synthetic(ctx, job.Schema, rows, o.seed)
	}
	if job.Spec.Data == "" {
		return nil, usageError("--on-data: found no rows; allowed is a spec with data, or --data FILE")
	}
	return audit.Own(ctx, job, audit.OwnRows{Rows: rows, Canaries: o.runs == 0, Void: o.void, Unprotected: o.unprotected, Notice: o.warn})
}
