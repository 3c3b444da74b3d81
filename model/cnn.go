package model

import (
	"fmt"
	"strings"
)

// newCNN is a network on images: convolutions, pooling and normalization, then dense layers.
func newCNN(opt Options) (Model, error) {
	if len(opt.Layers) == 0 {
		return nil, fmt.Errorf("model: cnn needs layers, as in [conv 16 8x8 stride 2 pad 3 relu, max 2 stride 1, 32 relu]")
	}
	at, err := imageShape(opt.Shape, opt.Dim)
	if err != nil {
		return nil, err
	}
	var layers []layer
	for _, text := range opt.Layers {
		l, err := parseLayer(text, at)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l...)
		if at = l[len(l)-1].out(); at.size() > maxNumbers {
			return nil, fmt.Errorf("model: layers: %q makes %d numbers of a row; allowed are up to %d", text, at.size(), maxNumbers)
		}
	}
	m, err := newNetwork("cnn", opt, layers)
	if err != nil {
		return nil, err
	}
	n := m.(*network)
	n.facts.Tile = n.tile()
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
	if s.height < 1 || s.width < 1 || s.channels < 1 || s.height > dim || s.width > dim || s.channels > dim || s.size() != dim {
		return s, fmt.Errorf("model: cnn takes images: found the shape %v for %d features per row; allowed is rows, columns and, for several numbers a pixel, channels, whose product is the features, and no intercept", dims, dim)
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
		return nil, fmt.Errorf("model: layers: found %q: means over a batch make every record's gradient depend on the others, so that no clipping bounds what one record does; allowed in its place is group, as in group 4", text)
	}
	return parseDense(text, image.size(), false)
}
