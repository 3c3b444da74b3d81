// Package needs finds what some tests need from outside the repository. A test
// whose need is not met says so and is skipped; where SOTTO_REQUIRE=1, as CI
// sets it, it fails instead, so that nothing is green by silence.
package needs

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	_ "github.com/sottodp/sotto/postgres" // the driver "pgx"
)

// Data is the folder of the benchmark datasets, from SOTTO_DATA.
func Data(t testing.TB) string {
	t.Helper()
	dir := variable(t, "SOTTO_DATA", "the folder of the benchmark datasets")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Fatalf("SOTTO_DATA=%s is not a folder", dir)
	}
	return dir
}

// Postgres is the URL of a PostgreSQL server that tests may write to, from
// SOTTO_TEST_POSTGRES.
func Postgres(t testing.TB) string {
	t.Helper()
	return variable(t, "SOTTO_TEST_POSTGRES", "the URL of a PostgreSQL server for tests")
}

// ONNXRuntime is a Python that has the package onnxruntime, from SOTTO_ONNXRUNTIME.
func ONNXRuntime(t testing.TB) string {
	t.Helper()
	return variable(t, "SOTTO_ONNXRUNTIME", "a Python with the package onnxruntime")
}

// Schema makes a schema for the test on the server that Postgres finds, and drops
// it in the end. The search path of the URL names it.
func Schema(t testing.TB) (where *url.URL, db *sql.DB, name string) {
	t.Helper()
	where, err := url.Parse(Postgres(t))
	if err != nil {
		t.Fatal("SOTTO_TEST_POSTGRES does not read as a URL")
	}
	if db, err = sql.Open("pgx", where.String()); err != nil {
		t.Fatal(err)
	}
	name = fmt.Sprintf("sotto_%d_%d", os.Getpid(), time.Now().UnixNano())
	if _, err := db.Exec("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP SCHEMA " + name + " CASCADE"); err != nil {
			t.Error(err)
		}
		db.Close()
	})
	q := where.Query()
	q.Set("search_path", name)
	where.RawQuery = q.Encode()
	return where, db, name
}

// variable is the value of the environment variable name, which is what.
func variable(t testing.TB, name, what string) string {
	t.Helper()
	v := os.Getenv(name)
	switch {
	case v != "":
	case os.Getenv("SOTTO_REQUIRE") == "1":
		t.Fatalf("%s is not set (%s), and SOTTO_REQUIRE=1 asks for it", name, what)
	default:
		t.Skipf("skipped: %s is not set (%s)", name, what)
	}
	return v
}

// Chromium is the path of a Chromium that tests may start, from SOTTO_TEST_CHROMIUM.
func Chromium(t testing.TB) string {
	t.Helper()
	return variable(t, "SOTTO_TEST_CHROMIUM", "the path of a Chromium for tests of pages")
}
