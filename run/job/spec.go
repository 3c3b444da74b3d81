package job

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// A Spec says what to train, on what, and under which guarantee. It is read from
// a file, from flags, or from both; a flag overrides the file's field.
type Spec struct {
	File string // the spec file; "" when there is none

	// Paths; those of the file are relative to it, those of flags to the working directory.
	Data       string // required to fit
	Test       string // optional: rows that need no protection, scored without noise
	Labels     string // of Data, where they are in a file of their own that does not have the usual name
	TestLabels string // of Test, likewise
	// TestOverlaps is an assertion of runs that builds before November 2026 began: test rows which equal training rows are
	// other people's.
	TestOverlaps bool
	Schema       string // required
	Label        string // the column to predict, if it is not the schema's label
	// Columns is how many of the columns that features come from are used, the first of the schema; 0: all; [AutoColumns].
	Columns int
	// bumps of numeric columns whose encoding the schema leaves open; nil: method auto chooses, others take none
	Hats  *int
	Pairs []schema.Pair // numeric columns that are also encoded two at a time; none: those of the schema

	Model      ModelSpec
	MethodName string
	Method     method.Method
	Privacy    PrivacySpec
	Output     method.Output
	Lab        bool    // allows what a real run must not do, and watermarks the results
	Seed       *uint64 // seeds noise and samples: lab only
	Void       bool    // ends the guarantee of protected rows that are accessed without charge; never in a file
	Holdout    float64 // the share of the units that is not trained on, but scored; 0: none
	Ledger     string  // where the budget is kept; "" is the user's own ledger
	Out        string  // run directory; "" makes one under runs/

	AcceptDelta   bool // trains with a δ of 1/rows or more
	AcceptDropped bool // trains where more than one row in a hundred is dropped

	Disclosure *runlog.Statements // what only a person knows, for a disclosure; nil: nothing is stated

	Uncentered bool // rows and labels are taken as they are, whatever the method would choose; never in a file

	// times, memory and counts of batches are served as metrics, which the report names as not covered; never in a file
	MetricsTimings bool

	doc    *config.Document // where each field was written
	summed bool             // the block network says mode: sum
	sum    *Sum             // what follows from it, when it is settled
}

// Summed says whether the spec is of a network whose owners add up masked sums.
func (s *Spec) Summed() bool { return s.summed }

// AutoColumns lets method auto choose how many columns are used.
const AutoColumns = -1

// ClassNumbers are numbers by the name of a class.
type ClassNumbers map[string]float64

// DecodeConfig reads a block of them.
func (c *ClassNumbers) DecodeConfig(n config.Node) error {
	switch {
	case n.Text() == "balanced":
		return n.Wrong("numbers, as in {yes: 5, no: 1}: balanced weights would count the rows of each class, and no charge covers that")
	case !n.IsBlock():
		return n.Wrong("a number for a class, as in {yes: 5}")
	}
	names, values := n.Fields()
	*c = ClassNumbers{}
	for i, name := range names {
		number := 0.0
		if err := values[i].Decode(&number); err != nil {
			return err
		}
		(*c)[name] = number
	}
	return nil
}

// PrivacySpec is the block `privacy`, or the word none.
type PrivacySpec struct {
	Off        bool              `yaml:"-"` // `privacy: none`
	Epsilon    float64           `yaml:"epsilon"`
	Delta      *float64          `yaml:"delta"` // required; 0 asks for pure ε
	Adjacency  privacy.Adjacency `yaml:"adjacency"`
	Accountant string            `yaml:"accountant"` // default best
}

// Budget is the block as a budget.
func (p PrivacySpec) Budget() privacy.Budget {
	b := privacy.Budget{Epsilon: p.Epsilon, Adjacency: p.Adjacency}
	if p.Delta != nil {
		b.Delta = *p.Delta
	}
	return b
}

// An Override is a field given outside the spec file.
type Override struct {
	Path  string // like "method.steps"
	Value string // YAML
	From  string // how it was given, for errors: "--epsilon", "--set method.steps"
}

// An InputError is a mistake in what a person gave. The command ends with exit
// code 2 and has changed nothing.
type InputError struct {
	Where string // file:line:column or the flag; may be ""
	Err   error
}

func (e *InputError) Error() string {
	if e.Where == "" {
		return redact.Text(e.Err.Error())
	}
	return redact.Text(redact.Path(e.Where) + ": " + e.Err.Error())
}

func (e *InputError) Unwrap() error { return e.Err }

func inputError(where, format string, args ...any) error {
	return &InputError{where, fmt.Errorf(format, args...)}
}

// LoadSpec reads a spec file, if one is named, and applies the overrides.
func LoadSpec(file string, overrides []Override) (*Spec, error) {
	var src []byte
	if file != "" {
		var err error
		if src, err = readSpec(file); err != nil {
			return nil, err
		}
	}
	return ParseSpec(file, src, overrides)
}

// input turns a *config.Error into an *InputError.
func input(err error) error {
	var e *config.Error
	if !errors.As(err, &e) {
		return err
	}
	return &InputError{e.Place(), errors.New(e.Text())}
}

// readSpec reads the text of a spec file.
func readSpec(file string) ([]byte, error) {
	src, err := readfile.All(file, readfile.Spec)
	switch {
	case readfile.Refused(err):
		return nil, &InputError{file, reason(err)}
	case err != nil:
		return nil, inputError(file, "found no file to read (%v); name a spec in YAML", reason(err))
	}
	return src, nil
}

// reason is the system's text, without the path.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// A specFile is a spec as it is written.
type specFile struct {
	Data          []string    `yaml:"data"`
	Test          []string    `yaml:"test"`
	Labels        string      `yaml:"labels"`
	TestLabels    string      `yaml:"test_labels"`
	Schema        string      `yaml:"schema"`
	Columns       string      `yaml:"columns"`
	Hats          string      `yaml:"hats"`
	Pairs         config.Node `yaml:"pairs"`
	Model         ModelSpec   `yaml:"model"`
	Method        config.Node `yaml:"method"`
	Privacy       PrivacySpec `yaml:"privacy"`
	Output        string      `yaml:"output"`
	Lab           bool        `yaml:"lab"`
	Seed          *uint64     `yaml:"seed"`
	Holdout       float64     `yaml:"holdout"`
	Ledger        string      `yaml:"ledger"`
	Out           string      `yaml:"out"`
	AcceptDelta   bool        `yaml:"accept_delta"`
	AcceptDropped bool        `yaml:"accept_dropped"`

	Disclosure *runlog.Statements `yaml:"disclosure"`

	Compare config.Node `yaml:"compare"` // for LoadComparison
	Network config.Node `yaml:"network"` // for package gossip/netplan
	Tune    config.Node `yaml:"tune"`    // for LoadTuning
}

// topKeys are the fields of a spec.
var topKeys = config.Names(specFile{})

// ParseSpec reads the text of a spec file, whose name positions have, and applies the overrides.
func ParseSpec(file string, src []byte, overrides []Override) (s *Spec, err error) {
	defer func() { err = input(err) }()
	doc, err := config.Parse(file, "a spec", src)
	if err != nil {
		return nil, err
	}
	for _, o := range overrides {
		if err := checkOverride(o); err != nil {
			return nil, err
		}
		if err := doc.Set(o.Path, o.Value, o.From); err != nil {
			return nil, err
		}
	}
	var f specFile
	if err := doc.Root().Decode(&f); err != nil {
		return nil, err
	}
	s = &Spec{File: file, MethodName: method.Default, doc: doc, Model: f.Model, Privacy: f.Privacy, Lab: f.Lab,
		Seed: f.Seed, Holdout: f.Holdout,
		AcceptDelta: f.AcceptDelta, AcceptDropped: f.AcceptDropped, Disclosure: f.Disclosure}
	for _, p := range []struct {
		key      string
		text     string
		to       *string
		relative bool
	}{
		{"labels", f.Labels, &s.Labels, true}, {"test_labels", f.TestLabels, &s.TestLabels, true},
		{"schema", f.Schema, &s.Schema, true}, {"ledger", f.Ledger, &s.Ledger, !strings.Contains(f.Ledger, "://")},
		{"out", f.Out, &s.Out, true},
	} {
		if doc.Has(p.key) && p.text == "" {
			return nil, inputError(s.Place(p.key), "%s is missing; write a path", p.key)
		}
		if *p.to = p.text; p.relative && !doc.Given(p.key) {
			*p.to = Beside(file, p.text)
		}
	}
	for _, p := range []struct {
		key   string
		paths []string
		to    *string
	}{{"data", f.Data, &s.Data}, {"test", f.Test, &s.Test}} {
		if doc.Has(p.key) && (len(p.paths) == 0 || slices.Contains(p.paths, "")) {
			return nil, inputError(s.Place(p.key), "%s is missing; write a path, or a list of paths", p.key)
		}
		for i, path := range p.paths {
			if file != "" && !doc.Given(p.key) {
				p.paths[i] = data.Join(filepath.Dir(file), path)
			}
		}
		*p.to = strings.Join(p.paths, data.Plus)
	}
	s.summed = f.Network.Field("mode").Text() == ModeSum
	s.Pairs, err = schema.PairsOf(f.Pairs)
	if err := cmp.Or(s.setColumns(f.Columns), s.setHats(f.Hats), err, s.setMethod(f.Method)); err != nil {
		return nil, err
	}
	if s.Output, err = method.ParseOutput(f.Output); err != nil {
		return nil, &InputError{s.Place("output"), err}
	}
	return s, cmp.Or(s.checkDisclosure(), s.check())
}

// mostStatement is the most bytes of one statement.
const mostStatement = 2000

// checkDisclosure wants one line of text in each statement.
func (s *Spec) checkDisclosure() error {
	if s.Disclosure == nil {
		return nil
	}
	for _, t := range s.Disclosure.List() {
		if field := "disclosure." + t.Name; !config.PlainText(t.Text) || len(t.Text) > mostStatement {
			return inputError(s.Place(field),
				"%s: found %s; write one line of text of at most %d bytes (a text over several lines of a spec begins with >-)",
				field, config.Quote(t.Text), mostStatement)
		}
	}
	return nil
}

// setColumns reads the field columns.
func (s *Spec) setColumns(text string) (err error) {
	switch {
	case text == "all" || !s.Has("columns"):
	case text == "auto":
		s.Columns = AutoColumns
	default:
		if s.Columns, err = strconv.Atoi(text); err != nil || s.Columns < 1 {
			return inputError(s.Place("columns"), "columns: found %q; write all, auto or a number of columns, 1 or more", text)
		}
	}
	return nil
}

// setHats reads the field hats.
func (s *Spec) setHats(text string) error {
	if text == "auto" || !s.Has("hats") {
		return nil
	}
	n, ok := schema.ParseHats(text)
	if !ok && text != "none" {
		return inputError(s.Place("hats"), "hats: found %q; write auto, none or a number of bumps from 2 to 64", text)
	}
	s.Hats = &n
	return nil
}

// checkOverride refuses an override of a field that is not there, or only in a file.
func checkOverride(o Override) error {
	block, _, _ := strings.Cut(o.Path, ".")
	switch {
	case strings.Count(o.Path, ".") > 1 || !slices.Contains(topKeys, block):
		return inputError(o.From, "field %q is not known; the fields are %s, and those of the blocks as in method.steps",
			o.Path, strings.Join(topKeys, ", "))
	case block == compareKey:
		return inputError(o.From, "field %q: found it outside a spec file; use the flags of `sotto compare`", o.Path)
	case block == "network" || block == tuneKey:
		return inputError(o.From, "field %q: found it outside a spec file; write it in the block %s of one", o.Path, block)
	}
	return nil
}

// DecodeConfig reads the block, or the word none.
func (p *PrivacySpec) DecodeConfig(n config.Node) error {
	type block PrivacySpec // without DecodeConfig
	if p.Off = n.Text() == "none"; p.Off {
		return nil
	}
	if !n.IsBlock() {
		return n.Wrong("a block of fields, or in the lab the word none")
	}
	return n.Decode((*block)(p))
}

func (s *Spec) setMethod(block config.Node) error {
	if block.Given() && !block.IsBlock() {
		return block.Wrong("a block of fields, as in {name: …}")
	}
	if name := block.Field("name"); name.Given() {
		if err := name.Decode(&s.MethodName); err != nil {
			return err
		}
	}
	entry, err := method.Lookup(s.MethodName)
	if err != nil {
		return &InputError{s.Place("method.name"), fmt.Errorf("method.name: %s", strings.TrimPrefix(err.Error(), "method: "))}
	}
	s.Method = entry.Method
	if block.Given() {
		if s.Method, err = entry.DecodeBy(func(into any) error { return block.Decode(into, "name") }); err != nil {
			return err
		}
	}
	for _, f := range entry.Fields() {
		if v := block.Field(f.Name); f.Free && v.Given() && isZero(v.Text()) {
			return inputError(s.Place("method."+f.Name),
				"method.%s: found 0; write another number, or leave the field out: the method then chooses", f.Name)
		}
	}
	return nil
}

// isZero says whether text is the number 0, in any form.
func isZero(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	return err == nil && number == 0
}

// Beside joins the directory of a file and a relative path.
func Beside(file, path string) string {
	if path == "" || file == "" || filepath.IsAbs(path) {
		return path
	}
	if strings.Contains(path, data.Plus) { // no list: only data and test may be one
		return filepath.Join(filepath.Dir(file), path)
	}
	return data.Join(filepath.Dir(file), path)
}

// Place returns the position of a field, or where it is missing.
func (s *Spec) Place(field string) string {
	block, _, _ := strings.Cut(field, ".")
	for _, f := range []string{field, block} {
		if s.doc != nil && s.doc.Has(f) {
			return s.doc.Place(f)
		}
	}
	if s.File != "" {
		return s.File + ":1:1"
	}
	return ""
}

// Has says whether the file or a flag gives a field.
func (s *Spec) Has(field string) bool { return s.doc != nil && s.doc.Has(field) }

// Missing returns the error of a missing field.
func (s *Spec) Missing(field, hint string) error {
	return inputError(s.Place(field), "field %q is missing: %s", field, hint)
}

// check returns what is wrong with a spec, before any file is opened.
func (s *Spec) check() error {
	if s.Schema == "" {
		return s.Missing("schema", "the public description of the table; `sotto schema init` makes a skeleton")
	}
	if s.TestLabels != "" && s.Test == "" {
		return s.Missing("test", "the table that test_labels are of")
	}
	if s.Model.Name == "" {
		return s.Missing("model.name", "which model to train; choose "+strings.Join(model.Names(), ", "))
	}
	if err := cmp.Or(s.checkHoldout(), s.Allows(OnOneTable)); err != nil {
		return err
	}
	if s.Privacy.Off {
		return nil
	}
	p := s.Privacy
	switch {
	case !s.Has("privacy.epsilon"):
		return s.Missing("privacy.epsilon", "Sotto has no default for it")
	case p.Delta == nil:
		return s.Missing("privacy.delta", "Sotto has no default for it; 0 asks for pure ε")
	case !s.Has("privacy.adjacency"):
		return s.Missing("privacy.adjacency", "add-or-remove or replace-one")
	}
	if err := p.Budget().Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		return &InputError{s.Place("privacy." + field), fmt.Errorf("privacy.%w", err)}
	}
	if _, err := s.Accountant(); err != nil {
		return &InputError{s.Place("privacy.accountant"), fmt.Errorf("privacy.%w", err)}
	}
	return nil
}

// Accountant returns the named accountant, by default the best of those that have a theorem.
func (s *Spec) Accountant() (account.Accountant, error) {
	if s.Privacy.Accountant == "" {
		return account.ByName("best")
	}
	return account.ByName(s.Privacy.Accountant)
}
