package transport

import (
	"errors"
	"slices"
	"testing"
)

// The seed is that of all shares, each as it was committed to.
func TestDrawnSeed(t *testing.T) {
	o, _ := owners(t, 3)
	n := &o.Network
	var commitments, shares [][]byte
	for i := range n.Owners {
		s, err := NewShare()
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again Share
		if err := again.UnmarshalText(text); err != nil || again != s {
			t.Fatalf("read back %v, %v", again, err)
		}
		commitments, shares = append(commitments, s.Commitment(n, i)), append(shares, s[:])
	}
	seed, err := DrawnSeed(n, commitments, shares)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := DrawnSeed(n, commitments, shares); err != nil || again != seed {
		t.Errorf("%d, then %d, %v", seed, again, err)
	}
	other, err := NewShare()
	if err != nil {
		t.Fatal(err)
	}
	for i := range shares {
		changed := slices.Clone(shares)
		changed[i] = other[:]
		if _, err := DrawnSeed(n, commitments, changed); !errors.Is(err, ErrForged) {
			t.Errorf("another share of owner %d: %v", i+1, err)
		}
		committed := slices.Clone(commitments)
		committed[i] = other.Commitment(n, i)
		if v, err := DrawnSeed(n, committed, changed); err != nil || v == seed {
			t.Errorf("owner %d does not count: %d, %v", i+1, v, err)
		}
		changed[i] = shares[i][:31]
		if _, err := DrawnSeed(n, commitments, changed); !errors.Is(err, ErrForged) {
			t.Errorf("a short share of owner %d: %v", i+1, err)
		}
	}
	// What one committed to is not another's, and of this network alone.
	swapped := [][]byte{commitments[1], commitments[0], commitments[2]}
	if _, err := DrawnSeed(n, swapped, [][]byte{shares[1], shares[0], shares[2]}); !errors.Is(err, ErrForged) {
		t.Errorf("another's commitment: %v", err)
	}
	elsewhere, _ := owners(t, 3)
	if _, err := DrawnSeed(&elsewhere.Network, commitments, shares); !errors.Is(err, ErrForged) {
		t.Errorf("another network's: %v", err)
	}
	for _, text := range []string{"", "00", string(make([]byte, 64))} {
		if err := new(Share).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a share", text)
		}
	}
}
