package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/gossip/simulate"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
)

// demo is a network whose owners are processes of one machine.
type demo struct {
	plan     *simulate.Plan
	options  run.NetworkOptions // of the plan
	spec     string
	flags    []run.Override
	label    string
	dir      string // of all
	wait     time.Duration
	progress io.Writer // of the first owner; nil: none
}

func netDemoCommand() *cobra.Command {
	var o run.NetworkOptions
	var d demo
	var asJSON, void, quiet bool
	c := &cobra.Command{
		Use:   "demo spec.yaml",
		Short: "Run a network on this machine: a hub and a process for each owner (lab)",
		Long: `Demo does what net simulate does, but as owners on machines of their own would: it divides the rows among them, starts a
hub and a process for each owner on the loopback, each with credentials, ledger and journal of its own, and
waits for the models. With --dir all that stays behind can be read.

This machine holds the rows of all owners: this too is an access to the rows without protection. A
dataset that the ledger knows and that still has a guarantee is used only with --void, which ends it.`,
		Example: "  sotto net demo examples/network/sotto.yaml --dir demo",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if o.Flags, err = overridesOf(c.Flags()); err != nil {
				return err
			}
			d.spec, d.flags, d.label = args[0], o.Flags, o.Label
			if err := d.settle(o); err != nil {
				return err
			}
			warnings, err := d.plan.CheckDelta()
			if err != nil {
				return err
			}
			for _, text := range warnings {
				warner(c)(text)
			}
			w := c.ErrOrStderr()
			if !quiet {
				d.progress = w
			}
			r, err := d.run(c.Context(), void, warner(c))
			return networkResult(c, r, err, asJSON)
		},
	}
	f := c.Flags()
	ownerFlags(f, &o.Label)
	f.StringVar(&d.dir, "dir", "", "new directory for hub and owners (default: one that is removed at the end)")
	f.DurationVar(&d.wait, "wait", 10*time.Second, "how long an owner waits for a peer's vector before the exchange is given up")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.BoolVar(&void, "void", false, voids)
	f.BoolVar(&quiet, "quiet", false, "print nothing but the result, warnings and errors")
	return c
}

// resettle makes the plan of the seed that the owners have drawn.
func (d *demo) resettle() error {
	if !d.plan.Drawn() {
		return nil
	}
	s, err := party.ReadSchedule(d.owner(0, "part"))
	if err != nil {
		return err
	}
	d.options.Seed = &s.Seed
	p, err := run.PrepareNetwork(d.spec, d.options)
	d.plan = &simulate.Plan{NetworkPlan: p}
	return err
}

// settle makes the plan. Owners pay as they would on machines of their own, unless the run is of the lab by itself.
func (d *demo) settle(o run.NetworkOptions) error {
	const lab = "sotto net demo"
	o.Lab = lab
	p, err := run.PrepareNetwork(d.spec, o)
	if err != nil {
		return err
	}
	if p.Spec.Seed == nil && !p.Spec.Privacy.Off {
		if o.Lab = ""; p.Spec.Lab {
			p, err = run.PrepareNetwork(d.spec, o)
		}
	} else {
		d.flags = append(d.flags, run.Override{Path: "lab", Value: "true", From: lab})
	}
	d.plan, d.options = &simulate.Plan{NetworkPlan: p}, o
	return err
}

func (d *demo) run(ctx context.Context, void bool, warn func(string)) (*simulate.Result, error) {
	id, err := run.NewID()
	if err != nil {
		return nil, err
	}
	if d.dir != "" { // before an access is recorded
		if _, err := os.Lstat(d.dir); err == nil {
			return nil, usageError("--dir: found %s; allowed is a new directory", d.dir)
		}
	}
	tables, test, err := d.plan.Tables(ctx, id, "demonstration of a network by `sotto net demo`", void, warn)
	if err != nil {
		return nil, err
	}
	if d.dir == "" {
		if d.dir, err = os.MkdirTemp("", "sotto-demo-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(d.dir)
	} else if err := newfile.MakeDir(d.dir); err != nil {
		return nil, err
	}
	keys, err := d.prepare(tables)
	if err != nil {
		return nil, err
	}
	hub, err := transport.StartHub(ctx, keys, transport.HubOptions{Dir: filepath.Join(d.dir, "hub")})
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	start := time.Now()
	if err := d.owners(ctx, hub.URL); err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds()
	if err := d.resettle(); err != nil {
		return nil, err
	}
	models, err := d.models(ctx, hub.URL)
	if err != nil {
		return nil, err
	}
	r, err := d.plan.Result(id, models, test, seconds)
	if err == nil {
		r.Unpaid = "A demonstration: one machine held the rows of all owners. Each ε is what the owner has against all others together on a machine of its own; the scores are computed without noise."
	}
	return r, err
}

// models are what the owners published at the end.
func (d *demo) models(ctx context.Context, url string) ([][]float64, error) {
	c, err := transport.ReadCredentials(d.owner(0, "credentials.json"))
	if err != nil {
		return nil, err
	}
	config, err := c.Network.Config()
	if err != nil {
		return nil, err
	}
	hub, err := transport.Dial(ctx, c, transport.ClientOptions{URL: url})
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	n := &transport.Node{Store: hub, Credentials: c, Config: config}
	return n.Models(ctx, d.plan.Schedule.Rounds, d.plan.Job.Facts.Dim)
}

func (d *demo) owner(i int, name string) string {
	return filepath.Join(d.dir, fmt.Sprintf("owner-%d", i+1), name)
}

// prepare founds the network, and writes what each owner has: rows and credentials.
func (d *demo) prepare(tables []*data.Table) (*transport.HubKeys, error) {
	organiser, err := party.Found(d.plan.NetworkPlan, "")
	if err != nil {
		return nil, err
	}
	for i := range organiser.Owners {
		c, err := organiser.Invite(i, invitedDays*day)
		if err != nil {
			return nil, err
		}
		if err := os.Mkdir(d.owner(i, ""), 0o700); err != nil {
			return nil, err
		}
		if err := errors.Join(c.Write(d.owner(i, "credentials.json")), data.PackTable(d.plan.Job.Schema, tables[i], d.owner(i, "rows.pack")), tables[i].Close()); err != nil {
			return nil, err
		}
	}
	if err := organiser.WriteDir(d.dir); err != nil {
		return nil, err
	}
	return organiser.Hub()
}

// owners runs all owners' processes to their ends.
func (d *demo) owners(ctx context.Context, hub string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for i, o := range d.plan.Owners {
		c := exec.CommandContext(ctx, program, d.arguments(i, hub)...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = 10 * time.Second
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if i == 0 && d.progress != nil {
			c.Stderr = io.MultiWriter(&stderr, d.progress)
		}
		all.Go(func() {
			if err := c.Run(); err != nil {
				lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
				stop(fmt.Errorf("%s: %w: %s", o.Name, err, strings.TrimPrefix(lines[len(lines)-1], "sotto: ")))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// arguments are those of an owner's process.
func (d *demo) arguments(i int, hub string) []string {
	a := []string{"node", d.spec, "--credentials", d.owner(i, "credentials.json"), "--dir", d.owner(i, "part"), "--hub", hub, "--wait", d.wait.String(), "--json"}
	if i > 0 || d.progress == nil {
		a = append(a, "--quiet")
	}
	if d.label != "" {
		a = append(a, "--label", d.label)
	}
	for _, f := range d.flags {
		if f.Path != "data" && f.Path != "ledger" {
			a = append(a, "--set", f.Path+"="+f.Value)
		}
	}
	return append(a, "--data", d.owner(i, "rows.pack"), "--ledger", d.owner(i, "ledger.db"))
}
