package run

import (
	"slices"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/gossip"
)

const networkKey = "network"

// A Network is the block `network` of a spec file: which owners train together, and with which rows. In mode gossip it says over
// which graph and by which method of package gossip, and `sotto fit` ignores it. In mode sum the rest of the spec says how.
type Network struct {
	Mode      string `yaml:"mode"`      // gossip, the default, or sum
	Colluders int    `yaml:"colluders"` // of mode sum, likewise the next one
	Retries   *int   `yaml:"retries"`

	Owners int      `yaml:"owners"` // that divide data by a keyed hash of each row
	Column string   `yaml:"column"` // categorical column of data whose levels are the owners
	Files  []string `yaml:"files"`  // a file for each owner, instead of data
	Rows   []int    `yaml:"rows"`   // declared rows of each owner; one number: of all

	Graph       string  `yaml:"graph"`
	Probability float64 `yaml:"probability"` // of an edge, where the graph is random
	EdgeList    string  `yaml:"edge_list"`   // file of the edges, where it is from a file
	Schedule    string  `yaml:"schedule"`
	Edges       int     `yaml:"edges"`
	Rounds      int     `yaml:"rounds"`
	Seed        uint64  `yaml:"seed"` // of graph and schedule, public

	Method Settings `yaml:"method"` // of package gossip
}

// LoadNetwork reads the block `network` of a spec file, and the position of each of its fields.
func LoadNetwork(file string) (n Network, places map[string]string, err error) {
	block, place, err := loadBlock(file, networkKey, &n)
	switch {
	case err != nil:
		return n, nil, err
	case !block.Given():
		return n, nil, inputError(file+":1:1", "field %q is missing: a block that says who trains together", networkKey)
	}
	places = map[string]string{"": place}
	names, _ := block.Fields()
	for _, name := range names {
		places[name] = block.FieldPlace(name)
	}
	for i, p := range n.Files {
		n.Files[i] = beside(file, p)
	}
	n.EdgeList = beside(file, n.EdgeList)
	return n, places, nil
}

// Method reads the settings of the block method of a network, beside the name, into a method of entry's.
func (s Settings) Method(entry gossip.Entry) (gossip.Method, error) {
	s = slices.Clone(s)
	s.Take("name")
	return entry.DecodeBy(func(v any) error { return s.Decode(v, "network.method") })
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
