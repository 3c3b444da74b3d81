package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/run/describe"
	"github.com/sottodp/sotto/run/runlog"
)

// TestDescribed: the list of runs names private statistics and shows their page; a damaged record is an error, and an unknown one is not
// found.
func TestDescribed(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "runs", "seen <1>")
	clinic := func(name string) string { return filepath.Join("..", "examples", "clinic", name) }
	if _, _, err := describe.Run(context.Background(), describe.Options{Data: clinic("patients.csv"), Schema: clinic("schema.yaml"), Epsilon: 1, Delta: 1e-6,
		Adjacency: "add-or-remove", Ledger: filepath.Join(dir, "ledger.db"), Out: out}); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Dirs: []string{filepath.Join(dir, "runs")}, Ledger: filepath.Join(dir, "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, list := get("/runs")
	_, after, found := strings.Cut(list, `<a href="/described/`)
	key, _, _ := strings.Cut(after, `"`)
	if code != 200 || !found || !strings.Contains(list, "seen &lt;1&gt;") {
		t.Fatalf("%d: %s", code, list)
	}
	if code, page := get("/described/" + key); code != 200 || !strings.Contains(page, "<h1>Private statistics: clinic</h1>") {
		t.Errorf("%d: %.300s", code, page)
	}
	if code, page := get("/datasets/clinic"); code != 200 || !strings.Contains(page, `<a href="/described/`+key+`">`) {
		t.Errorf("the page of the dataset does not link them: %d: %s", code, page)
	}
	if code, _ := get("/described/none"); code != 404 {
		t.Errorf("an unknown one: %d", code)
	}
	if err := os.WriteFile(filepath.Join(out, runlog.DescriptionFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _ := get("/described/" + key); code != 500 {
		t.Errorf("a damaged one: %d", code)
	}
}
