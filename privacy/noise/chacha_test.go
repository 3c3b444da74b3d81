package noise

import (
	"math/rand/v2"
	"testing"
)

// TestChaCha: the stream is that of math/rand/v2, whose output c2sp.org/chacha8rand
// fixes, however it is drawn; and what was drawn is erased, where a kernel draws.
func TestChaCha(t *testing.T) {
	for seed := range byte(20) {
		key := [32]byte{seed, 1, 2, 31: seed}
		var c chacha
		c.Seed(key)
		want := rand.NewChaCha8(key)
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		for range 30 {
			for range r.IntN(10) {
				if got, want := c.Uint64(), want.Uint64(); got != want {
					t.Fatalf("word %x, want %x", got, want)
				}
			}
			words := make([]uint64, r.IntN(300))
			c.words(words)
			for _, got := range words {
				if want := want.Uint64(); got != want {
					t.Fatalf("word %x, want %x", got, want)
				}
			}
			for _, w := range c.buf[:c.at] {
				if w != 0 {
					t.Fatal("a word that was drawn is still in memory")
				}
			}
		}
	}
}
