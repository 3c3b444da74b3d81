package model

// A Stage is one step from an encoded row to a model's margins, for who computes them elsewhere.
type Stage struct {
	Kind    string    // "dense": x·W + B; "relu", "tanh": of each number
	In, Out int       // dense: numbers before and after
	W       []float64 // dense: In×Out, row after row
	B       []float64 // dense: Out of them; nil: 0
}

// Staged is a model whose margins come from stages. Predict is a function of the margins: the
// margin itself where Outputs is 1; (σ(−z), σ(z)) of one margin where it is 2; the softmax of
// Outputs margins otherwise.
type Staged interface {
	Model
	// Stages are the steps at w, from which they may take their numbers.
	Stages(w []float64) []Stage
}

func (m *glm) Stages(w []float64) []Stage {
	return []Stage{{Kind: "dense", In: m.features, Out: 1, W: w}}
}

func (m *softmax) Stages(w []float64) []Stage {
	columns := make([]float64, len(w)) // w has a row for each class
	for k := range m.classes {
		for j := range m.features {
			columns[j*m.classes+k] = w[k*m.features+j]
		}
	}
	return []Stage{{Kind: "dense", In: m.features, Out: m.classes, W: columns}}
}

func (m *network) Stages(w []float64) []Stage {
	var stages []Stage
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
		return Stage{Kind: "dense", In: l.rows, Out: l.cols, W: w[:weights], B: w[weights:]}
	case *activation:
		return Stage{Kind: l.name}
	}
	return Stage{}
}
