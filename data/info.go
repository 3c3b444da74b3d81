package data

import (
	"github.com/sottodp/sotto/schema"
)

// A Description is what a table says of itself that depends on none of its rows.
type Description struct {
	Form   string         // what kind of table it is
	Schema *schema.Schema // of a packed table; nil for others
	Shape  []int          // of an image; nil for others
	Fields []FieldName    // columns, in the order of the table; nil where the table does not say
}

// A FieldName is a column and its type, in the words of the table's form.
type FieldName struct{ Name, Type string }

// Describe says what the table at path is, by its header alone. How many rows there
// are is private under add-or-remove and no part of it (R9). Nor is the first line
// of a text, which may be a row.
func Describe(path string) (*Description, error) {
	if isSQL(path) {
		return describeSQL(path)
	}
	if isPacked(path) {
		p, err := readPackedFacts(path)
		if err != nil {
			return nil, err
		}
		d := &Description{Form: "packed table, dense rows", Schema: p.schema}
		if p.flags&packSparse != 0 {
			d.Form = "packed table, sparse rows"
		}
		if p.flags&packLabeled == 0 {
			d.Form += ", without labels"
		}
		return d, nil
	}
	if shape, ok := imageShape(path); ok {
		return &Description{Form: "images (IDX, unsigned bytes)", Shape: shape}, nil
	}
	if beginsWith(path, parquetMagic) {
		p, err := openParquet(path)
		if err != nil {
			return nil, err
		}
		defer p.close()
		return &Description{Form: "Parquet", Fields: p.fields()}, nil
	}
	f, err := openFile(path, nil)
	if err != nil {
		return nil, err
	}
	defer f.close()
	return &Description{Form: "text, or something that Sotto does not know"}, nil
}
