package source

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/readfile"
)

const (
	parquetMagic = "PAR1"
	parquetBatch = 2048    // rows of a piece
	parquetCells = 1 << 19 // and at most its cells, of a table with many columns
	parquetRead  = 256     // values of a column that are read at once
)

var parquetFormat = data.Format{
	Name:  "a Parquet file",
	Ends:  []string{".parquet"},
	Is:    func(path string, _ []byte) bool { return data.Begins(path, parquetMagic) },
	Magic: true,
	Divide: func(ctx context.Context, in *data.Input) (data.Pieces, error) {
		q, err := openParquetRows(ctx, in)
		if err != nil {
			return nil, err
		}
		return q, nil
	},
	Describe: func(ctx context.Context, path string) (*data.Description, error) {
		if !data.Begins(path, parquetMagic) {
			return nil, nil
		}
		p, err := openParquet(ctx, path)
		if err != nil {
			return nil, err
		}
		return &data.Description{Form: "Parquet", Fields: p.fields()}, p.Close()
	},
}

// A parquetFile is an open Parquet file.
type parquetFile struct {
	ctx    context.Context // reading ends with it
	name   string
	f      *readfile.File
	file   *parquet.File
	chunks [][]format.ColumnMetaData // by row group and leaf, as the footer has them
}

// openParquet opens the Parquet file at path. The library panics at some damaged files; guard
// turns that into an error.
func openParquet(ctx context.Context, path string) (p *parquetFile, err error) {
	f, err := data.Open(path)
	if err != nil {
		return nil, err
	}
	p = &parquetFile{ctx: ctx, name: path, f: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	defer p.guard(&err)
	whole, chunks, err := openFooter(f)
	if err != nil {
		return nil, p.damaged(err)
	}
	p.chunks = chunks
	p.file, err = parquet.OpenFile(whole, whole.size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.ReadBufferSize(512)) // each column has one, for the headers of its pages
	if err != nil {
		return nil, p.damaged(err)
	}
	return p, nil
}

func (p *parquetFile) Close() error { return p.f.Close() }

// damaged is the error of a file that the library cannot read. It leaves out the library's own text,
// which may contain a value.
func (p *parquetFile) damaged(err error) error {
	if failed := cmp.Or(p.f.Err(), p.ctx.Err()); failed != nil {
		return failed
	}
	if err == errEnd {
		return wrongEnd(p.name, "Parquet")
	}
	var sys syscall.Errno
	if errors.As(err, &sys) {
		return fmt.Errorf("data: reading %s: %w", p.name, err)
	}
	return &config.Error{File: p.name, Found: "a Parquet file that cannot be read, damaged or encrypted",
		Allowed: "a whole Parquet file", Hint: "copy the file again", Err: err}
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

// parquetType is the type of a column in the words of Parquet.
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

// types returns the type of each column. Some writers note in the metadata what Parquet has no type for: those of Arrow
// their own schema, pandas and Spark a list of the columns.
func (p *parquetFile) types() ([]columnType, error) {
	noted := map[string]columnType{}
	if text, ok := p.file.Lookup("ARROW:schema"); ok {
		message, err := base64.StdEncoding.DecodeString(text)
		if noted, ok = arrowSchemaTypes(message); err != nil || !ok {
			return nil, p.damaged(err)
		}
	}
	text, _ := p.file.Lookup("pandas")
	noteDurations(noted, text, "columns")
	text, _ = p.file.Lookup("org.apache.spark.sql.parquet.row.metadata")
	noteDurations(noted, text, "fields")
	columns := p.file.Root().Columns()
	types := make([]columnType, len(columns))
	for i, c := range columns {
		types[i] = columnType{parquetKind(c), parquetType(c)}
		if t, ok := noted[c.Name()]; ok && !t.read() {
			types[i] = t
		}
	}
	return types, nil
}

// noteDurations notes the durations in a list of columns in JSON: those of pandas' type timedelta64, and of Spark's
// intervals, which are numbers in Parquet.
func noteDurations(noted map[string]columnType, text, list string) {
	var lists map[string]json.RawMessage
	var columns []struct {
		Name  any `json:"name"`
		Type  any `json:"type"`
		NumPy any `json:"numpy_type"`
	}
	if json.Unmarshal([]byte(text), &lists) != nil || json.Unmarshal(lists[list], &columns) != nil {
		return
	}
	for _, c := range columns {
		name, _ := c.Name.(string)
		for _, t := range []any{c.Type, c.NumPy} {
			if t, _ := t.(string); strings.HasPrefix(t, "timedelta64") || strings.HasPrefix(t, "interval ") {
				noted[name] = columnType{typeDuration, t}
			}
		}
	}
}

// parquetKind returns the kind of the type that Parquet has for a column.
func parquetKind(c *parquet.Column) typeKind {
	if !c.Leaf() || c.Repeated() {
		return typeNested
	}
	t := c.Type()
	if l := t.LogicalType(); l != nil {
		switch l.Value.(type) {
		case *format.NullType:
			return typeNull
		case *format.TimeType:
			return typeTime
		case *format.DecimalType:
			if parquetText(c) == nil {
				return typeDecimal
			}
		case *format.Float16Type:
			return typeFloat16
		}
	}
	switch {
	case parquetText(c) != nil:
		return typeValue
	case t.Kind() == parquet.Int96:
		return typeInt96
	case t.Kind() == parquet.FixedLenByteArray:
		return typeBinary
	}
	return typeUnknown
}

// parquetRows divides the rows of a Parquet file. The columns are read at the same time.
type parquetRows struct {
	*parquetFile
	workers int
	columns []parquetColumn
	group   int   // current row group
	left    int64 // rows of it that are still to come
	row     int
	read    int   // of columns: those that the schema reads
	err     error // after the last piece
	sum     *fileSum
	spare   pageBuffers
	buffers [][]parquet.Value // one for each worker
}

// A parquetColumn reads one column, row group by row group.
type parquetColumn struct {
	name   string
	index  int                         // of the leaf
	number func(parquet.Value) float64 // nil: text is used
	bulk   numbersOf                   // the same of many values of a page
	text   func([]byte, parquet.Value) ([]byte, bool)
	null   bool // values may be missing
	plain  *plainPages
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	// In place of values, from at to end, what is still to come of a page without a missing number: the numbers
	// themselves, or their places in a dictionary of them.
	direct  encoding.Values
	places  []int32
	at, end int
}

func openParquetRows(ctx context.Context, in *data.Input) (q *parquetRows, err error) {
	p, err := openParquet(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	defer p.guard(&err)
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
	types, err := p.types()
	if err != nil {
		return nil, err
	}
	var odd []refusedColumn
	q = &parquetRows{parquetFile: p, workers: in.Workers(), group: -1, read: read}
	for k, i := range columns {
		f := fields[i]
		c := parquetColumn{name: names[i], index: f.Index(), text: parquetText(f), null: f.Optional()}
		if k < read && !types[i].read() {
			odd = append(odd, refusedColumn{c.name, types[i]})
			continue
		}
		if err := p.oddCodec(c.index, c.name); err != nil {
			return nil, err
		}
		if in.Numbers(c.name) {
			c.number, c.bulk = parquetNumbers(f)
		}
		q.columns = append(q.columns, c)
	}
	if odd != nil {
		return nil, wrongTypes(in.Path, odd)
	}
	if err := in.TooMany(p.file.NumRows()); err != nil {
		return nil, err
	}
	q.sum = sumFile(ctx, p.f, p.name, in.Sum)
	return q, nil
}

// numbersOf appends the numbers of some values of a page to own: of those from from to to, or of those at places.
type numbersOf func(own []float64, v encoding.Values, places []int32, from, to int) []float64

// parquetNumbers returns the functions that give the numbers with the texts of parquetText, of one value and of many;
// nil for a type whose text may be no number.
func parquetNumbers(c *parquet.Column) (one func(parquet.Value) float64, many numbersOf) {
	t, unsigned := c.Type(), false
	if l := t.LogicalType(); l != nil && l.Value != nil {
		i, ok := l.Value.(*format.IntType)
		if !ok {
			return nil, nil
		}
		unsigned = !i.IsSigned
	}
	switch kind := t.Kind(); {
	case kind == parquet.Double:
		return parquet.Value.Double, numbers((*encoding.Values).Double, number)
	case kind == parquet.Float:
		return func(v parquet.Value) float64 { return shortest(v.Float()) }, shortests
	case kind == parquet.Int32 && unsigned:
		return func(v parquet.Value) float64 { return float64(v.Uint32()) }, numbers((*encoding.Values).Uint32, number)
	case kind == parquet.Int32:
		return func(v parquet.Value) float64 { return float64(v.Int32()) }, numbers((*encoding.Values).Int32, number)
	case kind == parquet.Int64 && unsigned:
		return func(v parquet.Value) float64 { return float64(v.Uint64()) }, numbers((*encoding.Values).Uint64, number)
	case kind == parquet.Int64:
		return func(v parquet.Value) float64 { return float64(v.Int64()) }, numbers((*encoding.Values).Int64, number)
	}
	return nil, nil
}

func number[T int32 | uint32 | int64 | uint64 | float64](v T) float64 { return float64(v) }

func numbers[T any](of func(*encoding.Values) []T, number func(T) float64) numbersOf {
	return func(own []float64, v encoding.Values, places []int32, from, to int) []float64 {
		values := of(&v)
		if places == nil {
			for _, x := range values[from:to] {
				own = append(own, number(x))
			}
			return own
		}
		for _, k := range places[from:to] {
			own = append(own, number(values[k]))
		}
		return own
	}
}

// shortest is the number with the fewest digits that identify x among the float32.
func shortest(x float32) float64 {
	var v [1]float64
	kern.Decimals(v[:], []float32{x})
	if v[0] == v[0] {
		return v[0]
	}
	return shortestByText(x)
}

func shortestByText(x float32) float64 {
	var text [32]byte
	v, _ := strconv.ParseFloat(view(strconv.AppendFloat(text[:0], float64(x), 'g', -1, 32)), 64)
	return v
}

// shortests are numbers of float32 values.
func shortests(own []float64, v encoding.Values, places []int32, from, to int) []float64 {
	values, n := v.Float(), len(own)
	own = slices.Grow(own, to-from)[:n+to-from]
	if places == nil {
		fewest(own[n:], values[from:to])
		return own
	}
	var some [parquetRead]float32
	for from < to {
		k := min(to-from, len(some))
		for i, p := range places[from : from+k] {
			some[i] = values[p]
		}
		fewest(own[n:n+k], some[:k])
		n, from = n+k, from+k
	}
	return own
}

// fewest sets dst to the shortest of each number of x.
func fewest(dst []float64, x []float32) {
	kern.Decimals(dst, x)
	for i, v := range dst {
		if v != v {
			dst[i] = shortestByText(x[i])
		}
	}
}

// parquetText returns the function that appends a value of a column as the CSV of the same table has it:
// numbers with the fewest digits that identify them, truth values as true and false, dates as 2006-01-02 and times as
// 2006-01-02T15:04:05.
// It is nil for a type without such a text. The function returns false for a value without a text, such
// as bytes that are not UTF-8.
func parquetText(c *parquet.Column) func([]byte, parquet.Value) ([]byte, bool) {
	if !c.Leaf() || c.Repeated() {
		return nil
	}
	type value = parquet.Value
	always := func(text func([]byte, value) []byte) func([]byte, value) ([]byte, bool) {
		return func(dst []byte, v value) ([]byte, bool) { return text(dst, v), true }
	}
	bytes := func(dst []byte, v value) ([]byte, bool) {
		b := v.ByteArray()
		return append(dst, b...), isText(b)
	}
	t := c.Type()
	var logical format.LogicalTypeValue
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case nil:
	case *format.StringType, *format.EnumType, *format.JsonType:
		return bytes
	case *format.NullType: // a value that is there is none of the type
		return func(dst []byte, _ value) ([]byte, bool) { return dst, false }
	case *format.IntType:
		switch {
		case l.IsSigned:
		case t.Kind() == parquet.Int32:
			return always(func(dst []byte, v value) []byte { return strconv.AppendUint(dst, uint64(v.Uint32()), 10) })
		default:
			return always(func(dst []byte, v value) []byte { return strconv.AppendUint(dst, v.Uint64(), 10) })
		}
	case *format.DateType:
		return always(func(dst []byte, v value) []byte {
			return time.Unix(int64(v.Int32())*86400, 0).UTC().AppendFormat(dst, time.DateOnly)
		})
	case *format.TimestampType:
		if text := timestampText(l); text != nil && t.Kind() == parquet.Int64 {
			return always(text)
		}
		return nil
	case *format.DecimalType:
		if text := decimalText(t.Kind(), int(l.Scale)); text != nil {
			return always(text)
		}
		return nil
	default:
		return nil
	}
	switch t.Kind() {
	case parquet.Boolean:
		return always(func(dst []byte, v value) []byte { return strconv.AppendBool(dst, v.Boolean()) })
	case parquet.Int32:
		return always(func(dst []byte, v value) []byte { return strconv.AppendInt(dst, int64(v.Int32()), 10) })
	case parquet.Int64:
		return always(func(dst []byte, v value) []byte { return strconv.AppendInt(dst, v.Int64(), 10) })
	case parquet.Float:
		return always(func(dst []byte, v value) []byte { return strconv.AppendFloat(dst, float64(v.Float()), 'g', -1, 32) })
	case parquet.Double:
		return always(func(dst []byte, v value) []byte { return strconv.AppendFloat(dst, v.Double(), 'g', -1, 64) })
	case parquet.ByteArray:
		return bytes
	}
	return nil
}

// timestampText writes times; nil for a unit that is not known.
func timestampText(l *format.TimestampType) func([]byte, parquet.Value) []byte {
	var unit time.Duration
	switch l.Unit.Value.(type) {
	case *format.MilliSeconds:
		unit = time.Millisecond
	case *format.MicroSeconds:
		unit = time.Microsecond
	case *format.NanoSeconds:
		unit = time.Nanosecond
	default:
		return nil
	}
	return func(dst []byte, v parquet.Value) []byte { return appendTime(dst, v.Int64(), unit, l.IsAdjustedToUTC) }
}

// decimalText writes whole numbers with the decimal point scale digits from the
// right.
func decimalText(kind parquet.Kind, scale int) func([]byte, parquet.Value) []byte {
	if scale < 0 || scale > maxScale {
		return nil
	}
	whole := func(dst []byte, n int64) []byte {
		var text [24]byte
		return appendDecimal(dst, strconv.AppendInt(text[:0], n, 10), scale)
	}
	switch kind {
	case parquet.Int32:
		return func(dst []byte, v parquet.Value) []byte { return whole(dst, int64(v.Int32())) }
	case parquet.Int64:
		return func(dst []byte, v parquet.Value) []byte { return whole(dst, v.Int64()) }
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(dst []byte, v parquet.Value) []byte { // big-endian, two's complement
			b := v.ByteArray()
			n := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			return appendDecimal(dst, n.Append(nil, 10), scale)
		}
	}
	return nil
}

const maxScale = 1000 // digits of a decimal after the point

// appendDecimal appends a whole number, perhaps with a minus, with the decimal point scale digits from the right.
func appendDecimal(dst, digits []byte, scale int) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	whole := len(digits) - scale
	if scale == 0 {
		return append(dst, digits...)
	}
	if whole <= 0 {
		dst = append(dst, "0."...)
		for range -whole {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(append(dst, digits[:whole]...), '.')
	return append(dst, digits[whole:]...)
}

func (q *parquetRows) Piece(used data.RowReader) (_ data.RowReader, err error) {
	if q.err != nil {
		return nil, q.err
	}
	defer q.guard(&err)
	for q.left == 0 {
		groups := q.file.RowGroups()
		if q.group++; q.group >= len(groups) {
			if err := q.sum.wait(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		q.left = groups[q.group].NumRows()
		if q.left < 0 {
			return nil, q.damaged(nil)
		}
		chunks := groups[q.group].ColumnChunks()
		for i := range q.columns {
			c := &q.columns[i]
			c.closeAll()
			c.plain = newPlainPages(q.ctx, q.f, &q.chunks[q.group][c.index], c.null, q.left, &q.spare)
			c.pages = chunks[c.index].(*parquet.FileColumnChunk).PagesFrom(c.plain)
		}
	}
	p, ok := used.(*typedPiece)
	if !ok {
		names := make([]string, len(q.columns))
		for i, c := range q.columns {
			names[i] = c.name
		}
		p = newTypedPiece(q.name, names, q.read)
	}
	n := int(min(q.left, parquetBatch, int64(max(1, parquetCells/max(1, len(q.columns))))))
	errs := make([]error, len(q.columns))
	var next atomic.Int32
	var all sync.WaitGroup
	for w := range min(q.workers, len(q.columns)) {
		if w == len(q.buffers) {
			q.buffers = append(q.buffers, make([]parquet.Value, parquetRead))
		}
		buf := q.buffers[w]
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(q.columns); i = int(next.Add(1)) - 1 {
				errs[i] = q.column(i, &p.cells[i], n, buf)
			}
		})
	}
	all.Wait()
	q.err = p.begin(q.row, n, errs)
	q.left -= int64(n)
	if q.row += p.rows; p.rows == 0 {
		return nil, q.err
	}
	return p, nil
}

// column reads the next n values of column i of the row group, through buf, up to one that cannot be read.
func (q *parquetRows) column(i int, cells *typedCells, n int, buf []parquet.Value) (err error) {
	defer q.guard(&err)
	c := &q.columns[i]
	cells.clear()
	for len(cells.kind) < n {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil { // io.EOF too: the group has more rows
				return q.damaged(err)
			}
			c.page, c.values = page, page.Values()
			c.whole(page)
		}
		if c.at < c.end {
			k := min(c.end-c.at, n-len(cells.kind))
			cells.kind = append(cells.kind, allNumbers[:k]...)
			cells.numbers = c.bulk(slices.Grow(cells.numbers, k), c.direct, c.places, c.at, c.at+k)
			if c.at += k; c.at == c.end {
				c.release()
			}
			continue
		}
		k, err := c.values.ReadValues(buf[:min(len(buf), n-len(cells.kind))])
		if err != nil && err != io.EOF {
			return q.damaged(err)
		}
		if k == 0 {
			c.release()
		}
		c.add(cells, buf[:k])
	}
	return nil
}

// allNumbers are the kinds of a piece without a missing number.
var allNumbers = slices.Repeat([]data.Kind{data.Number}, parquetBatch)

// whole sets direct if no number of the page is missing.
func (c *parquetColumn) whole(page parquet.Page) {
	if c.bulk == nil {
		return
	}
	values, n := page.Data(), page.NumValues() // without those that are missing
	size := int64(4)
	if k := values.Kind(); k == encoding.Double || k == encoding.Int64 {
		size = 8
	}
	if values.Size() != n*size {
		return
	}
	c.direct, c.end = values, int(n)
	if d := page.Dictionary(); d != nil {
		c.direct, c.places = d.Page().Data(), values.Int32()
	}
}

// release frees the page.
func (c *parquetColumn) release() {
	parquet.Release(c.page)
	c.page, c.values = nil, nil
	c.direct, c.places, c.at, c.end = encoding.Values{}, nil, 0, 0
}

// add appends values of column c.
func (c *parquetColumn) add(p *typedCells, values []parquet.Value) {
	from := len(p.kind)
	p.kind = slices.Grow(p.kind, len(values))[:from+len(values)]
	kind := p.kind[from:]
	for i := range values {
		if kind[i] = data.Text; values[i].IsNull() {
			kind[i] = data.Null
		} else if c.number != nil {
			kind[i] = data.Number
		}
	}
	if c.number == nil {
		for i, v := range values {
			good := true
			if kind[i] == data.Text {
				p.text, good = c.text(p.text, v)
			}
			p.end, p.bad = append(p.end, len(p.text)), append(p.bad, !good)
		}
		return
	}
	p.numbers = slices.Grow(p.numbers, len(values))[:from+len(values)]
	numbers := p.numbers[from:]
	for i := range values {
		switch {
		case kind[i] == data.Null:
			numbers[i] = 0
		default:
			numbers[i] = c.number(values[i])
		}
	}
}

func (c *parquetColumn) closeAll() {
	if c.page != nil {
		c.release()
	}
	if c.pages != nil {
		c.pages.Close()
		c.plain.close()
	}
	c.pages, c.plain = nil, nil
}

func (q *parquetRows) Close() error {
	q.sum.stop()
	for i := range q.columns {
		q.columns[i].closeAll()
	}
	q.spare.close()
	return q.parquetFile.Close()
}
