package netplan

import (
	"errors"
	"slices"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
)

// A Network is the block `network` of a spec file: which owners train together, and with which rows. In mode gossip it
// says over which graph and by which method of package gossip, and `sotto fit` ignores it. In mode sum the rest of the
// spec says how.
type Network struct {
	Mode      string `yaml:"mode"`      // gossip, the default, or sum
	Colluders int    `yaml:"colluders"` // this and Retries: mode sum only
	Retries   *int   `yaml:"retries"`

	Owners int      `yaml:"owners"` // number of owners; a keyed hash of each row divides data among them
	Column string   `yaml:"column"` // categorical column of data whose levels are the owners
	Files  []string `yaml:"files"`  // a file for each owner, instead of data
	Rows   []int    `yaml:"rows"`   // declared rows of each owner; a single number holds for each

	Graph       string  `yaml:"graph"`
	Probability float64 `yaml:"probability"` // of an edge, where the graph is random
	EdgeList    string  `yaml:"edge_list"`   // file of the edges, where it is from a file
	Schedule    string  `yaml:"schedule"`
	Edges       int     `yaml:"edges"`
	Rounds      int     `yaml:"rounds"`
	Seed        uint64  `yaml:"seed"` // of graph and schedule, public

	Method job.Settings `yaml:"method"` // of package gossip
}

// Load reads the block `network` of a spec file, and the position of each of its fields.
func Load(file string) (n Network, places map[string]string, err error) {
	block, place, err := job.LoadBlock(file, "network", &n)
	switch {
	case err != nil:
		return n, nil, err
	case !block.Given():
		return n, nil, &run.InputError{Where: file + ":1:1",
			Err: errors.New(`field "network" is missing: a block that says who trains together`)}
	}
	places = map[string]string{"": place}
	names, _ := block.Fields()
	for _, name := range names {
		places[name] = block.FieldPlace(name)
	}
	for i, p := range n.Files {
		n.Files[i] = job.Beside(file, p)
	}
	n.EdgeList = job.Beside(file, n.EdgeList)
	return n, places, nil
}

// Method reads the settings of the block method of a network, beside the name, into a method of entry's.
func Method(s job.Settings, entry gossip.Entry) (gossip.Method, error) {
	s = slices.Clone(s)
	s.Take("name")
	return entry.DecodeBy(func(v any) error { return s.Decode(v, "network.method") })
}
