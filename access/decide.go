package access

// A Relation says how a table relates to what the ledger protects, as far as the comparison reaches.
type Relation int

const (
	Disjoint Relation = iota // as far as is known
	Unknown                  // the comparison cannot tell
	Foreign                  // nor can it tell of a packed table whose row hashes are under another machine's key
	Part                     // more than 5 % of either, under another name
	Whole                    // the whole content, under another name
	Own                      // under the dataset's own name, or the training rows of the run that scores
)

// A Standing is what the ledger and the caller add to the relation.
type Standing struct {
	Named       bool // the ledger protects the dataset that the schema names
	Reserves    bool // the run reserves in the ledger that protects the rows
	Unprotected bool // the caller asserts that the rows need no protection
	Void        bool // the caller ends the guarantee
}

// A Verdict is the gate's decision.
type Verdict struct {
	Refused bool
	Notice  bool // the owner is told that the comparison could not tell
	Record  bool // the ledger records the access as not private, under the schema's dataset
	Ends    bool // the access ends the guarantee of what matched, and the ledger records it
}

// Decide is the gate's whole decision about content that the ledger protects (rules.md, R24).
func Decide(p Purpose, r Relation, s Standing) Verdict {
	switch {
	case p == Predict || p == Pack || p == Synthetic:
		return Verdict{}
	case !p.exact(): // charged
		if p == Worker && (r == Unknown || r == Foreign || r == Own && !s.Reserves) {
			return Verdict{Refused: true}
		}
		return Verdict{Refused: r == Part || r == Whole, Notice: r == Unknown || r == Foreign}
	case r >= Part:
		return Verdict{Refused: !s.Void, Ends: s.Void, Record: s.Void && p.records() && !s.Unprotected}
	case p == Test:
		return Verdict{Notice: r != Disjoint}
	case r == Foreign || s.Named && !s.Unprotected:
		return Verdict{Refused: !s.Void, Record: s.Void}
	}
	return Verdict{Notice: r == Unknown, Record: !s.Unprotected}
}
