//go:build !race

package noise

const underRace = false
