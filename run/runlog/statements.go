package runlog

import "reflect"

// Statements holds what only a person knows about a run: the block disclosure of its spec. Sotto
// neither checks it nor computes anything from it.
type Statements struct {
	Purpose    string `yaml:"purpose" json:"purpose,omitempty" title:"Purpose"`
	Recipients string `yaml:"recipients" json:"recipients,omitempty" title:"Recipients of the results"`
	DataSource string `yaml:"data_source" json:"data_source,omitempty" title:"Source of the data"`
	Period     string `yaml:"period" json:"period,omitempty" title:"Period that the data cover"`
	Retention  string `yaml:"retention" json:"retention,omitempty" title:"Retention of the data"`
	Security   string `yaml:"security" json:"security,omitempty" title:"Who can read the table and the ledger"`
	WhyEpsilon string `yaml:"why_epsilon" json:"why_epsilon,omitempty" title:"Why this ε"`
	WhyDelta   string `yaml:"why_delta" json:"why_delta,omitempty" title:"Why this δ"`
	WhyUnit    string `yaml:"why_unit" json:"why_unit,omitempty" title:"Why this unit"`
	// a figure that is known from elsewhere: one of these rows would be an unprotected release
	WithoutPrivacy string `yaml:"without_privacy" json:"without_privacy,omitempty" title:"Quality without privacy" optional:"yes"`
	Operator       string `yaml:"operator" json:"operator,omitempty" title:"Operator"`
	Reviewer       string `yaml:"reviewer" json:"reviewer,omitempty" title:"Reviewer"`
}

// A Statement is one of them: its name in the spec, what it is about, and the text, which may be empty.
type Statement struct {
	Name, Title, Text string
	Optional          bool // a disclosure without it is complete
}

// List lists all of them in their order.
func (s Statements) List() []Statement {
	var list []Statement
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		list = append(list, Statement{tag.Get("yaml"), tag.Get("title"), v.Field(i).String(), tag.Get("optional") != ""})
	}
	return list
}
