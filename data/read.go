package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/twins"
	"github.com/sottodp/sotto/schema"
)

// Options say how to read a file. The zero value is for training and scoring
// under add-or-remove.
type Options struct {
	// Labels is the file of an IDX table's labels. "": the file beside the images that has their name,
	// with labels-idx1 instead of images-idx3.
	Labels string
	// Rows is the number of rows that the file must have, bad ones included, or of units if the schema
	// has a unit column: for replace-one, under which the count is public (R9). 0: any number.
	Rows int
	// KeepBad keeps the position of a row that on_bad_row: drop leaves out, with Drop set and all values
	// zero: for replace-one (R9), and if each input row needs an answer.
	KeepBad bool
	// Unlabeled reads no labels, and the file need not have them: for
	// predictions. The table has no Y.
	Unlabeled bool
	// ByRow counts each row separately, for predictions and scores: it ignores units, keeps
	// all rows of one, and needs no such column in a file with a header.
	ByRow bool
	// IDKey is the key of the hashes of units' ids, for tables in several processes; nil: one of this process.
	IDKey []byte
	// Coding says in what numbers rows may be: Bytes keeps images as bytes, if PixelsOf finds that they may be, but in a
	// packed table; Short keeps rows of 16-bit numbers of a packed table, which otherwise become float32. Pack writes rows
	// in Short numbers.
	Coding
	// Narrow keeps the rows of a schema whose curves follow from rows without them (Snapped) without curves, which are
	// made when rows are used.
	Narrow bool
	// Dropped, if it is not nil, gets the counts of a table with dropped rows, or without any row where the schema
	// declares some. Its error ends the reading.
	Dropped func(path string, stats *LoadStats) error
	// Tally, if it is not nil, counts the cells of a table that is not packed.
	Tally *Tally
	// Formats are the formats in package data/source. Package access sets them.
	Formats []Format

	workers int // 0: one for each core
	piece   int // bytes of a piece of text; 0: as many as fit the cache
	// unlimited: the schema does not declare the rows of this table.
	unlimited bool
	curved    []string // numeric columns whose rows say where a cell has no value
}

// dropped calls Dropped if rows were dropped, or if the table has none and should have.
func (o Options) dropped(s *schema.Schema, path string, stats *LoadStats) error {
	none := stats.Rows == 0 && s.Rows > 0 && !o.Unlabeled
	if stats.Dropped == 0 && !none || o.Dropped == nil {
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
	// DroppedBy counts the dropped rows by the first column that did not parse, "" for a row as a whole;
	// nil for a packed table of an earlier version.
	DroppedBy map[string]int `json:",omitempty"`
}

// Read reads the table at path, which may name several [Files], and encodes it under the schema. The table is packed or
// has one of the formats in opt. Rows of LIBSVM make sparse blocks, others dense ones. Read needs no more memory than
// the table, one block and some buffers. It maps a packed table if the system can; close the table after use. Dropped
// rows of a packed table keep their position, with Drop set, also without KeepBad.
//
// Read gives the content to the gate. If the gate refuses, Read returns its error. Only package
// access and tests call Read (R24).
//
// An error in the table is a [*config.Error]. Under on_bad_row: stop it names the first bad row and says
// how many there are. On error the table is nil.
//
// A table without rows, or of which every row was dropped, is no error: its neighbor has one row (R9).
//
// train are the tables that a model was trained on, if this table scores it. No unit may be in both
// (R12).
func Read(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options,
	train ...*Table) (t *Table, stats *LoadStats, err error) {
	if gate == nil {
		return nil, nil, errNoGate
	}
	opt.unlimited = opt.unlimited || len(train) > 0
	if path, err = readable(s, path); err != nil {
		return nil, nil, err
	}
	s, curves := snapped(s, path, &opt)
	if !IsPacked(path) {
		t, stats, err = readRows(ctx, gate, s, path, opt)
	} else if err = refusePacked(s, path, opt); err == nil {
		t, stats, err = openPacked(ctx, gate, s, path, opt)
	}
	if err == nil && curves != nil {
		t, err = t.curve(ctx, curves, !opt.Narrow, (&Input{Options: opt}).Workers())
	}
	if err != nil {
		return nil, nil, err
	}
	if err := t.apart(s, path, train); err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	if t.Classes == 0 && t.Labeled {
		t.Clamped = stats.Clamped[s.LabelName()]
	}
	return t, stats, nil
}

var errNoGate = errors.New("data: there is no gate; rows are opened through package access")

// readable checks the schema, and returns the path of a table's only file.
func readable(s *schema.Schema, path string) (string, error) {
	if e := s.Check(); e != nil {
		return "", fmt.Errorf("data: a schema that was not made by schema.Parse: %w", e)
	}
	files, err := Files(path)
	if err == nil && len(files) == 1 {
		path = files[0]
	}
	return path, err
}

// refusePacked refuses a packed table where its raw rows are needed.
func refusePacked(s *schema.Schema, path string, opt Options) error {
	if len(s.Unbounded()) > 0 || opt.Tally != nil {
		return &config.Error{File: Public(path), Found: "a packed table, whose rows are encoded",
			Allowed: "the file that it was packed from"}
	}
	return nil
}

func readRows(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options) (*Table, *LoadStats, error) {
	b := newBuilder(s, opt)
	if px := PixelsOf(s); opt.Bytes && px != nil {
		b.bytes(px)
	}
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

// Fits checks that a table is there and has the columns of the schema. It reads no row, and nothing that can be read
// once only.
func Fits(ctx context.Context, s *schema.Schema, path string, opt Options) error {
	if IsPacked(path) || readfile.Inherited(path) {
		return nil
	}
	in := &Input{Path: path, Schema: s, Options: opt, Sum: sha256.New(), ctx: ctx, limit: limitOf(s, opt, path),
		row: &Row{encoder: newEncoder(s)}}
	rows, err := openRows(ctx, in)
	if err != nil {
		return err
	}
	return rows.Close()
}

// readInto reads the table at path into b, and hashes its raw rows under key, if there is one.
func readInto(ctx context.Context, key *RowKey, s *schema.Schema, path string, opt Options,
	b *builder) (*LoadStats, *Content, error) {
	in := &Input{Path: path, Schema: s, Options: opt, Sum: sha256.New(), ctx: ctx, limit: limitOf(s, opt, path),
		row: &Row{encoder: newEncoder(s), raw: newRowHasher(key)}}
	in.row.bytes, in.row.idKey = b.table.Pixels, opt.IDKey
	in.row.mark(opt.curved)
	if in.row.tally = opt.Tally; opt.Tally != nil {
		opt.Tally.columns = make([]columnTally, len(in.row.cols))
	}
	r := &reader{Input: in, build: b, stats: LoadStats{Clamped: map[string]int{}},
		positions: twins.Least{Most: positionRows}}
	rows, err := openRows(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	if err := r.read(ctx, rows); err != nil {
		return nil, nil, err
	}
	if err := r.finish(ctx); err != nil {
		return nil, nil, err
	}
	if err := opt.dropped(s, path, &r.stats); err != nil {
		return nil, nil, err
	}
	c := &Content{Digest: [sha256.Size]byte(in.Sum.Sum(nil))}
	if s, ok := rows.(*several); ok {
		c = s.content()
	}
	if c.Rows = r.raw; key != nil && c.Rows == nil {
		c.Rows = Hashes{}
	}
	if in.row.raw != nil && in.row.raw.text == nil && s.Format.Kind == schema.KindCSV {
		c.Positions = r.positions.Sketch()
	}
	return &r.stats, c, nil
}

// A reader is one call of Read.
type reader struct {
	*Input
	build     *builder
	stats     LoadStats
	raw       Hashes        // of the raw rows
	positions twins.Least   // those by position
	first     *config.Error // the first bad row, under on_bad_row: stop
	bad       int           // rows that are bad, under on_bad_row: stop
	badIn     []bool        // entries of the row's cols: those with a cell that makes a row bad, likewise
	end       error         // what ended the reading: io.EOF, or an error
}

// finish checks and completes what was read.
func (r *reader) finish(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.first != nil:
		if r.first.Hint = "correct the row"; !r.Options.ByRow { // whose schema is settled
			r.first.Hint += ", or the schema if the row is right"
		}
		var columns []string
		for i, bad := range r.badIn {
			if bad {
				columns = append(columns, r.row.cols[i].name)
			}
		}
		if len(columns) > 1 {
			r.first.Hint = fmt.Sprintf("bad cells are in the columns %s; %s", some(columns), r.first.Hint)
		}
		if r.bad > 1 {
			r.first.Hint = fmt.Sprintf("%d rows are bad, this is the first; %s", r.bad, r.first.Hint)
		}
		return r.first
	case r.end != io.EOF:
		return r.end
	case r.Options.Rows > 0 && r.records() != r.Options.Rows:
		return rowsError(Public(r.Path), r.Schema.Counted(), strconv.Itoa(r.records())+" "+r.Schema.Counted(), r.Options.Rows)
	}
	if err := r.limit.over(r.stats.Rows, r.records()); err != nil { // the unit of the last row counts too
		return err
	}
	return r.build.flush()
}

// records is the number of rows so far, or of units if the rows belong to units.
func (r *reader) records() int {
	if g := r.build.units; g != nil {
		return len(g.ids)
	}
	return r.stats.Rows
}

// rowsError: there are more or fewer rows, or units, than replace-one allows.
func rowsError(file, field, found string, want int) *config.Error {
	return &config.Error{File: file, Field: field, Found: found,
		Allowed: fmt.Sprintf("exactly %d, the number in the schema, under replace-one", want)}
}

func (r *reader) clampName(i int) string {
	if r.Schema.Format.Kind == schema.KindLIBSVM && i < 0 {
		return "features"
	}
	return r.row.cols[i].name
}

func columnField(name string) string {
	if name == "" {
		return ""
	}
	return "column " + name
}

// A builder collects encoded rows into blocks of a table.
type builder struct {
	table *Table
	emit  func(*Block) error // gets each block once it is full; the builder keeps nothing of it
	arena *Arena             // memory of the blocks
	dense bool
	rows  filler
	label bool
	units *grouper // nil: each row is a unit

	n    int // rows in the current block
	y    []float32
	norm []float32
	gone []bool // Drop
	any  bool   // a row of the block is dropped
}

func newBuilder(s *schema.Schema, opt Options) *builder {
	b := &builder{dense: !s.Sparse(), label: !opt.Unlabeled}
	rule := ruleOf(s)
	b.table = &Table{Dim: s.Dim(), Classes: s.Classes(), NormBound: s.RowNorm, Unit: rule.unit, Labeled: b.label,
		Cells: s.IsCounted(), rule: rule}
	if b.rows = filler(&denseFiller{dim: s.Dim()}); !b.dense {
		b.rows = new(sparseFiller)
	}
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

// bytes lets rows be bytes.
func (b *builder) bytes(px *Pixels) { b.table.Pixels, b.rows = px, &byteFiller{Pixels: px} }

// Empty is a table of the schema without rows.
func Empty(s *schema.Schema) *Table { return newBuilder(s, Options{}).table }

// A record is an encoded row.
type record struct {
	col     []int32 // ascending; none if val has a value for every column
	val     []float32
	y, norm float32
	unit    unitID
	dropped bool // a bad row, of which only the unit counts
	image   []byte
	factor  float64
}

// A unitID says whose row it is, if that is known.
type unitID struct {
	hash  [16]byte
	known bool
}

// add appends a row.
func (b *builder) add(r *record) error {
	if err := b.begin(); err != nil {
		return err
	}
	if r.dropped {
		b.gone[b.n], b.any = true, true
	}
	b.rows.add(b.n, r)
	b.done(r.y, r.norm)
	if b.units == nil {
		return nil
	}
	if len(b.units.of) == math.MaxInt32 {
		return &config.Error{Field: "unit", Found: "more rows than 2147483647",
			Allowed: "fewer, for a table with units of several rows"}
	}
	b.units.add(r)
	return nil
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
	b.rows.begin(b.arena)
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
}

// flush emits the current block.
func (b *builder) flush() error {
	if b.n == 0 {
		return nil
	}
	k := &Block{N: b.n, Dim: b.table.Dim, Y: b.y, Norm: b.norm}
	if b.any {
		k.Drop = append([]bool(nil), b.gone[:b.n]...)
		clear(b.gone)
	}
	b.rows.end(k, b.arena)
	b.n, b.any, b.y, b.norm = 0, false, nil, nil
	return b.emit(k)
}

// Dense returns the table with dense blocks only: it copies the sparse blocks, and shares the dense ones
// and all labels, norms and drops with t.
func (t *Table) Dense() *Table {
	d := *t
	d.Blocks = make([]*Block, len(t.Blocks))
	var memory Arena
	for i, b := range t.Blocks {
		d.Blocks[i] = b.spread(&memory)
	}
	return &d
}
