package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
)

// No command shows the password of a URL, however it is written and wherever it is given, and no file keeps it.
func TestPasswordsStayHidden(t *testing.T) {
	race.Skip(t)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	schema := "dataset: h\nrows: 100\ncolumns:\n  - {name: age, type: numeric, min: 0, max: 100, encode: linear}\n  - {name: y, type: label, classes: [\"0\", \"1\"]}\n"
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("schema.yaml", schema)
	write("a.csv", "age,y\n1,0\n2,1\n")
	settings := "schema: schema.yaml\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"
	given := []string{"--schema", "schema.yaml", "--model", "logistic", "--epsilon", "1", "--delta", "1e-5", "--adjacency", "add-or-remove"}
	places := [][]string{
		{"fit", "URL"}, {"fit", "spec.yaml"}, {"fit", "ledger.yaml"}, {"fit", "--resume", "URL"}, {"fit", "settings.yaml", "--set", "data=URL"},
		{"fit", "URL", "GIVEN"}, {"fit", "--data=URL", "GIVEN"}, {"fit", "a.csv", "--test", "URL", "GIVEN"}, {"fit", "a.csv", "--labels", "URL", "GIVEN"}, {"fit", "a.csv", "--ledger", "URL", "GIVEN"},
		{"fit", "URL", "--data", "URL", "GIVEN"}, {"plan", "URL"}, {"tune", "URL"}, {"compare", "URL"}, {"audit", "URL"}, {"init", "URL"}, {"predict", "--model", "URL", "--data", "URL"},
		{"evaluate", "--model", "URL", "--data", "URL"}, {"data", "pack", "--schema", "schema.yaml", "--data", "URL", "--out", "p"}, {"data", "info", "URL"},
		{"schema", "init", "URL"}, {"schema", "check", "URL"}, {"schema", "check", "--data", "URL", "schema.yaml"}, {"schema", "bounds", "schema.yaml", "--data", "URL", "--epsilon", "1", "--adjacency", "add-or-remove"},
		{"worker", "--hub", "URL", "--data", "URL", "--shard", "1/1", "--key", "URL", "GIVEN"}, {"serve", "URL"}, {"verify", "URL"}, {"report", "URL"}, {"disclose", "URL"}, {"export", "URL"},
		{"doctor", "URL"}, {"doctor", "--dir", "URL"}, {"doctor", "--ledger", "URL"}, {"doctor", "--ledger", "URL", "--json"}, {"ledger", "show", "--ledger", "URL", "h"}, {"ledger", "verify", "--ledger=URL"},
		{"net", "status", "--credentials", "URL"}, {"net", "node", "URL", "--credentials", "URL", "--dir", "d"}, {"net", "simulate", "URL"}, {"no-such-command", "URL"}, {"fit", "--no-such-flag=URL"},
	}
	args := os.Args
	defer func() { os.Args = args }()
	for _, u := range []string{
		"postgres://u:SECRET@127.0.0.1:1/d?sslmode=disable&table=t", "POSTGRES://u:SECRET@127.0.0.1:1/d?table=t", "postgres:/u:SECRET@127.0.0.1:1/d?table=t", " postgres://u:SECRET@127.0.0.1:1/d?table=t",
		"postgres://u:a/SECRET@127.0.0.1:1/d?table=t", "postgres://u:p@a SECRET@127.0.0.1:1/d?table=t", "postgres://u:SECR%45T@127.0.0.1:1/d?table=t", "postgres://u@127.0.0.1:1/d?table=t&password=SECRET",
		"S3://KEY:SECRET@b/k.csv", "s3://KEY:a/b+SECRET@b/k.csv", "https://u:SECRET@127.0.0.1:1/x.csv", "https://127.0.0.1:1/x.csv?X-Amz-Signature=SECRET",
		"host=127.0.0.1 password='a SECRET' dbname=d", "people.db?table=t&password=SECRET", "a.csv + postgres://u:SECRET@127.0.0.1:1/d?table=t",
	} {
		quoted, _ := json.Marshal(u)
		write("spec.yaml", "data: "+string(quoted)+"\n"+settings)
		write("ledger.yaml", "data: a.csv\nledger: "+string(quoted)+"\n"+settings)
		write("settings.yaml", settings)
		for _, place := range places {
			os.Args = []string{"sotto"}
			for _, arg := range place {
				if arg == "GIVEN" {
					os.Args = append(os.Args, given...)
				} else {
					os.Args = append(os.Args, strings.ReplaceAll(arg, "URL", u))
				}
			}
			var out bytes.Buffer
			c := root()
			c.SetArgs(os.Args[1:])
			c.SetOut(&out)
			c.SetErr(&out)
			c.SetIn(strings.NewReader(""))
			if err := c.ExecuteContext(t.Context()); err != nil {
				printError(&out, err)
			}
			if s := out.String(); strings.Contains(s, "SECR") || strings.Contains(s, "EOF") {
				t.Errorf("sotto %q says\n%s", os.Args[1:], s)
			}
		}
		for _, name := range []string{"spec.yaml", "ledger.yaml"} {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte("SECR")) || strings.Contains(path, "SECR") {
				t.Errorf("%s keeps the password of %s", path, u)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
