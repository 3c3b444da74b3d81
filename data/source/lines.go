package source

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

const maxLine = 8 << 20 // longest line of a file, in bytes: a piece then has fewer than 2³¹ values

var errLongLine = errors.New("data: line too long")

// lines divides a file of text into pieces of whole lines.
type lines struct {
	*data.File
	text io.Reader // the file in UTF-8
	// the end of the last whole record of text; all: the file ends there. nil: records are lines
	whole func(text []byte, all bool) int
	size  int
	n     int    // lines in the pieces so far
	left  []byte // what was read after them
	skip  bool   // the rest of a line that is too long comes first
	err   error  // what the file returned after left
	head  *piece // the first piece, if first has read lines of it
}

// newLines is for pieces of about size bytes of a file in that encoding. A file that begins with a byte order mark is
// in the encoding of that mark.
func newLines(f *data.File, err error, size int, encoding string) (*lines, error) {
	if err != nil {
		return nil, err
	}
	l := &lines{File: f, size: max(size, 16)}
	if l.text, err = decoded(f, encoding); err != nil {
		f.Close()
		return nil, err
	}
	if l.left = l.fill(nil); l.err != nil && l.err != io.EOF && len(l.left) < 3 {
		f.Close()
		return nil, l.err
	}
	l.left = bytes.TrimPrefix(l.left, []byte("\ufeff"))
	return l, nil
}

// decoded is a file in that encoding as UTF-8.
func decoded(f io.Reader, encoding string) (io.Reader, error) {
	switch encoding {
	case schema.EncodingLatin1:
		return transform.NewReader(f, charmap.ISO8859_1.NewDecoder()), nil
	case schema.EncodingWindows:
		return transform.NewReader(f, charmap.Windows1252.NewDecoder()), nil
	}
	var mark [4]byte
	n, err := io.ReadFull(f, mark[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	all := io.MultiReader(bytes.NewReader(mark[:n]), f)
	if string(mark[:n]) == "\xff\xfe\x00\x00" { // UTF-32, which notText names
		return all, nil
	}
	if bom := string(mark[:min(n, 2)]); encoding == schema.EncodingUTF16 || bom == "\xff\xfe" || bom == "\xfe\xff" {
		return transform.NewReader(all, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()), nil
	}
	return all, nil
}

// utf8Head is the beginning of a file, in the encoding of its byte order mark, as UTF-8.
func utf8Head(head []byte) []byte {
	text, err := decoded(bytes.NewReader(head), "")
	if err != nil {
		return head
	}
	if all, err := io.ReadAll(text); err == nil {
		return all
	}
	return head
}

// fill reads until b has size bytes or, if it has, is twice as long, or the file ends.
func (l *lines) fill(b []byte) []byte {
	want := l.size
	if len(b) >= want {
		want = 2 * len(b)
	}
	b = slices.Grow(b, want-len(b))
	for len(b) < want && l.err == nil {
		var n int
		n, l.err = l.text.Read(b[len(b):want])
		b = b[:len(b)+n]
	}
	return b
}

// A piece is some lines of a file. Its methods are those of data.RowReader except Next.
type piece struct {
	file   string
	memory []byte
	text   []byte // the lines to come; each ends with '\n'
	n      int    // number of the last line, from 1
	more   int    // lines of the last record after that
	seen   bool   // text was checked
	plain  bool   // and all of it is UTF-8 without NUL
	bare   bool   // and there is no quote in it
	long   bool   // instead of text: a line that is too long
	added  bool   // the last '\n' is not in the file

	length func(text []byte, all bool) (n int, known bool) // of the record at the beginning of text; nil: that of the line
}

// cut reads the next lines into p.
func (l *lines) cut(p *piece) error {
	if l.head != nil {
		*p, l.head = *l.head, nil
		return nil
	}
	*p = piece{file: l.Name, memory: append(p.memory[:0], l.left...), n: l.n}
	l.left = l.left[:0]
	for l.skip {
		if end := bytes.IndexByte(p.memory, '\n') + 1; end > 0 {
			p.memory, l.skip = p.memory[end:], false
			break
		}
		if l.err != nil {
			return l.err
		}
		p.memory = l.fill(p.memory[:0])
	}
	for {
		end := bytes.LastIndexByte(p.memory, '\n') + 1
		if l.whole != nil {
			end = l.whole(p.memory, l.err == io.EOF)
		}
		ended := l.err == io.EOF && (end == 0 || p.memory[end-1] != '\n')
		switch {
		case end > 0 && len(p.memory) < l.size && l.err == nil: // more lines may fit
		case end > 0 || ended && len(p.memory) > 0:
			if ended {
				end = len(p.memory)
			}
			l.left = append(l.left, p.memory[end:]...)
			if p.long = end > maxLine && bytes.IndexByte(p.memory, '\n') < 0; p.long {
				l.n++
				return nil
			}
			p.text = p.memory[:end]
			if p.added = ended; ended {
				p.memory = append(p.text, '\n')
				p.text = p.memory
			}
			l.n += bytes.Count(p.text, []byte("\n"))
			return nil
		case l.err != nil:
			return l.err
		case len(p.memory) > maxLine && end == 0: // the fault comes before the rest of the line, which may never end
			p.long, l.skip = true, true
			l.n++
			return nil
		}
		p.memory = l.fill(p.memory)
	}
}

// first returns the first line of the file that next finds. The lines after it are those of the pieces. A file that is
// known to be damaged has none: its first line may be wrong for that reason.
func (l *lines) first(next func(*piece) ([]byte, data.Fault, error)) (line []byte, f data.Fault, n int, err error) {
	for {
		p := &piece{}
		if err := l.cut(p); err != nil {
			return nil, f, 0, err
		}
		if l.err != nil && l.err != io.EOF {
			return nil, f, 0, l.err
		}
		if line, f, err = next(p); err != io.EOF {
			l.head = p
			return line, f, p.n, err
		}
	}
}

func (p *piece) Place(f data.Fault) *config.Error {
	return &config.Error{File: p.file, Line: p.n, Column: f.Byte}
}

// next returns the next line, with its '\n'. It returns errLongLine for one that is too long.
func (p *piece) next() ([]byte, error) {
	p.n, p.more = p.n+p.more, 0
	if p.long {
		p.long = false
		p.n++
		return nil, errLongLine
	}
	end := bytes.IndexByte(p.text, '\n') + 1
	if end == 0 {
		return nil, io.EOF
	}
	line := p.text[:end:end]
	p.text = p.text[end:]
	p.n++
	if end > maxLine && !(p.added && len(p.text) == 0 && end == maxLine+1) {
		return nil, errLongLine
	}
	return line, nil
}

// record returns the next line that is neither blank nor a comment, or the lines of the record that begins there. One
// that is not text is a fault.
func (p *piece) record(f *schema.Format) ([]byte, data.Fault, error) {
	if !p.seen {
		p.seen, p.plain, p.bare = true, isText(p.text), bytes.IndexByte(p.text, '"') < 0
	}
	for {
		text := p.text
		line, err := p.next()
		switch {
		case err == errLongLine:
			return nil, data.Fault{Found: "a line of more than 8 MiB", Allowed: "shorter lines"}, nil
		case err != nil:
			return nil, data.Fault{}, err
		case skipped(line, f):
		default:
			if !p.bare && p.length != nil {
				n, _ := p.length(text, true)
				p.more = bytes.Count(text[len(line):n], []byte("\n"))
				line, p.text = text[:n:n], text[n:]
			}
			if !p.plain && !isText(line) {
				return nil, notText(line), nil
			}
			return line, data.Fault{}, nil
		}
	}
}

// notText is the fault of a line that is not UTF-8. It says what the line may be instead.
func notText(line []byte) data.Fault {
	switch nul := bytes.IndexByte(line, 0); {
	case zeros(line, 4) == 3:
		return data.Fault{Found: "text in UTF-32", Allowed: "a text file in UTF-8"}
	case zeros(line, 2) == 1:
		return data.Fault{Found: "text in UTF-16 without a byte order mark",
			Allowed: "a text file in UTF-8, or for CSV format: {encoding: utf-16} in the schema, if the low bytes come first"}
	case nul < 0 && !bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' }):
		return data.Fault{Found: "bytes that are not text in UTF-8 (Latin-1 or Windows-1252?)",
			Allowed: "a text file in UTF-8, or for CSV in the encoding that format names"}
	}
	return data.Fault{Found: "bytes that are not text (a binary file?)",
		Allowed: "a text file in UTF-8, or for CSV in the encoding that format names"}
}

// zeros is how many of n bytes in turn are mostly 0 in a line, if the others never are: of text that is mostly ASCII
// one of two in UTF-16, and three of four in UTF-32.
func zeros(line []byte, n int) (all int) {
	count := make([]int, n)
	for i, c := range line {
		if c == 0 {
			count[i%n]++
		}
	}
	for _, k := range count {
		switch {
		case len(line) < 2*n || k > 0 && 2*n*k < len(line):
			return 0
		case k > 0:
			all++
		}
	}
	return all
}

// skipped says whether a line, with its '\n', is blank or a comment.
func skipped(line []byte, f *schema.Format) bool {
	switch {
	case f.Comment != "" && len(line) > len(f.Comment) && string(line[:len(f.Comment)]) == f.Comment:
		return true
	case len(line) == 1 || len(line) == 2 && line[0] == '\r':
		return true
	}
	return (f.Trim || f.Kind == schema.KindLIBSVM) && len(bytes.TrimSpace(line)) == 0
}

// loneReturn says whether a carriage return stands before the end of a line, with its '\n': it may end rows that would
// count as one.
func loneReturn(line []byte) bool {
	at := bytes.IndexByte(line, '\r')
	return at >= 0 && at < len(line)-2
}

// loneReturnFault is the fault of such a line in a format in which it is no part of a value.
var loneReturnFault = data.Fault{Found: "a carriage return (CR) within a line",
	Allowed: "lines that end with LF or CRLF"}

// isText says whether a line is UTF-8 without NUL.
func isText(line []byte) bool { return bytes.IndexByte(line, 0) < 0 && utf8.Valid(line) }

// view returns b as a string that shares its memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
