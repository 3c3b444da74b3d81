package noise

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestSeededIsAFunctionOfItsArguments(t *testing.T) {
	first := func(seed uint64, name string, index uint64) uint64 {
		return NewSeeded(seed, name, index).Uint64()
	}
	if a, b := first(1, "noise", 2), first(1, "noise", 2); a != b {
		t.Error("the same arguments gave two streams")
	}
	seen := map[uint64]string{}
	for seed := range uint64(3) {
		for _, name := range []string{"", "noise", "sample", "noise\x00", strings.Repeat("long", 100)} {
			for index := range uint64(3) {
				id := fmt.Sprint(seed, name, index)
				w := first(seed, name, index)
				if other, ok := seen[w]; ok {
					t.Errorf("streams %q and %q begin alike", id, other)
				}
				seen[w] = id
			}
		}
	}
}

func TestStreams(t *testing.T) {
	for _, s := range []Streams{SeededStreams(7), SecureStreams(), {}} {
		a, err := s.Stream("noise", 3)
		if err != nil {
			t.Fatal(err)
		}
		if a.Seeded() != s.Seeded() {
			t.Errorf("%v: source says Seeded() = %v", s, a.Seeded())
		}
		want := a.Uint64()
		a.Uint64()
		if err := s.Reset(a, "noise", 3); err != nil {
			t.Fatal(err)
		}
		if got := a.Uint64(); (got == want) != s.Seeded() {
			t.Errorf("%v: after Reset the stream begins with %x, before with %x", s, got, want)
		}
		if _, err := s.Stream("noise", -1); err == nil {
			t.Errorf("%v: a negative index is no error", s)
		}
		if n := testing.AllocsPerRun(100, func() {
			if err := s.Reset(a, "noise", 3); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: Reset allocates %v times", s, n)
		}
	}
	b, err := SeededStreams(7).Stream("noise", 3)
	if err != nil {
		t.Fatal(err)
	}
	if b.Uint64() != NewSeeded(7, "noise", 3).Uint64() {
		t.Error("SeededStreams and NewSeeded disagree")
	}
	secure, err := NewSecure()
	if err != nil || secure.Seeded() {
		t.Errorf("NewSecure: %v, seeded %v", err, secure.Seeded())
	}
}

func TestACopySharesTheStream(t *testing.T) {
	a := NewSeeded(1, "", 0)
	b := *a
	if a.Uint64() == b.Uint64() {
		t.Error("a copied source repeated its bits")
	}
}

// No formatting of a source, or of a struct that holds one, shows its key, its state
// or its seed.
func TestNothingIsPrinted(t *testing.T) {
	const seed = 0xFEDCBA9876543210
	type holder struct {
		byValue   Source
		byPointer *Source
		streams   Streams
	}
	src := NewSeeded(seed, "noise", 1)
	key := seededKey(seed, "noise", 1)
	streams := SeededStreams(seed)
	h := holder{*src, src, SecureStreams()}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T", "%p", "%w"} {
		for _, v := range []any{src, *src, h, &h, []*Source{src}, []Source{*src}, Source{}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprint(&out, streams, src)
	j, err := json.Marshal([]any{src, *src, streams})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(j)
	text := strings.ToLower(out.String())
	for _, secret := range [][]byte{key[:], src.state().refine[:]} {
		words := []string{hex.EncodeToString(secret[:8]), strings.Trim(fmt.Sprint(secret[:8]), "[]")}
		for i := 0; i < 32; i += 8 {
			words = append(words, fmt.Sprint(binary.LittleEndian.Uint64(secret[i:])), fmt.Sprintf("%x", binary.LittleEndian.Uint64(secret[i:])))
		}
		for _, w := range words {
			if strings.Contains(text, w) {
				t.Errorf("output contains %s", w)
			}
		}
	}
	if strings.Contains(text, fmt.Sprint(uint64(seed))) || strings.Contains(text, "fedcba98") {
		t.Error("output contains the seed")
	}
	if !strings.Contains(text, "noise.source(seeded)") {
		t.Errorf("output does not name the source:\n%s", text)
	}
}

func TestReadAndFloat64(t *testing.T) {
	a, b := NewSeeded(1, "", 0), NewSeeded(1, "", 0)
	p := make([]byte, 20)
	if n, err := a.Read(p); n != 20 || err != nil {
		t.Fatal(n, err)
	}
	var want []byte
	for range 3 {
		want = binary.LittleEndian.AppendUint64(want, b.Uint64())
	}
	if !bytes.Equal(p, want[:20]) {
		t.Errorf("Read gave %x, words %x", p, want)
	}
	if a.Uint64() != b.Uint64() {
		t.Error("Read drew another number of words than 3")
	}
	sum := 0.0
	const n = 100000
	for range n {
		f := a.Float64()
		if !(f >= 0 && f < 1) {
			t.Fatalf("Float64 gave %v", f)
		}
		sum += f
	}
	// The mean of n uniforms has standard deviation 1/√(12n); 5.5 of them: one seed in 2·10⁷.
	if d := math.Abs(sum/n - 0.5); d > 5.5/math.Sqrt(12*n) {
		t.Errorf("mean of Float64 is off by %v", d)
	}
}

// Seeded runs must reproduce across versions and platforms: this hash never changes.
func TestGolden(t *testing.T) {
	const want = "b0bf62e45f0c3975c87d04862313eaaee622a085759b622e7c58433cf61a4c08"
	h := sha256.New()
	src := NewSeeded(42, "golden", 1)
	for range 100 {
		fmt.Fprintln(h, src.Uint64())
	}
	for _, scale := range []float64{0.3, 1, 1 << 20, 3e15} {
		dst := make([]int64, 201)
		src.AddGaussian(dst, scale)
		src.AddLaplace(dst, scale)
		fmt.Fprintln(h, dst)
	}
	coins := NewTrials(0.01)
	for range 100 {
		fmt.Fprintln(h, coins.Gap(src, 1000))
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("golden hash is %s; was %s", got, want)
	}
}

// The same for whole numbers and coins.
func TestGoldenCoins(t *testing.T) {
	const want = "3c5a790c8a21c8e22a400e9185c62c45a6e610e0b2becd549055214947421f9f"
	h := sha256.New()
	src := NewSeeded(42, "golden", 2)
	for range 200 {
		fmt.Fprintln(h, src.Below(7), src.Below(1<<63+1), src.Decay(0.01, 90), src.Decay(1e-17, 1<<56))
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("golden hash is %s; was %s", got, want)
	}
}

// A key gives its stream wherever it is; of streams without a seed it is another each time. It prints nothing of itself.
func TestKey(t *testing.T) {
	seeded := SeededStreams(7)
	var key Key
	if err := seeded.Key(&key, "sample", 3); err != nil {
		t.Fatal(err)
	}
	var a Source
	key.Reset(&a)
	b, err := seeded.Stream("sample", 3)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if a.Uint64() != b.Uint64() {
			t.Fatal("the key's stream is another than the seed's")
		}
	}
	var first, second Key
	if err := SecureStreams().Key(&first, "sample", 3); err != nil {
		t.Fatal(err)
	}
	if err := SecureStreams().Key(&second, "sample", 3); err != nil || first == second || first == (Key{}) {
		t.Errorf("two fresh keys are equal, or there is none (%v)", err)
	}
	for _, s := range []Streams{seeded, SecureStreams()} {
		if err := s.Key(new(Key), "sample", -1); err == nil {
			t.Errorf("%v: a negative index is no error", s)
		}
	}
	for _, verb := range []string{"%v", "%x", "%d", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, key); got != "noise.Key" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}
