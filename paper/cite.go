package paper

import (
	"cmp"
	"fmt"
	"strings"
)

// Repository is where the sources of Sotto are.
const Repository = "https://github.com/sottodp/sotto"

// A Publication says how a paper is cited. Fields that its publication does not have are empty.
type Publication struct {
	Key     string   // of BibTeX
	Authors []string // given name first
	Title   string
	Journal string
	Meeting string // whose proceedings have it
	Volume  string
	Number  string
	Pages   string // or the number of the article
	Year    int
	DOI     string
	ArXiv   string
	Review  string // its number at OpenReview
}

// A Link is an address with its text.
type Link struct{ Text, URL string }

// Names are the authors as a sentence has them.
func (p Publication) Names() string {
	last := len(p.Authors) - 1
	if last < 1 {
		return strings.Join(p.Authors, "")
	}
	return strings.Join(p.Authors[:last], ", ") + " and " + p.Authors[last]
}

// Venue is where and when the paper was published.
func (p Publication) Venue() string {
	venue := cmp.Or(p.Journal, p.Meeting, "preprint")
	if p.Volume != "" {
		venue += " " + p.Volume
	}
	if p.Number != "" {
		venue += " (" + p.Number + ")"
	}
	if p.Pages != "" {
		venue += ", " + strings.ReplaceAll(p.Pages, "--", "–")
	}
	return fmt.Sprintf("%s, %d", venue, p.Year)
}

// Links are the identifiers, each with its address.
func (p Publication) Links() (list []Link) {
	for _, l := range []struct{ text, at, id string }{
		{"doi:", "https://doi.org/", p.DOI}, {"arXiv:", "https://arxiv.org/abs/", p.ArXiv},
		{"OpenReview ", "https://openreview.net/forum?id=", p.Review},
	} {
		if l.id != "" {
			list = append(list, Link{l.text + l.id, l.at + l.id})
		}
	}
	return list
}

// identifier is the first of the identifiers; the key where there is none.
func (p Publication) identifier() string {
	if links := p.Links(); len(links) > 0 {
		return links[0].Text
	}
	return p.Key
}

// BibTeX is the entry of the paper.
func (p Publication) BibTeX() string {
	kind, url := "misc", ""
	switch {
	case p.Journal != "":
		kind = "article"
	case p.Meeting != "":
		kind = "inproceedings"
	}
	if links := p.Links(); p.DOI == "" && p.ArXiv == "" && len(links) > 0 {
		url = links[0].URL
	}
	archive := ""
	if p.ArXiv != "" {
		archive = "arXiv"
	}
	return entry(kind, p.Key, []field{{"author", authors(p.Authors)}, {"title", "{" + p.Title + "}"},
		{"journal", p.Journal},
		{"booktitle", p.Meeting}, {"volume", p.Volume}, {"number", p.Number}, {"pages", p.Pages},
		{"year", fmt.Sprint(p.Year)}, {"doi", p.DOI}, {"eprint", p.ArXiv}, {"archiveprefix", archive}, {"url", url}})
}

// ReproductionBibTeX is the entry of a reproduction.
func (r *Record) ReproductionBibTeX(p Publication) string {
	version := r.Build.Version
	if r.Build.Commit != "" {
		version += ", commit " + r.Build.Commit
	}
	size := map[bool]string{true: "full", false: "small"}[r.Full]
	return entry("misc", "sotto-"+r.Paper, []field{{"author", "{The authors of Sotto}"},
		{"title", fmt.Sprintf("{%s}, reproduced with {Sotto}", p.Title)},
		{"year", fmt.Sprint(r.Pieces[len(r.Pieces)-1].Start.Year())}, {"version", version}, {"url", Repository},
		{"note", fmt.Sprintf("sotto paper %s --%s reproduces %s", r.Paper, size, p.identifier())}})
}

type field struct{ name, value string }

// entry is an entry of BibTeX, without the fields that have no value.
func entry(kind, key string, fields []field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "@%s{%s,\n", kind, key)
	for _, f := range fields {
		if f.value != "" {
			fmt.Fprintf(&b, "  %s = {%s},\n", f.name, f.value)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// authors are names as BibTeX takes them; letters that are not of ASCII are written in TeX.
func authors(names []string) string {
	tex := strings.NewReplacer("ü", `{\"u}`, "ı", `{\i}`, "Ş", `{\c S}`, "İ", `{\.I}`)
	return tex.Replace(strings.Join(names, " and "))
}
