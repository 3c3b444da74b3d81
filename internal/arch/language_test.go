package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// plainer are words that this code does without: metaphors where the field has a term, and phrases that are no
	// plain English. docs/language_test.go checks the pages.
	plainer = []string{"whoever", "in the place of", "door", "at length", "anew", "purchase", "nobody's", "for want of", "by way of",
		"made-up", "in vain", "is there alone"}
	british = []string{"neighbour", "behaviour", "colour", "favour", "regularis", "minimis", "maximis", "normalis", "optimise",
		"organis", "randomis", "realise", "realisa", "recognis", "discretis", "initialis", "generalis", "summaris", "centre",
		"judgement", "artefact", "labelled", "modelled", "cancelled"}
	// stays are words that users have in their files, and quotations.
	stays = regexp.MustCompile(strings.Join([]string{
		`organiser\.json`, `sotto-organiser/\d`, // file and format of a founded network
		`pld-discretisation`, `Neighbours and sensitivity`, // theorems, named in runs and PROOFS.md
		`"The minimiser is computed in floating point`, `neighbours (%s|replace-one|add-or-remove)`, // in run.json; in ONNX files
		`"regularis(er|ed)"`, `optimised-under-sampling-`, `ℓ[12]-regularised SVM`, `table,regulariser,`, // figures and tables of papers
		`"?unlabelled"`, `modelled:1`, `"modelled"`, // flag of data pack; a spec
		`aria-labelledby`,              // HTML
		`\bcolour\b`, `neighbour\.csv`, // a column and a file of tests
	}, "|"))
	// allows is an error that says what is allowed; it says what to do: write, choose, use, leave it out.
	allows = regexp.MustCompile("[\"`'].*(; allowed|\\ballowed (is|are)\\b)")
)

// TestLanguage checks words and spelling of Go, YAML, shell and Python files, outside of testdata, and errors of product code.
func TestLanguage(t *testing.T) {
	own := []string{"internal/arch/language_test.go", "docs/language_test.go"} // list the words
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel("../..", path)
		if d.IsDir() {
			if slices.Contains([]string{".git", ".venv", "testdata", "node_modules"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".yaml", ".yml", ".sh", ".py"}, filepath.Ext(name)) || slices.Contains(own, name) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		errs := !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "python/tests/")
		for i, line := range strings.Split(string(text), "\n") {
			if errs && allows.MatchString(line) {
				t.Errorf("%s:%d: write what to do instead of what is allowed", name, i+1)
			}
		}
		if in := strings.ToLower(string(text)); !slices.ContainsFunc(slices.Concat(plainer, british), func(w string) bool { return strings.Contains(in, w) }) {
			return nil
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.ToLower(stays.ReplaceAllString(line, ""))
			for _, w := range plainer {
				if strings.Contains(line, w) {
					t.Errorf("%s:%d: write a plainer word than %q", name, i+1, w)
				}
			}
			for _, w := range british {
				if strings.Contains(line, w) {
					t.Errorf("%s:%d: write the American spelling of %q", name, i+1, w)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
