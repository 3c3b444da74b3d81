package netplan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two owners of one name would get one owner's credentials.
func TestOwnersHaveNames(t *testing.T) {
	schema, err := filepath.Abs("../../examples/clinic/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec := filepath.Join(t.TempDir(), "sotto.yaml")
	for files, allowed := range map[string]bool{"north/rows.csv, south/rows.csv": false, "north/rows.csv, rows.pack": false, "north.csv, north.csv": false, "a/north.csv, north.csv": false, "north.csv, south.csv": true} {
		text := "schema: " + schema + "\nmodel: {name: logistic, l2: 0.0005}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\nnetwork: {files: [" + files + "], rows: 1300, schedule: all, rounds: 2}\n"
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(spec, Options{}); (err == nil) != allowed || !allowed && !strings.Contains(err.Error(), "network.files: found two of the name") {
			t.Errorf("%s: %v", files, err)
		}
	}
}
