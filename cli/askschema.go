package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// rest is the answer that leaves out a column and all that follow.
const rest = "rest"

// askSchema asks for all that a schema of the table at path needs, and returns its text. What it shows and offers comes
// from the header and the types that the file declares, never from rows. If the answers end, or a piped one is wrong,
// those before it stay in a draft, which resume goes on from.
func askSchema(ctx context.Context, q *questions, path, delimiter string, resume bool, command string) ([]byte, error) {
	o, err := access.OutlineOf(ctx, path, delimiter)
	if err != nil {
		return nil, err
	}
	earlier, err := draft(q, path, o, resume)
	if err != nil {
		return nil, err
	}
	q.say(`Answer from what you know of the data (a codebook, a form, the law), never from its rows:
all of a schema is public. Enter takes the value in brackets; a question without one
needs an answer. %s goes one question back. Ctrl-D keeps the answers for the next time;
Ctrl-C ends without writing anything.
`, back)
	var text []byte
	err = q.part(earlier, func() (err error) {
		text, err = askAll(q, o)
		return err
	})
	if err != nil {
		return nil, keepDraft(q, path, o, command, err)
	}
	return text, nil
}

// askAll asks the questions about a table.
func askAll(q *questions, o *access.Outline) (text []byte, err error) {
	a := &access.Answers{Rows: 1, UnitRows: 1} // until they are known
	if a.Dataset, err = q.name("dataset: the name that the privacy budget of these people goes by, the same forever",
		o.Name); err != nil {
		return nil, err
	}
	if err := askFormat(q, o, a); err != nil {
		return nil, err
	}
	for {
		if err := askColumns(q, o, a); err != nil {
			return nil, err
		}
		_, err := schema.ParseOpen("the answers", o.Schema(a))
		if err == nil {
			break
		}
		if !q.terminal {
			return nil, err
		}
		q.say("  %v; all columns once more:", err)
		a.Columns, a.Unit = nil, ""
	}
	what := "rows"
	if a.Unit != "" {
		if a.UnitRows, err = q.count("unit: how many rows of one "+a.Unit+" are used at most",
			schema.MaxUnitRows); err != nil {
			return nil, err
		}
		what = "units"
	}
	if a.Rows, err = q.count(what+": about how many there are, a public number, not one that was counted for this",
		1<<31-1); err != nil {
		return nil, err
	}
	b := o.Schema(a)
	_, err = schema.ParseOpen("the answers", b)
	return b, err
}

// notations are the ways to write one thousand and a half, and the fields of the block format that say so.
var notations = [][2]string{{"1000.5", ""}, {"1000,5", `decimal: ","`}, {"1,000.5", `thousands: ","`},
	{"1.000,5", `decimal: ",", thousands: "."`}, {"1 000,5", `decimal: ",", thousands: " "`},
	{"1 000.5", `thousands: " "`}, {"1'000.5", `thousands: "'"`}}

// askFormat asks how the cells of a table of named columns are written. A header with semicolons often stands above
// numbers with decimal commas, so there is no default then.
func askFormat(q *questions, o *access.Outline, a *access.Answers) (err error) {
	if !o.Named() {
		return nil
	}
	if d := o.Delimiter; d != "" && d != "," {
		var texts []string
		for _, n := range notations {
			texts = append(texts, n[0])
		}
		otherwise := texts[0]
		if d == ";" {
			otherwise = ""
		}
		if _, err := q.ask("numbers: how the file writes one thousand and a half: "+strings.Join(texts, "   "), otherwise,
			func(answer string) error {
				i := slices.Index(texts, answer)
				if i < 0 {
					return allowed(answer, "one of "+strings.Join(texts, "   "))
				}
				a.Notation = notations[i][1]
				return nil
			}); err != nil {
			return err
		}
	}
	_, err = q.ask("missing: marks of a missing value beside the empty cell, as NA, ?, with commas between [nothing]", "",
		func(answer string) error {
			if a.Missing = nil; answer == "" {
				return nil
			}
			r := csv.NewReader(strings.NewReader(answer))
			r.TrimLeadingSpace = true
			marks, err := r.Read()
			if err != nil {
				return allowed(answer, "text with commas between")
			}
			a.Missing = []string{""}
			for _, m := range marks {
				if m = strings.TrimSpace(m); m != "" && !slices.Contains(a.Missing, m) {
					a.Missing = append(a.Missing, m)
				}
			}
			return nil
		})
	return err
}

// A columnLine has what follows the name of a column in its line of a schema.
type columnLine struct {
	name, rest string
	alike      bool // one answer was for several columns
}

// listed is the most columns that are listed.
const listed = 200

// askColumns asks for the label, and then for each column.
func askColumns(q *questions, o *access.Outline, a *access.Answers) error {
	var names []string
	for i, c := range o.Columns {
		names = append(names, c.Name)
		switch {
		case i < listed-1 || i == len(o.Columns)-1 || len(o.Columns) <= listed:
			q.say("%4d  %s", i+1, strings.TrimRight(fmt.Sprintf("%-24s %s", c.Name, c.Type), " "))
		case i == listed-1:
			q.say("   …  %d more", len(o.Columns)-listed)
		}
	}
	label := 0
	if len(names) > 1 {
		var err error
		if label, err = q.column("label: the column to predict, by name or number", names); err != nil {
			return err
		}
	}
	types := map[string]schema.ColumnType{}
	var offered []string
	if len(names) > 1 {
		q.say("\nThe types of a column:")
	}
	for _, t := range schema.ColumnTypes() {
		types[t.Name] = t
		if t.Name != schema.TypeLabel && len(names) > 1 {
			offered = append(offered, t.Name)
			q.say("  %-12s %s", t.Name, t.About)
		}
	}
	if len(names) > 1 {
		q.say("  %-12s %s\nFor several columns: next 80 numeric 0 to 10, next 3 categorical low, high, rest ignore", rest,
			"ignore this column and all that follow")
	}
	var all []columnLine
	var alike many // columns that are still to come
	for i, c := range o.Columns {
		kind := schema.TypeIgnore
		asked := c.Name != "" && alike.left == 0
		if i == label || asked {
			q.say("")
		}
		switch {
		case i == label:
			kind = schema.TypeLabel
		case asked:
			list := slices.DeleteFunc(slices.Clone(offered), func(t string) bool { return t == schema.TypeUnit && a.Unit != "" })
			var err error
			if kind, alike, err = q.kind(c.Name+": type", declared(c.Type, list), append(list, rest)); err != nil {
				return err
			}
		}
		if i != label && c.Name != "" && alike.left > 0 {
			alike.left--
			all = append(all, columnLine{c.Name, alike.fields, true})
			continue
		}
		line, err := askColumn(q, c.Name, types[kind])
		if err != nil {
			return err
		}
		all = append(all, columnLine{c.Name, line, false})
		if kind == schema.TypeUnit {
			if a.Unit, err = q.name(c.Name+": whom it identifies, in one word, as patient", ""); err != nil {
				return err
			}
		}
	}
	a.Columns = lines(all)
	return nil
}

// lines are the lines of a schema: one for several columns if one answer was for them and their names are a range.
func lines(all []columnLine) (lines []string) {
	for len(all) > 0 {
		n := 1
		for all[0].alike && n < len(all) && all[n].alike && all[n].rest == all[0].rest {
			n++
		}
		var names []string
		for _, c := range all[:n] {
			names = append(names, c.name)
		}
		if text, ok := schema.RangeOf(names); ok {
			lines = append(lines, "{names: "+schema.Text(text)+all[0].rest)
		} else {
			for _, name := range names {
				lines = append(lines, "{name: "+schema.Text(name)+all[0].rest)
			}
		}
		all = all[n:]
	}
	return lines
}

// many is an answer for several columns.
type many struct {
	left   int    // how many are still to come
	fields string // what follows their names in a line of a schema
}

var manyColumns = regexp.MustCompile(`^(?:next +(\d+)|rest)[: ] *([a-z]+)(?: +(.*))?$`)

// kind asks for the type of a column, with all that is said of it in one answer, as numeric 18 to 64, or for several
// columns: next 80 numeric 0 to 10.
func (q *questions) kind(question, otherwise string, names []string) (kind string, alike many, err error) {
	_, err = q.ask(question, otherwise, func(answer string) (err error) {
		alike = many{}
		if first, _, more := strings.Cut(answer, " "); more && first != rest && slices.Contains(names, first) {
			answer = "next 1 " + answer
		}
		if m := manyColumns.FindStringSubmatch(answer); m != nil {
			alike.left = math.MaxInt
			if m[1] != "" {
				if alike.left, err = strconv.Atoi(m[1]); err != nil || alike.left < 1 {
					return allowed(answer, "how many columns, from 1, as in next 80 numeric 0 to 10")
				}
			}
			if !slices.Contains(names, m[2]) || m[2] == schema.TypeUnit || m[2] == rest {
				return allowed(m[2], "a type that several columns can have, as in next 80 numeric 0 to 10")
			}
			alike.fields, err = manyFields(m[2], m[3])
			return err
		}
		if kind, err = oneOf(answer, names); kind == rest {
			kind, alike = schema.TypeIgnore, many{math.MaxInt, ", type: " + schema.TypeIgnore + "}"}
		}
		return err
	})
	return kind, alike, err
}

// manyFields is what follows a name in a line of a schema for a type and the rest of an answer: bounds, levels, the
// dimension of text, and what a missing value counts as.
func manyFields(kind, text string) (string, error) {
	fields, wanted := ", type: "+kind, "nothing after "+kind
	text, missing, _ := strings.Cut(text, "; missing ")
	var err error
	add := func(field, value string, list bool) {
		var v string
		if v, err = fieldValue(strings.TrimSpace(value), list); err == nil {
			fields += ", " + field + ": " + v
		}
	}
	lo, hi, bounds := strings.Cut(text, " to ")
	ok := text == ""
	switch kind {
	case schema.TypeNumeric, schema.TypeDate:
		wanted = "both bounds, as in " + kind + " 0 to 10"
		if ok = bounds; ok {
			if add("min", lo, false); err == nil {
				add("max", hi, false)
			}
		}
	case schema.TypeText:
		wanted = "the number of features, as in text 512"
		if ok = text != ""; ok {
			add("dimension", text, false)
		}
	case schema.TypeCategorical, schema.TypeOrdinal:
		wanted = "the levels with commas between, as in " + kind + " low, high"
		if ok = text != ""; ok {
			add("levels", text, true)
		}
	}
	if !ok {
		return "", allowed(text, wanted)
	}
	if missing != "" && err == nil {
		add("missing", missing, false)
	}
	if err != nil {
		return "", err
	}
	fields += "}"
	return fields, wrongField(`{name: "x"`+fields, kind, "")
}

// declared is the type of column that goes with a type that the file declares, if it is among those offered.
func declared(fileType string, offered []string) string {
	fileType, _, _ = strings.Cut(strings.ToUpper(fileType), "(")
	for name, words := range map[string][]string{
		schema.TypeNumeric: {"INT", "FLOAT", "DOUBLE", "DECIMAL", "NUMERIC", "REAL"},
		"boolean":          {"BOOL"},
		"date":             {"DATE", "TIME"},
	} {
		if slices.Contains(offered, name) && slices.ContainsFunc(words, func(w string) bool {
			return strings.HasPrefix(fileType, w) || w == "INT" && strings.HasSuffix(fileType, w)
		}) {
			return name
		}
	}
	return ""
}

// askColumn asks for the fields of a column of that type and returns what follows its name in a line of the schema.
func askColumn(q *questions, name string, t schema.ColumnType) (string, error) {
	for {
		const named = `{name: "x"`
		line := ", type: " + t.Name
		for asks := t.Asks; len(asks) > 0; {
			ask := asks[0]
			asks = asks[1:]
			added := ""
			_, err := q.ask(questionText(name, ask), ask.Default, func(answer string) error {
				added = ""
				switch {
				case answer == ask.Default && ask.Free:
					return nil
				case answer == "":
					return errors.New("an answer is needed")
				case answer == ask.Word && ask.Word != "":
					if asks = ask.Then; ask.Instead != "" {
						added = ", " + ask.Instead + ": " + answer
					}
					return nil
				}
				value, err := fieldValue(answer, ask.List)
				if err != nil {
					return err
				}
				added = ", " + ask.Field + ": " + value
				return wrongField(named+line+added+"}", t.Name, ask.Field)
			})
			if err != nil {
				return "", err
			}
			line += added
		}
		line += "}"
		err := wrongField(named+line, t.Name, "")
		if err == nil {
			return line, nil
		}
		if !q.terminal {
			return "", usageError("%s: %v", name, err)
		}
		q.say("  %v; once more:", err)
	}
}

func questionText(name string, ask schema.Question) string {
	text := name + ": " + ask.Text
	if ask.List {
		text += ", with commas between"
	}
	if ask.Word != "" {
		text += fmt.Sprintf(" (or %s: %s)", ask.Word, ask.Means)
	}
	if ask.Free && ask.Default == "" {
		text += " [nothing]"
	}
	return text
}

// fieldValue is an answer as YAML: a list, a number or text.
func fieldValue(answer string, list bool) (string, error) {
	if !list {
		if _, bad := config.ParseNumber(answer); bad == "" {
			return answer, nil
		}
		return schema.Text(answer), nil
	}
	r := csv.NewReader(strings.NewReader(answer))
	r.TrimLeadingSpace = true
	parts, err := r.Read()
	if err != nil {
		return "", fmt.Errorf("found %s; write text with commas between, in double quotes where it has a comma",
			strconv.Quote(answer))
	}
	for i, p := range parts {
		parts[i] = schema.Text(strings.TrimSpace(p))
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

// wrongField says what is wrong with a column, or with one of its fields, by the checks of a schema that has little
// else.
func wrongField(line, kind, field string) error {
	text := "dataset: x\nunit: {name: unit, rows: 1}\ncolumns:\n  - " + line +
		"\n  - {name: sotto-number, type: numeric, min: 0, max: 1}\n"
	if kind != schema.TypeUnit {
		text += "  - {name: sotto-unit, type: unit}\n"
	}
	if kind != schema.TypeLabel {
		text += "  - {name: sotto-label, type: label, classes: [a, b]}\n"
	}
	_, err := schema.ParseOpen("", []byte(text))
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		return err
	}
	at := strings.TrimPrefix(wrong.Field, "columns[0].")
	if field == "" || at == field || strings.HasPrefix(at, field+"[") {
		if wrong.Found != "nothing" || field == "" {
			return errors.New(strings.ReplaceAll(wrong.Text(), "columns[0].", ""))
		}
	}
	return nil
}
