// Package demo runs a network on one machine: a hub, and a process of this program for each owner.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/gossip/simulate"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
)

// A Demo is a network whose owners are processes of one machine.
type Demo struct {
	Spec     string
	Options  netplan.Options
	Dir      string // of all; empty: one that is removed at the end
	Wait     time.Duration
	Void     bool
	Progress io.Writer // of the first owner; nil: none
	Notice   func(string)

	Plan  *simulate.Plan // what Settle came to
	flags []run.Override // of an owner's process

	fingerprint string // of a network of mode sum
}

// Resettle plans again with the seed that the owners have drawn.
func (d *Demo) Resettle() error {
	if !d.Plan.Drawn() {
		return nil
	}
	s, err := party.ReadSchedule(d.Owner(0, "part"))
	if err != nil {
		return err
	}
	d.Options.Seed = &s.Seed
	p, err := netplan.Prepare(d.Spec, d.Options)
	d.Plan = &simulate.Plan{Plan: p}
	return err
}

// Settle makes the plan. Owners are charged as on their own machines, unless the spec is a lab run
// anyway.
func (d *Demo) Settle() error {
	d.flags = d.Options.Flags
	const lab = "sotto net demo"
	d.Options.Lab = lab
	p, err := netplan.Prepare(d.Spec, d.Options)
	if err != nil {
		return err
	}
	if p.Spec.Seed == nil && !p.Spec.Privacy.Off {
		if d.Options.Lab = ""; p.Spec.Lab {
			p, err = netplan.Prepare(d.Spec, d.Options)
		}
	} else {
		d.flags = append(d.flags, run.Override{Path: "lab", Value: "true", From: lab})
	}
	d.Plan = &simulate.Plan{Plan: p}
	return err
}

// Run makes the plan, starts the hub and the owners' processes, and waits for their models.
func (d *Demo) Run(ctx context.Context) (*simulate.Result, error) {
	if err := d.Settle(); err != nil {
		return nil, err
	}
	if err := d.Plan.CheckDelta(d.Notice); err != nil {
		return nil, err
	}
	id, err := job.NewID()
	if err != nil {
		return nil, err
	}
	if d.Dir != "" { // before an access is recorded
		if _, err := os.Lstat(d.Dir); err == nil {
			return nil, &run.InputError{Err: fmt.Errorf("--dir: found %s; use a new directory", d.Dir)}
		}
	}
	tables, test, err := d.Plan.Tables(ctx, id, "demonstration of a network by `sotto net demo`", d.Void, d.Notice)
	if err != nil {
		return nil, err
	}
	if d.Dir == "" {
		if d.Dir, err = os.MkdirTemp("", "sotto-demo-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(d.Dir)
	} else if err := newfile.MakeDir(d.Dir); err != nil {
		return nil, err
	}
	keys, err := d.Prepare(tables)
	if err != nil {
		return nil, err
	}
	hub, err := transport.StartHub(ctx, keys, transport.HubOptions{Dir: filepath.Join(d.Dir, "hub")})
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	start := time.Now()
	if err := d.owners(ctx, hub.URL); err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds()
	if err := d.Resettle(); err != nil {
		return nil, err
	}
	var r *simulate.Result
	if d.Plan.Job.Sum != nil {
		r, err = d.sum(id, test, seconds)
	} else {
		var models [][]float64
		if models, err = d.models(ctx, hub.URL); err == nil {
			r, err = d.Plan.Result(id, models, test, seconds)
		}
	}
	if err == nil {
		r.Notice = "A demonstration: one machine held the rows of all owners. Each ε is what the owner has against all others together on a machine of its own; the scores are computed without noise."
		if r.Sum != nil {
			r.Notice = "A demonstration: one machine held the rows of all owners. Each ε is what a row has if owners have machines of their own; the scores are computed without noise."
		}
	}
	return r, err
}

// sum is the result of owners who add up their sums: all have one model.
func (d *Demo) sum(id string, test *data.Table, seconds float64) (*simulate.Result, error) {
	var first *model.File
	for i, o := range d.Plan.Owners {
		t, err := run.LoadModel(d.Owner(i, "part"))
		switch {
		case err != nil:
			return nil, err
		case i == 0:
			first = t.File
		case !slices.Equal(t.File.W, first.W) || !slices.Equal(t.File.Offset, first.Offset):
			return nil, fmt.Errorf("%s has another model than %s", o.Name, d.Plan.Owners[0].Name)
		}
	}
	return d.Plan.SumResult(id, first, test, seconds)
}

// models returns what the owners published at the end.
func (d *Demo) models(ctx context.Context, url string) ([][]float64, error) {
	c, err := transport.ReadCredentials(d.Owner(0, "credentials.json"))
	if err != nil {
		return nil, err
	}
	config, err := c.Network.Config()
	if err != nil {
		return nil, err
	}
	hub, err := transport.Dial(ctx, c, url)
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	n := &transport.Node{Store: hub, Credentials: c, Config: config}
	return n.Models(ctx, d.Plan.Schedule.Rounds, d.Plan.Job.Facts.Dim)
}

// Owner returns the path of a file of an owner.
func (d *Demo) Owner(i int, name string) string {
	return filepath.Join(d.Dir, fmt.Sprintf("owner-%d", i+1), name)
}

// ownerKey is the file of an owner's own key.
const ownerKey = "owner.key"

// Prepare founds the network and writes each owner's key, rows and credentials.
func (d *Demo) Prepare(tables []*data.Table) (*transport.HubKeys, error) {
	var requests []*transport.Request
	for i, o := range d.Plan.Owners {
		key, err := transport.NewOwnerKey(o.Name)
		if err != nil {
			return nil, err
		}
		if err := os.Mkdir(d.Owner(i, ""), 0o700); err != nil {
			return nil, err
		}
		if err := key.Write(d.Owner(i, ownerKey)); err != nil {
			return nil, err
		}
		requests = append(requests, key.Request())
	}
	organizer, err := party.Found(d.Plan.Plan, "", requests...)
	if err != nil {
		return nil, err
	}
	for i := range organizer.Owners {
		c, err := organizer.Invite(i, 24*time.Hour)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(c.Write(d.Owner(i, "credentials.json")),
			data.PackTable(d.Plan.Job.Schema, tables[i], d.Owner(i, "rows.pack")), tables[i].Close()); err != nil {
			return nil, err
		}
	}
	if err := organizer.WriteDir(d.Dir); err != nil {
		return nil, err
	}
	if d.Plan.Job.Sum != nil {
		if d.fingerprint, err = organizer.Network.Fingerprint(); err != nil {
			return nil, err
		}
	}
	return organizer.Hub()
}

// owners runs all owners' processes to their ends.
func (d *Demo) owners(ctx context.Context, hub string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for i, o := range d.Plan.Owners {
		c := exec.CommandContext(ctx, program, d.Arguments(i, hub)...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = 10 * time.Second
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if i == 0 && d.Progress != nil {
			c.Stderr = io.MultiWriter(&stderr, d.Progress)
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

// Arguments returns the arguments of an owner's process.
func (d *Demo) Arguments(i int, hub string) []string {
	a := []string{"node", d.Spec, "--credentials", d.Owner(i, "credentials.json"), "--key", d.Owner(i, ownerKey), "--dir",
		d.Owner(i, "part"), "--hub", hub, "--wait", d.Wait.String(), "--json"}
	if i > 0 || d.Progress == nil {
		a = append(a, "--quiet")
	}
	if d.fingerprint != "" {
		a = append(a, "--fingerprint", d.fingerprint)
	}
	if d.Options.Label != "" {
		a = append(a, "--label", d.Options.Label)
	}
	for _, f := range d.flags {
		if f.Path != "data" && f.Path != "ledger" {
			a = append(a, "--set", f.Path+"="+f.Value)
		}
	}
	return append(a, "--data", d.Owner(i, "rows.pack"), "--ledger", d.Owner(i, "ledger.db"))
}
