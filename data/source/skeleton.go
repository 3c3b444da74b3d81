package source

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
)

// skeletonOfColumns is the skeleton for a table with those columns.
func skeletonOfColumns(name, format string, columns []string) []byte {
	var b strings.Builder
	b.WriteString(skeletonHead(name) + `format:` + format + `
row_norm: 1
on_bad_row: stop # or drop

# A line for each column: give it a type, and what belongs to that, as in
#   - {name: age, type: numeric, min: 0, max: 120}                values beyond are clamped
#   - {name: income, type: numeric, min: 0, max: 1e6, transform: log1p}
#   - {name: glucose, type: numeric, bounds: unknown}             sotto schema bounds estimates them at a cost
#   - {name: ward, type: categorical, levels: [north, south]}     every level there may be; unknown: zero, or a level
#   - {name: readmitted, type: label, classes: [no, yes]}         one label in all; of a number: min and max
#   - {name: notes, type: ignore}                                 also a column without a name
#   - {name: patient_id, type: unit}                              whose row it is, where people have several; then
#     unit: {name: patient, rows: 8} (at most 8 rows of a patient are used) and units: (how many) instead of rows:
columns:
`)
	for _, h := range columns {
		b.WriteString("  - {name: " + yamlText(h) + ", type: } # numeric, categorical, label, ignore or unit\n")
	}
	return []byte(b.String())
}

// skeletonHead begins every skeleton.
func skeletonHead(name string) string {
	return `# A schema for sotto. All of it is public: fill it in from what you know of the
# data (a codebook, a form, the law), never from the rows themselves.

dataset: ` + yamlText(name) + ` # the name that the privacy budget goes by, the same forever
rows: # a person must fill this in: the nominal number of rows, about as many as there are
`
}

// skeletonOfImages is the skeleton for an IDX file of images of that shape.
func skeletonOfImages(name string, shape []int) []byte {
	return []byte(skeletonHead(name) + `format: {kind: idx}
image:
  shape: ` + shapeText(shape) + `
  center: 0 # a pixel v, from 0 to 255, becomes (v - center)/scale before the row rule
  scale: 255 # each may be one number, or a list with one for each pixel; public ones
row_norm: 1

columns:
  - name: label
    type: label
    classes: # a person must fill this in: a list of the labels' numbers, as in ["0", "1"]
`)
}

// Skeleton returns a schema in YAML for the table at path, by its first file, that leaves open what a person must decide:
// types, bounds, levels, classes, the number of rows. [schema.Parse] refuses it until they are filled in,
// and says where. It reads only the first line of a CSV file. A first line with a number
// in it is an error: it could be a row, and its values would go into the schema. It reads only the shape
// of images (IDX), and only the names of the columns of a Parquet or Arrow file or a table of a database. The
// delimiter of CSV is one character; "" stands for the most frequent of comma, semicolon, tab and bar in
// the line.
func Skeleton(path, delimiter string) ([]byte, error) {
	files, err := data.Files(path) // all have the same columns
	if err != nil {
		return nil, err
	}
	path = files[0]
	d, err := data.Describe(path, Formats())
	switch {
	case err != nil:
		return nil, err
	case d.Shape != nil:
		return skeletonOfImages(baseName(path), d.Shape), nil
	case d.Fields != nil:
		var names []string
		for _, f := range d.Fields {
			names = append(names, f.Name)
		}
		return skeletonOfColumns(baseName(path), " {kind: csv} # Parquet and Arrow files and SQL tables too", names), nil
	}
	file, err := data.OpenFile(path, nil)
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
		return nil, &config.Error{File: path, Line: 1, Found: "a line of more than 8 MiB", Allowed: "a header line that names the columns"}
	case err != nil:
		return nil, err
	case !isText(line):
		return nil, &config.Error{File: path, Line: 1, Found: notText.Found, Allowed: "a text file in UTF-8, or UTF-16 with a byte order mark"}
	}
	header := strings.TrimRight(string(line), "\r\n")
	delimiter = pickDelimiter(header, delimiter)
	cells := splitHeader(header, delimiter)
	for _, c := range cells {
		found := ""
		switch _, fault := config.ParseNumber(c); {
		case c == "" && len(cells) == 1:
			found = "an empty line"
		case fault == "" || fault == "NaN":
			found = "a number where a column name should be"
		case strings.HasPrefix(strings.TrimSpace(header), "{"):
			found = "a line that begins with { (JSON Lines?)"
		case !config.PlainText(c):
			found = "control characters in a column name"
		case strings.Contains(c, ":") && len(cells) == 1:
			found = "text with a colon (a LIBSVM file?)"
		}
		if found != "" {
			return nil, &config.Error{File: path, Line: 1, Found: found, Allowed: "a header line that names the columns",
				Hint: "a file without a header needs a schema written by hand, with header: false"}
		}
	}
	return skeletonOfColumns(baseName(path), `
  kind: csv
  delimiter: `+yamlText(delimiter), cells), nil
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

func pickDelimiter(header, delimiter string) string {
	if delimiter != "" {
		return delimiter
	}
	return slices.MaxFunc([]string{",", ";", "\t", "|"}, func(a, b string) int {
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

// yamlText returns s as a double-quoted YAML scalar; a JSON string is one.
func yamlText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("data: text that cannot be encoded: " + err.Error()) // cannot happen for a string
	}
	return strings.TrimSpace(b.String())
}
