//go:build race

package mech

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
