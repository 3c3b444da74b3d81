package p0

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// A task is a table with the settings of P0's experiments on it.
type task struct {
	name        string
	train, test *data.Table
	sample      *data.Table // of train, to score on
	rows        int         // of the paper's table: its rate and its noise are those of as many
	epochs      int         // of the paper
	clips       []float64   // of Figure 1
	rates       []float64   // to choose the best from
}

// MNIST's images, standardized as usual, by public round numbers, and each brought to the norm 28, which is the mean norm
// of such images: value clipping knows only a public bound on the norm of a row.
const mnistSchema = `
dataset: mnist
rows: 60000
row_norm: 28
row_scaling: scale
intercept: false
format: {kind: idx}
image: {shape: [28, 28], center: 33, scale: 79}
columns:
  - {name: digit, type: label, classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]}
`

// 512 features of CIFAR-10's images from a trained network, as the user brings them.
const cifarSchema = `
dataset: cifar10
rows: 50000
row_norm: 10
row_scaling: scale
intercept: false
format: {kind: libsvm}
features: 512
min: -1000
max: 1000
columns:
  - {name: class, type: label, classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]}
`

// The files of a folder, MNIST's as published.
const (
	mnistTrain = "mnist/train-images-idx3-ubyte.gz"
	mnistTest  = "mnist/t10k-images-idx3-ubyte.gz"
	cifarTrain = "cifar10-features/train.svm.gz"
	cifarTest  = "cifar10-features/test.svm.gz"
)

// tables reads the tasks of a folder; CIFAR-10's features are left out where they are not there.
func tables(ctx context.Context, size Size, folder string) ([]*task, error) {
	mnist := &task{name: "MNIST", rows: 60_000, epochs: 10, clips: []float64{1, 5, 10, 20, 40}, rates: size.Rates}
	if err := mnist.read(ctx, size, mnistSchema, filepath.Join(folder, mnistTrain), filepath.Join(folder, mnistTest)); err != nil {
		return nil, err
	}
	tasks := []*task{mnist}
	train := filepath.Join(folder, cifarTrain)
	if _, err := os.Stat(train); err == nil {
		cifar := &task{name: "CIFAR-10", rows: 50_000, epochs: 5, clips: []float64{0.1, 0.2, 0.4, 1}, rates: []float64{0.1}}
		if err := cifar.read(ctx, size, cifarSchema, train, filepath.Join(folder, cifarTest)); err != nil {
			return nil, err
		}
		tasks = append(tasks, cifar)
	}
	return tasks, nil
}

func (t *task) read(ctx context.Context, size Size, schema, train, test string) error {
	part := func(table *data.Table, n int) *data.Table {
		return data.Subset([]*data.Table{table}, func(row int) bool { return row < n })
	}
	all, err := paper.Read(ctx, schema, train)
	if err != nil {
		return err
	}
	t.train, t.sample = part(all, size.Rows), part(all, min(size.Rows, size.Scored))
	if all, err = paper.Read(ctx, schema, test); err != nil {
		return err
	}
	t.test = part(all, size.Scored)
	return nil
}

// The synthetic regression of Appendix C.1: 10,000 rows of 256 standard normal features and a true linear model. P0 adds
// normal noise to gradients; here it is on the labels, from where it gets into each gradient.
const (
	synthRows  = 10_000
	synthDim   = 256
	synthNoise = 0.25
)

// synthetic has rows of norm √256.
func synthetic(ctx context.Context, size Size) (*task, error) {
	src := noise.NewSeeded(seed, "synthetic", 0)
	truth := make([]float64, synthDim)
	for j := range truth {
		truth[j] = paper.Normal(src) / math.Sqrt(synthDim)
	}
	schema := fmt.Sprintf("dataset: synthetic\nrows: %d\nrow_norm: 16\nrow_scaling: scale\nintercept: false\nformat: {kind: libsvm}\nfeatures: %d\nmin: -8\nmax: 8\ncolumns: [{name: y, type: label, min: -8, max: 8}]\n", synthRows, synthDim)
	var text strings.Builder
	for range min(synthRows, size.Rows) {
		var line strings.Builder
		y, square := 0.0, 0.0
		x := make([]float64, synthDim)
		for j := range x {
			x[j] = paper.Normal(src)
			square += x[j] * x[j]
		}
		for j := range x {
			v := x[j] * math.Sqrt(synthDim/square)
			y += v * truth[j]
			fmt.Fprintf(&line, " %d:%.7g", j+1, v)
		}
		fmt.Fprintf(&text, "%.7g%s\n", y+synthNoise*paper.Normal(src), line.String())
	}
	table, err := paper.Synthetic(ctx, schema, text.String())
	if err != nil {
		return nil, err
	}
	return &task{name: "synthetic", train: table, sample: table, test: table, rows: synthRows, epochs: 10, clips: []float64{1, 5, 10, 20, 40}, rates: []float64{0.02}}, nil
}

// The models of the experiments.
const (
	linear  = "linear"
	network = "MLP" // 128 hidden units
)

// problem is the task's rows under a model.
func (t *task) problem(name string) (*paper.Problem, error) {
	switch {
	case t.train.Classes == 0:
		return paper.NewProblem(t.train, "linear", privacy.AddRemove)
	case name == network:
		return paper.NewProblem(t.train, "mlp", privacy.AddRemove, "128 relu")
	}
	return paper.NewProblem(t.train, "softmax", privacy.AddRemove)
}
