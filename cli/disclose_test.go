package cli

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/run/runlog"
)

// clinicDisclosure is the disclosure of a run of examples/clinic: its run directory, its ledger and the file.
func clinicDisclosure(t *testing.T, flags ...string) (dir, ledger, file string) {
	t.Helper()
	work := t.TempDir()
	dir, ledger = filepath.Join(work, "run"), filepath.Join(work, "ledger.db")
	succeeds(t, "fit", "../examples/clinic/sotto.yaml", "--out", dir, "--ledger", ledger, "--quiet")
	succeeds(t, append([]string{"disclose", dir}, flags...)...)
	return dir, ledger, filepath.Join(dir, disclosure.File)
}

func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	out, err := sotto(t, args...).Output()
	if err != nil {
		t.Fatalf("sotto %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func jsonOf(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDisclosureSchema: the disclosure of examples/clinic, in which everything is stated, is one by docs/disclosure.schema.json; with a
// field more, a field less, or another type it is none. The schema itself is one by its own meta-schema.
func TestDisclosureSchema(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	schema := published(t, "disclosure.schema.json")
	dir, _, file := clinicDisclosure(t)
	text := readFile(t, file)
	if !bytes.Contains(text, []byte(`"not_stated": []`)) {
		t.Error("something is not stated")
	}
	if err := schema.Validate(jsonOf(t, text)); err != nil {
		t.Errorf("%v", err)
	}
	corrected := filepath.Join(dir, "corrected.json")
	succeeds(t, "disclose", dir, "--out", corrected, "--supersedes", file, "--spec", "../examples/clinic/sotto.yaml")
	if err := schema.Validate(jsonOf(t, readFile(t, corrected))); err != nil {
		t.Errorf("a corrected one: %v", err)
	}

	// Under a filter and replace-one, with a sampled plan; and, since rows were accessed without protection, with no lifetime guarantee.
	filter, other := filepath.Join(dir, "filter.db"), filepath.Join(t.TempDir(), "other")
	succeeds(t, "ledger", "budget", "clinic", "--epsilon", "4", "--delta", "1e-5", "--adjacency", "replace-one", "--currency", "rdp", "--ledger", filter)
	succeeds(t, "fit", "../examples/clinic/sotto.yaml", "--method", "sgd", "--set", "method.batch=64", "--adjacency", "replace-one", "--delta", "1e-6", "--out", other, "--ledger", filter, "--quiet")
	succeeds(t, "disclose", other)
	sampled := readFile(t, filepath.Join(other, disclosure.File))
	succeeds(t, "fit", "../examples/clinic/sotto.yaml", "--lab", "--seed", "1", "--void", "--adjacency", "replace-one", "--out", filepath.Join(dir, "lab"), "--ledger", filter, "--quiet")
	ended := filepath.Join(dir, "ended.json")
	succeeds(t, "disclose", other, "--out", ended)
	for _, text := range [][]byte{sampled, readFile(t, ended)} {
		if err := schema.Validate(jsonOf(t, text)); err != nil {
			t.Errorf("%v", err)
		}
	}
	if !bytes.Contains(sampled, []byte(`"total": {`)) || !bytes.Contains(readFile(t, ended), []byte(`"total": null`)) {
		t.Error("a filter's budget is the total until rows are accessed without protection")
	}

	for old, changed := range map[string]string{
		`"format": "sotto-disclosure/1"`: `"format": "sotto-disclosure/2"`,
		`"dataset": "clinic",`:           ``,
		`"asserted": [],`:                `"asserted": [], "more": 1,`,
		`"unprotected": []`:              `"unprotected": null`,
		`"relation": "add-or-remove"`:    `"relation": "both"`,
	} {
		if bad := strings.Replace(string(text), old, changed, 1); bad == string(text) || schema.Validate(jsonOf(t, []byte(bad))) == nil {
			t.Errorf("%s instead of %s is allowed", changed, old)
		}
	}
}

// TestDisclosureChanged: whatever fact of a disclosure is changed, and whatever file of its run or ledger, verify finds it.
func TestDisclosureChanged(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	dir, where, file := clinicDisclosure(t)
	text := readFile(t, file)
	check := func() (string, error) {
		c := sotto(t, "verify", dir, "--disclosure", file, "--ledger", where)
		c.Stderr = nil
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil || strings.Count(out, "\ndisclosure  holds: every fact") != 1 || !strings.Contains(out, "\nlifetime    holds: ") {
		t.Fatalf("unchanged: %v\n%s", err, out)
	}

	// Every fact. One command for each would take minutes, so this calls what the command does.
	l, err := ledger.View(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	changed := 0
	var each func(path string, v any, set func(any))
	each = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for key := range v {
				each(path+"."+key, v[key], func(x any) { v[key] = x })
			}
			return
		case []any:
			for i := range v {
				each(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })
			}
			return
		case string:
			set(v + "0")
		case float64:
			set(v * 1.5)
			if v == 0 {
				set(0.5)
			}
			if path == ".facts.lifetime.head.seq" {
				set(v + 1)
			}
		case bool:
			set(!v)
		case nil:
			set(map[string]any{"epsilon": 1.0, "delta": 0.0})
		}
		changed++
		b, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(t.TempDir(), "changed.json")
		if err := os.WriteFile(other, b, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := disclosure.Check(t.Context(), dir, l, other, nil, program())
		holds := err == nil
		for _, f := range found {
			holds = holds && f.Holds && !(f.Skipped && f.What == "made")
		}
		if holds && path != ".made.kernels" { // a program has several sets of kernels
			t.Errorf("%s was changed, and everything holds", path)
		}
		set(v)
	}
	each(".facts", tree["facts"], nil)
	each(".statements.stated", tree["statements"].(map[string]any)["stated"], nil)
	each(".made", tree["made"], nil)
	if changed < 150 {
		t.Errorf("only %d facts were changed", changed)
	}

	// The page of the disclosure.
	page := readFile(t, disclosure.PageOf(file))
	if err := os.WriteFile(disclosure.PageOf(file), bytes.Replace(page, []byte("ε&nbsp;=&nbsp;1"), []byte("ε&nbsp;=&nbsp;0.1"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil || !strings.Contains(out, "\npage        DOES NOT HOLD: ") {
		t.Errorf("the page was changed: %v\n%s", err, out)
	}
	if err := os.WriteFile(disclosure.PageOf(file), page, 0o600); err != nil {
		t.Fatal(err)
	}

	// Every file of the run.
	for _, name := range []string{runlog.InfoFile, runlog.ModelFile, runlog.ReportFile, runlog.EventsFile, runlog.StepsFile, runlog.ReleasesFile} {
		path := filepath.Join(dir, name)
		was := readFile(t, path)
		b := bytes.Clone(was)
		switch name {
		case runlog.InfoFile:
			b = bytes.Replace(b, []byte(`"go": "go`), []byte(`"go": "Go`), 1)
		case runlog.ModelFile:
			b = bytes.Replace(b, []byte(`"created"`), []byte(`"created" `), 1)
		case runlog.ReportFile:
			b = append(b, ' ')
		default:
			b[len(b)/2] ^= 1
		}
		if bytes.Equal(b, was) {
			t.Fatalf("%s: the test changes nothing", name)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := check(); err == nil {
			t.Errorf("%s was changed, and everything holds:\n%s", name, out)
		}
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	// A later run does not break what was said up to an entry, and the verdict says that there is more.
	succeeds(t, "fit", "../examples/clinic/sotto.yaml", "--out", filepath.Join(t.TempDir(), "later"), "--ledger", where, "--quiet")
	if out, err := check(); err != nil || !strings.Contains(out, "since then the ledger has recorded 1 more runs") {
		t.Errorf("after a later run: %v\n%s", err, out)
	}
	// Another ledger, or none.
	other := filepath.Join(t.TempDir(), "other.db")
	succeeds(t, "fit", "../examples/clinic/sotto.yaml", "--out", filepath.Join(t.TempDir(), "other"), "--ledger", other, "--quiet")
	where = other
	if out, err := check(); err == nil || !strings.Contains(out, "lifetime    DOES NOT HOLD") {
		t.Errorf("another ledger: %v\n%s", err, out)
	}
}

// TestDisclosureSignature: what disclose signs, ssh-keygen accepts, and the other way round. Where there is no ssh-keygen, a signature that it
// made long ago stands in.
func TestDisclosureSignature(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	key := filepath.Join(work, "key")
	public := writeKey(t, key, "a key of this test, and no other")
	dir, ledger, file := clinicDisclosure(t, "--sign", key)
	if out := succeeds(t, "verify", dir, "--disclosure", file, "--ledger", ledger, "--signer", key+".pub"); strings.Count(out, "is signed by key SHA256:") != 2 {
		t.Errorf("the verdict is\n%s", out)
	}
	if signed, err := disclosure.CheckSignature([]byte(testSignature), []byte("disclosure\n")); err != nil {
		t.Errorf("a signature of ssh-keygen: %v", err)
	} else if !bytes.Equal(signed.Marshal(), public.Marshal()) {
		t.Errorf("a signature of ssh-keygen is of key %s, want %s", ssh.FingerprintSHA256(signed), ssh.FingerprintSHA256(public))
	}
	if _, err := disclosure.CheckSignature([]byte(testSignature), []byte("Disclosure\n")); err == nil {
		t.Error("a signature of ssh-keygen holds for another text")
	}
	if keygen, err := exec.LookPath("ssh-keygen"); err == nil {
		c := exec.Command(keygen, "-Y", "check-novalidate", "-n", "file", "-s", file+disclosure.SignatureSuffix)
		c.Stdin = bytes.NewReader(readFile(t, file))
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "Good \"file\" signature") {
			t.Errorf("ssh-keygen: %v\n%s", err, out)
		}
	}

	// A changed file or page, another key, no signature.
	refused := func(what, want string) {
		t.Helper()
		c := sotto(t, "verify", dir, "--disclosure", file, "--ledger", ledger, "--signer", key+".pub")
		c.Stderr = nil
		if out, err := c.Output(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	change := func(path string, b []byte) (back func()) {
		was := readFile(t, path)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.WriteFile(path, was, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	back := change(file, append(readFile(t, file), '\n'))
	refused("a changed file", "signature   DOES NOT HOLD")
	back()
	back = change(disclosure.PageOf(file), append(readFile(t, disclosure.PageOf(file)), '\n'))
	refused("a changed page", "page        DOES NOT HOLD")
	back()
	writeKey(t, key, "another key of this test: 32 long")
	refused("another key", "not by SHA256:")
	writeKey(t, key, "a key of this test, and no other")
	if err := os.Remove(file + disclosure.SignatureSuffix); err != nil {
		t.Fatal(err)
	}
	refused("no signature", "disclosure.json.sig is not there, and the disclosure says that key SHA256:")

	// Without --signer, too: the file says that it was signed.
	without := func(what, want string) {
		t.Helper()
		c := sotto(t, "verify", dir, "--disclosure", file)
		c.Stderr = nil
		if out, err := c.Output(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	without("no signature", "disclosure.json.sig is not there, and the disclosure says that key SHA256:")
	if err := os.Remove(disclosure.PageOf(file) + disclosure.SignatureSuffix); err != nil {
		t.Fatal(err)
	}
	without("no signature of the page", "disclosure.html.sig is not there, and the disclosure says that key SHA256:")
}

// writeKey writes the Ed25519 key of a seed of 32 bytes, as ssh-keygen does, and its public part.
func writeKey(t *testing.T, path, seed string) ssh.PublicKey {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte(seed[:ed25519.SeedSize]))
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{path: pem.EncodeToMemory(block), path + ".pub": ssh.MarshalAuthorizedKey(public)} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return public
}

// testSignature is what `ssh-keygen -Y sign -n file` of OpenSSH 9.2 made of "disclosure\n" with the first key.
const testSignature = `-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgU8VUeLscKhPGlruQoVGXZgFv/x
dBNMWk3twqzrW8yWwAAAAEZmlsZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQyNTUx
OQAAAECO2H3C1O5rEap/I0HSX4YmV7hVa7TzMDEbi9zxw1pBxb0U4bDfP1tHAvLIVEsVV3
glm69OdV43qspWAx54DbwM
-----END SSH SIGNATURE-----
`
