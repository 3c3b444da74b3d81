package oracle

// A Span is a run of parameters that start uniform in [−Bound, Bound].
type Span struct {
	Count int     `json:"count"`
	Bound float64 `json:"bound"`
}

// Start is a new w_0: zeros, or for a network, which does not learn from there, numbers from a fixed
// public stream spread over the spans. It is the same for every table and on every machine,
// and costs nothing.
func (p Public) Start() []float64 {
	w := make([]float64, 0, p.Dim)
	var at uint64
	for _, s := range p.Initial {
		for range s.Count {
			// SplitMix64 (Steele, Lea and Flood 2014), from 0.
			at += 0x9e3779b97f4a7c15
			z := at
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			z ^= z >> 31
			w = append(w, s.Bound*(float64(z>>11)*0x1p-52-1)) // a whole number of 2⁻⁵² in [−1, 1)
		}
	}
	return append(w, make([]float64, p.Dim-len(w))...)
}
