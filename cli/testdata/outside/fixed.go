package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
)

// A fixed-width file begins with the line "fixed", then has cells of width bytes in the order of the schema.
const width = 16

func isFixed(_ string, head []byte) bool { return bytes.HasPrefix(head, []byte("fixed\n")) }

type fixedRows struct {
	file  *data.File
	lines *bufio.Scanner
	name  string
	line  int
	cells []string
}

func openFixed(_ context.Context, in *data.Input) (data.Rows, error) {
	file, err := in.File()
	if err != nil {
		return nil, err
	}
	r := &fixedRows{file: file, lines: bufio.NewScanner(file), name: in.Path, line: 1, cells: make([]string, len(in.Schema.Columns))}
	r.lines.Scan() // "fixed"
	return r, nil
}

func (r *fixedRows) Next(row *data.Row) (data.Fault, error) {
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return data.Fault{}, err
		}
		return data.Fault{}, io.EOF
	}
	r.line++
	text := r.lines.Text()
	if len(text) != width*len(r.cells) {
		return data.Fault{Found: "a line of another length", Allowed: "16 bytes for each column"}, nil
	}
	for i := range r.cells {
		r.cells[i] = strings.TrimSpace(text[i*width : (i+1)*width])
	}
	return row.Cells(r.cells, nil), nil
}

// Place names the line, and nothing that stands on it.
func (r *fixedRows) Place(data.Fault) *config.Error { return &config.Error{File: r.name, Line: r.line} }

func (r *fixedRows) Close() error { return r.file.Close() }
