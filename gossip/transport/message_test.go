package transport

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func keyOf(t testing.TB, c *Credentials) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	return c.Network.key(c.Owner), c.key()
}

// A vector is read back from its messages, bit for bit, and from no others: whatever differs, in a bit of a message or in
// what it is taken for, is refused.
func TestVector(t *testing.T) {
	_, all := owners(t, 2)
	pub, key := keyOf(t, all[0])
	other, _ := keyOf(t, all[1])
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64(), 1, 9).Draw(t, "v")
		if rapid.IntRange(0, 20).Draw(t, "large") == 0 {
			v = append(make([]float64, 2*chunkFloats-3), v...)
		}
		round := rapid.IntRange(0, 1e6).Draw(t, "round")
		config := Config{1: 7}
		got := make([]float64, len(v))
		chunks := chunksOf(len(v))
		for c := range chunks {
			if err := decode(config, pub, round, 0, 1, c, got, encode(config, key, round, 0, 1, c, v)); err != nil {
				t.Fatal(err)
			}
		}
		if !sameBits(got, v) {
			t.Fatal("other numbers came back")
		}
		b := encode(config, key, round, 0, 1, chunks-1, v)
		bad := slices.Clone(b)
		bad[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		for name, err := range map[string]error{
			"a bit":           decode(config, pub, round, 0, 1, chunks-1, got, bad),
			"a byte less":     decode(config, pub, round, 0, 1, chunks-1, got, b[:len(b)-1]),
			"nothing":         decode(config, pub, round, 0, 1, chunks-1, got, nil),
			"another run":     decode(Config{}, pub, round, 0, 1, chunks-1, got, b),
			"another key":     decode(config, other, round, 0, 1, chunks-1, got, b),
			"another round":   decode(config, pub, round+1, 0, 1, chunks-1, got, b),
			"another sender":  decode(config, pub, round, 1, 1, chunks-1, got, b),
			"for another":     decode(config, pub, round, 0, 2, chunks-1, got, b),
			"another chunk":   decode(config, pub, round, 0, 1, chunks, append(got, make([]float64, chunkFloats)...), b),
			"another length":  decode(config, pub, round, 0, 1, chunks-1, append(got, 0), b),
			"without numbers": decode(config, pub, round, 0, 1, chunks-1, got, sign(config, key, slices.Clone(b[:headerBytes]))),
		} {
			if !errors.Is(err, ErrForged) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

// FuzzDecode: what is not signed is refused, whatever it is.
func FuzzDecode(f *testing.F) {
	_, all := owners(f, 2)
	pub, key := keyOf(f, all[0])
	v := []float64{1, 2}
	b := encode(Config{}, key, 1, 0, 1, 0, v)
	f.Add(b[:len(b)-1])
	f.Add(b[:headerBytes])
	f.Fuzz(func(t *testing.T, m []byte) {
		if err := decode(Config{}, pub, 1, 0, 1, 0, make([]float64, 2), m); err == nil {
			t.Error("accepted")
		}
		// Signed nonsense does not panic.
		if err := decode(Config{}, pub, 1, 0, 1, 0, make([]float64, 2), sign(Config{}, key, slices.Clone(m))); err == nil && len(m) != headerBytes+16 {
			t.Error("accepted another length")
		}
	})
}
