package data

import (
	"context"
	"io"
)

// A stoppable reader returns the error of its context, once that has ended. A table of a few kilobytes can unfold to
// any number of bytes, of which none makes a row.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(b)
}

// Stoppable returns r as a reader that ends with the context.
func Stoppable(ctx context.Context, r io.Reader) io.Reader { return stoppable{ctx, r} }
