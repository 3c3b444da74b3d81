package web

import (
	"html"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/ledger"
)

// A name stays one segment of an address and text everywhere else, whatever is in it.
func TestHostileNames(t *testing.T) {
	pages, err := parsePages()
	if err != nil {
		t.Fatal(err)
	}
	name := rapid.OneOf(rapid.StringMatching(`.+`), rapid.SampledFrom([]string{"a/b?c=d#e", `"><script>alert('x')</script>`, "javascript:x", "../..", "//x", "a+b&amp; %41", "é ε"}))
	rapid.Check(t, func(t *rapid.T) {
		evil := name.Draw(t, "name")
		var out strings.Builder
		if err := pages["datasets"].ExecuteTemplate(&out, "layout", frame{content: &content{Title: evil, Body: datasetsBody{Datasets: []budgeted{{Dataset: ledger.Dataset{Name: evil}}}}}, Version: evil}); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(out.String(), `<a href="/datasets/`)
		address, rest, _ := strings.Cut(rest, `">`)
		segment := html.UnescapeString(address)
		if back, err := url.PathUnescape(segment); err != nil || back != evil || strings.ContainsAny(segment, `/?#"<> `) {
			t.Fatalf("%q became the address %q", evil, address)
		}
		if text, _, _ := strings.Cut(rest, "</a>"); strings.ContainsAny(text, `<>"'`) || html.UnescapeString(text) != strings.ReplaceAll(evil, "\x00", "\uFFFD") {
			t.Fatalf("%q became the text %q", evil, text)
		}
		if strings.Count(out.String(), "<script") > 0 {
			t.Fatalf("%q became a script", evil)
		}
	})
}

// html/template knows a segment of an address from the whole of it by the text before it alone: a page fills in a key,
// which is hexadecimal, or says that it is a segment.
func TestSegments(t *testing.T) {
	filled := regexp.MustCompile(`(?:href|src|action)="([^"{]*)\{\{([^}]*)\}\}`)
	n := 0
	err := fs.WalkDir(assets, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".html") {
			return err
		}
		text, err := fs.ReadFile(assets, path)
		for _, m := range filled.FindAllStringSubmatch(string(text), -1) {
			n++
			before, what := m[1], m[2]
			if whole := before == ""; whole != (what == ".") || !whole && !strings.HasSuffix(what, ".Key") && !strings.HasPrefix(what, "segment ") {
				t.Errorf("web/%s: %s; write {{segment …}} for a part of an address, {{.}} for all of one that Go made, as {{with .Link}}<a href=\"{{.}}\">", path, m[0])
			}
		}
		return err
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
}
