package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

const (
	pollEvery = 250 * time.Millisecond // between two reads of a watched run
	silence   = 30 * time.Second       // a run without a new step for that long may be interrupted
	pulse     = 15 * time.Second       // between heartbeats to a browser
)

// A progress is the progress of a run.
type progress struct {
	*runEntry
	Step    int
	Share   float64       // of the planned steps, in percent
	Epsilon string        // of what was charged, rounded up; empty: not known
	Left    time.Duration // 0: not known
	Written time.Time     // the time of the last step, or of the start
	Silent  bool
	Ended   bool
}

// watched is a run in progress that a browser shows.
type watched struct {
	mu       sync.Mutex
	info     *runlog.Info
	follower *runLog
	charged  int // batches that epsilon is of
	epsilon  string
	next     time.Time // when epsilon may be computed again
	first    time.Time // when the first step was seen; from is its number
	from     int
}

// watched returns the one watcher of a run.
func (s *Server) watched(e *runEntry) (*watched, error) {
	s.mu.Lock()
	w := s.watch[e.Key]
	s.mu.Unlock() // not while files are read
	if w != nil {
		return w, nil
	}
	info, err := runlog.ReadInfo(e.Dir)
	if err != nil {
		return nil, err
	}
	w = &watched{info: info, follower: follow(e)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.watch[e.Key]; first != nil {
		return first, nil
	}
	s.watch[e.Key] = w
	return w, nil
}

// forget drops the watchers of runs that have ended.
func (s *Server) forget(l *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.watch {
		if e, err := l.run(key); err != nil || !e.Open() {
			delete(s.watch, key)
		}
	}
}

// update reads what is new and returns the progress of the run.
func (w *watched) update(e *runEntry) (progress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := progress{runEntry: e, Step: e.Steps, Written: e.Started}
	if err := w.follower.read(); err != nil {
		return p, err
	}
	if n := len(w.follower.Steps); n > 0 {
		p.Step, p.Written = w.follower.Steps[n-1].T, w.follower.Written
	}
	p.Share = share(p.Step, p.MaxSteps)
	p.Silent = time.Since(p.Written) > silence
	now := time.Now()
	if w.first.IsZero() && p.Step > 0 {
		w.first, w.from = now, p.Step
	}
	p.Left = w.left(p)
	w.spend(now)
	p.Epsilon = w.epsilon
	return p, nil
}

// left returns the time that the remaining steps will take at the pace observed here or, without one, at
// the pace since the start.
func (w *watched) left(p progress) time.Duration {
	took, steps := p.Written.Sub(w.first), p.Step-w.from
	if steps <= 0 || took < pollEvery {
		took, steps = p.Written.Sub(w.info.Started), p.Step
	}
	if p.Silent || steps <= 0 || took <= 0 || p.Step >= p.MaxSteps {
		return 0
	}
	return time.Duration(float64(took) / float64(steps) * float64(p.MaxSteps-p.Step))
}

// spend computes the ε of the charges, in at most a tenth of the process's time.
func (w *watched) spend(now time.Time) {
	rec := w.follower.Record()
	n := rec.Charged()
	if w.info.Off || n == 0 || n == w.charged || now.Before(w.next) {
		return
	}
	w.epsilon, w.charged = spent(record.Charged(w.info, rec)), n
	end := time.Now()
	w.next = end.Add(9 * end.Sub(now))
}

// progressOf returns the progress of a run; nil if its log cannot be read.
func (s *Server) progressOf(e *runEntry) *progress {
	if e.Damage != "" {
		return nil
	}
	if !e.Open() {
		return &progress{runEntry: e, Step: e.Steps, Share: share(e.Steps, e.MaxSteps), Ended: true}
	}
	w, err := s.watched(e)
	if err != nil {
		return nil
	}
	p, err := w.update(e)
	if err != nil {
		return nil
	}
	return &p
}

func share(step, horizon int) float64 { return 100 * float64(step) / math.Max(1, float64(horizon)) }

// live sends changes of a page as server-sent events: the progress of its runs, and news when the list of runs changes.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	flusher, ok := w.(http.Flusher)
	if !ok {
		http.Error(w, "this connection cannot be kept open", http.StatusInternalServerError)
		return
	}
	q := r.URL.Query()
	keys, seen := q["run"], q.Get("seen")
	if len(keys) > pageSize {
		keys = keys[:pageSize]
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	// a browser that does not read must not hold the connection
	soon := func() { http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) }
	send := func(event string, data any) {
		b, _ := json.Marshal(data) // cannot fail
		soon()
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, b)
		flusher.Flush()
	}
	shown, tenths, ended := map[string]string{}, map[string]int{}, map[string]bool{}
	said := time.Now()
	for tick := time.NewTicker(pollEvery); ; {
		l := s.dirs.list()
		for _, key := range keys {
			e, err := l.run(key)
			if err != nil || ended[key] {
				continue
			}
			p := s.progressOf(e)
			if p == nil {
				continue
			}
			html, err := s.fragment(p)
			if err != nil || shown[key] == html {
				continue
			}
			message := map[string]string{"key": key, "html": html}
			tenth := int(p.Share / 10)
			old, before := tenths[key]
			switch ended[key] = p.Ended; {
			case p.Ended:
				message["say"] = fmt.Sprintf("Run on %s: %s.", e.Dataset, e.State)
			case before && old != tenth:
				message["say"] = fmt.Sprintf("Run on %s: %d percent of the steps.", e.Dataset, 10*tenth)
			}
			shown[key], tenths[key], said = html, tenth, time.Now()
			send("run", message)
		}
		s.forget(l)
		if seen != "" && l.state != seen {
			send("news", "")
			seen = l.state
		}
		if time.Since(said) > pulse {
			said = time.Now()
			soon()
			fmt.Fprint(w, ": still here\n\n")
			flusher.Flush()
		}
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// fragment returns the HTML of a run's progress.
func (s *Server) fragment(p *progress) (string, error) {
	var out strings.Builder
	err := s.pages["runs"].ExecuteTemplate(&out, "progress", p)
	return out.String(), err
}

// bar draws a share of a whole, in percent; more than 100 is marked.
func bar(share float64, label string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="whole" width="100" height="6"/><rect class="part%s" width="%.2f" height="6"/></svg>`,
		template.HTMLEscapeString(label), map[bool]string{true: " over"}[share > 100*(1+1e-9)],
		math.Min(100, math.Max(0, share))))
}
