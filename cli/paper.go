package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/p0"
	"github.com/sottodp/sotto/paper/p1"
	"github.com/sottodp/sotto/paper/p2"
	"github.com/sottodp/sotto/paper/p3"
	"github.com/sottodp/sotto/paper/p4"
	"github.com/sottodp/sotto/run/runlog"
)

var experiments = []paper.Experiment{p0.Experiment, p1.Experiment, p2.Experiment, p3.Experiment, p4.Experiment}

func paperCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "paper",
		Short: "Reproduce the experiments of a paper that Sotto builds on",
	}
	for _, e := range experiments {
		c.AddCommand(experimentCommand(e))
	}
	c.AddCommand(allPapersCommand())
	group(c)
	return c
}

func experimentCommand(e paper.Experiment) *cobra.Command {
	l := paper.Lab{Version: runlog.Version()}
	c := &cobra.Command{
		Use: e.Name, Short: e.Short, Long: e.Long, Example: e.Example,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if l.Full && c.Flags().Changed("small") {
				return usageError("--small and --full: found both; give one")
			}
			l.Dir = cmp.Or(l.Dir, e.Name+map[bool]string{true: "-full", false: "-small"}[l.Full])
			if e.Needed {
				if l.Data = cmp.Or(l.Data, os.Getenv("SOTTO_DATA")); l.Data == "" {
					return usageError("--data is missing; give the folder that holds %s, which SOTTO_DATA may name too", e.Data)
				}
			}
			l.Progress = tenths(func(done, all int) { fmt.Fprintf(c.ErrOrStderr(), "%d of %d runs\n", done, all) })
			r, err := reproduce(c, e, &l)
			if err != nil {
				return err
			}
			r.Claims.Text(c.OutOrStdout(), l.Full)
			fmt.Fprintf(c.OutOrStdout(), "%s Page: %s\n", verdict(e, r), filepath.Join(l.Dir, "index.html"))
			return nil
		},
	}
	c.Flags().Bool("small", false, e.Small+" (the default)")
	c.Flags().BoolVar(&l.Full, "full", false, e.Full)
	c.Flags().StringVar(&l.Dir, "out", "",
		fmt.Sprintf("directory for the results; one that was begun is continued (default %[1]s-small or %[1]s-full)", e.Name))
	switch {
	case e.Needed:
		c.Flags().StringVar(&l.Data, "data", "", "folder of the tables (default $SOTTO_DATA)")
	case e.Data != "":
		c.Flags().StringVar(&l.Data, "data", "", "folder that holds "+e.Data)
	}
	c.Flags().BoolVar(&l.Judge, "judge", false,
		"judge the results in --out again, which another version of Sotto made; nothing runs, and the record names both")
	if e.Parallel {
		c.Flags().IntVar(&l.Jobs, "jobs", 0, "trainings at the same time (default one for each core)")
	}
	return c
}

// reproduce runs an experiment.
func reproduce(c *cobra.Command, e paper.Experiment, l *paper.Lab) (*paper.Results, error) {
	r, err := e.Reproduce(c.Context(), l)
	if c.Context().Err() != nil {
		return nil, stoppedError("the experiment was stopped; repeat the command to continue it")
	}
	return r, err
}

// verdict is what a run says of the paper's claims. A small one decides none: the full run's verdicts stand instead.
func verdict(e paper.Experiment, r *paper.Results) string {
	if r.Record.Full {
		return fmt.Sprintf("%d of %d claims hold.", r.Claims.Passed(), r.Claims.Tested())
	}
	s := "The small size decides no claim."
	if full := e.Recorded(); full != nil {
		claims := full.Claims.Paper()
		s += fmt.Sprintf(" In the full run (%s) %d of the paper's claims hold, %d fail and %d are not tested.", full.Name(),
			claims.Passed(), claims.Failed(), claims.Untested())
	}
	return s
}

// allPapersCommand runs all experiments, each in a directory of its own, and writes the page that links theirs.
func allPapersCommand() *cobra.Command {
	var dir, data string
	var full bool
	c := &cobra.Command{
		Use: "all", Short: "All papers, with a page that links theirs",
		Long: `This runs the experiments of all papers, one after the other, each in its own directory within --out, and writes
index.html, which links their pages, and papers.bib. To continue a stopped run, repeat the command.

It needs the tables of P0 and P2 in the folder --data; P3 and P4 take theirs from it, too. --small takes five to ten
minutes; --full takes half a day.`,
		Example: `  sotto paper all --data datasets
  sotto paper all --data datasets --full --out papers-full`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if full && c.Flags().Changed("small") {
				return usageError("--small and --full: found both; give one")
			}
			if data = cmp.Or(data, os.Getenv("SOTTO_DATA")); data == "" {
				return usageError("--data is missing; give the folder that holds the tables of P0 and P2, which SOTTO_DATA may name too")
			}
			size := map[bool]string{true: "full", false: "small"}[full]
			return allPapers(c, experiments, paper.Lab{Full: full, Data: data, Dir: cmp.Or(dir, "papers-"+size),
				Version: runlog.Version()})
		},
	}
	c.Flags().Bool("small", false, "the small size of each (the default)")
	c.Flags().BoolVar(&full, "full", false, "the size of each paper")
	c.Flags().StringVar(&dir, "out", "",
		"directory for the results; one that was begun is continued (default papers-small or papers-full)")
	c.Flags().StringVar(&data, "data", "", "folder of the tables (default $SOTTO_DATA)")
	return c
}

// allPapers runs experiments within the directory of the lab. The page that links theirs is written after each.
func allPapers(c *cobra.Command, list []paper.Experiment, lab paper.Lab) error {
	size := map[bool]string{true: "--full", false: "--small"}[lab.Full]
	var made []paper.Made
	for _, e := range list {
		made = append(made, paper.Made{E: e})
	}
	for i, e := range list {
		l := lab
		l.Dir = filepath.Join(lab.Dir, e.Name)
		if e.Data == "" {
			l.Data = ""
		}
		l.Progress = tenths(func(done, all int) { fmt.Fprintf(c.ErrOrStderr(), "%s: %d of %d runs\n", e.Name, done, all) })
		r, err := reproduce(c, e, &l)
		if err != nil {
			return err
		}
		made[i].Record = r.Record
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", e.Name, verdict(e, r))
		if err := paper.Index(lab.Dir, "sotto paper all "+size+" --data DIR", lab.Full, made); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "Page: %s\n", filepath.Join(lab.Dir, "index.html"))
	return nil
}

// tenths calls tell at each tenth of the work.
func tenths(tell func(done, all int)) func(done, all int) {
	shown := -1
	return func(done, all int) {
		if tenth := done * 10 / max(1, all); tenth > shown {
			shown = tenth
			tell(done, all)
		}
	}
}
