package web

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sottodp/sotto/internal/tasks"
)

// TestTasks does the browser's tasks of docs/how-to/tasks.md in a real browser: it clicks what is bold, and looks for what is code,
// in its order. On a phone nothing scrolls sideways; in dark colors the page is dark.
func TestTasks(t *testing.T) {
	rows, err := tasks.Read("../docs/how-to/tasks.md", "## Browser")
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	root, _ := filled(t)
	killed(t, filepath.Join(root, "runs", "first"), filepath.Join(root, "runs", "killed"))
	s := open(t, root)
	b.do(chromedp.Navigate(s.link))
	b.until(`document.querySelector("h1")?.textContent === "Overview"`)
	for _, r := range rows {
		phone, dark := strings.HasPrefix(r.Do, "on a phone: "), strings.HasPrefix(r.Do, "in dark colors: ")
		width, scheme := int64(1280), "light"
		if phone {
			width = 390
		}
		if dark {
			scheme = "dark"
		}
		b.look(width, 844, scheme)
		b.do(chromedp.Navigate(s.where))
		for _, name := range tasks.Bold(r.Do) {
			b.click(fmt.Sprintf("tasks.md:%d", r.Line), name)
		}
		text := js[string](b, `document.querySelector("main, body").innerText`)
		for rest, code := text, tasks.Code(r.See); len(code) > 0; code = code[1:] {
			_, after, ok := strings.Cut(rest, code[0])
			if !ok {
				t.Errorf("tasks.md:%d: %s: %q is not where it should be in\n%s", r.Line, r.Task, code[0], text)
			}
			rest = after
		}
		if phone {
			b.checkWidth("task-"+strconv.Itoa(r.Line), width)
		}
		if dark && js[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).some((v) => v > 80)`) {
			t.Errorf("tasks.md:%d: %s: the page is not dark", r.Line, r.Task)
		}
	}
}

// click clicks the link, the button or the box of this name, and waits for the page that it opens.
func (b *tab) click(at, name string) {
	b.t.Helper()
	found := js[string](b, `(() => {
		const e = [...document.querySelectorAll("a, button, input[type=checkbox]")].find((e) => (e.ariaLabel ?? e.textContent).trim() === `+strconv.Quote(name)+` && e.getClientRects().length);
		if (!e) return "";
		if (e.tagName !== "INPUT") document.documentElement.dataset.left = "yes"; // the page that comes is another one
		setTimeout(() => e.click());
		return e.tagName;
	})()`)
	switch found {
	case "":
		b.t.Fatalf("%s: nothing on the page is called %q:\n%s", at, name, js[string](b, `document.body.innerText`))
	case "INPUT":
		b.until(`[...document.querySelectorAll("input:checked")].some((e) => e.ariaLabel === ` + strconv.Quote(name) + `)`)
	default:
		b.until(`!document.documentElement.dataset.left && document.readyState === "complete"`)
	}
}
