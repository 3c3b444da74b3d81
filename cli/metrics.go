package cli

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// meters are the numbers of a process, which a Prometheus server asks for (docs/how-to/metrics.md). Without timings
// they follow from the public schedule, from what was released, and from machines that come and go: none is a time, and
// none counts rows.
type meters struct {
	address, health string
	timings         bool

	set     *metrics.Set
	before  []func()     // called before the numbers are written
	state   atomic.Int32 // the index of the current one
	servers []*http.Server
}

// States of a process: a run waits for rows or workers, trains, and has ended, well or not.
const (
	stateWaiting = iota
	stateTraining
	stateEnded
)

var runStates = []string{"waiting", "training", "ended"}

// add declares the flags; report says that a run's report names timings.
func (m *meters) add(f *pflag.FlagSet, report bool) {
	f.StringVar(&m.address, "metrics", "",
		"address that serves metrics for Prometheus, as 127.0.0.1:9464; without a host this machine alone reaches it")
	f.StringVar(&m.health, "health", "", "address that answers /healthz while the process runs, for a probe")
	if report {
		f.BoolVar(&m.timings, "metrics-timings", false,
			"serve times, memory and counts of batches, too (with --metrics); they may depend on rows, and the report says so")
	}
}

// begin makes the numbers that every command has. It comes before the others.
func (m *meters) begin(command string, states ...string) error {
	if m.timings && m.address == "" {
		return usageError("--metrics-timings: found without --metrics; give both")
	}
	m.set = metrics.NewSet()
	m.fixed(fmt.Sprintf("sotto_info{command=%q,version=%q}", command, runlog.Version()), 1)
	for i, name := range states {
		m.gauge(fmt.Sprintf("sotto_state{state=%q}", name), func() float64 {
			if int(m.state.Load()) == i {
				return 1
			}
			return 0
		})
	}
	return nil
}

func (m *meters) gauge(name string, f func() float64) { m.set.NewGauge(name, f) }
func (m *meters) fixed(name string, value float64)    { m.gauge(name, func() float64 { return value }) }

// count is a number that only grows; counted is one that f knows.
func (m *meters) count(name string) *metrics.Counter { return m.set.NewCounter(name) }
func (m *meters) counted(name string, f func() float64) {
	c := m.set.NewFloatCounter(name)
	m.before = append(m.before, func() { c.Set(f()) })
}

// text is what a Prometheus server gets.
func (m *meters) text() []byte {
	metrics.ExposeMetadata(true)
	for _, f := range m.before {
		f()
	}
	var b bytes.Buffer
	m.set.WritePrometheus(&b)
	if m.timings {
		metrics.WriteProcessMetrics(&b)
	}
	return b.Bytes()
}

// serve listens at the addresses that the flags name, and says where.
func (m *meters) serve(c *cobra.Command, say func(format string, args ...any)) error {
	health := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	for _, at := range []struct {
		flag, address, path string
		answer              http.HandlerFunc
	}{
		{"--metrics", m.address, "/metrics", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			w.Write(m.text())
		}},
		{"--health", m.health, "/healthz", health},
	} {
		if at.address == "" {
			continue
		}
		host, port, err := net.SplitHostPort(at.address)
		if err != nil {
			return usageError("%s: found %q; write HOST:PORT, as 127.0.0.1:9464, or :PORT for this machine alone", at.flag,
				at.address)
		}
		if host == "" {
			host = "127.0.0.1"
		}
		l, err := new(net.ListenConfig).Listen(c.Context(), "tcp", net.JoinHostPort(host, port))
		if err != nil {
			return usageError("%s: found %q, where nothing can listen (%v); choose a free address of this machine", at.flag,
				at.address, err)
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+at.path, at.answer)
		s := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
			IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 13}
		m.servers = append(m.servers, s)
		go s.Serve(l)
		say("%s at http://%s%s", at.flag[2:], l.Addr(), at.path)
	}
	return nil
}

// close ends the servers.
func (m *meters) close() {
	for _, s := range m.servers {
		s.Close()
	}
}

// schedule adds the public parameters of a run, from its job or, where it is resumed, from run.json, and returns what
// takes its progress. It omits the spent ε if costs depend on releases.
func (m *meters) schedule(job *run.Job, resume string) (func(run.Progress), error) {
	var info *runlog.Info
	var plan privacy.Event
	if job != nil {
		info = &runlog.Info{Budget: job.Spec.Privacy.Budget(), Off: job.Spec.Privacy.Off,
			MaxSteps: method.MaxSteps(job.Method), NoiseMultiplier: method.NoiseMultiplier(job.Method)}
		plan = job.Plan
	} else {
		var err error
		if info, err = runlog.ReadInfo(resume); err != nil {
			return nil, &run.InputError{Err: err}
		}
		if plan, err = info.PlanEvent(); err != nil {
			return nil, &run.InputError{Err: err}
		}
	}
	var last atomic.Pointer[run.Progress]
	last.Store(&run.Progress{})
	m.gauge("sotto_steps", func() float64 { return float64(last.Load().Step) })
	m.fixed("sotto_steps_max", float64(info.MaxSteps))
	if !info.Off {
		m.fixed("sotto_epsilon", info.Budget.Epsilon)
		m.fixed("sotto_delta", info.Budget.Delta)
		m.fixed("sotto_noise_multiplier", info.NoiseMultiplier)
		if _, filtered := plan.(privacy.Filtered); !filtered {
			m.gauge("sotto_epsilon_spent", func() float64 { return last.Load().Epsilon })
		}
	}
	return func(p run.Progress) {
		last.Store(&p)
		m.state.CompareAndSwap(stateWaiting, stateTraining)
	}, nil
}

// both calls two receivers of progress, of which either may be nil.
func both(a, b func(run.Progress)) func(run.Progress) {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(p run.Progress) { a(p); b(p) }
}
