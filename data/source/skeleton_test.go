package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/schema"
)

func TestSkeleton(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "people.csv")
	os.WriteFile(path, []byte("\ufeffage;\"job; kind\";y\r\n39;SECRET123;no\n"), 0o600)
	b, err := source.Skeleton(path, "")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{`dataset: "people"`, `delimiter: ";"`, `name: "age"`, `name: "job; kind"`, `- {name: "y", type: } # numeric, categorical, ordinal, boolean, date, text, label, unit or ignore`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "SECRET") || strings.Contains(text, "39") {
		t.Errorf("values of a row in\n%s", text)
	}
	if _, err := schema.Parse("s", b); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a skeleton that was not filled in: %v", err)
	}

	wide := filepath.Join(dir, "people.csv.zst") // by its bytes UTF-16, not zstd
	os.WriteFile(wide, []byte("\xff\xfea\x00;\x00\xe9\x00\n\x00"), 0o600)
	if b, err := source.Skeleton(wide, ""); err != nil || !strings.Contains(string(b), `dataset: "people"`) || !strings.Contains(string(b), `name: "é"`) {
		t.Errorf("UTF-16: %v\n%s", err, b)
	}

	// Filled in, it is a schema.
	filled := strings.Replace(text, "rows: #", "rows: 10 #", 1)
	for _, fill := range []string{"numeric, min: 0, max: 9}", "categorical, levels: [a]}", "label, classes: [no, yes]}"} {
		filled = strings.Replace(filled, "type: }", "type: "+fill, 1)
	}
	if s := parse(t, filled); s.Dim() != 3 {
		t.Errorf("dim %d", s.Dim())
	}

	for name, content := range map[string]string{
		"empty": "", "row": "39,SECRET123\n", "svm": "-1 3:1 7:1\n", "json": "{\"a\": \"SECRET123\", \"b\": 1}\n", "json behind spaces": " \t{\"a\": \"SECRET123\", \"b\": 1}\n", "binary": "a,\x00b\n", "blank": "\na,b\n", "gz": "\x1f\x8b",
	} {
		p := filepath.Join(dir, name)
		os.WriteFile(p, []byte(content), 0o600)
		_, err := source.Skeleton(p, "")
		var e *config.Error
		if !errors.As(err, &e) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
