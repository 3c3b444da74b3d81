package disclosure

import (
	"strings"
	"testing"

	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// Private figures stand first and say their interval; those of too few records are left out.
func TestUtility(t *testing.T) {
	accuracy, exact := 0.85, 0.86
	all := utility(&record.Quality{
		Private: &runlog.Private{Level: 0.95, Accuracy: &runlog.Figure{Value: &accuracy, Low: 0.84, High: 0.865}, AUC: &runlog.Figure{High: 1, TooFew: true}},
		Test:    &runlog.Scores{Accuracy: &exact},
	}, nil)
	if len(all) != 2 || !all[0].Private || all[0].Value != accuracy || !strings.HasSuffix(all[0].Of, "95 % interval from 0.84 to 0.865") || all[1].Private {
		t.Errorf("%+v", all)
	}
}
