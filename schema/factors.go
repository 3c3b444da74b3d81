package schema

import "math"

// RowFactors are the numbers by which the row rule multiplies the features of the largest possible row, of one between,
// and of the smallest; they are public.
func (s *Schema) RowFactors() (least, middle, most float64) {
	size := func(v float64) float64 { return v * v }
	if s.Norm == NormL1 {
		size = math.Abs
	}
	lo, hi := 0.0, 0.0
	add := func(least, most float64) { lo, hi = lo+least, hi+most }
	if s.Intercept {
		add(1, 1)
	}
	for _, c := range s.Places() {
		f := c.Form()
		small, large := math.Inf(1), 0.0
		sized := func(v float64) { small, large = math.Min(small, v), math.Max(large, v) }
		switch {
		case f.Words > 0: // from no word to one for each feature
			sized(0)
			sized(size(1/math.Sqrt(float64(f.Words))) * float64(f.Words))
		case f.OneHot:
			sized(1)
		default:
			points := 256
			if f.Levels != nil {
				points = len(f.Levels) - 1
			}
			for i := range points + 1 {
				x := 2*float64(i)/float64(points) - 1
				v := size(x)
				for _, c := range f.Curve(x) {
					v += size(c)
				}
				sized(v)
			}
			for range f.Cycles { // by the angle
				small, large = small+1, large+2*size(math.Sqrt2/2)
			}
		}
		if f.Unknown.Zero || f.Missing.Zero {
			small = 0
		}
		add(small, large)
	}
	for _, p := range s.Pairs {
		add(s.pairSizes(p))
	}
	factor := func(size float64) float64 {
		if s.Norm != NormL1 {
			size = math.Sqrt(size)
		}
		f := s.RowNorm / size
		if s.RowScaling == RowProject {
			f = math.Min(1, f)
		}
		return f
	}
	return factor(hi), factor((lo + hi) / 2), factor(lo)
}
