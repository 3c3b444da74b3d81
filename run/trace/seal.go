package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/readfile"
)

// Seal is the SHA-256 of every final file of a run directory, by name: those of
// Hashes, run.json in its canonical form, and the report. The settlement in the
// ledger holds it. A file that does not exist has no hash; a report that was
// rebuilt later (NewReportFile) is not one of the final files.
func Seal(dir string) (map[string]string, error) {
	seal, err := Hashes(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{ReportFile, PlaceFile} {
		if err := addHash(seal, dir, name); err != nil {
			return nil, err
		}
	}
	b, err := readfile.All(filepath.Join(dir, InfoFile), readfile.JSON)
	if err != nil {
		return nil, err
	}
	if b, err = Canonical(b); err != nil {
		return nil, fmt.Errorf("%s: %w", InfoFile, err)
	}
	sum := sha256.Sum256(b)
	seal[InfoFile] = hex.EncodeToString(sum[:])
	return seal, nil
}

// addHash adds the SHA-256 of a file, if it exists.
func addHash(hashes map[string]string, dir, name string) error {
	f, err := readfile.Open(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	hashes[name] = hex.EncodeToString(h.Sum(nil))
	return nil
}

// Canonical is a JSON value without spaces between its parts, its fields in
// alphabetical order, its numbers as they were written. A field that an object has twice is
// an error: readers may keep either of the two, or merge them.
func Canonical(text []byte) ([]byte, error) {
	if err := unrepeated(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return nil, err
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more follows the value")
	}
	return json.Marshal(v)
}

// unrepeated reads a JSON value and says whether no object in it has a field twice.
func unrepeated(dec *json.Decoder) error {
	var open []map[string]bool // the fields of each object around; nil for an array
	name := false              // a field's name is next
	for {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
		case string:
			if name {
				fields := open[len(open)-1]
				if fields[t] {
					return fmt.Errorf("the field %q stands twice in one object", t)
				}
				fields[t] = true
				name = false
				continue
			}
		}
		if len(open) == 0 {
			return nil
		}
		name = open[len(open)-1] != nil
	}
}
