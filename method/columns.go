package method

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
)

// ChooseColumns is m for the first columns of a table, as many as keep the noise of a margin below the warning, and
// why. dims are the features of the first column, of the first two, and so on, of all the last; pub is of all. Like all
// that [Auto] chooses it follows from public facts. A person who asks for it says that columns stand in the order of
// their use.
func (m Auto) ChooseColumns(pub oracle.Public, obj Objective, dims []int, terms Terms) (Auto, string, error) {
	m.Gradient.Off, m.Gradient.Laplace = terms.Off, !terms.Off && terms.Budget.Delta == 0
	if m.Gradient.Off || m.Gradient.Laplace || !m.foreseen(pub) {
		return m, fmt.Sprintf("all %d: the rule is for two classes by one margin, with Gaussian noise that the budget sets and batches of all rows", len(dims)), nil
	}
	unit, err := m.one(pub, terms)
	if err != nil {
		return m, "", err
	}
	noise := func(columns int) float64 {
		with := pub
		with.Dim = dims[columns-1]
		return m.marginNoise(with, obj, unit)
	}
	all, n := noise(len(dims)), len(dims)
	for n > 1 && !(noise(n) <= outlookLoud) {
		n--
	}
	if n == len(dims) {
		return m, fmt.Sprintf("all %d: noise in a margin is about %.2g; fewer are taken above %g", n, all, outlookLoud), nil
	}
	m.Columns, m.OfColumns, m.AllNoise = n, len(dims), digits(all, math.Round)
	return m, fmt.Sprintf("the first %d of %d: noise in a margin is about %.2g, and %.2g with all, where at most %g is wanted", n, len(dims), noise(n), all, outlookLoud), nil
}
