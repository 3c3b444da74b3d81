//go:build !race

package model_test

const underRace = false
