// Package postgres connects to PostgreSQL through a driver that a program chooses to
// have: importing github.com/sottodp/sotto/postgres registers it. So a program that needs
// no server does not depend on its driver.
package postgres

import (
	"database/sql"
	"errors"
	"strings"
)

// A Driver opens databases of PostgreSQL.
type Driver interface {
	// Open prepares a database for the URL, with the run-time parameters. It does not connect.
	Open(url string, parameters map[string]string) (*sql.DB, error)
	// Code is the SQLSTATE of an error of the server, "" of another.
	Code(err error) string
}

var driver Driver

// Register sets the driver, before the first use.
func Register(d Driver) { driver = d }

// ErrNoDriver says that the program has no driver.
var ErrNoDriver = errors.New("this program was built without PostgreSQL; import github.com/sottodp/sotto/postgres")

// Open prepares a database, or returns ErrNoDriver. The text of any other error may quote
// the password of the URL.
func Open(url string, parameters map[string]string) (*sql.DB, error) {
	if driver == nil {
		return nil, ErrNoDriver
	}
	if scheme, rest, ok := strings.Cut(url, "://"); ok { // drivers know it in lower case alone
		url = strings.ToLower(scheme) + "://" + rest
	}
	return driver.Open(url, parameters)
}

// Code is the SQLSTATE of an error of the server, "" of another.
func Code(err error) string {
	if driver == nil {
		return ""
	}
	return driver.Code(err)
}

// IsURL says whether a location is the URL of a PostgreSQL database.
func IsURL(place string) bool {
	scheme, _, ok := strings.Cut(place, "://")
	return ok && (strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"))
}
