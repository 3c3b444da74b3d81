package config

import "strings"

// A Field is a field of a file, for its reference, for editors and for questions; texts are Markdown.
type Field struct {
	Name    string
	Type    string   // as "text", "number above 0", "list of texts"
	Default string   // "required" where there is none
	Doc     string   // what it means, in a phrase
	Values  []string // all values; none: there are others
}

// NewField is a Field whose values are those with spaces between, if they are given.
func NewField(name, kind, otherwise, doc string, values ...string) Field {
	return Field{name, kind, otherwise, doc, strings.Fields(strings.Join(values, " "))}
}

// A Block is the fields of a block under the heading that the reference has for it.
type Block struct {
	Title  string
	Fields []Field
}
