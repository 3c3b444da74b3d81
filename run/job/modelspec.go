package job

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/registry"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/schema"
)

// ModelSpec is the block `model`: the fields that all models have, and those of the one that is named.
type ModelSpec struct {
	Name      string  `yaml:"name" json:"name"`
	L2        float64 `yaml:"l2" json:"l2,omitempty"`               // λ of λ/2‖w‖²
	L1        float64 `yaml:"l1" json:"l1,omitempty"`               // λ of λ‖w‖₁
	NonConvex float64 `yaml:"nonconvex" json:"nonconvex,omitempty"` // λ of λΣw²/(1+w²)

	// The model's own fields, which stand among the others in files; nil: all are left free.
	Config model.Config `yaml:"-" json:"-"`

	// Of the classes: weights in the loss, 1 where there is none; and from which probability on the one that is named is
	// predicted.
	ClassWeights ClassNumbers `yaml:"class_weights" json:"class_weights,omitempty"`
	Threshold    ClassNumbers `yaml:"threshold" json:"threshold,omitempty"`
}

// afterRegularizers is the field behind which JSON has those of the model.
const afterRegularizers = "NonConvex"

// block is a ModelSpec without its decoder.
type modelBlock ModelSpec

// DecodeConfig reads the block. What is wrong with the name is said when the model is made.
func (m *ModelSpec) DecodeConfig(n config.Node) error {
	if !n.IsBlock() {
		return n.Wrong("a block of fields, as in {name: logistic}")
	}
	if name := n.Field("name"); name.Given() {
		if err := name.Decode(&m.Name); err != nil {
			return err
		}
	}
	base := config.Names(modelBlock{})
	e, err := model.Lookup(m.Name)
	if err != nil {
		return n.Decode((*modelBlock)(m), allModelFields()...)
	}
	own := config.Names(e.Config)
	given, values := n.Fields()
	for i, field := range given {
		if slices.Contains(base, field) {
			continue
		}
		if has := modelsWith(field); !slices.Contains(own, field) && len(has) > 0 {
			return inputError(n.FieldPlace(field), "model.%s: %s has no such field; %s", field, m.Name, hasIt(has))
		}
		if isZero(values[i].Text()) {
			return inputError(n.FieldPlace(field),
				"model.%s: found 0; write another number, or leave the field out: its default then holds", field)
		}
	}
	j := registry.Join(modelBlock{}, e.Config, afterRegularizers, nil)
	if err := n.Decode(j); err != nil {
		return err
	}
	m.take(j, e)
	return nil
}

// take sets m from join, a struct of the common fields and the model's own.
func (m *ModelSpec) take(join any, e model.Entry) {
	own := reflect.New(reflect.TypeOf(e.Config))
	registry.Part(join, (*modelBlock)(m), own.Interface(), afterRegularizers, nil)
	m.Config = own.Elem().Interface().(model.Config)
}

func hasIt(models []string) string {
	if len(models) == 1 {
		return models[0] + " has it"
	}
	return strings.Join(models[:len(models)-1], ", ") + " and " + models[len(models)-1] + " have it"
}

// modelsWith are the models that have a field of their own of that name.
func modelsWith(field string) (names []string) {
	for _, e := range model.Registry() {
		if slices.Contains(config.Names(e.Config), field) {
			names = append(names, e.Name)
		}
	}
	return names
}

// allModelFields are the fields that some model has.
func allModelFields() (names []string) {
	for _, e := range model.Registry() {
		names = append(names, config.Names(e.Config)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MarshalJSON writes the model's own fields among the others.
func (m ModelSpec) MarshalJSON() ([]byte, error) {
	if m.Config == nil {
		return json.Marshal(modelBlock(m))
	}
	return json.Marshal(registry.Join(m, m.Config, afterRegularizers, nil))
}

// UnmarshalJSON reads what MarshalJSON writes, of a model of this build; of another one only the name.
func (m *ModelSpec) UnmarshalJSON(text []byte) error {
	var head struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	e, err := model.Lookup(head.Name)
	if err != nil {
		m.Name = head.Name
		return nil
	}
	j := registry.Join(modelBlock{}, e.Config, afterRegularizers, nil)
	if err := json.Unmarshal(text, j); err != nil {
		return err
	}
	m.take(j, e)
	return nil
}

// options are what a model is told of the table.
func (m ModelSpec) options(s *schema.Schema) model.Options {
	opt := model.Options{Dim: s.Dim(), Classes: s.Classes(), NormBound: s.RowNorm, LabelScale: s.Label().Scale,
		Config: m.Config}
	if b := s.LabelBounds(); b != nil {
		opt.LabelMin, opt.LabelMax = b.Min, b.Max
	}
	if s.Image != nil {
		opt.Shape = s.Image.RowShape()
	}
	return opt
}

// chosen is the spec of a new run, with what its model chooses by public facts.
func (s *Spec) chosen(schema *schema.Schema) *Spec {
	e, err := model.Lookup(s.Model.Name)
	if err != nil {
		return s // setModel says so
	}
	own := s.Model.Config
	if own == nil {
		own = e.Config
	}
	c, ok := own.(model.Chooser)
	if !ok {
		return s
	}
	with := *s
	with.Model.Config = c.Choose(s.Model.options(schema))
	return &with
}

// modelFields lists the fields of the block model for the reference; a field that several models share appears once.
func modelFields() (fields []config.Field) {
	at := map[string]int{}
	for _, e := range model.Registry() {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(e.Config)) {
			name := f.Tag.Get("yaml")
			quote := f.Tag.Get("default")
			if f.Tag.Get("values") != "" {
				quote = "`" + quote + "`"
			}
			field := config.NewField(name, f.Tag.Get("type"), quote, f.Tag.Get("doc"), f.Tag.Get("values"))
			i, known := at[name]
			switch {
			case !known:
				at[name] = len(fields)
				fields = append(fields, field)
			case fields[i].Doc != field.Doc || fields[i].Default != field.Default:
				fields[i].Default += fmt.Sprintf("; of `%s` %s", e.Name, field.Default)
				fields[i].Doc += fmt.Sprintf("; of `%s` the %s", e.Name, field.Doc)
			}
		}
	}
	for i := range fields {
		has := modelsWith(fields[i].Name)
		for k := range has {
			has[k] = "`" + has[k] + "`"
		}
		fields[i].Doc += "; " + strings.Join(has, ", ") + " only"
	}
	return fields
}
