package web

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/audit"
)

var screenshots = flag.String("screenshots", "", "write pictures of the pages to this directory")

// A tab is a page of a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	asked    map[network.RequestID]string // addresses of all requests
	stopped  map[network.RequestID]bool   // those that the policy let not leave
	troubles []string                     // what the console says: errors, and what the policy forbade
}

func newTab(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(needs.Chromium(t)), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(needs.Patience), chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(t.TempDir()))
	ctx, stop := context.WithTimeout(context.Background(), needs.Patience)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, asked: map[network.RequestID]string{}, stopped: map[network.RequestID]bool{}}
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.asked[e.RequestID] = e.Request.URL
		case *network.EventLoadingFailed:
			b.stopped[e.RequestID] = e.BlockedReason == network.BlockedReasonCsp
		case *network.EventWebSocketCreated:
			b.asked[e.RequestID] = e.URL
		case *log.EventEntryAdded:
			b.troubles = append(b.troubles, fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		case *runtime.EventExceptionThrown:
			b.troubles = append(b.troubles, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, accessibility.Enable, cdp.Empty{})
	return b
}

func call[P, R any](b *tab, command cdp.Command[P, R], p P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, command, p)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// js is what an expression of the page gives.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// until waits for an expression to be true, on whatever page there is by then.
func (b *tab) until(expression string) {
	b.t.Helper()
	b.wait(expression, func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && ok
	})
}

// wait waits for what is to come.
func (b *tab) wait(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(needs.Patience); time.Now().Before(end) && b.ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	b.t.Fatalf("timed out waiting for %s\non %s", what, js[string](b, `location.href + "\n" + document.body.innerText`))
}

// look sets size and colors.
func (b *tab) look(width, height int64, scheme string) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// faint lists text whose contrast to what is behind it is below 4.5 (WCAG AA).
const faint = `(() => {
	const light = (c) => { const [r, g, b] = c.match(/[\d.]+/g).map(Number).map((v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126*r + 0.7152*g + 0.0722*b; };
	const clear = (c) => c === "transparent" || /, 0\)$/.test(c);
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.closest("svg, .unseen, [hidden], .skip") || !e.getClientRects().length) continue;
		let behind = e;
		while (behind.parentElement && clear(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
		const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(behind).backgroundColor)].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(e.tagName + " " + e.textContent.trim().slice(0, 40));
	}
	return bad;
})()`

// flaws lists what a screen reader or a keyboard would miss.
const flaws = `(() => {
	const bad = [], need = (ok, what) => { if (!ok) bad.push(what); }, all = (s) => [...document.querySelectorAll(s)];
	need(document.documentElement.lang === "en", "language");
	need(all("h1").length === 1, "one heading of the first level");
	need(all("main").length === 1 && all("nav[aria-label]").length >= 1 && all("footer").length === 1, "landmarks");
	need(document.title.endsWith("· Sotto"), "title");
	for (const e of all("input, select")) need(e.labels.length || e.ariaLabel, "label of " + e.outerHTML);
	for (const e of all("th")) need(e.scope, "scope of " + e.outerHTML);
	for (const e of all("img")) need(e.alt, "alt of " + e.outerHTML);
	for (const e of all("svg")) need(e.getAttribute("role") === "img" && (e.ariaLabel || e.querySelector("title")), "name of " + e.outerHTML.slice(0, 90));
	for (const e of all("a, button")) need(e.textContent.trim() || e.querySelector("img[alt]"), "name of " + e.outerHTML);
	for (const e of all(".scroll")) need(e.tabIndex === 0 && e.ariaLabel, "scrolling by keys of " + e.outerHTML.slice(0, 90));
	const ids = all("[id]").map((e) => e.id);
	need(new Set(ids).size === ids.length, "ids that are unique: " + ids);
	for (const e of all("[aria-labelledby]")) for (const id of e.getAttribute("aria-labelledby").split(" ")) need(document.getElementById(id), "label " + id);
	const levels = all("h1, h2, h3").map((e) => +e.tagName[1]);
	need(levels.every((l, i) => l <= (levels[i - 1] ?? 0) + 1), "order of headings: " + levels);
	return bad;
})()`

// pages are the addresses of all pages, by the names of views, and of others that the same views show.
func pages(s *site) map[string]string {
	first := s.keyIn("first")
	return map[string]string{
		"home": "/", "runs": "/runs", "run": "/runs/" + first, "verify": "/runs/" + first + "/verify", "compare": "/compare?run=" + first + "&run=" + s.keyIn("second"),
		"datasets": "/datasets", "dataset": "/datasets/clinic", "comparisons": "/comparisons", "comparison": "/comparisons/" + s.keyIn("cmp"),
		"networks": "/networks", "audits": "/audits", "audit": "/audits/" + s.keyIn("audited"),

		"stalled": "/runs/" + s.keyIn("killed"), "training": "/runs/" + s.keyIn("third"), "search": "/runs/" + s.keyIn("tuned"), "part": "/runs/" + s.keyIn("demo/east"),
		"private": "/runs/" + s.keyIn("private"), "nothing": "/runs?q=nothing",
	}
}

// TestEveryPage: each view has an address at which the browser looks at it, a row in the guide if it is in the navigation, and opens.
func TestEveryPage(t *testing.T) {
	root, _ := filled(t)
	s := open(t, root).enter()
	guide, err := os.ReadFile("../docs/how-to/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := pages(s)
	for _, v := range views {
		path := seen[v.name]
		if path == "" {
			t.Errorf("the browser does not see the page %s of views; add to pages, web/browser_test.go, an address that shows all of it, as %q: %q, "+
				"and to TestPages, web/web_test.go, what it says there", v.name, v.name, v.address)
			continue
		}
		if status, text := s.get(path); status != http.StatusOK || !strings.Contains(text, "<h1>") {
			t.Errorf("%s, the page %s: status %d\n%s", path, v.name, status, text)
		}
		if v.title != "" && !strings.Contains(string(guide), "\n| "+v.title+" | ") {
			t.Errorf("docs/how-to/serve.md: the table of pages has no row for %s; write\n| %s | what the page shows |", v.title, v.title)
		}
	}
}

// manyDigits are numbers that nobody rounded.
var manyDigits = regexp.MustCompile(`[^0-9.][0-9]*\.[0-9]{9,}`)

// checkRounded: the text of a page has no number with nine decimals or more.
func (b *tab) checkRounded(name string) {
	b.t.Helper()
	if found := manyDigits.FindAllString(" "+js[string](b, `document.body.innerText`), -1); len(found) > 0 {
		b.t.Errorf("%s: found numbers that are not rounded: %q", name, found)
	}
}

// A real browser shows every page, in the light, in the dark and on a phone: nothing leaves
// the machine, nothing is forbidden by the policy, nothing overflows, all can be read.
func TestBrowser(t *testing.T) {
	b := newTab(t)
	root, r := filled(t)
	killed(t, filepath.Join(root, "runs", "first"), filepath.Join(root, "runs", "killed"))
	fit(t, root, "private", run.Override{Path: "holdout", Value: "0.2", From: "holdout"}, run.Override{Path: "privacy.epsilon", Value: "0.3", From: "epsilon"})
	s := open(t, root)
	b.look(1280, 900, "light")
	b.do(chromedp.Navigate(s.link))
	b.until(`location.pathname === "/" && !location.search && document.querySelector("h1")?.textContent === "Overview"`)

	// Keys alone: the first is the way past the navigation, the second goes to a page.
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := js[string](b, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first key leads to %q", got)
	}
	for _, v := range views {
		if v.title != "" {
			b.do(chromedp.KeyEvent(kb.Tab))
		}
		if v.name == "datasets" {
			break
		}
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("h1")?.textContent === "Datasets"`)
	b.do(chromedp.Navigate(s.where + "/runs"))

	// Live: a step that is durable is on the page, without a new request for it.
	b.until(`document.querySelector("[data-run] .step")?.textContent === "20"`)
	r.step(5)
	b.until(`document.querySelector("[data-run] .step")?.textContent === "25"`) // the page listens
	r.step(200)
	begin := time.Now()
	b.until(`document.querySelector("[data-run] .step")?.textContent === "225"`)
	t.Logf("a durable step was on the page after %v", time.Since(begin).Round(time.Millisecond))
	b.until(`document.getElementById("said").textContent === "Run on clinic: 20 percent of the steps."`)
	if js[bool](b, `!document.getElementById("news").hidden`) {
		t.Error("a step counts as news of the list")
	}
	b.checkTree("main", "navigation Pages", "search", "status", "table Runs", "button Compare the chosen runs")
	b.look(1280, 520, "light")
	b.picture("runs")

	first, third := s.keyIn("first"), s.keyIn("third")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			b.look(width, 844, scheme)
			for name, path := range pages(s) {
				b.do(chromedp.Navigate(s.where + path))
				for what, bad := range map[string]string{"faint": faint, "missing": flaws} {
					if found := js[[]string](b, bad); len(found) > 0 {
						t.Errorf("%s, %s, %d wide: %s: %q", name, scheme, width, what, found)
					}
				}
				b.checkWidth(fmt.Sprintf("%s-%s-%d", name, scheme, width), width)
				b.checkRounded(name)
			}
		}
	}
	b.do(chromedp.Navigate(s.where + "/runs/" + first + "/report"))
	b.until(`document.querySelector("h1")?.textContent === "Privacy report: clinic"`)

	b.do(chromedp.Navigate(s.where + "/runs/" + third))
	r.step(1)
	r.end()
	b.until(`document.querySelector("[data-run]").textContent.trim() === "finished, done after 226 steps" && !document.getElementById("news").hidden`)

	b.checkQuiet()
	b.checkRequests(s.where)

	// If text of a file came in as a script or a picture, it would be stopped.
	const foreign = "http://192.0.2.1/x"
	js[any](b, `document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='document.title=1'><img src='`+foreign+`'>")`)
	b.wait("the policy to stop a foreign picture", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for id, url := range b.asked {
			if url == foreign && b.stopped[id] {
				return true
			}
		}
		return false
	})
	if js[string](b, `document.title`) == "1" {
		t.Error("a script of the page's text ran")
	}
}

// checkTree asks the browser what a screen reader is told of.
func (b *tab) checkTree(want ...string) {
	b.t.Helper()
	nodes := call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	found := map[string]bool{}
	for _, n := range nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		found[role] = true
		if n.Name != nil {
			found[role+" "+strings.Trim(string(n.Name.Value), `"`)] = true
		}
	}
	for _, w := range want {
		if !found[w] {
			b.t.Errorf("a screen reader is not told of %q", w)
		}
	}
}

// checkQuiet: the console has nothing to say.
func (b *tab) checkQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.troubles {
		b.t.Errorf("the console says: %s", text)
	}
}

// checkRequests: every request went to this server.
func (b *tab) checkRequests(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) < 50 {
		b.t.Errorf("only %d requests were seen", len(b.asked))
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, where+"/") {
			b.t.Errorf("a request for %s", url)
		}
	}
}

// picture keeps the whole page, where pictures are wanted.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(*screenshots, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// The pages that commands write fit a phone, too: a report, a disclosure and an audit. Package papertest checks those of papers.
func TestBrowserFiles(t *testing.T) {
	b := newTab(t)
	root, _ := filled(t)
	runs := filepath.Join(root, "runs")
	ctx := context.Background()
	l, err := ledger.View(ctx, filepath.Join(root, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := disclosure.Make(ctx, filepath.Join(runs, "first"), l, disclosure.Options{Made: disclosure.Made{At: "2026-11-24T15:00:00Z", Version: "test", Go: "go", Platform: "linux/amd64", Kernels: "generic"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	dossier, err := d.Render(text)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"report": filepath.Join(runs, "first", runlog.ReportFile), "disclosure": filepath.Join(root, "disclosure.html"), "audit-file": filepath.Join(runs, "audited", audit.PageFile)}
	if err := os.WriteFile(files["disclosure"], dossier, 0o600); err != nil {
		t.Fatal(err)
	}
	private := fit(t, root, "private", run.Override{Path: "holdout", Value: "0.2", From: "holdout"})
	files["private-report"] = filepath.Join(private, runlog.ReportFile)
	for name, file := range files {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				b.look(width, 844, scheme)
				b.do(chromedp.Navigate("file://" + file))
				b.checkRounded(name)
				b.checkWidth(fmt.Sprintf("%s-%s-%d", name, scheme, width), width)
			}
		}
	}
}

// The figures that commands write are as wide as a phone is, too, and no wider than a window.
func TestBrowserFigure(t *testing.T) {
	b := newTab(t)
	p := chart.Plot{ID: "a", Title: "ε against noise", XLabel: "noise multiplier (logarithmic)", YLabel: "ε", LogX: true, Lines: []chart.Line{{Name: "accountant best", X: []float64{1, 10}, Y: []float64{3, 1}}}}
	for _, n := range []int{3, 5} {
		plots := slices.Repeat([]chart.Plot{p}, n)
		for i := range plots {
			plots[i].ID = fmt.Sprint("p", i)
		}
		file := filepath.Join(t.TempDir(), "figure.svg")
		if err := os.WriteFile(file, []byte(chart.Figure("What a plan costs", "Gaussian(σ=11.7973)", plots...)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int64{1280, 800, 390} {
			b.look(width, 844, "dark")
			b.do(chromedp.Navigate("file://" + file))
			drawn, window := js[float64](b, `document.documentElement.getBoundingClientRect().width`), js[float64](b, `innerWidth`)
			if drawn > window || width == 390 && drawn != window {
				t.Errorf("%d plots on %d pixels: drawn on %g of %g", n, width, drawn, window)
			}
			b.picture(fmt.Sprintf("figure%d-%d", n, width))
		}
	}
}

// checkWidth: the page does not scroll sideways. A phone widens its window for what overflows, so it is told the width.
func (b *tab) checkWidth(name string, width int64) {
	b.t.Helper()
	if found := js[int64](b, `document.scrollingElement.scrollWidth`); found > width {
		b.t.Errorf("%s: found %d pixels", name, found)
	}
	b.picture(name)
}
