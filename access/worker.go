package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/schema"
)

// A coordinator's gate decides about the rows of all its workers as one table. It gives them the key of its row hashes,
// and they return sketches of their rows under it: neither marks, sketches nor names of datasets leave the coordinator.
// A worker's gate asks its own machine's ledger too.

// A Request is what a coordinator asks of its workers. It may travel only sealed.
type Request struct {
	nonce [32]byte
	proof [sha256.Size]byte // that the run reserves in the ledger whose key made it
	key   *data.RowKey      // nil: the comparison is over
}

// keyForms are how a request says the form of rows of its key; 0 says that it has none.
var keyForms = []byte{data.RowMeaning: 3, data.RowWords: 1, data.RowText: 2}

// RequestSize is the length of a request's text.
const RequestSize = 1 + 32 + sha256.Size + sha256.Size

// Text is the form in which a request travels.
func (r *Request) Text() []byte {
	text := append(append([]byte{0}, r.nonce[:]...), r.proof[:]...)
	if r.key == nil {
		return append(text, make([]byte, sha256.Size)...)
	}
	text[0] = keyForms[r.key.Form]
	return append(text, r.key.Secret...)
}

// ReadRequest reads a text.
func ReadRequest(text []byte) (*Request, error) {
	if len(text) != RequestSize || int(text[0]) > len(keyForms) {
		return nil, errors.New("access: the coordinator's request is malformed; use the same version of Sotto on both machines")
	}
	r := &Request{nonce: [32]byte(text[1:]), proof: [sha256.Size]byte(text[33:])}
	if text[0] > 0 {
		r.key = &data.RowKey{Secret: bytes.Clone(text[65:]), Form: data.RowForm(bytes.IndexByte(keyForms, text[0]))}
	}
	return r, nil
}

// Over is the request to a worker that comes after the verdict: one that takes another's place, whose rows must be the
// same.
func (r *Request) Over() *Request { return &Request{nonce: r.nonce, proof: r.proof} }

// Asks says whether there is something to compare.
func (r *Request) Asks() bool { return r.key != nil }

// ID identifies what a worker answers: requests with one key have one answer.
func (r *Request) ID() [sha256.Size]byte {
	if r.key == nil {
		return [sha256.Size]byte{}
	}
	mac := hmac.New(sha256.New, r.key.Secret)
	fmt.Fprintf(mac, "sotto: a request with this key, %d", r.key.Form)
	return [sha256.Size]byte(mac.Sum(nil))
}

// Erase forgets the key.
func (r *Request) Erase() {
	if r.key != nil {
		clear(r.key.Secret)
	}
}

// proofOf proves knowledge of a ledger's key, to those who have it.
func (g *Gate) proofOf(nonce [32]byte) (proof [sha256.Size]byte) {
	h := g.Ledger.NewMark()
	h.Write([]byte("sotto: a run reserves in this ledger"))
	h.Write(nonce[:])
	return [sha256.Size]byte(h.Sum(nil))
}

// Request makes the request of a run. Its key of row hashes is durable from now on.
func (g *Gate) Request(ctx context.Context) (*Request, error) {
	if err := g.ask(ctx, Worker); err != nil {
		return nil, err
	}
	if err := g.saveKey(); err != nil && !errors.Is(err, errOtherKey) { // nothing is hashed yet
		return nil, err
	}
	r := &Request{key: g.tables.key}
	rand.Read(r.nonce[:])
	if rand.Read(r.proof[:]); g.Ledger != nil {
		r.proof = g.proofOf(r.nonce)
	}
	return r, nil
}

// Fits checks that a worker's table is there and has the columns of the schema, before a coordinator asks for its rows.
func Fits(ctx context.Context, schema *schema.Schema, path, labels string) error {
	return data.Fits(ctx, schema, path, data.Options{Labels: labels, Formats: source.Formats()})
}

// OpenShard reads a worker's rows and asks this machine's ledger about them, unless the run reserves in it. If this
// machine remembers tables, under a key of its own, it reads the rows twice.
func (g *Gate) OpenShard(ctx context.Context, r *Request, schema *schema.Schema, path string,
	opt data.Options) (o *Opened, err error) {
	if err := g.ask(ctx, Worker); err != nil {
		return nil, err
	}
	if g.Ledger != nil && g.proofOf(r.nonce) == r.proof {
		g.known = nil // the coordinator compares with them
	}
	open := func(key *data.RowKey) (*Opened, error) {
		in := admission{gate: g, o: &Opened{purpose: Worker, dataset: schema.Dataset, gate: g}, path: data.Public(path),
			key: key}
		return in.o, in.read(ctx, schema, path, opt)
	}
	defer func() {
		if err != nil {
			o = nil
		}
	}()
	opt.Dropped = g.Dropped
	if mine := g.tables.key; len(g.known) > 0 && len(g.tables.all) > 0 &&
		(r.key == nil || r.key.Form != mine.Form || !bytes.Equal(r.key.Secret, mine.Secret)) {
		opened, err := open(mine)
		if err != nil {
			return nil, err
		}
		if err := opened.Close(); err != nil {
			return nil, err
		}
		opt.Dropped = nil // it was told
	}
	return open(r.key)
}

// SentSize is the length of what each worker sends for the comparison.
const SentSize = rowSumSize + len(Opened{}.by)*sentSize

const rowSumSize = 5 * 8

// Sent is what a worker sends for the comparison: the sum of its rows' hashes, and sketches of them.
func (o *Opened) Sent() []byte {
	sent := make([]byte, 0, SentSize)
	var sum data.RowSum
	if o.by[byName] != nil {
		sum = data.SumRows(o.by[byName].rows)
	}
	for _, v := range sum {
		sent = binary.LittleEndian.AppendUint64(sent, v)
	}
	for _, h := range o.by {
		sent = h.appendTo(sent)
	}
	return sent
}

// Remote decides about the rows of workers as one table. Of each worker the digest of its content is known and what it
// sent; of all the digest, and of units of several rows the ids, as data.Table.UnitIDs gives them.
func (g *Gate) Remote(ctx context.Context, purpose Purpose, schema *schema.Schema, digest [sha256.Size]byte,
	parts [][sha256.Size]byte, sent [][]byte, units [][16]byte) (*Opened, error) {
	if err := g.ask(ctx, purpose); err != nil {
		return nil, err
	}
	o := &Opened{purpose: purpose, dataset: schema.Dataset, table: data.Away(schema, units), parts: parts, away: true,
		gate: g}
	var by [len(o.by)][]*hashes
	var sum data.RowSum
	for _, text := range sent {
		if len(text) != SentSize {
			return nil, errors.New("access: a worker sent something else than its rows' hashes; all machines need the same version of Sotto")
		}
		var one data.RowSum
		binary.Decode(text, binary.LittleEndian, &one)
		sum.Add(one)
		for i := range by {
			by[i] = append(by[i], sentHashes(text[rowSumSize+i*sentSize:]))
		}
	}
	for i := range by {
		o.by[i] = union(by[i]...)
	}
	c := &data.Content{Digest: digest}
	if o.by[byName] != nil && o.by[byName].n > 0 { // otherwise all empty tables would be one
		c.Also = [][sha256.Size]byte{sum.Digest()}
	}
	in := admission{gate: g, o: o, path: "the workers' rows"}
	if err := in.Admit(ctx, c); err != nil {
		return nil, err
	}
	return o, nil
}
