package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
)

// jsonLines is JSON Lines (https://jsonlines.org): an object on each line, from column names
// to text, numbers, true, false or null. A name that is left out has no value.
var jsonLines = data.Format{
	Name: "a JSON Lines file",
	Is: func(head []byte) bool {
		rest, ok := bytes.CutPrefix(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))), []byte("{"))
		rest = bytes.TrimSpace(rest)
		return ok && (len(rest) == 0 || rest[0] == '"' || rest[0] == '}')
	},
	Open: func(in io.Reader, columns []string) data.Rows {
		j := &jsonRows{in: bufio.NewReaderSize(in, 64<<10), columns: make(map[string]int, len(columns)), at: make([]int, len(columns))}
		for i, name := range columns {
			j.columns[name] = i
		}
		return j
	},
}

const maxLine = 8 << 20 // longest line, in bytes

type jsonRows struct {
	in      *bufio.Reader
	columns map[string]int
	text    []byte // of the line
	line    int    // its number
	at      []int  // byte of each cell within the line, from 1; 0: it is left out
	fault   int    // byte of what is wrong with the row; 0: the row as a whole
}

func (j *jsonRows) Place(cell int) (line, column int) {
	if cell < 0 {
		return j.line, j.fault
	}
	return j.line, j.at[cell]
}

// readLine reads the next line into text; tooLong says that it keeps nothing of it.
func (j *jsonRows) readLine() (tooLong bool, err error) {
	j.text = j.text[:0]
	for {
		part, err := j.in.ReadSlice('\n')
		if tooLong = tooLong || len(j.text)+len(part) > maxLine; !tooLong {
			j.text = append(j.text, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(j.text) == 0 && !tooLong:
			return false, io.EOF
		case err != nil && err != io.EOF:
			return false, err
		}
		if j.line++; j.line == 1 {
			j.text = bytes.TrimPrefix(j.text, []byte("\ufeff"))
		}
		return tooLong, nil
	}
}

// Next reads the next line that is not blank.
func (j *jsonRows) Next(cells []string, null []bool) error {
	bad := func(at int, found, allowed string) error {
		j.fault = at
		return &config.Error{Found: found, Allowed: allowed}
	}
	for {
		tooLong, err := j.readLine()
		if err != nil {
			return err
		}
		if tooLong {
			return bad(0, "a line of more than 8 MiB", "records of one line each")
		}
		if len(bytes.TrimSpace(j.text)) > 0 {
			break
		}
	}
	if !utf8.Valid(j.text) || bytes.IndexByte(j.text, 0) >= 0 {
		return bad(0, "bytes that are not text (a binary file?)", "a text file in UTF-8")
	}
	clear(j.at)
	for i := range cells {
		cells[i], null[i] = "", true
	}
	const object = "an object on one line, from column names to values"
	d := json.NewDecoder(bytes.NewReader(j.text))
	d.UseNumber()
	// next is the next token and the byte where it begins, from 1.
	next := func() (json.Token, int, error) {
		at := int(d.InputOffset())
		for at < len(j.text) && strings.IndexByte(" \t\r\n,:", j.text[at]) >= 0 {
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
	if rest := j.text[d.InputOffset():]; slices.ContainsFunc(rest, func(c byte) bool { return c > ' ' }) {
		return bad(int(d.InputOffset())+1, "text after the object", object)
	}
	return nil
}
