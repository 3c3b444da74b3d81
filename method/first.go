package method

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// The first release of a run that may choose pairs of columns, measured on tables
// (docs/measurements/methods.md#the-first-release).
const (
	firstShare      = 0.1     // of the budget, of μ²
	firstLoud       = 0.3     // the length of the noise in the mean row, over the bound on a row, up to which there is one
	firstNumberLoud = 0.02    // the same, where the label is a number: with more, its pairs do not show
	firstRows       = 50      // for each feature, those of pairs counted, at least
	firstPlaces     = 4       // for pairs
	firstNumbers    = 1 << 20 // of the release, at most
	firstMost       = 60      // columns, whose pairs are all looked at
	firstCells      = 8       // of a numeric label
	firstCount      = 1.0     // oracle.Totals.Count
	firstPairs      = 3.0     // oracle.Totals.Pairs
	firstStrong     = 8.0     // deviations above what noise alone gives, from which on a pair is chosen
	firstSeen       = 2.5     // deviations of its count, from which on a cell of a numeric label has rows
	firstDoubt      = 0.25    // how far off what a feature brings by its mean may be, over it
	firstDoubted    = 0.5     // the same, in runs that do not record it
	firstFar        = 2.5     // deviations of the label, beyond which a label counts as that far from the mean
)

// firstQuery asks for the sums of the first release.
func (m Auto) firstQuery(pub oracle.Public) oracle.Totals {
	return oracle.Totals{Cells: cmp.Or(pub.Classes, firstCells), Count: firstCount, Pairs: firstPairs,
		Noise: mech.Gaussian{Sigma: m.FirstNoise}}
}

// firstCost is its event, on all rows.
func (m Auto) firstCost(pub oracle.Public) privacy.Event {
	return pub.Cost(sample.Full{}, []oracle.Query{m.firstQuery(pub)})
}

// Places says for how many pairs of columns a run keeps places, and why. pub is of the rows without them.
func (m Auto) Places(pub oracle.Public, obj Objective, terms Terms) (n int, why string) {
	curved, g := len(pub.Numeric), m.Gradient
	switch {
	case curved < 2 || curved > firstMost || pub.UnitRows > 0 || pub.Intercept == 0 || terms.Off ||
		terms.Budget.Delta == 0 || !(pub.Calibrated || pub.Shifted && pub.Classes == 0):
		return 0, ""
	case g.Noise != 0 || g.Batch != 0 || g.Clipping == ByValue || m.Solve == SolveStatistics:
		return 0, "no pairs: they are for runs over all rows that choose their noise"
	}
	places := pub.WithSlots(firstPlaces)
	places.Totals = true
	single, err := m.single(places, terms)
	if err != nil {
		return 0, ""
	}
	if c := m.facts(pub, obj); c.quad {
		if solved, err := c.solve(pub, obj, terms); solved || err != nil {
			return 0, "no pairs: the squared loss is minimized by statistics"
		}
	}
	delta, err := clip.Sensitivity(1, pub.Adjacency)
	if err != nil {
		return 0, ""
	}
	m.setFirst(places, single, delta)
	d := perClass(pub)
	loud := firstLoud
	if pub.Classes == 0 {
		loud = firstNumberLoud
	}
	long, rows := m.firstLength(places), float64(pub.Rows)/(d+firstPlaces*schema.PairFeatures)
	if !(pub.Snapped && bumpsAlone(pub)) && float64(pub.Rows)*(d+firstPlaces*schema.PairFeatures) > bumpValues/2 {
		return 0, "no pairs: rows with places for them would take more than 1 GiB" // refined ones are a second table
	}
	if q := m.firstQuery(places); q.Fits(places) != nil || q.Len(places) > firstNumbers {
		return 0, fmt.Sprintf("no pairs: a first release would have more than %d numbers", firstNumbers)
	}
	if long > loud || rows < firstRows {
		return 0, fmt.Sprintf("no pairs: the noise of a first release would be %.3g (at most %g), with %.3g rows per feature (at least %d)",
			long, loud, rows, firstRows)
	}
	return firstPlaces, fmt.Sprintf("places for %d pairs of columns that a first release may choose", firstPlaces)
}

// setFirst begins a run with places for pairs with a first release. one is the noise of a mean gradient of clip norm 1
// that takes the whole budget, delta the sensitivity of its sum.
func (m *Auto) setFirst(pub oracle.Public, one, delta float64) {
	if m.FirstNoise, m.FirstDoubt = 0, 0; pub.Slots > 0 {
		m.FirstNoise, m.FirstDoubt = one*float64(pub.Rows)/delta/math.Sqrt(firstShare), firstDoubt
	}
}

// firstNoise is the standard deviation of the noise in the sum of a feature.
func (m Auto) firstNoise(pub oracle.Public) float64 {
	return m.FirstNoise * m.firstQuery(pub).Sensitivity(pub)
}

// firstLength is how long the noise of the first release in the mean row is, over the bound on a row: in features that
// rows have.
func (m Auto) firstLength(pub oracle.Public) float64 {
	numbers := rowFeatures(pub) * float64(max(1, pub.Classes))
	return m.firstNoise(pub) / (pub.NormBound * float64(pub.Rows)) * math.Sqrt(numbers)
}

// atStart says what the first release is for.
func (c *autoChoice) atStart(pub oracle.Public) string {
	also := "the mean row"
	if c.quad {
		also = "the mean label"
	}
	said := fmt.Sprintf("first: sums of rows and of products of columns, released with %g of the budget, "+
		"choose up to %d pairs of columns that are encoded together, and give %s; in the mean row they would have noise of length %.3g, over the bound on a row",
		firstShare, pub.Slots, also, c.firstLength(pub))
	if c.Rare > 0 {
		said += fmt.Sprintf("; if ν√d is above %g of 4s(1−s), s the share of a class in them, columns keep their lines alone, not centered", c.Rare)
	}
	return said
}

// A first is what the first release says of a table. All of it is noisy.
type first struct {
	pub      oracle.Public
	query    oracle.Totals
	noise    float64     // standard deviation of a feature's sum in a cell
	doubt    float64     // as firstDoubt
	rows     float64     // of all cells
	share    []float64   // of each cell
	features [][]float64 // Σ x of each cell
	products [][]float64 // Σ p of each cell
	all      []float64   // Σ x
	unit     float64     // the intercept of an average row: what rows are multiplied by
	contrast [][]float64 // of cells: what a pair may explain of the label
	label    float64     // the mean, of a numeric label
}

// askFirst asks for the first release.
func (m Auto) askFirst(ctx context.Context, o oracle.Oracle) (*first, error) {
	pub, q := o.Public(), m.firstQuery(o.Public())
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return nil, err
	}
	sums, err := b.Totals(q)
	if err != nil {
		return nil, err
	}
	f := &first{pub: pub, query: q, noise: m.firstNoise(pub), rows: float64(pub.Rows),
		doubt: cmp.Or(m.FirstDoubt, firstDoubted)}
	n := pub.Features()
	f.all = make([]float64, n)
	for cell := range slices.Chunk(sums, q.Len(pub)/q.Cells) {
		f.share = append(f.share, cell[0])
		f.features, f.products = append(f.features, cell[1:1+n]), append(f.products, cell[1+n:])
		floats.Add(f.all, cell[1:1+n])
	}
	if pub.Classes > 0 {
		f.classes()
	} else {
		f.numbers()
	}
	// Within what rows of the bound can have.
	f.unit = min(1, max(pub.NormBound/math.Sqrt(float64(n)), f.all[pub.Intercept-1]/f.rows))
	return f, nil
}

// classes sets the share of each class, and the contrast of each with all.
func (f *first) classes() {
	least := f.noise / (2 * f.query.Count * f.pub.NormBound)
	for c := range f.share {
		f.share[c] = math.Max(least, f.share[c])
	}
	floats.Scale(1/floats.Sum(f.share), f.share)
	for c := range f.share {
		v := make([]float64, len(f.share))
		floats.AddConst(-f.share[c], v)
		v[c]++
		f.contrast = append(f.contrast, v)
	}
}

// numbers sets the share of each cell of a numeric label, its mean, and the contrast of labels with it.
func (f *first) numbers() {
	noise := f.noise / (f.query.Count * f.pub.NormBound)
	for c, rows := range f.share {
		if rows < firstSeen*noise {
			f.share[c] = 0
		}
	}
	cells := len(f.share)
	if floats.Sum(f.share) == 0 {
		floats.AddConst(1, f.share)
	}
	floats.Scale(1/floats.Sum(f.share), f.share)
	wide := f.pub.LabelSpan / float64(cells-1)
	center := func(c int) float64 { return f.pub.LabelMin + wide*float64(c) }
	f.label = 0
	for c, p := range f.share {
		f.label += p * center(c)
	}
	square := -wide * wide / 6 // what bumps add to the spread of labels
	for c, p := range f.share {
		square += p * math.Pow(center(c)-f.label, 2)
	}
	spread := math.Sqrt(math.Max(square, wide*wide/16))
	v := make([]float64, cells)
	for c, p := range f.share {
		if p > 0 {
			v[c] = min(firstFar, max(-firstFar, (center(c)-f.label)/spread))
		}
	}
	f.contrast = [][]float64{v}
}

// center is the rows' noisy mean, without the intercept, drawn toward 0 by what noise adds to its length, as rows have
// it with that number of pairs.
func (f *first) center(pairs int) []float64 {
	m := slices.Clone(f.all)
	floats.Scale(1/f.rows, m)
	m[f.pub.Intercept-1] = 0 // every row has it
	for _, g := range f.pub.Gone(oracle.Choice{}) {
		clear(m[g[0]:g[1]])
	}
	shrink(m, float64(len(f.share))*f.noise*f.noise/(f.rows*f.rows))
	floats.Scale(f.shorter(pairs), m)
	f.pub.Center(m)
	return m
}

// shorter is what that many pairs leave of the length of other features: they share the row's norm, and the square of
// one is 4/9 if rows spread evenly.
func (f *first) shorter(pairs int) float64 {
	part := f.unit / f.pub.NormBound
	return 1 / math.Sqrt(1+float64(pairs)*4/9*part*part)
}

// along is Σ of a number over the cells, weighted by contrast v.
func along(v []float64, sums [][]float64, j int) (sum float64) {
	for c, s := range sums {
		sum += v[c] * s[j]
	}
	return sum
}

// square is the mean of the square of a column's line, or of its first wave, in rows as they are encoded. For a line it
// follows from the first wave, or from a sum of bumps; for a wave it is taken as where rows spread evenly.
func (f *first) square(n oracle.Numeric, wave bool) float64 {
	mean := func(j int) float64 { return f.all[n.At+j] / f.rows }
	sum := 0.0
	switch {
	case wave:
		sum = squareOfWave * f.unit
	case n.Waves > 0:
		sum = squareConstant*f.unit + squareWave*mean(1)
	}
	for j := range n.Bumps {
		at := 2*float64(j)/float64(n.Bumps-1) - 1
		sum += at * at * math.Max(0, mean(1+j))
	}
	return math.Max(1e-3*f.unit, sum) * f.unit
}

// x² ≈ squareConstant + squareWave·(the first wave at x), by least squares over x from −1 to 1; squareOfWave is the
// mean of the wave's square.
var squareConstant, squareWave, squareOfWave = func() (constant, slope, square float64) {
	const points = 1000
	var w, ww, x, wx float64
	for i := range points {
		at := (2*float64(i)+1)/points - 1
		v := schema.Wave(0, at)
		w, ww, x, wx = w+v, ww+v*v, x+at*at, wx+v*at*at
	}
	slope = (wx - w*x/points) / (ww - w*w/points)
	return (x - slope*w) / points, slope, ww / points
}()

// A paired is a feature whose products with others the first release has.
type paired struct {
	of, at       int // its column, of the numeric ones, and its place in a row
	mean, square float64
}

// paired are those features, and the length that products are divided by, as it is on average.
func (f *first) paired() (features []paired, length float64) {
	of := 0
	for _, at := range f.pub.Paired() {
		for of+1 < len(f.pub.Numeric) && f.pub.Numeric[of+1].At <= at {
			of++
		}
		n := f.pub.Numeric[of]
		p := paired{of, at, f.all[at] / f.rows, f.square(n, at > n.At)}
		features, length = append(features, p), length+p.square
	}
	return features, math.Sqrt(length)
}

// pairs are those of columns, at most as many as there are places, whose products go with the label most, beyond what
// goes with it in either column.
func (f *first) pairs() (chosen [][2]int) {
	features, length := f.paired()
	if f.pub.Classes == 0 {
		f.weigh(len(features), length)
	}
	type found struct {
		pair    [2]int
		squares float64 // of contrasts, each over its variance
		terms   int
	}
	columns := len(f.pub.Numeric)
	all := make([]found, columns*columns)
	k := 0
	for i, a := range features {
		for _, b := range features[i+1:] {
			p := &all[a.of*columns+b.of]
			p.pair = [2]int{a.of, b.of}
			for _, v := range f.contrast {
				p.squares += f.excess(v, a, b, k, length)
				p.terms++
			}
			k++
		}
	}
	classes := float64(len(f.contrast)) // of whose contrasts all but one are independent
	strength := func(p found) float64 {
		terms := float64(p.terms)
		return (p.squares - terms) / math.Sqrt(2*terms*classes/math.Max(1, classes-1))
	}
	all = slices.DeleteFunc(all, func(p found) bool {
		return p.pair[0] == p.pair[1] || p.terms == 0 || !(strength(p) >= firstStrong)
	})
	slices.SortStableFunc(all, func(x, y found) int { return cmp.Compare(strength(y), strength(x)) })
	for _, p := range all[:min(len(all), f.pub.Slots)] {
		chosen = append(chosen, p.pair)
	}
	return chosen
}

// weigh gives a cell of a numeric label less weight the more its noise is beside the spread of its rows' products,
// of that number of features.
func (f *first) weigh(features int, length float64) {
	v, noise := f.contrast[0], f.noise/(f.query.Pairs*length)*float64(features)
	noise *= noise / f.rows
	mean, all := 0.0, 0.0
	weight := func(c int) float64 { return f.share[c] / (f.share[c] + noise) }
	for c, p := range f.share {
		mean, all = mean+p*weight(c)*v[c], all+p*weight(c)
	}
	for c := range v {
		v[c] = weight(c) * (v[c] - mean/all)
	}
}

// excess is the square of what the k-th product, of features a and b, has of contrast v beyond what either feature
// brings there by its mean, over its variance: of the noise, of labels that have nothing to do with the product, and of
// a mean that follows the length of rows, as that of waves does.
func (f *first) excess(v []float64, a, b paired, k int, length float64) float64 {
	brought := (b.mean*along(v, f.features, a.at) + a.mean*along(v, f.features, b.at)) / length
	sum, doubt := along(v, f.products, k)-brought, f.doubt*brought
	spread := 0.0 // of the label
	for c, p := range f.share {
		spread += p * v[c] * v[c]
	}
	noise := f.noise * f.noise * (1/(f.query.Pairs*f.query.Pairs) + (a.mean*a.mean+b.mean*b.mean)/(length*length))
	return sum * sum / (floats.Dot(v, v)*noise + f.rows*spread*a.square*b.square/(length*length) + doubt*doubt)
}

// begin asks for the first release, and chooses the encoding of rows. From then on o's answers are about those, and 0
// where rows have no features.
func (m Auto) begin(ctx context.Context, o oracle.Oracle) (*first, oracle.Oracle, oracle.Choice, error) {
	f, err := m.askFirst(ctx, o)
	if err != nil {
		return nil, o, oracle.Choice{}, err
	}
	choice := oracle.Choice{Lines: m.rare(f)}
	if !choice.Lines {
		choice.Pairs = f.pairs()
	}
	if err := oracle.Refine(ctx, o, choice); err != nil {
		return nil, o, oracle.Choice{}, err
	}
	return f, &narrow{Oracle: o, features: f.pub.Features(), gone: f.pub.Gone(choice)}, choice, nil
}

// A narrow is an oracle over rows some of whose features, each from one on up to another, are 0: so are the gradients',
// without their noise.
type narrow struct {
	oracle.Oracle
	features int
	gone     [][2]int
	batch    narrowBatch // the last
}

type narrowBatch struct {
	oracle.Batch
	o *narrow
}

func (o *narrow) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	b, err := o.Oracle.Batch(ctx, s, queries...)
	o.batch = narrowBatch{b, o}
	return &o.batch, err
}

// Grad is that of the parameters that rows have features for.
func (b *narrowBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	g, err := b.Batch.Grad(q, w)
	for row := 0; row < len(g); row += b.o.features {
		for _, gone := range b.o.gone {
			clear(g[row+gone[0] : row+gone[1]])
		}
	}
	return g, err
}
