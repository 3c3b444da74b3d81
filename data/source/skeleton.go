package source

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

// An Outline is what a schema needs of a table: its header. It has nothing of the rows.
type Outline struct {
	Name    string           // of the file, without directories and extensions
	Columns []data.FieldName // with the types that the file declares, if it does; of images, the label alone
	// of a CSV file, "" for others
	Delimiter string
	kind      string // what the schema's block format begins with
	shape     []int  // of images
}

// Answers are what a person says about a table, for [Outline.Schema].
type Answers struct {
	Dataset  string
	Unit     string // what the column of type unit identifies; "": a row is a unit
	UnitRows int    // the most rows of one unit
	Rows     int    // nominal number of units
	Columns  []string
	Notation string   // fields of the block format that say how numbers are written; "": with a point
	Missing  []string // marks of missing values, the empty cell among them; nil: that alone
}

// Skeleton returns a schema for the table at path that leaves open what a person must decide: types, bounds, levels,
// classes, the number of rows. [schema.Parse] refuses it until they are filled in, and says where. It reads what
// [OutlineOf] reads.
func Skeleton(ctx context.Context, path, delimiter string) ([]byte, error) {
	o, err := OutlineOf(ctx, path, delimiter)
	if err != nil {
		return nil, err
	}
	return o.skeleton(), nil
}

func (o *Outline) skeleton() []byte {
	var b strings.Builder
	b.WriteString(`# A schema for sotto. All of it is public: fill it in from what you know of the
# data (a codebook, a form, the law), never from the rows themselves.

dataset: ` + schema.Text(o.Name) + datasetComment + `
rows: # a person must fill this in: the nominal number of rows, about as many as there are
`)
	o.writeFormat(&b, &Answers{})
	if o.shape != nil {
		b.WriteString(`
columns:
  - name: label
    type: label
    classes: # a person must fill this in: a list of the labels' numbers, as in ["0", "1"]
`)
		return []byte(b.String())
	}
	b.WriteString(`
# A line for each column: give it a type, and what belongs to that, as in
`)
	for _, l := range schema.Samples() {
		b.WriteString(strings.TrimRight(fmt.Sprintf("#   - %-59s %s", l[0], l[1]), " ") + "\n")
	}
	b.WriteString(`# Where people have several rows: unit: {name: patient, rows: 8} (at most 8 rows of a patient are used) and units: (how many) instead of rows:
columns:
`)
	for _, c := range o.Columns {
		b.WriteString("  - {name: " + schema.Text(c.Name) + ", type: } # " + schema.TypeNames() + "\n")
	}
	return []byte(b.String())
}

const datasetComment = " # the name that the privacy budget goes by, the same forever"

// Schema is the schema that a person's answers make. Each of Columns is a line of the schema, as in {name: x, type:
// ignore}.
func (o *Outline) Schema(a *Answers) []byte {
	var b strings.Builder
	b.WriteString(`# A schema for sotto. All of it is public: a person wrote it from what is known of the
# data, never from the rows themselves.

dataset: ` + schema.Text(a.Dataset) + datasetComment + "\n")
	count := "rows"
	if a.Unit != "" {
		fmt.Fprintf(&b, "unit: {name: %s, rows: %d} # at most so many rows of one are used\n", schema.Text(a.Unit),
			a.UnitRows)
		count = "units"
	}
	fmt.Fprintf(&b, "%s: %d # nominal: about as many as there are\n", count, a.Rows)
	o.writeFormat(&b, a)
	b.WriteString("\ncolumns:\n")
	for _, c := range a.Columns {
		b.WriteString("  - " + c + "\n")
	}
	return []byte(b.String())
}

// writeFormat writes how the file is written, and how rows are held to the norm bound.
func (o *Outline) writeFormat(b *strings.Builder, a *Answers) {
	fields := []string{"kind: " + o.kind}
	if o.Delimiter != "" {
		fields = append(fields, "delimiter: "+schema.Text(o.Delimiter))
	}
	if a.Notation != "" {
		fields = append(fields, a.Notation)
	}
	if a.Missing != nil {
		var marks []string
		for _, m := range a.Missing {
			marks = append(marks, schema.Text(m))
		}
		fields = append(fields, "missing: ["+strings.Join(marks, ", ")+"]")
	}
	switch {
	case o.Delimiter != "" && a.Notation != "":
		b.WriteString("format: {" + strings.Join(fields, ", ") + "}")
	case o.Delimiter != "":
		b.WriteString("format:\n  " + strings.Join(fields, "\n  "))
		if o.Delimiter == ";" {
			b.WriteString("\n  # decimal: \",\" # for numbers as 1234,5; with thousands: \".\" for 1.234,5")
		}
	case o.shape == nil:
		b.WriteString("format: {" + strings.Join(fields, ", ") + "} # Parquet and Arrow files and SQL tables too")
	default:
		b.WriteString("format: {" + strings.Join(fields, ", ") + "}")
	}
	if o.shape != nil {
		b.WriteString(`
image:
  shape: ` + shapeText(o.shape) + `
  center: 0 # a pixel v, from 0 to 255, becomes (v - center)/scale before the row rule
  scale: 255 # each may be one number, or a list with one for each pixel; public ones
row_norm: 1
`)
		return
	}
	b.WriteString(`
row_norm: 1
on_bad_row: stop # or drop
`)
}

// Named says whether the table has named columns, rather than images.
func (o *Outline) Named() bool { return o.shape == nil }

// OutlineOf returns the outline of the table at path, by its first file. It reads only the first line of a CSV file. A
// first line with a number in it is an error: it could be a row, and its values would go into the schema. It reads only
// the shape of images (IDX), and only the names and types of the columns of a Parquet or Arrow file or a table of a
// database. The delimiter of CSV is one character; "" stands for the most frequent of comma, semicolon, tab and bar in
// the line.
func OutlineOf(ctx context.Context, path, delimiter string) (*Outline, error) {
	files, err := data.Files(path) // all have the same columns
	if err != nil {
		return nil, err
	}
	path = files[0]
	if err := notPacked(ctx, path); err != nil {
		return nil, err
	}
	d, err := data.Describe(ctx, path, Formats())
	switch {
	case err != nil:
		return nil, err
	case d.Shape != nil:
		label := []data.FieldName{{Name: "label"}}
		return &Outline{Name: baseName(path), Columns: label, kind: schema.KindIDX, shape: d.Shape}, nil
	case d.Fields != nil:
		for i, f := range d.Fields {
			if found := controlFault(f.Name); found != "" || len(f.Name) > mostName {
				return nil, &config.Error{File: path,
					Err: fmt.Errorf("the name of column %d has %s in it; give the column another name", i+1,
						cmp.Or(found, "more than 1000 bytes"))}
			}
		}
		return &Outline{Name: baseName(path), Columns: d.Fields, kind: schema.KindCSV}, nil
	}
	if f := data.Claims(ctx, path, Formats()); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if f != nil {
		return nil, &config.Error{File: path, Found: f.Name, Allowed: "a table whose header names the columns",
			Hint: "write its schema by hand, with a line for each column"}
	}
	file, err := data.OpenFile(ctx, path, nil)
	in, err := newLines(file, err, 64<<10, "")
	if err != nil {
		return nil, err
	}
	defer in.Close()
	line, _, _, err := in.first(func(p *piece) ([]byte, data.Fault, error) {
		line, err := p.next()
		return line, data.Fault{}, err
	})
	switch {
	case err == io.EOF:
		return nil, &config.Error{File: path, Found: "an empty file", Allowed: "a header line that names the columns"}
	case err == errLongLine:
		return nil, &config.Error{File: path, Line: 1, Found: "a line of more than 8 MiB",
			Allowed: "a header line that names the columns"}
	case err != nil:
		return nil, err
	}
	header := strings.TrimRight(string(line), "\r\n")
	if err := otherFile(path, header); err != nil {
		return nil, err
	}
	if !isText(line) {
		return nil, &config.Error{File: path, Line: 1, Found: notText(line).Found,
			Allowed: "a text file in UTF-8, or UTF-16 with a byte order mark"}
	}
	delimiter = pickDelimiter(header, delimiter)
	cells := splitHeader(header, delimiter)
	for _, c := range cells {
		found := ""
		switch _, fault := config.ParseNumber(c); {
		case controlFault(c) != "":
			found = "a header with " + controlFault(c) + " within it"
		case strings.Count(header, `"`)%2 == 1:
			found = "a quoted cell in the header that is not closed"
		case c == "" && len(cells) == 1:
			found = "an empty line"
		case fault == "" || fault == "NaN":
			found = "a number where a column name should be"
		case jsonArray(header):
			return nil, arrayError(path)
		case strings.HasPrefix(strings.TrimSpace(header), "{"):
			found = "a line that begins with { (JSON Lines?)"
		case strings.Contains(c, ":") && len(cells) == 1:
			found = "text with a colon (a LIBSVM file?)"
		}
		if found != "" {
			return nil, &config.Error{File: path, Line: 1, Found: found, Allowed: "a header line that names the columns",
				Hint: "a file without a header needs a schema written by hand, with header: false"}
		}
	}
	o := &Outline{Name: baseName(path), kind: schema.KindCSV, Delimiter: delimiter}
	for _, c := range cells {
		o.Columns = append(o.Columns, data.FieldName{Name: c})
	}
	return o, nil
}

// notPacked is the error of a packed table.
func notPacked(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil || !data.IsPacked(path) {
		return err
	}
	return &config.Error{File: path, Found: "a packed table", Allowed: "a table of another form",
		Hint: "it holds the schema that it was packed under, which sotto data info shows"}
}

// otherFile is the error of a file whose first line is that of another form than a table; nil if it may be a header.
func otherFile(path, line string) error {
	form, table := config.Form([]byte(line))
	ext := strings.ToLower(filepath.Ext(data.Uncompressed(path)))
	switch {
	case table: // a damaged one
		return nil
	case form != "":
	case (ext == ".yaml" || ext == ".yml") && isText([]byte(line)), yamlLine.MatchString(line):
		form = "a spec or a schema (YAML)"
	case sqlDump.MatchString(line):
		return &config.Error{File: path, Line: 1,
			Err: errors.New("the file is an SQL dump; load it into a database and name the table there, as FILE.db?table=NAME, or export the table as CSV")}
	case len(line) <= 6 && strings.HasPrefix(strings.ToLower(line), "sep="):
		return &config.Error{File: path, Line: 1,
			Err: errors.New("the line says sep=, which Excel alone reads; remove it, so that the header comes first")}
	default:
		return nil
	}
	return &config.Error{File: path,
		Err: fmt.Errorf("the file looks like %s, not a table; give a table of text, Parquet, Arrow or SQLite", form)}
}

// sqlDump is a line with which a dump of a database begins.
var sqlDump = regexp.MustCompile(`(?i)^\s*(--|/\*|PRAGMA\s+\w+|BEGIN( TRANSACTION)?;|(CREATE|DROP)\s+(TABLE|DATABASE|SCHEMA)\s|INSERT\s+INTO\s|SET\s+\w+\s*=|COPY\s.*\sFROM\s+stdin)`)

// yamlLine is a line with which a spec or a schema may begin: a field without a value, with a block, or with one word
// or path.
var yamlLine = regexp.MustCompile(`^(---|[A-Za-z_]\w*:( *| +[{\[].*| +[^\s,;|]+))$`)

// mostName is the most bytes of a column's name in a schema.
const mostName = 1000

// controlFault says which control character or line end is in the header or in a name; "": none but tabs. What follows
// such a character may be rows.
func controlFault(text string) string {
	for _, r := range text {
		switch {
		case r == '\r':
			return "a carriage return (CR)"
		case r == '\n':
			return "a line break"
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			return fmt.Sprintf("a line or paragraph separator (U+%04X)", r)
		case r != '\t' && unicode.IsControl(r):
			return fmt.Sprintf("a control character (U+%04X)", r)
		}
	}
	return ""
}

// baseName returns the name of a file without directories and extensions.
func baseName(path string) string {
	if isSQL(path) {
		if t, err := parseSQL(path); err == nil {
			return t.table
		}
	}
	name := filepath.Base(path)
	name = data.Uncompressed(name)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// delimiters are those that a header is tried with.
var delimiters = []string{",", ";", "\t", "|"}

// rareDelimiters may be part of a column's name: a header is separated by one of them if that shows every column of the
// schema.
var rareDelimiters = []string{" ", ":", "^", "~"}

func pickDelimiter(header, delimiter string) string {
	if delimiter != "" {
		return delimiter
	}
	return slices.MaxFunc(delimiters, func(a, b string) int {
		return strings.Count(header, a) - strings.Count(header, b)
	})
}

// splitHeader returns the header's cells, without spaces around them. A line that is not CSV, or has a
// delimiter that CSV does not allow, is split at every delimiter.
func splitHeader(header, delimiter string) []string {
	r := csv.NewReader(strings.NewReader(header))
	r.Comma, _ = utf8.DecodeRuneInString(delimiter)
	cells, err := r.Read()
	if err != nil {
		cells = strings.Split(header, delimiter)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}
