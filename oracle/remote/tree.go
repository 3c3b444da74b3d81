package remote

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/privacy/noise"
)

// Many workers add up their sums among themselves: each sends what it and those below it in a tree have to the one
// above it, and those at the top to the coordinator. Each first adds a mask to its sum whose key only it and the
// coordinator have: see ADR 68.

// Tree says whether the workers of so many shards add up their sums among themselves, if they can connect to each
// other.
func Tree(shards int) bool { return shards >= 16 }

// A Gatherer is a Carrier whose workers can form a tree.
type Gatherer interface {
	Carrier
	// Plantable says whether Plant is worth another try: a worker has come or gone since the last one.
	Plantable() bool
	// Plant connects the workers whose answers Ask took last to each other. It returns false if it cannot.
	Plant(ctx context.Context) bool
	// Gather delivers a question to all workers of the tree, through each other, and hands the answers of those at the top
	// to take, one at a time. It returns nil when no more will come, also if some are missing. The question is the
	// caller's again when it returns, an answer when take does.
	Gather(ctx context.Context, question []byte, take func(answer []byte)) error
	// Felled is told, once and in public words, why there is no tree for the rest of the run.
	Felled(why string)
}

// everyShard is the shard in the head of a question to the tree.
const everyShard = math.MaxUint32

// checks are the numbers that each shard adds to its sums: they are 0 before the mask. So they are 0 in the end if each
// mask was added exactly as often as it is subtracted, and otherwise with a probability of 2⁻¹²⁸.
const checks = 2

// A mask makes the masks of a shard, which it shares with the coordinator alone.
type mask struct {
	stream cipher.Block
	starts []byte // key of the places at which streams begin
	buf    [4096]byte
}

// newMaskKey draws one side's part of a mask's key.
func newMaskKey() (*ecdh.PrivateKey, error) {
	var key noise.Key
	if err := noise.SecureStreams().Key(&key, "mask", 0); err != nil {
		return nil, err
	}
	return ecdh.X25519().NewPrivateKey(key[:])
}

// newMask agrees on the masks of a shard in a session. Mine is the coordinator's key or the shard's, theirs the
// other's.
func newMask(h head, mine *ecdh.PrivateKey, theirs []byte, atShard bool) (*mask, error) {
	public, err := ecdh.X25519().NewPublicKey(theirs)
	if err != nil {
		return nil, errSealed
	}
	shared, err := mine.ECDH(public)
	if err != nil { // a point of low order
		return nil, errSealed
	}
	coordinator, shard := mine.PublicKey().Bytes(), theirs
	if atShard {
		coordinator, shard = shard, coordinator
	}
	info := fmt.Sprintf("sotto/shards/2 masks %s%s%s", h.append(nil), coordinator, shard)
	keys, err := hkdf.Key(sha256.New, shared, h.salt[:], info, 64)
	if err != nil {
		return nil, err
	}
	m := &mask{starts: keys[32:]}
	m.stream, err = aes.NewCipher(keys[:32])
	return m, err
}

var zeros [len(mask{}.buf)]byte

// add adds the mask of a sealed question, of which that is the SHA-256, modulo 2⁶⁴. Its counter begins at a
// pseudorandom place that depends on all of the question, its number and nonce included: who has the secret can seal
// another question with this one's number and nonce, and the sum that answers it must not fit this one's mask.
func (m *mask) add(sums []int64, question [sha256.Size]byte) {
	mac := hmac.New(sha256.New, m.starts)
	mac.Write(question[:])
	at := mac.Sum(nil)[:aes.BlockSize]
	stream := cipher.NewCTR(m.stream, at)
	for len(sums) > 0 {
		n := min(len(sums), len(m.buf)/8)
		stream.XORKeyStream(m.buf[:8*n], zeros[:8*n])
		for i := range sums[:n] {
			sums[i] += int64(binary.LittleEndian.Uint64(m.buf[8*i:]))
		}
		sums = sums[n:]
	}
}

// A Part is the sum of a part of the tree, in which each shard's own is masked.
type Part struct {
	head     head // of the question
	question []byte
	session  *session
	shard    uint32
	covers   []byte  // a bit for each shard whose sum is in it
	sums     []int64 // and checks
	text     []byte
	answer   []byte
}

// begin makes an empty part.
func (p *Part) begin(h head, question []byte, session *session, numbers int) {
	p.head, p.question, p.session = h, question, session
	p.covers = slices.Grow(p.covers[:0], int(h.of+7)/8)[:(h.of+7)/8]
	p.sums = slices.Grow(p.sums[:0], numbers+checks)[:numbers+checks]
	clear(p.covers)
	clear(p.sums)
}

// Add adds the sealed part of a worker below this one, if it answers the same question and no shard is in both.
// Otherwise the part stays as it is, and the coordinator will ask the shards that are missing.
func (p *Part) Add(answer []byte) error {
	h, err := readHead(answer)
	if err != nil || h.shard >= h.of {
		return errSealed
	}
	h.shard = everyShard
	if h != p.head {
		return errSealed
	}
	text, err := unseal(p.session.answers, p.text[:0], answer, p.question)
	if err != nil {
		return err
	}
	p.text = text
	n := len(p.covers)
	if len(text) != n+8*len(p.sums) {
		return errSealed
	}
	for i, b := range p.covers {
		if b&text[i] != 0 {
			return errSealed
		}
	}
	for i := range p.covers {
		p.covers[i] |= text[i]
	}
	return decodeCounts(p.sums, text[n:])
}

func (p *Part) covered(shard int) bool { return p.covers[shard/8]>>(shard%8)&1 != 0 }

// Seal returns the answer to the one above. It is valid until the next question.
func (p *Part) Seal() []byte {
	p.text = encodeCounts(append(p.text[:0], p.covers...), p.sums)
	h := p.head
	h.shard = p.shard
	p.answer = seal(p.session.answers, p.answer[:0], h, p.text, p.question)
	return p.answer
}

// A seat is a shard's place in the tree: the coordinator has checked that it has the rows that the run began with.
type seat struct {
	number uint64 // of the question that gave it
	last   uint64 // question to the tree: no mask is used twice
	from   int64
	mask   *mask
}

// take takes a seat, and writes the shard's part of the mask's key.
func (s *Shard) take(h head, q *question, dst []byte) ([]byte, error) {
	mine, err := newMaskKey()
	if err != nil {
		return nil, err
	}
	m, err := newMask(h, mine, q.more, true)
	if err != nil {
		return nil, err
	}
	s.seat = &seat{number: h.asked, last: h.asked, from: q.From, mask: m}
	return append(append(dst, answerGood), mine.PublicKey().Bytes()...), nil
}

// Begin begins the shard's part of a sum that the shards add up among themselves: its own sum under its mask. A shard
// that has no seat, or cannot sum, leaves its own out; the coordinator asks it then. The question must not change until
// the part is sealed, and the part is valid until the next question.
func (s *Shard) Begin(question []byte) (*Part, error) {
	h, err := readHead(question)
	if err != nil {
		return nil, err
	}
	if h.shard != everyShard || h.of != uint32(s.cfg.Count) || s.session == nil || s.session.salt != h.salt {
		return nil, errSealed
	}
	q, err := s.read(question)
	if err != nil {
		return nil, err
	}
	sum, err := q.sum(&s.cfg.Facts)
	if err != nil {
		return nil, err
	}
	if len(q.more) != 8 {
		return nil, errQuestion
	}
	p := &s.part
	p.shard = uint32(s.cfg.Index)
	p.begin(h, question, s.session, q.Count)
	if s.seat == nil || s.seat.number != binary.LittleEndian.Uint64(q.more) || h.asked <= s.seat.last {
		return p, nil
	}
	s.seat.last, q.From = h.asked, s.seat.from
	if s.sum(h, q, sum) != nil {
		return p, nil
	}
	copy(p.sums, s.counts)
	s.seat.mask.add(p.sums, sha256.Sum256(question))
	p.covers[s.cfg.Index/8] |= 1 << (s.cfg.Index % 8)
	return p, nil
}

// seat gives all shards seats: they agree with the coordinator on masks.
func (s *Shards) seat(ctx context.Context) error {
	mine, err := newMaskKey()
	if err != nil {
		return err
	}
	s.seats, s.masks = s.asked, make([]*mask, len(s.questions))
	return s.ask(ctx, question{form: form{Ask: askSeat}, more: mine.PublicKey().Bytes()},
		func(i int, answer []byte) (err error) {
			h := s.head(i)
			s.masks[i], err = newMask(h, mine, answer, false)
			return err
		})
}

// gather asks the tree, if there is one or it can be planted, and says in counted whose sums it has added to counts. It
// is not an error that some are missing.
func (s *Shards) gather(ctx context.Context, q question) error {
	if s.tree == nil {
		return nil
	}
	if !s.seated {
		if s.tried && !s.tree.Plantable() {
			return nil
		}
		s.tried = true
		// as of a worker of an earlier version; if it cannot answer at all, the next question says so
		if err := s.seat(ctx); err != nil {
			if ctx.Err() == nil {
				s.fell("a worker does not agree on its masks")
			}
			return ctx.Err()
		}
		if s.seated = s.tree.Plant(ctx); !s.seated {
			return ctx.Err()
		}
	}
	q.more = binary.LittleEndian.AppendUint64(nil, s.seats)
	form, err := s.forms.encode(q.form)
	if err != nil {
		return err
	}
	s.text = q.append(s.text[:0], form)
	h := s.head(0)
	h.shard = everyShard
	s.asked++
	s.message = seal(s.session.asks, s.message[:0], h, s.text, nil)
	s.part.begin(h, s.message, s.session, q.Count)

	// The sum of all masks, while the workers add up theirs.
	s.masked = slices.Grow(s.masked[:0], len(s.part.sums))[:len(s.part.sums)]
	all := make(chan struct{})
	go func() {
		defer close(all)
		s.addMasks(func(int) bool { return true })
	}()
	err = s.tree.Gather(ctx, s.message, func(answer []byte) { s.part.Add(answer) })
	<-all
	if err != nil {
		return err
	}
	for i := range s.counted {
		s.counted[i] = s.part.covered(i)
	}
	if slices.Contains(s.counted, false) {
		s.seated = false
		s.addMasks(s.part.covered)
	}
	for i, m := range s.masked {
		s.part.sums[i] -= m
	}
	for i, check := range s.part.sums[q.Count:] {
		if check != 0 { // some worker has another mask, or was added twice
			s.fell(fmt.Sprintf("number %d of the %d that check masks is not 0, so a mask was not added once", i+1, checks))
			clear(s.counted)
			return nil
		}
	}
	copy(s.counts, s.part.sums)
	return nil
}

// fell ends the tree for the rest of the run.
func (s *Shards) fell(why string) {
	s.tree.Felled(why)
	s.tree = nil
}

// addMasks sets masked to the sum of the masks of these shards.
func (s *Shards) addMasks(of func(shard int) bool) {
	clear(s.masked)
	question := sha256.Sum256(s.message)
	for i, m := range s.masks {
		if of(i) {
			m.add(s.masked, question)
		}
	}
}

// made is what a shard's last sum was of. Asked for it again, as after a tree that broke, it does not compute it again.
type made struct {
	ok      bool
	by      draw
	form    form
	vectors []byte
}

// is says whether the sum of a question is this one.
func (m *made) is(by draw, q *question, vectors []byte) bool {
	return m.ok && m.by == by && m.form == q.form && string(m.vectors) == string(vectors)
}

func (m *made) set(by draw, q *question, vectors []byte) {
	*m = made{true, by, q.form, append(m.vectors[:0], vectors...)}
}
