package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// sums checks that the releases of an owner's run follow from the sums in its journal. The method
// runs over an oracle without rows, whose pool answers from the journal; no part is made.
func (v *Verification) sums(ctx context.Context) error {
	journal, err := runlog.ReadSums(filepath.Join(v.Dir, runlog.SumsFile))
	if err != nil {
		return &InputError{Where: v.Dir, Err: err}
	}
	defer journal.Close()
	pool := &journalPool{sums: journal, at: -1, retries: v.Job.Sum.Retries}
	log := &sameReleases{rec: v.Record.Open(v.Record.Oldest())}
	defer log.rec.Close()
	if at := v.Record.Oldest(); at != nil {
		log.skip = at.Released
	}
	t := Trainer{Job: v.Job, Table: data.Away(v.Job.Schema, nil), Summer: noRows(v.Job.Own()), Pool: pool,
		Streams: noise.SeededStreams(0),
		Meter:   job.LabMeter(v.Job.Facts.Adjacency), Journal: log}
	_, _, err = t.Train(ctx, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	v.givenUp = pool.givenUp > pool.retries
	masked, most, ended := 0, 0, false
	for _, a := range journal.Attempts {
		ended = a.Last() && len(a.Totals) == 1
		if len(a.Parts) > 0 && !a.Last() {
			masked++
			most = max(most, a.Parts[0].Charged)
		}
	}
	charged, s := v.Record.Charged(), v.Job.Sum
	switch {
	case journal.Head.Run != v.Info.ID || journal.Head.Owner != s.Owner || journal.Head.Owners != len(s.Names) ||
		journal.Torn:
		v.Say("sums", false, "%s is that of run %s, owner %d of %d, and must be that of %s, owner %d of %d, with a whole end",
			runlog.SumsFile, journal.Head.Run, journal.Head.Owner+1, journal.Head.Owners, v.Info.ID, s.Owner+1, len(s.Names))
	case err != nil && !errors.Is(err, replay.ErrEnd):
		v.Say("sums", false, "%v", err)
	case !ended:
		v.Say("sums", false, "%s does not end with the sum by which owners compare what the hub has shown them",
			runlog.SumsFile)
	default:
		v.Say("sums", log.same == v.Record.Released && masked <= charged && most <= charged && pool.givenUp <= pool.retries+1,
			"%d of %d releases are what the sums in %s give; the owner masked parts of %d attempts, and %d were charged; %d were given up of %d that may be",
			log.same, v.Record.Released, runlog.SumsFile, masked, charged, pool.givenUp, pool.retries)
	}
	return nil
}

// shares: the ledger holds what the reservation assumes as the recorded plan gives it. A dataset's statement rests on
// the ledger's.
func (v *Verification) shares(place string, reserved *account.Shares) {
	own := v.Info.Shares()
	if own == nil && reserved == nil {
		return
	}
	if sameShares(own, reserved) {
		v.Say("shares", true, "%s and the recorded plan say the same: %s", place, sharesWords(own))
		return
	}
	v.Say("shares", false,
		"%s has reserved it with %s; by the plan in %s it is %s. One of the two was changed, or is of another version of Sotto: "+
			"do not rely on what the ledger says of the dataset until you know which", place, sharesWords(reserved),
		runlog.InfoFile, sharesWords(own))
}

// sameShares compares what two guarantees assume. An ε may differ in its last digits, as that of a curve does between
// platforms.
func sameShares(a, b *account.Shares) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Sharing != b.Sharing || a.Alone == nil || b.Alone == nil {
		return a.Sharing == b.Sharing && a.Alone == b.Alone
	}
	return math.Abs(*a.Alone-*b.Alone) <= 1e-6**a.Alone
}

// sharesWords say what a guarantee assumes, and what it is without that.
func sharesWords(s *account.Shares) string {
	if s == nil {
		return "noise that no owners share"
	}
	return fmt.Sprintf("noise that %d owners share (retries: %d); %s", s.Owners, s.Retries, againstWords(s))
}

// againstWords say against whom a guarantee's ε is, and what it is against the others.
func againstWords(s *account.Shares) string {
	alone := "no finite ε is proven"
	if s.Alone != nil {
		alone = "ε = " + chart.Upper(*s.Alone)
	}
	return fmt.Sprintf("this is against %s, while masks hold; at the same δ, against %s, %s", text.Against(s.Colluders),
		text.AgainstAll, alone)
}

// journalPool answers from a journal of sums. All attempts are held: nothing is charged, and no part is made.
type journalPool struct {
	sums             *runlog.Sums
	retries, givenUp int
	at, sum          int // the attempt, and the next sum of it
}

// Meet implements sum.Pool.
func (p *journalPool) Meet(context.Context) (held bool, err error) {
	for {
		if p.givenUp > p.retries {
			return false, fmt.Errorf("%d attempts were given up: %w", p.givenUp, privacy.ErrExhausted)
		}
		p.at, p.sum = p.at+1, 0
		if p.at >= len(p.sums.Attempts) {
			return false, replay.ErrEnd
		}
		a := p.sums.Of(p.at)
		if len(a.Totals) > 0 || !a.GivenUp {
			return true, nil
		}
		p.givenUp++
	}
}

// Sum implements sum.Pool.
func (p *journalPool) Sum(_ context.Context, asked [sha256.Size]byte, n int,
	_ func() ([]int64, error)) ([]int64, error) {
	a := p.sums.Of(p.at)
	switch {
	case p.sum >= len(a.Totals) && a.GivenUp:
		p.givenUp++
		return nil, sum.ErrGivenUp
	case p.sum >= len(a.Totals):
		return nil, replay.ErrEnd
	case a.Parts[p.sum].Asked != asked || a.Totals[p.sum].N != n:
		return nil, fmt.Errorf("%s: sum %d of attempt %d is not what the run's method asks", runlog.SumsFile, p.sum+1, p.at+1)
	}
	b, err := p.sums.TotalNumbers(a.Totals[p.sum])
	if err != nil {
		return nil, err
	}
	p.sum++
	v := make([]int64, n)
	runlog.AddNumbers(v, b)
	return v, nil
}

// sameReleases is a journal that compares releases with those of a run log.
type sameReleases struct {
	NopJournal
	rec  *runlog.Reader
	skip int // releases that the run log no longer has
	same int
}

// Release implements oracle.Journal.
func (s *sameReleases) Release(answers [][]float64) error {
	if s.skip > 0 {
		s.skip--
		s.same++
		return nil
	}
	r, err := s.rec.Next()
	if err == io.EOF {
		return errors.New("the sums give more releases than the run log has")
	}
	if err != nil {
		return err
	}
	if !slices.EqualFunc(r.Answers, answers, slices.Equal) {
		return fmt.Errorf("release %d is not what the sums in %s give", s.same+1, runlog.SumsFile)
	}
	s.same++
	return nil
}

// noRows is a Summer of so many records, none of which is here.
type noRows int

func (n noRows) Rows() int { return int(n) }

func (noRows) Draw(context.Context, sum.Draw) error { return errNoRows }

func (noRows) Sum(context.Context, *sum.Sum) error { return errNoRows }

func (noRows) Take([]int64, int) {}

var errNoRows = errors.New("run: a verification has no rows")
