package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/schema"
)

func ledgerCommand() *cobra.Command {
	var p ledgerPlace
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Show and set the lifetime budgets of datasets",
		Long: `The ledger keeps one budget per dataset over its whole life. A run reserves its
budget before it reads a record. By default reservations add up and nothing is
refunded; in the other currencies a run gives back at its end what it did not
charge. Its entries are chained by hash.`,
	}
	c.PersistentFlags().StringVar(&p.where, "ledger", "", ledgerUsage)
	c.AddCommand(p.list(), p.show(), p.forecast(), p.verify(), p.accept(), p.budget(), p.charge(), p.settle())
	group(c)
	return c
}

// A ledgerPlace is where the ledger of a command is.
type ledgerPlace struct{ where string }

// with opens the ledger for one subcommand.
func (p *ledgerPlace) with(
	open func(context.Context, string) (*ledger.Ledger, error),
	f func(context.Context, io.Writer, *ledger.Ledger, []string) error,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		l, err := open(c.Context(), p.where)
		if errors.Is(err, run.ErrNoLedger) && c.Name() == "list" {
			_, err := fmt.Fprintln(c.OutOrStdout(), "There is no ledger yet; the first run makes it")
			return err
		}
		if err != nil {
			return err
		}
		defer l.Close()
		return f(c.Context(), c.OutOrStdout(), l, args)
	}
}

func (p *ledgerPlace) list() *cobra.Command {
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the datasets", Args: args(cobra.NoArgs),
		RunE: p.with(run.ViewLedger, func(ctx context.Context, w io.Writer, l *ledger.Ledger, _ []string) error {
			all, err := l.Datasets(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(w, all)
			}
			return l.WriteDatasets(w, all)
		}),
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return list
}

// mostShown bounds --limit and --page of show.
const mostShown = 1 << 30

func (p *ledgerPlace) show() *cobra.Command {
	var asJSON bool
	var limit, page int
	var show *cobra.Command
	show = &cobra.Command{
		Use: "show DATASET", Short: "Show a dataset's statement and entries", Args: args(cobra.ExactArgs(1)),
		Long: `Show prints what the lifetime budget of a dataset guarantees, and its entries from
the oldest to the newest: of more than --limit the newest, and with --page 2, 3 …
the ones before them. With --json it prints all unless --limit or --page is given.`,
		Example: "  sotto ledger show clinic\n  sotto ledger show clinic --limit 50 --page 3",
		RunE: p.with(run.ViewLedger, func(ctx context.Context, w io.Writer, l *ledger.Ledger, args []string) error {
			d, err := l.Dataset(ctx, args[0])
			if err != nil {
				return usageError("%v", err)
			}
			switch {
			case limit < 0 || limit > mostShown:
				return usageError("--limit: found %d; write a number from 0, for all, to %d", limit, mostShown)
			case page < 1 || page > mostShown || page > 1 && limit == 0:
				return usageError("--page: found %d with --limit %d; write a number from 1, and with a limit above 0", page, limit)
			}
			if asJSON && !show.Flags().Changed("limit") && !show.Flags().Changed("page") {
				limit = 0
			}
			all := 0
			var entries []ledger.Entry
			if limit == 0 {
				entries, err = l.Entries(ctx, args[0])
			} else {
				entries, all, err = l.LastEntries(ctx, args[0], (page-1)*limit, limit)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(w, map[string]any{"dataset": d, "entries": entries})
			}
			err = d.Write(w, entries)
			if older := all - page*limit; err == nil && limit > 0 && older > 0 {
				_, err = fmt.Fprintf(w, "\n%s earlier entries are not shown; --page %d shows the ones before these\n",
					chart.Integer(older), page+1)
			}
			return err
		}),
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	show.Flags().IntVar(&limit, "limit", 1000, "entries on a page; 0: all")
	show.Flags().IntVar(&page, "page", 1, "which page, the newest entries being on the first")
	return show
}

func (p *ledgerPlace) verify() *cobra.Command {
	return &cobra.Command{
		Use: "verify [RUNS…]", Short: "Check the chain of entries, and compare it with run directories",
		Args: args(cobra.ArbitraryArgs),
		Long: `Verify recomputes the chain of hashes and every total. To find entries that are
missing at the end it needs a head that was kept elsewhere: each run directory
keeps one (run.json, ledger_head). RUNS are run directories, or directories of
them.

Exit code 0: all holds; 1: something does not.`,
		Example: "  sotto ledger verify runs",
		RunE:    p.with(run.ViewLedger, run.VerifyLedger),
	}
}

func (p *ledgerPlace) accept() *cobra.Command {
	return &cobra.Command{
		Use: "accept", Short: "Accept a ledger that lacks entries, and record it", Args: args(cobra.NoArgs),
		Long: `Accept is for a ledger that Sotto refuses because it is missing, emptied, an older
copy, or not the one used here last. If you can find the right ledger, put it back
instead: then nothing is lost.

Accept records the loss in the ledger, or makes a new one. The charges in the missing
entries no longer count, so people may have lost more privacy than the ledger says;
the statement of every dataset then says so. Earlier versions of Sotto refuse such a
ledger.`,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := ledger.Accept(c.Context(), p.where)
			if err != nil {
				return run.LedgerError(err)
			}
			fmt.Fprintf(c.OutOrStdout(),
				"%s They no longer count. The statements of all datasets of this ledger say so from now on.\n", r.Words())
			return nil
		},
	}
}

func (p *ledgerPlace) budget() *cobra.Command {
	var epsilon, delta float64
	var adjacency, unit, currency string
	budget := &cobra.Command{
		Use: "budget DATASET --epsilon E --delta D --adjacency A", Short: "Set a dataset's lifetime budget",
		Args: args(cobra.ExactArgs(1)),
		Long: `Budget sets the most that all runs on a dataset may cost together, including past
runs. DATASET is the name in the schema. The currency decides how costs add up; the
ledger fixes it when the dataset is new:

  caps  each run's own ε and δ add up and stay spent (the default)
  zcdp  ρ of zero-concentrated differential privacy adds up: noise on whole tables
  gdp   μ² of Gaussian differential privacy adds up: Gaussian noise on whole tables
  rdp   Rényi divergences of the orders 2, 4, 8 … 32768 add up: sampled batches too

Under the last three a run reserves its whole plan and settles for the batches that
it charged; many runs then cost less than the sum of their own ε. The ledger refuses
a run if the currency has no theorem for its plan.`,
		RunE: func(c *cobra.Command, names []string) error {
			for _, f := range []string{"epsilon", "delta", "adjacency"} {
				if !c.Flags().Changed(f) {
					return usageError("--%s is missing: Sotto has no default for it", f)
				}
			}
			adj, err := privacy.ParseAdjacency(adjacency)
			if err != nil {
				return usageError("--%v", err)
			}
			b := privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: adj}
			if err := b.Validate(); err != nil {
				return usageError("--%v", err)
			}
			return p.with(run.OpenLedger, func(ctx context.Context, w io.Writer, l *ledger.Ledger, args []string) error {
				// the budget is too small for any run
				if err := l.SetBudget(ctx, args[0], unit, currency, b); errors.Is(err, privacy.ErrExhausted) {
					return usageError("%v", err)
				} else if err != nil {
					return run.LedgerError(err)
				}
				d, err := l.Dataset(ctx, args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(w, d.Statement)
				return nil
			})(c, names)
		},
	}
	numberVar(budget.Flags(), &epsilon, "epsilon", 0, "lifetime ε (required)")
	numberVar(budget.Flags(), &delta, "delta", 0, "lifetime δ (required)")
	budget.Flags().StringVar(&adjacency, "adjacency", "", "add-or-remove or replace-one (required)")
	budget.Flags().StringVar(&currency, "currency", "",
		"how a new dataset counts: "+strings.Join(ledger.Currencies(), ", ")+" (default: caps)")
	budget.Flags().StringVar(&unit, "unit", schema.UnitRecord,
		"whose privacy the budget protects: the name of the unit in the schema")
	return budget
}

func (p *ledgerPlace) charge() *cobra.Command {
	var s run.Stated
	charge := &cobra.Command{
		Use: "charge DATASET --epsilon E --delta D --reason TEXT", Short: "Enter the cost of another program's release",
		Args: args(cobra.ExactArgs(1)),
		Long: `Charge enters into the ledger what a release by another program cost, so that the
dataset's lifetime budget counts it: synthetic data, a statistic, a model. Charge before
the release is made: where the budget does not cover it, nothing is entered.

Sotto cannot check the cost. The entry says that a person stated it, and the lifetime
statement then rests on it. Nothing takes it back.

A dataset that counts in zcdp or rdp takes --rho or --mu, one in gdp --mu, instead of
--epsilon and --delta: (ε, δ) with δ above 0 has no finite cost in them.`,
		Example: `  sotto ledger charge clinic --epsilon 1 --delta 1e-6 --reason "synthetic data by AIM"
  sotto ledger charge spending --rho 0.02 --reason "histograms by OpenDP"`,
		RunE: func(c *cobra.Command, names []string) error {
			for flag, with := range map[string]string{"epsilon": "delta", "delta": "epsilon"} {
				if c.Flags().Changed(flag) && !c.Flags().Changed(with) {
					return usageError("--%s is missing: Sotto has no default for it", with)
				}
			}
			return p.with(s.Open, func(ctx context.Context, w io.Writer, l *ledger.Ledger, names []string) error {
				s.Dataset = names[0]
				id, err := run.ChargeStated(ctx, l, s)
				if err != nil {
					return err
				}
				d, err := l.Dataset(ctx, s.Dataset)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "Charged as %s, as stated by a person.\n%s\n", id, d.Statement)
				return nil
			})(c, names)
		},
	}
	f := charge.Flags()
	numberVar(f, &s.Epsilon, "epsilon", 0, "ε of the release")
	numberVar(f, &s.Delta, "delta", 0, "δ of the release")
	numberVar(f, &s.Rho, "rho", 0, "ρ of the release, instead: zero-concentrated differential privacy")
	numberVar(f, &s.Mu, "mu", 0, "μ of the release, instead: Gaussian differential privacy")
	f.StringVar(&s.Adjacency, "adjacency", "", "add-or-remove or replace-one (default: the dataset's, if the ledger knows it)")
	f.StringVar(&s.Unit, "unit", "", "whose privacy it is: record, or the unit of the schema (default: likewise)")
	f.StringVar(&s.Reason, "reason", "", "what was released, by which program (required)")
	return charge
}

func (p *ledgerPlace) settle() *cobra.Command {
	return &cobra.Command{
		Use: "settle DIR", Short: "Close an abandoned run in the ledger", Args: args(cobra.ExactArgs(1)),
		Long: "Settle ends a run for good, at the cost of the events that the ledger recorded. In\nthe currency caps the whole budget of the run stays spent. If the directory shows\nother events than the ledger, the whole plan stays spent.",
		RunE: func(c *cobra.Command, args []string) error {
			known, d, err := run.Abandon(c.Context(), args[0], p.where)
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), d.Settled(known))
			}
			return err
		},
	}
}

func (p *ledgerPlace) forecast() *cobra.Command {
	var like, spec string
	var asJSON bool
	forecast := &cobra.Command{
		Use: "forecast DATASET --run DIR | --spec FILE", Short: "Say how many more runs of a kind the lifetime budget covers",
		Args: args(cobra.ExactArgs(1)),
		Long: `Forecast says how many more runs like one that was done (--run), or like those of a
spec (--spec), fit into what the dataset's lifetime budget has left, in each
currency: by basic composition of the runs' own ε and δ (caps), and by composing
their plans (zcdp, gdp, rdp). It reads no table and writes nothing.

The dataset's own currency is the one that decides. In the others earlier runs count
by their own ε and δ, as the ledger holds no plans in caps. "-" means that a currency
has no theorem for the plan.`,
		Example: "  sotto ledger forecast clinic --run runs/20261120-154800-0a1b2c3d",
		RunE: func(c *cobra.Command, names []string) error {
			r, err := kindOf(names[0], like, spec)
			if err != nil {
				return err
			}
			return p.with(run.ViewLedger, func(ctx context.Context, w io.Writer, l *ledger.Ledger, _ []string) error {
				all, err := l.Forecast(ctx, r)
				if errors.Is(err, ledger.ErrUnknownDataset) || errors.Is(err, ledger.ErrNoBudget) {
					return usageError("%v", err)
				} else if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(w, all)
				}
				d, err := l.Dataset(ctx, r.Dataset)
				if err != nil {
					return err
				}
				return d.WriteForecasts(w, r, all)
			})(c, names)
		},
	}
	forecast.Flags().StringVar(&like, "run", "", "run directory: runs like this one")
	forecast.Flags().StringVar(&spec, "spec", "", "spec: runs like this one's")
	forecast.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return forecast
}

// kindOf is what a run on the dataset reserves, like a run that was done or those of a spec.
func kindOf(dataset, like, spec string) (r ledger.Reservation, err error) {
	switch {
	case (like == "") == (spec == ""):
		return r, usageError("give --run DIR or --spec FILE: it says what the further runs are like")
	case like != "":
		r, err = run.ReservationOf(like)
	default:
		var s *run.Spec
		var job *run.Job
		if s, err = run.LoadSpec(spec, nil); err == nil && (s.Lab || s.Privacy.Off) {
			err = usageError("--spec: found a lab run, which reserves nothing")
		}
		if err == nil {
			job, err = run.Prepare(s)
		}
		if err == nil {
			r = job.Reservation("")
		}
	}
	if err == nil && r.Dataset != dataset {
		err = usageError("found runs on dataset %q; give those on %q", r.Dataset, dataset)
	}
	return r, err
}
