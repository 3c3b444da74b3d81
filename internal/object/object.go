// Package object opens tables that are objects of a store. A program chooses which stores it has: importing
// github.com/sottodp/sotto/s3 registers that of s3:// URLs.
package object

import (
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
)

// Scheme begins the URL of an object.
const Scheme = "s3://"

var store func(url string) (*readfile.File, error)

// Register sets what opens objects, before the first use.
func Register(open func(url string) (*readfile.File, error)) { store = open }

// IsURL says whether a path names an object.
func IsURL(path string) bool {
	return len(path) >= len(Scheme) && strings.EqualFold(path[:len(Scheme)], Scheme)
}

// Public is the URL of an object without what may be secret: a user before the bucket, and a query.
func Public(url string) string {
	where, _, _ := strings.Cut(redact.Path(url), "?")
	return where
}

// Open opens an object. Its errors name it, and what to do.
func Open(url string) (*readfile.File, error) {
	if store == nil {
		return nil, &config.Error{File: Public(url),
			Found: "an object of a store, in a program that was built without stores", Allowed: "a file",
			Hint: "a program that imports github.com/sottodp/sotto/s3 reads objects"}
	}
	return store(url)
}
