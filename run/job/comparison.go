package job

import (
	"strings"

	"github.com/sottodp/sotto/config"
)

const compareKey = "compare"

// A Comparison is the block `compare` of a spec file: what `sotto compare` varies. All trainings share
// the rest of the file.
type Comparison struct {
	Methods []Settings  `yaml:"methods"` // each a name, or a block like `method` that may have a label
	Epsilon []string    `yaml:"epsilon"` // numbers, or none: without noise
	Seeds   int         `yaml:"seeds"`   // repetitions
	Split   float64     `yaml:"split"`   // share of the rows to train on
	Folds   int         `yaml:"folds"`   // of a cross-validation
	Rows    int         `yaml:"rows"`    // declared rows of all files of data together
	Tables  []TableSpec `yaml:"tables"`  // none: the table of the spec
}

// A TableSpec is one of the tables of a comparison. A field that is left out is the spec's.
type TableSpec struct {
	Name       string   `yaml:"name"`   // of the table in the results; "" is the schema's dataset
	Schema     string   `yaml:"schema"` // paths are relative to the file
	Data       []string `yaml:"data"`   // read as one table
	Labels     string   `yaml:"labels"`
	Test       string   `yaml:"test"`
	TestLabels string   `yaml:"test_labels"`
	Rows       int      `yaml:"rows"`
	Model      Settings `yaml:"model"`
	Delta      string   `yaml:"delta"`
}

// LoadBlock reads a block of a spec file into dst, unless the file does not have it.
func LoadBlock(file, key string, dst any) (block config.Node, place string, err error) {
	src, err := readSpec(file)
	if err != nil {
		return block, "", err
	}
	return parseBlock(file, src, key, dst)
}

func parseBlock(file string, src []byte, key string, dst any) (block config.Node, place string, err error) {
	doc, err := config.Parse(file, "a spec", src)
	if err != nil {
		return block, "", input(err)
	}
	if block = doc.Root().Field(key); block.Given() {
		err = input(block.Decode(dst))
	}
	return block, doc.Place(key), err
}

// Settings are the fields of a block, as overrides whose paths begin in it.
type Settings []Override

// DecodeConfig reads a block, or a word that stands for its name.
func (s *Settings) DecodeConfig(n config.Node) error {
	if text := n.Text(); text != "" {
		*s = Settings{{Path: "name", Value: n.String(), From: n.Place()}}
		return nil
	}
	if !n.IsBlock() {
		return n.Wrong("a name or a block of fields")
	}
	names, values := n.Fields()
	for i, v := range values {
		if v.Text() == "" {
			return v.Wrong("text, a number, true or false")
		}
		*s = append(*s, Override{Path: names[i], Value: v.String(), From: n.FieldPlace(names[i])})
	}
	return nil
}

// Take removes the field of that path and returns its value.
func (s *Settings) Take(path string) (value, from string) {
	rest := Settings{}
	for _, o := range *s {
		if o.Path == path {
			value, from = strings.Trim(o.Value, `"'`), o.From
			continue
		}
		rest = append(rest, o)
	}
	*s = rest
	return value, from
}

// LoadComparison reads the block `compare` of a spec file. Without the block, or without a file, it
// returns the zero value.
func LoadComparison(file string) (c Comparison, err error) {
	if file == "" {
		return c, nil
	}
	src, err := readSpec(file)
	if err != nil {
		return c, err
	}
	return parseComparison(file, src)
}

func parseComparison(file string, src []byte) (c Comparison, err error) {
	if _, _, err := parseBlock(file, src, compareKey, &c); err != nil {
		return c, err
	}
	for i := range c.Tables {
		t := &c.Tables[i]
		for _, p := range []*string{&t.Schema, &t.Labels, &t.Test, &t.TestLabels} {
			*p = Beside(file, *p)
		}
		for j, p := range t.Data {
			t.Data[j] = Beside(file, p)
		}
	}
	return c, nil
}

// Decode reads the settings into a struct whose fields have yaml tags; path is what errors call it.
func (s Settings) Decode(dst any, path string) error {
	doc, err := config.Parse("", "settings", nil)
	if err != nil {
		return err
	}
	for _, o := range s {
		if err := doc.Set(o.Path, o.Value, o.From); err != nil {
			return input(err)
		}
	}
	root, err := doc.RootAs(path)
	if err == nil {
		err = root.Decode(dst)
	}
	return input(err)
}
