// Package agreement states what owners of rows who train together agree on, as a typed value, and
// its two forms in files. It knows nothing of rows.
//
// A network's files hold a hash of each part of the agreement, and an owner's directory holds the
// parts themselves. Networks of format sotto-network/3 have one part for each field of Agreement.
// Those of format sotto-network/2 have the parts of version 1 (v1.go).
package agreement

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// An Agreement is what must be the same for all owners before they train.
type Agreement struct {
	Schema   json.RawMessage `json:"schema"`
	Model    Model           `json:"model"`
	Privacy  Privacy         `json:"privacy"`
	Lab      bool            `json:"lab"`
	Seed     *uint64         `json:"seed"` // of noise and samples, lab only
	Schedule Schedule        `json:"schedule"`
	Method   Method          `json:"method"`
	Owners   []Owner         `json:"owners"`
	Sum      *Sum            `json:"sum,omitempty"` // of a network whose owners add up masked sums
}

// A Sum is what owners who add up masked sums agree on: the training is that of one process with the rows of all, and
// each has the same method, plan and output. Schedule is empty then, as are the methods and plans of Owners.
type Sum struct {
	Colluders int             `json:"colluders"`
	Retries   int             `json:"retries"`
	Output    string          `json:"output"`
	Public    oracle.Public   `json:"public"`
	Method    json.RawMessage `json:"method"` // configured
	Plan      json.RawMessage `json:"plan"`   // event
}

// A Model is the block model of a spec, and the column to predict if it is not the schema's label.
type Model struct {
	Spec  json.RawMessage `json:"spec"`
	Label string          `json:"label"`
}

// Privacy is the block privacy of a spec.
type Privacy struct {
	Off        bool              `json:"off"`
	Epsilon    float64           `json:"epsilon"`
	Delta      *float64          `json:"delta"`
	Adjacency  privacy.Adjacency `json:"adjacency"`
	Accountant string            `json:"accountant"`
}

// A Schedule is the schedule of the training. Open is set if the owners draw its seed when all have
// joined: until then the schedule is that of seed 0.
type Schedule struct {
	gossip.Schedule
	Open *Open `json:"open,omitempty"`
}

// Open holds the fields of a spec that give the schedule of another seed; 0 leaves a field open.
type Open struct {
	Graph       string  `json:"graph"`
	Probability float64 `json:"probability"`
	Edges       int     `json:"edges"`
	Rounds      int     `json:"rounds"`
}

// A Method is each owner's. Settings are its fields in the spec, if the schedule's seed is open:
// each owner configures the method from them when the seed is known.
type Method struct {
	Name     string    `json:"name"`
	Settings []Setting `json:"settings,omitempty"`
}

// A Setting is one field of a method, as YAML.
type Setting struct {
	Field string `json:"field"`
	Value string `json:"value"`
}

// An Owner holds the public facts of one owner.
type Owner struct {
	Name   string          `json:"name"`
	Public oracle.Public   `json:"public"`
	Method json.RawMessage `json:"method,omitempty"` // configured
	Plan   json.RawMessage `json:"plan,omitempty"`   // event
}

// Parts are the parts of an agreement by name.
type Parts map[string]json.RawMessage

// Parts returns the parts in the version of a network with these hashes; without hashes, in the newest.
func (a *Agreement) Parts(agreed map[string]string) (parts Parts, err error) {
	if _, ok := agreed[labV1]; ok {
		return a.partsV1()
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &parts)
	return parts, err
}

// Hashes returns the hashes of the parts, as a network has them.
func (p Parts) Hashes() map[string]string {
	hashes := map[string]string{}
	for name, text := range p {
		sum := sha256.Sum256(text)
		hashes[name] = hex.EncodeToString(sum[:])
	}
	return hashes
}

// Differs returns the first part, in the order of a spec, whose hash is not the agreed one; "" if there
// is none.
func (p Parts) Differs(agreed map[string]string) string {
	hashes := p.Hashes()
	for _, name := range []string{"schema", "model", "privacy", "lab", labV1, "seed", seedV1, "schedule", scheduleV1,
		"method", "owners", ownersV1, "sum"} {
		if hashes[name] != agreed[name] {
			return name
		}
	}
	return ""
}

// agreement reads the parts of either version.
func (p Parts) agreement() (*Agreement, error) {
	if _, ok := p[labV1]; ok {
		return p.agreementV1()
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	a := &Agreement{}
	return a, runlog.Strict(text, a)
}

// A File is agreed.json of an owner's directory: the network, whose hash is in the journal's head and in
// every message, and the parts, whose hashes are in the network.
type File struct {
	Network json.RawMessage `json:"network"`
	Parts   Parts           `json:"parts"`
}

// Write writes the file into an owner's directory.
func (f File) Write(dir string) error {
	return newfile.JSON(filepath.Join(dir, runlog.AgreedFile), "", f)
}

// Read reads the agreement of an owner's directory whose network has that hash, and the network's
// ID.
func Read(dir, config string) (a *Agreement, id string, err error) {
	b, err := readfile.All(filepath.Join(dir, runlog.AgreedFile), readfile.JSON)
	if err != nil {
		return nil, "", err
	}
	var f File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, "", err
	}
	if sum := sha256.Sum256(f.Network); hex.EncodeToString(sum[:]) != config {
		return nil, "", fmt.Errorf("it is of another network than %s", runlog.JournalFile)
	}
	var network struct {
		ID     string
		Agreed map[string]string
	}
	if err := json.Unmarshal(f.Network, &network); err != nil {
		return nil, "", err
	}
	if part := f.Parts.Differs(network.Agreed); part != "" {
		return nil, "", fmt.Errorf("its %s is not the network's", part)
	}
	a, err = f.Parts.agreement()
	return a, network.ID, err
}

// Fits reports whether a schedule is the agreed one, except for an open seed.
func (s *Schedule) Fits(other *gossip.Schedule) bool {
	want := s.Schedule
	if o := s.Open; o != nil {
		want.Seed = other.Seed
		if o.Graph == "random" {
			want.Graph = gossip.Random(want.Graph.N, o.Probability, other.Seed)
			if o.Edges == 0 { // they follow from the graph
				want.Count = other.Count
			}
			if o.Rounds == 0 {
				want.Rounds = other.Rounds
			}
		}
	}
	return reflect.DeepEqual(&want, other)
}
