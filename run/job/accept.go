package job

import (
	"errors"
	"fmt"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run/runlog"
)

// ErrLargeDelta refuses a δ, unless a person accepts it. The command then ends with exit code 2 before it reserves,
// writes or joins anything.
var ErrLargeDelta = errors.New("δ is too large")

// Assertions returns what the spec asserts, for run.json. run.json has them whether they were
// needed or not, so they reveal nothing about the rows.
func (s *Spec) Assertions() []string {
	var out []string
	if s.AcceptDelta {
		out = append(out, runlog.AcceptDelta)
	}
	if s.AcceptDropped {
		out = append(out, runlog.AcceptDropped)
	}
	if s.TestOverlaps {
		out = append(out, runlog.TestOverlaps)
	}
	if s.Void {
		out = append(out, runlog.Void)
	}
	if s.MetricsTimings {
		out = append(out, runlog.MetricsTimings)
	}
	return out
}

// CheckDelta refuses a δ of 1/n or more, where n is the declared number of records (rows or units). If
// the spec accepts the δ, the text is a warning.
func (s *Spec) CheckDelta(facts oracle.Public, whose string) (warning string, err error) {
	delta := s.Privacy.Budget().Delta
	if s.Privacy.Off || delta < 1/float64(facts.Rows) {
		return "", nil
	}
	text := fmt.Sprintf("found %v, which is at least 1/%s%s = %.3g: a mechanism that publishes one whole record at random would satisfy such a δ", delta, facts.Counted(), whose, 1/float64(facts.Rows))
	if s.AcceptDelta {
		return "privacy.delta: " + text + "; it was accepted", nil
	}
	return "", inputError(s.Place("privacy.delta"),
		"privacy.delta: %w: %s; choose one well below, or accept it with --accept-delta", ErrLargeDelta, text)
}
