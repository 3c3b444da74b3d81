package shards_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/shards"
)

const visitsHead = "patient_id,age,systolic,glucose,ward,readmitted\n"

// visits are the rows of patients from one number to another, each with 1 to 11 visits, of which 8 count.
func visits(from, to int) string {
	var b strings.Builder
	for p := from; p < to; p++ {
		rnd := rand.New(rand.NewPCG(uint64(p), 26))
		for range 1 + rnd.IntN(11) {
			fmt.Fprintf(&b, "p%d,%d,%d,%.1f,%s,%s\n", p, 18+rnd.IntN(80), 90+rnd.IntN(90), 3+9*rnd.Float64(), []string{"general", "surgery"}[rnd.IntN(2)], []string{"no", "yes"}[rnd.IntN(2)])
		}
	}
	return visitsHead + b.String()
}

// newVisits is a site of 600 patients, cut behind these.
func newVisits(t testing.TB, cuts ...int) *site {
	s := newSite(t)
	b, err := os.ReadFile("../../examples/visits/schema.yaml")
	s.must(err)
	s.must(os.WriteFile(s.file("schema.yaml"), []byte(strings.Replace(string(b), "units: 2000", "units: 600", 1)), 0o600))
	s.write("patients.csv", visits(0, 600))
	s.write("heldout.csv", visits(600, 700))
	s.parts = nil
	from := 0
	for i, to := range append(cuts, 600) {
		s.parts, from = append(s.parts, s.write(fmt.Sprintf("part%d.csv", i+1), visits(from, to))), to
	}
	return s
}

func (s *site) write(name, text string) string {
	s.t.Helper()
	s.must(os.WriteFile(s.file(name), []byte(text), 0o600))
	return s.file(name)
}

// Units of several rows on shards: the releases are those of the table in one piece, bit for bit, under both relations, for sums, searches,
// choices and Hessians. Methods that solve where the rows are stay refused.
func TestUnitsOnShards(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	s := newVisits(t, 210, 211, 450)
	var c *shards.Coordinator
	for relation, methods := range map[string][]string{
		"":              {"{name: sgd, steps: 40, batch: 60}", "{name: auto, center: none, last: none}", "{name: newton}", "{name: blsgd}", "{name: privgene}"},
		"replace-one\n": {"{name: sgd, steps: 30, batch: 60, sampling: fixed}"},
	} {
		c = s.listen()
		for i, part := range s.parts {
			s.working(shards.Options{Spec: s.spec(fmt.Sprint("worker", i), relation), Key: s.key, URL: c.URL, Index: i, Count: len(s.parts), Cores: 1}, part)
		}
		for i, m := range methods {
			name, more := fmt.Sprint("units", i, len(relation)), "lab: true\nseed: 5\n"+relation+"method: "+m
			env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}
			_, _, err := run.Fit(t.Context(), s.job("away-"+name, more), env)
			s.must(err)
			env.Rows = nil
			_, _, err = run.Fit(t.Context(), s.job("here-"+name, more), env)
			s.must(err)
			s.same(more, "here-"+name, "away-"+name)
		}
	}
	for _, name := range []string{"outpert", "outpert-sgd"} { // amp refuses units before
		env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}
		_, _, err := run.Fit(t.Context(), s.job(name, "replace-one\nmethod: {name: "+name+"}"), env)
		s.refused(name, err, "method.name: found", name)
	}
}

// A unit with rows in two shards, or in a shard and in the test table, is refused, and so are shards that cannot tell. The
// shards are named, the unit is not.
func TestUnitsThatStraddle(t *testing.T) {
	t.Parallel()
	s := newVisits(t, 250)
	fit := func(name, want string, about []int, parts ...string) {
		t.Helper()
		c := s.listen()
		var ended []chan error
		for i, part := range parts {
			_, end := s.worker(c.URL, i, part)
			ended = append(ended, end)
		}
		env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}
		_, _, err := run.Fit(t.Context(), s.job("away", sgd), env)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, want %q", name, err, want)
		} else if _, missing := os.Stat(s.file("away")); missing == nil {
			t.Errorf("%s: there is a run", name)
		} else if strings.Contains(err.Error(), "p249") {
			t.Errorf("%s: the error names a patient: %v", name, err)
		}
		for _, i := range about {
			s.refused(name, <-ended[i], want, "none")
		}
	}
	late := s.write("late.csv", visits(250, 600)+" p249 ,50,120,5.0,general,no\n")
	fit("one visit of a patient elsewhere", "shards 1 and 2 of 2: found rows of one unit in both", []int{0, 1}, s.parts[0], late)
	spec := s.file("schema.yaml")
	s.write("heldout.csv", visits(599, 700))
	fit("a patient in the test table", "a patient who has rows to train on too", nil, s.parts...)
	s.write("heldout.csv", visits(600, 700))

	many := s.write("many.csv", visits(600, 5000)) // fewer than the load limit of eight times the schema's 600
	fit("many more units than the schema says", "shard 2 of 2: found many more units", []int{1}, s.write("few.csv", visits(0, 50)), many)

	schema, err := data.LoadSchema(spec)
	s.must(err)
	gate := access.Gate{Dropped: run.Dropped(nil, false)}
	_, err = gate.Pack(t.Context(), schema, s.parts[0], s.file("part.pack"), data.Options{})
	s.must(err)
	_, ended := s.working(shards.Options{Spec: s.spec("worker", ""), Key: s.key, URL: "127.0.0.1:1", Index: 0, Count: 1}, s.file("part.pack"))
	s.refused("packed", <-ended, "a packed table holds no ids", "none")
}
