package runlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/internal/readfile"
)

// A State is the state of a run after a step. It begins a new file of releases: a resume needs no earlier
// file.
type State struct {
	Step     int `json:"step"`     // steps done
	Batch    int `json:"batch"`    // the batch last released
	Released int `json:"released"` // batches released so far
	// SHA-256 of the file of releases before: each file's content fixes all that came before it
	Before  string          `json:"before"`
	Fold    json.RawMessage `json:"fold"` // of the run's output, its numbers
	Vectors [][]float64     `json:"-"`    // see Load

	part int
}

// The first line of a file of releases that begins with a state: this, the CRC-32C of the JSON in
// hex, a space, the State as JSON. Its vectors follow as the record of a release.
const stateMagic = "sotto releases 1 from "

// partFile returns the name of a file of releases: the first one, or the one that the n-th state begins.
func partFile(n int) string {
	if n == 0 {
		return ReleasesFile
	}
	return fmt.Sprintf("releases-%d.bin", n)
}

// partsIn lists the numbers of the files of releases in dir.
func (d Disk) partsIn(dir string) ([]int, error) {
	entries, err := d.FS.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var parts []int
	for _, e := range entries {
		n := 0
		if e.Name() != ReleasesFile {
			if _, err := fmt.Sscanf(e.Name(), "releases-%d.bin", &n); err != nil || n < 1 || partFile(n) != e.Name() {
				continue
			}
		}
		parts = append(parts, n)
	}
	slices.Sort(parts)
	return parts, nil
}

// withParts returns these names and those of the files of releases in dir.
func (d Disk) withParts(dir string, names ...string) ([]string, error) {
	parts, err := d.partsIn(dir)
	for _, n := range parts {
		names = append(names, partFile(n))
	}
	return names, err
}

func appendState(dst []byte, s *State) ([]byte, error) {
	head, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	dst = fmt.Appendf(dst, "%s%s%s\n", stateMagic, checksum(head), head)
	return appendRelease(dst, s.Batch, s.Vectors), nil
}

// checksum returns the checksum of a first line's JSON, which follows it.
func checksum(head []byte) string { return fmt.Sprintf("%08x ", crc32.Checksum(head, castagnoli)) }

// errTorn says that a file ends within a write.
var errTorn = errors.New("the end is torn")

// errDamaged marks content that differs from what was written. In the last group a crash may be the cause.
var errDamaged = errors.New("damaged")

func damaged(format string, args ...any) error {
	return damage{fmt.Errorf(format, args...)}
}

type damage struct{ error }

func (damage) Is(target error) bool { return target == errDamaged }

// maxRelease is the largest size of a record in bytes: the answers of one batch.
const maxRelease = 1 << 30

// part reads a file of releases, in memory for one of them.
type part struct {
	path  string
	file  *readfile.File
	in    *bufio.Reader
	state *State
	size  int64 // later bytes did not exist when the file was opened
	at    int64 // where the record last read begins
	taken int64 // all records up to here are whole
	buf   []byte
}

// openPart opens the n-th file of releases of a run. sum, if not nil, gets what is read of it.
func (d Disk) openPart(dir string, n int, sum hash.Hash) (*part, error) {
	p := &part{path: filepath.Join(dir, partFile(n))}
	var err error
	if p.file, err = readfile.OpenOn(d.FS, p.path); err != nil {
		return nil, err
	}
	p.size = p.file.Size()
	var in io.Reader = p.file
	if sum != nil {
		in = io.TeeReader(in, sum)
	}
	p.in = bufio.NewReaderSize(in, 1<<16)
	return p, nil
}

func (p *part) close() { p.file.Close() }

// begin reads the first line and, of a file other than the first, its state; with vectors also the
// state's vectors.
func (p *part) begin(n int, vectors bool) (*State, error) {
	first := magic
	if n > 0 {
		first = []byte(stateMagic)
	}
	start := make([]byte, min(p.size, int64(len(first))))
	if _, err := io.ReadFull(p.in, start); err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	if !bytes.HasPrefix(first, start) {
		return nil, damaged("%s: is not a file of releases", p.path)
	}
	switch torn := len(start) < len(first); {
	case torn && n > 0:
		return nil, errTorn
	case torn:
		return nil, nil // next says so
	case n == 0:
		p.taken = int64(len(first))
		return nil, nil
	}
	line, err := p.in.ReadBytes('\n')
	if err == io.EOF {
		return nil, errTorn
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	s := &State{part: n}
	head, written := bytes.TrimSuffix(line, []byte("\n")), ""
	if len(head) > 9 {
		head, written = head[9:], string(head[:9])
	}
	if written != checksum(head) {
		return nil, damaged("%s: its first line does not have its checksum", p.path)
	}
	if err := Strict(head, s); err != nil {
		return nil, fmt.Errorf("%s:1: %w", p.path, err)
	}
	p.taken = int64(len(start) + len(line))
	at := Release{}
	if err := p.next(&at, vectors); err != nil {
		p.taken = 0
		if err == io.EOF {
			err = errTorn
		}
		return nil, err
	}
	if s.Vectors = at.Answers; at.Batch != s.Batch || s.Step < 1 || s.Batch < 0 || s.Released < 1 ||
		s.Released > s.Batch+1 {
		return nil, fmt.Errorf("%s: its first line, after step %d, does not fit the state behind it", p.path, s.Step)
	}
	return s, nil
}

// next reads the next release: io.EOF at the end, errTorn if a write was cut there.
func (p *part) next(rel *Release, answers bool) error {
	left := p.size - p.taken
	if left == 0 {
		return io.EOF
	}
	if p.taken == 0 {
		return errTorn // within its first line
	}
	le := binary.LittleEndian
	claimed := left // without a whole length the record is torn
	if left >= 8 {
		w, err := p.in.Peek(4)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		claimed = int64(le.Uint32(w)) + 8
	}
	torn := left < 8 || claimed > left
	if torn {
		claimed = left
	}
	if claimed > maxRelease {
		return readfile.Refuse(p.path, fmt.Sprintf("a record of more than %d MiB at byte %d", maxRelease>>20, p.taken),
			"at most that")
	}
	if int64(cap(p.buf)) < claimed {
		p.buf = make([]byte, claimed)
	}
	b := p.buf[:claimed]
	if _, err := io.ReadFull(p.in, b); err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	if torn {
		if left >= 8 && wholeRelease(b) {
			return damaged("%s: the record at byte %d has another length than it says", p.path, p.taken)
		}
		return errTorn
	}
	body := b[:claimed-4]
	if crc32.Checksum(body, castagnoli) != le.Uint32(b[claimed-4:]) {
		if claimed == left {
			return errTorn // the last record: a write that was cut
		}
		return damaged("%s: the record at byte %d does not have its checksum", p.path, p.taken)
	}
	if err := rel.parse(body[4:], answers); err != nil {
		return fmt.Errorf("%s: the record at byte %d %w", p.path, p.taken, err)
	}
	p.at, p.taken = p.taken, p.taken+claimed
	return nil
}
