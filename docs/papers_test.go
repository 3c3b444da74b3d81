package docs

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/paper"
)

var update = flag.Bool("update", false, "write measurements/papers.md again")

// TestPapers: measurements/papers.md is what the records of the full runs in measurements/papers give; without records there is
// no page.
func TestPapers(t *testing.T) {
	files, err := filepath.Glob("measurements/papers/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var records []*paper.Record
	for _, f := range files {
		r := &paper.Record{}
		if err := json.Unmarshal([]byte(read(t, f)), r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if !r.Full || filepath.Base(f) != r.Paper+".json" {
			t.Errorf("%s: found a record of %s, full %v", f, r.Paper, r.Full)
		}
		records = append(records, r)
	}
	const page = "measurements/papers.md"
	if *update {
		if err := os.WriteFile(page, []byte(paper.Summary(records)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if len(records) == 0 && os.IsNotExist(err) {
		return
	}
	if err != nil || string(text) != paper.Summary(records) {
		t.Errorf("%s is not what the records give (%v): go test ./docs -run Papers -update", page, err)
	}
}
