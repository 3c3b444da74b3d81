package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
)

// ErrDroppedRows refuses a table, unless a person accepts that. The command then ends with exit code 2 before it
// reserves, writes or joins anything.
var ErrDroppedRows = errors.New("too many rows were dropped")

// dropShare is the share of dropped rows above which a mistake in the schema is more likely than bad rows.
const dropShare = 0.01

// Dropped returns the hook for data.Options that tells the owner how many rows of a table were dropped, and for which
// columns. It refuses a table that lost more than one row in a hundred, unless that is accepted, and says when a
// table has no row although some are declared. All of it depends on the rows, so it is only for the owner's terminal,
// in no exit code and no file (R11).
func Dropped(notice func(string), accepted bool) func(string, *data.LoadStats) error {
	return func(path string, stats *data.LoadStats) error {
		text := droppedText(stats)
		if stats.Rows == 0 {
			text = "the table has no rows, although the schema declares some; is it the right file?"
		}
		if float64(stats.Dropped) > dropShare*float64(stats.Rows) && !accepted {
			return inputError(path, "%w: %s; correct the rows or the schema, or accept that with --accept-dropped",
				ErrDroppedRows, text)
		}
		if notice != nil {
			notice(path + ": " + text)
		}
		return nil
	}
}

func droppedText(stats *data.LoadStats) string {
	var columns []string
	for _, name := range slices.Sorted(maps.Keys(stats.DroppedBy)) {
		where := "column " + name
		if name == "" {
			where = "the whole row"
		}
		columns = append(columns, fmt.Sprintf("%s %s", where, chart.Integer(stats.DroppedBy[name])))
	}
	text := fmt.Sprintf("%s of %s rows do not fit the schema and are left out", chart.Integer(stats.Dropped),
		chart.Integer(stats.Rows))
	if len(columns) > 0 {
		text += " (" + strings.Join(columns, ", ") + ")"
	}
	return text
}
