package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/scatter"
	"github.com/sottodp/sotto/schema"
)

// idx is an IDX file of bytes: count, shape, values.
func idx(count int, shape []int, values ...byte) string {
	b := []byte{0, 0, 8, byte(1 + len(shape))}
	for _, n := range append([]int{count}, shape...) {
		b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return string(b) + string(values)
}

// pair writes images and labels by the usual names.
func pair(t testing.TB, images, labels, end string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "train-images-idx3-ubyte"+end)
	if err := errors.Join(os.WriteFile(path, []byte(images), 0o600), os.WriteFile(filepath.Join(dir, "train-labels-idx1-ubyte"+end), []byte(labels), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadIDX(t *testing.T) {
	s := mustParse(t, pictures)
	images := idx(3, []int{2, 3}, 0, 100, 150, 200, 255, 50, 100, 100, 100, 100, 100, 100, 1, 2, 3, 4, 5, 6)
	labels := idx(3, nil, 3, 7, 3)
	var plain, gz [sha256.Size]byte
	tab, stats, err := readTable(context.Background(), digestTo(&plain), s, pair(t, images, labels, ""), Options{Rows: 3})
	if err != nil {
		t.Fatal(err)
	}
	checkTable(t, tab)
	for i, want := range [][]float64{{-2, 0, 1, 2, 3.1, -1, 1}, {0, 0, 0, 0, 0, 0, 1}, {-1.98, -1.96, -1.94, -1.92, -1.9, -1.88, 1}} {
		for j, v := range row(tab, i) {
			if math.Abs(float64(v)-want[j]) > tab.Unit {
				t.Errorf("row %d: %v, want %v", i, row(tab, i), want)
				break
			}
		}
	}
	if d := cmp.Diff([]float32{1, 0, 1}, tab.Blocks[0].Y); d != "" {
		t.Error(d)
	}
	if stats.Rows != 3 || tab.Dim != 7 || tab.Classes != 2 {
		t.Errorf("%+v %+v", stats, tab)
	}
	again, _, err := readTable(context.Background(), digestTo(&gz), s, pair(t, zipped(images), zipped(labels), ".gz"), Options{})
	if err != nil || gz != plain {
		t.Errorf("gzip: %v", err)
	}
	if d := cmp.Diff(tab, again, sameTable); d != "" {
		t.Error(d)
	}

	// The digest does not depend on how much is read at once.
	many := &bytes.Buffer{}
	for i := range 3 * bufferSize {
		many.WriteByte(byte(i * i >> 7))
	}
	images, labels = idx(bufferSize/2, []int{2, 3}, many.Bytes()...), idx(bufferSize/2, nil, bytes.Repeat([]byte{7}, bufferSize/2)...)
	if _, _, err := readTable(context.Background(), digestTo(&plain), s, pair(t, images, labels, ""), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readTable(context.Background(), digestTo(&gz), s, pair(t, zipped(images), zipped(labels), ".gz"), Options{}); err != nil || gz != plain {
		t.Errorf("gzip: %v", err)
	}
	images, labels = idx(3, []int{2, 3}, 0, 100, 150, 200, 255, 50, 100, 100, 100, 100, 100, 100, 1, 2, 3, 4, 5, 6), idx(3, nil, 3, 7, 3)

	// Labels by name, and none at all.
	other := writeFile(t, "some", labels)
	if _, _, err := readTable(context.Background(), admit(), s, writeFile(t, "images", images), Options{Labels: other}); err != nil {
		t.Error(err)
	}
	if tab, _, err := readTable(context.Background(), admit(), s, writeFile(t, "images", images), Options{Unlabeled: true}); err != nil || tab.Labeled || tab.Rows() != 3 {
		t.Error(err)
	}

	// A center and a scale for each pixel.
	each := mustParse(t, strings.Replace(pictures, "center: 100, scale: 50", "center: [0, 100, 100, 100, 105, 0], scale: [1, 1, 50, 50, 50, 50]", 1))
	tab, _, err = readTable(context.Background(), admit(), each, pair(t, images, labels, ""), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := row(tab, 0); got[0] != 0 || got[1] != 0 || got[2] != 1 || got[3] != 2 || got[4] != 3 || got[5] != 1 || each.Fingerprint() == s.Fingerprint() {
		t.Errorf("%v", got)
	}
}

// TestScattering: each row has the coefficients of its own image, whatever stands beside it, brought to the norm bound; and a
// packed table has the same rows.
func TestScattering(t *testing.T) {
	s := mustParse(t, strings.NewReplacer("[2, 3], center: 100, scale: 50", "[9, 11], encode: scattering", "project", "scale").Replace(pictures))
	const n, size = 40, 9 * 11
	var values, labels []byte
	for i := range n * size {
		v := byte(i * i >> 3)
		if i/size == 5 {
			v = 77 // an image of one gray
		}
		values = append(values, v)
	}
	for i := range n {
		labels = append(labels, []byte{7, 3}[i%2])
	}
	path := pair(t, idx(n, []int{9, 11}, values...), idx(n, nil, labels...), "")
	tab, _, err := readTable(context.Background(), admit(), s, path, Options{Coding: Coding{Bytes: true}})
	if err != nil || tab.Pixels != nil || tab.Dim != 2*2*scatter.Maps+1 {
		t.Fatalf("%v, %+v", err, tab)
	}
	checkTable(t, tab)
	tr := scatter.New(9, 11, 1)
	want := make([]float64, tab.Dim)
	want[tab.Dim-1] = 1
	for i := range n {
		tr.Coefficients(want[:tab.Dim-1], values[i*size:(i+1)*size], new(scatter.Workspace))
		norm := 0.0
		for _, v := range want {
			norm += v * v
		}
		for j, v := range row(tab, i) {
			if x := want[j] / math.Sqrt(norm) * tab.NormBound; math.Abs(float64(v)-x) > 2*tab.Unit {
				t.Fatalf("row %d: feature %d is %v, want %v", i, j, v, x)
			}
		}
	}
	for _, opt := range []Options{{workers: 1}, {workers: 3, piece: 5 * 4 * tab.Dim}} {
		again, _, err := readTable(context.Background(), admit(), s, path, opt)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tab, again, sameTable); d != "" {
			t.Errorf("%+v: %s", opt, d)
		}
	}

	// The content is that of the images, and rows without a label have the same numbers.
	key := &RowKey{Secret: []byte("key")}
	raw, packed := &testGate{key: key}, &testGate{key: key}
	dst := filepath.Join(t.TempDir(), "t")
	if _, _, err := readTable(context.Background(), raw, mustParse(t, strings.Replace(pictures, "[2, 3]", "[9, 11]", 1)), path, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := packTable(context.Background(), &testGate{key: key}, s, path, dst, Options{}); err != nil {
		t.Fatal(err)
	}
	got, _, err := readTable(context.Background(), packed, s, dst, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if d := cmp.Diff(tab, got, sameTable); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(raw.content, packed.content); d != "" || raw.content.Rows.Len() != n {
		t.Error(d)
	}
}

func TestBadIDX(t *testing.T) {
	images := idx(2, []int{2, 3}, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6)
	labels := idx(2, nil, 3, 7)
	for _, c := range []struct{ name, images, labels, change, want string }{
		{"class", images, idx(2, nil, 3, 201), "", "labels-idx1-ubyte: row 2: column digit: found a label that is none of the classes"},
		{"short", images[:len(images)-1], labels, "", "images-idx3-ubyte: found a file that ends too early"},
		{"long", images + "x", labels, "", "images-idx3-ubyte: found more values than the header says"},
		{"short labels", images, labels[:9], "", "labels-idx1-ubyte: found a file that ends too early"},
		{"counts", images, idx(1, nil, 3), "", "labels-idx1-ubyte: found another number of labels than there are images"},
		{"shape", idx(2, []int{3, 2}, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6), labels, "", "image.shape: found values of shape [3, 2]; expected [2, 3]"},
		{"no shape", labels, labels, "", "image.shape: found values of shape [] (one number each)"},
		{"images for labels", images, images, "", "labels-idx1-ubyte: found values of shape [2, 3]; expected labels"},
		{"type", strings.Replace(images, "\x08", "\x0d", 1), labels, "", "found a file that is not IDX of unsigned bytes"},
		{"header", images[:7], labels, "", "found a file that is too short"},
		{"empty", "", labels, "", "found a file that is too short"},
		{"text", "hello, world", labels, "", "found a file that is not IDX"},
		{"gzip", zipped(images)[:30], labels, "", "found a gzip file that ends too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := pair(t, c.images, c.labels, "")
			_, _, err := readTable(context.Background(), admit(), mustParse(t, c.change+pictures), path, Options{})
			if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), c.want) || strings.Contains(strings.ReplaceAll(err.Error(), filepath.Dir(path), ""), "201") {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	s := mustParse(t, pictures)
	if _, _, err := readTable(context.Background(), admit(), s, writeFile(t, "train-images-idx3-ubyte", images), Options{}); err == nil || !strings.Contains(err.Error(), "found no labels beside the images") {
		t.Error(err)
	}
	if _, _, err := readTable(context.Background(), admit(), mustParse(t, small), writeFile(t, "a.csv", ""), Options{Labels: "l"}); err == nil || !strings.Contains(err.Error(), "l: found a file of labels; expected none, since format.kind is csv") {
		t.Error(err)
	}
	// A dropped row keeps its place.
	tab, stats, err := readTable(context.Background(), admit(), mustParse(t, "on_bad_row: drop\n"+pictures), pair(t, images, idx(2, nil, 9, 3), ""), Options{Rows: 2, KeepBad: true})
	if err != nil || stats.Dropped != 1 || !tab.Blocks[0].Drop[0] || tab.Blocks[0].Drop[1] || tab.Blocks[0].Y[1] != 1 {
		t.Errorf("%+v %v", stats, err)
	}
}

// TestImageSkeleton: the shape comes from the header, and the rest from a person.
func TestImageSkeleton(t *testing.T) {
	path := writeFile(t, "train-images-idx3-ubyte.gz", zipped(idx(3, []int{28, 28}, 17, 17, 17)))
	b, err := Skeleton(context.Background(), path, "")
	if err != nil || !strings.Contains(string(b), "shape: [28, 28]") || !bytes.Contains(b, []byte(`dataset: "train-images-idx3-ubyte"`)) {
		t.Fatalf("%v\n%s", err, b)
	}
	if _, err := schema.Parse("s", b); err == nil {
		t.Error("a skeleton that nobody filled in is a schema")
	}
	full := strings.Replace(strings.Replace(string(b), "rows: ", "rows: 3 ", 1), "classes: ", `classes: ["0", "1"] `, 1)
	if s, err := schema.Parse("s", []byte(full)); err != nil || s.Dim() != 785 {
		t.Error(err)
	}
}

// TestMNIST reads the real files: counts from the publisher's description.
func TestMNIST(t *testing.T) {
	race.Skip(t)
	dir := filepath.Join(needs.Data(t), "mnist")
	s := mustParse(t, strings.NewReplacer("rows: 3", "rows: 60000", "[2, 3]", "[28, 28]", `["7", "3"]`, `["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]`).Replace(pictures))
	tab, _, err := readTable(context.Background(), admit(), s, filepath.Join(dir, "train-images-idx3-ubyte.gz"), Options{Rows: 60000})
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, 10)
	for _, b := range tab.Blocks {
		for _, y := range b.Y {
			counts[int(y)]++
		}
	}
	if d := cmp.Diff([]int{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}, counts); d != "" {
		t.Error(d)
	}
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte(idx(2, []int{2, 3}, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6)), []byte(idx(2, nil, 3, 7)))
	f.Add([]byte(zipped(idx(1, []int{2, 3}, 1, 2, 3, 4, 5, 6))), []byte(idx(1, nil, 9)))
	f.Add([]byte(idx(1<<31, []int{2, 3})), []byte(idx(1<<31, nil)))
	s, err := schema.Parse("s", []byte(pictures))
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	images, labels := filepath.Join(dir, "i"), filepath.Join(dir, "l")
	f.Fuzz(func(t *testing.T, i, l []byte) {
		if err := errors.Join(os.WriteFile(images, i, 0o600), os.WriteFile(labels, l, 0o600)); err != nil {
			t.Fatal(err)
		}
		tab, _, err := readTable(context.Background(), admit(), s, images, Options{Labels: labels})
		if err != nil {
			if !errors.As(err, new(*config.Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		checkTable(t, tab)
	})
}

// Loading images; see [BenchmarkReadAdult] for CSV.
func BenchmarkReadMNIST(b *testing.B) {
	path := filepath.Join(needs.Data(b), "mnist", "t10k-images-idx3-ubyte.gz")
	s := mustParse(b, strings.NewReplacer("rows: 3", "rows: 10000", "[2, 3]", "[28, 28]", `["7", "3"]`, `["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]`).Replace(pictures))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := readTable(context.Background(), admit(), s, path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
