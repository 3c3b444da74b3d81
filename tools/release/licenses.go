package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licenses, by their SPDX identifiers, that a module in the program may have: each permits use and
// distribution of a program with it under any terms, if its text goes along.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "LicenseRef-public-domain", "MIT",
	"Unlicense", "Zlib"}

// read holds what a person read in files that licensecheck does not know, or that list more than is linked.
var read = map[string][]string{
	"modernc.org/memory LICENSE-LOGO":   {}, // of a picture in its page
	"modernc.org/sqlite LICENSE-SQLITE": {"LicenseRef-public-domain"},
	// its MPL-2.0 is of a module that it does not compile
	"modernc.org/sqlite LICENSE-3RD-PARTY.md": {"BSD-3-Clause", "MIT"},
}

var licenseFile = regexp.MustCompile(`(?i)^((un)?licen[sc]e|copying|third.party.licen[sc]es)([.-].*)?$`)

// linked lists the folders of the packages in the program, by module: each with those above it up to the module's own.
func linked(module, goos, arch string) (map[string][]string, error) {
	c := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}", "./cmd/sotto")
	c.Dir = module
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s/%s: %w", goos, arch, err)
	}
	dirs := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue // of the standard library
		}
		path, root, dir := fields[0], fields[1], fields[2]
		for ; !slices.Contains(dirs[path], dir); dir = filepath.Dir(dir) {
			dirs[path] = append(dirs[path], dir)
			if dir == root {
				break
			}
		}
	}
	return dirs, nil
}

// licenses are those that the files in a module's folders name, in order. A file that says none, or one that is not
// allowed, is an error.
func licenses(module string, dirs []string) ([]string, error) {
	var all []string
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.IsDir() || !licenseFile.MatchString(f.Name()) {
				continue
			}
			found, ok := read[module+" "+f.Name()]
			if !ok {
				text, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil {
					return nil, err
				}
				for _, m := range licensecheck.Scan(text).Match {
					found = append(found, m.ID)
				}
				if len(found) == 0 {
					return nil, fmt.Errorf("module %s: %s names no known license; read it, then add what it says to the table in tools/release/licenses.go", module, f.Name())
				}
			}
			for _, id := range found {
				if !slices.Contains(allowed, id) {
					return nil, fmt.Errorf("module %s: found the license %s in %s; use modules with %s", module, id, f.Name(),
						strings.Join(allowed, ", "))
				}
			}
			all = append(all, found...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("module %s has no license", module)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// licensed are the licenses of all modules in the program for a platform.
func licensed(module, goos, arch string) (map[string][]string, error) {
	dirs, err := linked(module, goos, arch)
	all := map[string][]string{}
	for path, dirs := range dirs {
		if all[path], err = licenses(path, dirs); err != nil {
			return nil, err
		}
	}
	return all, err
}
