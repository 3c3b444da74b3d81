package ledger

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// TestB5Uncertain: a reservation that fails when all of it is written says that it may stand; one that is refused does not.
func TestB5Uncertain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetBudget(t.Context(), "d", "record", "", privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	r := Reservation{Dataset: "d", Unit: "record", Adjacency: privacy.AddRemove, Run: "r", Epsilon: 2, Delta: 1e-6}
	if _, err := l.Reserve(t.Context(), r); !errors.Is(err, privacy.ErrExhausted) || errors.Is(err, ErrUncertain) {
		t.Errorf("refused: %v", err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER fault BEFORE UPDATE ON sotto_ledger WHEN NEW.head_seq <> OLD.head_seq BEGIN SELECT RAISE(ABORT, 'fault'); END`); err != nil {
		t.Fatal(err)
	}
	r.Epsilon = 0.5
	if _, err := l.Reserve(t.Context(), r); !errors.Is(err, ErrUncertain) {
		t.Errorf("at the end of the transaction: %v", err)
	}
	if _, err := db.Exec(`DROP TRIGGER fault`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(t.Context(), r); err != nil {
		t.Error(err)
	}
}
