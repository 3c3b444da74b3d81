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
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/state"
	"github.com/sottodp/sotto/internal/twins"
	"github.com/sottodp/sotto/internal/vfs"
)

// tables is what the owner's state directory knows of tables: for each content the least 1024 keyed
// hashes of its distinct rows, under a key that is kept beside them. A person with these files can test
// whether a row is in a table of n rows, with a chance of 1024/n. So the files are for the owner only,
// like the tables.
type tables struct {
	dir   string // "": there is no state
	key   *data.RowKey
	saved bool // the key is on disk
	made  bool // by this process, and nothing is kept under it yet
	all   []*known
}

// sketchSize is the number k of hashes that are kept of a content.
const sketchSize = 1024

// A known table is one content.
type known struct {
	path  string
	marks [][sha256.Size]byte // of the content, in each ledger that was told of it
	by    [2]*sketch          // its rows, by the names of the columns and by their positions; nil: not known
}

// What a row's hash covers beside its cells.
const (
	byName = iota
	byPosition
)

// A sketch is a sample of a content's distinct rows.
type sketch struct {
	rows   []uint64 // ascending; padded with random ones if the content has fewer distinct rows
	times  []uint32 // how often the content has each; 0: not known, in a file of format 1
	scored []byte   // one bit for each row: an exact access had it
	chance float64  // of these, how many independent tables would have shared with the content
}

// sketchFile is a known table on disk.
type sketchFile struct {
	Format string   `json:"format"`
	Marks  []string `json:"marks"`
	sketchText
	Positions *sketchText `json:"positions,omitempty"`
}

// sketchText is a sketch on disk; numbers are little-endian.
type sketchText struct {
	Rows   []byte  `json:"rows"`
	Times  []byte  `json:"times,omitempty"`
	Scored []byte  `json:"scored,omitempty"`
	Chance float64 `json:"chance,omitempty"`
}

const (
	sketchFormat  = "sotto-table/2"
	sketchFormat1 = "sotto-table/1" // has marks and rows alone
	keyFile       = "key"
	lockFile      = "lock"
	fileLimit     = 1 << 20
)

// keyHeads are the heads of keys by the form of rows; a key of the first builds has none.
var keyHeads = []string{data.RowMeaning: "sotto-row-key/3\n", data.RowWords: "sotto-row-key/2\n", data.RowText: ""}

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

// readKey reads the key. Stored sketches and packed tables hold hashes under it, so keys from older
// builds keep their hash format.
func readKey(path string) (*data.RowKey, error) {
	file, err := readfile.All(path, fileLimit)
	if err != nil {
		return nil, err
	}
	for form, head := range keyHeads {
		if secret, ok := bytes.CutPrefix(file, []byte(head)); ok && len(secret) == sha256.Size {
			return &data.RowKey{Secret: secret, Form: data.RowForm(form)}, nil
		}
	}
	return nil, fmt.Errorf("%s: %d bytes are no key of row hashes", path, len(file))
}

// ReadKey reads a key of row hashes that another machine of the owner has written.
func ReadKey(path string) (*data.RowKey, error) { return readKey(path) }

// WriteKey writes this machine's key to a new file for its owner alone.
func WriteKey(path string) error {
	t, err := openTables()
	if err == nil {
		if err = t.save(); errors.Is(err, errOtherKey) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	t.made = false
	return newfile.Replace(path, 0o600, append([]byte(keyHeads[t.key.Form]), t.key.Secret...))
}

// errOtherKey says that another process has made the key meanwhile, which is now in use: hashes under the earlier one
// are useless.
var errOtherKey = errors.New("another process has just made the key of row hashes")

// save writes a new key to disk before the first hash under it is kept. If two processes do so, the loser takes the
// winner's.
func (t *tables) save() error {
	if t.saved || t.dir == "" {
		return nil
	}
	path := filepath.Join(t.dir, keyFile)
	err := os.MkdirAll(t.dir, 0o700)
	var made string
	if err == nil {
		made, err = newfile.Temporary(path, 0o600, append([]byte(keyHeads[t.key.Form]), t.key.Secret...))
	}
	if err == nil {
		defer os.Remove(made)
		err = os.Link(made, path)
	}
	if errors.Is(err, fs.ErrExist) {
		key, readErr := readKey(path)
		if err = readErr; err == nil {
			t.key, t.saved = key, true
			return errors.Join(errOtherKey, t.read())
		}
	}
	if err == nil {
		err = newfile.SyncDir(t.dir)
	}
	if t.saved, t.made = err == nil, err == nil; !t.saved {
		t.dir = ""
		return fmt.Errorf("the state directory cannot be written, so copies and parts of this table will not be recognized: %w", err)
	}
	return nil
}

// forget removes a key under which this process kept nothing.
func (t *tables) forget() {
	if t.made {
		os.Remove(filepath.Join(t.dir, keyFile))
		os.Remove(t.dir)
		os.Remove(filepath.Dir(t.dir))
		t.saved, t.made = false, false
	}
}

// keepKey makes the key that a process which kept nothing may have removed.
func (t *tables) keepKey() error {
	t.made = false
	key, err := readKey(filepath.Join(t.dir, keyFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.saved = false
		err = t.save()
		t.made = false
		return err
	case err == nil && !bytes.Equal(key.Secret, t.key.Secret):
		return errors.New("another process has just made a key of row hashes; copies and parts of this table will be recognized from its next use on")
	}
	return err
}

func (t *tables) read() error {
	files, err := filepath.Glob(filepath.Join(t.dir, "*.json"))
	t.all = nil
	for _, f := range files {
		switch k, bad := readKnown(f); {
		case errors.Is(bad, fs.ErrNotExist): // another process replaces it
		case bad != nil:
			err = errors.Join(err, bad)
		default:
			t.all = append(t.all, k)
		}
	}
	return err
}

func readKnown(path string) (*known, error) {
	damaged := fmt.Errorf("%s: damaged; delete it", path)
	b, err := readfile.All(path, fileLimit)
	if readfile.Refused(err) {
		return nil, damaged
	}
	if err != nil {
		return nil, err
	}
	var f sketchFile
	if json.Unmarshal(b, &f) != nil || f.Format != sketchFormat && f.Format != sketchFormat1 {
		return nil, damaged
	}
	k := &known{path: path}
	for _, m := range f.Marks {
		b, err := hex.DecodeString(m)
		if err != nil || len(b) != sha256.Size {
			return nil, damaged
		}
		k.marks = append(k.marks, [sha256.Size]byte(b))
	}
	for i, text := range []*sketchText{&f.sketchText, f.Positions} {
		if text == nil {
			continue
		}
		if k.by[i] = text.sketch(f.Format == sketchFormat1); k.by[i] == nil {
			return nil, damaged
		}
	}
	return k, nil
}

// sketch reads a sketch; nil if it is damaged.
func (f *sketchText) sketch(rowsAlone bool) *sketch {
	if rowsAlone {
		f.Times, f.Scored = make([]byte, 4*sketchSize), make([]byte, sketchSize/8)
	}
	if len(f.Rows) != 8*sketchSize || len(f.Times) != 4*sketchSize || len(f.Scored) != sketchSize/8 || !(f.Chance >= 0) {
		return nil
	}
	s := &sketch{scored: f.Scored, chance: f.Chance}
	for i := range sketchSize {
		s.rows, s.times = append(s.rows, binary.LittleEndian.Uint64(f.Rows[8*i:])),
			append(s.times, binary.LittleEndian.Uint32(f.Times[4*i:]))
	}
	return s
}

func (s *sketch) text() *sketchText {
	if s == nil {
		return nil
	}
	f := &sketchText{Scored: s.scored, Chance: s.chance}
	for i := range sketchSize {
		f.Rows, f.Times = binary.LittleEndian.AppendUint64(f.Rows, s.rows[i]),
			binary.LittleEndian.AppendUint32(f.Times, s.times[i])
	}
	return f
}

// write replaces the file, durably.
func (k *known) write() error {
	f := sketchFile{Format: sketchFormat, sketchText: *k.by[byName].text(), Positions: k.by[byPosition].text()}
	for _, m := range k.marks {
		f.Marks = append(f.Marks, hex.EncodeToString(m[:]))
	}
	if err := newfile.JSON(k.path, "", f); err != nil {
		return fmt.Errorf("the state directory cannot be written, so copies and parts of tables are not all recognized: %w",
			err)
	}
	return nil
}

// sketchOf keeps the least k distinct rows, padded with random ones to k, so that a small content
// does not show its size. As many are always drawn.
func sketchOf(rows twins.Sketch) *sketch {
	rows = rows.Least(sketchSize)
	times := make(map[uint64]uint32, sketchSize)
	for i, h := range rows.Rows {
		times[h] = rows.Times[i]
	}
	s := &sketch{rows: slices.Clone(rows.Rows), scored: make([]byte, sketchSize/8)}
	for first := true; first || len(s.rows) < sketchSize; first = false {
		var random [8 * sketchSize]byte
		rand.Read(random[:])
		for b := random[:]; len(s.rows) < sketchSize; b = b[8:] {
			s.rows = append(s.rows, binary.LittleEndian.Uint64(b))
		}
		slices.Sort(s.rows)
		s.rows = slices.Compact(s.rows)
	}
	for _, h := range s.rows {
		s.times = append(s.times, max(times[h], 1))
	}
	return s
}

// locked runs a change of the files while no other process makes one.
func (t *tables) locked(change func() error) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	disk := vfs.OS{}
	f, err := disk.OpenFile(filepath.Join(t.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the state directory cannot be written, so copies and parts of tables are not all recognized: %w",
			err)
	}
	defer f.Close()
	if err := disk.Lock(f, true); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return change()
}

// remember keeps a content under its mark in a ledger.
func (t *tables) remember(digest [sha256.Size]byte, by [2]*hashes, mark [sha256.Size]byte) error {
	if t.dir == "" || by[byName] == nil {
		return nil
	}
	if err := t.save(); err != nil {
		return err
	}
	mac := hmac.New(sha256.New, t.key.Secret)
	mac.Write([]byte("sotto: the name of this content"))
	mac.Write(digest[:])
	path := filepath.Join(t.dir, hex.EncodeToString(mac.Sum(nil)[:16])+".json")
	return t.locked(func() error {
		if err := t.keepKey(); err != nil {
			return err
		}
		k, err := readKnown(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			k = &known{path: path}
		case err != nil:
			return err
		case slices.Contains(k.marks, mark) && (k.by[byPosition] != nil || by[byPosition] == nil):
			return nil
		}
		if !slices.Contains(k.marks, mark) {
			k.marks = append(k.marks, mark)
		}
		for i, h := range by {
			if k.by[i] == nil && h != nil {
				k.by[i] = sketchOf(h.least(sketchSize))
			}
		}
		t.all = append(slices.DeleteFunc(t.all, func(old *known) bool { return old.path == path }), k)
		return k.write()
	})
}

// found counts how often a table has each row of the sketches. last is the last hash that the table's own hashes reach.
func (t *tables) found(by [2]*hashes) (times [2]map[uint64]int, last [2]uint64) {
	for i, h := range by {
		if h == nil {
			continue
		}
		times[i] = map[uint64]int{}
		for _, k := range t.all {
			if k.by[i] != nil {
				for _, r := range k.by[i].rows {
					times[i][r] = 0
				}
			}
		}
		last[i] = h.times(times[i])
	}
	return times, last
}

// alike returns the marks of the contents that share many rows with a table: more than 5 % of the rows are theirs, or
// more than 5 % of theirs are among the rows; of an exact access also those of whose rows all exact accesses together
// would have more than 5 %. The first two are estimates: a sketch is a sample of its content's distinct rows. Contents
// here are left out; for contents beside, whose overlap was compared as a whole, the last alone counts.
func (t *tables) alike(by [2]*hashes, exact bool, here, beside [][sha256.Size]byte) (marks [][sha256.Size]byte) {
	if by[byName] == nil || by[byName].n == 0 || len(t.all) == 0 {
		return nil
	}
	times, last := t.found(by)
	for _, k := range t.all {
		if k.is(here) {
			continue
		}
		for i, s := range k.by {
			if s == nil || by[i] == nil {
				continue
			}
			if !k.is(beside) && s.alike(times[i], last[i], by[i].n) || exact && s.add(times[i], last[i], by[i]).full() {
				marks = append(marks, k.marks...)
				break
			}
		}
	}
	return marks
}

// is says whether a ledger knows the content by one of the marks.
func (k *known) is(marks [][sha256.Size]byte) bool {
	return slices.ContainsFunc(k.marks, func(m [sha256.Size]byte) bool { return slices.Contains(marks, m) })
}

// alike reports whether a table of n rows shares many rows with the content; times counts the
// sketch's rows in it, up to the hash last.
func (s *sketch) alike(times map[uint64]int, last uint64, n int) bool {
	end := min(last, s.rows[len(s.rows)-1])
	hits, distinct, all := 0, 0, 0
	for _, h := range s.rows {
		if h > end {
			break
		}
		all++
		hits += times[h]
		distinct += min(times[h], 1)
	}
	// Each distinct row of the content is in its sketch with a chance of about the part of the
	// range that the sketch covers.
	chance := float64(end) / (1 << 63) / 2
	return float64(hits) > most*chance*float64(n) || float64(distinct) > most*float64(all)
}

// An addition is what an exact access of a table adds to the rows of a content that earlier exact accesses had.
type addition struct {
	scored []byte
	chance float64
	rows   int // that no access had before
}

// add counts rows that content and table have once each: others may be of other people (ADR 63).
func (s *sketch) add(times map[uint64]int, last uint64, h *hashes) (a addition) {
	a.scored, a.chance = slices.Clone(s.scored), s.chance
	content := twins.Tally{}
	for i, r := range s.rows {
		switch {
		case times[r] == 1 && s.times[i] <= 1 && a.scored[i/8]>>(i%8)&1 == 0:
			a.scored[i/8] |= 1 << (i % 8)
			a.rows++
		case times[r] == 0 && s.times[i] == 2 && r <= last:
			content.First++
		}
	}
	if a.rows == 0 {
		return addition{scored: s.scored, chance: s.chance}
	}
	table := h.sketch().Upto(s.rows[len(s.rows)-1])
	for i, r := range table.Rows {
		if _, in := slices.BinarySearch(s.rows, r); !in && table.Times[i] == 2 {
			content.Last++
		}
	}
	a.chance += content.ByChance()
	return a
}

// full reports whether an access adds rows and all accesses together then exceed the share of the
// content that may be scored. Both the rows and their chance matches vary by about √chance.
func (a addition) full() bool {
	n := 0
	for _, b := range a.scored {
		n += bits.OnesCount8(b)
	}
	return a.rows > 0 && float64(n)-a.chance-6*math.Sqrt(a.chance) > most*sketchSize
}

// score records durably which rows an exact access has, before any result is shown. It refuses an
// access to a protected content if other processes have meanwhile used up the share that may be
// scored.
func (t *tables) score(by [2]*hashes, protected func(marks [][sha256.Size]byte) bool) error {
	if t.dir == "" || by[byName] == nil || len(t.all) == 0 {
		return nil
	}
	times, last := t.found(by)
	for _, k := range t.all {
		if !slices.ContainsFunc([]int{byName, byPosition}, func(i int) bool {
			return k.by[i] != nil && by[i] != nil && k.by[i].add(times[i], last[i], by[i]).rows > 0
		}) {
			continue
		}
		err := t.locked(func() error {
			now, err := readKnown(k.path)
			if err != nil {
				return err
			}
			for i, s := range now.by {
				if s == nil || by[i] == nil {
					continue
				}
				a := s.add(times[i], last[i], by[i])
				if a.full() && protected(now.marks) {
					return fmt.Errorf("%w: exact accesses would have more than 5 %% of them in all", ErrProtected)
				}
				s.scored, s.chance = a.scored, a.chance
			}
			k.by = now.by
			return now.write()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
