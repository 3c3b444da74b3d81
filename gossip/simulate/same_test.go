package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
)

// A seeded network of owners who mask and add up over a store has, bit for bit, the model of its simulation, which masks nothing: the seed
// gives each owner a stream of its own, and so the same samples and shares of noise. Another seed gives another model.
func TestSumsAsSimulated(t *testing.T) {
	race.Skip(t) // its checks of pointers know no memory of SQLite's
	third := filepath.Join(t.TempDir(), "third.csv")
	rows, err := os.ReadFile(clinic + "heldout.csv")
	if err == nil {
		err = os.WriteFile(third, rows, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var models [][]float64
	for _, c := range []struct {
		method, seed string
		adjacency    privacy.Adjacency
	}{
		{"{name: auto}", "1", privacy.AddRemove},
		{"{name: auto}", "2", privacy.AddRemove},
		{"{name: sgd, steps: 6, batch: 500, rate: 0.5}", "1", privacy.AddRemove},
		{"{name: sgd, steps: 6, batch: 500, rate: 0.5}", "1", privacy.ReplaceOne},
		{"{name: newton, steps: 4, hessians: 2}", "1", privacy.ReplaceOne},
	} {
		name := fmt.Sprint(c.method, ", seed ", c.seed, ", ", c.adjacency)
		block := "method: " + c.method + "\nnetwork: {mode: sum, colluders: 1, retries: 2, files: [CLINIC/patients.csv, CLINIC/heldout.csv, " + third + "], rows: [4000, 1000, 1000]}"
		file := spec(t, block)
		flags := []run.Override{flag("seed", c.seed), flag("privacy.adjacency", c.adjacency.String())}
		p, err := New(file, netplan.Options{Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		if p.JobOf(0, "").Streams() == p.JobOf(1, "").Streams() {
			t.Errorf("%s: two owners have one stream", name)
		}
		want, err := p.Run(t.Context(), Env{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, w := range together(t, p) {
			if !slices.Equal(w, want.W) {
				t.Errorf("%s: owner %d has another model than the simulation", name, i+1)
			}
		}
		if slices.ContainsFunc(models, func(w []float64) bool { return slices.Equal(w, want.W) }) {
			t.Errorf("%s: has the model of another", name)
		}
		models = append(models, want.W)
	}
}

// together trains the owners of a plan, each as a run of its own, over a store in memory. It returns their parameters.
func together(t *testing.T, p *Plan) (models [][]float64) {
	t.Helper()
	network, err := transport.NewNetwork("", p.Job.Sum.Names, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := network.Network.Config()
	if err != nil {
		t.Fatal(err)
	}
	store := &transport.Memory{}
	ctx, stop := context.WithCancel(t.Context())
	added := make(chan error, 1)
	go func() { added <- (&transport.Adder{Store: store, Network: &network.Network, Config: config}).Run(ctx) }()
	defer func() { stop(); <-added }()
	dir := t.TempDir()
	errs := make([]error, len(p.Owners))
	var all sync.WaitGroup
	for i := range p.Owners {
		c, err := network.Invite(i, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		job := p.JobOf(i, p.Network.Files[i])
		job.Spec.Out, job.Spec.Ledger = filepath.Join(dir, fmt.Sprint(i)), filepath.Join(dir, fmt.Sprint("ledger", i))
		all.Go(func() {
			_, _, err := run.Fit(ctx, job, run.Env{Owners: &pools{store, c, job.Sum.Retries}})
			if errs[i] = err; err != nil {
				stop() // the others would wait for it
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range p.Owners {
		m, err := run.LoadModel(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m.File.W)
	}
	return models
}

// pools are owners who are all there.
type pools struct {
	store       transport.Store
	credentials *transport.Credentials
	retries     int
}

func (*pools) Come(context.Context) error { return nil }

func (*pools) Ready(context.Context, string) error { return nil }

func (p *pools) Pool(s run.PoolState) (run.Pool, error) {
	return pool.Open(pool.Options{Store: p.store, Credentials: p.credentials, Disk: s.Disk, Path: s.Path, Run: s.Run, Retries: p.retries, Charged: s.Charged, Released: s.Released})
}
