package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// A view reads what a ledger holds while that is open elsewhere, and changes nothing.
func TestView(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	where := filepath.Join(dir, "ledger.db")
	if _, err := View(ctx, where); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a ledger that is not there: %v", err)
	}
	l, err := Open(ctx, where)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}
	if err := l.SetBudget(ctx, "clinic", "record", "", b); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	v, err := View(ctx, where)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if d, err := v.Dataset(ctx, "clinic"); err != nil || d.Budget == nil || d.Budget.Epsilon != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if n, err := v.Verify(ctx); err != nil || n != 2 {
		t.Errorf("verify: %d, %v", n, err)
	}
	if err := v.SetBudget(ctx, "clinic", "record", "", privacy.Budget{Epsilon: 2, Delta: 1e-5, Adjacency: privacy.AddRemove}); err == nil {
		t.Error("a view has set a budget")
	}
	after, err := os.ReadFile(where)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file has changed (%v)", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v beside the ledger (%v)", names, err)
	}
	// What is written while the view is open is seen.
	if err := l.SetBudget(ctx, "clinic", "record", "", privacy.Budget{Epsilon: 3, Delta: 1e-5, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	if d, err := v.Dataset(ctx, "clinic"); err != nil || d.Budget.Epsilon != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := View(ctx, empty); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty file: %v", err)
	}
	if info, err := os.Stat(empty); err != nil || info.Size() != 0 {
		t.Errorf("an empty file has become %v, %v", info, err)
	}
}
