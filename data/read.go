package data

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/schema"
)

const (
	bufferSize = 64 << 10 // bytes read at once
	maxLine    = 8 << 20  // longest line of a file, in bytes: a block then has fewer than 2³¹ values
)

// Options say how to read a file. The zero value is for training and scoring
// under add-or-remove.
type Options struct {
	// Labels is the file of an IDX table's labels. "": the one beside the images
	// that has their name, with labels-idx1 instead of images-idx3.
	Labels string
	// Rows is the number of rows that the file must have, bad ones included, or of
	// units where the schema has such: replace-one, where the count is public (R9). 0:
	// any number.
	Rows int
	// KeepBad keeps a row that on_bad_row: drop leaves out in its place, with
	// Drop set and all values zero: for replace-one (R9), and where each input
	// row needs an answer.
	KeepBad bool
	// Unlabeled reads no labels, and the file need not have them: for
	// predictions. The table has no Y.
	Unlabeled bool
	// ByRow takes each row by itself: no unit is looked at, the file need not have that
	// column (but where it has no header), and all rows of a unit stay: for predictions
	// and scores.
	ByRow bool
	// Dropped, where it is not nil, is told of a table of which on_bad_row: drop leaves rows
	// out, before there is a table. Its error ends the reading.
	Dropped func(path string, stats *LoadStats) error
	// Formats are those that a file is offered to before it is taken for text, as
	// package data/source lists them. Package run/access sets them.
	Formats []Format
}

// dropped tells Dropped, where there is something to tell.
func (o Options) dropped(path string, stats *LoadStats) error {
	if stats.Dropped == 0 || o.Dropped == nil {
		return nil
	}
	return o.Dropped(Public(path), stats)
}

// skips says whether a column of the schema is not read.
func (o Options) skips(c schema.Column) bool {
	return c.Type == schema.TypeLabel && o.Unlabeled || c.Type == schema.TypeUnit && o.ByRow
}

// LoadStats counts what happened while reading. The counts are private data:
// they are shown only in the lab, and no run may depend on them.
type LoadStats struct {
	Rows    int            // records read, dropped ones included
	Dropped int            // records that did not parse and were left out
	Clamped map[string]int // values out of bounds in the rows that were kept, by column; "features" for LIBSVM
	// DroppedBy counts the dropped rows by the first column that did not parse, "" for a row
	// as a whole; nil for a packed table from before it was counted.
	DroppedBy map[string]int `json:",omitempty"`
}

// Read reads the table at path and encodes it under the schema. What it is, its
// first bytes say, not its name: a packed table, Parquet, or CSV, LIBSVM or IDX, as
// the schema says, plain or gzip. A path may also name a table of a database,
// postgres://user@host/database?table=NAME or people.db?table=NAME (SQLite). A schema
// for CSV is one for Parquet and for tables of databases too. Rows of LIBSVM make sparse blocks, others dense ones.
// It needs no more memory than the table, one block and some buffers; a packed
// table is mapped, where the system can, and should be closed after use. Its rows
// that were dropped keep their place, with Drop set, also without KeepBad.
//
// The gate is told the content before there is a table, and refuses it by an error, which
// Read returns. Only package run/access and tests call Read (R24).
//
// What is wrong with the table is a [*config.Error]. Under on_bad_row: stop the first
// bad row is one, which also says how many there are. There is no table beside an
// error.
//
// A table without rows, or one of which every row was dropped, is a table like any
// other: its neighbor has one row (R9).
func Read(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options) (*Table, *LoadStats, error) {
	if gate == nil {
		return nil, nil, errors.New("data: there is no gate; rows are opened through package run/access")
	}
	if e := s.Check(); e != nil {
		return nil, nil, fmt.Errorf("data: a schema that was not made by schema.Parse: %w", e)
	}
	if isPacked(path) {
		return openPacked(ctx, gate, s, path, opt)
	}
	b := newBuilder(s, opt)
	stats, content, err := readInto(ctx, gate.RowKey(), s, path, opt, b)
	if err == nil {
		err = gate.Admit(ctx, content)
	}
	if err != nil {
		return nil, nil, err
	}
	if b.units != nil {
		b.units.group(b.table)
	}
	return b.table, stats, nil
}

// A source gives the records of a table one by one.
type source interface {
	// next encodes the next record, or says why it is a bad one. io.EOF is the
	// end; after any other error there are no more records.
	next() (fault, error)
	// place is an error at the last record, with nothing but its place set.
	place(f fault) *config.Error
	close()
}

// openSource opens what is at path. The encoder gets the rows; all that belongs to
// the content goes to sum, and the raw rows go to raw.
func openSource(ctx context.Context, s *schema.Schema, path string, opt Options, enc *encoder, sum hash.Hash, raw *rowHasher) (source, error) {
	if opt.Labels != "" && s.Format.Kind != schema.KindIDX {
		return nil, &config.Error{File: opt.Labels, Found: "a file of labels", Allowed: "none, since format.kind is " + s.Format.Kind + ": labels stand beside the features"}
	}
	if form := columnForm(path); form != "" && s.Format.Kind != schema.KindCSV {
		return nil, &config.Error{File: Public(path), Found: form, Allowed: "what format.kind says, " + s.Format.Kind, Hint: "tables of named columns have the kind csv"}
	}
	if isSQL(path) {
		return newSQLSource(ctx, s, path, opt, enc, sum, raw)
	}
	if beginsWith(path, parquetMagic) {
		return newParquetSource(s, path, opt, enc, sum, raw)
	}
	if f := opt.format(s, path); f != nil {
		if !s.Format.Header {
			// The first row must not decide how all others are read (R9).
			return nil, &config.Error{File: path, Field: "format.header", Found: f.Name, Allowed: "header: true, since its rows name the columns", Hint: "write a file of text with a header"}
		}
		return newRowSource(f, s, path, opt, enc, sum, raw)
	}
	if s.Format.Kind == schema.KindIDX {
		return newIDXSource(s, path, opt, enc, sum, raw)
	}
	return newTextSource(s, path, opt, enc, sum, raw)
}

// format is the format of a file with named columns, nil for text and what is built in.
func (o Options) format(s *schema.Schema, path string) *Format {
	if s.Format.Kind != schema.KindCSV {
		return nil
	}
	return formatOf(path, o.Formats)
}

// columnForm says what kind of table of named columns is at path, other than text;
// "" for none.
func columnForm(path string) string {
	if isSQL(path) {
		return "a table of a database"
	}
	if beginsWith(path, parquetMagic) {
		return "a Parquet file"
	}
	return ""
}

// readInto reads the table at path into b, and hashes its raw rows under a key, where there is one.
func readInto(ctx context.Context, key []byte, s *schema.Schema, path string, opt Options, b *builder) (*LoadStats, *Content, error) {
	r := &reader{schema: s, opt: opt, name: Public(path), enc: newEncoder(s), build: b}
	r.stats.Clamped = map[string]int{}
	sum, raw := sha256.New(), newRowHasher(key)
	in, err := openSource(ctx, s, path, opt, r.enc, sum, raw)
	if err != nil {
		return nil, nil, err
	}
	defer in.close()
	if err := r.read(ctx, in); err != nil {
		return nil, nil, err
	}
	if err := opt.dropped(path, &r.stats); err != nil {
		return nil, nil, err
	}
	return &r.stats, &Content{Digest: [sha256.Size]byte(sum.Sum(nil)), Rows: raw.done()}, nil
}

// A reader is one call of Read.
type reader struct {
	schema *schema.Schema
	opt    Options
	name   string
	enc    *encoder
	build  *builder
	stats  LoadStats
}

func (r *reader) read(ctx context.Context, in source) error {
	var first *config.Error // the first bad row, under on_bad_row: stop
	bad := 0
	for {
		r.enc.begin() // not every record gets as far as the encoder
		f, err := in.next()
		if err == io.EOF || err != nil && first != nil {
			break
		}
		if err != nil {
			return err
		}
		r.stats.Rows++
		if r.opt.Rows > 0 && r.records() > r.opt.Rows {
			return r.rowsError("more " + r.schema.Counted() + " than that")
		}
		if f.found != "" {
			bad++
			switch {
			case r.schema.OnBadRow == schema.BadRowDrop:
				r.stats.Dropped++
				if r.stats.DroppedBy == nil {
					r.stats.DroppedBy = map[string]int{}
				}
				r.stats.DroppedBy[f.field]++
				if r.opt.KeepBad {
					if err := r.build.drop(r.enc); err != nil {
						return err
					}
				}
			case first == nil:
				first = in.place(f)
				first.Field, first.Found, first.Allowed = columnField(f.field), f.found, f.allowed
			}
		} else if first == nil {
			if err := r.build.add(r.enc); err != nil {
				return err
			}
			for _, i := range r.enc.clamped {
				r.stats.Clamped[r.clampName(i)]++
			}
		}
		if r.stats.Rows%BlockRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}

	switch {
	case first != nil:
		first.Hint = "correct the row, or the schema if the row is right"
		if bad > 1 {
			first.Hint = fmt.Sprintf("%d rows are bad, this is the first; %s", bad, first.Hint)
		}
		return first
	case r.opt.Rows > 0 && r.records() != r.opt.Rows:
		return r.rowsError(strconv.Itoa(r.records()))
	}
	if err := r.build.flush(); err != nil {
		return err
	}
	return ctx.Err()
}

// records is the number of rows so far, or of units where the rows belong to such.
func (r *reader) records() int {
	if g := r.build.units; g != nil {
		return len(g.ids)
	}
	return r.stats.Rows
}

func (r *reader) rowsError(found string) error {
	return rowsError(r.name, r.schema.Counted(), found, r.opt.Rows)
}

// rowsError: there are more or fewer rows, or units, than replace-one allows.
func rowsError(file, field, found string, want int) error {
	return &config.Error{File: file, Field: field, Found: found, Allowed: fmt.Sprintf("exactly %d, the number in the schema, under replace-one", want)}
}

func (r *reader) clampName(i int) string {
	if r.schema.Format.Kind == schema.KindLIBSVM && i < 0 {
		return "features"
	}
	return r.enc.cols[i].name
}

func columnField(name string) string {
	if name == "" {
		return ""
	}
	return "column " + name
}

// A textSource reads the lines of a CSV or LIBSVM file.
type textSource struct {
	in     *lines
	format *schema.Format
	parse  func(line []byte) fault
	raw    *rowHasher // of LIBSVM; the parser of CSV has its own
}

func newTextSource(s *schema.Schema, path string, opt Options, enc *encoder, sum io.Writer, raw *rowHasher) (source, error) {
	in, err := open(path, sum)
	if err != nil {
		return nil, err
	}
	t := &textSource{in: in, format: &s.Format}
	if s.Format.Kind == schema.KindLIBSVM {
		t.parse = (&libsvmParser{enc: enc, features: s.Features, unlabeled: opt.Unlabeled}).parse
		t.raw = raw
		t.raw.begin([]byte("libsvm"))
		return t, nil
	}
	p, err := newCSVParser(s, enc, in, opt, raw)
	if err != nil {
		in.close()
		return nil, err
	}
	t.parse = p.parse
	return t, nil
}

func (t *textSource) next() (fault, error) {
	line, err := t.in.record(t.format)
	switch {
	case err == errLongLine:
		return fault{cell: -1, found: "a line of more than 8 MiB", allowed: "records of one line each"}, nil
	case err != nil:
		return fault{}, err
	case !isText(line):
		return fault{cell: -1, found: "bytes that are not text (a binary file?)", allowed: "a text file in UTF-8"}, nil
	}
	t.raw.libsvm(line)
	return t.parse(line), nil
}

func (t *textSource) place(f fault) *config.Error {
	return &config.Error{File: t.in.name, Line: t.in.n, Column: f.at}
}

func (t *textSource) close() { t.in.close() }

// isText says whether a line is UTF-8 without NUL.
func isText(line []byte) bool { return bytes.IndexByte(line, 0) < 0 && utf8.Valid(line) }

// A file is open for reading, decompressed where it is gzip.
type file struct {
	name string
	f    *readfile.File
	r    io.Reader
}

// openFile opens the file at path. All its decompressed bytes go to sum.
func openFile(path string, sum io.Writer) (*file, error) {
	f, err := readfile.Open(path)
	if err != nil {
		return nil, config.FileError(path, err)
	}
	raw := bufio.NewReaderSize(f, bufferSize)
	in := &file{name: path, f: f, r: raw}
	magic, err := raw.Peek(2)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, config.FileError(path, err)
	}
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(raw)
		if err != nil {
			f.Close()
			return nil, in.readError(err)
		}
		in.r = z
	}
	if sum != nil {
		in.r = io.TeeReader(in.r, sum)
	}
	return in, nil
}

func (f *file) close() { f.f.Close() }

// lines reads a file line by line.
type lines struct {
	*file
	r    *bufio.Reader
	n    int    // number of the last line, from 1
	long []byte // for lines that do not fit the buffer, and the last one
}

var errLongLine = errors.New("data: line too long")

// open opens a file for reading by lines. All its decompressed bytes go to sum.
func open(path string, sum io.Writer) (*lines, error) {
	f, err := openFile(path, sum)
	if err != nil {
		return nil, err
	}
	l := &lines{file: f, r: bufio.NewReaderSize(f.r, bufferSize)}
	bom, err := l.r.Peek(3)
	if err != nil && err != io.EOF {
		f.close()
		return nil, l.readError(err)
	}
	if string(bom) == "\ufeff" {
		l.r.Discard(3)
	}
	return l, nil
}

// readError puts a failure of the file or the decompressor in words.
func (l *file) readError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return &config.Error{File: l.name, Found: "a gzip file that ends too early", Allowed: "a whole gzip file", Hint: "copy the file again", Err: err}
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt):
		return &config.Error{File: l.name, Found: "a damaged gzip file", Allowed: "a whole gzip file", Hint: "copy the file again", Err: err}
	}
	return fmt.Errorf("data: reading %s: %w", l.name, err)
}

// next is the next line with a '\n' at its end, also where the file has none. It
// is valid until the following call. After errLongLine, which keeps nothing of
// the line, reading goes on.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == nil {
		l.n++
		return line, nil
	}
	l.long = append(l.long[:0], line...)
	tooLong := false
	for err == bufio.ErrBufferFull {
		line, err = l.r.ReadSlice('\n')
		if tooLong = tooLong || len(l.long)+len(line) > maxLine; tooLong {
			l.long = l.long[:1]
		} else {
			l.long = append(l.long, line...)
		}
	}
	if err != nil && err != io.EOF {
		return nil, l.readError(err)
	}
	if len(l.long) == 0 {
		return nil, io.EOF
	}
	l.n++
	if tooLong {
		return nil, errLongLine
	}
	if l.long[len(l.long)-1] != '\n' {
		l.long = append(l.long, '\n')
	}
	return l.long, nil
}

// record is the next line that is a record: neither blank nor a comment.
func (l *lines) record(f *schema.Format) ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil {
			return nil, err
		}
		if f.Comment != "" && len(line) > len(f.Comment) && string(line[:len(f.Comment)]) == f.Comment {
			continue
		}
		switch {
		case len(line) == 1 || len(line) == 2 && line[0] == '\r':
			continue
		case (f.Trim || f.Kind == schema.KindLIBSVM) && len(bytes.TrimSpace(line)) == 0:
			continue
		}
		return line, nil
	}
}

// A builder collects encoded rows into blocks of a table.
type builder struct {
	table *Table
	emit  func(*Block) error // gets each block once it is full; the builder keeps nothing of it
	arena *Arena             // memory of the blocks
	dense bool
	label bool
	units *grouper // nil: each row is a unit

	n     int // rows in the block at hand
	x     []float32
	start []int32
	col   []int32
	val   []float32
	y     []float32
	norm  []float32
	gone  []bool // Drop
	any   bool   // a row of the block is dropped
}

func newBuilder(s *schema.Schema, opt Options) *builder {
	b := &builder{dense: s.Format.Kind != schema.KindLIBSVM, label: !opt.Unlabeled}
	_, unit := s.RowRule()
	b.table = &Table{Dim: s.Dim(), Classes: s.Classes(), NormBound: s.RowNorm, Unit: unit, Labeled: b.label}
	b.start = make([]int32, 1, BlockRows+1)
	b.gone = make([]bool, BlockRows)
	if s.UnitRows > 0 && !opt.ByRow {
		b.units = newGrouper(s.UnitRows)
	}
	b.arena = new(Arena)
	b.emit = func(k *Block) error {
		b.table.Blocks = append(b.table.Blocks, k)
		return nil
	}
	return b
}

// Empty is a table of the schema without rows.
func Empty(s *schema.Schema) *Table { return newBuilder(s, Options{}).table }

// add takes over the row that e has at hand.
func (b *builder) add(e *encoder) error {
	if err := b.begin(); err != nil {
		return err
	}
	if b.dense {
		row := b.x[b.n*b.table.Dim:][:b.table.Dim]
		for i, j := range e.col {
			row[j] = float32(e.val[i])
		}
	} else {
		for i, j := range e.col {
			if v := float32(e.val[i]); v != 0 {
				b.col = append(b.col, j)
				b.val = append(b.val, v)
			}
		}
	}
	b.done(e.y, e.norm)
	return b.whose(e, false)
}

// whose takes a note of the unit of the row that was added.
func (b *builder) whose(e *encoder, dropped bool) error {
	if b.units == nil {
		return nil
	}
	if len(b.units.of) == math.MaxInt32 {
		return &config.Error{Field: "unit", Found: "more rows than 2147483647", Allowed: "fewer, for a table with units of several rows"}
	}
	b.units.add(e, dropped)
	return nil
}

// drop adds a row that only keeps its place: the one that e has at hand, a bad one.
func (b *builder) drop(e *encoder) error {
	if err := b.begin(); err != nil {
		return err
	}
	b.gone[b.n], b.any = true, true
	b.done(0, 0)
	return b.whose(e, true)
}

func (b *builder) begin() error {
	if b.n == BlockRows {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if b.n > 0 {
		return nil
	}
	if b.dense {
		b.x = b.arena.Floats(BlockRows * b.table.Dim)
	}
	b.norm = b.arena.Floats(BlockRows)[:0]
	if b.label {
		b.y = b.arena.Floats(BlockRows)[:0]
	}
	return nil
}

func (b *builder) done(y, norm float32) {
	b.n++
	b.norm = append(b.norm, norm)
	if b.label {
		b.y = append(b.y, y)
	}
	if !b.dense {
		b.start = append(b.start, int32(len(b.col)))
	}
}

// flush hands over the block at hand.
func (b *builder) flush() error {
	if b.n == 0 {
		return nil
	}
	k := &Block{N: b.n, Dim: b.table.Dim, Y: b.y, Norm: b.norm}
	if b.dense {
		k.X = b.x
		if b.n < BlockRows {
			k.X = append([]float32(nil), b.x[:b.n*b.table.Dim]...)
		}
	} else {
		k.Start = append([]int32(nil), b.start...)
		k.Col = b.arena.Ints(len(b.col))
		copy(k.Col, b.col)
		k.Val = b.arena.Floats(len(b.val))
		copy(k.Val, b.val)
		b.start, b.col, b.val = b.start[:1], b.col[:0], b.val[:0]
	}
	if b.any {
		k.Drop = append([]bool(nil), b.gone[:b.n]...)
		clear(b.gone)
	}
	b.n, b.any, b.x, b.y, b.norm = 0, false, nil, nil, nil
	return b.emit(k)
}

// Dense is the table with dense blocks only: a copy of the sparse ones, the dense
// ones themselves. Labels, norms and drops are shared with t.
func (t *Table) Dense() *Table {
	d := *t
	d.Blocks = make([]*Block, len(t.Blocks))
	var memory Arena
	for i, b := range t.Blocks {
		d.Blocks[i] = b
		if b.Start == nil {
			continue
		}
		c := *b
		c.X = memory.Floats(b.N * b.Dim)
		for r := range b.N {
			for p := b.Start[r]; p < b.Start[r+1]; p++ {
				c.X[r*b.Dim+int(b.Col[p])] = b.Val[p]
			}
		}
		c.Start, c.Col, c.Val = nil, nil, nil
		d.Blocks[i] = &c
	}
	return &d
}
