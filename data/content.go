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
	"unsafe"
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
	key   []byte
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
	return &rowHasher{key: key, mac: hmac.New(sha256.New, key)}
}

// clone returns a rowHasher for another goroutine.
func (h *rowHasher) clone() *rowHasher {
	if h == nil {
		return nil
	}
	c := newRowHasher(h.key)
	c.order = h.order
	c.begin(h.text[:h.head])
	return c
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
		h.text = appendCanonical(h.text, cells[i])
	}
	h.add()
}

// values is cells for values with types.
func (h *rowHasher) values(values []Value) {
	if h == nil || len(values) != len(h.order) {
		return
	}
	h.text = h.text[:h.head]
	for _, i := range h.order {
		switch v := &values[i]; v.Is {
		case Number:
			h.text = appendNumber(h.text, v.Number)
		case Text:
			h.text = appendCanonical(h.text, v.Text)
		case Null:
			h.text = append(h.text, 0)
		}
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
		at := bytes.IndexByte(token, ':')
		if at < 0 {
			h.text = appendCanonical(h.text, view(token))
			continue
		}
		n := len(h.text)
		h.text = appendCell(h.text, view(token[:at]))
		value := len(h.text)
		if h.text = appendCanonical(h.text, view(token[at+1:])); string(h.text[value:]) == "\x010" { // "0"
			h.text = h.text[:n]
		}
	}
	h.add()
}

func (h *rowHasher) add() {
	h.mac.Reset()
	h.mac.Write(h.text)
	h.rows = append(h.rows, binary.LittleEndian.Uint64(h.mac.Sum(h.sum[:0])))
}

// view returns b as a string that shares its memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendCell(dst []byte, cell string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

// appendCanonical appends a cell without spaces around it and, if it is a number, in its shortest form:
// 1, 1.0 and 1e0 are the same.
func appendCanonical(dst []byte, cell string) []byte {
	cell = strings.TrimSpace(cell)
	if cell == "" {
		return append(dst, 0)
	}
	if c := cell[0]; c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') {
		return appendCell(dst, cell)
	}
	if dst, ok := appendShort(dst, cell); ok {
		return dst
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return appendCell(dst, cell)
	}
	return appendNumber(dst, v)
}

// appendNumber appends a cell with that number in its shortest form.
func appendNumber(dst []byte, v float64) []byte {
	form := byte('g')
	switch size := math.Abs(v); {
	case v == 0:
		return append(dst, 1, '0')
	case size >= 1e-4 && size < 1e15:
		if dst, ok := appendDecimal(dst, v, size); ok {
			return dst
		}
		form = 'f'
	case size >= 1e-7 && size < 1e16:
		form = 'f'
	}
	dst = append(dst, 0)
	n := len(dst)
	dst = strconv.AppendFloat(dst, v, form, -1, 64)
	dst[n-1] = byte(len(dst) - n) // at most 25
	return dst
}

// appendDecimal is appendNumber if v is a decimal number of at most 15 digits, which is then its only
// form of so few digits.
func appendDecimal(dst []byte, v, size float64) ([]byte, bool) {
	places := 15 // after the point, so that there are at most 15 digits
	for places > 0 && size*powers[places] >= 1e15 {
		places--
	}
	n := uint64(size*powers[places] + 0.5)
	if n >= 1e15 || float64(n)/powers[places] != size { // the quotient of exact numbers: v is n/10^places, rounded
		return dst, false
	}
	for places >= 4 && n%1e4 == 0 {
		n, places = n/1e4, places-4
	}
	for places > 0 && n%10 == 0 {
		n, places = n/10, places-1
	}
	var text [24]byte
	i := len(text)
	for k := 0; n > 0 || k <= places; k++ {
		if k == places && k > 0 {
			i--
			text[i] = '.'
		}
		i--
		text[i] = '0' + byte(n%10)
		n /= 10
	}
	if v < 0 {
		i--
		text[i] = '-'
	}
	return append(append(dst, byte(len(text)-i)), text[i:]...), true
}

// powers are those of ten that appendDecimal needs.
var powers = [16]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// appendShort is appendCanonical for a number of at most 15 digits, from its text alone: no two texts of
// so few digits have the same float64, so the shortest one is the text without superfluous zeros. It
// returns false for other text, and for numbers that have an exponent in their shortest form.
func appendShort(dst []byte, cell string) ([]byte, bool) {
	if len(cell) > 20 {
		return dst, false
	}
	i, sign := 0, 0
	if c := cell[0]; c == '-' || c == '+' {
		i = 1
		if c == '-' {
			sign = 1
		}
	}
	first, point := i, -1
	for k := i; k < len(cell); k++ {
		if c := cell[k]; c == '.' && point < 0 {
			point = k
		} else if c < '0' || c > '9' {
			return dst, false
		}
	}
	whole, fraction := cell[first:], ""
	if point >= 0 {
		whole, fraction = cell[first:point], cell[point+1:]
	}
	if len(whole)+len(fraction) == 0 {
		return dst, false
	}
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	if len(whole) == 0 {
		if len(fraction) == 0 {
			return append(dst, 1, '0'), true
		}
		if strings.HasPrefix(fraction, "00000") {
			return dst, false
		}
		whole = "0"
	}
	if len(whole)+len(fraction) > 15 {
		return dst, false
	}
	n := sign + len(whole)
	if len(fraction) > 0 {
		n += 1 + len(fraction)
	}
	dst = append(dst, byte(n))
	if sign > 0 {
		dst = append(dst, '-')
	}
	dst = append(dst, whole...)
	if len(fraction) > 0 {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst, true
}

// rowKeyID identifies a key of row hashes: a packed table says under which key its hashes were made.
func rowKeyID(key []byte) [8]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("sotto: the key of these row hashes"))
	return [8]byte(mac.Sum(nil))
}
