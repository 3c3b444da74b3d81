package docs

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/paper"
)

var update = flag.Bool("update", false, "write again what the tests here make of runs and of the code")

// TestPapers: but for its notes, measurements/papers.md is what the records of the full runs in measurements/papers give.
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
	before := read(t, page)
	_, notes, _ := strings.Cut(before, "\n## Notes\n")
	notes, _, _ = strings.Cut(notes, "\n## Claims that fail\n")
	want := paper.Summary(records, notes)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if before != want {
		t.Errorf("%s is not what the records give: go test ./docs -run Papers -update", page)
	}
}
