package audit

import (
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A drawing keeps what samples were drawn from a synthetic table.
type drawing struct {
	size    int // of the last sample
	sampler sample.Sampler
	total   int

	rows, last       []int32
	second           bool // the next sample is compared with the last one
	drawn, of        int  // records of Poisson samples, of how many
	both, ofBoth     int  // records that two samples in a row have in common, of how many
	rate, rateOfBoth float64
	varied           bool // the samplers differ
	src              noise.Source
}

// note keeps a sample.
func (w *drawing) note(d *sum.Draw) {
	d.Key.Reset(&w.src)
	rows, all := d.Sampler.Draw(w.rows[:0], d.Total, &w.src)
	if w.size = len(rows); all {
		w.size = d.Total
		return
	}
	w.varied = w.varied || w.sampler != nil && (w.sampler != d.Sampler || w.total != d.Total)
	w.sampler, w.total = d.Sampler, d.Total
	trials := d.Total
	switch s := d.Sampler.(type) {
	case sample.Poisson:
		w.drawn, w.of, w.rate, w.rateOfBoth = w.drawn+len(rows), w.of+d.Total, s.Rate, s.Rate*s.Rate
	case sample.Fixed:
		trials, w.rateOfBoth = s.M, float64(s.M)/float64(s.N)
	}
	if w.second {
		w.both += common(w.last, rows)
		w.ofBoth += trials
	}
	w.second = !w.second
	w.rows, w.last = w.last, rows
}

// common counts the numbers that are in both ascending lists.
func common(a, b []int32) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}

// tests are those of the samples.
func (w *drawing) tests() []Test {
	if w.varied || w.sampler == nil {
		return nil
	}
	t := []Test{{"sample: independent of steps", audit.Share(w.both, w.ofBoth, w.rateOfBoth)}}
	if w.of > 0 {
		t = append(t, Test{"sample: size", audit.Share(w.drawn, w.of, w.rate)})
	}
	return t
}
