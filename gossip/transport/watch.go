package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
)

// Watch reloads the hub's file of keys whenever it changes, and tells which owners have filled
// their storage, until the context ends.
func (h *Hub) Watch(ctx context.Context, file string, notices io.Writer) {
	go every(ctx, func() {
		full, err := h.Full(ctx)
		for _, text := range append(full, h.GivenUp()...) {
			fmt.Fprintln(notices, text)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(notices, "warning: it is not known now which owners have filled their storage: %v\n", err)
		}
	})
	last, _ := readfile.All(file, readfile.JSON)
	every(ctx, func() {
		now, err := readfile.All(file, readfile.JSON)
		if err != nil || bytes.Equal(now, last) {
			return
		}
		last = now
		keys, err := ReadHubKeys(file)
		if err == nil {
			err = h.Reload(keys)
		}
		if err != nil {
			fmt.Fprintf(notices, "warning: %v; the earlier content stays in force\n", err)
			return
		}
		fmt.Fprintf(notices, "%s has changed: its revocations are now in force\n", file)
	})
}

const watchEvery = time.Second

// every calls do once a second, until the context ends.
func every(ctx context.Context, do func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
