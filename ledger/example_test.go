package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// A dataset with a lifetime budget of ε = 1 admits one run of 0.6 and refuses the
// second.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	l, err := ledger.Open(ctx, filepath.Join(dir, "ledger.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	err = l.SetBudget(ctx, "clinic", "record", "", privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove})
	if err != nil {
		log.Fatal(err)
	}

	r := ledger.Reservation{
		Dataset: "clinic", Unit: "record", Adjacency: privacy.AddRemove,
		Run: "2026-11-20-first", Epsilon: 0.6, Delta: 1e-6,
	}
	token, err := l.Reserve(ctx, r) // durable: now the run may look at the records
	if err != nil {
		log.Fatal(err)
	}
	err = l.Settle(ctx, r.Run, token, ledger.Settlement{Outcome: ledger.Done, Epsilon: 0.58, Delta: 1e-6})
	if err != nil {
		log.Fatal(err)
	}

	r.Run = "2026-11-20-second"
	_, err = l.Reserve(ctx, r)
	fmt.Println("exhausted:", errors.Is(err, privacy.ErrExhausted))
	d, err := l.Dataset(ctx, "clinic")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("spent", d.Spent, "left", *d.Left)
	// Output:
	// exhausted: true
	// spent (ε 0.6, δ 0.000001) left (ε 0.4, δ 0.000009)
}
