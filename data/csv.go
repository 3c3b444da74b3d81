package data

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// A csvParser parses the records of a CSV file, each from its own line.
type csvParser struct {
	enc    *encoder
	raw    *rowHasher
	feed   oneLine
	r      *csv.Reader
	width  int   // cells in a row
	label  int   // the label's cell, or -1
	short  bool  // rows may leave the label's cell out
	place  []int // the cell of each of enc.cols
	placed []int // the same for a row without the label's cell
}

// oneLine gives one line to a csv.Reader and then io.EOF until there is another
// line: so a quote that is not closed ends with its line.
type oneLine struct{ rest []byte }

func (o *oneLine) Read(p []byte) (int, error) {
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// newCSVParser reads the header, where there is one, and finds the columns.
func newCSVParser(s *schema.Schema, enc *encoder, in *lines, opt Options, raw *rowHasher) (*csvParser, error) {
	p := &csvParser{enc: enc, raw: raw, width: len(s.Columns), label: -1}
	p.r = csv.NewReader(&p.feed)
	p.r.Comma, _ = utf8.DecodeRuneInString(s.Format.Delimiter)
	p.r.TrimLeadingSpace = s.Format.Trim
	p.r.FieldsPerRecord = -1
	p.r.ReuseRecord = true

	at := make([]int, len(s.Columns)) // the cell of each column of the schema
	names := make([]string, len(s.Columns))
	for i := range s.Columns {
		at[i], names[i] = i, fmt.Sprintf("column %06d", i) // whatever the schema calls it
	}
	raw.columns(names) // a header may say otherwise
	if s.Format.Header {
		if err := p.header(s, in, opt, at); err != nil {
			return nil, err
		}
	}
	for i, c := range s.Columns {
		if c.Type == schema.TypeIgnore {
			continue
		}
		cell := at[i]
		if c.Type == schema.TypeLabel {
			p.label = cell
			p.short = opt.Unlabeled && !s.Format.Header
		}
		if opt.skips(c) {
			cell = -1
		}
		p.place = append(p.place, cell)
	}
	for _, c := range p.place {
		if c > p.label {
			c--
		}
		p.placed = append(p.placed, c)
	}
	return p, nil
}

// header reads the header line and sets at[i] to the cell of column i.
func (p *csvParser) header(s *schema.Schema, in *lines, opt Options, at []int) error {
	line, err := in.record(&s.Format)
	switch {
	case err == io.EOF:
		return &config.Error{File: in.name, Found: "an empty file", Allowed: "a header line, with or without rows below it", Hint: "a file without a header has header: false under format"}
	case err == errLongLine:
		return &config.Error{File: in.name, Line: in.n, Found: "a line of more than 8 MiB", Allowed: "a header line"}
	case err != nil:
		return err
	case !isText(line):
		return &config.Error{File: in.name, Line: in.n, Found: "bytes that are not text (a binary file?)", Allowed: "a text file in UTF-8"}
	}
	p.feed.rest = line
	names, err := p.r.Read()
	if err != nil {
		f := csvFault(err)
		return &config.Error{File: in.name, Line: in.n, Column: f.at, Field: "header", Found: f.found, Allowed: f.allowed}
	}
	names = slices.Clone(names)
	for i := range names {
		if s.Format.Trim {
			names[i] = strings.TrimSpace(names[i])
		}
	}
	p.width = len(names)
	p.raw.columns(names)

	if e := matchColumns(s, names, opt, at); e != nil {
		e.File, e.Line = in.name, in.n
		if e.Hint == "" {
			e.Hint = "if the file has no header, say header: false under format; check the delimiter too"
		}
		return e
	}
	return nil
}

// matchColumns sets at[i] to the place among names of column i of the schema, −1
// for a label or a unit that is not asked for. Every column must be there, and no other.
func matchColumns(s *schema.Schema, names []string, opt Options, at []int) *config.Error {
	// First what the schema asks for: only where all of it is there, a line of text
	// is a header for sure and no row, and may be shown.
	known := make(map[string]bool, len(s.Columns))
	for i, c := range s.Columns {
		known[c.Name] = true
		at[i] = slices.Index(names, c.Name)
		if at[i] < 0 && !opt.skips(c) {
			return &config.Error{Field: columnField(c.Name), Found: "no such column in the header", Allowed: "a header with every column of the schema"}
		}
	}
	for i, n := range names {
		if slices.Index(names, n) < i && known[n] {
			return &config.Error{Field: columnField(n), Found: "the column a second time in the header", Allowed: "each column once", Hint: "give one of them another name"}
		}
		if !known[n] {
			return &config.Error{Field: columnField(config.Quote(n)), Found: "a column that the schema does not name", Allowed: "the columns of the schema",
				Hint: "add it to the schema, with type: ignore if it is not to be used"}
		}
	}
	return nil
}

// parse encodes the record on line into p.enc.
func (p *csvParser) parse(line []byte) fault {
	p.feed.rest = line
	cells, err := p.r.Read()
	if err != nil {
		return csvFault(err)
	}
	place := p.place
	switch {
	case len(cells) == p.width:
	case p.short && len(cells) == p.width-1:
		place = p.placed
	default:
		return fault{cell: -1, found: cellCount(len(cells)), allowed: cellCount(p.width)}
	}
	p.raw.cells(cells)
	f := p.enc.cells(cells, nil, place)
	if f.found != "" {
		_, f.at = p.r.FieldPos(f.cell)
	}
	return f
}

func cellCount(n int) string {
	if n == 1 {
		return "1 cell in the row"
	}
	return fmt.Sprintf("%d cells in the row", n)
}

// csvFault puts an error of encoding/csv in words.
func csvFault(err error) fault {
	f := fault{cell: -1, found: "a row that cannot be split into cells", allowed: "cells in the form of CSV"}
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		f.at = pe.Column
		switch {
		case errors.Is(pe.Err, csv.ErrBareQuote):
			f.found, f.allowed = "a quote within a cell that is not quoted", `quotes around the whole cell, and "" for a quote inside`
		case errors.Is(pe.Err, csv.ErrQuote):
			f.found, f.allowed = "a quoted cell that is not closed, or goes on after its quote", `a cell in quotes on one line, with "" for a quote inside`
		}
	}
	return f
}
