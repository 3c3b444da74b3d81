package access

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/state"
)

// tables is what the owner's state directory knows of tables: for each content the least 1024 keyed
// hashes of its distinct rows, under a key that is kept beside them. A person with these files can test
// whether a row is in a table of n rows, with a chance of 1024/n. So the files are for the owner only,
// like the tables.
type tables struct {
	dir   string // "": there is no state
	key   *data.RowKey
	saved bool // the key is on disk
	all   []sketch
}

// sketchSize is the number k of hashes that are kept of a content.
const sketchSize = 1024

// A sketch is one content.
type sketch struct {
	marks [][sha256.Size]byte // of the content, in each ledger that was told of it
	rows  []uint64            // ascending; padded with random ones if the content has fewer distinct rows
}

// sketchFile is its form on disk.
type sketchFile struct {
	Format string   `json:"format"`
	Marks  []string `json:"marks"`
	Rows   []byte   `json:"rows"` // little-endian
}

const (
	sketchFormat = "sotto-table/1"
	keyFile      = "key"
	keyFormat    = "sotto-row-key/2\n" // the head of a key; those of earlier builds have none
	fileLimit    = 1 << 20
)

// openTables reads the state; it makes nothing. An error tells the owner which tables cannot be
// recognized by parts. Tables that are in memory together can still be compared.
func openTables() (*tables, error) {
	t := &tables{}
	base, err := state.Dir()
	if err == nil {
		t.dir = filepath.Join(base, "tables")
		t.key, err = readKey(filepath.Join(t.dir, keyFile))
	}
	if t.saved = err == nil; err != nil {
		t.key = &data.RowKey{Secret: make([]byte, sha256.Size)}
		rand.Read(t.key.Secret)
	}
	if t.saved {
		err = t.read()
	} else if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	} else {
		t.dir = "" // a new key would make the existing sketches useless
	}
	if err != nil {
		err = fmt.Errorf("copies and parts of protected tables are not all recognized, since the state directory cannot be read: %w", err)
	}
	return t, err
}

// readKey reads the key. The sketches beside it and packed tables have the hashes that it makes, so a key of an earlier build goes
// on making those of that build.
func readKey(path string) (*data.RowKey, error) {
	file, err := readfile.All(path, fileLimit)
	if err != nil {
		return nil, err
	}
	secret, head := bytes.CutPrefix(file, []byte(keyFormat))
	if len(secret) != sha256.Size {
		return nil, fmt.Errorf("%s: found %d bytes, which are no key. Delete the directory to start over", path, len(file))
	}
	return &data.RowKey{Secret: secret, Text: !head}, nil
}

// save writes a new key to disk before the first hash under it. If two processes do so, one succeeds, and
// the other's hashes are useless.
func (t *tables) save() error {
	if t.saved || t.dir == "" {
		return nil
	}
	path := filepath.Join(t.dir, keyFile)
	err := os.MkdirAll(t.dir, 0o700)
	var made string
	if err == nil {
		made, err = newfile.Temporary(path, 0o600, append([]byte(keyFormat), t.key.Secret...))
	}
	if err == nil {
		defer os.Remove(made)
		err = os.Link(made, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return errors.New("another process has just made the state directory; copies and parts of this table will be recognized from its next use on")
	}
	if t.saved = err == nil; !t.saved {
		return fmt.Errorf("the state directory cannot be written, so copies and parts of this table will not be recognized: %w", err)
	}
	return nil
}

func (t *tables) read() error {
	files, err := filepath.Glob(filepath.Join(t.dir, "*.json"))
	for _, f := range files {
		switch s, bad := readSketch(f); {
		case errors.Is(bad, fs.ErrNotExist): // another process replaces it
		case bad != nil:
			err = errors.Join(err, bad)
		default:
			t.all = append(t.all, s)
		}
	}
	return err
}

func readSketch(path string) (s sketch, err error) {
	damaged := fmt.Errorf("%s: damaged; delete it", path)
	b, err := readfile.All(path, fileLimit)
	if readfile.Refused(err) {
		return s, damaged
	}
	if err != nil {
		return s, err
	}
	var f sketchFile
	if json.Unmarshal(b, &f) != nil || f.Format != sketchFormat || len(f.Rows) != 8*sketchSize {
		return s, damaged
	}
	for _, m := range f.Marks {
		b, err := hex.DecodeString(m)
		if err != nil || len(b) != sha256.Size {
			return s, damaged
		}
		s.marks = append(s.marks, [sha256.Size]byte(b))
	}
	for b := f.Rows; len(b) > 0; b = b[8:] {
		s.rows = append(s.rows, binary.LittleEndian.Uint64(b))
	}
	return s, nil
}

// sketchOf returns the k least distinct hashes, padded with random ones to k, so that a small content
// does not show its size. As many are always drawn.
func sketchOf(rows []uint64) []uint64 {
	least := slices.Clone(rows)
	slices.Sort(least)
	least = slices.Compact(least)
	if len(least) > sketchSize {
		least = least[:sketchSize:sketchSize]
	}
	for first := true; first || len(least) < sketchSize; first = false {
		var random [8 * sketchSize]byte
		rand.Read(random[:])
		for b := random[:]; len(least) < sketchSize; b = b[8:] {
			least = append(least, binary.LittleEndian.Uint64(b))
		}
		slices.Sort(least)
		least = slices.Compact(least)
	}
	return least
}

// remember keeps a content under its mark in a ledger.
func (t *tables) remember(c *data.Content, mark [sha256.Size]byte) error {
	if t.dir == "" || c.Rows == nil {
		return nil
	}
	if err := t.save(); err != nil {
		return err
	}
	mac := hmac.New(sha256.New, t.key.Secret)
	mac.Write([]byte("sotto: the name of this content"))
	mac.Write(c.Digest[:])
	path := filepath.Join(t.dir, hex.EncodeToString(mac.Sum(nil)[:16])+".json")
	s, err := readSketch(path)
	switch {
	case err == nil && slices.Contains(s.marks, mark):
		return nil
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		s.rows = sketchOf(c.Rows)
	default:
		return err
	}
	f := sketchFile{Format: sketchFormat}
	for _, m := range append(s.marks, mark) {
		f.Marks = append(f.Marks, hex.EncodeToString(m[:]))
	}
	for _, h := range s.rows {
		f.Rows = binary.LittleEndian.AppendUint64(f.Rows, h)
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	made, err := newfile.Temporary(path, 0o600, append(b, '\n'))
	if err != nil {
		return fmt.Errorf("the state directory cannot be written, so copies and parts of this table will not be recognized: %w", err)
	}
	return os.Rename(made, path)
}

// alike returns the marks of the contents that share many rows with these: more than 5 % of the rows are
// theirs, or more than 5 % of theirs are among the rows. Both are estimates: a sketch is a sample of its
// content's distinct rows. alike skips contents for whose marks wanted is false.
func (t *tables) alike(rows []uint64, wanted func([][sha256.Size]byte) bool) [][sha256.Size]byte {
	if len(rows) == 0 || len(t.all) == 0 {
		return nil
	}
	times := map[uint64]int{} // how often each hash of a sketch is among the rows
	for _, s := range t.all {
		if wanted(s.marks) {
			for _, h := range s.rows {
				times[h] = 0
			}
		}
	}
	for _, h := range rows {
		if n, ok := times[h]; ok {
			times[h] = n + 1
		}
	}
	var found [][sha256.Size]byte
	for _, s := range t.all {
		if wanted(s.marks) && s.alike(times, len(rows)) {
			found = append(found, s.marks...)
		}
	}
	return found
}

// alike compares with a table of that many rows, which contain the sketch's hashes that often.
func (s *sketch) alike(times map[uint64]int, rows int) bool {
	hits, distinct := 0, 0
	for _, h := range s.rows {
		hits += times[h]
		distinct += min(times[h], 1)
	}
	// Each distinct row of the content is in its sketch with a chance of about the part of the
	// range that the sketch covers.
	chance := float64(s.rows[len(s.rows)-1]) / (1 << 63) / 2
	return float64(hits) > most*chance*float64(rows) || float64(distinct) > most*sketchSize
}
