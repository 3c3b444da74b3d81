package party

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/trace"
)

// An Agreement is what the owners of a training agreed on: the network, which the journal's head and every message have the hash of,
// and the parts that the network has the hashes of (agreement.Plan.Texts).
type Agreement struct {
	Network json.RawMessage            `json:"network"`
	Parts   map[string]json.RawMessage `json:"parts"`
}

// Write puts the agreement into an owner's directory, where Verify needs it.
func (a Agreement) Write(dir string) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return trace.WriteFile(filepath.Join(dir, trace.AgreedFile), append(b, '\n'))
}

// terms are an Agreement, read.
type terms struct {
	id       string
	names    []string
	schema   json.RawMessage
	model    json.RawMessage
	privacy  run.PrivacySpec
	lab      bool
	seed     *uint64
	method   string
	facts    []oracle.Public
	fitted   []json.RawMessage // methods, where the schedule's seed was agreed on
	settings run.Settings      // or what they are fitted from
	schedule gossip.Schedule
	drawn    bool // its seed came later
	graph    string
	edge     float64 // probability of one, of a random graph
	edges    int     // of a round; 0: left open
	rounds   int     // likewise
}

// list reads a JSON array into its elements' variables; there may be more elements.
func list(text []byte, to ...any) (rest []json.RawMessage, err error) {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if len(all) < len(to) {
		return nil, fmt.Errorf("found %d elements of %d", len(all), len(to))
	}
	for i, dst := range to {
		err = errors.Join(err, json.Unmarshal(all[i], dst))
	}
	return all[len(to):], err
}

// readTerms reads a part's agreement, whose network has that hash.
func readTerms(dir, config string) (*terms, error) {
	b, err := readfile.All(filepath.Join(dir, trace.AgreedFile), readfile.JSON)
	if err != nil {
		return nil, err
	}
	var a Agreement
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(a.Network); fmt.Sprintf("%x", sum) != config {
		return nil, fmt.Errorf("it is of another network than %s", trace.JournalFile)
	}
	var network struct {
		ID     string
		Owners []struct{ Name string }
		Agreed map[string]string
	}
	if err := json.Unmarshal(a.Network, &network); err != nil {
		return nil, err
	}
	for part, hash := range network.Agreed {
		if sum := sha256.Sum256(a.Parts[part]); fmt.Sprintf("%x", sum) != hash {
			return nil, fmt.Errorf("its %s is not the network's", part)
		}
	}
	t := &terms{id: network.ID, schema: a.Parts["schema"]}
	var owners []json.RawMessage
	_, err = list(a.Parts["owners and method"], &t.method, &owners)
	for _, o := range owners {
		var setting, name string
		if json.Unmarshal(o, &setting) == nil {
			path, value, _ := strings.Cut(setting, ": ")
			t.settings = append(t.settings, run.Override{Path: path, Value: value})
			continue
		}
		var facts oracle.Public
		var fitted json.RawMessage
		_, bad := list(o, &name, &facts, &fitted)
		err = errors.Join(err, bad)
		t.names, t.facts, t.fitted = append(t.names, name), append(t.facts, facts), append(t.fitted, fitted)
	}
	_, bad := list(a.Parts["model"], &t.model)
	open, worse := list(a.Parts["graph and schedule"], &t.schedule)
	err = errors.Join(err, bad, worse)
	if t.drawn = len(open) > 0; t.drawn {
		_, bad = list(a.Parts["graph and schedule"], &t.schedule, &t.graph, &t.edge, &t.edges, &t.rounds)
		err = errors.Join(err, bad)
	}
	return t, errors.Join(err, json.Unmarshal(a.Parts["privacy"], &t.privacy), json.Unmarshal(a.Parts["value of lab"], &t.lab), json.Unmarshal(a.Parts["value of seed"], &t.seed))
}

// by says whether the schedule is the one that was agreed on, but for a seed that was left open.
func (t *terms) by(s *gossip.Schedule) bool {
	want := t.schedule
	if t.drawn {
		want.Seed = s.Seed
		if t.graph == "random" {
			want.Graph = gossip.Random(want.Graph.N, t.edge, s.Seed)
			if t.edges == 0 { // they follow from the graph
				want.Count = s.Count
			}
			if t.rounds == 0 {
				want.Rounds = s.Rounds
			}
		}
	}
	return reflect.DeepEqual(&want, s)
}

// fit is the method that an owner has to have.
func (t *terms) fit(entry gossip.Entry, at gossip.Node, j *run.Job) (gossip.Method, error) {
	if !t.drawn {
		return entry.Decode(t.fitted[at.Index])
	}
	m, err := t.settings.Method(entry)
	if err != nil {
		return nil, err
	}
	rows := make([]int, len(t.facts))
	for i, f := range t.facts {
		rows[i] = f.Rows
	}
	planned := gossip.Planned(at.Schedule.Activations(), rows)
	return m.Configure(t.facts[at.Index], j.Objective, at.Schedule, planned[at.Index], method.Terms{Off: t.privacy.Off, Budget: t.privacy.Budget(), Accountant: j.Accountant})
}

// agreed: run.json and the schedule say what the owners agreed on, by the hashes in the journal's head.
func agreed(v *run.Verification, entry gossip.Entry, m gossip.Method, facts oracle.Public, at gossip.Node, config string) error {
	t, err := readTerms(v.Dir, config)
	if err == nil && (len(t.facts) != at.Schedule.Graph.N || at.Index >= len(t.names)) {
		err = fmt.Errorf("it is of %d owners", len(t.facts))
	}
	if err != nil {
		v.Say("agreed", false, "%s: %v; so what %s says cannot be held against what the owners agreed on", trace.AgreedFile, err, trace.InfoFile)
		return nil
	}
	accountant := ""
	if !t.privacy.Off {
		a, err := (&run.Spec{Privacy: t.privacy}).Accountant()
		if err != nil {
			return &run.InputError{Where: v.Dir, Err: err}
		}
		accountant = a.String()
	}
	budget := t.privacy.Budget()
	budget.Adjacency = t.facts[at.Index].Adjacency
	fitted, err := t.fit(entry, at, v.Job)
	other := ""
	for _, part := range []struct {
		name string
		same bool
	}{
		{"network", v.Info.Network == t.id+"/"+t.names[at.Index]},
		{"assumptions", slices.Equal(v.Info.Assumptions, v.Job.Assumptions())},
		{"schema", bytes.Equal(compact(v.Info.Schema), t.schema)},
		{"model", bytes.Equal(compact(v.Info.Model), t.model)},
		{"budget", v.Info.Budget == budget && v.Info.Off == t.privacy.Off && v.Info.Accountant == accountant},
		{"lab", v.Info.Lab == t.lab && reflect.DeepEqual(v.Info.Seed, t.seed)},
		{"public", reflect.DeepEqual(facts, t.facts[at.Index])},
		{trace.ScheduleFile, t.by(at.Schedule)},
		{"method", v.Info.Method == t.method},
		{"config", err == nil && reflect.DeepEqual(m, fitted)},
	} {
		if !part.same {
			other += ", " + part.name
		}
	}
	if other != "" {
		other = "; others: " + other[2:]
	}
	v.Say("agreed", other == "", "%s, of which %s has the hash, beside network, schema, model, budget, public facts, method and its configuration in %s and %s%s", trace.AgreedFile, trace.JournalFile, trace.InfoFile, trace.ScheduleFile, other)
	return nil
}

func compact(b []byte) []byte {
	var c bytes.Buffer
	if json.Compact(&c, b) != nil {
		return b
	}
	return c.Bytes()
}
