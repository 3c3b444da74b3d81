package source_test

import (
	"fmt"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
)

// Formats says in which forms Sotto reads tables. What their readers return passes the gate of access first.
func ExampleFormats() {
	formats := source.Formats()
	for _, name := range []string{"a Parquet file", "a fixed-width file"} {
		fmt.Println(name, slices.ContainsFunc(formats, func(f data.Format) bool { return f.Name == name }))
	}
	// Output:
	// a Parquet file true
	// a fixed-width file false
}
