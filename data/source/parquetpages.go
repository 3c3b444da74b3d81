package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
)

const (
	pageHeader  = 64 << 10  // bytes of a page's header that are tried first
	pageHeaders = 4 << 20   // and at most; statistics with long texts make it long
	pageBytes   = 256 << 20 // of a page: writers make pages of about a megabyte
	// padding is how many values the runs of a page may have beyond those of the page: writers fill up the last group.
	padding = 1 << 12
)

var (
	errPage = errors.New("a page says more than it holds")
	errEnd  = errors.New("a file without the end of its format")
)

// wrongEnd is the error of a file that does not end as its form does.
func wrongEnd(path, form string) error {
	return &config.Error{File: path,
		Err: fmt.Errorf("the %s file does not end as one: it is cut short, encrypted, or bytes follow its end; copy or write the file again", form)}
}

// openFooter returns the file as the library opens it, and what the footer says of each column chunk, by row group. The
// library sees a footer that names no compression, since plainPages decompresses.
func openFooter(f *readfile.File) (*plainFooter, [][]format.ColumnMetaData, error) {
	var end [8]byte
	if f.Size() < int64(len(end)) {
		return nil, nil, errPage
	}
	if _, err := f.ReadAt(end[:], f.Size()-int64(len(end))); err != nil {
		return nil, nil, err
	}
	if string(end[4:]) != parquetMagic {
		return nil, nil, errEnd
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	at := f.Size() - int64(len(end)) - n
	if at < 0 {
		return nil, nil, errPage
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, at); err != nil {
		return nil, nil, err
	}
	var meta format.FileMetaData
	protocol := new(thrift.CompactProtocol)
	if err := thrift.Unmarshal(protocol, b, &meta); err != nil {
		return nil, nil, err
	}
	groups := make([][]format.ColumnMetaData, len(meta.RowGroups))
	for i, g := range meta.RowGroups {
		for j := range g.Columns {
			m := &g.Columns[j].MetaData
			groups[i] = append(groups[i], *m)
			m.Codec, m.TotalCompressedSize = format.Uncompressed, math.MaxInt64 // plainPages ends before
		}
	}
	b, err := thrift.Marshal(protocol, &meta)
	if err != nil {
		return nil, nil, err
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return &plainFooter{f, at, append(b, end[4:]...)}, groups, nil
}

// A plainFooter is a file with another end.
type plainFooter struct {
	file io.ReaderAt
	at   int64
	end  []byte
}

func (p *plainFooter) size() int64 { return p.at + int64(len(p.end)) }

func (p *plainFooter) ReadAt(b []byte, off int64) (n int, err error) {
	if off < p.at {
		if n, err = p.file.ReadAt(b[:min(int64(len(b)), p.at-off)], off); err != nil || n == len(b) {
			return n, err
		}
		off += int64(n)
	}
	m, err := bytes.NewReader(p.end).ReadAt(b[n:], off-p.at)
	return n + m, err
}

// plainPages is a column chunk as the library reads it: its pages one after the other, checked and decompressed. The
// library believes what a page says of its size and its number of values, and allocates it: a file of a kilobyte could
// ask for any amount of memory. Where its own decompression needs more memory than the page has in the end, as that of
// LZ4 does, it goes on with the bytes of another page (https://github.com/parquet-go/parquet-go/issues/608).
type plainPages struct {
	ctx         context.Context
	file        io.ReaderAt
	codec       format.CompressionCodec
	optional    bool
	rows        int64 // that are still to come
	at, left    int64 // where the next page begins in the file, and how many bytes the chunk has from there
	from        int64 // where out begins for the library
	out         []byte
	spare       *pageBuffers
	*pageBuffer // of out; nil where the library has read all of it
}

// A pageBuffer is what it takes to make one page. The library copies pages, so buffers serve all columns in turn: a
// column that keeps its own needs 64 kB, and three pages.
type pageBuffer struct {
	header, page, made []byte
	plain              bytes.Buffer
	zstd               *zstd.Decoder
}

// pageBuffers are those that no column uses.
type pageBuffers struct {
	mu   sync.Mutex
	free []*pageBuffer
}

func (s *pageBuffers) take() *pageBuffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return new(pageBuffer)
	}
	b := s.free[n-1]
	s.free = s.free[:n-1]
	return b
}

func (s *pageBuffers) give(b *pageBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, b)
}

func (s *pageBuffers) close() {
	for _, b := range s.free {
		if b.zstd != nil {
			b.zstd.Close()
		}
	}
}

// newPlainPages reads the pages up to as many values as the group has rows, of a column that is not nested.
func newPlainPages(ctx context.Context, file io.ReaderAt, chunk *format.ColumnMetaData, optional bool,
	rows int64, spare *pageBuffers) *plainPages {
	at := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		at = chunk.DictionaryPageOffset
	}
	return &plainPages{ctx: ctx, file: file, codec: chunk.Codec, optional: optional, rows: rows, at: at,
		left: chunk.TotalCompressedSize, from: at, spare: spare}
}

// ReadAt reads forwards; a page that has been read is gone. It stops at the end of a page, without an error as a Read
// may: the library reads through a buffered section, which asks again.
func (p *plainPages) ReadAt(b []byte, off int64) (n int, err error) {
	if off < p.from {
		return 0, errPage
	}
	for off-p.from >= int64(len(p.out)) {
		if p.rows == 0 {
			return 0, io.EOF
		}
		p.from += int64(len(p.out))
		if err := p.next(); err != nil {
			p.close()
			return 0, err
		}
	}
	n = copy(b, p.out[off-p.from:])
	if off+int64(n)-p.from == int64(len(p.out)) {
		p.from += int64(len(p.out))
		p.close()
	}
	return n, nil
}

// next makes the next page.
func (p *plainPages) next() error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.pageBuffer == nil {
		p.pageBuffer = p.spare.take()
	}
	h, n, err := p.readHeader(p.at, p.left)
	if err != nil {
		return err
	}
	p.at, p.left = p.at+n, p.left-n
	size := int64(h.CompressedPageSize)
	if size < 0 || size > min(p.left, pageBytes) || h.UncompressedPageSize < 0 || h.UncompressedPageSize > pageBytes {
		return errPage
	}
	p.page = grown(p.page, int(size))
	if _, err := p.file.ReadAt(p.page, p.at); err != nil {
		return fmt.Errorf("reading a page: %w", err)
	}
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(p.page) {
		return errPage
	}
	p.at, p.left = p.at+size, p.left-size
	levels, plain, values, err := p.checkPage(h)
	if err != nil {
		return err
	}
	p.rows -= values
	h.CompressedPageSize, h.CRC = int32(len(levels)+len(plain)), 0
	h.UncompressedPageSize = h.CompressedPageSize
	head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	p.made = append(append(append(p.made[:0], head...), levels...), plain...)
	p.out = p.made
	return err
}

// readHeader returns the header of the page at a place of the file, and its length.
func (p *plainPages) readHeader(at, left int64) (*format.PageHeader, int64, error) {
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

// checkPage checks the page in p.page, and returns its decompressed bytes (levels that are before them in the second
// version of pages) and its number of rows.
func (p *plainPages) checkPage(h *format.PageHeader) (levels, b []byte, rows int64, err error) {
	size := int(h.UncompressedPageSize)
	switch h.Type {
	case format.DictionaryPage:
		b, err := p.decompress(p.page, size)
		if n := h.DictionaryPageHeader.V.NumValues; err == nil && (n < 0 || int(n) > len(b)) { // a value has at least a byte
			err = errPage
		}
		return nil, b, 0, err
	case format.DataPage:
		d := &h.DataPageHeader.V
		n := int64(d.NumValues)
		if n < 0 || n > p.rows {
			return nil, nil, 0, errPage
		}
		b, err := p.decompress(p.page, size)
		if err != nil {
			return nil, nil, 0, err
		}
		values := b
		if p.optional {
			levels, rest, ok := lengthThen(b)
			if !ok || d.DefinitionLevelEncoding == format.RLE && !runsFit(levels, 1, n) {
				return nil, nil, 0, errPage
			}
			values = rest
		}
		err = checkValues(values, d.Encoding, n)
		if err == nil && d.Encoding == format.RLE {
			d.Encoding = format.Plain
			b = append(b[:len(b)-len(values)], plainBits(values[4:], n)...)
		}
		return nil, b, n, err
	case format.DataPageV2:
		d := &h.DataPageHeaderV2.V
		n, definitions, repetitions := int64(d.NumValues), int(d.DefinitionLevelsByteLength),
			int(d.RepetitionLevelsByteLength)
		if n < 0 || n > p.rows || d.NumNulls < 0 || int64(d.NumNulls) > n || definitions < 0 || repetitions < 0 ||
			definitions+repetitions > min(len(p.page), size) {
			return nil, nil, 0, errPage
		}
		levels, b := p.page[:repetitions+definitions], p.page[repetitions+definitions:]
		if p.optional && !runsFit(levels[repetitions:], 1, n) {
			return nil, nil, 0, errPage
		}
		if !d.IsCompressed.Valid || d.IsCompressed.V {
			if b, err = p.decompress(b, size-len(levels)); err != nil {
				return nil, nil, 0, err
			}
		}
		err = checkValues(b, d.Encoding, n)
		if err == nil && d.Encoding == format.RLE {
			d.Encoding = format.Plain
			b = plainBits(b[4:], n-int64(d.NumNulls))
		}
		return levels, b, n, err
	}
	return nil, p.page, 0, nil // the library skips it, or returns an error
}

// plainBits are the truth values in runs, up to n, as bits: the library (0.32.0) takes one value for eight where it is
// repeated.
func plainBits(runs []byte, n int64) []byte {
	bits := make([]byte, 0, (n+7)/8)
	at := int64(0)
	add := func(bit byte) {
		if at%8 == 0 {
			bits = append(bits, 0)
		}
		bits[at/8] |= (bit & 1) << (at % 8)
		at++
	}
	for len(runs) > 0 && at < n {
		head, k := binary.Uvarint(runs) // runsFit has read it
		runs = runs[k:]
		if head&1 == 1 { // groups of eight
			packed := runs[:min(head>>1, uint64(len(runs)))]
			runs = runs[len(packed):]
			for i := 0; i < 8*len(packed) && at < n; i++ {
				add(packed[i/8] >> (i % 8))
			}
		} else if len(runs) > 0 {
			for range min(head>>1, uint64(n-at)) {
				add(runs[0])
			}
			runs = runs[1:]
		}
	}
	return bits
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
		if count > 0 { // the library reads no value behind a run of none
			b = b[min(size, uint64(len(b))):]
		}
	}
	return true
}

// parquetCodecs are those that decompress knows.
var parquetCodecs = []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Brotli,
	format.Zstd, format.Lz4Raw}

// oddCodec is the error of a column whose pages are compressed by another codec, nil if there is none.
func (p *parquetFile) oddCodec(leaf int, column string) error {
	for _, chunks := range p.chunks {
		if leaf < len(chunks) && !slices.Contains(parquetCodecs, chunks[leaf].Codec) {
			name := fmt.Sprintf("an unknown codec, %d", chunks[leaf].Codec)
			switch chunks[leaf].Codec {
			case format.Lz4:
				name = "LZ4 in the framing of Hadoop"
			case format.LZO:
				name = "LZO"
			}
			return &config.Error{File: p.name, Field: "column " + column, Found: "pages compressed by " + name,
				Allowed: "zstd, snappy, gzip, Brotli, LZ4_RAW and none",
				Hint:    "write the file again with zstd or snappy, in Python: pyarrow.parquet.write_table(pyarrow.parquet.read_table(FILE), NEW, compression='zstd')"}
		}
	}
	return nil
}

// decompress returns the size bytes that were compressed, valid until the next call. It takes memory for what there is,
// not for what the size says.
func (p *plainPages) decompress(b []byte, size int) (_ []byte, err error) {
	var r io.Reader
	switch p.codec {
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
			if p.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderMaxWindow(128<<20)); err != nil {
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
		return nil, errPage // parquetCodecs has no other
	}
	p.plain.Reset()
	if n, err := io.Copy(&p.plain, io.LimitReader(data.Stoppable(p.ctx, r), int64(size)+1)); err != nil ||
		n != int64(size) {
		return nil, errPage
	}
	return p.plain.Bytes(), nil
}

// close gives the buffer back.
func (p *plainPages) close() {
	if p.out = nil; p.pageBuffer != nil {
		p.spare.give(p.pageBuffer)
		p.pageBuffer = nil
	}
}

// grown is b with a length of n bytes, of any content.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
