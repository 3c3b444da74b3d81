package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// A columnType is a type of column. Each type that features come from is in a file of its own, with all that is known
// of it: its fields, their defaults and checks, and by its [Form] how cells become features.
type columnType struct {
	name   string
	about  string         // what such a column is, in a phrase
	asks   []Question     // about its fields, in this order
	fields []config.Field // beside name and type
	sample [][2]string    // lines of a skeleton: what follows the type there, and a remark
	// read takes from a schema file the fields that are the type's own, and their defaults.
	read func(r *reader, path string, f *column, c *Column)
	// check finds the first fault of a column whose fields are the type's; open allows unknown bounds.
	check func(c *Column, path string, open bool) *config.Error
	form  func(c *Column) *Form  // nil: no feature comes from the column
	says  func(c *Column) string // what cells may be, in a few words; nil: nobody asks
	// assumes says how a column becomes features, for the report; nil for nothing.
	assumes func(c *Column) string
}

// columnTypes are all types, in the order in which errors and skeletons list them.
var columnTypes = []*columnType{&numericType, &categoricalType, &ordinalType, &booleanType, &dateType, &textType,
	&labelType, &unitType, &ignoreType}

// typeOf is the type of that name, nil for none.
func typeOf(name string) *columnType {
	for _, t := range columnTypes {
		if t.name == name {
			return t
		}
	}
	return nil
}

// TypeNames lists the types of columns, for people.
func TypeNames() string {
	var names []string
	for _, t := range columnTypes {
		names = append(names, t.name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// HasField says whether columns of that type have that field in a schema file.
func HasField(columnType, field string) bool {
	t := typeOf(columnType)
	return t != nil && t.field(field) != nil
}

// ranges says whether an entry may be several columns of the type.
func (t *columnType) ranges() bool { return t.name != TypeLabel && t.name != TypeUnit }

// field is the field of that name, nil for none.
func (t *columnType) field(name string) *config.Field {
	if i := slices.IndexFunc(t.fields, func(f config.Field) bool { return f.Name == name }); i >= 0 {
		return &t.fields[i]
	}
	return nil
}

// Samples are a line of a schema file for each type of column, each with a remark.
func Samples() (lines [][2]string) {
	for _, t := range columnTypes {
		lines = append(lines, t.sample...)
	}
	return lines
}

// A Form says what the cells of a column are, and which features they become. Types of columns are made of these parts;
// what encodes, exports or draws a column knows the parts and not the types. A cell is read as a number, and the number
// becomes features in the order of the fields below; or the cell is words.
type Form struct {
	Levels []string               // the numbers 0, 1, … stand for these texts; nil: a number stands for itself
	Counts string                 // what a number counts, as in "days since 2020-01-01"; "": the column says it
	Step   string                 // one of them, as in "a day"; "": 1
	Write  func(v float64) string // the cell of a number that is no level, also shown to people; nil: the number
	Whole  bool                   // numbers are whole where their bounds are

	Missing Rule // for a cell without a value
	Unknown Rule // for a cell that cannot be read

	Line   *Line   // one feature, from −1 to 1 between bounds
	Bumps  int     // piecewise-linear bumps on that feature ([Bumps]), each of them one
	Waves  int     // waves on that feature ([Wave]), each of them one, without bumps
	Cycles []Cycle // two features each
	OneHot bool    // a feature for each level
	Grid   bool    // a feature for each bin of the public grid ([GridBin])
	Cells  int     // in place of all others: so many cells, then one for no value, and one for a value not allowed
	Words  int     // in place of a number: so many features, for the words of a cell ([Buckets])

	allowed string // what a cell may be, for errors
	wanted  string // what a missing cell should contain, for errors
	reader  func() func(cell string) (v float64, fault string)
}

// A Line is a feature that a number becomes: clamped to the bounds, transformed, and from −1 to 1.
type Line struct {
	Bounds
	Transform string // none, or one of those of numeric columns
}

// A Cycle is two features: the sine and the cosine of the time since a zero, a full turn in each period. Clamped to the
// line's bounds first.
type Cycle struct {
	Name   string
	Period float64 // in the column's numbers
	Zero   float64
}

// A Rule says what stands in for a cell.
type Rule struct {
	Bad   bool    // nothing: the row is a bad row
	Zero  bool    // all features of the column are 0
	Value float64 // otherwise: the number
}

// Reader returns the function that reads a cell which has a value: a finite number, or a fault, which is a kind and
// never a value. nil: the cell is the number, as [config.ParseNumber] has it, or words.
func (f *Form) Reader() func(cell string) (v float64, fault string) {
	if f.reader == nil {
		return nil
	}
	return f.reader()
}

// Number says whether a cell is a number as the file writes it.
func (f *Form) Number() bool { return f.reader == nil && f.Words == 0 }

// Allowed says what a cell of the column may be, for errors.
func (f *Form) Allowed() string { return f.allowed }

// Wanted describes what a missing cell should contain, for errors.
func (f *Form) Wanted() string { return f.wanted }

// Features is the number of features.
func (f *Form) Features() int {
	if f.Cells > 0 {
		return f.Cells + 2
	}
	n := f.Bumps + f.Waves + 2*len(f.Cycles) + f.Words
	if f.Line != nil {
		n++
	}
	if f.OneHot {
		n += len(f.Levels)
	}
	if f.Grid {
		n += GridBins()
	}
	return n
}

// names names the features of a column.
func (f *Form) names(column string) (names []string) {
	if f.Line != nil {
		names = append(names, column)
	}
	for i := range f.Bumps {
		names = append(names, column+" hat "+strconv.Itoa(i+1))
	}
	for i := range f.Waves {
		names = append(names, column+" wave "+strconv.Itoa(i+1))
	}
	for _, c := range f.Cycles {
		names = append(names, column+" sine of the "+c.Name, column+" cosine of the "+c.Name)
	}
	if f.OneHot {
		for _, l := range f.Levels {
			names = append(names, column+"="+l)
		}
	}
	for i := range f.Words {
		names = append(names, column+" word "+strconv.Itoa(i))
	}
	return names
}

// Form is how cells of the column become features, nil where none do.
func (c *Column) Form() *Form {
	if t := typeOf(c.Type); t != nil && t.form != nil {
		if c.Counts != nil {
			return c.counted(t.form(c))
		}
		return t.form(c)
	}
	return nil
}

// Says says in a few words what cells of the column may be.
func (c *Column) Says() string {
	if t := typeOf(c.Type); t != nil && t.says != nil {
		return t.says(c)
	}
	return ""
}

// features is how many features a column is encoded as.
func (c *Column) features() int {
	if f := c.Form(); f != nil {
		return f.Features()
	}
	return 0
}

// columnParts are the fields of a column by their names in a schema file, and whether a column has them.
var columnParts = []struct {
	name string
	has  func(c *Column) bool
}{
	{"min", func(c *Column) bool { return c.Bounds != nil }},
	{"transform", func(c *Column) bool { return c.Transform != "" }},
	{"hats", func(c *Column) bool { return c.Hats != 0 }},
	{"waves", func(c *Column) bool { return c.Waves != 0 }},
	{"levels", func(c *Column) bool { return c.Levels != nil }},
	{"unknown", func(c *Column) bool { return c.Unknown != "" }},
	{"missing", func(c *Column) bool { return c.Missing != "" }},
	{"classes", func(c *Column) bool { return c.Classes != nil }},
	{"strip", func(c *Column) bool { return c.Strip != "" }},
	{"scale", func(c *Column) bool { return c.Scale != 0 }},
	{"origin", func(c *Column) bool { return c.Origin != "" }},
	{"layout", func(c *Column) bool { return c.Layout != "" }},
	{"cycles", func(c *Column) bool { return c.Cycles != nil }},
	{"dimension", func(c *Column) bool { return c.Dimension != 0 }},
}

// check finds the first fault of a column; open allows unknown bounds.
func (c *Column) check(path string, open bool) *config.Error {
	t := typeOf(c.Type)
	if t == nil {
		return columnFault(path+".type", config.Quote(c.Type), TypeNames())
	}
	for _, p := range columnParts {
		if p.has(c) && t.field(p.name) == nil {
			return columnFault(path+"."+p.name, "a field that a column of type "+c.Type+" does not have", "no "+p.name)
		}
	}
	if t.check == nil {
		return nil
	}
	return t.check(c, path, open)
}

func columnFault(path, found, allowed string) *config.Error {
	return &config.Error{Field: path, Found: found, Allowed: allowed}
}

// ruleOf is a rule of a schema file, in which read reads the number of a text that stands in for a cell.
func ruleOf(rule string, read func(text string) (v float64, fault string)) (r Rule, fault string) {
	switch rule {
	case RuleError:
		return Rule{Bad: true}, ""
	case RuleZero:
		return Rule{Zero: true}, ""
	}
	v, fault := read(rule)
	return Rule{Value: v}, fault
}

func ruleWords(rule string) string {
	switch rule {
	case RuleError:
		return "makes the row a bad row"
	case RuleZero:
		return "encodes to 0"
	}
	return "counts as " + strconv.Quote(rule)
}

// missingWords says what becomes of a cell without a value.
func (c *Column) missingWords() string { return "a missing value " + ruleWords(c.Missing) }
