package source

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
)

// A typedPiece is some rows of a file of typed columns.
type typedPiece struct {
	file   string
	names  []string // of the columns
	read   int      // of the columns: those that the schema reads
	cells  []typedCells
	values []data.Value // of the last row
	rows   int
	next   int // of the rows
	first  int // rows of the table before the piece
}

// typedCells are the values of one column.
type typedCells struct {
	kind    []data.Kind
	numbers []float64 // of each value, if the column has numbers
	text    []byte
	end     []int  // of each value, in text
	bad     []bool // of each value: text that is none
}

func newTypedPiece(file string, names []string, read int) *typedPiece {
	n := len(names)
	return &typedPiece{file: file, names: names, read: read, cells: make([]typedCells, n), values: make([]data.Value, n)}
}

// begin is for n rows of which the columns' errors are given. The rows before the first one that cannot be read are
// rows; the error of that one is returned.
func (p *typedPiece) begin(first, n int, errs []error) (err error) {
	p.first, p.next, p.rows = first, 0, n
	for i, e := range errs {
		if k := len(p.cells[i].kind); e != nil && k < p.rows {
			p.rows, err = k, e
		}
	}
	return err
}

func (c *typedCells) clear() {
	c.kind, c.numbers, c.text, c.end, c.bad = c.kind[:0], c.numbers[:0], c.text[:0], c.end[:0], c.bad[:0]
}

func (p *typedPiece) Next(row *data.Row) (f data.Fault, err error) {
	if p.next == p.rows {
		return f, io.EOF
	}
	k := p.next
	p.next++
	for i := range p.cells {
		c, v := &p.cells[i], &p.values[i]
		if v.Is = c.kind[k]; v.Is == data.Number { // and then all of the column are, or missing
			v.Number = c.numbers[k]
		} else if v.Is == data.Text {
			begin := 0
			if k > 0 {
				begin = c.end[k-1]
			}
			v.Text = view(c.text[begin:c.end[k]])
			if c.bad[k] && f.Found == "" && i < p.read {
				f = data.Fault{Column: p.names[i], Found: "bytes that are not text", Allowed: "text in UTF-8"}
			}
		}
	}
	if f.Found != "" {
		row.HashValues(p.values)
		return f, nil
	}
	return row.Values(p.values), nil
}

func (p *typedPiece) Place(data.Fault) *config.Error {
	return &config.Error{File: p.file, Row: p.first + p.next}
}

// A fileSum hashes a file while its columns are read.
type fileSum struct {
	closed, done chan struct{}
	err          error
}

// sumFile begins to hash the file.
func sumFile(ctx context.Context, f *readfile.File, name string, to io.Writer) *fileSum {
	s := &fileSum{closed: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		from, buf := data.Stoppable(ctx, io.NewSectionReader(f, 0, f.Size())), make([]byte, bufferSize)
		for {
			select {
			case <-s.closed:
				return
			default:
			}
			n, err := from.Read(buf)
			to.Write(buf[:n])
			if err == io.EOF {
				return
			}
			if s.err = cmp.Or(f.Err(), ctx.Err()); s.err != nil {
				return
			}
			if err != nil {
				s.err = fmt.Errorf("data: reading %s: %w", name, err)
				return
			}
		}
	}()
	return s
}

// wait waits until the file is hashed.
func (s *fileSum) wait() error {
	<-s.done
	return s.err
}

// stop ends the hashing early.
func (s *fileSum) stop() {
	close(s.closed)
	<-s.done
}

// appendTime appends so many units since 1970 as ISO 8601, with Z where the time is in UTC.
func appendTime(dst []byte, n int64, unit time.Duration, utc bool) []byte {
	perSecond := int64(time.Second / unit)
	part := (n%perSecond + perSecond) % perSecond
	dst = time.Unix((n-part)/perSecond, part*int64(unit)).UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999999")
	if utc {
		dst = append(dst, 'Z')
	}
	return dst
}
