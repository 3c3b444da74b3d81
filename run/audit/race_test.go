//go:build race

package audit

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
