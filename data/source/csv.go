package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

var csvFormat = data.Format{Name: "a CSV file", Kind: schema.KindCSV, Ends: []string{".csv", ".tsv"}, Divide: openCSV}

// csvRows divides a CSV file. A record is a line, so that a bad one has no effect on others; or, where the schema says
// so, more lines if a quoted cell goes on there.
type csvRows struct {
	*lines
	format *schema.Format
	width  int // cells in a row
	label  int // the cell of a label that rows may leave out, or -1
	probe  csvPiece
}

// A csvPiece reads some records of a CSV file.
type csvPiece struct {
	piece
	of       *csvRows
	cells    []string // of the last row: they share the memory of the piece, or unquoted
	at       []int    // the byte at which each begins
	unquoted []byte
}

// openCSV reads the header, if there is one, and finds the columns.
func openCSV(_ context.Context, in *data.Input) (data.Pieces, error) {
	file, err := in.File()
	text, err := newLines(file, err, in.PieceBytes(), in.Schema.Format.Encoding)
	if err != nil {
		return nil, err
	}
	in.Text()
	c := &csvRows{lines: text, format: &in.Schema.Format, width: len(in.Schema.Columns), label: -1}
	if c.probe.of = c; c.format.Multiline {
		text.whole = c.whole
	}
	if c.format.Header {
		if err := c.header(in); err != nil {
			text.Close()
			return nil, err
		}
		return c, nil
	}
	at := make([]int, c.width)
	names := make([]string, c.width)
	for i, col := range in.Schema.Columns {
		at[i], names[i] = i, fmt.Sprintf("column %06d", i) // whatever the schema calls it
		if col.Type == schema.TypeLabel && in.Options.Unlabeled {
			c.label = i
		}
	}
	in.Cells(names, at)
	return c, nil
}

// header reads the header line and says which columns the cells belong to.
func (c *csvRows) header(in *data.Input) error {
	line, f, n, err := c.first(func(p *piece) ([]byte, data.Fault, error) {
		c.join(p, &c.probe)
		return p.record(c.format)
	})
	switch {
	case err == io.EOF:
		return &config.Error{File: c.Name, Found: "an empty file", Allowed: "a header line, with or without rows below it",
			Hint: "a file without a header has header: false under format"}
	case err != nil:
		return err
	case f.Found != "":
		return &config.Error{File: c.Name, Line: n, Found: f.Found, Allowed: f.Allowed}
	}
	if jsonArray(view(line)) {
		return arrayError(c.Name)
	}
	if sqlDump.Match(line) {
		return otherFile(c.Name, strings.TrimRight(view(line), "\r\n"))
	}
	p := csvPiece{of: c}
	if f = p.split(line); f.Found != "" {
		if e := otherFile(c.Name, strings.TrimRight(view(line), "\r\n")); e != nil {
			return e
		}
		if e := c.otherDelimiter(in, view(line), n, nil); e != nil {
			return e
		}
		return &config.Error{File: c.Name, Line: n, Column: f.Byte, Field: "header", Found: f.Found, Allowed: f.Allowed}
	}
	names := make([]string, len(p.cells))
	for i, name := range p.cells {
		if found := controlFault(name); found != "" {
			return headerFault(c.Name, n, found)
		}
		if c.format.Trim {
			name = strings.TrimSpace(name)
		}
		names[i] = strings.Clone(name)
	}
	c.width = len(names)
	at, bad := in.Match(names)
	if bad != nil {
		if e := otherFile(c.Name, strings.TrimRight(view(line), "\r\n")); e != nil {
			return e
		}
		if e := c.otherDelimiter(in, view(line), n, names); e != nil {
			return e
		}
		bad.File, bad.Line = c.Name, n
		if bad.Hint == "" {
			bad.Hint = "if the file has no header, say header: false under format; check the delimiter too"
		}
		return bad
	}
	in.Cells(names, at)
	return nil
}

// otherDelimiter is the error of a header that has more columns of the schema with another delimiter than names, those
// with the delimiter of the schema, or, if it has none of them, more of another delimiter; nil if there is no such
// delimiter.
func (c *csvRows) otherDelimiter(in *data.Input, line string, n int, names []string) error {
	found := func(names []string) (k int) {
		for _, col := range in.Schema.Columns {
			if slices.Contains(names, col.Name) {
				k++
			}
		}
		return k
	}
	line = strings.TrimRight(line, "\r\n")
	known, bare := found(names), unquoted(line)
	best, most, times := "", known, strings.Count(bare, c.format.Delimiter)
	for i, d := range slices.Concat(delimiters, rareDelimiters) {
		if k := found(splitHeader(line, d)); k > most && d != c.format.Delimiter &&
			(i < len(delimiters) || k == len(in.Schema.Columns)) {
			best, most = d, k
		}
	}
	for _, d := range delimiters {
		if k := strings.Count(bare, d); most == 0 && k > times {
			best, times = d, k
		}
	}
	if best == "" {
		return nil
	}
	return &config.Error{File: c.Name, Line: n,
		Err: fmt.Errorf("the header is separated by %q, not by %q; write format: {delimiter: %q} in the schema", best,
			c.format.Delimiter, best)}
}

// unquoted is a line without its quoted parts, or as it is if a quote is open.
func unquoted(line string) string {
	parts := strings.Split(line, `"`)
	if len(parts)%2 == 0 {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		b.WriteString(parts[i])
	}
	return b.String()
}

// headerFault is the error of a header with such a character. It quotes nothing: rows may follow.
func headerFault(file string, line int, found string) error {
	return &config.Error{File: file, Line: line,
		Err: fmt.Errorf("the header has %s within it; end each line with LF or CRLF, as CSV UTF-8 of Excel does, and write no control character in a column name", found)}
}

func (c *csvRows) Piece(used data.RowReader) (data.RowReader, error) {
	p, ok := used.(*csvPiece)
	if !ok {
		p = &csvPiece{of: c}
	}
	err := c.cut(&p.piece)
	c.join(&p.piece, p)
	return p, err
}

// join makes records of several lines, if there are any. The lines of p are split in by.
func (c *csvRows) join(p *piece, by *csvPiece) {
	if c.format.Multiline {
		p.length = by.extent
	}
}

// whole returns the end of the last record of text that is whole, if its end can be known. all: the file ends after
// text.
func (c *csvRows) whole(text []byte, all bool) int {
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			if all {
				return len(text)
			}
			return at + bytes.LastIndexByte(text[at:], '\n') + 1
		}
		at += bytes.LastIndexByte(text[at:at+n], '\n') + 1
		n, known := c.probe.extent(text[at:], all)
		if !known {
			return at
		}
		at += n
	}
}

// extent returns the length of the line at the beginning of text or, if a quoted cell goes on after it and ends, of
// that whole record. So a quote that nothing ends spoils one line only. known is false if the length depends on what
// follows text.
//
// In a record without a fault, a line ends within a quoted cell if the quotes up to there are odd in number. So a
// record ends where they are even.
func (p *csvPiece) extent(text []byte, all bool) (n int, known bool) {
	n, known = lineLength(text, all)
	if !known || bytes.Count(text[:n], quote)%2 == 0 || skipped(text[:n], p.of.format) {
		return n, known
	}
	for end := n; ; {
		more, known := lineLength(text[end:], all)
		end += more
		switch {
		case len(bytes.TrimSuffix(text[:end], []byte("\n"))) >= maxLine, known && more == 0:
			return n, true // too long, or nothing ends the cell
		case !known:
			return 0, false
		case bytes.Count(text[end-more:end], quote)%2 == 0:
		case p.split(text[:end]).Found != "":
			return n, true
		default:
			return end, true
		}
	}
}

var quote = []byte{'"'}

// lineLength returns the length of the first line of text with its '\n'; known is false if the end of the line is not
// in text.
func lineLength(text []byte, all bool) (n int, known bool) {
	if n = bytes.IndexByte(text, '\n') + 1; n > 0 {
		return n, true
	}
	return len(text), all
}

func (p *csvPiece) Next(row *data.Row) (data.Fault, error) {
	line, f, err := p.record(p.of.format)
	if err != nil || f.Found != "" {
		return f, err
	}
	if line[0] == '\r' { // of line ends LF CR, it would become part of the first cell
		return loneReturnFault, nil
	}
	if f := p.split(line); f.Found != "" {
		return cmp.Or(p.otherDelimiter(line), f), nil
	}
	switch {
	case len(p.cells) == p.of.width:
		f = row.Cells(p.cells, nil)
	case p.of.label >= 0 && len(p.cells) == p.of.width-1:
		p.cells = slices.Insert(p.cells, p.of.label, "")
		if f = row.Encode(p.cells, nil); f.Cell > p.of.label {
			f.Cell--
		}
	case loneReturn(line):
		return loneReturnFault, nil
	default:
		return cmp.Or(p.otherDelimiter(line), data.Fault{Found: cellCount(len(p.cells)), Allowed: cellCount(p.of.width)}), nil
	}
	if f.Cell > 0 {
		if at := p.at[f.Cell-1]; p.more == 0 || bytes.IndexByte(line[:at], '\n') < 0 { // on the line that the error names
			f.Byte = at + 1
		}
	}
	return f, nil
}

// otherDelimiter is the fault of a row of a file without a header that has another delimiter: as often as a row would,
// and that of the schema nowhere. A header says so by itself.
func (p *csvPiece) otherDelimiter(line []byte) data.Fault {
	own := p.of.format.Delimiter
	bare := unquoted(view(line))
	if p.of.format.Header || p.of.width < 2 || strings.Contains(bare, own) {
		return data.Fault{}
	}
	for _, d := range delimiters {
		if d != own && strings.Count(bare, d) == p.of.width-1 {
			return data.Fault{Found: fmt.Sprintf("cells separated by %q", d),
				Allowed: fmt.Sprintf("cells separated by %q, or format: {delimiter: %q} in the schema", own, d)}
		}
	}
	return data.Fault{}
}

// split splits a record into its cells as package encoding/csv does. That package says what is wrong with a line that
// has no cells.
func (p *csvPiece) split(line []byte) data.Fault {
	p.cells, p.at, p.unquoted = p.cells[:0], p.at[:0], p.unquoted[:0]
	delimiter := p.of.format.Delimiter
	text := bytes.TrimSuffix(line, []byte("\n"))
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	plain := p.bare || bytes.IndexByte(text, '"') < 0
	if plain && len(delimiter) == 1 && !p.of.format.Trim {
		p.splitPlain(text, delimiter[0])
		return data.Fault{}
	}
	for at := 0; ; {
		rest := text[at:]
		if p.of.format.Trim {
			rest = bytes.TrimLeftFunc(rest, unicode.IsSpace)
			at = len(text) - len(rest)
		}
		p.at = append(p.at, at)
		if plain || len(rest) == 0 || rest[0] != '"' {
			end := -1
			if len(delimiter) == 1 {
				end = bytes.IndexByte(rest, delimiter[0])
			} else {
				end = bytes.Index(rest, []byte(delimiter))
			}
			last := end < 0
			if last {
				end = len(rest)
			}
			if !plain && bytes.IndexByte(rest[:end], '"') >= 0 {
				return p.fault(line)
			}
			p.cells = append(p.cells, view(rest[:end]))
			if last {
				return data.Fault{}
			}
			at += end + len(delimiter)
			continue
		}
		n := p.quoted(rest)
		if n < 0 {
			return p.fault(line)
		}
		if rest = rest[n:]; len(rest) == 0 {
			return data.Fault{}
		}
		if !bytes.HasPrefix(rest, []byte(delimiter)) {
			return p.fault(line)
		}
		at += n + len(delimiter)
	}
}

// splitPlain is split for text without quotes.
func (p *csvPiece) splitPlain(text []byte, delimiter byte) {
	const low = 0x7f7f7f7f7f7f7f7f
	all := uint64(delimiter) * 0x0101010101010101
	begin, i := 0, 0
	for ; i+8 <= len(text); i += 8 {
		x := binary.LittleEndian.Uint64(text[i:]) ^ all
		for x = ^(x&low + low | x | low); x != 0; x &= x - 1 { // a bit for each byte that was a delimiter
			end := i + bits.TrailingZeros64(x)/8
			p.cells, p.at = append(p.cells, view(text[begin:end])), append(p.at, begin)
			begin = end + 1
		}
	}
	for ; i < len(text); i++ {
		if text[i] == delimiter {
			p.cells, p.at = append(p.cells, view(text[begin:i])), append(p.at, begin)
			begin = i + 1
		}
	}
	p.cells, p.at = append(p.cells, view(text[begin:])), append(p.at, begin)
}

// quoted takes the quoted cell at the beginning of text and returns its length, −1 if no quote ends it.
func (p *csvPiece) quoted(text []byte) int {
	from, begin := len(p.unquoted), 1
	for i := 1; ; {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		if i += n + 1; i < len(text) && text[i] == '"' { // "" is a quote
			p.unquoted = append(p.unquoted, text[begin:i]...)
			i++
			begin = i
			continue
		}
		cell := text[begin : i-1]
		if begin > 1 {
			p.unquoted = append(p.unquoted, cell...)
			cell = p.unquoted[from:]
		}
		if bytes.Contains(cell, []byte("\r\n")) {
			cell = bytes.ReplaceAll(cell, []byte("\r\n"), []byte("\n"))
		}
		p.cells = append(p.cells, view(cell))
		return i
	}
}

// fault is what package encoding/csv finds wrong with a line.
func (p *csvPiece) fault(line []byte) data.Fault {
	r := csv.NewReader(bytes.NewReader(line))
	r.Comma, _ = utf8.DecodeRuneInString(p.of.format.Delimiter)
	r.TrimLeadingSpace = p.of.format.Trim
	_, err := r.Read()
	return csvFault(err)
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
			f.Found, f.Allowed = "a quote within a cell that is not quoted",
				`quotes around the whole cell, and "" for a quote inside`
		case errors.Is(pe.Err, csv.ErrQuote):
			f.Found, f.Allowed = "a quoted cell that is not closed, or goes on after its quote",
				`a cell in quotes, with "" for a quote inside, on one line unless format says multiline: true`
		}
	}
	return f
}
