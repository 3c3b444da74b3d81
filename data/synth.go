package data

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

const (
	synthPilot   = 2000 // rows that set the strength of the signal
	synthSignal  = 4.0  // standard deviation of the margin: the best model is right in about 85 of 100 rows
	synthMissing = 0.02 // share of cells with a missing mark, if the schema allows it
	synthCells   = 14   // most non-zero values of a LIBSVM row
	synthWords   = 6    // most words of a text
	synthOpen    = 64   // units whose rows alternate
)

// Synth writes a table of that many records that fits the schema, CSV or LIBSVM,
// and returns the truth that its labels follow: a weight for each encoded
// feature, Dim numbers; for more than two classes Dim numbers for each class,
// class after class. Equal arguments write equal bytes.
// There are no synthetic images (IDX): that is a [*config.Error].
//
// A record is a row or, if the schema has units, a unit, numbered from 1, with 1 to UnitRows rows, few
// more often than many. Rows of different units are mixed; rows of one unit share about half of their
// cells.
//
// Numbers and dates are drawn within their bounds, evenly or skewed, levels with uneven probabilities, text from a few
// words; about 2 in 100 cells are missing if the schema has a rule for that. With the encoded row x and the truth w, a
// label of two classes is the second class with probability 1/(1+exp(−w·x)), one of more classes has probabilities
// softmax(w_k·x), and one that is a number is w·x plus Gaussian noise of a tenth of its range, within the bounds.
func Synth(sch *schema.Schema, records int, seed uint64, w io.Writer) (truth []float64, err error) {
	s, err := startSynth(sch, records, seed)
	if err != nil {
		return nil, err
	}
	if sch.Format.Kind == schema.KindLIBSVM {
		err = s.writeLIBSVM(w)
	} else {
		err = s.writeCSV(w)
	}
	if err != nil {
		return nil, fmt.Errorf("data: writing a synthetic table: %w", err)
	}
	return s.truth, nil
}

// SynthPacked writes the table of [Synth] to the file at path, packed. It needs
// memory for a block, not for the table.
func SynthPacked(sch *schema.Schema, records int, seed uint64, path string) (truth []float64, err error) {
	s, err := startSynth(sch, records, seed)
	if err != nil {
		return nil, err
	}
	return s.truth, writePacked(sch, path, Options{}, nil, func(b *builder) (*LoadStats, *Content, error) {
		stats := &LoadStats{}
		var val []float32
		for ; s.next(); stats.Rows++ {
			if f := s.enc.setLabel(&s.enc.label, 0, s.label()); f.Found != "" {
				panic("data: synth made a bad label: " + f.Found) // cannot happen: labels fit the schema
			}
			e := s.enc
			val = appendFloat32(val[:0], e.val)
			if err := b.add(&record{col: e.col, val: val, y: e.y, norm: e.norm, unit: e.whose}); err != nil {
				return nil, nil, err
			}
		}
		return stats, nil, b.flush()
	})
}

func startSynth(sch *schema.Schema, records int, seed uint64) (*synth, error) {
	if e := sch.Check(); e != nil {
		return nil, fmt.Errorf("data: a schema that was not made by schema.Parse: %w", e)
	}
	if sch.Format.Kind == schema.KindIDX {
		return nil, &config.Error{Field: "format.kind", Found: "idx",
			Allowed: "csv or libsvm, as there are no synthetic images"}
	}
	if records < 1 {
		return nil, fmt.Errorf("data: synth of %d rows or units; choose at least 1", records)
	}
	s := newSynth(sch, seed)
	s.setTruth()
	s.left = records
	return s, nil
}

// A synth draws rows for a schema.
type synth struct {
	schema *schema.Schema
	rnd    *rand.Rand
	enc    *encoder
	place  []int
	forms  []*schema.Form // of the columns, empty where no features come from one
	levels [][]float64    // cumulative probabilities of each column's levels
	skew   []float64      // exponent of each column's law on [0, 1]
	cells  []string
	truth  []float64
	left   int         // records that are still to begin
	open   []synthUnit // units that have rows to come
	unit   synthUnit   // the one of the current row
	units  int         // how many have begun
}

// A synthUnit is a unit that has rows to come.
type synthUnit struct {
	id    int
	rows  int
	cells []string // of its first row
}

// next draws the next row, if any is left.
func (s *synth) next() bool {
	if s.schema.UnitRows == 0 {
		if s.left == 0 {
			return false
		}
		s.left--
		s.draw()
		return true
	}
	for ; s.left > 0 && len(s.open) < synthOpen; s.left-- {
		s.units++
		s.open = append(s.open,
			synthUnit{id: s.units, rows: 1 + int(float64(s.schema.UnitRows)*math.Pow(s.rnd.Float64(), 3))})
	}
	if len(s.open) == 0 {
		return false
	}
	k := s.rnd.IntN(len(s.open))
	s.unit = s.open[k]
	s.draw()
	if s.open[k].cells == nil {
		s.open[k].cells = slices.Clone(s.cells)
	}
	if s.open[k].rows--; s.open[k].rows == 0 {
		s.open = slices.Delete(s.open, k, k+1)
	}
	return true
}

func newSynth(sch *schema.Schema, seed uint64) *synth {
	s := &synth{schema: sch, rnd: rand.New(rand.NewPCG(seed, 0x507740)), enc: newEncoder(sch),
		cells: make([]string, len(sch.Columns))}
	for i, c := range sch.Columns {
		if c.Type != schema.TypeIgnore {
			at := i
			if c.Type == schema.TypeLabel {
				at = -1
			}
			s.place = append(s.place, at)
		}
		form := sch.Columns[i].Form()
		if form == nil {
			form = new(schema.Form)
		}
		s.forms = append(s.forms, form)
		var p []float64
		for range form.Levels {
			p = append(p, 0.1+s.rnd.ExpFloat64())
		}
		for j := range p[:max(len(p)-1, 0)] {
			p[j+1] += p[j]
		}
		s.levels = append(s.levels, p)
		s.skew = append(s.skew, []float64{1, 1, 2, 3}[s.rnd.IntN(4)])
	}
	return s
}

// draw draws the features of a row into s.cells (CSV) and encodes them.
func (s *synth) draw() {
	if s.schema.Format.Kind == schema.KindLIBSVM {
		s.drawSparse()
		return
	}
	for i, c := range s.schema.Columns {
		form, mark, mayMiss := s.forms[i], "", false
		if len(s.schema.Format.Missing) > 0 {
			mark, mayMiss = s.schema.Format.Missing[0], c.Missing != "" && !form.Missing.Bad
		}
		switch {
		case c.Type == schema.TypeIgnore:
			s.cells[i] = "-"
		case c.Type == schema.TypeUnit:
			s.cells[i] = strconv.Itoa(s.unit.id)
		case c.Type == schema.TypeLabel:
		case s.unit.cells != nil && s.rnd.IntN(2) == 0:
			s.cells[i] = s.unit.cells[i]
		case mayMiss && s.rnd.Float64() < synthMissing && !slices.Contains(form.Levels, mark):
			s.cells[i] = mark
		case form.Levels != nil:
			p := s.levels[i]
			u := s.rnd.Float64() * p[len(p)-1]
			j, _ := slices.BinarySearch(p, u)
			s.cells[i] = form.Levels[min(j, len(p)-1)]
		case form.Words > 0:
			s.cells[i] = s.text()
		case form.Write != nil:
			v, _ := strconv.ParseFloat(s.number(form.Line.Bounds, s.skew[i]), 64)
			s.cells[i] = form.Write(v)
		default:
			s.cells[i] = s.number(form.Line.Bounds, s.skew[i])
		}
	}
	s.enc.begin()
	if f := s.enc.cells(s.cells, nil, nil, s.place); f.Found != "" {
		panic("data: synth made a bad cell: " + f.Column + ": " + f.Found) // cannot happen: cells fit the schema
	}
	s.enc.finish()
}

// text draws some words of a small vocabulary.
func (s *synth) text() string {
	words := make([]string, 1+s.rnd.IntN(synthWords))
	for i := range words {
		words[i] = synthVocabulary[int(float64(len(synthVocabulary))*math.Pow(s.rnd.Float64(), 2))]
	}
	return strings.Join(words, " ")
}

// synthVocabulary are the words of synthetic text, frequent ones first.
var synthVocabulary = strings.Fields("pain fever cough fatigue headache nausea rash swelling dizziness cramps anxiety insomnia bleeding numbness weakness chills")

// number draws a number within b, whole if the bounds are whole and far apart.
func (s *synth) number(b schema.Bounds, skew float64) string {
	u := math.Pow(s.rnd.Float64(), skew)
	v := b.Min*(1-u) + b.Max*u
	digits := -1
	if w := b.Max - b.Min; w >= 10 && w < 1e15 && b.Min == math.Trunc(b.Min) && b.Max == math.Trunc(b.Max) {
		v, digits = math.Round(v), 0
	} else if w >= 1 && w < 1e9 {
		digits = 3
	}
	return strconv.FormatFloat(max(b.Min, min(b.Max, v)), 'f', digits, 64)
}

func (s *synth) drawSparse() {
	e, d := s.enc, s.schema.Features
	e.begin()
	var at []int
	for range min(d, synthCells) {
		at = append(at, min(d-1, int(float64(d)*math.Pow(s.rnd.Float64(), 2))))
	}
	slices.Sort(at)
	s.cells = s.cells[:0]
	for _, j := range slices.Compact(at) {
		cell := strconv.FormatFloat(e.lo+(e.hi-e.lo)*s.rnd.Float64(), 'g', 6, 64)
		v, _ := strconv.ParseFloat(cell, 64)
		s.cells = append(s.cells, strconv.Itoa(j+1)+":"+cell)
		e.feature(j, max(e.lo, min(e.hi, v)))
	}
	e.finish()
}

// setTruth draws the weights and brings the margins of some rows to the wanted strength, around 0 if an
// intercept allows it.
func (s *synth) setTruth() {
	sets, dim := 1, s.enc.dim
	if k := s.schema.Classes(); k > 2 {
		sets = k
	}
	s.truth = make([]float64, sets*dim)
	for i := range s.truth {
		s.truth[i] = s.rnd.NormFloat64()
	}
	margins := make([][]float64, sets)
	ones := make([]float64, 0, synthPilot) // the intercept's value in each row
	for range synthPilot {
		s.draw()
		for k := range sets {
			margins[k] = append(margins[k], s.margin(k))
		}
		if n := len(s.enc.col); s.schema.Intercept && n > 0 && int(s.enc.col[n-1]) == dim-1 {
			ones = append(ones, s.enc.val[n-1])
		}
	}
	signal := synthSignal
	if s.schema.Classes() == 0 {
		b := s.schema.LabelBounds()
		signal = (b.Max - b.Min) / 6
	}
	for k, m := range margins {
		mean, sd := meanSD(m)
		w := s.truth[k*dim : (k+1)*dim]
		for i := range w {
			w[i] *= signal / max(sd, 1e-12)
		}
		if len(ones) > 0 {
			one, _ := meanSD(ones)
			w[dim-1] -= mean * signal / max(sd, 1e-12) / one
			if b := s.schema.LabelBounds(); b != nil {
				w[dim-1] += (b.Min + b.Max) / 2 / one
			}
		}
	}
}

func meanSD(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(sd)
}

// margin is w_k·x for the current row.
func (s *synth) margin(k int) float64 {
	var m float64
	for i, j := range s.enc.col {
		m += s.truth[k*s.enc.dim+int(j)] * s.enc.val[i]
	}
	return m
}

// label draws the label of the current row.
func (s *synth) label() string {
	classes := s.schema.ClassNames()
	switch len(classes) {
	case 0:
		b := s.schema.LabelBounds()
		v := s.margin(0) + (b.Max-b.Min)/10*s.rnd.NormFloat64()
		return strconv.FormatFloat(max(b.Min, min(b.Max, v)), 'g', 6, 64)
	case 2:
		if s.rnd.Float64() < 1/(1+math.Exp(-s.margin(0))) {
			return classes[1]
		}
		return classes[0]
	}
	best, class := math.Inf(-1), 0
	for k := range classes { // the largest of margin + Gumbel is a draw from the softmax
		if g := s.margin(k) - math.Log(s.rnd.ExpFloat64()); g > best {
			best, class = g, k
		}
	}
	return classes[class]
}

func (s *synth) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Comma, _ = utf8.DecodeRuneInString(s.schema.Format.Delimiter)
	label := 0
	names := make([]string, len(s.schema.Columns))
	for i, c := range s.schema.Columns {
		names[i] = c.Name
		if c.Type == schema.TypeLabel {
			label = i
		}
	}
	if s.schema.Format.Header {
		if err := out.Write(names); err != nil {
			return err
		}
	}
	numbers, cells := s.schema.Format.Notation(), make([]string, len(s.cells))
	for s.next() {
		s.cells[label] = s.label()
		copy(cells, s.cells)
		for i, form := range s.forms {
			if i == label && s.schema.Classes() == 0 || form.Line != nil && form.Number() {
				cells[i] = numbers.Write(cells[i])
			}
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (s *synth) writeLIBSVM(w io.Writer) error {
	out := bufio.NewWriter(w)
	for s.next() {
		out.WriteString(s.label())
		for _, c := range s.cells {
			out.WriteByte(' ')
			out.WriteString(c)
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}
