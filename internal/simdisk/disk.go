// Package simdisk is a disk in memory for tests. It can fail any call, lose power at any call, and lie about a sync.
// What it does follows from a seed, so that a failure can be repeated.
//
// Processes see the cache: every write at once. The platter holds what was synced. When power is lost, of each file
// any of its unsynced writes may have reached the platter, in sectors of 512 bytes; the size of a file may be that
// after any of them, whatever became of the data, and sectors in between may hold zeros or what stood there
// before. Of each directory any of its unsynced changes may have reached the platter, each as a whole: a rename
// does both or nothing. A sync of a file says nothing about its name.
package simdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sottodp/sotto/internal/vfs"
)

// A Fault is what happens at a call.
type Fault int

const (
	None Fault = iota
	// the call fails. After a failed sync of a file the cache counts as clean, though the platter has only a part
	EIO
	ENOSPC  // the call fails
	EINTR   // the call fails
	Short   // of a write, half is done before ENOSPC; other calls fail with EIO
	Kill    // the process dies before the call; the cache stays
	Drop    // power is lost at the call, and with it all that was not synced
	Torn    // power is lost at the call, and some of what was not synced reaches the platter
	Lie     // a sync does nothing and says that it did; other calls are as they should be
	Corrupt // a read returns a damaged sector, once; other calls are as they should be
	faults
)

var names = [...]string{"none", "EIO", "ENOSPC", "EINTR", "short write", "kill", "power cut", "torn power cut",
	"lying sync", "corrupt read"}

func (f Fault) String() string { return names[f] }

// All lists the faults.
func All() []Fault {
	var all []Fault
	for f := None + 1; f < faults; f++ {
		all = append(all, f)
	}
	return all
}

// Kind says what a call does.
type Kind int

const (
	Other Kind = iota
	Reads
	Writes
	Syncs
)

// A Call is a call of the last process.
type Call struct {
	Kind Kind
	Name string // what it does, and the file's base name
}

// Errors of a process that the disk has ended.
var (
	ErrKilled = errors.New("simulated disk: the process was killed")
	ErrPower  = errors.New("simulated disk: power is off")
)

const sector = 512

// A Disk is a disk of one machine, on which one process at a time runs. The zero value is not usable.
type Disk struct {
	// Plan says what happens at each call of the process that Start began.
	Plan map[int]Fault
	// Ignore, if set, says of a sync of a file, or of a directory, that it does nothing: a planted bug.
	Ignore func(path string) bool
	// Told, if set, is called before each call.
	Told func(n int, c Call)
	// Synced, if set, is called after each sync: tests let time pass.
	Synced func()

	mu      sync.Mutex
	rng     *rand.Rand
	now     int // a clock for modification times
	process int
	calls   int
	dead    error // how the process ended
	lies    int   // syncs that lied so far
	temps   int
	root    *node
	locks   map[*node]*file
}

// node is a file or a directory.
type node struct {
	id   int
	dir  bool
	mode fs.FileMode
	at   int // when it was last modified

	// Of a file.
	cache, platter []byte
	unsynced       []write

	// Of a directory.
	entries, durable map[string]*node
	changes          []change

	level map[*handle]int // SQLite's locks
}

// write is an unsynced write, or a new size.
type write struct {
	off  int64
	b    []byte
	size int64 // of the file after it
	cut  bool
}

// change is a change of a directory: names and what they mean after it.
type change []entry

type entry struct {
	name string
	node *node // nil: removed
}

// New makes an empty disk. All of its choices follow from the seed.
func New(seed uint64) *Disk {
	d := &Disk{rng: rand.New(rand.NewPCG(seed, 0x5077)), locks: map[*node]*file{}}
	d.root = d.makeDir(0o755)
	d.process = 1
	return d
}

func (d *Disk) makeDir(mode fs.FileMode) *node {
	d.temps++
	return &node{id: d.temps, dir: true, mode: fs.ModeDir | mode, entries: map[string]*node{}, durable: map[string]*node{}}
}

// Rand is the disk's source of random numbers.
func (d *Disk) Rand() *rand.Rand { return d.rng }

// Start ends the process, if it still runs, and begins another one with this plan, from call 0 on.
func (d *Disk) Start(plan map[int]Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.process++
	d.calls, d.Plan, d.dead = 0, plan, nil
	clear(d.locks)
}

// Kill ends the process: its next calls fail. The cache stays.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = ErrKilled
}

// Calls counts the calls of the process.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Dead is how the disk ended the process; nil if it did not.
func (d *Disk) Dead() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// Lies counts the syncs that lied.
func (d *Disk) Lies() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lies
}

// Cut switches the power off and on. Of what was not synced, torn keeps a part, otherwise nothing is left.
func (d *Disk) Cut(torn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut(torn)
}

// Durable says whether a power cut now would leave every directory and file as it is.
func (d *Disk) Durable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var durable func(n *node) bool
	durable = func(n *node) bool {
		if !n.dir {
			return bytes.Equal(n.cache, n.platter)
		}
		if !maps.Equal(n.entries, n.durable) {
			return false
		}
		for _, e := range n.entries {
			if !durable(e) {
				return false
			}
		}
		return true
	}
	return durable(d.root)
}

func (d *Disk) cut(torn bool) {
	keep := 0.0
	if torn {
		keep = []float64{0.2, 0.5, 0.8, 1}[d.rng.IntN(4)]
	}
	d.cutDir(d.root, keep, map[*node]bool{})
	clear(d.locks)
	d.process++ // whatever runs is gone
}

// cutDir walks in a fixed order, so that the choices follow from the seed.
func (d *Disk) cutDir(dir *node, keep float64, seen map[*node]bool) {
	if seen[dir] {
		return
	}
	seen[dir] = true
	dir.level = nil
	for _, c := range dir.changes {
		if d.rng.Float64() < keep {
			dir.take(c)
		}
	}
	dir.changes = nil
	dir.entries = make(map[string]*node, len(dir.durable))
	for _, name := range sortedNames(dir.durable) {
		n := dir.durable[name]
		dir.entries[name] = n
		if n.dir {
			d.cutDir(n, keep, seen)
		} else if !seen[n] {
			seen[n] = true
			d.cutFile(n, keep)
		}
	}
}

func (n *node) take(c change) {
	for _, e := range c {
		if e.node == nil {
			delete(n.durable, e.name)
		} else {
			n.durable[e.name] = e.node
		}
	}
}

func (d *Disk) cutFile(n *node, keep float64) {
	n.level = nil
	if len(n.unsynced) > 0 {
		n.platter = d.some(n, keep)
	}
	n.unsynced = nil
	n.cache = bytes.Clone(n.platter)
}

// some is the content of a file of whose unsynced writes some reached the platter.
func (d *Disk) some(n *node, keep float64) []byte {
	at := bytes.Clone(n.platter)
	sizes := []int64{int64(len(at))}
	stale := d.rng.IntN(4) == 0 // sectors that were not written hold garbage, otherwise zeros
	grow := func(size int64) {
		for int64(len(at)) < size {
			b := byte(0)
			if stale {
				b = byte(d.rng.Uint32())
			}
			at = append(at, b)
		}
	}
	for _, w := range n.unsynced {
		sizes = append(sizes, w.size)
		if w.cut {
			if d.rng.Float64() < keep {
				at = at[:min(int64(len(at)), w.size)]
				grow(w.size)
			}
			continue
		}
		for from := int64(0); from < int64(len(w.b)); {
			to := min(int64(len(w.b)), (w.off+from)/sector*sector+sector-w.off)
			if d.rng.Float64() < keep {
				grow(w.off + to)
				copy(at[w.off+from:], w.b[from:to])
			}
			from = to
		}
	}
	if keep > 0 && d.rng.IntN(2) == 0 { // the size apart from the data
		size := sizes[d.rng.IntN(len(sizes))]
		at = at[:min(int64(len(at)), size)]
		grow(size)
	}
	return at
}

// Clone copies a disk on which no process runs.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[*node]*node{}
	var clone func(n *node) *node
	clone = func(n *node) *node {
		if c := known[n]; n == nil || c != nil {
			return c
		}
		c := *n
		known[n] = &c
		c.level, c.cache, c.platter = nil, bytes.Clone(n.cache), bytes.Clone(n.platter)
		c.unsynced = slices.Clone(n.unsynced)
		each := func(m map[string]*node) map[string]*node {
			if m == nil {
				return nil
			}
			all := make(map[string]*node, len(m))
			for name, n := range m {
				all[name] = clone(n)
			}
			return all
		}
		c.entries, c.durable, c.changes = each(n.entries), each(n.durable), nil
		for _, old := range n.changes {
			var now change
			for _, e := range old {
				now = append(now, entry{e.name, clone(e.node)})
			}
			c.changes = append(c.changes, now)
		}
		return &c
	}
	return &Disk{rng: rand.New(rand.NewPCG(0, 0)), locks: map[*node]*file{}, process: 1, temps: d.temps, Synced: d.Synced,
		root: clone(d.root)}
}

// Peek is what processes see of a file; nil without one. It is no call.
func (d *Disk) Peek(path string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, _, n, err := d.find("peek", path); err == nil && n != nil {
		return bytes.Clone(n.cache)
	}
	return nil
}

// Names lists the names in a directory. It is no call.
func (d *Disk) Names(path string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, _, n, err := d.find("peek", path); err == nil && n != nil {
		return sortedNames(n.entries)
	}
	return nil
}

func sortedNames(m map[string]*node) []string {
	all := make([]string, 0, len(m))
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// call begins a call of a process. After an error the call has no effect. Otherwise f is the fault that the call itself
// has to bring about.
func (d *Disk) call(process int, kind Kind, what, path string) (f Fault, err error) {
	n := d.calls
	d.calls++
	if d.Told != nil {
		d.Told(n, Call{kind, what + " " + filepath.Base(path)})
	}
	if process != 0 && process != d.process && d.dead == nil {
		return None, ErrKilled // of an earlier process
	}
	if d.dead != nil {
		return None, d.dead
	}
	f = d.Plan[n]
	fail := func(e error) (Fault, error) { return f, &fs.PathError{Op: what, Path: path, Err: e} }
	switch f {
	case EIO:
		if kind == Syncs {
			return f, nil // sync does it
		}
		return fail(syscall.EIO)
	case ENOSPC:
		return fail(syscall.ENOSPC)
	case EINTR:
		return fail(syscall.EINTR)
	case Short:
		if kind != Writes {
			return fail(syscall.EIO)
		}
	case Kill:
		d.dead = ErrKilled
		return f, d.dead
	case Lie:
		if kind != Syncs {
			return None, nil
		}
		d.lies++
	case Corrupt:
		if kind != Reads {
			return None, nil
		}
	}
	return f, nil
}

// end ends a call: power may be lost while what it did is on its way.
func (d *Disk) end(f Fault) error {
	if f != Drop && f != Torn {
		return nil
	}
	d.dead = ErrPower
	d.cut(f == Torn)
	return d.dead
}

// find returns the node of a path, and its directory and base name; node is nil if it is missing.
func (d *Disk) find(op, path string) (dir *node, base string, n *node, err error) {
	path = filepath.ToSlash(filepath.Clean(path))
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if path == "/" {
		return nil, "", d.root, nil
	}
	dir = d.root
	for i, part := range parts {
		n = dir.entries[part]
		if i == len(parts)-1 {
			return dir, part, n, nil
		}
		if n == nil || !n.dir {
			return nil, "", nil, &fs.PathError{Op: op, Path: path, Err: syscall.ENOENT}
		}
		dir = n
	}
	return dir, "", n, nil
}

func missing(op, path string) error { return &fs.PathError{Op: op, Path: path, Err: syscall.ENOENT} }

func (d *Disk) change(dir *node, c change) {
	for _, e := range c {
		if e.node == nil {
			delete(dir.entries, e.name)
		} else {
			dir.entries[e.name] = e.node
		}
	}
	dir.changes = append(dir.changes, c)
}

// do makes a call: it runs it unless a fault comes before, and loses power after it if that is the fault.
func (d *Disk) do(process int, kind Kind, what, path string, run func(f Fault) error) error {
	if kind == Syncs && d.Synced != nil {
		defer d.Synced()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.call(process, kind, what, path)
	if err != nil {
		return err
	}
	err = run(f)
	if died := d.end(f); died != nil {
		return died
	}
	return err
}

// OpenFile opens a file.
func (d *Disk) OpenFile(name string, flag int, mode fs.FileMode) (vfs.File, error) {
	var out *file
	err := d.do(0, Other, "open", name, func(Fault) error {
		dir, base, n, err := d.find("open", name)
		switch {
		case err != nil:
			return err
		case n == nil && flag&os.O_CREATE == 0:
			return missing("open", name)
		case n != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
			return &fs.PathError{Op: "open", Path: name, Err: syscall.EEXIST}
		case n == nil:
			d.temps++
			n = &node{id: d.temps, mode: mode.Perm()}
			d.change(dir, change{{base, n}})
		}
		out = &file{d: d, process: d.process, n: n, name: name, appends: flag&os.O_APPEND != 0}
		if flag&os.O_TRUNC != 0 {
			n.truncate(0)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// CreateTemp is os.CreateTemp, with names that follow from those before.
func (d *Disk) CreateTemp(dir, pattern string) (vfs.File, error) {
	d.mu.Lock()
	d.temps++
	before, after, _ := strings.Cut(pattern, "*")
	name := filepath.Join(dir, fmt.Sprintf("%s%d%s", before, 1000+d.temps, after))
	d.mu.Unlock()
	return d.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// ReadDir lists a directory.
func (d *Disk) ReadDir(name string) (all []fs.DirEntry, err error) {
	err = d.do(0, Other, "readdir", name, func(Fault) error {
		_, _, n, err := d.find("open", name)
		if err != nil || n == nil {
			return missing("open", name)
		}
		for _, base := range sortedNames(n.entries) {
			all = append(all, fs.FileInfoToDirEntry(info{base, n.entries[base], int64(len(n.entries[base].cache))}))
		}
		return nil
	})
	return all, err
}

// Stat describes a file.
func (d *Disk) Stat(name string) (out fs.FileInfo, err error) {
	err = d.do(0, Other, "stat", name, func(Fault) error {
		_, base, n, err := d.find("stat", name)
		if err != nil || n == nil {
			return missing("stat", name)
		}
		out = info{base, n, int64(len(n.cache))}
		return nil
	})
	return out, err
}

// Lstat is Stat: there are no links.
func (d *Disk) Lstat(name string) (fs.FileInfo, error) { return d.Stat(name) }

// SameFile compares two files.
func (d *Disk) SameFile(a, b fs.FileInfo) bool {
	x, one := a.(info)
	y, two := b.(info)
	return one && two && x.n == y.n
}

// MkdirAll makes directories.
func (d *Disk) MkdirAll(path string, mode fs.FileMode) error {
	return d.do(0, Other, "mkdir", path, func(Fault) error {
		dir := d.root
		for _, part := range strings.Split(strings.Trim(filepath.ToSlash(filepath.Clean(path)), "/"), "/") {
			n := dir.entries[part]
			if n == nil {
				n = d.makeDir(mode)
				d.change(dir, change{{part, n}})
			}
			dir = n
		}
		return nil
	})
}

// Rename renames a file within its directory.
func (d *Disk) Rename(from, to string) error {
	return d.do(0, Other, "rename", to, func(Fault) error {
		dir, base, n, err := d.find("rename", from)
		if err != nil || n == nil {
			return missing("rename", from)
		}
		other, name, _, err := d.find("rename", to)
		if err != nil {
			return err
		}
		if other != dir {
			return &fs.PathError{Op: "rename", Path: to, Err: syscall.EXDEV}
		}
		d.change(dir, change{{base, nil}, {name, n}})
		return nil
	})
}

// Link gives a file a second name.
func (d *Disk) Link(from, to string) error {
	return d.do(0, Other, "link", to, func(Fault) error {
		_, _, n, err := d.find("link", from)
		if err != nil || n == nil {
			return missing("link", from)
		}
		dir, name, there, err := d.find("link", to)
		if err != nil {
			return err
		}
		if there != nil {
			return &fs.PathError{Op: "link", Path: to, Err: syscall.EEXIST}
		}
		d.change(dir, change{{name, n}})
		return nil
	})
}

// Remove removes a name.
func (d *Disk) Remove(name string) error {
	return d.do(0, Other, "remove", name, func(Fault) error {
		dir, base, n, err := d.find("remove", name)
		switch {
		case err != nil || n == nil:
			return missing("remove", name)
		case n.dir && len(n.entries) > 0:
			return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
		}
		d.change(dir, change{{base, nil}})
		return nil
	})
}

// SyncDir makes the names in a directory durable.
func (d *Disk) SyncDir(name string) error {
	return d.do(0, Syncs, "syncdir", name, func(f Fault) error {
		_, _, n, err := d.find("open", name)
		switch {
		case err != nil || n == nil:
			return missing("open", name)
		case f == Drop || f == Torn:
			return nil
		case f == Lie || d.Ignore != nil && d.Ignore(name):
			return nil
		case f == EIO:
			return &fs.PathError{Op: "sync", Path: name, Err: syscall.EIO}
		}
		for _, c := range n.changes {
			n.take(c)
		}
		n.changes = nil
		return nil
	})
}

// Lock locks an open file.
func (d *Disk) Lock(open vfs.File, wait bool) error {
	f := open.(*file)
	return d.do(f.process, Other, "lock", f.name, func(Fault) error {
		switch held := d.locks[f.n]; {
		case held == nil:
			d.locks[f.n] = f
		case wait:
			panic("simdisk: a process waits for its own lock on " + f.name)
		default:
			return vfs.ErrHeld
		}
		return nil
	})
}

// file is an open file.
type file struct {
	d       *Disk
	process int
	n       *node
	name    string
	at      int64
	appends bool
}

func (f *file) do(kind Kind, what string, run func(Fault) error) error {
	return f.d.do(f.process, kind, what, f.name, run)
}

func (f *file) Name() string { return f.name }

func (f *file) Read(b []byte) (n int, err error) {
	n, err = f.ReadAt(b, f.at)
	f.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.do(Reads, "read", func(fault Fault) error {
		if off < int64(len(f.n.cache)) {
			n = copy(b, f.n.cache[off:])
		}
		if fault == Corrupt && n > 0 {
			f.d.damage(b[:n])
		}
		if n < len(b) {
			return io.EOF
		}
		return nil
	})
	if err != nil && err != io.EOF {
		n = 0
	}
	return n, err
}

// damage flips a bit, or makes a sector zero.
func (d *Disk) damage(b []byte) {
	at := d.rng.IntN(len(b))
	if d.rng.IntN(2) == 0 {
		b[at] ^= 1 << d.rng.IntN(8)
		return
	}
	at = at / sector * sector
	clear(b[at:min(len(b), at+sector)])
}

func (f *file) Write(b []byte) (n int, err error) {
	if f.appends {
		f.at = f.n.size(f.d)
	}
	n, err = f.WriteAt(b, f.at)
	f.at += int64(n)
	return n, err
}

func (n *node) size(d *Disk) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(n.cache))
}

func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.do(Writes, "write", func(fault Fault) error {
		n = len(b)
		if fault == Short {
			n /= 2
		}
		f.n.write(b[:n], off)
		f.d.now++
		f.n.at = f.d.now
		if fault == Short {
			return &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
		}
		return nil
	})
	if err != nil && f.d.Dead() != nil {
		n = 0
	}
	return n, err
}

func (n *node) write(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	if end := off + int64(len(b)); end > int64(len(n.cache)) {
		n.cache = append(n.cache, make([]byte, end-int64(len(n.cache)))...)
	}
	copy(n.cache[off:], b)
	n.unsynced = append(n.unsynced, write{off: off, b: bytes.Clone(b), size: int64(len(n.cache))})
}

func (n *node) truncate(size int64) {
	n.cache = slices.Clone(n.cache[:min(size, int64(len(n.cache)))])
	n.cache = append(n.cache, make([]byte, size-int64(len(n.cache)))...)
	n.unsynced = append(n.unsynced, write{size: size, cut: true})
}

func (f *file) Truncate(size int64) error {
	return f.do(Writes, "truncate", func(fault Fault) error {
		if fault == Short {
			return &fs.PathError{Op: "truncate", Path: f.name, Err: syscall.EIO}
		}
		f.n.truncate(size)
		return nil
	})
}

func (f *file) Sync() error {
	return f.do(Syncs, "sync", func(fault Fault) error {
		switch {
		case fault == Drop || fault == Torn:
			return nil // power is lost before it ends
		case fault == Lie || f.d.Ignore != nil && f.d.Ignore(f.name):
			return nil
		case fault == EIO:
			f.n.platter = f.d.some(f.n, 0.5)
			f.n.unsynced = nil
			return &fs.PathError{Op: "sync", Path: f.name, Err: syscall.EIO}
		}
		f.n.synced()
		return nil
	})
}

// page is what a sync writes at least of a file.
const page = 4096

// synced writes the pages that were written to since the last sync, also if that failed: of other pages the platter may
// have only a part.
func (n *node) synced() {
	at := n.platter[:min(len(n.platter), len(n.cache))]
	at = append(at, make([]byte, len(n.cache)-len(at))...)
	for _, w := range n.unsynced {
		if w.cut {
			clear(at[min(w.size, int64(len(at))):])
			continue
		}
		from, to := w.off/page*page, (w.off+int64(len(w.b))+page-1)/page*page
		from, to = min(from, int64(len(at))), min(to, int64(len(at)))
		copy(at[from:to], n.cache[from:to])
	}
	n.platter, n.unsynced = at, nil
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		f.at = offset
	case io.SeekCurrent:
		f.at += offset
	default:
		f.at = f.n.size(f.d) + offset
	}
	return f.at, nil
}

func (f *file) Chmod(mode fs.FileMode) error {
	return f.do(Other, "chmod", func(Fault) error {
		f.n.mode = mode.Perm()
		return nil
	})
}

func (f *file) Stat() (out fs.FileInfo, err error) {
	err = f.do(Other, "fstat", func(Fault) error {
		out = info{filepath.Base(f.name), f.n, int64(len(f.n.cache))}
		return nil
	})
	return out, err
}

// Close closes the file, also where it fails.
func (f *file) Close() error {
	f.d.mu.Lock()
	if f.d.locks[f.n] == f {
		delete(f.d.locks, f.n)
	}
	f.d.mu.Unlock()
	return f.do(Other, "close", func(Fault) error { return nil })
}

type info struct {
	name string
	n    *node
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.n.mode }
func (i info) ModTime() time.Time { return time.Unix(int64(i.n.at), 0) }
func (i info) IsDir() bool        { return i.n.dir }
func (i info) Sys() any           { return nil }
