package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
)

// Watch takes over the hub's file of keys whenever it changes, and tells which owners have filled their
// storage, until the context ends.
func (h *Hub) Watch(ctx context.Context, file string, notices io.Writer) {
	go h.watchStorage(ctx, notices)
	watchFile(ctx, file, func() {
		keys, err := ReadHubKeys(file)
		if err == nil {
			err = h.Reload(keys)
		}
		if err != nil {
			fmt.Fprintf(notices, "warning: %v; what stood there before still holds\n", err)
			return
		}
		fmt.Fprintf(notices, "%s has changed: whom it turns away is turned away\n", file)
	})
}

const watchEvery = time.Second

// watchStorage says which owners have filled their storage at the hub, until the context ends.
func (h *Hub) watchStorage(ctx context.Context, notices io.Writer) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		full, err := h.Full(ctx)
		for _, text := range full {
			fmt.Fprintln(notices, text)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(notices, "warning: which owners have filled their storage is not known now: %v\n", err)
		}
	}
}

// watchFile calls changed whenever the file's content has changed, until the context ends.
func watchFile(ctx context.Context, file string, changed func()) {
	last, err := readfile.All(file, readfile.JSON)
	if err != nil {
		last = nil
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, err := readfile.All(file, readfile.JSON); err == nil && !bytes.Equal(now, last) {
			last = now
			changed()
		}
	}
}
