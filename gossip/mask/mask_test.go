package mask

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/internal/proofs"
)

// keysOf draws the keys of n owners.
func keysOf(t testing.TB, n int) (keys []*Key, public [][KeySize]byte) {
	for range n {
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys, public = append(keys, key), append(public, key.Public())
	}
	return keys, public
}

// group makes sessions of owners that know each other.
func group(t testing.TB, n int, network [32]byte) (sessions []*Session, keys []*Key) {
	keys, public := keysOf(t, n)
	for i, key := range keys {
		s, err := NewSession(key, network, i, public)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	return sessions, keys
}

// Over all owners the masks of a turn add up to 0, so sums of masked vectors are sums of vectors, modulo 2⁶⁴.
func TestMasksCancel(t *testing.T) {
	var groups [9][]*Session
	for n := 2; n < len(groups); n++ {
		groups[n], _ = group(t, n, [32]byte{1})
	}
	turn := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, len(groups)-1).Draw(rt, "owners")
		length := rapid.SampledFrom([]int{0, 1, 7, 2048, 2049, 5000}).Draw(rt, "length")
		c := Context{turn, sha256.Sum256([]byte(rapid.String().Draw(rt, "context")))}
		turn++
		seed := rapid.Int64().Draw(rt, "value")
		want, got := make([]int64, length), make([]int64, length)
		for i, s := range groups[n] {
			v := make([]int64, length)
			for k := range v {
				v[k] = seed * int64(i+1) * int64(k+3)
				want[k] += v[k]
			}
			plain := slices.Clone(v)
			if err := s.Mask(v, c); err != nil {
				rt.Fatal(err)
			}
			same := 0
			for k := range v {
				got[k] += v[k]
				if v[k] == plain[k] {
					same++
				}
			}
			if same > 0 { // by chance once in 2⁵⁰
				rt.Errorf("owner %d of %d: %d numbers are as they were", i+1, n, same)
			}
		}
		if !slices.Equal(got, want) {
			rt.Errorf("the masks of %d owners do not cancel", n)
		}
	})
}

// An owner with another context, network or list of keys leaves masks in the sum; so do vectors of other lengths, on all numbers.
func TestMasksOfOtherContexts(t *testing.T) {
	const length = 1000
	one := Context{3, [32]byte{1}}
	for name, other := range map[string]Context{"turn": {4, [32]byte{1}}, "digest": {3, [32]byte{2}}} {
		sessions, _ := group(t, 3, [32]byte{})
		sum := make([]int64, length)
		for i, s := range sessions {
			c := one
			if i == 2 {
				c = other
			}
			if err := s.Mask(sum, c); err != nil {
				t.Fatal(err)
			}
		}
		if k := slices.Index(sum, 0); k >= 0 {
			t.Errorf("another %s: number %d of the sum can be read", name, k)
		}
	}
	for _, name := range []string{"network", "list"} {
		keys, public := keysOf(t, 4)
		network, shown := [32]byte{}, slices.Clone(public[:3])
		if name == "network" {
			network = [32]byte{9}
		} else {
			shown[2] = public[3]
		}
		a, err := NewSession(keys[0], [32]byte{}, 0, public[:3])
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewSession(keys[1], network, 1, shown)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(a.pairs[0].secret, b.pairs[0].secret) {
			t.Errorf("another %s: the same secret", name)
		}
	}
	// A key that X25519 takes for another's makes another secret all the same.
	keys, public := keysOf(t, 2)
	twin := public[1]
	twin[KeySize-1] ^= 0x80
	s, err := NewSession(keys[0], [32]byte{}, 0, append(public, twin))
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(s.pairs[0].secret, s.pairs[1].secret) {
		t.Error("two texts of one key: the same secret")
	}
	sessions, _ := group(t, 2, [32]byte{})
	long, short := make([]int64, length), make([]int64, length-1)
	if err := sessions[0].Mask(long, one); err != nil {
		t.Fatal(err)
	}
	if err := sessions[1].Mask(short, one); err != nil {
		t.Fatal(err)
	}
	for k := range short {
		if long[k]+short[k] == 0 {
			t.Fatalf("another length: number %d of the sum can be read", k)
		}
	}
}

// The mask is what its definition says, computed here from HMAC and single blocks of AES alone.
func TestMaskIsTheStream(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 5)
	network := sha256.Sum256([]byte("a network"))
	sessions, keys := group(t, 3, network)
	c := Context{1 << 40, sha256.Sum256([]byte("a context"))}
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(slices.Concat(parts...))
		return h.Sum(nil)
	}
	list := sha256.New()
	list.Write(append([]byte("sotto/mask/1 keys\n"), network[:]...))
	for _, k := range keys {
		public := k.Public()
		list.Write(public[:])
	}
	numbers := func(a, b uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), b)
	}
	const length, self = 5, 1 // the owner in the middle takes off the first's and adds the last's
	want := []int64{1, 2, 3, 4, 5}
	for _, other := range []uint64{0, 2} {
		shared, err := keys[self].private.ECDH(keys[other].private.PublicKey())
		if err != nil {
			t.Fatal(err)
		}
		salt := sha256.Sum256(slices.Concat(list.Sum(nil), numbers(min(self, other), max(self, other))))
		key := mac(mac(salt[:], shared), []byte("sotto/mask/1 sum\n"), numbers(c.Turn, length), c.Digest[:], []byte{1})
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		var stream []byte
		for i := range 3 {
			in, out := make([]byte, 16), make([]byte, 16)
			in[15] = byte(i)
			block.Encrypt(out, in)
			stream = append(stream, out...)
		}
		for k := range want {
			x := int64(binary.LittleEndian.Uint64(stream[8*k:]))
			if other < self {
				x = -x
			}
			want[k] += x
		}
	}
	got := []int64{1, 2, 3, 4, 5}
	if err := sessions[self].Mask(got, c); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("masked %v; want %v", got, want)
	}
}

func TestMaskRefuses(t *testing.T) {
	sessions, keys := group(t, 3, [32]byte{})
	s := sessions[0]
	v := []int64{7}
	for _, c := range []struct {
		turn uint64
		ok   bool
	}{{0, true}, {0, false}, {5, true}, {4, false}, {5, false}, {math.MaxUint64, true}, {math.MaxUint64, false}, {0, false}} {
		before := v[0]
		err := s.Mask(v, Context{Turn: c.turn})
		if (err == nil) != c.ok || err != nil && v[0] != before {
			t.Errorf("turn %d: %v", c.turn, err)
		}
	}
	fresh, public := keysOf(t, 3)
	twice, low := slices.Clone(public), slices.Clone(public)
	twice[2], low[2] = twice[1], [KeySize]byte{1}
	for name, c := range map[string]struct {
		self   int
		public [][KeySize]byte
		says   string
	}{
		"alone":           {0, public[:1], "owner 1 of 1; choose one of two or more"},
		"nobody":          {3, public, "owner 4 of 3"},
		"another's place": {1, public, "owner 2 has another key than the list says"},
		"one key twice":   {0, twice, "owners 2 and 3 have the same key"},
	} {
		key := fresh[0]
		if _, err := NewSession(key, [32]byte{}, c.self, c.public); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewSession(fresh[0], [32]byte{}, 0, low); err == nil || !strings.Contains(err.Error(), "the key of owner 3: ") {
		t.Errorf("a weak key: %v", err)
	}
	if _, err := NewSession(keys[0], [32]byte{5}, 0, [][KeySize]byte{keys[0].Public(), public[1]}); err == nil || !strings.Contains(err.Error(), "this key has made a session") {
		t.Errorf("a second session: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v", sessions[0], *sessions[0], keys[0]); text != "mask.Session mask.Session mask.Key" {
		t.Errorf("prints %s", text)
	}
}

// Bytes of masked zeros are uniform: χ² over 255 degrees of freedom is above 370 by chance once in 4·10⁵. The random source is
// fixed.
func TestMaskedLooksUniform(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 6)
	sessions, _ := group(t, 4, [32]byte{})
	for i, s := range sessions {
		v := make([]int64, 40_000)
		if err := s.Mask(v, Context{}); err != nil {
			t.Fatal(err)
		}
		var count [256]float64
		for _, x := range v {
			for range 8 {
				count[byte(x)]++
				x >>= 8
			}
		}
		chi, mean := 0.0, float64(8*len(v))/256
		for _, n := range count {
			chi += (n - mean) * (n - mean) / mean
		}
		if chi > 370 {
			t.Errorf("owner %d: χ² is %v", i+1, chi)
		}
	}
}

func TestProofs(t *testing.T) { proofs.Page(t, ".") }

// An owner's masks of a vector of 100,000 numbers, among 10 and 50 owners.
func BenchmarkMask(b *testing.B) {
	for _, n := range []int{10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sessions, _ := group(b, n, [32]byte{})
			v := make([]int64, 100_000)
			turn := uint64(0)
			for b.Loop() {
				if err := sessions[0].Mask(v, Context{Turn: turn}); err != nil {
					b.Fatal(err)
				}
				turn++
			}
		})
	}
}

// bits is a source of randomness that gives the same bits to each call of Read, and counts them.
type bits struct {
	of   [32]byte
	read int
}

func (b *bits) Read(p []byte) (int, error) {
	if len(p) == 1 { // Go reads and drops one now and then, so that nobody relies on the order
		return 1, nil
	}
	for i := range p {
		p[i] = b.of[b.read%len(b.of)]
		b.read++
	}
	return len(p), nil
}

// A key has all the randomness that X25519 takes: it changes with each bit of 32 bytes but the five that the curve fixes. A seed of 32
// bits, from which others could find all masks of a session, would read less.
func TestKeyIsOf256Bits(t *testing.T) {
	t.Setenv("GODEBUG", "cryptocustomrand=1") // else Go takes the system's randomness only
	system := rand.Reader
	t.Cleanup(func() { rand.Reader = system })
	make := func(flip int) [KeySize]byte {
		source := &bits{}
		for i := range source.of {
			source.of[i] = byte(7 * i)
		}
		if flip >= 0 {
			source.of[flip/8] ^= 1 << (flip % 8)
		}
		rand.Reader = source
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		if source.read != 32 {
			t.Fatalf("a key takes %d random bytes; want 32", source.read)
		}
		return key.Public()
	}
	first := make(-1)
	for flip := range 256 {
		fixed := flip < 3 || flip >= 254
		if same := make(flip) == first; same != fixed {
			t.Errorf("bit %d: the same key is %v", flip, same)
		}
	}
}
