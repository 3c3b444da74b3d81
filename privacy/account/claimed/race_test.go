//go:build race

package claimed

// underRace says that the race detector slows the arithmetic tenfold.
const underRace = true
