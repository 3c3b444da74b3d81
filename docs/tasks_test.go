package docs

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	_ "modernc.org/sqlite"

	"github.com/sottodp/sotto/internal/tasks"
)

const tasksPage = "how-to/tasks.md"

// TestTaskTables: the page has forty tasks, each with something that a test runs and something that it looks for. The rows of the
// terminal and of files run in TestTasks, those of Python in python/tests/test_tasks.py, those of the browser in web's TestTasks.
func TestTaskTables(t *testing.T) {
	title, _, _ := strings.Cut(strings.TrimPrefix(read(t, tasksPage), "# "), "\n")
	if !strings.Contains(read(t, "../site/mkdocs.yml"), "- "+title+": "+tasksPage) {
		t.Errorf("site/mkdocs.yml names %s otherwise than its heading %q", tasksPage, title)
	}
	refused := 0
	for heading, n := range map[string]int{"## Terminal": 11, "## Files": 11, "## Python": 10, "## Browser": 8} {
		rows, err := tasks.Read(tasksPage, heading)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != n {
			t.Errorf("%s has %d tasks, want %d", heading, len(rows), n)
		}
		for _, r := range rows {
			do := tasks.Code(r.Do)
			if heading == "## Browser" {
				do = tasks.Bold(r.Do)
			}
			if len(do) == 0 || len(tasks.Code(r.See)) == 0 {
				t.Errorf("%s:%d: nothing is run, or nothing is looked for", tasksPage, r.Line)
			}
			if strings.HasPrefix(r.See, "refused: ") {
				refused++
			}
		}
	}
	if refused < 2 {
		t.Errorf("%d tasks are refused, want at least two", refused)
	}
	for _, runner := range []string{"../python/tests/test_tasks.py", "../web/tasks_test.go"} {
		if !strings.Contains(read(t, runner), "tasks.md") {
			t.Errorf("%s does not run the tasks", runner)
		}
	}
}

// TestTasks runs the rows of the terminal and of files: a command prints what is code in the last cell, and a refused one ends with
// exit code 2 or 3.
func TestTasks(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("skipped: there is no sh on this machine to run the documented commands")
	}
	for _, heading := range []string{"## Terminal", "## Files"} {
		t.Run(strings.TrimPrefix(heading, "## "), func(t *testing.T) {
			t.Parallel()
			rows, err := tasks.Read(tasksPage, heading)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples/clinic"))); err != nil {
				t.Fatal(err)
			}
			otherForms(t, dir)
			bucket := http.StripPrefix("/clinic", http.FileServer(http.Dir(dir)))
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				bucket.ServeHTTP(w, r)
			}))
			defer store.Close()
			env := append(environment(t, dir), "AWS_ENDPOINT_URL="+store.URL, "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=key")
			for _, r := range rows {
				cmd := exec.Command(sh, "-e", "-c", strings.Join(tasks.Code(r.Do), "\n"))
				cmd.Dir, cmd.Env = dir, env
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				code, text := cmd.ProcessState.ExitCode(), string(out)
				if strings.HasPrefix(r.See, "refused: ") {
					if code != 2 && code != 3 || !strings.HasPrefix(text, "sotto: ") {
						t.Errorf("%s:%d: %s: exit code %d\n%s", tasksPage, r.Line, r.Task, code, text)
					}
				} else if code != 0 {
					t.Errorf("%s:%d: %s: exit code %d\n%s", tasksPage, r.Line, r.Task, code, text)
				}
				for _, want := range tasks.Code(r.See) {
					if !strings.Contains(text, want) {
						t.Errorf("%s:%d: %s: %q is not in\n%s", tasksPage, r.Line, r.Task, want, text)
					}
				}
			}
		})
	}
}

// otherForms writes the table patients.csv in the forms of the tasks about files.
func otherForms(t *testing.T, dir string) {
	t.Helper()
	text := read(t, filepath.Join(dir, "patients.csv"))
	lines := strings.SplitAfter(text, "\n")
	var archive, workbook bytes.Buffer
	for b, name := range map[*bytes.Buffer]string{&archive: "patients.csv", &workbook: "xl/workbook.xml"} {
		z := zip.NewWriter(b)
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"patients.feather": read(t, "testdata/patients.feather"), // pyarrow 26 wrote it
		"visits-2024.csv":  strings.Join(lines[:2001], ""),
		"visits-2025.csv":  lines[0] + strings.Join(lines[2001:], ""),
		"patients.csv.zip": archive.String(),
		"patients.xlsx":    workbook.String(),
		"latin.csv":        strings.ReplaceAll(text, ",former,", ",fr\xfcher,"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	database(t, filepath.Join(dir, "patients.db"), rows)
	columns(t, filepath.Join(dir, "patients.parquet"), rows)
}

func database(t *testing.T, file string, rows [][]string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("CREATE TABLE patients (" + strings.Join(rows[0], " TEXT, ") + " TEXT)"); err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare("INSERT INTO patients VALUES (?" + strings.Repeat(", ?", len(rows[0])-1) + ")")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		cells := make([]any, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		if _, err := insert.Exec(cells...); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func columns(t *testing.T, file string, rows [][]string) {
	t.Helper()
	group := parquet.Group{}
	for _, name := range rows[0] {
		group[name] = parquet.String()
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquet.NewGenericWriter[map[string]string](f, parquet.NewSchema("patients", group))
	for _, row := range rows[1:] {
		cells := map[string]string{}
		for i, name := range rows[0] {
			cells[name] = row[i]
		}
		if _, err := w.Write([]map[string]string{cells}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
