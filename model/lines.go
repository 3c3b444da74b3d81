package model

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// Lines writes predictions as lines of CSV.
type Lines struct {
	w         io.Writer
	digits    int
	names     []string // of the classes; empty: predictions are numbers
	cells     []string // the same, quoted for CSV
	threshold map[string]float64
	dropped   string // the line of a dropped row
	line      []byte
}

// NewLines writes the header: the label's name and, for classes, that of each one's probability. Numbers have that many
// digits; a threshold, if there is one, decides between two classes.
func NewLines(w io.Writer, label string, classes []string, threshold map[string]float64, digits int) (*Lines, error) {
	l := &Lines{w: w, digits: digits, names: classes, threshold: threshold, dropped: "\"\"\n"}
	header := []string{label}
	for _, class := range l.names {
		header = append(header, "P("+class+")")
		var cell strings.Builder
		c := csv.NewWriter(&cell)
		c.Write([]string{class, ""}) // a class of no letters is quoted only where it is the whole line
		c.Flush()
		l.cells = append(l.cells, strings.TrimSuffix(cell.String(), ",\n"))
	}
	if len(header) > 1 {
		l.dropped = strings.Repeat(",", len(l.names)) + "\n"
	}
	c := csv.NewWriter(w)
	c.Write(header)
	c.Flush()
	return l, c.Error()
}

// Write writes the outputs of a row; nil for a dropped one, which keeps its position.
func (l *Lines) Write(p []float64) error {
	l.line = l.line[:0]
	switch {
	case p == nil:
		l.line = append(l.line, l.dropped...)
	case len(l.names) == 0:
		l.line = append(strconv.AppendFloat(l.line, p[0], 'g', l.digits, 64), '\n')
	default:
		l.line = append(l.line, l.cells[Decide(p, l.threshold, l.names)]...)
		for _, v := range p {
			l.line = strconv.AppendFloat(append(l.line, ','), v, 'g', l.digits, 64)
		}
		for k := len(p); k < len(l.names); k++ {
			l.line = append(l.line, ',')
		}
		l.line = append(l.line, '\n')
	}
	_, err := l.w.Write(l.line)
	return err
}
