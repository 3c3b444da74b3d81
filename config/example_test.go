package config_test

import (
	"fmt"

	"github.com/sottodp/sotto/config"
)

// A block of YAML becomes a struct; what is wrong is named with its line and column.
func Example() {
	var spec struct {
		Epsilon float64  `yaml:"epsilon"`
		Layers  []string `yaml:"layers"`
	}
	for _, text := range []string{"epsilon: 0.5\nlayers: [8 relu]\n", "epsilom: 0.5\n"} {
		doc, err := config.Parse("spec.yaml", "a spec", []byte(text))
		if err == nil {
			err = doc.Root().Decode(&spec)
		}
		fmt.Println(spec.Epsilon, spec.Layers, err)
	}
	// Output:
	// 0.5 [8 relu] <nil>
	// 0.5 [8 relu] spec.yaml:1:1: unknown field "epsilom"; the fields are epsilon, layers
}
