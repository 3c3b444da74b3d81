package data_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/schema"
)

const clinic = `
dataset: clinic
rows: 3
columns:
  - {name: age, type: numeric, min: 18, max: 98}
  - {name: ward, type: categorical, levels: [north, south], missing: zero}
  - {name: stayed, type: label, classes: ["no", "yes"]}
`

func ExampleRead() {
	s, err := schema.Parse("clinic.yaml", []byte(clinic))
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "clinic.csv")
	if err := os.WriteFile(path, []byte("age,ward,stayed\n98,north,yes\n58,south,no\n58,,no\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	table, _, err := data.Read(context.Background(), &datatest.Gate{}, s, path, data.Options{Formats: source.Formats()})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := table.Blocks[0]
	for i := range b.N {
		fmt.Printf("%.3f label %v norm %.3f\n", b.X[i*b.Dim:(i+1)*b.Dim], b.Y[i], b.Norm[i])
	}
	// Output:
	// [0.577 0.577 0.000 0.577] label 1 norm 1.000
	// [0.000 0.000 0.707 0.707] label 0 norm 1.000
	// [0.000 0.000 0.000 1.000] label 0 norm 1.000
}
