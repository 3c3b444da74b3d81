package p4

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/noise"
)

// unit is what every stored feature is a whole number of.
const unit = 0x1p-20

// builder makes a table of rows of norm at most 1.
func builder(dim int) *paper.Builder { return paper.NewBuilder(dim, 1, unit) }

// add adds a row, divided by its norm where that is above 1.
func add(b *paper.Builder, x []float64, positive bool) {
	b.Add(nil, x, 1/math.Max(1, paper.Norm(x)), positive)
}

// The groups of columns of Covertype.
const (
	numeric    = 10
	wilderness = 4
	soil       = 40
	coverDim   = numeric + wilderness + soil
)

// synthetic is a table in the shape of Covertype's two largest classes: 10 numeric columns that go
// together, and two groups of which each row has one, with shares as uneven as those of the real ones. Labels are those of a planted linear
// model, right for three rows in four or so.
func synthetic(rows int) *data.Table {
	src := noise.NewSeeded(seed, "covtype", 0)
	var mean, load, weight [coverDim]float64
	for j := range coverDim {
		weight[j] = paper.Normal(src)
		if j < numeric {
			mean[j], load[j] = paper.Normal(src)/4, src.Float64()
			weight[j] *= 2
		}
	}
	// The shares of the wilderness areas are Covertype's.
	areas, soils := []float64{0.449, 0.051, 0.436, 0.064}, make([]float64, soil)
	total := 0.0
	for k := range soils {
		soils[k] = math.Pow(0.88, float64(k))
		total += soils[k]
	}
	for k := range soils {
		soils[k] /= total
	}
	b := builder(coverDim)
	x := make([]float64, coverDim)
	for range rows {
		clear(x)
		common := paper.Normal(src)
		for j := range numeric {
			x[j] = math.Max(-1, math.Min(1, mean[j]+0.35*(load[j]*common+math.Sqrt(1-load[j]*load[j])*paper.Normal(src))))
		}
		x[numeric+pick(src, areas)] = 1
		x[numeric+wilderness+pick(src, soils)] = 1
		z := 0.0
		for j, v := range x {
			z += weight[j] * (v - mean[j])
		}
		add(b, x, src.Float64() < 1/(1+math.Exp(-z)))
	}
	return b.Table
}

// pick is a number drawn by shares that add up to 1.
func pick(src *noise.Source, shares []float64) int {
	u := src.Float64()
	for k, s := range shares {
		if u -= s; u < 0 {
			return k
		}
	}
	return len(shares) - 1
}

// Ranges of Covertype's numeric columns, as its description states them.
var coverRange = [numeric][2]float64{{1859, 3858}, {0, 360}, {0, 66}, {0, 1397}, {-173, 601}, {0, 7117}, {0, 254}, {0, 254}, {0, 254}, {0, 7173}}

// lines calls f with the lines of a gzipped text.
func lines(path string, f func(number int, line string) error) error {
	file, err := readfile.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := bufio.NewScanner(z)
	for n := 1; s.Scan(); n++ {
		if err := f(n, s.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// covertype reads a table of Covertype's form and keeps classes 1 and 2, as P4 does, the numeric columns
// on [−1, 1].
func covertype(path string) (*data.Table, error) {
	b := builder(coverDim)
	x := make([]float64, coverDim)
	err := lines(path, func(n int, line string) error {
		if n == 1 {
			return nil
		}
		cells := strings.Split(line, ",")
		if len(cells) != coverDim+1 {
			return fmt.Errorf("found %d columns; allowed are %d", len(cells), coverDim+1)
		}
		for j := range x {
			v, err := strconv.ParseFloat(cells[j], 64)
			if err != nil {
				return fmt.Errorf("column %d: found no number", j+1)
			}
			if j < numeric {
				r := coverRange[j]
				v = 2*(v-r[0])/(r[1]-r[0]) - 1
			}
			x[j] = v
		}
		if class := cells[coverDim]; class == "1" || class == "2" {
			add(b, x, class == "1")
		}
		return nil
	})
	return b.Table, err
}

// ijcnn reads LIBSVM's ijcnn1, whose values are on [−1.4, 1.4].
func ijcnn(path string) (*data.Table, error) {
	const dim = 22
	b := builder(dim)
	x := make([]float64, dim)
	err := lines(path, func(n int, line string) error {
		clear(x)
		cells := strings.Fields(line)
		for _, c := range cells[1:] {
			index, value, _ := strings.Cut(c, ":")
			j, err1 := strconv.Atoi(index)
			v, err2 := strconv.ParseFloat(value, 64)
			if err1 != nil || err2 != nil || j < 1 || j > dim {
				return fmt.Errorf("found no index:value with an index of 1 to %d", dim)
			}
			x[j-1] = v
		}
		add(b, x, cells[0] == "1")
		return nil
	})
	return b.Table, err
}
