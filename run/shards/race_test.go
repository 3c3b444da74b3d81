//go:build race

package shards_test

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
