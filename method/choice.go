package method

import (
	"errors"
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// maxChoice is far above what any choice has use for.
const maxChoice = 1e6

// fitChoice is the ε of a choice: what is given, or else the largest at which the budget covers plan.
func fitChoice(given float64, terms Terms, plan func(epsilon float64) privacy.Event) (float64, error) {
	switch {
	case !(given >= 0 && given <= maxChoice):
		return 0, fmt.Errorf("choice: found %v; allowed is any number above 0 and up to %g", given, float64(maxChoice))
	case given > 0 && terms.Off:
		return 0, fmt.Errorf("choice: found %v; it has no place beside `privacy: none`", given)
	case given > 0 || terms.Off:
		return given, nil
	}
	epsilon, err := account.CalibrateMost(terms.Accountant, terms.Budget, maxChoice, plan)
	unproven := (*account.UnsupportedError)(nil)
	if errors.As(err, &unproven) {
		return 0, fmt.Errorf("privacy.accountant: %w", err)
	}
	if err != nil {
		return 0, fmt.Errorf("choice: %w", err)
	}
	return epsilon, nil
}
