package disclosure

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// NotStated replaces a missing statement.
const NotStated = "not stated"

// Where statements come from.
const (
	// the spec and the schema of the run: they were written before its first access, and its seal covers them
	FromRun   = "run"
	FromLater = "later" // a spec that was given when the disclosure was made
)

// Statements are of people. Nothing is computed from them.
type Statements struct {
	From       string            `json:"from"`                  // FromRun or FromLater
	SpecSHA256 string            `json:"spec_sha256,omitempty"` // of the file, if they were given later
	Stated     runlog.Statements `json:"stated"`
	Author     string            `json:"bounds_author"` // who wrote the bounds, levels and classes
	Source     string            `json:"table_source"`  // where the facts about the whole table come from
	Sources    []Source          `json:"column_sources"`
	Missing    []string          `json:"not_stated"` // by their names in spec and schema
}

// A Source says where a column's bounds, levels or classes come from.
type Source struct {
	Column string `json:"column"`
	Source string `json:"source"`
}

func (r *finished) statements(later *Later) (s Statements, err error) {
	s.From = FromRun
	from := r.schema
	if r.info.Disclosure != nil {
		s.Stated = *r.info.Disclosure
	}
	if later != nil {
		if later.Schema.Fingerprint() != r.schema.Fingerprint() {
			return s, inputError("--spec %s: its schema describes other features than the run's; use the schema of the run, with other sources", later.SpecFile)
		}
		s.From, s.Stated, from = FromLater, later.Statements, later.Schema
		dir, name := filepath.Split(later.SpecFile)
		if s.SpecSHA256, err = runlog.Hash(dir, name); err != nil {
			return s, err
		}
	}
	s.Author, s.Source, s.Sources = from.Author, from.Source, []Source{}
	for _, c := range from.Columns {
		if c.Type != schema.TypeIgnore && c.Type != schema.TypeUnit {
			s.Sources = append(s.Sources, Source{c.Name, c.Source})
		}
	}
	s.Missing = s.missing(r.info.Budget.Delta > 0)
	return s, nil
}

// missing names the statements that are not made. Only a run with a δ above 0 must say why it has that δ.
func (s *Statements) missing(delta bool) []string {
	names := []string{}
	for _, t := range s.Stated.List() {
		if t.Text == "" && !t.Optional && (delta || t.Name != "why_delta") {
			names = append(names, "disclosure."+t.Name)
		}
	}
	if s.Author == "" {
		names = append(names, "schema: author")
	}
	if s.Source == "" {
		names = append(names, "schema: source")
	}
	for _, c := range s.Sources {
		if c.Source == "" {
			names = append(names, fmt.Sprintf("schema: source of column %s", c.Column))
		}
	}
	return names
}

// same reports whether statements are those of the run, or, if they were given later, name what they leave out.
func (r *finished) same(s Statements) (bool, error) {
	if s.From != FromRun {
		return s.From == FromLater && slices.Equal(s.Missing, s.missing(r.info.Budget.Delta > 0)), nil
	}
	want, err := r.statements(nil)
	if err != nil {
		return false, err
	}
	a, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(want)
	return string(a) == string(b), err
}

// Warnings lists what a reader should know before signing; a strict disclosure has none.
func (d *Document) Warnings() []string {
	all := []string{}
	f := &d.Facts
	if who := d.Statements.Stated; samePerson(who.Operator, who.Reviewer) {
		all = append(all, "The reviewer is the operator; name a reviewer who did not run it.")
	}
	if f.Lifetime.Total != nil && f.Lifetime.Budget == nil {
		all = append(all, fmt.Sprintf(
			"The dataset has no lifetime budget, so the ledger refuses no later run; sotto ledger budget %s sets one.",
			f.Run.Dataset))
	}
	var by []string
	if f.Run.Version == runlog.Devel {
		by = append(by, "the run")
	}
	if d.Made.Version == runlog.Devel {
		by = append(by, "this disclosure")
	}
	if len(by) > 0 {
		all = append(all, fmt.Sprintf(
			"The program that made %s has no version, %s, so others cannot get the same one by name; use a released one.",
			strings.Join(by, " and "), runlog.Devel))
	}
	return all
}

// samePerson compares two names as people write them.
func samePerson(a, b string) bool {
	plain := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
	return a != "" && plain(a) == plain(b)
}
