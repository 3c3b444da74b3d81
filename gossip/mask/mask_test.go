package mask

import (
	"crypto/aes"
	"crypto/ecdh"
	"crypto/hmac"
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

// group makes sessions of owners that know each other.
func group(t testing.TB, n int, network [32]byte) (sessions []*Session, keys []*Key) {
	public := make([][KeySize]byte, n)
	for i := range n {
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		public[i] = key.Public()
	}
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
	keys := []*Key{}
	public := make([][KeySize]byte, 3)
	for i := range public {
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys, public[i] = append(keys, key), key.Public()
	}
	stranger, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	shown := slices.Clone(public)
	shown[2] = stranger.Public()
	for name, c := range map[string]struct {
		network [32]byte
		public  [][KeySize]byte
	}{"network": {[32]byte{9}, public}, "list": {[32]byte{}, shown}} {
		a, err := NewSession(keys[0], [32]byte{}, 0, public)
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewSession(keys[1], c.network, 1, c.public)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(a.pairs[0].secret, b.pairs[0].secret) {
			t.Errorf("another %s: the same secret", name)
		}
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
	sessions, keys := group(t, 2, network)
	c := Context{1 << 40, sha256.Sum256([]byte("a context"))}
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(slices.Concat(parts...))
		return h.Sum(nil)
	}
	first, second := keys[0].Public(), keys[1].Public()
	theirs, err := ecdh.X25519().NewPublicKey(second[:])
	if err != nil {
		t.Fatal(err)
	}
	shared, err := keys[0].private.ECDH(theirs)
	if err != nil {
		t.Fatal(err)
	}
	salt := sha256.Sum256(slices.Concat([]byte("sotto/mask/1 keys\n"), network[:], first[:], second[:]))
	var name [16]byte
	name[15] = 1
	const length = 5
	var numbers [16]byte
	binary.BigEndian.PutUint64(numbers[:], c.Turn)
	binary.BigEndian.PutUint64(numbers[8:], length)
	key := mac(mac(salt[:], shared), []byte("sotto/mask/1 sum\n"), name[:], numbers[:], c.Digest[:], []byte{1})
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
	got := []int64{1, 2, 3, 4, 5}
	if err := sessions[0].Mask(got, c); err != nil {
		t.Fatal(err)
	}
	for k := range got {
		if want := int64(k+1) + int64(binary.LittleEndian.Uint64(stream[8*k:])); got[k] != want {
			t.Errorf("number %d is %d; want %d", k, got[k], want)
		}
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
	public := [][KeySize]byte{keys[0].Public(), keys[1].Public(), keys[2].Public()}
	twice, low := slices.Clone(public), slices.Clone(public)
	twice[2], low[2] = twice[1], [KeySize]byte{1}
	for name, c := range map[string]struct {
		self   int
		public [][KeySize]byte
		says   string
	}{
		"alone":           {0, public[:1], "owner 1 of 1; allowed is one of two or more"},
		"nobody":          {3, public, "owner 4 of 3"},
		"another's place": {1, public, "owner 2 has another key than the list says"},
		"one key twice":   {0, twice, "owners 2 and 3 have the same key"},
		"a weak key":      {0, low, "the key of owner 3: "},
	} {
		if _, err := NewSession(keys[0], [32]byte{}, c.self, c.public); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %v", *keys[0], sessions[0], *sessions[0], keys[0]); text != "mask.Key mask.Session mask.Session mask.Key" {
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
