package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/object"
	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/schema"
)

// Plus separates the files of a table that has several, in its path. Each of them may be a pattern, as visits-*.csv.
const Plus = " + "

// pathsIn returns the paths in a path: those that Plus separates. The URL of a server is always the last.
func pathsIn(path string) (paths []string) {
	for rest, more := path, true; more; {
		var p string
		if p, rest, more = strings.Cut(rest, Plus); postgres.IsURL(p) && more {
			p, more = p+Plus+rest, false
		}
		paths = append(paths, p)
	}
	return paths
}

// exists reports whether path is a file by itself, whatever its name looks like.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Files returns the files that a path names: those of a list in its order, those of a pattern in the order of their
// names.
func Files(path string) ([]string, error) {
	paths := pathsIn(path)
	if path == "" || readfile.Inherited(path) || len(paths) == 1 && IsDatabase(path) || exists(path) {
		return []string{path}, nil
	}
	var files []string
	for _, p := range paths {
		found := []string{p}
		if strings.ContainsAny(p, "*?[") && !object.IsURL(p) && !IsDatabase(p) && !exists(p) {
			var err error
			if found, err = filepath.Glob(p); err != nil {
				return nil, &config.Error{File: p, Found: "a pattern that does not read",
					Allowed: "a name with *, ? or [a-z], as in visits-*.csv"}
			}
			if len(found) == 0 {
				return nil, &config.Error{File: p, Found: "no file with such a name",
					Allowed: "a pattern that the names of some files match"}
			}
			slices.Sort(found)
		}
		files = append(files, found...)
	}
	if len(files) == 1 {
		return files, nil
	}
	seen := map[string]bool{}
	for _, f := range files {
		switch {
		case f == "" || readfile.Inherited(f) || IsDatabase(f) || IsPacked(f):
			return nil, &config.Error{File: Public(f), Found: "no file of text or Parquet, in a table of several files",
				Allowed: "files of a format that is read in pieces, as CSV, JSON Lines or Parquet; a database, a packed table or standard input is a table by itself"}
		case seen[filepath.Clean(f)]:
			return nil, &config.Error{File: f, Found: "the file a second time in one table",
				Allowed: "each file once: its rows would count twice"}
		}
		seen[filepath.Clean(f)] = true
	}
	return files, nil
}

// otherColumns is the error of a file with other columns than the first one of the table.
func otherColumns(file, first string) error {
	return &config.Error{File: Public(file), Found: "other columns than in " + Public(first) + ", or another order",
		Allowed: "the same columns in the same order in all files of a table"}
}

// several divides the files of one table, one after the other. They have the same columns in the same order.
type several struct {
	ctx     context.Context
	in      *Input // of the first file
	files   []string
	next    int                 // of files: the one to open
	now     Pieces              // the file that is read; nil between two
	sum     *Input              // of that file
	mine    map[RowReader]bool  // its pieces
	digests [][sha256.Size]byte // of the files that were read
}

// openSeveral opens the first file.
func openSeveral(ctx context.Context, in *Input, files []string) (*several, error) {
	if in.Schema.Format.Kind == schema.KindIDX {
		return nil, &config.Error{File: in.Path, Found: "several files of images", Allowed: "one, since format.kind is idx"}
	}
	s := &several{ctx: ctx, in: in, files: files}
	return s, s.open()
}

// open opens the next file, for the same rows.
func (s *several) open() error {
	file := *s.in
	file.Path, file.Sum = s.files[s.next], sha256.New()
	if s.next > 0 { // workers have copies of the first one's row
		var key *RowKey
		if s.in.row.raw != nil {
			key = s.in.row.raw.key
		}
		file.row = &Row{encoder: s.in.row.encoder, raw: newRowHasher(key)}
	}
	p, err := openFormat(s.ctx, &file)
	if err != nil {
		return err
	}
	s.now, s.sum, s.mine = p, &file, map[RowReader]bool{}
	if _, ok := p.(*serial); ok {
		return &config.Error{File: file.Path, Found: "a format that is read row by row, in a table of several files",
			Allowed: "files of a format that is read in pieces, as CSV, JSON Lines or Parquet"}
	}
	if !slices.Equal(file.row.names, s.in.row.names) || !slices.Equal(file.row.place, s.in.row.place) {
		return otherColumns(file.Path, s.files[0])
	}
	s.next++
	return nil
}

func (s *several) Piece(used RowReader) (RowReader, error) {
	for {
		if s.now == nil {
			if s.next == len(s.files) {
				return nil, io.EOF
			}
			if err := s.open(); err != nil {
				return nil, err
			}
		}
		if !s.mine[used] {
			used = nil // of another file
		}
		p, err := s.now.Piece(used)
		if err != io.EOF {
			s.mine[p] = true
			return p, err
		}
		s.digests = append(s.digests, [sha256.Size]byte(s.sum.Sum.Sum(nil)))
		err = s.now.Close()
		if s.now = nil; err != nil {
			return nil, err
		}
	}
}

func (s *several) Close() error {
	if s.now == nil {
		return nil
	}
	return s.now.Close()
}

// content is that of the whole table. It does not depend on the order of the files.
func (s *several) content() *Content {
	c := &Content{Parts: s.digests}
	sorted := slices.Clone(s.digests)
	slices.SortFunc(sorted, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	io.WriteString(h, "sotto: a table of several files")
	for _, d := range sorted {
		h.Write(d[:])
	}
	c.Digest = [sha256.Size]byte(h.Sum(nil))
	return c
}
