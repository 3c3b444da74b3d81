package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/p0"
	"github.com/sottodp/sotto/paper/p1"
	"github.com/sottodp/sotto/paper/p2"
	"github.com/sottodp/sotto/paper/p3"
	"github.com/sottodp/sotto/paper/p4"
)

// A reproduction is the command of one paper.
type reproduction struct {
	name, short, long, example string

	small, full string // what the sizes are
	data        string // what the folder of --data holds; "" where no table is read
	needs       string // the same, where there is no run without it
	goesOn      bool   // a directory that was begun is taken up
	jobs        bool   // trainings may run side by side

	run func(ctx context.Context, o reproduce) (paper.Claims, error)
}

// reproduce is what a person asked of one.
type reproduce struct {
	full      bool
	out, data string
	jobs      int
	progress  func(done, all int)
}

func paperCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "paper",
		Short: "Reproduce the experiments of a paper that Sotto builds on",
	}
	for _, r := range reproductions {
		c.AddCommand(r.command())
	}
	group(c)
	return c
}

func (r reproduction) command() *cobra.Command {
	var o reproduce
	c := &cobra.Command{
		Use: r.name, Short: r.short, Long: r.long, Example: r.example,
		Args: args(cobra.NoArgs), PreRunE: oneSize,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.out == "" {
				o.out = r.name + "-small"
				if o.full {
					o.out = r.name + "-full"
				}
			}
			if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 && !r.goesOn {
				return usageError("--out: %s exists and is not empty; allowed is a new or an empty directory", o.out)
			}
			if r.needs != "" {
				o.data = cmp.Or(o.data, os.Getenv("SOTTO_DATA"))
			}
			if r.needs != "" && o.data == "" {
				return usageError("--data: found nothing; allowed is the folder that holds %s, which SOTTO_DATA may name too", r.needs)
			}
			o.progress = tenths(func(done, all int) { fmt.Fprintf(c.ErrOrStderr(), "%d of %d runs\n", done, all) })
			claims, err := r.run(c.Context(), o)
			if r.goesOn && c.Context().Err() != nil {
				return stoppedError("the experiment was stopped; the same command goes on")
			}
			if err != nil {
				return err
			}
			printClaims(c.OutOrStdout(), claims, o.out)
			return nil
		},
	}
	c.Flags().Bool("small", false, r.small+" (the default)")
	c.Flags().BoolVar(&o.full, "full", false, r.full)
	which := "new or empty"
	if r.goesOn {
		which = "one that was begun goes on"
	}
	c.Flags().StringVar(&o.out, "out", "", fmt.Sprintf("directory for the results, %s (default %[2]s-small or %[2]s-full)", which, r.name))
	switch {
	case r.needs != "":
		c.Flags().StringVar(&o.data, "data", "", "folder of the tables (default $SOTTO_DATA)")
	case r.data != "":
		c.Flags().StringVar(&o.data, "data", "", "folder that holds "+r.data)
	}
	if r.jobs {
		c.Flags().IntVar(&o.jobs, "jobs", 0, "trainings at once (default one for each core)")
	}
	return c
}

// sized picks a size.
func sized[S any](o reproduce, small, full S) S {
	if o.full {
		return full
	}
	return small
}

// oneSize refuses --small beside --full.
func oneSize(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("small") && c.Flags().Changed("full") {
		return usageError("--small and --full: found both; allowed is one")
	}
	return nil
}

// tenths calls tell at each tenth of the way.
func tenths(tell func(done, all int)) func(done, all int) {
	shown := -1
	return func(done, all int) {
		if tenth := done * 10 / max(1, all); tenth > shown {
			shown = tenth
			tell(done, all)
		}
	}
}

// printClaims prints what holds and what fails, and where the page is.
func printClaims(w io.Writer, claims paper.Claims, dir string) {
	for _, claim := range claims {
		verdict := "holds"
		if !claim.Holds {
			verdict = "FAILS"
		}
		fmt.Fprintf(w, "%-36s  %s  %s\n", claim.Name, verdict, claim.Found)
	}
	fmt.Fprintf(w, "%d of %d claims hold. Page: %s\n", claims.Passed(), len(claims), filepath.Join(dir, "index.html"))
}

var reproductions = []reproduction{
	{
		name:  "p0",
		short: "P0: gradient clipping and value clipping",
		long: `P0 is Improved Convergence of Differential Private SGD with Gradient Clipping. This runs its
experiments on MNIST, on a synthetic regression and, where they are there, on features of CIFAR-10, and
writes Figures 1 to 5 as CSV and SVG, Table 2, its claims as inequalities that hold or fail, its ε beside Sotto's, and
what tighter bounds win back of what value clipping loses, with one page of HTML.

It needs MNIST as published in the folder --data: mnist/train-images-idx3-ubyte.gz, t10k-images-idx3-ubyte.gz
and their labels. Features are taken from cifar10-features/train.svm.gz and test.svm.gz, LIBSVM
files with classes 0 to 9 and 512 features, say of a trained VGG16. --small takes less than a minute;
--full is the paper's size and takes many minutes.`,
		example: `  sotto paper p0 --data datasets
  sotto paper p0 --data datasets --full --out p0-full`,
		small: "a tenth of the rows, few epochs", full: "the size of the paper", needs: "mnist",
		run: func(ctx context.Context, o reproduce) (paper.Claims, error) {
			r, err := sized(o, p0.Small, p0.Full).Run(ctx, o.data, o.out, o.progress)
			if err != nil {
				return nil, err
			}
			return r.Claims, nil
		},
	},
	{
		name:  "p1",
		short: "P1: accelerated methods with optimal noise schedules",
		long: `P1 is Kuru, Birbil, Gürbüzbalaban and Yıldırım, Differentially Private Accelerated
Optimization Algorithms, 2022. This runs its experiments on a synthetic table and writes
Figures 1 to 4 as CSV and SVG, the paper's claims as inequalities that hold or fail, and what
the corrected schedules gain, with one page of HTML.

--small takes less than a minute: fewer rows, with ε·n and m as in the paper. --full is the paper's
size: 100,000 rows, 20 runs of each curve; minutes.`,
		example: `  sotto paper p1
  sotto paper p1 --full --out p1-full`,
		small: "fewer rows and runs", full: "the size of the paper",
		run: func(ctx context.Context, o reproduce) (paper.Claims, error) {
			r, err := p1.Run(ctx, sized(o, p1.Small, p1.Full), o.out, o.progress)
			if err != nil {
				return nil, err
			}
			return r.Claims, nil
		},
	},
	{
		name:  "p2",
		short: "P2: private line search with adaptive budgets, and its baselines",
		long: `P2 is Chen and Lee, Stochastic Adaptive Line Search for Differentially Private
Optimization, 2020. This runs its experiments on linear models, in the full size on networks too, and writes Figures 1 to 5 as
CSV and SVG, the paper's claims as inequalities that hold or fail, and its account beside the
sound one, with one page of HTML.

It needs Adult and Bank Marketing as published, in the folder --data: adult/adult.data.gz,
adult/adult.test.gz, bank/bank-full.csv.gz; --full needs MNIST, too. --small takes about a minute; --full is the
paper's size, 10 folds five times, and takes hours. Stopped, the same command goes on.`,
		example: `  sotto paper p2 --data datasets
  sotto paper p2 --data datasets --full --out p2-full`,
		small: "fewer splits and budgets", full: "the size of the paper", needs: "adult and bank", goesOn: true, jobs: true,
		run: func(ctx context.Context, o reproduce) (paper.Claims, error) {
			r, err := p2.Run(ctx, sized(o, p2.Small, p2.Full), p2.Options{Data: o.data, Dir: o.out, Version: version(), Jobs: o.jobs, Progress: o.progress})
			if err != nil {
				return nil, err
			}
			return r.Claims, nil
		},
	},
	{
		name:  "p3",
		short: "P3: dual averaging among nodes that do not share their rows",
		long: `P3 is Distributed Empirical Risk Minimization With Differential Privacy. This runs its experiments on
synthetic tables in the shape of epsilon and rcv1, and with --data on rcv1-small, and writes Figures 1 to 4 as
CSV and SVG, the paper's claims as inequalities that hold or fail, the true ε of the published noise beside the claimed one, and
what noise that holds its ε reaches with local samples, with one page of HTML.

--small takes a minute: 400 and 300 rows a node, with the noise of the paper. --full has ten times the rows and
four times the features: ten minutes of processor time.`,
		example: `  sotto paper p3
  sotto paper p3 --full --data /data --out p3-full`,
		small: "fewer rows and features", full: "ten times the rows", data: "rcv1-small/rcv1-small-train.svm.gz and -test.svm.gz",
		run: func(ctx context.Context, o reproduce) (paper.Claims, error) {
			r, err := sized(o, p3.Small, p3.Full).Run(ctx, o.data, o.out, o.progress)
			if err != nil {
				return nil, err
			}
			return r.Claims, nil
		},
	},
	{
		name:  "p4",
		short: "P4: second-order methods for smooth non-convex objectives",
		long: `P4 is Differentially Private Optimization for Smooth Non-Convex ERM. This runs its
experiments on a synthetic table in the shape of Covertype, and with --data on real tables,
and writes the paper's tables of losses, iterations, Hessians and times, its comparisons
with DP-TR as inequalities that hold or fail, and what sound sensitivities and a public number
of steps gain or cost, as CSV, Markdown and SVG, with one page of HTML.

--small takes seconds: 20,000 rows, with ε·n as in the paper. --full is the paper's size:
495,141 rows, five runs of each cell; half an hour of processor time.`,
		example: `  sotto paper p4
  sotto paper p4 --full --data /data --out p4-full`,
		small: "fewer rows and runs", full: "the size of the paper", data: "covtype-sample/covtype-sample-15000.csv.gz and ijcnn1/ijcnn1.gz",
		run: func(ctx context.Context, o reproduce) (paper.Claims, error) {
			r, err := sized(o, p4.Small, p4.Full).Run(ctx, o.data, o.out, o.progress)
			if err != nil {
				return nil, err
			}
			return r.Claims, nil
		},
	},
}
