package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
)

// maxWords is the most features of a column of text. Rows keep only those that are not 0, so it limits models and not
// tables.
const maxWords = 1 << 16

const dimensionAllowed = "the public number of features that words are hashed to, a whole number from 2 to 65536, as 512"

// textType is free text: each of its words is hashed to one of a public number of features.
var textType = columnType{
	name:  TypeText,
	about: "free text, whose words are hashed",
	asks:  []Question{{Field: "dimension"}, {Field: "missing"}, {Field: "source"}},
	fields: []config.Field{
		config.NewField("dimension", "whole number from 2 to 65536", "required",
			"public number of features that words are hashed to, as 512"),
		config.NewField("missing", "text", "`error`",
			"what a missing mark counts as: `error` (a bad row) or `zero` (all features 0)"),
		config.NewField("source", "text", "none", "where the number comes from, for a [disclosure](../how-to/disclosure.md)"),
	},
	sample: [][2]string{{"{name: complaint, type: text, dimension: 512, missing: zero}",
		"words, hashed to so many features"}},
	read: func(r *reader, path string, f *column, c *Column) {
		r.need(path+".dimension", dimensionAllowed)
		c.Missing = or(r, path+".missing", f.Missing, RuleError)
	},
	check: func(c *Column, path string, _ bool) *config.Error {
		if c.Dimension < 2 || c.Dimension > maxWords {
			return columnFault(path+".dimension", strconv.Itoa(c.Dimension), dimensionAllowed)
		}
		if c.Missing != RuleError && c.Missing != RuleZero {
			return columnFault(path+".missing", config.Quote(c.Missing), "error or zero")
		}
		return nil
	},
	form: func(c *Column) *Form {
		f := &Form{Words: c.Dimension, allowed: "text", wanted: "text, or a missing rule for this column in the schema"}
		f.Missing.Bad, f.Missing.Zero = c.Missing == RuleError, c.Missing != RuleError
		return f
	},
	says: func(c *Column) string { return fmt.Sprintf("words, hashed to %d features", c.Dimension) },
	assumes: func(c *Column) string {
		return fmt.Sprintf("is text whose different words are hashed to %d features of norm 1 together; no word is taken from the rows, and %s", c.Dimension, c.missingWords())
	},
}

// Buckets are the features, from 0 and ascending, of the words in text, of so many features. A word is a longest run of
// letters, marks and digits, in lower case; its feature is its 64-bit FNV-1a hash modulo the number of features. The
// slice is into's, with more memory where it needs that.
//
// A feature counts once, however often its words occur. Each is 1/√n where there are n, so that the norm of all
// is 1 and that of a text without words 0.
func Buckets(text string, features int, into []int32) []int32 {
	var lower []byte // of one letter
	into = into[:0]
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	}) {
		h := uint64(14695981039346656037)
		for _, r := range word {
			lower = utf8.AppendRune(lower[:0], unicode.ToLower(r))
			for _, b := range lower {
				h = (h ^ uint64(b)) * 1099511628211
			}
		}
		into = append(into, int32(h%uint64(features)))
	}
	slices.Sort(into)
	return slices.Compact(into)
}
