package data

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Gate decides whether a table may be used. Read returns only tables that its gate has admitted, as the
// oracle answers only what its meter has charged (R24).
type Gate interface {
	// RowKey is the key of the hashes of raw rows; nil for no hashes.
	RowKey() []byte
	// Admit gets the content of a table that was read. If it fails, Read returns its error and
	// no table.
	Admit(ctx context.Context, c *Content) error
}

// A Content says what a table holds, so that a gate can recognize it. It leaves memory only under a key
// (R4).
type Content struct {
	// Digest is the SHA-256 of the content: of the decompressed bytes of a file, so a file and its gzip
	// have the same; for images, of their file and the file of labels; for a packed table, of the table
	// that it was packed from. For an SQL table it does not depend on the order of the rows.
	Digest [sha256.Size]byte
	// Rows are keyed hashes of the raw rows, one for each row that could be parsed. It is nil if the gate
	// has no key, and for a packed table without hashes under this key.
	Rows []uint64
}

// A rowHasher makes a keyed hash of each raw row: of all its cells, those of ignored columns included, in
// the order of the columns' names, with numbers in their shortest form. Thus the same row has the same
// hash in a CSV, a Parquet file and a database, whatever the schema says. A nil rowHasher does nothing.
type rowHasher struct {
	mac   hash.Hash
	order []int // the cells in the order of their columns' names
	text  []byte
	head  int // bytes of text that all rows begin with
	rows  []uint64
	sum   [sha256.Size]byte
}

func newRowHasher(key []byte) *rowHasher {
	if key == nil {
		return nil
	}
	return &rowHasher{mac: hmac.New(sha256.New, key)}
}

// columns says which column each cell belongs to.
func (h *rowHasher) columns(names []string) {
	if h == nil {
		return
	}
	h.order = make([]int, len(names))
	for i := range h.order {
		h.order[i] = i
	}
	slices.SortStableFunc(h.order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	var all []byte
	for _, i := range h.order {
		all = appendCell(all, names[i])
	}
	sum := sha256.Sum256(all)
	h.begin(sum[:8])
}

// begin sets what all rows begin with.
func (h *rowHasher) begin(head []byte) {
	if h != nil {
		h.text, h.head = append(h.text[:0], head...), len(head)
	}
}

// cells adds a row.
func (h *rowHasher) cells(cells []string) {
	if h == nil || len(cells) != len(h.order) {
		return
	}
	h.text = h.text[:h.head]
	for _, i := range h.order {
		h.text = appendCell(h.text, canonical(cells[i]))
	}
	h.add()
}

// image adds a row of an image and its label.
func (h *rowHasher) image(image []byte, label byte) {
	if h != nil {
		h.begin([]byte("idx"))
		h.text = append(append(h.text, image...), label)
		h.add()
	}
}

// libsvm adds a row of label and index:value. It leaves out values of zero.
func (h *rowHasher) libsvm(line []byte) {
	if h == nil {
		return
	}
	h.begin([]byte("libsvm"))
	for token := range bytes.FieldsSeq(line) {
		index, value, ok := bytes.Cut(token, []byte(":"))
		if !ok {
			h.text = appendCell(h.text, canonical(string(token)))
		} else if v := canonical(string(value)); v != "0" {
			h.text = appendCell(appendCell(h.text, string(index)), v)
		}
	}
	h.add()
}

func (h *rowHasher) add() {
	h.mac.Reset()
	h.mac.Write(h.text)
	h.rows = append(h.rows, binary.LittleEndian.Uint64(h.mac.Sum(h.sum[:0])))
}

// done returns the hashes of all rows.
func (h *rowHasher) done() []uint64 {
	if h == nil {
		return nil
	}
	return h.rows
}

func appendCell(dst []byte, cell string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

// canonical returns a cell without spaces around it and, if it is a number, in its shortest form: 1, 1.0
// and 1e0 are the same.
func canonical(cell string) string {
	cell = strings.TrimSpace(cell)
	if cell == "" || shortest(cell) {
		return cell
	}
	if c := cell[0]; c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') {
		return cell
	}
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil:
		return cell
	case v == 0:
		return "0"
	case math.Abs(v) >= 1e-7 && math.Abs(v) < 1e16:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// shortest says whether a cell is certainly a number in the form that canonical gives it: at most 15
// digits, perhaps with a point among them, without superfluous zeros.
func shortest(cell string) bool {
	if len(cell) > 15 {
		return false
	}
	point := -1
	for i := range len(cell) {
		switch c := cell[i]; {
		case c == '.' && point < 0:
			point = i
		case c < '0' || c > '9':
			return false
		}
	}
	switch {
	case point < 0:
		return cell[0] != '0' || len(cell) == 1
	case point == 0 || point == len(cell)-1 || cell[len(cell)-1] == '0':
		return false
	case cell[0] == '0':
		return point == 1 && !strings.HasPrefix(cell[2:], "000000") // less is written with an exponent
	}
	return true
}

// rowKeyID identifies a key of row hashes: a packed table says under which key its hashes were made.
func rowKeyID(key []byte) [8]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("sotto: the key of these row hashes"))
	return [8]byte(mac.Sum(nil))
}
