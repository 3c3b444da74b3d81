package noise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/kern"
)

// TestKernelIsSlow: whatever a kernel proves is what the exact way gives, for words of
// all kinds and all scales; and it proves most groups of good words. Where there is no
// kernel it must return 0, which is all that is then checked.
func TestKernelIsSlow(t *testing.T) {
	st := NewSeeded(4, "", 0).state()
	r := rand.New(rand.NewPCG(7, 7))
	set, _ := kern.Level()
	odd := func() uint64 { // few bits, or nearly all, or near an edge of the tables' parts
		w := []uint64{0, 1 << 49, 1 << 54, uint64(r.IntN(64)) << 58, uint64(r.IntN(64)) << 58 >> r.IntN(16), ^uint64(0)}[r.IntN(6)]
		w += uint64(r.IntN(5)) - 2
		return w ^ 1<<r.IntN(64)&-uint64(r.IntN(2))
	}
	for _, scale := range []float64{1, 0.3, 0x1.23p20, 0x1.7p33, 0x1p39, 0x1.9p42} {
		proven, groups := 0, 0
		for round := range 4000 {
			var words [16]uint64
			for i := range words {
				words[i] = r.Uint64()
				if round%2 == 1 && r.IntN(4) == 0 {
					words[i] = odd()
				}
				if scale > 0x1p40 && i > 1 { // one pair, eight times: of eight, one would nearly always be left open
					words[i] = words[i-2]
				}
			}
			var got, before [16]int64
			for i := range before {
				before[i] = r.Int64N(1 << 61)
				got[i] = before[i]
			}
			n := kern.GaussianAdd(got[:], words[:], scale)
			if round%2 == 0 {
				groups++
				proven += n / 16
			}
			for i := 0; i < n; i += 2 {
				if j, k := st.pair(uint64(i), words[i], words[i+1], scale); got[i]-before[i] != j || got[i+1]-before[i+1] != k {
					t.Fatalf("Gaussian of %x, %x at scale %v: kernel %d, %d; exactly %d, %d", words[i], words[i+1], scale, got[i]-before[i], got[i+1]-before[i+1], j, k)
				}
			}
			n = kern.LaplaceRound(got[:], words[:], scale)
			for i := range n {
				if k := st.laplace(uint64(i), words[i], scale); got[i] != k {
					t.Fatalf("Laplace of %x at scale %v: kernel %d, exactly %d", words[i], scale, got[i], k)
				}
			}
		}
		// A group of good words is left open by the slack, which at a scale of 2²⁰ adds nothing to speak of: of 2000 groups
		// more than 40 in less than one run of 10¹³.
		if set == "avx512" && (scale < 0x1p30 && proven < groups-40 || proven == 0) || set != "avx512" && proven != 0 {
			t.Errorf("scale %v: %s proved %d of %d groups", scale, set, proven, groups)
		}
	}
	// A small word is never proven: the bits that the uniform misses would say too much. Nothing of its group is changed.
	words := make([]uint64, 16)
	for i := range words {
		words[i] = r.Uint64() | 1<<62
	}
	for _, small := range []uint64{0, 1, 1 << 40, 1<<49 - 1, 1 << 49} {
		words[6] = small
		got, before := make([]int64, 16), make([]int64, 16)
		for _, scale := range []float64{1, 0x1p-60} {
			if n := kern.GaussianAdd(got, words, scale); n != 0 && small < 1<<49 || n != 16 && small == 1<<49 && set == "avx512" {
				t.Errorf("of a group with the word %x, %d values were proven at scale %v", small, n, scale)
			} else if n == 0 && !slices.Equal(got, before) {
				t.Errorf("a group with the word %x was left, but changed: %d", small, got)
			}
		}
		words[6] = small / 2
		if n := kern.LaplaceRound(got, words, 1); n != 0 && small < 1<<49 {
			t.Errorf("of a group with the word %x, %d Laplace values were proven", small/2, n)
		}
	}
	// Sums wrap around, in the kernel as elsewhere.
	for i := range words {
		words[i] = 1<<63 | uint64(i)<<57
	}
	var noise, full [16]int64
	for i := range full {
		full[i] = math.MaxInt64
	}
	for i := 0; i < 16; i += 2 {
		noise[i], noise[i+1] = st.pair(uint64(i), words[i], words[i+1], 0x1p20)
	}
	if n := kern.GaussianAdd(full[:], words, 0x1p20); set == "avx512" && n != 16 {
		t.Errorf("%d of 16 values of good words were proven", n)
	} else {
		for i := range n {
			if full[i] != math.MaxInt64+noise[i] {
				t.Errorf("sum %d is %d, want %d", i, full[i], math.MaxInt64+noise[i])
			}
		}
	}
}

// Heads are what one gap after the other gives, from as many words of the stream, at all rates and whatever was drawn before.
func TestHeadsAreGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for round := range 6000 {
		n := []int64{0, 1, 2, 100, 5000, math.MaxInt32}[r.IntN(6)]
		rate := []float64{0x1p-1074, 1e-300, 1e-12, r.Float64() * 1e-6, r.Float64() * 0.01, r.Float64(), 0.5, 1 - 0x1p-53}[r.IntN(8)]
		if rate == 0 || float64(n)*rate > 1e5 {
			continue
		}
		one, other := NewSeeded(uint64(round), "", 0), NewSeeded(uint64(round), "", 0)
		for range r.IntN(300) {
			one.Uint64()
			other.Uint64()
		}
		coins := NewTrials(rate)
		if a, b := &one.state().chacha, &other.state().chacha; round%2 == 1 && !a.slow { // words at the thresholds of gaps, and small ones
			for i := a.at; i < len(a.buf)-4; i++ {
				u := uint64(math.Ldexp(math.Exp(-coins.lambda*float64(r.IntN(4)+r.IntN(2)*r.IntN(1000))), 63)) << 1
				if r.IntN(9) == 0 {
					u = r.Uint64() >> r.IntN(64)
				}
				u += uint64(r.IntN(4096) - 2048)
				a.buf[i], b.buf[i] = u, u
			}
		}
		var want []int32
		for row := int64(0); ; row++ {
			if row += coins.Gap(one, n-row); row >= n {
				break
			}
			want = append(want, int32(row))
		}
		got := coins.Heads([]int32{-1}, n, other)
		if !slices.Equal(got[1:], want) || got[0] != -1 || one.state().pos != other.state().pos || one.Uint64() != other.Uint64() {
			t.Fatalf("round %d, rate %v of %d coins: found %d heads, want %d", round, rate, n, len(got)-1, len(want))
		}
	}
}

func BenchmarkHeads(b *testing.B) {
	src := NewSeeded(1, "", 0)
	var dst []int32
	for _, rate := range []float64{1e-5, 1e-3, 0.1} {
		coins, n := NewTrials(rate), int64(65_536/rate)
		b.Run(fmt.Sprintf("rate=%v", rate), func(b *testing.B) {
			for b.Loop() {
				dst = coins.Heads(dst[:0], n, src)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*65_536), "ns/head")
		})
		b.Run(fmt.Sprintf("rate=%v/one by one", rate), func(b *testing.B) {
			for b.Loop() {
				dst = dst[:0]
				for row := int64(0); ; row++ {
					if row += coins.Gap(src, n-row); row >= n {
						break
					}
					dst = append(dst, int32(row))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*65_536), "ns/head")
		})
	}
}
