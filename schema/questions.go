package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A ColumnType is a type of column as a person chooses it. Skeletons and questions follow it.
type ColumnType struct {
	Name  string
	About string     // what such a column is, in a phrase
	Asks  []Question // about its fields, in this order
}

// A Question is about a field of a column.
type Question struct {
	Field string
	Text  string // what to ask: what the field means
	List  bool   // the field is a list
	// The answer may be empty, and means Default, where there is one. The field is then left out.
	Free    bool
	Default string
	// A word that may be answered instead, and what it means. Then the word is written as the field Instead, if there is
	// one, and the questions Then take the place of those that follow.
	Word, Means, Instead string
	Then                 []Question
}

var link = regexp.MustCompile(`\[(.*?)\]\(.*?\)`)

// Plain is Markdown as text.
func Plain(markdown string) string {
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1"), "`", "")
}

// asked are the questions of a type, with what its fields say.
func (t *columnType) asked(asks []Question) []Question {
	asks = slices.Clone(asks)
	for i := range asks {
		q := &asks[i]
		f := t.field(q.Field)
		q.Text, q.List, q.Free = q.Field+": "+Plain(f.Doc), strings.HasPrefix(f.Type, "list"),
			!strings.HasPrefix(f.Default, "required")
		if strings.HasPrefix(f.Default, "`") {
			q.Default = Plain(f.Default)
		}
		q.Then = t.asked(q.Then)
	}
	return asks
}

// ColumnTypes are the types of a column in the order in which they are offered.
func ColumnTypes() (all []ColumnType) {
	for _, t := range columnTypes {
		all = append(all, ColumnType{t.name, t.about, t.asked(t.asks)})
	}
	return all
}

// Text is s as a double-quoted scalar of a schema file; a JSON string is one.
func Text(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("schema: text that cannot be encoded: " + err.Error()) // cannot happen for a string
	}
	return strings.TrimSpace(b.String())
}
