package private

import (
	"math/rand/v2"

	"github.com/sottodp/sotto/data"
)

// For tests of package private_test, which may import Summers of other packages.
type (
	Row  = row
	Memo = memo
)

var (
	AnyChoice    = anyChoice
	AnyLine      = anyLine
	AnyModel     = anyModel
	ConfigOf     = config
	CurvedModel  = curvedModel
	ImageNetwork = imageNetwork
	OpenOracle   = openOracle
	PoolReleases = poolReleases
	RandomRows   = randomRows
	TableOf      = table
)

// Labeled is the row with that label.
func (r row) Labeled(y float32) row { r.y = y; return r }

// Released are the answers that the journal was given.
func (m *memo) Released() [][][]float64 { return m.released }

// DropSome lets rows keep their place and weigh nothing.
func DropSome(rnd *rand.Rand, tab *data.Table) {
	for _, b := range tab.Blocks {
		if rnd.IntN(2) == 0 {
			continue
		}
		b.Drop = make([]bool, b.N)
		for i := range b.Drop {
			b.Drop[i] = rnd.IntN(9) == 0
		}
	}
}
