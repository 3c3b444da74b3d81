//go:build race

package method_test

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
