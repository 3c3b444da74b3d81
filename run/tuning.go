package run

import (
	"github.com/sottodp/sotto/config"
)

const tuneKey = "tune"

// A Tuning is the block `tune` of a spec file: what a search draws from. `sotto fit` does not look at it.
type Tuning struct {
	Methods []Settings `yaml:"methods"` // candidates, each a name, or a block like `method` that may have a label
	Mean    float64    `yaml:"mean"`    // number of trainings on average; 0 means 10
	// Bound is the most that one row's loss counts in a private score, which is the mean loss on the rows; 0 means 4. Rows of a test file need no such score.
	Bound float64 `yaml:"loss_bound"`
}

// LoadTuning reads the block `tune` of a spec file, and says where it stands.
func LoadTuning(file string) (t Tuning, place string, err error) {
	src, err := readSpec(file)
	if err != nil {
		return t, "", err
	}
	doc, err := config.Parse(file, "a spec", src)
	if err != nil {
		return t, "", input(err)
	}
	block := doc.Root().Field(tuneKey)
	if !block.Given() {
		return t, "", inputError(file+":1:1", "field %q is missing: a block that says what to draw from", tuneKey)
	}
	return t, doc.Place(tuneKey), input(block.Decode(&t))
}
