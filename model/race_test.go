//go:build race

package model_test

// underRace says that the race detector slows networks a hundredfold.
const underRace = true
