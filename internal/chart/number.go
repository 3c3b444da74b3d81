package chart

import (
	"math"
	"strconv"
	"strings"
)

// Number writes v for people with that many significant digits: thousands separated
// by commas, and powers of ten only beyond six decimals or fifteen digits.
func Number(v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return "undefined"
	case math.IsInf(v, 0):
		return "∞" // no figure of a report goes to −∞
	case v == 0:
		return "0"
	case v < 0:
		return "−" + Number(-v, digits)
	}
	e := strconv.FormatFloat(v, 'e', digits-1, 64)
	mantissa, power, _ := strings.Cut(e, "e")
	exp, _ := strconv.Atoi(power)
	mantissa = trimZeros(mantissa)
	if exp < -6 || exp >= 15 {
		if mantissa == "1" {
			return "10" + superscript(exp)
		}
		return mantissa + " × 10" + superscript(exp)
	}
	rounded, _ := strconv.ParseFloat(e, 64)
	plain := strconv.FormatFloat(rounded, 'f', max(0, digits-1-exp), 64)
	whole, fraction, _ := strings.Cut(plain, ".")
	return trimZeros(thousands(whole) + "." + fraction)
}

// NumberUp is Number for an upper bound: never rounded down.
func NumberUp(v float64, digits int) string {
	if !finite(v) || v <= 0 {
		return Number(v, digits)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-float64(digits-1))
	if up := math.Ceil(v/unit*(1-1e-12)) * unit; up > v {
		v = up
	}
	return Number(v, digits)
}

// NumberDown is Number for a lower bound: never rounded up.
func NumberDown(v float64, digits int) string {
	if !finite(v) || v <= 0 {
		return Number(v, digits)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-float64(digits-1))
	if down := math.Floor(v/unit*(1+1e-12)) * unit; down < v {
		v = down
	}
	return Number(v, digits)
}

// Exact writes a number with all its digits, in Go's notation.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// AtMost writes an upper bound with that many significant digits in Go's notation, never rounded down.
func AtMost(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'g', digits, 64)
	short, err := strconv.ParseFloat(text, 64)
	if err != nil || !(short < v) {
		return text
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-float64(digits-1))
	return strconv.FormatFloat(short+unit, 'g', digits, 64)
}

// Short writes v for people: four significant digits, thousands separated by
// commas, and powers of ten only beyond six decimals or fifteen digits.
func Short(v float64) string { return Number(v, 4) }

// Within writes v with a half-width of noise to two digits, and v to the same place: a further digit would be noise
// alone.
func Within(v, half float64) string {
	if half <= 0 || !finite(half) || !finite(v) {
		return Short(v)
	}
	place := int(math.Floor(math.Log10(half))) - 1 // of the last digit that is written
	unit := math.Pow(10, float64(place))
	text, near := "0", math.Round(v/unit)*unit
	if near != 0 {
		text = Number(near, int(math.Floor(math.Log10(math.Abs(near))+1e-9))+1-place)
	}
	return text + " ± " + NumberUp(half, 2)
}

// Pages and terminals write ε, δ and probabilities in one way: [Full] for what a person chose, and for sums of it,
// [Upper] for a computed bound, [PercentUp] for a bound on a probability (TestOneWay, TestFixtures).

// Full writes a number that a person chose with all the digits it has, so that no reader takes a rounded one for the
// promise. Beyond twelve digits, as in a sum of floats, it is an upper bound.
func Full(v float64) string {
	digits := len(strings.Trim(strings.ReplaceAll(strings.SplitN(strconv.FormatFloat(v, 'e', -1, 64), "e", 2)[0], ".", ""),
		"-"))
	if digits > 12 {
		return NumberUp(v, 12)
	}
	return Number(v, max(digits, 1))
}

// Upper writes an upper bound with four significant digits, never rounded down.
func Upper(v float64) string { return NumberUp(v, 4) }

// Percent writes a share as a percentage with the given decimals.
func Percent(v float64, decimals int) string {
	return trimZeros(strconv.FormatFloat(100*v, 'f', decimals, 64)) + " %"
}

// PercentUp writes an upper bound on a probability as a percentage with three significant digits, never rounded down;
// with four where three would say that it is certain.
func PercentUp(v float64) string {
	text := NumberUp(100*v, 3)
	if text == "100" && v < 1 {
		text = NumberUp(100*v, 4)
	}
	return text + " %"
}

// OneIn writes a small probability as odds, never smaller than it is.
func OneIn(v float64) string {
	n := math.Floor(1 / v * (1 + 1e-12))
	if n < 1e4 {
		return "1 in " + Short(n)
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-3)
	return "1 in " + Short(math.Floor(n/unit*(1+1e-12))*unit)
}

// Integer writes a whole number with thousands separated by commas.
func Integer(n int) string {
	if n < 0 {
		return "−" + Integer(-n)
	}
	return thousands(strconv.Itoa(n))
}

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

var superscripts = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶",
	"7", "⁷", "8", "⁸", "9", "⁹")

func superscript(n int) string { return superscripts.Replace(strconv.Itoa(n)) }
