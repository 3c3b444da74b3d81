//go:build race

package live

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
