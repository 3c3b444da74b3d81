//go:build race

package tune

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
