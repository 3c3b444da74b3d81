package transport

import (
	"context"
	"slices"
	"testing"
)

// The hub's sums are those of the parts; an owner that asks for an end gets one, and the next attempt begins.
func TestAdder(t *testing.T) {
	_, all := owners(t, 3)
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	store := &Memory{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Adder{store, n, config}).Run(ctx) }()
	defer func() { stop(); <-ended }()
	outcome := func(attempt, sum int) Outcome {
		_, b, err := store.Await(ctx, OutcomeKey(attempt, sum))
		if err != nil {
			t.Fatal(err)
		}
		o, err := ReadOutcome(ctx, store, n, config, attempt, sum, b)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for attempt := range 2 {
		for i, c := range all {
			key := PresenceKey(i, attempt)
			if _, err := store.Put(ctx, key, c.Sign(config, key, make([]byte, 32))); err != nil {
				t.Fatal(err)
			}
		}
		for sum, length := range []int{0, 5, sumFloats, 2*sumFloats + 1} {
			want := make([]int64, length)
			for i, c := range all {
				v := make([]int64, length)
				for k := range v {
					v[k] = int64(k*i) - 1<<62
				}
				AddNumbers(want, Numbers(v))
				if ok, err := PutPart(ctx, store, c, config, attempt, sum, [32]byte{9}, Numbers(v)); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			if o := outcome(attempt, sum); o.Lacks != -1 || len(o.Claims) != 3 || !slices.Equal(o.Total, Numbers(want)) {
				t.Errorf("attempt %d, sum %d: another total of %d numbers", attempt, sum, length)
			}
		}
		if _, err := PutPart(ctx, store, all[0], config, attempt, 4, [32]byte{}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Put(ctx, StopKey(2, attempt, 4), []byte{1}); err != nil {
			t.Fatal(err)
		}
		if o := outcome(attempt, 4); o.Lacks != 1 {
			t.Errorf("attempt %d is given up for owner %d; want 2", attempt, o.Lacks+1)
		}
	}
}
