package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/crossings"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
)

// The factors of the crossings. Each cell of the array is one command.
var crossed = [][]string{
	{"train", "holdout", "bounds", "tune", "evaluate", "party", "worker", "worker's machine", "test", "test void", "tune test", "test beside shards", "score", "score void", "lab", "lab void", "simulate", "compare", "audit", "verify", "score unprotected", "check", "check void", "predict", "pack"},
	{"csv", "semicolons", "no header", "quoted", "gzip", "parquet", "arrow", "jsonl", "sqlite", "postgres", "s3", "packed", "packed elsewhere", "files", "shards"},
	crossings.Relations,
	{"budget", "spent", "another name", "another state", "another machine"},
}

// crossedRows is the size of the protected table.
const crossedRows = 1200

// sensibly says whether there is such a crossing.
func sensibly(c []string) bool {
	purpose, form, relation := c[0], c[1], c[2]
	packed := strings.HasPrefix(form, "packed")
	worker := strings.HasPrefix(purpose, "worker")
	switch {
	case form == "shards" && !(worker || purpose == "simulate" || purpose == "compare"): // only these take several tables
		return false
	case form == "files" && worker: // a worker takes one file
		return false
	case relation == "columns reordered" && (form == "jsonl" || form == "no header"): // objects have no order, and cells without names no other one
		return false
	case packed && (purpose == "pack" || purpose == "bounds" || strings.HasPrefix(purpose, "check")): // packed it is, and encoded
		return false
	}
	return true
}

// A verdict is what a command does with rows, or the kind of its refusal. With tells, the owner is told that rows cannot be compared.
const (
	reserves  = "reserves" // its run is charged
	records   = "records"  // an access without a guarantee, of the dataset that the schema names
	ends      = "ends"     // the guarantee of the protected dataset
	allows    = "allows"   // and the ledger says nothing of it
	protected = "content-protected"
	overlaps  = "test-overlaps-training"
	wouldEnd  = "would-end-guarantee"
	untold    = "cannot-compare"
	exhausted = "budget-exhausted"

	tells    = ", tells"
	paidEnds = reserves + ", ends"
)

// What the command finds of the rows: nothing, nothing of rows under the name of a protected dataset, that it cannot tell since it
// cannot compare a packed table, and rows of a protected dataset that has another name or the same.
const (
	nothing = iota
	nothingNamed
	cannotTell
	otherName
	ownName
)

// verdicts are rules.md, R24, and privacy.md, "One gate to the rows", line by line.
var verdicts = []struct {
	purposes string
	by       [5]string
}{
	{"train, holdout, bounds, tune, evaluate, party", [5]string{reserves, reserves, reserves + tells, protected, reserves}},
	{"worker", [5]string{reserves, reserves, untold + tells, protected, reserves}},
	{"worker's machine", [5]string{allows, allows, untold + tells, protected, protected}},     // the run reserves in the coordinator's ledger, which is another one
	{"test, tune test", [5]string{reserves, reserves, reserves + tells, protected, overlaps}}, // the training rows are charged
	{"score, lab, simulate, compare, audit, verify", [5]string{records, wouldEnd, untold + tells, protected, protected}},
	{"test beside shards", [5]string{reserves, reserves, untold + tells, protected, overlaps}},
	{"test void", [5]string{reserves, reserves, reserves + tells, paidEnds, paidEnds}},
	{"score void, lab void, check void", [5]string{records, records, records, ends, ends}},
	{"score unprotected, check", [5]string{allows, allows, untold + tells, protected, protected}}, // check says so, too
	{"predict, pack", [5]string{allows, allows, allows, allows, allows}},
}

// crossing is the verdict on a cell.
func crossing(purpose, form, relation, state string) (verdict string) {
	matches := relation != "disjoint" && relation != "4 %"
	named := state == "budget" || state == "spent"
	packed := strings.HasPrefix(form, "packed")
	whole := relation == "same" && (packed || form == "csv" || form == "gzip" || form == "s3") // the bytes of the protected table
	// Row hashes are under the key of the machine that packed the table; those of a worker's rows under its coordinator's.
	foreign := form == "packed elsewhere" || packed && (!named && state != "another name" || purpose == "worker's machine")
	beside := strings.Contains(purpose, "test") && (named || state == "another machine") // the protected rows are trained on, so they are in memory
	switch {
	case beside && purpose == "test beside shards" && foreign: // they are on another machine
		matches = whole
	case beside:
	case state == "another machine": // it knows neither rows nor name
		matches = false
	case foreign || state == "another state":
		matches = whole
	}
	found := nothing
	switch {
	case matches && (named || beside):
		found = ownName
	case matches:
		found = otherName
	case foreign:
		found = cannotTell
	case named && !beside:
		found = nothingNamed
	}
	for _, line := range verdicts {
		if slices.Contains(strings.Split(line.purposes, ", "), purpose) {
			verdict = line.by[found]
		}
	}
	if state == "spent" {
		verdict = strings.Replace(strings.TrimSuffix(verdict, ", ends"), reserves, exhausted, 1)
	}
	if beside && matches && foreign && !whole {
		verdict += tells // of other protected rows
	}
	return verdict
}

// A place is the directory of a machine with its owner's state and ledger.
type place string

func (p place) ledger() string { return filepath.Join(string(p), "data", "sotto", "ledger.db") }

// sotto is a command on the machine, in a directory.
func (p place) sotto(t testing.TB, dir string, args ...string) *exec.Cmd {
	c := sotto(t, args...)
	c.Dir, c.Stderr = dir, nil
	c.Env = append(os.Environ(), "HOME="+filepath.Join(string(p), "home"), "XDG_DATA_HOME="+filepath.Join(string(p), "data"), "XDG_STATE_HOME="+filepath.Join(string(p), "state"), kindVariable+"=1")
	return c
}

// must runs a command that does what it should.
func (p place) must(t testing.TB, dir string, args ...string) {
	t.Helper()
	if out, err := p.sotto(t, dir, args...).CombinedOutput(); err != nil {
		t.Fatalf("sotto %q: %v\n%s", args, err, out)
	}
}

// entries counts what the ledger says of each dataset.
func (p place) entries(t testing.TB) map[string]int {
	t.Helper()
	all := map[string]int{}
	l, err := ledger.View(t.Context(), p.ledger())
	if errors.Is(err, os.ErrNotExist) {
		return all
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, dataset := range []string{"clinic", "other", "elsewhere"} {
		entries, err := l.Entries(t.Context(), dataset)
		if err != nil && !errors.Is(err, ledger.ErrUnknownDataset) {
			t.Fatal(err)
		}
		for _, e := range entries {
			all[dataset+" "+string(e.Kind)]++
		}
	}
	return all
}

// crossedSchema is a schema of the tables in a form.
func crossedSchema(dataset, form, x string) string {
	format := map[string]string{"semicolons": "format: {delimiter: \";\"}\n", "no header": "format: {header: false}\n"}[form]
	return fmt.Sprintf("dataset: %s\nrows: %d\n%scolumns:\n  - {name: x, type: numeric, %s}\n  - {name: y, type: label, classes: [no, yes]}\n", dataset, crossedRows, format, x)
}

const (
	crossedBounds = "min: 0, max: 20000"
	crossedBlocks = `schema: schema.yaml
model: {name: logistic}
privacy: {epsilon: 8, delta: 1e-6, adjacency: add-or-remove}
tune: {mean: 1.5, methods: [{name: sgd, steps: 2}, {name: gd, steps: 2}]}
`
	crossedMethod  = "method: {name: sgd, steps: 2}\n"
	crossedNetwork = "network: {owners: 2, rows: 600, rounds: 2, schedule: all}\n"
)

// crossedBase is what all cells share.
type crossedBase struct {
	dir    string
	states map[string]place
	store  []string // variables of a store of objects
}

func dashed(name string) string { return strings.ReplaceAll(name, " ", "-") }

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// dialect is the form as far as the schema says it.
func dialect(form string) string {
	if form == "semicolons" || form == "no header" {
		return form
	}
	return "csv"
}

// under is the folder of what depends on dataset and dialect: a model, and a network of two owners.
func (b *crossedBase) under(dataset, form string) string {
	return filepath.Join(b.dir, dataset+"-"+dashed(dialect(form)))
}

// newCrossedBase makes the machines: a dataset of a lifetime budget, charged once, and a machine that protects other rows.
func newCrossedBase(t *testing.T) *crossedBase {
	t.Helper()
	b := &crossedBase{dir: t.TempDir(), states: map[string]place{}}
	begin := func(name, dataset string, rows crossings.Table) place {
		p, dir := place(filepath.Join(b.dir, name)), filepath.Join(b.dir, name+"-first")
		writeFile(t, filepath.Join(dir, "schema.yaml"), crossedSchema(dataset, "", crossedBounds))
		writeFile(t, filepath.Join(dir, "spec.yaml"), "data: t.csv\n"+crossedMethod+crossedBlocks)
		writeFile(t, filepath.Join(dir, "t.csv"), rows.Text())
		p.must(t, dir, "fit", "spec.yaml", "--epsilon", "1", "--out", "run", "--quiet")
		return p
	}
	budget := func(p place, dataset, epsilon, delta string) {
		p.must(t, b.dir, "ledger", "budget", dataset, "--epsilon", epsilon, "--delta", delta, "--adjacency", "add-or-remove")
	}
	b.states["budget"] = begin("budget", "clinic", crossings.Of("same", crossedRows))
	b.states["spent"] = place(filepath.Join(b.dir, "spent"))
	if err := os.CopyFS(string(b.states["spent"]), os.DirFS(string(b.states["budget"]))); err != nil {
		t.Fatal(err)
	}
	budget(b.states["budget"], "clinic", "100", "1e-3")
	budget(b.states["spent"], "clinic", "1", "1e-6")
	b.states["another name"], b.states["another state"] = b.states["budget"], b.states["budget"]
	b.states["another machine"] = begin("another", "elsewhere", crossings.Range(6*crossedRows, 7*crossedRows))
	budget(b.states["another machine"], "elsewhere", "1", "1e-6")

	stranger := place(filepath.Join(b.dir, "stranger"))
	for _, dataset := range []string{"clinic", "other"} {
		for _, form := range []string{"csv", "semicolons", "no header"} {
			dir := b.under(dataset, form)
			writeFile(t, filepath.Join(dir, "schema.yaml"), crossedSchema(dataset, form, crossedBounds))
			writeFile(t, filepath.Join(dir, "spec.yaml"), "data: t.csv\n"+crossedNetwork+crossedBlocks)
			if _, err := crossings.Range(8*crossedRows, 9*crossedRows).Write(dir, form); err != nil {
				t.Fatal(err)
			}
			stranger.must(t, dir, "fit", "spec.yaml", "--method", "sgd", "--set", "method.steps=2", "--out", "run", "--quiet", "--ledger", "l.db")
			if err := os.Rename(filepath.Join(dir, "run", "model.json"), filepath.Join(dir, "model.json")); err != nil { // away from its run and that ledger
				t.Fatal(err)
			}
			stranger.must(t, dir, "net", "init", "spec.yaml", "--dir", "net", "--hub", "tls://localhost:1")
			for i := range 2 {
				stranger.must(t, dir, "net", "invite", fmt.Sprintf("owner %d", i+1), "--dir", "net", "--out", fmt.Sprintf("owner-%d.json", i+1))
			}
		}
	}
	for _, relation := range crossings.Relations {
		dir := filepath.Join(b.dir, "packs", dashed(relation))
		writeFile(t, filepath.Join(dir, "t.csv"), crossings.Of(relation, crossedRows).Text())
		writeFile(t, filepath.Join(dir, "schema.yaml"), crossedSchema("clinic", "", crossedBounds))
		b.states["budget"].must(t, dir, "data", "pack", "--schema", "schema.yaml", "--data", "t.csv", "--out", "packed")
		stranger.must(t, dir, "data", "pack", "--schema", "schema.yaml", "--data", "t.csv", "--out", "packed elsewhere")
	}
	return b
}

// A cell is one crossing.
type cell struct {
	*testing.T
	*crossedBase
	purpose, form, relation, state string

	owner    place // the machine that knows the protected rows, if there is one
	stranger place // one that knows nothing
	dir      string
	dataset  string
	paths    []string // the table
}

// file is a file of the folder in which the command runs.
func (c *cell) file(name string) string { return filepath.Join(c.dir, name) }

// write writes the table.
func (c *cell) write() {
	table := crossings.Of(c.relation, crossedRows)
	var err error
	switch c.form {
	case "packed", "packed elsewhere":
		c.paths = []string{filepath.Join(c.crossedBase.dir, "packs", dashed(c.relation), c.form)}
	case "arrow":
		c.paths = []string{filepath.Join("testdata", "crossings", dashed(c.relation)+".arrow")}
		c.paths[0], err = filepath.Abs(c.paths[0])
	case "s3":
		c.paths = []string{"s3://data/" + dashed(c.relation) + "/t.csv"}
	case "postgres":
		where, db, schema := needs.Schema(c.T)
		err = table.Insert(db, schema+".t")
		q := where.Query()
		q.Set("table", schema+".t")
		where.RawQuery = q.Encode()
		c.paths = []string{where.String()}
	default:
		c.paths, err = table.Write(c.dir, c.form)
		if c.form == "files" {
			c.paths = []string{strings.Join(c.paths, data.Plus)}
		}
	}
	if err != nil {
		c.Fatal(err)
	}
}

// spec writes a spec of the table.
func (c *cell) spec() {
	text := fmt.Sprintf("data: %q\n", c.paths[0])
	switch {
	case c.purpose == "simulate" && len(c.paths) == 2:
		text = fmt.Sprintf("network: {files: [%q, %q], rows: 600, rounds: 2, schedule: all}\n", c.paths[0], c.paths[1])
	case c.purpose == "simulate":
		text += crossedNetwork
	default:
		text += crossedMethod
	}
	writeFile(c, c.file("spec.yaml"), text+crossedBlocks)
}

// run runs the commands of the purpose. The last is the owner's.
func (c *cell) run() (code int, stdout, stderr string) {
	model := filepath.Join(c.under(c.dataset, c.form), "model.json")
	switch c.purpose {
	case "train":
		return c.command("fit", "spec.yaml", "--out", "out", "--quiet")
	case "holdout":
		return c.command("fit", "spec.yaml", "--holdout", "0.2", "--out", "out", "--quiet")
	case "bounds":
		return c.command("schema", "bounds", "--schema", "open.yaml", "--data", c.paths[0], "--epsilon", "8", "--adjacency", "add-or-remove", "--out", "out.yaml")
	case "tune":
		return c.command("tune", "spec.yaml", "--out", "out", "--quiet")
	case "evaluate":
		return c.command("evaluate", "--model", model, "--data", c.paths[0], "--epsilon", "8", "--rows", "1200", "--out", "out")
	case "party":
		return c.party()
	case "worker":
		return c.workers(c.owner, c.stranger, c.paths)
	case "worker's machine":
		return c.workers(c.stranger, c.owner, c.paths)
	case "test":
		return c.command("fit", "spec.yaml", "--data", filepath.Join("train", "t.csv"), "--test", c.paths[0], "--out", "out", "--quiet")
	case "test void":
		return c.command("fit", "spec.yaml", "--data", filepath.Join("train", "t.csv"), "--test", c.paths[0], "--void", "--out", "out", "--quiet")
	case "test beside shards":
		return c.workers(c.owner, c.stranger, []string{filepath.Join("train", "t.csv")}, "--test", c.paths[0])
	case "tune test":
		return c.command("tune", "spec.yaml", "--data", filepath.Join("train", "t.csv"), "--test", c.paths[0], "--out", "out", "--quiet")
	case "score":
		return c.command("evaluate", "--model", model, "--data", c.paths[0])
	case "score void":
		return c.command("evaluate", "--model", model, "--data", c.paths[0], "--void")
	case "score unprotected":
		return c.command("evaluate", "--model", model, "--data", c.paths[0], "--unprotected")
	case "lab":
		return c.command("fit", "spec.yaml", "--lab", "--out", "out", "--quiet")
	case "lab void":
		return c.command("fit", "spec.yaml", "--lab", "--void", "--out", "out", "--quiet")
	case "simulate":
		return c.command("net", "simulate", "spec.yaml", "--quiet")
	case "compare":
		args := []string{"compare", "spec.yaml", "--methods", "sgd", "--set", "method.steps=2", "--split", "0.5", "--seeds", "1", "--out", "out", "--quiet"}
		if len(c.paths) == 2 {
			args = append(args, "--data", c.paths[0], "--data", c.paths[1], "--rows", "1200")
		}
		return c.command(args...)
	case "audit":
		return c.command("audit", "spec.yaml", "--on-data", "--canaries", "20", "--seed", "1", "--out", "out", "--quiet")
	case "verify":
		return c.command("verify", "lab", "--claim", "--ledger", c.owner.ledger())
	case "check":
		return c.command("schema", "check", "schema.yaml", "--data", c.paths[0], "--unprotected")
	case "check void":
		return c.command("schema", "check", "schema.yaml", "--data", c.paths[0], "--void")
	case "predict":
		return c.command("predict", "--model", model, "--data", c.paths[0], "--out", "out.csv")
	case "pack":
		return c.command("data", "pack", "--schema", "schema.yaml", "--data", c.paths[0], "--out", "out.pack")
	}
	panic(c.purpose)
}

func (c *cell) at(p place, args ...string) *exec.Cmd {
	command := p.sotto(c, c.dir, args...)
	if c.form == "s3" {
		command.Env = append(command.Env, c.store...)
	}
	if where, err := url.Parse(c.paths[0]); err == nil && where.User != nil { // which stands in no file of a run
		password, _ := where.User.Password()
		command.Env = append(command.Env, "PGPASSWORD="+password)
	}
	return command
}

// command runs a command on the owner's machine.
func (c *cell) command(args ...string) (code int, stdout, stderr string) {
	return c.result(c.at(c.owner, args...))
}

func (c *cell) result(command *exec.Cmd) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil && command.ProcessState == nil {
		c.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String(), said.String()
}

// workers runs a coordinator on one machine and its workers on another one.
func (c *cell) workers(coordinator, machine place, shards []string, more ...string) (code int, stdout, stderr string) {
	run := c.at(coordinator, append([]string{"fit", "spec.yaml", "--workers", "127.0.0.1:0", "--shards", fmt.Sprint(len(shards)), "--key", "key", "--out", "out"}, more...)...)
	var out bytes.Buffer
	run.Stdout = &out
	pipe, err := run.StderrPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	defer run.Process.Kill()
	words := bufio.NewReader(pipe)
	line, err := words.ReadString('\n')
	at := regexp.MustCompile(`^waiting for the workers of \d shards at (\S+)\n$`).FindStringSubmatch(line)
	if at == nil {
		c.Fatalf("the coordinator says %q: %v", line, err)
	}
	var works []*exec.Cmd
	var said []*bytes.Buffer
	ended := make(chan int, len(shards))
	for i, path := range shards {
		w := c.at(machine, "worker", "spec.yaml", "--hub", at[1], "--key", "key", "--shard", fmt.Sprintf("%d/%d", i+1, len(shards)), "--data", path, "--quiet")
		var err bytes.Buffer
		w.Stderr = &err
		works, said = append(works, w), append(said, &err)
		if err := w.Start(); err != nil {
			c.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			if w.Wait(); w.ProcessState.ExitCode() == exitInput { // the coordinator waits for another worker
				run.Process.Kill()
			}
			ended <- i
			close(over)
		}()
		defer func() { w.Process.Kill(); <-over }()
	}
	rest, _ := io.ReadAll(words)
	run.Wait()
	code, stdout, stderr = run.ProcessState.ExitCode(), out.String(), string(rest)
	if code != 0 && c.purpose == "test beside shards" || strings.HasSuffix(stderr, "["+exhausted+"]\n") { // the workers wait for a coordinator that may
		return code, stdout, stderr
	}
	for range works { // where a worker refuses, the others wait for a coordinator with another one
		i := <-ended
		if machine == c.owner || works[i].ProcessState.ExitCode() != code {
			return works[i].ProcessState.ExitCode(), stdout, said[i].String()
		}
	}
	return code, stdout, stderr
}

// party runs a hub, another owner on another machine, and the owner.
func (c *cell) party() (code int, stdout, stderr string) {
	net := c.under(c.dataset, c.form)
	dir := c.TempDir()
	hub := c.stranger.sotto(c, dir, "hub", filepath.Join(net, "net", "hub.json"), "--dir", "hub", "--host", "127.0.0.1", "--port", "0")
	out, err := hub.StdoutPipe()
	if err == nil {
		err = hub.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	defer func() { hub.Process.Kill(); hub.Wait() }()
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.Fatalf("the hub did not start: %v", err)
	}
	node := func(p place, owner, data, dir string) *exec.Cmd {
		return c.at(p, "node", filepath.Join(net, "spec.yaml"), "--credentials", filepath.Join(net, owner+".json"), "--data", data, "--dir", dir, "--hub", strings.TrimSpace(at), "--quiet")
	}
	peer := node(c.stranger, "owner-2", filepath.Join(net, "t.csv"), filepath.Join(dir, "part"))
	if err := peer.Start(); err != nil {
		c.Fatal(err)
	}
	defer func() { peer.Process.Kill(); peer.Wait() }()
	return c.result(node(c.owner, "owner-1", c.paths[0], "out"))
}

// A9: the array of crossings through the commands, against R24.
func TestCrossings(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	array := crossings.Pairwise(crossed, sensibly)
	base := newCrossedBase(t)
	base.store = serveStore(t.Cleanup, filepath.Join(base.dir, "packs"))
	for _, a := range array {
		t.Run(strings.Join(a, ", "), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := &cell{T: t, crossedBase: base, purpose: a[0], form: a[1], relation: a[2], state: a[3],
				owner: place(filepath.Join(dir, "owner")), stranger: place(t.TempDir()), dir: filepath.Join(dir, "work"), dataset: "clinic"}
			if strings.HasPrefix(c.purpose, "worker") {
				c.stranger = place(filepath.Join(dir, "stranger"))
				if err := os.Mkdir(string(c.stranger), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.state == "another name" || c.state == "another state" {
				c.dataset = "other"
			}
			if err := os.CopyFS(string(c.owner), os.DirFS(string(base.states[c.state]))); err != nil {
				t.Fatal(err)
			}
			if c.state == "another state" {
				if err := os.RemoveAll(filepath.Join(string(c.owner), "state", "sotto")); err != nil {
					t.Fatal(err)
				}
			}
			c.prepare()
			before, err := listing(dir)
			if err != nil {
				t.Fatal(err)
			}
			entries := c.owner.entries(t)
			code, stdout, stderr := c.run()
			c.check(code, stdout, stderr, entries, before)
		})
	}
	t.Logf("%d cells", len(array))
}

// prepare writes what the command reads.
func (c *cell) prepare() {
	writeFile(c, c.file("schema.yaml"), crossedSchema(c.dataset, c.form, crossedBounds))
	c.write()
	c.spec()
	if strings.Contains(c.purpose, "worker") || c.purpose == "test beside shards" {
		writeFile(c, c.file("key"), "the key of a test, of 32 bytes..")
	}
	switch c.purpose {
	case "bounds":
		writeFile(c, c.file("open.yaml"), crossedSchema(c.dataset, c.form, "bounds: unknown"))
	case "verify":
		lab := c.at(c.stranger, "fit", "spec.yaml", "--method", "opt", "--set", "method.gradient=0.2", "--lab", "--seed", "3", "--out", "lab", "--quiet")
		if out, err := lab.CombinedOutput(); err != nil {
			c.Fatalf("%v\n%s", err, out)
		}
	case "test", "test void", "tune test", "test beside shards":
		table := crossings.Of("same", crossedRows) // the protected rows, or others
		if c.dataset == "other" {
			table = crossings.Range(5*crossedRows, 6*crossedRows)
		}
		if err := os.Mkdir(c.file("train"), 0o700); err != nil {
			c.Fatal(err)
		}
		if _, err := table.Write(c.file("train"), dialect(c.form)); err != nil {
			c.Fatal(err)
		}
	}
}

// check compares what the command did with the verdict.
func (c *cell) check(code int, stdout, stderr string, before map[string]int, files map[string]string) {
	verdict, told := strings.CutSuffix(crossing(c.purpose, c.form, c.relation, c.state), tells)
	after, err := listing(filepath.Dir(c.dir))
	if err != nil {
		c.Fatal(err)
	}
	fresh := map[string]int{}
	for k, n := range c.owner.entries(c) {
		if n > before[k] {
			fresh[k] = n - before[k]
		}
	}
	refused := false
	switch verdict {
	case reserves:
		if fresh[c.dataset+" reserve"] != 1 || fresh[c.dataset+" not-private"]+fresh[c.dataset+" access"] > 0 {
			c.Errorf("the ledger has new entries %v; want one reservation of %s", fresh, c.dataset)
		}
	case records:
		if fresh[c.dataset+" not-private"]+fresh[c.dataset+" access"] == 0 || fresh[c.dataset+" reserve"] > 0 {
			c.Errorf("the ledger has new entries %v; want an access of %s", fresh, c.dataset)
		}
	case ends, paidEnds:
		if fresh["clinic not-private"] == 0 || (verdict == paidEnds) != (fresh[c.dataset+" reserve"] == 1) {
			c.Errorf("the ledger has new entries %v; want: %s", fresh, verdict)
		}
	case allows:
		if len(fresh) > 0 {
			c.Errorf("the ledger has new entries %v; want none", fresh)
		}
	default:
		refused = true
		if code != exitBudget || !strings.HasSuffix(stderr, "["+verdict+"]\n") || !strings.Contains(stderr, "sotto: ") {
			c.Errorf("exit code %d, %q; want %d, [%s]", code, stderr, exitBudget, verdict)
		}
		if verdict == protected && !strings.Contains(stderr, `"clinic"`) {
			c.Errorf("%q does not name the dataset", stderr)
		}
		if way := regexp.MustCompile("--void|Write dataset: clinic|Give the coordinator that ledger|pack it |the most that a run may ask for"); !way.MatchString(stderr) {
			c.Errorf("%q does not say what to do", stderr)
		}
		if stdout != "" {
			c.Errorf("a refusal prints %q", stdout)
		}
		key := filepath.Join(string(c.stranger), "state", "sotto", "tables", "key")
		if c.purpose == "worker" || c.purpose == "test beside shards" {
			key = filepath.Join(string(c.owner), "state", "sotto", "tables", "key")
		}
		for _, path := range slices.Sorted(maps.Keys(after)) {
			switch {
			case strings.HasPrefix(filepath.Base(path), "place-"): // where the ledger lies, which was copied
			case strings.HasPrefix(key, path): // a coordinator sends it before it knows the rows
			case after[path] != files[path]:
				c.Errorf("a refusal wrote %s", path)
			}
		}
	}
	if !refused && code != 0 {
		c.Errorf("exit code %d, %q; want 0: %s", code, stderr, verdict)
	}
	if told != strings.Contains(stderr, "cannot be compared with protected rows") {
		c.Errorf("%q; want to be told that rows cannot be compared: %t", stderr, told)
	}
}
