package access_test

import (
	"context"
	"fmt"

	"github.com/sottodp/sotto/access"
)

// OutlineOf reads the header of a table and no row, so it asks nobody. Gate.Open reads rows, and asks the ledger first.
func ExampleOutlineOf() {
	o, err := access.OutlineOf(context.Background(), "../examples/clinic/patients.csv", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(o.Name, "has", len(o.Columns), "columns; the first is", o.Columns[0].Name)
	// Output:
	// patients has 9 columns; the first is age
}
