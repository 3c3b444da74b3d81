// Package schema is the public description of a table: columns, bounds, levels, label, unit
// and how the file is written. A person writes it without looking at the rows, so anybody
// may read it; package data holds the rows themselves.
package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/scatter"
)

// The words of a schema file.
const (
	KindCSV    = "csv"    // Format.Kind: delimited text, encoded into dense rows
	KindLIBSVM = "libsvm" // Format.Kind: label index:value …, kept as sparse rows
	KindIDX    = "idx"    // Format.Kind: images of bytes, as MNIST's, their labels in a file of their own

	EncodingUTF16   = "utf-16"       // Format.Encoding: by its byte order mark, without one little-endian
	EncodingLatin1  = "latin-1"      // Format.Encoding: ISO 8859-1
	EncodingWindows = "windows-1252" // Format.Encoding: Latin-1 with more characters, as Windows writes it

	TypeNumeric     = "numeric"     // Column.Type: a number within public bounds
	TypeCategorical = "categorical" // Column.Type: one of some public levels
	TypeOrdinal     = "ordinal"     // Column.Type: one of some public levels in their order
	TypeBoolean     = "boolean"     // Column.Type: false or true
	TypeDate        = "date"        // Column.Type: a date, perhaps with a time, within public bounds
	TypeText        = "text"        // Column.Type: words
	TypeIgnore      = "ignore"      // Column.Type: never read
	TypeLabel       = "label"       // Column.Type: what is to be predicted
	TypeUnit        = "unit"        // Column.Type: whose row it is; no feature

	TransformNone        = "none"         // Column.Transform: t(v) = v
	TransformLog1p       = "log1p"        // Column.Transform: t(v) = log(1+v), for v ≥ 0
	TransformSignedLog1p = "signed_log1p" // Column.Transform: t(v) = sign(v)·log(1+|v|)

	EncodeLinear = "linear" // a numeric column is one feature
	EncodeHats   = "hats"   // Column.Hats: bumps beside that feature
	EncodeWaves  = "waves"  // Column.Waves: waves beside it

	EncodePixels     = "pixels"     // an image's features are its pixels
	EncodeScattering = "scattering" // Image.Encode: they are normalized scattering coefficients

	UnitRecord = "record" // Schema.Unit: the guarantee protects one row

	NormL1 = "l1" // Schema.Norm: rows are held to RowNorm in the L1 norm

	RowScale   = "scale"   // Schema.RowScaling: every non-zero row is brought to the norm bound
	RowProject = "project" // Schema.RowScaling: rows above the norm bound are brought to it

	BadRowStop = "stop" // Schema.OnBadRow: the first bad row is an error
	BadRowDrop = "drop" // Schema.OnBadRow: bad rows are left out

	OtherIgnore = "ignore" // Schema.OtherColumns: columns that the schema does not name are never read

	RuleError = "error" // Column.Unknown and Column.Missing: such a row is a bad row
	RuleZero  = "zero"  // Column.Unknown and Column.Missing: the cell encodes to 0
)

// Limits of a schema.
const (
	maxRows      = 1 << 31 // nominal rows
	maxDim       = 1 << 24 // encoded features of a CSV schema
	maxFeatures  = 1<<31 - 2
	maxMagnitude = 1e9 // of norm bounds and LIBSVM values
	minNorm      = 1e-9
	maxProse     = 1000 // bytes of an author or a source
	minHats      = 2
	maxHats      = 64
)

// DefaultHats is the number of bumps of a column that asks for them without saying how many.
const DefaultHats = 8

// MaxFile is the most bytes of a schema file.
const MaxFile = 4 << 20

// MaxUnitRows is the most rows of one unit that a schema can allow.
const MaxUnitRows = 1 << 16

// A Schema is the public description of a table: everything in it was written by
// a person who did not look at the rows to write it. [Parse], [Load]
// and [FromJSON] make checked schemas with all defaults filled in; a
// schema must not be changed after that.
type Schema struct {
	Dataset string `json:"dataset"` // the identity of the data that a person gave it; ledgers go by it
	// whom the guarantee protects: UnitRecord, or a name for what the column of TypeUnit identifies
	Unit       string   `json:"unit"`
	UnitRows   int      `json:"unit_rows,omitempty"` // the most rows of one unit that are used; 0: each row is a unit
	Rows       int      `json:"rows,omitempty"`      // nominal, public number of units, the divisor of sums; 0: not given
	Format     Format   `json:"format"`              // how the file is written
	RowNorm    float64  `json:"row_norm"`            // R: every encoded row has ‖x‖₂ ≤ R
	Norm       string   `json:"norm,omitempty"`      // "": RowNorm bounds ‖x‖₂; NormL1: it bounds ‖x‖₁, and so ‖x‖₂ too
	RowScaling string   `json:"row_scaling"`         // RowScale or RowProject
	Intercept  bool     `json:"intercept"`           // a last feature that is always 1 before the row rule
	OnBadRow   string   `json:"on_bad_row"`          // BadRowStop or BadRowDrop
	Features   int      `json:"features,omitempty"`  // LIBSVM: indices are 1 … Features
	Values     *Bounds  `json:"values,omitempty"`    // LIBSVM: values are clamped to these; they include 0
	Image      *Image   `json:"image,omitempty"`     // IDX: what an image is
	Columns    []Column `json:"columns"`             // CSV: all columns; LIBSVM and IDX: the label alone
	Pairs      []Pair   `json:"pairs,omitempty"`     // CSV: columns with features for what two of them do together
	Snapped    bool     `json:"snapped,omitempty"`   // bumps and waves follow from rows without them ([Schema.Lines])
	Paired     bool     `json:"-"`                   // the schema file says which pairs there are, so a run adds none

	// CSV with a header: OtherIgnore, or "": all columns of the table are in Columns
	OtherColumns string `json:"other_columns,omitempty"`

	// For a disclosure; nothing is computed from them.
	Author string `json:"author,omitempty"` // who wrote the bounds, levels and classes
	Source string `json:"source,omitempty"` // where what concerns the whole table comes from: rows, norm, values, image

	// Grid allows numeric columns without bounds, for counts on the public grid: of [ParseOpen] and [Schema.OnGrid] alone.
	Grid bool `json:"-"`

	Tables []CellTable `json:"-"` // of a schema made by [Schema.ForHistograms]
}

// A Format says how a file is written.
type Format struct {
	Kind      string `json:"kind"`                // KindCSV or KindLIBSVM
	Delimiter string `json:"delimiter,omitempty"` // CSV: one character
	// CSV: the first line names the columns; without it the order is that of Schema.Columns
	Header    bool     `json:"header,omitempty"`
	Comment   string   `json:"comment,omitempty"`   // lines that begin with it are no records; "": there are none
	Trim      bool     `json:"trim,omitempty"`      // CSV: spaces around a cell are no part of it
	Multiline bool     `json:"multiline,omitempty"` // CSV: a cell in quotes may span lines; otherwise a record is one line
	Missing   []string `json:"missing,omitempty"`   // CSV: cells that say that there is no value
	// CSV: "": UTF-8, or UTF-16 with a byte order mark; or one of the encodings above
	Encoding string `json:"encoding,omitempty"`
	// CSV: how numbers are written: "": with a point; or ","
	Decimal   string `json:"decimal,omitempty"`
	Thousands string `json:"thousands,omitempty"` // CSV: the mark between thousands; "": none
}

// An Image says what an image of an IDX file is, and how its pixels, bytes from 0
// to 255, become features, before the row rule: (pixel − Center)/Scale, or scattering coefficients.
type Image struct {
	Shape  []int     `json:"shape"`            // rows and columns of pixels, and what else the file's header names
	Encode string    `json:"encode,omitempty"` // "": pixels; EncodeScattering
	Center []float64 `json:"center"`           // one number for all pixels, or one for each; public; 0 for coefficients
	Scale  []float64 `json:"scale"`            // likewise, above 0; 255 for coefficients
}

// Pixels is the number of pixels of an image.
func (m *Image) Pixels() int {
	n := 1
	for _, k := range m.Shape {
		n *= k
	}
	return n
}

// RowShape is the shape of an image's features: rows, columns, and numbers at each place.
func (m *Image) RowShape() []int {
	if m.Encode != EncodeScattering {
		return m.Shape
	}
	return scatter.Shape(m.Shape[0], m.Shape[1], m.Channels())
}

// Channels is the number of bytes at each place of an image of rows and columns.
func (m *Image) Channels() int {
	if len(m.Shape) > 2 {
		return m.Shape[2]
	}
	return 1
}

// features is the number of an image's features.
func (m *Image) features() int {
	if m.Encode != EncodeScattering {
		return m.Pixels()
	}
	n := 1
	for _, k := range m.RowShape() {
		n *= k
	}
	return n
}

// Bounds are public bounds, Min < Max.
type Bounds struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// A Column describes one column. Which fields mean something depends on Type;
// the others have their zero value.
type Column struct {
	Name string `json:"name"` // as in the header; only an ignored column may have an empty one
	Type string `json:"type"` // one of the types above
	// numeric, date (days since Origin), or a label that is a number: what values are clamped to
	Bounds    *Bounds  `json:"bounds,omitempty"`
	Transform string   `json:"transform,omitempty"` // numeric: applied after clamping
	Hats      int      `json:"hats,omitempty"`      // numeric: piecewise-linear bumps beside the linear feature; 0: none
	Waves     int      `json:"waves,omitempty"`     // numeric: waves beside it, without bumps; 0: none
	Levels    []string `json:"levels,omitempty"`    // categorical, ordinal: the public levels
	Origin    string   `json:"origin,omitempty"`    // date: the day or time that days are counted from, in ISO 8601
	Layout    string   `json:"layout,omitempty"`    // date: what its cells look like, as %d.%m.%Y; "": ISO 8601
	Cycles    []string `json:"cycles,omitempty"`    // date: day, week and year, two features each
	Dimension int      `json:"dimension,omitempty"` // text: the number of features that words are hashed to
	Unknown   string   `json:"unknown,omitempty"`   // categorical, ordinal: RuleError, RuleZero or a level
	// RuleError, RuleZero, or what a cell may be: a number, a level, true or false, a date; text: one of the rules
	Missing string   `json:"missing,omitempty"`
	Classes []string `json:"classes,omitempty"` // label: its classes, two or more; none for a label that is a number
	// label that is a number: about its standard deviation, a public number; 0: not given
	Scale float64 `json:"scale,omitempty"`
	Strip string  `json:"strip,omitempty"` // label: trailing text that is taken off before matching
	// where the bounds, levels or classes come from; nothing is computed from it
	Source string `json:"source,omitempty"`
	Free   bool   `json:"-"` // numeric: the schema file names no encoding, so a run may choose Hats or Waves
	Chosen bool   `json:"-"` // numeric: a run chose Hats or Waves

	// of a schema made by [Schema.ForHistograms]: how the column is counted; nil: it is not
	Counts *Counting `json:"-"`
}

// Load reads and parses the schema file at path.
func Load(path string) (*Schema, error) {
	src, err := readfile.All(path, MaxFile)
	if err != nil {
		return nil, config.FileError(path, err)
	}
	return Parse(path, src)
}

// FromJSON reads what [Schema.Marshal] wrote. An unknown field, text after
// the object, or a schema that [Parse] would refuse is an error.
func FromJSON(b []byte) (*Schema, error) {
	type plain Schema // without UnmarshalJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var p plain
	if err := d.Decode(&p); err != nil {
		return nil, &config.Error{File: "schema (JSON)", Found: "text that is not a schema (" + err.Error() + ")",
			Allowed: "what Sotto wrote", Err: err}
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, &config.Error{File: "schema (JSON)", Found: "text after the schema", Allowed: "nothing"}
	}
	s := Schema(p)
	s.Paired = len(s.Pairs) > 0
	if e := s.check(); e != nil {
		e.File = "schema (JSON)"
		return nil, e
	}
	return &s, nil
}

// UnmarshalJSON is [FromJSON], so a schema within a larger JSON document is
// checked as strictly.
func (s *Schema) UnmarshalJSON(b []byte) error {
	t, err := FromJSON(b)
	if err != nil {
		return err
	}
	*s = *t
	return nil
}

// Marshal is the schema as canonical JSON: equal schemas give equal bytes.
func (s *Schema) Marshal() ([]byte, error) { return json.Marshal(s) }

// Fingerprint is the SHA-256, in hex, of the canonical JSON of what the encoding
// depends on: features, bounds, transforms, levels, what replaces missing and
// unknown cells, label and classes, norm bound and row rule. A model fits a
// schema if the fingerprints are equal. The name of the dataset, its nominal
// rows, how the file is written, the unit, ignored and other columns, what happens to bad
// rows, author and sources are not in it.
func (s *Schema) Fingerprint() string {
	t := Schema{RowNorm: s.RowNorm, Norm: s.Norm, RowScaling: s.RowScaling, Intercept: s.Intercept, Features: s.Features,
		Values: s.Values, Image: s.Image, Pairs: s.Pairs}
	for _, c := range s.Columns {
		if c.Type == TypeIgnore || c.Type == TypeUnit {
			continue
		}
		c.Strip, c.Source, c.Layout = "", "", ""
		t.Columns = append(t.Columns, c)
	}
	b, err := json.Marshal(&t)
	if err != nil {
		panic("data: fingerprint of a schema that was not checked: " + err.Error()) // NaN or Inf, which check refuses
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// Dim is the number of encoded features, the intercept included.
func (s *Schema) Dim() int {
	d := s.Features + PairFeatures*len(s.Pairs)
	for _, c := range s.Columns {
		d += c.features()
	}
	for _, t := range s.Tables {
		d += s.tableCells(t)
	}
	if s.Intercept {
		d++
	}
	return d
}

// Free is the number of numeric columns whose encoding the schema file leaves open: one linear feature, unless a run
// chooses another. Only [Parse] and [Load] make such columns.
func (s *Schema) Free() int {
	n := 0
	for _, c := range s.Columns {
		if c.Free {
			n++
		}
	}
	return n
}

// WithHats is the schema with that many bumps, or none, in each column that was free. No column is free afterwards.
func (s *Schema) WithHats(hats int) *Schema {
	return s.each(func(c *Column) {
		if c.Free {
			c.Hats, c.Free = hats, false
		}
	})
}

// WithCurves is likewise the schema with bumps or waves, which a run chose or a person asked for.
func (s *Schema) WithCurves(hats, waves int, chosen bool) *Schema {
	return s.each(func(c *Column) {
		if c.Free {
			c.Hats, c.Waves, c.Chosen, c.Free = hats, waves, chosen && hats+waves > 0, false
		}
	})
}

// Refined is the schema that a run chose: with these pairs, and without bumps and waves if lines are left alone.
func (s *Schema) Refined(lines bool, pairs ...Pair) *Schema {
	if lines {
		s = s.each(func(c *Column) { c.Hats, c.Waves, c.Chosen = 0, 0, false })
		s.Snapped = false
	}
	return s.WithPairs(pairs...)
}

// each is the schema after change has seen each of its columns.
func (s *Schema) each(change func(*Column)) *Schema {
	t := *s
	t.Columns = slices.Clone(s.Columns)
	for i := range t.Columns {
		change(&t.Columns[i])
	}
	return &t
}

// Predictors is the number of columns that features come from.
func (s *Schema) Predictors() int { return len(s.Dims()) }

// Dims are the encoded features, the intercept included, of the first predictor, of the first two, and so on.
func (s *Schema) Dims() (dims []int) {
	intercept := 0
	if s.Intercept {
		intercept = 1
	}
	var names []string
	for first, c := range s.Places() {
		names = append(names, c.Name)
		paired := 0
		for _, p := range s.Pairs {
			if slices.Contains(names, p.A) && slices.Contains(names, p.B) {
				paired += PairFeatures
			}
		}
		dims = append(dims, first+c.features()+paired+intercept)
	}
	return dims
}

// Places are the columns that features come from, each with the position of its first feature in an encoded row.
func (s *Schema) Places() iter.Seq2[int, Column] {
	return func(yield func(int, Column) bool) {
		first := s.Features
		for _, c := range s.Columns {
			n := c.features()
			if n > 0 && !yield(first, c) {
				return
			}
			first += n
		}
	}
}

// First is the schema with the first n predictors alone: those after them are ignored, and so are their pairs.
func (s *Schema) First(n int) *Schema {
	t := *s
	t.Columns = slices.Clone(s.Columns)
	for i, c := range t.Columns {
		if c.features() == 0 {
			continue
		}
		if n--; n < 0 {
			t.Columns[i] = Column{Name: c.Name, Type: TypeIgnore}
		}
	}
	t.Pairs = t.possiblePairs()
	return &t
}

// FeatureNames names the Dim encoded features in their order: age for a numeric column, age hat 1, age hat 2 … for its
// bumps, admitted sine of the week for a cycle, workclass=Private for a level, note word 5 for words, f7 for a LIBSVM
// index or a pixel, map 5 at 2 3 for a scattering coefficient at row 2 and column 3, age × hours at 2 3 for the product
// of the second bump of age and the third of hours, (intercept).
func (s *Schema) FeatureNames() []string {
	names := make([]string, 0, s.Dim())
	for i := range s.Features {
		name := "f" + strconv.Itoa(i+1)
		if m := s.Image; m != nil && m.Encode == EncodeScattering {
			shape := m.RowShape()
			place := i / shape[2]
			name = fmt.Sprintf("map %d at %d %d", i%shape[2]+1, place/shape[1]+1, place%shape[1]+1)
		}
		names = append(names, name)
	}
	for _, c := range s.Columns {
		if f := c.Form(); f != nil {
			names = append(names, f.names(c.Name)...)
		}
	}
	for _, p := range s.Pairs {
		names = append(names, p.names()...)
	}
	if s.Intercept {
		names = append(names, "(intercept)")
	}
	return names
}

// Levels are the levels of a categorical column, the first of which is that feature of an encoded row; nil if there is
// no such column.
func (s *Schema) Levels(column string) (first int, levels []string) {
	for first, c := range s.Places() {
		if c.Type == TypeCategorical && c.Name == column {
			return first, c.Levels
		}
	}
	return 0, nil
}

// Sparse reports whether rows are stored sparse.
func (s *Schema) Sparse() bool {
	return s.Format.Kind == KindLIBSVM || slices.ContainsFunc(s.Columns, func(c Column) bool {
		return c.Type == TypeText || c.onGrid() || c.Counts != nil
	})
}

// Label is the label column; a checked schema has exactly one.
func (s *Schema) Label() *Column {
	for i := range s.Columns {
		if s.Columns[i].Type == TypeLabel {
			return &s.Columns[i]
		}
	}
	return &Column{}
}

// UnitColumn is the name of the column that says whose row it is; "" where each row
// is a unit.
func (s *Schema) UnitColumn() string {
	for _, c := range s.Columns {
		if c.Type == TypeUnit {
			return c.Name
		}
	}
	return ""
}

// Column is the column of that name, nil if there is none.
func (s *Schema) Column(name string) *Column {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return &s.Columns[i]
		}
	}
	return nil
}

// LabelName is the name of the label column.
func (s *Schema) LabelName() string { return s.Label().Name }

// L1Bound is a bound on ‖x‖₁ of every encoded row: RowNorm where that is what rows
// are held to, √Dim·RowNorm otherwise.
func (s *Schema) L1Bound() float64 {
	if s.Norm == NormL1 {
		return s.RowNorm
	}
	return math.Sqrt(float64(s.Dim())) * s.RowNorm
}

// LabelBounds are the public bounds of a label that is a number, and nil for one
// that has classes.
func (s *Schema) LabelBounds() *Bounds { return s.Label().Bounds }

// Classes is the number of classes of the label, 0 for a label that is a number.
func (s *Schema) Classes() int { return len(s.Label().Classes) }

// ClassNames are the classes in the order of their indices, as the schema spells
// them; nil for a label that is a number.
func (s *Schema) ClassNames() []string { return slices.Clone(s.Label().Classes) }

// bound is the norm bound that rows are held to: the largest float32 that is not
// above RowNorm, so that norms rounded up to float32 stay within it.
func (s *Schema) bound() float64 {
	f := float32(s.RowNorm)
	if float64(f) > s.RowNorm {
		f = math.Nextafter32(f, 0)
	}
	return float64(f)
}

// RowRule returns the norm bound of encoded rows and the grid spacing of their values: NormBound
// and Unit of a [Table].
func (s *Schema) RowRule() (bound, unit float64) { return s.bound(), s.unit() }

// unit is 2⁻²⁰ times the smallest power of two that is not below the bound.
func (s *Schema) unit() float64 {
	f, e := math.Frexp(s.bound()) // bound = f·2^e, f in [½, 1)
	if f == 0.5 {
		e--
	}
	return math.Ldexp(1, e-20)
}

// Counted is what Rows counts, in the plural, and the name of its field.
func (s *Schema) Counted() string {
	if s.UnitRows > 0 {
		return "units"
	}
	return "rows"
}

// Assumptions are the public facts that the guarantee relies on, one sentence
// each, for the report.
func (s *Schema) Assumptions() []string {
	out := []string{fmt.Sprintf("The guarantee protects one %s: one row of the dataset %q.", s.Unit, s.Dataset)}
	if s.UnitRows > 0 {
		out = []string{
			fmt.Sprintf("The guarantee protects one %s: all rows of the dataset %q with one value in the column %q.", s.Unit,
				s.Dataset, s.UnitColumn()),
			fmt.Sprintf("Of one %s at most %d rows are used; together they weigh as much as those of any other.", s.Unit,
				s.UnitRows),
		}
	}
	if s.Rows > 0 {
		out = append(out,
			fmt.Sprintf("The nominal number of %s is %d; a person wrote it, it was not counted.", s.Counted(), s.Rows))
	}
	if m := s.Image; m != nil && m.Encode == EncodeScattering {
		out = append(out,
			fmt.Sprintf("An image has %d pixels of one byte each; its features are %d scattering coefficients with fixed wavelets, normalized within the image.", m.Pixels(), s.Features))
	} else if m != nil {
		out = append(out,
			fmt.Sprintf("An image has %d pixels of one byte each; a pixel v becomes (v − c)/s with a public center c%s and a public scale s%s.", m.Pixels(), publicNumber(m.Center), publicNumber(m.Scale)))
	}
	if s.Values != nil {
		out = append(out,
			fmt.Sprintf("There are %d features, and their values are clamped to [%s, %s].", s.Features, num(s.Values.Min),
				num(s.Values.Max)))
	}
	for _, c := range s.Columns {
		if t := typeOf(c.Type); t != nil && t.assumes != nil {
			kind := "column"
			if c.Type == TypeLabel {
				kind = "label"
			}
			out = append(out, fmt.Sprintf("The %s %q %s.", kind, c.Name, t.assumes(&c)))
		}
	}
	if n := s.Open(); n > 0 {
		out = append(out, fmt.Sprintf(
			"Up to %d pairs of columns, which a charged release chooses, are also encoded together, as the %d products of %d bumps of each.",
			n, PairFeatures, PairBumps))
	}
	for _, p := range s.Pairs {
		if p.Open() {
			continue
		}
		out = append(out, fmt.Sprintf(
			"The columns %q and %q are also encoded together, as the %d products of %d bumps of each at equal distances.", p.A,
			p.B, PairFeatures, PairBumps))
	}
	if s.OtherColumns == OtherIgnore {
		out = append(out, "Columns that the schema does not name are never looked at.")
	}
	norm := "L2"
	if s.Norm == NormL1 {
		norm = "L1"
	}
	if s.RowScaling == RowScale {
		out = append(out,
			fmt.Sprintf("Each encoded row that is not zero is scaled to the %s norm %s, by itself.", norm, num(s.RowNorm)))
	} else {
		out = append(out,
			fmt.Sprintf("Each encoded row with an %s norm above %s is scaled down to it, by itself.", norm, num(s.RowNorm)))
	}
	if s.OnBadRow == BadRowDrop {
		out = append(out, "Rows that do not parse are left out, or keep their place with weight 0 under replace-one.")
	}
	return out
}

// publicNumber says what stands for all pixels, or that each has its own.
func publicNumber(v []float64) string {
	if len(v) == 1 {
		return " of " + num(v[0])
	}
	return " for each pixel"
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Check says what is wrong with a schema that [Parse] or [FromJSON] did not make.
func (s *Schema) Check() error {
	if e := s.check(); e != nil {
		return e
	}
	return nil
}

// check is the first of the faults.
func (s *Schema) check() *config.Error {
	if all := s.faults(); len(all) > 0 {
		return all[0]
	}
	return s.checkWhole()
}

// faults finds what is wrong with the parts of a schema whose defaults are filled in: one fault of each column and of
// each other field. Each error's Field is the path of the fault, such as columns[3].min; its place is for the caller to
// add.
func (s *Schema) faults() (all []*config.Error) {
	add := func(e *config.Error) {
		if e != nil {
			all = append(all, e)
		}
	}
	bad := func(is bool, path, found, allowed string) {
		if is {
			add(columnFault(path, found, allowed))
		}
	}
	add(checkName("dataset", s.Dataset))
	add(s.checkUnit())
	bad(s.Rows < 0 || s.Rows > maxRows, "rows", strconv.Itoa(s.Rows), "a whole number from 1 to 2147483648")
	bad(!(s.RowNorm >= minNorm && s.RowNorm <= maxMagnitude), "row_norm", num(s.RowNorm), "a number from 1e-9 to 1e9")
	bad(s.Norm != "" && s.Norm != NormL1, "norm", config.Quote(s.Norm), "l1 or l2")
	if s.OtherColumns != "" && s.OtherColumns != OtherIgnore {
		bad(true, "other_columns", config.Quote(s.OtherColumns),
			"ignore, or leave it out where columns names every column of the table")
	} else {
		bad(s.OtherColumns != "" && !s.Format.Header, "other_columns", "ignore for a table without names of columns",
			"no other_columns; a header line, for csv, would name them")
	}
	bad(s.RowScaling != RowScale && s.RowScaling != RowProject, "row_scaling", config.Quote(s.RowScaling),
		"scale or project")
	bad(s.OnBadRow != BadRowStop && s.OnBadRow != BadRowDrop, "on_bad_row", config.Quote(s.OnBadRow), "stop or drop")
	add(s.Format.check())
	add(checkProse("author", s.Author))
	add(checkProse("source", s.Source))
	bad(len(s.Columns) == 0, "columns", "no column", "a list with the columns of the table, a label among them")
	names, label := make(map[string]bool, len(s.Columns)), false
	for i := range s.Columns {
		add(s.checkColumn(i, names, &label))
	}
	return all
}

// checkWhole finds what is wrong with a schema whose parts have no faults.
func (s *Schema) checkWhole() *config.Error {
	if s.Label().Type == "" && !s.IsCounted() {
		return columnFault("columns", "no column of type label", "one label in a schema")
	}
	if e := s.checkPairs(); e != nil {
		return e
	}
	if _, ok := s.Lines(); s.Snapped && !ok {
		return columnFault("snapped", "true", "false where rows are sparse, or without an intercept, bumps and waves")
	}
	return s.checkFeatures()
}

// checkColumn checks column i beside those before it, of which these are the names; label says that there is one among
// them.
func (s *Schema) checkColumn(i int, names map[string]bool, label *bool) *config.Error {
	c, path := &s.Columns[i], fmt.Sprintf("columns[%d]", i)
	if e := checkName(path+".name", c.Name); e != nil && !(c.Name == "" && c.Type == TypeIgnore) {
		return e
	}
	if names[c.Name] {
		return columnFault(path+".name", config.Quote(c.Name)+" a second time", "a name of its own for each column")
	}
	names[c.Name] = true
	if c.Type == TypeLabel {
		if *label {
			return columnFault(path+".type", "a second label", "one label in a schema")
		}
		*label = true
	}
	if e := c.check(path, s.Grid); e != nil {
		return e
	}
	if e := checkProse(path+".source", c.Source); e != nil {
		return e
	}
	if s.Format.Trim {
		if e := checkTrimmed(path+".levels", c.Levels); e != nil {
			return e
		}
		return checkTrimmed(path+".classes", c.Classes)
	}
	return nil
}

// checkFeatures checks what the format says of features.
func (s *Schema) checkFeatures() *config.Error {
	if s.Format.Kind == KindIDX {
		return s.checkImage()
	}
	if s.Image != nil {
		return columnFault("image", "an image for "+s.Format.Kind, "no image; it is for idx")
	}
	if s.Format.Kind == KindLIBSVM {
		switch {
		case s.Features < 1 || s.Features > maxFeatures:
			return columnFault("features", strconv.Itoa(s.Features), "the public number of features, from 1 to 2147483646")
		case s.Values == nil ||
			!(-maxMagnitude <= s.Values.Min && s.Values.Min <= 0 && 0 <= s.Values.Max && s.Values.Max <= maxMagnitude &&
				s.Values.Min < s.Values.Max):
			return columnFault("min", "bounds without 0 between them, or beyond ±1e9",
				"min ≤ 0 ≤ max and min < max, since an index that is left out is a 0")
		case len(s.Columns) != 1:
			return columnFault("columns", "columns that are no label", "the label alone, for libsvm")
		}
		return nil
	}
	if s.Features != 0 || s.Values != nil {
		return columnFault("features", "features for csv", "columns; features, min and max are for libsvm")
	}
	switch d := s.Dim(); {
	case d == 0 || d == 1 && s.Intercept:
		return columnFault("columns", "no feature", "at least one column that is no label, unit or ignored column")
	case d > maxDim:
		return columnFault("columns", strconv.Itoa(d)+" encoded features", "at most "+strconv.Itoa(maxDim))
	}
	return nil
}

// checkUnit wants a name, a column and a number of rows of a unit, or none of them.
func (s *Schema) checkUnit() *config.Error {
	var units []int
	for i, c := range s.Columns {
		if c.Type == TypeUnit {
			units = append(units, i)
		}
	}
	switch {
	case s.Unit == UnitRecord && len(units) > 0:
		return &config.Error{Field: fmt.Sprintf("columns[%d].type", units[0]), Found: "unit, where each row is a unit",
			Allowed: "a field unit with it, as in unit: {name: patient, rows: 8}"}
	case s.Unit == UnitRecord && s.UnitRows != 0:
		return &config.Error{Field: "unit.name", Found: config.Quote(s.Unit),
			Allowed: "another name, as patient; unit: record alone says that each row is a unit"}
	case s.Unit == UnitRecord:
		return nil
	case s.UnitRows < 1 || s.UnitRows > MaxUnitRows:
		return &config.Error{Field: "unit.rows", Found: strconv.Itoa(s.UnitRows),
			Allowed: "a whole number from 1 to " + strconv.Itoa(MaxUnitRows) + ", the most rows of one unit that are used"}
	case len(s.Unit) > 100:
		return &config.Error{Field: "unit.name", Found: "more than 100 bytes", Allowed: "one short word, as patient"}
	case s.Format.Kind != KindCSV:
		return &config.Error{Field: "unit", Found: "a unit of several rows for " + s.Format.Kind,
			Allowed: "record, as only tables of named columns say whose row it is"}
	case len(units) == 0:
		return &config.Error{Field: "columns", Found: "no column of type unit",
			Allowed: "the column that says whose row it is, with type: unit"}
	case len(units) > 1:
		return &config.Error{Field: fmt.Sprintf("columns[%d].type", units[1]), Found: "a second unit",
			Allowed: "one unit in a schema"}
	}
	return checkName("unit.name", s.Unit)
}

// bad is the error of a field.
func bad(path, found, allowed string) *config.Error {
	return &config.Error{Field: path, Found: found, Allowed: allowed}
}

// checkImage wants a shape, pixels' center and scale that fit it, and no fields of other formats.
func (s *Schema) checkImage() *config.Error {
	m := s.Image
	if m == nil || len(m.Shape) == 0 {
		return bad("image.shape", "nothing", "the public shape of an image, as in [28, 28]")
	}
	n := 1
	for i, k := range m.Shape {
		if k < 1 || k > maxDim || n > maxDim/k || i > 7 {
			return bad("image.shape", "a shape without pixels, or of too many",
				"one to eight whole numbers from 1, their product up to "+strconv.Itoa(maxDim))
		}
		n *= k
	}
	for _, v := range []struct {
		path  string
		of    []float64
		least float64
	}{{"image.center", m.Center, -maxMagnitude}, {"image.scale", m.Scale, minNorm}} {
		if len(v.of) != 1 && len(v.of) != n {
			return bad(v.path, strconv.Itoa(len(v.of))+" numbers",
				fmt.Sprintf("one number, or one for each of the %d pixels", n))
		}
		for i, x := range v.of {
			if !(x >= v.least && x <= maxMagnitude) {
				path := v.path
				if len(v.of) > 1 {
					path = fmt.Sprintf("%s[%d]", path, i)
				}
				return bad(path, num(x), "a number from "+num(v.least)+" to 1e9")
			}
		}
	}
	if err := m.checkEncode(); err != nil {
		return err
	}
	return s.checkImageColumns()
}

func (m *Image) checkEncode() *config.Error {
	switch m.Encode {
	case "":
	case EncodeScattering:
		side := func(k int) bool { return k >= scatter.MinSide && k <= scatter.MaxSide }
		if len(m.Shape) < 2 || len(m.Shape) > 3 || !side(m.Shape[0]) || !side(m.Shape[1]) ||
			m.Channels() > scatter.MaxChannels {
			return bad("image.shape", "a shape without scattering coefficients",
				fmt.Sprintf("rows and columns from %d to %d, and up to %d channels, with encode: scattering", scatter.MinSide,
					scatter.MaxSide, scatter.MaxChannels))
		}
		if !slices.Equal(m.Center, []float64{0}) || !slices.Equal(m.Scale, []float64{math.MaxUint8}) {
			return bad("image.center", "a center or a scale", "neither with encode: scattering, which normalizes each image")
		}
	default:
		return bad("image.encode", config.Quote(m.Encode), "pixels or scattering")
	}
	return nil
}

// checkImageColumns wants the label alone, with classes that a byte can be.
func (s *Schema) checkImageColumns() *config.Error {
	switch {
	case s.Features != s.Image.features() || s.Values != nil:
		return bad("features", "features for idx", "image; features, min and max are for libsvm")
	case len(s.Columns) != 1:
		return bad("columns", "columns that are no label", "the label alone, for idx")
	case s.Label().Bounds != nil || s.Label().Strip != "":
		return bad("columns[0]", "a label with bounds or strip", "classes; for idx they are whole numbers from 0 to 255")
	}
	for i, c := range s.Label().Classes {
		if v, err := strconv.Atoi(c); err != nil || v < 0 || v > 255 || strconv.Itoa(v) != c {
			return bad(fmt.Sprintf("columns[0].classes[%d]", i), config.Quote(c),
				"a whole number from 0 to 255, as the labels' file has them")
		}
	}
	return nil
}

func (f *Format) bad(path, found, allowed string) *config.Error {
	return bad("format."+path, found, allowed)
}

func (f *Format) check() *config.Error {
	bad := f.bad
	if f.Comment != "" && (!config.PlainText(f.Comment) || strings.TrimSpace(f.Comment) != f.Comment) {
		return bad("comment", config.Quote(f.Comment), "text that the lines to skip begin with, without spaces around it")
	}
	switch f.Kind {
	case KindLIBSVM, KindIDX:
		if f.Delimiter != "" || f.Encoding != "" || f.Decimal+f.Thousands != "" || f.Header || f.Trim ||
			f.Multiline || len(f.Missing) > 0 {
			return bad("kind", "csv settings for "+f.Kind, "kind and comment alone")
		}
		if f.Kind == KindIDX && f.Comment != "" {
			return bad("comment", "a field for text", "no comment, since kind is idx")
		}
		return nil
	case KindCSV:
		return f.checkCSV()
	default:
		return bad("kind", config.Quote(f.Kind), "csv, libsvm or idx")
	}
}

func (f *Format) checkCSV() *config.Error {
	bad := f.bad
	switch f.Encoding {
	case "", EncodingUTF16, EncodingLatin1, EncodingWindows:
	default:
		return bad("encoding", config.Quote(f.Encoding), "utf-8, utf-16, latin-1 or windows-1252")
	}
	r, n := utf8.DecodeRuneInString(f.Delimiter)
	if n == 0 || n != len(f.Delimiter) || r == utf8.RuneError || r == '"' || r == '\r' || r == '\n' || r == 0 ||
		r == '\ufeff' {
		return bad("delimiter", config.Quote(f.Delimiter), "one character that is no quote and no line end")
	}
	if f.Trim && unicode.IsSpace(r) {
		return bad("trim", "true with a delimiter that is a space", "trim: false, or another delimiter")
	}
	if e := f.checkNotation(); e != nil {
		return e
	}
	for i, m := range f.Missing {
		if m != "" && !config.PlainText(m) || f.Trim && strings.TrimSpace(m) != m {
			return bad(fmt.Sprintf("missing[%d]", i), config.Quote(m),
				"one line of text, without spaces around it where trim is true")
		}
		if slices.Contains(f.Missing[:i], m) {
			return bad(fmt.Sprintf("missing[%d]", i), config.Quote(m)+" a second time", "each mark once")
		}
	}
	return nil
}

func (b *Bounds) check(path string) *config.Error {
	switch {
	case b == nil:
		return &config.Error{Field: path + ".min", Found: "nothing", Allowed: "a public bound: a finite number"}
	case math.IsNaN(b.Min) || math.IsInf(b.Min, 0):
		return &config.Error{Field: path + ".min", Found: num(b.Min), Allowed: "a finite number"}
	case math.IsNaN(b.Max) || math.IsInf(b.Max, 0):
		return &config.Error{Field: path + ".max", Found: num(b.Max), Allowed: "a finite number"}
	case b.Min >= b.Max:
		return &config.Error{Field: path + ".max", Found: num(b.Max), Allowed: "a number above min, which is " + num(b.Min)}
	}
	return nil
}

// Inward are the least and the greatest float32 within the bounds.
func (b *Bounds) Inward() (lo, hi float32) {
	lo, hi = float32(b.Min), float32(b.Max)
	if float64(lo) < b.Min {
		lo = math.Nextafter32(lo, float32(math.Inf(1)))
	}
	if float64(hi) > b.Max {
		hi = math.Nextafter32(hi, float32(math.Inf(-1)))
	}
	return lo, hi
}

// checkTexts wants at least least different one-line texts.
func checkTexts(path string, texts []string, least int, allowed string) *config.Error {
	if len(texts) < least {
		return &config.Error{Field: path, Found: strconv.Itoa(len(texts)) + " of them", Allowed: allowed}
	}
	seen := make(map[string]bool, len(texts))
	for i, t := range texts {
		at := fmt.Sprintf("%s[%d]", path, i)
		if t != "" && !config.PlainText(t) {
			return &config.Error{Field: at, Found: config.Quote(t), Allowed: "one line of text"}
		}
		if seen[t] {
			return &config.Error{Field: at, Found: config.Quote(t) + " a second time", Allowed: "each of them once"}
		}
		seen[t] = true
	}
	return nil
}

// checkTrimmed refuses texts that no cell can equal once it is trimmed.
func checkTrimmed(path string, texts []string) *config.Error {
	for i, t := range texts {
		if strings.TrimSpace(t) != t {
			return &config.Error{Field: fmt.Sprintf("%s[%d]", path, i), Found: config.Quote(t),
				Allowed: "text without spaces around it, since trim is true"}
		}
	}
	return nil
}

func checkName(path, name string) *config.Error {
	switch {
	case strings.TrimSpace(name) == "":
		return &config.Error{Field: path, Found: "nothing", Allowed: "a name"}
	case !config.PlainText(name) || len(name) > 1000:
		return &config.Error{Field: path, Found: config.Quote(name),
			Allowed: "a name: one line of text of at most 1000 bytes"}
	}
	return nil
}

// checkProse wants one line of text, or none.
func checkProse(path, text string) *config.Error {
	if !config.PlainText(text) || len(text) > maxProse {
		return &config.Error{Field: path, Found: config.Quote(text),
			Allowed: fmt.Sprintf("one line of text of at most %d bytes", maxProse)}
	}
	return nil
}

// NumericClasses are the classes as numbers with their indices, or nil where one of them
// is no number.
func (c *Column) NumericClasses() map[float64]int {
	m := make(map[float64]int, len(c.Classes))
	for i, class := range c.Classes {
		v, bad := config.ParseNumber(class)
		if bad != "" {
			return nil
		}
		m[v] = i
	}
	return m
}
