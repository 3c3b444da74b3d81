// Package web is the dashboard: pages over run directories and the ledger, for one person on the same machine.
//
// It reads files, opens the ledger read-only and writes nothing. It listens on 127.0.0.1 and serves only the browser
// that opened the printed link. Pages show public facts, released values and scores marked as not private, and load
// nothing from elsewhere. Of a running run they show what is durable (R5).
package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/redact"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/record"
)

//go:embed pages
var assets embed.FS

// Options say what to show.
type Options struct {
	Dirs    []string // run directories, and directories that hold some
	Ledger  string   // its location, as ledger.Open takes it
	Version string   // of Sotto
}

// A Server serves the dashboard.
type Server struct {
	options Options
	dirs    *scanner
	guard   *guard
	mux     *http.ServeMux
	pages   map[string]*template.Template

	mu       sync.Mutex
	ledger   *ledger.Ledger // nil until it can be read
	read     *snapshot      // what was last read from it
	watch    map[string]*watched
	verified map[string]verified // by key

	verifying sync.Mutex // one verification at a time
}

// New returns a server. A directory that cannot be read is an error.
func New(o Options) (*Server, error) {
	s := &Server{options: o, dirs: newScanner(o.Dirs), watch: map[string]*watched{}, verified: map[string]verified{}}
	for _, dir := range o.Dirs {
		if err := readable(dir); err != nil {
			return nil, err
		}
	}
	var err error
	if s.pages, err = parsePages(); err != nil {
		return nil, err
	}
	s.mux = http.NewServeMux()
	for _, v := range views {
		if s.pages[v.name] == nil {
			return nil, fmt.Errorf("web: the page %s has no template; write web/pages/%[1]s.html", v.name)
		}
		s.mux.Handle("GET "+v.address, s.serve(v))
	}
	s.mux.HandleFunc("GET /runs/{key}/report", s.report)
	s.mux.HandleFunc("GET /described/{key}", s.described)
	s.mux.HandleFunc("GET /comparisons/{key}/figure.svg", s.figure)
	s.mux.HandleFunc("GET /live", s.live)
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8",
		"live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		b, err := assets.ReadFile("pages/" + name)
		if err != nil {
			return nil, err
		}
		if name == "style.css" {
			b = append([]byte(page.Style()), b...)
		}
		s.mux.HandleFunc("GET /"+name, asset(kind, b))
		if name == "icon.svg" { // browsers ask for it before they read the page
			s.mux.HandleFunc("GET /favicon.ico", asset(kind, b))
		}
	}
	go s.dirs.list() // ready for the first request
	return s, nil
}

// A view is a page at an address, with a template of its name in pages.
type view struct {
	name, address string
	title         string // in the navigation, from which it is reached; "": from other pages
	of            func(*Server, *http.Request) (*content, error)
}

// views lists all views in the order of the navigation. A new view needs a line here.
var views = []view{
	{"home", "/{$}", "Overview", (*Server).homePage},
	{"runs", "/runs", "Runs", (*Server).runsPage},
	{"run", "/runs/{key}", "", (*Server).runPage},
	{"verify", "/runs/{key}/verify", "", (*Server).verifyPage},
	{"compare", "/compare", "", (*Server).comparePage},
	{"datasets", "/datasets", "Datasets", (*Server).datasetsPage},
	{"dataset", "/datasets/{name}", "", (*Server).datasetPage},
	{"comparisons", "/comparisons", "Comparisons", (*Server).comparisonsPage},
	{"comparison", "/comparisons/{key}", "", (*Server).comparisonPage},
	{"networks", "/networks", "Networks", (*Server).networksPage},
	{"audits", "/audits", "Audits", (*Server).auditsPage},
	{"audit", "/audits/{key}", "", (*Server).auditPage},
}

// Listen opens a port on the loopback address; 0 is any free one.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}

// Link returns the address that admits one browser, once; this browser may open it again.
func (s *Server) Link(l net.Listener) string {
	if s.guard == nil {
		s.guard = newGuard(l.Addr())
	}
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return fmt.Sprintf("http://%s/?token=%s", l.Addr(), s.guard.token)
}

// NewLink returns another address, which admits one more browser, once; the earlier one is void.
func (s *Server) NewLink(l net.Listener) string {
	s.Link(l)
	s.guard.renew()
	return s.Link(l)
}

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.Link(l)
	h := s.http(ctx)
	l = limit(l, maxConnections)
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if h.Shutdown(short) != nil {
			h.Close()
		}
	})
	err := h.Serve(l)
	if stop() {
		return err // the server failed
	}
	<-done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger != nil {
		s.ledger.Close()
	}
	return nil
}

// http returns the HTTP server. It does not limit the time of an answer, since live pages stay open; each
// of their events has its own limit.
func (s *Server) http(ctx context.Context) *http.Server {
	return &http.Server{
		Handler: bodiless(s.guard.around(s.mux)), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 1 << 16,
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
}

// missing is the reason why an address has no page.
type missing string

func (e missing) Error() string { return string(e) }

// A content is what one address shows.
type content struct {
	Title string
	Live  string // the state of the list on the page; empty: the page does not change
	Body  any
}

// frame is a page with its header and footer.
type frame struct {
	*content
	Links           []link
	Version, Ledger string // of Sotto, and its location
}

// A link of the navigation; Here marks that of the page itself.
type link struct {
	Address, Title string
	Here           bool
}

func (s *Server) serve(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := v.of(s, r)
		status, shown := http.StatusOK, v.name
		var gone missing
		switch {
		case errors.As(err, &gone):
			status, shown, p = http.StatusNotFound, "error", &content{Title: "Not found", Body: string(gone)}
		case err != nil:
			status, shown, p = http.StatusInternalServerError, "error",
				&content{Title: "This cannot be shown", Body: redact.Text(err.Error())}
		}
		f := frame{p, nil, s.options.Version, s.where()}
		for _, to := range views {
			if to.title != "" {
				f.Links = append(f.Links, link{strings.TrimSuffix(to.address, "{$}"), to.title, to.name == shown})
			}
		}
		var out bytes.Buffer // complete before the status is sent
		if err := s.pages[shown].ExecuteTemplate(&out, "layout", f); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		w.Write(chart.Together(out.Bytes()))
	})
}

func asset(kind string, b []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write(b)
	}
}

// parsePages parses each page with the shared layout and parts.
func parsePages() (map[string]*template.Template, error) {
	funcs := template.FuncMap{
		"integer": chart.Integer,
		"number":  func(v float64) string { return chart.Number(v, 4) },
		"exact":   chart.Full,
		"atmost":  chart.Upper,
		"rounded": rounded,
		"when":    when,
		"left":    inWords,
		"bar":     bar,
		"spent":   spent, "event": eventText,
		"batches": func(r *record.Record) string {
			return page.Batches(&r.Course, r.Guarantee != nil && r.Guarantee.Filter)
		},
		"against": text.Against, "againstall": func() string { return text.AgainstAll },
		"owner":   func(network string) string { return network[strings.Index(network, "/")+1:] },
		"anchor":  func(s string) string { return strings.ReplaceAll(s, " ", "-") },
		"segment": url.PathEscape, // html/template would read the / and ? of a name as parts of the address
	}
	names, err := fs.Glob(assets, "pages/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "pages/"), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		if pages[name], err = template.New(name).Funcs(funcs).ParseFS(assets, "pages/layout.html", "pages/parts.html",
			file); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// when writes a time of day, and all of it where a reader points.
func when(t time.Time) template.HTML {
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.Format(time.RFC3339),
		t.Format(time.DateTime+" UTC"), t.Format("2 Jan 2006, 15:04")))
}

// inWords returns a duration in words.
func inWords(d time.Duration) string {
	plural := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	switch {
	case d < 90*time.Second:
		return plural(int(d.Seconds()+0.5), "second")
	case d < 90*time.Minute:
		return plural(int(d.Minutes()+0.5), "minute")
	case d < 48*time.Hour:
		return plural(int(d.Hours()+0.5), "hour")
	}
	return plural(int(d.Hours()/24+0.5), "day")
}

// rounded is an upper bound that a file has as text, with four digits; other text stays as it is.
func rounded(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return chart.Upper(v)
}
