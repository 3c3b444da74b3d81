package chart

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"
)

// Panels are the plots of a figure. Those with the same label of an axis share its range, a name has one style in all
// of them, and there is one legend.
type Panels struct {
	Plots   []Plot // without legends
	Columns int    // with which no plot stands alone in a row

	entries []entry
	classes map[string]string
}

// NewPanels arranges plots.
func NewPanels(plots []Plot) *Panels {
	f := &Panels{Plots: slices.Clone(plots), Columns: columnsOf(len(plots)), classes: map[string]string{}}
	used := map[string]bool{}
	for _, known := range []bool{true, false} { // a method takes its own style before others take what is left
		for _, p := range plots {
			for _, l := range p.Lines {
				class, found := methods[strings.TrimPrefix(strings.ToLower(l.Name), "dp-")]
				if l.Name == "" || f.classes[l.Name] != "" || known && (!found || used[class]) {
					continue
				}
				for i := 0; !known && (class == "" || used[class]) && i < 2*len(styles); i++ {
					class = fmt.Sprintf("l%d", i%len(styles))
				}
				f.classes[l.Name], used[class] = class, true
			}
		}
	}
	for i := range f.Plots {
		f.Plots[i].of = f
		for _, e := range f.Plots[i].named() {
			if !slices.Contains(f.entries, e) {
				f.entries = append(f.entries, e)
			}
		}
	}
	return f
}

// columnsOf is a number of columns with which none of n plots stands alone in a row.
func columnsOf(n int) int {
	switch {
	case n == 1:
		return 1
	case n%3 == 0:
		return 3
	case n%2 == 0:
		return 2
	case n%3 == 2:
		return 3
	}
	return 4
}

// Legend is the legend for a page.
func (f *Panels) Legend() template.HTML {
	var b strings.Builder
	b.WriteString(`<ul class="legend">`)
	for _, e := range f.entries {
		sample := fmt.Sprintf(`<path d="M1 7h32" class="%s"/>`, e.class)
		if e.class == "mark" {
			sample = `<circle cx="17" cy="7" r="5" class="mark"/>`
		}
		fmt.Fprintf(&b, `<li><svg viewBox="0 0 34 14" width="34" height="14" aria-hidden="true">%s</svg> %s</li>`, sample,
			html.EscapeString(e.name))
	}
	b.WriteString(`</ul>`)
	return template.HTML(b.String())
}

// Figure draws plots under one legend, each under its title, as a complete SVG file: up to four one below the other, so
// that they can be read on a phone, and more in rows. The note follows the title of the figure. A browser shows it no
// wider than its window.
func Figure(title, note string, plots ...Plot) string {
	const head, line, letter, gap = 30, 20, 7.6, 16 // height of a plot's title and of a line of text; width of a letter
	f := NewPanels(plots)
	columns := f.Columns
	if len(plots) <= 4 {
		columns = 1
	}
	width := columns*(plotW+gap) + gap
	var b strings.Builder
	y := 24
	text := func(x float64, class, s string) {
		for _, l := range wrap(s, int((float64(width)-2*gap)/letter)) {
			fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%d\"%s>%s</text>\n", x, y, class, html.EscapeString(l))
			y += line
		}
	}
	text(gap, ` class="head"`, title)
	text(gap, "", note)
	longest := 0
	for _, e := range f.entries {
		longest = max(longest, utf8.RuneCountInString(e.name))
	}
	each := 34 + letter*float64(longest) + 2*gap
	across := max(1, int(float64(width-gap)/each))
	for i, e := range f.entries {
		b.WriteString(e.draw(gap+each*float64(i%across), float64(y+i/across*legendH)) + "\n")
	}
	y += (len(f.entries)+across-1)/across*legendH + line/2
	for row := range slices.Chunk(f.Plots, columns) {
		for i, p := range row {
			x := gap + i*(plotW+gap)
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, y+15, html.EscapeString(p.Title))
			b.WriteString(p.draw(fmt.Sprintf(` x="%d" y="%d" width="%d" height="%d"`, x, y+head, plotW, plotH)) + "\n")
		}
		y += head + plotH
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n"+
		"<style>:root{max-width:100%%;height:auto}@media(max-device-width:600px){:root{width:100%%}}%s.head{font-weight:600}.page{fill:#fff}%s@media screen and (prefers-color-scheme:dark){.page{fill:#14171c}}</style>\n"+
		"<rect width=\"100%%\" height=\"100%%\" class=\"page\"/>\n", width, y, width, y, html.EscapeString(title), Style,
		Dark) + b.String() + "</svg>\n"
}

// wrap breaks a text into lines of at most n letters, where it can.
func wrap(s string, n int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > n {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
