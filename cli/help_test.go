package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/method"
)

// help is what `sotto` prints with these arguments.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	c := root()
	c.SetArgs(args)
	c.SetOut(&out)
	if err := c.Execute(); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String()
}

// TestHelp: the commands stand in groups, the methods on one screen, and each method with its fields.
func TestHelp(t *testing.T) {
	text := help(t, "help")
	for _, g := range groups {
		if len(g.commands) == 0 || !strings.Contains(text, "\n"+g.title+"\n") {
			t.Errorf("the help has no group %q", g.title)
		}
	}
	if strings.Contains(text, "Additional Commands") {
		t.Error("a command is in no group")
	}
	if n := strings.Count(help(t, "fit", "--help"), "\n"); n > 60 {
		t.Errorf("the help of fit has %d lines; at most 60", n)
	}
	screen := help(t, "help", "methods")
	if n := strings.Count(screen, "\n"); n > 48 {
		t.Errorf("the list of methods has %d lines; at most 48, a screen", n)
	}
	known := func(name string, fields []string) {
		page := help(t, "help", name)
		if !strings.Contains(screen, "\n  "+name+" ") || !strings.HasPrefix(page, name+": ") || !strings.Contains(page, "docs/") {
			t.Errorf("%s is not listed, or not shown:\n%s", name, page)
		}
		for _, f := range fields {
			if !strings.Contains(page, "\n  "+f+" ") {
				t.Errorf("the help of %s does not have the field %s", name, f)
			}
		}
	}
	for _, e := range method.Registry() {
		var fields []string
		for _, f := range e.Fields() {
			if f.Name != "-" {
				fields = append(fields, f.Name)
			}
		}
		known(e.Name, fields)
	}
	for _, e := range gossip.Registry() {
		names, _ := e.Fields()
		known(e.Name, names)
	}
	for _, args := range [][]string{{"help", "no-such"}, {"help", "fit", "more"}, {"help", "net", "more"}} {
		c := root()
		c.SetArgs(args)
		c.SetOut(&bytes.Buffer{})
		if err := c.Execute(); exitCode(err) != exitInput {
			t.Errorf("%q: %v", args, err)
		}
	}
	if got, want := help(t, "help", "net", "init"), help(t, "net", "init", "--help"); got != want {
		t.Errorf("help net init prints\n%s\nwant\n%s", got, want)
	}
}
