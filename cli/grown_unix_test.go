//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// TestGrownLedger: commands in a ledger of many runs read its checkpoint and a few entries. With -long it has 100,000 runs, and fit, list
// and show keep the bars of step 26: below half a second of processor time and 60 MB.
func TestGrownLedger(t *testing.T) {
	race.Skip(t)
	runs := 150
	if *long {
		runs = 100_000
	}
	book := filepath.Join(t.TempDir(), "ledger.db")
	l, err := ledger.Disk{FS: vfs.OS{}, Every: 100}.Open(t.Context(), book)
	if err != nil {
		t.Fatal(err)
	}
	budget := privacy.Budget{Epsilon: 10, Delta: 1e-3, Adjacency: privacy.AddRemove}
	if err := l.SetBudget(t.Context(), "clinic", "record", "", budget); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range runs {
		r := ledger.Reservation{Dataset: "clinic", Unit: "record", Adjacency: privacy.AddRemove, Run: fmt.Sprint("run-", i), Epsilon: 1e-6, Delta: 1e-12, Why: "fit"}
		token, err := l.Reserve(t.Context(), r)
		if err == nil {
			err = l.Settle(t.Context(), r.Run, token, ledger.Settlement{Outcome: ledger.Done, Epsilon: 1e-6, Delta: 1e-12})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs reserved and settled in %v", runs, time.Since(began).Round(time.Second))
	fit := []string{"fit", filepath.Join("..", "examples", "clinic", "sotto.yaml"), "--json", "--ledger", book, "--set", "method.name=sgd", "--set", "method.steps=20"}
	for _, c := range []struct {
		args []string
		says string
	}{
		{append(fit, "--out", filepath.Join(t.TempDir(), "first")), fmt.Sprintf(`"runs":%d,"total"`, runs+1)},
		{append(fit, "--out", filepath.Join(t.TempDir(), "second")), fmt.Sprintf(`"runs":%d,"total"`, runs+2)},
		{[]string{"ledger", "list", "--json", "--ledger", book}, fmt.Sprintf(`"runs": %d`, runs+2)},
		{[]string{"ledger", "show", "clinic", "--limit", "10", "--ledger", book}, "earlier entries are not shown; --page 2"},
		{[]string{"ledger", "show", "clinic", "--limit", "10", "--page", "3", "--ledger", book}, fmt.Sprintf("run-%d ", runs-10)},
	} {
		cmd := sotto(t, c.args...)
		own := measured(t, cmd)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", c.args, err)
		}
		if !strings.Contains(string(out), c.says) {
			t.Errorf("%v: %q is not in %.3000s", c.args, c.says, out)
		}
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		t.Logf("%s %s: %v of processor time, %d MB", c.args[0], c.args[1], used, own()/1e6)
		if *long && (used > 500*time.Millisecond || own() > 60_000_000) {
			t.Errorf("%v: %v of processor time and %d MB; the bars are 0.5 s and 60 MB", c.args, used, own()/1e6)
		}
	}
	// All entries, for programs: as many as before there were pages.
	out, err := sotto(t, "ledger", "show", "clinic", "--json", "--ledger", book).Output()
	var all struct{ Entries []ledger.Entry }
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if want := 2 + 2*runs + 4; err != nil || len(all.Entries) != want {
		t.Errorf("show --json has %d entries, want %d (%v)", len(all.Entries), want, err)
	}
}
