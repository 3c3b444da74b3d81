package web

import (
	"os"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// A runLog is the durable log of a run. An owner in a network writes a journal, synced after each activation; its steps
// are the activations.
type runLog struct {
	*runlog.Follower
	journal string    // its path; empty outside networks
	size    int64     // of the journal when it was read
	next    time.Time // when to read it again: it is read as a whole
}

func follow(e *runEntry) *runLog {
	r := &runLog{Follower: runlog.Follow(e.Dir)}
	if e.Network != "" {
		r.journal = filepath.Join(e.Dir, runlog.JournalFile)
	}
	r.Ended = !e.Open()
	return r
}

// recorded is the record of a run, with ε of what was charged if that is asked for, and its log.
func recorded(e *runEntry, spent bool) (*record.Record, *runLog, error) {
	info, err := runlog.ReadInfo(e.Dir)
	if err != nil {
		return nil, nil, err
	}
	log := follow(e)
	if err := log.read(); err != nil {
		return nil, nil, err
	}
	r := record.Of(info, log.Record())
	if g := r.Guarantee; g != nil && spent {
		g.Realized = record.Charged(info, log.Record())
	}
	return r, log, nil
}

// read reads what is new. Reading a journal takes at most a tenth of the time.
func (r *runLog) read() error {
	if r.journal == "" {
		_, err := r.Read()
		return err
	}
	begin := time.Now()
	info, err := os.Stat(r.journal)
	if err != nil || info.Size() == r.size || begin.Before(r.next) {
		return err
	}
	all, err := runlog.JournalRecord(r.journal)
	if err != nil {
		return err
	}
	r.size, r.Written, r.Events = info.Size(), info.ModTime(), all.Events
	if n := all.Charged(); n > 0 {
		r.Steps = []runlog.Step{{T: n}}
	}
	end := time.Now()
	r.next = end.Add(9 * end.Sub(begin))
	return nil
}
