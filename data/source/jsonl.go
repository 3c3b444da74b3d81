package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

// jsonLines is JSON Lines (https://jsonlines.org): an object on each line, from column names to text,
// numbers, true, false or null. A missing name has no value. A file without rows is recognized by its
// name.
var jsonLines = data.Format{
	Name: "a JSON Lines file",
	Ends: []string{".jsonl", ".ndjson"},
	Is: func(path string, head []byte) bool {
		head = bytes.TrimSpace(bytes.TrimPrefix(utf8Head(head), []byte("\ufeff")))
		rest, ok := bytes.CutPrefix(head, []byte("{"))
		rest = bytes.TrimSpace(rest)
		end := filepath.Ext(data.Uncompressed(path))
		return ok && (len(rest) == 0 || rest[0] == '"' || rest[0] == '}') ||
			len(head) == 0 && (end == ".jsonl" || end == ".ndjson")
	},
	Divide: func(_ context.Context, in *data.Input) (data.Pieces, error) {
		if in.Schema.OtherColumns != "" { // the hash of a row would lack their cells
			return nil, &config.Error{File: in.Path, Field: "other_columns",
				Found:   "a JSON Lines file, whose names no header lists",
				Allowed: "a column of the schema for each name, with type: ignore if it is not to be used",
				Hint:    "or write the table as CSV or Parquet"}
		}
		file, err := in.File()
		text, err := newLines(file, err, in.PieceBytes(), in.Schema.Format.Encoding)
		j := &jsonRows{lines: text, columns: make(map[string]int, len(in.Schema.Columns))}
		for i, c := range in.Schema.Columns {
			j.columns[c.Name] = i
		}
		return j, err
	},
}

// jsonArray says whether the first line of a file begins an array of objects or lists.
func jsonArray(line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "[")
	rest = strings.TrimSpace(rest)
	return ok && (rest == "" || strings.IndexByte("{[]", rest[0]) >= 0)
}

func arrayError(path string) error {
	return &config.Error{File: path,
		Err: errors.New(`the file is one JSON array; write it as JSON Lines, one object on each line, in pandas: to_json(FILE, orient="records", lines=True)`)}
}

type jsonRows struct {
	*lines
	columns map[string]int
}

type jsonPiece struct {
	piece
	columns map[string]int
	at      []int // byte of each cell within the line, from 1; 0: it is left out
	cells   []string
	null    []bool
}

func (j *jsonRows) Piece(used data.RowReader) (data.RowReader, error) {
	p, ok := used.(*jsonPiece)
	if !ok {
		n := len(j.columns)
		p = &jsonPiece{columns: j.columns, at: make([]int, n), cells: make([]string, n), null: make([]bool, n)}
	}
	return p, j.cut(&p.piece)
}

func (j *jsonPiece) Place(f data.Fault) *config.Error {
	if f.Cell > 0 {
		f.Byte = j.at[f.Cell-1]
	}
	return j.piece.Place(f)
}

// Next reads the next line that is not blank.
func (j *jsonPiece) Next(row *data.Row) (data.Fault, error) {
	line, f, err := j.record(&schema.Format{Trim: true})
	if err == nil && f.Found == "" {
		if f = j.parse(line); loneReturn(line) {
			f = loneReturnFault
		}
	}
	if err != nil || f.Found != "" {
		return f, err
	}
	return row.Cells(j.cells, j.null), nil
}

// parse puts the values on a line into cells.
func (j *jsonPiece) parse(line []byte) data.Fault {
	bad := func(at int, found, allowed string) data.Fault {
		return data.Fault{Byte: at, Found: found, Allowed: allowed}
	}
	cells, null := j.cells, j.null
	clear(j.at)
	for i := range cells {
		cells[i], null[i] = "", true
	}
	const object = "an object on one line, from column names to values"
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	// next returns the next token and the byte at which it begins, from 1.
	next := func() (json.Token, int, error) {
		at := int(d.InputOffset())
		for at < len(line) && strings.IndexByte(" \t\r\n,:", line[at]) >= 0 {
			at++
		}
		t, err := d.Token()
		return t, at + 1, err
	}
	t, at, err := next()
	if err != nil || t != json.Delim('{') {
		return bad(at, "text that is not a JSON object", object)
	}
	for d.More() {
		key, at, err := next()
		name, ok := key.(string)
		if err != nil || !ok {
			return bad(at, "text that is not JSON", object)
		}
		i, ok := j.columns[name]
		if !ok {
			return bad(at, "a name that is no column of the schema", "the columns of the schema")
		}
		if j.at[i] > 0 {
			return bad(at, "a name a second time", "each name once")
		}
		value, at, err := next()
		if err != nil {
			return bad(at, "text that is not JSON", object)
		}
		j.at[i], null[i] = at, false
		switch v := value.(type) {
		case nil:
			null[i] = true
		case bool:
			if cells[i] = "false"; v {
				cells[i] = "true"
			}
		case json.Number:
			cells[i] = v.String()
		case string:
			if strings.ContainsRune(v, 0) {
				return bad(at, "bytes that are not text", "text, a number, true, false or null")
			}
			cells[i] = v
		default:
			return bad(at, "a list or an object", "text, a number, true, false or null")
		}
	}
	if _, at, err := next(); err != nil {
		return bad(at, "an object that is not closed", object)
	}
	if rest := line[d.InputOffset():]; slices.ContainsFunc(rest, func(c byte) bool { return c > ' ' }) {
		return bad(int(d.InputOffset())+1, "text after the object", object)
	}
	return data.Fault{}
}
