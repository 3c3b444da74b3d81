// Package party runs one owner of a training in which each owner has its own machine. It connects the
// owner's rows, ledger and journal with the hub. docs/how-to/network.md says what the others see.
//
// # Order
//
// The owner's directory, its right to the budget and its name at the hub are settled before the first
// sample, and each activation is durable before it is sent: budget, journal, hub (R5). After a crash the
// journal answers what was drawn before, and the owner sends the same bytes again.
package party

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// Options of an owner's process.
type Options struct {
	Spec        string // file of what all owners agreed on
	Plan        netplan.Options
	Credentials string        // file
	Key         string        // file of the owner's own key, unless the organizer made the keys
	Fingerprint string        // of the network, as the owners have compared it; "": not stated
	Data        string        // the owner's rows
	Dir         string        // the owner's run directory: new, or of a process that stopped
	Join        time.Duration // how long to wait for all owners to join, and for their models at the end; 0: 10 minutes
	Wait        time.Duration // for a peer's vector, before the exchange is aborted; 0: 30 seconds

	Version  string                           // of sotto, for run.json
	Progress func(unit string, done, all int) // called after each of the run's Activations or Steps
	Notice   func(text string)                // receives what only the owner may see
	Void     bool                             // of a lab run: ends the guarantee of protected rows
	// times are served as metrics, which run.json and the report say
	MetricsTimings bool
	// receives what it waits for, the hub or owners: these are public
	Waiting func(what string)
	Hub     string // URL; default the network's
	// writes the report of a run that adds up sums, before its settlement
	Report func(dir string, life *ledger.History) error
	Crash  func(point string) // tests
}

const defaultJoin = 10 * time.Minute

// A Result is the end of an owner's run.
type Result struct {
	Dir         string   `json:"dir"`
	Run         string   `json:"run"`
	Owner       string   `json:"owner"`
	Activations int      `json:"turns"`
	Noise       float64  `json:"noise_multiplier,omitempty"`
	Epsilon     *float64 `json:"epsilon,omitempty"` // of what was charged; none without noise
	Delta       float64  `json:"delta,omitempty"`
	Adjacency   string   `json:"adjacency,omitempty"`
	Committed   int      `json:"committed"` // exchanges, since the process began
	Aborted     int      `json:"aborted"`
	Models      int      `json:"models"` // owners whose parameters are in the model
	Seconds     float64  `json:"seconds"`

	// Of owners who add up masked sums: Epsilon is that of the plan, against the hub and the colluders, and Alone against
	// all other owners. Committed are batches, and Aborted attempts at them.
	Alone     *float64 `json:"epsilon_alone,omitempty"`
	colluders int
	steps     int // planned
	outcome   string
}

// Text prints the result for people.
func (r *Result) Text(w io.Writer) {
	if r.Alone != nil {
		r.sumText(w)
		return
	}
	if r.Epsilon == nil {
		fmt.Fprintln(w, "Guarantee  none: no noise")
	} else {
		fmt.Fprintf(w, "Guarantee  ε = %s at δ = %s, %v, of what %s has released, for any of its rows against all others\n",
			chart.Upper(*r.Epsilon), chart.Full(r.Delta), r.Adjacency, r.Owner)
	}
	fmt.Fprintf(w, "Exchanges  made %d, given up %d, in %d activations\n", r.Committed, r.Aborted, r.Activations)
	fmt.Fprintf(w, "Model      %s, the mean of %d owners' parameters\n", r.Dir, r.Models)
	fmt.Fprintf(w, "Time       %.2f s\n", r.Seconds)
}

// A session is one process's work for an owner.
type session struct {
	*run.Session // on the owner's run directory; made when the plan is
	keeper       keeper
	o            Options
	c            *transport.Credentials
	config       transport.Config
	plan         *netplan.Plan
	agreed       agreement.File
	place        *place
}

// A keeper keeps the owner's rows and ledger.
type keeper interface {
	TakeOver(ctx context.Context) error
	Take(ctx context.Context) error
	Open(meter account.Meter, journal oracle.Journal, first int) (rows, error)
	Reach(ctx context.Context, batches int, charged []ledger.Charges) error
	Finish(ctx context.Context, w []float64, steps int, outcome string, seconds float64) (*runlog.Record, error)
}

// rows is the private oracle. Close flushes its journal.
type rows interface {
	oracle.Oracle
	Close() error
}

// own is the keeper of a process: its run.Session.
type own struct{ *run.Session }

func (s own) Open(meter account.Meter, journal oracle.Journal, first int) (rows, error) {
	return s.Session.Open(meter, journal, first)
}

// Run begins or continues the owner's run in its directory. A mistake in the options or files is a
// *run.InputError or a *config.Error.
func Run(ctx context.Context, o Options) (*Result, error) {
	s := &session{o: o}
	if s.o.Join == 0 {
		s.o.Join = defaultJoin
	}
	r, err := s.run(ctx)
	if s.Session != nil {
		err = errors.Join(err, s.Close())
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, run.ErrInterrupted) && !errors.Is(err, run.ErrNotBegun) {
		return nil, fmt.Errorf("%w (%w)", run.ErrInterrupted, ctx.Err())
	}
	return r, err
}

func inputError(format string, args ...any) error {
	return &run.InputError{Err: fmt.Errorf(format, args...)}
}

// dial joins the hub, or fails after a while without an answer.
func dial(ctx context.Context, c *transport.Credentials, url string, wait time.Duration) (*transport.Client, error) {
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	hub, err := transport.Dial(within, c, url)
	switch {
	case errors.Is(err, transport.ErrRefused), errors.Is(err, transport.ErrStranger), errors.Is(err, transport.ErrClock),
		errors.Is(err, transport.ErrURL):
		return nil, &run.InputError{Err: err}
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return nil, fmt.Errorf("no hub answered within %v: %w", wait, err)
	}
	return hub, err
}

// hubName is where the hub is.
func (s *session) hubName() string { return cmp.Or(s.o.Hub, s.c.Network.Hub) }

// needHub is the error if no hub is named.
func needHub(c *transport.Credentials, url string) error {
	if url == "" && c.Network.Hub == "" {
		return inputError("--hub is missing: the network names no hub")
	}
	return nil
}

func (s *session) run(ctx context.Context) (*Result, error) {
	start := time.Now()
	_, err := os.Stat(filepath.Join(s.o.Dir, runlog.InfoFile))
	begun := err == nil // the table and δ were accepted before
	if err := s.agree(begun); err != nil {
		return nil, err
	}
	if warning, err := s.Job.Spec.CheckDelta(s.Job.Facts, ""); err != nil && !begun {
		return nil, err
	} else if warning != "" && s.o.Notice != nil {
		s.o.Notice(warning)
	}
	if s.Job.Sum != nil {
		return s.sum(ctx, begun)
	}
	if err := s.Load(ctx); err != nil {
		return nil, err
	}
	made := s.missing()
	unlock, err := s.enter()
	if err != nil {
		return nil, err
	}
	reached := false
	defer func() {
		if reached || s.Info != nil {
			unlock()
		} else { // nothing has begun, and no other owner knows of this directory
			s.leave(made, unlock)
		}
	}()
	if s.Info != nil && s.Info.Status == runlog.Finished {
		return s.settleAgain(ctx)
	}
	if err := needHub(s.c, s.o.Hub); err != nil {
		return nil, err
	}
	// Once this owner has joined, the others may reserve their budgets, so its ledger must admit its plan
	// first. Until the owners draw a seed, that is the plan of the seed 0.
	if err := s.Admits(ctx, s.networkName()); err != nil {
		return nil, err
	}
	silent := time.AfterFunc(sayAfter, func() { s.waiting("the hub at " + s.hubName()) })
	hub, err := dial(ctx, s.c, s.o.Hub, s.o.Join)
	silent.Stop()
	if err != nil {
		return nil, err
	}
	reached = true
	defer hub.Close()
	if s.o.Notice != nil {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go transport.WatchFull(watching, hub, &s.c.Network, s.o.Notice)
	}
	return s.takePart(ctx, hub, start)
}

// takePart is the owner's part of the training, from its name at the hub to the settlement.
func (s *session) takePart(ctx context.Context, hub transport.Store, start time.Time) (*Result, error) {
	node := &transport.Node{Store: hub, Credentials: s.c, Config: s.config, Wait: s.o.Wait, Crash: s.o.Crash}
	if err := s.join(ctx, node); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	j, past, err := s.journal()
	if err != nil {
		return nil, err
	}
	defer j.Close()
	node.Journal, node.Past = j, transport.Replay{Journal: past}
	meter, err := s.Job.Meter()
	if err != nil {
		return nil, err
	}
	if err := s.keeper.TakeOver(ctx); err != nil {
		return nil, err
	}
	if err := s.ready(ctx, node); err != nil {
		return nil, err
	}
	if err := s.notBehind(ctx, node, j); err != nil {
		return nil, err
	}
	if err := s.keeper.Take(ctx); err != nil {
		return nil, err
	}
	rows, err := s.keeper.Open(meter, j, j.Charged())
	if err != nil {
		return nil, err
	}
	x, err := s.train(ctx, node, node.Over(rows, meter), j)
	if closed := rows.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	if j.Charged() != s.Job.Owner.Activations {
		return nil, fmt.Errorf("the journal holds %d charges for %d activations", j.Charged(), s.Job.Owner.Activations)
	}
	return s.finish(ctx, node, x, time.Since(start).Seconds())
}

// identify checks the fingerprint and takes the owner's own key, before anything of the network is used.
func (s *session) identify() error {
	found, err := s.c.Network.Fingerprint()
	if err != nil {
		return err
	}
	if s.o.Fingerprint != "" && !transport.SameFingerprint(s.o.Fingerprint, found) {
		return inputError("--fingerprint: %s is of a network with the fingerprint %s; use the network whose fingerprint the owners have compared", s.o.Credentials, found)
	}
	if s.o.Fingerprint == "" && s.c.Network.Mode == transport.ModeSum {
		return inputError("--fingerprint is missing: in a network of mode sum, masks hide an owner's rows from the organizer and the hub only if all owners have the same network. sotto net fingerprint prints its digits; compare them by telephone")
	}
	if s.o.Key == "" {
		if s.c.Network.OwnKeys {
			return inputError("--key FILE is missing: in this network each owner has a key of its own, which sotto net key made")
		}
		return nil
	}
	key, err := transport.ReadOwnerKey(s.o.Key)
	if err != nil {
		return &run.InputError{Err: err}
	}
	if err := s.c.Take(key); err != nil {
		return inputError("--key: %s: %w", s.o.Key, err)
	}
	return nil
}

// agree compares the spec with what the network agreed on.
func (s *session) agree(begun bool) (err error) {
	if s.c, err = transport.ReadCredentials(s.o.Credentials); err != nil {
		return &run.InputError{Err: err}
	}
	if err := s.identify(); err != nil {
		return err
	}
	s.o.Plan.Apart = true
	if s.plan, err = netplan.Prepare(s.o.Spec, s.o.Plan); err != nil {
		return err
	}
	network := &s.c.Network
	if len(network.Owners) != len(s.plan.Owners) {
		return inputError("%s: found %d owners; the network has %d", s.o.Spec, len(s.plan.Owners), len(network.Owners))
	}
	for i, o := range s.plan.Owners {
		if o.Name != network.Owners[i].Name {
			return inputError("%s: found the owner %q as number %d; the network has %q there", s.o.Spec, o.Name, i+1,
				network.Owners[i].Name)
		}
	}
	agreed, err := s.plan.Agreement()
	if err != nil {
		return err
	}
	if s.agreed.Parts, err = agreed.Parts(network.Agreed); err != nil {
		return err
	}
	if part := s.agreed.Parts.Differs(network.Agreed); part != "" {
		return inputError("%s: its part %s is not what the owners agreed on; use the agreed spec", s.o.Spec, part)
	}
	if err := s.fits(); err != nil {
		return inputError("%s: %w; found a new network", s.o.Credentials, err)
	}
	s.Session = run.NewSession(s.plan.JobOf(s.c.Owner, s.o.Data), run.Env{
		Version: s.o.Version, Workers: 1, Ledger: s.plan.Spec.Ledger, Void: s.o.Void, Notice: s.o.Notice, Crash: s.o.Crash,
	}, s.o.Dir, begun)
	s.Job.Spec.MetricsTimings = s.o.MetricsTimings
	s.keeper = own{s.Session}
	if s.agreed.Network, err = network.Agreement(); err != nil {
		return err
	}
	s.config, err = network.Config()
	return err
}

// A place is what an owner needs to rejoin its network from its directory.
type place struct {
	Network string `json:"network"` // and the owner's name
	// hash of the network with its roster; none in a directory of an earlier build
	Agreed string          `json:"agreed,omitempty"`
	Dim    int             `json:"dim"`   // parameters
	Share  transport.Share `json:"share"` // of the schedule's seed: secret until all have committed to theirs
	// Commitments are those of all owners to their shares. They are on disk before this owner shows its
	// share, so that later ones are detected.
	Commitments [][]byte `json:"commitments,omitempty"`
}

// enter makes the owner's directory, or reads the one of an earlier process.
func (s *session) enter() (unlock func(), err error) {
	if s.o.Dir == "" {
		return nil, inputError("--dir is missing: a directory of the owner's own, kept until the training is over")
	}
	if err := vfs.MkdirAll(vfs.OS{}, s.o.Dir, 0o700); err != nil {
		return nil, inputError("--dir: found %s, where nothing can be written (%w)", s.o.Dir, err)
	}
	if _, err := readPlace(s.o.Dir); err != nil { // a directory of something else gets no lock
		return nil, err
	}
	s.crash("entering")
	held, err := run.LockDir(s.o.Dir)
	if err != nil {
		return nil, &run.InputError{Err: err}
	}
	defer func() {
		if err != nil {
			held()
		}
	}()
	old, err := readPlace(s.o.Dir)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if err := s.take(old); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(s.o.Dir, runlog.InfoFile)); os.IsNotExist(err) { // not all owners had come
			return held, nil
		}
		if s.Info, err = runlog.ReadInfo(s.o.Dir); err != nil {
			return nil, &run.InputError{Err: err}
		}
		if s.o.MetricsTimings && s.Info.Status != runlog.Finished &&
			!slices.Contains(s.Info.Assertions, runlog.MetricsTimings) {
			s.Info.Assertions = append(s.Info.Assertions, runlog.MetricsTimings)
			if err := runlog.WriteInfo(s.o.Dir, s.Info); err != nil {
				return nil, err
			}
		}
		known, err := ReadSchedule(s.o.Dir)
		if err != nil {
			return nil, &run.InputError{Err: err}
		}
		return held, s.settle(known.Seed)
	}
	return held, s.newPlace()
}

// missing lists the paths that enter will make, innermost first: the place, the lock and the directory.
func (s *session) missing() (paths []string) {
	for _, path := range []string{filepath.Join(s.o.Dir, runlog.PlaceFile), filepath.Join(s.o.Dir, ".lock"), s.o.Dir} {
		if _, err := os.Lstat(path); os.IsNotExist(err) {
			paths = append(paths, path)
		}
	}
	return paths
}

// leave gives up the directory, and removes what this process has made of it.
func (s *session) leave(made []string, unlock func()) {
	if len(made) > 0 {
		os.Remove(made[0])
	}
	unlock()
	for _, path := range made { // those that another process uses by now stay
		os.Remove(path)
	}
}

// take continues from a place; it refuses that of another training or owner.
func (s *session) take(p *place) error {
	if p.Network != s.networkName() || (p.Agreed != "" || s.Job.Sum != nil) && p.Agreed != fmt.Sprintf("%x", s.config) {
		return inputError("%s: belongs to another training; use a new directory, or the one of this training", s.o.Dir)
	}
	s.place = p
	return nil
}

// newPlace makes the place of a new directory.
func (s *session) newPlace() (err error) {
	s.place = &place{Network: s.networkName(), Agreed: fmt.Sprintf("%x", s.config), Dim: s.Job.Facts.Dim}
	if s.place.Share, err = transport.NewShare(); err != nil {
		return err
	}
	return s.keepPlace()
}

func (s *session) keepPlace() error {
	return newfile.JSON(filepath.Join(s.o.Dir, runlog.PlaceFile), "", s.place)
}

// readPlace reads the place in a directory; nil for an empty one.
func readPlace(dir string) (*place, error) {
	path := filepath.Join(dir, runlog.PlaceFile)
	b, err := readfile.All(path, readfile.JSON)
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != ".lock" }) {
			return nil, inputError("%s: is not empty and holds no training; use a new directory", dir)
		}
		return nil, nil
	}
	p := &place{}
	if err == nil {
		err = json.Unmarshal(b, p)
	}
	if err != nil {
		return nil, inputError("%s: %w", path, err)
	}
	return p, nil
}

// join waits until all owners have joined, and settles the schedule with them.
func (s *session) join(ctx context.Context, node *transport.Node) error {
	network := &s.c.Network
	commitments, err := s.meet(ctx, node, transport.Hello, s.place.Share.Commitment(network, s.c.Owner))
	if err != nil {
		return err
	}
	s.crash("committed")
	if !s.plan.Drawn() {
		return nil
	}
	if s.place.Commitments == nil {
		s.place.Commitments = commitments
		if err := s.keepPlace(); err != nil {
			return err
		}
	}
	for i, c := range s.place.Commitments {
		if !bytes.Equal(c, commitments[i]) {
			return fmt.Errorf("%s has committed to another share of the schedule's seed than before: %w", network.Owners[i].Name,
				transport.ErrForged)
		}
	}
	shares, err := s.meet(ctx, node, transport.Show, s.place.Share[:])
	if err != nil {
		return err
	}
	seed, err := transport.DrawnSeed(network, commitments, shares)
	if err != nil {
		return err
	}
	if s.Info != nil && s.plan.Schedule.Seed != seed {
		return inputError("%s: its schedule is of another seed than the owners have drawn", s.o.Dir)
	}
	return s.settle(seed)
}

// settle makes the plan of the seed that the owners have drawn, if they draw one.
func (s *session) settle(seed uint64) (err error) {
	if !s.plan.Drawn() {
		return nil
	}
	s.o.Plan.Seed = &seed
	if s.plan, err = netplan.Prepare(s.o.Spec, s.o.Plan); err != nil {
		return fmt.Errorf("found no plan with the seed %d that the owners have drawn; the same network, founded again, draws another: %w", seed, err)
	}
	if err := s.c.Network.Limits.Fits(s.plan.Schedule, s.plan.Job.Facts.Dim); err != nil {
		return fmt.Errorf("%w, by the seed that the owners have drawn; a new network draws another", err)
	}
	s.Job = s.plan.JobOf(s.c.Owner, s.o.Data)
	return nil
}

// begin writes the owner's run directory, unless a run has begun there.
func (s *session) begin() (err error) {
	if s.Info != nil {
		return nil
	}
	if s.Info, err = job.NewInfo(s.Job, s.o.Version); err != nil {
		return err
	}
	s.Info.Binary = runlog.Binary()
	s.Info.Network = s.networkName()
	if !s.Info.Lab {
		if err := newfile.Replace(filepath.Join(s.o.Dir, runlog.TokenFile), 0o600,
			[]byte(ledger.NewToken()+"\n")); err != nil {
			return err
		}
	}
	// Verify needs it
	if err := newfile.JSON(filepath.Join(s.o.Dir, runlog.ScheduleFile), "", s.plan.Schedule); err != nil {
		return err
	}
	if err := s.agreed.Write(s.o.Dir); err != nil {
		return err
	}
	return runlog.WriteInfo(s.o.Dir, s.Info)
}

// networkName is the network and the owner's name, as in run.json.
func (s *session) networkName() string { return s.c.Network.ID + "/" + s.c.Name() }

// journal opens the owner's journal. It must exist unless the directory is new.
func (s *session) journal() (*runlog.Journal, *runlog.JournalReader, error) {
	path := filepath.Join(s.o.Dir, runlog.JournalFile)
	head := runlog.JournalHead{Run: s.Info.ID, Config: fmt.Sprintf("%x", s.config), Owner: s.c.Owner, Dim: s.Job.Facts.Dim}
	var j *runlog.Journal
	var past *runlog.JournalReader
	_, err := os.Stat(path)
	if os.IsNotExist(err) && s.Info.Ledger == "" { // nothing was reserved or released yet
		j, err = runlog.CreateJournal(path, head)
	} else {
		j, past, err = runlog.OpenJournal(path, head)
	}
	if errors.Is(err, runlog.ErrOtherJournal) || os.IsNotExist(err) {
		err = &run.InputError{Err: err}
	}
	if err == nil {
		j.Crash = s.o.Crash
	}
	return j, past, err
}

// sayAfter is how long the process waits before it says what it waits for.
const sayAfter = 2 * time.Second

func (s *session) waiting(what string) {
	if s.o.Waiting != nil {
		s.o.Waiting(what)
	}
}

// sayWhoIsMissing reports changes in the list of owners who have not published the text named what,
// until the context ends.
func (s *session) sayWhoIsMissing(ctx context.Context, node *transport.Node, what string) {
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(sayAfter):
		}
		var lack []string
		for i, o := range s.c.Network.Owners {
			there, err := transport.Said(ctx, node.Store, i, what, s.place.Dim)
			if err != nil {
				return
			}
			if !there {
				lack = append(lack, o.Name)
			}
		}
		if names := strings.Join(lack, ", "); names != "" && names != told {
			s.waiting(names)
			told = names
		}
	}
}

// meet says a text and waits for the texts of all owners.
func (s *session) meet(ctx context.Context, node *transport.Node, what string, text []byte) ([][]byte, error) {
	brief, stop := context.WithTimeout(ctx, s.o.Join)
	defer stop()
	said := make(chan struct{})
	go func() {
		defer close(said)
		s.sayWhoIsMissing(brief, node, what)
	}()
	all, err := node.Meet(brief, what, text)
	stop()
	<-said
	var missing *transport.ErrMissing
	switch {
	case ctx.Err() != nil:
		return nil, run.ErrInterrupted
	case errors.As(err, &missing):
		names, lacks := strings.Join(missing.Names, ", "), "there is no sign of %s"
		if what == transport.Show {
			lacks = "%s has come, but does not show its share of the schedule's seed"
		}
		return nil, fmt.Errorf("after %v "+lacks+"; no row was accessed. Start again with the same --dir to go on waiting",
			s.o.Join, names)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("after %v the hub does not answer, so who has come is not known; no row was accessed. Start again with the same --dir to go on waiting (%w)", s.o.Join, err)
	case errors.Is(err, transport.ErrElsewhere):
		return nil, inputError("--dir: found %s: %w", s.o.Dir, err)
	}
	return all, err
}

// ready says that the budget is reserved, and for which schedule. It waits until all owners have said the same.
func (s *session) ready(ctx context.Context, node *transport.Node) error {
	seed := strconv.FormatUint(s.plan.Schedule.Seed, 10)
	all, err := s.meet(ctx, node, transport.Ready, []byte(s.Info.ID+" "+seed))
	if err != nil {
		return err
	}
	for i, text := range all {
		if _, theirs, _ := strings.Cut(string(text), " "); theirs != seed {
			return fmt.Errorf("%s trains by a schedule of another seed, so the hub has not told all owners the same; no row was accessed", s.c.Network.Owners[i].Name)
		}
	}
	return nil
}

// crash marks a point where tests let the process die.
func (s *session) crash(point string) {
	if s.o.Crash != nil {
		s.o.Crash(point)
	}
}

// notBehind compares journal and hub.
func (s *session) notBehind(ctx context.Context, node *transport.Node, j *runlog.Journal) error {
	activations := 0
	for act := range s.plan.Schedule.Activations(s.c.Owner) {
		if activations == j.Charged() {
			return node.Check(ctx, act, s.Job.Facts.Dim)
		}
		activations++
	}
	return nil
}

// train runs the owner's activations.
func (s *session) train(ctx context.Context, node *transport.Node, o oracle.Oracle,
	j *runlog.Journal) ([]float64, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reach, over, err := s.startReach(ctx, stop, j.Charged())
	if err != nil {
		return nil, err
	}
	node.Charged = reach.charged
	done := 0
	x, err := s.Job.Owner.Method.(gossip.Method).Run(ctx,
		gossip.Node{Schedule: s.plan.Schedule, Index: s.c.Owner, Mixer: node}, o, s.Job.Objective,
		func(int, func([]float64)) {
			done++
			if s.o.Progress != nil {
				s.o.Progress(Activations, done, s.Job.Owner.Activations)
			}
		})
	cause := context.Cause(ctx)
	stop(nil)
	<-over
	if err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}
	return x, j.Flush()
}

// finish makes the model of all owners and settles the owner's budget. After a crash at any point the same
// command completes it.
func (s *session) finish(ctx context.Context, node *transport.Node, x []float64, seconds float64) (*Result, error) {
	s.crash("trained")
	brief, stop := context.WithTimeout(ctx, s.o.Join)
	defer stop()
	models, err := node.Share(brief, s.plan.Schedule.Rounds, x)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, run.ErrInterrupted // not the models that came until then
	}
	s.crash("shared")
	found := slices.DeleteFunc(slices.Clone(models), func(m []float64) bool { return m == nil })
	if len(found) < len(models) && s.o.Notice != nil {
		s.o.Notice(fmt.Sprintf("the model is the mean of %d owners' of %d: the others did not end in time", len(found),
			len(models)))
	}
	s.Result().Owners = len(found)
	rec, err := s.keeper.Finish(ctx, gossip.Mean(found), s.Job.Owner.Activations, method.Done.String(), seconds)
	if err != nil {
		return nil, err
	}
	r := s.summary(rec)
	r.Committed, r.Aborted = node.Committed, node.Aborted
	return r, nil
}

// summary returns the result of a finished run.
func (s *session) summary(rec *runlog.Record) *Result {
	r := &Result{Dir: s.o.Dir, Run: s.Info.ID, Owner: s.c.Name(), Activations: s.Info.Result.Steps,
		Noise: s.Info.NoiseMultiplier, Models: s.Info.Result.Owners, Seconds: s.Info.Result.TrainSeconds}
	if !s.Info.Off {
		epsilon := s.Job.Cost(rec.Event())
		r.Epsilon, r.Delta, r.Adjacency = &epsilon, s.Info.Budget.Delta, s.Info.Budget.Adjacency.String()
	}
	return r
}

// settleAgain ends a run that was killed before its settlement in the ledger.
func (s *session) settleAgain(ctx context.Context) (*Result, error) {
	rec, err := s.SettleAgain(ctx)
	switch {
	case err != nil:
		return nil, err
	case rec == nil:
		return nil, inputError("%s: this owner's run is finished", s.o.Dir)
	case s.Info.Result.Outcome == run.Diverged:
		return nil, run.ErrDiverged
	}
	return s.summary(rec), nil
}
