//go:build race

package private

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
