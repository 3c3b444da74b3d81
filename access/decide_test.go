package access

import "testing"

// A9: every cell of the table in rules.md, R24, written from the table and not from the function.
func TestA9EveryCellOfTheGate(t *testing.T) {
	lines := map[string][]Purpose{
		"charge":    {Train, Party},
		"worker":    {Worker},
		"test":      {Test},
		"exact":     {Score, Lab, Simulate, Verify, Check},
		"free":      {Predict, Pack},
		"synthetic": {Synthetic},
	}
	relations := []Relation{Disjoint, Unknown, Foreign, Part, Whole, Own}
	var (
		refuse = Verdict{Refused: true}
		allow  = Verdict{}
		notice = Verdict{Notice: true}
		record = Verdict{Record: true}
		ends   = Verdict{Ends: true}
		both   = Verdict{Notice: true, Record: true}
	)
	either := func(yes bool, a, b Verdict) Verdict {
		if yes {
			return a
		}
		return b
	}
	cell := func(line string, r Relation, s Standing) Verdict {
		matched := r == Part || r == Whole || r == Own
		switch line {
		case "charge":
			switch r {
			case Disjoint, Own:
				return allow
			case Unknown, Foreign:
				return notice
			}
			return refuse // with void too: it never admits training under another name
		case "worker":
			return either(r == Disjoint || r == Own && s.Reserves, allow, refuse)
		case "test":
			switch {
			case matched:
				return either(s.Void, ends, refuse)
			case r == Disjoint:
				return allow
			}
			return notice
		case "exact":
			switch {
			case matched: // an assertion never overrides a match; unasserted, the access is on record under its own name too
				return either(s.Void, Verdict{Ends: true, Record: !s.Unprotected}, refuse)
			case r == Foreign, s.Named && !s.Unprotected:
				return either(s.Void, record, refuse)
			case r == Unknown:
				return either(s.Unprotected, notice, both)
			}
			return either(s.Unprotected, allow, record)
		}
		return allow
	}
	cells := 0
	for line, purposes := range lines {
		for _, p := range purposes {
			for _, r := range relations {
				for i := range 16 {
					s := Standing{Named: i&1 != 0, Reserves: i&2 != 0, Unprotected: i&4 != 0, Void: i&8 != 0}
					got, want := Decide(p, r, s), cell(line, r, s)
					cells++
					if got != want {
						t.Errorf("%s, relation %d, %+v: %+v, want %+v", p, r, s, got, want)
					}
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}
