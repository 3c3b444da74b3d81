package party

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// A Status is the progress of an owner's run, by its directory alone.
type Status struct {
	Network     string `json:"network"` // and the owner's name
	Run         string `json:"run"`
	Status      string `json:"status"`
	Done        int    `json:"done"` // activations in the journal, or steps in the run log
	Activations int    `json:"turns"`
	Dim         int    `json:"dim"`  // parameters
	Unit        string `json:"unit"` // Activations or Steps
}

// What an owner's progress counts: its activations, or where owners add up masked sums the steps of all.
const (
	Activations = "activations"
	Steps       = "steps"
)

// Waiting is an owner's status until all have come: its activations are not settled.
const Waiting = "waiting for all owners"

// ReadStatus reads an owner's run directory, whether or not a process works in it.
func ReadStatus(dir string) (*Status, error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		if p, _ := readPlace(dir); p != nil {
			return &Status{Network: p.Network, Status: Waiting, Dim: p.Dim}, nil
		}
		return nil, &run.InputError{Err: err}
	}
	var facts oracle.Public
	if err := json.Unmarshal(info.Public, &facts); err != nil {
		return nil, &run.InputError{Err: fmt.Errorf("%s: public: %w", dir, err)}
	}
	if facts.Owners > 0 { // who add up masked sums: the run log has the steps
		rec, err := info.Record(dir)
		if err != nil {
			return nil, err
		}
		return &Status{fmt.Sprintf("%d owners who add up", facts.Owners), info.ID, info.Status, len(rec.Steps), info.MaxSteps,
			facts.Dim, Steps}, nil
	}
	if info.Network == "" {
		return nil, &run.InputError{Err: fmt.Errorf("%s: is a run, but not an owner's run in a network", dir)}
	}
	rec, err := runlog.JournalRecord(filepath.Join(dir, runlog.JournalFile))
	if err != nil {
		return nil, err
	}
	return &Status{info.Network, info.ID, info.Status, rec.Charged(), info.MaxSteps, facts.Dim, Activations}, nil
}

// Presence is what the hub knows of an owner.
type Presence struct {
	Owner string `json:"owner"`
	Stage string `json:"stage"` // of Stages
}

// Stages of an owner, in their order.
var Stages = []string{"not seen", "has come", "training", "done"}

// ReadPresence asks the hub, at url or the network's own, which owners have joined a training of dim
// parameters and which have filled their storage.
func ReadPresence(ctx context.Context, credentials string, dim int,
	url string) (all []Presence, full []string, err error) {
	c, err := transport.ReadCredentials(credentials)
	if err != nil {
		return nil, nil, &run.InputError{Err: err}
	}
	if err := needHub(c, url); err != nil {
		return nil, nil, err
	}
	hub, err := dial(ctx, c, url, answerWithin)
	if err != nil {
		return nil, nil, err
	}
	defer hub.Close()
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	for i, owner := range c.Network.Owners {
		p := Presence{owner.Name, Stages[0]}
		for k, said := range []string{transport.Hello, transport.Ready, transport.Model} {
			there, err := transport.Said(ctx, hub, i, said, dim)
			if err != nil {
				return nil, nil, err
			}
			if there {
				p.Stage = Stages[k+1]
			}
		}
		all = append(all, p)
	}
	full, err = transport.FullStores(ctx, hub, &c.Network)
	return all, full, err
}

// answerWithin is the time limit of ReadPresence.
const answerWithin = 30 * time.Second
