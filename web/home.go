package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sottodp/sotto/internal/redact"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run/runlog"
)

// mostJudged is the number of runs on the home page.
const mostJudged = 10

// homeBody is what is left of each budget, and a verdict on each of the newest runs.
type homeBody struct {
	Budgets datasetsBody
	Runs    []judged
	All     int
	Dirs    []string
}

// A judged is a run with its verdict.
type judged struct {
	runRow
	Verdict verdict
}

// A verdict says in a few words whether a run may be relied on.
type verdict struct {
	Words, Class string    // of the style sheet: good, warn, bad or none
	At           time.Time // of the verification; zero without one
}

func (s *Server) homePage(r *http.Request) (*content, error) {
	l := s.dirs.list()
	b := homeBody{All: len(l.Runs), Dirs: s.options.Dirs}
	var err error
	if b.Budgets, err = s.datasets(r.Context()); err != nil {
		b.Budgets.None = redact.Text(err.Error()) // the runs can be shown without it
	}
	for _, e := range l.Runs[:min(mostJudged, len(l.Runs))] {
		b.Runs = append(b.Runs, judged{s.row(e), s.verdict(e)})
	}
	return &content{"Overview", l.state, b}, nil
}

// A verified is the verdict of a verification, while run.json is the one that the entry was made from.
type verified struct {
	entry *runEntry
	verdict
}

// verdict judges a run by what is known without replaying its log: a verification that this server made counts.
func (s *Server) verdict(e *runEntry) verdict {
	switch {
	case e.State == damaged:
		return verdict{Words: damaged, Class: "bad"}
	case e.Lab || e.Off:
		return verdict{Words: "lab: not private", Class: "bad"}
	case e.State == stalled, e.State == runlog.Interrupted:
		return verdict{Words: e.State, Class: "warn"}
	case e.State != runlog.Finished:
		return verdict{Words: e.State}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.verified[e.Key]; ok && v.entry == e {
		return v.verdict
	}
	return verdict{Words: "not verified yet"}
}

// verdict sums up a verification.
func (b *verifyBody) verdict() verdict {
	v := verdict{Words: "verified", Class: "good", At: time.Now()}
	switch {
	case b.Refused != "":
		v.Words, v.Class = "cannot be verified", "warn"
	case b.Failed > 0:
		v.Words, v.Class = fmt.Sprintf("%d of %d checks fail", b.Failed, len(b.Findings)), "bad"
	case b.Ledger == "":
		v.Words = "verified, without a ledger"
	}
	return v
}

// quality returns the main figure of private figures, with its interval.
func quality(p *runlog.Private) string {
	if p == nil {
		return ""
	}
	for _, of := range []struct {
		name string
		*runlog.Figure
	}{{"accuracy", p.Accuracy}, {"RMSE", p.RMSE}, {"MAE", p.MAE}, {"AUC", p.AUC}} {
		switch {
		case of.Figure == nil:
		case of.Value == nil:
			return fmt.Sprintf("%s from %.4g to %.4g", of.name, of.Low, of.High)
		default:
			figure := fmt.Sprintf("%s %.4g (%.4g to %.4g)", of.name, *of.Value, of.Low, of.High)
			if r2 := p.R2; of.name == "RMSE" && r2 != nil && r2.Value != nil {
				figure += fmt.Sprintf(", R² %.4g (%.4g to %.4g)", *r2.Value, r2.Low, r2.High)
			}
			return figure + than(page.BeatenPrivately(p))
		}
	}
	return ""
}
