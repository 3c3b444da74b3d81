package party

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// configured returns the method that the owner must have.
func configured(a *agreement.Agreement, entry gossip.Entry, at gossip.Node, j *run.Job) (gossip.Method, error) {
	if a.Schedule.Open == nil {
		return entry.Decode(a.Owners[at.Index].Method)
	}
	var settings job.Settings
	for _, s := range a.Method.Settings {
		settings = append(settings, run.Override{Path: s.Field, Value: s.Value})
	}
	m, err := netplan.Method(settings, entry)
	if err != nil {
		return nil, err
	}
	rows := make([]int, len(a.Owners))
	for i, o := range a.Owners {
		rows[i] = o.Public.Rows
	}
	planned := gossip.Planned(at.Schedule.Counts(), rows)
	terms := method.Terms{Off: a.Privacy.Off, Budget: run.PrivacySpec(a.Privacy).Budget(), Accountant: j.Accountant}
	return m.Configure(a.Owners[at.Index].Public, j.Objective, at.Schedule, planned[at.Index], terms)
}

// agreed checks that run.json and the schedule say what the owners agreed on. The journal's head has its
// hash.
func agreed(v *run.Verification, entry gossip.Entry, m gossip.Method, facts oracle.Public, at gossip.Node,
	config string) error {
	a, id, err := agreement.Read(v.Dir, config)
	if err == nil && (len(a.Owners) != at.Schedule.Graph.N || at.Index >= len(a.Owners)) {
		err = fmt.Errorf("it is of %d owners", len(a.Owners))
	}
	if err != nil {
		v.Say("agreed", false, "%s: %v; so %s cannot be compared with what the owners agreed on", runlog.AgreedFile, err,
			runlog.InfoFile)
		return nil
	}
	terms := run.PrivacySpec(a.Privacy)
	accountant := ""
	if !terms.Off {
		chosen, err := (&run.Spec{Privacy: terms}).Accountant()
		if err != nil {
			return &run.InputError{Where: v.Dir, Err: err}
		}
		accountant = chosen.String()
	}
	owner, budget := a.Owners[at.Index], terms.Budget()
	budget.Adjacency = owner.Public.Adjacency
	want, err := configured(a, entry, at, v.Job)
	other := ""
	for _, part := range []struct {
		name string
		same bool
	}{
		{"network", v.Info.Network == id+"/"+owner.Name},
		{"assumptions", slices.Equal(v.Info.Assumptions, v.Job.Assumptions())},
		{"schema", bytes.Equal(runlog.Compact(v.Info.Schema), a.Schema)},
		{"model", bytes.Equal(runlog.Compact(v.Info.Model), a.Model.Spec)},
		{"budget", v.Info.Budget == budget && v.Info.Off == terms.Off && v.Info.Accountant == accountant},
		{"lab", v.Info.Lab == a.Lab && reflect.DeepEqual(v.Info.Seed, a.Seed)},
		{"public", reflect.DeepEqual(facts, owner.Public)},
		{runlog.ScheduleFile, a.Schedule.Fits(at.Schedule)},
		{"method", v.Info.Method == a.Method.Name},
		{"config", err == nil && reflect.DeepEqual(m, want)},
	} {
		if !part.same {
			other += ", " + part.name
		}
	}
	if other != "" {
		other = "; others: " + other[2:]
	}
	v.Say("agreed", other == "",
		"%s, of which %s has the hash, beside network, schema, model, budget, public facts, method and its configuration in %s and %s%s", runlog.AgreedFile, runlog.JournalFile, runlog.InfoFile, runlog.ScheduleFile, other)
	return nil
}
