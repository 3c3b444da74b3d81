package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
)

const (
	parquetMagic = "PAR1"
	parquetBatch = 512 // values of a column that are read at once
)

var parquetFormat = data.Format{
	Name:  "a Parquet file",
	Is:    func(path string, _ []byte) bool { return readfile.Begins(path, parquetMagic) },
	Magic: true,
	Open:  func(_ context.Context, in *data.Input) (data.Rows, error) { return openParquetRows(in) },
	Describe: func(path string) (*data.Description, error) {
		if !readfile.Begins(path, parquetMagic) {
			return nil, nil
		}
		p, err := openParquet(path)
		if err != nil {
			return nil, err
		}
		return &data.Description{Form: "Parquet", Fields: p.fields()}, p.Close()
	},
}

// A parquetFile is an open Parquet file.
type parquetFile struct {
	name string
	f    *readfile.File
	file *parquet.File
}

// openParquet opens the Parquet file at path. The library panics at some damaged files; guard
// turns that into an error.
func openParquet(path string) (p *parquetFile, err error) {
	f, err := readfile.Open(path)
	if err != nil {
		return nil, config.FileError(path, err)
	}
	p = &parquetFile{name: path, f: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	defer p.guard(&err)
	if p.file, err = parquet.OpenFile(f, f.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
		return nil, p.damaged(err)
	}
	return p, nil
}

func (p *parquetFile) Close() error { return p.f.Close() }

// damaged is the error of a file that the library cannot read. It leaves out the library's own text,
// which may contain a value.
func (p *parquetFile) damaged(err error) error {
	var sys syscall.Errno
	if errors.As(err, &sys) {
		return fmt.Errorf("data: reading %s: %w", p.name, err)
	}
	return &config.Error{File: p.name, Found: "a Parquet file that cannot be read, damaged or encrypted", Allowed: "a whole Parquet file", Hint: "copy the file again", Err: err}
}

// guard turns a panic of the library into an error.
func (p *parquetFile) guard(err *error) {
	if r := recover(); r != nil {
		*err = p.damaged(fmt.Errorf("panic: %v", r))
	}
}

// fields returns the columns with their types.
func (p *parquetFile) fields() []data.FieldName {
	var out []data.FieldName
	for _, c := range p.file.Root().Columns() {
		out = append(out, data.FieldName{Name: c.Name(), Type: parquetType(c)})
	}
	return out
}

// parquetType is the type of a column, for people.
func parquetType(c *parquet.Column) string {
	switch {
	case !c.Leaf():
		return "nested"
	case c.Repeated():
		return "a list"
	}
	t := c.Type()
	if l := t.LogicalType(); l != nil && l.Value != nil {
		return l.String()
	}
	return t.Kind().String()
}

// parquetRows reads the columns of a Parquet file that are read, side by side.
type parquetRows struct {
	*parquetFile
	cells   []string
	null    []bool
	columns []parquetColumn
	group   int   // current row group
	left    int64 // rows of it that are still to come
	row     int
	read    int // of columns: those that the schema reads
}

// A parquetColumn reads one column, row group by row group.
type parquetColumn struct {
	name   string
	index  int // of the leaf
	text   func(parquet.Value) (string, bool)
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    []parquet.Value
	n, at  int // values in buf, and the next one
}

func openParquetRows(in *data.Input) (q *parquetRows, err error) {
	p, err := openParquet(in.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	defer p.guard(&err)
	if _, err := io.Copy(in.Sum, io.NewSectionReader(p.f, 0, p.file.Size())); err != nil {
		return nil, fmt.Errorf("data: reading %s: %w", in.Path, err)
	}
	fields := p.file.Root().Columns()
	names := make([]string, len(fields))
	for i, c := range fields {
		names[i] = c.Name()
	}
	columns, read, bad := in.Select(names, func(i int) bool { return parquetText(fields[i]) != nil })
	if bad != nil {
		bad.File = in.Path
		return nil, bad
	}
	q = &parquetRows{parquetFile: p, group: -1, read: read, cells: make([]string, len(columns)), null: make([]bool, len(columns))}
	for _, i := range columns {
		f := fields[i]
		text := parquetText(f)
		if text == nil {
			return nil, &config.Error{File: in.Path, Field: "column " + names[i], Found: "values of type " + parquetType(f), Allowed: "whole and other numbers, truth values, text, decimals and dates"}
		}
		q.columns = append(q.columns, parquetColumn{name: names[i], index: f.Index(), text: text, buf: make([]parquet.Value, parquetBatch)})
	}
	return q, nil
}

// parquetText returns the function that writes a value of a column as the CSV of the same table has it:
// numbers with the fewest digits that identify them, truth values as true and false, dates as 2006-01-02.
// It is nil for a type without such a text. The function returns false for a value without a text, such
// as bytes that are not UTF-8.
func parquetText(c *parquet.Column) func(parquet.Value) (string, bool) {
	if !c.Leaf() || c.Repeated() {
		return nil
	}
	t := c.Type()
	var logical format.LogicalTypeValue
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case nil:
	case *format.StringType, *format.EnumType, *format.JsonType:
		return func(v parquet.Value) (string, bool) {
			b := v.ByteArray()
			return string(b), isText(b)
		}
	case *format.IntType:
		switch {
		case l.IsSigned:
		case t.Kind() == parquet.Int32:
			return func(v parquet.Value) (string, bool) { return strconv.FormatUint(uint64(v.Uint32()), 10), true }
		default:
			return func(v parquet.Value) (string, bool) { return strconv.FormatUint(v.Uint64(), 10), true }
		}
	case *format.DateType:
		return func(v parquet.Value) (string, bool) {
			return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly), true
		}
	case *format.DecimalType:
		return decimalText(t.Kind(), int(l.Scale))
	default:
		return nil
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) (string, bool) { return strconv.FormatBool(v.Boolean()), true }
	case parquet.Int32:
		return func(v parquet.Value) (string, bool) { return strconv.FormatInt(int64(v.Int32()), 10), true }
	case parquet.Int64:
		return func(v parquet.Value) (string, bool) { return strconv.FormatInt(v.Int64(), 10), true }
	case parquet.Float:
		return func(v parquet.Value) (string, bool) {
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), true
		}
	case parquet.Double:
		return func(v parquet.Value) (string, bool) { return strconv.FormatFloat(v.Double(), 'g', -1, 64), true }
	case parquet.ByteArray:
		return func(v parquet.Value) (string, bool) {
			b := v.ByteArray()
			return string(b), isText(b)
		}
	}
	return nil
}

// decimalText writes whole numbers with the decimal point scale digits from the
// right.
func decimalText(kind parquet.Kind, scale int) func(parquet.Value) (string, bool) {
	if scale < 0 || scale > 1000 {
		return nil
	}
	point := func(n *big.Int) (string, bool) {
		s := new(big.Int).Abs(n).String()
		if scale > 0 {
			s = strings.Repeat("0", max(0, scale+1-len(s))) + s
			s = s[:len(s)-scale] + "." + s[len(s)-scale:]
		}
		if n.Sign() < 0 {
			s = "-" + s
		}
		return s, true
	}
	switch kind {
	case parquet.Int32:
		return func(v parquet.Value) (string, bool) { return point(big.NewInt(int64(v.Int32()))) }
	case parquet.Int64:
		return func(v parquet.Value) (string, bool) { return point(big.NewInt(v.Int64())) }
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(v parquet.Value) (string, bool) { // big-endian, two's complement
			b := v.ByteArray()
			n := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			return point(n)
		}
	}
	return nil
}

func (q *parquetRows) Next(row *data.Row) (f data.Fault, err error) {
	defer q.guard(&err)
	for q.left == 0 {
		groups := q.file.RowGroups()
		if q.group++; q.group >= len(groups) {
			return f, io.EOF
		}
		q.left = groups[q.group].NumRows()
		if q.left < 0 {
			return f, q.damaged(nil)
		}
		chunks := groups[q.group].ColumnChunks()
		for i := range q.columns {
			c := &q.columns[i]
			c.closeAll()
			c.pages = chunks[c.index].Pages()
		}
	}
	q.left--
	q.row++
	for i := range q.columns {
		c := &q.columns[i]
		v, err := c.next()
		if err != nil {
			return f, q.damaged(err)
		}
		q.null[i] = v.IsNull()
		q.cells[i] = ""
		if !q.null[i] {
			ok := true
			if q.cells[i], ok = c.text(v); !ok && f.Found == "" && i < q.read {
				f = data.Fault{Column: c.name, Found: "bytes that are not text", Allowed: "text in UTF-8"}
			}
		}
	}
	if f.Found != "" {
		row.HashCells(q.cells)
		return f, nil
	}
	return row.Cells(q.cells, q.null), nil
}

// next returns the next value of the column in the row group.
func (c *parquetColumn) next() (parquet.Value, error) {
	for c.at == c.n {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil { // io.EOF too: the group has more rows
				return parquet.Value{}, err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buf)
		c.n, c.at = n, 0
		if err != nil && err != io.EOF {
			return parquet.Value{}, err
		}
		if n == 0 {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		}
	}
	v := c.buf[c.at]
	c.at++
	return v, nil
}

func (c *parquetColumn) closeAll() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.pages != nil {
		c.pages.Close()
	}
	c.page, c.values, c.pages, c.n, c.at = nil, nil, nil, 0, 0
}

func (q *parquetRows) Place(data.Fault) *config.Error {
	return &config.Error{File: q.name, Row: q.row}
}

func (q *parquetRows) Close() error {
	for i := range q.columns {
		q.columns[i].closeAll()
	}
	return q.parquetFile.Close()
}
