package schema

import (
	"encoding/json"
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
	Text  string // what to ask, in a phrase
	List  bool   // the field is a list
	// The answer may be empty, and means Default, where there is one. The field is then left out.
	Free    bool
	Default string
	// A word that may be answered instead, and what it means. Then the word is written as the field Instead, if there is one,
	// and the questions Then take the place of those that follow.
	Word, Means, Instead string
	Then                 []Question
}

var (
	askLevels  = Question{Field: "levels", Text: "all its levels", List: true}
	askUnknown = Question{Field: "unknown", Text: "any other text counts as error (a bad row), zero or one of the levels", Free: true, Default: RuleError}
	askMissing = Question{Field: "missing", Text: "an empty cell counts as error (a bad row), zero or a number", Free: true, Default: RuleError}
	askSource  = Question{Field: "source", Text: "where that is known from (for a disclosure)", Free: true}
	askMin     = Question{Field: "min", Text: "smallest value that counts"}
	askMax     = Question{Field: "max", Text: "largest value that counts"}
)

// ColumnTypes are the types of a column in the order in which they are offered.
func ColumnTypes() (all []ColumnType) {
	for _, t := range columnTypes {
		all = append(all, ColumnType{t.name, t.about, t.asks})
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
