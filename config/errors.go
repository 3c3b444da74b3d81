package config

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
)

// An Error says what is wrong with a spec, a schema or a data file: where, what was
// found and what was expected.
//
// For a data file Found is a kind ("text that is not a number"), never the text
// of a cell, a level or a label, so the error may be shown and logged without
// showing a value. Line and column are for the owner of the data (R11). For a
// schema, which is public, Found may quote what a person wrote.
type Error struct {
	File    string // the file, as it was named; texts hide its passwords
	Line    int    // 1-based line in the (decompressed) file; 0 when no line is meant
	Column  int    // 1-based byte within the line; 0 when no place in the line is meant
	Row     int    // 1-based record, where the file has no lines; 0 when no record is meant
	Field   string // the schema field or the column that is meant; may be empty
	Found   string // what is there
	Allowed string // what may be there
	Hint    string // what a person can do about it; may be empty

	Err error // the cause, or the whole text where Found is empty
}

// Place is file:line:column: row n, or what of it is known.
func (e *Error) Place() string {
	b := redact.Path(e.File)
	if e.Line > 0 {
		b += ":" + strconv.Itoa(e.Line)
		if e.Column > 0 {
			b += ":" + strconv.Itoa(e.Column)
		}
	}
	if e.Row > 0 {
		if b != "" {
			b += ": "
		}
		b += "row " + strconv.Itoa(e.Row)
	}
	return b
}

// Error is file:line:column: field: found X; expected Y, or file: row n: field:
// found X; expected Y, or field is missing; write Y. Parts that are not known are left out.
func (e *Error) Error() string {
	text := e.Text()
	if place := e.Place(); place != "" {
		text = place + ": " + text
	}
	return redact.Text(text)
}

// Text is the error without its place. Where nothing was found it is that of Err.
func (e *Error) Text() string {
	if e.Found == "" && e.Err != nil {
		return e.Err.Error()
	}
	var b strings.Builder
	if e.Field != "" && e.Found == "nothing" {
		b.WriteString(e.Field + " is missing; write " + e.Allowed)
	} else {
		if e.Field != "" {
			b.WriteString(e.Field + ": ")
		}
		b.WriteString("found " + e.Found)
		if e.Allowed != "" {
			verb := "; expected "
			if e.Field != "" && isValue(e.Found) {
				verb = "; write "
			}
			b.WriteString(verb + e.Allowed)
		}
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// isValue reports whether found is a number or quoted text, that is, a field's value that a person can change.
func isValue(found string) bool {
	_, fault := ParseNumber(found)
	_, err := strconv.Unquote(found)
	return fault == "" || err == nil
}

// Unwrap is the cause that the system or the decompressor reported, or nil.
func (e *Error) Unwrap() error { return e.Err }

// FileError says that the file at path cannot be opened or read.
func FileError(path string, err error) *Error {
	var refused *readfile.Error
	if errors.As(err, &refused) {
		return &Error{File: path, Found: refused.Found, Allowed: refused.Allowed, Err: err}
	}
	text := err.Error()
	var p *os.PathError
	if errors.As(err, &p) {
		text = p.Err.Error()
	}
	return &Error{File: path, Found: "no file to read (" + text + ")", Allowed: "a file that can be read", Err: err}
}

// Errors are several things that are wrong with one file.
type Errors []error

// mostErrors is how many of them a text names.
const mostErrors = 20

// Error is one line for each, up to a number that a person can read.
func (e Errors) Error() string {
	var lines []string
	for _, err := range e[:min(len(e), mostErrors)] {
		lines = append(lines, err.Error())
	}
	if more := len(e) - mostErrors; more > 0 {
		lines = append(lines, strconv.Itoa(more)+" more errors of this kind")
	}
	return strings.Join(lines, "\n")
}

// Unwrap are the errors.
func (e Errors) Unwrap() []error { return e }

// Err is nil for none, a single error, or all of them in the order of their lines.
func (e Errors) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	line := func(err error) int {
		var at *Error
		if errors.As(err, &at) {
			return at.Line
		}
		return 0
	}
	slices.SortStableFunc(e, func(a, b error) int { return line(a) - line(b) })
	return e
}
