// Package model holds models. The private oracle asks them, for each record, for
// losses, gradient norms, and weighted sums of gradients, without ever forming
// one record's gradient.
//
// A model sees private rows (data.View) and public parameters w. What a Pass
// returns is private too: only oracle/private holds one.
//
// # Exact sums
//
// Every stored feature is a multiple of table.Unit, a power of two. AddGrad
// truncates each row's coefficient, its weight times its loss derivative,
// toward zero to a multiple of another public power of two. Then each product
// is a multiple of unit·Unit, and float64 adds such numbers without rounding as
// long as no sum reaches 2⁵³·unit·Unit. So a clipped sum depends on no order, on
// no splitting into views, and not on whether rows are stored dense or sparse;
// and since truncation only shortens a row, its norm stays within the clip bound.
package model

import (
	"fmt"
	"math"
	"reflect"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/registry"
	"github.com/sottodp/sotto/model/margin"
)

// A Model is a loss ℓ(w; x, y) per record with parameters w. Models are values
// without state: any number of goroutines may use one, each with its Workspace.
//
// Methods panic where w or a destination has the wrong length, or the view other
// features than the model: those are programmer errors.
type Model interface {
	// Name is the name that New knows the model by.
	Name() string
	// Dim is the number of parameters.
	Dim() int
	// Outputs is the number of columns of Predict: the classes of a
	// classifier, 1 for a regression.
	Outputs() int
	// Facts are the public constants that hold for every record.
	Facts() Facts
	// Eval computes the margins of the rows of v, labels included, and gives
	// access to their figures. The Pass is valid until the next Eval or
	// Predict on ws; w and v must not change meanwhile. Nothing is allocated
	// once ws has grown to the size of the view. Rows in v.Drop are evaluated
	// like others: the caller gives them weight 0.
	Eval(w []float64, v data.View, ws *Workspace) Pass
	// Predict fills dst, v.Len() rows of Outputs columns. A classifier gives
	// the probability of every class, also where there are two; a regression
	// its value. It does not read labels. See Facts.Probabilities.
	Predict(dst, w []float64, v data.View, ws *Workspace)
}

// A Pass holds the figures of the rows of one view at one w.
type Pass interface {
	// Len is the number of rows.
	Len() int
	// Loss sets dst[i] = ℓ_i.
	Loss(dst []float64)
	// GradNorm sets dst[i] = ‖∇ℓ_i‖_p for p = 1 or 2, rounded up: it is never
	// below the norm of the gradient that AddGrad adds. A row without a finite
	// gradient gets NaN or +Inf.
	GradNorm(dst []float64, p int)
	// AddGrad adds Σ c_i·∇ℓ_i to dst. A row with c_i = 0 contributes nothing,
	// even if its figures are NaN. With unit > 0, a power of two, each
	// coefficient c_i·ℓ'_i is truncated toward zero to a multiple of unit, and
	// is 0 where it is not finite; the sum is then exact, as the package
	// comment says. With unit = 0 nothing is truncated: plain training only.
	AddGrad(dst, c []float64, unit float64)
}

// A Marginal is a model whose predictions are functions of margins ⟨w, x⟩: one of two classes or of a number, otherwise
// one for each class.
type Marginal interface {
	Model
	// Margins sets dst to the margins of the rows of v, row i's margin k at k·v.Len() + i. It does not read labels.
	Margins(dst, w []float64, v data.View, ws *Workspace)
}

// Calibrates says whether a model's probabilities are functions of margins.
func Calibrates(m Model) bool {
	_, ok := m.(Marginal)
	return ok && m.Facts().Probabilities
}

// A CurvedPass also knows the rows' Hessians, each of which is positive semidefinite and of
// rank one.
type CurvedPass interface {
	Pass
	// HessNorm sets dst[i] = ‖∇²ℓ_i‖, the same in the Frobenius and the spectral norm,
	// rounded up. A row without a finite Hessian gets NaN or +Inf.
	HessNorm(dst []float64)
	// AddHess adds Σ c_i·∇²ℓ_i to dst in whole numbers of unit²: row i adds
	// v_i·v_iᵀ, where v_i·unit is the vector with c_i·∇²ℓ_i = vvᵀ, rounded toward zero to
	// a multiple of unit, a power of two. Its norm never grows, so that ‖v_i·v_iᵀ‖·unit² ≤
	// c_i·HessNorm_i. A row with c_i = 0 or without a finite Hessian adds nothing. The sum
	// is exact as long as the magnitudes in each entry sum up to less than 2⁵³. dst is the
	// matrix row after row, kern.Padded(dim) apart and as many of them; only
	// its upper triangle has a meaning.
	AddHess(dst, c []float64, unit float64)
}

// A BoundedPass bounds gradients by losses, for value clipping.
type BoundedPass interface {
	Pass
	// GradBound sets dst[i] to a bound on ‖∇ℓ_i‖₂ that is a function of ℓ_i, w and the row's norm alone for a model whose
	// margins are linear in w; a network's may use the row's activations, too. It is never below GradNorm for p = 2, up to
	// rounding that GradBound covers. A row without a finite gradient gets NaN or +Inf.
	GradBound(dst []float64)
}

// Facts are constants of a loss over all records with ‖x‖₂ ≤ NormBound and all
// w, in the 2-norm of w. They follow from the formulas alone, so they are
// public. +Inf means that there is no bound.
type Facts struct {
	NormBound     float64 // R: the bound on ‖x‖₂ that the others rest on
	Lipschitz     float64 // ‖∇ℓ‖ ≤ Lipschitz
	Smooth        float64 // ‖∇²ℓ‖ ≤ Smooth; where ∇ℓ has kinks, its Lipschitz constant
	HessLipschitz float64 // Lipschitz constant of ∇²ℓ
	Convex        bool    // ℓ is convex in w
	Start         float64 // ℓ at w = 0, the same for every record; +Inf where it depends on the label
	OneMargin     bool    // ℓ is a function of ⟨w, x⟩, monotone for each label
	// Curved: every Pass is a CurvedPass, and ‖∇²ℓ‖ ≤ Smooth in the Frobenius norm, too.
	Curved bool
	// Unit is what the sums of AddGrad are multiples of, over its unit: 0 for the table's own Unit. Where it is above 0
	// the model scales its rows: each entry of c_i·∇ℓ_i is one coefficient times a number of at most 1.
	Unit float64
	// Layers: where it is above 0, every Pass is a LayeredPass of as many parts.
	Layers int
	// Coded: views of rows of bytes or of 16-bit numbers are taken (data.Pixels, data.Short), and AddGrad's coefficients
	// are those of the whole-number rows: a row's factor times c_i·ℓ'_i.
	Coded bool
	// Centered: Workspace.Center is taken from the rows.
	Centered bool
	// Shifted: WithOffset moves predictions by as much, and the label is a number in the same unit.
	Shifted bool
	// Tile is how many rows at a time suit the caches; 0 leaves that to the caller.
	Tile int
	// Viewed: every Pass is a ViewedPass.
	Viewed bool
	// Bounded: every Pass is a BoundedPass.
	Bounded bool
	// Probabilities: the columns of Predict are the model's own
	// probabilities. False for a classifier whose loss is not a likelihood:
	// its columns rank the rows but are not calibrated.
	Probabilities bool
}

// Options are the public facts about the table that a model needs, and its configuration.
type Options struct {
	Dim        int       // features per encoded row, intercept included
	Classes    int       // classes of the label; 0 for a numeric label
	NormBound  float64   // every row has ‖x‖₂ ≤ NormBound
	LabelMin   float64   // the least value of a numeric label, by the schema's bounds; 0 where they are not known
	LabelMax   float64   // the largest, likewise
	LabelScale float64   // about how far labels lie from their mean, as the schema says; 0: it does not
	Shape      []int     // of a row that is an image: rows and columns of pixels, and channels where there are several
	Weights    []float64 // the classes' weights in the loss, of which only the ratios matter; none: all 1
	Config     Config    // nil: the model's own with every field left free
}

// A Config is the configuration of a model: a struct whose exported fields are the model's own fields of a spec's block
// model, of run.json and of model.json. Its zero value leaves all of them free. Each field has the tags
//
//	yaml, json   its name, the same in both
//	type         what a person writes, as in "number above 0"
//	default      what it is where it is left free
//	values       all values, if there are few
//	doc          what it means, in a phrase
//	file         "-" for what only training needs, which model.json does not hold
type Config interface {
	// New makes the model. Its errors name the field.
	New(opt Options) (Model, error)
}

// A Chooser is a Config that chooses what a new run left free by public facts. A run that goes on has its
// configuration.
type Chooser interface {
	Choose(opt Options) Config
}

// A Label is a kind of label that a model takes.
type Label int

// The kinds of labels.
const (
	TwoClasses Label = iota + 1
	SomeClasses
	Number
	Count // a number from 0
)

// An Entry is a model that can be named in a spec.
type Entry struct {
	Name   string
	About  string // what it is, in one line
	Label  Label  // what it needs; networks, which take numbers, too, have classes
	Config Config // its zero value: every field left free

	// what ⟨w, x⟩ is, for pages that show what each column does to it; empty where a model has no such margin
	Margin margin.Words

	// Small is a configuration for tests and audits, of rows of Images numbers, where the zero value is refused.
	Small Config
	Net   bool // a chain of layers, which starts elsewhere than at 0
}

// models are all of them, in the order of the documentation. A new model is one line here.
var models = registry.New("model", func(e Entry) (string, any) { return e.Name, e.Config },
	logisticEntry, linearEntry, huberEntry, poissonEntry, svmEntry, huberSVMEntry, softmaxEntry, mlpEntry, cnnEntry)

// Register adds a model, also from another module, before anything reads the registry: in main before cli.Main, or in
// init. It panics where the name is taken or not in lower case, where the configuration is not a struct, and once the
// registry was read. What the model's Facts and GradNorm claim is part of the proof of privacy.
func Register(e Entry) {
	models.Register(e)
	margin.Say(e.Name, e.Margin)
}

func init() {
	for _, e := range models.Added() {
		margin.Say(e.Name, e.Margin)
	}
}

// Registry lists every model, in the order of the documentation.
func Registry() []Entry { return models.All() }

// Lookup finds a model by name.
func Lookup(name string) (Entry, error) { return models.Lookup(name) }

// Names lists the models that New knows.
func Names() []string {
	var names []string
	for _, e := range Registry() {
		names = append(names, e.Name)
	}
	return names
}

// New makes the model of that name.
func New(name string, opt Options) (Model, error) {
	e, err := Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if opt.Config == nil {
		opt.Config = e.Config
	}
	switch {
	case reflect.TypeOf(opt.Config) != reflect.TypeOf(e.Config):
		return nil, fmt.Errorf("model: %s has a configuration of type %T, got %T", name, e.Config, opt.Config)
	case opt.Dim < 1:
		return nil, fmt.Errorf("model: %s: %d features per row; at least 1 is needed", name, opt.Dim)
	case !(opt.NormBound > 0) || math.IsInf(opt.NormBound, 1):
		return nil, fmt.Errorf("model: %s: row norm bound %v; it must be finite and above 0", name, opt.NormBound)
	case opt.Classes < 0 || opt.Classes == 1:
		return nil, fmt.Errorf("model: %s: %d classes; choose 2 or more, or 0 for a numeric label", name, opt.Classes)
	}
	m, err := opt.Config.New(opt)
	if err == nil && len(opt.Weights) > 0 {
		m, err = weigh(m, name, opt.Weights)
	}
	return m, err
}

// needTwo says why a model with one margin cannot take the label.
func needTwo(name string, classes int) error {
	switch classes {
	case 2:
		return nil
	case 0:
		return fmt.Errorf("model: %s separates two classes, but the label is numeric; use linear", name)
	}
	return fmt.Errorf("model: %s separates two classes, but the label has %d; use softmax", name, classes)
}

// needNumber says why a regression cannot take the label.
func needNumber(name string, classes int) error {
	if classes == 0 {
		return nil
	}
	return fmt.Errorf("model: %s needs a numeric label, but the label has %d classes; use logistic for two, softmax for more", name, classes)
}

// A Workspace holds the buffers of Eval and Predict. The zero value is ready. It
// belongs to one goroutine, and its buffers hold private figures.
type Workspace struct {
	glm     glmPass
	softmax softmaxPass
	net32   netPass[float32]
	net64   netPass[float64]
	held    *float64 // see Hold
	// Center, where it is set, is taken from each row that Eval evaluates, for gradients alone. It is for models with
	// Facts.Centered.
	Center *Center

	z    []float64 // margins: of Predict, and of LineLoss where it begins
	fall []float64 // margins, of LineLoss along the line, of NeighborFalls of the other side
	y    []float64 // NeighborFalls: labels, repeated

	rows   data.Space // products with rows
	floats data.Block // rows of bytes or of 16-bit numbers as float32
	row    []float32  // a row with its zeros
}

// Hold says that w does not change until Release, so that Eval and Predict may keep what they compute from
// it; otherwise they allocate it each time.
func (ws *Workspace) Hold(w []float64) {
	ws.Release()
	ws.held = &w[0]
	ws.rows.Hold(w)
}

// Release ends Hold.
func (ws *Workspace) Release() {
	ws.held, ws.net32.loaded, ws.net64.loaded = nil, nil, nil
	ws.rows.Release()
}

// grow is s with n elements of any content, reallocated only if it must be.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// check panics if model, parameters and view do not fit together: a programmer error.
func check(m Model, features int, w []float64, v data.View) {
	if len(w) != m.Dim() {
		panic(fmt.Sprintf("model: %s has %d parameters, got %d", m.Name(), m.Dim(), len(w)))
	}
	if v.Block.Dim != features {
		panic(fmt.Sprintf("model: %s takes rows of %d features, got %d", m.Name(), features, v.Block.Dim))
	}
	if v.Coding() != (data.Coding{}) && (!m.Facts().Coded || v.Rows != nil) {
		panic(fmt.Sprintf("model: %s takes no rows of bytes or 16-bit numbers, and none takes a list of them", m.Name()))
	}
}

// needLength panics where a caller's slice is not as long as the pass.
func needLength(what string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("model: %s has length %d, want %d", what, got, want))
	}
}

// needLabels panics where a loss is asked of rows without labels.
func needLabels(v data.View) {
	if v.Y == nil {
		panic("model: the rows carry no labels")
	}
}
