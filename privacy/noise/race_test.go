//go:build race

package noise

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
