package shards_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/shards"
)

// guarded is a run of dataset "other" on a worker of one shard, under a coordinator's ledger. It returns what coordinator and worker end with,
// and what the worker's terminal says.
func (s *site) guarded(out, coordinator, worker, rows string) (said string, fit, work error) {
	s.t.Helper()
	schema, err := os.ReadFile(s.file("schema.yaml"))
	s.must(err)
	s.must(os.WriteFile(s.file("other.yaml"), bytes.Replace(schema, []byte("dataset: clinic"), []byte("dataset: other"), 1), 0o600))
	spec := func(name, ledger string) *run.Spec {
		spec := s.spec(name, sgd)
		spec.Schema, spec.Ledger, spec.Test = s.file("other.yaml"), s.file(ledger), ""
		return spec
	}
	c, err := shards.Listen("127.0.0.1:0", 1, s.key, nil)
	s.must(err)
	defer c.Close(false)
	warned := make(chan string, 9)
	stop, ended := s.working(shards.Options{Spec: spec(out+"-worker", worker), Key: s.key, URL: c.URL, Count: 1, Cores: 1, Warn: func(text string) { warned <- text }}, rows)
	job, err := run.Prepare(spec(out, coordinator))
	s.must(err)
	_, _, fit = run.Fit(s.t.Context(), job, run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}})
	if fit == nil {
		c.Close(true)
	}
	work = <-ended
	stop()
	close(warned)
	for text := range warned {
		said += text + "\n"
	}
	return said, fit, work
}

// Rows that a ledger protects do not pass on a worker under another name, whether the ledger is the coordinator's or the worker's machine's,
// nor a part of them, nor a packed shard that cannot be compared. Nothing is reserved, and no dataset is named to the other machine.
func TestWorkersAreGuarded(t *testing.T) {
	s := newSite(t, 1000)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	spec := s.spec("paid", sgd)
	spec.Ledger, spec.Test = s.file("owner.db"), ""
	job, err := run.Prepare(spec)
	s.must(err)
	_, _, err = run.Fit(t.Context(), job, run.Env{Workers: 1})
	s.must(err)
	line, err := os.ReadFile(s.file("patients.csv"))
	s.must(err)
	more := s.file("more.csv")
	s.must(os.WriteFile(more, append(line, '\n'), 0o600))
	for name, rows := range map[string]string{"all": more, "half": s.parts[0]} {
		_, fit, work := s.guarded("by-coordinator-"+name, "owner.db", "none.db", rows)
		if !errors.Is(fit, access.ErrProtected) || !strings.Contains(fit.Error(), `"clinic"`) {
			t.Errorf("%s: the coordinator ends with %v", name, fit)
		}
		if !errors.Is(work, access.ErrProtected) || strings.Contains(work.Error(), "clinic") {
			t.Errorf("%s: the worker ends with %v", name, work)
		}
		said, fit, work := s.guarded("by-worker-"+name, "new.db", "owner.db", rows)
		if !errors.Is(fit, access.ErrProtected) || strings.Contains(fit.Error(), "clinic") {
			t.Errorf("%s, protected at the worker: the coordinator ends with %v", name, fit)
		}
		if !errors.Is(work, access.ErrProtected) || !strings.Contains(said, `this machine's ledger knows them as "clinic"`) {
			t.Errorf("%s, protected at the worker: it ends with %v and says %q", name, work, said)
		}
	}
	if _, fit, work := s.guarded("disjoint", "owner.db", "owner.db", s.file("heldout.csv")); fit != nil || work != nil {
		t.Errorf("other rows: %v, %v", fit, work)
	}
	l, err := ledger.Open(t.Context(), s.file("owner.db"))
	s.must(err)
	defer l.Close()
	if other, err := l.Dataset(t.Context(), "other"); err != nil || other.Runs != 1 {
		t.Errorf("dataset other after one admitted run: %+v, %v", other, err)
	}

	// Where the spec's ledger is not on the worker's machine, the user's own one there is asked.
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	spec = s.spec("own", sgd)
	spec.Ledger, spec.Test = "", ""
	job, err = run.Prepare(spec)
	s.must(err)
	_, _, err = run.Fit(t.Context(), job, run.Env{Workers: 1})
	s.must(err)
	if said, fit, work := s.guarded("by-default", "new.db", "none.db", more); !errors.Is(fit, access.ErrProtected) || !errors.Is(work, access.ErrProtected) || !strings.Contains(said, `"clinic"`) {
		t.Errorf("protected in the worker's own ledger: %v, %v, %q", fit, work, said)
	}

	t.Setenv("XDG_DATA_HOME", t.TempDir())

	// A shard that was packed on its own machine cannot be compared; one under the coordinator's key can.
	key := s.file("row.key")
	s.must(access.WriteKey(key))
	schema, err := data.LoadSchema(s.file("other.yaml"))
	s.must(err)
	held, err := os.ReadFile(s.file("heldout.csv"))
	s.must(err)
	s.must(os.WriteFile(s.file("rest.csv"), held[:bytes.LastIndexByte(held[:len(held)-1], '\n')+1], 0o600))
	pack := func(name string, gate access.Gate) string {
		t.Helper()
		gate.Dropped = run.Dropped(nil, false)
		_, err := gate.Pack(t.Context(), schema, s.file("rest.csv"), s.file(name), data.Options{})
		s.must(err)
		return s.file(name)
	}
	state := os.Getenv("XDG_STATE_HOME")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	foreign := pack("foreign.pack", access.Gate{})
	rowKey, err := access.ReadKey(key)
	s.must(err)
	fits := pack("fits.pack", access.Gate{PackKey: rowKey})
	t.Setenv("XDG_STATE_HOME", state)
	if _, fit, _ := s.guarded("foreign", "owner.db", "none.db", foreign); !errors.Is(fit, access.ErrCannotTell) {
		t.Errorf("a shard packed elsewhere: %v", fit)
	}
	if _, fit, _ := s.guarded("fits", "owner.db", "none.db", fits); fit != nil {
		t.Errorf("a shard packed with the coordinator's key: %v", fit)
	}
}

// Too many dropped rows of a shard end its worker, on its own terminal.
func TestWorkerDropsRows(t *testing.T) {
	s := newSite(t, 1000)
	schema, err := os.ReadFile(s.file("schema.yaml"))
	s.must(err)
	schema = bytes.Replace(schema, []byte("oncology, surgery], unknown: general"), []byte("oncolgy, surgery]"), 1)
	s.must(os.WriteFile(s.file("schema.yaml"), append(schema, "\non_bad_row: drop\n"...), 0o600))
	c := s.listen()
	s.ask(c)
	_, ended := s.worker(c.URL, 0, s.parts[0])
	if err := <-ended; !errors.Is(err, run.ErrDroppedRows) {
		t.Errorf("it ends with %v", err)
	}
}
