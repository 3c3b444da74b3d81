package data

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// pages are the memory of a mapped table. The system reads them from the file when they are first used, and may
// forget them again. All that a table asks of the system is advice: it changes no result.
type pages struct {
	mem    []byte
	mapped bool // or copied to memory, which is not to be given back
	read   reading

	// Rows in random order.
	warm   atomic.Bool  // those of the last list were in memory,
	faults atomic.Int64 // and the process had waited for so many pages by then

	// A pass over all rows.
	large   bool // the table does not fit the memory that is left to it, as far as the pass knows
	keep    int  // of so many windows that were not in memory, one stays
	mu      sync.Mutex
	reached int                   // window
	cached  [2 * windowsNear]bool // of the windows near it, by number: was in memory before the pass came
	missed  int                   // windows that were not
}

// reading is the order in which a table is read.
type reading uint8

const (
	readNormal     reading = iota
	readRandom             // reading ahead is wasted
	readSequential         // what was read is the first to go
)

const (
	window      = 16 << 20 // bytes of a table
	windowsNear = 8
	keepOne     = 8  // keep of a pass: there may be more memory again
	windowTests = 16 // pages that say whether a window is in memory
	tableTests  = 64 // likewise the table
	listTests   = 32 // likewise of the rows of a list
)

// tell advises the system about the order of reading.
func (p *pages) tell(how reading) {
	if p.mapped && how != p.read {
		p.read = how
		advise(p.mem, how)
	}
}

// offset is where x begins.
func offset[T any](p *pages, x *T) int {
	return int(uintptr(unsafe.Pointer(x)) - uintptr(unsafe.Pointer(&p.mem[0])))
}

// at is where b begins, if it is of the file.
func (p *pages) at(b []byte) (from int, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	from = offset(p, &b[0])
	return from, from >= 0 && from < len(p.mem)
}

// present says whether all of n pages, evenly spaced between two bytes, are in memory.
func (p *pages) present(from, to, n int) bool {
	for k := range n {
		if !resident(p.mem, from+k*((to-from)/n)) {
			return false
		}
	}
	return true
}

// A pass over a table that does not fit the memory left to it would fill that memory with pages that are gone before
// the next pass needs them. So pages behind the pass are given back: those that it found in memory stay in the system's
// cache for the next pass, the others leave it.

// begin begins a pass over all rows. Of so many windows that are not in memory, one stays there.
func (p *pages) begin(keep int) {
	n := len(p.mem)
	p.large = p.mapped && n >= 2*windowsNear*window && !p.present(0, n, tableTests)
	p.keep, p.reached = keep, 0
	if !p.large {
		p.tell(readNormal)
		return
	}
	p.tell(readSequential)
	for w := range windowsNear / 2 {
		p.look(w)
	}
}

// look notes whether a window is in memory.
func (p *pages) look(w int) {
	from, to := w*window, min(len(p.mem), (w+1)*window)
	if from < to {
		p.cached[w%len(p.cached)] = p.present(from, to, windowTests)
	}
}

// reach tells that the pass has reached a byte. Workers that share the pass call it in nearly the order of the bytes.
func (p *pages) reach(at int) {
	for p.large {
		p.mu.Lock()
		if at/window <= p.reached {
			p.mu.Unlock()
			return
		}
		p.look(p.reached + windowsNear/2)
		p.reached++
		behind := p.reached - windowsNear/2
		drop := behind >= 0 && !p.cached[behind%len(p.cached)]
		if drop {
			p.missed++
			drop = p.missed%p.keep != 0
		}
		p.mu.Unlock()
		if behind >= 0 {
			giveBack(p.mem[behind*window:(behind+1)*window], drop)
		}
	}
}

// Random says whether a few rows in random order are read next, or many of them in sequence. A packed table passes this
// on to the system. Repeated calls cost nothing.
func (t *Table) Random(random bool) {
	switch p := t.pages; {
	case p == nil:
	case random:
		p.tell(readRandom)
	case p.read == readRandom:
		p.tell(readNormal)
	}
}

// BeginPass says that all blocks are read next, in their order. A packed table that does not fit into memory then gives
// back what was read.
func (t *Table) BeginPass() {
	if t.pages != nil {
		t.pages.begin(keepOne)
	}
}

// Reach says that such a pass has reached a block. It may be called by several goroutines.
func (t *Table) Reach(b *Block) {
	if p := t.pages; p != nil && p.large {
		at, ok := p.at(asBytes(b.Norm))
		if !ok {
			at, _ = p.at(b.form().memory(0)[0])
		}
		p.reach(at)
	}
}

// Request asks the system for the pages of rows, in ascending order, that are read next in random order, all at
// once. Otherwise each one would be waited for in turn. It costs nearly nothing while they are in memory.
func (c *Copier) Request(rows []int32) {
	p := c.pages
	if p == nil || p.read != readRandom || len(rows) == 0 || !c.missing(rows) {
		return
	}
	var last *Block
	ask := func(m []byte) {
		if from, ok := p.at(m); ok {
			request(p.mem, from, from+len(m))
		}
	}
	for _, row := range rows {
		b, i := c.Locate(int(row))
		if b != last { // what follows the features of all rows of a chunk is a few pages
			last = b
			from, to := b.behind(p)
			request(p.mem, from, to)
		}
		if x := b.form().index(i); x != nil {
			ask(x)
			continue
		}
		for _, m := range b.form().memory(i) {
			ask(m)
		}
	}
	for _, row := range rows { // where the entries of a sparse row are is in those pages
		b, i := c.Locate(int(row))
		if b.form().index(i) == nil {
			continue
		}
		for _, m := range b.form().memory(i) {
			ask(m)
		}
	}
}

// behind are the pages of a block behind the features of its rows.
func (b *Block) behind(p *pages) (from, to int) {
	switch _, ok := p.at(asBytes(b.Norm)); {
	case ok: // norms are on the disk, too
		from, to = offset(p, &b.Norm[0]), offset(p, &b.Norm[b.N-1])+4
		if b.Y != nil {
			from = offset(p, &b.Y[0])
		}
	case b.Y != nil:
		from, to = offset(p, &b.Y[0]), offset(p, &b.Y[b.N-1])+4
	}
	if b.Drop != nil {
		if to = offset(p, &b.Drop[b.N-1]) + 1; from == 0 {
			from = offset(p, &b.Drop[0])
		}
	}
	return from, to
}

// missing says whether some of the rows are not in memory, by their features. While the process waits for no
// page, it does not look.
func (c *Copier) missing(rows []int32) bool {
	p, faults := c.pages, majorFaults()
	if p.warm.Load() && p.faults.Load() == faults {
		return false
	}
	p.faults.Store(faults)
	p.warm.Store(true)
	for k := 0; k < len(rows); k += max(1, len(rows)/listTests) {
		b, i := c.Locate(int(rows[k]))
		f := b.form()
		m := f.index(i)
		if at, ok := p.at(m); !ok || resident(p.mem, at) {
			if x := f.memory(i)[0]; len(x) > 0 {
				m = x
			}
		}
		if at, ok := p.at(m); ok && !resident(p.mem, at) {
			p.warm.Store(false)
			return true
		}
	}
	return false
}
