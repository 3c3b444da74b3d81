package agreement

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Names of parts in version 1, whose values are arrays. Schema, model and privacy have the names of
// version 2.
const (
	labV1      = "value of lab"
	seedV1     = "value of seed"
	scheduleV1 = "graph and schedule"
	ownersV1   = "owners and method"
)

// privacyV1 is Privacy under the names of its fields.
type privacyV1 struct {
	Off, Epsilon, Delta, Adjacency, Accountant any
}

func (a *Agreement) partsV1() (Parts, error) {
	owners := make([]any, len(a.Owners))
	for i, o := range a.Owners {
		owners[i] = []any{o.Name, o.Public, o.Method, o.Plan}
	}
	for _, s := range a.Method.Settings {
		owners = append(owners, s.Field+": "+s.Value)
	}
	schedule := []any{a.Schedule.Schedule}
	if o := a.Schedule.Open; o != nil {
		schedule = append(schedule, o.Graph, o.Probability, o.Edges, o.Rounds)
	}
	p := a.Privacy
	parts := Parts{}
	for name, v := range map[string]any{
		"schema": a.Schema, "model": []any{a.Model.Spec, a.Model.Label},
		"privacy": privacyV1{p.Off, p.Epsilon, p.Delta, p.Adjacency, p.Accountant},
		labV1:     a.Lab, seedV1: a.Seed, scheduleV1: schedule, ownersV1: []any{a.Method.Name, owners},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		parts[name] = text
	}
	return parts, nil
}

func (p Parts) agreementV1() (*Agreement, error) {
	a := &Agreement{Schema: p["schema"]}
	var owners []json.RawMessage
	open := &Open{}
	left := list(p[scheduleV1], &a.Schedule.Schedule, &open.Graph, &open.Probability, &open.Edges, &open.Rounds)
	if left == nil {
		a.Schedule.Open = open
	} else if left = list(p[scheduleV1], &a.Schedule.Schedule); left != nil {
		return nil, left
	}
	err := errors.Join(
		list(p["model"], &a.Model.Spec, &a.Model.Label), json.Unmarshal(p["privacy"], &a.Privacy),
		json.Unmarshal(p[labV1], &a.Lab), json.Unmarshal(p[seedV1], &a.Seed), list(p[ownersV1], &a.Method.Name, &owners))
	for _, text := range owners {
		var setting string
		if json.Unmarshal(text, &setting) == nil {
			field, value, _ := strings.Cut(setting, ": ")
			a.Method.Settings = append(a.Method.Settings, Setting{field, value})
			continue
		}
		var o Owner
		err = errors.Join(err, list(text, &o.Name, &o.Public, &o.Method, &o.Plan))
		a.Owners = append(a.Owners, o)
	}
	return a, err
}

// list reads a JSON array of that many elements.
func list(text []byte, to ...any) error {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if len(all) != len(to) {
		return fmt.Errorf("found %d elements; expected %d", len(all), len(to))
	}
	var err error
	for i, dst := range to {
		err = errors.Join(err, json.Unmarshal(all[i], dst))
	}
	return err
}
