//go:build !race

package mech

const underRace = false
