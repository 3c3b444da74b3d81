package schema

import (
	"strings"

	"github.com/sottodp/sotto/config"
)

// booleanType is false or true: an ordinal column of these two levels, each with several spellings.
var booleanType = columnType{
	name:  TypeBoolean,
	about: "true or false, yes or no, 1 or 0",
	asks:  []Question{{Field: "missing"}, {Field: "source"}},
	fields: []config.Field{
		config.NewField("missing", "text", "`error`",
			"what a missing mark counts as: `error` (a bad row), `zero` (halfway between), `true` or `false`"),
		config.NewField("source", "text", "none", "where it is known from, for a [disclosure](../how-to/disclosure.md)"),
	},
	sample: [][2]string{{"{name: smoker, type: boolean}",
		"true and false, t and f, yes and no, y and n, 1 and 0, in any case"}},
	read: func(r *reader, path string, f *column, c *Column) {
		c.Missing = or(r, path+".missing", f.Missing, RuleError)
	},
	check: func(c *Column, path string, _ bool) *config.Error {
		if _, fault := ruleOf(c.Missing, truth); fault != "" {
			return columnFault(path+".missing", config.Quote(c.Missing), "error, zero, true or false")
		}
		return nil
	},
	form: func(c *Column) *Form {
		f := &Form{
			Levels: []string{"false", "true"}, Line: levelLine(2), Unknown: Rule{Bad: true},
			allowed: "true or false, t or f, yes or no, y or n, 1 or 0; " +
				"for other words write type: categorical with levels: [a, b]",
			wanted: "true or false, or a missing rule for this column in the schema",
			reader: func() func(string) (float64, string) { return truth },
		}
		f.Missing, _ = ruleOf(c.Missing, truth)
		return f
	},
	says:    func(*Column) string { return "true or false" },
	assumes: func(c *Column) string { return "is true or false; " + c.missingWords() },
}

// Truth reads a truth value: 0 is false, 1 true.
func Truth(cell string) (v float64, ok bool) {
	v, fault := truth(cell)
	return v, fault == ""
}

// truth is Truth, also of 0.0 and 1.0, with what is wrong.
func truth(cell string) (float64, string) {
	if w, ok := wholeText(cell); ok {
		cell = w
	}
	if len(cell) <= len("false") {
		switch strings.ToLower(cell) {
		case "true", "t", "yes", "y", "1":
			return 1, ""
		case "false", "f", "no", "n", "0":
			return 0, ""
		}
	}
	return 0, "text that is neither true nor false"
}
