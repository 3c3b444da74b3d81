// Package netplan settles a network of owners from its spec, before any rows: who they are, over which graph and by
// which method they train (package gossip), or as one job whose sums they add up (network.mode: sum), and what each of
// them pays.
package netplan

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// A Plan is a network with everything that public facts determine.
type Plan struct {
	Spec       *run.Spec
	Network    Network
	Job        *run.Job // model, facts and objective
	MethodName string
	Schedule   *gossip.Schedule
	Owners     []Owner

	Column [2]int // encoded features of the owners' column: the first, and one past the last

	apart  bool
	places map[string]string
}

// An Owner has the public facts of one owner.
type Owner struct {
	Index       int // in the network
	Name        string
	Activations int // in the schedule
	Facts       oracle.Public
	Method      gossip.Method // configured
	Plan        privacy.Event
}

// Options are those of Prepare.
type Options struct {
	Flags []run.Override // beat the fields of the file that are not of its block network
	Label string         // column to predict, where it is not the schema's label
	Lab   string         // why this is a lab run, for errors; "": it is none
	Apart bool           // each owner's rows are on its own machine: there is no table to divide
	Seed  *uint64        // of graph and schedule, where the owners have drawn one
}

// Prepare settles the network of a spec file. It opens the spec, the schema and the list of edges, and no
// data.
func Prepare(file string, o Options) (*Plan, error) {
	p := &Plan{apart: o.Apart}
	var err error
	if p.Network, p.places, err = Load(file); err != nil {
		return nil, err
	}
	flags := slices.Clone(o.Flags)
	if o.Lab != "" {
		flags = append(flags, run.Override{Path: "lab", Value: "true", From: o.Lab})
	}
	if p.Spec, err = run.LoadSpec(file, flags); err != nil {
		return nil, err
	}
	p.Spec.Label = o.Label
	if o.Seed != nil {
		p.Network.Seed = *o.Seed
	}
	return p, p.set()
}

// PrepareJob settles a spec for its plan or an audit, also one of a network whose owners add up masked sums.
func PrepareJob(spec *run.Spec) (*run.Job, error) {
	if !spec.Summed() {
		return run.Prepare(spec)
	}
	p := &Plan{Spec: spec, apart: true}
	var err error
	if p.Network, p.places, err = Load(spec.File); err == nil {
		err = p.set()
	}
	return p.Job, err
}

// modeGossip is the mode of a network over whose graph owners exchange vectors; the other is job.ModeSum.
const modeGossip = "gossip"

// set settles the network of p.Spec.
func (p *Plan) set() error {
	summed := p.Spec.Summed()
	if !summed && p.Network.Mode != "" && p.Network.Mode != modeGossip {
		return p.fail("mode", "found %q; choose %s or %s", p.Network.Mode, modeGossip, job.ModeSum)
	}
	for field, instead := range map[string]string{
		"method":  "use the block method of network",
		"output":  "leave it out: the methods of network say which parameters become the model",
		"out":     "leave it out: --dir says where an owner writes",
		"holdout": "leave it out: owners keep no rows back, and score no model",
	} {
		if summed && (field == "method" || field == "output") {
			continue
		}
		if p.Spec.Has(field) {
			return &run.InputError{Where: p.Spec.Place(field),
				Err: fmt.Errorf("%s: found it beside network; %s", field, instead)}
		}
	}
	schema, err := p.Spec.LoadSchema()
	if err != nil {
		return err
	}
	if p.Job, err = job.PrepareModel(p.Spec, schema); err != nil {
		return err
	}
	if err := p.setOwners(); err != nil {
		return err
	}
	if summed {
		return p.setSum()
	}
	for _, field := range []string{"colluders", "retries"} {
		if _, given := p.places[field]; given {
			return p.fail(field, "found it in mode: gossip; set it only beside mode: sum")
		}
	}
	if err := p.setSchedule(); err != nil {
		return err
	}
	return p.setMethods()
}

// fail returns the error for a mistake in a field of the block.
func (p *Plan) fail(field, format string, args ...any) error {
	where, ok := p.places[field]
	if !ok {
		where = p.places[""]
	}
	return &run.InputError{Where: where, Err: fmt.Errorf("network."+field+": "+format, args...)}
}

func (p *Plan) setOwners() error {
	n, s, adjacency := p.Network, p.Job.Schema, p.Job.Facts.Adjacency
	ways := 0
	for _, given := range []bool{n.Owners != 0, n.Column != "", len(n.Files) > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return p.fail("owners", "found %d ways to assign rows to owners; give one of owners (a number), column and files", ways)
	}
	if len(n.Files) == 0 && p.Spec.Data == "" && !p.apart {
		return p.fail("owners", "found no table to divide; set the spec's field data, or files")
	}
	rows := 0 // default of each owner
	switch {
	case len(n.Files) > 0:
		if p.Spec.Data != "" {
			return p.fail("files", "found them beside data; give one of them")
		}
		rows = s.Rows
		for _, f := range n.Files {
			name := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
			if slices.ContainsFunc(p.Owners, func(o Owner) bool { return o.Name == name }) {
				return p.fail("files",
					"found two of the name %q; give each owner a name of its own, as its credentials are named by it", name)
			}
			p.Owners = append(p.Owners, Owner{Name: name})
		}
	case adjacency == privacy.ReplaceOne && !p.Spec.Privacy.Off && !p.apart:
		return p.fail("owners",
			"found one table under replace-one; give files instead, so that each owner's row count is public and a replaced row stays with its owner")
	case n.Column != "":
		at := slices.IndexFunc(s.Columns, func(c schema.Column) bool { return c.Name == n.Column })
		if at < 0 || s.Columns[at].Type != schema.TypeCategorical {
			return p.fail("column", "found %q; choose a categorical column of the schema", n.Column)
		}
		for _, level := range s.Columns[at].Levels {
			p.Owners = append(p.Owners, Owner{Name: level})
		}
		first := slices.Index(s.FeatureNames(), n.Column+"="+s.Columns[at].Levels[0])
		p.Column = [2]int{first, first + len(p.Owners)}
		rows = s.Rows / len(p.Owners)
	default:
		if n.Owners < 2 || n.Owners > 10_000 {
			return p.fail("owners", "found %d; write a whole number from 2 to 10000", n.Owners)
		}
		for i := range n.Owners {
			p.Owners = append(p.Owners, Owner{Name: fmt.Sprintf("owner %d", i+1)})
		}
		rows = s.Rows / n.Owners
	}
	if k := len(p.Owners); k < 2 {
		return p.fail("owners", "found %d; a network needs 2 or more", k)
	} else if len(n.Rows) > 1 && len(n.Rows) != k {
		return p.fail("rows", "found %d numbers for %d owners; write one number for each, or one for all", len(n.Rows), k)
	}
	for i := range p.Owners {
		o := &p.Owners[i]
		o.Index, o.Facts = i, p.Job.Facts
		// what owners agree on is without them (ADR 41, 46)
		o.Facts.Rows, o.Facts.Presence, o.Facts.Centered, o.Facts.Calibrated = rows, false, false, false
		if len(n.Rows) > 0 {
			o.Facts.Rows = n.Rows[min(i, len(n.Rows)-1)]
		}
		if o.Facts.Rows < 1 {
			return p.fail("rows",
				"found %d for %s; write 1 or more, as training divides by a public row count that a person writes", o.Facts.Rows,
				o.Name)
		}
	}
	return nil
}

// activationsByDefault is the default of an owner's activations, on average.
const activationsByDefault = 100

func (p *Plan) setSchedule() error {
	n, k := p.Network, len(p.Owners)
	var g gossip.Graph
	switch n.Graph {
	case "", "complete":
		g = gossip.Complete(k)
	case "ring":
		g = gossip.Ring(k)
	case "path":
		g = gossip.Path(k)
	case "grid":
		g = gossip.Grid(k)
	case "random":
		if !(n.Probability > 0 && n.Probability <= 1) {
			return p.fail("probability", "found %v; choose a number above 0 and up to 1", n.Probability)
		}
		g = gossip.Random(k, n.Probability, n.Seed)
	case "file":
		f, err := readfile.Open(n.EdgeList)
		if err != nil {
			return p.fail("edge_list", "found no file to read; give a file of lines with two owners' numbers, from 0")
		}
		defer f.Close()
		if g, err = gossip.ReadGraph(f, k); err != nil {
			return p.fail("edge_list", "%w", err)
		}
	default:
		return p.fail("graph", "found %q; choose complete, ring, path, grid, random or file", n.Graph)
	}
	if n.Graph != "random" && n.Probability != 0 {
		return p.fail("probability", "found %v; set it only for a random graph", n.Probability)
	}
	if n.Graph != "file" && p.places["edge_list"] != "" {
		return p.fail("edge_list", "found it; set it only with graph: file")
	}
	if err := g.Validate(); err != nil {
		return p.fail("graph", "%w", err)
	}
	s := &gossip.Schedule{Graph: g, Kind: n.Schedule, Count: n.Edges, Rounds: n.Rounds, Seed: n.Seed}
	if s.Kind == "" {
		s.Kind = gossip.Matching
	}
	if s.Rounds < 0 {
		return p.fail("rounds", "found %d; write a whole number of 1 or more", s.Rounds)
	}
	if s.Count == 0 && s.Kind != gossip.All {
		s.Count = max(1, min(k/2, len(g.Edges)))
	}
	if s.Rounds == 0 {
		s.Rounds = activationsByDefault
		if s.Kind != gossip.All {
			s.Rounds = (activationsByDefault*k + 2*s.Count - 1) / (2 * s.Count)
		}
	}
	if err := s.Validate(); err != nil {
		field := "schedule"
		if slices.Contains([]string{gossip.Matching, gossip.Edges, gossip.All}, s.Kind) {
			field = "edges" // only edges can still be wrong
		}
		return p.fail(field, "%s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	p.Schedule = s
	for i, activations := range s.Counts() {
		p.Owners[i].Activations = activations
	}
	return nil
}

// setMethods configures the method of each owner. Owners with equal numbers of rows have the same noise,
// which the one with the most activations needs.
func (p *Plan) setMethods() error {
	settings := slices.Clone(p.Network.Method)
	name, _ := settings.Take("name")
	if name == "" {
		name = gossip.Registry()[0].Name
	}
	entry, err := gossip.Lookup(name)
	if err != nil {
		return p.fail("method", "name: %w", err)
	}
	p.MethodName = name
	m, err := Method(settings, entry)
	if err != nil {
		return err
	}
	activations, rows := make([]int, len(p.Owners)), make([]int, len(p.Owners))
	for i, o := range p.Owners {
		if o.Activations == 0 {
			return p.fail("rounds", "found %d, in which %s is never activated; choose more rounds", p.Schedule.Rounds, o.Name)
		}
		activations[i], rows[i] = o.Activations, o.Facts.Rows
	}
	planned := gossip.Planned(activations, rows)
	terms := method.Terms{Off: p.Spec.Privacy.Off, Budget: p.Spec.Privacy.Budget(), Accountant: p.Job.Accountant}
	fitted := map[int]gossip.Method{}
	for i := range p.Owners {
		o := &p.Owners[i]
		if fitted[o.Facts.Rows] == nil {
			f, err := m.Configure(o.Facts, p.Job.Objective, p.Schedule, planned[i], terms)
			if err != nil {
				field, _, _ := strings.Cut(err.Error(), ":")
				switch {
				case strings.HasPrefix(field, "privacy."), strings.HasPrefix(field, "model."):
					return &run.InputError{Where: p.Spec.Place(field), Err: err}
				case field == "rounds":
					return p.fail("rounds", "%s", strings.TrimPrefix(err.Error(), "rounds: "))
				}
				for _, s := range p.Network.Method {
					if s.Path == field {
						return &run.InputError{Where: s.From, Err: fmt.Errorf("network.method.%w", err)}
					}
				}
				return p.fail("method", "%w", err)
			}
			fitted[o.Facts.Rows] = f
		}
		o.Method = fitted[o.Facts.Rows]
		if o.Plan, err = o.Method.Plan(o.Facts, o.Activations); err != nil {
			return p.fail("method", "%w", err)
		}
	}
	return nil
}

// CheckDelta refuses a δ of 1/rows or more for any owner, or warns if the spec accepts it.
func (p *Plan) CheckDelta(warn func(string)) error {
	if p.Job.Sum != nil {
		for _, w := range p.Job.Warnings {
			warn(w)
		}
		return nil // PrepareOn has checked it
	}
	for _, o := range p.Owners {
		w, err := p.Spec.CheckDelta(o.Facts, " of "+o.Name)
		if err != nil {
			return err
		}
		if w != "" {
			warn(w)
		}
	}
	return nil
}

// Text prints what a training would cost each owner.
func (p *Plan) Text(w io.Writer) error {
	if p.Job.Sum != nil {
		return p.sumText(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "owner\tdeclared rows\tactivations\tnoise\tε\n")
	for _, o := range p.Owners {
		epsilon, err := p.Epsilon(o)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.4g\t%.4f\n", o.Name, o.Facts.Rows, o.Activations, o.Method.NoiseMultiplier(), epsilon)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if p.Drawn() {
		fmt.Fprint(w,
			"\nActivations and noise follow from a seed that the owners draw when all have joined, and may differ a little; ε is at most that of privacy.\n")
	}
	return nil
}

// JobOf returns the job of one owner on its rows, which are in that file or table.
func (p *Plan) JobOf(owner int, rows string) *run.Job {
	if p.Job.Sum != nil {
		return p.Job.OfOwner(owner, rows)
	}
	o := &p.Owners[owner]
	return p.Job.As(job.Owner{Index: o.Index, Activations: o.Activations, Method: o.Method}, p.MethodName, rows, o.Facts,
		o.Plan)
}

// Drawn reports whether owners on their own machines draw the seed of graph and schedule together,
// as they do unless the block or a lab run names one. Until then the plan is that of the seed 0.
// Mode sum has no schedule.
func (p *Plan) Drawn() bool {
	return p.Job.Sum == nil && p.places["seed"] == "" && p.Spec.Seed == nil
}

// Agreement is what must be equal for all owners, before they draw a seed.
func (p *Plan) Agreement() (*agreement.Agreement, error) {
	a := &agreement.Agreement{
		Model: agreement.Model{Label: p.Spec.Label}, Privacy: agreement.Privacy(p.Spec.Privacy), Lab: p.Spec.Lab,
		Seed:   p.Spec.Seed,
		Method: agreement.Method{Name: p.MethodName},
	}
	if p.Job.Sum == nil {
		a.Schedule.Schedule = *p.Schedule
	} else if err := p.agreeOnSum(a); err != nil {
		return nil, err
	}
	a.Privacy.Adjacency = p.Job.Facts.Adjacency // without noise the spec may name none
	var err error
	if a.Schema, err = p.Job.Schema.Marshal(); err != nil {
		return nil, err
	}
	if a.Model.Spec, err = json.Marshal(p.Spec.Model); err != nil {
		return nil, err
	}
	for _, o := range p.Owners {
		owner := agreement.Owner{Name: o.Name, Public: o.Facts}
		if p.Job.Sum != nil { // the rest is the same for all, and in Sum
			a.Owners = append(a.Owners, owner)
			continue
		}
		if owner.Method, err = json.Marshal(o.Method); err != nil {
			return nil, err
		}
		if owner.Plan, err = privacy.MarshalEvent(o.Plan); err != nil {
			return nil, err
		}
		a.Owners = append(a.Owners, owner)
	}
	if n := p.Network; p.Drawn() { // what follows from another seed than this one
		a.Schedule.Open = &agreement.Open{Graph: n.Graph, Probability: n.Probability, Edges: n.Edges, Rounds: n.Rounds}
		for _, s := range n.Method {
			a.Method.Settings = append(a.Method.Settings, agreement.Setting{Field: s.Path, Value: s.Value})
		}
	}
	return a, nil
}

// Epsilon is the ε of an owner's plan at the spec's δ; +Inf without noise.
func (p *Plan) Epsilon(o Owner) (float64, error) {
	if p.Spec.Privacy.Off {
		return math.Inf(1), nil
	}
	loss, err := p.Job.Accountant.Loss(o.Plan, o.Facts.Adjacency)
	if err != nil {
		return 0, err
	}
	return loss.Epsilon(p.Spec.Privacy.Budget().Delta), nil
}

// defaultRetries is how many attempts may be given up where a spec does not say.
const defaultRetries = 3

// setSum settles a network whose owners add up masked sums: its job is that of one process with the rows of all.
func (p *Plan) setSum() error {
	n, of := p.Network, len(p.Owners)
	for _, field := range []string{"graph", "probability", "edge_list", "schedule", "edges", "rounds", "seed", "method"} {
		if _, given := p.places[field]; given {
			return p.fail(field,
				"found it beside mode: sum; leave it out: it is for mode: gossip. Every owner takes part in every step, and the method is the spec's")
		}
	}
	_, given := p.places["colluders"]
	s := &run.Sum{Owner: -1, Colluders: n.Colluders, Retries: defaultRetries}
	if n.Retries != nil {
		s.Retries = *n.Retries
	}
	spec := *p.Spec
	if err := p.Job.Allows(job.OfOwners); err != nil {
		return err
	}
	switch {
	case !given:
		return p.fail("colluders",
			"it is missing; write how many owners may collude with the hub, from 0 to %d: the guarantee holds against that many", of-2)
	case s.Colluders < 0 || s.Colluders > of-2:
		return p.fail("colluders", "found %d; write a number from 0 to %d, as two owners or more have to be honest",
			s.Colluders, of-2)
	case s.Retries < 0 || s.Retries > runlog.MostRetries:
		return p.fail("retries", "found %d; write a number from 0 to %d", s.Retries, runlog.MostRetries)
	}
	for _, o := range p.Owners {
		s.Names, s.Rows = append(s.Names, o.Name), append(s.Rows, o.Facts.Rows)
	}
	j, err := job.PrepareSum(&spec, s)
	if err != nil {
		return err
	}
	p.Spec, p.Job, p.MethodName = j.Spec, j, j.Spec.MethodName
	for i := range p.Owners {
		p.Owners[i].Plan = j.Plan
	}
	return nil
}

// agreeOnSum adds what is the same for all owners who add up masked sums.
func (p *Plan) agreeOnSum(a *agreement.Agreement) (err error) {
	s := p.Job.Sum
	a.Sum = &agreement.Sum{Colluders: s.Colluders, Retries: s.Retries, Output: string(p.Spec.Output), Public: p.Job.Facts}
	if a.Sum.Method, err = method.Encode(p.Job.Method); err != nil {
		return err
	}
	a.Sum.Plan, err = privacy.MarshalEvent(p.Job.Plan)
	return err
}

// sumText prints what a training would cost: both ε.
func (p *Plan) sumText(w io.Writer) error {
	s := p.Job.Sum
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "owner\tdeclared rows\n")
	for i, name := range s.Names {
		fmt.Fprintf(t, "%s\t%d\n", name, s.Rows[i])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	loss, err := p.Job.Accountant.Loss(p.Job.Plan, p.Job.Facts.Adjacency)
	if err != nil {
		return err
	}
	b := p.Spec.Privacy.Budget()
	fmt.Fprintf(w, "\nAgainst %s: ε = %s at δ = %s.\nAgainst %s: ε = %s at δ = %s.\n", text.Against(s.Colluders),
		chart.Upper(loss.Epsilon(b.Delta)), chart.Full(b.Delta), text.AgainstAll, chart.Upper(p.Job.Alone()),
		chart.Full(b.Delta))
	fmt.Fprintf(w, "%d steps on %d rows, and up to %d attempts more.\n", method.MaxSteps(p.Job.Method), p.Job.Facts.Rows,
		s.Retries)
	return nil
}
