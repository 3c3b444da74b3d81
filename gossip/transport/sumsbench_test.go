package transport_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/run/runlog"
)

// counted carries connections to an address and counts their bytes, both ways.
func counted(b testing.TB, to string) (addr string, bytes *atomic.Int64) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	bytes = &atomic.Int64{}
	carry := func(to, from net.Conn) {
		defer to.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := from.Read(buffer)
			bytes.Add(int64(n))
			if _, wrong := to.Write(buffer[:n]); errors.Join(err, wrong) != nil {
				return
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				return
			}
			go carry(far, near)
			go carry(near, far)
		}
	}()
	return l.Addr().String(), bytes
}

// BenchmarkSums is a step of owners who add up 100,000 numbers over a hub, with journals on the disk: what crosses the connections of the
// hub, and the messages on them.
func BenchmarkSums(b *testing.B) {
	for _, n := range []int{10, 50} {
		for _, pause := range []time.Duration{0, 3 * time.Second} { // the slowest owner computes for so long
			b.Run(fmt.Sprint(n, " owners, pause ", pause), func(b *testing.B) { benchmarkSums(b, n, 100_000, pause) })
		}
	}
}

// adding is a network of owners who add up d numbers, with its hub, the bytes on their connections, and a step of all.
func adding(b testing.TB, owners, d int) (hub *transport.Hub, bytes *atomic.Int64, step func(pause time.Duration)) {
	b.Helper()
	var keys []*transport.OwnerKey
	var requests []*transport.Request
	for i := range owners {
		k, err := transport.NewOwnerKey(fmt.Sprint("hospital-", i+1))
		if err != nil {
			b.Fatal(err)
		}
		keys, requests = append(keys, k), append(requests, k.Request())
	}
	o, err := transport.NewNetworkWithKeys("", requests, nil, &transport.Limits{Dim: d, Sums: &transport.SumLimits{Attempts: 1 << 20, Sums: 1, Numbers: d}})
	if err != nil {
		b.Fatal(err)
	}
	hubKeys, err := o.Hub()
	if err != nil {
		b.Fatal(err)
	}
	hub, err = transport.StartHub(b.Context(), hubKeys, transport.HubOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(hub.Close)
	u, err := url.Parse(hub.URL)
	if err != nil {
		b.Fatal(err)
	}
	addr, bytes := counted(b, u.Host)
	var pools []*pool.Pool
	for i := range owners {
		c, err := o.Invite(i, time.Hour)
		if err == nil {
			err = c.Take(keys[i])
		}
		if err != nil {
			b.Fatal(err)
		}
		store, err := transport.Dial(b.Context(), c, "tls://"+addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(store.Close)
		p, err := pool.Open(pool.Options{Store: store, Credentials: c, Disk: runlog.Disk{FS: vfs.OS{}}, Path: filepath.Join(b.TempDir(), "pool"), Run: "run"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { p.Close() })
		pools = append(pools, p)
	}
	return hub, bytes, func(pause time.Duration) {
		var all sync.WaitGroup
		for i, p := range pools {
			all.Go(func() {
				if _, err := p.Meet(b.Context()); err != nil {
					b.Error(err)
					return
				}
				if i == 0 {
					time.Sleep(pause)
				}
				if _, err := p.Sum(b.Context(), sha256.Sum256(nil), d, func() ([]int64, error) { return make([]int64, d), nil }); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
}

func benchmarkSums(b *testing.B, owners, d int, pause time.Duration) {
	hub, bytes, step := adding(b, owners, d)
	step(0)
	beforeMessages, beforeBytes := hub.Traffic()
	beforeWire := bytes.Load()
	for b.Loop() {
		step(pause)
	}
	messages, payload := hub.Traffic()
	b.ReportMetric(float64(messages-beforeMessages)/float64(b.N), "messages/step")
	b.ReportMetric(float64(payload-beforeBytes)/1e6/float64(b.N), "MB/step")
	b.ReportMetric(float64(bytes.Load()-beforeWire)/1e6/float64(b.N), "wireMB/step")
}

// A step of n owners takes 6 n messages: of each its presence and its part with their acknowledgments, the list of presences and the total. An
// owner may ask again where the machine stands still, but not in nine steps.
func TestMessagesOfASum(t *testing.T) {
	const owners, d = 10, 1000
	hub, _, step := adding(t, owners, d)
	fewest, least := int64(1<<62), int64(1<<62)
	for range 9 {
		messages, bytes := hub.Traffic()
		step(0)
		now, all := hub.Traffic()
		fewest, least = min(fewest, now-messages), min(least, all-bytes)
	}
	if most := int64(2*8*d*owners + 6000*owners); fewest > 6*owners || least > most {
		t.Errorf("a step takes %d messages and %d bytes; want %d and up to %d", fewest, least, 6*owners, most)
	}
}
