// Package remote sums over rows in shards on several machines of one owner. Shards, on the
// coordinator, is a sum.Summer: it sends sealed questions to each Shard and adds up the
// answers. A Shard, on a worker, answers from its own rows. Sums before noise and the keys of
// samples pass between them, sealed; the coordinator's oracle adds noise once. A Carrier delivers
// the messages.
package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/sottodp/sotto/internal/twins"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Carrier delivers sealed questions to shards and returns their answers. It may repeat a
// question, by the same bytes, and return any of the answers.
type Carrier interface {
	Shards() int  // how many there are
	Largest() int // most bytes of a message
	// Ask delivers question i to shard i, or none where it is empty, and hands an answer of each to take as it arrives,
	// one at a time. If take returns an *Unfit, Ask waits for the answer of another worker; any other error ends it. The
	// questions are the caller's again when it returns, an answer when take does.
	Ask(ctx context.Context, questions [][]byte, take func(shard int, answer []byte) error) error
}

// Shards stand for a table whose rows are on machines of the same owner, each with a part, in the
// order of the shards. Sums of whole numbers do not depend on where their parts are added, so an
// oracle over shards releases what one over the table would.
type Shards struct {
	carrier Carrier
	session *session
	from    []int // private: row at which a shard begins, and the end
	digests [][32]byte
	compare [][]byte            // what the gate compares of them
	is      [][sha256.Size]byte // what stands for each
	units   [][idSize]byte      // hashes of the ids, until they are taken
	forms   formCache
	asked   uint64
	sampler sample.Sampler // of the sample, as its turn without From
	bought  turn
	counts  []int64 // the sums that were last asked for

	questions [][]byte // the last ones, whose memory the next ones use
	waits     []bool   // for an answer to them
	text      []byte   // of a question, or of an answer
}

// Open asks all shards who they are. Terms, each hashed, must be the same for them and the coordinator; Open refuses
// other shards. If two shards hold the same rows, more equal ones than chance explains, or rows of one unit, it tells
// their workers and returns a *Refused, as it does if a worker's own machine protects its rows. Each shard sends that
// many bytes for the gate to compare ([Shards.Compared]).
func Open(ctx context.Context, secret *Secret, carrier Carrier, facts oracle.Public, terms map[string][]byte,
	compared int) (*Shards, error) {
	session, err := secret.newSession()
	if err != nil {
		return nil, err
	}
	s := &Shards{carrier: carrier, session: session, from: make([]int, carrier.Shards()+1)}
	if carrier.Shards() < 1 {
		return nil, errors.New("remote: no shards")
	}
	s.questions, s.waits = make([][]byte, carrier.Shards()), make([]bool, carrier.Shards())
	if most := largest(facts.Dim); most > carrier.Largest() {
		return nil, fmt.Errorf("remote: messages of %d parameters have up to %d bytes; the carrier takes %d", facts.Dim, most,
			carrier.Largest())
	}
	if most := largest(0) + carrier.Shards()*sketchRows*sketchSize + compared; most > carrier.Largest() {
		return nil, fmt.Errorf("remote: messages of %d shards have up to %d bytes; the carrier takes %d", carrier.Shards(),
			most, carrier.Largest())
	}
	agreed, err := json.Marshal(terms)
	if err != nil {
		return nil, err
	}
	rows := make([]int, carrier.Shards())
	s.digests, s.is = make([][32]byte, len(rows)), make([][sha256.Size]byte, len(rows))
	s.compare = make([][]byte, len(rows))
	sketches := make([][]byte, len(rows))
	err = s.ask(ctx, question{form: form{Ask: askHello, Terms: string(agreed)}}, func(i int, answer []byte) error {
		if len(answer) != helloSize+sketchRows*sketchSize+compared {
			return errSealed
		}
		answer, s.compare[i] = answer[:len(answer)-compared], bytes.Clone(answer[len(answer)-compared:])
		rows[i], s.digests[i] = int(binary.LittleEndian.Uint64(answer)), [32]byte(answer[8:])
		s.is[i], sketches[i] = identity([32]byte(answer[8+32:]), terms), bytes.Clone(answer[helloSize:])
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, n := range rows {
		s.from[i+1] = s.from[i] + n
	}
	if err = s.apart(ctx, sketches); err == nil && facts.UnitRows > 0 {
		err = s.unitsApart(ctx, unitsOf(facts.Rows, len(rows)))
	}
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		s.dismiss(ctx, form{Why: refused.Why}, refused.Shards...)
	}
	return s, err
}

// Compared is what each shard sent for the gate to compare.
func (s *Shards) Compared() [][]byte { return s.compare }

// Refuse tells all workers that the gate refuses their rows. It waits a little until they have heard.
func (s *Shards) Refuse(ctx context.Context) {
	all := make([]int, len(s.digests))
	for i := range all {
		all[i] = i
	}
	s.dismiss(ctx,
		form{Protected: true,
			Why: "the coordinator does not use these rows: its ledger protects them, or cannot compare them; its terminal says why"}, all...)
}

// apart checks that no two shards hold the same rows, or many: a record in two counts twice.
func (s *Shards) apart(ctx context.Context, sketches [][]byte) error {
	for i, d := range s.digests {
		// empty ones are equal, and share no unit
		if first := slices.Index(s.digests, d); first < i && s.from[i] < s.from[i+1] {
			return refuse(len(s.digests), sameRows, first, i)
		}
	}
	if len(sketches) == 1 {
		return nil
	}
	tallies := make([][]twins.Tally, len(sketches)) // of each sketch, at each shard
	for i := range tallies {
		tallies[i] = make([]twins.Tally, len(sketches))
	}
	err := s.ask(ctx, question{form: form{Ask: askShared}, sketches: slices.Concat(sketches...)},
		func(j int, answer []byte) error {
			if len(answer) != len(sketches)*tallySize {
				return errSealed
			}
			for i := range tallies {
				tallies[i][j] = readTally(answer[i*tallySize:])
			}
			return nil
		})
	if err != nil {
		return err
	}
	read := make([]twins.Sketch, len(sketches))
	for i, b := range sketches {
		read[i] = readSketch(b)
	}
	if i, j, found := twice(read, tallies); found {
		return refuse(len(sketches), manyRows, i, j)
	}
	return nil
}

const goodbye = 2 * time.Second // for workers that the coordinator refuses

// helloSize is the bytes of the number of rows, their digest and their order in the answer to a hello.
const helloSize = 8 + 32 + 32

// unitsApart checks that no unit has rows in two shards: it would count as two. Each shard sends as many hashes as it
// may have units.
func (s *Shards) unitsApart(ctx context.Context, most int) error {
	units := make([][]byte, len(s.digests))
	for page := range pagesOf(most) {
		size := pageSize(most, page)
		err := s.ask(ctx, question{form: form{Ask: askUnits}, turn: turn{Batch: int64(page)}},
			func(i int, answer []byte) error {
				if len(answer) != 4+size*idSize {
					return errSealed
				}
				switch n := binary.LittleEndian.Uint32(answer); {
				case n == tooMany:
					return refuse(len(units), manyUnits, i)
				case int(n) > size:
					return errSealed
				default:
					units[i] = append(units[i], answer[4:][:int(n)*idSize]...)
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	ids, first, second := joined(units)
	if first < second {
		return refuse(len(units), sameUnit, first, second)
	}
	s.units = ids
	return nil
}

// Units hands out the hashes of the ids of all shards' units, under the secret's IDKey, ascending; nil if each row is a
// unit.
func (s *Shards) Units() (ids [][idSize]byte) {
	ids, s.units = s.units, nil
	return ids
}

// largest message, in bytes: the two vectors of a line and its steps, or a Hessian.
func largest(dim int) int {
	numbers := 2 * dim
	if dim <= oracle.MaxHess {
		numbers = max(numbers, oracle.HessLen(dim))
	}
	return 1<<16 + 8*numbers
}

// Rows of all shards together: private, as a table's.
func (s *Shards) Rows() int { return s.from[len(s.from)-1] }

// RowsOf is the number of rows of shard i, as private as Rows.
func (s *Shards) RowsOf(i int) int { return s.from[i+1] - s.from[i] }

// Digests of the shards' contents, in their order. They leave memory only under a key, as a table's
// (R4).
func (s *Shards) Digests() [][32]byte { return s.digests }

// Format prints no more than what it is.
func (s *Shards) Format(f fmt.State, _ rune) { io.WriteString(f, "remote.Shards") }

// Draw implements sum.Summer: the shards draw when they are asked.
func (s *Shards) Draw(_ context.Context, d sum.Draw) error {
	s.sampler, s.bought = d.Sampler, turn{Key: d.Key, Batch: int64(d.Batch), Total: int64(d.Total)}
	return nil
}

// ask asks all shards at once q, each for its own rows of the sample, and hands the answers to take as they arrive.
func (s *Shards) ask(ctx context.Context, q question, take func(shard int, answer []byte) error) error {
	form, err := s.forms.encode(q.form)
	if err != nil {
		return err
	}
	s.text = q.append(s.text[:0], form)
	text, size := s.text, len(s.text)
	for i := range s.questions { // they differ in the turn
		if q.Ask != askHello {
			q.From, q.Is = int64(s.from[i]), s.is[i]
			q.turn.append(text[:4+len(form)])
		}
		s.questions[i] = seal(s.session.asks, s.questions[i][:0], s.head(i), text[:size], nil)
		s.waits[i] = true
	}
	err = s.carrier.Ask(ctx, s.questions, func(i int, message []byte) error {
		answer, err := s.open(i, message)
		if err == nil {
			s.waits[i] = false
			err = take(i, answer)
		}
		if refused := (*Refused)(nil); err == nil || errors.As(err, &refused) {
			return err
		}
		return s.of(i, err)
	})
	s.asked++
	if i := slices.Index(s.waits, true); i >= 0 && err == nil {
		return s.of(i, errors.New("remote: no answer"))
	}
	return err
}

// head is that of the next question to shard i.
func (s *Shards) head(i int) head {
	return head{salt: s.session.salt, asked: s.asked, shard: uint32(i), of: uint32(len(s.questions))}
}

// open returns the text of shard i's answer to its question. It is valid until the next.
func (s *Shards) open(i int, message []byte) ([]byte, error) {
	if h, err := readHead(message); err != nil || h != s.head(i) || !s.waits[i] { // a second answer would count rows twice
		return nil, errSealed
	}
	text, err := unseal(s.session.answers, s.text[:0], message, s.questions[i])
	if err != nil {
		return nil, err
	}
	if s.text = text; len(text) == 0 {
		return nil, errSealed
	}
	switch text[0] {
	case answerGood:
		return text[1:], nil
	case answerUnfit:
		return nil, &Unfit{Why: said(text[1:])}
	case answerProtected:
		return nil, &Refused{[]int{i},
			fmt.Sprintf("shard %d of %d: its worker refuses: %s", i+1, len(s.questions), said(text[1:])), true}
	}
	return nil, fmt.Errorf("%w: %s", ErrShard, said(text[1:]))
}

// mostSaid is the bytes that said shows.
const mostSaid = 400

// said shows what another process says on a terminal: quoted, in printable ASCII, and not all of it if it is long.
func said(text []byte) string {
	if len(text) > mostSaid {
		return strconv.QuoteToASCII(string(text[:mostSaid])) + " and more"
	}
	return strconv.QuoteToASCII(string(text))
}

// of adds to an error which shard it is about.
func (s *Shards) of(shard int, err error) error {
	return fmt.Errorf("shard %d of %d: %w", shard+1, s.carrier.Shards(), err)
}

// dismiss tells the workers of these shards why they are not used. It waits until they have heard,
// or the context ends.
func (s *Shards) dismiss(ctx context.Context, why form, shards ...int) {
	ctx, stop := context.WithTimeout(ctx, goodbye)
	defer stop()
	why.Ask = askLeave
	q := question{form: why}
	form, err := s.forms.encode(q.form)
	if err != nil {
		return
	}
	questions := make([][]byte, len(s.questions))
	for _, i := range shards {
		questions[i] = seal(s.session.asks, nil, s.head(i), q.append(nil, form), nil)
	}
	s.carrier.Ask(ctx, questions, func(int, []byte) error { return nil })
	s.asked++
}

// ErrShard wraps the reason of a shard that cannot answer, as one of another version of Sotto.
var ErrShard = errors.New("refuses")

// Sum implements sum.Summer: it adds up what the shards answer.
func (s *Shards) Sum(ctx context.Context, of *sum.Sum) error {
	q, err := asked(of)
	if err != nil {
		return err
	}
	q.Sampler, q.turn = s.sampler, s.bought
	s.counts = slices.Grow(s.counts[:0], q.Count)[:q.Count]
	clear(s.counts)
	return s.ask(ctx, q, func(_ int, answer []byte) error { return decodeCounts(s.counts, answer) })
}

// Take implements sum.Summer.
func (s *Shards) Take(dst []int64, from int) { copy(dst, s.counts[from:]) }
