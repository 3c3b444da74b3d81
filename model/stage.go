package model

// A Stage is one step from an encoded row to a model's margins, for programs other than Sotto. Numbers of an image are
// in row order, with the channels of a pixel side by side.
type Stage struct {
	// Kind is "scale", every number times W[0]; "dense", x·W + B; "relu", "tanh" or "exp", of each number; "conv"; "max"
	// or "mean" of windows; or "group", a normalization to mean 0 and variance 1 over each group of channels, with 10⁻⁵
	// added to the variance, then W·x + B.
	Kind    string
	In, Out int       // dense: numbers before and after
	W       []float64 // dense: In×Out, row after row; conv: Out windows; group: one for each channel
	B       []float64 // one for each number after, filter or channel; nil: 0

	Image               [3]int // conv, max, mean, group: rows, columns and channels of what comes in
	Window, Stride, Pad [2]int // conv, max, mean: down and right; Pad on each side, with 0
	Groups              int    // group
}

// Staged is a model whose margins come from stages. Predict is a function of the margins: the
// last stage's number where Outputs is 1; (σ(−z), σ(z)) of one margin where it is 2; the softmax of
// Outputs margins otherwise.
type Staged interface {
	Model
	// Stages are the steps at w, from which they may take their numbers.
	Stages(w []float64) []Stage
}

func (m *glm) Stages(w []float64) []Stage {
	stages := []Stage{{Kind: "dense", In: m.features, Out: 1, W: w}}
	if m.offset != 0 {
		stages[0].B = []float64{m.offset}
	}
	if l, ok := m.link.(meaner); ok {
		stages = append(stages, l.stage())
	}
	return stages
}

func (m *softmax) Stages(w []float64) []Stage {
	columns := make([]float64, len(w)) // w has a row for each class
	for k := range m.classes {
		for j := range m.features {
			columns[j*m.classes+k] = w[k*m.features+j]
		}
	}
	return []Stage{{Kind: "dense", In: m.features, Out: m.classes, W: columns, B: m.offset}}
}

func (m *network) Stages(w []float64) []Stage {
	var stages []Stage
	if m.scale != 1 {
		stages = append(stages, Stage{Kind: "scale", W: []float64{m.scale}})
	}
	for i, l := range m.layers {
		stages = append(stages, stageOf(l, w[m.offset[i]:m.offset[i+1]]))
	}
	return stages
}

// stageOf is the stage of a layer with parameters w; without a kind for one that has none.
func stageOf(l layer, w []float64) Stage {
	switch l := l.(type) {
	case *denseLayer:
		weights := l.rows * l.cols
		s := Stage{Kind: "dense", In: l.rows, Out: l.cols, W: w[:weights]}
		if !l.bare {
			s.B = w[weights:]
		}
		return s
	case *activation:
		return Stage{Kind: l.name}
	case *conv:
		s, weights := l.stage("conv"), l.filters*l.taps()
		s.Out, s.W, s.B = l.filters, w[:weights], w[weights:]
		return s
	case *pool:
		if l.mean {
			return l.stage("mean")
		}
		return l.stage("max")
	case *groupNorm:
		scale := make([]float64, l.image.channels)
		for c := range scale {
			scale[c] = 1 + w[c]
		}
		return Stage{Kind: "group", Image: l.image.dims(), Groups: l.groups, W: scale, B: w[len(scale):]}
	}
	return Stage{}
}

// stage is one of that kind with the window's numbers.
func (w window) stage(kind string) Stage {
	return Stage{Kind: kind, Image: w.image.dims(), Window: [2]int{w.height, w.width}, Stride: [2]int{w.down, w.right},
		Pad: [2]int{w.pad, w.pad}}
}

func (s shape) dims() [3]int { return [3]int{s.height, s.width, s.channels} }
