package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// mostNames is the most columns of a range of names.
const mostNames = 100_000

const namesAllowed = "the first and the last name of columns that one number tells apart, as gene_1..gene_2309"

var numberInName = regexp.MustCompile(`[0-9]+`)

// RangeOf is the range that names are, in this order; ok is false if they are none.
func RangeOf(names []string) (text string, ok bool) {
	if len(names) < 2 {
		return "", false
	}
	text = names[0] + ".." + names[len(names)-1]
	same, fault := namesOf(text)
	return text, fault == "" && slices.Equal(same, names)
}

// namesOf are the names of a range: gene_1..gene_3 is gene_1, gene_2 and gene_3, and x01..x10 keeps its two digits.
// fault says what is wrong with other text.
func namesOf(text string) (names []string, fault string) {
	first, last, ok := strings.Cut(text, "..")
	if !ok || strings.Contains(last, "..") {
		return nil, "a name without a range"
	}
	ends := [2][]string{numberInName.FindAllString(first, -1), numberInName.FindAllString(last, -1)}
	between := numberInName.Split(first, -1)
	at := -1
	same := strings.Join(between, "\x00") == strings.Join(numberInName.Split(last, -1), "\x00")
	for i := range ends[0] {
		if same && ends[0][i] != ends[1][i] {
			same, at = at < 0, i
		}
	}
	if !same || at < 0 {
		return nil, "two names that do not differ in exactly one number"
	}
	from, to := ends[0][at], ends[1][at]
	width := 0
	if from[0] == '0' && len(from) > 1 || to[0] == '0' && len(to) > 1 {
		if width = len(from); len(to) != width {
			return nil, "numbers with zeros before them, of different lengths"
		}
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	switch {
	case errA != nil || errB != nil || b-a >= mostNames:
		return nil, fmt.Sprintf("more than %d names", mostNames)
	case a >= b:
		return nil, "a first number that is not below the last"
	}
	head, tail := "", ""
	for i, part := range between {
		switch {
		case i <= at:
			head += part
			if i < at {
				head += ends[0][i]
			}
		default:
			tail += part
			if i < len(ends[0]) {
				tail += ends[0][i]
			}
		}
	}
	for k := a; k <= b; k++ {
		names = append(names, fmt.Sprintf("%s%0*d%s", head, width, k, tail))
	}
	return names, ""
}

// columns reads an entry of the list columns: a column, or several alike whose names are a range.
func (r *reader) columns(n config.Node, path string) []Column {
	c := r.column(n, path)
	if !r.doc.Has(path + ".names") {
		return []Column{c}
	}
	names, fault := namesOf(n.Field("names").Text())
	switch {
	case r.doc.Has(path + ".name"):
		r.fail(path+".names", "names beside name", "one of them")
	case fault != "":
		r.fail(path+".names", fault, namesAllowed)
	case c.Type == TypeNumeric && c.Bounds == nil && r.open:
		r.fail(path+".bounds", "unknown for a range of names", "min and max, or an entry for each column")
	}
	all := make([]Column, len(names))
	for i, name := range names {
		all[i] = c
		all[i].Name = name
	}
	return all
}

// inFile is the path in the file of a path in the schema, where an entry may be several columns.
func (r *reader) inFile(path string) string {
	rest, ok := strings.CutPrefix(path, "columns[")
	number, rest, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i >= len(r.entries) {
		return path
	}
	at := fmt.Sprintf("columns[%d]", r.entries[i])
	if rest == ".name" && r.doc.Has(at+".names") {
		rest = ".names"
	}
	return at + rest
}
