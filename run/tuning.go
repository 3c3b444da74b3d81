package run

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
	r := &specReader{file: file}
	if r.root, err = parseMapping(src); err != nil {
		return t, "", r.located(err)
	}
	block := lookup(r.root, tuneKey)
	if block == nil {
		return t, "", inputError(file+":1:1", "field %q is missing: a block that says what to draw from", tuneKey)
	}
	at := block.Key.GetToken().Position
	return t, r.place(at.Line, at.Column), r.decode(block.Value, &t, tuneKey)
}
