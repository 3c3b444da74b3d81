package run

import (
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/sottodp/sotto/gossip"
)

const networkKey = "network"

// A Network is the block `network` of a spec file: how many owners train together, who has which rows, who
// speaks to whom, and with which method of package gossip. `sotto fit` does not look at it.
type Network struct {
	Owners int      `yaml:"owners"` // that divide data by a keyed hash of each row
	Column string   `yaml:"column"` // categorical column of data whose levels are the owners
	Files  []string `yaml:"files"`  // a file for each owner, in the place of data
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

// LoadNetwork reads the block `network` of a spec file, and where each of its fields stands.
func LoadNetwork(file string) (n Network, places map[string]string, err error) {
	src, err := readSpec(file)
	if err != nil {
		return n, nil, err
	}
	r := &specReader{file: file}
	if r.root, err = parseMapping(src); err != nil {
		return n, nil, r.located(err)
	}
	block := lookup(r.root, networkKey)
	if block == nil {
		return n, nil, inputError(file+":1:1", "field %q is missing: a block that says who trains together", networkKey)
	}
	at := block.Key.GetToken().Position
	places = map[string]string{"": r.place(at.Line, at.Column)}
	if err := r.decode(block.Value, &n, networkKey); err != nil {
		return n, nil, err
	}
	for _, f := range block.Value.(*ast.MappingNode).Values {
		p := f.Key.GetToken().Position
		places[fieldName(f)] = r.place(p.Line, p.Column)
	}
	for i, p := range n.Files {
		n.Files[i] = r.path(p, 1)
	}
	n.EdgeList = r.path(n.EdgeList, 1)
	return n, places, nil
}

// Method reads the settings of the block method of a network, beside the name, into a method of entry's.
func (s Settings) Method(entry gossip.Entry) (gossip.Method, error) {
	s = slices.Clone(s)
	s.Take("name")
	config := reflect.New(reflect.TypeOf(entry.Method))
	if err := s.Decode(config.Interface(), "network.method"); err != nil {
		return nil, err
	}
	return config.Elem().Interface().(gossip.Method), nil
}

// Decode reads the settings into a struct whose fields have yaml tags; path is what errors call it.
func (s Settings) Decode(dst any, path string) error {
	r := &specReader{overrides: s}
	m, err := parseMapping(nil)
	if err != nil {
		return err
	}
	for k, o := range s {
		v, err := r.entry(k, o, o.Path)
		if err != nil {
			return err
		}
		m.Values = append(m.Values, v)
	}
	return r.decode(m, dst, path)
}
