package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// Parse parses a schema file. The name is only for error texts. Unknown,
// missing and repeated fields, values of another type and values that are not
// allowed are an [*config.Error] with line and column. The defaults of what is left
// out:
//
//	unit: record           row_norm: 1          on_bad_row: stop
//	norm: l2               row_scaling: scale for csv and idx, project for libsvm
//	intercept: true
//	format: {kind: csv, delimiter: ",", header: true, trim: false, missing: [""]}
//	numeric columns:       transform: none, missing: error; hats: 8 with encode: hats
//	categorical, ordinal:  unknown: error, missing: as unknown
//	other columns:         missing: error; dates: origin: as min, no layout, no cycles
//	libsvm:                min: -1, max: 1
//	image (idx):           encode: pixels, center: 0, scale: 255
//
// A numeric column that names neither encode nor hats is linear, and free ([Schema.Free]).
//
// dataset, columns and every bound, level and class must be given; rows may be
// left out where nothing is trained. A unit of several rows is a name and the most
// rows of one unit, as in unit: {name: patient, rows: 8}; it asks for a column of type
// unit, and for units, their nominal number, instead of rows.
func Parse(name string, src []byte) (*Schema, error) { return parse(name, src, false) }

// ParseOpen is Parse for a schema in which numeric columns may say bounds: unknown; see [Schema.Unbounded]. Such a
// schema describes no table to train on.
func ParseOpen(name string, src []byte) (*Schema, error) { return parse(name, src, true) }

func parse(name string, src []byte, open bool) (*Schema, error) {
	doc, err := config.Parse(name, "a schema", src)
	if err != nil {
		return nil, err
	}
	r := &reader{doc: doc, open: open}
	if err := doc.Root().Decode(&r.f); err != nil {
		return nil, err
	}
	s := r.schema()
	for _, e := range s.faults() {
		e.Field = r.inFile(e.Field)
		r.add(e.Field, doc.Locate(e))
	}
	if len(r.errs) == 0 {
		if e := s.checkWhole(); e != nil {
			e.Field = r.inFile(e.Field)
			r.add(e.Field, doc.Locate(e))
		}
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// A file is a schema as it is written.
type file struct {
	Dataset    string        `yaml:"dataset"`
	Unit       config.Node   `yaml:"unit"`
	Rows       int           `yaml:"rows"`
	Units      int           `yaml:"units"`
	Format     format        `yaml:"format"`
	RowNorm    float64       `yaml:"row_norm"`
	Norm       string        `yaml:"norm"`
	RowScaling string        `yaml:"row_scaling"`
	Intercept  bool          `yaml:"intercept"`
	OnBadRow   string        `yaml:"on_bad_row"`
	Features   int           `yaml:"features"`
	Min        float64       `yaml:"min"`
	Max        float64       `yaml:"max"`
	Image      image         `yaml:"image"`
	Author     string        `yaml:"author"`
	Source     string        `yaml:"source"`
	Columns    []config.Node `yaml:"columns,list"`
	Pairs      config.Node   `yaml:"pairs"`

	OtherColumns config.Node `yaml:"other_columns"`
}

type format struct {
	Kind      string   `yaml:"kind"`
	Delimiter string   `yaml:"delimiter"`
	Header    bool     `yaml:"header"`
	Comment   string   `yaml:"comment"`
	Trim      bool     `yaml:"trim"`
	Multiline bool     `yaml:"multiline"`
	Missing   []string `yaml:"missing,list"`
	Encoding  string   `yaml:"encoding"`
	Decimal   string   `yaml:"decimal"`
	Thousands string   `yaml:"thousands"`
}

type image struct {
	Shape  []int     `yaml:"shape,list"`
	Encode string    `yaml:"encode"`
	Center []float64 `yaml:"center"`
	Scale  []float64 `yaml:"scale"`
}

type column struct {
	Name      string      `yaml:"name"`
	Names     string      `yaml:"names"`
	Type      string      `yaml:"type"`
	Min       config.Node `yaml:"min"` // a number, or a date
	Max       config.Node `yaml:"max"`
	Origin    string      `yaml:"origin"`
	Layout    string      `yaml:"layout"`
	Cycles    []string    `yaml:"cycles,list"`
	Dimension int         `yaml:"dimension"`
	Bounds    string      `yaml:"bounds"`
	Transform string      `yaml:"transform"`
	Encode    string      `yaml:"encode"`
	Hats      int         `yaml:"hats"`
	Waves     int         `yaml:"waves"`
	Missing   string      `yaml:"missing"`
	Levels    []string    `yaml:"levels,list"`
	Unknown   string      `yaml:"unknown"`
	Classes   []string    `yaml:"classes,list"`
	Scale     float64     `yaml:"scale"`
	Strip     string      `yaml:"strip"`
	Source    string      `yaml:"source"`
}

// A reader makes a schema of a file. It keeps the first error of each column and of each other field.
type reader struct {
	doc  *config.Document
	open bool // numeric columns may have unknown bounds
	f    file
	errs config.Errors
	// of each column of the schema: its entry in the file's list
	entries []int
	has     map[string]bool // columns and fields with an error
}

func (r *reader) fail(path, found, allowed string) {
	r.add(path, r.doc.Fail(path, found, allowed))
}

// add keeps an error of a field, the first one of its block.
func (r *reader) add(path string, err error) {
	block, _, _ := strings.Cut(path, ".")
	if !r.has[block] {
		if r.has == nil {
			r.has = map[string]bool{}
		}
		r.has[block] = true
		r.errs = append(r.errs, err)
	}
}

// need wants a field.
func (r *reader) need(path, what string) {
	if !r.doc.Has(path) {
		r.fail(path, "nothing", what)
	}
}

// only refuses fields that kind does not have.
func (r *reader) only(kind, block string, fields ...string) {
	for _, f := range fields {
		if r.doc.Has(block + f) {
			r.fail(block+f, "a field for "+kind, "no "+f+", since kind is "+r.f.Format.Kind)
		}
	}
}

// count wants a whole number from 1 to most, where the field is given.
func (r *reader) count(path string, n, most int) int {
	if r.doc.Has(path) && (n < 1 || n > most) {
		r.fail(path, strconv.Itoa(n), "a whole number from 1 to "+strconv.Itoa(most))
	}
	return n
}

// or is v where the field is given, and otherwise its default.
func or[T any](r *reader, path string, v, otherwise T) T {
	if r.doc.Has(path) {
		return v
	}
	return otherwise
}

func (r *reader) schema() *Schema {
	f := &r.f
	s := &Schema{Dataset: f.Dataset, Author: f.Author, Source: f.Source, Grid: r.open,
		Columns: make([]Column, 0, len(f.Columns))}
	s.Format = r.format()
	if n := f.OtherColumns; n.IsBlock() { // the features of a model follow from its schema, never from a header
		r.fail("other_columns", "a block", "ignore; list similar columns under columns, in one line if their names differ in one number "+
			"(names: gene_1..gene_2309); sotto init writes those lines for the answer rest numeric 0 to 16")
	} else if n.Given() {
		if err := n.Decode(&s.OtherColumns); err != nil {
			r.add("other_columns", err)
		}
	}
	r.need("dataset", "the name of the dataset")
	r.unit(s)
	s.RowNorm = or(r, "row_norm", f.RowNorm, 1)
	if s.Norm = f.Norm; s.Norm == "l2" {
		s.Norm = "" // so that the JSON is that of a schema without the field
	}
	scaling := RowScale
	if f.Format.Kind == KindLIBSVM {
		scaling = RowProject
	}
	s.RowScaling = or(r, "row_scaling", f.RowScaling, scaling)
	s.Intercept = or(r, "intercept", f.Intercept, true)
	s.OnBadRow = or(r, "on_bad_row", f.OnBadRow, BadRowStop)
	if f.Format.Kind == KindIDX {
		r.need("image", "the block image with the shape of an image, since kind is idx")
		r.need("image.shape", "the public shape of an image, as in [28, 28]")
		r.image(s)
	} else {
		r.only("idx", "", "image")
	}
	if f.Format.Kind == KindLIBSVM {
		r.need("features", "the public number of features, since kind is libsvm")
		s.Features = r.count("features", f.Features, maxRows)
		s.Values = &Bounds{or(r, "min", f.Min, -1), or(r, "max", f.Max, 1)}
	} else {
		r.only("libsvm", "", "features", "min", "max")
	}
	r.need("columns", "a list with the columns of the table, a label among them")
	for i := range f.Columns {
		for _, c := range r.columns(f.Columns[i], fmt.Sprintf("columns[%d]", i)) {
			s.Columns, r.entries = append(s.Columns, c), append(r.entries, i)
		}
	}
	pairs, err := PairsOf(f.Pairs)
	if err != nil {
		r.add("pairs", err)
	}
	s.Pairs, s.Paired = pairs, r.doc.Has("pairs")
	return s
}

// image is what an image is, and the number of its features.
func (r *reader) image(s *Schema) {
	f := &r.f.Image
	m := &Image{Shape: f.Shape, Encode: f.Encode, Center: or(r, "image.center", f.Center, []float64{0}),
		Scale: or(r, "image.scale", f.Scale, []float64{255})}
	s.Image = m
	if m.Encode == EncodePixels {
		m.Encode = "" // so that the JSON is that of a schema without the field
	}
	if m.Encode == EncodeScattering {
		for _, field := range []string{"image.center", "image.scale"} {
			if r.doc.Has(field) {
				r.fail(field, "a field for pixels", "none with encode: scattering, which normalizes each image")
			}
		}
	}
	if slices.ContainsFunc(m.Shape, func(k int) bool { return k < 1 || k > maxDim }) || len(m.Shape) > 8 {
		r.fail("image.shape", "a size that is no number of pixels", "one to eight whole numbers from 1, as in [28, 28]")
	} else if m.Encode != EncodeScattering || len(m.Shape) > 1 {
		s.Features = m.features() // a product that wraps around, check refuses
	}
}

// unit is whom the guarantee protects, and how many of them there are.
func (r *reader) unit(s *Schema) {
	s.Unit = UnitRecord
	count, other, n := "rows", "units", r.f.Rows
	if u := r.f.Unit; u.IsBlock() {
		var unit struct {
			Name string `yaml:"name"`
			Rows int    `yaml:"rows"`
		}
		if err := u.Decode(&unit); err != nil {
			r.add("unit", err)
		}
		r.need("unit.name", "what the column of type unit identifies, in one word, as patient")
		r.need("unit.rows", "the most rows of one unit that are used, a public number")
		s.Unit, s.UnitRows = unit.Name, r.count("unit.rows", unit.Rows, MaxUnitRows)
		count, other, n = "units", "rows", r.f.Units
	} else if u.Given() && u.Text() != UnitRecord {
		r.add("unit",
			u.Wrong("record, each row by itself, or a name and the most rows of one unit, as in {name: patient, rows: 8}"))
	}
	if r.doc.Has(other) {
		r.fail(other, "a number of "+other, count+", since that is what the guarantee protects")
	}
	s.Rows = r.count(count, n, maxRows)
}

// unknown reads the field bounds of a column whose bounds are not known.
func (r *reader) unknown(block, bounds string) {
	if bounds != BoundsUnknown {
		r.fail(block+"bounds", config.Quote(bounds),
			"min and max, two public numbers, or bounds: unknown for sotto schema bounds")
	} else if !r.open {
		r.fail(block+"bounds", "unknown",
			"min and max, two public numbers; sotto schema bounds proposes them by private counts")
	}
	for _, field := range []string{"min", "max", "source"} {
		if r.doc.Has(block + field) {
			r.fail(block+field, "a "+field+" beside bounds: unknown", "no "+field+"; sotto schema bounds writes it")
		}
	}
}

// curves reads how a numeric column is encoded: the number of bumps, or of waves.
func (r *reader) curves(block string, f *column) (hats, waves int) {
	encode, hasHats, hasWaves := f.Encode, r.doc.Has(block+"hats"), r.doc.Has(block+"waves")
	hats, waves = f.Hats, f.Waves
	switch {
	case r.doc.Has(block+"encode") && encode != EncodeLinear && encode != EncodeHats && encode != EncodeWaves:
		r.fail(block+"encode", config.Quote(encode), "linear, hats or waves")
	case hasHats && encode != "" && encode != EncodeHats:
		r.fail(block+"hats", "bumps with encode: "+encode, "encode: hats, or no hats")
	case hasWaves && encode != "" && encode != EncodeWaves:
		r.fail(block+"waves", "waves with encode: "+encode, "encode: waves, or no waves")
	case hasHats && (hats < minHats || hats > maxHats): // of 0 check would see no bumps
		r.fail(block+"hats", strconv.Itoa(hats), hatsAllowed)
	case hasWaves && (waves < 1 || waves > maxWaves):
		r.fail(block+"waves", strconv.Itoa(waves), wavesAllowed)
	case encode == EncodeHats && !hasHats:
		hats = DefaultHats
	case encode == EncodeWaves && !hasWaves:
		waves = DefaultWaves
	}
	return hats, waves
}

func (r *reader) format() Format {
	f := &r.f.Format
	f.Kind = or(r, "format.kind", f.Kind, KindCSV)
	if f.Kind != KindCSV {
		r.only("csv", "format.", "delimiter", "header", "trim", "multiline", "missing", "encoding", "decimal", "thousands")
		return Format{Kind: f.Kind, Comment: f.Comment}
	}
	if f.Encoding == "utf-8" {
		f.Encoding = "" // so that the JSON is that of a schema without the field
	}
	if f.Decimal == "." {
		f.Decimal = "" // likewise
	}
	if r.doc.Has("format.thousands") && f.Thousands == "" {
		r.fail("format.thousands", `""`, thousandsAllowed+", or no thousands")
	}
	return Format{Kind: f.Kind, Comment: f.Comment, Encoding: f.Encoding, Trim: f.Trim, Multiline: f.Multiline,
		Delimiter: or(r, "format.delimiter", f.Delimiter, ","),
		Header:    or(r, "format.header", f.Header, true), Missing: or(r, "format.missing", f.Missing, []string{""}),
		Decimal: f.Decimal, Thousands: f.Thousands}
}

func (r *reader) column(n config.Node, path string) Column {
	names, _ := n.Fields()
	if t := typeOf(n.Field("type").Text()); t != nil {
		fields := []string{"name", "type"}
		for _, f := range t.fields {
			fields = append(fields, f.Name)
		}
		if t.ranges() {
			fields = append(fields, "names")
		}
		for _, name := range names {
			if !slices.Contains(fields, name) {
				r.add(path, r.doc.Unknown(path, name, fields))
				return Column{Name: n.Field("name").Text(), Type: t.name} // so that the schema has its label and unit
			}
		}
	}
	var f column
	if err := n.Decode(&f); err != nil {
		r.add(path, err)
		return Column{}
	}
	if !r.doc.Has(path + ".names") {
		r.need(path+".name", "the name of the column")
	}
	r.need(path+".type", TypeNames())
	c := Column{Name: f.Name, Type: f.Type, Levels: f.Levels, Classes: f.Classes, Dimension: f.Dimension, Scale: f.Scale,
		Strip: f.Strip, Source: f.Source}
	if t := typeOf(f.Type); t == nil {
		r.fail(path+".type", config.Quote(f.Type), TypeNames())
	} else if t.read != nil {
		t.read(r, path, &f, &c)
	}
	return c
}

// bounds are the numbers in the fields min and max of a column.
func (r *reader) bounds(path string, f *column) *Bounds {
	b := new(Bounds)
	for _, end := range []struct {
		field string
		n     config.Node
		to    *float64
	}{{".min", f.Min, &b.Min}, {".max", f.Max, &b.Max}} {
		if !end.n.Given() {
			r.fail(path+end.field, "nothing", "a public bound: a finite number")
		} else if err := end.n.Decode(end.to); err != nil {
			r.add(path, err)
		}
	}
	return b
}
