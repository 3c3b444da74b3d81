package data

import (
	"bufio"
	"errors"
	"io"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// A Format reads files of one form whose rows have named columns. A schema of kind csv
// describes them. Package data/source has the list.
type Format struct {
	Name string                 // as in "a JSON Lines file", for errors and descriptions
	Is   func(head []byte) bool // whether a file that begins so, decompressed, has this form
	Open func(in io.Reader, columns []string) Rows
}

// Rows reads a file row by row.
type Rows interface {
	// Next reads the next row: cells[i] is the text of the i-th column, and null[i] says that
	// it has no value. A row that cannot be read is a *config.Error with Found and Allowed,
	// which shows no value; reading goes on. io.EOF is the end, any other error ends the reading.
	Next(cells []string, null []bool) error
	// Place is where a cell of the last row stands, or the fault in the row for −1: line and
	// byte within it, from 1. 0 where there is none.
	Place(cell int) (line, column int)
}

// headSize is how much of a file its form is recognized by.
const headSize = 512

// formatOf is the format of the file at path, nil for none of those.
func formatOf(path string, formats []Format) *Format {
	if len(formats) == 0 {
		return nil
	}
	in, err := openFile(path, nil)
	if err != nil {
		return nil // the reader says what is wrong
	}
	defer in.close()
	head, _ := bufio.NewReaderSize(in.r, headSize).Peek(headSize)
	for i := range formats {
		if formats[i].Is(head) {
			return &formats[i]
		}
	}
	return nil
}

// A rowSource gives the rows of a format to the encoder.
type rowSource struct {
	in    *file
	rows  Rows
	enc   *encoder
	raw   *rowHasher
	cells []string
	null  []bool
	at    []int // of each of enc.cols among cells
}

func newRowSource(f *Format, s *schema.Schema, path string, opt Options, enc *encoder, sum io.Writer, raw *rowHasher) (source, error) {
	in, err := openFile(path, sum)
	if err != nil {
		return nil, err
	}
	q := &rowSource{in: in, enc: enc, raw: raw, cells: make([]string, len(s.Columns)), null: make([]bool, len(s.Columns))}
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
		switch {
		case c.Type == schema.TypeIgnore:
		case opt.skips(c):
			q.at = append(q.at, -1)
		default:
			q.at = append(q.at, i)
		}
	}
	raw.columns(names)
	q.rows = f.Open(in.r, names)
	return q, nil
}

func (q *rowSource) next() (fault, error) {
	err := q.rows.Next(q.cells, q.null)
	var bad *config.Error
	switch {
	case err == io.EOF:
		return fault{}, io.EOF
	case errors.As(err, &bad):
		return fault{cell: -1, found: bad.Found, allowed: bad.Allowed}, nil
	case err != nil:
		return fault{}, q.in.readError(err)
	}
	q.raw.cells(q.cells)
	return q.enc.cells(q.cells, q.null, q.at), nil
}

func (q *rowSource) place(f fault) *config.Error {
	line, column := q.rows.Place(f.cell)
	return &config.Error{File: q.in.name, Line: line, Column: column}
}

func (q *rowSource) close() { q.in.close() }
