package config

import (
	"fmt"
	"io"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Limits, far above what a spec or a schema needs.
const (
	maxDepth  = 100     // collections within each other
	maxTokens = 500_000 // a list of 250,000 names
	maxEmpty  = 200     // lines without a word, one after the other
)

// parse parses src after a check of its nesting, since the parser's memory grows with the square of it: 8,000
// "[" took half a gigabyte, 200,000 tens of gigabytes. So the tokens are counted first, as the parser's own
// scanner finds them, one by one. The scanner copies a text once for each empty line at its end, so those are
// limited before.
func parse(src []byte) (*ast.File, error) {
	if e := checkEmpty(src); e != nil {
		return nil, e
	}
	if e := check(src); e != nil {
		return nil, e
	}
	return parser.ParseBytes(src, 0)
}

// checkEmpty refuses too many empty lines one after the other.
func checkEmpty(src []byte) *Error {
	line, empty := 1, 0
	for i, c := range src {
		switch {
		case c == '\n', c == '\r' && (i+1 == len(src) || src[i+1] != '\n'):
			line++
			if empty++; empty > maxEmpty {
				return &Error{Line: line, Column: 1, Found: fmt.Sprintf("more than %d empty lines one after the other", maxEmpty),
					Allowed: "fewer"}
			}
		case c != ' ' && c != '\t' && c != '\r':
			empty = 0
		}
	}
	return nil
}

// check refuses text that nests too deep or has too many tokens. In malformed text it may count a
// level too many, never one too few.
func check(src []byte) *Error {
	var s scanner.Scanner
	s.Init(string(src))
	var n nesting
	for count := 0; ; {
		tokens, err := s.Scan()
		for _, t := range tokens {
			if count++; count > maxTokens {
				return at(t, fmt.Sprintf("more than %d words and signs", maxTokens), "fewer")
			}
			if e := n.next(t); e != nil {
				return e
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return nil // the parser says what is wrong
		}
	}
}

func at(t *token.Token, found, allowed string) *Error {
	return &Error{Line: t.Position.Line, Column: t.Position.Column, Found: found, Allowed: allowed}
}

// nesting is what is open at a token.
type nesting struct {
	flow   int     // [ and {
	blocks []block // outside of them
	chain  int     // tags, anchors and keys since the last value: each holds the next
	prev   *token.Token
}

// A block collection: the column of its keys or dashes.
type block struct {
	column int
	dash   bool
}

func (n *nesting) next(t *token.Token) *Error {
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		n.flow++
		n.chain = max(n.chain-1, 0) // this is the value that a key or a tag holds
	case token.MappingEndType, token.SequenceEndType:
		n.flow = max(n.flow-1, 0)
		n.chain = 0
	case token.CollectEntryType:
		if n.prev != nil &&
			(n.prev.Type == token.CollectEntryType || n.prev.Type == token.SequenceStartType ||
				n.prev.Type == token.MappingStartType) {
			return at(t, "a comma without a value before it", "a value between commas")
		}
		n.chain = 0
	case token.MappingValueType, token.MappingKeyType, token.SequenceEntryType:
		if n.flow > 0 {
			n.chain++
			break
		}
		n.chain = 0
		n.open(t)
	case token.TagType, token.AnchorType, token.AliasType, token.MergeKeyType:
		n.chain++
	case token.DocumentHeaderType, token.DocumentEndType:
		*n = nesting{}
	}
	if t.Type != token.CommentType {
		n.prev = t
	}
	if depth := n.flow + len(n.blocks) + n.chain; depth > maxDepth {
		return at(t, fmt.Sprintf("lists and blocks within each other, more than %d deep", maxDepth), "at most that")
	}
	return nil
}

// open enters the block collection of a dash or a key at its column, and leaves
// those that are indented more.
func (n *nesting) open(t *token.Token) {
	b := block{t.Position.Column, t.Type == token.SequenceEntryType}
	if t.Type == token.MappingValueType && n.prev != nil && n.prev.Position.Line == t.Position.Line {
		b.column = n.prev.Position.Column
	}
	for k := len(n.blocks); k > 0; k-- {
		top := n.blocks[k-1]
		if top == b {
			return
		}
		if top.column < b.column || top.column == b.column && b.dash {
			break // the dashes of a key may have its column
		}
		n.blocks = n.blocks[:k-1]
	}
	n.blocks = append(n.blocks, b)
}
