package run

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// owner lives as an owner of a network does: the session, the ledger and the journal are those of gossip/party,
// in its order; the hub is a list that outlives every crash. A draw is 64 random bytes as numbers.
func (w *world) owner(ctx context.Context, env Env) (err error) {
	d := env.disk
	made := w.job()
	made.Owner = &job.Owner{Activations: activations}
	s := NewSession(made, env, simDir, false)
	defer s.Close()
	if err := s.Load(ctx); err != nil {
		return err
	}
	if err := vfs.MkdirAll(d.FS, simDir, 0o700); err != nil {
		return err
	}
	if s.unlock, err = s.disk().lockDir(simDir); err != nil {
		return err
	}
	if err := d.Tidy(simDir); err != nil {
		return err
	}
	if _, err := d.FS.Stat(filepath.Join(simDir, runlog.InfoFile)); err == nil {
		if s.Info, err = d.ReadInfo(simDir); err != nil {
			return err
		}
		if s.Info.Status == runlog.Finished {
			_, err := s.SettleAgain(ctx)
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := s.Admits(ctx, "owner"); err != nil {
		return err
	}
	if s.Info == nil {
		made.Owner = nil
		if s.Info, err = job.NewInfo(made, ""); err != nil {
			return err
		}
		made.Owner = &job.Owner{Activations: activations}
		s.Info.Network, s.Info.Result = "net/owner", &runlog.Result{Outcome: method.Done.String()}
		if err := newfile.ReplaceOn(d.FS, filepath.Join(simDir, runlog.TokenFile), 0o600, []byte(ledger.NewToken()+"\n")); err != nil {
			return err
		}
		if err := d.WriteInfo(simDir, s.Info); err != nil {
			return err
		}
	}
	path, head := filepath.Join(simDir, runlog.JournalFile), runlog.JournalHead{Run: s.Info.ID, Dim: 128}
	var j *runlog.Journal
	var past *runlog.JournalReader
	_, err = d.FS.Stat(path)
	if errors.Is(err, os.ErrNotExist) && s.Info.Ledger == "" {
		j, err = d.CreateJournal(path, head)
	} else if err == nil {
		j, past, err = d.OpenJournal(path, head)
	}
	if err != nil {
		return err
	}
	defer j.Close()
	if err := s.TakeOver(ctx); err != nil {
		return err
	}
	if err := s.Take(ctx); err != nil {
		return err
	}
	plan := made.Plan.(privacy.Repeated)
	known := j.Charged()
	reach := func(batches int) error { // before so many are published, and one more
		if batches <= known {
			return nil
		}
		to := min(activations, batches+1)
		if err := s.Reach(ctx, j.Charged(), []ledger.Charges{{First: known, Count: to - known, Event: plan.Of}}); err != nil {
			return err
		}
		known = to
		return nil
	}
	if err := reach(min(activations, known+1)); err != nil {
		return err
	}
	publish := func(round int, m []float64) error {
		if w.disk.Dead() != nil {
			return w.disk.Dead()
		}
		text := []byte(fmt.Sprint(m))
		if was := w.hub[round]; was != nil && !bytes.Equal(was, text) {
			w.twice = fmt.Errorf("activation %d was drawn twice", round)
			return w.twice
		}
		w.hub[round] = text
		return nil
	}
	for past != nil {
		a, err := past.Next()
		if err == io.EOF {
			past.Close()
			break
		}
		if err != nil {
			return err
		}
		if err := publish(a.Round, a.Sent); err != nil {
			return err
		}
	}
	for round := j.Charged() + 1; round <= activations; round++ {
		m := make([]float64, head.Dim)
		for i := range m {
			var b [1]byte
			rand.Read(b[:])
			m[i] = float64(b[0])
		}
		if err := errors.Join(j.Charge(plan.Of), j.Release([][]float64{m}), j.Send(round, m)); err != nil {
			return err
		}
		if err := reach(j.Charged()); err != nil {
			return err
		}
		if err := publish(round, m); err != nil {
			return err
		}
		j.Done(round, []bool{true}, m)
	}
	if err := j.Flush(); err != nil {
		return err
	}
	rec, err := d.Record(s.Info, simDir)
	if err != nil {
		return err
	}
	s.Info.Result.Charged = rec.Charged()
	return s.settle(ctx, rec)
}

const activations = 4
