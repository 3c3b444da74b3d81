package schema

import (
	"fmt"

	"github.com/sottodp/sotto/config"
)

// categoricalType is one of some public levels, which have no order: a feature for each.
var categoricalType = columnType{
	name:   TypeCategorical,
	about:  "one of some public levels",
	asks:   []Question{{Field: "levels"}, {Field: "unknown"}, {Field: "source"}},
	fields: levelFields("all public levels", "all features 0"),
	sample: [][2]string{{"{name: ward, type: categorical, levels: [north, south]}",
		"every level there may be; unknown: zero, or a level"}},
	read: readLevels,
	check: func(c *Column, path string, _ bool) *config.Error {
		return c.checkLevels(path, 1, "the public levels, one or more")
	},
	form: func(c *Column) *Form {
		f := c.levelForm()
		f.OneHot = true
		return f
	},
	says: saysLevels,
	assumes: func(c *Column) string {
		return fmt.Sprintf("has %d public levels; an unknown level %s, a missing one %s", len(c.Levels), ruleWords(c.Unknown),
			ruleWords(c.Missing))
	},
}

// What follows all types of columns with levels share.

func levelFields(levels, zero string) []config.Field {
	return []config.Field{
		config.NewField("levels", "list of texts", "required", levels),
		config.NewField("unknown", "text", "`error`",
			"what another text counts as: `error` (a bad row), `zero` ("+zero+") or a level"),
		config.NewField("missing", "text", "as `unknown`", "what a missing mark counts as: likewise"),
		config.NewField("source", "text", "none", "where the levels come from, for a [disclosure](../how-to/disclosure.md)"),
	}
}

func readLevels(r *reader, path string, f *column, c *Column) {
	r.need(path+".levels", "a list of the public levels")
	c.Unknown = or(r, path+".unknown", f.Unknown, RuleError)
	c.Missing = or(r, path+".missing", f.Missing, c.Unknown)
}

func saysLevels(c *Column) string { return fmt.Sprintf("%d levels", len(c.Levels)) }

func (c *Column) checkLevels(path string, least int, allowed string) *config.Error {
	if e := checkTexts(path+".levels", c.Levels, least, allowed); e != nil {
		return e
	}
	for _, r := range []struct{ field, rule string }{{".unknown", c.Unknown}, {".missing", c.Missing}} {
		if _, fault := ruleOf(r.rule, levelReader(c.Levels)); fault != "" {
			return columnFault(path+r.field, config.Quote(r.rule), "error, zero or one of the levels")
		}
	}
	return nil
}

// levelForm is the form of a column with levels, without its features.
func (c *Column) levelForm() *Form {
	const allowed = "one of the levels in the schema, or an unknown or missing rule for this column"
	f := &Form{Levels: c.Levels, allowed: allowed, wanted: allowed}
	f.reader = func() func(string) (float64, string) { return levelReader(c.Levels) }
	f.Unknown, f.Missing = c.levelRule(c.Unknown), c.levelRule(c.Missing)
	return f
}

func (c *Column) levelRule(rule string) Rule {
	read := levelReader(c.Levels)
	r, _ := ruleOf(rule, func(text string) (float64, string) {
		i, _ := read(text) // check refuses other text
		return i, ""
	})
	return r
}

// levelReader reads the index of a level.
func levelReader(levels []string) func(cell string) (float64, string) {
	find := FindText(levels)
	return func(cell string) (float64, string) {
		i, ok := find(cell)
		if !ok {
			return 0, "a level that the schema does not list"
		}
		return float64(i), ""
	}
}
