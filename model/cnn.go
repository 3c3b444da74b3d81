package model

import (
	"fmt"
	"strings"
)

// CNN is the configuration of a network on images: convolutions, pooling and normalization, then dense layers.
type CNN struct {
	// The hidden layers, first to last: those of an mlp, and
	//
	//	conv 16 8x8 stride 2 pad 3 relu   16 filters; stride 1 and pad 0 may be left out
	//	max 2 stride 1, mean 2x2          pooling; without a stride windows lie side by side
	//	group 4 tanh                      normalization of groups of channels; linear may be left out
	Layers     []string `yaml:"layers" json:"layers,omitempty" type:"list of texts" default:"required" doc:"the hidden layers, first to last, as in [128 relu, 32 tanh]"`
	Compute    string   `yaml:"compute" json:"compute,omitempty" type:"text" default:"float32" values:"float32 float64" doc:"the number type for rows; sums are exact in either"`
	Start      string   `yaml:"start" json:"start,omitempty" file:"-" type:"text" default:"he" values:"he pytorch" doc:"initial parameters"`
	InputScale float64  `yaml:"input_scale" json:"input_scale,omitempty" type:"number above 0" default:"√d/R" doc:"what rows of d numbers and norm R are multiplied by first"`
	Shape      []int    `yaml:"shape" json:"shape,omitempty" type:"list of numbers" default:"the schema's image.shape" doc:"rows, columns and channels of the images"`
}

var cnnEntry = Entry{Name: "cnn", About: "network of convolutions, on images", Label: SomeClasses, Config: CNN{},
	Small: CNN{Layers: []string{"conv 3 2x2 tanh", "max 2 stride 1", "3 relu"}, Shape: []int{3, 3, 1}}, Net: true}

// Choose sets the input scale.
func (c CNN) Choose(opt Options) Config {
	c.InputScale = inputScale(c.InputScale, opt)
	return c
}

func (c CNN) New(opt Options) (Model, error) {
	own := netFields{c.Layers, c.Compute, c.Start, false, c.InputScale}
	if err := own.check("cnn", "conv 16 8x8 stride 2 pad 3 relu, max 2 stride 1, 32 relu", opt.NormBound); err != nil {
		return nil, err
	}
	dims := c.Shape
	if dims == nil {
		dims = opt.Shape
	}
	at, err := imageShape(dims, opt.Dim)
	if err != nil {
		return nil, err
	}
	var layers []layer
	for _, text := range c.Layers {
		l, err := parseLayer(text, at)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l...)
		if at = l[len(l)-1].out(); at.size() > maxNumbers {
			return nil, fmt.Errorf("model: layers: %q makes %d numbers of a row; at most %d fit", text, at.size(), maxNumbers)
		}
	}
	m, err := newNetwork("cnn", own, opt, layers)
	if err != nil {
		return nil, err
	}
	n := m.(*network)
	n.facts.Tile, n.shape = n.tile(), dims
	return n, nil
}

// tileRoom is the most numbers in a tile: more do not fit a core's own cache.
const tileRoom = 3 << 18

// tile is how many rows fit, with their activations, errors and explicit gradients.
func (m *network) tile() int {
	each := m.layers[0].in()
	for _, l := range m.layers {
		each += 2 * l.out().size()
		if _, ok := l.(*denseLayer); !ok {
			each += l.params()
		}
	}
	return min(256, max(8, tileRoom/each&^7))
}

// maxNumbers limits the numbers that a layer computes for a row.
const maxNumbers = 1 << 22

// imageShape is the shape of rows of dim numbers: rows and columns of pixels, and channels where there are several.
func imageShape(dims []int, dim int) (shape, error) {
	s := shape{channels: 1}
	if len(dims) == 3 {
		s.channels = dims[2]
	}
	if len(dims) == 2 || len(dims) == 3 {
		s.height, s.width = dims[0], dims[1]
	}
	if s.height < 1 || s.width < 1 || s.channels < 1 || s.height > dim || s.width > dim || s.channels > dim ||
		s.size() != dim {
		return s, fmt.Errorf("model: cnn takes images: found the shape %v for %d features per row; write rows, columns and, for several numbers a pixel, channels, whose product is the features, and no intercept", dims, dim)
	}
	return s, nil
}

// parseLayer reads one layer after rows of that shape.
func parseLayer(text string, image shape) ([]layer, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch word {
	case "conv":
		return parseConv(text, image)
	case "max", "mean":
		return parsePool(text, image)
	case "group":
		return parseGroupNorm(text, image)
	case "batch", "batchnorm", "batch_norm":
		return nil, fmt.Errorf("model: layers: found %q: means over a batch make every record's gradient depend on the others, so that no clipping bounds what one record does; use group instead, as in group 4", text)
	}
	return parseDense(text, image.size(), false)
}
