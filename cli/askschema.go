package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
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
// from the header and the types that the file declares, never from rows.
func askSchema(ctx context.Context, q *questions, path, delimiter string) ([]byte, error) {
	o, err := access.OutlineOf(ctx, path, delimiter)
	if err != nil {
		return nil, err
	}
	q.say(`Answer from what you know of the data (a codebook, a form, the law), never from its rows:
all of a schema is public. Enter takes what stands in brackets; where nothing does, an
answer is needed. Ctrl-D or Ctrl-C ends without writing anything.
`)
	a := &access.Answers{Rows: 1, UnitRows: 1} // until they are known
	if a.Dataset, err = q.name("dataset: the name that the privacy budget of these people goes by, the same forever",
		o.Name); err != nil {
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

// askColumns asks for the label, and then for each column.
func askColumns(q *questions, o *access.Outline, a *access.Answers) error {
	var names []string
	for i, c := range o.Columns {
		names = append(names, c.Name)
		q.say("%4d  %s", i+1, strings.TrimRight(fmt.Sprintf("%-24s %s", c.Name, c.Type), " "))
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
		q.say("  %-12s %s", rest, "ignore this column and all that follow")
	}
	left := false // the rest is ignored
	for i, c := range o.Columns {
		kind := schema.TypeIgnore
		if i == label || c.Name != "" && !left {
			q.say("")
		}
		switch {
		case i == label:
			kind = schema.TypeLabel
		case c.Name != "" && !left:
			list := slices.DeleteFunc(slices.Clone(offered), func(t string) bool { return t == schema.TypeUnit && a.Unit != "" })
			var err error
			if kind, err = q.choose(c.Name+": type", declared(c.Type, list), append(list, rest)...); err != nil {
				return err
			}
			if left = kind == rest; left {
				kind = schema.TypeIgnore
			}
		}
		line, err := askColumn(q, c.Name, types[kind])
		if err != nil {
			return err
		}
		a.Columns = append(a.Columns, line)
		if kind == schema.TypeUnit {
			if a.Unit, err = q.name(c.Name+": whom it identifies, in one word, as patient", ""); err != nil {
				return err
			}
		}
	}
	return nil
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

// askColumn asks for the fields of a column of that type and returns its line in the schema.
func askColumn(q *questions, name string, t schema.ColumnType) (string, error) {
	for {
		line := "{name: " + schema.Text(name) + ", type: " + t.Name
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
				return wrongField(line+added+"}", t.Name, ask.Field)
			})
			if err != nil {
				return "", err
			}
			line += added
		}
		line += "}"
		err := wrongField(line, t.Name, "")
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
