package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
)

// labelType is what is to be predicted: one of some public classes, or a number within public bounds.
var labelType = columnType{
	name:  TypeLabel,
	about: "what is to be predicted",
	asks: []Question{
		{Field: "classes", Word: "number", Means: "it is a number within bounds",
			Then: []Question{{Field: "min"}, {Field: "max"}, {Field: "scale"}, {Field: "source"}}},
		{Field: "source"},
	},
	fields: []config.Field{
		config.NewField("classes", "list of texts", "required, or `min` and `max`", "all its classes, two or more"),
		config.NewField("strip", "text", "none",
			"trailing text to remove before matching, like the dot in Adult's test file; for classes only"),
		config.NewField("min", "number", "required for a number",
			"of a label that is a number, its public lower bound: smaller values count as it"),
		config.NewField("max", "number", "required for a number", "likewise its public upper bound"),
		config.NewField("scale", "number", "none",
			"about the standard deviation of a label that is a number, known without the rows (say from where in `source`). Labels then count as at most 12 of it wide, which helps where `min` and `max` are far apart"),
		config.NewField("source", "text", "none",
			"where the classes or bounds come from, for a [disclosure](../how-to/disclosure.md)"),
	},
	sample: [][2]string{{"{name: readmitted, type: label, classes: [no, yes]}",
		"one label in all; of a number: min and max"}},
	read: func(r *reader, path string, f *column, c *Column) {
		if r.doc.Has(path+".min") || r.doc.Has(path+".max") {
			c.Bounds = r.bounds(path, f)
		}
	},
	check: func(c *Column, path string, _ bool) *config.Error {
		if (c.Bounds != nil) == (len(c.Classes) > 0) {
			return columnFault(path, "a label with both classes and bounds, or with neither",
				"either classes, or min and max for a label that is a number")
		}
		if c.Bounds != nil {
			if c.Strip != "" {
				return columnFault(path+".strip", config.Quote(c.Strip)+" for a label that is a number", "no strip")
			}
			if e := c.Bounds.check(path); e != nil {
				return e
			}
			lo, hi := c.Bounds.Inward()
			if !(lo <= hi) || math.IsInf(float64(lo), 0) || math.IsInf(float64(hi), 0) {
				return columnFault(path+".max", "bounds with no 32-bit number between them", "bounds farther apart, below 3e38")
			}
			if w := c.Bounds.Max - c.Bounds.Min; c.Scale != 0 && !(c.Scale > 0 && c.Scale <= w) {
				return columnFault(path+".scale", num(c.Scale), "a number above 0 and up to max − min, which is "+num(w))
			}
			return nil
		}
		if c.Scale != 0 {
			return columnFault(path+".scale", num(c.Scale)+" for a label of classes", "no scale")
		}
		if e := checkTexts(path+".classes", c.Classes, 2, "the public classes, two or more"); e != nil {
			return e
		}
		seen := map[float64]bool{}
		if byNumber := c.NumericClasses(); byNumber != nil {
			for i, k := range c.Classes {
				v, _ := config.ParseNumber(k)
				if seen[v] {
					return columnFault(fmt.Sprintf("%s.classes[%d]", path, i), config.Quote(k)+", equal to another class as a number",
						"classes that are different numbers")
				}
				seen[v] = true
			}
		}
		return nil
	},
	says: func(c *Column) string {
		if c.Bounds != nil {
			return numericType.says(c)
		}
		return fmt.Sprintf("%d classes", len(c.Classes))
	},
	assumes: func(c *Column) string {
		if c.Bounds == nil {
			return "has the public classes " + strings.Join(c.Classes, ", ")
		}
		t := ""
		if c.Scale > 0 {
			t = fmt.Sprintf("; its standard deviation is taken to be about %s, a number known without the rows", num(c.Scale))
		}
		return fmt.Sprintf("is a number clamped to [%s, %s]%s", num(c.Bounds.Min), num(c.Bounds.Max), t)
	},
}

// unitType says whose row it is.
var unitType = columnType{
	name:   TypeUnit,
	about:  "whose row it is, where a person has several",
	sample: [][2]string{{"{name: patient_id, type: unit}", "whose row it is, where people have several"}},
}

// ignoreType is never read.
var ignoreType = columnType{
	name:    TypeIgnore,
	about:   "never read",
	sample:  [][2]string{{"{name: notes, type: ignore}", "also a column without a name"}},
	assumes: func(*Column) string { return "is never looked at" },
}

// WithLabel is a copy of the schema in which the named column is what is to be predicted: the levels of a categorical
// or ordinal column become its classes, the bounds of a numeric one those of the label. The former label is ignored,
// and so are pairs of the new one.
// Asking for the label that the schema has changes nothing.
func (s *Schema) WithLabel(name string) (*Schema, error) {
	if name == s.LabelName() {
		return s, nil
	}
	c := *s
	c.Columns = slices.Clone(s.Columns)
	at := slices.IndexFunc(c.Columns, func(k Column) bool { return k.Name == name && k.predictable() })
	if s.Format.Kind != KindCSV || at < 0 {
		var names []string
		for _, k := range c.Columns {
			if k.predictable() {
				names = append(names, k.Name)
			}
		}
		return nil, fmt.Errorf("label: found %q; choose a column of the schema with numbers or levels: %s", name,
			strings.Join(names, ", "))
	}
	for i, k := range c.Columns {
		if k.Type == TypeLabel {
			c.Columns[i] = Column{Name: k.Name, Type: TypeIgnore}
		}
	}
	k := c.Columns[at]
	c.Columns[at] = Column{Name: k.Name, Type: TypeLabel, Classes: k.Levels, Bounds: k.Bounds, Source: k.Source}
	c.Pairs = c.possiblePairs()
	if e := c.check(); e != nil {
		return nil, e
	}
	return &c, nil
}

// predictable says whether a column can become the label: it is one, or its numbers or levels are those of a label.
func (c *Column) predictable() bool {
	return c.Type == TypeLabel || c.Type == TypeNumeric || c.Type == TypeCategorical || c.Type == TypeOrdinal
}
