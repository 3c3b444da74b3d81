package s3

import (
	"io"
	"sync"
)

const (
	blockSize = 256 << 10
	blocks    = 256 // of an object that are kept: 64 MiB
	ahead     = 32  // blocks of the longest request
)

// An objectFile is an object in blocks, of which those that were read last are kept. Readers of columns go through it
// at several positions; one that reads it from its beginning to its end gets ever longer ranges.
type objectFile struct {
	*origin
	size int64

	mu    sync.Mutex
	begun bool
	err   error // ends the reading
	tag   string
	kept  map[int64]*block
	clock int64
	next  int64 // the block after the last request
	span  int64 // blocks of the last request
}

type block struct {
	ready chan struct{}
	b     []byte
	err   error
	used  int64
}

// begin reads the first block, which tells the size and the version.
func (o *objectFile) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun || o.err != nil {
		return o.err
	}
	a, err := o.get(0, blockSize, "")
	if err != nil {
		o.err = err
		return err
	}
	o.begun, o.size, o.tag, o.next, o.span = true, a.size, a.tag, 1, 1
	first := &block{ready: make(chan struct{}), b: a.b}
	close(first.ready)
	o.kept = map[int64]*block{0: first}
	return nil
}

// failed returns the error that ended the reading.
func (o *objectFile) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// ReadAt implements io.ReaderAt.
func (o *objectFile) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at+int64(n) >= o.size {
			return n, io.EOF
		}
		pos := at + int64(n)
		b, err := o.block(pos / blockSize)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b[pos%blockSize:])
	}
	return n, nil
}

// block returns block i, which is in the object.
func (o *objectFile) block(i int64) ([]byte, error) {
	o.mu.Lock()
	if o.err != nil {
		o.mu.Unlock()
		return nil, o.err
	}
	o.clock++
	if k := o.kept[i]; k != nil {
		k.used = o.clock
		o.mu.Unlock()
		<-k.ready
		return k.b, k.err
	}
	if o.span = min(2*o.span, ahead); i != o.next {
		o.span = 1
	}
	var some []*block
	for last := (o.size - 1) / blockSize; int64(len(some)) < o.span; {
		k := i + int64(len(some))
		if k > last || o.kept[k] != nil {
			break
		}
		some = append(some, &block{ready: make(chan struct{}), used: o.clock})
		o.kept[k] = some[len(some)-1]
	}
	o.next = i + int64(len(some))
	o.evict()
	o.mu.Unlock()

	a, err := o.get(i*blockSize, int64(len(some))*blockSize, o.tag)
	o.mu.Lock()
	if err == nil && a.size != o.size {
		err = o.replaced()
	}
	if err != nil && o.err == nil {
		o.err = err
	}
	o.mu.Unlock()
	for k, one := range some {
		if one.err = err; err == nil {
			from := k * blockSize
			one.b = a.b[from:min(len(a.b), from+blockSize)]
		}
		close(one.ready)
	}
	return some[0].b, err
}

// evict forgets the blocks that were not used for the longest time. Readers that have one keep it.
func (o *objectFile) evict() {
	for len(o.kept) > blocks {
		oldest, used := int64(-1), o.clock
		for i, k := range o.kept {
			if k.used < used {
				oldest, used = i, k.used
			}
		}
		if oldest < 0 {
			return // all of the last request
		}
		delete(o.kept, oldest)
	}
}
