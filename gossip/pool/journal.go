package pool

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/frame"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
)

// A journal is an owner's record of its sums, in the order in which they were made: an append-only file of records, each durable before
// anything follows from it. It has masked numbers and public ones only. A record is a frame (package frame), and its body the record's
// kind, fields of eight bytes, hashes and numbers.
type journal struct {
	disk     vfs.FS
	path     string
	f        vfs.File
	size     int64
	attempts []attempt
}

// An attempt is what the journal has of one.
type attempt struct {
	parts   []partRecord
	totals  []totalRecord
	givenUp bool
}

// A partRecord is a part that this owner masked.
type partRecord struct {
	charged       int // attempts that the run had charged then, this one included
	n             int
	asked, digest [sha256.Size]byte
	at            int64 // of the record
}

// A totalRecord is a sum that the owners made.
type totalRecord struct {
	transcript [sha256.Size]byte // of all sums up to this one
	n          int
	at         int64
}

const (
	kindHead  = 'H'
	kindPart  = 'P'
	kindTotal = 'T'
	kindGiven = 'G'

	partHead  = 1 + 4*8 + 2*sha256.Size
	totalHead = 1 + 3*8 + sha256.Size
	mostBody  = partHead + 8*transport.MaxSum
)

// openJournal opens or makes the journal of that head, and locks it. What a crash left unfinished at its end is cut off: it was not
// durable, so nothing followed from it.
func openJournal(disk vfs.FS, path string, head [sha256.Size]byte) (j *journal, err error) {
	f, err := readfile.OpenFileOn(disk, path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	switch err := disk.Lock(f, false); {
	case errors.Is(err, vfs.ErrHeld):
		return nil, fmt.Errorf("%s: another process is at work on this journal", path)
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return nil, err
	}
	j = &journal{disk: disk, path: path, f: f}
	if err := j.scan(head); err != nil {
		return nil, err
	}
	if err := f.Truncate(j.size); err != nil {
		return nil, err
	}
	if j.size == 0 {
		if err := j.add(append([]byte{kindHead}, head[:]...)); err != nil {
			return nil, err
		}
	} else if err := errors.Join(vfs.Rewrite(f), f.Sync()); err != nil { // what another process wrote may not be durable
		return nil, err
	}
	return j, disk.SyncDir(filepath.Dir(path))
}

// scan reads all whole records.
func (j *journal) scan(head [sha256.Size]byte) error {
	info, err := j.f.Stat()
	if err != nil {
		return err
	}
	for j.size < info.Size() {
		body, err := j.body(j.size, info.Size())
		if err == frame.ErrTorn {
			return nil
		} else if err != nil {
			return err
		}
		if first := j.size == 0; first != (body[0] == kindHead) {
			return j.damaged()
		} else if first && [sha256.Size]byte(body[1:]) != head {
			return fmt.Errorf("%s: is the journal of another run, network or owner", j.path)
		} else if !first && !j.take(body) {
			return j.damaged()
		}
		j.size += frame.Head + int64(len(body))
	}
	return nil
}

func (j *journal) damaged() error {
	return fmt.Errorf("%s: the record at byte %d is damaged; restore the file as it was last written", j.path, j.size)
}

// body reads the record at a byte of a file of that size.
func (j *journal) body(at, size int64) ([]byte, error) {
	body, err := frame.Read(j.f, at, size, mostBody)
	if err == frame.ErrDamaged || err == frame.ErrLong || err == nil && body[0] == kindHead && len(body) != 1+sha256.Size {
		return nil, j.damaged()
	}
	return body, err
}

// take adds a record at the journal's end to attempts. It reports false if the record cannot follow the ones before it.
func (j *journal) take(body []byte) bool {
	at := j.size
	field := func(k int) int { return int(binary.LittleEndian.Uint64(body[1+8*k:])) }
	if len(body) < 1+2*8 {
		return false
	}
	number, sum := field(0), field(1)
	if number == len(j.attempts) {
		j.attempts = append(j.attempts, attempt{})
	}
	if number != len(j.attempts)-1 {
		return false
	}
	a := &j.attempts[number]
	switch {
	case a.givenUp:
		return false
	case body[0] == kindPart && len(body) >= partHead && sum == len(a.parts) && sum == len(a.totals):
		r := partRecord{charged: field(2), n: field(3), at: at}
		copy(r.asked[:], body[1+4*8:])
		copy(r.digest[:], body[1+4*8+sha256.Size:])
		a.parts = append(a.parts, r)
		return holds(len(body)-partHead, r.n)
	case body[0] == kindTotal && len(body) >= totalHead && sum == len(a.totals) && sum == len(a.parts)-1:
		r := totalRecord{n: field(2), at: at}
		copy(r.transcript[:], body[1+3*8:])
		a.totals = append(a.totals, r)
		return holds(len(body)-totalHead, r.n)
	case body[0] == kindGiven && sum == len(a.totals) && len(body) == 1+2*8:
		a.givenUp = true
		return true
	}
	return false
}

// holds reports whether n numbers have that many bytes.
func holds(bytes, n int) bool { return bytes%8 == 0 && bytes/8 == n }

// add appends a record and makes it durable.
func (j *journal) add(body []byte) error {
	b := frame.Seal(append(frame.Begin(make([]byte, 0, frame.Head+len(body))), body...))
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		return err
	}
	j.size += int64(len(b))
	return j.f.Sync()
}

// record appends what take reads.
func (j *journal) record(body []byte) error {
	if !j.take(body) {
		return fmt.Errorf("%s: a record does not follow the ones before it", j.path)
	}
	return j.add(body)
}

func begin(kind byte, fields ...int) []byte {
	b := []byte{kind}
	for _, v := range fields {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func (j *journal) part(attempt, sum int, r partRecord, numbers []byte) error {
	b := append(begin(kindPart, attempt, sum, r.charged, r.n), r.asked[:]...)
	return j.record(append(append(b, r.digest[:]...), numbers...))
}

func (j *journal) total(attempt, sum int, transcript [sha256.Size]byte, numbers []byte) error {
	b := append(begin(kindTotal, attempt, sum, len(numbers)/8), transcript[:]...)
	return j.record(append(b, numbers...))
}

func (j *journal) giveUp(attempt, sum int) error { return j.record(begin(kindGiven, attempt, sum)) }

// numbers reads those of a record, after a head of so many bytes.
func (j *journal) numbers(at int64, head int) ([]byte, error) {
	b, err := j.body(at, j.size)
	if err == frame.ErrTorn {
		err = j.damaged()
	}
	if err != nil {
		return nil, err
	}
	return b[head:], nil
}

// of returns what the journal has of an attempt.
func (j *journal) of(number int) attempt {
	if number < len(j.attempts) {
		return j.attempts[number]
	}
	return attempt{}
}
