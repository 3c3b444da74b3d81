package noise

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/sottodp/sotto/internal/kern"
)

// perKey is the words that one key gives before the next one takes its place.
const perKey = 124

// chacha is the stream of chacha8rand under a key: word for word that of
// math/rand/v2, from a kernel where there is one. A word is erased as it is drawn, and
// a key as soon as it has given its words, the next key among them: what a kernel's
// stream leaves in memory does not give back what was drawn.
type chacha struct {
	key  [4]uint64 // the next
	buf  [perKey + 4]uint64
	at   int          // next word of buf
	std  rand.ChaCha8 // where there is no kernel
	slow bool
}

func (c *chacha) Seed(key [32]byte) {
	for i := range c.key {
		c.key[i] = binary.LittleEndian.Uint64(key[8*i:])
	}
	if c.slow = !c.refill(); c.slow {
		c.std.Seed(key)
		c.key = [4]uint64{}
	}
}

// refill says whether there is a kernel.
func (c *chacha) refill() bool {
	if !kern.ChaCha8(&c.buf, &c.key) {
		return false
	}
	copy(c.key[:], c.buf[perKey:])
	clear(c.buf[perKey:])
	c.at = 0
	return true
}

func (c *chacha) Uint64() uint64 {
	if c.slow {
		return c.std.Uint64()
	}
	if c.at == perKey {
		c.refill()
	}
	w := c.buf[c.at]
	c.buf[c.at] = 0
	c.at++
	return w
}

// ahead are the next words, one or more, which are not drawn yet; nil where there is no kernel.
func (c *chacha) ahead() []uint64 {
	if c.slow {
		return nil
	}
	if c.at == perKey {
		c.refill()
	}
	return c.buf[c.at:perKey]
}

// skip draws n of the words ahead.
func (c *chacha) skip(n int) {
	clear(c.buf[c.at : c.at+n])
	c.at += n
}

// words draws as many words as dst holds.
func (c *chacha) words(dst []uint64) {
	if c.slow {
		for i := range dst {
			dst[i] = c.std.Uint64()
		}
		return
	}
	for len(dst) > 0 {
		if c.at == perKey && len(dst) >= len(c.buf) {
			kern.ChaCha8((*[perKey + 4]uint64)(dst), &c.key) // straight to dst: the next words take the place of the next key
			copy(c.key[:], dst[perKey:])
			dst = dst[perKey:]
			continue
		}
		if c.at == perKey {
			c.refill()
		}
		n := copy(dst, c.buf[c.at:perKey])
		clear(c.buf[c.at : c.at+n])
		c.at += n
		dst = dst[n:]
	}
}
