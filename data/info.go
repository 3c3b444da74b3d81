package data

import (
	"context"
	"fmt"
	"slices"

	"github.com/sottodp/sotto/schema"
)

// A Description is what a table says about itself independently of its rows.
type Description struct {
	Form   string         // what kind of table it is
	Schema *schema.Schema // of a packed table; nil for others
	Shape  []int          // of an image; nil for others
	Fields []FieldName    // columns, in the order of the table; nil where the table does not say
}

// A FieldName is a column and its type, in the words of the table's form.
type FieldName struct{ Name, Type string }

// Describe describes the table at path by its header alone. It does not include the number of rows, which
// is private under add-or-remove (R9), nor the first line of a text file, which may be a row. Reading ends with ctx.
func Describe(ctx context.Context, path string, formats []Format) (*Description, error) {
	files, err := Files(path)
	if err != nil {
		return nil, err
	}
	d, err := describe(ctx, files[0], formats)
	for _, f := range files[1:] {
		if err != nil {
			break
		}
		var other *Description
		if other, err = describe(ctx, f, formats); err == nil &&
			(!slices.EqualFunc(other.Fields, d.Fields, func(a, b FieldName) bool {
				return a.Name == b.Name
			})) {
			err = otherColumns(f, files[0])
		}
	}
	if err != nil {
		return nil, err
	}
	if len(files) > 1 {
		d.Form = fmt.Sprintf("a table of %d files, the first of which is %s", len(files), d.Form)
	}
	return d, nil
}

// describe describes one file, object or table of a database.
func describe(ctx context.Context, path string, formats []Format) (*Description, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if IsPacked(path) {
		p, err := readPackedFacts(path)
		if err != nil {
			return nil, err
		}
		d := &Description{Form: "packed table, dense rows", Schema: p.schema}
		if p.flags&packSparse != 0 {
			d.Form = "packed table, sparse rows"
		}
		if p.flags&packShort != 0 {
			d.Form += " of 16-bit numbers"
		}
		if p.flags&packLabeled == 0 {
			d.Form += ", without labels"
		}
		return d, nil
	}
	for _, f := range formats {
		if f.Describe == nil {
			continue
		}
		if d, err := f.Describe(ctx, path); d != nil || err != nil {
			return d, err
		}
	}
	f, err := OpenFile(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	return &Description{Form: "text, or something that Sotto does not know"}, f.Close()
}
