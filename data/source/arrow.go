package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
)

// Arrow files (https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess Communication"): a
// file with a footer, which Feather of version 2 is too, or a stream of messages. Each message has metadata and a body:
// the schema, the values of a dictionary, or a record batch with the buffers of all columns. The columns are read
// buffer by buffer, a piece of the batch at a time. No number in the file is believed: memory follows the bytes that
// the file, or a buffer when decompressed, really has.
const (
	arrowMagic    = "ARROW1"
	arrowMark     = "\xff\xff\xff\xff" // before the length of a message
	arrowBatch    = 2048               // rows of a piece: a multiple of 8
	arrowMetadata = 64 << 20           // bytes of the metadata of a message
	arrowFields   = 100_000            // columns and fields of columns
	arrowText     = 256 << 20          // bytes of text of a piece, or of a dictionary
	arrowMost     = 1 << 24            // entries of a dictionary
)

var arrowFormat = data.Format{
	Name:  "an Arrow file",
	Ends:  []string{".arrow", ".arrows", ".feather"},
	Is:    func(path string, _ []byte) bool { return isArrow(path) },
	Magic: true,
	Divide: func(ctx context.Context, in *data.Input) (data.Pieces, error) {
		q, err := openArrowRows(ctx, in)
		if err != nil {
			return nil, err
		}
		return q, nil
	},
	Describe: func(ctx context.Context, path string) (*data.Description, error) {
		if !isArrow(path) {
			return nil, nil
		}
		a, err := openArrow(ctx, path)
		if err != nil {
			return nil, err
		}
		d := &data.Description{Form: "Arrow"}
		for _, f := range a.fields {
			d.Fields = append(d.Fields, data.FieldName{Name: f.name, Type: f.typ.name})
		}
		return d, a.f.Close()
	},
}

// isArrow: after the mark of a stream comes a length below 2²⁴, which has a zero byte and so is no text.
func isArrow(path string) bool {
	f, err := data.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	return string(head) == arrowMagic+"\x00\x00" || bytes.HasPrefix(head, []byte(arrowMark)) && head[7] == 0
}

// An arrowFile is an open Arrow file.
type arrowFile struct {
	ctx    context.Context // reading ends with it
	name   string
	f      *readfile.File
	fields []arrowField
	listed bool    // the footer lists the messages:
	blocks []int64 // where those are that are still to come
	pos    int64   // otherwise where the next one is
	taken  int64   // bytes of the messages so far
}

// An arrowMessage is a message behind the schema.
type arrowMessage struct {
	ctx  context.Context
	kind byte
	head flatTable
	body *io.SectionReader
	end  int64
}

// Kinds of messages.
const (
	arrowSchema      = 1
	arrowEntries     = 2 // of a dictionary
	arrowRecordBatch = 3
)

// openArrow opens the Arrow file at path and reads its schema.
func openArrow(ctx context.Context, path string) (a *arrowFile, err error) {
	f, err := data.Open(path)
	if err != nil {
		return nil, err
	}
	a = &arrowFile{ctx: ctx, name: path, f: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	head := make([]byte, len(arrowMagic))
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, a.damaged(err)
	}
	if string(head) == arrowMagic {
		return a, a.footer()
	}
	m, err := a.message(0)
	if err == io.EOF || err == nil && m.kind != arrowSchema {
		err = a.damaged(nil)
	}
	if err != nil {
		return nil, err
	}
	a.pos = m.end
	return a, a.schema(m.head)
}

// damaged is the error of a file that does not read.
func (a *arrowFile) damaged(err error) error {
	if failed := cmp.Or(a.f.Err(), a.ctx.Err()); failed != nil {
		return failed
	}
	var sys syscall.Errno
	var known *config.Error
	switch {
	case errors.As(err, &sys):
		return fmt.Errorf("data: reading %s: %w", a.name, err)
	case errors.As(err, &known):
		return err
	}
	return &config.Error{File: a.name, Found: "an Arrow file that cannot be read, damaged or cut short",
		Allowed: "a whole Arrow file", Hint: "copy the file again", Err: err}
}

func (a *arrowFile) refuse(found, allowed, hint string) error {
	return &config.Error{File: a.name, Found: found, Allowed: allowed, Hint: hint}
}

// footer reads the end of a file: the schema, and where the messages are.
func (a *arrowFile) footer() error {
	var end [4 + len(arrowMagic)]byte
	at := a.f.Size() - int64(len(end))
	if at < 0 {
		return a.damaged(nil)
	}
	if _, err := a.f.ReadAt(end[:], at); err != nil {
		return a.damaged(err)
	}
	size := int64(binary.LittleEndian.Uint32(end[:]))
	if string(end[4:]) != arrowMagic {
		return wrongEnd(a.name, "Arrow")
	}
	if size > min(at, arrowMetadata) {
		return a.damaged(nil)
	}
	b := make([]byte, size)
	if _, err := a.f.ReadAt(b, at-size); err != nil {
		return a.damaged(err)
	}
	foot := flatRoot(b)
	schema, ok := foot.table(1)
	a.listed = true
	for _, list := range []int{2, 3} { // dictionaries, record batches
		from, n := foot.vector(list, 24)
		for k := range n {
			a.blocks = append(a.blocks, foot.int64(from+24*k))
		}
	}
	if !ok || foot.bad {
		return a.damaged(nil)
	}
	return a.schema(schema)
}

// message reads the metadata of the message at a position; io.EOF: there is none.
func (a *arrowFile) message(pos int64) (m arrowMessage, err error) {
	left := a.f.Size() - pos
	if pos < 0 || left < 0 {
		return m, a.damaged(nil)
	}
	if left == 0 {
		return m, io.EOF
	}
	var head [8]byte
	if n, err := a.f.ReadAt(head[:min(left, 8)], pos); n < 4 {
		return m, a.damaged(err)
	}
	size, prefix := int64(int32(binary.LittleEndian.Uint32(head[:]))), int64(4)
	if string(head[:4]) == arrowMark {
		size, prefix = int64(int32(binary.LittleEndian.Uint32(head[4:]))), 8
	}
	if left -= prefix; size == 0 {
		return m, io.EOF
	}
	if size < 0 || size > min(left, arrowMetadata) {
		return m, a.damaged(nil)
	}
	b := make([]byte, size)
	if _, err := a.f.ReadAt(b, pos+prefix); err != nil {
		return m, a.damaged(err)
	}
	t := flatRoot(b)
	m.kind = t.byteAt(1)
	header, ok := t.table(2)
	m.head = header
	body, from := t.int64At(3), pos+prefix+size
	if !ok || t.bad || body < 0 || body > left-size {
		return m, a.damaged(nil)
	}
	if version := t.int16At(0, 0); version < 3 || version > 4 {
		return m, a.refuse(fmt.Sprintf("an Arrow file of metadata version %d", version+1), "version 4 or 5",
			"write the file again with a current library")
	}
	m.body, m.end, m.ctx = io.NewSectionReader(a.f, from, body), from+body, a.ctx
	return m, nil
}

// next is the next message behind the schema.
func (a *arrowFile) next() (m arrowMessage, err error) {
	if !a.listed {
		if m, err = a.message(a.pos); err == nil {
			a.pos = m.end
		}
		return m, err
	}
	if len(a.blocks) == 0 {
		return m, io.EOF
	}
	if m, err = a.message(a.blocks[0]); err == io.EOF {
		err = a.damaged(nil)
	}
	if a.taken += m.end - a.blocks[0]; err == nil && a.taken > a.f.Size() {
		err = a.damaged(nil) // some of them twice
	}
	a.blocks = a.blocks[1:]
	return m, err
}

// An arrowField is a column: how its values are stored, and how much of a record batch is its own.
type arrowField struct {
	name  string
	typ   columnType
	value arrowValue
	index *arrowValue // of an entry of the dictionary with the values; nil: the values stand in the batch
	dict  int64       // id of the dictionary

	nodes, buffers, views int // in a record batch
}

// An arrowValue says how values are stored.
type arrowValue struct {
	form   arrowForm
	width  int                            // bytes of a fixed one, or of an offset of text
	number func([]byte) float64           // of a fixed one; nil: text is used
	text   func(dst, value []byte) []byte // of a fixed one
}

type arrowForm byte

const (
	arrowUnknown arrowForm = iota
	arrowNull              // no value has anything
	arrowBits              // truth values
	arrowFixed             // width bytes each
	arrowOffsets           // text between two offsets
	arrowViews             // text in the view itself, or where it points to
)

// schema reads the columns.
func (a *arrowFile) schema(t flatTable) error {
	if t.int16At(0, 0) != 0 {
		return a.refuse("an Arrow file of big-endian numbers", "little-endian ones",
			"write the file on another machine, or as Parquet")
	}
	seen := 0
	for _, f := range t.tables(1) {
		field := arrowField{name: f.text(0), typ: arrowColumnType(f)}
		field.value, _ = arrowType(f)
		var ok bool
		if field.nodes, field.buffers, field.views, ok = arrowLayout(f, &seen, 0); !ok {
			return a.damaged(nil)
		}
		if d, ok := f.table(4); ok {
			field.typ.name, field.dict = "dictionary of "+field.typ.name, d.int64At(0)
			index := arrowInt(32, true)
			if i, ok := d.table(1); ok {
				index = arrowInt(i.int32At(0, 0), i.byteAt(1) != 0)
			}
			if field.index = &index; index.form == arrowUnknown {
				return a.damaged(nil)
			}
		}
		a.fields = append(a.fields, field)
	}
	if t.bad {
		return a.damaged(nil)
	}
	return nil
}

// arrowTypes are the names of the types in the metadata, by number.
var arrowTypes = []string{"none", "null", "int", "float", "binary", "string", "bool", "decimal", "date", "time",
	"timestamp", "interval", "list", "struct", "union",
	"fixed-size binary", "fixed-size list", "map", "duration", "large binary", "large string", "large list",
	"run-end encoded", "binary view", "string view", "list view", "large list view"}

// arrowKinds are the types of the metadata that are not read, by name.
var arrowKinds = map[string]typeKind{
	"null": typeNull, "duration": typeDuration, "time": typeTime, "interval": typeInterval, "float16": typeFloat16,
	"decimal":           typeDecimal,
	"fixed-size binary": typeBinary, "run-end encoded": typeRunEnds, "list": typeNested, "struct": typeNested,
	"union": typeNested, "fixed-size list": typeNested,
	"map": typeNested, "large list": typeNested, "list view": typeNested, "large list view": typeNested,
}

// arrowColumnType returns the type of the field. That of an extension, which names itself in the field's metadata, is
// not the one that is stored, except that JSON is text.
func arrowColumnType(f flatTable) columnType {
	for _, pair := range f.tables(6) {
		if name := pair.text(1); pair.text(0) == "ARROW:extension:name" && name != "arrow.json" {
			return columnType{typeExtension, name}
		}
	}
	v, name := arrowType(f)
	kind := arrowKinds[name]
	if v.form != arrowUnknown && kind != typeNull {
		kind = typeValue
	}
	return columnType{kind, name}
}

// arrowSchemaTypes returns the types of the columns in a schema as a message, which writers of Arrow put into the
// metadata of a Parquet file. Columns of the same name have the type of one that is not read.
func arrowSchemaTypes(message []byte) (types map[string]columnType, ok bool) {
	if bytes.HasPrefix(message, []byte(arrowMark)) {
		message = message[len(arrowMark):]
	}
	if len(message) < 4 {
		return nil, false
	}
	t := flatRoot(message[4:])
	schema, ok := t.table(2)
	if !ok || t.byteAt(1) != arrowSchema {
		return nil, false
	}
	types = map[string]columnType{}
	for _, f := range schema.tables(1) {
		name := f.text(0)
		if was, twice := types[name]; !twice || was.read() {
			types[name] = arrowColumnType(f)
		}
	}
	return types, !t.bad
}

// arrowLayout counts what the field of a record batch has: nodes, buffers, and buffers of views beyond those. It stops
// at a field that is nested too deeply, or of no known type.
func arrowLayout(f flatTable, seen *int, depth int) (nodes, buffers, views int, ok bool) {
	if *seen++; *seen > arrowFields || depth > 64 {
		return 0, 0, 0, false
	}
	if _, ok := f.table(4); ok { // the children are those of the dictionary
		return 1, 2, 0, true
	}
	nodes = 1
	typ := f.byteAt(2)
	switch {
	case typ == 0 || int(typ) >= len(arrowTypes):
		return 0, 0, 0, false
	case typ == 1 || typ == 22: // null, run-end encoded
	case slices.Contains([]byte{13, 16}, typ): // struct, fixed-size list
		buffers = 1
	case slices.Contains([]byte{4, 5, 19, 20, 25, 26}, typ): // text, list views
		buffers = 3
	case typ == 14: // union: types of the values, and offsets if it is dense
		if buffers = 1; unionMode(f) == 1 {
			buffers = 2
		}
	case typ == 23 || typ == 24: // views
		buffers, views = 2, 1
	default:
		buffers = 2
	}
	for _, c := range f.tables(5) {
		n, b, v, ok := arrowLayout(c, seen, depth+1)
		if !ok {
			return 0, 0, 0, false
		}
		nodes, buffers, views = nodes+n, buffers+b, views+v
	}
	return nodes, buffers, views, true
}

func unionMode(f flatTable) int {
	t, _ := f.table(3)
	return t.int16At(0, 0)
}

// arrowType returns how the values of a field are stored, and the name of their type.
func arrowType(f flatTable) (v arrowValue, name string) {
	number := f.byteAt(2)
	if int(number) >= len(arrowTypes) {
		return v, "unknown"
	}
	name = arrowTypes[number]
	t, _ := f.table(3)
	switch name {
	case "null":
		v.form = arrowNull
	case "bool":
		v.form = arrowBits
	case "int":
		bits, signed := t.int32At(0, 0), t.byteAt(1) != 0
		if v, name = arrowInt(bits, signed), fmt.Sprint("int", bits); !signed {
			name = "u" + name
		}
	case "float":
		switch t.int16At(0, 0) {
		case 1:
			single := func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
			v = arrowValue{arrowFixed, 4, func(b []byte) float64 { return shortest(single(b)) },
				func(dst, b []byte) []byte { return strconv.AppendFloat(dst, float64(single(b)), 'g', -1, 32) }}
			name = "float32"
		case 2:
			double := func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
			v = arrowValue{arrowFixed, 8, double, func(dst, b []byte) []byte {
				return strconv.AppendFloat(dst, double(b), 'g', -1, 64)
			}}
			name = "float64"
		default:
			name = "float16"
		}
	case "decimal":
		if bits, scale := t.int32At(2, 128), t.int32At(1, 0); scale >= 0 && scale <= maxScale &&
			slices.Contains([]int{32, 64, 128, 256}, bits) {
			v = arrowValue{arrowFixed, bits / 8, nil, func(dst, b []byte) []byte {
				return appendDecimal(dst, littleEndian(b), scale)
			}}
		}
	case "date":
		days := func(n int64, dst []byte) []byte { return time.Unix(n*86400, 0).UTC().AppendFormat(dst, time.DateOnly) }
		if t.int16At(0, 1) == 0 {
			v = arrowValue{arrowFixed, 4, nil, func(dst, b []byte) []byte {
				return days(int64(int32(binary.LittleEndian.Uint32(b))), dst)
			}}
		} else {
			const day = 86400_000
			v = arrowValue{arrowFixed, 8, nil, func(dst, b []byte) []byte {
				ms := int64(binary.LittleEndian.Uint64(b))
				return days((ms-((ms%day)+day)%day)/day, dst)
			}}
		}
	case "timestamp":
		if unit := t.int16At(0, 0); unit >= 0 && unit <= 3 {
			units := [...]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}
			utc := t.text(1) != "" // its values are in UTC, whatever the zone in which they are shown
			v = arrowValue{arrowFixed, 8, nil, func(dst, b []byte) []byte {
				return appendTime(dst, signedInt(b), units[unit], utc)
			}}
		}
	case "binary", "string":
		v = arrowValue{form: arrowOffsets, width: 4}
	case "large binary", "large string":
		v = arrowValue{form: arrowOffsets, width: 8}
	case "binary view", "string view":
		v = arrowValue{form: arrowViews, width: 16}
	}
	return v, name
}

// littleEndian are the digits of a number in two's complement.
func littleEndian(b []byte) []byte {
	be := bytes.Clone(b)
	slices.Reverse(be)
	n := new(big.Int).SetBytes(be)
	if be[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(be))))
	}
	return n.Append(nil, 10)
}

// arrowInt says how whole numbers of so many bits are stored.
func arrowInt(bits int, signed bool) arrowValue {
	if !slices.Contains([]int{8, 16, 32, 64}, bits) {
		return arrowValue{}
	}
	v := arrowValue{form: arrowFixed, width: bits / 8}
	if signed {
		v.number = func(b []byte) float64 { return float64(signedInt(b)) }
		v.text = func(dst, b []byte) []byte { return strconv.AppendInt(dst, signedInt(b), 10) }
	} else {
		v.number = func(b []byte) float64 { return float64(unsignedInt(b)) }
		v.text = func(dst, b []byte) []byte { return strconv.AppendUint(dst, unsignedInt(b), 10) }
	}
	return v
}

func unsignedInt(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func signedInt(b []byte) int64 {
	shift := 64 - 8*len(b)
	return int64(unsignedInt(b)<<shift) >> shift
}

// arrowRows divides the rows of an Arrow file.
type arrowRows struct {
	*arrowFile
	in      *data.Input
	columns []arrowColumn
	read    int // of columns: those that the schema reads
	names   []string
	all     arrowColumn // where a column after the last one would begin
	left    int64       // rows of the record batch that are still to come
	row     int
	err     error // after the last piece
	sum     *fileSum
	bare    bool // no column has values
}

// An arrowColumn reads one column, record batch by record batch.
type arrowColumn struct {
	arrowField
	number             bool // the cells are numbers
	node, buffer, view int  // the first ones in a record batch
	values             arrowCursor
	entries            *typedCells // of the dictionary
}

func openArrowRows(ctx context.Context, in *data.Input) (q *arrowRows, err error) {
	a, err := openArrow(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.f.Close()
		}
	}()
	names := make([]string, len(a.fields))
	for i, f := range a.fields {
		names[i] = f.name
	}
	columns, read, bad := in.Select(names, func(i int) bool { return a.fields[i].value.form != arrowUnknown })
	if bad != nil {
		bad.File = in.Path
		return nil, bad
	}
	q = &arrowRows{arrowFile: a, in: in, read: read}
	at := make([]arrowColumn, len(a.fields)+1)
	for i, f := range a.fields {
		at[i+1].node, at[i+1].buffer, at[i+1].view = at[i].node+f.nodes, at[i].buffer+f.buffers, at[i].view+f.views
	}
	q.all = at[len(a.fields)]
	var odd []refusedColumn
	some := false // of the columns limits the rows by its bytes; a batch of others has few rows
	for k, i := range columns {
		c := at[i]
		if c.arrowField = a.fields[i]; k < read && !c.typ.read() {
			odd = append(odd, refusedColumn{c.name, c.typ})
			continue
		}
		c.number = c.value.number != nil && in.Numbers(c.name)
		q.columns, q.names = append(q.columns, c), append(q.names, c.name)
		some = some || c.value.form != arrowNull || c.index != nil
	}
	if odd != nil {
		return nil, wrongTypes(in.Path, odd)
	}
	q.bare = !some
	q.sum = sumFile(ctx, a.f, a.name, in.Sum)
	return q, nil
}

func (q *arrowRows) Close() error {
	q.sum.stop()
	for i := range q.columns {
		q.columns[i].values.close()
	}
	return q.f.Close()
}

// guard turns a panic of a decompressor into an error.
func (a *arrowFile) guard(err *error) {
	if r := recover(); r != nil {
		*err = a.damaged(fmt.Errorf("panic: %v", r))
	}
}

func (q *arrowRows) Piece(used data.RowReader) (_ data.RowReader, err error) {
	if q.err != nil {
		return nil, q.err
	}
	defer q.guard(&err)
	for q.left == 0 {
		if err := q.ctx.Err(); err != nil {
			return nil, err
		}
		m, err := q.next()
		switch {
		case err == io.EOF:
			if err := q.sum.wait(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		case err != nil:
			return nil, err
		case m.kind == arrowEntries:
			err = q.dictionary(m)
		case m.kind == arrowRecordBatch:
			err = q.begin(m)
		default:
			err = q.damaged(nil)
		}
		if err != nil {
			return nil, err
		}
	}
	p, ok := used.(*typedPiece)
	if !ok {
		p = newTypedPiece(q.name, q.names, q.read)
	}
	n := int(min(q.left, arrowBatch))
	errs := make([]error, len(q.columns))
	for i := range q.columns {
		c := &q.columns[i]
		p.cells[i].clear()
		if errs[i] = c.cells(&p.cells[i], n); errs[i] != nil {
			errs[i] = q.failed(c.name, errs[i])
			break // the piece has no row then
		}
	}
	if q.err = p.begin(q.row, n, errs); q.err != nil {
		return nil, q.err
	}
	q.left -= int64(n)
	q.row += n
	return p, nil
}

// failed is the error of reading values.
func (a *arrowFile) failed(column string, err error) error {
	if err == errArrowText {
		return &config.Error{File: a.name, Field: "column " + column,
			Found: "more than 256 MiB of text in a dictionary or in 2048 rows", Allowed: "shorter values"}
	}
	return a.damaged(err)
}

// mostBare is how many rows a record batch has at most whose columns all have no values, and so no bytes. The error of
// more of them, as that of TooMany, comes before anything is written, and is for the owner's terminal only.
const mostBare = 1 << 16

// begin begins a record batch.
func (q *arrowRows) begin(m arrowMessage) error {
	b, err := newArrowRecords(m.ctx, m.head, m.body)
	if err != nil {
		return q.damaged(err)
	}
	if err := q.in.TooMany(int64(q.row) + b.rows); err != nil {
		return err
	}
	if q.bare && b.rows > mostBare {
		return q.refuse("no column with values among those of the schema", "at least one, in a table of many rows", "")
	}
	if q.left = b.rows; b.nodeCount != q.all.node || len(b.behind)-1 != q.all.view ||
		b.bufferCount != q.all.buffer+b.behind[q.all.view] {
		return q.damaged(nil)
	}
	for i := range q.columns {
		c := &q.columns[i]
		if c.index != nil && c.entries == nil && b.rows > 0 {
			return q.damaged(nil)
		}
		if err := c.values.open(b, c.stored(), c.node, c.buffer, c.view); err != nil {
			return q.failed(c.name, err)
		}
	}
	return nil
}

// stored says what a record batch has of the column.
func (c *arrowColumn) stored() arrowValue {
	if c.index != nil {
		return *c.index
	}
	return c.value
}

// dictionary reads the values of a dictionary for the columns that use it.
func (q *arrowRows) dictionary(m arrowMessage) error {
	id, delta := m.head.int64At(0), m.head.byteAt(2) != 0
	records, ok := m.head.table(1)
	if !ok || m.head.bad {
		return q.damaged(nil)
	}
	b, err := newArrowRecords(m.ctx, records, m.body)
	if err != nil {
		return q.damaged(err)
	}
	for i := range q.columns {
		c := &q.columns[i]
		if c.index == nil || c.dict != id {
			continue
		}
		if c.value.form == arrowNull && b.rows > 0 {
			return q.damaged(nil) // entries without bytes
		}
		if had := int64(len(c.entriesOf(delta).kind)); b.rows > arrowMost-had {
			return q.refuse(fmt.Sprintf("a dictionary of more than %d entries", arrowMost), "fewer",
				"write the column without a dictionary")
		}
		c.entries = c.entriesOf(delta)
		var values arrowCursor
		err := values.open(b, c.value, 0, 0, 0)
		for left := b.rows; err == nil && left > 0; left -= arrowBatch {
			err = values.cells(c.entries, int(min(left, arrowBatch)), c.number)
		}
		values.close()
		if err != nil {
			return q.failed(c.name, err)
		}
	}
	return nil
}

// entriesOf returns the entries to which those of a dictionary are added: a delta grows the one that is there.
func (c *arrowColumn) entriesOf(delta bool) *typedCells {
	if c.entries == nil || !delta {
		return &typedCells{}
	}
	return c.entries
}

// cells appends the next n values.
func (c *arrowColumn) cells(to *typedCells, n int) error {
	if c.index == nil {
		return c.values.cells(to, n, c.number)
	}
	v, from := &c.values, c.entries
	valid, err := v.bitmap(n)
	if err != nil {
		return err
	}
	indexes, err := v.fixed(n)
	if err != nil {
		return err
	}
	for k := range n {
		if valid != nil && !bit(valid, k) {
			to.null(c.number)
			continue
		}
		i := unsignedInt(indexes[k*c.index.width:][:c.index.width])
		if i >= uint64(len(from.kind)) { // a negative one is large
			return errArrow
		}
		to.kind = append(to.kind, from.kind[i])
		if c.number {
			to.numbers = append(to.numbers, from.numbers[i])
			continue
		}
		begin := 0
		if i > 0 {
			begin = from.end[i-1]
		}
		text := from.text[begin:from.end[i]]
		if len(text) > arrowText-len(to.text) {
			return errArrowText
		}
		to.text = append(to.text, text...)
		to.end, to.bad = append(to.end, len(to.text)), append(to.bad, from.bad[i])
	}
	return nil
}

// null appends a missing value.
func (c *typedCells) null(number bool) {
	c.kind = append(c.kind, data.Null)
	if number {
		c.numbers = append(c.numbers, 0)
	} else {
		c.end, c.bad = append(c.end, len(c.text)), append(c.bad, false)
	}
}

func bit(b []byte, k int) bool { return b[k/8]>>(k%8)&1 != 0 }

// arrowRecords are the buffers of a record batch, or of the values of a dictionary.
type arrowRecords struct {
	ctx context.Context
	flatTable
	body                 *io.SectionReader
	rows                 int64
	codec                int // -1: the buffers are not compressed
	nodes, nodeCount     int // where they are in the metadata, and their number
	buffers, bufferCount int
	behind               []int // of each column of views and those before it: the buffers that views point to
}

// Codecs of compressed buffers.
const (
	arrowLZ4  = 0
	arrowZstd = 1
)

var (
	errArrow     = errors.New("data: an Arrow file that does not read")
	errArrowText = errors.New("data: too much text")
)

func newArrowRecords(ctx context.Context, t flatTable, body *io.SectionReader) (*arrowRecords, error) {
	b := &arrowRecords{ctx: ctx, flatTable: t, body: body, rows: t.int64At(0), codec: -1}
	b.nodes, b.nodeCount = t.vector(1, 16)
	b.buffers, b.bufferCount = t.vector(2, 16)
	if c, ok := t.table(3); ok {
		if b.codec = int(c.byteAt(0)); b.codec > arrowZstd || c.byteAt(1) != 0 {
			return nil, errArrow
		}
	}
	b.behind = []int{0}
	at, views := t.vector(4, 8)
	for i := range views {
		n := t.int64(at + 8*i)
		if n < 0 || n > int64(b.bufferCount-b.behind[i]) {
			return nil, errArrow
		}
		b.behind = append(b.behind, b.behind[i]+int(n))
	}
	if t.bad || b.rows < 0 {
		return nil, errArrow
	}
	return b, nil
}

// An arrowCursor reads the values of one column of a record batch from their beginning.
type arrowCursor struct {
	arrowValue
	nulls          bool // some values are missing
	valid, data    arrowBuffer
	offsets        arrowBuffer
	at             int64    // the offset of the next text
	heap           [][]byte // what views point to
	flags, scratch []byte
}

// open begins a record batch, in which the column has these nodes and buffers.
func (c *arrowCursor) open(b *arrowRecords, v arrowValue, node, buffer, view int) error {
	c.arrowValue, c.at, c.heap = v, -1, nil
	if node >= b.nodeCount || view >= len(b.behind) {
		return errArrow
	}
	length, nulls := b.int64(b.nodes+16*node), b.int64(b.nodes+16*node+8)
	if length != b.rows {
		return errArrow
	}
	if v.form == arrowNull || length == 0 {
		return nil
	}
	buffer += b.behind[view]
	if err := c.valid.open(b, buffer); err != nil {
		return err
	}
	if c.nulls = nulls != 0 && c.valid.size > 0; nulls > 0 && !c.nulls {
		return errArrow
	}
	if v.form == arrowOffsets {
		buffer++
		if err := c.offsets.open(b, buffer); err != nil {
			return err
		}
	}
	if err := c.data.open(b, buffer+1); err != nil || v.form != arrowViews {
		return err
	}
	if view+1 >= len(b.behind) {
		return errArrow
	}
	size := 0
	for i := range b.behind[view+1] - b.behind[view] {
		var heap arrowBuffer
		err := heap.open(b, buffer+2+i)
		var text []byte
		if err == nil {
			text, err = heap.all(arrowText - size)
		}
		heap.close()
		if err != nil {
			return err
		}
		size += len(text)
		c.heap = append(c.heap, text)
	}
	return nil
}

func (c *arrowCursor) close() {
	c.valid.close()
	c.data.close()
	c.offsets.close()
}

// bitmap reads which of the next n values are there; nil: all.
func (c *arrowCursor) bitmap(n int) ([]byte, error) {
	if !c.nulls {
		return nil, nil
	}
	c.flags = sized(c.flags, (n+7)/8)
	return c.flags, c.valid.read(c.flags)
}

// fixed reads the next n values of width bytes.
func (c *arrowCursor) fixed(n int) ([]byte, error) {
	c.scratch = sized(c.scratch, n*c.width)
	return c.scratch, c.data.read(c.scratch)
}

func sized(b []byte, n int) []byte { return slices.Grow(b[:0], n)[:n] }

// cells appends the next n values. n is a multiple of 8 but at the end.
func (c *arrowCursor) cells(to *typedCells, n int, number bool) error {
	if c.form == arrowNull {
		for range n {
			to.null(number)
		}
		return nil
	}
	valid, err := c.bitmap(n)
	if err != nil {
		return err
	}
	there := func(k int) bool { return valid == nil || bit(valid, k) }
	// each appends the text of one value after the other.
	each := func(text func(k int)) {
		for k := range n {
			if !there(k) {
				to.null(false)
				continue
			}
			text(k)
			to.kind, to.end, to.bad = append(to.kind, data.Text), append(to.end, len(to.text)), append(to.bad, false)
		}
	}
	switch c.form {
	case arrowBits:
		bits := sized(c.scratch, (n+7)/8)
		if c.scratch = bits; c.data.read(bits) != nil {
			return errArrow
		}
		each(func(k int) { to.text = strconv.AppendBool(to.text, bit(bits, k)) })
	case arrowFixed:
		b, err := c.fixed(n)
		if err != nil {
			return err
		}
		at := func(k int) []byte { return b[k*c.width:][:c.width] }
		if !number {
			each(func(k int) { to.text = c.text(to.text, at(k)) })
			break
		}
		for k := range n {
			if !there(k) {
				to.null(true)
				continue
			}
			to.kind, to.numbers = append(to.kind, data.Number), append(to.numbers, c.number(at(k)))
		}
	case arrowOffsets:
		return c.between(to, n, there)
	case arrowViews:
		return c.viewed(to, n, there)
	}
	if len(to.text) > arrowText {
		return errArrowText
	}
	return nil
}

// between appends n texts, each from one offset to the next.
func (c *arrowCursor) between(to *typedCells, n int, there func(int) bool) error {
	if c.at < 0 {
		first := make([]byte, c.width)
		if err := c.offsets.read(first); err != nil {
			return err
		}
		if c.at = signedInt(first); c.at < 0 {
			return errArrow
		}
		if err := c.data.skip(c.at); err != nil {
			return err
		}
	}
	c.scratch = sized(c.scratch, n*c.width)
	if err := c.offsets.read(c.scratch); err != nil {
		return err
	}
	from := len(to.text)
	for k := range n {
		end := signedInt(c.scratch[k*c.width:][:c.width])
		if end < c.at {
			return errArrow
		}
		if end-c.at > int64(arrowText-from) {
			return errArrowText
		}
		size := int(end - c.at)
		c.at = end
		if !there(k) {
			if err := c.data.skip(int64(size)); err != nil {
				return err
			}
			to.null(false)
			continue
		}
		var err error
		if to.text, err = c.data.appendTo(to.text, size); err != nil {
			return err
		}
		to.kind, to.end, to.bad = append(to.kind, data.Text), append(to.end, len(to.text)),
			append(to.bad, !isText(to.text[from:]))
		from = len(to.text)
	}
	return nil
}

// viewed appends n texts: of up to 12 bytes in the view, of more behind it.
func (c *arrowCursor) viewed(to *typedCells, n int, there func(int) bool) error {
	b, err := c.fixed(n)
	if err != nil {
		return err
	}
	for k := range n {
		if !there(k) {
			to.null(false)
			continue
		}
		v := b[16*k:][:16]
		size := int64(binary.LittleEndian.Uint32(v))
		var text []byte
		if size <= 12 {
			text = v[4 : 4+size]
		} else {
			heap, at := int64(binary.LittleEndian.Uint32(v[8:])), int64(binary.LittleEndian.Uint32(v[12:]))
			if heap >= int64(len(c.heap)) || at+size > int64(len(c.heap[heap])) {
				return errArrow
			}
			text = c.heap[heap][at : at+size]
		}
		if len(text) > arrowText-len(to.text) {
			return errArrowText
		}
		to.text = append(to.text, text...)
		to.kind, to.end, to.bad = append(to.kind, data.Text), append(to.end, len(to.text)), append(to.bad, !isText(text))
	}
	return nil
}

// An arrowBuffer reads one buffer from its beginning, decompressed.
type arrowBuffer struct {
	in   io.Reader
	size int64 // in the file
	z    *zstd.Decoder
	l    *lz4.Reader
}

// open begins buffer i of a record batch.
func (b *arrowBuffer) open(of *arrowRecords, i int) error {
	if i >= of.bufferCount {
		return errArrow
	}
	at, size := of.int64(of.buffers+16*i), of.int64(of.buffers+16*i+8)
	if at < 0 || size < 0 || size > of.body.Size() || at > of.body.Size()-size {
		return errArrow
	}
	raw := io.NewSectionReader(of.body, at, size)
	b.in, b.size = data.Stoppable(of.ctx, raw), size
	if of.codec < 0 || size == 0 {
		return nil
	}
	var length [8]byte // decompressed; -1: it is not compressed
	if _, err := io.ReadFull(raw, length[:]); err != nil {
		return err
	}
	switch {
	case int64(binary.LittleEndian.Uint64(length[:])) == -1:
	case of.codec == arrowLZ4:
		if b.l == nil {
			b.l = lz4.NewReader(raw)
		} else {
			b.l.Reset(raw)
		}
		b.in = data.Stoppable(of.ctx, b.l)
	case b.z == nil:
		var err error
		if b.z, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow)); err != nil {
			return err
		}
		b.in = data.Stoppable(of.ctx, b.z)
	default:
		if err := b.z.Reset(raw); err != nil {
			return err
		}
		b.in = data.Stoppable(of.ctx, b.z)
	}
	return nil
}

func (b *arrowBuffer) close() {
	if b.z != nil {
		b.z.Close()
	}
}

func (b *arrowBuffer) read(to []byte) error {
	_, err := io.ReadFull(b.in, to)
	return err
}

func (b *arrowBuffer) skip(n int64) error {
	_, err := io.CopyN(io.Discard, b.in, n)
	return err
}

// appendTo appends the next n bytes.
func (b *arrowBuffer) appendTo(dst []byte, n int) ([]byte, error) {
	const most = 1 << 20
	for n > 0 {
		from, k := len(dst), min(n, most)
		dst = slices.Grow(dst, k)[:from+k]
		if err := b.read(dst[from:]); err != nil {
			return dst[:from], err
		}
		n -= k
	}
	return dst, nil
}

// all is the whole buffer, of at most so many bytes.
func (b *arrowBuffer) all(most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(b.in, int64(most)+1))
	if err == nil && len(text) > most {
		err = errArrowText
	}
	return text, err
}
