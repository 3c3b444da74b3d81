package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// A Source is where the training rows of a run are: in a table of this machine, or with workers (Shards).
type Source interface {
	setting() job.Setting
	// open opens the rows to the gate, and returns counts of loading, which only the lab may see.
	open(context.Context, *Session, *access.Gate) (map[string]int, error)
	// beside adapts the options by which the test table is read.
	beside(*data.Options)
	// describe says in run.json where the rows are.
	describe(*runlog.Info)
	// has checks that the rows of a run that goes on are there.
	has(j *Job, info *runlog.Info, dir string) error
	// where names the rows in an error.
	where(*Job) string
}

// table is the source of a run whose rows are in the spec's data. again says that its run goes on with a file that its
// user named.
type table struct{ again bool }

func (table) setting() job.Setting { return job.OnOneTable }

func (table) beside(*data.Options) {}

func (table) describe(*runlog.Info) {}

func (table) where(j *Job) string { return data.Public(j.Spec.Data) }

func (t table) has(j *Job, info *runlog.Info, dir string) error {
	switch {
	case info.Shards > 0:
		return fmt.Errorf("its rows are in %s on other machines; go on with --workers and --key", shardsOf(info.Shards))
	case !t.again && FromProgram(j.Spec.Data):
		return fmt.Errorf("the program that started this run gave it its rows, through %s, and only that program has them: repeat the same fit there, in Python with run_dir=%q", j.Spec.Data, dir)
	}
	return nil
}

func (table) open(ctx context.Context, s *Session, gate *access.Gate) (counts map[string]int, err error) {
	facts, file := &s.Job.Facts, s.Job.Spec.Data
	begins := s.Info == nil
	if begins {
		facts.Coding = s.Job.Coding()
	}
	purpose, _ := s.right.purpose()
	if s.opened, err = gate.Open(ctx, purpose, s.Job.Schema, file, s.Job.RowOptions()); err != nil {
		return nil, err
	}
	switch found := oracle.Coding(s.opened.Coding()); {
	case begins:
		facts.Coding = found
		facts.Centered = facts.Centered && !found.Coded()
	case facts.Coding == found:
	case facts.Bytes:
		return nil, inputError(file,
			"is a packed table; use the file of images that the run began with, as it sums rows of bytes")
	default:
		return nil, inputError(file,
			"is a table of float32 numbers; use the packed table that the run began with, as it sums 16-bit numbers")
	}
	stats := s.opened.Stats
	counts = map[string]int{"rows": stats.Rows, "dropped": stats.Dropped}
	for column, n := range stats.Clamped {
		counts["clamped "+column] = n
	}
	return counts, nil
}

// Shards are the parts of a table on other machines of its owner, and the channel to them.
type Shards struct {
	Secret  *remote.Secret
	Carrier Carrier
}

// A Carrier also gives workers the gate's request when they come, before they read their rows.
type Carrier interface {
	remote.Carrier
	Request(*access.Request)
}

func (*Shards) setting() job.Setting { return job.OnWorkers }

// beside: a unit with rows in a shard may not be in the test table.
func (sh *Shards) beside(opt *data.Options) { opt.IDKey = sh.Secret.IDKey() }

func (sh *Shards) describe(info *runlog.Info) {
	info.Data, info.Labels, info.Shards = "", "", sh.Carrier.Shards()
}

func (*Shards) where(*Job) string { return "the workers' rows" }

func (sh *Shards) has(_ *Job, info *runlog.Info, _ string) error {
	if n := sh.Carrier.Shards(); n != info.Shards {
		return fmt.Errorf("its rows are in %s; --key names %s", shardsOf(info.Shards), shardsOf(n))
	}
	return nil
}

// open waits for all shards and asks for their content's digests.
func (sh *Shards) open(ctx context.Context, s *Session, gate *access.Gate) (map[string]int, error) {
	s.Job.Facts.Coding = oracle.Coding{}
	terms, err := s.Job.Terms()
	if err != nil {
		return nil, err
	}
	request, err := gate.Request(ctx)
	if err != nil {
		return nil, err
	}
	sh.Carrier.Request(request)
	all, err := remote.Open(ctx, sh.Secret, sh.Carrier, s.Job.Facts, terms, access.SentSize)
	sh.Carrier.Request(request.Over())
	if refused := (*remote.Refused)(nil); errors.As(err, &refused) && refused.Protected {
		return nil, fmt.Errorf("%w: %w", access.ErrProtected, refused)
	} else if refused != nil {
		return nil, &InputError{Err: refused}
	}
	if err != nil {
		return nil, err
	}
	// Public under replace-one (R9).
	if n := all.Rows(); s.Job.Facts.Adjacency == privacy.ReplaceOne && n != s.Job.Facts.Rows {
		return nil, inputError("",
			"%s: found %d in %s together; under replace-one there must be exactly %d, the number in the schema",
			s.Job.Schema.Counted(), n, shardsOf(len(all.Digests())), s.Job.Facts.Rows)
	}
	purpose, _ := s.right.purpose()
	if s.opened, err = gate.Remote(ctx, purpose, s.Job.Schema, together(all.Digests()), all.Digests(), all.Compared(),
		all.Units()); err != nil {
		all.Refuse(ctx)
	}
	s.summer = all
	return map[string]int{"rows": all.Rows()}, err
}

// together returns the digest of a table in parts: for one part, its own.
func together(parts [][sha256.Size]byte) (sum [sha256.Size]byte) {
	if len(parts) == 1 {
		return parts[0]
	}
	h := sha256.New()
	h.Write([]byte("sotto shards/1"))
	for _, p := range parts {
		h.Write(p[:])
	}
	h.Sum(sum[:0])
	return sum
}

func shardsOf(n int) string {
	if n == 1 {
		return "1 shard"
	}
	return fmt.Sprintf("%d shards", n)
}
