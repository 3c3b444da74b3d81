package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run whose declared rows exceed any memory is refused before anything is reserved or written; plan says what it needs and warns.
func TestRowsBeyondMemory(t *testing.T) {
	dir, clinic := t.TempDir(), filepath.Join("..", "examples", "clinic")
	text, err := os.ReadFile(filepath.Join(clinic, "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wide := strings.NewReplacer("rows: 4000 ", "rows: 2000000000 ", "max: 100", "max: 100, hats: 64", "max: 60", "max: 60, hats: 64", "max: 220", "max: 220, hats: 64")
	schema := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(schema, []byte(wide.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	book, out := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "run")
	spec := []string{"--data", filepath.Join(clinic, "patients.csv"), "--schema", schema, "--model", "logistic", "--method", "sgd", "--set", "method.steps=5",
		"--epsilon", "1", "--delta", "1e-15", "--adjacency", "add-or-remove"}
	fit := sotto(t, append([]string{"fit", "--ledger", book, "--out", out}, spec...)...)
	var says strings.Builder
	fit.Stderr = &says
	if err := fit.Run(); err == nil || fit.ProcessState.ExitCode() != 2 {
		t.Errorf("fit: %v", err)
	}
	if !strings.Contains(says.String(), "TB of memory for the 2000000000 rows that the schema declares") || !strings.Contains(says.String(), "sotto data pack") {
		t.Errorf("fit says %s", says.String())
	}
	for _, path := range []string{book, out} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there (%v)", path, err)
		}
	}
	plan, err := sotto(t, append([]string{"plan"}, spec...)...).Output()
	if err != nil || !strings.Contains(string(plan), "\nNeeds ") || !strings.Contains(string(plan), "and this machine gives") {
		t.Errorf("plan says %s (%v)", plan, err)
	}
}
