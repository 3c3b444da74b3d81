package cli

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
)

// Command, page and Python package know the same kinds of errors (D5).
func TestErrorKinds(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	python, err := os.ReadFile("../python/sottodp/errors.py")
	if err != nil {
		t.Fatal(err)
	}
	class := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    "([a-z-]+)": (\w+),$`).FindAllStringSubmatch(string(python), -1) {
		class[m[1]] = m[2]
	}
	var rows, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\d+) \\| .* \\| `(\\w+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, strings.Join(m[1:], " "))
	}
	for _, f := range failures {
		want = append(want, f.kind+" "+strconv.Itoa(f.code)+" "+class[f.kind])
	}
	slices.Sort(rows)
	slices.Sort(want)
	if !slices.Equal(rows, want) {
		t.Errorf("docs/reference/errors.md has\n%q, the command and python/sottodp/errors.py\n%q", rows, want)
	}
	if len(class) != len(failures) {
		t.Errorf("python/sottodp/errors.py has %d kinds, the command %d", len(class), len(failures))
	}
}

func TestPrintError(t *testing.T) {
	err := fmt.Errorf("run: %w", privacy.ErrExhausted)
	for _, c := range []struct{ asked, want string }{{"", "sotto: " + err.Error() + "\n"}, {"1", "sotto: " + err.Error() + "\n[budget-exhausted]\n"}} {
		t.Setenv(kindVariable, c.asked)
		var b bytes.Buffer
		if printError(&b, err); b.String() != c.want {
			t.Errorf("%s=%q: found %q, want %q", kindVariable, c.asked, b.String(), c.want)
		}
	}
	for err, want := range map[error]string{
		usageError("no such flag"):                                 "bad-input",
		&run.InputError{Err: fmt.Errorf("%w", access.ErrWouldEnd)}: "would-end-guarantee",
		fmt.Errorf("disk full"):                                    "failed",
		fmt.Errorf("attempt 2: %w", pool.ErrBehind):                "behind",
		fmt.Errorf("round 2: %w", transport.ErrBehind):             "behind",
		fmt.Errorf("hub: %w", transport.ErrClock):                  "bad-input",
		fmt.Errorf("ledger: %w", &account.UnsupportedError{}):      "bad-input",
	} {
		if got := failureOf(err).kind; got != want {
			t.Errorf("%v: found %s, want %s", err, got, want)
		}
	}
}
