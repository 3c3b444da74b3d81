package ledger

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy/account"
)

// Sharing is what a dataset's totals assume where owners of a network share the noise of runs: the ε of such a run, and
// so every total, is against the hub and Colluders other owners, while masks hold.
type Sharing struct {
	Runs      int `json:"runs" unit:"runs"`        // whose noise owners share
	Colluders int `json:"colluders" unit:"owners"` // the fewest of these runs
	// of all runs so far, added up, against all other owners together, or if masks were broken; nil: none is proven
	Alone *Caps `json:"alone"`
}

// sharing is the state from which Sharing follows.
type sharing struct {
	runs, colluders int
	alone           total // of all runs
	unproven        bool
}

// add adds a run. Against all other owners together it costs its Shares.Alone, at least its own ε;
// a run that shares no noise costs its own ε and δ.
func (s *sharing) add(c Caps, of *account.Shares) {
	if of != nil {
		if s.runs == 0 || of.Colluders < s.colluders {
			s.colluders = of.Colluders
		}
		s.runs++
		if of.Alone == nil {
			s.unproven = true
		} else {
			c.Epsilon = math.Max(c.Epsilon, *of.Alone)
		}
	}
	s.alone.add(c)
}

func (s *sharing) clone() sharing {
	c := *s
	c.alone = s.alone.clone()
	return c
}

func (s *sharing) view() *Sharing {
	if s.runs == 0 {
		return nil
	}
	v := &Sharing{Runs: s.runs, Colluders: s.colluders}
	if !s.unproven {
		alone := s.alone.above()
		v.Alone = &alone
	}
	return v
}

// Words returns the sentences that follow a statement with an ε; "" if no run shares noise. caps
// formats an ε and δ. Void says that there is no lifetime guarantee.
func (s *Sharing) Words(void bool, caps func(Caps) string) string {
	if s == nil {
		return ""
	}
	words := fmt.Sprintf(" Of these runs, %d share their noise among owners of a network: every ε and δ said here holds against %s, while masks hold.", s.Runs, text.Against(s.Colluders))
	switch {
	case void:
		return words
	case s.Alone == nil:
		return words + fmt.Sprintf(" Against %s, no finite ε is proven.", text.AgainstAll)
	}
	return words +
		fmt.Sprintf(" Against %s, all runs so far are together private with %s, which no budget limits.", text.AgainstAll,
			caps(s.Alone.atMost()))
}

// sharedWords say against whom a reservation's ε is.
func sharedWords(s *account.Shares) string {
	if s == nil {
		return ""
	}
	alone := "no finite ε is proven"
	if s.Alone != nil {
		alone = fmt.Sprintf("ε is %v", Caps{Epsilon: *s.Alone}.atMost().Epsilon)
	}
	return fmt.Sprintf(", against %s, while masks hold; against %s %s", text.Against(s.Colluders), text.AgainstAll, alone)
}
