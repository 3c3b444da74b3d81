//go:build !race

package shards_test

const underRace = false
