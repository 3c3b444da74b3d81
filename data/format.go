package data

import (
	"bytes"
	"context"
	"fmt"
	"hash"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// A Format reads tables of one form. Package data/source lists the formats.
type Format struct {
	Name string // as in "a JSON Lines file", for errors
	Kind string // format.kind of its schemas; "": csv, rows of named columns
	// Ends are how names of its files end, as ".jsonl": a command that takes a spec or a table goes by them.
	Ends []string
	// Is reports whether the table at path has this form. head is the beginning of a file, decompressed.
	// nil: the format reads every table of the kind that no other format claims.
	Is func(path string, head []byte) bool
	// Magic says that no row of text can look like what Is looks for. A format without it needs
	// a schema with header: true, since the first row must not decide how all others are read (R9).
	Magic bool
	// Open opens a table that is read row by row. Divide opens one that several workers read in pieces;
	// a format has one of the two.
	Open   func(ctx context.Context, in *Input) (Rows, error)
	Divide func(ctx context.Context, in *Input) (Pieces, error)
	// Describe describes the table at path by its header alone. It returns nil for a table of
	// another form. nil: no schema is made from its header.
	Describe func(ctx context.Context, path string) (*Description, error)
}

// Rows reads a table row by row.
type Rows interface {
	RowReader
	Close() error
}

// A RowReader reads rows.
type RowReader interface {
	// Next puts the next row into row, or returns what is wrong with that row. io.EOF is the
	// end; any other error ends the reading.
	Next(row *Row) (Fault, error)
	// Place returns an error that names the position of a fault in the last row, and nothing else.
	Place(f Fault) *config.Error
}

// Pieces divides a table into pieces of consecutive rows.
type Pieces interface {
	// Piece returns the next piece. io.EOF is the end; any other error ends the reading. Other
	// goroutines read the pieces, each one, while Piece cuts the next. used is a piece of the same table
	// that was read to its end, whose memory Piece may use again, or nil.
	Piece(used RowReader) (RowReader, error)
	Close() error
}

// serial divides a table that is read row by row: a piece must be read before the next.
type serial struct {
	Rows
	left int // rows of the piece
	err  error
}

func (s *serial) Piece(RowReader) (RowReader, error) {
	s.left = BlockRows
	return s, s.err
}

func (s *serial) Next(row *Row) (f Fault, err error) {
	if s.left == 0 {
		return f, io.EOF
	}
	s.left--
	f, s.err = s.Rows.Next(row)
	return f, s.err
}

// A Fault says why a row is bad. The zero value is no fault.
type Fault struct {
	Cell    int    // number of the cell in the row, from 1; 0: not known
	Byte    int    // byte within the line, from 1; 0: not known
	Column  string // name of the column; "": the row as a whole
	Found   string // a kind, never a value
	Allowed string
}

// An Input is what a format knows of the table that it opens.
type Input struct {
	Path    string
	Schema  *schema.Schema
	Options Options
	Sum     hash.Hash // SHA-256 of the content; the bytes that File reads go to it
	ctx     context.Context
	limit   rowLimit
	row     *Row
}

// File opens the table's file. Reading it ends with the context that the format was opened with.
func (in *Input) File() (*File, error) { return OpenFile(in.ctx, in.Path, in.Sum) }

// Beside opens another file of the table, whose bytes go to sum.
func (in *Input) Beside(path string, sum io.Writer) (*File, error) {
	return OpenFile(in.ctx, path, sum)
}

// Workers is how many goroutines may read the table at the same time.
func (in *Input) Workers() int {
	if in.Options.workers > 0 {
		return in.Options.workers
	}
	return runtime.GOMAXPROCS(0)
}

// PieceBytes is how long a piece of a text should be.
func (in *Input) PieceBytes() int {
	if in.Options.piece > 0 {
		return in.Options.piece
	}
	return 256 << 10
}

// Reads says whether a column of the schema is read.
func (in *Input) Reads(c schema.Column) bool {
	return c.Type != schema.TypeIgnore && !in.Options.skips(c)
}

// Match returns the position among names of each column of the schema, −1 for a label or a unit that is missing and not
// read. Every other column must be there, and a further one only if the schema ignores it. The error names all columns
// of the schema that are wrong, and gives the positions of others: what should be their names may be cells of rows, in
// a file without a header or with other line ends, and in what was made of it.
func (in *Input) Match(names []string) ([]int, *config.Error) {
	where, times := make(map[string]int, len(names)), make(map[string]int, len(names))
	for i := len(names) - 1; i >= 0; i-- {
		where[names[i]] = i
		times[names[i]]++
	}
	at := make([]int, len(in.Schema.Columns))
	known := make(map[string]bool, len(at))
	var missing, twice, other []string
	for i, c := range in.Schema.Columns {
		known[c.Name] = true
		k, ok := where[c.Name]
		if !ok && !in.Options.skips(c) {
			missing = append(missing, c.Name)
		}
		if at[i] = k; !ok {
			at[i] = -1
		}
		if times[c.Name] > 1 {
			twice = append(twice, c.Name)
		}
	}
	if in.Schema.OtherColumns != schema.OtherIgnore {
		for i, n := range names {
			if !known[n] {
				other = append(other, strconv.Itoa(i+1))
			}
		}
	}
	if len(missing) == len(at) { // the first row, most likely
		twice, other = nil, nil
	}
	return at, wrongColumns(missing, twice, other, in.Options.ByRow)
}

// wrongColumns is the error of a header, nil if nothing is wrong with it. The schema of a table to predict or to score
// is settled, so the table has to change.
func wrongColumns(missing, twice, other []string, settled bool) *config.Error {
	hint := "add it to the schema, with type: ignore if it is not to be used, or write other_columns: ignore"
	further := strings.NewReplacer("add it", "add the further ones", "it is", "they are").Replace(hint)
	if settled {
		hint, further = "take it out of the table", "take the further ones out of the table"
	}
	if len(missing)+len(twice)+len(other) == 1 {
		switch {
		case len(missing) > 0:
			return &config.Error{Field: columnField(missing[0]), Found: "no such column in the header",
				Allowed: "a header with every column of the schema", Hint: rangeHint(missing)}
		case len(twice) > 0:
			return &config.Error{Field: columnField(twice[0]), Found: "the column a second time in the header",
				Allowed: "each column once", Hint: "give one of them another name"}
		}
		return &config.Error{Err: fmt.Errorf("column %s of the header is not in the schema; %s", other[0], hint)}
	}
	var found []string
	for _, w := range []struct {
		what  string
		names []string
	}{{"no columns ", missing}, {"a second time ", twice}, {"further columns ", other}} {
		if len(w.names) > 0 {
			found = append(found, w.what+some(w.names))
		}
	}
	if len(found) == 0 {
		return nil
	}
	e := &config.Error{Field: "columns", Found: strings.Join(found, "; "),
		Allowed: "a header with every column of the schema, each once, and no other"}
	if e.Hint = rangeHint(missing); e.Hint == "" && len(other) > 0 {
		e.Hint = further
	}
	return e
}

// rangeHint says how a schema names a range of columns, where it may have named one in another way.
func rangeHint(missing []string) string {
	for _, name := range missing {
		if strings.Contains(name, "..") {
			return "a range of columns has the field names in the schema, not name: names: " + name
		}
	}
	return ""
}

// some lists names, but no more than fit a message.
func some(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Cells says which columns the cells of a row belong to, and where among them each column of
// the schema is. Without this call they are the columns of the schema in their order.
func (in *Input) Cells(names []string, at []int) {
	in.row.raw.columns(names, in.row.label.name)
	in.row.names = names
	in.row.place = in.row.place[:0]
	for i, c := range in.Schema.Columns {
		switch {
		case c.Type == schema.TypeIgnore:
		case in.Reads(c):
			in.row.place = append(in.row.place, at[i])
		default:
			in.row.place = append(in.row.place, -1)
		}
	}
}

// Text says that the cells are those of a text file, with numbers as format.decimal and format.thousands say. Of a
// table of several files the first says it for all: the others are opened while rows are encoded.
func (in *Input) Text() {
	if in.row.isText {
		return
	}
	n := in.Schema.Format.Notation()
	in.row.reads(n)
	if n != nil {
		in.row.plain = &plainCells{of: n}
	}
}

// Numbers says whether the cells of a column may be values of the kind [Number]: if they are numbers as they stand or
// not used, and no text of a number is a missing mark.
func (in *Input) Numbers(name string) bool {
	for _, c := range in.Schema.Columns {
		if c.Name == name {
			return c.Type == schema.TypeIgnore ||
				c.Type == schema.TypeNumeric && !slices.ContainsFunc(in.Schema.Format.Missing, isNumber)
		}
	}
	return false
}

// isNumber says whether s is the text of a float64, NaN and the infinite ones included.
func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// Select is for formats that can read some columns without the others. It chooses those that the schema
// reads and then, if raw rows are hashed, all others that have text. It returns their numbers among names
// and how many the schema reads, and calls Cells.
func (in *Input) Select(names []string, text func(i int) bool) (columns []int, read int, bad *config.Error) {
	where, bad := in.Match(names)
	if bad != nil {
		return nil, 0, bad
	}
	at := make([]int, len(where))
	for i, c := range in.Schema.Columns {
		if in.Reads(c) {
			at[i] = len(columns)
			columns = append(columns, where[i])
		}
	}
	read = len(columns)
	if in.row.raw != nil {
		for i := range names {
			if !slices.Contains(columns[:read], i) && text(i) {
				columns = append(columns, i)
			}
		}
	}
	chosen := make([]string, len(columns))
	for k, i := range columns {
		chosen[k] = names[i]
	}
	in.Cells(chosen, at)
	return columns, read, nil
}

// A Row takes the values of one row: a format of named columns calls Cells or Values, one of sparse rows
// HashPairs, Label and Value, one of images Pixels.
type Row struct {
	*encoder
	raw   *rowHasher
	plain *plainCells // nil: cells have numbers with a point
	names []string    // of the cells
	place []int       // the cell of each column of the encoder, −1 for one that is not read
}

// clone returns a row of the same table for another goroutine.
func (r *Row) clone() *Row {
	c := &Row{encoder: r.encoder.clone(), raw: r.raw.clone(), place: r.place}
	if r.plain != nil {
		c.plain = &plainCells{of: r.plain.of}
	}
	return c
}

// Cells takes a row of named columns: the text of its cells. A cell for which null is true has no value,
// whatever the missing marks are, and its text becomes ""; null may be nil.
func (r *Row) Cells(cells []string, null []bool) Fault {
	for i, none := range null {
		if none {
			cells[i] = "" // for the hash of the row, which is that of the same row in other formats
		}
	}
	if r.plain != nil {
		r.raw.cells(r.plain.cells(cells))
		return r.Encode(cells, null)
	}
	return r.cells(cells, null, r.raw.cells(cells), r.place)
}

// plainCells are the cells of a row with numbers as other formats have them: hashes of raw rows are of these, so that
// the row is the same one there.
type plainCells struct {
	of   *schema.Notation
	row  []string // views of text
	text []byte
}

func (p *plainCells) cells(cells []string) []string {
	p.row, p.text = p.row[:0], p.text[:0]
	for _, cell := range cells {
		from, ok := len(p.text), false
		if p.text, ok = p.of.Plain(p.text, strings.TrimSpace(cell)); ok { // what was before stays where it was
			cell = view(p.text[from:])
		}
		p.row = append(p.row, cell)
	}
	return p.row
}

// Encode is Cells without the hash of the raw row: for a row of which some cells are missing.
func (r *Row) Encode(cells []string, null []bool) Fault {
	return r.cells(cells, null, nil, r.place)
}

// HashCells hashes a raw row that has a fault before it comes to its cells.
func (r *Row) HashCells(cells []string) { r.raw.cells(cells) }

// A Value is a cell of a format that knows types.
type Value struct {
	Text   string
	Number float64 // instead of Text, if Is is Number
	Is     Kind
}

// A Kind is what a Value holds.
type Kind byte

const (
	Text   Kind = iota
	Number      // a number, whose text has the fewest digits that identify it
	Null        // nothing
)

// Values is Cells for values with types. The row is that of their texts.
func (r *Row) Values(values []Value) Fault {
	r.HashValues(values)
	return r.values(values, r.place)
}

// HashValues is HashCells for values with types.
func (r *Row) HashValues(values []Value) { r.raw.values(values) }

// HashPairs hashes a raw row of a label and index:value.
func (r *Row) HashPairs(line []byte) { r.raw.libsvm(line) }

// Label takes the text of the label.
func (r *Row) Label(text string) Fault {
	f := r.setLabel(&r.label, 0, text)
	if f.Found != "" {
		f.Column = r.label.name
	}
	return f
}

// Value takes the value of a feature, numbered from 0. Features come in ascending order.
func (r *Row) Value(feature int, v float64) {
	if r.tally != nil {
		r.tally.features.number(v, r.lo, r.hi)
	}
	if v < r.lo || v > r.hi {
		v = max(r.lo, min(r.hi, v))
		r.clamped = append(r.clamped, -1)
	}
	r.feature(feature, v)
}

// Pixels takes the bytes of an image and its label, and the number of the label's class, −1 for
// none.
func (r *Row) Pixels(image []byte, label byte, class int) Fault {
	r.raw.image(image, label)
	if class < 0 {
		return Fault{Column: r.label.name, Found: "a label that is none of the classes",
			Allowed: "one of the classes in the schema"}
	}
	r.pixels(image)
	r.y = float32(class)
	return Fault{}
}

// open opens a table of the format.
func (f *Format) open(ctx context.Context, in *Input) (Pieces, error) {
	if f.Divide != nil {
		return f.Divide(ctx, in)
	}
	rows, err := f.Open(ctx, in)
	if err != nil {
		return nil, err
	}
	return &serial{Rows: rows}, nil
}

// openRows opens the table, of one file or several.
func openRows(ctx context.Context, in *Input) (Pieces, error) {
	files, err := Files(in.Path)
	if err != nil {
		return nil, err
	}
	if len(files) > 1 {
		return openSeveral(ctx, in, files)
	}
	in.Path = files[0]
	return openFormat(ctx, in)
}

// openFormat opens one file or a table of a database in its format.
func openFormat(ctx context.Context, in *Input) (Pieces, error) {
	s, opt := in.Schema, in.Options
	names, at := make([]string, len(s.Columns)), make([]int, len(s.Columns))
	for i, c := range s.Columns {
		names[i], at[i] = c.Name, i
	}
	in.Cells(names, at)
	if opt.Labels != "" && s.Format.Kind != schema.KindIDX {
		return nil, &config.Error{File: opt.Labels, Found: "a file of labels",
			Allowed: "none, since format.kind is " + s.Format.Kind + ": labels stand beside the features"}
	}
	head, rest := headOf(ctx, in.Path), (*Format)(nil)
	for i := range opt.Formats {
		f := &opt.Formats[i]
		fits := f.Kind == s.Format.Kind || f.Kind == "" && s.Format.Kind == schema.KindCSV
		switch {
		case f.Is == nil && fits && rest == nil:
			rest = f
		case f.Is == nil || !fits && !f.Magic || !f.Is(in.Path, head):
		case !fits:
			return nil, &config.Error{File: Public(in.Path), Found: f.Name, Allowed: "what format.kind says, " + s.Format.Kind,
				Hint: "tables of named columns have the kind csv"}
		case !f.Magic && !s.Format.Header && len(bytes.TrimSpace(head)) == 0: // no rows, whatever the form
		case !f.Magic && !s.Format.Header:
			return nil, &config.Error{File: in.Path, Field: "format.header", Found: f.Name,
				Allowed: "header: true, since its rows name the columns", Hint: "write a file of text with a header"}
		default:
			return f.open(ctx, in)
		}
	}
	if rest == nil {
		return nil, fmt.Errorf("data: Options.Formats has no format of kind %s", s.Format.Kind)
	}
	return rest.open(ctx, in)
}

// Claims returns the format that claims the table at path by how its content begins; nil for one that is read as its
// schema says.
func Claims(ctx context.Context, path string, formats []Format) *Format {
	head := headOf(ctx, path)
	for i := range formats {
		if f := &formats[i]; f.Is != nil && f.Is(path, head) {
			return f
		}
	}
	return nil
}

// headOf returns the beginning of the file at path, decompressed; nil if it cannot be read. Then the
// format says what is wrong.
func headOf(ctx context.Context, path string) []byte {
	const size = 512
	f, err := OpenFile(ctx, path, nil)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, size))
	return head
}
