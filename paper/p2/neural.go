package p2

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/compare"
)

//go:embed mnist.yaml
var mnistSchema string

var mnist = dataset{"mnist", mnistSchema, []string{"mnist/train-images-idx3-ubyte.gz"}, 60000}

// mnistTest are its test images; the labels are found by their usual names.
const mnistTest = "mnist/t10k-images-idx3-ubyte.gz"

// A Network is one of P2 §5.7, as a spec writes it.
type Network struct{ Name, Model, Layers string }

// Neural is the part of P2 §5.7 to run; nothing without networks.
type Neural struct {
	Networks []Network
	Epsilon  []float64 // at the longest training
	Epochs   []float64 // at the middle ε
	Seeds    int
}

// The networks of P2 on MNIST. The windows of its convolutions are not in the paper; 5×5 and 2×2 are those of LeNet, which has its channels.
var (
	wide   = Network{"784-1000-10", "mlp", "[1000 relu]"}
	deep   = Network{"784-256-256-10", "mlp", "[256 relu, 256 relu]"}
	images = Network{"CNN 6-16-256-128", "cnn", "[conv 6 5x5 pad 2 relu, max 2 stride 2, conv 16 5x5 relu, max 2 stride 2, 256 relu, 128 relu]"}
)

// batchShare is q of P2's networks, one in so many.
const batchShare = 200

// neuralLines are the methods of Figure 5: with P2's numbers where it gives them, and with Sotto's defaults.
func neuralLines(steps int) []variant {
	common := []string{"batch", number(float64(mnist.rows / batchShare)), "steps", number(float64(steps))}
	published := slices.Concat(common, []string{"clip", "3"})
	return []variant{
		{blsgd, "blsgd", slices.Concat(published, []string{"fall", "3", "armijo", "0.001", "shrink", "0.8"})},
		{sgd, "sgd", slices.Concat(published, []string{"rate", "0.2"})},
		{adam, "adam", slices.Concat(published, []string{"rate", "0.001", "correction", "none", "schedule", "constant"})},
		{blsgd + own, "blsgd", common},
		{sgd + own, "sgd", common},
		{adam + own, "adam", common},
	}
}

const (
	adam = "DP-Adam"
)

func steps(epochs float64) int { return int(math.Round(epochs * batchShare)) }

// middle is the ε at which trainings of all lengths are shown.
func (n Neural) middle() float64 { return n.Epsilon[len(n.Epsilon)/2] }

func (n Neural) longest() float64 { return n.Epochs[len(n.Epochs)-1] }

// neural runs the networks: every ε at the longest training, and the middle one at all lengths.
func (x *experiment) neural(ctx context.Context, n Neural) (*networks, error) {
	one := *x
	one.size.Folds, one.size.Split = 0, 0
	var tables []run.TableSpec
	for _, net := range n.Networks {
		t := x.table(mnist, net.Model)
		t.Name, t.Test = net.Name, filepath.Join(x.Data, mnistTest)
		t.Model = append(t.Model, set("layers", net.Layers))
		tables = append(tables, t)
	}
	r := &networks{Neural: n, cells: map[[4]string]*compare.Cell{}}
	for _, epochs := range n.Epochs {
		at := []float64{n.middle()}
		if epochs == n.longest() {
			at = n.Epsilon
		}
		p, err := one.plan(part{tables: tables, variants: neuralLines(steps(epochs)), epsilon: words(at), seeds: n.Seeds})
		if err != nil {
			return nil, err
		}
		if err := one.run(ctx, "networks-"+number(epochs), p); err != nil {
			return nil, err
		}
		for _, c := range p.Cells {
			r.cells[[4]string{c.Table, c.Method, c.Epsilon, number(epochs)}] = c
		}
	}
	x.done = one.done
	return r, nil
}

// trainings is the number of trainings that neural does.
func (n Neural) trainings() int {
	return len(n.Networks) * len(neuralLines(1)) * n.Seeds * (len(n.Epsilon) + len(n.Epochs) - 1)
}

// networks are the figures of the networks.
type networks struct {
	Neural
	cells map[[4]string]*compare.Cell // by network, method, ε and epochs
}

func (r *networks) accuracy(network, method string, epsilon, epochs float64) (float64, bool) {
	c := r.cells[[4]string{network, method, number(epsilon), number(epochs)}]
	if c == nil || c.Score().N == 0 {
		return 0, false // refused, or diverged
	}
	return mean(c, accuracyAxis), true
}

// figure is Figure 5: accuracy by ε, and by epochs.
func (r *networks) figure() paper.Figure {
	f := paper.Figure{File: "figure5", Title: "Figure 5: networks", Note: fmt.Sprintf("MNIST, its own test images, q = 1/%d, δ = 1e-8; by ε after %s epochs, and by epochs, each a training of as many epochs, at ε = %s",
		batchShare, number(r.longest()), number(r.middle()))}
	f.CSV = paper.NewCSV("network,method,epsilon,epochs,accuracy_mean")
	for _, net := range r.Networks {
		byEpsilon := chart.Plot{ID: fmt.Sprintf("f5-%d", len(f.Plots)), Title: net.Name + " by ε", Desc: "A line for each method", XLabel: "ε", YLabel: accuracyAxis, LogX: true, Tight: true}
		byEpochs := chart.Plot{ID: fmt.Sprintf("f5-%d", len(f.Plots)+1), Title: net.Name + " by epochs", Desc: "A line for each method", XLabel: "epochs", YLabel: accuracyAxis, Tight: true}
		for _, v := range neuralLines(1) {
			trace := func(values []float64, at func(v float64) (epsilon, epochs float64)) chart.Line {
				return paper.Line(v.label, values, func(value float64) (x, y float64, ok bool) {
					epsilon, epochs := at(value)
					if y, ok = r.accuracy(net.Name, v.label, epsilon, epochs); ok {
						f.CSV.Add(net.Name, strconv.Quote(v.label), epsilon, epochs, y)
					}
					return value, y, ok
				})
			}
			byEpsilon.Lines = append(byEpsilon.Lines, trace(r.Epsilon, func(e float64) (float64, float64) { return e, r.longest() }))
			byEpochs.Lines = append(byEpochs.Lines, trace(r.Epochs, func(k float64) (float64, float64) { return r.middle(), k }))
		}
		f.Plots = append(f.Plots, byEpsilon, byEpochs)
	}
	return f
}

// claims checks what P2 §5.7 says of networks.
func (r *networks) claims(all *paper.Claims) {
	compared := func(epochs float64) (ahead, close bool, found string) {
		var each []string
		ahead, close = true, true
		for _, net := range r.Networks {
			var a [3]float64
			for i, m := range []string{blsgd, sgd, adam} {
				a[i], _ = r.accuracy(net.Name, m, r.middle(), epochs)
			}
			ahead = ahead && a[0] > max(a[1], a[2])
			close = close && math.Abs(a[0]-max(a[1], a[2])) < 1
			each = append(each, fmt.Sprintf("%s: DP-BLSGD %.2f, DP-SGD %.2f, DP-Adam %.2f", net.Name, a[0], a[1], a[2]))
		}
		return ahead, close, strings.Join(each, "; ")
	}
	first, last := r.Epochs[0], r.longest()
	ahead, _, found := compared(first)
	all.Add("§5.7", "networks-faster", fmt.Sprintf("on networks DP-BLSGD reaches a high accuracy in fewer iterations: ahead of DP-SGD and DP-Adam after %s epochs", number(first)), ahead, "%s", found)
	_, close, found := compared(last)
	all.Add("§5.7", "networks-alike-in-the-end", fmt.Sprintf("and ends within a point of the better of them, after %s epochs", number(last)), close, "%s", found)
}
