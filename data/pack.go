package data

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/schema"
)

// A packed table is a file with an encoded table in its form in memory. It is mapped, not read. All numbers are
// little-endian; what follows another part begins at a multiple of packAlign bytes, with zeros between.
// docs/how-to/pack.md has the layout.
//
//	header  64 bytes: magic, version u32, flags u32, footer's offset u64 and
//	        length u64, SHA-256 of these 32 bytes and the footer
//	chunks  one for each block: X, or Start, Col and Val; Y; Norm; units; Drop
//	hashes  of raw rows under the owner's key, u64 each, if there are any
//	footer  schema and counts (JSON, each after its length, u32), the content's
//	        digest, rows u64, chunks u32, and for each chunk rows u32, non-zeros
//	        u32, flags u32, SHA-256; of the hashes their number u64, the name of
//	        their key (8 bytes), SHA-256; of the files of a table of several the
//	        digests, and their number u32
//
// Version 1 is the same without hashes. Version 3 is that of rows of 16-bit numbers: chunks begin with those and
// their shifts.
const (
	packMagic   = "\x93SOTTO\r\n"
	packVersion = 2
	packShorts  = 3 // version of files with packShort
	packHeader  = 64
	packAlign   = 64
	packEntry   = 12 + sha256.Size

	packSparse  = 1 << 0 // flags of a file: CSR rows
	packLabeled = 1 << 1 // the rows have labels
	packUnits   = 1 << 2 // the rows belong to units; every chunk has Drop
	packHashes  = 1 << 3 // there are hashes of raw rows
	packShort   = 1 << 4 // rows of 16-bit numbers
	packParts   = 1 << 5 // the content was that of several files
	packAbsent  = 1 << 6 // a cell without a value that counts as 0 is −0 where its column is a number
	packFlags   = packSparse | packLabeled | packUnits | packHashes | packShort | packParts | packAbsent
	packDrops   = 1 << 0 // flag of a chunk: there are dropped rows
)

// packed is a packed file whose header and footer are right.
type packed struct {
	schema *schema.Schema
	flags  uint32
	stats  LoadStats
	digest [sha256.Size]byte
	parts  [][sha256.Size]byte // of a table of several files
	rows   int
	chunks []packChunk
	hashes packHash
}

// A packHash is the position of the hashes of raw rows in the file.
type packHash struct {
	offset, count int
	key           [8]byte // names the key
	sum           [sha256.Size]byte
}

const packHashEntry = 8 + 8 + sha256.Size

// A packChunk is the position of a block in the file.
type packChunk struct {
	offset, size  int
	rows, nonzero int
	drops         bool
	sum           [sha256.Size]byte
}

// littleEndian says whether this machine stores numbers as a packed table does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Pack reads the table at src, in any other form that [Read] knows, and writes it packed to dst. Rows
// that on_bad_row: drop leaves out keep their position. Pack uses the options Labels, Unlabeled, ByRow, Short
// and Dropped. dst appears as a whole, durably, or not at all, and only if the gate admits the content.
// Pack needs memory for a block, not for the table: 8 bytes more for each row if the gate has a key, and
// with units of several rows about 13 bytes for each row and 100 for each unit. Only package access
// and tests call it (R24).
func Pack(ctx context.Context, gate Gate, s *schema.Schema, src, dst string,
	opt Options) (stats *LoadStats, err error) {
	if src, err = readable(s, src); err != nil {
		return nil, err
	}
	if IsPacked(src) {
		return nil, &config.Error{File: src, Found: "a packed table", Allowed: "a table of another form"}
	}
	opt.KeepBad, opt.Rows, opt.curved = true, 0, nil
	opt.ByRow = opt.ByRow || opt.Unlabeled // rows to predict, each for itself
	switch {
	case opt.Short && ShortOf(s) == nil:
		return nil, &config.Error{File: src, Found: fmt.Sprintf("a table with %d features as 16-bit numbers", s.Dim()),
			Allowed: fmt.Sprintf("dense rows of up to %d features", kern.ShortWidth), Hint: "pack it as float32"}
	case !opt.Short && !s.Sparse():
		opt.curved = s.Unmarked()
	}
	key := gate.RowKey()
	err = writePacked(s, dst, opt, key, func(b *builder) (*LoadStats, *Content, error) {
		var content *Content
		if stats, content, err = readInto(ctx, key, s, src, opt, b); err == nil {
			err = gate.Admit(ctx, content)
		}
		return stats, content, err
	})
	return stats, err
}

// PackTable writes a table in memory, which was read under the schema, packed to dst.
func PackTable(s *schema.Schema, t *Table, dst string) error {
	if t.Coding() != (Coding{}) || t.Curves != nil && !t.wide() {
		return errors.New("data: rows of bytes, of 16-bit numbers or without their curves are not packed; read them as float32")
	}
	as := *s // rows are what they are now
	as.Snapped = false
	return writePacked(&as, dst, Options{Unlabeled: !t.Labeled, ByRow: t.units == nil}, nil,
		func(b *builder) (*LoadStats, *Content, error) {
			stats := &LoadStats{}
			if t.units != nil {
				b.units.of = t.units.of
			}
			for _, k := range t.Blocks {
				if k.N == 0 {
					continue
				}
				stats.Rows += k.N
				if err := b.emit(k); err != nil {
					return nil, nil, err
				}
			}
			return stats, nil, nil
		})
}

// writePacked writes a packed table of the blocks that fill gives to its builder. If fill returns no
// content, the digest is that of the chunks.
func writePacked(s *schema.Schema, dst string, opt Options, key *RowKey,
	fill func(*builder) (*LoadStats, *Content, error)) error {
	if !littleEndian {
		return errors.New("data: this machine stores numbers in another order than a packed table does")
	}
	f, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".*")
	if err != nil {
		return config.FileError(dst, err)
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	defer f.Close()
	w := &packWriter{w: bufio.NewWriterSize(f, 1<<20)}
	w.bytes(make([]byte, packHeader))
	b := newBuilder(s, opt)
	if opt.Short {
		b.rows = &shortFiller{denseFiller{dim: s.Dim()}, ShortOf(s)}
		w.flags |= packShort
	}
	b.emit = func(k *Block) error {
		defer b.arena.reset() // what is written is free again
		if b.units == nil {
			return w.block(k, nil)
		}
		return w.block(k, b.units.of[w.rows:w.rows+k.N])
	}
	stats, content, err := fill(b)
	if err != nil {
		return err
	}
	if !b.dense {
		w.flags |= packSparse
	}
	if len(opt.curved) > 0 {
		w.flags |= packAbsent
	}
	if b.label {
		w.flags |= packLabeled
	}
	if b.units != nil {
		w.flags |= packUnits
		if err := w.erase(f, s, b.units.beyond()); err != nil {
			return fmt.Errorf("data: writing %s: %w", dst, err)
		}
	}
	if err := w.finish(f, s, stats, content, key); err != nil {
		return fmt.Errorf("data: writing %s: %w", dst, err)
	}
	if err := os.Rename(f.Name(), dst); err != nil {
		return fmt.Errorf("data: writing %s: %w", dst, err)
	}
	return newfile.SyncDir(filepath.Dir(dst))
}

// A packWriter writes chunk after chunk. The first error stays.
type packWriter struct {
	w      *bufio.Writer
	err    error
	offset int
	flags  uint32    // of the file
	sum    hash.Hash // of the current chunk; nil between chunks
	chunks []packChunk
	rows   int
}

func (p *packWriter) bytes(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
	if p.sum != nil {
		p.sum.Write(b)
	}
	p.offset += len(b)
}

// part writes b and zeros up to the next multiple of packAlign.
func (p *packWriter) part(b []byte) {
	p.bytes(b)
	p.bytes(make([]byte, padded(p.offset)-p.offset))
}

func padded(n int) int { return (n + packAlign - 1) / packAlign * packAlign }

// asBytes is the memory of v.
func asBytes[T float32 | float64 | int32 | int16 | bool](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// block writes a block; of are the units of its rows, nil where each row is one.
func (p *packWriter) block(k *Block, of []int32) error {
	c := packChunk{offset: p.offset, rows: k.N, nonzero: len(k.Val), drops: k.Drop != nil || of != nil}
	p.sum = sha256.New()
	for _, part := range k.form().parts() {
		p.part(part)
	}
	if k.Y != nil {
		p.part(asBytes(k.Y))
	}
	p.part(asBytes(k.Norm))
	if of != nil {
		p.part(asBytes(of))
	}
	if k.Drop != nil {
		p.part(asBytes(k.Drop))
	} else if c.drops {
		p.part(make([]byte, k.N))
	}
	p.sum.Sum(c.sum[:0])
	p.sum = nil
	c.size = p.offset - c.offset
	p.rows, p.chunks = p.rows+k.N, append(p.chunks, c)
	if p.err != nil {
		return fmt.Errorf("data: writing a packed table: %w", p.err)
	}
	return nil
}

// erase drops those rows, ascending, in the chunks that are written; they keep their positions.
func (p *packWriter) erase(f *os.File, s *schema.Schema, rows []int32) error {
	if err := p.w.Flush(); err != nil {
		return err
	}
	for len(rows) > 0 {
		at := rows[0] / BlockRows
		c := &p.chunks[at]
		b := make([]byte, c.size)
		if _, err := f.ReadAt(b, int64(c.offset)); err != nil {
			return err
		}
		k, _, err := c.block(b, s, p.flags)
		if err != nil {
			return err
		}
		for len(rows) > 0 && rows[0]/BlockRows == at {
			k.erase(int(rows[0] % BlockRows))
			rows = rows[1:]
		}
		if _, err := f.WriteAt(b, int64(c.offset)); err != nil {
			return err
		}
		c.sum = sha256.Sum256(b)
	}
	return nil
}

// finish writes hashes and footer, and at last the header at the beginning of the file.
func (p *packWriter) finish(f *os.File, sch *schema.Schema, stats *LoadStats, content *Content, key *RowKey) error {
	s, err := sch.Marshal()
	if err != nil {
		return err
	}
	counts, err := json.Marshal(stats)
	if err != nil {
		return err
	}
	var entries []byte
	for _, c := range p.chunks {
		flags := uint32(0)
		if c.drops {
			flags = packDrops
		}
		entries = binary.LittleEndian.AppendUint32(entries, uint32(c.rows))
		entries = binary.LittleEndian.AppendUint32(entries, uint32(c.nonzero))
		entries = binary.LittleEndian.AppendUint32(entries, flags)
		entries = append(entries, c.sum[:]...)
	}
	if content == nil {
		content = &Content{Digest: sha256.Sum256(entries)}
	}
	var hashes []byte
	if content.Rows != nil {
		p.flags |= packHashes
		p.sum = sha256.New()
		var b []byte
		for _, some := range content.Rows {
			b = b[:0]
			for _, h := range some {
				b = binary.LittleEndian.AppendUint64(b, h)
			}
			p.bytes(b)
		}
		p.bytes(make([]byte, padded(p.offset)-p.offset))
		id := key.id()
		hashes = append(binary.LittleEndian.AppendUint64(nil, uint64(content.Rows.Len())), id[:]...)
		hashes = p.sum.Sum(hashes)
		p.sum = nil
	}
	var foot []byte
	for _, b := range [][]byte{s, counts} {
		foot = binary.LittleEndian.AppendUint32(foot, uint32(len(b)))
		foot = append(foot, b...)
	}
	foot = append(foot, content.Digest[:]...)
	foot = binary.LittleEndian.AppendUint64(foot, uint64(p.rows))
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(p.chunks)))
	foot = append(append(foot, entries...), hashes...)
	if content.Parts != nil {
		p.flags |= packParts
		for _, d := range content.Parts {
			foot = append(foot, d[:]...)
		}
		foot = binary.LittleEndian.AppendUint32(foot, uint32(len(content.Parts)))
	}

	head := []byte(packMagic)
	version := uint32(packVersion)
	if p.flags&packShort != 0 {
		version = packShorts
	}
	head = binary.LittleEndian.AppendUint32(head, version)
	head = binary.LittleEndian.AppendUint32(head, p.flags)
	head = binary.LittleEndian.AppendUint64(head, uint64(p.offset))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(foot)))
	sum := sha256.New()
	sum.Write(head)
	sum.Write(foot)
	head = sum.Sum(head)

	p.bytes(foot)
	if err := errors.Join(p.err, p.w.Flush()); err != nil {
		return err
	}
	if _, err := f.WriteAt(head, 0); err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

// LoadSchema reads the schema file at path, or the schema of a packed table.
func LoadSchema(path string) (*schema.Schema, error) {
	if !IsPacked(path) {
		return schema.Load(path)
	}
	p, err := readPackedFacts(path)
	if err != nil {
		return nil, err
	}
	return p.schema, nil
}

// packedUnder says whether path is a table that was packed under that schema.
func packedUnder(s *schema.Schema, path string) bool {
	if !IsPacked(path) {
		return false
	}
	p, err := readPackedFacts(path)
	return err == nil && p.schema.Fingerprint() == s.Fingerprint()
}

// PackedLines says whether path is a packed table of that schema whose rows give what curves of its columns follow
// from: lines as float32 numbers, an intercept, and which cells have no value.
func PackedLines(s *schema.Schema, path string) bool {
	p, err := readPackedFacts(path)
	return err == nil && s.Intercept && !p.has(packShort) && (p.has(packAbsent) || len(s.Unmarked()) == 0) &&
		p.schema.Fingerprint() == s.Fingerprint()
}

// IsPacked says whether the file at path begins as a packed table does.
func IsPacked(path string) bool { return Begins(path, packMagic) }

// A packCut says how a packed file is damaged.
type packCut struct{ found, hint string }

func (e *packCut) Error() string { return "data: packed table: " + e.found }

func damaged(format string, args ...any) error {
	return &packCut{fmt.Sprintf(format, args...), "copy the file again, or pack the table again"}
}

// errFooter is the error of a footer that contradicts its header, its counts or its schema.
var errFooter = damaged("a packed table whose footer does not fit its rows")

// readFooter checks header and footer. at reads a part of the file, which has that size.
func readFooter(head []byte, size int64, at func(offset, length int64) ([]byte, error)) (*packed, error) {
	le := binary.LittleEndian
	if len(head) < packHeader || string(head[:8]) != packMagic {
		return nil, damaged("a file without the header of a packed table")
	}
	version := le.Uint32(head[8:])
	if v := version; v < 1 || v > packShorts {
		return nil, &packCut{fmt.Sprintf("a packed table of version %d", v), "pack the table again with this Sotto"}
	}
	p := &packed{flags: le.Uint32(head[12:])}
	offset, length := le.Uint64(head[16:]), le.Uint64(head[24:])
	if offset < packHeader || offset > uint64(size) || length != uint64(size)-offset || offset%packAlign != 0 {
		return nil, damaged("a packed table that is cut short or has more behind its end")
	}
	foot, err := at(int64(offset), int64(length))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write(head[:32])
	sum.Write(foot)
	if !bytes.Equal(sum.Sum(nil), head[32:packHeader]) {
		return nil, damaged("a packed table whose footer was altered")
	}
	if p.flags&^packFlags != 0 || p.has(packHashes) && version < 2 || p.has(packShort) != (version == packShorts) {
		return nil, errFooter
	}
	foot, chunks, err := p.readCounts(foot)
	if err != nil {
		return nil, err
	}
	foot, ok := p.readParts(foot)
	if ok {
		foot, ok = p.readHashes(foot)
	}
	if !ok || !p.suits() || len(foot) != chunks*packEntry || !p.readChunks(foot, int(offset)) {
		return nil, errFooter
	}
	return p, nil
}

// has reports whether the file has a flag.
func (p *packed) has(flag uint32) bool { return p.flags&flag != 0 }

// readCounts reads what the footer begins with: schema, counts, digest, and the numbers of rows and chunks. It
// returns the rest of the footer.
func (p *packed) readCounts(foot []byte) (rest []byte, chunks int, err error) {
	le := binary.LittleEndian
	var texts [2][]byte // schema and counts, each after its length
	for i := range texts {
		if len(foot) < 4 || uint64(le.Uint32(foot)) > uint64(len(foot)-4) {
			return nil, 0, errFooter
		}
		end := 4 + int(le.Uint32(foot))
		texts[i], foot = foot[4:end], foot[end:]
	}
	if len(foot) < sha256.Size+12 {
		return nil, 0, errFooter
	}
	if p.schema, err = schema.FromJSON(texts[0]); err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(texts[1], &p.stats); err != nil {
		return nil, 0, errFooter
	}
	copy(p.digest[:], foot)
	foot = foot[sha256.Size:]
	rows, chunks := le.Uint64(foot), int(le.Uint32(foot[8:]))
	p.rows = int(rows)
	if rows > uint64(chunks)*BlockRows || p.stats.Rows != p.rows || p.stats.Dropped < 0 || p.stats.Dropped > p.rows {
		return nil, 0, errFooter
	}
	return foot[12:], chunks, nil
}

// readParts takes the digests of a table of several files from the end of the footer.
func (p *packed) readParts(foot []byte) (rest []byte, ok bool) {
	if !p.has(packParts) {
		return foot, true
	}
	if len(foot) < 4 {
		return nil, false
	}
	end := len(foot) - 4
	n := uint64(binary.LittleEndian.Uint32(foot[end:]))
	if n < 2 || n > uint64(end)/sha256.Size {
		return nil, false
	}
	at := end - int(n)*sha256.Size
	for b := foot[at:end]; len(b) > 0; b = b[sha256.Size:] {
		p.parts = append(p.parts, [sha256.Size]byte(b))
	}
	return foot[:at], true
}

// readHashes takes what is known of the hashes of raw rows from the end of the footer.
func (p *packed) readHashes(foot []byte) (rest []byte, ok bool) {
	if !p.has(packHashes) {
		return foot, true
	}
	at := len(foot) - packHashEntry
	if at < 0 {
		return nil, false
	}
	count := binary.LittleEndian.Uint64(foot[at:])
	p.hashes = packHash{count: int(count), key: [8]byte(foot[at+8:]), sum: [sha256.Size]byte(foot[at+16:])}
	return foot[:at], count <= uint64(p.rows)
}

// suits reports whether rows of the schema can have the form that the flags state.
func (p *packed) suits() bool {
	switch {
	case p.has(packSparse) != p.schema.Sparse():
		return false
	case p.has(packUnits) && (p.schema.UnitRows == 0 || p.rows > math.MaxInt32):
		return false
	case p.has(packShort) && ShortOf(p.schema) == nil:
		return false
	}
	return true
}

// readChunks lays the chunks that the entries state one behind the other, and the hashes behind them; all must fill the
// file up to end.
func (p *packed) readChunks(entries []byte, end int) bool {
	le := binary.LittleEndian
	next, left := packHeader, p.rows
	for b := entries; len(b) > 0; b = b[packEntry:] {
		flags := le.Uint32(b[8:])
		c := packChunk{offset: next, rows: int(le.Uint32(b)), nonzero: int(le.Uint32(b[4:]))}
		c.drops = flags&packDrops != 0
		copy(c.sum[:], b[12:])
		switch {
		case c.rows != min(left, BlockRows) || c.rows == 0 || flags&^packDrops != 0 || c.nonzero > math.MaxInt32:
			return false
		case !p.has(packSparse) && c.nonzero != 0 || p.has(packUnits) && !c.drops:
			return false
		}
		left -= c.rows
		c.size = p.chunkSize(&c)
		if next += c.size; next > end {
			return false
		}
		p.chunks = append(p.chunks, c)
	}
	p.hashes.offset = next
	return left == 0 && next+padded(8*p.hashes.count) == end
}

// chunkSize is how many bytes the parts of a chunk take, each with its zeros, in the order in which block reads them.
func (p *packed) chunkSize(c *packChunk) (size int) {
	numbers := padded(4 * c.rows)
	for _, n := range packForms[p.flags&packAsForm].sizes(c.rows, c.nonzero, p.schema.Dim()) {
		size += padded(n)
	}
	if p.has(packLabeled) {
		size += numbers
	}
	size += numbers // norms
	if p.has(packUnits) {
		size += numbers
	}
	if c.drops {
		size += padded(c.rows)
	}
	return size
}

// packError says what is wrong with a packed file.
func packError(path string, err error) error {
	var cut *packCut
	if errors.As(err, &cut) {
		return &config.Error{File: path, Found: cut.found, Allowed: "a whole packed table, as sotto data pack wrote it",
			Hint: cut.hint}
	}
	var bad *config.Error
	if errors.As(err, &bad) { // of the schema in it
		return &config.Error{File: path, Found: "a packed table with a schema that this Sotto does not read",
			Allowed: "a packed table of this version", Hint: "pack the table again", Err: err}
	}
	return err
}

// readPackedFacts reads header and footer of the packed table at path, and no row.
func readPackedFacts(path string) (*packed, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, packHeader)
	if n, err := io.ReadFull(f, head); err != nil {
		head = head[:n]
	}
	p, err := readFooter(head, f.Size(), func(offset, length int64) ([]byte, error) {
		b := make([]byte, length)
		_, err := f.ReadAt(b, offset)
		return b, err
	})
	if err != nil {
		return nil, packError(path, err)
	}
	return p, nil
}

// openPacked maps the packed table at path. Before it returns the table it checks each chunk: the
// checksum, and what the guarantee rests on, that all rows are within their norm bound and multiples of
// the unit.
func openPacked(ctx context.Context, gate Gate, s *schema.Schema, path string,
	opt Options) (*Table, *LoadStats, error) {
	if !littleEndian {
		return nil, nil, errors.New("data: this machine stores numbers in another order than a packed table does")
	}
	file, unmap, err := mapFile(path)
	if err != nil {
		return nil, nil, err
	}
	file.begin(1) // all of it stays in memory, if it fits: later passes find out
	t, stats, err := tableOf(ctx, gate, s, path, opt, file)
	if err != nil {
		return nil, nil, errors.Join(err, unmap())
	}
	if len(t.Blocks) > 0 && t.Blocks[0].Coding() != t.Coding() { // in memory, as float32
		t.float32s()
		return t, stats, unmap()
	}
	t.unmap, t.pages = unmap, file
	return t, stats, nil
}

// answers refuses a file that was packed for another schema, or with less, than is asked for now.
func (p *packed) answers(s *schema.Schema, path string, opt Options) error {
	labeled := p.has(packLabeled)
	curved := func(name string) bool { return slices.Contains(opt.curved, name) }
	grouped, group := p.has(packUnits), s.UnitRows > 0 && !opt.ByRow
	switch {
	case p.schema.Fingerprint() != s.Fingerprint():
		return &config.Error{File: path, Field: "schema", Found: "a table that was packed under another one",
			Allowed: "the schema that it was packed under; name, rows and format may differ",
			Hint:    "sotto data info shows it; pack the table again for another schema or label"}
	case !labeled && !opt.Unlabeled:
		return &config.Error{File: path, Found: "a table that was packed without its labels", Allowed: "a table with labels"}
	case group && !grouped:
		return &config.Error{File: path, Field: "unit", Found: "a table that was packed row by row",
			Allowed: "one that says whose its rows are", Hint: "pack the table again, under a schema with the unit"}
	case grouped && !opt.ByRow && (p.schema.UnitRows != s.UnitRows || p.schema.UnitColumn() != s.UnitColumn()):
		return &config.Error{File: path, Field: "unit", Found: "a table that was packed for another unit",
			Allowed: "the unit's column and number of rows in the schema that it was packed under",
			Hint:    "sotto data info shows it; pack the table again for another unit"}
	case !p.has(packAbsent) && slices.ContainsFunc(s.Unmarked(), curved):
		return &config.Error{File: path, Found: "a table that was packed without saying which cells have no value",
			Allowed: "one that says it, since the model has curves of a column with missing: zero",
			Hint:    "pack the table again as float32, or name a table of another form"}
	case opt.Labels != "":
		return &config.Error{File: opt.Labels, Found: "a file of labels", Allowed: "none: a packed table holds its labels"}
	case p.stats.Dropped > 0 && s.OnBadRow == schema.BadRowStop:
		return &config.Error{File: path, Found: "rows that did not fit the schema when the table was packed",
			Allowed: "none, since on_bad_row is stop", Hint: "correct the rows or the schema, and pack the table again"}
	case opt.Rows > 0 && !group && p.rows != opt.Rows:
		return rowsError(path, "rows", strconv.Itoa(p.rows)+" rows", opt.Rows)
	}
	return nil
}

// tableOf is the table whose packed form is in those pages, which the table's blocks go on using.
func tableOf(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options,
	file *pages) (*Table, *LoadStats, error) {
	m := file.mem
	p, err := readFooter(m[:min(len(m), packHeader)], int64(len(m)), func(offset, length int64) ([]byte, error) {
		return m[offset : offset+length], nil
	})
	if err != nil {
		return nil, nil, packError(path, err)
	}
	if err := p.answers(s, path, opt); err != nil {
		return nil, nil, err
	}
	limit := limitOf(s, opt, path)
	if err := limit.over(p.rows, 0); err != nil {
		return nil, nil, err
	}
	if err := opt.dropped(s, path, &p.stats); err != nil {
		return nil, nil, err
	}
	t := newBuilder(s, opt).table
	t.Blocks = make([]*Block, len(p.chunks))
	if opt.Short && p.has(packShort) {
		t.Short = ShortOf(p.schema)
	}
	units, err := p.readBlocks(ctx, t, s, path, file)
	if err != nil {
		return nil, nil, err
	}
	if opt.Unlabeled {
		for _, k := range t.Blocks {
			k.Y = nil
		}
	}
	if s.UnitRows > 0 && !opt.ByRow {
		if t.units = groupRows(t, slices.Concat(units...)); t.units == nil || t.MostUnitRows() > s.UnitRows {
			return nil, nil, &config.Error{File: path, Found: "units that are not as the schema asks",
				Allowed: "units as they were written", Hint: "copy the file again, or pack the table again"}
		}
		if n := t.Units(); opt.Rows > 0 && n != opt.Rows {
			return nil, nil, rowsError(path, "units", strconv.Itoa(n)+" units", opt.Rows)
		} else if err := limit.over(p.rows, n); err != nil {
			return nil, nil, err
		}
	}
	content, err := p.content(gate.RowKey(), m)
	if err != nil {
		return nil, nil, packError(path, err)
	}
	if err := gate.Admit(ctx, content); err != nil {
		return nil, nil, err
	}
	if p.stats.Clamped == nil {
		p.stats.Clamped = map[string]int{}
	}
	return t, &p.stats, nil
}

// readBlocks checks each chunk and makes it a block of t, whose rows s describes. It returns the units of each chunk's
// rows, if the file has them.
func (p *packed) readBlocks(
	ctx context.Context, t *Table, s *schema.Schema, path string, file *pages,
) ([][]int32, error) {
	of := make([][]int32, len(p.chunks))
	verify := newChunkCheck(s)
	err := eachChunk(ctx, len(p.chunks), func(i int) error {
		c := &p.chunks[i]
		file.reach(c.offset)
		k, units, err := c.checked(file.mem[c.offset:c.offset+c.size], p.schema, p.flags)
		if err == nil {
			err = verify.block(k)
		}
		if err != nil {
			return &config.Error{File: path, Field: fmt.Sprintf("chunk %d", i+1), Found: err.Error(),
				Allowed: "a chunk as it was written", Hint: "copy the file again, or pack the table again"}
		}
		t.Blocks[i], of[i] = k, units
		return nil
	})
	return of, err
}

// content is what the gate admits: with the hashes of rows in m, if they were made with key.
func (p *packed) content(key *RowKey, m []byte) (*Content, error) {
	content := &Content{Digest: p.digest, Parts: p.parts}
	if key != nil && p.has(packHashes) && key.id() == p.hashes.key {
		b := m[p.hashes.offset:][:padded(8*p.hashes.count)]
		if sha256.Sum256(b) != p.hashes.sum {
			return nil, damaged("a packed table whose hashes of rows were altered")
		}
		content.Rows = Hashes{}
		for i := range p.hashes.count {
			content.Rows.Add(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return content, nil
}

// eachChunk calls f for 0 … n-1, on all cores, until one fails. Of several errors
// it returns that of the first chunk.
func eachChunk(ctx context.Context, n int, f func(int) error) error {
	var next atomic.Int64
	var mu sync.Mutex
	var first error
	at := n
	var done sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		done.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					if i < at {
						first, at = err, i
					}
					mu.Unlock()
					next.Store(int64(n)) // chunks before i are done or at work
					return
				}
			}
		})
	}
	done.Wait()
	if first != nil {
		return first
	}
	return ctx.Err()
}

// chunkError says what is wrong with a chunk.
type chunkError string

func (e chunkError) Error() string { return string(e) }

const (
	errChunkSum  = chunkError("rows that were altered after they were packed")
	errChunkRows = chunkError("rows that are not encoded as the schema asks")
)

// checked returns the block in b and the units of its rows, if the checksum is right. If no row is
// dropped, Drop is nil.
func (c *packChunk) checked(b []byte, s *schema.Schema, flags uint32) (*Block, []int32, error) {
	if sha256.Sum256(b) != c.sum {
		return nil, nil, errChunkSum
	}
	k, of, err := c.block(b, s, flags)
	if err == nil && !slices.Contains(k.Drop, true) {
		k.Drop = nil
	}
	return k, of, err
}

// block returns the block in b and the units of its rows.
func (c *packChunk) block(b []byte, s *schema.Schema, flags uint32) (k *Block, of []int32, err error) {
	k = &Block{N: c.rows, Dim: s.Dim()}
	part := func(n int) []byte {
		p := b[:n:n]
		b = b[padded(n):]
		return p
	}
	f, parts := packForms[flags&packAsForm], [][]byte(nil)
	for _, n := range f.sizes(c.rows, c.nonzero, k.Dim) {
		parts = append(parts, part(n))
	}
	f.open(k, s, parts)
	if flags&packLabeled != 0 {
		k.Y = numbers[float32](part(4 * c.rows))
	}
	k.Norm = numbers[float32](part(4 * c.rows))
	if flags&packUnits != 0 {
		of = numbers[int32](part(4 * c.rows))
	}
	if c.drops {
		p := part(c.rows)
		for _, v := range p {
			if v > 1 { // no value of a bool
				return nil, nil, errChunkRows
			}
		}
		k.Drop = unsafe.Slice((*bool)(unsafe.Pointer(&p[0])), len(p))
	}
	return k, of, nil
}

// A packForm is how rows of one form lie in a chunk: the sizes of the parts of their features, and what gives those to
// a block.
type packForm struct {
	sizes func(rows, nonzero, dim int) []int
	open  func(k *Block, s *schema.Schema, parts [][]byte)
}

// packForms are those of a packed table, by the flags that say so.
const packAsForm = packSparse | packShort

var packForms = map[uint32]packForm{0: densePack, packSparse: sparsePack, packShort: shortPack}

// numbers returns the numbers in b, which is aligned to their size.
func numbers[T float32 | int32 | int16](b []byte) []T {
	if len(b) == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(T(0))))
}

// A chunkCheck checks what the encoder promises about rows.
type chunkCheck struct {
	rule    rowRule
	inv     float64 // 1/unit
	classes float32 // 0: the label is a number from lo to hi
	lo, hi  float32
}

func newChunkCheck(s *schema.Schema) *chunkCheck {
	bound, unit := s.RowRule()
	c := &chunkCheck{rule: newRowRule(bound, unit, false, s.Norm == schema.NormL1), inv: 1 / unit,
		classes: float32(s.Classes())}
	if b := s.LabelBounds(); b != nil {
		c.lo, c.hi = b.Inward()
	}
	return c
}

func (c *chunkCheck) block(k *Block) error {
	if !k.form().valid() {
		return errChunkRows
	}
	var memory []float32
	for i := range k.N {
		_, x := k.Values(i, &memory)
		sum, whole := sumSquares(x, c.inv)
		size := sum
		if c.rule.one {
			size = sumAbs(x, c.inv)
		}
		if !whole || !(size <= c.rule.limit) || c.rule.normUp(sum) != k.Norm[i] {
			return errChunkRows
		}
		dropped := k.Drop != nil && k.Drop[i]
		if dropped && sum != 0 {
			return errChunkRows
		}
		if k.Y != nil && !(dropped && k.Y[i] == 0) && !c.label(k.Y[i]) {
			return errChunkRows
		}
	}
	return nil
}

// label reports whether the schema has the label y.
func (c *chunkCheck) label(y float32) bool {
	if c.classes > 0 {
		return y >= 0 && y < c.classes && y == float32(int32(y))
	}
	return y >= c.lo && y <= c.hi
}

// sumSquares is Σ(x/unit)², and whether every x/unit is a whole number. If so, the sum is exact or above
// 2⁴⁹; otherwise it means nothing.
func sumSquares(x []float32, inv float64) (sum float64, whole bool) {
	whole = true
	for _, v := range x {
		k := float64(v) * inv
		if float64(int64(k)) != k {
			whole = false
		}
		sum += k * k
	}
	return sum, whole
}

// sumAbs is Σ|x/unit|: exact, or above 2⁴⁹, if every x/unit is a whole number.
func sumAbs(x []float32, inv float64) (sum float64) {
	for _, v := range x {
		sum += math.Abs(float64(v) * inv)
	}
	return sum
}
