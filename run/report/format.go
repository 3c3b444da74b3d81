package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
)

// number writes v for people: four significant digits, thousands separated by
// commas, and powers of ten only beyond six decimals or fifteen digits.
func number(v float64) string { return chart.Number(v, 4) }

// exact writes a number that a person chose with all the digits it has, so that
// no reader takes a rounded one for the promise.
func exact(v float64) string {
	digits := len(strings.Trim(strings.ReplaceAll(strings.SplitN(strconv.FormatFloat(v, 'e', -1, 64), "e", 2)[0], ".", ""),
		"-"))
	return chart.Number(v, max(digits, 1))
}

// upward writes an upper bound with four significant digits, never rounded down.
func upward(v float64) string { return chart.NumberUp(v, 4) }

// integer writes a whole number with thousands separated by commas.
func integer(n int) string { return chart.Integer(n) }

// percent writes a share as a percentage with the given decimals.
func percent(v float64, decimals int) string {
	return trimZeros(strconv.FormatFloat(100*v, 'f', decimals, 64)) + " %"
}

// percentUp is percent for an upper bound on a share: never rounded down.
func percentUp(v float64) string {
	return trimZeros(strconv.FormatFloat(math.Ceil(1000*v-1e-9)/10, 'f', 1, 64)) + " %"
}

// oneIn writes a small probability as odds, never smaller than it is.
func oneIn(v float64) string {
	n := math.Floor(1 / v * (1 + 1e-12))
	if n < 1e4 {
		return "1 in " + number(n)
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-3)
	return "1 in " + number(math.Floor(n/unit*(1+1e-12))*unit)
}

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
