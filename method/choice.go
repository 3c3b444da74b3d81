package method

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// maxChoice is far above the ε of any useful choice.
const maxChoice = 1e6

// fitChoice sets the ε of a choice, where it is free, to the largest at which the budget covers plan.
func fitChoice(choice *float64, terms Terms, plan func(epsilon float64) privacy.Event) (err error) {
	if err := check(Number{"choice", choice, Interval{0, maxChoice, false}, 0}); err != nil {
		return err
	}
	switch {
	case *choice > 0 && terms.Off:
		return fmt.Errorf("choice: found %v; leave it out: `privacy: none` adds no noise", *choice)
	case *choice > 0 || terms.Off:
		return nil
	}
	*choice, err = account.CalibrateMost(terms.Accountant, terms.Budget, maxChoice, plan)
	return about("choice", err)
}
