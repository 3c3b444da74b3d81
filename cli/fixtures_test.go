package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/record/recordtest"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/web"
)

// A fixture is a directory of testdata/fixtures, unpacked: what an earlier build wrote, and what the build at hand says of it.
type fixture struct {
	*testing.T
	dir     string
	in      func(args ...string) *exec.Cmd
	ask     *json.Encoder // of the process that runs commands
	answers *json.Decoder
	texts   map[string]string              // by what they are of, as in auto/verify
	records map[string]*recordtest.Figures // by the names of runs
}

// What the build of testdata/fixtures wrote verifies, goes on to the same bits, and is rendered to the same text.
func TestFixtures(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	all, err := filepath.Glob(filepath.Join("testdata", "fixtures", "*", "files.tar.zst"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, packed := range all {
		at := filepath.Dir(packed)
		t.Run(filepath.Base(at), func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, texts: map[string]string{}, records: map[string]*recordtest.Figures{}}
			f.dir, f.in = earlierFiles(t, filepath.Join("fixtures", filepath.Base(at)))
			f.start()
			f.read()
			f.compare(at)
		})
	}
}

// answered is what a command said, standard output and error together, and how it ended.
type answered struct {
	Said string
	Code int
}

// serveCommands runs the commands that come as JSON on standard input, one after the other: a process for each takes longer than most of
// them do.
func serveCommands() {
	runlog.ReleasedAs = runlog.Devel // pages say it
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var args []string
		if in.Decode(&args) != nil {
			return
		}
		var said bytes.Buffer
		c := root()
		c.SetArgs(args)
		c.SetOut(&said)
		c.SetErr(&said)
		err := c.Execute()
		if err != nil {
			printError(&said, err)
		}
		out.Encode(answered{said.String(), exitCode(err)})
	}
}

// start starts the process that runs the commands.
func (f *fixture) start() {
	f.Helper()
	c := f.in()
	c.Args[0] = "sottos"
	in, err := c.StdinPipe()
	if err == nil {
		var out io.Reader
		out, err = c.StdoutPipe()
		f.ask, f.answers = json.NewEncoder(in), json.NewDecoder(out)
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { in.Close(); c.Wait() })
}

// sotto runs the command in the directory of the files, and returns what it says, in words that do not depend on the machine.
func (f *fixture) sotto(args ...string) string {
	f.Helper()
	var a answered
	if err := errors.Join(f.ask.Encode(args), f.answers.Decode(&a)); err != nil {
		f.Fatalf("sotto %s: %v", strings.Join(args, " "), err)
	}
	if a.Code != 0 {
		a.Said += fmt.Sprintf("exit code %d\n", a.Code)
	}
	return f.plain(a.Said)
}

// must is sotto of a command that ends well.
func (f *fixture) must(args ...string) string {
	f.Helper()
	said := f.sotto(args...)
	if strings.Contains(said, "\nexit code ") || strings.HasPrefix(said, "exit code ") {
		f.Errorf("sotto %s: %s", strings.Join(args, " "), said)
	}
	return said
}

// plain leaves out of a text what depends on machine and build.
func (f *fixture) plain(text string) string {
	text = strings.ReplaceAll(text, f.dir, "@DIR@")
	if v := runlog.Version(); v != "(devel)" {
		text = strings.ReplaceAll(text, v, "(devel)")
	}
	return text
}

// pretty is a JSON text over several lines.
func pretty(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", " ") != nil {
		return text
	}
	return b.String()
}

// read takes the texts of all files: of ledgers and tables first, then of what is finished.
func (f *fixture) read() {
	var runs []string
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(f.dir, path)
		if err != nil {
			return err
		}
		switch name := filepath.ToSlash(name); {
		case name == "hub": // a store, whose own files end with .db, too
			return fs.SkipDir
		case slices.Contains([]string{runlog.InfoFile, runlog.EvaluationFile, runlog.DescriptionFile}, d.Name()):
			runs = append(runs, filepath.ToSlash(filepath.Dir(name)))
		case filepath.Ext(name) == ".pack":
			f.texts[name] = f.must("data", "info", name)
		case filepath.Ext(name) == ".db":
			f.ledger(name)
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	var broken, owners []string
	for _, name := range runs {
		if !f.finished(name) {
			broken = append(broken, name)
			continue
		}
		f.run(name, true)
		if _, err := os.Stat(filepath.Join(f.dir, name, runlog.SumsFile)); err == nil {
			owners = append(owners, name)
		}
	}
	if len(owners) > 0 {
		f.texts["owners/verify"] = f.must(append([]string{"verify"}, owners...)...)
	}
	f.dashboard()
	// How these end are entries of the ledger, which pages of the others would show.
	_, err = os.Stat(filepath.Join(f.dir, "hub.json"))
	network := err == nil
	if network {
		f.network()
	}
	for _, name := range broken {
		if !network {
			f.resume(name)
		}
		f.run(name, false)
	}
}

// finished says whether a run has come to its end, which is to its report; an owner's has none.
func (f *fixture) finished(name string) bool {
	dir := filepath.Join(f.dir, name)
	if run.IsEvaluation(dir) || run.IsDescription(dir) {
		return true
	}
	info := f.info(name)
	_, err := os.Stat(filepath.Join(dir, runlog.ReportFile))
	return info.Status == runlog.Finished && (err == nil || info.Network != "")
}

func (f *fixture) ledger(name string) {
	f.texts[name+"/verify"] = f.must("ledger", "verify", "--ledger", name)
	f.texts[name+"/list"] = f.must("ledger", "list", "--ledger", name)
	var list []struct{ Name string }
	if err := json.Unmarshal([]byte(f.must("ledger", "list", "--ledger", name, "--json")), &list); err != nil || len(list) == 0 {
		f.Errorf("%s: %+v, %v", name, list, err)
	}
	for _, d := range list {
		f.texts[name+"/"+d.Name] = f.must("ledger", "show", d.Name, "--ledger", name)
	}
}

// ledgerOf names the ledger that a run directory names, by its place in the files.
func (f *fixture) ledgerOf(name, where string) []string {
	return []string{"--ledger", filepath.ToSlash(filepath.Join(filepath.Dir(name), filepath.Base(where)))}
}

func (f *fixture) info(name string) *runlog.Info {
	f.Helper()
	info, err := runlog.ReadInfo(filepath.Join(f.dir, name))
	if err != nil {
		f.Fatal(err)
	}
	return info
}

// resume lets a run go on to its end.
func (f *fixture) resume(name string) {
	if info := f.info(name); info.Shards > 0 {
		f.shards(name, info)
	} else {
		f.must(append([]string{"fit", "--resume", name, "--quiet"}, f.ledgerOf(name, info.Ledger)...)...)
	}
}

// run takes the texts of a run directory. Those of a run that was not finished here are what does not depend on its noise.
func (f *fixture) run(name string, finished bool) {
	if dir := filepath.Join(f.dir, name); run.IsEvaluation(dir) {
		e, err := runlog.ReadEvaluation(dir)
		if err != nil {
			f.Fatal(err)
		}
		f.texts[name+"/verify"] = f.must(append([]string{"verify", name}, f.ledgerOf(name, e.Ledger)...)...)
		return
	} else if run.IsDescription(dir) {
		e, err := runlog.ReadDescription(dir)
		if err != nil {
			f.Fatal(err)
		}
		f.texts[name+"/verify"] = f.must(append([]string{"verify", name}, f.ledgerOf(name, e.Ledger)...)...)
		return
	}
	info := f.info(name)
	at := f.ledgerOf(name, info.Ledger)
	verify := []string{"verify", name}
	if !info.Lab { // the ledger holds nothing of a lab run but the access
		verify = append(verify, at...)
	}
	f.texts[name+"/verify"] = f.must(verify...)
	switch {
	case !finished && info.Seed != nil:
		f.texts[name+"/bits"] = f.bits(name)
		return
	case !finished:
		f.texts[name+"/verify"] = findings.ReplaceAllString(f.texts[name+"/verify"], "$1")
		return
	}
	owner := info.Network != "" // it has no report
	if !owner {
		f.texts[name+"/summary"] = f.must(append([]string{"fit", "--resume", name}, at...)...)
		f.texts[name+"/json"] = pretty(f.must(append([]string{"fit", "--resume", name, "--json"}, at...)...))
	}
	f.texts[name+"/predictions"] = f.predictions(name, info)
	if owner {
		f.texts[name+"/report"] = f.sotto(append([]string{"report", name}, at...)...)
	} else {
		f.must(append([]string{"report", name}, at...)...)
		f.texts[name+"/report.html"] = f.plain(f.file(name, "report.new.html"))
	}
	known := f.known(name, at, owner)
	if known != nil {
		if other := known.OtherWays(f.texts[name+"/verify"]); other != nil {
			f.Errorf("%s/verify writes numbers in another way than pages: %q", name, other)
		}
	}
	for _, form := range []string{"summary", "json", "report.html"} {
		f.figures(known, name+"/"+form)
	}
	said := f.sotto(append([]string{"disclose", name, "--out", "disclosure.json"}, at...)...)
	f.texts[name+"/disclose"] = said
	if _, err := os.Stat(filepath.Join(f.dir, "disclosure.json")); err == nil {
		known.Words(f.file("disclosure.json"))
		f.disclosure(name)
		f.figures(known, name+"/disclosure.html")
	}
}

// known are the figures of a run's record, which is one by docs/record.schema.json; nil for an owner's run, which has none.
func (f *fixture) known(name string, at []string, owner bool) *recordtest.Figures {
	f.Helper()
	if owner {
		return nil
	}
	text := []byte(f.must(append([]string{"report", name, "--json"}, at...)...))
	if err := published(f.T, "record.schema.json").Validate(jsonOf(f.T, text)); err != nil {
		f.Errorf("%s: %v", name, err)
	}
	known := recordtest.New(f.T, text)
	for _, dir := range []string{"page", "page/disclosure", "web", "web/pages", "internal/text"} {
		known.Source(f.T, filepath.Join("..", filepath.FromSlash(dir)))
	}
	known.Words(name)
	f.records[name] = known
	return known
}

// dashboard: the page of a run in a browser shows no number that is not in its record, the table of its files apart.
func (f *fixture) dashboard() {
	if len(f.records) == 0 {
		return
	}
	s, err := web.New(web.Options{Dirs: []string{f.dir}, Version: runlog.Version()})
	if err != nil {
		f.Fatal(err)
	}
	l, err := web.Listen(0)
	if err != nil {
		f.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	c, link, done := &http.Client{Jar: jar}, s.Link(l), make(chan error)
	ctx, stop := context.WithCancel(f.Context())
	go func() { done <- s.Serve(ctx, l) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			f.Error(err)
		}
	}()
	get := func(url string) string {
		r, err := c.Get(url)
		if err != nil {
			f.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			f.Fatal(err)
		}
		return string(b)
	}
	get(link)
	seen := 0
	for _, m := range regexp.MustCompile(`href="(/runs/[^"/?]+)"`).FindAllStringSubmatch(get("http://"+l.Addr().String()+"/runs"), -1) {
		page, _, _ := strings.Cut(get("http://"+l.Addr().String()+m[1]), `<section aria-labelledby="files">`)
		page = beside.ReplaceAllString(strings.ReplaceAll(page, f.dir+string(filepath.Separator), ""), "")
		in := regexp.MustCompile(`</code> in <code>([^<]*)</code>`).FindStringSubmatch(page)
		if in == nil || f.records[filepath.ToSlash(in[1])] == nil {
			continue // it did not come to its end, or is an owner's
		}
		seen++
		f.texts["dashboard"] = page
		f.figures(f.records[filepath.ToSlash(in[1])], "dashboard")
	}
	delete(f.texts, "dashboard")
	if seen != min(len(f.records), 50) {
		f.Errorf("the dashboard shows %d of %d runs", seen, len(f.records))
	}
}

// beside is the line of a run's page that names others.
var beside = regexp.MustCompile(`(?m)^<li>Side by side with .*\n`)

// published is a JSON schema of docs.
func published(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, jsonOf(t, readFile(t, filepath.Join("..", "docs", name)))); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// figures: a page shows no number that is not in the record.
func (f *fixture) figures(known *recordtest.Figures, form string) {
	f.Helper()
	if text, ok := f.texts[form]; ok && known != nil {
		if unknown := known.Unknown(recordtest.Plain(text)); unknown != nil {
			f.Errorf("%s shows what is not in the record (sotto report RUN --json): %q", form, unknown)
		}
		if !strings.HasSuffix(form, "/json") {
			if other := known.OtherWays(recordtest.Plain(text)); other != nil {
				f.Errorf("%s writes numbers in another way than other pages: %q", form, other)
			}
		}
	}
}

// findings are what one line of a verdict is, and why.
var findings = regexp.MustCompile(`(?m)^(\S.*?(?:holds|DOES NOT HOLD|not checked)): .*$`)

func (f *fixture) file(path ...string) string {
	f.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, filepath.Join(path...)))
	if err != nil {
		f.Error(err)
	}
	return string(b)
}

// bits are those of a seeded run that went on.
func (f *fixture) bits(name string) (text string) {
	files, err := filepath.Glob(filepath.Join(f.dir, name, "releases*.bin"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(files, filepath.Join(f.dir, name, runlog.StepsFile)) {
		file := filepath.Base(path)
		text += fmt.Sprintf("%x %s\n", sha256.Sum256([]byte(f.file(name, file))), file)
	}
	m, err := run.LoadModel(filepath.Join(f.dir, name))
	if err != nil {
		f.Error(err)
		return text
	}
	return text + fmt.Sprintf("%x parameters\n", sha256.Sum256(fmt.Append(nil, m.File.W)))
}

// predictions are those of the model, of the first rows that it was trained on.
func (f *fixture) predictions(name string, info *runlog.Info) string {
	if _, err := os.Stat(filepath.Join(f.dir, name, runlog.ModelFile)); err != nil {
		return "no model\n"
	}
	data := "heldout.csv"
	switch {
	case strings.HasPrefix(info.Dataset, "shapes"):
		data = "shapes-images-idx3-ubyte"
	case strings.HasPrefix(info.Dataset, "visits"):
		data = "visits.csv"
	}
	said := f.must("predict", "--model", name, "--data", data)
	return strings.Join(strings.SplitAfterN(said, "\n", 12)[:11], "")
}

// madeBy is the row of a disclosure that names the program.
var madeBy = regexp.MustCompile(`(?m)^<tr><th scope="row">program of this page</th>.*\n`)

// disclosure takes the disclosure that was just written, without what it says of the program that made it.
func (f *fixture) disclosure(name string) {
	var d map[string]json.RawMessage
	var made disclosure.Made
	text := f.file("disclosure.json")
	if err := errors.Join(json.Unmarshal([]byte(text), &d), json.Unmarshal(d["made"], &made)); err != nil {
		f.Fatal(err)
	}
	page := f.file("disclosure.html")
	page = strings.ReplaceAll(page, fmt.Sprintf("%x", sha256.Sum256([]byte(text))), "@HASH@")
	at, err := time.Parse(time.RFC3339, made.At)
	if err != nil {
		f.Fatal(err)
	}
	page = strings.ReplaceAll(page, at.Format("2006-01-02 15:04:05 UTC"), "@AT@")
	page = madeBy.ReplaceAllString(page, "")
	delete(d, "made")
	b, err := json.Marshal(d)
	if err != nil {
		f.Fatal(err)
	}
	f.texts[name+"/disclosure.json"] = f.plain(pretty(string(b)))
	f.texts[name+"/disclosure.html"] = f.plain(page)
	for _, file := range []string{"disclosure.json", "disclosure.html"} {
		if err := os.Remove(filepath.Join(f.dir, file)); err != nil {
			f.Fatal(err)
		}
	}
}

// begin starts a process that says its address in its first line, on standard output or error, as match finds it.
func (f *fixture) begin(stderr bool, match string, args ...string) (c *exec.Cmd, url string) {
	f.Helper()
	c = f.in(args...)
	pipe := c.StdoutPipe
	if stderr {
		pipe = c.StderrPipe
	}
	out, err := pipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Process.Kill(); c.Wait() })
	words := bufio.NewReader(out)
	line, err := words.ReadString('\n')
	if err != nil {
		f.Fatal(err)
	}
	found := regexp.MustCompile(match).FindStringSubmatch(line)
	if found == nil {
		f.Fatalf("sotto %s says %q", strings.Join(args, " "), line)
	}
	go io.Copy(io.Discard, words)
	return c, found[1]
}

// shards lets a run go on whose rows are part1.csv and part2.csv, each at a worker.
func (f *fixture) shards(name string, info *runlog.Info) {
	c, url := f.begin(true, `at (\S+)`, "fit", "--resume", name, "--workers", "127.0.0.1:0", "--key", "key")
	var workers []*exec.Cmd
	for i := range info.Shards {
		args := []string{"worker", filepath.Base(info.SpecFile), "--hub", url, "--key", "key", "--shard", fmt.Sprintf("%d/%d", i+1, info.Shards), "--data", fmt.Sprintf("part%d.csv", i+1), "--quiet", "--adjacency", info.Budget.Adjacency.String()}
		if info.Lab {
			args = append(args, "--lab")
		}
		w := f.in(args...)
		if err := w.Start(); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { w.Process.Kill() })
		workers = append(workers, w)
	}
	for _, p := range append(workers, c) {
		if err := p.Wait(); err != nil {
			f.Errorf("%s: %v", name, err)
		}
	}
}

// network lets the owners of a network go on, each in the directory of its name, over the hub as it is.
func (f *fixture) network() {
	hub, url := f.begin(false, `(\S+)`, "hub", "hub.json", "--dir", "hub", "--port", "0")
	owners, err := filepath.Glob(filepath.Join(f.dir, "*", "credentials.json"))
	if err != nil {
		f.Fatal(err)
	}
	nodes := map[string]*exec.Cmd{}
	for _, path := range owners {
		owner := filepath.Base(filepath.Dir(path))
		if f.finished(owner + "/part") {
			continue
		}
		digits := strings.Split(f.must("net", "fingerprint", owner+"/credentials.json"), "\n")
		c := f.in("node", "net.yaml", "--quiet", "--credentials", owner+"/credentials.json", "--key", owner+"/owner.key", "--fingerprint", digits[1], "--data", owner+"/rows.csv", "--dir", owner+"/part", "--ledger", owner+"/ledger.db", "--hub", url)
		c.Stderr = new(bytes.Buffer)
		if err := c.Start(); err != nil {
			f.Fatal(err)
		}
		nodes[owner] = c
	}
	for owner, c := range nodes {
		if err := c.Wait(); err != nil {
			f.Errorf("%s: %v\n%s", owner, err, c.Stderr)
		}
	}
	hub.Process.Kill()
}

// compare compares the texts with those that testdata has. -update writes them there.
func (f *fixture) compare(at string) {
	f.Helper()
	short, pages := filepath.Join(at, "golden.txtar"), filepath.Join(at, "pages.txtar.zst")
	if *update {
		var files [2]txtar.Archive
		for _, name := range slices.Sorted(maps.Keys(f.texts)) {
			a := &files[0]
			if isPage(name) {
				a = &files[1]
			}
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(f.texts[name])})
		}
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
		if err == nil {
			err = errors.Join(os.WriteFile(short, txtar.Format(&files[0]), 0o644), os.WriteFile(pages, z.EncodeAll(txtar.Format(&files[1]), nil), 0o644))
		}
		if err != nil {
			f.Fatal(err)
		}
		return
	}
	if runtime.GOARCH != "amd64" {
		return // a fused product and sum gives other digits
	}
	want := map[string]string{}
	for _, file := range []string{short, pages} {
		b, err := os.ReadFile(file)
		if err == nil && file == pages {
			var z *zstd.Decoder
			if z, err = zstd.NewReader(nil); err == nil {
				b, err = z.DecodeAll(b, nil)
				z.Close()
			}
		}
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range txtar.Parse(b).Files {
			want[text.Name] = string(text.Data)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := f.texts[name]; !ok {
			f.Errorf("%s is gone", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.texts)) {
		got := strings.TrimRight(f.texts[name], "\n")
		was, ok := want[name]
		if was = strings.TrimRight(was, "\n"); !ok || got != was {
			f.Errorf("%s differs (- was, + is):\n%s", name, cmp.Diff(strings.Split(was, "\n"), strings.Split(got, "\n")))
		}
	}
}

// isPage says whether a text is kept with the long ones.
func isPage(name string) bool {
	return strings.HasSuffix(name, ".html") || strings.HasSuffix(name, "/disclosure.json")
}
