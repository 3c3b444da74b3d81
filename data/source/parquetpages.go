package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/sottodp/sotto/internal/readfile"
)

const (
	pageHeader  = 64 << 10 // bytes of a page's header that are tried first
	pageHeaders = 4 << 20  // and at most; statistics with long texts make it long
	// padding is how many values the runs of a page may have beyond those of the page: writers fill up the last group.
	padding = 1 << 12
)

var errPage = errors.New("a page says more than it holds")

// A pageChecker checks pages before the library reads them. The library believes what a page says of its size and its
// number of values, and allocates it: a file of a kilobyte could ask for any amount of memory.
type pageChecker struct {
	file         io.ReaderAt
	header, page []byte
	plain        bytes.Buffer
	zstd         *zstd.Decoder
}

// checkFooter checks the length that the footer says it has.
func checkFooter(f *readfile.File) error {
	var end [8]byte
	if f.Size() < int64(len(end)) {
		return errPage
	}
	if _, err := f.ReadAt(end[:], f.Size()-int64(len(end))); err != nil {
		return err
	}
	if int64(binary.LittleEndian.Uint32(end[:])) > f.Size()-int64(len(end)) {
		return errPage
	}
	return nil
}

// check reads the pages of a column chunk up to as many values as the group has rows, of a column that is not nested.
func (p *pageChecker) check(chunk *format.ColumnMetaData, optional bool, rows int64) error {
	at, left := chunk.DataPageOffset, chunk.TotalCompressedSize
	if chunk.DictionaryPageOffset != 0 {
		at = chunk.DictionaryPageOffset
	}
	for rows > 0 {
		h, n, err := p.readHeader(at, left)
		if err != nil {
			return err
		}
		at, left = at+n, left-n
		size := int64(h.CompressedPageSize)
		if size < 0 || size > left || h.UncompressedPageSize < 0 {
			return errPage
		}
		p.page = grown(p.page, int(size))
		if _, err := p.file.ReadAt(p.page, at); err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		at, left = at+size, left-size
		values, err := p.checkPage(h, chunk.Codec, optional, rows)
		if err != nil {
			return err
		}
		rows -= values
	}
	return nil
}

// readHeader returns the header of the page at a place of the file, and its length.
func (p *pageChecker) readHeader(at, left int64) (*format.PageHeader, int64, error) {
	for size := int64(pageHeader); ; size = pageHeaders {
		p.header = grown(p.header, int(min(size, max(left, 0))))
		n, err := p.file.ReadAt(p.header, at)
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		h := new(format.PageHeader)
		r := new(thrift.CompactProtocol).NewReaderFromBytes(p.header[:n])
		err = thrift.NewDecoder(r).Decode(h)
		if err == nil {
			return h, int64(r.BytesRead()), nil
		}
		if size == pageHeaders || int64(n) < size {
			return nil, 0, err
		}
	}
}

// checkPage checks the page in p.page, and returns its number of rows.
func (p *pageChecker) checkPage(h *format.PageHeader, codec format.CompressionCodec, optional bool, rows int64) (int64, error) {
	size := int(h.UncompressedPageSize)
	switch h.Type {
	case format.DictionaryPage:
		b, err := p.decompress(codec, p.page, size)
		if n := h.DictionaryPageHeader.V.NumValues; err == nil && (n < 0 || int(n) > len(b)) { // a value has at least a byte
			err = errPage
		}
		return 0, err
	case format.DataPage:
		d := &h.DataPageHeader.V
		n := int64(d.NumValues)
		if n < 0 || n > rows {
			return 0, errPage
		}
		b, err := p.decompress(codec, p.page, size)
		if err != nil {
			return 0, err
		}
		if optional {
			levels, rest, ok := lengthThen(b)
			if !ok || d.DefinitionLevelEncoding == format.RLE && !runsFit(levels, 1, n) {
				return 0, errPage
			}
			b = rest
		}
		return n, checkValues(b, d.Encoding, n)
	case format.DataPageV2:
		d := &h.DataPageHeaderV2.V
		n, definitions, repetitions := int64(d.NumValues), int(d.DefinitionLevelsByteLength), int(d.RepetitionLevelsByteLength)
		if n < 0 || n > rows || d.NumNulls < 0 || int64(d.NumNulls) > n || definitions < 0 || repetitions < 0 || definitions+repetitions > min(len(p.page), size) {
			return 0, errPage
		}
		levels, b := p.page[repetitions:repetitions+definitions], p.page[repetitions+definitions:]
		if optional && !runsFit(levels, 1, n) {
			return 0, errPage
		}
		if !d.IsCompressed.Valid || d.IsCompressed.V {
			var err error
			if b, err = p.decompress(codec, b, size-definitions-repetitions); err != nil {
				return 0, err
			}
		}
		return n, checkValues(b, d.Encoding, n)
	}
	return 0, nil // the library skips it, or returns an error
}

// checkValues checks what an encoding says of the number of its values.
func checkValues(b []byte, encoding format.Encoding, values int64) error {
	ok := true
	switch encoding {
	//lint:ignore SA1019 older files have it
	case format.PlainDictionary, format.RLEDictionary:
		ok = len(b) == 0 || runsFit(b[1:], uint64(b[0]), values)
	case format.RLE: // truth values
		var runs []byte
		if runs, _, ok = lengthThen(b); ok {
			ok = runsFit(runs, 1, values)
		}
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray:
		var head [3]uint64 // values of a block, its parts, all values
		for i := range head {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return errPage
			}
			head[i], b = v, b[n:]
		}
		ok = head[0] <= 1<<20 && head[1] <= head[0] && head[2] <= uint64(values)
	}
	if !ok {
		return errPage
	}
	return nil
}

// lengthThen splits bytes that begin with their length from what follows.
func lengthThen(b []byte) (first, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// runsFit reports whether runs of numbers of some bits have about as many numbers as there are values.
func runsFit(b []byte, bits uint64, values int64) bool {
	left := uint64(values) + padding
	for len(b) > 0 {
		head, n := binary.Uvarint(b)
		if n <= 0 || bits > 32 {
			return false
		}
		count, size := head>>1, (bits+7)/8
		if head&1 == 1 { // groups of eight
			if count > left {
				return false
			}
			size, count = count*bits, 8*count
		}
		if count > left {
			return false
		}
		left -= count
		b = b[n:]
		b = b[min(size, uint64(len(b))):]
	}
	return true
}

// decompress returns the size bytes that were compressed, valid until the next call. It takes memory for what there is,
// not for what the size says.
func (p *pageChecker) decompress(codec format.CompressionCodec, b []byte, size int) (_ []byte, err error) {
	var r io.Reader
	switch codec {
	case format.Uncompressed:
		return b, nil
	case format.Snappy: // at most 64 bytes of 3
		if n, err := snappy.DecodedLen(b); err != nil || n != size || n > 32*len(b)+64 {
			return nil, errPage
		}
		p.plain.Reset()
		p.plain.Grow(size)
		return snappy.Decode(p.plain.AvailableBuffer()[:size], b)
	case format.Lz4Raw: // at most 255 bytes of 1
		if size > 256*len(b)+64 {
			return nil, errPage
		}
		p.plain.Reset()
		p.plain.Grow(size)
		plain := p.plain.AvailableBuffer()[:size]
		if n, err := lz4.UncompressBlock(b, plain); err != nil || n != size {
			return nil, errPage
		}
		return plain, nil
	case format.Gzip:
		if r, err = gzip.NewReader(bytes.NewReader(b)); err != nil {
			return nil, err
		}
	case format.Zstd:
		if p.zstd == nil {
			if p.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20)); err != nil {
				return nil, err
			}
		}
		if err := p.zstd.Reset(bytes.NewReader(b)); err != nil {
			return nil, err
		}
		r = p.zstd
	case format.Brotli:
		r = brotli.NewReader(bytes.NewReader(b))
	default:
		return nil, errPage // the library reads no other
	}
	p.plain.Reset()
	if n, err := io.Copy(&p.plain, io.LimitReader(r, int64(size)+1)); err != nil || n != int64(size) {
		return nil, errPage
	}
	return p.plain.Bytes(), nil
}

func (p *pageChecker) close() {
	if p.zstd != nil {
		p.zstd.Close()
	}
}

// grown is b with a length of n bytes, of any content.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
