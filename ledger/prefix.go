package ledger

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A prefix is what a Ledger remembers of the chain, so that a transaction reads only newer entries:
// 32,000 reservations of a dataset would otherwise read half a billion. It is valid while its last
// entry is in the chain, which each transaction checks first.
type prefix struct {
	mu       sync.Mutex
	last     headSeen
	datasets map[string]remembered
}

type remembered struct {
	dataset dataset
	after   int64 // the last entry of the chain when it was read
}

// head is the last entry that was read or written; the zero value if none.
func (p *prefix) head() headSeen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// reach notes a committed entry.
func (p *prefix) reach(h Head, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Seq > p.last.Head.Seq {
		p.last = headSeen{Head: h, Time: at}
	}
}

// dataset is a copy of what is remembered, which reaches up to entry after.
func (p *prefix) dataset(name string) (d dataset, after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.datasets[name]
	return r.dataset.clone(), r.after
}

// remember keeps a copy of a dataset that holds its committed entries up to h.
func (p *prefix) remember(d dataset, h Head, at time.Time) {
	p.reach(h, at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.name == "" || p.datasets[d.name].after > h.Seq {
		return
	}
	if p.datasets == nil {
		p.datasets = map[string]remembered{}
	}
	p.datasets[d.name] = remembered{d.clone(), h.Seq}
}

// clone is a copy that shares nothing that apply and take change.
func (d dataset) clone() dataset {
	c := d
	c.spent, c.sharing = d.spent.clone(), d.sharing.clone()
	if d.tally != nil {
		c.tally = d.tally.Clone()
	}
	c.marks, c.owned, c.restored = slices.Clip(d.marks), slices.Clip(d.owned), slices.Clip(d.restored)
	c.resumed = maps.Clone(d.resumed)
	return c
}
