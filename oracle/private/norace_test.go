//go:build !race

package private

const underRace = false
