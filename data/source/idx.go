package source

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

// idx is an IDX file of images, compressed or not, with their labels in a second one. An IDX file has two
// zero bytes, the type of a value (8: unsigned byte), the number of dimensions, each dimension as a
// big-endian uint32, the first of which is the number of images, and then the values.
var idx = data.Format{Name: "images (IDX)", Kind: schema.KindIDX, Divide: openImages,
	Describe: func(ctx context.Context, path string) (*data.Description, error) {
		f, err := data.OpenFile(ctx, path, nil)
		if err != nil {
			return nil, nil
		}
		defer f.Close()
		shape, _, err := readIDXHeader(f)
		if err != nil || len(shape) == 0 {
			return nil, nil
		}
		return &data.Description{Form: "images (IDX, unsigned bytes)", Shape: shape}, nil
	}}

const (
	bufferSize = 64 << 10  // bytes read at once
	maxWindow  = 128 << 20 // bytes that zstd may refer back
)

// idxRows divides the images.
type idxRows struct {
	images, labels *idxFile  // labels: nil for predictions
	classes        [256]int  // of each byte; -1: none
	pixels         int       // of an image
	most           int       // images of a piece
	sum, labelSum  hash.Hash // of the images, and at the end of both; of the labels
	row            int
	err            error // after the last piece
}

// An idxPiece is some images with their labels.
type idxPiece struct {
	of             *idxRows
	images, labels []byte
	first, rows    int // the number of the first image, and how many there are
	row            int // images read
}

// An idxFile is one of the two files.
type idxFile struct {
	*data.File
	r     *bufio.Reader
	count uint32
}

func openImages(_ context.Context, in *data.Input) (data.Pieces, error) {
	s := &idxRows{pixels: in.Schema.Image.Pixels(), sum: in.Sum, labelSum: sha256.New()}
	s.most = max(1, in.PieceBytes()/4/max(s.pixels, in.Schema.Features)) // a row has eight times as many bytes
	for i := range s.classes {
		s.classes[i] = -1
	}
	for k, c := range in.Schema.Label().Classes {
		v, _ := strconv.Atoi(c) // checked with the schema
		s.classes[v] = k
	}
	var err error
	if s.images, err = openIDX(in, in.Path, in.Schema.Image.Shape, in.Sum); err != nil {
		return nil, err
	}
	if in.Options.Unlabeled {
		return s, nil
	}
	if err := s.openLabels(in); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *idxRows) openLabels(in *data.Input) (err error) {
	path := in.Options.Labels
	if path == "" {
		path = labelsBeside(in.Path)
	}
	if path == "" {
		return &config.Error{File: in.Path, Found: "no labels beside the images",
			Allowed: "their file named as the images' is, with labels-idx1 for images-idx3, or named by --labels"}
	}
	if s.labels, err = openIDX(in, path, nil, s.labelSum); err == nil && s.labels.count != s.images.count {
		err = &config.Error{File: path, Found: "another number of labels than there are images",
			Allowed: "one label for each image of " + in.Path}
	}
	return err
}

// openIDX opens an IDX file of bytes whose values have the given shape, and reads
// its header.
func openIDX(in *data.Input, path string, shape []int, sum io.Writer) (*idxFile, error) {
	f, err := in.Beside(path, sum)
	if err != nil {
		return nil, err
	}
	x := &idxFile{File: f, r: bufio.NewReaderSize(f, bufferSize)}
	if err := x.header(shape); err != nil {
		f.Close()
		return nil, err
	}
	return x, nil
}

func (x *idxFile) header(shape []int) error {
	what := "images: IDX, unsigned bytes, shape " + shapeText(shape)
	if shape == nil {
		what = "labels: IDX, unsigned bytes, one dimension"
	}
	bad := func(found string) error { return &config.Error{File: x.Name, Found: found, Allowed: what} }
	found, count, err := readIDXHeader(x.r)
	switch {
	case short(err):
		return bad("a file that is too short for an IDX header")
	case err == errNoIDX:
		return bad("a file that is not IDX of unsigned bytes")
	case err != nil:
		return err
	case len(found) != len(shape) || !slices.Equal(found, shape):
		if shape == nil {
			return bad("values of shape " + shapeText(found))
		}
		return &config.Error{File: x.Name, Field: "image.shape", Found: "values of shape " + shapeText(found),
			Allowed: shapeText(shape) + ", the shape in the schema"}
	}
	x.count = count
	return nil
}

// short reports whether err says that a file ended too early.
func short(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

var errNoIDX = errors.New("data: no IDX file of unsigned bytes")

// readIDXHeader reads the shape of a value and the number of values.
func readIDXHeader(r io.Reader) (shape []int, count uint32, err error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return nil, 0, err
	}
	if magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] == 0 || magic[3] > 9 {
		return nil, 0, errNoIDX
	}
	sizes := make([]byte, 4*int(magic[3]))
	if _, err := io.ReadFull(r, sizes); err != nil {
		return nil, 0, err
	}
	count = binary.BigEndian.Uint32(sizes)
	for b := sizes[4:]; len(b) > 0; b = b[4:] {
		shape = append(shape, int(binary.BigEndian.Uint32(b)))
	}
	return shape, count, nil
}

func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "[] (one number each)"
	}
	var t []string
	for _, k := range shape {
		t = append(t, strconv.Itoa(k))
	}
	return "[" + strings.Join(t, ", ") + "]"
}

// labelsBeside returns the file of labels beside a file of images, by the usual names, compressed or not; "" if
// there is none.
func labelsBeside(images string) string {
	dir, name := filepath.Split(images)
	base := data.Uncompressed(name)
	ending := name[len(base):]
	for _, sep := range []string{"-", "."} { // train-images-idx3-ubyte, train-images.idx3-ubyte
		head, tail, ok := strings.Cut(base, "images"+sep+"idx3")
		if !ok {
			continue
		}
		label := dir + head + "labels" + sep + "idx1" + tail
		for _, end := range []string{ending, "", ".gz", ".zst", ".zip"} {
			if _, err := os.Stat(label + end); err == nil {
				return label + end
			}
		}
	}
	return ""
}

func (s *idxRows) Piece(used data.RowReader) (data.RowReader, error) {
	p, ok := used.(*idxPiece)
	if !ok {
		p = &idxPiece{of: s, images: make([]byte, s.most*s.pixels), labels: make([]byte, s.most)}
	}
	p.first, p.rows, p.row = s.row, 0, 0
	n := min(s.most, int(s.images.count)-s.row)
	if s.err == nil && n == 0 {
		s.err = s.end()
	}
	if s.err != nil {
		return nil, s.err
	}
	var bytes int
	bytes, s.err = s.images.values(p.images[:n*s.pixels])
	if p.rows = bytes / s.pixels; s.labels != nil {
		if labels, err := s.labels.values(p.labels[:p.rows]); err != nil {
			p.rows, s.err = labels, err
		}
	}
	if s.row += p.rows; p.rows == 0 {
		return nil, s.err
	}
	return p, nil
}

func (p *idxPiece) Next(row *data.Row) (f data.Fault, err error) {
	if p.row == p.rows {
		return f, io.EOF
	}
	k := p.row
	p.row++
	class, label := 0, byte(0)
	if p.of.labels != nil {
		label = p.labels[k]
		class = p.of.classes[label]
	}
	return row.Pixels(p.images[k*p.of.pixels:(k+1)*p.of.pixels], label, class), nil
}

// end returns io.EOF if both files end here.
func (s *idxRows) end() error {
	for _, f := range []*idxFile{s.images, s.labels} {
		if f == nil {
			continue
		}
		switch _, err := f.r.ReadByte(); {
		case err == nil:
			return &config.Error{File: f.Name, Found: "more values than the header says", Allowed: "as many as the header says"}
		case err != io.EOF:
			return err
		}
	}
	s.sum.Write(s.labelSum.Sum(nil))
	return io.EOF
}

// values reads the next values of a file, and returns the number of their bytes.
func (x *idxFile) values(dst []byte) (int, error) {
	n, err := io.ReadFull(x.r, dst)
	if short(err) {
		err = &config.Error{File: x.Name, Found: "a file that ends too early", Allowed: "as many values as its header says",
			Hint: "copy the file again"}
	}
	return n, err
}

// Place names the file of labels: only a label can be wrong.
func (p *idxPiece) Place(data.Fault) *config.Error {
	return &config.Error{File: p.of.labels.Name, Row: p.first + p.row}
}

func (s *idxRows) Close() error {
	if s.labels != nil {
		s.labels.Close()
	}
	return s.images.Close()
}
