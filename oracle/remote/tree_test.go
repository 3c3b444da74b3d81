package remote

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// grove is a farm whose workers form a tree: shard i is below shard i/2 − 1, shards 0 and 1 below the coordinator.
type grove struct {
	*farm
	stuck   bool                                             // no tree can be planted
	pass    func(shard int, q, part []byte) (parts [][]byte) // what the one above gets; nil: the part
	before  func(shard int, q []byte)                        // the shard gets the question
	planted int
	felled  []string
	parts   [][]byte // the last ones of all shards
	last    []byte   // question
}

func (g *grove) Plantable() bool { return !g.stuck }

func (g *grove) Plant(context.Context) bool {
	if !g.stuck {
		g.planted++
	}
	return !g.stuck
}

func (g *grove) Felled(why string) { g.felled = append(g.felled, why) }

func (g *grove) Gather(_ context.Context, question []byte, take func([]byte)) error {
	g.parts, g.last = make([][]byte, len(g.tables)), bytes.Clone(question)
	for _, i := range []int{0, 1} {
		for _, part := range g.part(i, question) {
			take(part)
		}
	}
	return nil
}

func (g *grove) part(i int, q []byte) [][]byte {
	if g.before != nil {
		g.before(i, q)
	}
	p, err := g.shard(i).Begin(q)
	if err != nil {
		return nil
	}
	for c := 2 * (i + 1); c < min(2*(i+2), len(g.tables)); c++ {
		for _, part := range g.part(c, q) {
			p.Add(part)
		}
	}
	g.parts[i] = bytes.Clone(p.Seal())
	if g.pass != nil {
		return g.pass(i, q, g.parts[i])
	}
	return [][]byte{g.parts[i]}
}

// newGrove is a tree of 17 shards of random rows, with the sum of all gradients of one sample as a star adds it up.
func newGrove(t *testing.T) (g *grove, sum func() []int64, want []int64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(70, 1))
	m, err := model.New("logistic", model.Options{Dim: 4, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := private.Config{Table: part(rnd, 0), Model: m,
		Facts: oracle.Public{Dim: 4, Rows: 300, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25, Curved: true}}
	var tables []*data.Table
	for range 17 {
		tables = append(tables, part(rnd, 10+rnd.IntN(20)))
	}
	g = &grove{farm: newFarm(t, cfg, tables), stuck: true}
	g.rows, err = Open(t.Context(), secretOf(t, "farm"), g, cfg.Facts, g.terms, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := private.Draw{Sampler: sample.Poisson{Rate: 0.5}, Total: g.rows.Rows()}
	if err := noise.SecureStreams().Key(&d.Key, "sample", 0); err != nil {
		t.Fatal(err)
	}
	if err := g.rows.Draw(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	of := &private.Sum{Of: private.Gradients, Clip: shardGrad.Clip, W: make([]float64, 4), Unit: 0x1p-38}
	sum = func() []int64 {
		if err := g.rows.Sum(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		counts := make([]int64, 4)
		g.rows.Take(counts, 0)
		return counts
	}
	want = sum()
	if g.planted > 0 || slices.Equal(want, make([]int64, 4)) {
		t.Fatalf("%d trees were planted; the sum is %d", g.planted, want)
	}
	g.stuck = false
	return g, sum, want
}

// The tree's sum is the star's, by fewer messages, and so it is when workers are replaced, parts are lost, altered, repeated, swapped or made
// by one who has the secret: what the tree does not bring, the coordinator asks for, and a part that is there twice or falsified in what it
// covers is found by its masks.
func TestForgedParts(t *testing.T) {
	old := map[int][]byte{}
	for name, c := range map[string]struct {
		pass  func(g *grove, i int, q, part []byte) [][]byte
		asked int // directly
		ends  bool
	}{
		"nothing": {pass: func(_ *grove, _ int, _, part []byte) [][]byte { return [][]byte{part} }},
		"a lost part": {asked: 1, pass: func(_ *grove, i int, _, part []byte) [][]byte {
			if i == 16 {
				return nil
			}
			return [][]byte{part}
		}},
		"a lost branch": {asked: 6, pass: func(_ *grove, i int, _, part []byte) [][]byte { // shards 2, 6, 7, 14, 15 and 16, from 0
			if i == 2 {
				return nil
			}
			return [][]byte{part}
		}},
		"a bit": {asked: 1, pass: func(_ *grove, i int, _, part []byte) [][]byte {
			if i == 16 {
				part = bytes.Clone(part)
				part[len(part)-3] ^= 1
			}
			return [][]byte{part}
		}},
		"each part twice": {pass: func(_ *grove, _ int, _, part []byte) [][]byte { return [][]byte{part, part} }},
		"an earlier part": {asked: 1, pass: func(_ *grove, i int, _, part []byte) [][]byte {
			if i != 16 {
				return [][]byte{part}
			}
			if old[i] == nil {
				old[i] = part
			}
			return [][]byte{old[i], {}, []byte("x")}
		}},
		"the part of another in its place": {asked: 2, pass: func(g *grove, i int, _, part []byte) [][]byte {
			if i == 16 {
				part = g.parts[15]
			}
			return [][]byte{part}
		}},
		"a part that covers another shard": {ends: true, asked: 17, pass: func(g *grove, i int, q, part []byte) [][]byte {
			return [][]byte{g.forge(i, q, part, func(p *Part) { p.covers[1] |= 1 })}
		}},
		"a sum added twice": {ends: true, asked: 17, pass: func(g *grove, i int, q, part []byte) [][]byte {
			return [][]byte{g.forge(i, q, part, func(p *Part) {
				for j := range p.sums {
					p.sums[j] *= 2
				}
			})}
		}},
	} {
		g, sum, want := newGrove(t)
		sum() // the first question to the tree
		if g.planted != 1 {
			t.Fatalf("%s: %d trees", name, g.planted)
		}
		if name == "an earlier part" {
			old[16] = g.parts[16]
		}
		before := len(g.asked)
		g.pass = func(i int, q, part []byte) [][]byte { return c.pass(g, i, q, part) }
		if got := sum(); !slices.Equal(got, want) {
			t.Errorf("%s: found the sum %d, want %d", name, got, want)
		}
		if asked := len(g.asked) - before; asked != c.asked || (g.rows.tree == nil) != c.ends {
			t.Errorf("%s: %d shards are asked directly, want %d; there is no tree any more: %v", name, asked, c.asked, g.rows.tree == nil)
		}
		if c.ends != (len(g.felled) == 1 && strings.HasPrefix(g.felled[0], "number ")) || !c.ends && len(g.felled) > 0 {
			t.Errorf("%s: the carrier is told %q", name, g.felled)
		}
		g.pass = nil
		if got := sum(); !slices.Equal(got, want) {
			t.Errorf("after %s: found the sum %d, want %d", name, got, want)
		}
		if again := g.planted == 2; again != (c.asked > 0 && !c.ends) {
			t.Errorf("after %s: %d trees", name, g.planted)
		}
	}
}

// forge is a part that somebody with the secret has changed, of shard 16.
func (g *grove) forge(i int, q, part []byte, change func(*Part)) []byte {
	if i != 16 {
		return part
	}
	h, _ := readHead(q)
	var p Part
	p.begin(h, q, g.rows.session, 4)
	p.shard = 16
	if err := p.Add(part); err != nil {
		g.t.Fatal(err)
	}
	change(&p)
	return p.Seal()
}

// A worker that comes in another's place has no mask and no seat: it leaves its sum out, and the coordinator asks it. Then it gets a seat.
func TestReplacedWorker(t *testing.T) {
	g, sum, want := newGrove(t)
	sum()
	for _, i := range []int{0, 5, 16} {
		g.shards[i] = nil
		before := len(g.asked)
		if got := sum(); !slices.Equal(got, want) {
			t.Errorf("shard %d: found the sum %d, want %d", i+1, got, want)
		}
		branch := []int{0: 10, 5: 3, 16: 1} // a new process refuses a session that it does not know
		if asked := len(g.asked) - before; asked != branch[i] {
			t.Errorf("shard %d: %d shards are asked directly", i+1, asked)
		}
		if got := sum(); !slices.Equal(got, want) || slices.Contains(g.rows.counted, true) {
			t.Errorf("shard %d, with a seat: found the sum %d, want %d", i+1, got, want)
		}
	}
	if g.planted != 4 {
		t.Errorf("%d trees", g.planted)
	}
}

// Who has the run's secret opens a part, and finds a sum under a mask: another one for each question, also of the same sum, all of whose bytes
// are as of random numbers. Only the coordinator's masks open it. A shard makes no mask twice, no matter who asks.
func TestPartsAreMasked(t *testing.T) {
	g, sum, want := newGrove(t)
	want16 := make([]int64, 4) // shard 17's own
	var histogram [256]float64
	var all float64
	var first []byte
	seen := map[[sha256.Size]byte]bool{}
	for range 300 {
		sum()
		thief, err := secretOf(t, "farm").session(g.rows.session.salt)
		if err != nil {
			t.Fatal(err)
		}
		text, err := unseal(thief.answers, nil, g.parts[16], g.last)
		if err != nil || len(text) != 3+8*(4+checks) {
			t.Fatalf("the part of a shard has %d bytes, error %v", len(text), err)
		}
		text = text[3:]
		if seen[sha256.Sum256(text)] {
			t.Fatal("two parts are equal")
		}
		seen[sha256.Sum256(text)] = true
		for _, b := range text {
			histogram[b]++
			all++
		}
		opened := make([]int64, 4+checks)
		g.rows.masks[16].add(opened, sha256.Sum256(g.last))
		for j := range opened {
			opened[j] = int64(binary.LittleEndian.Uint64(text[8*j:])) - opened[j]
		}
		copy(want16, g.shard(16).counts)
		if !slices.Equal(opened[:4], want16) || opened[4] != 0 || opened[5] != 0 {
			t.Fatalf("the coordinator opens %d; the shard's sum is %d", opened, want16)
		}
		if first == nil {
			first = bytes.Clone(g.last)
		}
	}
	chi := 0.0
	for _, n := range histogram {
		chi += (n - all/256) * (n - all/256) / (all / 256)
	}
	if chi > 400 { // 255 degrees of freedom: below 1e-8 of random bytes
		t.Errorf("the bytes of parts have a χ² of %.0f", chi)
	}
	if slices.Equal(want16, want) || slices.Equal(want16, make([]int64, 4)) {
		t.Errorf("shard 17 has the sum %d, all %d", want16, want)
	}

	// The same question, an earlier one, and one of another sum with the same number and nonce: its own sum is left out.
	other := bytes.Clone(g.last)
	h, _ := readHead(other)
	text, err := unseal(g.rows.session.asks, nil, other, nil)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	forged := seal(g.rows.session.asks, nil, h, text, nil)
	for name, q := range map[string][]byte{"the same": g.last, "an earlier": first, "another of its number": forged} {
		p, err := g.shard(16).Begin(bytes.Clone(q))
		if err != nil || !slices.Equal(p.covers, make([]byte, 3)) || !slices.Equal(p.sums, make([]int64, 4+checks)) {
			t.Errorf("%s question: error %v, or the shard answers", name, err)
		}
	}

	// Nobody without a seat's key has the masks: not by the secret, and not by a key of low order.
	mine, err := newMaskKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newMask(h, mine, make([]byte, 32), false); err == nil {
		t.Error("a key of low order is no error")
	}
	for _, size := range []int{0, 31, 33} {
		if _, err := newMask(h, mine, make([]byte, size), true); err == nil {
			t.Errorf("a key of %d bytes is no error", size)
		}
	}
}

// A worker has the secret, so it can seal a question of its own with the number and the nonce of the coordinator's, here for all rows in place of a
// sample, and send it to another first. The other's answer does not fit the mask that the coordinator subtracts, nor does the sample of that
// question stay for the coordinator's.
func TestForgedQuestionToAWorker(t *testing.T) {
	g, sum, _ := newGrove(t)
	sum()
	next := private.Draw{Sampler: sample.Poisson{Rate: 0.5}, Batch: 1, Total: g.rows.Rows()}
	draw := func(d private.Draw) {
		if err := g.rows.Draw(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	draw(next) // the forged question is the first of this sample
	mac := hmac.New(sha256.New, secretOf(t, "farm").key[:])
	mac.Write([]byte("sotto/shards/1 ask"))
	mac.Write(g.rows.session.salt[:])
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	var took []int64
	g.before = func(i int, q []byte) {
		if i != 16 {
			return
		}
		text, err := unseal(g.rows.session.asks, nil, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		var r reader
		asked, err := r.read(text)
		if err != nil {
			t.Fatal(err)
		}
		asked.Sampler = sample.Full{}
		form, err := asked.form.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		forged := bytes.Clone(q[:headSize+nonceSize])
		forged = chosen.Seal(forged, q[headSize:][:nonceSize], asked.append(nil, form), bound(q[:headSize], nil))
		p, err := g.shard(16).Begin(forged)
		if err != nil || p.covers[2] != 1 {
			t.Fatalf("the forged question was not answered: %v", err)
		}
		took = slices.Clone(p.sums)
	}
	g.pass = func(i int, q, part []byte) [][]byte {
		return [][]byte{g.forge(i, q, part, func(p *Part) {
			p.covers[2] |= 1
			copy(p.sums, took)
		})}
	}
	got := sum()
	if took == nil || g.rows.tree != nil {
		t.Error("the tree is used on")
	}
	other := next
	other.Batch = 2
	draw(other)
	sum()
	draw(next)
	if want := sum(); !slices.Equal(got, want) {
		t.Errorf("found the sum %d, want %d", got, want)
	}
}

// Numbers that no question of a coordinator has are refused, no matter who sends them.
func TestQuestionsThatDoNotFit(t *testing.T) {
	facts := oracle.Public{Dim: 4, Classes: 2, Adjacency: privacy.AddRemove}
	w := make([]float64, 4)
	for name, q := range map[string]question{
		"negative count": {form: form{Ask: private.Classes, Count: -1}},
		"huge count":     {form: form{Ask: private.Classes, Count: 1 << 60}},
		"other count":    {form: form{Ask: private.Gradients, Count: 5}, vectors: [][]float64{w}},
		"parameters":     {form: form{Ask: private.Hessians, Count: 15}, vectors: [][]float64{make([]float64, 5)}},
	} {
		if _, err := q.sum(&facts); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, q := range map[string]question{
		"total":    {form: form{Sampler: sample.Full{}}, turn: turn{Total: 1 << 31}},
		"negative": {form: form{Sampler: sample.Full{}}, turn: turn{Total: -1}},
		"from":     {form: form{Sampler: sample.Full{}}, turn: turn{Total: 3, From: 4}},
		"rate":     {form: form{Sampler: sample.Poisson{Rate: 2}}, turn: turn{Total: 3}},
		"fixed":    {form: form{Sampler: sample.Fixed{M: 1, N: 4}}, turn: turn{Total: 3}},
	} {
		if q.checkSample(privacy.ReplaceOne) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	good := question{form: form{Sampler: sample.Poisson{Rate: 0.5}}, turn: turn{Total: 3, From: 3}}
	if err := good.checkSample(privacy.AddRemove); err != nil {
		t.Error(err)
	}
}

// What a process with the secret says cannot move a terminal's cursor, end its line or fill it.
func TestSaid(t *testing.T) {
	for text, want := range map[string]string{
		"found another model": `"found another model"`, "\x1b[2J\nshard 1\u202e\xff": `"\x1b[2J\nshard 1\u202e\xff"`, "": `""`,
		strings.Repeat("x", mostSaid+1): `"` + strings.Repeat("x", mostSaid) + `" and more`,
	} {
		if got := Said([]byte(text)); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
	g, _, _ := newGrove(t)
	for what, want := range map[byte]string{answerFailed: `shard 1 of 17: refuses: "\r\x1b"`, answerUnfit: `shard 1 of 17: "\r\x1b"`} {
		g.carry = func(_ int, q []byte) ([]byte, error) {
			h, err := readHead(q)
			return seal(g.rows.session.answers, nil, h, []byte{what, '\r', 0x1b}, q), err
		}
		err := g.rows.ask(t.Context(), question{form: form{Ask: askSeat}}, func(int, []byte) error { return nil })
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
