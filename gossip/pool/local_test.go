package pool

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestLocal(t *testing.T) {
	const owners, turns = 4, 50
	local := NewLocal(owners)
	failed := errors.New("no more rows")
	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			p := local.Owner()
			for turn := range turns {
				if _, err := p.Meet(t.Context()); err != nil {
					t.Error(err)
				}
				sum, err := p.Sum(t.Context(), [32]byte{byte(turn)}, 2, func() ([]int64, error) { return []int64{int64(i), int64(turn)}, nil })
				if want := []int64{0 + 1 + 2 + 3, owners * int64(turn)}; err != nil || !slices.Equal(sum, want) {
					t.Errorf("owner %d, turn %d: %v %v; want %v", i, turn, sum, err, want)
				}
			}
			_, err := p.Sum(t.Context(), [32]byte{}, 1, func() ([]int64, error) {
				if i == 2 {
					return nil, failed
				}
				return []int64{1}, nil
			})
			if !errors.Is(err, failed) { // one owner's end is that of all
				t.Errorf("owner %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestLocalOfOtherSums(t *testing.T) {
	local := NewLocal(2)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			if _, err := local.Owner().Sum(t.Context(), [32]byte{byte(i)}, 1, func() ([]int64, error) { return []int64{1}, nil }); err == nil {
				t.Errorf("owner %d got the sum of other questions", i)
			}
		})
	}
	all.Wait()
}
