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

	"github.com/sottodp/sotto/config"
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

	numbers []float64 // of the cells of a row; NaN where there is none
	places  []int     // of each cell: the most decimal places that a number of 15 digits had so far
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
	c.order, c.numbers, c.places = h.order, make([]float64, len(h.order)), make([]int, len(h.order))
	c.begin(h.text[:h.head])
	return c
}

// columns says which column each cell belongs to.
func (h *rowHasher) columns(names []string) {
	if h == nil {
		return
	}
	h.order, h.numbers, h.places = make([]int, len(names)), make([]float64, len(names)), make([]int, len(names))
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

// cells adds a row. It returns the numbers that it found on the way, until the next row, NaN for another cell; or nil.
func (h *rowHasher) cells(cells []string) []float64 {
	if h == nil || len(cells) != len(h.order) {
		return nil
	}
	text := h.text[:h.head]
	for _, i := range h.order {
		cell := cells[i]
		v, short, ok := config.Decimal(cell)
		if !ok {
			v = math.NaN()
		}
		h.numbers[i] = v
		if short {
			text = append(append(text, byte(len(cell))), cell...)
		} else {
			text = appendCanonical(text, cell)
		}
	}
	h.text = text
	h.add()
	return h.numbers
}

// values is cells for values with types.
func (h *rowHasher) values(values []Value) {
	if h == nil || len(values) != len(h.order) {
		return
	}
	text := h.text[:h.head]
	for _, i := range h.order {
		switch v := &values[i]; v.Is {
		case Number:
			text = appendNumber(text, v.Number, &h.places[i])
		case Text:
			text = appendCanonical(text, v.Text)
		case Null:
			text = append(text, 0)
		}
	}
	h.text = text
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
	return appendNumber(dst, v, new(int))
}

// appendNumber appends a cell with that number in its shortest form. It tries first with that many decimal places, and
// raises places to those that it needed; the form does not depend on it.
func appendNumber(dst []byte, v float64, places *int) []byte {
	form := byte('g')
	switch size := math.Abs(v); {
	case v == 0:
		return append(dst, 1, '0')
	case size >= 1e-4 && size < 1e15:
		n, ok := scaled(size, *places)
		at := *places
		if !ok {
			at = 15 // so that there are at most 15 digits
			for at > 0 && size*powers[at] >= 1e15 {
				at--
			}
			n, ok = scaled(size, at)
		}
		if ok {
			for at >= 4 && n%1e4 == 0 {
				n, at = n/1e4, at-4
			}
			for at > 0 && n%10 == 0 {
				n, at = n/10, at-1
			}
			*places = max(*places, at)
			return appendDecimal(dst, n, at, v < 0)
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

// scaled returns n if size is n/10^places, rounded, and n has at most 15 digits: then these are the shortest form of size, the
// only one of so few digits.
func scaled(size float64, places int) (n uint64, ok bool) {
	x := size*powers[places] + 0.5
	if x >= 1e15 {
		return 0, false
	}
	n = uint64(x)
	return n, float64(n)/powers[places] == size // the quotient of exact numbers
}

// appendDecimal appends a cell with the number n/10^places.
func appendDecimal(dst []byte, n uint64, places int, negative bool) []byte {
	var text [24]byte
	i := len(text)
	pair := func() {
		q := n / 100
		r := 2 * (n - 100*q)
		i -= 2
		text[i], text[i+1], n = pairs[r], pairs[r+1], q
	}
	digit := func() {
		i--
		text[i], n = '0'+byte(n%10), n/10
	}
	if places > 0 {
		for ; places > 1; places -= 2 {
			pair()
		}
		if places == 1 {
			digit()
		}
		i--
		text[i] = '.'
	}
	for n >= 10 {
		pair()
	}
	if n > 0 || i == len(text) || text[i] == '.' {
		digit()
	}
	if negative {
		i--
		text[i] = '-'
	}
	return append(append(dst, byte(len(text)-i)), text[i:]...)
}

// pairs are the numbers of two digits.
const pairs = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849" +
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// powers are those of ten that appendNumber needs.
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
