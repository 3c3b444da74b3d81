package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Heat is a heat map as a table: the values of its columns, and rows.
type Heat struct {
	Columns []string
	Rows    []HeatRow
}

// A HeatRow is a value and its cells.
type HeatRow struct {
	Name  string
	Cells []HeatCell
}

// A HeatCell is a cell, and how strong its color is, in percent.
type HeatCell struct {
	Value string
	Share int
}

// NewHeat makes the map of cells from 0 on, at the values of rows and columns; a cell of most has the strongest color.
func NewHeat(rows, columns []float64, cells [][]float64, most float64) *Heat {
	h := &Heat{}
	for _, v := range columns {
		h.Columns = append(h.Columns, brief(v))
	}
	widest := 0.0
	for _, row := range cells {
		widest = math.Max(widest, slices.Max(row))
	}
	unit := math.Pow(10, math.Floor(math.Log10(widest))-2) // of its third digit
	for i, row := range cells {
		r := HeatRow{Name: brief(rows[i])}
		for _, v := range row {
			if widest > 0 {
				v = unit * math.Round(v/unit)
			}
			r.Cells = append(r.Cells, HeatCell{Number(v, 3), Share(v, most)})
		}
		h.Rows = append(h.Rows, r)
	}
	return h
}

// Share is v in whole percent of most.
func Share(v, most float64) int {
	if most <= 0 {
		return 0
	}
	return min(100, int(100*v/most))
}

// brief is a number of few characters.
func brief(v float64) string {
	if math.Abs(v) < 1e5 {
		return Number(v, 3)
	}
	return strings.NewReplacer("e+0", "e", "e+", "e", "-", "−").Replace(strconv.FormatFloat(v, 'g', 3, 64))
}
