// Package arch checks the rules of Sotto's source as a test: which package
// may know which other (the layer table of the design), and what no package, or
// only a named one, may use. It reads source text, so the rules hold for every
// platform and build tag at once. Tests are exempt: they may import anything.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sottodp/sotto"

// Groups of packages that the table names together.
var (
	words    = []string{"privacy", "config", "method/reg", "internal/kern"}
	privacys = []string{"privacy", "privacy/account", "privacy/clip", "privacy/mech", "privacy/noise", "privacy/sample"}
	// public is layers 0 to 2 without whatever holds records.
	public = join(words, privacys, []string{"schema", "method/schedule", "method/secondorder", "oracle"})
)

// table says which of this module's packages a package may import. It is the
// table of the design; a new package gets its line here, on purpose.
var table = map[string][]string{
	// Layer 0, words.
	"privacy":       {},
	"method/reg":    {},
	"internal/kern": {},

	// Scattering coefficients of images.
	"internal/scatter": {"internal/kern"},

	// Drawing, text for a terminal, solvers, and the statistics of audits, which import nothing.
	"internal/chart": {},
	"internal/text":  {},
	"internal/audit": {},
	"internal/lbfgs": {},

	// Takes passwords out of texts.
	"internal/redact": {},

	// Equal rows of one person, and of two.
	"internal/twins": {},

	// Lists that programs of other modules add to.
	"internal/registry": {},

	// Opens files that others may have written.
	"internal/readfile": {"internal/vfs"},

	// The file system below what holds budget.
	"internal/vfs": {},

	// The frames of journals.
	"internal/frame": {},

	// What a person wrote: specs, schemas and their positions; the public description of a table.
	"config": {"internal/redact", "internal/readfile"},
	"schema": join(words, []string{"config", "internal/chart", "internal/readfile", "internal/scatter"}),

	// Where an owner's state lies.
	"internal/state": {},

	// Synthetic records. Nothing that trains for use may hold them: a line with it belongs to the private oracle or to an audit.

	// Builds the Python package.
	"internal/program": {},

	// The hook for the driver of PostgreSQL, and the driver.
	"internal/postgres": {},
	"postgres":          {"internal/postgres"},

	// The hook for stores of objects, and the store.
	"internal/object": {"internal/redact", "config", "internal/readfile"},
	"s3":              {"config", "internal/object", "internal/readfile"},
	"internal/wheel":  {"internal/program"},

	// Layer 1, parts. A mechanism and a sampler draw from a noise source: the
	// one import within the layer.
	"privacy/noise":   words,
	"privacy/account": words,
	"privacy/clip":    words,
	"privacy/mech":    join(words, []string{"privacy/noise"}),
	"privacy/sample":  join(words, []string{"privacy/noise"}),
	"data":            join(words, []string{"internal/redact", "config", "schema", "internal/twins", "internal/newfile", "internal/object", "internal/postgres", "internal/readfile", "internal/scatter"}),
	"data/source":     {"config", "data", "schema", "internal/kern", "internal/postgres", "internal/readfile", "internal/registry"},
	"method/schedule": {"privacy", "privacy/account"},

	// What the second-order methods share.
	"method/secondorder": join(privacys, []string{"oracle", "method/reg"}),

	// What the papers claim, which nothing that charges may know.
	"privacy/account/claimed": {"privacy", "privacy/account", "method/schedule"},

	// Layer 2, models and the oracle from outside.
	"model/margin": {},
	"model":        {"data", "schema", "model/margin", "internal/kern", "internal/registry", "internal/newfile", "internal/vfs", "internal/readfile"},
	"oracle":       {"privacy", "privacy/mech", "privacy/sample", "privacy/clip"},

	// Models in another program's form: the schema's public facts and a model's parameters.
	"internal/onnx":        {"schema", "model", "internal/onnx/onnxpb", "internal/scatter"},
	"internal/onnx/onnxpb": {},

	// Layer 3: algorithms, which never see a record; the private oracle;
	// records of runs. Replay holds no data, so it gets private's line without it. A method's steps are sums
	// over vectors, which kern has.
	"method":         join(privacys, []string{"internal/kern", "oracle", "schema", "method/reg", "method/schedule", "method/secondorder", "internal/registry"}),
	"gossip":         join(privacys, []string{"oracle", "method", "method/reg", "method/schedule", "internal/registry"}),
	"oracle/sum":     {"oracle", "privacy/clip", "privacy/noise", "privacy/sample"}, // who adds up what: no data
	"oracle/private": join(public, []string{"data", "model", "oracle/perturb", "oracle/sum"}),
	"oracle/perturb": join(public, []string{"internal/lbfgs"}),               // bounds and solvers: no data
	"oracle/remote":  join(public, []string{"internal/twins", "oracle/sum"}), // no data: a shard is given a Summer
	"oracle/replay":  public,
	"run/runlog":     {"privacy", "privacy/account", "internal/frame", "internal/kern", "internal/newfile", "internal/vfs", "internal/readfile", "internal/text"},
	"ledger":         {"internal/chart", "internal/redact", "privacy", "privacy/account", "internal/postgres", "internal/state", "internal/newfile", "internal/vfs", "internal/readfile", "internal/text"},

	// What is known of a run. It recomputes ε from events, so it knows the words.
	"record": {"schema", "model/margin", "privacy", "privacy/account", "run/runlog", "ledger", "internal/chart", "internal/readfile", "internal/text"},

	// Private figures of a model, from noisy numbers.
	"run/quality": {"schema", "privacy", "privacy/account", "privacy/mech", "privacy/sample", "oracle", "run/runlog"},

	// What owners release to each other: their journals, and the way between machines.
	"gossip/transport": {"privacy/account", "oracle", "oracle/replay", "gossip", "run/runlog", "internal/newfile", "internal/readfile"},

	// What owners who train together agree on.
	"gossip/mask":      {},
	"gossip/agreement": {"privacy", "oracle", "gossip", "run/runlog", "internal/newfile", "internal/readfile"},

	// Sums of masked parts over the store, for the private oracle of each owner.
	"gossip/pool": {"privacy", "oracle/sum", "gossip/mask", "gossip/transport", "run/runlog"},

	// The gate to tables.
	"access": {"data", "data/source", "schema", "ledger", "internal/state", "internal/twins", "internal/newfile", "internal/vfs", "internal/readfile"},

	// Jobs: what runs do, settled before any has rows. Exact figures of models.
	"run/job":   join(public, []string{"internal/chart", "internal/readfile", "internal/redact", "internal/registry", "internal/text", "data", "model", "method", "ledger", "run/runlog", "run/quality"}),
	"run/score": {"data", "model", "run/job", "run/quality", "run/runlog"},

	// Layer 4, assembly: all above.
	"run": join(public, []string{"run/job", "run/score", "record", "access", "internal/postgres", "data", "model", "method", "oracle/private", "oracle/remote", "oracle/replay", "oracle/sum", "run/runlog", "run/quality", "internal/newfile", "internal/vfs", "ledger", "internal/chart", "internal/readfile", "internal/text"}),

	// A comparison drives runs in the lab, which leave no record.
	"study/compare": join(public, []string{"internal/chart", "access", "data", "model", "method", "run", "run/job", "run/score", "run/runlog", "internal/newfile", "internal/chart", "internal/readfile", "internal/text"}),

	// All owners simulated in one process; one owner on its own machine.
	// settles who trains together, from the spec, before any rows
	"gossip/netplan":  join(public, []string{"model", "method", "gossip", "gossip/agreement", "run", "run/job", "run/runlog", "internal/chart", "internal/readfile", "internal/text"}),
	"gossip/party":    join(public, []string{"record", "gossip/netplan", "internal/chart", "access", "data", "model", "method", "gossip", "gossip/pool", "gossip/transport", "oracle/replay", "run", "run/job", "run/score", "ledger", "gossip/agreement", "run/runlog", "internal/newfile", "internal/vfs", "internal/readfile", "internal/text"}),
	"gossip/demo":     {"gossip/netplan", "data", "model", "gossip/party", "gossip/simulate", "gossip/transport", "run", "run/job", "internal/newfile"},
	"gossip/simulate": join(public, []string{"gossip/netplan", "internal/chart", "access", "data", "model", "method", "gossip", "gossip/pool", "run", "run/job", "run/score", "run/runlog", "internal/text"}),

	// A run whose rows are on several machines of one owner.
	"run/describe": {"config", "data", "internal/chart", "internal/newfile", "internal/readfile", "ledger", "model", "oracle", "page/description", "privacy", "privacy/account", "privacy/mech", "privacy/noise", "privacy/sample", "record", "run", "run/job", "run/runlog", "schema"},
	"run/shards":   {"access", "privacy", "data", "schema", "oracle/private", "oracle/remote", "run", "run/job", "run/runlog", "internal/readfile"},

	// An audit of runs in the lab, with canaries among the rows.
	"study/audit": join(public, []string{"access", "data", "model", "method", "oracle/perturb", "oracle/private", "oracle/sum", "run", "run/runlog", "internal/newfile", "internal/chart", "internal/audit", "internal/readfile", "internal/text"}),

	// A search, which is charged and releases only its best.
	"study/tune": join(public, []string{"internal/chart", "access", "data", "model", "method", "run", "run/job", "run/score", "ledger", "run/runlog", "internal/newfile", "internal/vfs", "internal/text"}),

	// Layer 5, readers: pages over the record, and what an officer signs.
	"page":             {"privacy", "record", "run/runlog", "internal/newfile", "ledger", "internal/chart", "internal/readfile"},
	"page/description": {"privacy", "schema", "run/runlog", "page", "internal/chart"},
	"page/disclosure":  {"schema", "privacy", "privacy/account", "record", "run/runlog", "ledger", "page", "internal/chart", "internal/readfile", "internal/text"},

	// The dashboard reads files, and starts nothing but a verification.
	"web": {"internal/redact", "privacy", "privacy/account", "run", "run/runlog", "ledger", "record", "page", "page/description", "study/compare", "gossip/party", "study/audit", "internal/chart", "internal/readfile", "internal/text"},

	// A reproduced paper, on what everybody may use. Its tables are synthetic.
	"paper":    join(public, []string{"data", "schema", "model", "oracle/private", "run", "run/runlog", "access", "internal/chart", "internal/readfile", "internal/text"}),
	"paper/p0": join(public, []string{"data", "model", "method", "internal/chart", "internal/kern", "privacy/account/claimed", "paper"}),
	"paper/p1": join(public, []string{"method", "internal/chart", "paper"}),
	"paper/p2": join(public, []string{"data", "method", "run", "run/job", "study/compare", "internal/chart", "privacy/account/claimed", "paper"}),
	"paper/p3": join(public, []string{"data", "method", "gossip", "internal/chart", "internal/kern", "privacy/account/claimed", "paper"}),
	"paper/p4": join(public, []string{"data", "method", "internal/chart", "paper"}),

	// Every answer of `sotto plan`, from what is public: it reaches no rows.
	"plan": join(privacys, []string{"oracle", "method", "privacy/account/claimed", "internal/chart", "internal/text"}),

	// What every run rests on, examined.
	"run/size":   {"internal/readfile", "method", "plan", "run", "run/runlog", "schema"},
	"run/doctor": {"internal/redact", "internal/readfile", "internal/state", "internal/chart", "internal/kern", "privacy/noise", "run", "ledger"},

	// Files that flags name.
	"internal/newfile": {"internal/vfs"},

	// Ends a command when the process that started it ends.
	"internal/parent": {},

	// Layer 6.
	"cmd/sotto": {"cli"},
	"cli":       join(public, []string{"gossip/netplan", "internal/redact", "postgres", "s3", "access", "data", "model", "method", "oracle/replay", "run", "run/job", "run/runlog", "ledger", "record", "page", "page/description", "page/disclosure", "run/describe", "study/compare", "gossip/agreement", "gossip/party", "gossip/demo", "gossip/pool", "gossip/simulate", "study/audit", "run/shards", "study/tune", "web", "gossip", "gossip/transport", "internal/chart", "internal/onnx", "internal/newfile", "internal/parent", "plan", "run/doctor", "run/size", "paper", "paper/p0", "paper/p1", "paper/p2", "paper/p3", "paper/p4", "internal/readfile", "internal/text"}),

	// Helpers of tests: see helpers.
	"data/datatest":      {"data"},
	"schema/schematest":  {},
	"internal/crossings": {},
	"record/recordtest":  {"internal/chart"},
	"internal/needs":     {"postgres"},
	"internal/relay":     {},
	"internal/leaves":    {},
	"internal/race":      {},
	"internal/tasks":     {},
	"internal/simdisk":   {"internal/vfs"},
	"internal/proofs":    {},
	"model/modeltest":    {"data", "model"},
	"paper/papertest":    {"paper", "internal/needs"},

	// The simulated network below the simulators of gossip/party and gossip/pool: it knows the link to a hub, and no owner's protocol.
	"gossip/transport/transporttest": {"gossip/transport"},

	"method/methodtest": join(public, []string{"data", "model", "model/modeltest", "method", "oracle/private", "oracle/replay", "run", "run/runlog", "ledger", "page"}),
}

// helpers are packages for tests: only tests and other helpers import them, and
// the rules on the clock, files and random numbers leave them alone.
var helpers = []string{"data/datatest", "schema/schematest", "internal/crossings", "record/recordtest", "internal/needs", "internal/proofs", "internal/leaves", "internal/race", "internal/relay", "internal/simdisk", "internal/tasks", "model/modeltest", "method/methodtest", "paper/papertest", "gossip/transport/transporttest"}

// dataReaders are the only packages that may import data themselves.
var dataReaders = []string{"data", "data/source", "model", "data/datatest", "oracle/private", "run/job", "run/score", "run", "access", "paper", "study/compare", "gossip/party", "gossip/demo", "gossip/simulate", "study/audit", "run/describe", "run/shards", "study/tune", "paper/p0", "paper/p2", "paper/p3", "paper/p4", "cli"}

// assembles says which files may use what of oracle/private gives access to rows: an oracle is assembled in one place, and
// sums before noise are for shards, which seal them, and for audits.
var assembles = map[string][]string{
	"New":      {"run/trainer.go"},
	"Config":   {"run/trainer.go"},
	"NewLocal": {"study/audit/audit.go", "study/audit/crafted.go", "run/shards/worker.go"},
}

// audits says which file may use package study/audit, whose canaries nothing that trains for use may reach;
// of it, the dashboard reads results.
var (
	audits       = "cli/audit.go"
	auditResults = []string{"Result", "Read", "DataFile", "Meaning"}
)

// sealed packages must not reach data on any path of imports.
var sealed = []string{"plan", "run/quality", "method", "gossip", "gossip/agreement", "gossip/transport", "method/reg", "method/schedule", "method/secondorder", "oracle", "oracle/perturb", "oracle/replay", "record", "page", "page/description", "page/disclosure", "run/runlog", "ledger"}

// withoutRows are packages that work from what is public: they must reach neither the readers
// of tables nor the gate to them, on any path of imports.
var withoutRows = []string{"schema", "plan", "internal/onnx", "gossip/agreement", "run/job", "run/score"}

// readers are what they must not reach.
var readers = []string{"data/source", "access"}

// crypto says who may use which cryptography of the standard library. Whatever
// is not listed makes or uses keys, and Sotto keeps none.
var crypto = map[string][]string{
	"crypto/sha256":    {"*"},
	"crypto/sha512":    {"page/disclosure"}, // of signatures that ssh-keygen made
	"crypto/hmac":      {"*"},
	"crypto/subtle":    {"*"},
	"crypto/rand":      {"data", "privacy/noise", "run/job", "access", "ledger", "gossip/transport", "gossip/mask"}, // the hashes of ids in memory; noise; run identities and keys of holdouts; the key of the owner's sketches of tables; the ledger's tokens (R7) and mark key (R4); owners' keys; keys of masks
	"crypto/ed25519":   {"gossip/transport", "gossip/transport/transporttest", "run/shards"},                        // owners' signatures, also of simulated ones; the proof of a shared key
	"crypto/tls":       {"gossip/transport", "run/shards"},                                                          // the way to the hub; of a worker to its coordinator
	"crypto/x509":      {"gossip/transport", "run/shards"},                                                          // certificates of owners and hub; those around the proof
	"crypto/x509/pkix": {"gossip/transport"},
	"crypto/aes":       {"data", "privacy/noise", "oracle/remote", "gossip/mask"}, // hashes of raw rows (ADR 44); what shards and their coordinator seal (R22); masks of a sum
	"crypto/cipher":    {"data", "privacy/noise", "oracle/remote", "gossip/mask"},
	"crypto/ecdh":      {"gossip/mask"}, // the secrets of two owners
	"crypto/hkdf":      {"gossip/mask"},
}

// weakRandom says who may use math/rand and what of it, by package or file; nil
// means all of it.
var weakRandom = map[string][]string{
	"data/synth":    nil, // synthetic tables hold no person's record
	"data/synth.go": nil,
	"privacy/noise": {"ChaCha8", "NewChaCha8"}, // a cryptographic generator that lives in math/rand/v2
	"gossip":        {"ChaCha8"},               // public schedules
}

// opens says which files may open or read a file through package os, and why it is
// not one that others may have written. All else uses internal/readfile. Programs
// that build Sotto are left alone.
var opens = map[string]string{
	"internal/readfile/readfile.go": "the one place",
	"internal/vfs/vfs.go":           "what internal/readfile opens files by; run logs, journals and ledgers make new files by it, exclusively",
	"internal/newfile/newfile.go":   "writes to the pipe or device that a person named; syncs a directory",
}

var builders = []string{"internal/wheel", "internal/program"}

// A source is one file: its path in the module and its text.
type source struct{ name, text string }

func join(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// violations lists what the files break, each with file and import. Test files
// are left out.
func violations(files []source) []string {
	var found []string
	imports := map[string]map[string]string{} // package → imported package → file
	for _, f := range files {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		say := func(format string, args ...any) {
			found = append(found, f.name+": "+fmt.Sprintf(format, args...))
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.SkipObjectResolution)
		if err != nil {
			say("%v", err)
			continue
		}
		pkg := path.Dir(f.name)
		allowed, known := table[pkg]
		if !known {
			say("package %s is not in the import table: add it to table in internal/arch/arch_test.go, with what the design lets it import", pkg)
			continue
		}
		if imports[pkg] == nil {
			imports[pkg] = map[string]string{}
		}
		for _, spec := range tree.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				say("import %s: %v", spec.Path.Value, err)
				continue
			}
			if own, ok := strings.CutPrefix(p, module+"/"); ok {
				imports[pkg][own] = f.name
				switch {
				case slices.Contains(helpers, own) && !slices.Contains(helpers, pkg):
					say("imports %s, which is for tests only", own)
				case !slices.Contains(allowed, own):
					say("imports %s; package %s may import: %s", own, pkg, orNothing(allowed))
				case own == "data" && !slices.Contains(dataReaders, pkg) && !slices.Contains(helpers, pkg):
					say("imports data; only %s may, since only they read records", strings.Join(dataReaders, ", "))
				case own == "study/audit" && f.name != audits:
					for _, use := range uses(tree, spec, p) {
						if pkg != "web" || !slices.Contains(auditResults, use) {
							say("found audit.%s; only %s starts an audit, whose canaries and faults are for no other run", use, audits)
						}
					}
				case own == "oracle/private" && !slices.Contains(helpers, pkg): // one assembly (run.Trainer), and who may hold sums before noise
					for _, use := range uses(tree, spec, p) {
						if files := assembles[use]; use == "." || files != nil && !slices.Contains(files, f.name) {
							say("found private.%s; an oracle is assembled by run.Trainer, and its rows are summed for it alone", use)
						}
					}
				case own == "data" && pkg != "access" && !slices.Contains(helpers, pkg): // the one gate to rows (R24)
					for _, use := range uses(tree, spec, p) {
						if slices.Contains([]string{"Read", "Stream", "Pack", "."}, use) || use == "OpenFile" && pkg != "data/source" {
							say("rows are opened through package access, found data.%s", use)
						}
					}
				}
				continue
			}
			if why := foreign(pkg, f.name, p, tree, spec); why != "" {
				say("imports %s: %s", p, why)
			}
		}
	}
	for _, pkg := range sealed {
		if way := reach(imports, pkg, "data"); way != nil {
			found = append(found, fmt.Sprintf("%s: package %s reaches data through %s", imports[way[0]][way[1]], pkg, strings.Join(way, " → ")))
		}
	}
	for _, pkg := range withoutRows {
		for _, to := range readers {
			if way := reach(imports, pkg, to); way != nil {
				found = append(found, fmt.Sprintf("%s: package %s opens no table, but reaches %s through %s", imports[way[0]][way[1]], pkg, to, strings.Join(way, " → ")))
			}
		}
	}
	return found
}

// foreign says why package pkg may not import p, a package of the standard
// library or of others; empty if it may.
func foreign(pkg, file, p string, tree *ast.File, spec *ast.ImportSpec) string {
	helper := slices.Contains(helpers, pkg)
	switch {
	case p == "text/template":
		return "pages are HTML: html/template escapes what they show"
	case p == "github.com/goccy/go-yaml/parser" && pkg != "config":
		return "YAML is parsed by package config, which checks its nesting first"
	case p == "log" || p == "log/slog":
		return "no package logs; a line of text is an output, and outputs are returned or written where they are promised"
	case !helper && (p == "math/rand" || p == "math/rand/v2"):
		names, ok := weakRandom[file]
		if !ok {
			names, ok = weakRandom[pkg]
		}
		if !ok {
			return "only data/synth and tests may; noise, samples and keys come from privacy/noise"
		}
		for _, use := range uses(tree, spec, p) {
			if names != nil && !slices.Contains(names, use) {
				return "package " + pkg + " may use of it only " + strings.Join(names, ", ") + ", found " + use
			}
		}
	case p == "crypto" || strings.HasPrefix(p, "crypto/"):
		if who := crypto[p]; !slices.Contains(who, "*") && !slices.Contains(who, pkg) {
			return "allowed in " + orNothing(who) + "; Sotto keeps no keys elsewhere"
		}
	case !helper && within(pkg, "method") && (within(p, "os") || within(p, "net") || p == "syscall"):
		return "a method computes; it has no files and no network"
	case !helper && p == "time" && (within(pkg, "privacy") || within(pkg, "oracle") || within(pkg, "method")):
		for _, use := range uses(tree, spec, p) {
			if slices.Contains([]string{"Now", "Since", "Until", "."}, use) {
				return "package " + pkg + " must not read the clock, found time." + use
			}
		}
	case p == "os" && !helper && !slices.Contains(builders, pkg) && opens[file] == "":
		for _, use := range uses(tree, spec, p) {
			if slices.Contains([]string{"Open", "OpenFile", "ReadFile", "OpenRoot", "OpenInRoot", "DirFS", "."}, use) {
				return "found os." + use + "; files are opened by internal/readfile, which takes regular files only, does not wait and reads no more than a limit"
			}
		}
	}
	return ""
}

// uses lists what of the import p the file mentions; "." if it is a dot import,
// of which one cannot tell.
func uses(tree *ast.File, spec *ast.ImportSpec, p string) []string {
	name := path.Base(strings.TrimSuffix(p, "/v2"))
	if spec.Name != nil {
		name = spec.Name.Name
	}
	if name == "." {
		return []string{"."}
	}
	var found []string
	ast.Inspect(tree, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				found = append(found, sel.Sel.Name)
			}
		}
		return true
	})
	return found
}

// within reports whether p is root or below it.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing of this kind"
	}
	return strings.Join(list, ", ")
}

// reach is a way of imports from one package to another, nil if there is none.
func reach(imports map[string]map[string]string, from, to string) []string {
	seen := map[string]bool{}
	var walk func(at string) []string
	walk = func(at string) []string {
		if at == to {
			return []string{at}
		}
		if seen[at] {
			return nil
		}
		seen[at] = true
		for _, next := range slices.Sorted(maps.Keys(imports[at])) {
			if way := walk(next); way != nil {
				return append([]string{at}, way...)
			}
		}
		return nil
	}
	return walk(from)
}

// readTree reads the Go files of the module at root; other modules below it, and
// what the go command leaves out, are left out.
func readTree(root string) ([]source, error) {
	var files []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p == root {
				return nil
			}
			_, err := os.Stat(filepath.Join(p, "go.mod"))
			if err == nil || name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		files = append(files, source{filepath.ToSlash(rel), string(text)})
		return err
	})
	return files, err
}

// TestArchitecture holds the rules against this module.
func TestArchitecture(t *testing.T) {
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("%s is not the root of %s: %v", root, module, err)
	}
	files, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(f source) bool { return within(f.name, "model") }) {
		t.Fatalf("found no file of package model among %d", len(files))
	}
	for _, v := range violations(files) {
		t.Error(v)
	}
}

// TestHomes: tests of packages that reach ledgers run with data and state
// directories of their own, so that they neither find nor leave anything in those of
// the person who runs them.
func TestHomes(t *testing.T) {
	files, err := readTree(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]map[string]string{} // a package's tests are a package of their own
	homes := map[string]bool{}
	for _, f := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		pkg := path.Dir(f.name)
		if strings.HasSuffix(f.name, "_test.go") {
			homes[pkg] = homes[pkg] || strings.Contains(f.text, "needs.Home(")
			if pkg += " (tests)"; imports[pkg] == nil {
				imports[pkg] = map[string]string{path.Dir(f.name): f.name}
			}
		}
		if imports[pkg] == nil {
			imports[pkg] = map[string]string{}
		}
		for _, spec := range tree.Imports {
			if p, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(p, module+"/") {
				imports[pkg][strings.TrimPrefix(p, module+"/")] = f.name
			}
		}
	}
	for pkg, home := range homes {
		if way := reach(imports, pkg+" (tests)", "ledger"); way != nil && !home {
			t.Errorf("%s reach ledgers (%s): add func TestMain(m *testing.M) { os.Exit(needs.Home(m)) }", way[0], strings.Join(way, " → "))
		}
	}
}

// TestTable: the table names only packages that it knows, and has no circle.
func TestTable(t *testing.T) {
	graph := map[string]map[string]string{}
	for pkg, allowed := range table {
		graph[pkg] = map[string]string{}
		for _, a := range allowed {
			if _, ok := table[a]; !ok {
				t.Errorf("%s may import %s, which is not in the table", pkg, a)
			}
			graph[pkg][a] = ""
		}
	}
	for pkg := range table {
		for next := range graph[pkg] {
			if way := reach(graph, next, pkg); way != nil {
				t.Errorf("a circle: %s → %s", pkg, strings.Join(way, " → "))
			}
		}
	}
	for _, pkg := range sealed {
		if way := reach(graph, pkg, "data"); way != nil {
			t.Errorf("the table lets %s reach data: %s", pkg, strings.Join(way, " → "))
		}
	}
	for _, pkg := range withoutRows {
		for _, to := range readers {
			if way := reach(graph, pkg, to); way != nil {
				t.Errorf("the table lets %s reach %s: %s", pkg, to, strings.Join(way, " → "))
			}
		}
	}
}

// TestRules: every rule finds what it is for, and names file and import.
func TestRules(t *testing.T) {
	own := func(p string) string { return strconv.Quote(module + "/" + p) }
	for _, c := range []struct {
		name, file, code string
		want             string // "" for no violation
	}{
		{"allowed", "model/a.go", "import _ " + own("data"), ""},
		{"layer", "method/a.go", "import _ " + own("data"), "method/a.go: imports data; package method may import: internal/kern, internal/registry, method/"},
		{"private oracle", "method/a.go", "import _ " + own("oracle/private"), "method/a.go: imports oracle/private"},
		{"assembly", "study/tune/a.go", "import _ " + own("oracle/private"), "study/tune/a.go: imports oracle/private"},
		{"assembly in run", "run/a.go", "import " + own("oracle/private") + "; var _ = private.New", "run/a.go: found private.New"},
		{"sums before noise", "run/a.go", "import " + own("oracle/private") + "; var _ = private.NewLocal", "run/a.go: found private.NewLocal"},
		{"audit in fit", "cli/fit.go", "import " + own("study/audit") + "; var _ = audit.Faults", "cli/fit.go: found audit.Faults"},
		{"faults on a page", "web/a.go", "import " + own("study/audit") + "; var _ = audit.Craft", "web/a.go: found audit.Craft"},
		{"the results of an audit", "web/a.go", "import " + own("study/audit") + "; var _ = audit.Read", ""},
		{"the assembly", "run/trainer.go", "import " + own("oracle/private") + "; var _ = private.New", ""},
		{"model in method", "method/a.go", "import _ " + own("model"), "method/a.go: imports model"},
		{"upward", "data/a.go", "import _ " + own("run"), "data/a.go: imports run"},
		{"within the layer", "privacy/mech/a.go", "import _ " + own("privacy/noise"), ""},
		{"across the layer", "privacy/noise/a.go", "import _ " + own("privacy/mech"), "privacy/noise/a.go: imports privacy/mech"},
		{"replay", "oracle/replay/a.go", "import _ " + own("data"), "oracle/replay/a.go: imports data"},
		{"report", "page/a.go", "import _ " + own("run"), "page/a.go: imports run"},
		{"tests are exempt", "method/a_test.go", "import _ " + own("data"), ""},
		{"new room", "cloud/a.go", "", "package cloud is not in the import table: add it"},
		{"helper", "run/a.go", "import _ " + own("internal/needs"), "run/a.go: imports internal/needs, which is for tests only"},
		{"simulated network", "gossip/party/a.go", "import _ " + own("gossip/transport/transporttest"), "gossip/party/a.go: imports gossip/transport/transporttest, which is for tests only"},
		{"helper of a helper", "method/methodtest/a.go", "import _ " + own("model/modeltest"), ""},
		{"yaml", "run/a.go", `import "github.com/goccy/go-yaml/parser"`, "run/a.go: imports github.com/goccy/go-yaml/parser: YAML is parsed by package config"},
		{"log", "run/a.go", `import "log"`, "run/a.go: imports log: no package logs"},
		{"slog", "cli/a.go", `import "log/slog"`, "cli/a.go: imports log/slog"},
		{"templates", "web/a.go", `import "text/template"`, "web/a.go: imports text/template: pages are HTML"},
		{"escaping templates", "web/a.go", `import "html/template"; var _ = template.New`, ""},
		{"random", "run/a.go", `import "math/rand/v2"`, "run/a.go: imports math/rand/v2: only data/synth"},
		{"old random", "privacy/sample/a.go", `import r "math/rand"`, "privacy/sample/a.go: imports math/rand"},
		{"synthetic", "data/synth.go", `import "math/rand/v2"; var _ = rand.New`, ""},
		{"beside synthetic", "data/encode.go", `import "math/rand/v2"`, "data/encode.go: imports math/rand/v2"},
		{"ChaCha8", "privacy/noise/a.go", `import "math/rand/v2"; var _ rand.ChaCha8`, ""},
		{"PCG", "privacy/noise/a.go", `import r "math/rand/v2"; var _ = r.NewPCG`, "may use of it only ChaCha8, NewChaCha8, found NewPCG"},
		{"random in a helper", "method/methodtest/a.go", `import "math/rand/v2"`, ""},
		{"dot", "privacy/noise/a.go", `import . "math/rand/v2"`, "found ."},
		{"hash", "data/a.go", `import "crypto/sha256"`, ""},
		{"secure bits", "privacy/noise/a.go", `import "crypto/rand"`, ""},
		{"secure bits elsewhere", "method/a.go", `import "crypto/rand"`, "method/a.go: imports crypto/rand: allowed in data, privacy/noise, run/job, access, ledger, gossip/transport, gossip/mask"},
		{"keys", "run/a.go", `import "crypto/ed25519"`, "run/a.go: imports crypto/ed25519: allowed in gossip/transport, gossip/transport/transporttest, run/shards"},
		{"files", "method/schedule/a.go", `import "os"`, "method/schedule/a.go: imports os: a method computes"},
		{"network", "method/a.go", `import "net/http"`, "method/a.go: imports net/http"},
		{"files in run", "run/a.go", `import "os"`, ""},
		{"special files", "run/a.go", `import "os"; var _ = os.ReadFile`, "run/a.go: imports os: found os.ReadFile; files are opened by internal/readfile"},
		{"new files", "internal/newfile/newfile.go", `import "os"; var _ = os.OpenFile`, ""},
		{"clock", "oracle/private/a.go", `import "time"; var _ = time.Now()`, "oracle/private/a.go: imports time: package oracle/private must not read the clock, found time.Now"},
		{"renamed clock", "privacy/account/a.go", `import clock "time"; var _ = clock.Since`, "found time.Since"},
		{"durations", "method/a.go", `import "time"; const _ = time.Second`, ""},
		{"clock in run", "run/a.go", `import "time"; var _ = time.Now`, ""},
		{"gate", "run/a.go", "import " + own("data") + "; var _ = data.Read", "run/a.go: rows are opened through package access, found data.Read"},
		{"gate, renamed", "study/tune/a.go", "import d " + own("data") + "; var _ = d.Pack", "found data.Pack"},
		{"gate, by file", "paper/p4/a.go", "import " + own("data") + "; var _ = data.OpenFile", "found data.OpenFile"},
		{"reader", "data/source/a.go", "import " + own("data") + "; var _ = data.OpenFile", ""},
		{"gate, streamed", "run/a.go", "import " + own("data") + "; var _ = data.Stream", "run/a.go: rows are opened through package access, found data.Stream"},
		{"in the gate", "access/a.go", "import " + own("data") + "; var _ = data.Read", ""},
		{"readers", "run/a.go", "import _ " + own("data/source"), "run/a.go: imports data/source; package run may import"},
		{"plan without rows", "plan/a.go", "import _ " + own("access"), "plan/a.go: package plan opens no table, but reaches access through plan → access"},
		{"no rows", "run/a.go", "import " + own("data") + "; var _ = data.Subset", ""},
		{"broken", "run/a.go", "import (", "run/a.go: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := violations([]source{{c.file, "package a; " + c.code}})
			if c.want == "" && len(got) != 0 {
				t.Errorf("found %q, want nothing", got)
			}
			if c.want != "" && !slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, c.want) }) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
	got := violations([]source{
		{"method/a.go", "package method; import _ " + own("oracle")},
		{"oracle/b.go", "package oracle; import _ " + own("privacy/mech")},
		{"privacy/mech/c.go", "package mech; import _ " + own("data")},
	})
	want := "method/a.go: package method reaches data through method → oracle → privacy/mech → data"
	if !slices.Contains(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
