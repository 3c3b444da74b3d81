package source

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
	"strconv"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/postgres"
)

// A sqlTable names a table of a database: postgres://…?table=NAME,
// postgresql://…?table=NAME, FILE?table=NAME or sqlite:FILE?table=NAME.
type sqlTable struct {
	name     string // for errors: without a password
	postgres bool
	where    string // what the driver wants: a URL without table, or a file
	table    string
}

// sqliteMagic begins every SQLite file.
const sqliteMagic = "SQLite format 3\x00"

var sqlFormat = data.Format{
	Name:  "a table of a database",
	Is:    func(path string, _ []byte) bool { return isSQL(path) },
	Magic: true,
	Open:  func(ctx context.Context, in *data.Input) (data.Rows, error) { return openSQLRows(ctx, in) },
	Describe: func(ctx context.Context, path string) (*data.Description, error) {
		if !isSQL(path) {
			return nil, nil
		}
		return describeSQL(ctx, path)
	},
}

// isSQL reports whether path names a table of a database, correctly or not: an SQLite file alone lacks
// the name of its table.
func isSQL(path string) bool { return data.IsDatabase(path) || data.Begins(path, sqliteMagic) }

// parseSQL parses path.
func parseSQL(path string) (*sqlTable, error) {
	t := &sqlTable{name: data.Public(path), postgres: postgres.IsURL(path)}
	where, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err == nil && !t.postgres && len(q) > 1 {
		err = errors.New("data: more than a table")
	}
	if names := q["table"]; err != nil || len(names) != 1 || names[0] == "" || !config.PlainText(names[0]) {
		return nil, &config.Error{File: t.name, Found: "no name of a table",
			Allowed: "one, as in postgres://user@host/database?table=NAME or people.db?table=NAME"}
	}
	t.table = q.Get("table")
	q.Del("table")
	t.where = strings.TrimPrefix(where, data.SQLite)
	if t.postgres && len(q) > 0 {
		t.where += "?" + q.Encode()
	}
	return t, nil
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
			return nil, nil, &config.Error{File: t.name, Found: "a URL that does not read",
				Allowed: "postgres://user@host:port/database?table=NAME"}
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
		dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path,
			RawQuery: "mode=ro&_pragma=busy_timeout(20000)&_pragma=query_only(1)"}).String()
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

// failed is the error of a database, with advice if there is any. It leaves out the server's own text,
// which may contain a value, except about connecting.
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
			return bad("a user or password that the server refuses", "a user of the database",
				"PGPASSWORD or ~/.pgpass gives a password that stands in no file of a run")
		case "3D000": // invalid_catalog_name
			return bad("no such database", "a database of the server", "")
		}
		return fmt.Errorf("data: reading %s: the server reports error %s", t.name, postgres.Code(err))
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case 1: // ERROR: of the two statements that are sent, only the table can be wrong
			return bad("no such table", "a table or view of the database", "")
		case 11, 26: // CORRUPT, NOTADB
			if f, err := data.OpenFile(context.Background(), t.where, nil); err != nil {
				return err // a file of another program
			} else {
				f.Close()
			}
			return bad("a file that is not an SQLite database, or a damaged one", "an SQLite database", "")
		case 14: // CANTOPEN
			return bad("a file that SQLite cannot open", "an SQLite database that can be read", "")
		}
	}
	return fmt.Errorf("data: reading %s: %w", t.name, err)
}

// quoted returns the table's name in SQL. For PostgreSQL a point separates schema and table.
func (t *sqlTable) quoted() string {
	if t.postgres {
		return strings.ReplaceAll(quoteName(t.table), ".", `"."`)
	}
	return quoteName(t.table)
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// columns returns the columns of the table, with their types.
func (t *sqlTable) columns(ctx context.Context, tx *sql.Tx) ([]data.FieldName, error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+t.quoted()+" LIMIT 0")
	if err != nil {
		return nil, t.failed(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, t.failed(err)
	}
	var out []data.FieldName
	for _, c := range types {
		typ := c.DatabaseTypeName()
		if typ == "" {
			typ = "any"
		}
		out = append(out, data.FieldName{Name: c.Name(), Type: typ})
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, t.failed(err)
	}
	return out, nil
}

// describeSQL says which columns a table has.
func describeSQL(ctx context.Context, path string) (*data.Description, error) {
	t, err := parseSQL(path)
	if err != nil {
		return nil, err
	}
	db, tx, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	defer tx.Rollback()
	d := &data.Description{Form: "a table of an SQLite database"}
	if t.postgres {
		d.Form = "a table of a PostgreSQL database"
	}
	d.Fields, err = t.columns(ctx, tx)
	return d, err
}

// sqlRows reads a table of a database, in the order in which the database gives the rows.
type sqlRows struct {
	*sqlTable
	db     *sql.DB
	tx     *sql.Tx
	rows   *sql.Rows
	names  []string // of the columns that are read
	cells  []string
	null   []bool
	scan   []any // pointers to values
	values []any
	sum    hash.Hash
	read   int       // of values: those that the schema reads, which are part of the content
	total  [4]uint64 // sum of the rows' hashes: it does not depend on their order
	row    int
}

func openSQLRows(ctx context.Context, in *data.Input) (q *sqlRows, err error) {
	t, err := parseSQL(in.Path)
	if err != nil {
		return nil, err
	}
	r := &sqlRows{sqlTable: t, sum: in.Sum}
	if r.db, r.tx, err = t.open(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	fields, err := t.columns(ctx, r.tx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	columns, read, bad := in.Select(names, func(int) bool { return true })
	if bad != nil {
		bad.File = t.name
		return nil, bad
	}
	var list []string
	for _, i := range columns {
		r.names, list = append(r.names, names[i]), append(list, t.asText(names[i]))
	}
	n := len(list)
	r.read, r.cells, r.null, r.values, r.scan = read, make([]string, n), make([]bool, n), make([]any, n), make([]any, n)
	for i := range r.scan {
		r.scan[i] = &r.values[i]
	}
	if r.rows, err = r.tx.QueryContext(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+t.quoted()); err != nil {
		return nil, t.failed(err)
	}
	return r, nil
}

// asText returns the expression for a column's value: PostgreSQL's own text, or for SQLite the value as
// stored, whatever type the column was declared with.
func (t *sqlTable) asText(column string) string {
	if t.postgres {
		return quoteName(column) + "::text"
	}
	return "+" + quoteName(column)
}

func (q *sqlRows) Next(row *data.Row) (f data.Fault, err error) {
	if !q.rows.Next() {
		if err := q.rows.Err(); err != nil {
			return f, q.failed(err)
		}
		for _, v := range q.total {
			binary.Write(q.sum, binary.LittleEndian, v)
		}
		binary.Write(q.sum, binary.LittleEndian, uint64(q.row))
		return f, io.EOF
	}
	q.row++
	if err := q.rows.Scan(q.scan...); err != nil {
		return f, q.failed(err)
	}
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
			f = data.Fault{Column: q.names[i], Found: "bytes that are not text", Allowed: "a number or text"}
		}
		if i >= q.read {
			continue
		}
		if !utf8.ValidString(q.cells[i]) || strings.IndexByte(q.cells[i], 0) >= 0 {
			f = data.Fault{Column: q.names[i], Found: "bytes that are not text", Allowed: "a number or text"}
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
	if f.Found != "" {
		row.HashCells(q.cells)
		return f, nil
	}
	return row.Cells(q.cells, q.null), nil
}

func (q *sqlRows) Place(data.Fault) *config.Error { return &config.Error{File: q.name, Row: q.row} }

func (q *sqlRows) Close() error {
	if q.rows != nil {
		q.rows.Close()
	}
	q.tx.Rollback()
	return q.db.Close()
}
