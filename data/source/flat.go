package source

import "encoding/binary"

// flat is metadata in the form of FlatBuffers (https://flatbuffers.dev/internals), which may be hostile: what points
// outside of it reads as zero and sets bad.
type flat struct {
	b    []byte
	bad  bool
	used int // entries of tables and bytes of texts so far
}

// use takes so many entries or bytes. Many fields may point to one text or to one list, so that small metadata would
// say much.
func (f *flat) use(n int) bool {
	if f.used += n; f.used > 16*len(f.b)+1<<16 {
		f.bad = true
	}
	return !f.bad
}

// A flatTable is a table: fields by number, each of which may be absent.
type flatTable struct {
	*flat
	at int
}

// flatRoot is the table that the metadata begin with.
func flatRoot(b []byte) flatTable {
	f := &flat{b: b}
	return flatTable{f, f.target(0)}
}

// bytes returns the n bytes at a position, zeros if they are outside.
func (f *flat) bytes(at, n int) []byte {
	if at < 0 || n < 0 || at > len(f.b)-n {
		f.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	return f.b[at : at+n]
}

func (f *flat) uint16(at int) int { return int(binary.LittleEndian.Uint16(f.bytes(at, 2))) }
func (f *flat) uint32(at int) int { return int(binary.LittleEndian.Uint32(f.bytes(at, 4))) }
func (f *flat) int64(at int) int64 {
	return int64(binary.LittleEndian.Uint64(f.bytes(at, 8)))
}

// target is where the offset at a position points to.
func (f *flat) target(at int) int { return at + f.uint32(at) }

// field is the position of field i, 0 if it is absent.
func (t flatTable) field(i int) int {
	fields := t.at - int(int32(t.uint32(t.at)))
	if 4+2*i+2 > t.uint16(fields) {
		return 0
	}
	if from := t.uint16(fields + 4 + 2*i); from > 0 {
		return t.at + from
	}
	return 0
}

func (t flatTable) byteAt(i int) byte {
	if at := t.field(i); at > 0 {
		return t.bytes(at, 1)[0]
	}
	return 0
}

func (t flatTable) int16At(i, absent int) int {
	if at := t.field(i); at > 0 {
		return int(int16(t.uint16(at)))
	}
	return absent
}

func (t flatTable) int32At(i, absent int) int {
	if at := t.field(i); at > 0 {
		return int(int32(t.uint32(at)))
	}
	return absent
}

func (t flatTable) int64At(i int) int64 {
	if at := t.field(i); at > 0 {
		return t.int64(at)
	}
	return 0
}

// table is the table in field i. ok: it is there.
func (t flatTable) table(i int) (in flatTable, ok bool) {
	at := t.field(i)
	if at == 0 {
		return flatTable{t.flat, 0}, false
	}
	return flatTable{t.flat, t.target(at)}, true
}

// vector is the position and the number of the elements in field i, each of that many bytes.
func (t flatTable) vector(i, size int) (at, n int) {
	field := t.field(i)
	if field == 0 {
		return 0, 0
	}
	at = t.target(field)
	if n = t.uint32(at); n > (len(t.b)-at)/size {
		t.bad = true
		return 0, 0
	}
	return at + 4, n
}

// tables are the tables in field i.
func (t flatTable) tables(i int) []flatTable {
	at, n := t.vector(i, 4)
	if !t.use(n) {
		return nil
	}
	out := make([]flatTable, n)
	for k := range out {
		out[k] = flatTable{t.flat, t.target(at + 4*k)}
	}
	return out
}

// text is the text in field i.
func (t flatTable) text(i int) string {
	at, n := t.vector(i, 1)
	if !t.use(n) {
		return ""
	}
	return string(t.bytes(at, n))
}
