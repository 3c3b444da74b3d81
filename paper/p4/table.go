package p4

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/noise"
)

// unit is what every stored feature is a whole number of.
const unit = 0x1p-20

// The groups of columns of Covertype.
const (
	numeric    = 10
	wilderness = 4
	soil       = 40
	coverDim   = numeric + wilderness + soil
)

// synthetic is a table in the shape of Covertype's two largest classes: 10 numeric columns that go together, and two
// groups of which each row has one, with shares as uneven as those of the real ones. Labels are those of a planted
// linear model, right for three rows in four or so.
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
	b := paper.NewBuilder(coverDim, 1, unit)
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
		b.Add(nil, x, 1/math.Max(1, paper.Norm(x)), src.Float64() < 1/(1+math.Exp(-z)))
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
var coverRange = [numeric][2]float64{{1859, 3858}, {0, 360}, {0, 66}, {0, 1397}, {-173, 601}, {0, 7117}, {0, 254},
	{0, 254}, {0, 254}, {0, 7173}}

// coverColumns are the names of its columns, without the class.
func coverColumns() []string {
	names := strings.Fields("Elevation Aspect Slope Horizontal_Distance_To_Hydrology Vertical_Distance_To_Hydrology Horizontal_Distance_To_Roadways " +
		"Hillshade_9am Hillshade_Noon Hillshade_3pm Horizontal_Distance_To_Fire_Points")
	for k := range wilderness {
		names = append(names, fmt.Sprintf("Wilderness_Area%d", k+1))
	}
	for k := range soil {
		names = append(names, fmt.Sprintf("Soil_Type%d", k+1))
	}
	return names
}

// covertype reads a table of Covertype's form and keeps classes 1 and 2, as P4 does, the numeric columns
// on [−1, 1].
func covertype(ctx context.Context, path string) (*data.Table, error) {
	var schema strings.Builder
	schema.WriteString("dataset: covtype\nrow_scaling: project\nintercept: false\ncolumns:\n")
	for j, name := range coverColumns() {
		r := [2]float64{-1, 1} // 0 and 1 stay what they are
		if j < numeric {
			r = coverRange[j]
		}
		fmt.Fprintf(&schema, "- {name: %s, type: numeric, min: %v, max: %v}\n", name, r[0], r[1])
	}
	schema.WriteString("- {name: Cover_Type, type: label, classes: ['2', '1', '3', '4', '5', '6', '7']}\n")
	t, err := paper.Read(ctx, schema.String(), path)
	if err != nil {
		return nil, err
	}
	var largest []bool // whether a row is of class 1 or 2
	for _, b := range t.Blocks {
		for _, y := range b.Y {
			largest = append(largest, y < 2)
		}
	}
	t = data.Subset([]*data.Table{t}, func(row int) bool { return largest[row] })
	t.Classes = 2
	return t, nil
}

// ijcnn reads LIBSVM's ijcnn1, whose values are on [−1.4, 1.4].
func ijcnn(ctx context.Context, path string) (*data.Table, error) {
	const schema = "dataset: ijcnn1\nformat: {kind: libsvm}\nfeatures: 22\nmin: -1.4\nmax: 1.4\nintercept: false\ncolumns: [{name: y, type: label, classes: ['-1', '1']}]\n"
	t, err := paper.Read(ctx, schema, path)
	if err != nil {
		return nil, err
	}
	return t.Dense(), nil
}
