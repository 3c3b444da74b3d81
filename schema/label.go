package schema

import (
	"fmt"
	"slices"
	"strings"
)

// WithLabel is a copy of the schema in which the named column is what is to be
// predicted: the levels of a categorical column become its classes, the bounds
// of a numeric one those of the label. The former label is ignored. Asking for the label that the schema has changes nothing.
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
		return nil, fmt.Errorf("label: found %q; allowed are the columns of the schema that are not ignored: %s", name, strings.Join(names, ", "))
	}
	for i, k := range c.Columns {
		if k.Type == TypeLabel {
			c.Columns[i] = Column{Name: k.Name, Type: TypeIgnore}
		}
	}
	k := c.Columns[at]
	c.Columns[at] = Column{Name: k.Name, Type: TypeLabel, Classes: k.Levels, Bounds: k.Bounds, Source: k.Source}
	if e := c.check(); e != nil {
		return nil, e
	}
	return &c, nil
}

// predictable says whether a column can become the label.
func (c *Column) predictable() bool { return c.Type != TypeIgnore && c.Type != TypeUnit }
