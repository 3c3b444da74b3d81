package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
)

// Files of a comparison's directory.
const (
	headFile = "compare.json" // what is compared
	runsFile = "runs.jsonl"   // a line for each completed training
	CellsCSV = "cells.csv"
	RunsCSV  = "runs.csv"
	Page     = "compare.md"
	Chart    = "compare.svg"
)

// A head says what is compared. Its directory serves no other comparison.
type head struct {
	ID      string          `json:"id"`
	Version string          `json:"version"` // of Sotto
	Plan    json.RawMessage `json:"plan"`
}

// line is a training in runs.jsonl.
type line struct {
	Table   string `json:"table"`
	Method  string `json:"method"`
	Epsilon string `json:"epsilon"`
	Result
}

// facts identifies a comparison: everything that its figures depend on, except the content of the files.
func (p *Plan) facts() (json.RawMessage, error) {
	type cell struct {
		Table, Label, Epsilon, Method string
		Config                        any
		Model                         run.ModelSpec
		Privacy                       string
		Output                        string
	}
	type one struct {
		Name   string
		Schema json.RawMessage
		Files  []string
		Test   string
		Labels []string
		Rows   int
	}
	all := struct {
		Seeds, Folds int
		Split        float64
		Tables       []one
		Cells        []cell
	}{Seeds: p.Varied.Seeds, Folds: p.Varied.Folds, Split: p.Varied.Split}
	for _, t := range p.tables {
		schema, err := t.schema.Marshal()
		if err != nil {
			return nil, err
		}
		o := one{Name: t.name, Schema: schema, Test: job.TablePath(t.spec.Test),
			Labels: []string{job.TablePath(t.spec.Labels), job.TablePath(t.spec.TestLabels)}, Rows: t.rows}
		for _, f := range t.files {
			o.Files = append(o.Files, job.TablePath(f))
		}
		all.Tables = append(all.Tables, o)
	}
	for _, c := range p.Cells {
		s := c.Spec
		all.Cells = append(all.Cells, cell{c.Table, c.Method, c.Epsilon, s.MethodName, s.Method, s.Model,
			fmt.Sprint(s.Privacy.Off, s.Privacy.Budget(), s.Privacy.Accountant), string(s.Output)})
	}
	return json.Marshal(all)
}

// A Store keeps a comparison's results in a directory.
type Store struct {
	ID  string // of the comparison
	dir string

	fresh, made bool // the directory was empty; this Store made it
	file        *os.File
	unlock      func()
}

// Open makes the directory of a comparison, or continues in the one that exists: its results become the
// plan's. If the directory holds another comparison, the error is a *run.InputError.
func (p *Plan) Open(dir, version string) (s *Store, err error) {
	plan, err := p.facts()
	if err != nil {
		return nil, err
	}
	b, err := readfile.All(filepath.Join(dir, headFile), readfile.JSON)
	fresh := errors.Is(err, os.ErrNotExist)
	if err != nil && !fresh {
		return nil, &run.InputError{Where: "--out", Err: err}
	}
	s = &Store{dir: dir, fresh: fresh}
	if fresh {
		entries, err := os.ReadDir(dir)
		s.made = os.IsNotExist(err)
		if len(entries) > 0 {
			return nil, fail("--out: %s exists, is not empty and holds no comparison; give a new or an empty directory, or that of this comparison", dir)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &run.InputError{Where: "--out", Err: err}
		}
	}
	if s.unlock, err = run.LockDir(dir); err != nil {
		return nil, &run.InputError{Where: "--out", Err: err}
	}
	defer func(s *Store) {
		if err != nil {
			s.Close()
		}
	}(s)
	if fresh {
		if s.ID, err = job.NewID(); err != nil {
			return nil, err
		}
		if err = newfile.JSON(filepath.Join(dir, headFile), "  ", head{s.ID, version, plan}); err != nil {
			return nil, err
		}
	} else {
		var h head
		var was bytes.Buffer
		if json.Unmarshal(b, &h) != nil || json.Compact(&was, h.Plan) != nil {
			return nil, fail("--out: %s is damaged; give a new directory", filepath.Join(dir, headFile))
		}
		if !bytes.Equal(was.Bytes(), plan) {
			return nil, fail("--out: %s holds another comparison (tables, methods, fields, ε, seeds or split are not the same); give a new directory, or the comparison that was begun there", dir)
		}
		s.ID = h.ID
	}
	if s.file, err = readfile.OpenFile(filepath.Join(dir, runsFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	return s, p.load(s.file)
}

// load reads the results in the file and cuts off an incomplete last line, which a crash leaves.
func (p *Plan) load(f *os.File) error {
	b, err := readfile.All(f.Name(), readfile.JSON)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	if err := f.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err := f.Seek(int64(whole), 0); err != nil {
		return err
	}
	cells := map[[3]string]*Cell{}
	for _, c := range p.Cells {
		cells[[3]string{c.Table, c.Method, c.Epsilon}] = c
	}
	seen := map[string]bool{}
	for i, text := range bytes.Split(bytes.TrimSuffix(b[:whole], []byte("\n")), []byte("\n")) {
		if len(text) == 0 {
			continue
		}
		var l line
		err := json.Unmarshal(text, &l)
		c := cells[[3]string{l.Table, l.Method, l.Epsilon}]
		key := fmt.Sprintf("%q %q %q %d %d", l.Table, l.Method, l.Epsilon, l.Seed, l.Fold)
		if err != nil || c == nil || seen[key] || l.Seed < 0 || l.Seed >= p.Varied.Seeds || l.Fold < 0 ||
			l.Fold >= max(1, p.Varied.Folds) {
			return fail("%s:%d: the line is not of this comparison; restore the file that Sotto wrote", f.Name(), i+1)
		}
		seen[key] = true
		c.Results = append(c.Results, l.Result)
	}
	return nil
}

// Add writes a result and syncs it.
func (s *Store) Add(c *Cell, r Result) error {
	b, err := json.Marshal(line{c.Table, c.Method, c.Epsilon, r})
	if err != nil {
		return err
	}
	if _, err := s.file.Write(append(b, '\n')); err != nil {
		return err
	}
	return s.file.Sync()
}

// Close unlocks the directory.
func (s *Store) Close() (err error) {
	if s.file != nil {
		err = s.file.Close()
	}
	if s.unlock != nil {
		s.unlock()
	}
	return err
}

// Left counts the trainings that have no result yet.
func (p *Plan) Left() int {
	n := 0
	for _, c := range p.Cells {
		if p.open(c) {
			n += p.perCell() - len(c.Results)
		}
	}
	return n
}

// Undo removes the files of a comparison that did not begin.
func (s *Store) Undo() {
	s.Close()
	if !s.fresh {
		return
	}
	for _, name := range []string{runsFile, headFile, ".lock"} {
		os.Remove(filepath.Join(s.dir, name))
	}
	if s.made {
		os.Remove(s.dir)
	}
}
