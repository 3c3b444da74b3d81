//go:build !race

package schedule_test

const underRace = false
