package shards_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/shards"
)

// sizing is a carrier that notes the sizes of questions and answers.
type sizing struct {
	*shards.Coordinator
	mu    sync.Mutex
	sizes []string
}

func (s *sizing) Ask(ctx context.Context, questions [][]byte, take func(int, []byte) error) error {
	asked, answered := []int{}, make([]int, len(questions))
	for _, q := range questions {
		asked = append(asked, len(q))
	}
	err := s.Coordinator.Ask(ctx, questions, func(i int, answer []byte) error {
		s.mu.Lock()
		answered[i] = len(answer)
		s.mu.Unlock()
		return take(i, answer)
	})
	s.sizes = append(s.sizes, fmt.Sprint(asked, answered))
	return err
}

// The messages between coordinator and workers have the same number and sizes with one record more.
func TestNeighborsHaveMessagesOfTheSameSizes(t *testing.T) {
	s := newSite(t, 1000)
	var all [2][]string
	for i := range all {
		if i == 1 { // the first record twice
			rows, err := os.ReadFile(s.parts[0])
			s.must(err)
			lines := bytes.SplitAfter(rows, []byte("\n"))
			s.must(os.WriteFile(s.parts[0], append(rows, bytes.Replace(lines[1], []byte("1"), []byte("2"), 1)...), 0o600))
		}
		c := s.listen()
		var stops []func()
		for k, part := range s.parts {
			stop, _ := s.worker(c.URL, k, part)
			stops = append(stops, stop)
		}
		h := &sizing{Coordinator: c}
		_, _, err := run.Fit(t.Context(), s.job(fmt.Sprint("sizes", i), sgd), run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: h}})
		s.must(err)
		for _, stop := range stops {
			stop()
		}
		all[i] = h.sizes
	}
	if len(all[0]) < 10 || !slices.Equal(all[0], all[1]) {
		t.Errorf("messages of other sizes:\n%v\n%v", all[0], all[1])
	}
}
