package oracle_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// TestTotalsInRuns: a run's record says by the name that it always had that first releases are answered.
func TestTotalsInRuns(t *testing.T) {
	text, err := json.Marshal(oracle.Public{Totals: true, Adjacency: privacy.AddRemove})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"looked":true`) {
		t.Errorf("found %s; earlier runs say looked, and verification compares", text)
	}
}
