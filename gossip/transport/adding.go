package transport

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// adding is the Adder of a hub at work. It starts again where it fails, until the hub closes.
type adding struct {
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu   sync.Mutex
	told []string
}

// startAdding adds up over a hub's own connection.
func startAdding(nc *nats.Conn, n *Network) (*adding, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	config, err := n.Config()
	if err != nil {
		return nil, err
	}
	store, err := newClient(&natsLink{nc: nc}, n, []string{n.subject("sum", "out", ">")})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &adding{stop: stop}
	a := &Adder{Store: store, Network: n, Config: config, Notice: h.tell, Forget: func(ctx context.Context) error {
		return forget(ctx, js, n)
	}}
	h.ended.Go(func() {
		for ctx.Err() == nil {
			if err := a.Run(ctx); ctx.Err() == nil {
				h.tell("warning: the hub cannot add up sums now and tries again: " + err.Error())
				pause(ctx, lastPoll)
			}
		}
	})
	return h, nil
}

// mostTold caps the notices that wait to be read.
const mostTold = 1000

func (h *adding) tell(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.told) < mostTold {
		h.told = append(h.told, text)
	}
}

func (h *adding) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.told
	h.told = nil
	return all
}

func (h *adding) close() {
	h.stop()
	h.ended.Wait()
}

// forget deletes all parts.
func forget(ctx context.Context, js jetstream.JetStream, n *Network) error {
	for _, s := range n.streams() {
		if !s.emptied {
			continue
		}
		at, err := js.Stream(ctx, n.stream(s.key))
		if err == nil {
			err = at.Purge(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
