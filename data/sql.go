package data

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/schema"
)

// A sqlTable names a table of a database: postgres://…?table=NAME,
// postgresql://…?table=NAME, FILE?table=NAME or sqlite:FILE?table=NAME.
type sqlTable struct {
	name     string // for errors: without a password
	postgres bool
	where    string // what the driver wants: a URL without table, or a file
	table    string
}

const sqliteScheme = "sqlite:"

// sqliteMagic begins every SQLite file.
const sqliteMagic = "SQLite format 3\x00"

// isSQL says whether path names a table of a database, rightly or not: an SQLite file
// alone is one that lacks its table.
func isSQL(path string) bool {
	_, file := sqliteFile(path)
	return postgres.IsURL(path) || strings.HasPrefix(path, sqliteScheme) || file || beginsWith(path, sqliteMagic)
}

// sqliteFile is the file of FILE?table=NAME, and whether path has that form.
func sqliteFile(path string) (string, bool) {
	file, query, ok := strings.Cut(path, "?")
	return file, ok && strings.HasPrefix(query, "table=")
}

// parseSQL takes path apart.
func parseSQL(path string) (*sqlTable, error) {
	t := &sqlTable{name: Public(path), postgres: postgres.IsURL(path)}
	where, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err == nil && !t.postgres && len(q) > 1 {
		err = errors.New("data: more than a table")
	}
	if names := q["table"]; err != nil || len(names) != 1 || names[0] == "" || !config.PlainText(names[0]) {
		return nil, &config.Error{File: t.name, Found: "no name of a table", Allowed: "one, as in postgres://user@host/database?table=NAME or people.db?table=NAME"}
	}
	t.table = q.Get("table")
	q.Del("table")
	t.where = strings.TrimPrefix(where, sqliteScheme)
	if t.postgres && len(q) > 0 {
		t.where += "?" + q.Encode()
	}
	return t, nil
}

// Public is path without a password, where it is the URL of a database.
func Public(path string) string {
	if !postgres.IsURL(path) {
		return path
	}
	u, err := url.Parse(path)
	if err != nil {
		scheme, _, _ := strings.Cut(path, "://")
		return scheme + "://…"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	for _, key := range []string{"password", "sslpassword"} {
		q.Del(key)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Join is path as it is seen from the folder dir: a relative file is below it, and
// so is that of an SQLite table. The URL of a server stays as it is.
func Join(dir, path string) string {
	if path == "" || readfile.Inherited(path) || postgres.IsURL(path) {
		return path
	}
	scheme := ""
	if rest, ok := strings.CutPrefix(path, sqliteScheme); ok {
		scheme, path = sqliteScheme, rest
	}
	file, query := path, ""
	if scheme != "" {
		if f, q, ok := strings.Cut(path, "?"); ok {
			file, query = f, "?"+q
		}
	} else if f, ok := sqliteFile(path); ok {
		file, query = f, path[len(f):]
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return scheme + file + query
}

// open connects, and begins a transaction that only reads.
func (t *sqlTable) open(ctx context.Context) (*sql.DB, *sql.Tx, error) {
	var db *sql.DB
	opt := &sql.TxOptions{}
	if t.postgres {
		var err error
		db, err = postgres.Open(t.where, map[string]string{
			"extra_float_digits": "3", // numbers with all their digits, for servers before version 12
			"datestyle":          "ISO",
		})
		if errors.Is(err, postgres.ErrNoDriver) {
			return nil, nil, config.FileError(t.name, err)
		}
		if err != nil { // the cause may quote the password
			return nil, nil, &config.Error{File: t.name, Found: "a URL that does not read", Allowed: "postgres://user@host:port/database?table=NAME"}
		}
		opt = &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}
	} else {
		if st, err := os.Stat(t.where); err != nil {
			return nil, nil, config.FileError(t.name, err)
		} else if !st.Mode().IsRegular() {
			return nil, nil, &config.Error{File: t.name, Found: "something that is no file", Allowed: "an SQLite file"}
		}
		path, err := filepath.Abs(t.where)
		if err != nil {
			return nil, nil, config.FileError(t.name, err)
		}
		dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=ro&_pragma=busy_timeout(20000)&_pragma=query_only(1)"}).String()
		if db, err = sql.Open("sqlite", dsn); err != nil {
			return nil, nil, t.failed(err)
		}
	}
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, opt)
	if err != nil {
		db.Close()
		return nil, nil, t.failed(err)
	}
	return db, tx, nil
}

// failed is the error of a database, in words where a person can mend it. What the
// server says of it may name a value, and is left out where it is not about
// connecting.
func (t *sqlTable) failed(err error) error {
	var lite *sqlite.Error
	bad := func(found, allowed, hint string) error {
		return &config.Error{File: t.name, Found: found, Allowed: allowed, Hint: hint, Err: err}
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case postgres.Code(err) != "":
		switch postgres.Code(err) {
		case "42P01", "3F000": // undefined_table, invalid_schema_name
			return bad("no such table", "a table or view of the database", "")
		case "42501": // insufficient_privilege
			return bad("a table that this user may not read", "one that the user may SELECT from", "")
		case "28P01", "28000": // invalid_password, invalid_authorization_specification
			return bad("a user or password that the server refuses", "a user of the database", "PGPASSWORD or ~/.pgpass gives a password that stands in no file of a run")
		case "3D000": // invalid_catalog_name
			return bad("no such database", "a database of the server", "")
		}
		return fmt.Errorf("data: reading %s: the server reports error %s", t.name, postgres.Code(err))
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case 1: // ERROR: of the two statements that are sent, only the table can be wrong
			return bad("no such table", "a table or view of the database", "")
		case 11, 26: // CORRUPT, NOTADB
			return bad("a file that is not an SQLite database, or a damaged one", "an SQLite database", "")
		case 14: // CANTOPEN
			return bad("a file that SQLite cannot open", "an SQLite database that can be read", "")
		}
	}
	return fmt.Errorf("data: reading %s: %w", t.name, err)
}

// quoted is the table's name in SQL. For PostgreSQL a point parts schema and table.
func (t *sqlTable) quoted() string {
	if t.postgres {
		return strings.ReplaceAll(quoteName(t.table), ".", `"."`)
	}
	return quoteName(t.table)
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// columns are the columns of the table, with their types.
func (t *sqlTable) columns(ctx context.Context, tx *sql.Tx) ([]FieldName, error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+t.quoted()+" LIMIT 0")
	if err != nil {
		return nil, t.failed(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, t.failed(err)
	}
	var out []FieldName
	for _, c := range types {
		typ := c.DatabaseTypeName()
		if typ == "" {
			typ = "any"
		}
		out = append(out, FieldName{c.Name(), typ})
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, t.failed(err)
	}
	return out, nil
}

// describeSQL says which columns a table has.
func describeSQL(path string) (*Description, error) {
	t, err := parseSQL(path)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	db, tx, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	defer tx.Rollback()
	d := &Description{Form: "a table of an SQLite database"}
	if t.postgres {
		d.Form = "a table of a PostgreSQL database"
	}
	d.Fields, err = t.columns(ctx, tx)
	return d, err
}

// A sqlSource reads a table of a database, in whatever order it gives the rows.
type sqlSource struct {
	*sqlTable
	db     *sql.DB
	tx     *sql.Tx
	rows   *sql.Rows
	enc    *encoder
	at     []int // of each of enc.cols among cells
	cells  []string
	null   []bool
	scan   []any // pointers to values
	values []any
	sum    hash.Hash
	raw    *rowHasher
	read   int       // of values: those that the schema looks at, which are part of the content
	total  [4]uint64 // sum of the rows' hashes: it does not depend on their order
	row    int
}

func newSQLSource(ctx context.Context, sch *schema.Schema, path string, opt Options, enc *encoder, sum hash.Hash, raw *rowHasher) (s source, err error) {
	t, err := parseSQL(path)
	if err != nil {
		return nil, err
	}
	q := &sqlSource{sqlTable: t, enc: enc, sum: sum, raw: raw}
	if q.db, q.tx, err = t.open(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			q.close()
		}
	}()
	fields, err := t.columns(ctx, q.tx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	at := make([]int, len(sch.Columns))
	if e := matchColumns(sch, names, opt, at); e != nil {
		e.File = t.name
		return nil, e
	}
	var list []string
	for _, c := range sch.Columns {
		switch {
		case c.Type == schema.TypeIgnore:
		case opt.skips(c):
			q.at = append(q.at, -1)
		default:
			q.at = append(q.at, len(list))
			list = append(list, t.asText(c.Name))
		}
	}
	q.read = len(list)
	if raw != nil { // the rest, for the hashes of raw rows
		var read []string
		for _, c := range sch.Columns {
			if c.Type != schema.TypeIgnore && !opt.skips(c) {
				read = append(read, c.Name)
			}
		}
		for _, name := range names {
			if !slices.Contains(read, name) {
				read, list = append(read, name), append(list, t.asText(name))
			}
		}
		raw.columns(read)
	}
	q.cells, q.null = make([]string, len(list)), make([]bool, len(list))
	q.values, q.scan = make([]any, len(list)), make([]any, len(list))
	for i := range q.scan {
		q.scan[i] = &q.values[i]
	}
	q.rows, err = q.tx.QueryContext(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+t.quoted())
	if err != nil {
		return nil, t.failed(err)
	}
	return q, nil
}

// asText is the expression for a column's value: PostgreSQL's own text of it, and
// for SQLite the value as it is stored, whatever type the column was declared with.
func (t *sqlTable) asText(column string) string {
	if t.postgres {
		return quoteName(column) + "::text"
	}
	return "+" + quoteName(column)
}

func (q *sqlSource) next() (fault, error) {
	if !q.rows.Next() {
		if err := q.rows.Err(); err != nil {
			return fault{}, q.failed(err)
		}
		for _, v := range q.total {
			binary.Write(q.sum, binary.LittleEndian, v)
		}
		binary.Write(q.sum, binary.LittleEndian, uint64(q.row))
		return fault{}, io.EOF
	}
	q.row++
	if err := q.rows.Scan(q.scan...); err != nil {
		return fault{}, q.failed(err)
	}
	var f fault
	hash := sha256.New()
	for i, v := range q.values {
		q.cells[i], q.null[i] = "", v == nil
		switch v := v.(type) {
		case nil:
		case int64:
			q.cells[i] = strconv.FormatInt(v, 10)
		case float64:
			q.cells[i] = strconv.FormatFloat(v, 'g', -1, 64)
		case string:
			q.cells[i] = v
		default: // a blob
			if i >= q.read {
				q.cells[i] = fmt.Sprintf("%x", v)
				break
			}
			f = fault{field: q.column(i), found: "bytes that are not text", allowed: "a number or text"}
		}
		if i >= q.read {
			continue
		}
		if !utf8.ValidString(q.cells[i]) || strings.IndexByte(q.cells[i], 0) >= 0 {
			f = fault{field: q.column(i), found: "bytes that are not text", allowed: "a number or text"}
		}
		fmt.Fprintf(hash, "%t %d %s", q.null[i], len(q.cells[i]), q.cells[i])
		if b, ok := v.([]byte); ok {
			fmt.Fprintf(hash, "%d %s", len(b), b)
		}
	}
	var h [sha256.Size]byte
	hash.Sum(h[:0])
	for i := range q.total {
		q.total[i] += binary.LittleEndian.Uint64(h[8*i:])
	}
	q.raw.cells(q.cells)
	if f.found != "" {
		return f, nil
	}
	return q.enc.cells(q.cells, q.null, q.at), nil
}

// column is the name of the i-th column that is read.
func (q *sqlSource) column(i int) string {
	for k, p := range q.at {
		if p == i {
			return q.enc.cols[k].name
		}
	}
	return ""
}

func (q *sqlSource) place(fault) *config.Error { return &config.Error{File: q.name, Row: q.row} }

func (q *sqlSource) close() {
	if q.rows != nil {
		q.rows.Close()
	}
	q.tx.Rollback()
	q.db.Close()
}
