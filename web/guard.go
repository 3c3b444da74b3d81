package web

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/sottodp/sotto/ledger"
)

// A guard decides who may read the pages. Its link holds a token that works once: the server
// exchanges it for a cookie that scripts cannot read and that browsers do not send with links from
// other sites. A browser with the cookie may open the link again.
type guard struct {
	session string
	cookie  string // its name; cookies are kept by host, not by port
	hosts   [2]string

	mu    sync.Mutex
	token string
	used  bool
}

func newGuard(a net.Addr) *guard {
	_, port, _ := net.SplitHostPort(a.String())
	return &guard{
		token: ledger.NewToken(), session: ledger.NewToken(), cookie: "sotto-" + port,
		hosts: [2]string{"127.0.0.1:" + port, "localhost:" + port},
	}
}

// policy lets a page load only its own style, script and images.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// entered sends the browser on. A redirect does not work: after a link on another site the browser would not
// send the new cookie with it.
const entered = `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>Sotto</title><p><a href="/">Open the dashboard</a></p></html>
`

func (g *guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.Host != g.hosts[0] && r.Host != g.hosts[1] { // DNS rebinding
			refuse(w, http.StatusForbidden, "this server answers to its own address only")
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "these pages can only be read")
			return
		}
		if token := r.URL.Query().Get("token"); r.URL.Path == "/" && token != "" {
			g.enter(w, r, token)
			return
		}
		if !g.known(r) {
			refuse(w, http.StatusForbidden,
				"open the link that `sotto serve` printed; it works in one browser. For another, press Enter in the terminal of the command: it prints a new link")
			return
		}
		// Browsers name the site that asks; pages of other sites are refused.
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			refuse(w, http.StatusForbidden, "another site's page asked for this")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// known says that a request comes from a browser that a link admitted.
func (g *guard) known(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && equal(c.Value, g.session)
}

// renew replaces the token by a new one, for one more browser.
func (g *guard) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token, g.used = ledger.NewToken(), false
}

// admits takes the token, once.
func (g *guard) admits(token string) (right, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	right = equal(token, g.token)
	first = right && !g.used
	g.used = g.used || first
	return right, first
}

// enter exchanges the token for the cookie.
func (g *guard) enter(w http.ResponseWriter, r *http.Request, token string) {
	if g.known(r) { // it needs no token
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, entered)
		return
	}
	right, first := g.admits(token)
	if !right {
		refuse(w, http.StatusForbidden, "this link is not valid; open the one that `sotto serve` printed last")
		return
	}
	if !first {
		refuse(w, http.StatusForbidden,
			"another browser used this link. Press Enter in the terminal of `sotto serve` for a new one")
		return
	}
	http.SetCookie(w,
		&http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, entered)
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, strings.ToUpper(why[:1])+why[1:]+".")
}

// equal compares in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
