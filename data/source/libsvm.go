package source

import (
	"bytes"
	"context"
	"strconv"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

// libsvm is text with records of the form: label index:value index:value …
var libsvm = data.Format{
	Name: "a LIBSVM file",
	Kind: schema.KindLIBSVM,
	Ends: []string{".libsvm", ".svm"},
	Divide: func(_ context.Context, in *data.Input) (data.Pieces, error) {
		file, err := in.File()
		text, err := newLines(file, err, in.PieceBytes(), in.Schema.Format.Encoding)
		return &libsvmRows{text, in}, err
	},
}

type libsvmRows struct {
	*lines
	in *data.Input
}

type libsvmPiece struct {
	piece
	in *data.Input
}

func (l *libsvmRows) Piece(used data.RowReader) (data.RowReader, error) {
	p, ok := used.(*libsvmPiece)
	if !ok {
		p = &libsvmPiece{in: l.in}
	}
	return p, l.cut(&p.piece)
}

func (p *libsvmPiece) Next(row *data.Row) (data.Fault, error) {
	line, f, err := p.record(&p.in.Schema.Format)
	if err != nil || f.Found != "" {
		return f, err
	}
	if loneReturn(line) {
		return loneReturnFault, nil
	}
	row.HashPairs(line)
	return p.parse(line, row), nil
}

// parse puts the record on line into row.
func (p *libsvmPiece) parse(line []byte, row *data.Row) data.Fault {
	features, unlabeled := p.in.Schema.Features, p.in.Options.Unlabeled
	i, token, at := 0, []byte(nil), 0
	next := func() bool { // the next token, and where it begins
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		at = i
		for i < len(line) && !isSpace(line[i]) {
			i++
		}
		token = line[at:i]
		return len(token) > 0
	}

	next() // a record is not blank
	colon := bytes.IndexByte(token, ':')
	switch {
	case colon < 0 && unlabeled:
		next()
	case colon < 0:
		if f := row.Label(view(token)); f.Found != "" {
			f.Byte = at + 1
			return f
		}
		next()
	case !unlabeled:
		return data.Fault{Byte: at + 1, Column: p.in.Schema.LabelName(), Found: "a row without a label",
			Allowed: "a label before the first index"}
	}

	last := 0
	for ; len(token) > 0; next() {
		colon := bytes.IndexByte(token, ':')
		if colon < 0 {
			return data.Fault{Byte: at + 1, Found: "text that is not index:value", Allowed: "index:value, separated by spaces"}
		}
		index, ok := parseIndex(token[:colon])
		switch {
		case !ok:
			return data.Fault{Byte: at + 1, Found: "an index that is not a whole number",
				Allowed: "an index from 1 to " + strconv.Itoa(features)}
		case index < 1 || index > features:
			return data.Fault{Byte: at + 1, Found: "an index out of range",
				Allowed: "an index from 1 to " + strconv.Itoa(features) + ", the features of the schema"}
		case index <= last:
			return data.Fault{Byte: at + 1, Found: "an index that is not above the one before it", Allowed: "ascending indices"}
		}
		last = index
		v, bad := config.ParseNumber(view(token[colon+1:]))
		if bad != "" {
			return data.Fault{Byte: at + colon + 2, Found: bad, Allowed: "a finite number; values out of bounds are clamped"}
		}
		row.Value(index-1, v)
	}
	return data.Fault{}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// parseIndex parses a whole number. A number too large for an index gives another index out of range.
func parseIndex(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int(c-'0'); n > 1<<40 {
			n = 1 << 40
		}
	}
	return n, len(b) > 0
}
