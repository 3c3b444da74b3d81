package chart

import (
	"fmt"
	"strings"
)

// styles are those of lines: color, color on a dark page, width and dashes. The names are the methods that have the
// style in every figure, in lower case and without DP-. Methods that meet in a figure of a paper have different ones.
var styles = []struct{ color, dark, width, dash, names string }{
	{"#0a58ca", "#79b0ff", "2.5", "", "blsgd|gc|algorithm 1, ι = 0.1|2opt-ls|nag"},
	{"#b35900", "#ffb266", "2.5", "3 4", "blsgd-ac|vc, p0's constants|algorithm 1, ι = 0.2|2opt|nag-opt"},
	{"#1a7f37", "#4ac26b", "2.5", "9 4", "agd|vc|sound, local samples|opt-ls|masg"},
	{"#7b3fa0", "#c792ea", "2.5", "2 3", "blgd|sound, one row|opt|hb"},
	{"#00798c", "#4dd0e1", "2.5", "14 4 2 4", "sgd|gd|[19], all active"},
	{"#c2185b", "#ff80ab", "2.5", "5 2", "outpert-rsgd|outpert-sgd|opt-b|masg-opt"},
	{"#5d4037", "#c8a99a", "1.5", "", "outpert-gd|outpert|no noise, ι = 0.1|tr"},
	{"#546e7a", "#a3b8c2", "1.5", "3 4", "privgene|2opt-b"},
	{"#827717", "#d4c94f", "1.5", "9 4", "objpert|amp"},
	{"#000", "#fff", "1.5", "1 3", "majority"},
	{"#e64a19", "#ff8a65", "1.5", "14 4 2 4", "sotto's auto|auto"},
	{"#3949ab", "#9fa8ff", "1.5", "5 2", "adam"},
	{"#0a58ca", "#79b0ff", "1.5", "2 5", "blsgd, mean test"},
	{"#b35900", "#ffb266", "1.5", "12 3", "blsgd-ac, mean test"},
	{"#7b3fa0", "#c792ea", "1.5", "6 2 1 2", "blgd, mean test"},
}

// Style colors plots on a white page; Dark, after it, colors them for readers who prefer dark pages. methods is the
// class of each method's style.
var Style, Dark, methods = stylesheet()

func stylesheet() (css, dark string, methods map[string]string) {
	css = `text{font:16px system-ui,sans-serif;fill:#1b1f24}` +
		`.xlab{text-anchor:middle}.ylab{text-anchor:end}path{fill:none;stroke-width:1.5}.axis{stroke:#1b1f24}.grid{stroke:#d0d7de}` +
		`.rule{stroke:#b3261e;stroke-dasharray:8 5}.mark{fill:#b3261e;stroke:#fff;stroke-width:1.5}`
	dark = `text{fill:#e6e9ee}.axis{stroke:#e6e9ee}.grid{stroke:#3a424d}.rule{stroke:#ff8a80}.mark{fill:#ff8a80;stroke:#14171c}`
	methods = map[string]string{}
	for i, s := range styles {
		css += fmt.Sprintf(`.l%d{color:%s;stroke:%s;stroke-width:%s`, i, s.color, s.color, s.width)
		dark += fmt.Sprintf(`.l%d{color:%s;stroke:%s}`, i, s.dark, s.dark)
		if s.dash != "" {
			css += ";stroke-dasharray:" + s.dash
		}
		css += "}"
		for _, name := range strings.Split(s.names, "|") {
			methods[name] = fmt.Sprintf("l%d", i)
		}
	}
	// These come last in either scheme: they undo the stroke of a line's class.
	shapes := `.dot{fill:currentColor;stroke:none}.bar{stroke-width:1;stroke-dasharray:none}.band{fill:currentColor;fill-opacity:.18;stroke:none}`
	return css + shapes, `@media screen and (prefers-color-scheme:dark){` + dark + shapes + `}`, methods
}
