package run

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/access"
)

// Shards are the parts of a table on other machines of its owner, and the channel to them.
type Shards struct {
	Secret  *remote.Secret
	Carrier Carrier
}

// A Carrier also gives workers the gate's request when they come, before they read their rows.
type Carrier interface {
	remote.Carrier
	Request(*access.Request)
}

// Terms are what a coordinator and its shards must agree on, each hashed.
func (j *Job) Terms() (map[string][]byte, error) {
	schema, err := j.Schema.Marshal()
	if err != nil {
		return nil, err
	}
	model, err := json.Marshal(j.Spec.Model)
	if err != nil {
		return nil, err
	}
	terms := map[string][]byte{}
	for name, text := range map[string][]byte{"schema": schema, "model": model, "adjacency": []byte(j.Facts.Adjacency.String()),
		"choice of --metrics-timings": strconv.AppendBool(nil, j.Spec.MetricsTimings)} {
		sum := sha256.Sum256(text)
		terms[name] = sum[:]
	}
	return terms, nil
}

// openShards waits for all shards and asks for their content's digests. It returns the count of rows for the lab.
func (s *Session) openShards(ctx context.Context, gate *access.Gate) (map[string]int, error) {
	terms, err := s.Job.Terms()
	if err != nil {
		return nil, err
	}
	request, err := gate.Request(ctx)
	if err != nil {
		return nil, err
	}
	s.env.Shards.Carrier.Request(request)
	s.shards, err = remote.Open(ctx, s.env.Shards.Secret, s.env.Shards.Carrier, s.Job.Facts, terms, access.SentSize)
	s.env.Shards.Carrier.Request(request.Over())
	if refused := (*remote.Refused)(nil); errors.As(err, &refused) && refused.Protected {
		return nil, fmt.Errorf("%w: %w", access.ErrProtected, refused)
	} else if refused != nil {
		return nil, &InputError{Err: refused}
	}
	if err != nil {
		return nil, err
	}
	// Public under replace-one (R9).
	if n := s.shards.Rows(); s.Job.Facts.Adjacency == privacy.ReplaceOne && n != s.Job.Facts.Rows {
		return nil, inputError("", "%s: found %d in %s together; allowed is exactly %d, the number in the schema, under replace-one", s.Job.Schema.Counted(), n, shardsOf(len(s.shards.Digests())), s.Job.Facts.Rows)
	}
	if s.opened, err = gate.Remote(ctx, s.purpose(), s.Job.Schema, together(s.shards.Digests()), s.shards.Digests(), s.shards.Compared(), s.shards.Units()); err != nil {
		s.shards.Refuse(ctx)
	}
	return map[string]int{"rows": s.shards.Rows()}, err
}

// together returns the digest of a table in parts: for one part, its own.
func together(parts [][sha256.Size]byte) (sum [sha256.Size]byte) {
	if len(parts) == 1 {
		return parts[0]
	}
	h := sha256.New()
	h.Write([]byte("sotto shards/1"))
	for _, p := range parts {
		h.Write(p[:])
	}
	h.Sum(sum[:0])
	return sum
}

func shardsOf(n int) string {
	if n == 1 {
		return "1 shard"
	}
	return fmt.Sprintf("%d shards", n)
}

// shifts says whether a configured method predicts from a shift of margins.
func shifts(m method.Method) bool {
	a, ok := m.(method.Auto)
	_, adassp := m.(method.AdaSSP)
	return adassp || ok && (a.LabelNoise > 0 || a.Shift != 0 || a.Solve == method.SolveStatistics)
}

// centers says whether a configured method centers rows.
func centers(m method.Method) bool {
	a, ok := m.(method.Auto)
	return ok && a.Center == method.CenterMean
}
