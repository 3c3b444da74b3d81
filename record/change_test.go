package record_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
)

// Change says a guarantee in words, as the first lines of every report do.
func ExampleChange() {
	fmt.Println(record.Change(privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}))
	// Output:
	// at most a factor of 2.719, plus 0.00001
}
