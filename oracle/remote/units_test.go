package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

func idsOf(from, to int) (ids [][idSize]byte) {
	for i := from; i < to; i++ {
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		ids = append(ids, [idSize]byte(sum[:]))
	}
	slices.SortFunc(ids, func(a, b [idSize]byte) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// The pages of a shard have sizes that follow from public numbers, and hold all of its units.
func TestPagesOfUnits(t *testing.T) {
	most := unitsOf(40_000, 3)
	var sizes [][]int
	for _, n := range []int{0, 1, pageUnits - 1, pageUnits, most, most + 1} {
		ids := idsOf(0, n)
		var size []int
		var back []byte
		for page := range pagesOf(most) {
			b, err := appendPage(nil, ids, most, page)
			if err != nil {
				t.Fatal(err)
			}
			size = append(size, len(b))
			switch k := binary.LittleEndian.Uint32(b); {
			case (k == tooMany) != (n > most):
				t.Errorf("%d units of %d: a page of %d", n, most, k)
			case k != tooMany:
				back = append(back, b[4:][:k*idSize]...)
			}
		}
		if got, _, _ := joined([][]byte{back}); n <= most && !slices.Equal(got, ids) {
			t.Errorf("%d units: %d come back", n, len(got))
		}
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		if !slices.Equal(size, sizes[0]) {
			t.Errorf("pages of %v bytes, and of %v: they tell of units", size, sizes[0])
		}
	}
	for _, page := range []int{-1, pagesOf(most)} {
		if _, err := appendPage(nil, nil, most, page); err == nil {
			t.Errorf("page %d is none", page)
		}
	}
	for _, c := range [][3]int{{100, 1, 264}, {100, 64, 264}, {1_000_000, 1, 2_000_064}, {1_000_000, 8, 1_000_000}, {1_000_000, 64, 125_000}, {0, 2, 64}} {
		if n := unitsOf(c[0], c[1]); n != c[2] {
			t.Errorf("%d units, %d shards: %d at most, want %d", c[0], c[1], n, c[2])
		}
	}
}

// The first two shards that share a unit are found, wherever it is.
func TestJoined(t *testing.T) {
	rnd := rand.New(rand.NewPCG(63, 4))
	for range 200 {
		shards := make([][]byte, 2+rnd.IntN(5))
		where := map[int]int{}
		first, second := 0, 0
		for i := range shards {
			var mine []int
			for range rnd.IntN(8) {
				if u := rnd.IntN(300); !slices.Contains(mine, u) {
					mine = append(mine, u)
				}
			}
			for _, u := range mine {
				if j, ok := where[u]; ok && (second == 0 || i == second && j < first) {
					first, second = j, i
				}
			}
			for _, u := range mine {
				where[u] = i
				id := idsOf(u, u+1)[0]
				shards[i] = append(shards[i], id[:]...)
			}
		}
		if _, a, b := joined(shards); a != first || b != second {
			t.Fatalf("found shards %d and %d, want %d and %d", a, b, first, second)
		}
	}
}
