package data

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
)

// A File is open for reading, decompressed where it is gzip, zstd or a zip with one member. Its errors name the file
// and what to do.
type File struct {
	Name string
	f    *readfile.File
	r    io.Reader
	ctx  context.Context
	form string        // of compression; "": none
	z    *zstd.Decoder // to close
}

const (
	bufferSize = 64 << 10  // bytes read at once
	maxWindow  = 128 << 20 // bytes that a zstd file may refer back: what zstd itself reads without --long
)

// What compressed files begin with.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
	zipMagic  = "PK\x03\x04"
	zipEmpty  = "PK\x05\x06" // a zip without members
)

// Uncompressed returns a file's name without the ending of its compression.
func Uncompressed(name string) string {
	switch ext := filepath.Ext(name); ext {
	case ".gz", ".zst", ".zip":
		return strings.TrimSuffix(name, ext)
	}
	return name
}

// OpenFile opens the file at path, which is read until ctx ends. All its decompressed bytes go to sum; sum may be nil.
func OpenFile(ctx context.Context, path string, sum io.Writer) (in *File, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	raw := bufio.NewReaderSize(stoppable{ctx, f}, bufferSize)
	head, err := raw.Peek(16)
	if e := cmp.Or(f.Err(), ctx.Err()); e != nil {
		return nil, e
	}
	if err != nil && err != io.EOF {
		return nil, config.FileError(path, err)
	}
	if e := foreign(path, head); e != nil {
		return nil, e
	}
	in = &File{Name: path, f: f, r: raw, ctx: ctx}
	if err := in.decompress(raw, head); err != nil {
		return nil, err
	}
	in.r = stoppable{ctx, in.r}
	if sum != nil {
		in.r = io.TeeReader(in.r, sum)
	}
	return in, nil
}

// decoders are of zstd files. A file is opened several times, and its window may be most of the memory that there is.
var decoders = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // of the options
	}
	return z
}}

// decompress reads the file, which begins with head, decompressed.
func (f *File) decompress(raw *bufio.Reader, head []byte) (err error) {
	begins := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case begins(gzipMagic):
		f.form = "gzip"
		z, e := gzip.NewReader(raw)
		if err = e; err == nil {
			z.Multistream(false)
			f.r = &members{raw, z}
		}
	case begins(zstdMagic):
		f.form = "zstd"
		f.z = decoders.Get().(*zstd.Decoder)
		f.r, err = f.z, f.z.Reset(raw)
	case begins(zipMagic), begins(zipEmpty):
		f.form = "zip"
		f.r, err = f.member()
	}
	if err != nil && !errors.As(err, new(*config.Error)) {
		err = f.readError(err)
	}
	return err
}

// members reads the members of a gzip file. It tells bytes that follow the last of them from a file that is cut short.
type members struct {
	raw *bufio.Reader
	z   *gzip.Reader
}

func (m *members) Read(b []byte) (int, error) {
	for {
		n, err := m.z.Read(b)
		if err == io.EOF && n > 0 {
			err = nil // there may be another member
		}
		if err != io.EOF {
			return n, err
		}
		head, err := m.raw.Peek(len(gzipMagic))
		switch {
		case len(head) == 0:
			return 0, err
		case string(head) != gzipMagic:
			return 0, errTrailing
		}
		if err := m.z.Reset(m.raw); err != nil {
			return 0, err
		}
		m.z.Multistream(false)
	}
}

var errTrailing = errors.New("data: bytes after the end of a compressed file")

// member opens the only member of a zip file.
func (f *File) member() (io.Reader, error) {
	z, err := zip.NewReader(f.f, f.f.Size())
	if err != nil {
		return nil, err
	}
	var members []*zip.File
	for _, m := range z.File {
		switch {
		case strings.HasPrefix(m.Name, "xl/"), m.Name == "content.xml":
			return nil, workbook(f.Name)
		case !strings.HasSuffix(m.Name, "/") && !strings.HasPrefix(m.Name, "__MACOSX/"):
			members = append(members, m)
		}
	}
	if len(members) != 1 {
		return nil, &config.Error{File: f.Name, Found: fmt.Sprintf("a zip file of %d members", len(members)),
			Allowed: "a zip file of exactly one, the table", Hint: "extract the members; data may name several files"}
	}
	if members[0].Flags&1 != 0 {
		return nil, &config.Error{File: f.Name, Found: "an encrypted zip file", Allowed: "one without a password",
			Hint: "extract it"}
	}
	r, err := members[0].Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, &config.Error{File: f.Name, Found: "a zip file with a compression that Sotto does not know",
			Allowed: "stored or deflated members", Hint: "extract it"}
	}
	return r, err
}

// Close closes the file.
func (f *File) Close() error {
	if f.z != nil {
		f.z.Reset(nil) // it holds the file no longer
		decoders.Put(f.z)
		f.z = nil
	}
	return f.f.Close()
}

func (f *File) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && err != io.EOF {
		err = f.readError(err)
	}
	return n, err
}

// readError says what failed: the file or the decompressor.
func (f *File) readError(err error) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	found := "a damaged " + f.form + " file"
	switch failed := f.f.Err(); {
	case failed != nil:
		return failed
	case f.form == "" || errors.As(err, new(*fs.PathError)):
		return fmt.Errorf("data: reading %s: %w", f.Name, err)
	case err == errTrailing, errors.Is(err, zstd.ErrMagicMismatch): // it began as one
		return &config.Error{File: f.Name,
			Err: fmt.Errorf("bytes follow the end of the %s data; remove them, or compress the table again", f.form)}
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		found = "a " + f.form + " file that ends too early"
	}
	return &config.Error{File: f.Name, Found: found, Allowed: "a whole " + f.form + " file", Hint: "copy the file again",
		Err: err}
}

// foreign is the error of a file of another program, which begins with head. It says how to convert the file.
func foreign(path string, head []byte) *config.Error {
	switch {
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return workbook(path)
	case bytes.HasPrefix(head, []byte("FEA1\x00\x00")):
		return &config.Error{File: path, Found: "a Feather file of version 1",
			Allowed: "a table of text, Parquet, Arrow (Feather of version 2) or SQLite",
			Hint: "convert it, as in Python: pandas.read_feather(" + quoted(path) + ").to_parquet(" +
				quoted(converted(path, ".parquet")) + ")"}
	case compressor(head) != "":
		return &config.Error{File: path,
			Err: fmt.Errorf("the file is compressed by %s, which Sotto does not read; compress the table by gzip or zstd, or not at all", compressor(head))}
	case len(head) >= 12 && string(head[8:12]) == "DUCK":
		return &config.Error{File: path, Found: "a DuckDB file", Allowed: "a table of text, Parquet, Arrow or SQLite",
			Hint: "convert its table: duckdb " + quoted(path) + ` "COPY table_name TO ` + quoted(converted(path, ".parquet")) +
				` (FORMAT parquet)"`}
	}
	return nil
}

// compressor is what a file was compressed or archived by that begins with head; "" if none that is known.
func compressor(head []byte) string {
	for _, c := range []struct{ magic, name string }{
		{"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"\x04\x22\x4d\x18", "lz4"}, {"7z\xbc\xaf\x27\x1c", "7-Zip"},
		{"Rar!\x1a\x07", "RAR"}, {"\x1f\x9d", "compress"}, {"\xff\x06\x00\x00sNaPpY", "snappy"},
	} {
		if bytes.HasPrefix(head, []byte(c.magic)) &&
			(c.name != "bzip2" || len(head) >= 10 && string(head[4:10]) == "1AY&SY") {
			return c.name
		}
	}
	return ""
}

// workbook is the error of a workbook of Excel or LibreOffice.
func workbook(path string) *config.Error {
	return &config.Error{File: path, Found: "a workbook of Excel or LibreOffice",
		Allowed: "a table of text, Parquet, Arrow or SQLite",
		Hint: "save the sheet as CSV UTF-8, or convert the first one: libreoffice --headless --convert-to csv " +
			quoted(path)}
}

// converted is the name of a file in another form, in the current directory.
func converted(path, ext string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(name)) + ext
}

// quoted is a path for a shell or Python.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
