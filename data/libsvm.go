package data

import (
	"strconv"

	"github.com/sottodp/sotto/config"
)

// A libsvmParser parses records of the form: label index:value index:value …
type libsvmParser struct {
	enc       *encoder
	features  int
	unlabeled bool
}

// parse encodes the record on line into p.enc.
func (p *libsvmParser) parse(line []byte) fault {
	e := p.enc
	e.begin()
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
	colon := indexColon(token)
	switch {
	case colon < 0 && p.unlabeled:
		next()
	case colon < 0:
		if f := e.setLabel(&e.label, 0, string(token)); f.found != "" {
			f.at, f.field = at+1, e.label.name
			return f
		}
		next()
	case !p.unlabeled:
		return fault{at: at + 1, field: e.label.name, found: "a row without a label", allowed: "a label before the first index"}
	}

	last := 0
	for ; len(token) > 0; next() {
		colon := indexColon(token)
		if colon < 0 {
			return fault{at: at + 1, found: "text that is not index:value", allowed: "index:value, separated by spaces"}
		}
		index, ok := parseIndex(token[:colon])
		switch {
		case !ok:
			return fault{at: at + 1, found: "an index that is not a whole number", allowed: "an index from 1 to " + strconv.Itoa(p.features)}
		case index < 1 || index > p.features:
			return fault{at: at + 1, found: "an index out of range", allowed: "an index from 1 to " + strconv.Itoa(p.features) + ", the features of the schema"}
		case index <= last:
			return fault{at: at + 1, found: "an index that is not above the one before it", allowed: "ascending indices"}
		}
		last = index
		v, bad := config.ParseNumber(string(token[colon+1:]))
		if bad != "" {
			return fault{at: at + colon + 2, found: bad, allowed: "a finite number; values out of bounds are clamped"}
		}
		if v < e.lo {
			v = e.lo
			e.clamped = append(e.clamped, -1)
		} else if v > e.hi {
			v = e.hi
			e.clamped = append(e.clamped, -1)
		}
		e.feature(index-1, v)
	}
	e.finish()
	return fault{}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func indexColon(token []byte) int {
	for i, c := range token {
		if c == ':' {
			return i
		}
	}
	return -1
}

// parseIndex is a whole number in digits. What is too large to be an index gives
// one that is out of range too.
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
