package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

const (
	bufferSize = 64 << 10 // bytes read at once
	maxLine    = 8 << 20  // longest line of a file, in bytes: a block then has fewer than 2³¹ values
)

// lines reads a file of text line by line. It has the methods of data.Rows except Next.
type lines struct {
	*data.File
	r    *bufio.Reader
	n    int    // number of the last line, from 1
	long []byte // for lines that do not fit the buffer, and the last one
}

var errLongLine = errors.New("data: line too long")

func newLines(f *data.File, err error) (*lines, error) {
	if err != nil {
		return nil, err
	}
	l := &lines{File: f, r: bufio.NewReaderSize(f, bufferSize)}
	bom, err := l.r.Peek(3)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, err
	}
	if string(bom) == "\ufeff" {
		l.r.Discard(3)
	}
	return l, nil
}

func (l *lines) Place(f data.Fault) *config.Error {
	return &config.Error{File: l.Name, Line: l.n, Column: f.Byte}
}

// next returns the next line with a '\n' at its end, also if the file has none. The line is valid until
// the following call. After errLongLine, which keeps nothing of the line, reading continues.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == nil {
		l.n++
		return line, nil
	}
	l.long = append(l.long[:0], line...)
	tooLong := false
	for err == bufio.ErrBufferFull {
		line, err = l.r.ReadSlice('\n')
		if tooLong = tooLong || len(l.long)+len(line) > maxLine; tooLong {
			l.long = l.long[:1]
		} else {
			l.long = append(l.long, line...)
		}
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(l.long) == 0 {
		return nil, io.EOF
	}
	l.n++
	if tooLong {
		return nil, errLongLine
	}
	if l.long[len(l.long)-1] != '\n' {
		l.long = append(l.long, '\n')
	}
	return l.long, nil
}

// record returns the next line that is neither blank nor a comment. A line that is not text is a fault.
func (l *lines) record(f *schema.Format) ([]byte, data.Fault, error) {
	for {
		line, err := l.next()
		switch {
		case err == errLongLine:
			return nil, data.Fault{Found: "a line of more than 8 MiB", Allowed: "records of one line each"}, nil
		case err != nil:
			return nil, data.Fault{}, err
		case f.Comment != "" && len(line) > len(f.Comment) && string(line[:len(f.Comment)]) == f.Comment:
		case len(line) == 1 || len(line) == 2 && line[0] == '\r':
		case (f.Trim || f.Kind == schema.KindLIBSVM) && len(bytes.TrimSpace(line)) == 0:
		case !isText(line):
			return nil, data.Fault{Found: "bytes that are not text (a binary file?)", Allowed: "a text file in UTF-8"}, nil
		default:
			return line, data.Fault{}, nil
		}
	}
}

// isText says whether a line is UTF-8 without NUL.
func isText(line []byte) bool { return bytes.IndexByte(line, 0) < 0 && utf8.Valid(line) }
