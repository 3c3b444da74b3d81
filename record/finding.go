package record

import (
	"fmt"
	"io"
	"strings"
)

// A Finding is one thing that was checked.
type Finding struct {
	What   string `json:"what"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`

	// Skipped says that it was not checked, and Detail why.
	Skipped bool `json:"skipped,omitempty"`
}

// Guaranteed names the finding that a guarantee could not be recomputed.
const Guaranteed = "guarantee"

// check notes something recomputed.
func (r *Record) check(what string, ok bool, detail string) {
	r.Checks = append(r.Checks, Finding{What: what, Holds: ok, Detail: detail})
}

// A Verdict is the result of a verification.
type Verdict struct {
	AgainstLedger bool      `json:"against_ledger"`
	Findings      []Finding `json:"findings"`
	Holds         bool      `json:"holds"`

	broken []string
}

// NewVerdict sums up findings; ledger says that the verification was given one.
func NewVerdict(found []Finding, ledger bool) *Verdict {
	v := &Verdict{AgainstLedger: ledger, Findings: found}
	for _, f := range found {
		if !f.Holds {
			v.broken = append(v.broken, f.What)
		}
		v.AgainstLedger = v.AgainstLedger && !(f.Skipped && f.What == "ledger")
	}
	v.Holds = len(v.broken) == 0
	return v
}

// Text prints the findings, then the verdict.
func (v *Verdict) Text(w io.Writer) {
	for _, f := range v.Findings {
		verdict := "holds: "
		switch {
		case !f.Holds:
			verdict = "DOES NOT HOLD: "
		case f.Skipped:
			verdict = ""
		}
		fmt.Fprintf(w, "%-11s %s%s\n", f.What, verdict, f.Detail)
	}
	last := "All that was checked holds"
	if !v.Holds {
		last = "Does not hold: " + strings.Join(v.broken, ", ")
	}
	if !v.AgainstLedger {
		last += "; not checked against a ledger"
	}
	fmt.Fprintf(w, "%s.\n", last)
}

// Err names what does not hold of the run in dir.
func (v *Verdict) Err(dir string) error {
	if v.Holds {
		return nil
	}
	return fmt.Errorf("%s: does not hold: %s", dir, strings.Join(v.broken, ", "))
}
