package private_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/simdisk"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/run/runlog"
)

// The same over masks, a store and a hub that adds.
func TestPoolReleasesOverTheStore(t *testing.T) {
	private.PoolReleases(t, func(t *testing.T, owners int) (all []sum.Pool) {
		var names []string
		for i := range owners {
			names = append(names, fmt.Sprint("hospital-", i+1))
		}
		o, err := transport.NewNetwork("", names, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := o.Network.Config()
		if err != nil {
			t.Fatal(err)
		}
		store := &transport.Memory{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- (&transport.Adder{Store: store, Network: &o.Network, Config: config}).Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		for i := range owners {
			c, err := o.Invite(i, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			p, err := pool.Open(pool.Options{Store: store, Credentials: c, Disk: runlog.Disk{FS: simdisk.New(uint64(i))}, Path: "/pool", Run: "run"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			all = append(all, p)
		}
		return all
	})
}
