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
	var draw splitMix
	for _, s := range p.Initial {
		for range s.Count {
			w = append(w, s.Bound*(float64(draw.next()>>11)*0x1p-52-1)) // a whole number of 2⁻⁵² in [−1, 1)
		}
	}
	return append(w, make([]float64, p.Dim-len(w))...)
}

// A splitMix is a public stream of numbers: SplitMix64 (Steele, Lea and Flood 2014). Nothing private may hang on it.
type splitMix struct{ at uint64 }

func (s *splitMix) next() uint64 {
	s.at += 0x9e3779b97f4a7c15
	z := s.at
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
