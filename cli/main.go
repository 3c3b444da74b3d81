// Package cli is the command sotto. A program of another module can register a method, a model or a
// format and then call [Main]. Each subcommand has a file here.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/parent"
	"github.com/sottodp/sotto/ledger"
	_ "github.com/sottodp/sotto/postgres" // for --ledger and --data
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/s3"
)

// Main runs the command with the arguments of the process and exits.
func Main() { os.Exit(execute()) }

// execute is the command; it returns its exit code.
func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	if _, err := kern.Level(); err != nil {
		fmt.Fprintln(os.Stderr, "sotto:", err)
		return exitInput
	}
	ledger.Warn = func(text string) { fmt.Fprintln(os.Stderr, "warning:", readable(text)) }
	ctx, err := parent.Watch(ctx)
	if err != nil {
		err = &run.InputError{Err: err}
	} else {
		s3.StopWith(ctx)
		c, out := root(), &checkedWriter{w: os.Stdout}
		c.SetOut(out)
		if err = c.ExecuteContext(ctx); err == nil && out.err != nil {
			err = fmt.Errorf("standard output: %w", out.err)
		}
		parent.Clean()
	}
	if err != nil {
		printError(os.Stderr, err)
	}
	return exitCode(err)
}

// A checkedWriter keeps the first error: what a person did not see, no command may count as said.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "sotto",
		Short: "Differentially private learning: train on sensitive records with a proven privacy guarantee",
		Long: `Sotto trains a model on sensitive records and proves how little the model reveals
about any one of them.

Start with:  sotto init, which asks for what your table needs,
or with:     sotto fit examples/clinic/sotto.yaml

Exit codes: 0 done; 1 the machine failed (disk, network); 2 wrong input, nothing
changed; 3 the privacy budget does not allow it, nothing released; 130 stopped by
the user, can be resumed.`,
		Version:       runlog.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	addCommands(c)
	group(c)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var value *pflag.InvalidValueError
		if errors.As(err, &value) {
			name, text := value.GetFlag().Name, value.GetValue()
			bad := ""
			switch value.GetFlag().Value.Type() {
			case "float64":
				bad = config.OutOfRange(text)
			case "int":
				bad = config.WholeOutOfRange(text, math.MaxInt)
			case "uint64":
				bad = config.WholeOutOfRange(text, math.MaxUint64)
			}
			if bad != "" {
				return usageError("--%s: %s", name, bad)
			}
			allowed := map[string]string{"float64": "a number", "int": "a whole number", "uint64": "a whole number from 0",
				"bool": "true or false", "duration": "a duration, as 30s or 10m"}[value.GetFlag().Value.Type()]
			if allowed != "" {
				return usageError("--%s: found %q; write %s", name, text, allowed)
			}
		}
		return usageError("%v; `%s --help` lists the flags", err, c.CommandPath())
	})
	offer(c)
	return c
}

// group makes c a command that only holds others: it shows its help and refuses other words.
func group(c *cobra.Command) {
	c.Args = func(c *cobra.Command, a []string) error {
		if len(a) == 0 {
			return nil
		}
		return usageError("unknown command %q; after %s, choose %s", a[0], c.CommandPath(), strings.Join(available(c), ", "))
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

// available lists the commands directly below c.
func available(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// usageError is a mistake on the command line.
func usageError(format string, args ...any) error {
	return &run.InputError{Err: fmt.Errorf(format, args...)}
}

// outExists refuses to write over the file at path.
func outExists(path string) error { return usageError("--out: %s exists; give a new file", path) }

// args makes cobra's argument checks end with exit code 2.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return usageError("%v; usage: %s", err, c.UseLine())
		}
		return nil
	}
}
