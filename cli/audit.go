package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/study/audit"
)

// auditFlags are the flags of `sotto audit` that are no field of a spec.
type auditFlags struct {
	audit.Setup
	out           string
	asJSON, quiet bool
}

func auditCommand() *cobra.Command {
	var o auditFlags
	c := &cobra.Command{
		Use:   "audit [spec.yaml]",
		Short: "Measure a lower bound on the ε of a run",
		Long: `Audit attacks the claim of a run. It runs the spec's method many times on a small synthetic table, with synthetic records
beside the rows whose gradients are as large as the clip norm allows, and guesses from the releases which took part. The result
is a lower bound on ε, with 95 % confidence. It also tests the noise itself and the samples. An alarm shows a fault (exit code
1), and is false in one audit of 10,000 at most; a bound below the claim proves nothing.

--canaries N audits in one run with N such records beside all rows. --on-data does so on the spec's own rows, and its releases are
an access that is not charged. --runs N runs the method N times on each of two neighboring tables: for small tables, and for
methods without noisy gradients. No trained model is kept.
docs/how-to/audit.md says what the bounds rest on.`,
		Example: `  sotto audit examples/adult/sotto.yaml --epsilon 4
  sotto audit examples/clinic/sotto.yaml --method majority --runs 2000`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f := c.Flags()
			o.Streams, o.Notice = noise.SecureStreams(), warner(c)
			if f.Changed("seed") {
				o.Streams = noise.SeededStreams(o.Seed)
			}
			switch {
			case f.Changed("canaries") && o.Canaries < 2:
				return usageError("--canaries: found %d; write a whole number of 2 or more", o.Canaries)
			case f.Changed("runs") && o.Runs < 16:
				return usageError("--runs: found %d; write a whole number of 16 or more", o.Runs)
			case f.Changed("canaries") && f.Changed("runs"):
				return usageError("--canaries: found --runs beside it; give one of them")
			}
			spec, err := specOf(c, args, "out")
			if err != nil {
				return err
			}
			return auditSpec(c, spec, o)
		},
	}
	f := c.Flags()
	addSomeSpecFlags(c, "any field of the spec, as in --set method.steps=200", "test", "test-labels", "output", "out",
		"seed")
	f.IntVar(&o.Canaries, "canaries", 0,
		"audit in one run with this many synthetic records beside the rows (with --on-data: by the claim)")
	f.IntVar(&o.Runs, "runs", 0, "audit in this many runs on each of two tables")
	f.BoolVar(&o.OnData, "on-data", false, "audit on the spec's own rows: an access that is not private")
	f.BoolVar(&o.Unprotected, "unprotected", false, "with --on-data: these rows need no protection")
	f.BoolVar(&o.Void, "void", false, "with --on-data: "+voids)
	f.Uint64Var(&o.Seed, "seed", 0, "seed, to repeat an audit exactly (default: the system's randomness)")
	f.StringVar(&o.out, "out", "audit", "directory for the page and the figures, new or empty")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object, and write no files")
	f.BoolVar(&o.quiet, "quiet", false, "print only errors and warnings")
	return c
}

// refuted is the error of an audit that found a fault.
func refuted(what string, alarms []string) error {
	return fmt.Errorf("%s is refuted: the run is not what it claims (%s)", what, strings.Join(alarms, "; "))
}

func auditSpec(c *cobra.Command, spec *run.Spec, o auditFlags) error {
	w := c.OutOrStdout()
	if !o.asJSON {
		if err := newfile.EmptyDir(o.out); err != nil {
			return err
		}
	}
	job, err := netplan.PrepareJob(spec)
	if err != nil {
		return err
	}
	for _, text := range job.Warnings {
		o.Notice(text)
	}
	r, err := o.Audit(c.Context(), job)
	if errors.Is(err, access.ErrWouldEnd) {
		return fmt.Errorf("%w. Leave --on-data out for a synthetic table, say --unprotected if these rows need no protection, or give --void", err)
	}
	if err != nil {
		return err
	}
	if o.asJSON {
		err = writeJSON(w, r)
	} else if err = r.Write(o.out); err == nil && !o.quiet {
		fmt.Fprintf(w, "%sPage       %s\n", r.Words(), filepath.Join(o.out, audit.PageFile))
	}
	if err == nil && r.Refuted() {
		err = refuted("the claim", r.Alarms)
	}
	return err
}
