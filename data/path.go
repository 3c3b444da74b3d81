package data

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/object"
	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
)

// Open opens the file or the object at path as it is stored, for reading in any order.
func Open(path string) (*readfile.File, error) {
	if object.IsURL(path) {
		return object.Open(path)
	}
	f, err := readfile.Open(path)
	if err != nil {
		return nil, config.FileError(path, err)
	}
	return f, nil
}

// Begins says whether the file or the object at path begins with magic.
func Begins(path, magic string) bool {
	f, err := Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(magic))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == magic
}

// SQLite is the prefix of a table in an SQLite file whose path does not have the form FILE?table=NAME.
const SQLite = "sqlite:"

// IsDatabase says whether path has the form of a table of a database.
func IsDatabase(path string) bool {
	if object.IsURL(path) {
		return false
	}
	_, file := sqliteFile(path)
	return postgres.IsURL(path) || strings.HasPrefix(path, SQLite) || file
}

// sqliteFile returns the file of FILE?table=NAME, and whether path has that form.
func sqliteFile(path string) (string, bool) {
	file, query, ok := strings.Cut(path, "?")
	return file, ok && slices.ContainsFunc(strings.Split(query, "&"), func(pair string) bool {
		return strings.HasPrefix(pair, "table=")
	})
}

// Public returns the name that files of Sotto have for path, which opens the table again: without the password if path
// is the URL of a database, and without user and query if it is that of an object.
func Public(path string) string {
	if paths := pathsIn(path); len(paths) > 1 {
		for i, p := range paths {
			paths[i] = Public(p)
		}
		return redact.Path(strings.Join(paths, Plus))
	}
	if object.IsURL(path) {
		return object.Public(path)
	}
	if filepath.IsAbs(path) {
		return path
	}
	if u, err := url.Parse(path); err == nil && postgres.IsURL(path) && !strings.ContainsAny(u.Path+u.Fragment, "@#") {
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
	return redact.Path(path)
}

// Join joins the directory dir and a relative path, also the path of an SQLite table, and each path of several. The URL
// of a server or an object stays as it is.
func Join(dir, path string) string {
	if paths := pathsIn(path); len(paths) > 1 && !exists(filepath.Join(dir, path)) {
		for i, p := range paths {
			paths[i] = Join(dir, p)
		}
		return strings.Join(paths, Plus)
	}
	if path == "" || readfile.Inherited(path) || postgres.IsURL(path) || object.IsURL(path) {
		return path
	}
	scheme := ""
	if rest, ok := strings.CutPrefix(path, SQLite); ok {
		scheme, path = SQLite, rest
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
