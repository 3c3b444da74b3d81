//go:build unix

package cli

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/internal/race"
)

// TestModes: keys, run directories, packed tables and what Sotto keeps for itself are for their owner alone; any other file
// that a person names follows the umask.
func TestModes(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	const own, shared = fs.FileMode(0o600), fs.FileMode(0o666) // of a directory: with the right to enter it
	clinic, err := filepath.Abs("../examples/clinic")
	if err != nil {
		t.Fatal(err)
	}
	const sgd = " --set method.name=sgd --set method.steps=2"
	commands := []struct {
		does string
		made map[string]fs.FileMode // files, and directories with all that is in them
	}{
		{"fit SPEC --quiet --out runs/first" + sgd, map[string]fs.FileMode{"runs": own, "xdg": own}},
		{"fit SPEC --quiet --holdout 0.2 --out held" + sgd, map[string]fs.FileMode{"held": own}},
		{"predict --model runs/first --data CLINIC/heldout.csv --out p.csv", map[string]fs.FileMode{"p.csv": shared}},
		{"report runs/first", map[string]fs.FileMode{"runs": own}},
		{"disclose runs/first --out d.json --sign id", map[string]fs.FileMode{"d.json": shared, "d.html": shared, "d.json.sig": shared, "d.html.sig": shared}},
		{"export runs/first --to onnx --out m.onnx", map[string]fs.FileMode{"m.onnx": shared}},
		{"export runs/first --to csv --out m.csv", map[string]fs.FileMode{"m.csv": shared}},
		{"tune search.yaml --quiet --out tuned", map[string]fs.FileMode{"tuned": own}},
		{"synth --schema CLINIC/schema.yaml --rows 300 --seed 7 --out made.csv", map[string]fs.FileMode{"made.csv": shared}},
		{"compare SPEC --quiet --data made.csv --schema made.yaml --methods sgd --epsilon 1 --seeds 1 --out compared --set method.steps=2", map[string]fs.FileMode{"compared": own}},
		{"audit SPEC --seed 1 --canaries 100 --out audited" + sgd, map[string]fs.FileMode{"audited": own}},
		{"plan SPEC --svg plan.svg --table plan.csv", map[string]fs.FileMode{"plan.svg": shared, "plan.csv": shared}},
		{"schema init CLINIC/patients.csv --out s.yaml", map[string]fs.FileMode{"s.yaml": shared}},
		{"synth --schema CLINIC/schema.yaml --rows 5 --out five.csv", map[string]fs.FileMode{"five.csv": shared}},
		{"synth --schema CLINIC/schema.yaml --rows 5 --packed --out five.pack", map[string]fs.FileMode{"five.pack": own}},
		{"data pack --schema CLINIC/schema.yaml --data CLINIC/patients.csv --out t.pack", map[string]fs.FileMode{"t.pack": own}},
		{"data key --out rows.key", map[string]fs.FileMode{"rows.key": own}},
		{"net key north --out north.key", map[string]fs.FileMode{"north.key": own}},
		{"evaluate --model runs/first --data CLINIC/heldout.csv --dataset new --rows 1000 --epsilon 1 --out evaluated", map[string]fs.FileMode{"evaluated": own}},
		{"man pages", map[string]fs.FileMode{"pages": shared}},
		{"init CLINIC/patients.csv", map[string]fs.FileMode{"asked.yaml": shared}},
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	schema := strings.Replace(string(readFile(t, filepath.Join(clinic, "schema.yaml"))), "dataset: clinic", "dataset: synthetic", 1)
	spec := string(readFile(t, filepath.Join(clinic, "sotto.yaml")))
	spec = strings.NewReplacer("patients.csv", filepath.Join(clinic, "patients.csv"), "heldout.csv", filepath.Join(clinic, "heldout.csv"), "schema.yaml", filepath.Join(clinic, "schema.yaml")).Replace(spec)
	files := map[string]string{"id": string(pem.EncodeToMemory(block)), "spec.yaml": spec, "made.yaml": schema,
		"search.yaml": spec + "tune:\n  mean: 2\n  methods:\n    - {label: short, name: sgd, steps: 2}\n"}
	for _, umask := range []fs.FileMode{0o022, 0o077} {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		program := filepath.Join(dir, "sotto") // under this name the test binary is the command
		if self, err := os.Executable(); err != nil || os.Symlink(self, program) != nil {
			t.Fatal("no symbolic link to the program")
		}
		run := func(does string) {
			does = strings.NewReplacer("SPEC", "spec.yaml", "CLINIC", clinic).Replace(does)
			self := sotto(t)
			// The umask is that of a process, and tests share this one.
			c := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`umask %o; exec "$@"`, umask), "sh", program}, strings.Fields(does)...)...)
			c.Dir, c.Stdin = dir, strings.NewReader("made.yaml\n0.5\n1e-6\nadd-or-remove\nauto\n\nasked.yaml\nno\n")
			c.Env = append(self.Env, "XDG_DATA_HOME="+filepath.Join(dir, "xdg", "data"), "XDG_STATE_HOME="+filepath.Join(dir, "xdg", "state"))
			if text, err := c.CombinedOutput(); err != nil {
				t.Fatalf("umask %o: sotto %s: %v\n%s", umask, does, err, text)
			}
		}
		for _, c := range commands {
			run(c.does)
			for _, name := range slices.Sorted(maps.Keys(c.made)) {
				err := filepath.WalkDir(filepath.Join(dir, name), func(path string, e fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					info, err := e.Info()
					want := c.made[name] &^ umask
					if e.IsDir() {
						want |= want & 0o444 >> 2
					}
					if err == nil && info.Mode().Perm() != want {
						err = fmt.Errorf("%s: %o, want %o", path, info.Mode().Perm(), want)
					}
					return err
				})
				if err != nil {
					t.Error(errors.Join(fmt.Errorf("umask %o: sotto %s", umask, c.does), err))
				}
			}
		}
	}
}
