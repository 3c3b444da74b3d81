package data

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/twins"
)

// A Gate decides whether a table may be used. Read returns only tables that its gate has admitted, as the
// oracle answers only what its meter has charged (R24).
type Gate interface {
	// RowKey is the key of the hashes of raw rows; nil for no hashes.
	RowKey() *RowKey
	// Admit gets the content of a table that was read. If it fails, Read returns its error and
	// no table.
	Admit(ctx context.Context, c *Content) error
}

// A Content says what a table holds, so that a gate can recognize it. It leaves memory only under a key
// (R4).
type Content struct {
	// Digest is the SHA-256 of the content: of the decompressed bytes of a file, so a file and its gzip
	// have the same; for images, of their file and the file of labels; for a packed table, of the table
	// that it was packed from. For an SQL table it does not depend on the order of the rows, and for several files
	// not on the order of the files.
	Digest [sha256.Size]byte
	// Parts are the digests of the files, for a table of several.
	Parts [][sha256.Size]byte
	// Also are other digests of the whole content, as that of rows in parts without their order.
	Also [][sha256.Size]byte
	// Rows are keyed hashes of the raw rows, one for each row that could be parsed. It is nil if the gate
	// has no key, and for a packed table without hashes under this key.
	Rows Hashes
	// Positions are hashes under the same key that leave out the columns' names: of the cells in the order of the file,
	// the label last. So they find rows that come without names, as an array does. They are the least ones; nil where Rows
	// is, for a packed table, and for a format without columns.
	Positions *twins.Sketch
}

// positionRows is the number of distinct rows of Content.Positions.
const positionRows = 8192

// A RowKey is a secret key of hashes of raw rows, which lives in the owner's state.
type RowKey struct {
	Secret []byte
	Form   RowForm
}

// A RowForm says how rows are hashed under a key: as the build that made it does. Sketches and packed tables hold
// hashes that cannot be made again (ADR 44).
type RowForm int

// The forms of rows.
const (
	RowMeaning RowForm = iota // by what cells mean (ADR 100)
	RowWords                  // of builds up to 1 December 2026: by numbers, and other cells by their text
	RowText                   // of builds before 24 November 2026: by the text of a row
)

// A RowSum identifies a table's rows by their content alone, without their order: it is the sum of a hash of each raw
// row, modulo 2²⁵⁶, and their number. Those of parts of a table add up to that of the table, however it is divided. It
// leaves memory only under a key (R4).
type RowSum [5]uint64

// Hashes are those of rows, in pieces: where they grow, none but the first is copied.
type Hashes [][]uint64

// hashesPiece is the number of hashes of a piece that Add has filled.
const hashesPiece = 1 << 16

// Add appends hashes.
func (h *Hashes) Add(more ...uint64) {
	for len(more) > 0 {
		if k := len(*h); k == 0 {
			*h = append(*h, nil)
		} else if len((*h)[k-1]) >= hashesPiece {
			*h = append(*h, make([]uint64, 0, hashesPiece))
		}
		last := &(*h)[len(*h)-1]
		n := min(len(more), hashesPiece-len(*last))
		*last, more = append(*last, more[:n]...), more[n:]
	}
}

// Len is their number.
func (h Hashes) Len() (n int) {
	for _, piece := range h {
		n += len(piece)
	}
	return n
}

// SumRows returns the sum of hashes of raw rows. They have to be under one key.
func SumRows(rows Hashes) (s RowSum) {
	for _, piece := range rows {
		s.add(piece)
	}
	return s
}

func (s *RowSum) add(rows []uint64) {
	var row [8]byte
	for _, h := range rows {
		binary.LittleEndian.PutUint64(row[:], h)
		wide := sha256.Sum256(row[:])
		var one RowSum
		for i := range 4 {
			one[i] = binary.LittleEndian.Uint64(wide[8*i:])
		}
		one[4] = 1
		s.Add(one)
	}
}

// Add adds another sum.
func (s *RowSum) Add(other RowSum) {
	var carry uint64
	for i := range 4 {
		s[i], carry = bits.Add64(s[i], other[i], carry)
	}
	s[4] += other[4]
}

// Digest is the digest of a table with these rows.
func (s RowSum) Digest() [sha256.Size]byte {
	text := []byte("sotto: rows in any order/1")
	for _, v := range s {
		text = binary.LittleEndian.AppendUint64(text, v)
	}
	return sha256.Sum256(text)
}

// A rowHasher makes a keyed hash of each raw row: of all its cells, those of ignored columns included, in
// the order of the columns' names, numbers by their value. Thus the same row has the same
// hash in a CSV, a Parquet file and a database, whatever the schema says. A nil rowHasher does nothing.
//
// A row is a sequence of words: what its table is, their number, and its cells. A number is its float64, so is a truth
// value; other text is a NaN with its length, and its bytes (appendMeaning). The words enter in pairs,
//
//	Σ (w_2i + k_2i mod 2⁶⁴)·(w_2i+1 + k_2i+1 mod 2⁶⁴) mod 2¹²⁸,
//
// and the hash is half of that sum under AES. Two different rows have the same sum with a probability of at most 2⁻⁶³
// over the secret words k (NH, of UMAC; the proof is in ADR 44).
type rowHasher struct {
	key     *RowKey
	order   []int     // the cells in the order of their columns' names
	numbers []float64 // of the cells of a row; NaN where there is none
	rows    []uint64
	text    *textHasher // for keys of earlier builds, in place of what follows

	// the same cells in the order of the file, the label last, as indices into order; nil: positions are not hashed
	position  []int
	positions []uint64 // hashes by position, one for each row
	cellEnd   []int    // in words, of the cells in the order of their names
	moved     []uint64 // words by position

	head   uint64
	words  []uint64      // of a row
	secret []uint64      // k
	more   cipher.Stream // gives more of k
	block  cipher.Block
	sum    [aes.BlockSize]byte
}

func newRowHasher(key *RowKey) *rowHasher {
	if key == nil {
		return nil
	}
	h := &rowHasher{key: key}
	if key.Form == RowText {
		h.text = newTextHasher(key.Secret)
		return h
	}
	h.block = newAES(key.Secret, "sotto: hashes of rows, the last step")
	h.more = cipher.NewCTR(newAES(key.Secret, "sotto: hashes of rows, the words"), make([]byte, aes.BlockSize))
	return h
}

// newAES returns AES-256 under a key for one use.
func newAES(secret []byte, use string) cipher.Block {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(use))
	b, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return b
}

// clone returns a rowHasher for another goroutine.
func (h *rowHasher) clone() *rowHasher {
	if h == nil {
		return nil
	}
	c := newRowHasher(h.key)
	c.order, c.numbers, c.head, c.position = h.order, make([]float64, len(h.order)), h.head, h.position
	if h.text != nil {
		c.text.columns(h.text.text[:h.text.head], len(h.order))
	}
	return c
}

// columns says which column each cell belongs to, and which is the label's.
func (h *rowHasher) columns(names []string, label string) {
	if h == nil {
		return
	}
	h.order, h.numbers = make([]int, len(names)), make([]float64, len(names))
	for i := range h.order {
		h.order[i] = i
	}
	slices.SortStableFunc(h.order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	var all []byte
	for _, i := range h.order {
		all = appendCell(all, names[i])
	}
	sum := sha256.Sum256(all)
	if h.head = binary.LittleEndian.Uint64(sum[:]); h.text != nil {
		h.text.columns(sum[:8], len(names))
		return
	}
	h.position = make([]int, len(names))
	for k, i := range h.order {
		h.position[i] = k
	}
	if i := slices.Index(names, label); i >= 0 {
		k := h.position[i]
		h.position = append(slices.Delete(h.position, i, i+1), k)
	}
}

// cells adds a row. It returns the numbers that it found on the way, until the next row, NaN for another cell; or nil.
func (h *rowHasher) cells(cells []string) []float64 {
	if h == nil || len(cells) != len(h.order) {
		return nil
	}
	if h.text != nil {
		h.rows = append(h.rows, h.text.cells(h.order, cells, h.numbers))
		return h.numbers
	}
	words := h.begin(h.head)
	for _, i := range h.order {
		if v, _, ok := config.Decimal(cells[i]); ok {
			h.numbers[i] = v
			words = append(words, numberWord(v))
		} else {
			h.numbers[i] = math.NaN()
			words = h.appendCell(words, cells[i])
		}
		h.cellEnd = append(h.cellEnd, len(words))
	}
	h.addMoved(words)
	h.add(words)
	return h.numbers
}

// values is cells for values with types.
func (h *rowHasher) values(values []Value) {
	switch {
	case h == nil || len(values) != len(h.order):
		return
	case h.text != nil:
		h.rows = append(h.rows, h.text.values(h.order, values))
		return
	}
	words := h.begin(h.head)
	for _, i := range h.order {
		switch v := &values[i]; {
		case v.Is == Number && v.Number == v.Number:
			words = append(words, numberWord(v.Number))
		case v.Is == Number:
			words = h.appendCell(words, "NaN")
		case v.Is == Text:
			words = h.appendCell(words, v.Text)
		default:
			words = appendWords(words, "")
		}
		h.cellEnd = append(h.cellEnd, len(words))
	}
	h.addMoved(words)
	h.add(words)
}

// image adds a row of an image and its label.
func (h *rowHasher) image(image []byte, label byte) {
	switch {
	case h == nil:
	case h.text != nil:
		h.rows = append(h.rows, h.text.image(image, label))
	default:
		h.add(append(appendWords(h.begin(headIDX), view(image)), uint64(label)))
	}
}

// libsvm adds a row of label and index:value. It leaves out values of zero.
func (h *rowHasher) libsvm(line []byte) {
	switch {
	case h == nil:
		return
	case h.text != nil:
		h.rows = append(h.rows, h.text.libsvm(line))
		return
	}
	words := h.begin(headLIBSVM)
	for token := range bytes.FieldsSeq(line) {
		at := bytes.IndexByte(token, ':')
		if at < 0 {
			words = h.appendCell(words, view(token))
			continue
		}
		n := len(words)
		words = h.appendCell(words, view(token[:at]))
		value := len(words)
		if words = h.appendCell(words, view(token[at+1:])); words[value] == 0 {
			words = words[:n]
		}
	}
	h.add(words)
}

// What rows of formats without named columns begin with.
const (
	headIDX    = 'i' | 'd'<<8 | 'x'<<16
	headLIBSVM = 'l' | 'i'<<8 | 'b'<<16 | 's'<<24 | 'v'<<32 | 'm'<<40

	headPositions = 'p' | 'o'<<8 | 's'<<16 // of cells without names
)

// begin begins the words of a row. The second is their number.
func (h *rowHasher) begin(head uint64) []uint64 {
	h.cellEnd = append(h.cellEnd[:0], 2)
	return append(h.words[:0], head, 0)
}

// addMoved hashes the words of a row's cells by position.
func (h *rowHasher) addMoved(words []uint64) {
	moved := append(h.moved[:0], headPositions, 0)
	if cells := words[2:]; len(cells) == len(h.position) { // a word each
		for _, k := range h.position {
			moved = append(moved, cells[k])
		}
	} else {
		for _, k := range h.position {
			moved = append(moved, words[h.cellEnd[k]:h.cellEnd[k+1]]...)
		}
	}
	h.moved = moved
	h.positions = append(h.positions, h.hash(moved))
}

// add hashes the words of a row.
func (h *rowHasher) add(words []uint64) {
	h.words = words
	h.rows = append(h.rows, h.hash(words))
}

// hash completes the words of a row, and hashes them.
func (h *rowHasher) hash(words []uint64) uint64 {
	words[1] = uint64(len(words))
	if len(words) >= len(h.secret) {
		h.grow(len(words) + 1)
	}
	var hi, lo, carry uint64
	secret := h.secret[:len(words)+1]
	for i := 1; i <= len(words); i += 2 {
		second := secret[i]
		if i < len(words) { // otherwise that of a zero
			second += words[i]
		}
		a, b := bits.Mul64(words[i-1]+secret[i-1], second)
		lo, carry = bits.Add64(lo, b, 0)
		hi, _ = bits.Add64(hi, a, carry)
	}
	binary.LittleEndian.PutUint64(h.sum[:], lo)
	binary.LittleEndian.PutUint64(h.sum[8:], hi)
	h.block.Encrypt(h.sum[:], h.sum[:])
	return binary.LittleEndian.Uint64(h.sum[:])
}

// grow makes at least n secret words.
func (h *rowHasher) grow(n int) {
	var b [512]byte
	for len(h.secret) < n {
		clear(b[:])
		h.more.XORKeyStream(b[:], b[:])
		for i := 0; i < len(b); i += 8 {
			h.secret = append(h.secret, binary.LittleEndian.Uint64(b[i:]))
		}
	}
}

// numberWord is the word of a number, which is no NaN; −0 is 0.
func numberWord(v float64) uint64 {
	if v == 0 {
		return 0
	}
	return math.Float64bits(v)
}

// appendCell appends a cell without spaces around it: the word of a number, or the words of other text.
func (h *rowHasher) appendCell(words []uint64, cell string) []uint64 {
	cell = strings.TrimSpace(cell)
	if cell != "" && strings.IndexByte("+-.0123456789", cell[0]) >= 0 {
		if v, err := strconv.ParseFloat(cell, 64); err == nil && v == v {
			return append(words, numberWord(v))
		}
	}
	if h.key.Form == RowMeaning {
		return appendMeaning(words, cell)
	}
	return appendWords(words, cell)
}

// appendWords appends text: a NaN with its length, and its bytes.
func appendWords(words []uint64, text string) []uint64 {
	words = append(words, 0x7ff8<<48|uint64(len(text)))
	for ; len(text) >= 8; text = text[8:] {
		words = append(words, uint64(text[0])|uint64(text[1])<<8|uint64(text[2])<<16|uint64(text[3])<<24|
			uint64(text[4])<<32|uint64(text[5])<<40|uint64(text[6])<<48|uint64(text[7])<<56)
	}
	if text != "" {
		var last [8]byte
		copy(last[:], text)
		words = append(words, binary.LittleEndian.Uint64(last[:]))
	}
	return words
}

// view returns b as a string that shares its memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// id identifies the key: a packed table says under which one its hashes were made.
func (k *RowKey) id() [8]byte {
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write([]byte("sotto: the key of these row hashes"))
	switch k.Form {
	case RowMeaning:
		mac.Write([]byte(", of meanings"))
	case RowWords:
		mac.Write([]byte(", of words"))
	}
	return [8]byte(mac.Sum(nil))
}
