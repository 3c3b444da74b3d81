package job

const tuneKey = "tune"

// A Tuning is the block `tune` of a spec file: what a search draws from. `sotto fit` ignores it.
type Tuning struct {
	Methods []Settings `yaml:"methods"` // candidates, each a name, or a block like `method` that may have a label
	Mean    float64    `yaml:"mean"`    // number of trainings on average; 0 means 10
	// Bound truncates the loss of a row in a private score, the mean loss on the rows; 0 means 4. A search
	// with a test file scores on its rows.
	Bound float64 `yaml:"loss_bound"`
}

// LoadTuning reads the block `tune` of a spec file, and returns its position.
func LoadTuning(file string) (t Tuning, place string, err error) {
	block, place, err := LoadBlock(file, tuneKey, &t)
	if err == nil && !block.Given() {
		err = inputError(file+":1:1", "field %q is missing: a block that says what to draw from", tuneKey)
	}
	return t, place, err
}
