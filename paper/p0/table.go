package p0

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
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

// MNIST's images. P0 does not say how it scales them: its clipping frequencies are those of standardized pixels.
const mnistSchema = `
dataset: mnist
rows: 60000
%s
intercept: false
format: {kind: idx}
image: {shape: [28, 28], %s}
columns:
  - {name: digit, type: label, classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]}
`

// How MNIST's images are scaled, by public numbers: standardized as usual, with a norm of 28 or so; with pixels in
// [0, 1] and a norm of 9 or so; with pixels in [−1, 1] and a norm of 25 or so.
var (
	standard = fmt.Sprintf(mnistSchema, "row_norm: 79\nrow_scaling: project", "center: 33, scale: 79")
	unit     = fmt.Sprintf(mnistSchema, "row_norm: 28\nrow_scaling: project", "center: 0, scale: 255")
	around0  = fmt.Sprintf(mnistSchema, "row_norm: 28\nrow_scaling: project", "center: 127, scale: 128")
)

// 512 features of CIFAR-10's images from a trained network, as the user brings them.
const cifarSchema = `
dataset: cifar10
rows: 50000
row_norm: 100
row_scaling: project
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

// mnist reads MNIST under a schema.
func mnist(ctx context.Context, size Size, folder, schema string) (*task, error) {
	t := &task{name: "MNIST", rows: 60_000, epochs: 10, clips: []float64{1, 5, 10, 20, 40}, rates: size.Rates}
	return t, t.read(ctx, size, schema, filepath.Join(folder, mnistTrain), filepath.Join(folder, mnistTest))
}

// tables reads the tasks of a folder; CIFAR-10's features are left out where they are not there.
func tables(ctx context.Context, size Size, folder string) ([]*task, error) {
	mnist, err := mnist(ctx, size, folder, standard)
	if err != nil {
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

// The synthetic regression of Appendix C.1: 10,000 rows of 256 standard normal features and a true linear model. P0
// adds normal noise to gradients; here it is on the labels, from where it gets into each gradient.
const (
	synthRows  = 10_000
	synthDim   = 256
	synthNoise = 0.25
)

// synthetic has rows of norm 16 or so; that a norm is above 20 is less likely than 10⁻⁹.
func synthetic(ctx context.Context, size Size) (*task, error) {
	src := noise.NewSeeded(seed, "synthetic", 0)
	truth := make([]float64, synthDim)
	for j := range truth {
		truth[j] = paper.Normal(src) / math.Sqrt(synthDim)
	}
	schema := fmt.Sprintf("dataset: synthetic\nrows: %d\nrow_norm: 20\nrow_scaling: project\nintercept: false\nformat: {kind: libsvm}\nfeatures: %d\nmin: -8\nmax: 8\ncolumns: [{name: y, type: label, min: -8, max: 8}]\n", synthRows, synthDim)
	var text strings.Builder
	for range min(synthRows, size.Rows) {
		var line strings.Builder
		y := 0.0
		for j := range synthDim {
			v := paper.Normal(src)
			y += v * truth[j]
			fmt.Fprintf(&line, " %d:%.7g", j+1, v)
		}
		fmt.Fprintf(&text, "%.7g%s\n", y+synthNoise*paper.Normal(src), line.String())
	}
	table, err := paper.Synthetic(ctx, schema, text.String())
	if err != nil {
		return nil, err
	}
	return &task{name: "synthetic", train: table, sample: table, test: table, rows: synthRows, epochs: 10,
		clips: []float64{1, 5, 10, 20, 40}, rates: []float64{0.02}}, nil
}

// The models of the experiments.
const (
	linear  = "linear"
	network = "MLP" // 128 hidden units
)

// The settings of the ladder with other rows.
const (
	pixels = "pixels in [0, 1]"
	signed = "pixels in [−1, 1]"
)

// scalings are how MNIST's images are scaled in them.
var scalings = map[string]string{pixels: unit, signed: around0}

// problem is the task's rows under a model: P0's network has no biases and starts as PyTorch's layers.
func (t *task) problem(name string) (*paper.Problem, error) {
	kind, opt := "softmax", model.Options{Dim: t.train.Dim, Classes: t.train.Classes, NormBound: t.train.NormBound}
	switch {
	case t.train.Classes == 0:
		kind = "linear"
	case name == network:
		kind, opt.Config = "mlp", model.MLP{Layers: []string{"128 relu"}, BiasFree: true, Start: "pytorch"}
	}
	m, err := model.New(kind, opt)
	if err != nil {
		return nil, err
	}
	return paper.Under(t.train, m, privacy.AddRemove), nil
}
