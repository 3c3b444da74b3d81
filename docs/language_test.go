package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	// plainer are words that the pages do without; language.md has the terms to use.
	plainer = regexp.MustCompile(`(?i)whoever|in the place of|\bdoor\b|at length|anew`)
	british = regexp.MustCompile(`(?i)\b\w*(neighbour|behaviour|colour|favour|regularis|minimis|maximis|normalis|optimise|` +
		`organis|randomis|realise|realisa|recognis|discretis|initialis|generalis|summaris|centre|judgement|artefact)\w*`)
	// verbatim is code, a quotation, the target of a link or a tag.
	verbatim = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|\\]\\([^)\\s]*\\)|<[^>]*>")
)

// A paragraph is prose between blank lines, blocks of code, and rows of tables; a row is one too.
type paragraph struct {
	line  int // of its first line
	lines []string
}

// proseOf splits a page into paragraphs, without its blocks of code.
func proseOf(page string) []paragraph {
	var found []paragraph
	code, open := false, false
	for i, line := range strings.Split(page, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		row := strings.HasPrefix(line, "|")
		switch {
		case fence:
			code, open = !code, false
		case code:
		case strings.TrimSpace(line) == "":
			open = false
		case open && !row:
			last := &found[len(found)-1]
			last.lines = append(last.lines, line)
		default:
			found = append(found, paragraph{i + 1, []string{line}})
			open = !row
		}
	}
	return found
}

// faults lists what is wrong with the language of a page.
func faults(page string) map[int][]string {
	found := map[int][]string{}
	for _, p := range proseOf(page) {
		for i, line := range p.lines {
			if n := utf8.RuneCountInString(line); n > 160 && !strings.HasPrefix(line, "|") {
				found[p.line+i] = append(found[p.line+i], "a line of prose above 160 characters; wrap it at about 100")
			}
		}
		text := verbatim.ReplaceAllString(strings.Join(strings.Fields(strings.Join(p.lines, " ")), " "), "")
		for _, word := range plainer.FindAllString(text, -1) {
			found[p.line] = append(found[p.line], "a plainer word than "+word)
		}
		for _, word := range british.FindAllString(text, -1) {
			found[p.line] = append(found[p.line], "American spelling of "+word)
		}
	}
	return found
}

// TestLanguage checks line lengths, words and spelling of every page but the proofs,
// which cite, and the CHANGELOG, whose past stays as it was.
func TestLanguage(t *testing.T) {
	for _, name := range pages(t) {
		if slices.Contains([]string{"CHANGELOG.md", "PROOFS.md"}, filepath.Base(name)) {
			continue
		}
		for line, list := range faults(read(t, name)) {
			t.Errorf("%s:%d: %s", name, line, strings.Join(list, ", "))
		}
	}
}

// The words of pictures follow the same rules.
func TestLanguageOfPictures(t *testing.T) {
	names, err := filepath.Glob("images/*.svg")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	tag := regexp.MustCompile(`<style>(?s:.*?)</style>|<[^>]*>`)
	for _, name := range names {
		text := tag.ReplaceAllString(read(t, name), " ")
		for _, word := range slices.Concat(plainer.FindAllString(text, -1), british.FindAllString(text, -1)) {
			t.Errorf("%s: found %q", name, word)
		}
	}
}

// TestFaults checks that the words are found across lines, and nowhere else.
func TestFaults(t *testing.T) {
	for page, want := range map[string]int{
		"one in the\nplace of another":                        1,
		"Whoever comes by the door comes anew.":               1,
		"| a table | of the neighbour |\n| and | at length |": 2,
		"```\nwhoever\n```\n\n`organiser.json` and \"anew\"":  0,
		strings.Repeat("word ", 33):                           1,
		"| " + strings.Repeat("cell ", 40) + "|":              0,
		"an optimistic neighbor of the indoor organizer":      0,
	} {
		if got := faults(page); len(got) != want {
			t.Errorf("%q: found %v, want faults in %d places", page, got, want)
		}
	}
}
