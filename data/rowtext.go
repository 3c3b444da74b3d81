package data

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// A textHasher makes hashes of raw rows as builds before 24 November 2026 did: an HMAC of the text of a row's
// cells, with numbers in their shortest form. Its keys are those of earlier builds, and so are the hashes that it is
// compared with.
type textHasher struct {
	mac    hash.Hash
	text   []byte
	head   int   // bytes of text that all rows begin with
	places []int // of each cell: the most decimal places that a number of 15 digits had so far
	sum    [sha256.Size]byte
}

func newTextHasher(secret []byte) *textHasher {
	return &textHasher{mac: hmac.New(sha256.New, secret)}
}

// columns begins a table with cells of those columns; head is the hash of their names.
func (t *textHasher) columns(head []byte, cells int) {
	t.begin(head)
	t.places = make([]int, cells)
}

// begin sets what all rows begin with.
func (t *textHasher) begin(head []byte) {
	t.text, t.head = append(t.text[:0], head...), len(head)
}

// cells is the hash of a row. It puts the numbers that it finds on the way into numbers, NaN for another cell.
func (t *textHasher) cells(order []int, cells []string, numbers []float64) uint64 {
	text := t.text[:t.head]
	for _, i := range order {
		cell := cells[i]
		v, digits, ok := config.Decimal(cell)
		if !ok {
			v = math.NaN()
		}
		numbers[i] = v
		if ok && shortest(cell, v, digits) {
			text = append(append(text, byte(len(cell))), cell...)
		} else {
			text = appendCanonical(text, cell)
		}
	}
	return t.hash(text)
}

// values is cells for values with types.
func (t *textHasher) values(order []int, values []Value) uint64 {
	text := t.text[:t.head]
	for _, i := range order {
		switch v := &values[i]; v.Is {
		case Number:
			text = appendNumber(text, v.Number, &t.places[i])
		case Text:
			text = appendCanonical(text, v.Text)
		case Null:
			text = append(text, 0)
		}
	}
	return t.hash(text)
}

// image is the hash of an image and its label.
func (t *textHasher) image(image []byte, label byte) uint64 {
	t.begin([]byte("idx"))
	return t.hash(append(append(t.text, image...), label))
}

// libsvm is the hash of a row of label and index:value. It leaves out values of zero.
func (t *textHasher) libsvm(line []byte) uint64 {
	t.begin([]byte("libsvm"))
	text := t.text
	for token := range bytes.FieldsSeq(line) {
		at := bytes.IndexByte(token, ':')
		if at < 0 {
			text = appendCanonical(text, view(token))
			continue
		}
		n := len(text)
		text = appendCell(text, view(token[:at]))
		value := len(text)
		if text = appendCanonical(text, view(token[at+1:])); string(text[value:]) == "\x010" { // "0"
			text = text[:n]
		}
	}
	return t.hash(text)
}

func (t *textHasher) hash(text []byte) uint64 {
	t.text = text
	t.mac.Reset()
	t.mac.Write(text)
	return binary.LittleEndian.Uint64(t.mac.Sum(t.sum[:0]))
}

// shortest says that a text of that many digits is the shortest of its number v: it has at most 15 digits, and all of
// them count.
func shortest(s string, v float64, digits int) bool {
	if digits > 15 || !(math.Abs(v) >= 1e-7) {
		return false
	}
	t := strings.TrimPrefix(s, "-")
	last := t[len(t)-1]
	return !(t[0] == '0' && t[1] != '.' || t[0] == '+' || t[0] == '.' || last == '.' ||
		last == '0' && strings.IndexByte(t, '.') >= 0)
}

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

// scaled returns n if size is n/10^places, rounded, and n has at most 15 digits: then these are the shortest form of
// size, the only one of so few digits.
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
