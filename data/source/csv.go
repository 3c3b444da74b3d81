package source

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

var csvFormat = data.Format{Name: "a CSV file", Kind: schema.KindCSV, Open: openCSV}

// csvRows parses the records of a CSV file, each from its own line.
type csvRows struct {
	*lines
	format *schema.Format
	feed   oneLine
	r      *csv.Reader
	width  int // cells in a row
	label  int // the cell of a label that rows may leave out, or -1
}

// oneLine gives one line to a csv.Reader and then io.EOF until the next line is set: a quote that is not
// closed thus ends with its line.
type oneLine struct{ rest []byte }

func (o *oneLine) Read(p []byte) (int, error) {
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// openCSV reads the header, if there is one, and finds the columns.
func openCSV(_ context.Context, in *data.Input) (data.Rows, error) {
	text, err := newLines(in.File())
	if err != nil {
		return nil, err
	}
	p := &csvRows{lines: text, format: &in.Schema.Format, width: len(in.Schema.Columns), label: -1}
	p.r = csv.NewReader(&p.feed)
	p.r.Comma, _ = utf8.DecodeRuneInString(p.format.Delimiter)
	p.r.TrimLeadingSpace = p.format.Trim
	p.r.FieldsPerRecord = -1
	p.r.ReuseRecord = true
	if p.format.Header {
		if err := p.header(in); err != nil {
			text.Close()
			return nil, err
		}
		return p, nil
	}
	at := make([]int, p.width)
	names := make([]string, p.width)
	for i, c := range in.Schema.Columns {
		at[i], names[i] = i, fmt.Sprintf("column %06d", i) // whatever the schema calls it
		if c.Type == schema.TypeLabel && in.Options.Unlabeled {
			p.label = i
		}
	}
	in.Cells(names, at)
	return p, nil
}

// header reads the header line and says which columns the cells belong to.
func (p *csvRows) header(in *data.Input) error {
	line, f, err := p.record(p.format)
	switch {
	case err == io.EOF:
		return &config.Error{File: p.Name, Found: "an empty file", Allowed: "a header line, with or without rows below it", Hint: "a file without a header has header: false under format"}
	case err != nil:
		return err
	case f.Found != "":
		return &config.Error{File: p.Name, Line: p.n, Found: f.Found, Allowed: f.Allowed}
	}
	p.feed.rest = line
	names, err := p.r.Read()
	if err != nil {
		f = csvFault(err)
		return &config.Error{File: p.Name, Line: p.n, Column: f.Byte, Field: "header", Found: f.Found, Allowed: f.Allowed}
	}
	names = slices.Clone(names)
	if p.format.Trim {
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
	}
	p.width = len(names)
	at, bad := in.Match(names)
	if bad != nil {
		bad.File, bad.Line = p.Name, p.n
		if bad.Hint == "" {
			bad.Hint = "if the file has no header, say header: false under format; check the delimiter too"
		}
		return bad
	}
	in.Cells(names, at)
	return nil
}

func (p *csvRows) Next(row *data.Row) (data.Fault, error) {
	line, f, err := p.record(p.format)
	if err != nil || f.Found != "" {
		return f, err
	}
	p.feed.rest = line
	cells, err := p.r.Read()
	switch {
	case err != nil:
		return csvFault(err), nil
	case len(cells) == p.width:
		f = row.Cells(cells, nil)
	case p.label >= 0 && len(cells) == p.width-1:
		if f = row.Encode(slices.Insert(cells, p.label, ""), nil); f.Cell > p.label {
			f.Cell--
		}
	default:
		return data.Fault{Found: cellCount(len(cells)), Allowed: cellCount(p.width)}, nil
	}
	if f.Cell > 0 {
		_, f.Byte = p.r.FieldPos(f.Cell - 1)
	}
	return f, nil
}

func cellCount(n int) string {
	if n == 1 {
		return "1 cell in the row"
	}
	return fmt.Sprintf("%d cells in the row", n)
}

// csvFault is the fault of an error of encoding/csv.
func csvFault(err error) data.Fault {
	f := data.Fault{Found: "a row that cannot be split into cells", Allowed: "cells in the form of CSV"}
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		f.Byte = pe.Column
		switch {
		case errors.Is(pe.Err, csv.ErrBareQuote):
			f.Found, f.Allowed = "a quote within a cell that is not quoted", `quotes around the whole cell, and "" for a quote inside`
		case errors.Is(pe.Err, csv.ErrQuote):
			f.Found, f.Allowed = "a quoted cell that is not closed, or goes on after its quote", `a cell in quotes on one line, with "" for a quote inside`
		}
	}
	return f
}
