package scatter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
)

// A value is a coefficient of the image of pattern.
type value struct {
	m, y, x int
	want    float64
}

// references are from Kymatio 0.3.0, Scattering2D(J=2, shape, L=8) of its NumPy backend, of pattern over 255.
var references = []struct {
	height, width int
	values        []value
}{
	{28, 28, []value{
		{0, 0, 0, 0.15009102}, {1, 0, 0, 0.017630569}, {5, 1, 1, 0.051933732},
		{8, 0, 1, 0.017976317}, {9, 1, 0, 0.028355988}, {12, 1, 1, 0.037497915},
		{16, 0, 0, 0.027074812}, {17, 0, 0, 0.0024040498}, {20, 1, 1, 0.0037705592},
		{44, 1, 0, 0.0087878496}, {63, 0, 1, 0.0043999822}, {80, 1, 1, 0.001847228},
		{0, 3, 4, 0.4253096}, {3, 5, 2, 0.041766987}, {15, 6, 4, 0.011997311},
		{31, 2, 3, 0.0022575069}, {50, 4, 4, 0.0036467247}, {77, 6, 3, 0.0032075207},
	}},
	{30, 21, []value{
		{0, 0, 0, 0.19522506}, {1, 0, 0, 0.021326068}, {5, 1, 1, 0.060635607},
		{8, 0, 1, 0.02181428}, {9, 1, 0, 0.025807609}, {12, 1, 1, 0.022675471},
		{16, 0, 0, 0.020140548}, {17, 0, 0, 0.0032097476}, {20, 1, 1, 0.0031457189},
		{44, 1, 0, 0.0059799921}, {63, 0, 1, 0.0019589081}, {80, 1, 1, 0.0027232811},
		{0, 3, 4, 0.40841061}, {3, 5, 2, 0.052079858}, {15, 6, 4, 0.013409305},
		{31, 2, 3, 0.0019533667}, {50, 4, 4, 0.0032719996}, {77, 6, 3, 0.0019395064},
	}},
	{8, 8, []value{
		{0, 0, 0, 0.149411}, {1, 0, 0, 0.016665495}, {5, 1, 1, 0.056878984},
		{8, 0, 1, 0.01929176}, {9, 1, 0, 0.025203733}, {12, 1, 1, 0.052912146},
		{16, 0, 0, 0.031673705}, {17, 0, 0, 0.0024204951}, {20, 1, 1, 0.0036594383},
		{44, 1, 0, 0.0097911812}, {63, 0, 1, 0.0022903963}, {80, 1, 1, 0.0020767336},
	}},
}

// pattern is an image: row, column, channel.
func pattern(height, width, channels int) []byte {
	image := make([]byte, 0, height*width*channels)
	for y := range height {
		for x := range width {
			for c := range channels {
				image = append(image, byte(y*y*7+x*13+x*y*3+c*31))
			}
		}
	}
	return image
}

// plain returns the maps of an image of one channel before they are normalized.
func (t *Transform) plain(image []byte) []float64 {
	ws := &Workspace{maps: make([]float64, Maps*t.down*t.across), plane: make([]float32, len(image))}
	for i, v := range image {
		ws.plane[i] = float32(v) / 255
	}
	t.scatter(ws)
	return ws.maps
}

// Kymatio takes 3.1415 for π in the norm of each filter.
const kymatioPi = 3.1415 / math.Pi

func TestReferenceValues(t *testing.T) {
	for _, r := range references {
		tr := New(r.height, r.width, 1)
		maps := tr.plain(pattern(r.height, r.width, 1))
		for _, v := range r.values {
			filters := 1
			if v.m > 0 {
				filters++
			}
			if v.m > 2*Angles {
				filters++
			}
			got, want := maps[(v.m*tr.down+v.y)*tr.across+v.x], v.want*math.Pow(kymatioPi, float64(filters))
			if math.Abs(got-want) > 2e-7+2e-6*want {
				t.Errorf("%dx%d: map %d at %d, %d: %.8g, want %.8g", r.height, r.width, v.m, v.y, v.x, got, want)
			}
		}
	}
}

// A constant image has no waves: its maps are the constant, and zeros.
func TestConstantImage(t *testing.T) {
	tr := New(16, 12, 1)
	image := make([]byte, 16*12)
	for i := range image {
		image[i] = 204
	}
	size := tr.down * tr.across
	for i, v := range tr.plain(image) {
		want := 0.0
		if i < size {
			want = 0.8
		}
		if math.Abs(v-want) > 1e-6 {
			t.Fatalf("map %d: %g, want %g", i/size, v, want)
		}
	}
}

// A shift of the image by four pixels shifts the maps by one place, away from the padding.
func TestShift(t *testing.T) {
	const side = 64
	image, moved := make([]byte, side*side), make([]byte, side*side)
	for y := 24; y < 36; y++ {
		for x := 24; x < 36; x++ {
			v := byte(40 + (y*y+3*x*y)%200)
			image[y*side+x], moved[(y+4)*side+x-4] = v, v
		}
	}
	tr := New(side, side, 1)
	a, b := tr.plain(image), tr.plain(moved)
	for m := range Maps {
		for y := 1; y < 14; y++ {
			for x := 2; x < 15; x++ {
				if p, q := a[(m*16+y)*16+x], b[(m*16+y+1)*16+x-1]; math.Abs(p-q) > 1e-6 {
					t.Fatalf("map %d at %d, %d: %g, shifted %g", m, y, x, p, q)
				}
			}
		}
	}
}

// A quarter turn of the image turns the maps, and moves each angle by four of eight. The places of a map are not those of the
// turned one, so their means are compared.
func TestQuarterTurn(t *testing.T) {
	const side = 64
	image, turned := make([]byte, side*side), make([]byte, side*side)
	for y := 24; y < 36; y++ {
		for x := 22; x < 40; x++ {
			image[y*side+x] = byte(40 + (y*y+3*x*y)%200)
			turned[x*side+side-1-y] = image[y*side+x]
		}
	}
	tr := New(side, side, 1)
	a, b := tr.plain(image), tr.plain(turned)
	opposite := func(a int) int { return (a + Angles/2) % Angles }
	turn := func(m int) int {
		switch {
		case m == 0:
			return 0
		case m <= 2*Angles:
			return 1 + (m-1)/Angles*Angles + opposite((m-1)%Angles)
		}
		m -= 1 + 2*Angles
		return 1 + 2*Angles + opposite(m/Angles)*Angles + opposite(m%Angles)
	}
	mean := func(v []float64, m int) (s float64) {
		for _, x := range v[m*256 : (m+1)*256] {
			s += x / 256
		}
		return s
	}
	for m := range Maps {
		if p, q := mean(a, m), mean(b, turn(m)); math.Abs(p-q) > 0.02*p { // sampling alone keeps them apart
			t.Errorf("map %d: mean %g, of the turned image %g", m, p, q)
		}
	}
}

// Coefficients depend on the image alone: not on images before it, and each channel by itself.
func TestImageAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tr, ws := New(12, 10, 3), new(Workspace)
	all := Shape(12, 10, 3)
	size := all[0] * all[1] * all[2]
	image := pattern(12, 10, 3)
	want, got := make([]float64, size), make([]float64, size)
	tr.Coefficients(want, image, ws)
	other := make([]byte, len(image))
	for range 3 {
		for i := range other {
			other[i] = byte(rng.IntN(256))
		}
		tr.Coefficients(got, other, ws)
		tr.Coefficients(got, image, ws)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("coefficient %d: %g, and after another image %g", i, want[i], got[i])
			}
		}
	}
	one := New(12, 10, 1)
	alone := make([]float64, size/3)
	channel := make([]byte, 12*10)
	for c := range 3 {
		for i := range channel {
			channel[i] = image[3*i+c]
		}
		one.Coefficients(alone, channel, ws)
		for i, v := range alone {
			if at := i/Maps*3*Maps + c*Maps + i%Maps; want[at] != v {
				t.Fatalf("channel %d, coefficient %d: %g, by itself %g", c, i, want[at], v)
			}
		}
	}
}

// TestSameBits: CI runs it with each set of kernels. Functions of the math package have other last bits on other processors.
func TestSameBits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the digest is that of amd64")
	}
	s := Shape(20, 13, 2)
	dst := make([]float64, s[0]*s[1]*s[2])
	New(20, 13, 2).Coefficients(dst, pattern(20, 13, 2), new(Workspace))
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, dst)
	if got, want := hex.EncodeToString(h.Sum(nil)), "8f9578ebfd13698db2ead039ae159028bb49c76405a97eafe50c3c465153f0c1"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestNormalize(t *testing.T) {
	v := []float64{3, 5, 7, 9, 2, 2, 2, 2}
	normalize(v, 4)
	sum, squares := 0.0, 0.0
	for _, x := range v[:4] {
		sum += x
		squares += x * x
	}
	if math.Abs(sum) > 1e-12 || math.Abs(squares-4*5/(5+1e-5)) > 1e-9 {
		t.Errorf("sum %g, squares %g", sum, squares)
	}
	for _, x := range v[4:] {
		if x != 0 {
			t.Errorf("a constant group has %g", x)
		}
	}
}

func BenchmarkCoefficients(b *testing.B) {
	for _, side := range []int{28, 32, 64} {
		b.Run(strconv.Itoa(side), func(b *testing.B) {
			tr, ws := New(side, side, 1), new(Workspace)
			image, s := pattern(side, side, 1), Shape(side, side, 1)
			dst := make([]float64, s[0]*s[1]*s[2])
			for b.Loop() {
				tr.Coefficients(dst, image, ws)
			}
		})
	}
}
