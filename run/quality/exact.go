package quality

import (
	"math"
	"slices"
)

// AUC returns the probability that a positive row's output is above a negative one's, ties counting half
// (Mann–Whitney); NaN without rows of both classes. It sorts the outputs.
func AUC(negative, positive []float64) float64 {
	slices.Sort(negative)
	slices.Sort(positive)
	var above float64 // pairs; half pairs are exact
	below, upTo := 0, 0
	for _, p := range positive {
		for below < len(negative) && negative[below] < p {
			below++
		}
		for upTo = max(upTo, below); upTo < len(negative) && negative[upTo] == p; {
			upTo++
		}
		above += float64(below+upTo) / 2
	}
	if len(negative) == 0 || len(positive) == 0 {
		return math.NaN()
	}
	return above / (float64(len(positive)) * float64(len(negative)))
}
