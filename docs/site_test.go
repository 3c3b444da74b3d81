package docs

import (
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// inNavigation lists the pages of a navigation in order: those of docs/, and with ../ those of other directories.
func inNavigation(nav any) []string {
	var found []string
	switch nav := nav.(type) {
	case string:
		found = append(found, nav)
	case []any:
		for _, item := range nav {
			found = append(found, inNavigation(item)...)
		}
	case map[string]any:
		for _, item := range nav {
			found = append(found, inNavigation(item)...)
		}
	}
	return found
}

// TestNavigation: each page of docs/ is in the navigation of the site once, and nothing else is.
func TestNavigation(t *testing.T) {
	_, rest, ok1 := strings.Cut(read(t, "../site/mkdocs.yml"), "\nnav:\n")
	list, _, ok2 := strings.Cut(rest, "\n\n")
	var nav []any
	if err := yaml.Unmarshal([]byte(list), &nav); err != nil || !ok1 || !ok2 {
		t.Fatalf("site/mkdocs.yml: its block nav is not understood: %v", err)
	}
	var groups []string
	times := map[string]int{}
	var stars []string
	for _, item := range nav {
		for title := range item.(map[string]any) {
			groups = append(groups, title)
		}
	}
	for _, name := range inNavigation(nav) {
		if strings.Contains(name, "*") {
			stars = append(stars, name)
			continue
		}
		times[name]++
	}
	if want := []string{"Start", "Tutorials", "How-to", "Reference", "Explanation"}; !slices.Equal(groups, want) {
		t.Errorf("site/mkdocs.yml: the groups are %q, want %q", groups, want)
	}
	pages := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		pages++
		name = filepath.ToSlash(name)
		n := times[name]
		if n == 0 && slices.ContainsFunc(stars, func(star string) bool { ok, _ := path.Match(star, name); return ok }) {
			n = 1
		}
		switch {
		case n == 0:
			t.Errorf("docs/%s is not in the navigation: add the line \"- Title: %s\" to its group in site/mkdocs.yml, and a link in docs/README.md", name, name)
		case n > 1:
			t.Errorf("docs/%s is %d times in the navigation", name, n)
		}
		delete(times, name)
		return nil
	})
	if err != nil || pages < 100 {
		t.Fatalf("found %d pages: %v", pages, err)
	}
	for name, n := range times {
		file, outside := strings.CutPrefix(name, "../")
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); !outside || n > 1 || err != nil {
			t.Errorf("site/mkdocs.yml: %s is %d times in the navigation, and leads to no page of its own", name, n)
		}
	}
}

// TestMarkdown: what GitHub and the generator of the site would read differently is not in a page.
func TestMarkdown(t *testing.T) {
	var (
		item  = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
		one   = regexp.MustCompile(`^\s*([-*]|1\.) `)
		fence = regexp.MustCompile("^ {1,3}```")
	)
	for _, name := range pages(t) {
		code, before := false, ""
		for i, line := range strings.Split(read(t, name), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				if fence.MatchString(line) {
					t.Errorf("%s:%d: indent a block of code in a list by 4", name, i+1)
				}
				if code = !code; code && strings.TrimSpace(before) != "" && !strings.HasPrefix(before, "<!--") {
					t.Errorf("%s:%d: put an empty line before a block of code", name, i+1)
				}
			} else if text := strings.TrimSpace(before) != ""; !code && text {
				switch {
				case one.MatchString(line) && !item.MatchString(before) && !strings.HasPrefix(before, "  "):
					t.Errorf("%s:%d: put an empty line before a list", name, i+1)
				case strings.HasPrefix(line, "|") && !strings.HasPrefix(before, "|"):
					t.Errorf("%s:%d: put an empty line before a table", name, i+1)
				}
			}
			before = line
		}
	}
}

// TestExamplesOfPackages: every package that docs/how-to/extending.md lists for other programs says what it is for, and has
// an example that runs.
func TestExamplesOfPackages(t *testing.T) {
	without := map[string]string{"cli": "TestOutside builds a program with it", "postgres": "it is imported for its effect", "s3": "likewise"}
	listed := 0
	for _, row := range table(t, section(t, read(t, "how-to/extending.md"), "## Packages that you may import")) {
		for _, name := range strings.Split(row[0], ", ") {
			name = strings.Trim(name, "`")
			listed++
			files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name), "*.go"))
			if err != nil || len(files) == 0 {
				t.Errorf("there is no package %s: %v", name, err)
				continue
			}
			comment, example := false, without[name] != ""
			for _, file := range files {
				text := read(t, file)
				comment = comment || strings.Contains(text, "\n// Package "+path.Base(name)+" ") || strings.HasPrefix(text, "// Package "+path.Base(name)+" ")
				example = example || strings.HasSuffix(file, "_test.go") && strings.Contains(text, "\nfunc Example") && strings.Contains(text, "// Output:")
			}
			if !comment {
				t.Errorf("package %s has no comment that says what it is for", name)
			}
			if !example {
				t.Errorf("package %s has no example: add %s/example_test.go with a func Example and its // Output:", name, name)
			}
		}
	}
	if listed < 20 {
		t.Errorf("docs/how-to/extending.md lists only %d packages", listed)
	}
}

// luminance is the relative luminance of a color such as #00695c (WCAG 2.1).
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatalf("%s: %v", color, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// TestContrast: links, muted text and the header of the site have a contrast of 4.5 : 1 or more on the colors behind them, which
// are those of Material for MkDocs: of pages, of code on pages, and the header's own.
func TestContrast(t *testing.T) {
	css := read(t, "../site/theme/site.css")
	for _, of := range []struct{ rule, behind string }{
		{`[data-md-color-scheme="default"] { --md-typeset-a-color: `, "#ffffff"},
		{`[data-md-color-scheme="slate"] { --md-typeset-a-color: `, "#1e2129"},
		{`[data-md-color-scheme="default"] { --md-default-fg-color--light: `, "#f5f5f5"},
		{`[data-md-color-scheme="slate"] { --md-default-fg-color--light: `, "#272a35"},
		{`[data-md-color-primary="teal"] { --md-primary-fg-color: `, "#ffffff"},
	} {
		m := regexp.MustCompile(regexp.QuoteMeta(of.rule) + `(#[0-9a-f]{6}); \}`).FindStringSubmatch(css)
		if m == nil {
			t.Fatalf("site.css has no rule %s", of.rule)
		}
		a, b := luminance(t, m[1]), luminance(t, of.behind)
		if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
			t.Errorf("%s: a contrast of %.2f : 1, want 4.5 : 1 or more", of.rule, ratio)
		}
	}
}
