//go:build !race

package tune

const underRace = false
