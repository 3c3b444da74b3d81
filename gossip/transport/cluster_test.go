package transport

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cluster starts so many nats-servers that others might run: they know of the network what Configure wrote, no more.
func cluster(t *testing.T, k *HubKeys, size int) (urls string, all []*server.Server) {
	t.Helper()
	dir := t.TempDir()
	if err := k.Configure(dir); err != nil {
		t.Fatal(err)
	}
	routes, ports := freePorts(t, size)
	for i := range size {
		o, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
		if err != nil {
			t.Fatal(err)
		}
		o.ServerName, o.Host, o.Port, o.NoSigs, o.NoLog, o.StoreDir = fmt.Sprint("n", i), "127.0.0.1", server.RANDOM_PORT, true, true, t.TempDir()
		if size > 1 {
			o.Cluster = server.ClusterOpts{Name: "others", Host: "127.0.0.1", Port: ports[i]}
			o.Routes = routes
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	for _, s := range all {
		if !s.ReadyForConnections(patient) {
			t.Fatal("a server does not start")
		}
		urls += "," + s.ClientURL()
	}
	for end := time.Now().Add(patient); size > 1; time.Sleep(20 * time.Millisecond) {
		if slices.ContainsFunc(all, func(s *server.Server) bool { return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == size }) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the cluster finds no leader")
		}
	}
	return urls[1:], all
}

// freePorts are ports of the loopback that nobody listens on, and their URLs.
func freePorts(t *testing.T, n int) (routes []*url.URL, ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all are chosen
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
	}
	return routes, ports
}

// A server without a store yet says so by either interface of the client; both are asked again.
func TestStarts(t *testing.T) {
	for err, again := range map[error]bool{
		nats.ErrJetStreamNotEnabledForAccount: true, jetstream.ErrJetStreamNotEnabledForAccount: true, nats.ErrNoResponders: true,
		&jetstream.APIError{Code: 500, ErrorCode: 10049}: true, &nats.APIError{Code: 500, ErrorCode: 10049}: true,
		jetstream.ErrStreamNotFound: false, nats.ErrStreamNotFound: false, context.Canceled: false,
	} {
		if got := starts(fmt.Errorf("stream: %w", err)); got != again {
			t.Errorf("%v: asked again %t, want %t", err, got, again)
		}
	}
}

// The store at a cluster of stock servers does what the hub's does, with the same credentials; it outlives one of three servers.
func TestCluster(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			o, all := limited(t, 3, enough(3, 3))
			k, err := o.Hub()
			if err != nil {
				t.Fatal(err)
			}
			urls, servers := cluster(t, k, size)
			for range 2 { // a second time it is there
				if _, err := Found(t.Context(), k, urls, size); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range all {
				c.Network.Hub = urls
			}
			a, b := dial(t, all[0]), dial(t, all[1])
			put := func(round int) {
				t.Helper()
				key := vectorKey(0, 1, round, 0, 1)
				for _, text := range []string{"first", "second"} {
					if v, err := a.Put(t.Context(), key, []byte(text)); err != nil || string(v) != "first" {
						t.Errorf("round %d: stands %q, %v", round, v, err)
					}
				}
				if _, v, err := b.Await(t.Context(), key); err != nil || string(v) != "first" {
					t.Errorf("round %d: heard %q, %v", round, v, err)
				}
			}
			put(1)
			if size > 1 {
				servers[0].Shutdown()
				put(2)
				if v, err := b.Get(t.Context(), vectorKey(0, 1, 1, 0, 1)); err != nil || string(v) != "first" {
					t.Errorf("what was written before: %q, %v", v, err)
				}
				return
			}
			nc, refusals, err := connect(t, urls, &o.Network, all[2].Pass)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := nc.Subscribe(o.Network.subject("rel", "out", ">"), func(m *nats.Msg) { t.Errorf("heard %s", m.Subject) }); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-refusals:
				if !strings.Contains(err.Error(), "Permissions Violation") {
					t.Error(err)
				}
			case <-time.After(patient):
				t.Error("an owner hears everything")
			}
			if _, err := Found(t.Context(), k, strings.Replace(urls, "tls:", "nats:", 1), 1); err == nil {
				t.Error("a cluster without TLS was taken")
			}
		})
	}
}
