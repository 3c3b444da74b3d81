package data

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/csv"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/schema"
)

// A table name that breaks whatever is not quoted.
const oddName = `Odd "name"; drop table 'x' --`

// people are the rows of the table that both databases hold; an empty cell is NULL.
const people = `age,colour,id,gain,sick
100,red,a,999.25,yes.
,,,,no
-5,blue,"it's, so",0.1,no
17,1.0,b,?,yes
42,mauve,c,1e-3,no
`

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func records(t testing.TB, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// fill makes a table with the given columns and the rows of people, from last to
// first if asked.
func fill(t testing.TB, db *sql.DB, create, table, holder string, text string, backwards bool) {
	t.Helper()
	if _, err := db.Exec(create); err != nil {
		t.Fatal(err)
	}
	rows := records(t, text)
	head, rows := rows[0], rows[1:]
	for i := range rows {
		r := rows[i]
		if backwards {
			r = rows[len(rows)-1-i]
		}
		var names, marks []string
		var values []any
		for j, v := range r {
			names, marks = append(names, quoteName(head[j])), append(marks, strings.ReplaceAll(holder, "1", string(rune('1'+j))))
			if v == "" {
				values = append(values, nil)
			} else {
				values = append(values, v)
			}
		}
		if _, err := db.Exec("INSERT INTO "+table+" ("+strings.Join(names, ",")+") VALUES ("+strings.Join(marks, ",")+")", values...); err != nil {
			t.Fatal(err)
		}
	}
}

func sqliteFileOf(t testing.TB) (*sql.DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "people 100%#.db")
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, path
}

// TestSQLite: numbers, texts and nulls, of declared types and of none, are those of the CSV.
func TestSQLite(t *testing.T) {
	s := mustParse(t, small)
	db, path := sqliteFileOf(t)
	odd := quoteName(oddName)
	fill(t, db, `CREATE TABLE `+odd+` (gain REAL, sick BOOLEAN, age INTEGER, id DATE, colour TEXT)`, odd, "?", people, false)
	fill(t, db, `CREATE TABLE back (gain REAL, sick BOOLEAN, age INTEGER, id DATE, colour TEXT)`, "back", "?", people, true)
	fill(t, db, `CREATE TABLE loose (age, colour, id, gain, sick)`, "loose", "?", people, false)
	testSQL(t, s, path+"?table="+url.QueryEscape(oddName), SQLite+path+"?table=back")
	want, _ := mustRead(t, s, people, Options{})
	if got, _, err := readTable(context.Background(), admit(), s, path+"?table=loose", Options{}); err != nil || cmp.Diff(want, got, sameTable) != "" {
		t.Errorf("without types: %v", err)
	}
	if d, err := Describe(context.Background(), path+"?table="+url.QueryEscape(oddName), TestFormats); err != nil || d.Form != "a table of an SQLite database" || d.Fields[2] != (FieldName{"age", "INTEGER"}) {
		t.Errorf("%+v %v", d, err)
	}
	if b, err := Skeleton(context.Background(), path+"?table=loose", ""); err != nil || !strings.Contains(string(b), `dataset: "loose"`) || !strings.Contains(string(b), `- {name: "gain", type: }`) {
		t.Errorf("%v\n%s", err, b)
	}

	// A blob and bytes that are no text.
	for _, v := range []string{`x'00ff'`, `cast(x'ff' as text)`} {
		if _, err := db.Exec(`INSERT INTO loose VALUES (1, ` + v + `, 'SECRET', 2, 'no')`); err != nil {
			t.Fatal(err)
		}
		_, _, err := readTable(context.Background(), admit(), s, path+"?table=loose", Options{})
		if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), "row 6: column colour: found bytes that are not text") {
			t.Error(err)
		}
		if _, err := db.Exec(`DELETE FROM loose WHERE id = 'SECRET'`); err != nil {
			t.Fatal(err)
		}
	}
	// It is not written, and nothing is left beside it.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readTable(context.Background(), admit(), s, path+"?table=loose", Options{}); err != nil {
		t.Error(err)
	}
	after, _ := os.ReadFile(path)
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 || string(before) != string(after) {
		t.Errorf("the database was touched: %v", left)
	}
	for where, want := range map[string]string{
		path + "?table=none":                                        "found no such table",
		path + "?table=loose;drop table loose":                      "found no name of a table",
		path + "?table=" + url.QueryEscape(`loose"; --`):            "found no such table",
		path + "?table=":                                            "found no name of a table",
		path + "?table=a&table=b":                                   "found no name of a table",
		path + "?table=a&mode=rwc":                                  "found no name of a table",
		SQLite + path:                                               "found no name of a table",
		writeFile(t, "f", strings.Repeat("text ", 99)) + "?table=a": "found a file that is not an SQLite database",
		writeFile(t, "f", "01234567DUCK"+strings.Repeat("text ", 99)) + "?table=a": "found a DuckDB file",
		t.TempDir() + "/none.db?table=a":                                           "found no file to read",
		t.TempDir() + "?table=a":                                                   "found something that is no file",
	} {
		if _, _, err := readTable(context.Background(), admit(), s, where, Options{}); !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", where, err, want)
		}
	}
	if _, _, err := readTable(context.Background(), admit(), mustParse(t, svm), path+"?table=loose", Options{}); err == nil || !strings.Contains(err.Error(), "found a table of a database; expected what format.kind says, libsvm") {
		t.Error(err)
	}
}

// testSQL wants the table of people at where, and at backwards in another order.
func testSQL(t *testing.T, s *schema.Schema, where, backwards string) {
	t.Helper()
	var one, two [sha256.Size]byte
	want, counts := mustRead(t, s, people, Options{Rows: 5})
	got, stats, err := readTable(context.Background(), digestTo(&one), s, where, Options{Rows: 5})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, sameTable); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(counts, stats); d != "" {
		t.Error(d)
	}
	// The same rows in another order: the same content.
	got, _, err = readTable(context.Background(), digestTo(&two), s, backwards, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Error("the digest depends on the order of the rows")
	}
	for i := range 5 {
		if d := cmp.Diff(row(want, i), row(got, 4-i)); d != "" {
			t.Error(d)
		}
	}
	if _, _, err := readTable(context.Background(), admit(), s, where, Options{Rows: 6}); err == nil || !strings.Contains(err.Error(), "rows: found 5 rows; expected exactly 6") {
		t.Error(err)
	}
	if tab, _, err := readTable(context.Background(), admit(), s, where, Options{Unlabeled: true}); err != nil || tab.Labeled {
		t.Error(err)
	}
	// Errors name row and column, and no value.
	strict := mustParse(t, strings.Replace(small, "unknown: zero", "unknown: error", 1))
	_, _, err = readTable(context.Background(), admit(), strict, where, Options{})
	if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), "row 3: column colour: found a level that the schema does not list") || strings.Contains(err.Error(), "blue") {
		t.Error(err)
	}
	more := mustParse(t, strings.Replace(small, "  - {name: id, type: ignore}\n", "", 1))
	if _, _, err = readTable(context.Background(), admit(), more, where, Options{}); err == nil || !strings.Contains(err.Error(), `column 4 of the header is not in the schema`) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := readTable(ctx, admit(), s, where, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Packed like any table.
	dst := filepath.Join(t.TempDir(), "t")
	if _, err := packTable(context.Background(), admit(), s, where, dst, Options{}); err != nil {
		t.Fatal(err)
	}
	packed, _, err := readTable(context.Background(), digestTo(&two), s, dst, Options{})
	if err != nil || one != two {
		t.Fatal(err)
	}
	defer packed.Close()
	if d := cmp.Diff(want, packed, sameTable); d != "" {
		t.Error(d)
	}
}

func TestPostgresTable(t *testing.T) {
	u, db, sch := needs.Schema(t)
	where := func(table string, more ...string) string {
		v, q := *u, u.Query()
		q.Set("table", table)
		for i := 0; i < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		v.RawQuery = q.Encode()
		return v.String()
	}
	odd := sch + "." + quoteName(oddName)
	// Types of their own; the ? that numbers cannot hold is a NULL, which is missing too.
	text := strings.Replace(people, "?", "", 1)
	const columns = " (gain double precision, sick varchar(9), age smallint, id text, colour text)"
	fill(t, db, "CREATE TABLE "+odd+columns, odd, "$1", text, false)
	fill(t, db, "CREATE TABLE "+sch+".back"+columns, sch+".back", "$1", text, true)
	fill(t, db, "CREATE TABLE "+sch+".loose (age numeric, colour text, id text, gain real, sick text)", sch+".loose", "$1", text, false)

	s := mustParse(t, small)
	testSQL(t, s, where(oddName, "search_path", sch), where(sch+".back"))
	if _, _, err := readTable(context.Background(), admit(), s, where(sch+".loose"), Options{}); err != nil {
		t.Error(err)
	}
	d, err := Describe(context.Background(), where(sch+".loose"), TestFormats)
	if err != nil || d.Form != "a table of a PostgreSQL database" || d.Fields[0] != (FieldName{"age", "NUMERIC"}) {
		t.Errorf("%+v %v", d, err)
	}

	// A view that would write cannot: the transaction only reads.
	for _, q := range []string{"CREATE SEQUENCE " + sch + ".seq", "CREATE VIEW " + sch + ".writes AS SELECT nextval('" + sch + ".seq') AS age, colour, id, gain, sick FROM " + sch + ".back"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := readTable(context.Background(), admit(), s, where(sch+".writes"), Options{}); err == nil || !strings.Contains(err.Error(), "the server reports error 25006") {
		t.Error(err)
	}

	wrong := *u
	wrong.User = url.UserPassword("nobody_here", "hunter2")
	q := u.Query()
	q.Set("table", "x")
	wrong.RawQuery = q.Encode()
	for at, want := range map[string]string{
		where(sch + ".none"):                  "found no such table",
		where("no_schema.none"):               "found no such table",
		where("x; DROP TABLE loose"):          "found no such table",
		u.String():                            "found no name of a table",
		where(""):                             "found no name of a table",
		"postgres://u:hunter2@[::1/d?table=x": "found a URL that does not read",
		wrong.String():                        "found a user or password that the server refuses",
	} {
		_, _, err := readTable(context.Background(), admit(), s, at, Options{})
		if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
	_, _, err = readTable(context.Background(), admit(), s, "postgres://u:hunter2@127.0.0.1:1/d?table=x&connect_timeout=2", Options{})
	if err == nil || errors.As(err, new(*config.Error)) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("no server: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ path, public, joined string }{
		{"a.csv", "a.csv", "/d/a.csv"},
		{"/a?b.csv", "/a?b.csv", "/a?b.csv"},
		{"a.db?table=x y", "a.db?table=x y", "/d/a.db?table=x y"},
		{"sqlite:a.db?table=x", "sqlite:a.db?table=x", "sqlite:/d/a.db?table=x"},
		{"sqlite:/a.db?table=x", "sqlite:/a.db?table=x", "sqlite:/a.db?table=x"},
		{"postgres://u:p@h/d?table=x&password=p", "postgres://u@h/d?table=x", "postgres://u:p@h/d?table=x&password=p"},
		{"postgres://u:p@[::1/d?table=x", "postgres://…@[::1/d?table=x", "postgres://u:p@[::1/d?table=x"},
		{"POSTGRES://u:p@h/d?sslmode=disable&table=x", "postgres://u@h/d?sslmode=disable&table=x", "POSTGRES://u:p@h/d?sslmode=disable&table=x"},
		{"postgres://u:a@b/p@h/d?table=x", "postgres://…@h/d?table=x", "postgres://u:a@b/p@h/d?table=x"},
		{"S3://k:p@b/a.csv", "S3://…@b/a.csv", "S3://k:p@b/a.csv"},
		{"a.db?mode=ro&table=x", "a.db?mode=ro&table=x", "/d/a.db?mode=ro&table=x"},
		{"", "", ""},
	} {
		if got := Public(c.path); got != c.public {
			t.Errorf("Public(%s) = %s, want %s", c.path, got, c.public)
		}
		if got := filepath.ToSlash(Join("/d", c.path)); got != c.joined {
			t.Errorf("Join(%s) = %s, want %s", c.path, got, c.joined)
		}
	}
}
