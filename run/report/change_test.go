package report_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/report"
)

// Change says a guarantee in words, as the first lines of every report do. Write makes the whole page of a run.
func ExampleChange() {
	fmt.Println(report.Change(privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}))
	// Output:
	// at most a factor of 2.719, plus 0.00001
}
