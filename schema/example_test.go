package schema_test

import (
	"fmt"

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

func ExampleParse() {
	s, err := schema.Parse("clinic.yaml", []byte(clinic))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Dim(), s.FeatureNames())
	fmt.Println(s.LabelName(), s.ClassNames())

	_, err = schema.Parse("bad.yaml", []byte("dataset: clinic\nrows: some\n"))
	fmt.Println(err)
	// Output:
	// 4 [age ward=north ward=south (intercept)]
	// stayed [no yes]
	// bad.yaml:2:7: rows: found "some"; write a whole number
}
