//go:build race

package sample

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
