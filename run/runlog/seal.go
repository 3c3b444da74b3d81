package runlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/internal/readfile"
)

// Seal returns the SHA-256 of every final file of a run directory, by name: those of Hashes, run.json in
// its canonical form, and the report, but not a report that was rebuilt later (NewReportFile). The
// settlement in the ledger holds it.
func (d Disk) Seal(dir string) (map[string]string, error) {
	seal, err := d.hashes(dir, ReportFile, PlaceFile, SearchFile)
	if err != nil {
		return nil, err
	}
	b, err := readfile.AllOn(d.FS, filepath.Join(dir, InfoFile), readfile.JSON)
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

// Hashes returns the SHA-256 of the files of a run that no longer change once it is finished, by name. It
// leaves out files that do not exist.
func (d Disk) Hashes(dir string) (map[string]string, error) { return d.hashes(dir) }

func (d Disk) hashes(dir string, more ...string) (map[string]string, error) {
	names, err := d.withParts(dir,
		append(more, EventsFile, StepsFile, ModelFile, JournalFile, SumsFile, ScheduleFile, AgreedFile)...)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		sum, err := d.Hash(dir, name)
		if err != nil {
			return nil, err
		}
		if sum != "" {
			all[name] = sum
		}
	}
	return all, nil
}

// Hash returns the SHA-256 of a file of a run directory, in hex; empty if there is no such file.
func (d Disk) Hash(dir, name string) (string, error) {
	f, err := readfile.OpenOn(d.FS, filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Canonical returns a JSON value without spaces, its fields in alphabetical order, its numbers as they
// were written. An object that has a field twice is an error: readers may keep either, or merge them.
func Canonical(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	b, err := appendCanonical(nil, dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more follows the value")
	}
	return b, nil
}

// appendCanonical appends the next value of dec. It holds the value as text only: a plan in
// run.json can have hundreds of thousands of parts.
func appendCanonical(b []byte, dec *json.Decoder, depth int) ([]byte, error) {
	if depth > 1000 {
		return nil, errors.New("found values nested deeper than 1000")
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		b = append(b, '[')
		for i := 0; dec.More(); i++ {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(b, dec, depth+1); err != nil {
				return nil, err
			}
		}
		b = append(b, ']')
	case json.Delim('{'):
		fields := map[string][]byte{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key := name.(string) // the decoder accepts nothing else
			if _, twice := fields[key]; twice {
				return nil, fmt.Errorf("the field %q stands twice in one object", key)
			}
			if fields[key], err = appendCanonical(nil, dec, depth+1); err != nil {
				return nil, err
			}
		}
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(fields)) {
			if i > 0 {
				b = append(b, ',')
			}
			name, err := json.Marshal(key)
			if err != nil {
				return nil, err
			}
			b = append(append(append(b, name...), ':'), fields[key]...)
		}
		b = append(b, '}')
	default:
		text, err := json.Marshal(t)
		return append(b, text...), err
	}
	_, err = dec.Token() // the end of the object or array
	return b, err
}
