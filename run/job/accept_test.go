package job

import (
	"errors"
	"strings"
	"testing"

	"github.com/sottodp/sotto/oracle"
)

// TestA7LargeDelta: δ is held against the declared number of rows or units, never the file's.
func TestA7LargeDelta(t *testing.T) {
	delta := 0.25
	spec := &Spec{Privacy: PrivacySpec{Delta: &delta}}
	for _, c := range []struct {
		facts   oracle.Public
		refused bool
	}{
		{oracle.Public{Rows: 3}, false}, {oracle.Public{Rows: 4}, true}, {oracle.Public{Rows: 5}, true}, {oracle.Public{Rows: 5, UnitRows: 2}, true},
	} {
		spec.AcceptDelta = false
		warning, err := spec.CheckDelta(c.facts, "")
		if errors.Is(err, ErrLargeDelta) != c.refused || warning != "" || err != nil && !strings.Contains(err.Error(), "1/"+c.facts.Counted()) {
			t.Errorf("%+v: %q, %v", c, warning, err)
		}
		spec.AcceptDelta = true
		if warning, err := spec.CheckDelta(c.facts, ""); err != nil || (warning != "") != c.refused {
			t.Errorf("%+v: %q, %v", c, warning, err)
		}
	}
	spec = &Spec{Privacy: PrivacySpec{Off: true}}
	if warning, err := spec.CheckDelta(oracle.Public{Rows: 1}, ""); warning != "" || err != nil {
		t.Errorf("without noise: %q, %v", warning, err)
	}
}
