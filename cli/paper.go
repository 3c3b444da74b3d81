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
	"github.com/sottodp/sotto/run"
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
	group(c)
	return c
}

func experimentCommand(e paper.Experiment) *cobra.Command {
	l := paper.Lab{Version: run.Version()}
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
			r, err := e.Reproduce(c.Context(), &l)
			if c.Context().Err() != nil {
				return stoppedError("the experiment was stopped; repeat the command to continue it")
			}
			if err != nil {
				return err
			}
			r.Claims.Text(c.OutOrStdout())
			fmt.Fprintf(c.OutOrStdout(), "%d of %d claims hold. Page: %s\n", r.Claims.Passed(), r.Claims.Tested(),
				filepath.Join(l.Dir, "index.html"))
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
	if e.Parallel {
		c.Flags().IntVar(&l.Jobs, "jobs", 0, "trainings at the same time (default one for each core)")
	}
	return c
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
