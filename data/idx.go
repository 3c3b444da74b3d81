package data

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// An idxSource reads the images of an IDX file, plain or gzip, and their labels
// from a second one. The form: two zero bytes, the type of a value (8: unsigned
// byte), the number of dimensions, each dimension as a big-endian uint32, the
// first of them the number of images, and then the values.
type idxSource struct {
	images, labels *idxFile // labels: nil for predictions
	enc            *encoder
	classes        [256]int // of each byte; -1: none
	image          []byte
	sum, labelSum  hash.Hash // of the images, and at the end of both; of the labels
	row            int
	raw            *rowHasher
}

// An idxFile is one of the two files.
type idxFile struct {
	*file
	r     *bufio.Reader
	count uint32
}

func newIDXSource(sch *schema.Schema, path string, opt Options, enc *encoder, sum hash.Hash, raw *rowHasher) (source, error) {
	raw.begin([]byte("idx"))
	s := &idxSource{enc: enc, raw: raw, image: make([]byte, sch.Image.Pixels()), sum: sum, labelSum: sha256.New()}
	for i := range s.classes {
		s.classes[i] = -1
	}
	for k, c := range sch.Label().Classes {
		v, _ := strconv.Atoi(c) // checked with the schema
		s.classes[v] = k
	}
	var err error
	if s.images, err = openIDX(path, sch.Image.Shape, sum); err != nil {
		return nil, err
	}
	if opt.Unlabeled {
		return s, nil
	}
	labels := opt.Labels
	if labels == "" {
		if labels = labelsBeside(path); labels == "" {
			s.close()
			return nil, &config.Error{File: path, Found: "no labels beside the images", Allowed: "their file named as the images' is, with labels-idx1 for images-idx3, or named by --labels"}
		}
	}
	if s.labels, err = openIDX(labels, nil, s.labelSum); err != nil {
		s.close()
		return nil, err
	}
	if s.labels.count != s.images.count {
		s.close()
		return nil, &config.Error{File: labels, Found: "another number of labels than there are images", Allowed: "one label for each image of " + path}
	}
	return s, nil
}

// openIDX opens an IDX file of bytes whose values have the given shape, and reads
// its header.
func openIDX(path string, shape []int, sum io.Writer) (*idxFile, error) {
	f, err := openFile(path, sum)
	if err != nil {
		return nil, err
	}
	x := &idxFile{file: f, r: bufio.NewReaderSize(f.r, bufferSize)}
	if err := x.header(shape); err != nil {
		f.close()
		return nil, err
	}
	return x, nil
}

func (x *idxFile) header(shape []int) error {
	what := "images: IDX, unsigned bytes, shape " + shapeText(shape)
	if shape == nil {
		what = "labels: IDX, unsigned bytes, one dimension"
	}
	bad := func(found string) error { return &config.Error{File: x.name, Found: found, Allowed: what} }
	found, count, err := readIDXHeader(x.r)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return bad("a file that is too short for an IDX header")
	case err == errNoIDX:
		return bad("a file that is not IDX of unsigned bytes")
	case err != nil:
		return x.readError(err)
	case len(found) != len(shape) || !slices.Equal(found, shape):
		if shape == nil {
			return bad("values of shape " + shapeText(found))
		}
		return &config.Error{File: x.name, Field: "image.shape", Found: "values of shape " + shapeText(found), Allowed: shapeText(shape) + ", the shape in the schema"}
	}
	x.count = count
	return nil
}

type idxError string

func (e idxError) Error() string { return string(e) }

const errNoIDX = idxError("data: no IDX file of unsigned bytes")

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

// labelsBeside is the file of labels that goes with a file of images by the usual
// names, gzip or not; "" where there is none.
func labelsBeside(images string) string {
	dir, name := filepath.Split(images)
	base, gz := strings.CutSuffix(name, ".gz")
	for _, sep := range []string{"-", "."} { // train-images-idx3-ubyte, train-images.idx3-ubyte
		head, tail, ok := strings.Cut(base, "images"+sep+"idx3")
		if !ok {
			continue
		}
		label := dir + head + "labels" + sep + "idx1" + tail
		names := []string{label, label + ".gz"}
		if gz {
			slices.Reverse(names)
		}
		for _, n := range names {
			if _, err := os.Stat(n); err == nil {
				return n
			}
		}
	}
	return ""
}

func (s *idxSource) next() (fault, error) {
	if uint32(s.row) == s.images.count {
		for _, f := range []*idxFile{s.images, s.labels} {
			if f == nil {
				continue
			}
			switch _, err := f.r.ReadByte(); {
			case err == nil:
				return fault{}, &config.Error{File: f.name, Found: "more values than the header says", Allowed: "as many as the header says"}
			case err != io.EOF:
				return fault{}, f.readError(err)
			}
		}
		s.sum.Write(s.labelSum.Sum(nil))
		return fault{}, io.EOF
	}
	s.row++
	if err := s.images.value(s.image); err != nil {
		return fault{}, err
	}
	class := 0
	var b [1]byte
	if s.labels != nil {
		if err := s.labels.value(b[:]); err != nil {
			return fault{}, err
		}
		class = s.classes[b[0]]
	}
	s.raw.bytes(s.image, b[:])
	if class < 0 {
		return fault{field: s.enc.label.name, found: "a label that is none of the classes", allowed: "one of the classes in the schema"}, nil
	}
	s.enc.pixels(s.image)
	s.enc.y = float32(class)
	return fault{}, nil
}

// value reads the next value.
func (x *idxFile) value(dst []byte) error {
	_, err := io.ReadFull(x.r, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &config.Error{File: x.name, Found: "a file that ends too early", Allowed: "as many values as its header says", Hint: "copy the file again"}
	}
	if err != nil {
		return x.readError(err)
	}
	return nil
}

// place: only a label can be wrong.
func (s *idxSource) place(fault) *config.Error { return &config.Error{File: s.labels.name, Row: s.row} }

func (s *idxSource) close() {
	s.images.close()
	if s.labels != nil {
		s.labels.close()
	}
}
