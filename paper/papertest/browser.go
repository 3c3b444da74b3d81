package papertest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sottodp/sotto/internal/needs"
)

// flaws lists what a reader of a page of results would miss. A phone widens its window for what overflows, so it is
// told the width.
const flaws = `((width) => {
	const bad = [], need = (ok, what) => { if (!ok) bad.push(what); }, all = (s, e = document) => [...e.querySelectorAll(s)];
	const narrow = width < 600, print = matchMedia("print").matches, said = (e) => e.textContent.trim().slice(0, 60);
	const light = (c) => { const [r, g, b] = c.match(/[\d.]+/g).map((v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126*r + 0.7152*g + 0.0722*b; };
	const paper = light(getComputedStyle(document.body).backgroundColor);
	need((paper < 0.1) === (matchMedia("screen and (prefers-color-scheme: dark)").matches), "the colors that the reader prefers");
	for (const e of all("p, li, td, th, em, a, .yes, .no, text, figcaption, h2")) {
		const style = getComputedStyle(e), [a, b] = [light(e.matches("text") ? style.fill : style.color), paper].sort((x, y) => y - x);
		need((a + 0.05) / (b + 0.05) >= 4.5, "faint: " + said(e));
	}
	need(document.documentElement.scrollWidth <= width, "the page is " + document.documentElement.scrollWidth + " wide of " + width);
	const claims = all("table.claims"), tables = all(".wide table:not(.claims)");
	need(claims.length > 0 && tables.length > 0, "tables and claims");
	for (const e of tables) need(claims.every((c) => e.compareDocumentPosition(c) & 4), "a table after the claims: " + said(e));
	for (const e of all(".wide")) need(narrow || e.scrollWidth <= e.clientWidth + 1, "a table loses columns, " + e.scrollWidth + " of " + e.clientWidth + ": " + said(e));
	for (const e of all(".plots")) {
		const plots = all("figure", e), head = said(e.previousElementSibling), ticks = {}, rows = {};
		need(e.previousElementSibling.matches("ul.legend") && all("text.legend", e).length === 0, "one legend: " + head);
		const names = all("li", e.previousElementSibling).map(said), styles = all("li path", e.previousElementSibling).map((p) => p.className.baseVal);
		need(new Set(names).size === names.length && new Set(styles).size === styles.length, "a style for each name: " + names + "; " + styles);
		for (const p of plots) {
			const title = said(p), texts = all("text", p), svg = p.querySelector("svg"), box = svg.getBoundingClientRect();
			rows[Math.round(p.getBoundingClientRect().bottom)] = (rows[Math.round(p.getBoundingClientRect().bottom)] ?? 0) + 1;
			need(parseFloat(getComputedStyle(texts[0]).fontSize) * box.width / svg.viewBox.baseVal.width >= (print ? 9 : 10), "letters are too small: " + title);
			const boxes = texts.map((t) => t.getBoundingClientRect());
			boxes.forEach((a, i) => {
				need(a.left >= box.left - 1 && a.right <= box.right + 1 && a.top >= box.top - 1 && a.bottom <= box.bottom + 1, title + " cuts " + said(texts[i]));
				boxes.slice(0, i).forEach((b, k) => need(a.left >= b.right || b.left >= a.right || a.top >= b.bottom - 3 || b.top >= a.bottom - 3, title + " overlaps " + said(texts[i]) + " and " + said(texts[k])));
			});
			const label = said(texts.at(-1)), own = all(".ylab", p).map(said).join(" ");
			need((ticks[label] ??= own) === own, title + " has its own range: " + own + "; others " + ticks[label]);
		}
		if (!narrow && !print) for (const n of Object.values(rows)) need(n > 1 || plots.length === 1, "a panel alone in a row: " + head + " " + JSON.stringify(rows));
	}
	return bad;
})`

// page looks at index.html in dir in a browser: on a screen, on a phone and on paper.
func page(t *testing.T, dir string) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(needs.Chromium(t)), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(needs.Patience), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.UserDataDir(t.TempDir()))
	ctx, stop := context.WithTimeout(context.Background(), needs.Patience)
	defer stop()
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	file, err := filepath.Abs(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		media, scheme string
		width         int64
	}{{"screen", "light", 1300}, {"screen", "dark", 1300}, {"screen", "dark", 390}, {"print", "light", 718}} {
		if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: c.width, Height: 900, DeviceScaleFactor: 1,
				Mobile: c.width < 600}); err != nil {
			t.Fatal(err)
		}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Media: c.media,
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: c.scheme}}}); err != nil {
			t.Fatal(err)
		}
		found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](fmt.Sprintf("%s(%d)", flaws, c.width)))
		if err != nil {
			t.Fatal(err)
		}
		for _, flaw := range found {
			t.Errorf("%s, %s, %d px: %s", c.media, c.scheme, c.width, flaw)
		}
	}
}
