//go:build race

package schedule_test

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
