//go:build !race

package method_test

const underRace = false
