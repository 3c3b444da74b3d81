package runlog

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/internal/frame"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/privacy"
)

// Errors that a caller tells apart; each comes with the file's name.
var (
	errJournalDamaged = errors.New("the journal is damaged; without it nothing may be released")
	// ErrOtherJournal: the journal belongs to another run.
	ErrOtherJournal = errors.New("the journal is another run's")
)

// A JournalHead says what a journal belongs to.
type JournalHead struct {
	Run    string `json:"run"`
	Config string `json:"config"` // hash of all that the owners agreed on
	Owner  int    `json:"owner"`  // number of the owner in the network
	Dim    int    `json:"dim"`    // length of every vector that is sent
}

// A JournalBatch is what one batch was charged and what the oracle answered.
type JournalBatch struct {
	Event   privacy.Event
	Answers [][]float64
}

// An Activation is what the journal holds of one round in which the owner sends.
type Activation struct {
	Round     int
	Batches   []JournalBatch
	Sent      []float64 // what was published
	Done      bool      // the fields below are known
	Committed []bool    // of each peer, whether the exchange was committed
	State     []float64 // the owner's vector after the round
}

// A journal is a line of magic and then frames (package frame). A body is its kind, of one byte, and its fields.
//
// The first frame is the head. Opening a journal to continue it cuts off an end that a crash tore. Damage
// elsewhere is an error, since what was released must not be drawn again.
const journalMagic = "SOTTOJ1\n"

// Kinds of frames.
const (
	kindHead byte = iota + 1
	kindSent
	kindDone
)

const (
	maxDim   = 1 << 26
	maxFrame = 1 << 30 // bytes: far above an activation with vectors of maxDim numbers
)

// A Journal makes what an owner releases to others durable before it is published (R5): after a crash the
// owner sends the same bytes again; they are never drawn again and never refunded. Each activation is one
// record, synced before Send returns: its charges, the oracle's answers and the vector to publish. The
// next record holds its end, which a crash may lose: the hub's append-only store has it too.
//
// Journal implements oracle.Journal. It is for one goroutine.
type Journal struct {
	// Crash, if set, is called between the halves of a record's writing, in tests.
	Crash func(point string)

	f       vfs.File
	head    JournalHead
	charged int // batches of the activations that were sent
	pending []JournalBatch
	done    []byte // of the activation before, not written yet
	frame   []byte
	err     error // the first one stays
}

// CreateJournal starts the journal of a new run, as a whole or not at all. The file must not exist.
func (d Disk) CreateJournal(path string, head JournalHead) (*Journal, error) {
	if head.Dim < 1 || head.Dim > maxDim {
		return nil, fmt.Errorf("journal: found vectors of %d numbers; expected 1 to %d", head.Dim, maxDim)
	}
	if _, err := d.FS.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}))
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	j := &Journal{head: head}
	first := append([]byte(journalMagic), j.seal(append(j.begin(kindHead), text...))...)
	if err := newfile.ReplaceOn(d.FS, path, 0o600, first); err != nil {
		return nil, err
	}
	if j.f, err = readfile.OpenFileOn(d.FS, path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, err
	}
	return j, nil
}

// OpenJournal opens the journal of an interrupted run and cuts off a torn end. past yields its
// activations in order; the journal continues after them.
func (d Disk) OpenJournal(path string, head JournalHead) (j *Journal, past *JournalReader, err error) {
	f, err := readfile.OpenFileOn(d.FS, path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	j = &Journal{f: f, head: head}
	r, err := d.ReadJournal(path)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	if r.Head != head {
		return nil, nil, fmt.Errorf("%s: found owner %d of run %s with %d numbers: %w", path, r.Head.Owner, r.Head.Run,
			r.Head.Dim, ErrOtherJournal)
	}
	if err = r.each(func(a *Activation) { j.charged += len(a.Batches) }); err != nil {
		return nil, nil, err
	}
	if err = errors.Join(f.Truncate(r.offset), vfs.Rewrite(f), f.Sync()); err != nil {
		return nil, nil, err
	}
	if _, err = f.Seek(r.offset, io.SeekStart); err != nil {
		return nil, nil, err
	}
	past, err = d.ReadJournal(path)
	return j, past, err
}

// Charged counts the batches of the durable activations.
func (j *Journal) Charged() int { return j.charged }

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }

// Charge notes the cost of the next batch. It is written with the activation: nothing has left the
// process before.
func (j *Journal) Charge(e privacy.Event) error {
	if j.err == nil {
		j.pending = append(j.pending, JournalBatch{Event: e})
	}
	return j.err
}

// Release notes the answers of the batch last charged.
func (j *Journal) Release(answers [][]float64) error {
	if j.err != nil {
		return j.err
	}
	if len(j.pending) == 0 || j.pending[len(j.pending)-1].Answers != nil {
		return j.fail(errors.New("journal: answers to a batch that was not charged"))
	}
	b := &j.pending[len(j.pending)-1]
	b.Answers = make([][]float64, len(answers))
	for i, a := range answers {
		b.Answers[i] = slices.Clone(a)
	}
	return nil
}

func (j *Journal) fail(err error) error {
	j.err = err
	return err
}

// Send makes the activation durable; m is about to be published. After an error, do not publish it.
func (j *Journal) Send(round int, m []float64) error {
	if j.err != nil {
		return j.err
	}
	if len(m) != j.head.Dim {
		return j.fail(fmt.Errorf("journal: found %d numbers to send; expected %d", len(m), j.head.Dim))
	}
	b := append(j.begin(kindSent), flag(len(j.done) > 0))
	b = binary.LittleEndian.AppendUint64(append(b, j.done...), uint64(round))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(j.pending)))
	for _, p := range j.pending {
		text, err := privacy.MarshalEvent(p.Event)
		if err != nil {
			return j.fail(err)
		}
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Answers)))
		for _, a := range p.Answers {
			b = appendVector(b, a)
		}
	}
	if err := j.write(appendVector(b, m)); err != nil {
		return err
	}
	j.charged += len(j.pending)
	j.pending = j.pending[:0]
	return nil
}

// Done notes the end of the activation last sent. It is written with the next one, or by Flush.
func (j *Journal) Done(round int, committed []bool, state []float64) {
	b := binary.LittleEndian.AppendUint64(j.done[:0], uint64(round))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(committed)))
	for _, c := range committed {
		b = append(b, flag(c))
	}
	j.done = appendVector(b, state)
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Flush makes the end of the last activation durable.
func (j *Journal) Flush() error {
	if j.err != nil || len(j.done) == 0 {
		return j.err
	}
	return j.write(append(j.begin(kindDone), j.done...))
}

// begin starts a frame.
func (j *Journal) begin(kind byte) []byte {
	return append(frame.Begin(j.frame[:0]), kind)
}

// seal fills a frame's head.
func (j *Journal) seal(b []byte) []byte {
	j.frame = b
	return frame.Seal(b)
}

func (j *Journal) write(b []byte) error {
	b = j.seal(b)
	j.done = j.done[:0]
	if j.Crash != nil {
		half := len(b) / 2
		if _, err := j.f.Write(b[:half]); err != nil {
			return j.fail(err)
		}
		j.Crash("torn")
		b = b[half:]
	}
	_, err := j.f.Write(b)
	if err == nil {
		err = j.f.Sync()
	}
	return j.fail(err)
}

// A JournalReader yields the activations of a journal. It is for one goroutine.
type JournalReader struct {
	Head JournalHead

	f      *readfile.File
	path   string
	size   int64
	offset int64       // of the frame after the last whole one
	ahead  *Activation // read, and not yet known whether it is done
}

// ReadJournal opens a journal for reading; what is torn at its end is left out.
func (d Disk) ReadJournal(path string) (*JournalReader, error) {
	f, err := readfile.OpenOn(d.FS, path)
	if err != nil {
		return nil, err
	}
	r := &JournalReader{f: f, path: path, size: f.Size()}
	word := make([]byte, len(journalMagic))
	if _, err := io.ReadFull(f, word); err == nil && string(word) == journalMagic {
		r.offset = int64(len(word))
		body, err := r.next()
		if err == nil && body[0] == kindHead && Strict(body[1:], &r.Head) == nil && r.Head.Dim >= 1 && r.Head.Dim <= maxDim {
			return r, nil
		}
	}
	f.Close()
	return nil, r.damaged(r.offset)
}

// Close closes the file.
func (r *JournalReader) Close() error { return r.f.Close() }

func (r *JournalReader) damaged(at int64) error {
	return fmt.Errorf("%s: at byte %d: %w", r.path, at, errJournalDamaged)
}

// next returns the body of the next frame; io.EOF at the end, also if the end is torn.
func (r *JournalReader) next() ([]byte, error) {
	body, err := frame.Read(r.f, r.offset, r.size, maxFrame)
	switch {
	case err == frame.ErrTorn:
		return nil, io.EOF
	case err == frame.ErrDamaged:
		return nil, r.damaged(r.offset)
	case err == frame.ErrLong:
		return nil, readfile.Refuse(r.path, fmt.Sprintf("a longer frame at byte %d", r.offset),
			fmt.Sprintf("at most %d MiB", maxFrame>>20))
	case err != nil:
		return nil, err
	}
	r.offset += frame.Head + int64(len(body))
	return body, nil
}

// Next returns the next activation; io.EOF after the last.
func (r *JournalReader) Next() (*Activation, error) {
	for {
		at := r.offset
		body, err := r.next()
		if err == io.EOF && r.ahead != nil {
			t := r.ahead
			r.ahead = nil
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		f := fields{body[1:], false}
		before := r.ahead
		r.ahead = nil
		kind := body[0]
		ended := kind == kindDone || kind == kindSent && f.byte() == 1
		if ended {
			f.done(before, r.Head.Dim)
		}
		if kind == kindSent {
			r.ahead = f.sent(r.Head.Dim)
		}
		if f.bad || len(f.rest) != 0 || kind != kindSent && kind != kindDone ||
			kind == kindSent && before != nil && r.ahead.Round <= before.Round {
			return nil, r.damaged(at)
		}
		if before != nil {
			return before, nil
		}
	}
}

// each gives all activations to do.
func (r *JournalReader) each(do func(*Activation)) error {
	for {
		a, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		do(a)
	}
}

// done completes the activation t.
func (f *fields) done(t *Activation, dim int) {
	if t == nil || t.Done || f.number64() != t.Round {
		f.bad = true
		return
	}
	t.Done, t.Committed = true, make([]bool, f.count(1))
	for i := range t.Committed {
		t.Committed[i] = f.byte() == 1
	}
	if t.State = f.vector(nil); len(t.State) != dim {
		f.bad = true
	}
}

func (f *fields) sent(dim int) *Activation {
	t := &Activation{Round: f.number64(), Batches: make([]JournalBatch, f.count(8))}
	for i := range t.Batches {
		b := &t.Batches[i]
		var err error
		if b.Event, err = privacy.UnmarshalEvent(f.take(f.count(1))); err != nil {
			f.bad = true
			return t
		}
		b.Answers = make([][]float64, f.count(4))
		for k := range b.Answers {
			b.Answers[k] = f.vector(nil)
		}
	}
	if t.Sent = f.vector(nil); len(t.Sent) != dim {
		f.bad = true
	}
	return t
}

// Record returns what a run charged and released. An owner's run in a network keeps a journal.
func (d Disk) Record(i *Info, dir string) (*Record, error) {
	if i.Network != "" {
		return d.JournalRecord(filepath.Join(dir, JournalFile))
	}
	return d.Read(dir)
}

// JournalRecord returns the charges and releases of a journal as the record of a run.
func (d Disk) JournalRecord(path string) (*Record, error) {
	r, err := d.ReadJournal(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rec := &Record{}
	err = r.each(func(a *Activation) {
		for _, b := range a.Batches {
			rec.Released++
			rec.Events = extend(rec.Events, b.Event)
		}
	})
	if err != nil {
		return nil, err
	}
	rec.Torn = r.offset < r.size
	return rec, nil
}
