package runlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/frame"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
)

// A SumsHead says what a journal of sums belongs to.
type SumsHead struct {
	Run    string `json:"run"`
	Config string `json:"config"` // hash of the network and its roster, in hexadecimal
	Owner  int    `json:"owner"`  // number of the owner in the network
	Owners int    `json:"owners"` // how many the network has
}

// Sums is an owner's journal of the sums that the owners of a network made together (network.mode: sum), in their
// order: an append-only file of frames (package frame), each durable before anything follows from it. It has masked
// numbers and public ones only. The body of a frame is its kind, fields of eight bytes, hashes, and numbers as they
// travel. It is for one goroutine.
type Sums struct {
	Head     SumsHead
	Attempts []SumsAttempt
	Torn     bool // what a crash left unfinished at the end was left out: it was not durable, so nothing followed from it

	path       string
	f          vfs.File
	size       int64
	transcript [sha256.Size]byte
}

// A SumsAttempt is what the journal has of one attempt at a batch.
type SumsAttempt struct {
	Parts   []SumsPart
	Totals  []SumsTotal
	GivenUp bool
}

// A SumsPart is a part that the owner masked.
type SumsPart struct {
	Charged       int // attempts that the run had charged then, this one included
	N             int // numbers
	Asked, Digest [sha256.Size]byte
	at            int64 // of the record
}

// LastSum is what is asked in the sum that ends a run. It has no numbers, and no charge: owners compare all totals by
// it.
var LastSum = sha256.Sum256([]byte("sotto/sums/1 end"))

// Last reports whether the attempt is at the sum that ends a run.
func (a *SumsAttempt) Last() bool { return len(a.Parts) > 0 && a.Parts[0].Asked == LastSum }

// A SumsTotal is a sum that the owners made.
type SumsTotal struct {
	N          int               // numbers
	Transcript [sha256.Size]byte // hash of all sums up to this one
	at         int64
}

// MaxSum is the most numbers of a sum.
const MaxSum = 1 << 26

const (
	kindSums  = 'H'
	kindPart  = 'P'
	kindTotal = 'T'
	kindGiven = 'G'

	partHead  = 1 + 4*8 + 2*sha256.Size
	totalHead = 1 + 3*8
	mostBody  = partHead + 8*MaxSum
)

// OpenSums opens or makes the journal of that head, and locks it. It cuts a torn end off.
func (d Disk) OpenSums(path string, head SumsHead) (s *Sums, err error) {
	f, err := readfile.OpenFileOn(d.FS, path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	switch err := d.FS.Lock(f, false); {
	case errors.Is(err, vfs.ErrHeld):
		return nil, fmt.Errorf("%s: another process is at work on this journal", path)
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return nil, err
	}
	s = &Sums{path: path, f: f}
	if err := s.scan(); err != nil {
		return nil, err
	}
	if s.size > 0 && s.Head != head {
		return nil, fmt.Errorf("%s: found owner %d of run %s: %w", path, s.Head.Owner+1, s.Head.Run, ErrOtherJournal)
	}
	if err := f.Truncate(s.size); err != nil {
		return nil, err
	}
	if s.size == 0 {
		text, err := json.Marshal(head)
		if err != nil {
			return nil, err
		}
		if err := s.record(append([]byte{kindSums}, text...)); err != nil {
			return nil, err
		}
	} else if err := errors.Join(vfs.Rewrite(f), f.Sync()); err != nil { // what another process wrote may not be durable
		return nil, err
	}
	return s, d.FS.SyncDir(filepath.Dir(path))
}

// ReadSums opens a journal for reading.
func (d Disk) ReadSums(path string) (*Sums, error) {
	f, err := readfile.OpenFileOn(d.FS, path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	s := &Sums{path: path, f: f}
	if err := s.scan(); err != nil {
		f.Close()
		return nil, err
	}
	if s.size == 0 {
		f.Close()
		return nil, fmt.Errorf("%s: has no head", path)
	}
	return s, nil
}

// Close closes the file.
func (s *Sums) Close() error { return s.f.Close() }

// scan reads all whole records.
func (s *Sums) scan() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	for s.size < info.Size() {
		body, err := s.body(s.size, info.Size())
		if err == frame.ErrTorn {
			s.Torn = true
			return nil
		} else if err != nil {
			return err
		}
		if !s.take(body) {
			return s.damaged()
		}
		s.size += frame.Head + int64(len(body))
	}
	return nil
}

func (s *Sums) damaged() error {
	return fmt.Errorf("%s: the record at byte %d is damaged; restore the file as it was last written", s.path, s.size)
}

// body reads the record at a byte of a file of that size.
func (s *Sums) body(at, size int64) ([]byte, error) {
	body, err := frame.Read(s.f, at, size, mostBody)
	if err == frame.ErrDamaged || err == frame.ErrLong {
		err = s.damaged()
	}
	return body, err
}

// take adds a record at the journal's end to what is known. It reports false if the record can't follow the ones before
// it.
func (s *Sums) take(body []byte) bool {
	at := s.size
	if first := at == 0; first || body[0] == kindSums {
		ok := first && body[0] == kindSums && Strict(body[1:], &s.Head) == nil
		s.transcript = s.Start()
		return ok
	}
	if len(body) < 1+2*8 {
		return false
	}
	field := func(k int) int { return int(binary.LittleEndian.Uint64(body[1+8*k:])) }
	number, sum := field(0), field(1)
	if number == len(s.Attempts) {
		s.Attempts = append(s.Attempts, SumsAttempt{})
	}
	if number != len(s.Attempts)-1 {
		return false
	}
	a := &s.Attempts[number]
	switch {
	case a.GivenUp:
		return false
	case body[0] == kindPart && len(body) >= partHead && sum == len(a.Parts) && sum == len(a.Totals):
		p := SumsPart{Charged: field(2), N: field(3), at: at}
		copy(p.Asked[:], body[1+4*8:])
		copy(p.Digest[:], body[1+4*8+sha256.Size:])
		a.Parts = append(a.Parts, p)
		return holds(len(body)-partHead, p.N)
	case body[0] == kindTotal && len(body) >= totalHead && sum == len(a.Totals) && sum == len(a.Parts)-1:
		h := sha256.New()
		h.Write(s.transcript[:])
		h.Write(body)
		h.Sum(s.transcript[:0])
		a.Totals = append(a.Totals, SumsTotal{N: field(2), Transcript: s.transcript, at: at})
		return holds(len(body)-totalHead, field(2)) && field(2) == a.Parts[sum].N
	case body[0] == kindGiven && sum == len(a.Totals) && len(body) == 1+2*8:
		a.GivenUp = true
		return true
	}
	return false
}

// holds reports whether n numbers have that many bytes.
func holds(bytes, n int) bool { return bytes%8 == 0 && bytes/8 == n }

// record appends what take reads, and makes it durable.
func (s *Sums) record(body []byte) error {
	if !s.take(body) {
		return fmt.Errorf("%s: a record does not follow the ones before it", s.path)
	}
	b := frame.Seal(append(frame.Begin(make([]byte, 0, frame.Head+len(body))), body...))
	if _, err := s.f.WriteAt(b, s.size); err != nil {
		return err
	}
	s.size += int64(len(b))
	return s.f.Sync()
}

func beginSums(kind byte, fields ...int) []byte {
	b := []byte{kind}
	for _, v := range fields {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// Part makes a masked part of a sum durable; its numbers are about to be published.
func (s *Sums) Part(attempt, sum int, p SumsPart, numbers []byte) error {
	b := append(beginSums(kindPart, attempt, sum, p.Charged, p.N), p.Asked[:]...)
	return s.record(append(append(b, p.Digest[:]...), numbers...))
}

// Total makes a sum durable.
func (s *Sums) Total(attempt, sum int, numbers []byte) error {
	return s.record(append(beginSums(kindTotal, attempt, sum, len(numbers)/8), numbers...))
}

// GiveUp makes it durable that the owners gave an attempt up, at the sum of that number.
func (s *Sums) GiveUp(attempt, sum int) error { return s.record(beginSums(kindGiven, attempt, sum)) }

// Of returns what the journal has of an attempt.
func (s *Sums) Of(attempt int) SumsAttempt {
	if attempt < len(s.Attempts) {
		return s.Attempts[attempt]
	}
	return SumsAttempt{}
}

// Start is the transcript before the first sum, which all owners of the network share.
func (s *Sums) Start() [sha256.Size]byte {
	return sha256.Sum256([]byte("sotto/sums/1\n" + s.Head.Config))
}

func (s *Sums) numbers(at int64, head int) ([]byte, error) {
	b, err := s.body(at, s.size)
	if err == frame.ErrTorn {
		err = s.damaged()
	}
	if err != nil {
		return nil, err
	}
	return b[head:], nil
}

// PartNumbers reads the numbers of a part.
func (s *Sums) PartNumbers(p SumsPart) ([]byte, error) { return s.numbers(p.at, partHead) }

// TotalNumbers reads the numbers of a sum.
func (s *Sums) TotalNumbers(t SumsTotal) ([]byte, error) { return s.numbers(t.at, totalHead) }

// Numbers are those of a vector as it travels, the lowest byte first.
func Numbers(v []int64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

// AddNumbers adds a vector as it travels to v, modulo 2⁶⁴.
func AddNumbers(v []int64, b []byte) {
	for i := range v {
		v[i] += int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}
